#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds dist/tradewind-VERSION-py3-none-manylinux_2_28_MACHINE.whl, with the library and tw inside, and dist/SHA256SUMS.
# The same sources give the same bytes. usage: tools/wheel/build.sh x86_64|aarch64
set -euo pipefail
cd "$(dirname "$0")/../.."
machine=${1:?usage: tools/wheel/build.sh x86_64|aarch64}
libraries=$(tools/wheel/libraries.sh "$machine")
build=build-wheel-$machine
export CCACHE_COMPILERTYPE=clang
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
  -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DTW_WHEEL_LIBRARIES="$libraries" -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 \
  >"$build.log" || { cat "$build.log"; exit 1; }
cmake --build "$build" --target tradewind tw

# Times and modes of files are bytes of the wheel, too.
umask 022
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
export SOURCE_DATE_EPOCH
staged=$build/staged
rm -rf "$staged" "$build/packed" dist/*"_$machine.whl"
mkdir -p "$staged/bin" "$staged/licenses" dist
install -m 755 "$build/tw" "$staged/bin/"
install -m 755 "$build/libtradewind.so" "$staged/"
install -m 644 "$libraries"/licences/* "$staged/licenses/"
rm "$staged/licenses/googletest.txt" # of the tests
for licence in web/vendor/*/LICENSE; do install -m 644 "$licence" "$staged/licenses/$(basename "$(dirname "$licence")").txt"; done
tools/wheel/sbom.py "$machine" >"$staged/sbom.json"
TRADEWIND_LIBRARY=$PWD/$staged/libtradewind.so TRADEWIND_WHEEL=$PWD/$staged \
  /usr/bin/python3 setup.py -q egg_info --egg-base "$build" build --build-base "$build/packed" \
  bdist_wheel --plat-name "manylinux_2_28_$machine" --dist-dir dist
tools/wheel/check.py dist/*"_$machine.whl"
(cd dist && sha256sum -- *.whl >SHA256SUMS)
