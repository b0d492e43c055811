#!/usr/bin/env python3
"""Tests of currency.py: the pinned files as they are, and engines too old in each way."""

import datetime
import pathlib
import tempfile
import unittest

import currency

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Pins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("scripts/pins/engine.txt", "# a comment\nwasmtime==50.0.1 \\\n    --hash=sha256:00\n")
        self.write("scripts/engine_lts/Cargo.lock", '[[package]]\nname = "wasmtime-c-api-impl"\nversion = "48.0.8"\n')
        self.write("scripts/pins/support.txt", "48.0.8 2028-08-20\n50.0.1 2026-12-20\n")
        self.write("scripts/pins/advisories.txt", "# none\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def problems(self, today: str) -> list[str]:
        return currency.problems(self.root, datetime.date.fromisoformat(today))

    def test_the_last_day_of_support_is_fine(self):
        self.assertEqual(self.problems("2026-12-20"), [])

    def test_the_day_after_is_not(self):
        self.assertEqual(self.problems("2026-12-21"),
                         ["ENGINE=wheel: wasmtime 50.0.1 has been out of support since 2026-12-20"])

    def test_a_hole_may_be_known_for_a_week(self):
        self.write("scripts/pins/advisories.txt", "GHSA-a 2026-11-01 48.0.7 48.0.8\nGHSA-b 2026-11-01 47.0.0\n")
        self.assertEqual(self.problems("2026-11-08"), [])
        self.assertEqual(self.problems("2026-11-09"), ["ENGINE=lts: wasmtime 48.0.8 has GHSA-a, known for 8 days"])

    def test_files_that_do_not_say_enough_are_refused(self):
        for path, text, word in (("scripts/pins/support.txt", "50.0.1 2026-12-20\n", "nothing about 48.0.8"),
                                 ("scripts/pins/support.txt", "50.0.1\n", "support.txt:1: 2 words"),
                                 ("scripts/pins/support.txt", "50.0.1 soon\n48.0.8 2028-08-20\n", "soon is no day"),
                                 ("scripts/pins/advisories.txt", "GHSA-a 2026-11-01\n", "advisories.txt:1: 3 words"),
                                 ("scripts/pins/engine.txt", "", "no pinned version")):
            with self.subTest(word):
                self.setUp()
                self.write(path, text)
                with self.assertRaisesRegex(currency.Incomplete, word):
                    self.problems("2026-11-30")

    def test_the_projects_own_files_say_enough(self):
        self.assertEqual(currency.problems(ROOT, datetime.date(2026, 12, 1)), [])


if __name__ == "__main__":
    unittest.main()
