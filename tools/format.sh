#!/usr/bin/env bash
# Formats the C and C++ sources in place; with --check, only names those that are not formatted and
# fails if there are any.
#
#   tools/format.sh [--check]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources() {
  find . -path ./build -prune -o -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print0
}

if [ "${1:-}" != --check ]; then
  sources | xargs -0 --no-run-if-empty clang-format-19 -i
  exit
fi
findings=$(sources | xargs -0 --no-run-if-empty clang-format-19 --dry-run --Werror 2>&1) && exit 0
places=$(grep -oE '^[^ :]+:[0-9]+' <<<"$findings" | sort -t: -k1,1 -u) || places=$findings
printf '%s\n' "$places" 'Not formatted from these lines on: run `make format`.'
exit 1
