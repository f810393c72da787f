# SPDX-License-Identifier: Apache-2.0
"""Gradients that stay where they are: added there at each step(), they cross to the host once a round. Thread: the run's."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

import torch

from ..errors import MisuseError
from .device import Crossing, all_finite
from .layout import Entry
from .memory import view_of


class DeviceSums:
    """Weighted sums of the parameters' gradients, float32, each on the device of its parameter."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = tuple(entries)
        self._sums: List[Optional[torch.Tensor]] = [None] * len(self._entries)  # None: no gradient yet
        self._crossing = Crossing()

    @torch.no_grad()
    def add(self, weight: float) -> None:
        """The gradients in p.grad, each times weight."""
        there: Dict[torch.device, Tuple[List[torch.Tensor], List[torch.Tensor]]] = {}
        for at, entry in enumerate(self._entries):
            gradient = entry.tensor.grad
            if gradient is None:
                continue
            kept = self._sums[at]
            if kept is None:
                kept = self._sums[at] = torch.zeros_like(gradient, dtype=torch.float32)
            sums, gradients = there.setdefault(kept.device, ([], []))
            sums.append(kept)
            gradients.append(gradient if gradient.dtype == torch.float32 else gradient.float())
        for sums, gradients in there.values():  # one launch; for tensors of several devices it would be one each
            torch._foreach_add_(sums, gradients, alpha=weight)

    @torch.no_grad()
    def move_to(self, total: torch.Tensor) -> None:
        """Adds them to float32 [values of the vector] on the host, and begins at zero. MisuseError: one is not finite."""
        placed = [(entry, one) for entry, one in zip(self._entries, self._sums) if one is not None]
        sums = [one for _, one in placed]
        if not sums:
            return
        infinite = None if all_finite(sums) else self._infinite()
        if infinite is not None:
            raise MisuseError(
                f"the gradient of {infinite} is not finite: use a GradScaler, a lower learning rate, or"
                ' accumulate="host", with which step() refuses such a batch.'
            )
        for entry, values in self._crossing.each(placed):
            view_of(total, entry).add_(values)
        torch._foreach_zero_(sums)

    def _infinite(self) -> Optional[str]:
        """A name; None: the values are only large."""
        known = ((entry.name, one) for entry, one in zip(self._entries, self._sums) if one is not None)
        return next((name for name, one in known if not bool(torch.isfinite(one).all())), None)
