# SPDX-License-Identifier: Apache-2.0
"""Learning rates by round: schedulers step once a round on every peer, and their state is part of the run's.

The state is JSON in a vector of fixed size: that of the schedulers, and all settings of the optimizer's
groups (lr, betas, initial_lr, ...), since many schedulers compute the next rate from the last one.
"""

from __future__ import annotations

import json
import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch

from ..errors import MisuseError, SettingError, UnsupportedError, described, warn
from .engine_rules import fault_of
from .layout import Layout
from .stand_in import Stepping, refuse_measuring
from .state import (
    CONSTANTS,
    LENGTH_BYTES,
    OF_OPTIMIZER,
    PAIRS,
    capacity_for,
    plain_value,
    read_text,
    scalars,
    write_text,
)

MakeScheduler = Callable[[torch.optim.Optimizer], Any]
# An object with step(), a function that makes one, several of them, or None.
SchedulerLike = Any

# Plain settings of each group, without its parameters.
Plain = List[Dict[str, Any]]

# Settings that schedulers move, and where the optimizer keeps what the program said.
_SCHEDULED = {"lr": "initial_lr", "momentum": None, "betas": None}
_OWN = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum")
# The engine takes no longer text (tradewind.h).
_MOST_BYTES = 4000
# Keys of schedulers that say how far they are, which travels with the state.
_PROGRESS = {"last_epoch", "_step_count", "T_cur", "T_i", "_last_lr", "verbose", "_initial_step", "_is_initial"}
# Nothing is wanted, but the next round waits until a program has said what it wants for that one.
_SAME = "{}"
# So many rounds wait for a loop that has not moved a setting by hand yet.
_ROUNDS_TO_SEE = 2
# Rounds in which what a loop wants may come too late.
_PATIENCE = 3


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
    if not is_one and not callable(scheduler):
        raise MisuseError(
            f"scheduler={scheduler!r}: expected a scheduler, a function of the optimizer that makes one, or a list."
        )
    made = scheduler if is_one else _made(make, optimizer)
    refuse_scheduler(made, optimizer)
    return [made]


def _made(make: MakeScheduler, optimizer: torch.optim.Optimizer) -> Any:
    try:
        return make(optimizer)
    except TypeError as error:
        if not isinstance(make, type):
            raise
        raise MisuseError(
            f"scheduler={make.__name__} needs more than the optimizer ({error}): give a function of it, such as"
            f" lambda optimizer: {make.__name__}(optimizer, ...)."
        ) from error


