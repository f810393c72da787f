# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with the wheel of dist/, and nothing else of this repository."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Installed:
    """Programs run as those of a user who never activated the environment."""

    def __init__(self, folder, work):
        self.python, self.tw = str(folder / "bin/python"), str(folder / "bin/tw")
        self._work = work

    def run(self, *command, timeout=100):
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("TRADEWIND_", "PYTHON"))
        }
        return subprocess.run(
            command, cwd=self._work, env=environment, capture_output=True, text=True, timeout=timeout
        )


def wheel():
    found = list((ROOT / "dist").glob(f"tradewind-*-manylinux_2_28_{platform.machine()}.whl"))
    assert len(found) == 1, f"dist/ has {len(found)} wheels for this machine: tools/wheel/build.sh"
    return found[0]


@pytest.fixture(scope="session", params=["with the system's packages", "without any"])
def installed(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    options = ["--system-site-packages"] if request.param.startswith("with ") else []
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)
    pip = [str(folder / "bin/pip"), "install", "-q", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, str(wheel())], check=True)
    return Installed(folder, tmp_path_factory.mktemp("work"))
