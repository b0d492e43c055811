"""What the tests of the command share: the program, modules from text, a scratch folder, reports checked."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import json_schema

BIN_DIR = os.environ["BH_BIN_DIR"]
SOURCE_DIR = os.environ["BH_SOURCE_DIR"]
SHARE_DIR = os.environ["BH_SHARE_DIR"]
TEST_WORKER_DIR = os.environ["BH_TEST_WORKER_DIR"]
BULKHEAD = os.path.join(BIN_DIR, "bulkhead")
WORKER = os.path.join(BIN_DIR, "bulkhead-wasm-worker")
KIT = os.path.join(SOURCE_DIR, "guest")
GUESTS = os.path.join(SOURCE_DIR, "tests", "wasm")
SCHEMA = json_schema.load(os.path.join(SOURCE_DIR, "docs/report-schema/run-report-1.json"))

# The user's own cache is nobody's test. All tests of one program share this one, as a user's runs do.
_CACHE = tempfile.TemporaryDirectory(prefix="bulkhead-e2e-cache-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

PATIENCE_S = 100  # ends a hanging test; no expectation
HOSTILE_TEXT = "\\1b[2J\\1b]0;owned\\07hi\\0a"  # as a WAT string: clears the screen, renames the window


def printer(text):
    """WAT of a guest that writes `text` (a WAT string without the quotes) to its stdout."""
    length = len(text) - 2 * text.count("\\")  # an escape is a backslash and two digits
    return f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 64) "{text}")
      (func (export "_start")
        (i32.store (i32.const 0) (i32.const 64))
        (i32.store (i32.const 4) (i32.const {length}))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""


class CommandTest(unittest.TestCase):
    """Each test gets a folder of its own as `self.dir`; the folder must hold only what the test made or named."""

    maxDiff = None

    def setUp(self):
        # Beside the build: programs can be hard-linked into it.
        self.dir = tempfile.mkdtemp(prefix="bulkhead-e2e-", dir=os.path.dirname(BIN_DIR))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, content):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def compile(self, wat, name="guest.wasm"):
        text = self.write("source.wat", wat)
        subprocess.run(["wat2wasm", "--enable-all", text, "-o", self.path(name)], check=True)
        os.unlink(text)
        return self.path(name)

    def guest(self, name, **replacements):
        """tests/wasm/NAME.wat with each upper-case word replaced, compiled."""
        with open(os.path.join(GUESTS, name + ".wat"), encoding="utf-8") as file:
            lines = [line.split(";;")[0] for line in file]
        wat = "\n".join(lines)
        for word, text in replacements.items():
            wat = wat.replace(word, text)
        return self.compile(wat, name + ".wasm")

    def bulkhead(self, *arguments, prefix=(), **options):
        """`prefix`: a command that starts the command."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.dir)
        options.setdefault("timeout", PATIENCE_S)
        return subprocess.run([*prefix, BULKHEAD, *arguments], check=False, **options)

    def run_with_report(self, *arguments, **options):
        """(result, report); the report is checked against the schema and removed again."""
        result = self.bulkhead("run", "--report", self.path("report.json"), *arguments, **options)
        report = json.loads(self.read("report.json").decode("utf-8"))
        os.unlink(self.path("report.json"))
        self.check_report(report)
        self.assertEqual(report["exit_status"], result.returncode, result.stderr)
        return result, report

    def check_report(self, report):
        self.assertEqual(json_schema.problems(SCHEMA, report), [])
        ledger = report["ledger"]
        self.assertEqual(ledger["spawned"], ledger["reaped"])
        self.assertEqual(ledger["live_workers"], 0)
        if report["worker_pid"] is not None:
            self.assertFalse(os.path.exists(f"/proc/{report['worker_pid']}"))

    def check_says(self, result, *parts):
        """One line of ours on stderr that contains every part."""
        text = result.stderr.decode()
        self.assertTrue(text.startswith("bulkhead: "), text)
        self.assertEqual(text.count("\n"), 1, text)
        for part in parts:
            self.assertIn(part, text)

    def worker_dir(self, make):
        """A folder for BULKHEAD_WORKER_DIR in which make(path) has put the worker program."""
        os.mkdir(self.path("workers"))
        make(self.path("workers", "bulkhead-wasm-worker"))
        return {**os.environ, "BULKHEAD_WORKER_DIR": self.path("workers")}


class LiveRuns(CommandTest):
    """Commands that are watched while they run."""

    def start(self, module, *arguments, **options):
        """A running command; returns once the guest executes."""
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            [BULKHEAD, "run", module, "--deadline", "90s", "--report", self.path("r.json"), "--status-fd",
             str(write_end), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[write_end],
            **options)
        os.close(write_end)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        self.events = os.fdopen(read_end)
        self.addCleanup(self.events.close)
        self.wait_for_stage("execute")
        return process

    def wait_for_stage(self, stage):
        for line in self.events:
            if json.loads(line).get("stage") == stage:
                return
        self.fail(f"the run ended before the stage {stage}")

    def finish(self, process):
        process.wait(PATIENCE_S)
        report = json.loads(self.read("r.json"))
        self.check_report(report)
        self.assertEqual(report["exit_status"], process.returncode)
        return report, process.stderr.read().decode()


def require_sketch_tools():
    for tool in ("clang-14", "wasm-ld-19"):
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"missing: {tool}")


class SketchKit(CommandTest):
    """Sketches from C source."""

    def build(self, source, name="sketch.wasm"):
        subprocess.run([os.path.join(KIT, "build_sketch.sh"), self.path(name), source], check=True,
                       env={**os.environ, "BULKHEAD": BULKHEAD})
        return self.path(name)

    def example(self, name):
        return self.build(os.path.join(KIT, "examples", f"{name}.c"))
