# SPDX-License-Identifier: Apache-2.0
"""Each way to a machine brings the whole package: every folder, with its data."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine
from test_install import build_folder
from tradewind.engine import abi

COMPILED = {"libtradewind.so", "tw"}  # beside the library of a build there is tw; pip's own build packs it
# Trainers that a module is for, such as Lightning, may be missing here.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, tradewind
for module in pkgutil.walk_packages(tradewind.__path__, "tradewind."):
    if not module.name.endswith(("__main__", ".libtradewind")):
        print(importlib.util.find_spec(module.name).origin)
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] == "tradewind":
                raise
"""


def files_of(package):
    """What a package holds beside what was compiled."""
    paths = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(package)) for path in paths} - COMPILED


def setup_py(folder, command):
    """The file that a command of setup.py makes."""
    pytest.importorskip("wheel")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", folder, "build", "--build-base", folder]
        + [command, "--dist-dir", folder / "dist"],
        cwd=ROOT,
        env={**os.environ, "TRADEWIND_LIBRARY": str(abi.library_path())},
        check=True,
        timeout=100,
    )
    (made,) = (folder / "dist").iterdir()
    return made


def wheel(folder):
    """pip install, make wheel, and the images into which the wheel is put."""
    with zipfile.ZipFile(setup_py(folder, "bdist_wheel")) as packed:
        packed.extractall(folder / "unpacked")
    return folder / "unpacked/tradewind"


def source_package(folder):
    with tarfile.open(setup_py(folder, "sdist")) as packed:
        packed.extractall(folder / "unpacked")
    (top,) = (folder / "unpacked").iterdir()
    return top / "python/tradewind"


def cmake_install(folder):
    """The Debian package, too."""
    subprocess.run(["cmake", "--install", build_folder(), "--prefix", folder], check=True, timeout=60)
    return folder / "lib/python3/dist-packages/tradewind"


def make_python(folder):
    return build_folder() / "python/tradewind"


def tw_up(folder):
    """What machines get; there is none."""
    program = build_folder() / "tw"
    (folder / "train.py").write_text("")
    (folder / "run.yaml").write_text("program: {command: [python3, train.py], files: train.py}\n")
    (folder / "hosts.txt").write_text("nowhere\n")
    site = '{site: "onprem:eu", gpu: cpu, purchase: owned}'
    (folder / "PLAN.yaml").write_text(f"run: run.yaml\npeers: [{site}]\n")
    ssh = folder / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    state = folder / "state"
    done = subprocess.run(
        [program, "up", folder / "PLAN.yaml", "--on", "ssh", "--hosts", folder / "hosts.txt"]
        + ["--name", "words", "--state", state, "--with", f"control={folder / 'control'}"],
        env={**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    packed = state / "words/tw.tar"
    assert packed.is_file(), done.stdout + done.stderr
    shutil.unpack_archive(packed, folder / "unpacked")
    return folder / "unpacked/python/tradewind"


@needs_engine
@pytest.mark.parametrize("way", [wheel, source_package, cmake_install, make_python, tw_up])
def test_the_whole_package_arrives(way, tmp_path):
    found = files_of(way(tmp_path))
    wanted = files_of(ROOT / "python/tradewind")
    assert {Path(name).parts[0] for name in wanted} >= {"engine", "demo", "py.typed"}
    assert found == wanted


@needs_engine
def test_every_module_of_a_wheel_is_imported_from_it(tmp_path):
    pytest.importorskip("torch")
    package = wheel(tmp_path)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRADEWIND_")}
    environment["PYTHONPATH"] = str(package.parent)
    found = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert found.returncode == 0, found.stderr
    imported = {str(Path(path).relative_to(package)) for path in found.stdout.split()}
    modules = {name for name in files_of(package) if name.endswith(".py") and "__main__" not in name}
    assert imported == modules - {"__init__.py"}
