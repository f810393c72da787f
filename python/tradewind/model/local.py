# SPDX-License-Identifier: Apache-2.0
"""The modes local and streaming: the program's own optimizer trains its copy of the parameters, and what it changed is
averaged once a round. Thread: the run's.

With P the run's parameters (the engine's vector) and L the model's own:

    a step          L follows the loss, by any torch optimizer; nothing crosses
    contribution    samples x (base - L): P is updated with its mean as with a gradient (the outer step)
    load            L = P + what this peer contributed to later rounds

The base is where the change to contribute began: P at first, and L at the last contribution. With overlap P is one
round behind, so a load keeps this peer's newest contribution in L. With fragments all of this holds for the values that
a round averages, and their change is that since their last turn.
"""

from __future__ import annotations

import ctypes
import math
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..engine import abi
from ..engine.peer import Engine, Group, HostTensor
from ..errors import MisuseError, SettingError, UnsupportedError, warn
from .advice import about_swaps
from .device import Crossing, Placed, host_values, is_away, pieces
from .layout import Entry, Layout, Modules
from .memory import flat_tensor, same_values, version_of, view_of
from .optimizers import refuse_optimizer
from .options import TrainedOptions
from .trained import Trained

MODES = ("local", "streaming")
CACHED = 1 << 18  # values (1 MiB): the passes after the first one find them in the processor's cache
SPARE = 2  # of a fragment's length: new memory costs as much as a pass
Fragment = Tuple[int, int]  # place of the first value in the vector, number of values


class OuterStep:
    """What the mean change does to the run's parameters: it is added, or a step of SGD with Nesterov momentum."""

    is_foreign = False
    updates_here = False
    state_values = 0

    def __init__(self, layout: Layout, kind: str, rate: float, momentum: float) -> None:
        self._tensors = len(layout.parameters)
        self._rate, self._momentum = (rate, momentum) if kind == "nesterov" else (1.0, 0.0)

    @property
    def engine_buffers(self) -> int:
        """Vectors of the engine that have its momentum."""
        return 1 if self._momentum else 0

    def groups(self) -> Tuple[Group, ...]:
        """One, of all parameters."""
        flags = abi.TW_NESTEROV if self._momentum else 0
        return (
            Group(self._tensors, self._rate, momentum=self._momentum, kind=abi.TW_SGD, flags=flags),
        )

    def facts(self) -> List[str]:
        """What peers compare."""
        return [f"outer: rate {self._rate} momentum {self._momentum}"]

    def check(self) -> None:
        """The loop's optimizer is its own."""


class _Change:
    """What one fragment of L changed, as far as it is in no mean yet."""

    def __init__(self) -> None:
        self.round = 0  # in whose contribution all of L - base is; 0: it is in none
        self.earlier: Dict[int, torch.Tensor] = {}  # round: what was contributed to it before the base


class CopyOptions(NamedTuple):
    """fragment(round): of the vector, which this round averages. overlaps: the engine's vector changes while a contribution
    is in no mean yet.
    """

    fragment: Callable[[int], Fragment]
    overlaps: bool


class Piece(NamedTuple):
    """Values of one tensor of the model that a fragment of the vector has."""

    entry: Entry  # of these values: flat ones where they are not the whole tensor
    values: torch.Tensor
    whole: Optional[torch.Tensor] = None  # the tensor, where `values` are a copy out of it
    begin: int = 0  # place of the first one in it

    def parts(self) -> Iterator[Piece]:
        """The same in pieces that cross to the host at once; of the host's own, that fit its cache."""
        most = CACHED if self.values.device.type == "cpu" else Crossing.BUCKET
        for entry, values in pieces([(self.entry, self.values)], most):
            yield Piece(entry, values, self.whole, self.begin + entry.first - self.entry.first)

    def put(self, values: torch.Tensor) -> torch.Tensor:
        """The tensor gets them. Returns them as it has them."""
        held = values if self.values.dtype == torch.float32 else values.to(self.values.dtype)
        if self.whole is None:
            self.values.copy_(held)
            return held
        rows = self.whole.contiguous()
        rows.view(-1)[self.begin : self.begin + self.entry.values].copy_(held)
        self.whole.copy_(rows)
        return held


def piece_of(entry: Entry, tensor: torch.Tensor, fragment: Fragment) -> Optional[Piece]:
    """What the fragment has of the tensor, which is the entry's."""
    first, count = fragment
    begin, end = max(first - entry.first, 0), min(first + count - entry.first, entry.values)
    if begin >= end:
        return None
    if end - begin == entry.values:
        return Piece(entry, tensor)
    values = tensor.detach().reshape(-1)[begin:end]
    cut = entry._replace(tensor=values, first=entry.first + begin, values=end - begin)
    return Piece(cut, values, None if tensor.is_contiguous() else tensor.detach(), begin)


