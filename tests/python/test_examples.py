# SPDX-License-Identifier: Apache-2.0
"""The examples run, at a small size: on the engine's double here, and on the engine where it is built."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT, needs_engine, python_path
from crew import free_port

EXAMPLES = ROOT / "examples/python"
PLAIN = [
    "mnist.py",
    "text.py",
    "tokens.py",
    "pictures.py",
    "amp_accumulate.py",
    "batchnorm.py",
    "module_loop.py",
    "ema.py",
]

# Runs a script with the double in the engine's place.
WITH_DOUBLE = """
import runpy, sys
from fake_engine import FakeEngine
import tradewind.loop.life
tradewind.loop.life.Peer = FakeEngine
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(arguments, **environment):
    path = python_path(ROOT / "tests/python")
    found = subprocess.run(
        arguments,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize("name", PLAIN)
def test_with_the_double(name):
    assert run([sys.executable, "-c", WITH_DOUBLE, str(EXAMPLES / name), "--small"])


@pytest.mark.parametrize("name", PLAIN)
@needs_engine
def test_alone(name):
    assert run([sys.executable, str(EXAMPLES / name), "--small"])


@needs_engine
def test_two_peers():
    assert run([sys.executable, str(EXAMPLES / "mnist.py"), "--small", "--peers", "2"]).count("right") == 2


@needs_engine
def test_a_node_of_two_ranks():
    port = str(free_port())
    ranks = []
    for rank in range(2):
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {
            **os.environ,
            **variables,
            "PYTHONPATH": python_path(),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, str(EXAMPLES / "ddp.py"), "--small"]
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    for rank, process in enumerate(ranks):
        assert f"rank {rank}: 10 rounds" in process.communicate(timeout=100)[0]


@needs_engine
def test_torchrun_in_tw_run_is_one_peer():
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    torchrun += ["--tee", "1", "--redirects", "1"]  # torch 1.13 on Python 3.11 finds no meaning in 0 and 3
    program = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
    said = run([program, "run", "--", *torchrun, str(EXAMPLES / "ddp.py"), "--small"])
    for rank in range(2):
        assert f"rank {rank}: 10 rounds" in said, said
