"""Every row of the command's table of exit statuses, and that no two causes share one by accident."""

import os
import shutil
import stat
import subprocess

from support import BULKHEAD, CommandTest, printer


class ExitStatus(CommandTest):
    def test_completed(self):
        result, report = self.run_with_report(self.compile(printer("hello\\0a")))
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout, b"hello\n")
        self.check_says(result, "completed in ")
        self.assertEqual(report["code"], "worker-completed")
        self.assertEqual(report["stdout_bytes"], 6)

    def test_text_modules_run_as_well(self):
        self.write("hello.wat", printer("hello\\0a"))
        result, report = self.run_with_report("hello.wat")
        self.assertEqual((result.returncode, result.stdout), (0, b"hello\n"))
        self.assertEqual(report["module"]["profile"], "wasi")

    def test_guest_codes_pass_through_up_to_119(self):
        for code in (1, 3, 119):
            result, report = self.run_with_report(self.guest("exit", CODE=str(code)))
            self.assertEqual(result.returncode, code)
            self.assertEqual((report["code"], report["guest_exit"]), ("nonzero-exit", code))
        result, report = self.run_with_report(self.guest("exit", CODE="0"))
        self.assertEqual((result.returncode, report["terminal"]["outcome"]), (0, "exited"))

    def test_g10_guest_codes_that_look_like_ours_do_not(self):
        for code in (120, 124, 125, 126, 137, 255):
            result, report = self.run_with_report(self.guest("exit", CODE=str(code)))
            self.assertEqual(result.returncode, 119)
            self.assertEqual((report["code"], report["guest_exit"]), ("nonzero-exit", code))
            self.check_says(result, f"the guest exited with {code} ")

    def test_trap(self):
        result, report = self.run_with_report(self.guest("trap", FAULT="unreachable"))
        self.assertEqual(result.returncode, 134)
        self.assertEqual((report["code"], report["trap"]["code"]), ("trapped", "unreachable"))
        self.assertTrue(report["trap"]["backtrace"])
        self.assertIn(b"bulkhead: the guest trapped: unreachable", result.stderr)

    def test_out_of_fuel(self):
        result, report = self.run_with_report(self.guest("spin"), "--fuel", "1e6")
        self.assertEqual((result.returncode, report["code"]), (120, "out-of-fuel"))
        self.check_says(result, "--fuel")

    def test_deadline(self):
        spin = self.guest("spin")
        result, report = self.run_with_report(spin, "--deadline", "1s", "--grace", "60s")
        self.assertEqual((result.returncode, report["code"]), (124, "deadline-exceeded"))
        self.assertEqual(report["terminal"]["trigger"], "deadline-exceeded")
        result, report = self.run_with_report(spin, "--deadline", "1s", "--stop-mode", "kill")
        self.assertEqual(result.returncode, 124)
        self.assertEqual(report["code"], "forced-containment-deadline-exceeded")
        self.check_says(result, "deadline of 1.0 s exceeded", "killed")

    def test_deadline_while_converting_text(self):
        self.write("spin.wat", "(module (func (export \"_start\")))")
        result, report = self.run_with_report("spin.wat", "--deadline", "1us")
        self.assertEqual(result.returncode, 124)
        self.assertEqual(report["stop"], "deadline-exceeded")

    def test_limits(self):
        flood = self.guest("flood_stdout")
        result, report = self.run_with_report(flood, "--stdout-limit", "100KB")
        self.assertEqual((result.returncode, report["code"]), (121, "stdout-limit"))
        self.assertEqual(report["stdout_bytes"], 100_000)
        self.assertEqual(len(result.stdout), 100_000)

    def test_output(self):
        guest = self.guest("write_output", END="(nop)")
        before = set(os.listdir(self.dir))
        result, report = self.run_with_report(guest, "--output", "destination")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("destination"), b"guest output")
        self.assertEqual(set(os.listdir(self.dir)) - before, {"destination"})
        self.assertEqual(report["output"]["path"], os.path.join(os.path.realpath(self.dir), "destination"))
        self.assertTrue(report["output"]["published"])

    def test_a_failed_guest_publishes_nothing(self):
        guest = self.guest("write_output", END="(call $proc_exit (i32.const 3))")
        self.write("destination", "old")
        before = set(os.listdir(self.dir))
        result, report = self.run_with_report(guest, "--output", "destination")
        self.assertEqual(result.returncode, 3)
        self.assertFalse(report["output"]["published"])
        self.assertEqual(self.read("destination"), b"old")
        self.assertEqual(set(os.listdir(self.dir)), before)

    def test_refused_modules(self):
        forbidden = '(module (import "env" "f" (func)) (memory (export "memory") 1) (func (export "_start")))'
        for name, module in (
            ("a foreign import", self.compile(forbidden)),
            ("an empty file", self.write("empty.wasm", b"")),
            ("no module at all", self.write("picture.wasm", b"\x89PNG\r\n\x1a\n" * 100)),
            ("a cut module", self.write("cut.wasm", b"\0asm\x01\0\0\0\x01\x7f")),
            ("broken text", self.write("broken.wat", "(module (func (i32.const")),
        ):
            result, report = self.run_with_report(module)
            self.assertEqual(result.returncode, 126, name)
            self.assertTrue(report["code"].startswith("module-refused/"), name)
            self.check_says(result, "module refused (")

    def test_unreadable_modules(self):
        for path, why in ((self.dir, "is a directory"), ("/proc/self/mem", "Input/output error")):
            result, report = self.run_with_report(path)
            self.assertEqual((result.returncode, report["code"]), (126, "module-refused/unreadable"))
            self.check_says(result, path, why)

    def test_missing_module(self):
        for path in ("none.wasm", "none/none.wasm"):
            result, report = self.run_with_report(path)
            self.assertEqual((result.returncode, report["code"]), (127, "module-refused/not-found"))
            self.check_says(result, path, "No such file or directory")

    def test_usage(self):
        for arguments in ((), ("rum",), ("run",), ("run", "x", "--deadline", "5"), ("inspect",), ("version", "x")):
            result = self.bulkhead(*arguments)
            self.assertEqual((result.returncode, result.stdout), (122, b""), arguments)
            self.check_says(result)

    def test_stdin(self):
        cat = self.guest("read_stdin")
        self.write("input", "from a file")
        for arguments, options, expected in (
            (("--stdin", "-"), {"stdin": None, "input": b"from a pipe"}, b"from a pipe"),
            (("--stdin", "input"), {}, b"from a file"),
            (("--stdin", "empty"), {"stdin": None, "input": b"not read"}, b""),
            ((), {"stdin": None, "input": b"not read"}, b""),
        ):
            options = {k: v for k, v in options.items() if v is not None}
            if "input" in options:
                result = subprocess.run([BULKHEAD, "run", cat, *arguments], capture_output=True, check=False,
                                        **options)
            else:
                result = self.bulkhead("run", cat, *arguments)
            self.assertEqual((result.returncode, result.stdout), (0, expected), arguments)


