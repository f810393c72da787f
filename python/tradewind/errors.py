# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of this package. Every text is one sentence or two: what was found, what was expected, what to
do next. There is one way to warn: warn(), at the line of the program.
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
import warnings
from types import FrameType
from typing import Any, Mapping, Tuple

NEEDS_TORCH = "needs PyTorch 1.11 or newer, which is not installed: pip install torch"
NEEDS_NEWER_TORCH = "needs PyTorch 1.11 or newer; {} is installed: pip install --upgrade torch"


def is_new_enough(torch_version: str) -> bool:
    """Whether a version of PyTorch, such as "2.6.0+cpu", is 1.11 or newer."""
    major, minor = torch_version.split(".")[:2]
    return (int(major), int(minor)) >= (1, 11)


class TradewindError(RuntimeError):
    """The run cannot go on, or a request cannot be fulfilled."""


class SettingError(TradewindError, ValueError):
    """An argument, a setting or an environment variable is wrong; nothing was opened."""


class MisuseError(TradewindError):
    """A call came at the wrong time, from the wrong thread or process, or with a wrong argument."""


class UnsupportedError(TradewindError):
    """The model, the optimizer or the data cannot be trained over peers as it is; the text says why."""


class EngineError(TradewindError):
    """The engine cannot go on; the text is its own."""


class DataError(TradewindError):
    """A sample cannot be read; the text names object and bytes, or sample and field."""


class TradewindWarning(UserWarning):
    """What the run does not do although the program may count on it; the text says what helps."""


class CondemnedError(EngineError):
    """This machine has a preemption notice, so the peer did not join. The run goes on: exit with 75."""


def whole(what: str, value: Any, least: int = 1) -> int:
    """An argument that is a whole number of any kind. MisuseError: it is none from `least` on."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or found < least:
        raise MisuseError(f"{what}={value!r}: expected a whole number from {least}.")
    return found


def truth(what: str, value: Any) -> bool:
    """An argument that is true or false. SettingError: it is neither; a text would count as true."""
    if isinstance(value, (bool, int)) or type(value).__module__ == "numpy":
        if value in (0, 1):
            return bool(value)
    raise SettingError(f"{what}={value!r}: expected True or False.")


def function(what: str, value: Any, of: str) -> None:
    """MisuseError: the argument is no function of this."""
    if not callable(value):
        raise MisuseError(f"{what}={value!r}: expected a function of {of}.")


def attribute_of(value: Any, name: str) -> Any:
    """None: it has none. A program's object may raise anything, as dicts do whose keys are attributes."""
    try:
        return getattr(value, name, None)
    except Exception:  # of any type: it is that of the value
        return None


def described(value: Any) -> str:
    """What an error says that it found: "a dict of 2", "a Tensor of shape [8]", or the value."""
    kind, shape = type(value).__name__, attribute_of(value, "shape")
    if isinstance(value, (Mapping, list, tuple)):
        return f"a {kind} of {len(value)}"
    return f"{value!r:.80}" if shape is None else f"a {kind} of shape {list(shape)}"


def number(what: str, value: Any, meaning: str) -> float:
    """An argument that is one number of any kind, or a tensor of one element. MisuseError: it is none."""
    is_tensor = attribute_of(value, "numel") is not None
    if not is_tensor or value.numel() == 1:
        with contextlib.suppress(TypeError, ValueError):
            return float(value.item() if is_tensor else value)
    raise MisuseError(f"{what} is {described(value)}: expected one number, {meaning}.")


_HERE = os.path.dirname(__file__) + os.sep


def is_ours(path: str) -> bool:
    """Whether a file is of this package."""
    return path.startswith(_HERE)


def _is_between(path: str) -> bool:
    """Whether a file is of this package, or of what leaves its contexts."""
    return is_ours(path) or path == contextlib.__file__


def _first_outside() -> Tuple[FrameType, int]:
    """The innermost frame that is the program's, and how many frames it is away from the caller's caller."""
    frame, count = sys._getframe(2), 1
    while frame.f_back is not None and _is_between(frame.f_code.co_filename):
        frame, count = frame.f_back, count + 1
    return frame, count


def program_frame() -> FrameType:
    """That of the program's line which is under way."""
    return _first_outside()[0]


def warn(text: str) -> None:
    """One sentence or two. The caller says each thing once."""
    warnings.warn(text, TradewindWarning, stacklevel=_first_outside()[1] + 1)
