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
from .errors import (
    CondemnedError,
    DataError,
    EngineError,
    MisuseError,
    SettingError,
    TradewindError,
    TradewindWarning,
    UnsupportedError,
)
from .launch import launch_local
from .loop.styles import Optimizer, Summary
from .model.optimizers import Lamb
from .run import Run, join

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
