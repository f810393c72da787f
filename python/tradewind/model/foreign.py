# SPDX-License-Identifier: Apache-2.0
"""An optimizer that the engine does not compute, run as it is: one step() a round on the mean gradient.

Its state is bytes of one fixed layout: tensors and numbers, also of optimizers inside of it. The layout is found by a few
steps with small gradients before the run, which are undone bit for bit. What of the state cannot travel is refused there,
by name. Nothing is pickled, so nothing of a peer is executed by another.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..data.order import seeded
from ..engine import abi
from ..engine.peer import Group, Step
from ..errors import UnsupportedError, warn
from .device import is_away, synchronize
from .engine_rules import ITS_HOOKS, has_another_step, hooks_of, hooks_of_all
from .kept import Kept
from .layout import Entry, Layout
from .memory import view_of
from .optimizers import ONE_STEP, Owner, attributes_of, optimizers_in, refuse_optimizer, swaps_weights
from .schedule import plain_groups

_REMEDY = 'use SGD, Adam, AdamW or tradewind.Lamb, or tradewind.join(mode="local"), where no state travels'
_ALIGNMENT = 16
_NUMBER_BYTES = 8
# Attributes of torch's Optimizer that a step() changes without being state.
_COUNTERS = ("_step_count", "_opt_called", "_warned_capturable_if_run_uncaptured")
_NO_ATTRIBUTES = ("state", "param_groups", "step", *ITS_HOOKS, *_COUNTERS)

_ABSENT, _TENSOR, _INT, _FLOAT, _BOOL, _NONE = range(6)
_NUMBERS: Dict[type, int] = {int: _INT, float: _FLOAT, bool: _BOOL, type(None): _NONE}

# Gradients of the trial: no zero among them, other ones in each step.
_SMALL = 1e-3
_PERIOD = 61
_FEWEST_STEPS = 2
# A setting of so many steps at most (Lookahead's k) says when more state may come.
_MOST_STEPS = 16


class OfParameter(NamedTuple):
    """A key of the state that is a parameter."""

    number: int


# The number of an optimizer, and the keys that lead from its state to a value.
Place = Tuple[Any, ...]


class Kind(NamedTuple):
    """Of a value. dtype None: a number or None."""

    dtype: Optional[torch.dtype]
    shape: Tuple[int, ...]

    def __str__(self) -> str:
        return f"{str(self.dtype).replace('torch.', '')} {self.shape}" if self.dtype else "a number"


class Slot(NamedTuple):
    """A value of the state, and where its bytes are."""

    place: Place
    kind: Kind
    first: int
    size: int

    def bytes_of(self, content: torch.Tensor) -> torch.Tensor:
        """A tensor's values in uint8 [all bytes], as a view in their dtype and shape."""
        span = content[self.first : self.first + self.size]
        return span.view(self.kind.dtype or torch.float64).view(self.kind.shape)

    def number_of(self, content: torch.Tensor) -> torch.Tensor:
        """Where a number is, float64 []."""
        return content[self.first : self.first + _NUMBER_BYTES].view(torch.float64).view(())


