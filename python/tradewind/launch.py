# SPDX-License-Identifier: Apache-2.0
"""Several peers on this machine, each in a process of its own: to try a loop, and for tests."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import multiprocessing.connection
import os
import pickle
import pickletools
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch

from .engine.settings import as_text, resolve, together
from .errors import MisuseError, SettingError, TradewindError, function, number
from .loop.ending import finish_leave
from .loop.process import active, not_joined
from .program import free_port, program

_FORK = 'or use launch_local(..., start="fork").'
_IN_A_FILE = f"define it at the top level of a file that the program imports, {_FORK}"


def check_importable(fn: Callable[..., Any], args: Tuple[Any, ...]) -> None:
    """MisuseError names what a new process cannot find, and what helps."""
    _check(_name(fn), fn, _IN_A_FILE)
    for number, argument in enumerate(args, 1):
        _check(f"argument {number} ({type(argument).__name__})", argument, f"make it in the function, {_FORK}")


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__qualname__", None) or type(fn).__name__)


def _check(name: str, value: Any, remedy: str) -> None:
    try:
        pickled = bytes(ForkingPickler.dumps(value))
    except Exception as error:  # of any type: it is that of the value
        raise MisuseError(
            f"launch_local(): a new process cannot be given {name} ({error}): {remedy}"
        ) from error
    if not _main_is_a_file() and _names_main(pickled):
        raise MisuseError(
            f"launch_local(): {name} was typed in (a notebook, a prompt, python -c), so a new process cannot"
            f" find it: {_IN_A_FILE}"
        )


def _main_is_a_file() -> bool:
    """Whether a new process can run what this one runs as __main__."""
    main = sys.modules.get("__main__")
    if getattr(main, "__spec__", None) is not None:
        return True  # python -m
    return os.path.isfile(getattr(main, "__file__", None) or "")


def _names_main(pickled: bytes) -> bool:
    """Whether something in it lives in __main__."""
    return any(str(argument).split(" ")[0] == "__main__" for _, argument, _ in pickletools.genops(pickled))


_OF_EACH = ("id", "join", "listen", "run", "token")
_MOST_PEERS = 64  # of one machine, as of `tw run --peers`
_GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1
_BEGUN = b"begun"  # a process has found the function


class _Failure(NamedTuple):
    """An exception of a child."""

    error: Optional[BaseException]
    trace: str


class _Returned(NamedTuple):
    """What a child's function returned, though perhaps its run could not be joined."""

    value: Any
    not_joined: Optional[str]


def launch_local(
    fn: Callable[..., Any],
    *args: Any,
    peers: int = 4,
    start: str = "spawn",
    settings: Optional[Mapping[str, Any]] = None,
    out: Optional[Any] = None,
    timeout: Optional[float] = None,
) -> List[Any]:
    """fn(*args) in `peers` processes of this machine, as peers of one run: what each of them returned.

    In each, tradewind.join() finds the run by its environment. settings: as join() takes them, for all;
    out: folder for their event logs; timeout: seconds for all. start: how a process begins, "spawn",
    "forkserver" or "fork"; only "fork" takes functions that stand in no file (notebooks, lambdas). An
    exception in one ends the others and is raised here, with the peer's number; so does sys.exit() with
    another code than 0, which is a return of None.
    A process that a signal ended is a peer that was lost: the others go on, and a TradewindError stands in
    its place; it is raised if none is left.
    """
    if isinstance(peers, bool) or not isinstance(peers, int) or not 1 <= peers <= _MOST_PEERS:
        raise SettingError(f"launch_local(peers={peers!r}): expected a whole number from 1 to {_MOST_PEERS}.")
    function("launch_local(): fn", fn, "args")
    if timeout is not None:
        timeout = number("launch_local(): timeout", timeout, "the seconds for all")
    context = _context(start)
    resolve(together({}, settings))
    _refuse_own(settings or {})
    if start != "fork":
        check_importable(fn, args)
    with _credential() as credential:
        crew = _Crew(context, _wait_for(settings or {}, peers))
        try:
            port = free_port()
            for at in range(peers):
                environment = {**credential, **_environment(at, peers, port, settings or {}, out)}
                crew.add(fn, args, environment)
            return crew.results(None if timeout is None else time.monotonic() + timeout)
        finally:
            crew.end()


