# SPDX-License-Identifier: Apache-2.0
"""What was done before this run, or before this process came to it, and what a program is told of that."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence

import torch

from ..errors import warn
from .advice import listed
from .engine_rules import counts_nothing
from .layout import Named, all_modules


class Begun(NamedTuple):
    """What was done in a run before, from whose state this one goes on."""

    round: int
    samples: int

    def __str__(self) -> str:
        return f"round {self.round} with {self.samples} samples"


def say_other_state(mine: Begun, run: Begun, round: int) -> None:
    """The program loaded another state than that from which the run goes on, which is in this round of its own."""
    if any(mine) and mine != run:
        goes_on = f"goes on from {run}" if any(run) else "began without a state"
        warn(
            f"run.load_state_dict(): the state is of {mine}, and the run {goes_on}: this peer takes the run's, of round"
            f" {run.round + round}."
        )


def _fresh_statistics(modules: Named) -> List[str]:
    """Names of the normalisations whose running means are those of a new module."""
    found = []
    for name, module in all_modules(modules):
        mean = module._buffers.get("running_mean")
        if mean is not None and not bool(mean.any()):
            found.append(name.rstrip(".") or type(module).__name__)
    return found


def say_what_begins_anew(modules: Named, optimizers: Sequence[torch.optim.Optimizer], round: int) -> None:
    """This process came to the run in this round. modules, optimizers: whose state is this peer's own."""
    names = _fresh_statistics(modules)
    lost = [f'the running statistics of {listed(names)} (buffers="local")'] if names else []
    lost += [
        f"the state of the loop's {type(one).__name__}"
        for one in optimizers
        if not one.state and not counts_nothing(one)
    ]
    kept = ["model.state_dict()"] if names else []
    kept += ["optimizer.state_dict()"] if len(lost) > len(kept) else []
    if lost:
        warn(
            f"this peer goes on after round {round}, and what is its own begins anew: {' and '.join(lost)}. To keep that,"
            f" save {' and '.join(kept)} now and then, and load {'it' if len(kept) == 1 else 'them'} before run.start()."
        )
