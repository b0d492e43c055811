#!/usr/bin/env bash
# Builds a sketch from C:  build_sketch.sh OUTPUT.wasm SOURCE.c...
#
# CLANG     compiler with the WebAssembly target (default: clang-14)
# WASM_LD   linker, version 16 or later (default: wasm-ld-19)
# BULKHEAD  the command that packs the result (default: bulkhead)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

[ $# -ge 2 ] || { echo "usage: build_sketch.sh OUTPUT.wasm SOURCE.c..." >&2; exit 2; }
readonly output=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Exactly the features of the contract that this compiler knows; no C library.
flags=(--target=wasm32-unknown-unknown -matomics -mbulk-memory -mmutable-globals -msign-ext
  -mnontrapping-fptoint -O2 -std=c11 -ffreestanding -ftls-model=local-exec -Wall -Wextra)
objects=()
for source in "$@" "$here/src/bulkhead_guest.c"; do
  object="$work/${#objects[@]}.o"
  "${CLANG:-clang-14}" "${flags[@]}" -I"$here/include" -c "$source" -o "$object"
  objects+=("$object")
done
"${CLANG:-clang-14}" --target=wasm32-unknown-unknown -matomics -mbulk-memory \
  -c "$here/src/thread_start.s" -o "$work/start.o"
# The memory that the contract prescribes: 17 pages at first, 16384 at most.
"${WASM_LD:-wasm-ld-19}" --no-entry --shared-memory --import-memory --export-memory \
  --initial-memory=$((17 * 65536)) --max-memory=$((16384 * 65536)) -z stack-size=65536 \
  --strip-debug \
  "${objects[@]}" "$work/start.o" -o "$work/linked.wasm"
"${BULKHEAD:-bulkhead}" guest-pack "$work/linked.wasm" --output "$output"
