# SPDX-License-Identifier: Apache-2.0
"""A scheduler that the run steps once a round, and what a loop that steps it, too, has in its place."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Sequence

import torch

from ..errors import UnsupportedError, warn

_TORCHS: Any = getattr(torch.optim.lr_scheduler, "LRScheduler", None) or torch.optim.lr_scheduler._LRScheduler
# Names of what step() is told in place of the round; any other argument is something that only the loop knows.
_ROUNDS = ("epoch", "step", "step_num", "current_step", "global_step", "num_updates", "iteration", "round", "t")


class UsedRates:
    """Rates of the last round that was applied. Thread: the run's."""

    def __init__(self) -> None:
        self.rounds = 0  # that were noted
        self.rates: List[Any] = []

    def note(self, groups: Sequence[Dict[str, Any]]) -> None:
        """Those of the groups, before the schedulers go on."""
        rates = [group.get("lr") for group in groups]
        self.rates = [rate.clone() if isinstance(rate, torch.Tensor) else rate for rate in rates]
        self.rounds += 1


def _needed(step: Any) -> List[str]:
    """Names of the arguments without which step() cannot be called."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in several]


def _knows_epochs(step: Any) -> bool:
    try:
        return "epoch" in inspect.signature(step).parameters
    except (TypeError, ValueError):
        return False


def wants_round(scheduler: Any) -> bool:
    """Whether its step() is told how far the training is, as timm's. torch's count themselves."""
    return bool(_needed(scheduler.step)) or _knows_epochs(scheduler.step) and not isinstance(scheduler, _TORCHS)


def refuse_measuring(scheduler: Any) -> None:
    """UnsupportedError: its step() needs what only the loop knows."""
    needed = _needed(scheduler.step)
    if len(needed) > 1 or any(name not in _ROUNDS for name in needed):
        raise UnsupportedError(
            f"{type(scheduler).__name__}.step() needs {', '.join(needed)}, which the run does not know: use a scheduler"
            f" that counts itself, or whose step() takes the round as {', '.join(_ROUNDS)}."
        )


class Stepping:
    """Steps a scheduler after each round; with the number of rounds if its step() wants one."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._is_told = wants_round(scheduler)
        self._update = getattr(scheduler, "step_update", None) if self._is_told else None
        self._warned = False
        self.mark()

    def mark(self) -> None:
        """It is as the run has it."""
        self._at = getattr(self._scheduler, "last_epoch", None)

    def step(self, round: int) -> None:
        """The run's step; a loop that makes its own ones as well hears of it once."""
        if not self._warned and getattr(self._scheduler, "last_epoch", None) != self._at:
            self._warned = True
            name = type(self._scheduler).__name__
            warn(
                f"{name} was stepped outside of the run, which steps it once a round: its rates are those of later rounds"
                " now. In the loop use what run.scheduler() returns, as scheduler = run.scheduler(scheduler), or leave"
                " scheduler.step() out."
            )
        self._scheduler.step(*([round] if self._is_told else []))
        if callable(self._update):  # timm's: one of both does nothing
            self._update(round)
        self.mark()


class RoundScheduler:
    """The result of run.scheduler(s): s, whose step() does nothing, since the run steps it once a round.

    get_last_lr() between the optimizer's step() and its own: the rates of the round just applied, as with torch.
    """

    def __init__(self, scheduler: Any, used: UsedRates) -> None:
        self._scheduler = scheduler
        self._used = used
        self._followed = used.rounds  # when its step() was called
        self._told = False

    def step(self, *arguments: Any, **named: Any) -> None:
        """Nothing: the run does it. An argument is named once."""
        self._followed = self._used.rounds
        given = [repr(one) for one in arguments if one is not None]
        given.extend(f"{name}={one!r}" for name, one in named.items() if one is not None)
        if given and not self._told:
            self._told = True
            name = type(self._scheduler).__name__
            how = "with its round instead of" if wants_round(self._scheduler) else "without"
            warn(
                f"scheduler.step({', '.join(given)}): the run steps {name} once a round, {how} this argument. Count the"
                " schedule in rounds; or leave run.scheduler() out, and step it yourself by run.round."
            )

    def _last_rates(self) -> List[Any]:
        if self._used.rounds != self._followed:
            return list(self._used.rates)
        found: List[Any] = self._scheduler.get_last_lr()
        return found

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scheduler, name)
        return {"get_last_lr": self._last_rates, "step_update": self.step}.get(name, found)
