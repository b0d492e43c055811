"""No option is decoration: each limit is exceeded and holds, each value has bounds that are named, and what is no limit
names the test that shows its effect. The lists are compared with what `bulkhead help` says there is."""

import os
import re
import unittest

from support import SOURCE_DIR, CommandTest, printer

SPIN = '(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))'
# Deeper than 64 KiB of stack hold and 2 MiB do not.
RECURSION = """(module (memory (export "memory") 1)
  (func $down (param i32) (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "_start") (call $down (i32.const 5000))))"""
# Three threads that wait for ever; exits with the number of those that were refused.
THREADS = """(module
  (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "env" "memory" (memory 1 1 shared))
  (func (export "_start") (local $refused i32) (local $i i32)
    (loop $again
      (local.set $refused (i32.add (local.get $refused) (i32.lt_s (call $spawn (i32.const 0)) (i32.const 0))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))
    (call $exit (local.get $refused)))
  (func (export "wasi_thread_start") (param i32 i32)
    (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))))"""
# Fills the file /tmp/f; exits with 7 when a write is refused.
FILLS_SCRATCH = """(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "f")
  (func (export "_start") (local $i i32)
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1)
                    (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 8))
      (then (call $exit (i32.const 9))))
    (i32.store (i32.const 16) (i32.const 65536))
    (i32.store (i32.const 20) (i32.const 65536))
    (loop $again
      (if (call $write (i32.load (i32.const 8)) (i32.const 16) (i32.const 1) (i32.const 24))
        (then (call $exit (i32.const 7))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 64))))))"""


def many_functions():
    """Compiling it takes more memory than the least that can be allowed."""
    one = "(func (param i32 i32) (result i32) (local i32)" + "".join(
        f"(local.set 2 (i32.add (i32.mul (local.get 0) (i32.const {k})) (i32.load offset={8 * k} (local.get 1))))"
        for k in range(40)) + "(local.get 2))"
    return '(module (memory 1) (func (export "_start"))' + one * 3000 + ")"


# Guests of tests/wasm, and what stands for the words in them.
FILES = {"write_output": {"END": "(nop)"}, "grow": {"REFUSED": "(call $proc_exit (i32.const 9))"}}

# (option, the value that is exceeded, further arguments, guest: its text or file, code, exit status)
EXCEEDED = [
    ("--deadline", "200ms", (), SPIN, "deadline-exceeded", 124),
    ("--grace", "50ms", ("--deadline", "300ms"), THREADS.replace("(call $exit (local.get $refused))",
     "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))"),
     "forced-containment-deadline-exceeded", 124),
    ("--cpu-time", "1s", (), SPIN, "cpu-limit", 121),
    ("--fuel", "1000", (), SPIN, "out-of-fuel", 120),
    ("--memory", "1MiB", (), '(module (memory (export "memory") 17) (func (export "_start")))',
     "module-refused/memory-exceeds-policy", 126),
    ("--memory", "64MiB", (), "grow", "nonzero-exit", 9),
    ("--compile-memory", "16MiB", ("--cache", "off"), many_functions(), "compile-limit", 126),
    ("--compile-time", "1us", ("--cache", "off"), many_functions(), "compile-limit", 126),
    ("--threads", "1", (), THREADS, "nonzero-exit", 2),
    ("--threads", "2", (), THREADS, "nonzero-exit", 1),
    ("--stack", "64KiB", (), RECURSION, "trapped", 134),
    ("--stdout-limit", "3B", (), printer("four"), "stdout-limit", 121),
    ("--output-limit", "4B", ("--output", "destination"), "write_output", "output-limit", 121),
    ("--scratch", "1MiB", (), FILLS_SCRATCH, "nonzero-exit", 7),
]

# (option, value, what the refusal says of the bound)
OUT_OF_BOUNDS = [
    ("--deadline", "0s", "is not more than 0"),
    ("--grace", "0s", "is not more than 0"),
    ("--grace", "61s", "is more than 60 s"),
    ("--cpu-time", "0s", "is not more than 0"),
    ("--fuel", "0", "is not at least 1"),
    ("--memory", "1KiB", "is outside 64 KiB to 1.0 TiB"),
    ("--memory", "2TiB", "is outside 64 KiB to 1.0 TiB"),
    ("--compile-memory", "1MiB", "is outside 16 MiB to 1.0 TiB"),
    ("--compile-memory", "2TiB", "is outside 16 MiB to 1.0 TiB"),
    ("--compile-time", "0s", "is not more than 0"),
    ("--threads", "0", "is outside 1 to 1024"),
    ("--threads", "1025", "is outside 1 to 1024"),
    ("--stack", "1KiB", "is outside 64 KiB to 64 MiB"),
    ("--stack", "65MiB", "is outside 64 KiB to 64 MiB"),
    ("--stdout-limit", "0B", "is outside 1 byte"),
    ("--output-limit", "0B", "is outside 1 byte"),
    ("--scratch", "2TiB", "is outside 1 byte to 1.0 TiB"),
    ("--repeat", "0", "is not at least 1"),
    ("--jobs", "0", "is outside 1 to 256"),
    ("--jobs", "257", "is outside 1 to 256"),
    ("--profile", "x", "is none of: auto, wasi, wasi-threads, sketch"),
    ("--sandbox", "x", "is none of: strict, default, none"),
    ("--require", "x", "is none of: pid-namespace"),
    ("--stop-mode", "x", "is none of: cooperative, kill"),
    ("--env", "novalue", "is not of the form K=V"),
    ("--status-fd", "99", "is not open"),
    ("--dir", "none", "No such file or directory"),
    ("--dir-rw", "none", "No such file or directory"),
    ("--stdin", "none", "No such file or directory"),
    ("--report", "none/report", "does not exist"),
    ("--cache", "", "the path is empty"),
]

