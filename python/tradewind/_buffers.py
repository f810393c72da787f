# SPDX-License-Identifier: Apache-2.0
"""Running statistics (BatchNorm) as part of the model: one step of their moving average a round.

The engine's vector holds the round's values. A forward pass moves the module's buffers away from them; at
step() that difference is handed in like a gradient, weighted with its samples, and the buffers go back. So
after a round every peer has the same values, and how often a forward pass ran between two rounds changes
nothing.
"""

from __future__ import annotations

from typing import List, Sequence

import torch

from ._device import view_of
from ._layout import Entry


class MeanBuffers:
    """The buffers of one model and their range of the engine's vector. Thread: the run's."""

    def __init__(self, entries: Sequence[Entry], flat: torch.Tensor) -> None:
        self._entries = tuple(entries)
        self._base = [view_of(flat, entry) for entry in entries]

    @torch.no_grad()
    def differences(self) -> List[torch.Tensor]:
        """float32 on the host, each in its buffer's shape: what forward passes added since reset()."""
        return [
            entry.tensor.detach().to("cpu", torch.float32).contiguous().sub(base)
            for entry, base in zip(self._entries, self._base)
        ]

    @torch.no_grad()
    def reset(self) -> None:
        """The buffers get the round's values."""
        for entry, base in zip(self._entries, self._base):
            entry.tensor.copy_(base)
