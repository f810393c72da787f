# SPDX-License-Identifier: Apache-2.0
"""The rules that update parameters: those that the engine computes, and any other optimizer, run as it is.

The engine computes SGD, Adam, AdamW and Lamb, recognised from the user's torch.optim object, with its groups. Another
optimizer with a plain step() runs on the mean gradient; its state is bytes of one fixed layout. The layout is found by
one step with zero gradients and lr 0 before the run, which is undone. From then on state travels to joiners and
checkpoints by that layout; nothing is pickled, so nothing of a peer is executed by another.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..engine import abi
from ..engine.peer import Group, Step
from ..errors import MisuseError, UnsupportedError
from .device import is_away, synchronize
from .engine_rules import KINDS, group_of, why_not
from .layout import Entry, Layout
from .memory import view_of

_STATE_KEYS: Dict[int, Tuple[str, ...]] = {
    abi.TW_SGD: ("momentum_buffer",),
    abi.TW_ADAM: ("exp_avg", "exp_avg_sq"),
    abi.TW_ADAMW: ("exp_avg", "exp_avg_sq"),
    abi.TW_LAMB: ("exp_avg", "exp_avg_sq"),
}


class EngineRule:
    """The user's optimizer, computed by the engine: its state shows the engine's buffers, so state_dict()
    is true.
    """

    is_foreign = False
    updates_here = False
    state_values = 0

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        self._optimizer = optimizer
        self._layout = layout
        self._kind = KINDS[type(optimizer)]
        trained = {id(entry.tensor) for entry in layout.parameters}
        self._untrained = {id(one) for group in layout.groups for one in group["params"]} - trained
        self._at_start = self._fixed()
        self._shown: List[Tuple[Entry, str, torch.Tensor]] = []  # what the optimizer's state has to hold

    def _fixed(self) -> List[Dict[str, Any]]:
        """What stays as it is of each group."""
        return [
            {
                "parameters": [id(one) for one in group["params"] if id(one) not in self._untrained],
                "nesterov": bool(group.get("nesterov")),
                "has momentum": self._kind == abi.TW_SGD and bool(group["momentum"]),
            }
            for group in self._layout.groups
        ]

    def check(self) -> None:
        """MisuseError: the loop changed what the engine cannot follow."""
        what = why_not(self._optimizer) or self._changed()
        if what is not None:
            raise MisuseError(
                f"{what}. The engine computes {type(self._optimizer).__name__} as it was at the start: change it before"
                ' run.start(), or have torch compute it with engine="torch" in run.optimizer().'
            )

    def _changed(self) -> Optional[str]:
        for number, (before, now) in enumerate(zip(self._at_start, self._fixed())):
            mine, had = now["parameters"], before["parameters"]
            if len(mine) != len(had):
                return f"group {number} of the optimizer has {len(mine)} parameters now, {len(had)} when the run started"
            if mine != had:
                return f"group {number} of the optimizer has other parameters, or another order, than when the run started"
            if now["nesterov"] != before["nesterov"]:
                return f"nesterov of group {number} is {now['nesterov']} now"
            if now["has momentum"] and not before["has momentum"]:
                return f"momentum of group {number} was 0 when the run started, and is not now"
        for entry, key, tensor in self._shown:
            if self._optimizer.state.get(entry.tensor, {}).get(key) is not tensor:
                return (
                    f"{key} of {entry.name} in the optimizer's state was removed or replaced by the loop; values that"
                    " are changed in place count"
                )
        return None

    @property
    def engine_buffers(self) -> int:
        """Vectors of the engine that have this optimizer's state."""
        return len(_STATE_KEYS[self._kind])

    def facts(self) -> Iterable[str]:
        """What peers compare beside the settings: nothing."""
        return ()

    def groups(self) -> Tuple[Group, ...]:
        """As param_groups are now."""
        return tuple(
            group_of(self._kind, settings, tensors)
            for settings, tensors in zip(self._layout.groups, self._layout.group_sizes)
        )

    def attach(self, buffers: Sequence[torch.Tensor], counts: Sequence[torch.Tensor]) -> None:
        """Shows the engine's buffers (float32) in the optimizer's state; what the state had is taken over. counts:
        the updates of each parameter.

        They are as long as the model, one for each moment; or group after group, each as long as its group.
        Without any (another rank of a node) nothing is shown.
        """
        at = 0
        by_group = self._by_group(buffers)
        for number, tensors in enumerate(self._layout.group_sizes):
            entries = self._layout.parameters[at : at + tensors]
            mine, begins_there = by_group[number]
            shift = entries[0].first if entries and begins_there else 0
            for number, entry in enumerate(entries, at):
                self._show(entry._replace(first=entry.first - shift), mine, counts[number])
            at += tensors

    def _by_group(self, buffers: Sequence[torch.Tensor]) -> List[Tuple[Sequence[torch.Tensor], bool]]:
        """The buffers of each group, and whether they begin with the group."""
        keys = _STATE_KEYS[self._kind]
        total = sum(self._layout.tensor_sizes)
        if all(buffer.numel() in (0, total) for buffer in buffers) and len(buffers) <= len(keys):
            return [
                (buffers if self._has_state(number) else (), False) for number in range(self._group_count)
            ]
        left = list(buffers)
        found: List[Tuple[Sequence[torch.Tensor], bool]] = []
        for number in range(self._group_count):
            mine = len(keys) if self._has_state(number) else 0
            found.append((left[:mine], True))
            left = left[mine:]
        return found

    @property
    def _group_count(self) -> int:
        return len(self._layout.group_sizes)

    def _has_state(self, number: int) -> bool:
        settings = self._layout.groups[number]
        return self._kind != abi.TW_SGD or bool(settings["momentum"])

    def _show(self, entry: Entry, buffers: Sequence[torch.Tensor], count: torch.Tensor) -> None:
        state = self._optimizer.state[entry.tensor]
        for key, buffer in zip(_STATE_KEYS[self._kind], buffers):
            if buffer.numel():
                had, state[key] = state.get(key), view_of(buffer, entry)
                if had is not None:
                    state[key].copy_(had)
                self._shown.append((entry, key, state[key]))
        if self._kind != abi.TW_SGD:
            state["step"] = count
            self._shown.append((entry, "step", count))


