# SPDX-License-Identifier: Apache-2.0
"""One peer of the demo: a plain PyTorch loop, and two lines of tradewind more."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset

_VALUES = 64
_TRAINED_ON = 1500
_WORK_S = 0.08  # of a batch: these digits alone would be learned before anybody could look


def digits() -> Tuple[torch.Tensor, torch.Tensor]:
    """Pictures [1797, 64] from 0 to 1, and their digits [1797]."""
    packed = bytearray(gzip.decompress((Path(__file__).parent / "digits.gz").read_bytes()))
    rows = torch.frombuffer(packed, dtype=torch.uint8).view(-1, _VALUES + 1)
    return rows[:, :_VALUES].float() / 16, rows[:, _VALUES].long()


def line_of(event: Dict[str, Any]) -> Optional[str]:
    """What process 1 tells about an event of the run (docs/events.md); None: nothing."""
    phase, number, other = event["phase"], event["round"], event.get("about")
    if phase == "commit" and (number == 1 or number % 10 == 0):
        last, peers = os.environ["TRADEWIND_DEMO_ROUNDS"], len(event["peers"])
        return f"round {number} of {last}: {peers} processes made the same update; error (loss) {event['loss']:.3f}"
    if phase == "lost":
        return f"round {number}: process {other} is gone. The others divide its digits and go on"
    if phase == "join" and number > 1:
        return f"round {number}: process {other} has the model of the others and takes part"
    return None


def _tell(event: Dict[str, Any]) -> None:
    line = line_of(event)
    if line:
        print(line, flush=True)


def main() -> None:
    torch.manual_seed(1)
    pictures, answers = digits()
    model = torch.nn.Sequential(torch.nn.Linear(_VALUES, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    loader = DataLoader(
        TensorDataset(pictures[:_TRAINED_ON], answers[:_TRAINED_ON]), batch_size=32, shuffle=True
    )

    run = tradewind.join()
    if os.environ["TRADEWIND_ID"] == "1":
        run.on_event(_tell)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=5e-3))
    for batch, targets in run.shard(loader):
        loss = torch.nn.functional.cross_entropy(model(batch), targets)
        loss.backward()
        time.sleep(_WORK_S)
        opt.step(loss=loss)
        opt.zero_grad()

    with torch.no_grad():
        right = (model(pictures[_TRAINED_ON:]).argmax(1) == answers[_TRAINED_ON:]).float().mean().item()
    parameters = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    digest = hashlib.sha256(bytes(parameters.view(torch.uint8).tolist()))
    results = Path(os.environ["TRADEWIND_DEMO_RESULTS"])
    (results / str(os.getpid())).write_text(f"{digest.hexdigest()[:12]} {right:.1%}")
    run.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once; the demo says so
    main()
