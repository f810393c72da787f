# SPDX-License-Identifier: Apache-2.0
"""Learning rates by round: schedulers step once a round on every peer, and their state is part of the run's.

The state is JSON in a vector of fixed size: that of the schedulers, and all settings of the optimizer's
groups (lr, betas, initial_lr, ...), since many schedulers compute the next rate from the last one.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Sequence

import torch

from ._errors import UnsupportedError

MakeScheduler = Callable[[torch.optim.Optimizer], Any]
# An object with step(), a function that makes one, several of them, or None.
SchedulerLike = Any

_PAIRS = "\0pairs"
_LENGTH_BYTES = 8
_ROOM_BYTES = 1024


def make_schedulers(scheduler: SchedulerLike, optimizer: torch.optim.Optimizer) -> List[Any]:
    """The schedulers that `scheduler` means: objects with step(), functions of the optimizer, or several of
    them.
    """
    if scheduler is None:
        return []
    if isinstance(scheduler, (list, tuple)):
        return [made for one in scheduler for made in make_schedulers(one, optimizer)]
    make: MakeScheduler = scheduler
    is_one = hasattr(scheduler, "step") and not isinstance(scheduler, type)
    made = scheduler if is_one else make(optimizer)
    refuse_scheduler(made)
    return [made]


def refuse_scheduler(scheduler: Any) -> None:
    """UnsupportedError: one whose step needs what only this peer knows, or that has no state."""
    name = type(scheduler).__name__
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise UnsupportedError(
            "ReduceLROnPlateau decides by a metric of one peer, so peers would differ: use a scheduler of"
            " the round."
        )
    for method in ("step", "state_dict", "load_state_dict"):
        if not callable(getattr(scheduler, method, None)):
            raise UnsupportedError(
                f"the scheduler {name} has no {method}(), so its state cannot be given to other peers."
            )


def count_step(optimizer: torch.optim.Optimizer) -> None:
    """What torch's schedulers look at to warn of a step() before the optimizer's."""
    counted: Any = optimizer
    counted._step_count = getattr(optimizer, "_step_count", 0) + 1
    counted._opt_called = True


def _plain(value: Any, where: str) -> Any:
    """value as JSON has it. UnsupportedError names the key of what is none."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{at}]") for at, item in enumerate(value)]
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
        return {key: _plain(item, f"{where}.{key}") for key, item in kept.items()}
    pairs = sorted(kept.items())
    return {_PAIRS: [[_plain(key, where), _plain(item, f"{where}[{key!r}]")] for key, item in pairs]}


def _like(current: Any, plain: Any) -> Any:
    """plain in the types that current has: tuples, counters, functions that no JSON holds."""
    if isinstance(current, dict) and isinstance(plain, dict):
        items = dict(plain[_PAIRS]) if _PAIRS in plain else plain
        merged = {key: _like(current.get(key), item) for key, item in items.items()}
        merged.update({key: item for key, item in current.items() if callable(item)})
        return type(current)(merged) if type(current) is not dict else merged
    if isinstance(current, (list, tuple)) and isinstance(plain, list):
        known = list(current) + [None] * (len(plain) - len(current))
        return type(current)(_like(known[at], item) for at, item in enumerate(plain))
    if isinstance(current, torch.Tensor) and isinstance(plain, (int, float)):
        return current.fill_(plain)
    return plain


class Schedule:
    """Schedulers and group settings of one optimizer. Thread: the run's."""

    def __init__(self, optimizer: torch.optim.Optimizer, schedulers: Sequence[Any]) -> None:
        self._optimizer = optimizer
        self._schedulers = tuple(schedulers)
        needed = _LENGTH_BYTES + 2 * len(self.text().encode())
        self._capacity = (needed // _ROOM_BYTES + 2) * _ROOM_BYTES

    @property
    def state_values(self) -> int:
        """float32 values that hold the state: twice what it takes at the beginning, and 1 KiB or more."""
        return self._capacity // 4

    def step(self) -> None:
        """A round was applied."""
        count_step(self._optimizer)
        for scheduler in self._schedulers:
            scheduler.step()

    def text(self) -> str:
        """The state as JSON, the same text on every peer. UnsupportedError names the key of what is none."""
        groups = [
            {key: value for key, value in group.items() if key != "params"}
            for group in self._optimizer.param_groups
        ]
        state = {
            "groups": [_plain(group, f"param_groups[{at}]") for at, group in enumerate(groups)],
            "schedulers": [
                _plain(scheduler.state_dict(), type(scheduler).__name__) for scheduler in self._schedulers
            ],
        }
        return json.dumps(state, sort_keys=True, separators=(",", ":"))

    def save(self, vector: torch.Tensor) -> None:
        """Writes the state to float32 [state_values]."""
        content = self.text().encode()
        framed = len(content).to_bytes(_LENGTH_BYTES, "little") + content
        if len(framed) > self._capacity:
            raise UnsupportedError(
                f"the state of the schedulers has grown to {len(content)} bytes, room for {self._capacity}"
                " was made at the start: it must not grow without end."
            )
        written = vector.view(torch.uint8)
        written[: len(framed)].copy_(torch.tensor(list(framed), dtype=torch.uint8))
        written[len(framed) :].zero_()

    def load(self, vector: torch.Tensor) -> None:
        """Reads the state from float32 [state_values]; zeros: nothing was written yet."""
        content = vector.view(torch.uint8).numpy().tobytes()
        length = int.from_bytes(content[:_LENGTH_BYTES], "little")
        if length == 0:
            return
        state = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
        for group, plain in zip(self._optimizer.param_groups, state["groups"]):
            for key, value in plain.items():
                group[key] = _like(group.get(key), value)
        for scheduler, plain in zip(self._schedulers, state["schedulers"]):
            scheduler.load_state_dict(_like(scheduler.state_dict(), plain))


class RoundScheduler:
    """The result of run.scheduler(s): s, whose step() does nothing, since the run steps it once a round."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def step(self, *_: Any, **__: Any) -> None:
        """Nothing: the run does it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)
