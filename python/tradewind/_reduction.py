# SPDX-License-Identifier: Apache-2.0
"""Notices a loss that is a sum over its batch, by what autograd remembers of it: the run takes means."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch

from ._warn import program_frame, warn

_SUM = 2  # torch's number of reduction="sum"
_SAME = ("AliasBackward", "CloneBackward", "ToCopyBackward", "ViewBackward", "SqueezeBackward")
# Several losses in one sum: each may be a mean.
_SEVERAL = ("StackBackward", "CatBackward")
_STEPS = 3


def _is_sum(node: Any) -> bool:
    while node is not None and node.name().startswith(_SAME):
        node = node.next_functions[0][0]
    if node is None:
        return False
    if getattr(node, "_saved_reduction", None) == _SUM:
        return True
    inner = [one for one, _ in node.next_functions if one is not None]
    if node.name().startswith(("AddBackward", "SubBackward")):  # terms, such as a reconstruction and a penalty
        return any(getattr(one, "_saved_reduction", None) == _SUM for one in inner)
    if not node.name().startswith("SumBackward0") or not inner:
        return False
    if inner[0].name().startswith(_SEVERAL):
        return False
    sizes = getattr(node, "_saved_self_sym_sizes", getattr(node, "_saved_self_sizes", None))
    if sizes is not None and math.prod(sizes) == 1:
        return _is_sum(inner[0])
    return True


def is_sum(loss: Any) -> bool:
    """Whether this loss of a batch was summed over it. False where autograd does not tell (divided later,
    compiled).
    """
    return isinstance(loss, torch.Tensor) and loss.numel() == 1 and _is_sum(loss.grad_fn)


def _loss_of_program() -> Optional[torch.Tensor]:
    """A local of the line that calls step(), by its name."""
    for name, value in program_frame().f_locals.items():
        is_one = isinstance(value, torch.Tensor) and value.numel() == 1 and value.grad_fn is not None
        if is_one and "loss" in name.lower():
            return value
    return None


class SumLosses:
    """Looks at the losses of the first steps, and says once that they are sums."""

    def __init__(self) -> None:
        self._left = _STEPS

    def look(self, loss: Any, samples: int) -> None:
        """loss: as step() was told; if that is no tensor with a graph, it may stand in the program."""
        if not self._left or samples < 2:
            return
        self._left -= 1
        told = isinstance(loss, torch.Tensor) and loss.grad_fn is not None
        if is_sum(loss if told else _loss_of_program()):
            self._left = 0
            warn(
                f"the loss is a sum over the {samples} samples of the batch, and a run takes the gradient for"
                f" that of their mean: steps are {samples} times as long as meant. Use reduction=\"mean\", or"
                " divide the loss by the samples."
            )
