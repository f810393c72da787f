# SPDX-License-Identifier: Apache-2.0
"""Trains a PyTorch model over many machines: your own loop, five lines, peers may come and go.

    run = tradewind.join("run.yaml")
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=3e-4))
    for batch in run.shard(loader):
        loss = model(batch).mean(); loss.backward()
        opt.step(); opt.zero_grad()

docs/python.md has the whole story.
"""

from . import data
from .engine.checkpoint import Checkpoint, load_checkpoint
from .errors import CondemnedError, DataError, EngineError, MisuseError, SettingError, TradewindError, TradewindWarning, UnsupportedError
from .model.optimizers import Lamb
from .launch import launch_local
from ._optimizer import Optimizer
from ._fit import Summary
from ._join import join
from ._run import Run

__all__ = [
    "Checkpoint",
    "CondemnedError",
    "DataError",
    "EngineError",
    "Lamb",
    "MisuseError",
    "Optimizer",
    "Run",
    "SettingError",
    "Summary",
    "TradewindError",
    "TradewindWarning",
    "UnsupportedError",
    "data",
    "join",
    "launch_local",
    "load_checkpoint",
]