# What is no limit: the test of its effect.
SHOWN_BY = {
    "run": {
        "--output": "exit_status_test.py test_output",
        "--no-clobber": "bad_input_test.py test_no_clobber",
        "--dir": "real_modules_test.py test_yosys_synthesises_a_design",
        "--dir-rw": "sandbox_test.py test_root_becomes_nobody_but_for_granted_directories",
        "--stdin": "streams_test.py test_g21_bytes_pass_whatever_they_are",
        "--env": "names_test.py test_arguments_arrive_exactly",
        "--cache": "cache_test.py test_off_keeps_nothing",
        "--profile": "exit_status_test.py test_refused_modules",
        "--sandbox": "sandbox_test.py test_levels",
        "--require": "sandbox_test.py test_what_is_required_and_missing_is_named_before_the_guest_runs",
        "--stop-mode": "exit_status_test.py test_deadline",
        "--repeat": "repeat_test.py test_each_run_has_a_line_and_there_is_a_summary",
        "--jobs": "repeat_test.py test_output_of_runs_at_the_same_time_stays_whole",
        "--report": "report_test.py test_an_old_report_is_replaced_whole",
        "--status-fd": "report_test.py test_stages_in_order_and_the_end",
        "--quiet": "report_test.py test_quiet_says_nothing_of_what_the_guest_says_itself",
        "--help": "docs_test.py test_help_is_a_result",
    },
    "inspect": {"--json": "docs_test.py test_admissible_module", "--help": "docs_test.py test_help_is_a_result"},
    "guest-pack": {"--output": "sketch_test.py test_packing_again_changes_nothing",
                   "--help": "docs_test.py test_help_is_a_result"},
    "cache": {"--cache": "cache_test.py test_stat_prune_verify", "--size": "cache_test.py test_stat_prune_verify",
              "--json": "cache_test.py test_stat_prune_verify", "--help": "docs_test.py test_help_is_a_result"},
    "doctor": {"--json": "docs_test.py test_this_machine", "--help": "docs_test.py test_help_is_a_result"},
    "audit": {"--json": "audit_test.py test_worker_as_started", "--help": "docs_test.py test_help_is_a_result"},
    "version": {"--json": "docs_test.py test_version", "--help": "docs_test.py test_help_is_a_result"},
}


class EveryOption(CommandTest):
    def options_of(self, command):
        text = self.bulkhead("help", command).stdout.decode()
        names = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE))
        self.assertIn("--help", names, text)
        return names

    def test_every_command_and_option_is_listed(self):
        overview = self.bulkhead("help").stdout.decode()
        commands = set(re.findall(r"^  ([a-z-]+)", overview.split("Commands:")[1].split("Examples:")[0], re.MULTILINE))
        self.assertEqual(commands - {"help"}, set(SHOWN_BY))
        for command, shown in SHOWN_BY.items():
            with self.subTest(command):
                exceeded = {row[0] for row in EXCEEDED} if command == "run" else set()
                self.assertEqual(self.options_of(command), exceeded | set(shown))

    def test_every_value_has_bounds_that_are_tested(self):
        text = self.bulkhead("help", "run").stdout.decode()
        with_value = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+) [A-Z]", text, re.MULTILINE))
        self.assertEqual(with_value - {row[0] for row in OUT_OF_BOUNDS}, {"--output"})  # bad_input_test.py has many

    def test_tests_that_are_named_exist(self):
        for shown in SHOWN_BY.values():
            for option, place in shown.items():
                file, test = place.split()
                with open(os.path.join(SOURCE_DIR, "tests/e2e", file), encoding="utf-8") as source:
                    self.assertIn(f"def {test}(", source.read(), option)

    def test_bounds_are_named(self):
        module = self.compile(printer("ran"))
        for option, value, part in OUT_OF_BOUNDS:
            with self.subTest(option=option, value=value):
                more = {"--output-limit": ("--output", "out"), "--jobs": ("--repeat", "2")}.get(option, ())
                result = self.bulkhead("run", option, value, *more, module)
                self.assertIn(result.returncode, (122, 125), result.stderr)
                self.assertEqual(result.stdout, b"")
                self.check_says(result, option, part)

    def test_limits_hold(self):
        for option, value, more, text, code, status in EXCEEDED:
            with self.subTest(option=option, value=value):
                if text in FILES:
                    module = self.guest(text, **FILES[text])
                else:
                    module = self.compile(text)
                result, report = self.run_with_report(option, value, *more, module)
                self.assertEqual((report["code"], result.returncode), (code, status), result.stderr)


if __name__ == "__main__":
    unittest.main()
