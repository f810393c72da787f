#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_integrations.sh BUILD [PYTHON...]: for each interpreter a virtual environment in BUILD/integrations with what
# tests/python/integrations.txt pins and with tradewind's own wheel, and a second one with SkyPilot
# (integrations_skypilot.txt); runs the tests there. TESTS: options of pytest.
# Without a PYTHON: the first two of different versions on PATH. An interpreter has to be 3.11 or newer: the pinned
# numpy has nothing for others.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -- "$1")
shift
least=3.11
unset PYTHONPATH TRADEWIND_LIBRARY
export PIP_DISABLE_PIP_VERSION_CHECK=1

version_of() {  # of an interpreter that is new enough and can make environments; nothing for others
  "$1" -c 'import ensurepip, sys, venv
wanted = tuple(map(int, sys.argv[1].split(".")))
if sys.version_info >= wanted: print("%d.%d" % sys.version_info[:2])' "$least" 2>/dev/null || true
}

candidates=("$@")
most=${#candidates[@]}
if [ "$most" -eq 0 ]; then
  candidates=(python3 python3.15 python3.14 python3.13 python3.12 python3.11)
  most=2
fi
declare -A interpreters=()
for python in "${candidates[@]}"; do
  version=$(version_of "$python")
  if [ -n "$version" ] && [ "${#interpreters[@]}" -lt "$most" ]; then
    interpreters[$version]=${interpreters[$version]:-$python}
  elif [ $# -gt 0 ]; then
    echo "test-integrations: $python is no Python of $least or newer with venv and ensurepip" && exit 1
  fi
done
[ "${#interpreters[@]}" -gt 0 ] || { echo "test-integrations: there is no Python of $least or newer with venv and ensurepip on PATH"; exit 1; }
[ "${#interpreters[@]}" -gt 1 ] || echo "test-integrations: only Python ${!interpreters[*]} is there. A second version:" \
  "make test-integrations PYTHONS='python3 /path/of/another/python3'"

install_skypilot() {  # ENVIRONMENT PYTHON
  [ -x "$1/bin/pip" ] || "$2" -m venv --clear "$1"
  "$1/bin/pip" install --quiet -r tests/python/integrations_skypilot.txt
}

install() {  # ENVIRONMENT PYTHON
  # pip comes last: without it, the making was interrupted.
  [ -x "$1/bin/pip" ] || "$2" -m venv --clear "$1"
  "$1/bin/pip" install --quiet -r tests/python/integrations.txt
  # What an older build left there would be packed too.
  rm -rf build/lib build/lib.* build/bdist.* "$1/wheel"
  TRADEWIND_BUILD=$build "$1/bin/pip" wheel --quiet --no-deps --no-build-isolation -w "$1/wheel" .
  "$1/bin/pip" install --quiet --no-deps --no-index --force-reinstall "$1"/wheel/tradewind-*.whl
}

for version in $(printf '%s\n' "${!interpreters[@]}" | sort -V); do
  environment=$build/integrations/$version
  install "$environment" "${interpreters[$version]}"
  install_skypilot "$environment-skypilot" "${interpreters[$version]}"
  echo "test-integrations: Python $version, $("$environment/bin/pip" freeze | grep -E '^(torch|transformers|accelerate|lightning)==' | paste -sd ' ')"
  eval "options=(${TESTS:--m integrations})"
  TRADEWIND_TESTS=installed TRADEWIND_PROGRAM=$build/tw TRADEWIND_SKYPILOT_PYTHON=$environment-skypilot/bin/python \
    "$environment/bin/python" -m pytest -q "${options[@]}" tests/python
done
