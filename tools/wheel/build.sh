#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles what goes into a wheel for Linux with glibc 2.28 by the compiler zig, warnings as errors.
# usage: tools/wheel/build.sh x86_64|aarch64 [TARGET...]; tradewind and tw unless targets are named
set -euo pipefail
cd "$(dirname "$0")/../.."
machine=${1:?usage: tools/wheel/build.sh x86_64|aarch64 [TARGET...]}
shift
libraries=$(tools/wheel/libraries.sh "$machine")
build=build-wheel-$machine
mkdir -p "$build"
export CCACHE_COMPILERTYPE=clang
# CMake keeps the paths that it found: with other libraries it is to find all anew, or the wheel keeps the old ones.
anew=()
grep -sqx "TW_WHEEL_LIBRARIES:[A-Z]*=$libraries" "$build/CMakeCache.txt" || anew=(--fresh)
cmake "${anew[@]}" -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
  -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DTW_WHEEL_LIBRARIES="$libraries" \
  >"$build/configure.log" || { cat "$build/configure.log"; exit 1; }
if [ $# -eq 0 ]; then set -- tradewind tw; fi
cmake --build "$build" --target "$@"
