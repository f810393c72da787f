# SPDX-License-Identifier: Apache-2.0
"""`tw run` starts a program as several peers: the five lines of the README, with a peer that is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine, python_path

PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))

TRAIN = """
import os, time, torch, tradewind
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
inputs = torch.randn(256, 4)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=8)
print("pid", os.getpid(), flush=True)
run = tradewind.join(target_batch_size=64, rounds=200)
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for batch, targets in run.shard(loader):
    time.sleep(0.01)
    ((model(batch) - targets) ** 2).mean().backward()
    opt.step()
    opt.zero_grad()
print("done", run.round, [p.sum().item() for p in model.parameters()])
"""


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_peers_of_one_program_go_on_when_one_is_killed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    environment = {**os.environ, "PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "line"}
    crew = subprocess.Popen(
        [PROGRAM, "run", "--peers", "3", "--", sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert crew.stdout is not None
    lines, pids = [], {}
    for line in crew.stdout:
        lines.append(line)
        begun = re.match(r"\[(\d)\] pid (\d+)", line)
        if begun:
            pids[begun.group(1)] = int(begun.group(2))
        if "3" in pids and re.search(r"round \d+/200  3 peers", line):
            os.kill(pids.pop("3"), signal.SIGKILL)
    assert crew.wait(10) == 0, "".join(lines)
    assert "tw: process 3 ended with signal 9\n" in lines
    done = {line.split("done ")[1] for line in lines if "done" in line}
    assert len(done) == 1 and done.pop().startswith("200 "), "".join(lines)