class WorkerFaults(CommandTest):
    """Case G30: every way in which the worker program can be wrong is named, with the path."""

    def check(self, make, status, *parts):
        environment = self.worker_dir(make)
        result, report = self.run_with_report(self.compile(printer("x")), env=environment)
        self.assertEqual(result.returncode, status, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr.decode())
        shutil.rmtree(self.path("workers"))
        return report

    def executable(self, content):
        def make(path):
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, stat.S_IRWXU)

        return make

    def test_no_worker_anywhere(self):
        os.link(BULKHEAD, self.path("bulkhead"))  # no worker beside this one
        environment = {**os.environ, "BULKHEAD_WORKER_DIR": self.path("none")}
        result = subprocess.run([self.path("bulkhead"), "run", self.compile(printer("x"))], capture_output=True,
                                env=environment, check=False)
        self.assertEqual(result.returncode, 127)
        self.check_says(result, self.path("none", "bulkhead-wasm-worker"), self.path("bulkhead-wasm-worker"))

    def test_not_a_program(self):
        path = self.path("workers", "bulkhead-wasm-worker")
        report = self.check(self.executable(b"just text\n"), 125, path, "Exec format error")
        self.assertEqual(report["code"], "worker-launch")

    def test_interpreter_missing(self):
        path = self.path("workers", "bulkhead-wasm-worker")
        report = self.check(self.executable(b"#!/none/sh\n"), 125, path, "No such file or directory")
        self.assertEqual(report["code"], "worker-launch")

    def test_ends_at_once(self):
        report = self.check(lambda path: shutil.copy("/bin/false", path), 125, "exit 1")
        self.assertEqual(report["code"], "worker-unexpected-exit")
        self.assertEqual(report["worker_exit"], "exit 1")

    def test_speaks_something_else(self):
        report = self.check(self.executable(b"#!/bin/sh\necho oh dear >&2\nexec head -c 100 /dev/zero >&3\n"), 125,
                            "oh dear")
        self.assertIn("oh dear", report["stderr_tail"])
        self.assertIn(report["code"], ("worker-protocol", "worker-unexpected-exit"))
