# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts on a machine, and the README's five lines with nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine
from tradewind.engine import abi

BEFORE = """
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
samples = torch.randn(512, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(samples, samples.sum(1)), batch_size=64)
loss_of = lambda outputs, targets: (outputs[:, 0] - targets).pow(2).mean()
"""
AFTER = 'print("done", run.round, tradewind.__file__, [float(p.sum()) for p in model.parameters()])\n'


def readme():
    """The program of the README, with a model and data."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(import torch, tradewind\n)(.*?)```", text, re.S)
    assert found
    return found[1] + BEFORE + found[2] + AFTER


def build_folder():
    """Where all that is installed was built."""
    folder = Path(abi.library_path()).parent
    wanted = ["CMakeCache.txt", "tw", "completions/bash"]
    if not all((folder / name).exists() for name in wanted):
        pytest.skip(f"{folder} has no whole build (make)")
    return folder


@needs_engine
def test_the_readmes_lines_run_from_what_is_installed(tmp_path):
    build = build_folder()
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(tmp_path)], check=True, timeout=60)
    package = tmp_path / "lib/python3/dist-packages/tradewind"
    assert os.readlink(package / "libtradewind.so").startswith("../")
    assert (tmp_path / "include/tradewind.h").is_file()
    assert (tmp_path / "include/tradewind_data.h").is_file()
    assert (tmp_path / "include/tradewind_checkpoint.h").is_file()
    assert list(tmp_path.glob("share/doc/*/examples/python/mnist.py"))
    assert not list(tmp_path.rglob("__pycache__"))
    (tmp_path / "train.py").write_text(readme())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRADEWIND_")}
    environment["PYTHONPATH"] = str(package.parent)
    found = subprocess.run(
        [str(tmp_path / "bin/tw"), "run", "--peers", "2", "--", sys.executable, "train.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    done = re.findall(rf"done (200 {re.escape(str(package))}/\S+ \[.*\])", found.stdout)
    assert len(done) == 2 and len(set(done)) == 1, found.stdout


def fresh_clone(folder):
    """The files of this repository, as somebody else gets them."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a git repository")
    git = ["git", "-C", str(ROOT), "ls-files", "-z"]
    listed = subprocess.run(git, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def pip_line():
    """The commands of the page that install the package by pip."""
    page = (ROOT / "docs/python.md").read_text()
    found = re.findall(r"^    (python3 -m venv --system.*|\.venv/bin/pip install .*)$", page, re.M)
    assert len(found) == 2
    return " && ".join(found).replace("python3", sys.executable, 1)


@needs_engine
def test_pip_installs_a_fresh_clone_as_the_page_says(tmp_path):
    clone = fresh_clone(tmp_path / "clone")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CI")}
    environment["TRADEWIND_LIBRARY"] = str(abi.library_path())  # its build takes minutes
    done = subprocess.run(pip_line(), shell=True, cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    del environment["TRADEWIND_LIBRARY"]
    told = "import tradewind.engine.abi; print(tradewind.__file__, tradewind.engine.abi.library().tw_abi())"
    python = str(clone / ".venv/bin/python")
    found = subprocess.run(
        [python, "-c", told], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 0, found.stderr
    assert re.search(rf"\.venv/\S+ {abi.TW_ABI}$", found.stdout.strip()), found.stdout


def test_the_build_of_pip_and_a_plain_release_make_no_warning_an_error(tmp_path):
    setup = (ROOT / "setup.py").read_text()
    assert "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF" in setup
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(tmp_path), *options],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        timeout=100,
    )
    rules = (tmp_path / "build.ninja").read_text()
    assert "-O3" in rules and "-Werror" not in rules
