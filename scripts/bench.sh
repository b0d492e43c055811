#!/usr/bin/env bash
# Runs every benchmark program of a build, one after the other.
#
#   scripts/bench.sh BUILD_DIR [benchmark options]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD=$1
shift
found=no
for program in "$BUILD"/bin/*_bench; do
  [ -x "$program" ] || continue
  found=yes
  printf '\n== %s\n' "${program##*/}"
  "$program" "$@"
done
if [ "$found" = no ]; then
  echo "bench: no benchmark program in $BUILD/bin" >&2
  exit 1
fi
