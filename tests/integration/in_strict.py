"""Runs a test program once more with every guest in a worker of the level strict, with limits by cgroup where they can
be had.

usage: in_strict.py BULKHEAD TEST_PROGRAM

Exits with 77 where this machine cannot give what the level insists on.
"""

import os
import subprocess
import sys

SKIPPED = 77
LIMITS = ["cgroup-memory", "cgroup-pids"]
MODULE = os.path.join(os.path.dirname(__file__), "..", "wasm", "empty.wat")


def main() -> int:
    bulkhead, program = sys.argv[1:]
    tried = subprocess.run([bulkhead, "run", "--sandbox", "strict", MODULE], capture_output=True, text=True)
    if tried.returncode == 125 and "lacks" in tried.stderr:
        print(f"skipped: {tried.stderr.strip()}")
        return SKIPPED
    if tried.returncode != 0:
        print(tried.stderr, file=sys.stderr)
        return 1
    options = [f"--require={limit}" for limit in LIMITS]
    limited = subprocess.run([bulkhead, "run", *options, MODULE], capture_output=True).returncode == 0
    if not limited:
        print("without limits: missing: writable cgroups with the controllers memory and pids")
    # What sets the level is GuestRequest in tests/support/bulkhead_test.cc.
    environment = {"BULKHEAD_TEST_SANDBOX": "strict", "BULKHEAD_TEST_REQUIRE": " ".join(LIMITS if limited else [])}
    return subprocess.run([program], env=os.environ | environment).returncode


if __name__ == "__main__":
    sys.exit(main())
