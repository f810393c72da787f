# SPDX-License-Identifier: Apache-2.0
"""Peers whose own code fails."""

from __future__ import annotations

import time
from typing import Any, ClassVar, List, Optional

import torch
import tradewind
from loops import Report, SignMomentum, loop, start_only, watch
from models import data, loss_of, mlp

__all__ = ["loop", "own_optimizer", "start_only"]


class Failing(SignMomentum):
    """Its twentieth step raises (update), or asking for its scheduler's state does from then on (save)."""

    steps: ClassVar[List[int]] = []  # of the process: in an attribute of the object it would be state

    def __init__(self, params: Any, where: Optional[str]) -> None:
        super().__init__(params)
        self.where = where

    @property
    def fails(self) -> bool:
        return len(self.steps) >= 20

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        super().step()
        self.steps.append(1)
        if self.fails and self.where == "update":
            raise ArithmeticError("in update")


class Scheduler(torch.optim.lr_scheduler.LambdaLR):
    """Raises when its state is asked for (save), or given (load)."""

    def __init__(self, optimizer: Failing) -> None:
        self.failing = optimizer
        super().__init__(optimizer, lambda step: 1.0)

    def state_dict(self) -> Any:
        if self.failing.fails and self.failing.where == "save":
            raise ArithmeticError("in save")
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: Any) -> None:
        if self.failing.where == "load":
            raise ArithmeticError("in load")
        self.last_epoch = state_dict["last_epoch"]


def own_optimizer(report: Report, where: Optional[str] = None, batch: int = 8) -> Any:
    """Steps until something raises."""
    model = mlp()
    with tradewind.join() as run:
        watch(run, report)
        inner = Failing(model.parameters(), where)
        opt = run.optimizer(model, inner, scheduler=Scheduler(inner), batch_size=batch)
        run.start()
        inputs, targets = data(batch)
        while not run.finished:
            opt.zero_grad()
            loss_of(model, inputs, targets).backward()
            opt.step()
            time.sleep(0.005)
