# SPDX-License-Identifier: Apache-2.0
"""The one way to warn: warnings.warn of the package's category, at the line of the program."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Tuple

from ._errors import TradewindWarning

_HERE = os.path.dirname(__file__)


def _first_outside() -> Tuple[FrameType, int]:
    """The innermost frame that is not this package's, and how many frames it is away from the caller's caller."""
    frame, count = sys._getframe(2), 1
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame, count = frame.f_back, count + 1
    return frame, count


def program_frame() -> FrameType:
    """That of the program's line which is under way."""
    return _first_outside()[0]


def warn(text: str) -> None:
    """One sentence or two. The caller says each thing once."""
    warnings.warn(text, TradewindWarning, stacklevel=_first_outside()[1] + 1)
