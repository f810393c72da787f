# SPDX-License-Identifier: Apache-2.0
"""The rules by which the engine updates parameters: SGD, Adam, AdamW and Lamb, recognised from the user's torch.optim
object, with its groups. And what is no optimizer for a run.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch

from ..engine import abi
from ..engine.peer import Group
from ..errors import MisuseError, UnsupportedError, described
from .engine_rules import KINDS, group_of, why_not
from .kept import all_of
from .layout import Entry, Layout
from .memory import view_of

_STATE_KEYS: Dict[int, Tuple[str, ...]] = {
    abi.TW_SGD: ("momentum_buffer",),
    abi.TW_ADAM: ("exp_avg", "exp_avg_sq"),
    abi.TW_ADAMW: ("exp_avg", "exp_avg_sq"),
    abi.TW_LAMB: ("exp_avg", "exp_avg_sq"),
}


ONE_OPTIMIZER = (
    "a run has one optimizer: give it all parameters, in groups. Optimizers of two kinds, such as Muon and AdamW, go into"
    " a torch.optim.Optimizer whose param_groups are those of both, and whose step() calls theirs."
)

ONE_STEP = (
    "Where several gradients make a step (SAM), give the run the base optimizer, let the loop move the parameters, compute"
    " the last gradient and put the values back, and then call step()."
)


def swaps_weights(optimizer: Any) -> bool:
    """Whether its train() and eval() put other values into the parameters, as those of schedule-free optimizers."""
    return all(callable(getattr(optimizer, name, None)) for name in ("train", "eval"))


class Owner(NamedTuple):
    """An optimizer. name: of the attribute by which another one has it; of the loop's own empty."""

    name: str
    optimizer: Any


def attributes_of(value: Any) -> Dict[str, Any]:
    """By name."""
    return getattr(value, "__dict__", {})


def optimizers_in(optimizer: Any) -> List[Owner]:
    """It, and those that it has as attributes, also in lists, and so on."""
    found, seen = [Owner("", optimizer)], {id(optimizer)}
    for owner in found:  # which grows
        for name, one in all_of(attributes_of(owner.optimizer).items()):
            is_one = isinstance(one, torch.optim.Optimizer) or all(
                hasattr(one, part) for part in ("param_groups", "state", "step")
            )
            if is_one and not isinstance(one, type) and id(one) not in seen:
                seen.add(id(one))
                found.append(Owner(f"{owner.name}.{name}".lstrip("."), one))
    return found


class EngineRule:
    """The user's optimizer, computed by the engine: its state shows the engine's buffers, so state_dict()
    is true.
    """

    is_foreign = False
    updates_here = False
    state_values = 0

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        self._optimizer = optimizer
        self._layout = layout
        self._kind = KINDS[type(optimizer)]
        trained = {id(entry.tensor) for entry in layout.parameters}
        self._untrained = {id(one) for group in layout.groups for one in group["params"]} - trained
        self._at_start = self._fixed()
        self._shown: List[Tuple[Entry, str, torch.Tensor]] = []  # what the optimizer's state has to hold

    def _fixed(self) -> List[Dict[str, Any]]:
        """What stays as it is of each group."""
        return [
            {
                "parameters": [id(one) for one in group["params"] if id(one) not in self._untrained],
                "nesterov": bool(group.get("nesterov")),
                "has momentum": self._kind == abi.TW_SGD and bool(group["momentum"]),
            }
            for group in self._layout.groups
        ]

    def check(self) -> None:
        """MisuseError: the loop changed what the engine cannot follow."""
        what = why_not(self._optimizer) or self._changed()
        if what is not None:
            raise MisuseError(
                f"{what}. The engine computes {type(self._optimizer).__name__} as it was at the start: change it before"
                ' run.start(), or have torch compute it with engine="torch" in run.optimizer().'
            )

    def _changed(self) -> Optional[str]:
        for number, (before, now) in enumerate(zip(self._at_start, self._fixed())):
            mine, had = now["parameters"], before["parameters"]
            if len(mine) != len(had):
                return f"group {number} of the optimizer has {len(mine)} parameters now, {len(had)} when the run started"
            if mine != had:
                return f"group {number} of the optimizer has other parameters, or another order, than when the run started"
            if now["nesterov"] != before["nesterov"]:
                return f"nesterov of group {number} is {now['nesterov']} now"
            if now["has momentum"] and not before["has momentum"]:
                return f"momentum of group {number} was 0 when the run started, and is not now"
        for entry, key, tensor in self._shown:
            if self._optimizer.state.get(entry.tensor, {}).get(key) is not tensor:
                return (
                    f"{key} of {entry.name} in the optimizer's state was removed or replaced by the loop; values that"
                    " are changed in place count"
                )
        return None

    @property
    def engine_buffers(self) -> int:
        """Vectors of the engine that have this optimizer's state."""
        return len(_STATE_KEYS[self._kind])

    def facts(self) -> Iterable[str]:
        """What peers compare beside the settings: nothing."""
        return ()

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
                self._show(entry._replace(first=entry.first - shift), mine, counts[number])
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
        return self._kind != abi.TW_SGD or bool(settings["momentum"])

    def _show(self, entry: Entry, buffers: Sequence[torch.Tensor], count: torch.Tensor) -> None:
        state = self._optimizer.state[entry.tensor]
        for key, buffer in zip(_STATE_KEYS[self._kind], buffers):
            if buffer.numel():
                had, state[key] = state.get(key), view_of(buffer, entry)
                if had is not None:
                    state[key].copy_(had)
                self._shown.append((entry, key, state[key]))
        if self._kind != abi.TW_SGD:
            state["step"] = count
            self._shown.append((entry, "step", count))


