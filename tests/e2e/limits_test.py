"""Limits that belong to the run and to nothing else: not the time before it, not the wall clock, not the machine."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from support import BULKHEAD, PATIENCE_S, TEST_WORKER_DIR, WORKER, CommandTest, printer


class Limits(CommandTest):
    def under_address_space_limit(self, kibibytes):
        """Environment in which the worker, and it alone, starts under `ulimit -v`."""
        def make(path):
            with open(path, "w", encoding="utf-8") as script:
                script.write(f"#!/bin/sh\nulimit -v {kibibytes} && exec '{WORKER}'\n")
            os.chmod(path, 0o755)

        return self.worker_dir(make)

    def test_g12_little_address_space_is_enough_for_little_memory(self):
        environment = self.under_address_space_limit(3 << 20)
        for module in (self.guest("empty"), self.compile(printer("hello"))):
            result, report = self.run_with_report(module, env=environment)
            self.assertEqual(report["code"], "worker-completed", result.stderr)
        growing = self.guest("grow", REFUSED="(call $proc_exit (i32.const 9))")
        result, report = self.run_with_report(growing, "--memory", "64MiB", env=environment)
        self.assertEqual((report["code"], report["guest_exit"]), ("nonzero-exit", 9), result.stderr)
        self.assertGreater(report["guest_memory_peak_bytes"], 60 << 20)

    def test_g12_too_little_address_space_is_named(self):
        result, report = self.run_with_report(self.guest("empty"), "--memory", "2GiB",
                                              env=self.under_address_space_limit(1 << 20))
        self.assertEqual(report["code"], "memory-limit", result.stderr)
        self.assertIn("address space", report["diagnostic"])

    def test_g12_enough_address_space_is_enough(self):
        environment = self.under_address_space_limit(16 << 20)
        module = self.guest("empty")
        runs = [subprocess.Popen([BULKHEAD, "run", module, "--memory", "64MiB"], env=environment,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(32)]
        for run in runs:
            _, text = run.communicate(timeout=PATIENCE_S)
            self.assertEqual(run.returncode, 0, text)

    def test_g26_the_deadline_does_not_pay_for_the_upload(self):
        module = self.compile(printer("done"))
        os.mkfifo(self.path("upload"))

        def upload():
            with open(self.path("upload"), "wb") as pipe, open(module, "rb") as file:
                content = file.read()
                pipe.write(content[:50])
                pipe.flush()
                time.sleep(3.5)  # the time that must not count
                pipe.write(content[50:])

        uploader = threading.Thread(target=upload)
        uploader.start()
        result, report = self.run_with_report(self.path("upload"), "--deadline", "3s", stdin=subprocess.DEVNULL)
        uploader.join()
        self.assertEqual((report["code"], result.stdout), ("worker-completed", b"done"), result.stderr)

    def test_g40_the_wall_clock_may_jump(self):
        # Blanks separate the names in LD_PRELOAD, and the build may lie in a folder that has one.
        folder = tempfile.TemporaryDirectory(prefix="bulkhead-preload-")
        self.addCleanup(folder.cleanup)
        clock = shutil.copy(os.path.join(TEST_WORKER_DIR, "jumping_clock.so"), folder.name)
        jumping = {**os.environ, "LD_PRELOAD": clock, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        watcher = "import time; first = time.time(); time.sleep(0.6); print(time.time() - first)"
        seen = subprocess.run([sys.executable, "-c", watcher], env=jumping, capture_output=True, check=True, text=True)
        self.assertGreater(float(seen.stdout), 7000)  # else this test could not fail
        napping = self.guest("sleep", **{"3600000000000": "1500000000"})
        result, report = self.run_with_report(napping, "--deadline", "60s", env=jumping)
        self.assertEqual(report["code"], "worker-completed", result.stderr)
        self.check_times(report, 1500)
        result, report = self.run_with_report(self.guest("spin"), "--deadline", "1500ms", env=jumping)
        self.assertEqual(report["code"], "deadline-exceeded", result.stderr)
        self.check_times(report, 1500)

    def check_times(self, report, at_least_ms):
        self.assertGreaterEqual(report["elapsed_ms"], at_least_ms)
        self.assertLess(report["elapsed_ms"], 60_000)
        self.assertTrue(all(value >= 0 for value in report["durations_ms"].values()), report["durations_ms"])
