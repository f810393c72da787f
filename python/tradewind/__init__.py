# SPDX-License-Identifier: Apache-2.0
"""Trains a PyTorch model over many machines: your own loop, five lines, peers may come and go.

    run = tradewind.join("run.yaml")
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=3e-4))
    for batch in run.shard(loader):
        loss = model(batch).mean(); loss.backward()
        opt.step(); opt.zero_grad()

docs/python.md has the whole story.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from .errors import (
    NEEDS_NEWER_TORCH,
    NEEDS_TORCH,
    CondemnedError,
    DataError,
    EngineError,
    MisuseError,
    SettingError,
    TradewindError,
    TradewindWarning,
    UnsupportedError,
    is_new_enough,
)

if TYPE_CHECKING:
    from . import data
    from .engine.checkpoint import Checkpoint, load_checkpoint
    from .launch import launch_local
    from .loop.styles import Optimizer, Summary
    from .model.lamb import Lamb
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

# What needs PyTorch, and its module, which is imported when it is first asked for: the package brings `tw`, which is of use
# without PyTorch.
_NEEDS_TORCH = {
    "Checkpoint": ".engine.checkpoint",
    "Lamb": ".model.lamb",
    "Optimizer": ".loop.styles",
    "Run": ".run",
    "Summary": ".loop.styles",
    "join": ".run",
    "launch_local": ".launch",
    "load_checkpoint": ".engine.checkpoint",
}


def __getattr__(name: str) -> Any:
    if name != "data" and name not in _NEEDS_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        torch = import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"tradewind.{name} {NEEDS_TORCH}") from error
    if not is_new_enough(torch.__version__):
        raise ImportError(f"tradewind.{name} {NEEDS_NEWER_TORCH.format(torch.__version__)}")
    module = import_module(_NEEDS_TORCH.get(name, ".data"), __name__)
    value = module if name == "data" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
