#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_device.sh BUILD [PYTHON]: builds the simulated device (tests/device) in BUILD/device, with the PyTorch that
# tests/python/integrations.txt pins, in a virtual environment there, and runs its tests. Then it plants the bugs of
# tests/device/planted.py. SEEDS: those of the laws, as 1..1000; PLANTED=no: without the bugs.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -- "$1")/device
python=${2:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1

if ! "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "test-device: $python is no Python of 3.11 or newer with venv and ensurepip; make test-device PYTHONS=/path/of/another"
  exit 1
fi
[ -x "$folder/environment/bin/pip" ] || "$python" -m venv --clear "$folder/environment"
mkdir -p "$folder/library"
grep -E '^(torch|numpy|pytest|pytest-timeout|setuptools)==' tests/python/integrations.txt >"$folder/requirements.txt"
"$folder/environment/bin/pip" install --quiet -r "$folder/requirements.txt" ninja==1.13.2
export PATH=$folder/environment/bin:$PATH
python tests/device/build.py "$folder/library" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }

export TRADEWIND_SIM=$folder/library/tradewind_sim.so TRADEWIND_LIBRARY=${1}/libtradewind.so OMP_NUM_THREADS=1
TRADEWIND_LIBRARY=$(realpath -- "$TRADEWIND_LIBRARY")
TRADEWIND_SIM_SEEDS=${SEEDS:-1..200} python -m pytest -q -p no:cacheprovider --timeout=1800 tests/device
[ "${PLANTED:-yes}" = no ] || python tests/device/planted.py