class OwnCopy:
    """The model's own values, beside the run's in the engine's vector.

    A round averages a fragment of the vector, in turn. What the others changed since their last turn stays in L.
    """

    def __init__(
        self, entries: Sequence[Entry], statistics: int, tensors: Any, flat: torch.Tensor, options: CopyOptions
    ) -> None:
        """statistics: place of the first one; they follow the parameters. tensors(): the model's, as they are now. flat:
        the engine's vector.
        """
        self._entries = tuple(entries)
        self._statistics = statistics
        self._of_model = tensors
        self._held: Optional[List[torch.Tensor]] = None  # L, while the model has the run's parameters
        self._versions: List[int] = []  # of the model's tensors, as it got those
        self._flat = flat
        self._options = options
        self._crossing = Crossing()
        self._scratch = (host_values(0), host_values(0))  # each as the largest piece
        self._spare: List[torch.Tensor] = []  # memory of changes that are in a mean, as the largest fragment
        self._base: Optional[torch.Tensor] = None  # None: the run's parameters
        self._changes: Dict[Fragment, _Change] = {}
        self._counted: Dict[int, int] = {}  # round: samples contributed to it
        self.samples = 0  # of the round, that are not contributed

    @property
    def is_held(self) -> bool:
        """Whether the model has the run's parameters."""
        return self._held is not None

    def _tensors(self) -> List[torch.Tensor]:
        """L."""
        found: List[torch.Tensor] = self._of_model() if self._held is None else self._held
        return found

    def _pieces(self, fragment: Fragment) -> List[Piece]:
        """L's values in the fragment."""
        pairs = zip(self._entries, self._tensors())
        found = (piece_of(entry, tensor, fragment) for entry, tensor in pairs)
        return [part for piece in found if piece is not None for part in piece.parts()]

    def _changed(self, parts: Sequence[Piece]) -> Iterator[Placed]:
        """L - base, on the host; each is valid until the next one is asked for."""
        base = self._flat if self._base is None else self._base
        for entry, own in self._crossing.each([(piece.entry, piece.values) for piece in parts]):
            yield entry, torch.sub(own, view_of(base, entry), out=self._room(0, entry))

    def _room(self, which: int, entry: Entry) -> torch.Tensor:
        """One of two tensors for values of a piece."""
        if self._scratch[0].numel() == 0:
            most = max(piece.entry.values for piece in self._pieces((0, len(self._flat))))
            self._scratch = (host_values(most), host_values(most))
        return view_of(self._scratch[which], entry._replace(first=0))

    def _fresh(self, count: int) -> torch.Tensor:
        spare = self._spare.pop() if self._spare else host_values(0)
        return spare if spare.numel() >= count else host_values(count)

    @torch.no_grad()
    def begin_step(self) -> None:
        """The model is about to change: after a contribution, a new change begins."""
        for fragment, change in self._changes.items():
            if change.round:
                self._begin_change(fragment, change)

    def _begin_change(self, fragment: Fragment, of: _Change) -> None:
        first, count = fragment
        known = of.earlier.get(of.round)
        kept = of.earlier[of.round] = self._fresh(count) if known is None else known
        if self._base is None:
            self._base = self._flat.clone()
        for entry, own in self._crossing.each([(piece.entry, piece.values) for piece in self._pieces(fragment)]):
            base, at = view_of(self._base, entry), view_of(kept, entry._replace(first=entry.first - first))
            torch.sub(own, base, out=at) if known is None else at.add_(own - base)
            base.copy_(own)
        of.round = 0

    @torch.no_grad()
    def contribute(self, round: int, total: torch.Tensor) -> None:
        """Adds samples x change to float32 [values of the round's fragment]. MisuseError: it is not finite.

        Of the second contribution to a round, as much as makes both together all samples x the whole change.
        """
        self.begin_step()  # what no step changed since the last contribution adds nothing
        fragment = self._options.fragment(round)
        of = self._changes.setdefault(fragment, _Change())
        samples, self.samples, of.round = self.samples, 0, round
        before, earlier = self._counted.get(round, 0), of.earlier.get(round)
        self._counted[round] = before + samples
        for entry, change in self._changed(self._pieces(fragment)):
            if not math.isfinite(float(change.sum())):
                raise MisuseError(
                    f"{entry.name} is not finite: a step of the loop's own optimizer made it so. Use a lower learning"
                    " rate, clip the gradient, or skip the step."
                )
            # A gradient points uphill; statistics (after the parameters) get the mean change itself.
            sign = -1 if entry.first < self._statistics else 1
            at = entry._replace(first=entry.first - fragment[0])
            view_of(total, at).add_(change, alpha=sign * (before + samples))
            if earlier is not None:
                view_of(total, at).add_(view_of(earlier, at), alpha=sign * samples)

    @torch.no_grad()
    def load(self, round: int, restored: bool) -> None:
        """P is that after this round: what was contributed to it, or is in no mean, is no longer L's own. restored: P
        is that of others.
        """
        whole = (0, len(self._flat))
        fragment = whole if restored else self._options.fragment(round)
        of = _Change() if restored else self._changes.get(fragment, _Change())
        parts = self._pieces(fragment)
        if self._options.overlaps and self._base is None:
            self._base = self._flat.clone()
        # Of a fragment that had its turn, the steps since then are in no contribution.
        steps = fragment != whole and not of.round
        pending = steps or of.round > round
        kept = [change for to, change in of.earlier.items() if to > round]
        by_place = {piece.entry.first: piece for piece in parts}
        for entry, change in self._changed(parts) if pending else ((piece.entry, None) for piece in parts):
            base = view_of(self._flat, entry)
            for earlier in kept:
                at = entry._replace(first=entry.first - fragment[0])
                base = torch.add(base, view_of(earlier, at), out=self._room(1, entry))
            begun = None if self._base is None else view_of(self._base, entry)
            if begun is not None and steps:
                begun.copy_(base)
            own = base if change is None else torch.add(base, change, out=self._room(1, entry))
            held = by_place[entry.first].put(own)
            # What the tensor's dtype rounds is no change: L - base stays what the steps made.
            if begun is not None and not (steps and held.dtype == torch.float32):
                begun.copy_(held.float() - change if steps and change is not None else held)
        # What is kept is forgotten here: the next load settles it, and what is contributed to its round until then
        # (work of others that was lost) counts as a change of its own. A vector less.
        done = self._changes.pop(fragment, None)
        self._spare = [*self._spare, *(done.earlier.values() if done else ())][-SPARE:]
        if restored:
            self._changes = {}
        later = {} if restored or fragment == whole else self._counted
        self._counted, self.samples = {to: count for to, count in later.items() if to > round}, 0
        if not self._options.overlaps:
            self._base = None
        if self._held is not None:
            self._show()

    @contextmanager
    def committed(self) -> Iterator[None]:
        """Inside, the model has the run's parameters; inside of another one it changes nothing."""
        if self._held is not None:
            yield
            return
        self._held = [tensor.detach().clone() for tensor in self._of_model()]
        self._show()
        try:
            yield
        finally:
            held, self._held = self._held, None
            with torch.no_grad():
                for own, tensor in zip(held, self._of_model()):
                    tensor.copy_(own)

    @torch.no_grad()
    def _show(self) -> None:
        """The model gets the run's parameters."""
        for entry, tensor in zip(self._entries, self._of_model()):
            tensor.copy_(view_of(self._flat, entry))
        self._versions = [version_of(tensor) for tensor in self._of_model()]

    @torch.no_grad()
    def changed(self, statistics: bool) -> Optional[str]:
        """Inside committed(): the name of a parameter that has not the run's values any more. On a device, where torch
        knows of the change. statistics: or of such a running statistic.
        """
        for entry, tensor, version in zip(self._entries, self._of_model(), self._versions):
            is_left_out = entry.first >= self._statistics and not statistics
            if is_left_out or is_away(tensor) and version_of(tensor) == version:
                continue
            run = view_of(self._flat, entry).to(tensor.device, tensor.dtype)
            if not same_values(tensor, run):
                return entry.name
        return None


