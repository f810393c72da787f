# SPDX-License-Identifier: Apache-2.0
"""The end of the program, which a run ends with."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

from ..errors import warn

# A program that called leave() waits so long for the end of its round.
_LEAVE_S = 60.0


def finish_leave(life: Optional[Any]) -> None:
    """The program is over: what run.leave() began comes first, with the checkpoint of the last peer. life: the Life of
    the run that is open.
    """
    if life is None or life.loop is None or os.getpid() != life.joined_in:
        return
    if not life.loop.driver.finish_leave(_LEAVE_S):
        warn(
            "the program is over, and this peer has not left yet, as run.leave() wanted: if it is the last one,"
            " rounds since the last checkpoint are lost. Let the run end inside of"
            " `with tradewind.join(...) as run:`, which waits for as long as that takes."
        )


def leave_early(run: Any, rounds: Any, why: str) -> None:
    """A trainer's loop has ended: leaves a run that is not over, and warns. rounds: of the run; why: "by max_epochs"."""
    if run.started and not run.finished:
        run.leave(wait=True)
        warn(
            f"the training of this peer ended in round {run.round} of {rounds}, {why}: it has left, and others may train"
            " on. run.end() ends the run for all."
        )


def say_goodbye(active: Callable[[], Optional[Any]]) -> None:
    """The process ends. active(): the run of it that is open."""
    life = active()
    if life is not None:
        try:
            finish_leave(life)
        finally:
            life.close()
