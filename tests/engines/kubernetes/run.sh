#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [OPTION of pytest...]: builds Kubernetes where that was not done before, then runs the tests on it, in a network
# namespace of their own. As root. TRADEWIND_PROGRAM: another tw than build/tw.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
TW_KUBERNETES=$("$here/build.sh")
export TW_KUBERNETES
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
# Sockets have short names.
exec unshare --net --mount /usr/bin/python3 -m pytest -q -s --basetemp "/tmp/tw-k8s-$$" -p no:cacheprovider --timeout=600 \
  "$@" "$here/kubernetes_test.py"
