#!/usr/bin/env bash
# Runs clang-tidy over the sources of a build, by default only over those a change touches.
#
#   tools/run_clang_tidy.sh BUILD_DIR [FILE.cc...]
#
# BH_TIDY       changed (default) | all | off
# BH_TIDY_BASE  what "changed" compares with; by default where this branch left its upstream, and on
#               the upstream itself the last commit. Without history, everything counts as changed.
# BH_TIDY_JOBS  files at a time; by default one per processor
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD=$1
shift
readonly MODE=${BH_TIDY:-changed}
readonly JOBS=${BH_TIDY_JOBS:-$(nproc)}

# Prints the commit to compare with; fails where there is no history to compare.
find_base() {
  if [ -n "${BH_TIDY_BASE:-}" ]; then
    git rev-parse --verify --quiet "$BH_TIDY_BASE^{commit}"
    return
  fi
  local base
  base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || true)
  if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
    echo "$base"
  else
    git rev-parse --verify --quiet HEAD~1
  fi
}

# Settings that bear on the findings in every file.
touches_settings() { grep -qxE '\.clang-tidy|CMakePresets\.json|cmake/.*'; }

all_sources() { find . -path ./build -prune -o -name '*.cc' -printf '%P\n'; }

# One source through which clang-tidy sees header $1: its own, else any that includes it.
source_of_header() {
  local header=$1
  if [ -f "${header%.h}.cc" ]; then
    echo "${header%.h}.cc"
    return
  fi
  local name=${header#src/}
  name=${name#tests/}
  name=${name#include/}
  grep -rlE --include='*.cc' "#include [<\"]${name//./\\.}[>\"]" src apps tests | sort | head -n 1
}

changed_sources() {
  local base names name
  if ! base=$(find_base); then
    all_sources
    return
  fi
  names=$(
    git diff --name-only --diff-filter=d "$base" --
    git ls-files --others --exclude-standard
  )
  if touches_settings <<<"$names"; then
    all_sources
    return
  fi
  while IFS= read -r name; do
    case "$name" in
      *.cc) echo "$name" ;;
      *.h) source_of_header "$name" ;;
    esac
  done <<<"$names"
}

# Of the given names, those that the build compiles.
compiled() {
  python3 -c '
import json, os, sys
database = json.load(open(os.path.join(sys.argv[1], "compile_commands.json")))
built = {os.path.relpath(entry["file"]) for entry in database}
print(*sorted(built & set(sys.stdin.read().split("\n"))), sep="\n")' "$BUILD"
}

case "$MODE" in
  off) exit 0 ;;
  all) candidates=$(all_sources) ;;
  changed) candidates=$(changed_sources) ;;
  *) echo "clang-tidy: BH_TIDY must be changed, all or off, not '$MODE'" >&2; exit 2 ;;
esac
[ $# -eq 0 ] || candidates=$(printf '%s\n' "$@")
files=$(compiled <<<"$candidates")
echo "clang-tidy: $(grep -c . <<<"$files" || true) files" >&2
[ -n "$files" ] || exit 0
# Test programs are short-lived and mostly one thread, and some are wrong on purpose: what these
# check does not matter there.
readonly NOT_IN_TESTS=-performance-*,-concurrency-mt-unsafe,-cert-err33-c,-bugprone-use-after-move,\
-bugprone-implicit-widening-of-multiplication-result,-clang-analyzer-cplusplus.Move,\
-readability-function-cognitive-complexity,-android-cloexec-*,-cert-err34-c,\
-cppcoreguidelines-no-malloc,\
-clang-analyzer-optin.core.EnumCastOutOfRange

# Reads names; passes the options on. The commands in the database are another compiler's: what
# clang does not know it may ignore.
check() {
  tr '\n' '\0' |
    xargs -0 --no-run-if-empty --max-procs="$JOBS" --max-args=1 clang-tidy-19 -p "$BUILD" --quiet \
      --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument "$@" \
      2>&1 |
    sed -E '/^[0-9]+ warnings?( and [0-9]+ errors?)? generated\.$/d'
}

status=0
{ grep -Ev '^tests/|_test\.cc$' <<<"$files" || true; } | check || status=1
{ grep -E '^tests/|_test\.cc$' <<<"$files" || true; } | check --checks="$NOT_IN_TESTS" || status=1
exit "$status"
