# SPDX-License-Identifier: Apache-2.0
"""The wheel as users get it (tools/wheel/build.sh) works, and does what the build of this machine does."""

import re

import pytest
from conftest import ROOT

LOOP = """
import torch, tradewind
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
samples = torch.randn(512, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(samples, samples.sum(1)), batch_size=64)
run = tradewind.join(rounds=60, target_batch_size=256)
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for x, y in run.shard(loader):
    loss = (model(x)[:, 0] - y).pow(2).mean(); loss.backward()
    opt.step(loss=loss); opt.zero_grad()
print("done", run.round, [value for p in model.parameters() for value in p.flatten().tolist()])
"""


def needs_torch(installed):
    if installed.run(installed.python, "-c", "import torch").returncode != 0:
        pytest.skip("this environment has no PyTorch")


def test_tw_runs_in_an_environment_that_is_not_activated(installed):
    version = re.search(r"VERSION (\S+) LANGUAGES", (ROOT / "CMakeLists.txt").read_text())[1]
    assert version in installed.run(installed.tw, "--version").stdout
    plan = installed.run(installed.tw, "plan", str(ROOT / "examples/plan.yaml"))
    assert plan.returncode == 0, plan.stderr


def test_the_package_finds_library_and_program(installed):
    code = "import tradewind.engine.abi as abi; print(abi.library_path(), abi.library().tw_abi())"
    found = installed.run(installed.python, "-c", code)
    assert str(installed.python).rsplit("/bin/")[0] in found.stdout, found.stderr


@pytest.mark.parametrize("scenario", ["disks", "storm"])
def test_the_simulator_tells_the_same_story_as_the_build_of_this_machine(installed, scenario):
    built = ROOT / "build/tw"
    if not built.is_file():
        pytest.skip("build/tw is missing (make)")
    command = ["sim", str(ROOT / f"tests/scenarios/{scenario}.yaml"), "--seeds", "1..5"]
    told = [
        re.sub(r"\(\d+/s.*\)| in [\d.]+ m?s$", "", installed.run(program, *command).stdout, flags=re.M)
        for program in (str(built), installed.tw)
    ]
    assert told[0] and told[0] == told[1]


def test_peers_train_one_is_killed_and_the_others_end_alike(installed):
    needs_torch(installed)
    command = [
        installed.tw,
        "run",
        "--peers",
        "3",
        "--kill",
        "2@10",
        "--out",
        "out",
        "--",
        installed.python,
        "-c",
        LOOP,
    ]
    found = installed.run(*command)
    assert found.returncode == 0, found.stdout + found.stderr
    done = re.findall(r"done (60 \[.*\])", found.stdout)
    assert len(done) == 2 and len(set(done)) == 1, found.stdout


def test_without_pytorch_the_error_names_it(installed):
    found = installed.run(
        installed.python, "-c", "import tradewind, sys; sys.modules['torch'] = None; tradewind.join"
    )
    assert "tradewind.join needs PyTorch" in found.stderr
