# SPDX-License-Identifier: Apache-2.0
"""On a system that has Python and pip alone, two commands lead to a run that goes on after a kill."""

import os
import shutil
import subprocess
import time

import pytest
from conftest import wheel
from systems import CannotBeHad, System

SYSTEM, TORCH = System("bullseye"), "1.11.0"
MOST_SECONDS = 60


@pytest.fixture
def machine(tmp_path):
    """Starts a command as a user who has the wheel, and whose home goes with the test."""
    shutil.copy(wheel(), tmp_path)
    ours = ("TRADEWIND_", "PYTHON", "PIP_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    user = {**kept, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PIP_USER": "1"}

    def start(*command):
        inside = SYSTEM.command(*map(str, command), work=tmp_path)
        return subprocess.Popen(
            inside, cwd=tmp_path, env=user, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    return start


def test_two_commands_lead_to_a_run_that_survives_a_kill(machine, capsys):
    try:
        SYSTEM.make()
        downloaded = SYSTEM.download(TORCH)
    except CannotBeHad as error:
        pytest.skip(f"{SYSTEM}: {error}")
    sources = ["--no-index", "--find-links", downloaded, "--find-links", "."]
    commands = {
        "installed": ["pip", "install", *sources, "torch", "tradewind"],
        "all ended alike": ["tradewind.demo", "--no-open"],
    }
    begun, happened, lines = time.monotonic(), {}, []
    for what, command in commands.items():
        with machine("python3", "-m", *command) as process:
            for line in process.stdout:
                lines.append(line)
                if " is gone" in line:
                    happened.setdefault("one of them killed", time.monotonic() - begun)
                if "processes made the same update" in line:
                    happened.setdefault("training", time.monotonic() - begun)
        assert process.returncode == 0, "".join(lines)
        happened[what] = time.monotonic() - begun
    with capsys.disabled():
        print(f"\n{SYSTEM}:", ", ".join(f"{what} after {after:.0f} s" for what, after in happened.items()))
    assert "identical parameters" in "".join(lines)
    assert "NumPy" not in "".join(lines), "PyTorch's warning is no part of the story"
    busy = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: a busy machine is no judge of the time"
    assert happened["one of them killed"] <= MOST_SECONDS, (happened, busy)
