# SPDX-License-Identifier: Apache-2.0
"""What a run has of its process: one run at a time, its signals, forks, and its end with the process."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import traceback
import weakref
from typing import Any, Callable, Optional, Protocol

from ..engine import abi
from ..engine.peer import Engine
from ..engine.settings import Settings
from ..errors import MisuseError, is_ours
from .ending import say_goodbye

# A second SIGTERM counts from then on; schedulers send it twice within milliseconds.
_TWICE_S = 1.0
# They would end a process that does not know them, also where no notices are wanted.
_TO_LEAVE = (signal.SIGTERM, signal.SIGHUP)


class OfProcess(Protocol):
    """A Life, as its process knows it."""

    joined_at: str
    joined_in: int
    settings: Settings

    @property
    def started(self) -> bool: ...

    @property
    def finished(self) -> bool: ...

    def signal(self, number: int) -> None: ...

    def close(self) -> None: ...


_active: Optional[Callable[[], Optional[OfProcess]]] = None
_taken_over = False  # its signals
_terminated_at: Optional[float] = None
_not_joined: Optional[str] = None
_forks_watched = False


def not_joined() -> Optional[str]:
    """Why the last run of this process could not be joined; None: it was, or none was tried."""
    return _not_joined


def joined(why_not: Optional[str]) -> None:
    """A start has ended; None: well."""
    global _not_joined
    _not_joined = why_not


def active() -> Optional[OfProcess]:
    """That of this process which is not closed."""
    return _active() if _active is not None else None


def _caller() -> str:
    """file:line outside of this package."""
    for frame in reversed(traceback.extract_stack()):
        if not is_ours(frame.filename):
            return f"{frame.filename}:{frame.lineno}"
    return "?"


def become_active(life: OfProcess) -> str:
    """Where the run was joined. MisuseError: another one is open; a run that is over is closed."""
    global _active
    before = active()
    if before is not None and os.getpid() == before.joined_in:
        if not before.finished:
            raise MisuseError(
                f"a run is open in this process already, joined at {before.joined_at}: close() it first; a"
                " process is one peer."
            )
        before.close()
    _active = weakref.ref(life)
    return _caller()


def hold(life: OfProcess) -> None:
    """Until it has left, though the program may forget it."""
    global _active
    _active = _active if life.finished else lambda: life


def released(life: OfProcess) -> None:
    """It is closed."""
    global _active
    if active() is life:
        _active = None


def heed_signals(life: OfProcess, engine: Engine) -> None:
    """SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are notices of a preemption; unless the program handles them itself, or
    ignores them (SIGHUP under nohup).

    The engine hears of them first, since a handler in Python waits until the program's call returns.
    """
    global _taken_over
    if _taken_over or threading.current_thread() is not threading.main_thread():
        return
    every = life.settings.values["notices"] != "none"
    for number in (*_TO_LEAVE, signal.SIGUSR1, signal.SIGUSR2):
        if (every or number in _TO_LEAVE) and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_signal)
            engine.heed(number)
    _taken_over = True


def _on_signal(number: int, frame: Any) -> None:
    """For a handler of the program's own that calls this one, and for ends. The engine tells doubles apart.
    The third SIGTERM ends the process, whatever its loop is busy with.
    """
    global _terminated_at
    life = active()
    if life is not None and os.getpid() != life.joined_in and number != signal.SIGTERM:
        return  # a worker of a DataLoader: its process ends it
    if life is None or not life.started or os.getpid() != life.joined_in:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    life.signal(number)
    if number == signal.SIGTERM:
        if _terminated_at is None:
            _terminated_at = time.monotonic()
        elif time.monotonic() - _terminated_at >= _TWICE_S:
            signal.signal(number, signal.SIG_DFL)


def _in_fork() -> None:
    """Children of a fork (data loader workers) have the engine's sockets: they close them, and can use nothing of it."""
    library = abi.loaded_library()
    if library is not None:
        library.tw_after_fork()


def watch_forks() -> None:
    """From the first call on."""
    global _forks_watched
    if not _forks_watched:
        os.register_at_fork(after_in_child=_in_fork)
        _forks_watched = True


atexit.register(say_goodbye, active)
