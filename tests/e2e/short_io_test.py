"""R5: the kernel takes and gives less than was asked for, one byte, a part, or nothing for now: the same results."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from support import TEST_WORKER_DIR, WORKER, LiveRuns, SketchKit, printer, require_sketch_tools

WAYS = ("one", "split", "interrupted")
LONG_TEXT = "all of a text that is longer than a few bytes, " * 400


class ShortIo(LiveRuns, SketchKit):
    """Each run once as it is, then with the parent's calls cut short, then with the worker's too."""

    def setUp(self):
        super().setUp()
        # Blanks separate the names in LD_PRELOAD, and the build may lie in a folder that has one.
        folder = tempfile.TemporaryDirectory(prefix="bulkhead-preload-")
        self.addCleanup(folder.cleanup)
        self.library = shutil.copy(os.path.join(TEST_WORKER_DIR, "short_io.so"), folder.name)

    def preloaded(self, way):
        return {"LD_PRELOAD": self.library, "BH_SHORT_IO": way, "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def worker(self, way):
        """A folder with the real worker, preloaded: the command gives workers no environment."""
        words = {**self.preloaded(way), "BH_SHORT_IO_WORKER": "1"}
        setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in words.items())
        folder = self.path(f"workers-{way}")
        os.makedirs(folder, exist_ok=True)
        script = os.path.join(folder, "bulkhead-wasm-worker")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{setting} exec {shlex.quote(WORKER)}\n")
        os.chmod(script, 0o700)
        return {"BULKHEAD_WORKER_DIR": folder}

    def environments(self):
        for way in WAYS:
            yield f"parent {way}", {**os.environ, **self.preloaded(way)}
            yield f"both {way}", {**os.environ, **self.preloaded(way), **self.worker(way)}

    def check_same(self, run):
        """run(environment) gives what must not change."""
        expected = run(dict(os.environ))
        for name, environment in self.environments():
            with self.subTest(name):
                self.assertEqual(run(environment), expected)

    def facts(self, result, report):
        return {"stdout": result.stdout, **{name: report[name] for name in ("code", "exit_status", "terminal", "stop")}}

    def test_the_library_does_what_it_says(self):
        program = "import os; r, w = os.pipe(); os.write(w, b'abc'); os.write(w, b'def'); print(len(os.read(r, 9)))"
        seen = subprocess.run([sys.executable, "-c", program], env={**os.environ, **self.preloaded("one")},
                              capture_output=True, check=True, text=True)
        self.assertEqual(seen.stdout, "1\n")

    def test_a_guest_prints(self):
        module = self.compile(printer(LONG_TEXT))
        self.check_same(lambda environment: self.facts(*self.run_with_report(module, "--scratch", "1MiB", "--dir",
                                                                             self.dir, env=environment)))

    def test_a_guest_reads_its_stdin(self):
        module = self.guest("read_stdin")

        def run(environment):
            with open(self.write("input", LONG_TEXT), "rb") as text:
                return self.facts(*self.run_with_report(module, "--stdin", "-", stdin=text, env=environment))

        self.check_same(run)

    def test_an_output_is_published(self):
        module = self.guest("write_output", END="(nop)")
        os.mkdir(self.path("out"))

        def run(environment):
            self.write("out/destination", "original")
            facts = self.facts(*self.run_with_report(module, "--output", "out/destination", env=environment))
            return facts, self.read("out/destination"), os.listdir(self.path("out"))

        self.check_same(run)

    def test_a_trap(self):
        module = self.guest("trap", FAULT="(unreachable)")
        self.check_same(lambda environment: self.facts(*self.run_with_report(module, env=environment)))

    def test_a_deadline(self):
        module = self.guest("spin")

        def run(environment):
            # Long enough to start; the guest spins for ever.
            return self.facts(*self.run_with_report(module, "--deadline", "2s", "--grace", "60s", env=environment))

        self.check_same(run)

    def test_text_and_cached_code(self):
        text = self.write("text.wat", printer("from text"))
        caches = iter(range(100))

        def run(environment):
            cache = self.path(f"cache{next(caches)}")
            seen = []
            for _ in range(2):
                result, report = self.run_with_report("--cache", cache, text, env=environment)
                code = report["compiled_code"]
                seen.append((self.facts(result, report), code["source"], code["stored"], code["problem"]))
            return seen

        self.check_same(run)

    def test_a_cancel(self):
        module = self.guest("spin")

        def run(environment):
            process = self.start(module, "--grace", "60s", env=environment)
            process.send_signal(signal.SIGINT)
            report, _ = self.finish(process)
            return report["code"], report["exit_status"], report["signal"]

        self.check_same(run)

    def test_a_sketch(self):
        require_sketch_tools()
        module = self.example("acceptance")

        def run(environment):
            facts = self.facts(*self.run_with_report(module, "--fuel", "1e12", "--deadline", "90s", "--output",
                                                     "destination", env=environment))
            return facts, self.read("destination")

        self.check_same(run)
