# SPDX-License-Identifier: Apache-2.0
"""A function in several processes of this machine, each a peer: `tw run`, with the function, its arguments and its results in
files.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import multiprocessing.spawn
import os
import pickle
import pickletools
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .engine.settings import as_text, resolve, rows
from .errors import MisuseError, SettingError, TradewindError
from .loop.life import not_joined

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.02
# `tw run` kills its processes 3 s after the second SIGINT.
_GRACE_S = 5.0
# Loaded here: between fork and exec there may be no more than a system call.
_LIBC = ctypes.CDLL(None)
# What a process runs: it finds this package where the caller's process did.
_BEGIN = """\
import json, os, pathlib, sys
place = pathlib.Path(sys.argv[1])
sys.path[:] = json.loads((place / "path").read_text())
from tradewind.launch import _serve
_serve(place, os.environ["TRADEWIND_PROCESS"])
"""

_serving = False


class _Outcome(NamedTuple):
    """What a process gives back: a value, or the text of an exception, with the exception where it can be pickled."""

    value: Any = None
    not_joined: Optional[str] = None
    trace: str = ""
    error: Optional[BaseException] = None


def launch_local(
    fn: Callable[..., Any],
    *args: Any,
    peers: int = 4,
    settings: Optional[Mapping[str, Any]] = None,
    out: Optional[Any] = None,
    timeout: Optional[float] = None,
) -> List[Any]:
    """fn(*args) in `peers` processes of this machine, as peers of one run: what each of them returned.

    `tw run` starts them; in each, tradewind.join() finds the run by its environment. settings: as join() takes
    them, for all; out: folder for their event logs; timeout: seconds for all. A new process has to find fn: it
    stands in a file, or the package cloudpickle is installed (notebooks, lambdas). An exception in one ends the
    others and is raised here, with the peer's number. A process that ends without a result, as by a signal, is a
    peer that was lost: the others go on, and a TradewindError stands in its place; it is raised if none is left.
    In all, fn has to join the run: one that returns before the run has begun ends those that wait.
    """
    if isinstance(peers, bool) or not isinstance(peers, int) or peers < 1:
        raise SettingError(f"launch_local(peers={peers!r}): expected a whole number from 1.")
    if _serving:
        raise MisuseError(
            "launch_local() was called where a process of it looks for its function: it runs the file of the program"
            ' as a module first, so launch_local() has to stand under `if __name__ == "__main__":`.'
        )
    call, options = _packed(fn, args), [*_options(settings or {}), *(["--out", str(out)] if out is not None else [])]
    with tempfile.TemporaryDirectory(prefix="tradewind-") as folder:
        place = Path(folder)
        (place / "path").write_text(json.dumps([os.path.abspath(part) for part in sys.path]))
        (place / "call").write_bytes(call)
        command = [sys.executable, "-c", _BEGIN, folder]
        with _running([_found_program(), "run", "--peers", str(peers), *options, "--", *command]) as crew:
            return _results(place, crew, peers, None if timeout is None else time.monotonic() + timeout)


def program() -> Optional[str]:
    """The program `tw`: TRADEWIND_PROGRAM, beside this package or its build folder, where pip put it, or on the PATH."""
    named = os.environ.get("TRADEWIND_PROGRAM")
    here = Path(__file__).resolve().parent
    installed = Path(sysconfig.get_path("scripts"))
    for candidate in (here / "tw", here.parents[1] / "tw", here.parents[1] / "build" / "tw", installed / "tw"):
        if named is None and candidate.is_file():
            return str(candidate)
    return named or shutil.which("tw")


def _found_program() -> str:
    found = program()
    if found is None or not os.path.isfile(found):
        raise TradewindError(
            "launch_local() starts `tw run`, and there is no program tw: `make program`, or name it in"
            " TRADEWIND_PROGRAM."
        )
    return found


def _options(settings: Mapping[str, Any]) -> List[str]:
    """Of `tw run`. SettingError: what join() would refuse."""
    given = {name: value for name, value in settings.items() if value is not None}
    values = resolve(given).values
    of_peers = {row["key"]: row["expected"] for row in rows([]) if row["variable"]}
    progress = given.pop("progress", "auto")  # of the first one; the others write none
    shows = progress == "line" or progress == "auto" and sys.stderr.isatty()
    words: List[str] = [] if shows else ["--progress", "off"]
    for name, value in given.items():
        text = as_text(name, value)
        if name == "file":
            words.insert(0, text)
        elif name not in of_peers and name != "threads":
            words += ["--set", f"{name}={text}"]
        elif of_peers.get(name) != "true or false":
            words += [f"--{name.replace('_', '-')}", text]
        elif values[name]:
            words.append(f"--{name.replace('_', '-')}")
    return words


# The function and its arguments.


def _packed(fn: Callable[..., Any], args: Tuple[Any, ...]) -> bytes:
    """What _serve() reads. MisuseError names what a new process cannot find, and what helps."""
    main = multiprocessing.spawn.get_preparation_data("tradewind")
    main.pop("authkey", None)
    named = [(str(getattr(fn, "__qualname__", None) or type(fn).__name__), fn)]
    named += [(f"argument {at} ({type(one).__name__})", one) for at, one in enumerate(args, 1)]
    why = next(filter(None, (_why_not(name, value) for name, value in named)), None)
    if why is None:
        return pickle.dumps((main, "pickle", pickle.dumps((fn, args))))
    try:
        import cloudpickle
    except ImportError:
        raise MisuseError(
            f"launch_local(): {why}: define it at the top level of a file that the program imports, or make it in the"
            " function; or `pip install cloudpickle`."
        ) from None
    try:
        return pickle.dumps(({}, "cloudpickle", cloudpickle.dumps((fn, args))))
    except Exception as error:  # of any type: it is that of the value
        raise MisuseError(f"launch_local(): {why}.") from error


def _why_not(name: str, value: Any) -> Optional[str]:
    """Why a new process of Python, which starts empty, cannot find it; None: it can."""
    try:
        pickled = pickle.dumps(value)
    except Exception as error:
        return f"a new process cannot be given {name} ({error})"
    main = sys.modules.get("__main__")
    is_a_file = getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", None) or "")
    names = (str(argument).split(" ")[0] for _, argument, _ in pickletools.genops(pickled))
    if is_a_file or "__main__" not in names:
        return None
    return f"{name} was typed in (a notebook, a prompt, python -c), so a new process cannot find it"


# A process.


def _serve(place: Path, number: str) -> None:
    """Calls the function, and writes what came of it, packed as the call is."""
    main, packer, call = pickle.loads((place / "call").read_bytes())
    dumps = importlib.import_module(packer).dumps
    part = place / f"{number}.part"
    part.write_bytes(dumps(_called(main, call, dumps)))
    os.replace(part, place / f"{number}.outcome")


def _called(main: Dict[str, Any], call: bytes, dumps: Callable[[Any], bytes]) -> _Outcome:
    global _serving
    try:
        _serving = True
        multiprocessing.spawn.prepare(main)
        fn, args = pickle.loads(call)
        _serving = False
        outcome = _Outcome(fn(*args), not_joined())
        dumps(outcome)
        return outcome
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            pickle.loads(dumps(error))
        except Exception:
            return _Outcome(trace=trace)
        return _Outcome(trace=trace, error=error)


# The crew.


def _die_with_parent() -> None:
    """A caller that is killed leaves no peers behind; Linux alone."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@contextlib.contextmanager
