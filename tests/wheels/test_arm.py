# SPDX-License-Identifier: Apache-2.0
"""The wheel for Arm under an emulator: alone, and in one run with peers of x86-64."""

import shutil
import subprocess
import zipfile

import pytest
from conftest import ROOT, parameters_of, settings, wheel
from systems import CannotBeHad, System, arm_python

pytestmark = pytest.mark.parametrize("installed", [System()], indirect=True, ids=str)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The words that run the loop on Arm."""
    folder = tmp_path_factory.mktemp("arm")
    if not list((ROOT / "dist").glob("tradewind-*_aarch64.whl")):
        pytest.skip("dist/ has no wheel for Arm (make wheel TARGET=aarch64)")
    try:
        python = arm_python()
    except CannotBeHad as error:
        pytest.skip(str(error))
    with zipfile.ZipFile(wheel("aarch64")) as packed:
        packed.extractall(folder)
    loop = shutil.copy(ROOT / "tests/wheels/bare.py", folder)
    return ["env", f"PYTHONPATH={folder}", *python, loop]


def test_the_library_loads(installed, arm):
    code = "import tradewind.engine.abi as abi, platform; abi.library(); print(platform.machine())"
    assert subprocess.check_output([*arm[:-1], "-c", code], text=True) == "aarch64\n"


def test_the_codecs_have_the_bits_of_their_reference(installed, arm):
    program = ROOT / "build-wheel-aarch64/tests/codec_test"
    if not program.is_file():
        pytest.skip("codec_test for Arm is missing (tools/wheel/build.sh aarch64 codec_test)")
    subprocess.run([*arm[2:5], program, "--gtest_brief=1"], cwd=ROOT, check=True, timeout=600)


@pytest.mark.parametrize("on_arm", ["both", "the first"])
def test_two_peers_end_alike(installed, arm, on_arm):
    there, here = " ".join(arm), f"{installed.python} {installed.work}/bare.py"
    first_there = f"if [ $TRADEWIND_LISTEN ]; then exec {there}; fi; exec {here}"
    loop = f"exec {there}" if on_arm == "both" else first_there
    command = [installed.tw, "run", "--peers", "2", "--wait-for", "2", *settings(), "--", "sh", "-c", loop]
    done = parameters_of(installed.output(*command))
    assert len(done) == 2 and len(set(done)) == 1, done