def _refuse_own(settings: Mapping[str, Any]) -> None:
    """SettingError: one that each process has for itself."""
    for name in _OF_EACH:
        if settings.get(name) is not None:
            raise SettingError(f"{name} cannot be set here: launch_local() gives each process one.")


def _context(start: str) -> Any:
    if start not in multiprocessing.get_all_start_methods():
        raise SettingError(f"launch_local(start={start!r}): expected spawn, forkserver or fork.")
    if start == "fork":
        run = active()
        if run is not None and run.started:
            if not run.finished:
                raise MisuseError(
                    'launch_local(start="fork"): a run is open in this process; close() it, or use "spawn".'
                )
            run.close()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            raise MisuseError('launch_local(start="fork"): CUDA is in use in this process; use "spawn".')
    return multiprocessing.get_context(start)


@contextlib.contextmanager
def _credential() -> Iterator[Dict[str, str]]:
    """Environment that lets peers in: a token of a run folder, or without `tw` no TLS, on this machine
    alone.
    """
    tw = program()
    if tw is None:
        yield {"TRADEWIND_INSECURE": "1"}
        return
    with tempfile.TemporaryDirectory(prefix="tradewind-") as folder:
        run = Path(folder) / "run"
        made = subprocess.run([tw, "init", str(run)], capture_output=True, text=True)
        if made.returncode != 0:
            raise TradewindError(f"{tw} init failed: {made.stderr.strip()}")
        yield {"TRADEWIND_RUN_FOLDER": str(run)}