def _running(words: List[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """`tw run`; at the end its processes that still run are ended."""
    crew = subprocess.Popen(words, preexec_fn=_die_with_parent)
    try:
        yield crew
    finally:
        for wait_s in (0.5, _GRACE_S):
            if crew.poll() is None:
                crew.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    crew.wait(wait_s)
        if crew.poll() is None:
            crew.kill()
        crew.wait()


def _results(place: Path, crew: "subprocess.Popen[bytes]", peers: int, deadline: Optional[float]) -> List[Any]:
    """Of all, in the order of their processes. TradewindError: one raised, could not join, or no result came before the deadline."""
    found: Dict[int, _Outcome] = {}
    over = False
    while not over:
        over = crew.poll() is not None  # before the last look
        for number in range(1, peers + 1):
            file = place / f"{number}.outcome"
            if number not in found and file.exists():
                found[number] = pickle.loads(file.read_bytes())
                if found[number].trace:
                    raise TradewindError(f"peer {number} failed:\n{found[number].trace}") from found[number].error
        missing = [number for number in range(1, peers + 1) if number not in found]
        is_late = deadline is not None and time.monotonic() > deadline
        if is_late and not missing:
            break
        if is_late and not over:
            numbers = ", ".join(map(str, missing))
            raise TradewindError(f"launch_local(): the time is up, and no result came from peers {numbers}.")
        time.sleep(0 if over else _LOOK_S)
    for number, outcome in found.items():
        if crew.returncode and outcome.not_joined:
            raise TradewindError(f"peer {number} returned, and could not join its run: {outcome.not_joined}")
    if not found:
        raise TradewindError(f"launch_local(): no peer gave a result (tw run ended with {crew.returncode}).")
    for number in missing:
        text = f"peer {number} was lost: its process ended without a result."
        found[number] = _Outcome(TradewindError(text))
    return [found[number].value for number in range(1, peers + 1)]
