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


def say_goodbye(active: Callable[[], Optional[Any]]) -> None:
    """The process ends. active(): the run of it that is open."""
    life = active()
    if life is not None:
        try:
            finish_leave(life)
        finally:
            life.close()
