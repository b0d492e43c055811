"""Ctrl-C and its relatives. Every signal is sent when the guest is known to run."""

import os
import signal
import subprocess

from support import BULKHEAD, TEST_WORKER_DIR, LiveRuns


class Signals(LiveRuns):
    def test_first_signal_cancels_with_grace(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.start(self.guest("spin"), "--grace", "60s")
            process.send_signal(number)
            report, text = self.finish(process)
            self.assertEqual(process.returncode, status)
            self.assertEqual((report["code"], report["signal"]), ("cancelled", number))
            self.assertIn(f"cancelled by {number.name}", text)

    def test_a_sleeping_guest_is_woken(self):
        process = self.start(self.guest("sleep"), "--grace", "60s")
        process.send_signal(signal.SIGINT)
        report, _ = self.finish(process)
        self.assertEqual((process.returncode, report["code"]), (130, "cancelled"))

    def test_second_signal_forces(self):
        ignorant = os.path.join(TEST_WORKER_DIR, "ignores_cancel")
        environment = self.worker_dir(lambda path: os.link(ignorant, path))
        process = self.start(self.guest("spin"), "--grace", "60s", env=environment)
        process.send_signal(signal.SIGINT)
        self.wait_for_stage("stop")
        process.send_signal(signal.SIGTERM)
        report, text = self.finish(process)
        self.assertEqual(process.returncode, 130)  # the first one decides
        self.assertEqual(report["code"], "forced-containment-cancelled")
        self.assertLess(report["elapsed_ms"], 60_000)  # the grace was not waited for
        self.assertIn("the worker was killed", text)

    def test_ignored_signals_stay_ignored(self):
        def ignore_hangup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        process = self.start(self.guest("spin"), preexec_fn=ignore_hangup)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        report, _ = self.finish(process)
        self.assertEqual((process.returncode, report["signal"]), (143, signal.SIGTERM))

    def test_cancelled_run_publishes_nothing(self):
        self.write("destination", "old")
        module = self.guest("write_output", END="(loop $l (br $l))")
        process = self.start(module, "--output", "destination", cwd=self.dir)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertEqual(self.read("destination"), b"old")
        self.assertEqual(sorted(os.listdir(self.dir)), ["destination", "r.json", "write_output.wasm"])

    def test_reader_of_stdout_leaves(self):
        process = subprocess.Popen(
            [BULKHEAD, "run", self.guest("flood_stdout"), "--report", self.path("r.json")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        process.stdout.read(10)
        process.stdout.close()
        report, text = self.finish(process)
        self.assertEqual((process.returncode, text), (141, ""))
        self.assertEqual(report["code"], "stdout-closed")


