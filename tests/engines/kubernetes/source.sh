#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# source.sh: fetches Debian's source package of Kubernetes, checked by apt, and unpacks it into the cache folder.
# It prints the folder of the source. Neither /etc nor apt's own lists are touched.
set -euo pipefail
cache=${TW_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tradewind/kubernetes}
suite=bookworm
source=$cache/gopath/src/k8s.io/kubernetes
if [ -f "$source/.unpacked" ]; then echo "$source" && exit; fi

mkdir -p "$cache/lists/partial" "$cache/package" "$(dirname "$source")"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
  >"$cache/sources.list"
apt_options=(-q -o Dir::Etc::SourceList="$cache/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::State::Lists="$cache/lists" -o APT::Sandbox::User=root -o Acquire::Retries=3)
{
  apt-get "${apt_options[@]}" update
  (cd "$cache/package" && apt-get "${apt_options[@]}" source --download-only kubernetes)
  rm -rf "$source" "$source.part"
  # apt has checked the digests by the signed list.
  dpkg-source --no-check -x "$cache"/package/kubernetes_*.dsc "$source.part"
} >&2
mv "$source.part" "$source"
touch "$source/.unpacked"
echo "$source"
