# SPDX-License-Identifier: Apache-2.0
"""Peers with a model of 2 M parameters, of which one goes away in the midst of a run."""

from __future__ import annotations

import ctypes
import hashlib
import time
from typing import Any, Dict

import torch
import tradewind
from loops import Report
from models import data, loss_of, mlp

WIDTH = 333_000
GONE_IN = 5
ROUNDS_AFTER = 8


def memory() -> Dict[str, float]:
    """VmRSS and VmHWM of this process, in vectors of the model."""
    with open("/proc/self/status") as status:
        found = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Vm")}
    vector = 4 * (6 * WIDTH + 1)
    return {key: int(found[key]) * 1024 / vector for key in ("VmRSS", "VmHWM")}


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")


class Loop:
    """Steps of one batch."""

    def __init__(self, report: Report) -> None:
        self.report, self.model = report, mlp(width=WIDTH)
        self.run = tradewind.join()
        inner = torch.optim.SGD(self.model.parameters(), lr=1e-8)
        self.opt = self.run.optimizer(self.model, inner, batch_size=4)
        self.batch = data(4)

    def loss(self) -> torch.Tensor:
        return loss_of(self.model, *self.batch)

    def until(self, round_: int) -> None:
        while not self.run.finished and self.run.round < round_:
            self.opt.zero_grad()
            self.loss().backward()
            if self.opt.step():
                self.tell()

    def tell(self) -> None:
        values = hashlib.sha1()
        for parameter in self.model.parameters():
            values.update(parameter.detach().numpy())
        self.report(what="model", round=self.run.round, sum=values.hexdigest())


def busy(report: Report) -> None:
    """Never ends."""
    Loop(report).until(1 << 60)


def sleep(loop: Loop, how: str, seconds: float) -> None:
    if how == "paused":
        with loop.run.paused("looking away"):
            time.sleep(seconds)
    elif how == "interpreter":  # a call that holds its lock, like a long sort
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    else:
        time.sleep(seconds)


def away(report: Report, seconds: float, how: str) -> Any:
    """Goes away for so long, comes back, takes part in some rounds and leaves."""
    loop = Loop(report)
    loop.until(GONE_IN)
    before = memory()["VmRSS"]
    forget_peak()
    sleep(loop, how, seconds)
    asleep = memory()["VmHWM"] - before
    loop.opt.step()
    back = loop.run.round
    loop.until(back + ROUNDS_AFTER)
    result = {"back": back, "vectors": memory()["VmHWM"] - before, "asleep": asleep}
    loop.run.close()
    return {**result, "loss": loop.loss().item()}
