# SPDX-License-Identifier: Apache-2.0
"""Settings of an optimizer's groups (learning rates, decay, ...) as plain values and texts, which peers compare and
send. An object of numbers, texts and lists is plain.
"""

from __future__ import annotations

import json
import operator
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ._errors import UnsupportedError

# Plain settings of each group, without its parameters.
Plain = List[Dict[str, Any]]

PAIRS = "\0pairs"
# The engine takes no longer text (tradewind.h).
MOST_BYTES = 4000
# -2.2250738585072014e-308 has 24.
_MOST_NUMBER = 25
# Settings that schedulers move, and where the optimizer keeps what the program said.
_SCHEDULED = {"lr": "initial_lr", "momentum": None, "betas": None}
_OWN = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum")


def plain_value(value: Any, where: str) -> Any:
    """value as JSON has it. UnsupportedError names the key of what is none."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain_value(item, f"{where}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, dict):
        return _plain_dict(value, where)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise UnsupportedError(
        f"{where} is a {type(value).__name__}: the state of a scheduler has to be JSON (numbers, texts,"
        " lists) to be given to other peers."
    )


def _plain_dict(value: Dict[Any, Any], where: str) -> Any:
    kept = {key: item for key, item in value.items() if not callable(item)}
    if all(isinstance(key, str) for key in kept):
        return {key: plain_value(item, f"{where}.{key}") for key, item in kept.items()}
    pairs = sorted(kept.items())
    return {PAIRS: [[plain_value(key, where), plain_value(item, f"{where}[{key!r}]")] for key, item in pairs]}


def plain_groups(groups: Sequence[Dict[str, Any]]) -> Plain:
    """Settings of the groups now. UnsupportedError names the key of what no peer can get."""
    return [
        {
            key: plain_value(value, f"param_groups[{at}].{key}")
            for key, value in group.items()
            if key != "params" and not callable(value)
        }
        for at, group in enumerate(groups)
    ]


class Settings:
    """Notices cheaply that groups have the very settings that they had at mark()."""

    def __init__(self, groups: Sequence[Dict[str, Any]]) -> None:
        self._groups = groups
        self._marked: Optional[List[Any]] = None

    def _now(self) -> List[Any]:
        return [value for group in self._groups for key, value in group.items() if key != "params"]

    def mark(self) -> None:
        """Their settings now; those that may change in place are never the same."""
        values = self._now()
        self._marked = values if all(map(_is_fixed, values)) else None

    @property
    def are_as_marked(self) -> bool:
        """False where that is not known."""
        if self._marked is None:
            return False
        values = self._now()
        return len(values) == len(self._marked) and all(map(operator.is_, values, self._marked))


def _is_fixed(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return value is None or isinstance(value, (bool, int, float, str))


def scalars(plain: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """("milestones.0", 3) of each number and text in a plain value."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from scalars(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list):
        for at, value in enumerate(plain):
            yield from scalars(value, f"{path}.{at}")
    else:
        yield path, plain


def room_of(plain: Any) -> int:
    """Bytes that a plain value takes as JSON at most, whatever its numbers are."""
    if isinstance(plain, dict):
        return 2 + sum(len(json.dumps(key)) + 2 + room_of(value) for key, value in plain.items())
    if isinstance(plain, list):
        return 2 + sum(room_of(value) + 1 for value in plain)
    return max(_MOST_NUMBER, len(json.dumps(plain)) if isinstance(plain, str) else 0)


def _as_given(group: Dict[str, Any], key: str, optimizer: torch.optim.Optimizer, scheduled: bool) -> Any:
    """A setting as the program gave it: schedulers and loops have moved what a process goes on from."""
    if key == "lr" and "initial_lr" in group:
        return group["initial_lr"]
    if key in _SCHEDULED and (scheduled or optimizer.state):
        return optimizer.defaults.get(key, group[key])
    return group[key]


def group_facts(
    groups: Sequence[Dict[str, Any]], optimizer: torch.optim.Optimizer, scheduled: bool
) -> Iterator[str]:
    """"lr: 0.1", or "lr of group 1: 0.1" where groups differ."""
    for key in sorted({key for group in groups for key in group} - {"params", *_OWN}):
        values = [
            plain_value(_as_given(group, key, optimizer, scheduled), key) if key in group else None
            for group in groups
        ]
        if all(value == values[0] for value in values):
            yield f"{key}: {values[0]}"
        else:
            yield from (f"{key} of group {at}: {value}" for at, value in enumerate(values))


def difference(agreed: Plain, mine: Plain) -> str:
    """What mine has beside agreed: {"lr": [of each group], ...}, one value where it is that of all; empty: nothing."""
    found: Dict[str, Any] = {}
    for key in sorted({key for group in mine for key in group}):
        values = [group.get(key) for group in mine]
        if values != [group.get(key) for group in agreed]:
            same = all(value == values[0] for value in values)
            found[key] = {"all": values[0]} if same else values
    return json.dumps(found, separators=(",", ":")) if found else ""


def applied(agreed: Plain, text: str) -> Plain:
    """agreed with what difference() said."""
    settings = [dict(group) for group in agreed]
    for key, values in (json.loads(text) if text else {}).items():
        of_each = [values["all"]] * len(settings) if isinstance(values, dict) else values
        for group, value in zip(settings, of_each):
            group[key] = value
    return settings


def first_differences(mine: Plain, theirs: Plain) -> Iterator[Tuple[int, str, Any, Any]]:
    """(group, key, own value, theirs): the first group of each key that differs."""
    seen = set()
    for number, (own, other) in enumerate(zip(mine, theirs)):
        for key in sorted(own):
            if key not in seen and own[key] != other.get(key):
                seen.add(key)
                yield number, key, own[key], other.get(key)