class RangesOf:
    """The places of steps, in their order; places are asked for in theirs."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = list(reversed(steps))

    def __contains__(self, place: int) -> bool:
        while self._left and self._left[-1].first + self._left[-1].values <= place:
            self._left.pop()
        return bool(self._left) and self._left[-1].first <= place


@contextmanager
def _without_hooks(owners: Sequence[Owner]) -> Iterator[None]:
    """No hook of step() is called: what it keeps itself could not be put back."""
    its = [attributes_of(owner.optimizer).get(name) for owner in owners for name in ITS_HOOKS]
    hooks = [one for one in [*its, *hooks_of_all()] if isinstance(one, dict)]
    before = [dict(one) for one in hooks]
    try:
        for one in hooks:
            one.clear()
        yield
    finally:
        for one, had in zip(hooks, before):
            one.update(had)


class ForeignRule:
    """The user's own optimizer. Thread: the run's."""

    is_foreign = True
    updates_here = True
    engine_buffers = 0

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        """UnsupportedError names what of its state cannot be given to other peers."""
        refuse_optimizer(optimizer)
        self._optimizer = optimizer
        self._layout = layout
        self._entries: Tuple[Entry, ...] = layout.parameters
        tensors = [entry.tensor for entry in self._entries]
        self._number = {id(tensor): at for at, tensor in enumerate(tensors)}
        groups = [tensor for group in layout.groups for tensor in group["params"]]
        self._untrained = {id(tensor) for tensor in groups} - set(self._number)
        self._cards = sorted({tensor.device.index for tensor in tensors if tensor.device.type == "cuda"})
        self._owners = optimizers_in(optimizer)
        self._told_of_late = False
        self._devices: Dict[Place, torch.device] = {}  # where it keeps its tensors
        self._slots = self._lay_out(self._tried())
        self._known = {slot.place: slot.kind for slot in self._slots}
        self._size = max((slot.first + max(slot.size, _NUMBER_BYTES) for slot in self._slots), default=0)

    @property
    def state_values(self) -> int:
        """float32 values that hold the state: its bytes, one byte of kind for each entry, and one that says whether the
        state fits.
        """
        return (self._size + len(self._slots) + 1 + 3) // 4

    def check(self) -> None:
        """Whatever the loop changes is followed."""

    def facts(self) -> Iterator[str]:
        """The layout in lines, for the text that peers compare."""
        for slot in self._slots:
            dtype = str(slot.kind.dtype).replace("torch.", "") if slot.kind.dtype else "number"
            names = (self._owners[slot.place[0]].name, *map(self._name, slot.place[1:]))
            yield f"state: {' '.join(filter(None, names))} {dtype} {slot.kind.shape}"

    def groups(self) -> Tuple[Group, ...]:
        """Groups that say how many tensors they have; the rest is the optimizer's."""
        return tuple(Group(tensors, kind=abi.TW_CALLER) for tensors in self._layout.group_sizes)

    def update(self, mean: torch.Tensor, steps: Sequence[Step], seed: int) -> None:
        """One step() on the mean, float32 [values of the vector], of the tensors in these steps. It was read when this
        returns. Gradients in p.grad are as before after it. seed: of the random numbers that it draws.
        """
        with_gradient = RangesOf(steps)
        with self._gradients_kept(), seeded(seed, self._cards):
            for entry in self._entries:
                if entry.first not in with_gradient:
                    entry.tensor.grad = None
                    continue
                gradient = view_of(mean, entry)
                # A copy: the optimizer may keep it.
                there, dtype = entry.tensor.device, entry.tensor.dtype
                entry.tensor.grad = gradient.to(there, dtype, copy=True, non_blocking=is_away(entry.tensor))
            self._optimizer.step()
            synchronize([entry.tensor for entry in self._entries])
        late = None if self._told_of_late else self._late()
        if late is not None:
            self._told_of_late = True
            warn(f"{late} The run goes on; a peer that joins it or begins from its checkpoints is refused.")

    @contextmanager
    def _gradients_kept(self) -> Iterator[None]:
        held = [entry.tensor.grad for entry in self._entries]
        try:
            yield
        finally:
            for entry, gradient_before in zip(self._entries, held):
                entry.tensor.grad = gradient_before

    # The trial before the run.

    def _tried(self) -> Dict[Place, Kind]:
        """What a few steps keep. Everything is as before afterwards."""
        kept = self._kept()
        found: Dict[Place, Kind] = {}
        try:
            with self._gradients_kept(), seeded(0, self._cards):
                self._note(found)
                for step in self._trials():
                    self._try_step(step)
                    self._note(found)
                plain_groups(self._optimizer.param_groups)  # refuses what no peer can get
            changed = next(kept.changed(), None)
        finally:
            kept.put_back()
        if changed is not None:
            raise UnsupportedError(
                f"{type(self._optimizer).__name__} keeps state in its attribute {changed}, which other peers"
                f" cannot get: keep it in self.state[p], or {_REMEDY}."
            )
        return found

    def _kept(self) -> Kept:
        """What the trial changes: parameters, state and settings, and attributes, whose changes count."""
        kept = Kept()
        kept.leave_alone(owner.optimizer for owner in self._owners)
        kept.leave_alone(
            tensor for group in self._layout.groups for tensor in group["params"] if id(tensor) in self._untrained
        )
        kept.add([entry.tensor for entry in self._entries])
        kept.add(self._optimizer.param_groups)
        for owner in self._owners:
            kept.add(owner.optimizer.state)
        for name, optimizer in self._owners:
            if name:
                kept.add(optimizer.param_groups, f"{name}.param_groups")
            kept.add(attributes_of(optimizer), f"{name}." if name else "", _NO_ATTRIBUTES)
        return kept

    def _trials(self) -> Iterator[int]:
        """Steps with gradients; 0: one with none, at the rate 0. What the program hung onto step() may keep what cannot
        be put back, so it is called in that one alone, in which least happens.
        """
        is_other = any(has_another_step(owner.optimizer) for owner in self._owners)
        if is_other or any(hooks_of(owner.optimizer) for owner in self._owners):
            yield 0
        if not is_other:
            yield from range(1, 1 + self._steps_to_see())

    def _steps_to_see(self) -> int:
        """As many as show all that the optimizer keeps."""
        groups = [group.items() for owner in self._owners for group in owner.optimizer.param_groups]
        its = [attributes_of(owner.optimizer).items() for owner in self._owners]
        counts = [value for items in (*groups, *its) for _, value in items if type(value) is int]
        return max([_FEWEST_STEPS, *(count + 1 for count in counts if count <= _MOST_STEPS)])

    def _try_step(self, number: int) -> None:
        groups = self._optimizer.param_groups
        rates = [group.get("lr") for group in groups]
        for entry in self._entries:
            entry.tensor.grad = _gradient_of(entry.tensor, number)
        try:
            if number:
                with _without_hooks(self._owners):
                    self._optimizer.step()
                return
            for group in groups:
                if "lr" in group:
                    group["lr"] = 0.0
            self._optimizer.step()
        except Exception as error:
            swaps = any(swaps_weights(owner.optimizer) for owner in self._owners)
            remedy = "Call its train() before run.optimizer(), and evaluate copies (docs/python.md)." if swaps else ONE_STEP
            tried = f"small gradients at lr={rates[0]}" if number else "gradients of zero at lr=0"
            raise UnsupportedError(
                f"{type(self._optimizer).__name__}.step() failed on {tried}, without arguments"
                f" ({type(error).__name__}: {error}): a run calls it so, once a round with the mean gradient."
                f" {remedy}"
            ) from error
        finally:
            for group, rate in zip(groups, rates):
                if not number and "lr" in group:
                    group["lr"] = rate

    def _note(self, found: Dict[Place, Kind]) -> None:
        for place, value in self._values():
            kind, before = self._kind(place, value), found.get(place)
            if before is not None and before.dtype and kind.dtype and before != kind:
                raise UnsupportedError(self._cannot(place, f"it was {before}, now it is {kind}"))
            if before is None or kind.dtype:
                found[place] = kind
            if kind.dtype:
                self._devices[place] = value.device

    # The layout.

    def _values(self) -> Iterator[Tuple[Place, Any]]:
        """All values of the state now, and where they are."""
        seen = set()
        for number, owner in enumerate(self._owners):
            state = owner.optimizer.state
            if id(state) not in seen:
                seen.add(id(state))
                yield from self._below((number,), state)

    def _below(self, place: Place, values: Dict[Any, Any]) -> Iterator[Tuple[Place, Any]]:
        for key, value in values.items():
            if isinstance(key, torch.Tensor):
                if id(key) in self._untrained or isinstance(value, dict) and not value:
                    continue
                if id(key) not in self._number:
                    raise UnsupportedError(
                        f"{type(self._optimizer).__name__} keeps state for a tensor that is no parameter of the run:"
                        f" {_REMEDY}."
                    )
                key = OfParameter(self._number[id(key)])
            elif not isinstance(key, (str, int, float)):
                raise UnsupportedError(self._cannot((*place, key), "its key is no text"))
            if isinstance(value, dict):
                yield from self._below((*place, key), value)
            else:
                yield (*place, key), value

    def _kind(self, place: Place, value: Any) -> Kind:
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided:
                raise UnsupportedError(self._cannot(place, "it is not dense"))
            return Kind(value.dtype, tuple(value.shape))
        if type(value) not in _NUMBERS:
            raise UnsupportedError(self._cannot(place, f"it is a {type(value).__name__}, neither tensor nor number"))
        return Kind(None, ())

    def _lay_out(self, kinds: Dict[Place, Kind]) -> Tuple[Slot, ...]:
        """In an order that does not depend on that in which they came."""
        slots: List[Slot] = []
        first = 0
        for place, kind in sorted(kinds.items(), key=lambda one: [_rank(key) for key in one[0]]):
            one = torch.empty((), dtype=kind.dtype or torch.float64, device="cpu")
            size = torch.Size(kind.shape).numel() * one.element_size()
            slots.append(Slot(place, kind, first, size))
            first += -(-max(size, _NUMBER_BYTES) // _ALIGNMENT) * _ALIGNMENT
        return tuple(slots)

    def _name(self, key: Any) -> str:
        return self._entries[key.number].name if isinstance(key, OfParameter) else str(key)

    def _cannot(self, place: Place, why: str) -> str:
        owner, *above, key = place
        name, optimizer = self._owners[owner]
        kind = type(optimizer).__name__ + (f" in {type(self._optimizer).__name__}.{name}" if name else "")
        whose = f" for {' '.join(map(self._name, above))}" if above else ""
        return (
            f"the state {key if isinstance(key, str) else self._name(key)!r} that {kind} keeps{whose} cannot be given to"
            f" other peers: {why}; {_REMEDY}."
        )

    def _late(self) -> Optional[str]:
        """What of the state has no place in the layout; None: nothing."""
        try:
            for place, value in self._values():
                known, kind = self._known.get(place), self._kind(place, value)
                if known is None:
                    return self._cannot(place, "it was not there at the beginning")
                if kind.dtype is not None and kind != known:
                    return self._cannot(place, f"it was {known}, now it is {kind}")
        except UnsupportedError as error:
            return str(error)
        return None

    def _content(self, vector: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All bytes, the kind of each entry, and one that is not 0 where the state does not fit."""
        content = vector.view(torch.uint8)
        end = self._size + len(self._slots)
        return content, content[self._size : end], content[end]

    def save(self, vector: torch.Tensor) -> None:
        """Writes the state to float32 [state_values], or that it does not fit: its layout is another one than before the
        run. This peer goes on.
        """
        content, kinds, misfit = self._content(vector)
        misfit.fill_(self._late() is not None)
        if misfit:
            return
        now = dict(self._values())
        tags = [_write(slot, now[slot.place], content) if slot.place in now else _ABSENT for slot in self._slots]
        if tags:
            kinds.copy_(torch.tensor(tags, dtype=torch.uint8, device="cpu"))

    def load(self, vector: torch.Tensor) -> None:
        """Reads the state from float32 [state_values]. UnsupportedError: it did not fit."""
        content, kinds, misfit = self._content(vector)
        if misfit:
            raise UnsupportedError(
                f"{type(self._optimizer).__name__} keeps state on the other peers, or in the checkpoint, that it had not"
                f" when the run started, so it cannot be given to this peer: {_REMEDY}."
            )
        for slot, tag in zip(self._slots, kinds.tolist()):
            key = self._key(slot.place[-1])
            holder = self._holder(slot.place, make=tag != _ABSENT)
            if tag == _ABSENT:
                holder.pop(key, None)
            elif tag == _TENSOR:
                _read_tensor(slot, holder, key, content, self._devices[slot.place])
            else:
                number = float(slot.number_of(content))
                kind = {_INT: int, _FLOAT: float, _BOOL: bool}.get(tag)
                holder[key] = kind(number) if kind else None

    def _holder(self, place: Place, make: bool) -> Any:
        """The dict that has a value, or an empty one."""
        owner, *above, _ = place
        holder = self._owners[owner].optimizer.state
        for key in map(self._key, above):
            holder = holder.setdefault(key, {}) if make else holder.get(key, {})
        return holder

    def _key(self, key: Any) -> Any:
        return self._entries[key.number].tensor if isinstance(key, OfParameter) else key


def _rank(key: Any) -> Tuple[int, int, str]:
    return (0, key.number, "") if isinstance(key, OfParameter) else (1, key if type(key) is int else 0, str(key))


def _gradient_of(tensor: torch.Tensor, step: int) -> torch.Tensor:
    """Small values of both signs, as if drawn; of step 0 zeros."""
    if not step:
        return torch.zeros_like(tensor)
    drawn = ((torch.arange(_PERIOD, device="cpu") + 7 * step) * 37 % _PERIOD - _PERIOD / 2) * (_SMALL / _PERIOD)
    values = drawn.repeat(-(-tensor.numel() // _PERIOD))[: tensor.numel()].view(tensor.shape)
    return values.to(tensor.device, tensor.dtype)


def _write(slot: Slot, value: Any, content: torch.Tensor) -> int:
    if isinstance(value, torch.Tensor):
        slot.bytes_of(content).copy_(value.detach())
        return _TENSOR
    slot.number_of(content).fill_(0.0 if value is None else float(value))
    return _NUMBERS[type(value)]


def _read_tensor(slot: Slot, holder: Dict[Any, Any], key: Any, content: torch.Tensor, device: torch.device) -> None:
    value, kind = holder.get(key), slot.kind
    if not isinstance(value, torch.Tensor) or value.shape != kind.shape or value.dtype != kind.dtype:
        value = holder[key] = torch.empty(kind.shape, dtype=kind.dtype, device=device)
    with torch.no_grad():
        value.copy_(slot.bytes_of(content))
