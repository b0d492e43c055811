#!/usr/bin/env bash
# Packs an installed tree as build/bulkhead-VERSION-linux-ARCH.tar.gz, with a digest beside it. The
# same build packs to the same bytes: order, owners and times are fixed.
#
#   scripts/pack_release.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD=$1
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$BUILD/CMakeCache.txt")
readonly NAME=bulkhead-$version-linux-$(uname -m)
# The time of the commit, so that a rebuild of it packs alike; without history, a constant.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

stage=$(mktemp -d "$PWD/build/.pack.XXXXXX")
trap 'rm -rf -- "$stage"' EXIT
DESTDIR='' cmake --install "$BUILD" --prefix "$stage/$NAME" --strip >/dev/null
tar --create --directory "$stage" --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime="@$epoch" "$NAME" |
  gzip --no-name >"$stage/$NAME.tar.gz"
(cd "$stage" && sha256sum "$NAME.tar.gz") >"build/$NAME.tar.gz.sha256"
mv -- "$stage/$NAME.tar.gz" build/
echo "build/$NAME.tar.gz"
