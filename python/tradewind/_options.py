# SPDX-License-Identifier: Apache-2.0
"""Options of run.optimizer() beside model and optimizer."""

from __future__ import annotations

import math
from typing import Optional

from ._errors import SettingError
from ._scheduler import SchedulerLike

ENGINES = ("auto", "torch", "tradewind")
BUFFERS = ("mean", "local")


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

    def refuse_codec(self, codec: Optional[str]) -> None:
        """SettingError: a codec whose rounding could make a running variance negative."""
        if self.mean_buffers and codec in ("int8", "int4"):
            raise SettingError(
                f'running statistics (BatchNorm) cannot be averaged with codec={codec}: say buffers="local"'
                " in run.optimizer(), or codec=bf16."
            )
