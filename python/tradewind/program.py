# SPDX-License-Identifier: Apache-2.0
"""Where the program `tw` is, and a port of this machine. Nothing here imports PyTorch: that takes seconds."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import List, Optional

from .errors import TradewindError


def free_port() -> int:
    """A free TCP port of this machine."""
    with socket.socket() as one, socket.socket() as other:
        try:
            one.bind(("127.0.0.1", 0))
            one.listen(1)
            port: int = one.getsockname()[1]
            other.connect(("127.0.0.1", port))  # some kernels bind it without a loopback interface
        except OSError as error:
            raise TradewindError(
                "launch_local(): peers of this machine meet at 127.0.0.1, and no port of it can be had"
                f" ({error.strerror}): is the loopback interface up (ip link set lo up)?"
            ) from error
        return port


def _places(package: Path) -> List[Path]:
    """Where `tw` may be, by the folder of this package."""
    above = [package, *package.parents]
    beside = [package.parents[1] / "tw", package.parents[1] / "build/tw"]
    # By pip: PREFIX/lib/python3.X/site-packages/tradewind, or FOLDER/tradewind of pip install --target.
    return beside + [folder / "bin/tw" for folder in above[4:5] + above[1:2]]


def program() -> Optional[str]:
    """The program `tw`: TRADEWIND_PROGRAM, beside the build's copy of this package, where pip put it, or on the PATH."""
    named = os.environ.get("TRADEWIND_PROGRAM")
    if named is not None:
        return named
    found = next(filter(Path.is_file, _places(Path(__file__).resolve().parent)), None)
    return str(found) if found else shutil.which("tw")
