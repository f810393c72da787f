# SPDX-License-Identifier: Apache-2.0
"""The simulated device, and the fixtures of tests/python: runs on the double of the engine."""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = HERE.parent / "python"
sys.path[:0] = [str(HERE), str(PYTHON)]


def _of_python_tests():
    spec = importlib.util.spec_from_file_location("conftest_of_python", PYTHON / "conftest.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


_tests = _of_python_tests()
fake_run, place = _tests.fake_run, _tests.place

import simulated  # noqa: E402, F401