def _wait_for(settings: Mapping[str, Any], peers: int) -> int:
    found = settings.get("wait_for")
    if found is not None and not str(found).isdigit():
        raise SettingError(f"wait_for={found!r}: expected a whole number from 1.")
    return peers if found is None else int(found)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _environment(
    number: int, peers: int, port: int, settings: Mapping[str, Any], out: Any
) -> Dict[str, str]:
    """As `tw run` gives them (src/cli/run/run_crew.cc): more threads than cores stand in each other's way."""
    texts = {name: as_text(name, value) for name, value in settings.items() if value is not None}
    wait_for, progress = texts.pop("wait_for", str(peers)), texts.pop("progress", "auto")
    found = {"TRADEWIND_ID": str(number + 1), "TRADEWIND_PROGRESS": progress if number == 0 else "off"}
    if number == 0:
        found["TRADEWIND_WAIT_FOR"] = wait_for
        if not {"rejoin", "no_rejoin", "anew"} & set(texts):
            found["TRADEWIND_NO_REJOIN"] = "1"  # nobody else can have the token of this crew
    if "file" in texts:
        found["TRADEWIND_RUN"] = texts.pop("file")
    if "OMP_NUM_THREADS" not in os.environ and (peers > 1 or "threads" in texts):
        found["OMP_NUM_THREADS"] = texts.get("threads", str(max(1, _cores() // peers)))
    if "threads" in texts:
        found["TRADEWIND_THREADS"] = texts.pop("threads")
    found["TRADEWIND_LISTEN" if number == 0 else "TRADEWIND_JOIN"] = f"127.0.0.1:{port}"
    if out is not None:
        found["TRADEWIND_OUT"] = str(out)
    if texts:
        found["TRADEWIND_SET"] = ";".join(f"{key}={value}" for key, value in texts.items())
    return found


def _die_with_parent() -> None:
    """A launcher that is killed leaves no peers behind; Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _child(
    connection: Any, environment: Dict[str, str], fn: Callable[..., Any], args: Tuple[Any, ...]
) -> None:
    _die_with_parent()
    os.environ.update(environment)
    if environment.get("OMP_NUM_THREADS", "").isdigit():
        torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))  # the variable was read when torch began
    connection.send_bytes(_BEGUN)
    peer = os.getpid()
    try:
        message = _message_of(fn, args)
        if os.getpid() == peer:  # else that of a fork which fn made
            # Not send(): torch would share memory that ends with this process.
            connection.send_bytes(message)
    finally:
        run = active()
        if run is not None:
            run.close()
        connection.close()


def _message_of(fn: Callable[..., Any], args: Tuple[Any, ...]) -> bytes:
    """What fn returned or raised. A fork that fn made ends as fn lets it."""
    peer = os.getpid()
    try:
        returned = pickle.dumps((True, _Returned(_result_of(fn, args), not_joined())))
        with contextlib.suppress(TradewindError, UserWarning):  # it is the result that counts
            finish_leave(active())
        return returned
    except BaseException as error:
        if os.getpid() != peer:
            raise
        return pickle.dumps((False, _failure(error)))


def _result_of(fn: Callable[..., Any], args: Tuple[Any, ...]) -> Any:
    """None: the function ended as a program does, by sys.exit() with 0."""
    try:
        return fn(*args)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        return None


def _failure(error: BaseException) -> _Failure:
    trace = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
        return _Failure(error, trace)
    except Exception:
        return _Failure(None, trace)


class _Crew:
    """The processes, and what came back from them."""

    def __init__(self, context: Any, wait_for: int) -> None:
        """wait_for: so many peers have to join before the run begins."""
        self._context = context
        self._wait_for = wait_for
        self._missing = 0  # those that could not join
        self._processes: List[Any] = []
        self._connections: List[Any] = []
        self._begun: Set[int] = set()  # those that have found the function

    def add(self, fn: Callable[..., Any], args: Tuple[Any, ...], environment: Dict[str, str]) -> None:
        """One more."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_child, args=(theirs, environment, fn, args))
        process.start()
        theirs.close()
        self._processes.append(process)
        self._connections.append(ours)

    def results(self, deadline: Optional[float]) -> List[Any]:
        """The results of all. TradewindError: one raised, or no result came before the deadline."""
        found: Dict[int, Any] = {}
        while len(found) < len(self._processes):
            waiting = {self._connections[at]: at for at in range(len(self._processes)) if at not in found}
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = multiprocessing.connection.wait(list(waiting), left)
            if not ready:
                numbers = ", ".join(str(at + 1) for at in waiting.values())
                raise TradewindError(
                    f"launch_local(): the time is up, and no result came from peers {numbers}."
                )
            for connection in ready:
                at = waiting[connection]
                message = self._received(at)
                if message == _BEGUN:
                    self._begun.add(at)
                else:
                    found[at] = self._result(at, message)
        lost = [one for one in found.values() if isinstance(one, _Lost)]
        if len(lost) == len(found):
            raise lost[0]
        return [found[at] for at in sorted(found)]

    def _received(self, at: int) -> Optional[bytes]:
        """What the process has sent; None: it has ended."""
        try:
            message: bytes = self._connections[at].recv_bytes()
            return message
        except (EOFError, OSError):
            return None

    def _result(self, at: int, message: Optional[bytes]) -> Any:
        if message is None:
            self._processes[at].join()
            return self._without_result(at, self._processes[at].exitcode)
        good, content = pickle.loads(message)
        if good:
            return self._joined(at, content)
        end = content.error
        how = "failed"
        if isinstance(end, SystemExit):
            how = f"ended with exit code {end.code if isinstance(end.code, int) else 1}, by sys.exit()"
        raise TradewindError(f"peer {at + 1} {how}:\n{content.trace}") from end

    def _joined(self, at: int, returned: _Returned) -> Any:
        """What it returned. TradewindError: the others wait for more peers than can still come."""
        if returned.not_joined is not None:
            self._missing += 1
            if 0 < len(self._processes) - self._missing < self._wait_for:
                raise TradewindError(
                    f"peer {at + 1} returned, and could not join its run, which waits for {self._wait_for} peers:"
                    f" {returned.not_joined}"
                )
        return returned.value

    def _without_result(self, at: int, code: int) -> Any:
        if code < 0:
            return _Lost(f"peer {at + 1} was ended by {signal.Signals(-code).name}.")
        if at not in self._begun:
            raise TradewindError(
                f"peer {at + 1} ended with exit code {code} before it found the function; stderr has the cause."
                ' The process runs the file of the program as a module first: launch_local() has to stand under'
                ' `if __name__ == "__main__":`. start="fork" runs nothing again.'
            )
        raise TradewindError(
            f"peer {at + 1} ended with exit code {code}, and returned nothing: the function called os._exit(),"
            " or the process crashed; stderr may have the cause."
        )

    def end(self) -> None:
        """Ends those that still run: politely, then by signal."""
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + _GRACE_S
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


class _Lost(TradewindError):
    """A process that a signal ended."""
