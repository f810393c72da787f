# SPDX-License-Identifier: Apache-2.0
"""One run at a time in a process, and its end with the process."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import traceback
import weakref
from typing import TYPE_CHECKING, Any, Optional

from .errors import MisuseError, is_ours

if TYPE_CHECKING:
    from ._run import Run

_active: "Optional[weakref.ReferenceType[Run]]" = None
_taken_over = False
_terminated_at: Optional[float] = None
_not_joined: Optional[str] = None
# A second SIGTERM counts from then on; schedulers send it twice within milliseconds.
_TWICE_S = 1.0


def not_joined() -> Optional[str]:
    """Why the last run of this process could not be joined; None: it was, or none was tried."""
    return _not_joined


def joined(why_not: Optional[str]) -> None:
    """A start has ended; None: well."""
    global _not_joined
    _not_joined = why_not


def active() -> "Optional[Run]":
    """The run of this process that is not closed."""
    return _active() if _active is not None else None


def _caller() -> str:
    """file:line outside of this package."""
    for frame in reversed(traceback.extract_stack()):
        if not is_ours(frame.filename):
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


def heed_signals(run: "Run") -> None:
    """SIGTERM, SIGUSR1 and SIGUSR2 are notices of a preemption; unless the program handles them itself.

    The engine hears of them first, since a handler in Python waits until the program's call returns.
    """
    global _taken_over
    if _taken_over or threading.current_thread() is not threading.main_thread():
        return
    assert run._loop is not None
    every = run._settings.get("notices") != "none"
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        if (every or number == signal.SIGTERM) and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_signal)
            run._loop.driver.engine.heed(number)
    _taken_over = True


def _on_signal(number: int, frame: Any) -> None:
    """For a handler of the program's own that calls this one, and for ends. The engine tells doubles apart.
    The third SIGTERM ends the process, whatever its loop is busy with.
    """
    global _terminated_at
    run = active()
    if run is not None and os.getpid() != run._joined_in and number != signal.SIGTERM:
        return  # a worker of a DataLoader: its process ends it
    if run is None or not run.started or os.getpid() != run._joined_in:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    run._heed(number)
    if number == signal.SIGTERM:
        if _terminated_at is None:
            _terminated_at = time.monotonic()
        elif time.monotonic() - _terminated_at >= _TWICE_S:
            signal.signal(number, signal.SIG_DFL)


@atexit.register
def _say_goodbye() -> None:
    run = active()
    if run is not None:
        run.close()
