# SPDX-License-Identifier: Apache-2.0
"""What a loop does to the model beside step(), and the run cannot follow: said once, by name. Thread: the run's."""

from __future__ import annotations

from typing import Dict, List, Sequence, Set, Tuple

import torch

from ._errors import MisuseError
from ._layout import Layout
from ._moving import Named, all_modules, is_counter
from ._warn import warn

_SHOWN = 3


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def say_what_changes(layout: Layout) -> None:
    """What the run does to the model that torch alone would not do."""
    doubles = [entry.name for entry in layout.entries if entry.tensor.dtype == torch.float64]
    if doubles:
        warn(
            f"{doubles[0]} has dtype float64: the run keeps and averages float32 values of it, so changes below"
            " 6e-8 of a value are lost. Convert the model with model.float(), or train it without a run."
        )
    copies = [one for one in layout.moving if one.is_copy]
    if copies:
        values = sum(one.tensor.numel() for one in copies)
        warn(
            f"{copies[0].name} and what belongs to it ({values} values) is a frozen copy of a trained module. What"
            " the loop does to it is averaged in each round, like a running statistic. run.extra_state() with"
            ' after_round= sends nothing for that; buffers="local" leaves it to each peer.'
        )


class Watch:
    """The model as it was at the start, beside what is trained."""

    def __init__(self, modules: Named, layout: Layout, tells_buffers: bool) -> None:
        self._modules = modules
        self._layout = layout
        self._frozen = [(name, tensor) for name, tensor in layout.frozen]
        self._copies = [one for one in layout.moving if one.is_copy]
        self._buffers = self._other_buffers(layout) if tells_buffers else []
        self._known: Dict[str, int] = dict(self._parameters())
        self._group_ids = [id(group) for group in layout.groups]
        self._checked = -1
        self.mark()

    def _other_buffers(self, layout: Layout) -> List[Tuple[str, torch.nn.Module, str]]:
        averaged = {(id(one.module), one.leaf) for one in layout.moving}
        return [
            (prefix + leaf, module, leaf)
            for prefix, module in all_modules(self._modules)
            for leaf in module._buffers
            if (id(module), leaf) not in averaged and not is_counter(module, leaf)
        ]

    def _parameters(self) -> List[Tuple[str, int]]:
        return [
            (prefix + name, id(parameter))
            for prefix, module in self._modules
            for name, parameter in module.named_parameters()
        ]

    @staticmethod
    def _states(buffers: Sequence[Tuple[str, torch.nn.Module, str]]) -> List[Tuple[int, int]]:
        values = [module._buffers.get(leaf) for _, module, leaf in buffers]
        return [(id(value), -1 if value is None else value._version) for value in values]

    def mark(self) -> None:
        """From now on check() sees what others do."""
        self._versions = [tensor._version for _, tensor in self._frozen]
        self._buffer_states = self._states(self._buffers)

    def check(self, updates: int, optimizer: torch.optim.Optimizer) -> None:
        """At each step(); looks at the first one after an update. MisuseError: another parameter has the place of one that is trained."""
        if updates != self._checked:
            self._checked = updates
            self._check_frozen()
            self._check_buffers()
            self._check_modules()
            self._check_groups(optimizer)

    def _check_frozen(self) -> None:
        thawed = [name for name, tensor in self._frozen if tensor.requires_grad]
        thawed += [one.name for one in self._copies if one.tensor.requires_grad]
        moved = [
            name
            for (name, tensor), version in zip(self._frozen, self._versions)
            if tensor._version != version and not tensor.requires_grad
        ]
        if thawed:
            warn(
                f"{_listed(thawed)}: frozen when the run started, so the run does not train it, though it requires a"
                " gradient now. Let it require one when the run starts and freeze it after that: then thawing works."
            )
        if moved:
            warn(
                f"{_listed(moved)}: frozen when the run started, and changed by this loop since: joiners and"
                " checkpoints have it as it was. Give it to run.extra_state()."
            )
        if thawed or moved:
            told = set(thawed) | set(moved)
            self._frozen = [(name, tensor) for name, tensor in self._frozen if name not in told]
            self._copies = [one for one in self._copies if one.name not in told]
            self._versions = [tensor._version for _, tensor in self._frozen]

    def _check_buffers(self) -> None:
        states = self._states(self._buffers)
        if states == self._buffer_states:
            return
        changed = [at for at, state in enumerate(states) if state != self._buffer_states[at]]
        names = [self._buffers[at][0] for at in changed]
        warn(
            f"{_listed(names)}: a buffer that changes and is no running statistic of torch's normalisations. Each peer"
            " keeps its own, and a joiner begins with that of its new model. Give it to run.extra_state(), or say"
            ' buffers="local" in run.optimizer() if that is right.'
        )
        self._buffers = [buffer for at, buffer in enumerate(self._buffers) if at not in set(changed)]
        self._buffer_states = self._states(self._buffers)

    def _check_modules(self) -> None:
        now = dict(self._parameters())
        if now == self._known:
            return
        known: Set[int] = set(self._known.values())
        for name, number in now.items():
            if number in known:
                continue
            what = "is another tensor now than" if name in self._known else "was not there"
            raise MisuseError(
                f"{name} {what} when the run started, and the run does not train it: change modules before"
                " run.start(), or load values into the parameters that are there."
            )
        self._known = now

    def _check_groups(self, optimizer: torch.optim.Optimizer) -> None:
        groups = optimizer.param_groups
        if sorted(map(id, groups)) == sorted(self._group_ids):
            return
        raise MisuseError(
            f"the optimizer has other groups than when the run started ({len(groups)} now, {len(self._group_ids)}"
            " then): add groups and load states before run.start()."
        )
