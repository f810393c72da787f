#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs what tools/wheel/build.sh compiled: DIST/tradewind-VERSION-py3-none-manylinux_2_28_MACHINE.whl, judged, and
# DIST/SHA256SUMS. The same sources give the same bytes. usage: tools/wheel/pack.sh x86_64|aarch64 [DIST]
set -euo pipefail
cd "$(dirname "$0")/../.."
machine=${1:?usage: tools/wheel/pack.sh x86_64|aarch64 [DIST]}
dist=${2:-dist}
build=build-wheel-$machine
libraries=$(tools/wheel/libraries.sh "$machine")
auditwheel=6.8.2
judge=${XDG_CACHE_HOME:-$HOME/.cache}/tradewind/wheel/auditwheel-$auditwheel
[ -f "$judge/complete" ] || { python3 -m venv "$judge" && "$judge/bin/pip" install -q "auditwheel==$auditwheel" && touch "$judge/complete"; }

# Times and modes of files are bytes of the wheel, too.
umask 022
SOURCE_DATE_EPOCH=315532800
if [ -e .git ]; then SOURCE_DATE_EPOCH=$(git log -1 --format=%ct); fi
export SOURCE_DATE_EPOCH
staged=$build/staged
rm -rf "$staged" "$build/packed" "$dist"/*"_$machine.whl"
mkdir -p "$staged/licenses" "$dist"
install -m 755 "$build/tw" "$build/libtradewind.so" "$staged/"
install -m 644 "$libraries"/licences/* "$staged/licenses/"
rm "$staged"/licenses/{googletest,benchmark}.txt # of tests and benchmarks
for licence in web/vendor/*/LICENSE; do install -m 644 "$licence" "$staged/licenses/$(basename "$(dirname "$licence")").txt"; done
install -m 644 python/tradewind/demo/digits.txt "$staged/licenses/"
tools/wheel/sbom.py "$machine" >"$staged/sbom.json"
TRADEWIND_LIBRARY=$PWD/$staged/libtradewind.so TRADEWIND_WHEEL=$PWD/$staged \
  /usr/bin/python3 setup.py -q egg_info --egg-base "$build" build --build-base "$build/packed" \
  bdist_wheel --plat-name "manylinux_2_28_$machine" --dist-dir "$dist"
PATH=$judge/bin:$PATH tools/wheel/check.py "$dist"/*"_$machine.whl"
(cd "$dist" && sha256sum -- *.whl >SHA256SUMS)