class LocallyTrained(Trained):
    """Trained, of which the loop's optimizer steps at each step() and the engine at each round."""

    contributes = True
    steps_here = True

    def __init__(
        self, model: Modules, optimizer: torch.optim.Optimizer, options: TrainedOptions, settings: Any
    ) -> None:
        """settings: values of the run's, by key."""
        mode = settings["training.mode"]
        if options.engine == "tradewind":
            raise SettingError(f'engine="tradewind": with mode={mode} the optimizer steps by itself; leave it out.')
        if options.clip_norm:
            raise SettingError(
                f"clip_grad_norm: with mode={mode} clip in the loop, by torch.nn.utils.clip_grad_norm_ before step()."
            )
        if options.accumulate != "auto":
            raise SettingError(f"accumulate: with mode={mode} no gradient is added up; leave it out.")
        options.alias = False
        super().__init__(model, optimizer, options)
        self._settings = settings
        self._copy: Optional[OwnCopy] = None  # until bind()
        self._fresh = False  # a gradient in hand has not been stepped with
        self._settled = False
        self._told_of_changes = False

    def _make_rule(self, layout: Layout) -> OuterStep:
        refuse_optimizer(self.optimizer)
        values = self._settings
        kind = values["training.outer"]
        return OuterStep(layout, kind, float(values["training.outer_rate"]), float(values["training.outer_momentum"]))

    def _groups(self) -> Tuple[Group, ...]:
        # The values that elsewhere count updates stay as they are: each parameter takes part in its fragment's rounds.
        return (Group(1, 0.0, kind=abi.TW_SGD), *self._rule.groups(), *self._averages())

    def _averages(self) -> Tuple[Group, ...]:
        return tuple(Group(tensors, kind=abi.TW_AVERAGE) for _, tensors in self._layout.averages)

    def bind(self, engine: Engine) -> None:
        """As Trained's."""
        super().bind(engine)
        layout = self._layout
        self._copy = OwnCopy(
            layout.entries,
            layout.buffers[0].first if layout.buffers else len(self.flat),
            lambda: [*self._tensors, *(one.tensor for one in layout.moving)],
            self.flat,
            CopyOptions(engine.fragment, self._settings["training.mode"] == "streaming"),
        )

    def settings(self, round: int, wanted: str) -> Optional[Sequence[Group]]:
        """The outer step's, always the same."""
        return None

    def _take(self, round: int, restored: bool) -> None:
        assert self._copy is not None
        self._copy.load(round, restored)
        if not self._bound.is_bound:
            self._bound.mark()

    def _keep_changes(self) -> None:
        """The loop changes its own copy; that of the run has changed by means alone."""
        self._tell_of_changes("in after_round=", statistics=True)

    def _tell_of_changes(self, where: str, statistics: bool) -> None:
        name = None if self._told_of_changes or self._copy is None else self._copy.changed(statistics)
        if name is not None:
            self._told_of_changes = True
            warn(
                f"{name} was changed {where}: with mode={self._settings['training.mode']} the model has the run's"
                " parameters there, and the change is dropped. Change the loop's own after step()."
                f"{about_swaps(self.optimizer)}"
            )

    def _load_schedule(self) -> None:
        self._begins_with(self._schedule.load(self._text, settings=bool(self._schedulers)))

    def contribution(self, round: int, total: ctypes.Array[ctypes.c_float]) -> None:
        """What the steps since the last call changed."""
        assert self._copy is not None
        self._copy.contribute(round, flat_tensor(total))

    def committed(self) -> ContextManager[None]:
        """A context in which the model has the run's parameters."""
        return nullcontext() if self._copy is None or self._copy.is_held else self._committed(self._copy)

    @contextmanager
    def _committed(self, copy: OwnCopy) -> Iterator[None]:
        with copy.committed():
            yield
            # A forward pass changes statistics, and is no mistake.
            self._tell_of_changes("in run.committed() or run.paused()", statistics=False)

    def settle(self) -> None:
        """The run is over: the model has its parameters from now on, until the program changes it."""
        if self._copy is not None and not self._settled:
            self._settled = True
            self._copy.load(self.round, True)

    # For step().

    def check(self) -> Optional[str]:
        """The loop may change its own copy. MisuseError: the model has the run's parameters."""
        if self._copy is not None and self._copy.is_held:
            raise MisuseError("step(), or a batch, inside run.committed(): leave it first.")
        self._watch.check(self.updates, self.optimizer)
        self._schedule.check()
        return None

    def gradients(self, samples: int) -> Tuple[Optional[List[HostTensor]], List[Any]]:
        """None: they stay here."""
        self._fresh = True
        return None, []

    def added(self, samples: int) -> None:
        """So many samples of the gradient in hand count: the loop's optimizer steps, once."""
        assert self._copy is not None
        if self._fresh:
            self._fresh = False
            self._copy.begin_step()
            self.optimizer.step()
        self._copy.samples += samples

    def skipped(self, samples: int) -> None:
        """So many samples change nothing."""
        assert self._copy is not None
        self._copy.samples += samples

    def wanted(self) -> str:
        """The loop's settings are its own."""
        return ""

    def undo_forward(self) -> None:
        """Statistics are the copy's."""


def trained_of(
    model: Modules, optimizer: torch.optim.Optimizer, options: TrainedOptions, settings: Any, in_group: bool
) -> Trained:
    """What the run's mode makes of them. settings: values of the run's, by key."""
    mode = settings["training.mode"]
    options.in_group = in_group
    options.seed = int(settings["training.seed"])
    if mode not in MODES:
        return Trained(model, optimizer, options)
    if in_group:
        raise UnsupportedError(
            f"mode={mode} in a group: each rank would have a copy of its own; join() without group=, so that each"
            " process is a peer."
        )
    return LocallyTrained(model, optimizer, options, settings)
