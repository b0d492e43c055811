#!/usr/bin/env bash
# What `make run` shows: an ordinary C program, compiled to WebAssembly, renders a picture inside a
# worker process that can reach nothing but that one output file.
#
#   scripts/demo.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BULKHEAD=$1/bin/bulkhead
readonly DEMO=build/demo
readonly GUEST=$DEMO/demo.wasm
readonly PICTURE=$DEMO/picture.png
# The compiler driver looks for plain `wasm-ld`, which Debian keeps in this folder.
readonly LLVM_BIN=/usr/lib/llvm-14/bin

show() { printf '\n$ %s\n' "$*"; }

mkdir -p "$DEMO"
if [ ! -f "$GUEST" ] || [ guests/demo.c -nt "$GUEST" ]; then
  compile=(clang-14 --target=wasm32-wasi --sysroot=/usr -O2 -s guests/demo.c -o "$GUEST")
  show "${compile[@]}"
  PATH=$LLVM_BIN:$PATH "${compile[@]}"
fi

rm -f "$PICTURE"
run=("$BULKHEAD" run --output "$PICTURE" --deadline 30s "$GUEST" -- "${PICTURE##*/}")
show "${run[@]}"
status=0
"${run[@]}" || status=$?
if [ "$status" -ne 0 ]; then
  printf '\nThe demonstration failed: bulkhead ended with status %d.\n' "$status" >&2
  exit "$status"
fi
printf '\nThe guest ran in a worker process of its own, and its picture was published whole:\n'
printf '  %s (%d bytes)\n' "$PWD/$PICTURE" "$(stat -c %s "$PICTURE")"
