# SPDX-License-Identifier: Apache-2.0
"""The way into a run."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .loop.node import Node
from ._run import Run
from .engine.settings import resolve


def join(
    file: Optional[Any] = None,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    group: Optional[Any] = None,
    **named: Any,
) -> Run:
    """Checks the settings of a run; it starts with run.start(), the first batch or step(), not before.

    file: the run file (YAML). named, settings: keys of the run file (docs/run_file.md; rounds= is enough for
    training.rounds) and options of `tw run` (join=, listen=, token=, run=, bootstrap=, insecure=, site=,
    id=, out=, wait_for=, ...), threads= of torch, progress="auto"|"line"|"off". What is left out is taken
    from the environment TRADEWIND_*. group: ranks of torch.distributed that are one peer together
    (DistributedDataParallel in a node); each calls the same. SettingError: unknown, or wrong. MisuseError:
    a run is open in this process already.
    """
    node = None if group is None else Node(group)
    return Run(resolve({"file": file, **dict(settings or {}), **named}), node=node)
