"""`bulkhead run --repeat`: many runs of one module, on spare workers, some at the same time."""

import json
import os
import signal
import subprocess
import unittest

from support import BULKHEAD, PATIENCE_S, CommandTest, printer

LONG = "x" * 60_000 + "\\0a"


class Repeat(CommandTest):
    def lines(self, name="reports.jsonl"):
        return [json.loads(line) for line in self.read(name).decode().splitlines()]

    def test_each_run_has_a_line_and_there_is_a_summary(self):
        module = self.compile(printer("hello\\0a"))
        result = self.bulkhead("run", "--repeat", "20", "--report", self.path("reports.jsonl"), module)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, b"hello\n" * 20)
        *runs, summary = self.lines()
        self.assertEqual(len(runs), 20)
        for run in runs:
            self.check_report(run)
            self.assertEqual(run["code"], "worker-completed")
        self.assertTrue(any(run["warm_worker"] for run in runs))
        self.assertEqual(summary["schema"], "bulkhead.repeat-summary/1")
        self.assertEqual(summary["codes"], {"worker-completed": 20})
        self.assertEqual(summary["runs"], 20)
        times = summary["run_ms"]
        self.assertTrue(0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"], times)
        said = result.stderr.decode()
        self.assertIn("bulkhead: 20 runs in ", said)
        self.assertIn("20 worker-completed", said)
        self.assertIn("runs/s", said)

    def test_output_of_runs_at_the_same_time_stays_whole(self):
        module = self.compile(printer(LONG).replace('(memory (export "memory") 1)', '(memory (export "memory") 2)'))
        result = self.bulkhead("run", "--repeat", "40", "--jobs", "4", "--quiet", module)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(result.stdout, (b"x" * 60_000 + b"\n") * 40)

    def test_the_first_failure_gives_the_status(self):
        trapping = self.compile("(module (func (export \"_start\") unreachable))", "trap.wasm")
        result = self.bulkhead("run", "--repeat", "5", "--jobs", "2", "--report", self.path("reports.jsonl"), trapping)
        self.assertEqual(result.returncode, 134, result.stderr)
        *runs, summary = self.lines()
        self.assertEqual([run["exit_status"] for run in runs], [134] * 5)
        self.assertEqual(summary["codes"], {"trapped": 5})
        self.assertEqual(summary["exit_status"], 134)

    def test_each_run_has_the_whole_deadline(self):
        loop = self.compile("(module (func (export \"_start\") (loop (br 0))))", "loop.wasm")
        result = self.bulkhead("run", "--repeat", "3", "--deadline", "200ms", "--report",
                               self.path("reports.jsonl"), loop)
        self.assertEqual(result.returncode, 124, result.stderr)
        *runs, _ = self.lines()
        self.assertEqual([run["code"] for run in runs], ["deadline-exceeded"] * 3)
        for run in runs:
            self.assertGreaterEqual(run["elapsed_ms"], 200)

    def test_a_signal_stops_what_runs_and_starts_no_more(self):
        loop = self.compile("(module (func (export \"_start\") (loop (br 0))))", "loop.wasm")
        report = self.path("reports.jsonl")
        process = subprocess.Popen([BULKHEAD, "run", "--repeat", "1000", "--jobs", "2", "--deadline", "60s",
                                    "--status-fd", "1", "--report", report, loop],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while b'"execute"' not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, said)
        *runs, summary = self.lines()
        self.assertLessEqual(len(runs), 2)
        self.assertEqual(summary["not_started"], 1000 - len(runs))
        self.assertIn("cancelled", summary["codes"])

    def test_what_does_not_go_together(self):
        module = self.compile(printer("hello"))
        for options, part in (
            (("--repeat", "0"), "--repeat: '0' is not at least 1"),
            (("--repeat", "2", "--jobs", "0"), "--jobs: '0' is outside 1 to 256"),
            (("--repeat", "2", "--jobs", "257"), "--jobs: '257' is outside 1 to 256"),
            (("--jobs", "2"), "--jobs: needs --repeat"),
            (("--repeat", "2", "--output", "o"), "--repeat: with --output each run would replace the other's file"),
            (("--repeat", "2", "--stdin", "-"), "--repeat: standard input can be read once only"),
        ):
            with self.subTest(options=options):
                result = self.bulkhead("run", *options, module)
                self.assertEqual(result.returncode, 122, result.stderr)
                self.check_says(result, part)
        self.assertFalse(os.path.exists(self.path("o")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
