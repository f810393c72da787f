# SPDX-License-Identifier: Apache-2.0
"""What a program had better change, said once each, by name and number: a loss that is a sum, steps of a size that does
not fit the run, and what a loop does to the model that the run cannot follow.
"""

from __future__ import annotations

import math
import time
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple

import torch

from ..engine.host_bytes import bytes_of
from ..errors import EngineError, MisuseError, number, program_frame, warn
from .device import is_away
from .layout import Layout, Named, all_modules, is_counter
from .loss_graph import is_sum
from .memory import version_of

_STEPS = 3


def number_of_loss(loss: Any) -> float:
    """What step() was told; NaN: nothing. MisuseError: no number."""
    return math.nan if loss is None else number("step(): loss=", loss, "the mean over the batch, such as loss.mean()")


def _loss_of_program() -> Optional[torch.Tensor]:
    """A local of the line that calls step(), by its name."""
    for name, value in program_frame().f_locals.items():
        is_one = isinstance(value, torch.Tensor) and value.numel() == 1 and value.grad_fn is not None
        if is_one and "loss" in name.lower():
            return value
    return None


class SumLosses:
    """Looks at the losses of the first steps, and says once that they are sums."""

    def __init__(self) -> None:
        self._left = _STEPS

    def look(self, loss: Any, samples: int, last: int) -> None:
        """loss: as step() was told; if that is no tensor with a graph, it may stand in the program. samples: of the
        step; last: of its last batch, if known.
        """
        if not self._left or samples < 2:
            return
        self._left -= 1
        told = isinstance(loss, torch.Tensor) and loss.grad_fn is not None
        if is_sum(loss if told else _loss_of_program(), {samples, last} - {0, 1}):
            self._left = 0
            warn(
                f"the loss is a sum over the {samples} samples of the batch, and a run takes the gradient for"
                f" that of their mean: steps are {samples} times as long as meant. Use reduction=\"mean\", or"
                " divide the loss by the samples."
            )


def about_swaps(optimizer: Any) -> str:
    """What to do beside a warning of changed weights, where the optimizer swaps them; empty: it does not."""
    if not all(callable(getattr(optimizer, name, None)) for name in ("train", "eval")):
        return ""
    return (
        f" {type(optimizer).__name__}.eval() and train() swap weights: evaluate copies of both,"
        " copy.deepcopy((model, optimizer)), with the optimizer that run.optimizer() was given."
    )


def _may_train(gradient: torch.Tensor) -> bool:
    """Whether it has other values than zeros, as far as that can be seen at once."""
    return is_away(gradient) or gradient.layout != torch.strided or bool(torch.count_nonzero(gradient))


