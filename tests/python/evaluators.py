# SPDX-License-Identifier: Apache-2.0
"""Peers over run.shard, of which the first of the run evaluates now and then."""

from __future__ import annotations

import time
from typing import Any, Dict, List

import torch
from loops import Numbered, Report, begun, state_of
from models import loss_of
from torch.utils.data import DataLoader

# A peer that is away when the run ends has nobody to take the state from.
LAST = 40


def loop(report: Report, every: int, seconds: float = 0.0) -> Any:
    """seconds: an evaluation takes; every: so many rounds, 0: never."""
    run, model, opt = begun(report)
    handed: Dict[int, List[int]] = {}
    evaluations = 0
    for inputs, targets, indices in run.shard(DataLoader(Numbered(60), batch_size=3)):
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        time.sleep(0.02)
        order, dropped = run._life.loop.driver.order, run.metrics["dropped"]
        applied = opt.step()
        if run.metrics["dropped"] == dropped:
            handed.setdefault(order.round, []).extend(indices.tolist())
        due = every and run.round // every > evaluations and run.round < LAST
        if applied and due and run.is_first:
            evaluations += 1
            with run.paused("evaluating"):
                model.eval()
                with torch.no_grad():
                    loss_of(model, inputs, targets)
                time.sleep(seconds)
                model.train()
    result = {"state": state_of(model), "handed": handed, "evaluations": evaluations}
    run.close()
    return result
