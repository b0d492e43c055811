#!/usr/bin/env python3
"""Tests of build_engine.py with a cargo that only plays a part: a real build takes ten minutes."""

import contextlib
import io
import os
import pathlib
import stat
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import build_engine

RECIPE = build_engine.RECIPE

# Answers as cargo does; SCENE says what goes wrong.
CARGO = r'''#!{python}
import json, os, pathlib, sys
scene = os.environ.get("SCENE", "")
command = sys.argv[1]
here = pathlib.Path.cwd()
if command == "generate-lockfile":
    if scene == "no-registry":
        sys.exit("error: could not connect")
    (here / "Cargo.lock").write_text('source = "registry+here"\n')
elif command == "tree":
    print("bulkhead-engine v0.0.0\nwasmtime v1\nwasmtime v1 (*)\n")
elif command == "build":
    assert "@REGISTRY@" not in (here / "Cargo.lock").read_text()
    print("   Compiling wasmtime v1", file=sys.stderr)
    if scene == "broken":
        sys.exit("error: could not compile wasmtime")
    release = pathlib.Path(sys.argv[sys.argv.index("--target-dir") + 1]) / "release"
    release.mkdir(parents=True)
    (release / "libwasmtime.a").write_text("code")
elif command == "metadata":
    api = here / "api"
    (api / "include" / "wasmtime").mkdir(parents=True)
    (api / "include" / "wasmtime.h").write_text("header")
    (api / "include" / "wasmtime" / "conf.h.in").write_text(
        "#cmakedefine WASMTIME_FEATURE_WAT\n#cmakedefine WASMTIME_FEATURE_PARALLEL_COMPILATION\n"
        "#cmakedefine WASMTIME_FEATURE_WINCH\n")
    (api / "LICENSE").write_text("do as you like")
    print(json.dumps({{"packages": [{{"name": "wasmtime-c-api-impl", "manifest_path": str(api / "Cargo.toml")}}]}}))
'''


class BuildEngine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()
        cargo = self.root / "bin" / "cargo"
        cargo.write_text(textwrap.dedent(CARGO).format(python=sys.executable))
        cargo.chmod(cargo.stat().st_mode | stat.S_IXUSR)
        self.scene()

    def scene(self, name: str = "", path: str | None = None) -> None:
        values = {"XDG_CACHE_HOME": str(self.root / "cache"), "SCENE": name, "PATH": path or str(self.root / "bin")}
        patch = mock.patch.dict(os.environ, values)
        patch.start()
        self.addCleanup(patch.stop)

    def build(self) -> tuple[int, str]:
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["build_engine.py", str(self.root / "link")]):
            with contextlib.redirect_stderr(said):
                return build_engine.main(), said.getvalue()

    def left(self) -> list[str]:
        return sorted(entry.name for entry in (self.root / "cache/bulkhead/engine").iterdir()
                      if not entry.name.endswith(".lock"))

    def test_the_engine_is_laid_out_and_linked(self):
        status, said = self.build()
        self.assertEqual(status, 0, said)
        engine = self.root / "link"
        self.assertEqual((engine / "lib/libwasmtime.a").read_text(), "code")
        self.assertEqual((engine / "include/wasmtime/conf.h").read_text().splitlines(),
                         ["#define WASMTIME_FEATURE_WAT", "#define WASMTIME_FEATURE_PARALLEL_COMPILATION",
                          "/* no WINCH */"])
        self.assertIn("==== wasmtime-c-api-impl\n\ndo as you like", (engine / "LICENSE").read_text())
        self.assertEqual(self.left(), [build_engine.engine_name()])

    def test_it_is_built_once(self):
        self.build()
        self.scene("broken")
        status, said = self.build()
        self.assertEqual((status, said), (0, ""))

    def test_failures_say_what_is_wrong_and_leave_nothing(self):
        for scene, word in (("no-registry", "could not connect"), ("broken", "could not compile wasmtime")):
            with self.subTest(scene):
                self.scene(scene)
                status, said = self.build()
                self.assertEqual(status, 1)
                self.assertIn(word, said)
                self.assertEqual(self.left(), [])
                self.assertFalse((self.root / "link").exists())

    def test_what_a_killed_build_left_is_removed(self):
        stale = self.root / "cache/bulkhead/engine" / f".{build_engine.engine_name()}.old"
        (stale / "target").mkdir(parents=True)
        self.build()
        self.assertEqual(self.left(), [build_engine.engine_name()])

    def test_without_cargo_the_package_is_named(self):
        self.scene(path=str(self.root / "nowhere"))
        status, said = self.build()
        self.assertEqual(status, 1)
        self.assertIn("cargo is missing", said)
        self.assertIn("cargo-web", said)

    def test_a_cache_that_cannot_be_written_is_named(self):
        (self.root / "cache").write_text("a file")
        status, said = self.build()
        self.assertEqual(status, 1)
        self.assertIn("cache/bulkhead/engine", said)

    def test_another_recipe_is_another_engine(self):
        before = build_engine.engine_name()
        with mock.patch.object(build_engine, "RECIPE", self.root / "recipe"):
            (self.root / "recipe").mkdir()
            for name in ("Cargo.toml", "Cargo.lock", "lib.rs"):
                (self.root / "recipe" / name).write_bytes((RECIPE / name).read_bytes())
            self.assertEqual(build_engine.engine_name(), before)
            with open(self.root / "recipe" / "Cargo.toml", "a", encoding="utf-8") as recipe:
                recipe.write("# changed\n")
            self.assertNotEqual(build_engine.engine_name(), before)


if __name__ == "__main__":
    unittest.main()
