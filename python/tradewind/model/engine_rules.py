# SPDX-License-Identifier: Apache-2.0
"""Which optimizers of torch the engine computes, their settings for it, and what settings may be."""

from __future__ import annotations

import math
import numbers
import os
from importlib import import_module
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from ..engine import abi
from ..engine.peer import Group
from .lamb import Lamb
from .state import scalars

_TORCH = os.path.dirname(torch.__file__) + os.sep

KINDS: Dict[type, int] = {
    torch.optim.SGD: abi.TW_SGD,
    torch.optim.Adam: abi.TW_ADAM,
    torch.optim.AdamW: abi.TW_ADAMW,
    Lamb: abi.TW_LAMB,
}

# Options of torch's optimizers that change the formula in a way that the engine has not.
_NOT_ENGINE = ("maximize", "amsgrad", "differentiable", "decoupled_weight_decay")


def kind_of(optimizer: torch.optim.Optimizer) -> Optional[int]:
    """tw_kind of the engine's rule; None: it has none."""
    return KINDS.get(type(optimizer))


def counts_nothing(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its steps do not depend on how many there were: SGD without momentum."""
    return type(optimizer) is torch.optim.SGD and not any(group["momentum"] for group in optimizer.param_groups)


def why_not(optimizer: torch.optim.Optimizer) -> Optional[str]:
    """Why the engine cannot compute this optimizer; None: it can."""
    kind = KINDS.get(type(optimizer))
    if kind is None:
        return f"{type(optimizer).__name__} is none of SGD, Adam, AdamW, tradewind.Lamb"
    for group in optimizer.param_groups:
        for option in _NOT_ENGINE:
            if group.get(option) and not (option == "decoupled_weight_decay" and kind == abi.TW_ADAMW):
                return f"{option}={group[option]} is not in the engine"
        if kind == abi.TW_SGD and group["dampening"] != 0:
            return f"dampening={group['dampening']} is not in the engine"
        if kind == abi.TW_SGD and not 0 <= group["momentum"] < 1:
            return f"momentum={group['momentum']} is not in the engine, which has those from 0 to below 1"
        if kind != abi.TW_SGD and not group["eps"] > 0:
            return f"eps={group['eps']} is not in the engine, which has those above 0"
    return _why_not_its_step(optimizer)


def _is_torchs(function: Any) -> bool:
    code = getattr(function, "__code__", None)  # functools.wraps() copies all but this
    return code is not None and str(code.co_filename).startswith(_TORCH)


def _without_torchs_wrappers(step: Any) -> Any:
    """torch's schedulers wrap step() of the object, and its profiler that of the class."""
    step = getattr(step, "__func__", step)
    while hasattr(step, "__wrapped__") and _is_torchs(step):
        step = getattr(step.__wrapped__, "__func__", step.__wrapped__)
    return step


# Hooks of step(), in PyTorch 2: those of one optimizer, and those of all.
ITS_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
_ALL_HOOKS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
_HAS_THOSE = import_module("torch.optim.optimizer")  # torch.optim has no attribute of it


def hooks_of(optimizer: torch.optim.Optimizer) -> Optional[str]:
    """Which hooks of step() the program has registered; None: none."""
    if any(getattr(optimizer, hooks, None) for hooks in ITS_HOOKS):
        return "it has hooks of step()"
    registered = [hook for hooks in hooks_of_all() for hook in hooks.values()]
    # torch's own count steps for its profilers
    return None if all(map(_is_torchs, registered)) else "hooks of step() are registered for all optimizers"


def hooks_of_all() -> List[Dict[Any, Any]]:
    """Where torch keeps those of all optimizers."""
    return [getattr(_HAS_THOSE, hooks) for hooks in _ALL_HOOKS if hasattr(_HAS_THOSE, hooks)]


def has_another_step(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the program replaced step() of this object."""
    its = getattr(optimizer, "__dict__", {}).get("step")
    return its is not None and _without_torchs_wrappers(its) is not _without_torchs_wrappers(type(optimizer).step)


def _why_not_its_step(optimizer: torch.optim.Optimizer) -> Optional[str]:
    what = hooks_of(optimizer) or ("its step() was replaced" if has_another_step(optimizer) else None)
    return None if what is None else f"{what}, which the engine would not call"


def _is_amount(value: Any) -> bool:
    return isinstance(value, numbers.Real) and 0 <= float(value) < math.inf


def _is_share(value: Any) -> bool:
    return _is_amount(value) and value < 1


# Whether a plain value may stand there, and what may.
_Bound = Tuple[Callable[[Any], bool], str]
_AMOUNT: _Bound = (_is_amount, "a number of at least 0")
_ABOVE_0: _Bound = (lambda value: _is_amount(value) and value > 0, "a number above 0")
_SHARE: _Bound = (_is_share, "a number from 0 to below 1")
_SHARES: _Bound = (
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_share, value)),
    "two numbers from 0 to below 1",
)
_AMOUNT_OR_NONE: _Bound = (lambda value: value is None or _is_amount(value), _AMOUNT[1])
_FINITE: _Bound = (
    lambda value: all(math.isfinite(one) for _, one in scalars(value) if isinstance(one, float)),
    "finite numbers",
)

_OF_MOMENTS = {"lr": _AMOUNT, "weight_decay": _AMOUNT, "betas": _SHARES, "eps": _ABOVE_0}
_BOUNDS: Dict[Optional[int], Dict[str, _Bound]] = {
    abi.TW_SGD: {"lr": _AMOUNT, "weight_decay": _AMOUNT, "momentum": _SHARE},
    abi.TW_ADAM: _OF_MOMENTS,
    abi.TW_ADAMW: _OF_MOMENTS,
    abi.TW_LAMB: _OF_MOMENTS,
    # An optimizer that runs as it is, of whose settings only the names are known.
    None: {
        "lr": _AMOUNT_OR_NONE,
        "weight_decay": _AMOUNT_OR_NONE,
        "momentum": _FINITE,
        "betas": _FINITE,
        "eps": _FINITE,
    },
}


def fault_of(groups: Sequence[Mapping[str, Any]], kind: Optional[int]) -> Optional[str]:
    """Names the first setting that would spoil the parameters; None: there is none. groups: plain settings; kind: of the
    engine's rule, None where torch computes. The engine has the same bounds (caller_model.cc).
    """
    for at, group in enumerate(groups):
        for key, (is_right, expected) in _BOUNDS[kind].items():
            if key in group and not is_right(group[key]):
                return f"{key} of group {at} is {group[key]!r}: expected {expected}."
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
        flags=abi.TW_NESTEROV if settings.get("nesterov") else 0,
    )
