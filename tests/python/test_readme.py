# SPDX-License-Identifier: Apache-2.0
"""The commands of the README run as they stand there, in a copy of the repository."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine
from tradewind.engine import abi

# The demo at half of its size, by variables of the Makefile.
SMALL_DEMO = {
    "SKIP_SETUP": "1",
    "DEMO_COMMAND": "/usr/bin/python3 examples/python/mnist.py --rounds 150",
    "DEMO_KILL": "2@3",
    "DEMO_JOIN": "4",
}
# Commands that something else stands for: dist/ has a wheel of this build, and PyTorch is the system's.
INSTEAD = {
    "make wheel": "ls dist/*.whl",
    "pip install torch": "echo /usr/lib/python3/dist-packages >$(echo ~/tw/lib/python3*/*s)/torch.pth",
    "make test": "true",  # this is one of its tests
}


def command_blocks():
    """Each block of commands as a script."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    for block in blocks:
        commands = [line.split("#")[0].strip() for line in block.splitlines()]
        yield "\n".join(INSTEAD.get(command, command) for command in commands)


@pytest.fixture
def copy(tmp_path):
    """What the commands need: files as they are, the build and the data by links, and a wheel in dist/."""
    build = Path(abi.library_path()).parent
    needed = [build / "build.ninja", build / "tw", build / "python/tradewind", ROOT / "data-cache/mnist"]
    if not all(path.exists() for path in needed):
        pytest.skip("no whole build (make), or no data (make setup)")
    place = tmp_path / "copy"
    shutil.copytree(ROOT / "examples", place / "examples")
    for name in ("Makefile", "README.md"):
        shutil.copy2(ROOT / name, place / name)
    (place / "build").symlink_to(build)
    (place / "data-cache").symlink_to(ROOT / "data-cache")
    pack_wheel(build, tmp_path / "staged", place / "dist")
    (tmp_path / "tmp").mkdir()
    return place


def pack_wheel(build, staged, dist):
    """Of this build, in the shape of the one that `make wheel` writes."""
    staged.mkdir()
    environment = {**os.environ, "TRADEWIND_LIBRARY": str(build / "libtradewind.so")}
    words = ["egg_info", "--egg-base", staged, "build", "--build-base", staged / "packed", "bdist_wheel"]
    command = ["/usr/bin/python3", "setup.py", "-q", *words, "--dist-dir", dist]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def run(script, place):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRADEWIND_")}
    environment.pop("PYTHONPATH", None)
    home = place.parent
    path = f"{home}/tw/bin:/usr/bin:/bin:{environment['PATH']}"  # as activated by the first block
    environment.update(SMALL_DEMO, HOME=str(home), TMPDIR=f"{home}/tmp", PATH=path, PIP_NO_INDEX="1")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


@needs_engine
@pytest.mark.timeout(600)
def test_the_commands_of_the_readme_do_what_it_says(copy):
    start, story, demo = command_blocks()
    told = run(start, copy)
    assert "4 processes ended, the late one too, with identical parameters" in told
    told = run(demo, copy)
    assert "lost peer 2" in told and re.search(r"^joined +peer 5", told, re.M), told
    assert re.search(r"^samples +76,800 ", told, re.M) and "carried" not in told, told  # exact
    assert re.search(r"^parameters +identical", told, re.M), told
    try:
        told = run(story, copy)
    finally:
        run("tw down spirals || true", copy)  # also where the story stopped before its end
    assert re.search(r"cpu: [\d,. ]+ samples/s", told), told
    # One machine may be as fast as two: that is for the plan to say, of the machine that the tests run on.
    machines = re.search(r"chosen +([12])xcpu@onprem:here", told)
    assert machines, told
    started = "started p1 p2" if machines[1] == "2" else "started p1"
    assert started in told and "run spirals is down" in told, told
    assert re.search(r"^parameters +identical", told, re.M), told
    assert not list(copy.glob("examples/run/tradewind-checkpoints")), "tw profile writes no checkpoints"
