"""Odd names and large values travel exactly or are refused by name (cases G35, G36)."""

import json
import os
import shutil

from support import WORKER, CommandTest, printer

ODD_NAMES = (b"a b", b'a"b', b"a'b", b"a\nb", "\u2603".encode(), b"\xff", b"-x", b"x" * 255,
             b"\x1b[2J", b"a\\b", b"$HOME")


class Names(CommandTest):
    def folders(self):
        for name in ODD_NAMES:
            folder = os.path.join(os.fsencode(self.dir), name)
            os.mkdir(folder)
            yield folder
            shutil.rmtree(folder)

    def test_g35_module_and_output(self):
        writer = self.guest("write_output", END="(nop)")
        for folder in self.folders():
            module = os.path.join(folder, b"m.wasm")
            shutil.copy(writer, module)
            result = self.bulkhead("run", module, "--output", os.path.join(folder, b"destination"), "--report",
                                   os.path.join(folder, b"r.json"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(folder)), [b"destination", b"m.wasm", b"r.json"])
            with open(os.path.join(folder, b"r.json"), encoding="utf-8") as file:
                report = json.load(file)
            self.check_report(report)
            exact = bytes.fromhex(report["module"]["path_hex"]) if "path_hex" in report["module"] else \
                report["module"]["path"].encode()
            self.assertEqual(exact, module)
            result.stderr.decode()

    def test_g35_worker(self):
        module = self.compile(printer("x"))
        for folder in self.folders():
            os.symlink(WORKER, os.path.join(folder, b"bulkhead-wasm-worker"))  # finds its library from there
            environment = {**os.environb, b"BULKHEAD_WORKER_DIR": folder}
            result = self.bulkhead("run", module, env=environment)
            self.assertEqual((result.returncode, result.stdout), (0, b"x"), result.stderr)

    def test_g35_locale_does_not_matter(self):
        module = self.compile(printer("x"), "\u2603.wasm")
        for environment in ({"LC_ALL": "C"}, {}):
            self.assertEqual(self.bulkhead("run", module, env=environment).stdout, b"x")

    def test_deep_path(self):
        folder = self.dir
        while len(folder) < 3600:
            folder = os.path.join(folder, "d" * 100)
        os.makedirs(folder)
        shutil.copy(self.compile(printer("x")), os.path.join(folder, "m.wasm"))
        self.assertEqual(self.bulkhead("run", os.path.join(folder, "m.wasm")).stdout, b"x")


class Arguments(CommandTest):
    def setUp(self):
        super().setUp()
        self.printer = self.guest("print_args")

    def printed(self, *arguments, **options):
        result = self.bulkhead("run", self.printer, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.endswith(b"\0"))
        return result.stdout[:-1].split(b"\0")

    def test_arguments_arrive_exactly(self):
        given = [b"", b"a b", b"--output", b"-", b"\xff\n\"'", b"{}", b"[1,2]", b"--"]
        self.assertEqual(self.printed("--env", "A=b=c", "--env", b"B=\xff", "--", *given),
                         [b"print_args.wasm", *given, b"A=b=c", b"B=\xff"])

    def test_g36_large_values(self):
        large = "x" * 131_000  # the largest single string Linux lets a caller pass
        self.assertEqual(self.printed("--env", "BIG=" + large[:-4], "--", large),
                         [b"print_args.wasm", large.encode(), b"BIG=" + large[:-4].encode()])
        many = ["y" * 100_000] * 10
        self.assertEqual(len(self.printed("--", *many)), 11)

    def test_g36_more_than_a_worker_takes_is_named(self):
        result, report = self.run_with_report(self.printer, "--", *["z"] * 5000)
        self.assertEqual((result.returncode, report["code"]), (122, "worker-invalid-configuration"))
        self.check_says(result, "4096")

    def test_g36_callers_environment_stays_outside(self):
        environment = {**os.environ, "LS_COLORS": "x" * 100_000, "SECRET": "hunter2"}
        environment.update({f"VARIABLE_{i}": "value" for i in range(1500)})
        self.assertEqual(self.printed(env=environment), [b"print_args.wasm"])
