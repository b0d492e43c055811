"""--cache and `bulkhead cache`: found, off, shared, spoiled, in nobody's way."""

import json
import os
import signal
import subprocess
import time

from support import BULKHEAD, PATIENCE_S, WORKER, CommandTest, printer


class Cache(CommandTest):
    def setUp(self):
        super().setUp()
        self.hello = self.compile(printer("hello\\0a"), "hello.wasm")
        self.cache = self.path("cache")

    def run_cached(self, *arguments, **options):
        result, report = self.run_with_report("--cache", self.cache, *arguments, **options)
        self.assertEqual(report["code"], "worker-completed", result.stderr)
        return report["compiled_code"]

    def entries(self):
        return sorted(name for name in os.listdir(self.cache) if name != "lock")

    def test_the_second_run_finds_the_code(self):
        first = self.run_cached(self.hello)
        self.assertEqual((first["source"], first["stored"], first["problem"]), ("compiled", True, None))
        second = self.run_cached(self.hello)
        self.assertEqual((second["source"], second["stored"]), ("cache", False))
        self.assertEqual(self.entries(), [first["key"]])
        self.assertEqual(second["key"], first["key"])

    def test_text_is_found_by_its_binary(self):
        self.write("hello.wat", printer("hello\\0a"))
        self.assertEqual(self.run_cached(self.path("hello.wat"))["source"], "compiled")
        self.assertEqual(self.run_cached(self.path("hello.wat"))["source"], "cache")

    def test_off_keeps_nothing(self):
        _, report = self.run_with_report("--cache", "off", self.hello, env={**os.environ, "XDG_CACHE_HOME": self.cache})
        self.assertEqual(report["compiled_code"],
                         {"source": "compiled-in-run", "key": None, "stored": False, "problem": None})
        self.assertEqual(report["ledger"]["spawned"], 1)
        self.assertFalse(os.path.exists(self.cache))

    def test_the_default_place(self):
        environment = {"PATH": os.environ["PATH"]}
        for variable, place in (("XDG_CACHE_HOME", "bulkhead/code"), ("HOME", ".cache/bulkhead/code")):
            home = self.path(variable)
            result, report = self.run_with_report(self.hello, env={**environment, variable: home})
            self.assertEqual(os.listdir(os.path.join(home, place)).count(report["compiled_code"]["key"]), 1)
            self.assertEqual(os.stat(os.path.join(home, place)).st_mode & 0o777, 0o700)
        _, report = self.run_with_report(self.hello, env=environment)
        self.assertEqual(report["compiled_code"]["source"], "compiled-in-run")
        self.assertIn("neither XDG_CACHE_HOME nor HOME", report["compiled_code"]["problem"])
        # Relative paths are not to be used, says the XDG specification.
        _, report = self.run_with_report(self.hello, env={**environment, "XDG_CACHE_HOME": "here"})
        self.assertEqual(report["compiled_code"]["source"], "compiled-in-run")
        self.assertFalse(os.path.exists(self.path("here")))

    def test_a_default_place_that_cannot_be_used_is_no_reason_to_fail(self):
        self.write("file", "x")
        environment = {**os.environ, "XDG_CACHE_HOME": self.path("file")}
        _, report = self.run_with_report(self.hello, env=environment)
        self.assertEqual((report["code"], report["compiled_code"]["source"]), ("worker-completed", "compiled-in-run"))
        self.assertIn("Not a directory", report["compiled_code"]["problem"])
        doctor = json.loads(self.bulkhead("doctor", "--json", env=environment).stdout)
        check, = [check for check in doctor["checks"] if check["name"] == "code-cache"]
        self.assertEqual(check["state"], "degraded")
        self.assertIn("Not a directory", check["finding"])

    def test_a_named_place_that_cannot_be_used_is_an_error(self):
        os.mkdir(self.cache)
        os.chmod(self.cache, 0o777)
        self.write("file", "x")
        for path, why in ((self.cache, "chmod go-w"), (self.path("file"), "Not a directory")):
            result = self.bulkhead("run", "--cache", path, self.hello)
            self.assertEqual((result.returncode, result.stdout), (122, b""))
            self.check_says(result, "--cache: code cache: ", why)
            self.assertEqual(self.bulkhead("cache", "stat", "--cache", path).returncode, 122)

    def test_stat_prune_verify(self):
        keys = {self.run_cached(self.hello)["key"], self.run_cached("--fuel", "1e9", self.hello)["key"]}
        self.assertEqual(set(self.entries()), keys)
        size = sum(os.path.getsize(os.path.join(self.cache, key)) for key in keys)

        def cache(action, *arguments):
            result = self.bulkhead("cache", action, "--cache", self.cache, "--json", *arguments)
            return result.returncode, json.loads(result.stdout)

        status, stat = cache("stat")
        self.assertEqual((status, stat["entries"], stat["bytes"]), (0, 2, size))
        status, verified = cache("verify")
        self.assertEqual((status, verified["entries"], verified["removed"], verified["problems"]), (0, 2, 0, []))
        spoiled = os.path.join(self.cache, sorted(keys)[0])
        with open(spoiled, "r+b") as file:
            file.truncate(100)
        status, verified = cache("verify")
        self.assertEqual((status, verified["entries"], verified["removed"]), (1, 1, 1))
        self.assertIn(os.path.basename(spoiled), verified["problems"][0])
        status, pruned = cache("prune", "--size", "0B")
        self.assertEqual((status, pruned["entries"], pruned["removed"]), (0, 0, 1))
        self.assertEqual(self.entries(), [])
        self.assertIn("0 entries", self.bulkhead("cache", "stat", "--cache", self.cache).stdout.decode())

    def test_g11_parallel_first_runs(self):
        runs = [subprocess.Popen([BULKHEAD, "run", "--quiet", "--cache", self.cache, self.hello],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(20)]
        for run in runs:
            self.assertEqual(run.communicate(timeout=PATIENCE_S), (b"hello\n", b""))
            self.assertEqual(run.returncode, 0)
        self.assertEqual(len(self.entries()), 1)

    def test_g11_spoiled_entries_are_replaced(self):
        key = self.run_cached(self.hello)["key"]
        path = os.path.join(self.cache, key)
        with open(path, "rb") as file:
            whole = file.read()
        for content in (whole[:len(whole) // 2], os.urandom(len(whole)), b""):
            with open(path, "wb") as file:
                file.write(content)
            code = self.run_cached(self.hello)
            self.assertEqual((code["source"], code["stored"]), ("compiled", True))
            self.assertIn("it was removed", code["problem"])
        self.assertEqual(self.run_cached(self.hello)["source"], "cache")

    def test_a_killed_command_leaves_a_whole_entry_or_none(self):
        for delay_ms in range(0, 60, 4):
            run = subprocess.Popen([BULKHEAD, "run", "--quiet", "--cache", self.cache, self.hello],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay_ms / 1000)  # any moment will do
            run.send_signal(signal.SIGKILL)
            run.wait(PATIENCE_S)
            result = self.bulkhead("cache", "verify", "--cache", self.cache, "--json")
            self.assertEqual(json.loads(result.stdout)["problems"], [])
            self.assertEqual(self.bulkhead("cache", "prune", "--size", "0B", "--cache", self.cache).returncode, 0)
            self.assertEqual(self.entries(), [])

    def test_workers_with_little_address_space_get_code_of_their_own(self):
        def make(path):
            with open(path, "w", encoding="utf-8") as script:
                script.write(f"#!/bin/sh\nulimit -v {3 << 20} && exec '{WORKER}'\n")
            os.chmod(path, 0o755)

        plain = self.run_cached(self.hello, "--memory", "64MiB")
        # A limit that only the worker has: the parent offers the plain code, and the engine says no.
        environment = self.worker_dir(make)
        refused = self.run_cached(self.hello, "--memory", "64MiB", env=environment)
        self.assertEqual((refused["source"], refused["key"]), ("compiled", plain["key"]))
        self.assertIn("did not take the code", refused["problem"])
        self.assertEqual(self.run_cached(self.hello, "--memory", "64MiB", env=environment)["source"], "cache")

    def test_compile_time_is_a_limit(self):
        loops = "".join(f"(loop $l{i} " for i in range(300))
        changes = "".join(f"(local.set {i} (i32.add (local.get {i}) (local.get {(i + 1) % 300})))" for i in range(300))
        ends = "".join(f"(br_if $l{299 - i} (local.get {i})))" for i in range(300))
        bomb = self.compile(f'(module (func (export "_start") (local{" i32" * 300}) {loops}{changes}{ends}))')
        for cache in (self.cache, "off"):
            result, report = self.run_with_report(bomb, "--cache", cache, "--compile-time", "300ms")
            self.assertEqual((report["code"], result.returncode), ("compile-limit", 126))
            self.check_says(result, "compile-limit: compiling the module took longer than it may (--compile-time sets")
            reached = [limit["name"] for limit in report["limits"] if limit["reached"]]
            self.assertEqual(reached, ["compile-time-ms"])
