"""Runs a test program once more with every guest in a worker of the level strict.

usage: in_strict.py BULKHEAD TEST_PROGRAM

Exits with 77 where this machine cannot give what the level insists on.
"""

import os
import subprocess
import sys

SKIPPED = 77
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
    # What sets the level is GuestRequest in tests/support/bulkhead_test.cc.
    return subprocess.run([program], env=dict(os.environ, BULKHEAD_TEST_SANDBOX="strict")).returncode


if __name__ == "__main__":
    sys.exit(main())