def refuse_no_optimizer(optimizer: Any) -> None:
    """MisuseError: something else than an optimizer, or a wrapper that hides what it has."""
    if isinstance(optimizer, (list, tuple)):
        raise MisuseError(f"run.optimizer(model, optimizer): found {described(optimizer)}: {ONE_OPTIMIZER}")
    missing = [name for name in ("param_groups", "state", "step", "zero_grad") if not hasattr(optimizer, name)]
    if isinstance(optimizer, type) or missing:
        lacks = f" (it has no {missing[0]})" if missing else ""
        raise MisuseError(
            f"run.optimizer(model, optimizer): expected a torch.optim.Optimizer, found {optimizer!r:.80}{lacks}: give it"
            " one, such as torch.optim.AdamW(model.parameters())."
        )
    name = type(optimizer).__name__
    if not hasattr(type(optimizer), "step"):
        raise MisuseError(
            f"run.optimizer(model, optimizer): {name} has no step() of its own, it passes calls on: give the run the"
            f" optimizer inside, and wrap the result, as in {name}(opt=run.optimizer(model, optimizer))."
        )
    groups = optimizer.param_groups
    if groups and groups[0] is not optimizer.param_groups[0]:
        raise MisuseError(
            f"run.optimizer(model, optimizer): {name} makes its param_groups anew at each read, so its settings cannot be"
            " followed: give the run one of torch.optim, such as AdamW (fastai's OptimWrapper takes what it returns)."
        )


def refuse_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """UnsupportedError: one step() a round with the mean gradient cannot serve it, or an optimizer inside of it."""
    for _, one in optimizers_in(optimizer):
        if isinstance(one, torch.optim.LBFGS):
            raise UnsupportedError(
                "LBFGS computes several gradients in a step, a round has one: use another optimizer."
            )
        if isinstance(one, torch.optim.SparseAdam):
            raise UnsupportedError("SparseAdam needs sparse gradients, a mean over peers is dense: use Adam.")
    name = type(optimizer).__name__
    if not callable(getattr(optimizer, "step", None)):
        raise UnsupportedError(f"{name} has no step().")
    needed = [
        parameter.name
        for parameter in list(inspect.signature(type(optimizer).step).parameters.values())[1:]
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if needed:
        raise UnsupportedError(
            f"{name}.step() needs {', '.join(needed)}: only a step() without arguments can run."
        )


def updates_of(state: Mapping[str, Any]) -> float:
    """Updates that an optimizer has made of a parameter of which it has this state."""
    if "step" in state and isinstance(state["step"], (int, float, torch.Tensor)):
        return float(state["step"])
    return 1.0 if any(value is not None for value in state.values()) else 0.0
