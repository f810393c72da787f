# SPDX-License-Identifier: Apache-2.0
"""Options of run.optimizer() beside model and optimizer."""

from __future__ import annotations

import math
from typing import Optional

from ._errors import SettingError
from ._layout import Means
from ._scheduler import SchedulerLike

ENGINES = ("auto", "torch", "tradewind")
BUFFERS = ("mean", "local")
_COARSE = ("int8", "int4")


class TrainedOptions:
    """Checked options of run.optimizer(); SettingError names a wrong one."""

    def __init__(
        self,
        scheduler: SchedulerLike,
        clip_grad_norm: Optional[float],
        buffers: str,
        engine: str,
        alias: bool,
    ) -> None:
        if engine not in ENGINES:
            raise SettingError(f"engine={engine!r}: expected one of {', '.join(ENGINES)}.")
        if buffers not in BUFFERS:
            raise SettingError(f"buffers={buffers!r}: expected one of {', '.join(BUFFERS)}.")
        if clip_grad_norm is not None and not (clip_grad_norm > 0 and math.isfinite(clip_grad_norm)):
            raise SettingError(f"clip_grad_norm={clip_grad_norm}: expected a number above 0.")
        self.scheduler = scheduler
        self.clip_norm = clip_grad_norm or 0.0
        self.mean_buffers = buffers == "mean"
        self.engine = engine
        self.alias = alias

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