class NoGradients:
    """Looks at the gradients of the first steps, and says once that there are none. On a device, where to look is to wait,
    those of zeros pass.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._left = _STEPS

    def look(self) -> None:
        """At a step()."""
        if not self._left:
            return
        gradients = [parameter.grad for parameter in self._parameters]
        if any(one is not None and _may_train(one) for one in gradients):
            self._left = 0
            return
        self._left -= 1
        if not self._left:
            warn(
                f"no parameter had a gradient in the first {_STEPS} steps, so this peer adds nothing to the run: call"
                " loss.backward() before step(), and zero_grad() after it."
            )


def with_the_runs(changed: Optional[str]) -> str:
    """What to do where batches were taken and no step() of the run came. changed: a parameter that changed all the same."""
    call = "call step() of what run.optimizer() returned"
    return call if changed is None else f"{changed} has changed, so the loop may step the optimizer inside: {call}"


_LOOK_S = 1.0
# So many batches for a step(), with samples for so many rounds, are no accumulation.
_BATCHES_OF_NO_STEP = 64
_ROUNDS_OF_NO_STEP = 2

# Of the samples that a peer computes, this share may go for nothing without a word.
_LOST = 0.1


class Taken(Protocol):
    """Batches that a loop has in hand, and their samples, of those where that is known."""

    @property
    def batches(self) -> int: ...

    @property
    def samples(self) -> int: ...


class Sizes(NamedTuple):
    """Samples that a peer takes at once, 0: not known yet; whether steps are cut to what a round has left; and which share
    of the samples, of those not cut, turned out to be beyond their round.
    """

    at_once: int
    is_cut: bool = False
    lost: float = 0.0


def about_rest(target: int, sizes: Sizes, peers: int) -> Optional[str]:
    """On the last step of a round, of which a part is beyond the target batch size; None: it is small."""
    at_once = sizes.at_once
    steps = -(-target // at_once)
    more = steps * at_once - target
    if more <= target * _LOST:
        return None
    fits = f"take {-(-target // steps)} samples, or a target_batch_size of {steps * at_once}."
    if not sizes.is_cut:
        what = f"{steps} steps of {at_once} samples, and {more} of these {steps * at_once} never count"
        return f"target_batch_size={target} takes {what}: {fits}" if sizes.lost > _LOST else None
    if steps != peers or peers == 1:
        return None
    return (
        f"target_batch_size={target} is {steps} steps of {at_once} samples at most, one for each peer, of which the last"
        f" has {at_once - more}: {fits}"
    )


def about_sizes(target: int, sizes: Sizes, peers: int) -> Optional[str]:
    """On the samples that a peer takes at once, against the target batch size; None: both fit."""
    at_once = min(sizes.at_once, target) if sizes.is_cut else sizes.at_once
    if at_once > target:
        return (
            f"target_batch_size={target} is less than the {at_once} samples of a step, so {at_once - target}"
            f" of them never count: take {max(1, target // peers)} samples at most, or a target_batch_size of"
            f" {at_once * peers} at least."
        )
    busy = -(-target // at_once)
    if busy < peers:
        return (
            f"target_batch_size={target} is {busy} step{'s' if busy > 1 else ''} of {at_once} samples, so"
            f" {busy} of {peers} peers compute{'' if busy > 1 else 's'} at a time and the others wait: take"
            f" {max(1, target // peers)} samples at most, or a target_batch_size of {at_once * peers} at"
            " least."
        )
    return about_rest(target, sizes._replace(at_once=at_once), peers)


class Advice:
    """Looks at the run now and then. Thread: the run's."""

    def __init__(self) -> None:
        self.is_target_chosen = False  # the target batch size, by the leader: then no advice names one
        self._of_several: List[str] = []
        self._said_sizes = False
        self._said_no_loss = False
        self._said_no_step = False
        self._next_look = 0.0

    def of_several(self, text: str) -> None:
        """Said once the run has several peers; {peers}: how many."""
        self._of_several.append(text)
        self._next_look = 0.0

    def of_no_loss(self, loss: float, round: int) -> None:
        """Said once. loss: of a step in this round, not finite, which the engine takes for not known."""
        if not self._said_no_loss:
            self._said_no_loss = True
            warn(
                f"step(loss={loss}) in round {round}: the loss is not finite, and log, page and run.metrics show none of a"
                " round with such a step. Look at its batch, or take a lower learning rate."
            )

    def of_no_step(
        self, taken: Taken, view: Callable[[], Dict[str, Any]], check: Callable[[], Optional[str]]
    ) -> None:
        """Said once, where so much was taken since the last step(). check(): a parameter that changed meanwhile."""
        if self._said_no_step or taken.batches % _BATCHES_OF_NO_STEP:
            return
        target = int(view().get("target") or 0)
        if target and max(taken.samples, taken.batches) > _ROUNDS_OF_NO_STEP * target:
            self._said_no_step = True
            warn(
                f"{taken.batches} batches were taken since the last step(), more than {_ROUNDS_OF_NO_STEP} rounds of"
                f" target_batch_size={target} have: {with_the_runs(check())}."
            )

    def look(self, view: Callable[[], Dict[str, Any]], sizes: Sizes) -> None:
        """Sizes of the steps up to now."""
        if self._said_sizes and not self._of_several or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_S
        seen = view()
        peers, target = int(seen.get("peers") or 1), int(seen.get("target") or 0)
        if peers > 1:
            texts, self._of_several = self._of_several, []
            for text in texts:
                warn(text.format(peers=peers))
        known = target and sizes.at_once and not self._said_sizes and not self.is_target_chosen
        found = about_sizes(target, sizes, peers) if known else None
        if found is not None:
            self._said_sizes = True
            warn(found)


