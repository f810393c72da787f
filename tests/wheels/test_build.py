# SPDX-License-Identifier: Apache-2.0
"""The wheel has the same bytes each time and computes what GCC's build does, on old processors, too."""

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import BUILT, ROOT, parameters_of, settings, wheel
from systems import System

here = pytest.mark.parametrize("installed", [System()], indirect=True, ids=str)
OLD_PROCESSOR = "qemu-x86_64-static", "-cpu", "Nehalem"  # no AVX


def test_packing_again_gives_the_same_bytes(tmp_path):
    machine = wheel().name.rsplit("manylinux_2_28_", 1)[1].partition(".")[0]
    subprocess.run([ROOT / "tools/wheel/pack.sh", machine, tmp_path], check=True, capture_output=True)
    assert (tmp_path / wheel().name).read_bytes() == wheel().read_bytes()


def other_wheel(folder, without="no file", **contents):
    """The wheel without the files whose names have a text, and with other contents."""
    other = folder / wheel().name
    with zipfile.ZipFile(wheel()) as packed, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as written:
        for name in packed.namelist():
            if name not in contents and without not in name:
                written.writestr(name, packed.read(name))
        for name, content in contents.items():
            written.writestr(name, content)
    return other


def judgement(judged):
    """(exit code, complaints) of what judges each wheel before it gets its sum."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tradewind/wheel"
    path = ":".join([*map(str, cache.glob("auditwheel-*/bin")), os.environ["PATH"]])
    command = [ROOT / "tools/wheel/check.py", judged]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_wheel_is_what_its_judge_lets_through():
    assert judgement(wheel()) == (0, "")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"without": "demo/digits.gz"}, "tradewind/demo/digits.gz is missing"),
        ({"without": ".data/data/bin/tw"}, ".data/data/bin/tw is missing"),
        ({"without": "/sboms/"}, "the list of contents are missing"),
        ({"without": "/licenses/lib"}, "licences or the list of contents are missing"),
        ({"more": os.urandom(2_000_000)}, "bytes are more than 12000000"),
    ],
    ids=["module", "program", "SBOM", "licences", "size"],
)
def test_a_wheel_that_lacks_a_part_or_is_too_large_is_refused(tmp_path, change, complaint):
    code, complaints = judgement(other_wheel(tmp_path, **change))
    assert code == 1 and complaint in complaints


def test_a_wheel_with_programs_of_this_machine_is_refused(tmp_path):
    library = BUILT.with_name("libtradewind.so")
    if not library.is_file():
        pytest.skip("build/libtradewind.so is missing (make)")
    code, complaints = judgement(
        other_wheel(tmp_path, **{"tradewind/libtradewind.so": library.read_bytes()})
    )
    assert code == 1
    for complaint in ("needs a symbol of glibc", ", which systems may lack", "auditwheel refuses the tag"):
        assert complaint in complaints


def test_a_wheel_with_a_tag_that_indexes_refuse_is_refused(tmp_path):
    local = shutil.copy(wheel(), tmp_path / wheel().name.replace("manylinux_2_28", "linux"))
    assert "is no name of a wheel" in judgement(local)[1]


@here
@pytest.mark.parametrize("scenario", ["disks", "storm"])
def test_the_simulator_tells_the_same_story_as_the_build_of_this_machine(installed, scenario):
    if not BUILT.is_file():
        pytest.skip("build/tw is missing (make)")
    command = ["sim", ROOT / f"tests/scenarios/{scenario}.yaml", "--seeds", "1..5"]
    told = [
        re.sub(r"\(\d+/s.*\)| in [\d.]+ m?s$", "", installed.output(program, *command), flags=re.M)
        for program in (BUILT, installed.tw)
    ]
    assert told[0] and told[0] == told[1]


@here
def test_a_processor_without_avx_computes_the_same(installed):
    if not shutil.which(OLD_PROCESSOR[0]):
        pytest.skip("qemu-user-static is missing (tests/wheels/packages.txt)")
    old = " ".join(OLD_PROCESSOR)
    loop = f'exec ${{TRADEWIND_LISTEN:+{old}}} "$@"'  # the first of the two peers
    out = installed.output(
        installed.tw, "run", "--peers", "2", "--wait-for", "2", *settings(),
        "--", "sh", "-c", loop, "sh", installed.python, installed.work / "bare.py",
    )  # fmt: skip
    done = parameters_of(out)
    assert len(done) == 2 and len(set(done)) == 1, out


def test_pip_builds_and_installs_the_source_package_anywhere(tmp_path):
    subprocess.run(
        ["/usr/bin/python3", "setup.py", "-q", "egg_info", "-e", tmp_path, "sdist", "--dist-dir", tmp_path],
        cwd=ROOT,
        check=True,
    )
    (packed,) = tmp_path.glob("*.tar.gz")
    empty = tmp_path / "empty"
    empty.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRADEWIND_", "PYTHON"))}
    kept["CMAKE_BUILD_PARALLEL_LEVEL"] = "2"

    def run(*command):
        done = subprocess.run(command, cwd=empty, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    run("/usr/bin/python3", "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "-q", packed)
    code = "import tradewind.engine.abi as abi; abi.library(); print(abi.library_path())"
    assert run(tmp_path / "venv/bin/python", "-c", code).startswith(str(tmp_path / "venv"))
    assert run(tmp_path / "venv/bin/tw", "--version").startswith("tw ")