_ALIGNMENT = 16
# Attributes of torch's Optimizer that a step() changes without being state.
_COUNTERS = ("_step_count", "_opt_called", "_warned_capturable_if_run_uncaptured")

_ABSENT, _TENSOR, _INT, _FLOAT, _BOOL, _NONE = range(6)
_NUMBERS: Dict[type, int] = {int: _INT, float: _FLOAT, bool: _BOOL, type(None): _NONE}


class Slot(NamedTuple):
    """One entry of the state of one parameter, and where its bytes are. dtype None: a number or None."""

    parameter: int
    key: str
    dtype: Optional[torch.dtype]
    shape: Tuple[int, ...]
    first: int
    size: int

    def bytes_of(self, content: torch.Tensor) -> torch.Tensor:
        """Its values in uint8 [all bytes], as a view in their dtype and shape."""
        span = content[self.first : self.first + self.size]
        return span.view(self.dtype or torch.float64).view(self.shape)


class RangesOf:
    """The places of steps, in their order; places are asked for in theirs."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = list(reversed(steps))

    def __contains__(self, place: int) -> bool:
        while self._left and self._left[-1].first + self._left[-1].values <= place:
            self._left.pop()
        return bool(self._left) and self._left[-1].first <= place


def refuse_no_optimizer(optimizer: Any) -> None:
    """MisuseError: something else than an optimizer, or a wrapper that hides what it has."""
    missing = [name for name in ("param_groups", "state", "step", "zero_grad") if not hasattr(optimizer, name)]
    if isinstance(optimizer, type) or missing:
        lacks = f" (it has no {missing[0]})" if missing else ""
        raise MisuseError(
            f"run.optimizer(model, optimizer): expected a torch.optim.Optimizer, found {optimizer!r:.80}{lacks}."
        )


def refuse_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """UnsupportedError: an optimizer that one step() a round with the mean gradient cannot serve."""
    name = type(optimizer).__name__
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnsupportedError(
            "LBFGS computes several gradients in a step, a round has one: use another optimizer."
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise UnsupportedError("SparseAdam needs sparse gradients, a mean over peers is dense: use Adam.")
    if not callable(getattr(optimizer, "step", None)):
        raise UnsupportedError(f"{name} has no step().")
    needed = [
        parameter.name
        for parameter in list(inspect.signature(type(optimizer).step).parameters.values())[1:]
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if needed:
        raise UnsupportedError(
            f"{name}.step() needs {', '.join(needed)}: only a step() without arguments can run."
        )


def _simple_attributes(optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
    return {
        key: value
        for key, value in vars(optimizer).items()
        if isinstance(value, (int, float)) and key not in _COUNTERS
    }


class ForeignRule:
    """The user's own optimizer. Thread: the run's."""

    is_foreign = True
    updates_here = True
    engine_buffers = 0

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        refuse_optimizer(optimizer)
        self._optimizer = optimizer
        self._layout = layout
        self._entries: Tuple[Entry, ...] = layout.parameters
        if not any(optimizer.state.get(entry.tensor) for entry in self._entries):
            self._probe()
        else:
            self._slots = self._lay_out()
        self._size = max((slot.first + slot.size for slot in self._slots), default=0)

    @property
    def state_values(self) -> int:
        """float32 values that hold the state: its bytes, and one byte of kind for each entry."""
        return (self._size + len(self._slots) + 3) // 4

    def check(self) -> None:
        """Whatever the loop changes is followed."""

    def facts(self) -> Iterator[str]:
        """The layout in lines, for the text that peers compare."""
        for slot in self._slots:
            dtype = str(slot.dtype).replace("torch.", "") if slot.dtype else "number"
            yield f"state: {self._entries[slot.parameter].name} {slot.key} {dtype} {slot.shape}"

    def groups(self) -> Tuple[Group, ...]:
        """Groups that say how many tensors they have; the rest is the optimizer's."""
        return tuple(Group(tensors, kind=abi.TW_CALLER) for tensors in self._layout.group_sizes)

    def update(self, mean: torch.Tensor, steps: Sequence[Step]) -> None:
        """One step() on the mean, float32 [values of the vector], of the tensors in these steps. It was read when this
        returns. Gradients in p.grad are as before after it.
        """
        held = [entry.tensor.grad for entry in self._entries]
        with_gradient = RangesOf(steps)
        try:
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
        finally:
            for entry, gradient_before in zip(self._entries, held):
                entry.tensor.grad = gradient_before

    def _probe(self) -> None:
        optimizer, entries = self._optimizer, self._entries
        values = [entry.tensor.detach().clone() for entry in entries]
        groups = [
            {key: value for key, value in group.items() if key != "params"}
            for group in optimizer.param_groups
        ]
        attributes = _simple_attributes(optimizer)
        held = [entry.tensor.grad for entry in entries]
        try:
            for group in optimizer.param_groups:
                if "lr" in group:
                    group["lr"] = 0.0
            for entry in entries:
                entry.tensor.grad = torch.zeros_like(entry.tensor)
            self._try_step()
            changed = [
                key for key, value in _simple_attributes(optimizer).items() if attributes.get(key) != value
            ]
            self._slots = self._lay_out()
        finally:
            optimizer.state.clear()
            for group, before in zip(optimizer.param_groups, groups):
                group.update(before)
                for key in set(group) - set(before) - {"params"}:
                    del group[key]
            with torch.no_grad():
                for entry, value, gradient in zip(entries, values, held):
                    entry.tensor.copy_(value)
                    entry.tensor.grad = gradient
        if changed:
            raise UnsupportedError(
                f"{type(optimizer).__name__} keeps state in its attribute {changed[0]}, which other peers"
                " cannot get: keep it in self.state[p]."
            )

    def _try_step(self) -> None:
        try:
            self._optimizer.step()
        except Exception as error:
            raise UnsupportedError(
                f"{type(self._optimizer).__name__}.step() failed on gradients of zero, without arguments"
                f" ({type(error).__name__}: {error}): a run calls it so, once a round with the mean gradient."
            ) from error

    def _lay_out(self) -> Tuple[Slot, ...]:
        slots: List[Slot] = []
        first = 0
        for at, entry in enumerate(self._entries):
            for key, value in self._optimizer.state.get(entry.tensor, {}).items():
                slot = self._slot(at, key, value, first)
                slots.append(slot)
                first += -(-slot.size // _ALIGNMENT) * _ALIGNMENT
        return tuple(slots)

    def _slot(self, at: int, key: Any, value: Any, first: int) -> Slot:
        if not isinstance(key, str):
            raise UnsupportedError(self._cannot(at, key, "its key is no text"))
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided:
                raise UnsupportedError(self._cannot(at, key, "it is not dense"))
            return Slot(
                at, key, value.dtype, tuple(value.shape), first, value.numel() * value.element_size()
            )
        if type(value) not in _NUMBERS:
            raise UnsupportedError(
                self._cannot(at, key, f"it is a {type(value).__name__}, neither tensor nor number")
            )
        return Slot(at, key, None, (), first, 8)

    def _cannot(self, at: int, key: Any, why: str) -> str:
        return (
            f"the state {key!r} that {type(self._optimizer).__name__} keeps for {self._entries[at].name}"
            f" cannot be given to other peers: {why}; use an optimizer of SGD, Adam, AdamW, tradewind.Lamb."
        )

    def _content(self, vector: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        content = vector.view(torch.uint8)
        return content, content[self._size : self._size + len(self._slots)]

    def save(self, vector: torch.Tensor) -> None:
        """Writes the state to float32 [state_values]. UnsupportedError: its layout changed, by key."""
        content, kinds = self._content(vector)
        found = 0
        tags: List[int] = []
        for slot in self._slots:
            state = self._optimizer.state.get(self._entries[slot.parameter].tensor, {})
            if slot.key not in state:
                tags.append(_ABSENT)
                continue
            found += 1
            tags.append(self._write(slot, state[slot.key], content))
        if sum(len(self._optimizer.state.get(entry.tensor, {})) for entry in self._entries) != found:
            raise UnsupportedError(self._new_key())
        if tags:
            kinds.copy_(torch.tensor(tags, dtype=torch.uint8, device="cpu"))

    def _write(self, slot: Slot, value: Any, content: torch.Tensor) -> int:
        if isinstance(value, torch.Tensor):
            if value.dtype != slot.dtype or tuple(value.shape) != slot.shape:
                was = f"{slot.dtype} {slot.shape}" if slot.dtype else "a number"
                raise UnsupportedError(
                    self._cannot(
                        slot.parameter,
                        slot.key,
                        f"it was {was}, now it is {value.dtype} {tuple(value.shape)}",
                    )
                )
            slot.bytes_of(content).copy_(value.detach())
            return _TENSOR
        if slot.dtype is not None or type(value) not in _NUMBERS:
            raise UnsupportedError(
                self._cannot(slot.parameter, slot.key, f"it became a {type(value).__name__}")
            )
        slot.bytes_of(content).fill_(0.0 if value is None else float(value))
        return _NUMBERS[type(value)]

    def _new_key(self) -> str:
        known = {(slot.parameter, slot.key) for slot in self._slots}
        for at, entry in enumerate(self._entries):
            for key in self._optimizer.state.get(entry.tensor, {}):
                if (at, key) not in known:
                    return self._cannot(at, key, "it was not there at the beginning")
        return f"{type(self._optimizer).__name__} keeps state for a tensor that is no parameter of the run."

    def load(self, vector: torch.Tensor) -> None:
        """Reads the state from float32 [state_values]."""
        content, kinds = self._content(vector)
        for slot, tag in zip(self._slots, kinds.tolist()):
            tensor = self._entries[slot.parameter].tensor
            state = self._optimizer.state[tensor]
            if tag == _ABSENT:
                state.pop(slot.key, None)
            elif tag == _TENSOR:
                self._read_tensor(slot, state, content, tensor.device)
            else:
                number = float(slot.bytes_of(content))
                kind = {_INT: int, _FLOAT: float, _BOOL: bool}.get(tag)
                state[slot.key] = kind(number) if kind else None

    @staticmethod
    def _read_tensor(
        slot: Slot, state: Dict[str, Any], content: torch.Tensor, device: torch.device
    ) -> None:
        value = state.get(slot.key)
        if not isinstance(value, torch.Tensor) or value.shape != slot.shape or value.dtype != slot.dtype:
            # A single number is a step count, which torch keeps on the host.
            where = torch.device("cpu") if not slot.shape else device
            value = torch.empty(slot.shape, dtype=slot.dtype, device=where)
            state[slot.key] = value
        with torch.no_grad():
            value.copy_(slot.bytes_of(content))
