# SPDX-License-Identifier: Apache-2.0
"""Running statistics (BatchNorm) and frozen copies (EMA teachers) as part of the model.

The engine's vector holds the round's values. A forward pass moves the statistics away from them; at step() that
difference is handed in like a gradient, weighted with its samples, and they go back. So after a round every peer
has the same values, one step of their moving average a round, and how often a forward pass ran between two rounds
changes nothing. A frozen copy goes back only with the next round: the loop moves it once, after a step() that
applied one.
"""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch

from ._device import view_of
from ._errors import MisuseError
from ._layout import Entry
from ._moving import Moving


class MeanBuffers:
    """The buffers of one model and their range of the engine's vector. Thread: the run's."""

    def __init__(self, moving: Sequence[Moving], entries: Sequence[Entry], flat: torch.Tensor) -> None:
        self._moving = tuple(moving)
        self._base = [view_of(flat, entry) for entry in entries]

    @torch.no_grad()
    def differences(self) -> List[torch.Tensor]:
        """float32 on the host, each in its buffer's shape: what was added since the round. MisuseError: one that
        has another shape.
        """
        found: List[torch.Tensor] = []
        for one, base in zip(self._moving, self._base):
            value = one.tensor.detach()
            if value.shape != base.shape:
                raise MisuseError(
                    f"{one.name} has shape {tuple(value.shape)} now, {tuple(base.shape)} when the run started: a"
                    ' running statistic keeps its shape, or say buffers="local" in run.optimizer().'
                )
            found.append(value.to("cpu", torch.float32).contiguous().sub(base))
        return found

    def infinite(self) -> Optional[str]:
        """Name of a buffer that has a value which is not finite."""
        found = (one.name for one in self._moving if not bool(torch.isfinite(one.tensor).all()))
        return next(found, None)

    @torch.no_grad()
    def undo(self) -> None:
        """Running statistics get the round's values."""
        self._set(copies=False)

    @torch.no_grad()
    def reset(self) -> None:
        """All get the round's values."""
        self._set(copies=True)

    def _set(self, copies: bool) -> None:
        for one, base in zip(self._moving, self._base):
            if copies or not one.is_copy:
                one.tensor.detach().copy_(base)