def refuse_scheduler(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    """UnsupportedError: one whose step needs what only this peer knows, or that has no state. MisuseError: it is none,
    or another optimizer's.
    """
    name = type(scheduler).__name__
    if not hasattr(scheduler, "step"):
        raise MisuseError(
            f"the scheduler is {described(scheduler)}: expected an object with step(); a function of the optimizer in"
            " scheduler= has to return it."
        )
    its = getattr(scheduler, "optimizer", optimizer)
    if getattr(its, "param_groups", None) is not optimizer.param_groups:
        raise MisuseError(
            f"the scheduler {name} was made on another optimizer ({type(its).__name__}) than run.optimizer() got, so"
            " it would change nothing: make it on that one."
        )
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise UnsupportedError(
            "ReduceLROnPlateau decides by a metric of one peer, so peers would differ: use a scheduler of the round; or keep"
            ' it in the loop, and call its step(run.metrics["loss"]), the loss of all peers, when run.round changes.'
        )
    for method in ("step", "state_dict", "load_state_dict"):
        if not callable(getattr(scheduler, method, None)):
            raise UnsupportedError(
                f"the scheduler {name} has no {method}(), so its state cannot be given to other peers."
            )
    refuse_measuring(scheduler)


def saved_schedulers(schedulers: Sequence[Any]) -> List[Dict[str, Any]]:
    """The name and the plain state of each."""
    names = [type(one).__name__ for one in schedulers]
    return [{"name": name, "state": plain_value(one.state_dict(), name)} for name, one in zip(names, schedulers)]


def _load(scheduler: Any, plain: Any) -> None:
    scheduler.load_state_dict(_like(scheduler.state_dict(), plain))


class SavedSchedulers:
    """saved_schedulers() of a run before, and the settings of the optimizer that they moved."""

    def __init__(
        self, states: Sequence[Dict[str, Any]] = (), optimizer: Optional[torch.optim.Optimizer] = None
    ) -> None:
        self._states = states
        groups = [] if optimizer is None else optimizer.param_groups
        moved = (*_SCHEDULED, *_OWN)
        self._groups = [{key: group[key] for key in moved if key in group} for group in groups]
        self._loaded = 0

    def load(self, schedulers: Sequence[Any], optimizer: torch.optim.Optimizer) -> None:
        """Those that are new get their state. Making them has moved the optimizer's settings, which go back.
        MisuseError: they are others.
        """
        states = self._states[self._loaded : len(schedulers)]
        new = schedulers[self._loaded : self._loaded + len(states)]
        if any(type(one).__name__ != saved["name"] for one, saved in zip(new, states)):
            self._refuse(schedulers)
        for one, saved in zip(new, states):
            _load(one, saved["state"])
            self._loaded += 1
        for group, settings in zip(optimizer.param_groups if states else (), self._groups):
            group.update(settings)

    def _refuse(self, schedulers: Sequence[Any]) -> None:
        saved = ", ".join(str(one["name"]) for one in self._states)
        mine = ", ".join(type(one).__name__ for one in schedulers) or "no scheduler"
        raise MisuseError(
            f"run.load_state_dict(): the state has {saved}, and this run has {mine}. Give the same to run.optimizer(), or"
            ' begin another schedule: state["schedulers"] = [].'
        )

    def refuse_others(self, schedulers: Sequence[Any], rounds: int) -> None:
        """MisuseError: the run has fewer or more schedulers than the state. rounds: that were done before."""
        if self._states and len(self._states) != len(schedulers):
            self._refuse(schedulers)
        mine = ", ".join(type(one).__name__ for one in schedulers)
        if rounds and not self._states and any(getattr(one, "last_epoch", None) == 0 for one in schedulers):
            warn(
                f"run.load_state_dict(): the state of round {rounds} has no scheduler, so {mine} begins anew. If it has"
                " to go on, load its own state before run.start()."
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
    return current if isinstance(current, CONSTANTS) else plain


def plain_groups(groups: Sequence[Dict[str, Any]]) -> Plain:
    """Settings of the groups now, without devices, which are each peer's own. UnsupportedError names the key of what no
    peer can get.
    """
    return [
        {
            key: plain_value(value, f"param_groups[{at}].{key}", OF_OPTIMIZER)
            for key, value in group.items()
            if key != "params" and not callable(value) and not isinstance(value, torch.device)
        }
        for at, group in enumerate(groups)
    ]


def _tensors_in(groups: Sequence[Dict[str, Any]]) -> List[Dict[str, List[Any]]]:
    """[dtype, shape] of the settings of each group that are tensors."""
    return [
        {
            key: [str(value.dtype).replace("torch.", ""), list(value.shape)]
            for key, value in group.items()
            if isinstance(value, torch.Tensor)
        }
        for group in groups
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


def _as_given(group: Dict[str, Any], key: str, optimizer: torch.optim.Optimizer, scheduled: bool) -> Any:
    """A setting as the program gave it: schedulers and loops have moved what a process goes on from."""
    if key == "lr" and "initial_lr" in group:
        return group["initial_lr"]
    if key in _SCHEDULED and (scheduled or optimizer.state):
        return getattr(optimizer, "defaults", {}).get(key, group[key])
    return group[key]


def group_facts(
    groups: Sequence[Dict[str, Any]], optimizer: torch.optim.Optimizer, scheduled: bool
) -> Iterator[str]:
    """"lr: 0.1", or "lr of group 1: 0.1" where groups differ."""
    for key in sorted({key for group in groups for key in group} - {"params", *_OWN}):
        values = [
            plain_value(_as_given(group, key, optimizer, scheduled), key, OF_OPTIMIZER) if key in group else None
            for group in groups
        ]
        if all(_are_same(value, values[0]) for value in values):
            yield f"{key}: {values[0]}"
        else:
            yield from (f"{key} of group {at}: {value}" for at, value in enumerate(values))


def _are_same(one: Any, other: Any) -> bool:
    """Whether two plain values are the same; nan is the same as nan."""
    return bool(one == other) or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def difference(agreed: Plain, mine: Plain) -> str:
    """What mine has beside agreed: {"lr": [of each group], ...}, one value where it is that of all; empty: nothing."""
    found: Dict[str, Any] = {}
    for key in sorted({key for group in mine for key in group}):
        values = [group.get(key) for group in mine]
        if not _are_same(values, [group.get(key) for group in agreed]):
            same = all(_are_same(value, values[0]) for value in values)
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
            if key not in seen and not _are_same(own[key], other.get(key)):
                seen.add(key)
                yield number, key, own[key], other.get(key)


class Schedule:
    """Schedulers, and the settings of the optimizer's groups. Thread: the run's.

    The run's settings are those after its last round. A loop that sets others wants them for the next update; one
    peer of the round decides, and all follow it (difference(), applied()).
    """

    def __init__(
        self, layout: Layout, optimizer: torch.optim.Optimizer, schedulers: Sequence[Any], kind: Optional[int] = None
    ) -> None:
        """kind: of the rule by which the engine updates; None: torch does. SettingError: a setting spoils parameters."""
        self._groups = layout.groups
        self._optimizer = optimizer
        self._schedulers = tuple(schedulers)
        self._steps = [Stepping(one) for one in schedulers]
        self._kind = kind
        self._agreed = plain_groups(self._groups)
        fault = fault_of(self._agreed, kind)
        if fault is not None:
            raise SettingError(fault)
        self._settings = Settings(layout.groups)  # marked when they are those agreed on
        self._told: Set[str] = set()
        self._wish = ""  # of this loop, which the last round's record does not have
        self._asked = False
        self._rounds = 0
        self._moves = False  # this loop has set something by hand
        self._ignored = 0  # rounds in which it was told and not followed
        self._capacity = capacity_for(self.text())

    @property
    def state_values(self) -> int:
        """float32 values that hold the state."""
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

    def check(self) -> None:
        """MisuseError: a setting is wrong, which the loop or a scheduler made so. It must enter no round."""
        if not self._settings.are_as_marked:
            self._refuse(plain_groups(self._groups))

    def _refuse(self, groups: Plain) -> None:
        fault = fault_of(groups, self._kind)
        if fault is not None:
            raise MisuseError(fault)

    def wanted(self) -> str:
        """What the loop wants for the next update, beside the run's settings; empty or _SAME: nothing. After check()."""
        self._asked = True
        same = _SAME if self._moves or self._rounds < _ROUNDS_TO_SEE else ""
        if self._settings.are_as_marked:
            return same
        text = difference(self._agreed, plain_groups(self._groups))
        if not text:
            self._settings.mark()
            return same
        self._moves = True
        if len(text.encode()) <= _MOST_BYTES:
            return text
        self._tell_once(
            "settings",
            f"the settings that this loop changes by hand take {len(text.encode())} bytes, {_MOST_BYTES} travel: the"
            " run goes on without them. Give the schedule to run.optimizer(scheduler=).",
        )
        return ""

    def follow(self, wanted: str, round: int) -> None:
        """The groups get the settings of this round's update, which one peer wanted. What this loop wants may come
        too late for one round, and is wanted for the next.
        """
        wanted = self._accepted(wanted, round)
        self._rounds += 1
        if not wanted and self._settings.are_as_marked:
            self._wish, self._ignored, self._asked = "", 0, False
            return
        mine = plain_groups(self._groups)
        settings = applied(self._agreed, wanted)
        wish, asked, self._asked = difference(self._agreed, mine), self._asked, False
        if not wish or _are_same(mine, settings):
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
        self._refuse(settings)
        self._set(settings)

    def _accepted(self, wanted: str, round: int) -> str:
        """What the record has, or nothing: all peers refuse the same, so they stay alike."""
        if not wanted or wanted == _SAME:
            return ""
        fault = fault_of(applied(self._agreed, wanted), self._kind)
        if fault is None:
            return wanted
        self._tell_once(
            "refused",
            f"round {round}: a peer wants settings that no peer takes, and the run goes on without them: {fault}",
        )
        return ""

    def _tell_once(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            warn(text)

    def _set(self, settings: Plain, tensors: Sequence[Dict[str, List[Any]]] = ()) -> None:
        """tensors: those in which _tensors_in() found them."""
        for group, kinds in zip(self._groups, tensors):
            for key, (dtype, shape) in kinds.items():
                if not isinstance(group.get(key), torch.Tensor):
                    group[key] = torch.zeros(shape, dtype=getattr(torch, dtype), device=group["params"][0].device)
        for group, plain in zip(self._groups, settings):
            for key, value in plain.items():
                if not _are_same(plain_value(group.get(key), key, OF_OPTIMIZER), value):
                    group[key] = _like(group.get(key), value)

    def step(self, round: int) -> None:
        """A round was applied, of the run and the one that it goes on from together the `round`-th."""
        count_step(self._optimizer)
        for stepping in self._steps:
            stepping.step(round)
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
            "schedulers": [one["state"] for one in saved_schedulers(self._schedulers)],
        }
        tensors = _tensors_in(self._groups)
        if any(tensors):
            state["tensors"] = tensors
        return json.dumps(state, sort_keys=True, separators=(",", ":"))

    def save(self, vector: torch.Tensor, begun: Sequence[int]) -> None:
        """Writes the state to float32 [state_values]."""
        text = self.text(begun).encode()
        if len(text) > self._capacity - LENGTH_BYTES:
            raise UnsupportedError(
                f"the state of the schedulers has grown to {len(text)} bytes, room for {self._capacity}"
                " was made at the start: it must not grow without end."
            )
        content = vector.view(torch.uint8)
        content[write_text(text, content) :].zero_()

    def load(self, vector: torch.Tensor, settings: bool = True) -> Optional[List[int]]:
        """Reads the state from float32 [state_values]; settings: also those of the groups. Rounds and samples of a
        run before; None: it is zeros, since nothing was written yet.
        """
        text = read_text(vector.view(torch.uint8))
        if not text:
            return None
        state = json.loads(text)
        self._agreed, self._wish = state["groups"], ""
        if settings:
            self._set(self._agreed, state.get("tensors", ()))
        for scheduler, stepping, plain in zip(self._schedulers, self._steps, state["schedulers"]):
            _load(scheduler, plain)
            stepping.mark()
        begun: List[int] = state["begun"]
        return begun
