# SPDX-License-Identifier: Apache-2.0
"""One run at a time in a process, and what happens to it when the process ends."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any, Optional

from ._errors import MisuseError

if TYPE_CHECKING:
    from ._run import Run

_active: "Optional[weakref.ReferenceType[Run]]" = None
_taken_over = False


def active() -> "Optional[Run]":
    """The run of this process that is not closed."""
    return _active() if _active is not None else None


def _caller() -> str:
    """file:line outside of this package."""
    here = os.path.dirname(__file__)
    for frame in reversed(traceback.extract_stack()):
        if os.path.dirname(frame.filename) != here:
            return f"{frame.filename}:{frame.lineno}"
    return "?"


def become_active(run: "Run") -> str:
    """Where the run was joined. MisuseError: another one is open; a run that is over is closed."""
    global _active
    before = active()
    if before is not None and os.getpid() == before._joined_in:
        if not before.finished:
            raise MisuseError(
                f"a run is open in this process already, joined at {before._joined_at}: close() it first; a"
                " process is one peer."
            )
        before.close()
    _active = weakref.ref(run)
    return _caller()


def released(run: "Run") -> None:
    """The run is closed."""
    global _active
    if active() is run:
        _active = None


def leave_on_sigterm(run: "Run") -> None:
    """SIGTERM, the notice of a preemption, lets the peer leave after the round; unless the program handles
    it.
    """
    global _taken_over
    is_main = threading.current_thread() is threading.main_thread()
    if _taken_over or not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def leave(number: int, frame: Any) -> None:
        now = active()
        if now is not None and now.started and os.getpid() == now._joined_in:
            now.leave()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        else:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    _taken_over = True


@atexit.register
def _say_goodbye() -> None:
    run = active()
    if run is not None:
        run.close()
