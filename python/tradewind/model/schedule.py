# SPDX-License-Identifier: Apache-2.0
"""Learning rates by round: schedulers step once a round on every peer, and their state is part of the run's.

The state is JSON in a vector of fixed size: that of the schedulers, and all settings of the optimizer's
groups (lr, betas, initial_lr, ...), since many schedulers compute the next rate from the last one.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set

import torch

from ..errors import UnsupportedError, warn
from .layout import Layout
from .state import (
    MOST_BYTES,
    PAIRS,
    Plain,
    Settings,
    applied,
    difference,
    first_differences,
    group_facts,
    plain_groups,
    plain_value,
    room_of,
    scalars,
)

MakeScheduler = Callable[[torch.optim.Optimizer], Any]
# An object with step(), a function that makes one, several of them, or None.
SchedulerLike = Any

# Keys of schedulers that say how far they are, which travels with the state.
_PROGRESS = {"last_epoch", "_step_count", "T_cur", "T_i", "_last_lr", "verbose", "_initial_step", "_is_initial"}
_LENGTH_BYTES = 8
# Rounds in which what a loop wants may come too late.
_PATIENCE = 3
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


def _like(current: Any, plain: Any) -> Any:
    """plain in the types that current has: tuples, counters, functions that no JSON holds."""
    if isinstance(current, dict) and isinstance(plain, dict):
        items = dict(plain[PAIRS]) if PAIRS in plain else plain
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
    """Schedulers, and the settings of the optimizer's groups. Thread: the run's.

    The run's settings are those after its last round. A loop that sets others wants them for the next update; one
    peer of the round decides, and all follow it (state.py).
    """

    def __init__(self, layout: Layout, optimizer: torch.optim.Optimizer, schedulers: Sequence[Any]) -> None:
        self._groups = layout.groups
        self._optimizer = optimizer
        self._schedulers = tuple(schedulers)
        self._agreed = plain_groups(self._groups)
        self._settings = Settings(layout.groups)  # marked when they are those agreed on
        self._told: Set[str] = set()
        self._wish = ""  # of this loop, which the last round's record does not have
        self._asked = False
        self._ignored = 0  # rounds in which it was told and not followed
        needed = _LENGTH_BYTES + 2 * room_of(json.loads(self.text()))
        self._capacity = (needed // _ROOM_BYTES + 2) * _ROOM_BYTES

    @property
    def state_values(self) -> int:
        """float32 values that hold the state: twice what it takes at the most, and 1 KiB or more. The same on peers
        that begin at different places of the schedule.
        """
        return self._capacity // 4

    def facts(self) -> List[str]:
        """What peers compare, a line each: settings as the program gave them, whatever round it goes on from."""
        return [*group_facts(self._groups, self._optimizer, bool(self._schedulers)), *self._scheduler_facts()]

    def _scheduler_facts(self) -> Iterator[str]:
        for scheduler in self._schedulers:
            name = type(scheduler).__name__
            yield f"scheduler: {name}"
            for path, value in sorted(scalars(plain_value(scheduler.state_dict(), name))):
                if not _PROGRESS & set(path.split(".")):
                    yield f"{name}.{path}: {value}"

    def wanted(self) -> str:
        """What the loop wants for the next update, beside the run's settings; empty: nothing."""
        self._asked = True
        if self._settings.are_as_marked:
            return ""
        text = difference(self._agreed, plain_groups(self._groups))
        if not text:
            self._settings.mark()
        if len(text.encode()) <= MOST_BYTES:
            return text
        self._tell_once(
            "settings",
            f"the settings that this loop changes by hand take {len(text.encode())} bytes, {MOST_BYTES} travel: the"
            " run goes on without them. Give the schedule to run.optimizer(scheduler=).",
        )
        return ""

    def follow(self, wanted: str, round: int) -> None:
        """The groups get the settings of this round's update, which one peer wanted. What this loop wants may come
        too late for one round, and is wanted for the next.
        """
        if not wanted and self._settings.are_as_marked:
            self._wish, self._ignored, self._asked = "", 0, False
            return
        mine = plain_groups(self._groups)
        settings = applied(self._agreed, wanted)
        wish, asked, self._asked = difference(self._agreed, mine), self._asked, False
        if not wish or mine == settings:
            self._wish, self._ignored = "", 0
        elif not wanted and self._ignored < _PATIENCE:
            self._wish, self._ignored = wish, self._ignored + asked
        else:
            self._wish, self._ignored = "", 0
            for number, key, own, theirs in first_differences(mine, settings):
                self._tell_once(
                    key,
                    f"{key} of group {number} is {own} here and {theirs} in the run, in round {round}: this peer"
                    " follows the run. Set it by run.round, not by a count of this process, or give the schedule to"
                    " run.optimizer(scheduler=) or run.scheduler().",
                )
        self._set(settings)

    def _tell_once(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            warn(text)

    def _set(self, settings: Plain) -> None:
        for group, plain in zip(self._groups, settings):
            for key, value in plain.items():
                if plain_value(group.get(key), key) != value:
                    group[key] = _like(group.get(key), value)

    def step(self) -> None:
        """A round was applied."""
        count_step(self._optimizer)
        for scheduler in self._schedulers:
            scheduler.step()
        if not self._wish and self._settings.are_as_marked:
            return
        self._agreed = plain_groups(self._groups)
        if self._wish:
            self._set(applied(self._agreed, self._wish))

    def text(self, begun: Sequence[int] = (0, 0)) -> str:
        """The state as JSON, the same text on every peer. UnsupportedError names the key of what is none. begun:
        rounds and samples of a run before.
        """
        state = {
            "begun": list(begun),
            "groups": self._agreed,
            "schedulers": [
                plain_value(scheduler.state_dict(), type(scheduler).__name__) for scheduler in self._schedulers
            ],
        }
        return json.dumps(state, sort_keys=True, separators=(",", ":"))

    def save(self, vector: torch.Tensor, begun: Sequence[int]) -> None:
        """Writes the state to float32 [state_values]."""
        content = self.text(begun).encode()
        framed = len(content).to_bytes(_LENGTH_BYTES, "little") + content
        if len(framed) > self._capacity:
            raise UnsupportedError(
                f"the state of the schedulers has grown to {len(content)} bytes, room for {self._capacity}"
                " was made at the start: it must not grow without end."
            )
        written = vector.view(torch.uint8)
        written[: len(framed)].copy_(torch.tensor(list(framed), dtype=torch.uint8))
        written[len(framed) :].zero_()

    def load(self, vector: torch.Tensor) -> Optional[List[int]]:
        """Reads the state from float32 [state_values]. Rounds and samples of a run before; None: it is zeros, since
        nothing was written yet.
        """
        content = vector.view(torch.uint8).numpy().tobytes()
        length = int.from_bytes(content[:_LENGTH_BYTES], "little")
        if length == 0:
            return None
        state = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
        self._agreed, self._wish = state["groups"], ""
        self._set(self._agreed)
        for scheduler, plain in zip(self._schedulers, state["schedulers"]):
            scheduler.load_state_dict(_like(scheduler.state_dict(), plain))
        begun: List[int] = state["begun"]
        return begun


class RoundScheduler:
    """The result of run.scheduler(s): s, whose step() does nothing, since the run steps it once a round."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def step(self, *_: Any, **__: Any) -> None:
        """Nothing: the run does it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)
