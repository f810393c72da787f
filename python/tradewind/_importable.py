# SPDX-License-Identifier: Apache-2.0
"""Whether a new process of Python, which starts empty, can find a function and its arguments."""

from __future__ import annotations

import os
import pickletools
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Tuple

from ._errors import MisuseError

_FORK = 'or use launch_local(..., start="fork").'
_IN_A_FILE = f"define it at the top level of a file that the program imports, {_FORK}"


def check(fn: Callable[..., Any], args: Tuple[Any, ...]) -> None:
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
