#!/usr/bin/env python3
"""Runs the tests of the official WASI test suite for preview 1 and for threads under `bulkhead run`.

usage: run_suite.py [--bulkhead PROGRAM] [--verbose] SUITE

SUITE is a checkout of WebAssembly/wasi-testsuite with prebuilt tests (branch prod/testsuite-all).
Every *.wasm of tests/<language>/testsuite/wasm32-wasip1 and of tests/proposals/wasi-threads runs in a
fresh copy of its folder; the JSON file beside it, if any, says with which arguments, environment and
directories, and what it must print and how it must exit. Exit status: 0 if all passed, 1 if any failed,
2 if there are none.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FOLDERS = ("tests/*/testsuite/wasm32-wasip1", "tests/proposals/wasi-threads")
THREADS = "wasi-threads"
SECONDS_MAX = 60


def expectation(test: pathlib.Path) -> dict:
    """The test's JSON in one form: newer files list operations, older ones have plain keys."""
    path = test.with_suffix(".json")
    told = json.loads(path.read_text()) if path.exists() else {}
    for step in told.pop("operations", []):
        kind = step.pop("type")
        if kind == "read":
            told[step.get("id", "stdout")] = step["payload"]
        else:
            told.update(step)
    return told


def command(bulkhead: str, test: pathlib.Path, told: dict) -> list[str]:
    # Tests of threads want an input on which one blocks.
    words = [bulkhead, "run", "--quiet", "--stdin", "-" if test.parent.name == THREADS else "empty"]
    for name in told.get("dirs", []):
        words += ["--dir-rw", f"{name}::{name}"]
    if "root" in told:
        words += ["--dir-rw", f"{told['root']}::/"]
    for key, value in told.get("env", {}).items():
        words += ["--env", f"{key}={value}"]
    return words + [test.name, "--"] + told.get("args", [])


def run(bulkhead: str, test: pathlib.Path) -> str:
    """Empty if the test passed, else what differed."""
    told = expectation(test)
    with tempfile.TemporaryDirectory(prefix="wasi-suite-") as folder:
        here = pathlib.Path(folder) / "suite"
        # Tests change their directories, so each gets its own copy.
        shutil.copytree(test.parent, here, symlinks=True,
                        ignore=lambda _, names: [n for n in names
                                                 if n.endswith((".wasm", ".json")) and
                                                 n != test.name])
        read_end, write_end = os.pipe()
        try:
            done = subprocess.run(command(bulkhead, test, told), cwd=here, capture_output=True,
                                  stdin=read_end, timeout=SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired:
            return f"no end within {SECONDS_MAX} s"
        finally:
            os.close(read_end)
            os.close(write_end)
    output = done.stdout.decode(errors="replace")
    differences = []
    if done.returncode != told.get("exit_code", 0):
        differences.append(f"exit status {done.returncode}, expected {told.get('exit_code', 0)}")
    if "stdout" in told and output != told["stdout"]:
        differences.append(f"stdout {output!r}, expected {told['stdout']!r}")
    if differences:
        differences.append(done.stderr.decode(errors="replace").strip())
    return "; ".join(differences)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", type=pathlib.Path, help="folder of the suite's checkout")
    parser.add_argument("--bulkhead", default="build/release/bin/bulkhead", help="the command")
    parser.add_argument("--verbose", action="store_true", help="also list what passed")
    options = parser.parse_args()
    bulkhead = str(pathlib.Path(options.bulkhead).resolve())
    tests = sorted(test for folder in FOLDERS for test in options.suite.resolve().glob(f"{folder}/*.wasm"))
    failed = 0
    for test in tests:
        name = f"{THREADS if test.parent.name == THREADS else test.parts[-4]}/{test.stem}"
        difference = run(bulkhead, test)
        failed += bool(difference)
        if difference or options.verbose:
            print(f"{'FAIL' if difference else 'pass'} {name} {difference}".rstrip())
    print(f"{len(tests) - failed} passed, {failed} failed")
    if not tests:
        print(f"run_suite: no tests under {options.suite} in {' and '.join(FOLDERS)}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
