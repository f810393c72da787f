# SPDX-License-Identifier: Apache-2.0
"""Optimizers that the engine computes: recognised from the user's torch.optim object, with its groups."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from . import _abi
from ._device import view_of
from ._engine import Group
from ._lamb import Lamb
from ._layout import Entry, Layout

_KINDS: Dict[type, int] = {
    torch.optim.SGD: _abi.TW_SGD,
    torch.optim.Adam: _abi.TW_ADAM,
    torch.optim.AdamW: _abi.TW_ADAMW,
    Lamb: _abi.TW_LAMB,
}
_STATE_KEYS: Dict[int, Tuple[str, ...]] = {
    _abi.TW_SGD: ("momentum_buffer",),
    _abi.TW_ADAM: ("exp_avg", "exp_avg_sq"),
    _abi.TW_ADAMW: ("exp_avg", "exp_avg_sq"),
    _abi.TW_LAMB: ("exp_avg", "exp_avg_sq"),
}
# Options of torch's optimizers that change the formula in a way that the engine has not.
_NOT_ENGINE = ("maximize", "amsgrad", "differentiable", "decoupled_weight_decay")


def why_not(optimizer: torch.optim.Optimizer) -> Optional[str]:
    """Why the engine cannot compute this optimizer; None: it can."""
    kind = _KINDS.get(type(optimizer))
    if kind is None:
        return f"{type(optimizer).__name__} is none of SGD, Adam, AdamW, tradewind.Lamb"
    for group in optimizer.param_groups:
        for option in _NOT_ENGINE:
            if group.get(option) and not (option == "decoupled_weight_decay" and kind == _abi.TW_ADAMW):
                return f"{option}={group[option]} is not in the engine"
        if kind == _abi.TW_SGD and group["dampening"] != 0:
            return f"dampening={group['dampening']} is not in the engine"
    return None


def group_of(kind: int, settings: Dict[str, Any], tensors: int) -> Group:
    """tw_group of one of the optimizer's param_groups, as it is now."""
    beta1, beta2 = settings.get("betas", (0.0, 0.0))
    return Group(
        tensors=tensors,
        learning_rate=float(settings["lr"]),
        weight_decay=float(settings["weight_decay"]),
        momentum=float(settings.get("momentum", 0.0)),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(settings.get("eps", 0.0)),
        kind=kind,
        flags=_abi.TW_NESTEROV if settings.get("nesterov") else 0,
    )


class EngineRule:
    """The user's optimizer, computed by the engine: its state shows the engine's buffers, so state_dict()
    is true.
    """

    is_foreign = False
    state_values = 0

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        self._optimizer = optimizer
        self._layout = layout
        self._kind = _KINDS[type(optimizer)]

    @property
    def engine_buffers(self) -> int:
        """Vectors of the engine that have this optimizer's state."""
        return len(_STATE_KEYS[self._kind])

    def groups(self) -> Tuple[Group, ...]:
        """As param_groups are now."""
        return tuple(
            group_of(self._kind, settings, tensors)
            for settings, tensors in zip(self._layout.groups, self._layout.group_sizes)
        )

    def attach(self, buffers: Sequence[torch.Tensor], counts: Sequence[torch.Tensor]) -> None:
        """Shows the engine's buffers (float32) in the optimizer's state; what the state had is taken over. counts:
        the updates of each parameter.

        They are as long as the model, one for each moment; or group after group, each as long as its group.
        Without any (another rank of a node) nothing is shown.
        """
        at = 0
        by_group = self._by_group(buffers)
        for number, tensors in enumerate(self._layout.group_sizes):
            entries = self._layout.parameters[at : at + tensors]
            mine, begins_there = by_group[number]
            shift = entries[0].first if entries and begins_there else 0
            for number, entry in enumerate(entries, at):
                self._show(entry._replace(first=entry.first - shift), mine)
                if self._kind != _abi.TW_SGD:
                    self._optimizer.state[entry.tensor]["step"] = counts[number]
            at += tensors

    def _by_group(self, buffers: Sequence[torch.Tensor]) -> List[Tuple[Sequence[torch.Tensor], bool]]:
        """The buffers of each group, and whether they begin with the group."""
        keys = _STATE_KEYS[self._kind]
        total = sum(self._layout.tensor_sizes)
        if all(buffer.numel() in (0, total) for buffer in buffers) and len(buffers) <= len(keys):
            return [
                (buffers if self._has_state(number) else (), False) for number in range(self._group_count)
            ]
        left = list(buffers)
        found: List[Tuple[Sequence[torch.Tensor], bool]] = []
        for number in range(self._group_count):
            mine = len(keys) if self._has_state(number) else 0
            found.append((left[:mine], True))
            left = left[mine:]
        return found

    @property
    def _group_count(self) -> int:
        return len(self._layout.group_sizes)

    def _has_state(self, number: int) -> bool:
        settings = self._layout.groups[number]
        return self._kind != _abi.TW_SGD or bool(settings["momentum"])

    def _show(self, entry: Entry, buffers: Sequence[torch.Tensor]) -> None:
        state = self._optimizer.state[entry.tensor]
        for key, buffer in zip(_STATE_KEYS[self._kind], buffers):
            if buffer.numel():
                had, state[key] = state.get(key), view_of(buffer, entry)
                if had is not None:
                    state[key].copy_(had)
