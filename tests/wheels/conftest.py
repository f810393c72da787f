# SPDX-License-Identifier: Apache-2.0
"""A virtual environment on each system, with the wheel of dist/ and nothing else of this repository."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from systems import SYSTEMS, CannotBeHad

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build/tw"  # by this machine's own compiler


class Installed:
    """Programs run as those of a user who never activated the environment."""

    def __init__(self, system, folder, work):
        self.system, self.work = system, work
        self.python, self.tw = str(folder / "bin/python"), str(folder / "bin/tw")
        self.loop = [self.python, str(work / ("loop.py" if system.torch else "bare.py"))]
        for file in (HERE / "loop.py", HERE / "bare.py", ROOT / "examples/plan.yaml"):
            shutil.copy(file, work)

    def start(self, *command, **settings):
        ours = ("TRADEWIND_", "PYTHON")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        settings = {"cwd": self.work, "env": kept, "text": True, "stdout": subprocess.PIPE, **settings}
        inside = self.system.command(*map(str, command), work=self.work.parent)
        return subprocess.Popen(inside, stderr=subprocess.PIPE, **settings)

    def run(self, *command, seconds=150):
        """(exit code, stdout, stderr)"""
        with self.start(*command) as process:
            try:
                told = process.communicate(timeout=seconds)
            finally:
                process.kill()
        return process.returncode, *told

    def output(self, *command):
        code, out, err = self.run(*command)
        assert code == 0, out + err
        return out


def wheel(machine=platform.machine()):
    found = list((ROOT / "dist").glob(f"tradewind-*-manylinux_2_28_{machine}.whl"))
    assert len(found) == 1, f"dist/ has {len(found)} wheels for {machine}: make wheel TARGET={machine}"
    return found[0]


@pytest.fixture(scope="session", params=SYSTEMS, ids=str)
def installed(request, tmp_path_factory):
    system = request.param
    try:
        system.make()
        python = system.find_python()
    except CannotBeHad as error:
        pytest.skip(f"{system}: {error}")
    folder = tmp_path_factory.mktemp("system")
    shutil.copy(wheel(), folder)
    made = Installed(system, folder / "venv", folder)
    options = ["--system-site-packages"] if system.torch == "system" else []
    made.output(python, "-m", "venv", *options, folder / "venv")
    made.output(made.python, "-m", "pip", "install", "-q", "--no-index", folder / wheel().name)
    if system.packages:
        site = next((folder / "venv/lib").glob("python3*")) / "site-packages"
        (site / "torch.pth").write_text(f"{system.packages}\n")
    return made


def settings():
    """Of a short run, for `tw run`."""
    values = "rounds=40", "target_batch_size=256", "codec=int8"
    return [word for value in values for word in ("--set", f"training.{value}")]


def parameters_of(out):
    """What each peer printed in the end."""
    return re.findall(r"done \d+ \[.*\]", out)
