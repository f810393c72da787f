#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages of packages.txt that are missing, then fetches the data. Does nothing, quickly, the second time.
# With another list, tools/setup.sh FILE, it installs those packages alone.
set -euo pipefail
cd "$(dirname "$0")/.."
list=${1:-packages.txt}

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# The names in the list, without those whose command is there already.
wanted_packages() {
  local name condition
  while read -r name condition; do
    if [[ $condition == unless=* ]] && command -v "${condition#unless=}" >/dev/null; then continue; fi
    printf '%s\n' "$name"
  done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$list")
}

missing_packages() {
  local wanted installed
  wanted=$(wanted_packages)
  # dpkg-query exits 1 when it does not know one of the names: that package is what we look for.
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p' || true)
  comm -23 <(sort -u <<<"$wanted") <(sort -u <<<"$installed") | paste -sd ' '
}

install_packages() {
  local packages=$1 log as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "packages are missing, and installing needs root, but there is no sudo. As root, run:" \
      "  apt-get update && apt-get install --no-install-recommends $packages"
    as_root=(sudo)
  fi
  echo "setup: installing with apt-get (may take minutes): $packages"
  log=$(mktemp)
  # An update that fails is only a reason to stop if the installation fails too.
  "${as_root[@]}" apt-get -q -o Acquire::Retries=3 update >"$log" 2>&1 || echo "setup: apt-get update failed, trying with the lists there are"
  # shellcheck disable=SC2086
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
    install --no-install-recommends $packages >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install: $packages" \
      "Its last lines stand above, all of them in $log. Is the network there, and is this Debian 12 (bookworm)?" \
      "When it is mended, run 'make setup' again; what is installed stays."
  fi
  rm -f "$log"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this system has no apt-get. Install what $list lists in your system's way," \
    "then 'tools/fetch_data.sh' for the data, and give SKIP_SETUP=1 to every make command."
fi
missing=$(missing_packages)
if [ -n "$missing" ]; then install_packages "$missing"; fi
if [ "$list" = packages.txt ]; then tools/fetch_data.sh; fi
