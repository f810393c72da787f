# SPDX-License-Identifier: Apache-2.0
"""Children of a fork (data loader workers) have the engine's sockets: they close them, and can use nothing
of it.
"""

from __future__ import annotations

import os

from .engine import abi
from .errors import MisuseError

_registered = False


def _in_child() -> None:
    library = abi.loaded_library()
    if library is not None:
        library.tw_after_fork()


def watch() -> None:
    """Closes the engine's sockets in every child that is forked from now on."""
    global _registered
    if not _registered:
        os.register_at_fork(after_in_child=_in_child)
        _registered = True


def refuse_child(joined_in: int) -> None:
    """MisuseError: this process is a fork of the one that joined."""
    if os.getpid() != joined_in:
        raise MisuseError(
            f"the run was joined by process {joined_in}, this is its fork {os.getpid()}: use the run in the"
            " process that joined it alone."
        )
