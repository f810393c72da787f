#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD SECONDS [NAME...]: runs the fuzzers of BUILD one after the other, all or those named; fails when one finds something.
set -u
build=$1 seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(ls "$build/fuzz" | sed -n 's/^fuzz_//p')
mkdir -p "$build/findings"
failed=
for name in "$@"; do
  mkdir -p "$build/corpus/$name"
  echo "fuzz: $name for $seconds s"
  log=$build/findings/$name.log
  if "$build/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" >"$log" 2>&1; then
    grep -h "^stat::number_of_executed_units\|^Done" "$log"
  else
    failed="$failed $name"
    grep -h -m 5 -A 12 "broken invariant\|runtime error\|ERROR: \|Test unit written" "$log" | head -40
  fi
done
[ -z "$failed" ] || { echo "fuzz: findings in$failed; logs and inputs in $build/findings"; exit 1; }