_SHOWN = 3


def listed(names: Sequence[str]) -> str:
    """The first ones, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def say_what_changes(layout: Layout) -> None:
    """What the run does to the model that torch alone would not do."""
    doubles = [entry.name for entry in layout.entries if entry.tensor.dtype == torch.float64]
    if doubles:
        warn(
            f"{doubles[0]} has dtype float64: the run keeps and averages float32 values of it, so changes below"
            " 6e-8 of a value are lost, and values beyond 3.4e38 become infinite. Convert the model with"
            " model.float(), or train it without a run."
        )
    copies = [one for one in layout.moving if one.is_copy]
    if copies:
        values = sum(one.tensor.numel() for one in copies)
        warn(
            f"{copies[0].name} and what belongs to it ({values} values) is a frozen copy of a trained module. What"
            " the loop does to it is averaged in each round, like a running statistic. run.extra_state() with"
            ' after_round= sends nothing for that; buffers="local" leaves it to each peer.'
        )


# Looks at the values of buffers, and values of one that is looked at.
_LOOKS = 3
_MOST_LOOKED_AT = 1 << 16


def _checksum(value: Optional[torch.Tensor]) -> int:
    """Of a dense buffer that is not large."""
    if value is None or value.layout != torch.strided or value.numel() > _MOST_LOOKED_AT:
        return 0
    return zlib.crc32(bytes_of(value.detach().cpu().contiguous()))


def explained(error: BaseException) -> BaseException:
    """That of a start; with what helps where frozen values differ. Those of Keras' BatchNormalization move in each forward
    pass.
    """
    if not isinstance(error, EngineError) or 'expected "frozen: ' not in str(error):
        return error
    return type(error)(
        f"{error}. Frozen parameters are compared as they are at the start: if forward passes change them, call run.start()"
        " before the first one, and give them to run.extra_state()."
    )


class _Place(NamedTuple):
    """A parameter (id), and the module (id) that has it under this name."""

    parameter: int
    module: int
    leaf: str


class Watch:
    """The model as it was at the start, beside what is trained."""

    def __init__(self, modules: Named, layout: Layout, tells_buffers: bool) -> None:
        self._modules = modules
        self._layout = layout
        self._frozen = [(name, tensor) for name, tensor in layout.frozen]
        self._copies = [one for one in layout.moving if one.is_copy]
        self._buffers = self._other_buffers(layout) if tells_buffers else []
        self._looks = _LOOKS
        self._known = self._parameters()
        self._said_moved = False
        self._group_ids = [id(group) for group in layout.groups]
        self._checked = -1
        self.mark()

    def _other_buffers(self, layout: Layout) -> List[Tuple[str, torch.nn.Module, str]]:
        averaged = {(id(one.module), one.leaf) for one in layout.moving}
        return [
            (prefix + leaf, module, leaf)
            for prefix, module in all_modules(self._modules)
            for leaf in module._buffers.keys()  # of a ScriptModule: no iterator
            if (id(module), leaf) not in averaged and not is_counter(module, leaf)
        ]

    def _parameters(self) -> Dict[str, _Place]:
        """By name; a tied one has several."""
        return {
            prefix + leaf: _Place(id(parameter), id(module), leaf)
            for prefix, module in all_modules(self._modules)
            for leaf, parameter in module.named_parameters(recurse=False)
        }

    @staticmethod
    def _states(buffers: Sequence[Tuple[str, torch.nn.Module, str]]) -> List[Tuple[int, int]]:
        values = [getattr(module, leaf, None) for _, module, leaf in buffers]
        return [(id(value), -1 if value is None else version_of(value)) for value in values]

    def mark(self) -> None:
        """From now on check() sees what others do."""
        self._versions = [version_of(tensor) for _, tensor in self._frozen]
        self._buffer_states = self._states(self._buffers)
        self._sums = self._sums_now()

    def _sums_now(self) -> List[int]:
        """Checksums of the buffers, which F.batch_norm, TorchScript and .data change without torch counting it; in the
        first rounds alone.
        """
        if not self._looks:
            return []
        return [_checksum(getattr(module, leaf, None)) for _, module, leaf in self._buffers]

    def check(self, updates: int, optimizer: torch.optim.Optimizer) -> bool:
        """At each step(); looks, and returns True, at the first one after an update. MisuseError: another parameter has
        the place of one that is trained.
        """
        if updates == self._checked:
            return False
        self._checked = updates
        self._check_frozen()
        self._check_buffers()
        self._check_modules()
        self._check_groups(optimizer)
        return True

    def _check_frozen(self) -> None:
        thawed = [name for name, tensor in self._frozen if tensor.requires_grad]
        thawed += [one.name for one in self._copies if one.tensor.requires_grad]
        moved = [
            name
            for (name, tensor), version in zip(self._frozen, self._versions)
            if version_of(tensor) != version and not tensor.requires_grad
        ]
        if thawed:
            warn(
                f"{listed(thawed)}: frozen when the run started, so the run does not train it, though it requires a"
                " gradient now. Let it require one when the run starts and freeze it after that: then thawing works."
            )
        if moved:
            warn(
                f"{listed(moved)}: frozen when the run started, and changed by this loop since: joiners and"
                " checkpoints have it as it was. Give it to run.extra_state()."
            )
        if thawed or moved:
            told = set(thawed) | set(moved)
            self._frozen = [(name, tensor) for name, tensor in self._frozen if name not in told]
            self._copies = [one for one in self._copies if one.name not in told]
            self._versions = [version_of(tensor) for _, tensor in self._frozen]

    def _check_buffers(self) -> None:
        states, sums = self._states(self._buffers), self._sums_now()
        if self._looks:
            self._looks -= 1
        if (states, sums) == (self._buffer_states, self._sums):
            self._sums = self._sums_now()
            return
        before = list(zip(self._buffer_states, self._sums or [0] * len(states)))
        changed = [at for at, now in enumerate(zip(states, sums or [0] * len(states))) if now != before[at]]
        names = [self._buffers[at][0] for at in changed]
        warn(
            f"{listed(names)}: a buffer that changes and is no running statistic of torch's normalisations. Each peer"
            " keeps its own, and a joiner begins with that of its new model. Give it to run.extra_state(), or say"
            ' buffers="local" in run.optimizer() if that is right.'
        )
        self._buffers = [buffer for at, buffer in enumerate(self._buffers) if at not in set(changed)]
        self._buffer_states, self._sums = self._states(self._buffers), self._sums_now()

    def _check_modules(self) -> None:
        now = self._parameters()
        if now == self._known:
            return
        known = {place.parameter for place in self._known.values()}
        for name, place in now.items():
            if place.parameter in known:
                continue
            what = "is another tensor now than" if name in self._known else "was not there"
            raise MisuseError(
                f"{name} {what} when the run started, and the run does not train it: change modules before"
                " run.start(), or load values into the parameters that are there."
            )
        moved = [] if self._said_moved else self._moved(now)
        if moved:
            self._said_moved = True
            warn(
                f"the loop moved parameters of the model: {listed(moved)}. Joiners and checkpoints have them as they were"
                " when the run started: tie, prune, swap or drop them before that."
            )

    def _moved(self, now: Dict[str, _Place]) -> List[str]:
        """What was done to names of parameters. A layer that the program wrapped only has longer ones."""
        names: Dict[int, str] = {}
        for name, place in self._known.items():
            names.setdefault(place.parameter, name)
        places, left = set(self._known.values()), {place.parameter for place in now.values()}
        moved = [
            f"{name} is now what was {names[place.parameter]}"
            for name, place in now.items()
            if (self._known[name].parameter != place.parameter if name in self._known else place not in places)
        ]
        gone = [name for name, place in self._known.items() if name not in now and place.parameter not in left]
        return moved + [f"{name} is gone" for name in gone]

    def _check_groups(self, optimizer: torch.optim.Optimizer) -> None:
        groups = optimizer.param_groups
        if sorted(map(id, groups)) == sorted(self._group_ids):
            return
        raise MisuseError(
            f"the optimizer has other groups than when the run started ({len(groups)} now, {len(self._group_ids)}"
            " then): add groups and load states before run.start()."
        )
