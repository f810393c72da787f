#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CPU seconds of a cold build, as a newcomer makes it: a fresh clone of HEAD, no compiler cache. Then of a warm one, as a
# developer makes it: one file changes, its test program is built and run.
#   bench/build_time.sh [FOLDER]    FOLDER: where to clone, default a temporary one, which is removed
# The cold build is first what `make demo` waits for (tw alone), then everything else that `make test` compiles and links.
set -eu
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
folder=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$folder"' EXIT
git clone --quiet --no-local "$root" "$folder/tradewind"
cd "$folder/tradewind"
export CCACHE_DISABLE=1 SKIP_SETUP=1

timed() {
  name=$1
  shift
  before=$(awk '{print $16 + $17}' /proc/$$/stat)
  begun=$(date +%s)
  "$@" >build.log 2>&1 || { tail -20 build.log; exit 1; }
  after=$(awk '{print $16 + $17}' /proc/$$/stat)
  used=$(((after - before) / $(getconf CLK_TCK)))
  total=$((${total:-0} + used))
  echo "$name: $used CPU s, $(($(date +%s) - begun)) s"
}

echo "commit $(git rev-parse --short HEAD), $(nproc) cores, $(date +%F)"
timed "tw alone (make program)" make program
timed "everything else (make everything)" make everything
echo "whole cold build, with tests and benchmarks: $total CPU s"
touch src/swarm/lead.cc
timed "src/swarm/lead.cc changes: build swarm_test" cmake --build build --target swarm_test
timed "and run it" build/tests/swarm_test --gtest_brief=1
