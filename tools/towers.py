#!/usr/bin/env python3
"""Checks what the built programs link: the two towers of ARCHITECTURE.md, seen from the outside.

usage: towers.py BIN_DIR

The parent never loads a WebAssembly engine; a worker never loads what only a parent needs. Fails
when a program breaks that, and when there is no program to look at.
"""

import pathlib
import re
import subprocess
import sys

# Shared libraries that a program must not name, by the pattern of its file name.
FORBIDDEN = {
    r"bulkhead": r"libwasmtime|liblean",
    r"bulkhead-.*-worker": r"libspdlog|libcrypto|libssl|libseccomp|libcurl|libnats",
}


def needed_libraries(program: pathlib.Path) -> list[str]:
    listing = subprocess.run(["readelf", "--dynamic", "--wide", program],
                             check=True, capture_output=True, text=True, env={"LC_ALL": "C"})
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listing.stdout)


def main() -> int:
    programs = sorted(path for path in pathlib.Path(sys.argv[1]).glob("bulkhead*")
                      if path.is_file() and path.read_bytes()[:4] == b"\x7fELF")
    failures = 0
    for program in programs:
        for name, libraries in FORBIDDEN.items():
            if not re.fullmatch(name, program.name):
                continue
            for library in needed_libraries(program):
                if re.match(libraries, library):
                    print(f"{program.name} links {library}, which belongs to the other tower")
                    failures += 1
    if not programs:
        print(f"no program in {sys.argv[1]}")
    return 0 if programs and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
