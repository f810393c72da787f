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
_LATE, _SLOWER = 5, 10  # the process that joins; how many times longer a batch takes while it is not there
_LAST_CALL = 20  # rounds before the end in which the others slow down for it


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


class Pace:
    """How long the work at a batch takes. On a busy machine PyTorch takes longer to load than the run to end."""

    def __init__(self, rounds: int) -> None:
        self._last_call = rounds - _LAST_CALL
        self.work_s = _WORK_S

    def hear(self, event: Dict[str, Any]) -> Optional[str]:
        """What process 1 says when it begins to wait, once."""
        if event["phase"] != "commit":
            return None
        before = self.work_s
        waits = event["round"] >= self._last_call and _LATE not in event["peers"]
        self.work_s = _WORK_S * (_SLOWER if waits else 1)
        if self.work_s <= before:
            return None
        return f"round {event['round']}: process {_LATE} still loads PyTorch. The others slow down for it"


def _tell(line: Optional[str]) -> None:
    if line and os.environ["TRADEWIND_ID"] == "1":
        print(line, flush=True)


def main() -> None:
    torch.manual_seed(1)
    pictures, answers = digits()
    model = torch.nn.Sequential(torch.nn.Linear(_VALUES, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    loader = DataLoader(
        TensorDataset(pictures[:_TRAINED_ON], answers[:_TRAINED_ON]), batch_size=32, shuffle=True
    )

    run = tradewind.join()
    pace = Pace(int(os.environ["TRADEWIND_DEMO_ROUNDS"]))
    run.on_event(lambda event: _tell(line_of(event)))
    run.on_event(lambda event: _tell(pace.hear(event)))
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=5e-3))
    for batch, targets in run.shard(loader):
        loss = torch.nn.functional.cross_entropy(model(batch), targets)
        loss.backward()
        time.sleep(pace.work_s)
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
