#!/usr/bin/env bash
# Feeds the fuzz targets of a build, one after the other, from their corpora and seeds.
#
#   scripts/fuzz.sh BUILD_DIR SECONDS [TARGET...]
#
# What is found stays in BUILD_DIR/fuzz-work/TARGET: new inputs in new/, one that fails as crash-*.
# scripts/fuzz.sh --merge BUILD_DIR [TARGET...] takes the smallest set of them that reaches as much
# into fuzz/corpus/TARGET.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

merge=no
if [ "${1:-}" = --merge ]; then
  merge=yes
  shift
fi
readonly BUILD=$1
shift
if [ "$merge" = no ]; then
  readonly SECONDS_EACH=$1
  shift
fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(frame_fuzz wasm_scan_fuzz cache_entry_fuzz proc_text_fuzz)

for target in "${targets[@]}"; do
  program=$PWD/$BUILD/fuzz/$target
  corpus=$PWD/fuzz/corpus/$target
  work=$PWD/$BUILD/fuzz-work/$target
  [ -x "$program" ] || { echo "fuzz: no target $target in $BUILD/fuzz" >&2; exit 1; }
  mkdir -p "$work/new" "$work/seeds" "$corpus"
  "${program}_replay" --write "$work/seeds"
  if [ "$merge" = yes ]; then
    mkdir -p "$work/merged"
    "$program" -merge=1 "$work/merged" "$corpus" "$work/new" 2>/dev/null
    rm -rf -- "$corpus"
    mv -- "$work/merged" "$corpus"
    echo "$target: $(find "$corpus" -type f | wc -l) inputs"
  else
    printf '== %s\n' "$target"
    (cd "$work" && "$program" -max_total_time="$SECONDS_EACH" -print_final_stats=1 \
      -rss_limit_mb=1024 new "$corpus" seeds 2>&1 | grep -E '^(stat::|SUMMARY|.*(ERROR|DONE))')
  fi
done
