"""--report and --status-fd: always there, always valid, never in the way."""

import json
import os
import subprocess

from support import BULKHEAD, SCHEMA, CommandTest, printer

import json_schema


class Report(CommandTest):
    def setUp(self):
        super().setUp()
        self.hello = self.compile(printer("hello\\0a"), "hello.wasm")

    def test_everything_the_schema_promises_is_described(self):
        self.assertEqual(sorted(SCHEMA["required"]), sorted(SCHEMA["properties"]))
        _, report = self.run_with_report(self.hello)
        self.assertEqual(sorted(report), sorted(SCHEMA["properties"]))

    def test_a_wrong_report_would_be_noticed(self):
        _, report = self.run_with_report(self.hello)
        report["stage"] = "nowhere"
        del report["code"]
        self.assertEqual(len(json_schema.problems(SCHEMA, report)), 2)

    def test_minus_is_standard_error(self):
        result = self.bulkhead("run", self.hello, "--quiet", "--report", "-")
        self.assertEqual(result.stdout, b"hello\n")
        self.check_report(json.loads(result.stderr))

    def test_descriptor_paths_are_written_to(self):
        for path in ("/dev/stderr", "/dev/fd/2"):
            result = self.bulkhead("run", self.hello, "--quiet", "--report", path)
            self.check_report(json.loads(result.stderr))
        self.assertTrue(os.path.islink("/dev/stderr") or not os.path.exists("/dev/stderr"))

    def test_an_old_report_is_replaced_whole(self):
        self.write("r.json", b"x" * 100_000)
        self.assertEqual(self.bulkhead("run", self.hello, "--report", "r.json").returncode, 0)
        self.check_report(json.loads(self.read("r.json")))
        self.assertEqual(sorted(os.listdir(self.dir)), ["hello.wasm", "r.json"])

    def test_unusable_destination_stops_before_the_run(self):
        self.write("file", "x")
        for path in (self.dir, "none/r.json", "file/r.json", "/dev/fd/987"):
            result = self.bulkhead("run", self.hello, "--report", path)
            self.assertEqual((result.returncode, result.stdout), (125, b""), path)
            self.check_says(result, "--report: ")

    def test_report_that_cannot_be_written_fails_a_good_run_only(self):
        result = self.bulkhead("run", self.hello, "--quiet", "--report", "/dev/full")
        self.assertEqual((result.returncode, result.stdout), (125, b"hello\n"))
        self.check_says(result, "--report: cannot write '/dev/full': No space left on device")
        result = self.bulkhead("run", self.guest("exit", CODE="3"), "--quiet", "--report", "/dev/full")
        self.assertEqual(result.returncode, 3)

    def test_limits_are_as_asked_for(self):
        _, report = self.run_with_report(self.hello, "--deadline", "5s", "--memory", "64MiB", "--fuel", "1e9")
        caps = {limit["name"]: limit["cap"] for limit in report["limits"]}
        self.assertEqual(caps["deadline-ms"], 5000)
        self.assertEqual(caps["memory-bytes"], 64 << 20)
        self.assertEqual(caps["fuel"], 10**9)
        self.assertGreater(report["fuel_used"], 0)

    def test_containment_is_named(self):
        _, report = self.run_with_report(self.hello)
        self.assertIn("seccomp", report["containment"])
        _, report = self.run_with_report(self.hello, "--sandbox", "none")
        self.assertNotIn("seccomp", report["containment"])
        self.assertIn("rlimits", report["containment"])


class StatusFd(CommandTest):
    def lines(self, *arguments):
        read_end, write_end = os.pipe()
        result = self.bulkhead("run", *arguments, "--status-fd", str(write_end), pass_fds=[write_end])
        os.close(write_end)
        with os.fdopen(read_end) as file:
            return result, [json.loads(line) for line in file]

    def test_stages_in_order_and_the_end(self):
        result, events = self.lines(self.compile(printer("x")))
        stages = [event["stage"] for event in events if event["event"] == "stage"]
        order = ["admit", "launch", "handshake", "hand-over", "compile", "execute", "stop", "reap", "publish", "done"]
        self.assertEqual(stages, sorted(stages, key=order.index))
        self.assertIn("execute", stages)
        self.assertEqual(events[-1], {"event": "end", "code": "worker-completed", "exit_status": 0})
        self.assertEqual(result.returncode, 0)

    def test_conversion_is_a_task_of_its_own(self):
        self.write("m.wat", printer("x"))
        _, events = self.lines("m.wat")
        tasks = [event["task"] for event in events if event["event"] == "stage"]
        self.assertEqual(tasks, sorted(tasks))  # all of "convert" before all of "run"
        self.assertEqual(set(tasks), {"convert", "run"})

    def test_end_of_a_run_that_never_began(self):
        _, events = self.lines("none.wasm")
        self.assertEqual(events, [{"event": "end", "code": "module-refused/not-found", "exit_status": 127}])

    def test_descriptor_must_be_open_for_writing(self):
        module = self.compile(printer("x"))
        result = self.bulkhead("run", module, "--status-fd", "987")
        self.assertEqual((result.returncode, result.stdout), (122, b""))
        self.check_says(result, "--status-fd: descriptor 987 is not open")
        _, report = self.run_with_report(module, "--status-fd", "987")
        self.assertEqual(report["code"], "worker-invalid-configuration")
        with open("/dev/null", "rb") as file:
            number = file.fileno()
            result = self.bulkhead("run", module, "--status-fd", str(number), pass_fds=[number])
        self.assertEqual(result.returncode, 122)
        self.check_says(result, f"descriptor {number} is not open for writing")

    def test_a_reader_that_left_or_never_reads_is_no_problem(self):
        module = self.compile(printer("x"))
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = self.bulkhead("run", module, "--status-fd", str(write_end), pass_fds=[write_end])
        os.close(write_end)
        self.assertEqual((result.returncode, result.stdout), (0, b"x"))
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"y" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        result = self.bulkhead("run", module, "--status-fd", str(write_end), pass_fds=[write_end])
        self.assertEqual((result.returncode, result.stdout), (0, b"x"))
        os.close(read_end)
        os.close(write_end)


class Quiet(CommandTest):
    def test_quiet_says_nothing_of_what_the_guest_says_itself(self):
        for module, status in ((self.compile(printer("x")), 0), (self.guest("exit", CODE="7"), 7)):
            result = self.bulkhead("run", "-q", module)
            self.assertEqual((result.returncode, result.stderr), (status, b""))
        result = self.bulkhead("run", "-q", "none.wasm")
        self.check_says(result, "none.wasm")

    def test_dir_rw_is_announced_once(self):
        module = self.compile(printer("x"))
        os.mkdir(self.path("a"))
        os.mkdir(self.path("b"))
        arguments = ("run", module, "--dir-rw", "a", "--dir-rw", "b")
        text = self.bulkhead(*arguments).stderr.decode()
        self.assertEqual(text.count("--dir-rw"), 1, text)
        self.assertIn("straight to the host", text)
        self.assertEqual(self.bulkhead(*arguments, "--quiet").stderr, b"")

    def test_closed_standard_streams_are_no_trap(self):
        module = self.compile(printer("x"))
        command = f'exec "{BULKHEAD}" run "{module}" --report "{self.path("r.json")}" <&- >&- 2>&-'
        result = subprocess.run(["sh", "-c", command], check=False)
        self.assertEqual(result.returncode, 0)
        self.check_report(json.loads(self.read("r.json")))
