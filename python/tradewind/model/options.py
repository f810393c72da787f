# SPDX-License-Identifier: Apache-2.0
"""What run.optimizer() was told, checked."""

from __future__ import annotations

import math
import numbers
from typing import Any, Optional, Sequence

import torch

from ..errors import SettingError, truth
from .device import is_away
from .layout import Means
from .on_device import can_update
from .schedule import SchedulerLike

ENGINES = ("auto", "torch", "tradewind")
BUFFERS = ("mean", "local")
ACCUMULATES = ("auto", "host", "device")
_COARSE = ("int8", "int4")


def _is_above_0(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < math.inf


class TrainedOptions:
    """Checked options of run.optimizer(); SettingError names a wrong one."""

    def __init__(
        self,
        scheduler: SchedulerLike,
        clip_grad_norm: Optional[float],
        buffers: str,
        engine: str,
        alias: bool,
        accumulate: str = "auto",
    ) -> None:
        if accumulate not in ACCUMULATES:
            raise SettingError(f"accumulate={accumulate!r}: expected one of {', '.join(ACCUMULATES)}.")
        if engine not in ENGINES:
            raise SettingError(f"engine={engine!r}: expected one of {', '.join(ENGINES)}.")
        if buffers not in BUFFERS:
            raise SettingError(f"buffers={buffers!r}: expected one of {', '.join(BUFFERS)}.")
        if clip_grad_norm is not None and not _is_above_0(clip_grad_norm):
            raise SettingError(f"clip_grad_norm={clip_grad_norm!r}: expected a number above 0.")
        self.scheduler = scheduler
        self.clip_norm = clip_grad_norm or 0.0
        self.mean_buffers = buffers == "mean"
        self.engine = engine
        self.alias = truth("alias", alias)
        self.accumulate = accumulate
        self.seed = 1  # of the run
        self.in_group = False  # all ranks of a node get the parameters from the host

    def keeps_gradients(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether they are added where they are, until a round asks for their sum."""
        if self.accumulate == "auto":
            return any(map(is_away, tensors))
        return self.accumulate == "device"

    def updates_on_device(self, optimizer: torch.optim.Optimizer, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the engine's rule is computed where they are."""
        return self.engine == "auto" and not self.in_group and can_update(optimizer, tensors)

    def means(self, codec: Optional[str]) -> Means:
        """What is averaged beside parameters. Copies of the model are with a codec that keeps them near enough."""
        return Means(self.mean_buffers, self.mean_buffers and codec not in _COARSE)

    def refuse_codec(self, codec: Optional[str]) -> None:
        """SettingError: a codec whose rounding could make a running variance negative."""
        if self.mean_buffers and codec in _COARSE:
            raise SettingError(
                f'running statistics (BatchNorm) cannot be averaged with codec={codec}: say buffers="local"'
                " in run.optimizer(), or codec=bf16."
            )
