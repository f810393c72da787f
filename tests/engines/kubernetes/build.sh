#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh: builds the control plane, the kubelet and kubectl of Kubernetes 1.20.2 from Debian's source package with
# Debian's Go, into the cache folder (TW_KUBERNETES_CACHE, ~/.cache/tradewind/kubernetes). It prints the folder of the
# programs. The first time takes minutes; what is there already is kept, one program after another.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${TW_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tradewind/kubernetes}
programs=(kubectl kube-apiserver kube-controller-manager kube-scheduler kubelet)
bin=$cache/bin

missing=()
for program in "${programs[@]}"; do [ -x "$bin/$program" ] || missing+=("$program"); done
if [ "${#missing[@]}" -eq 0 ]; then echo "$bin" && exit; fi

source=$("$here/source.sh")
mkdir -p "$bin"
exec 9>"$cache/lock"
flock -n 9 || { echo "build: waiting for another build in $cache" >&2; flock 9; }

# Go 1.19 refuses this source's list of vendored packages in module mode, so it is built as a GOPATH tree.
export PATH=/usr/lib/go-1.19/bin:$PATH GOPATH=$cache/gopath GO111MODULE=off GOCACHE=$cache/go-cache GOFLAGS= CGO_ENABLED=0
export KUBE_GIT_VERSION_FILE=$cache/version GOTOOLCHAIN=local
cat >"$KUBE_GIT_VERSION_FILE" <<'VERSION'
KUBE_GIT_COMMIT=faecb196815e248d3ecfb03c680a4507229c2a56
KUBE_GIT_TREE_STATE=archive
KUBE_GIT_VERSION=v1.20.2
KUBE_GIT_MAJOR=1
KUBE_GIT_MINOR=20
VERSION

cd "$source"
if [ ! -f "$cache/generated" ]; then
  # Without this step, kube-apiserver ends in "undefined: openapi.GetOpenAPIDefinitions".
  echo "build: generating the sources of Kubernetes (about a minute; log: $cache/generate.log)" >&2
  make generated_files >"$cache/generate.log" 2>&1 || { tail -n 20 "$cache/generate.log" >&2; exit 1; }
  touch "$cache/generated"
fi
# In a GOPATH tree its own libraries are vendored.
version=k8s.io/kubernetes/vendor/k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20"
for program in "${missing[@]}"; do
  echo "build: $program (minutes the first time)" >&2
  go build -tags providerless,dockerless -ldflags "$flags" -o "$bin/$program.part" "./cmd/$program" >&2
  mv "$bin/$program.part" "$bin/$program"
done
# What the compiler kept takes 2 GB and is of no more use.
go clean -cache >&2 || true
echo "$bin"
