# SPDX-License-Identifier: Apache-2.0
"""The engine's SGD, Adam and AdamW where the parameters are: on a device, with the bits of the engine on the host.

Each operation is one of torch's that rounds once, in the order of the engine's loops (docs/cpp.md), so peers with and
without a device, and with unlike ones, end alike. Parameters and the optimizer's state stay on the device. They cross to
the host when somebody reads them: a joiner, a checkpoint, a comparison of the parameters. Thread: the run's.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import torch

from ..engine import abi
from ..engine.peer import Step
from ..errors import warn
from .device import Placed, buckets, is_away, pieces, synchronize, upload
from .engine_rules import kind_of
from .layout import Entry, Layout
from .memory import keep_changed, view_of
from .optimizers import EngineRule

# Rules without a norm of a whole tensor: its sum would have other bits than the engine's.
KINDS = (abi.TW_SGD, abi.TW_ADAM, abi.TW_ADAMW)


class Values(NamedTuple):
    """float32 values that one step changes, on one device: a mean (overwritten) and state buffers, flat; parameters
    and the mean in the same pieces.
    """

    mean: torch.Tensor
    state: Sequence[torch.Tensor]
    parameters: List[torch.Tensor]
    means: List[torch.Tensor]


def _take_off(values: Values, update: torch.Tensor) -> None:
    """parameters -= update, flat."""
    torch._foreach_sub_(values.parameters, _as(update, values.parameters))


def _as(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """The flat values in the shapes of these tensors."""
    found, first = [], 0
    for one in tensors:
        found.append(flat[first : first + one.numel()].view(one.shape))
        first += one.numel()
    return found


def _decay(step: Step, values: Values) -> None:
    """mean += weight_decay * parameters."""
    torch._foreach_add_(values.means, torch._foreach_mul(values.parameters, step.weight_decay))


def _root(values: torch.Tensor) -> torch.Tensor:
    """Square roots, rounded once. On a CPU torch's are those of a library that may round twice."""
    return torch._foreach_sqrt([values])[0] if is_away(values) else values.double().sqrt_().float()


def _sgd(step: Step, values: Values) -> None:
    _decay(step, values)
    update = values.mean
    if step.momentum:
        (velocity,) = values.state
        velocity.mul_(step.momentum).add_(update)
        update = velocity * step.momentum + update if step.flags & abi.TW_NESTEROV else velocity
    _take_off(values, update * step.learning_rate)


def _adam(step: Step, values: Values) -> None:
    if step.kind == abi.TW_ADAM:
        _decay(step, values)
    mean, (first, second) = values.mean, values.state
    first.mul_(step.beta1).add_(mean * step.one_minus_beta1)
    second.mul_(step.beta2).add_(mean.square_().mul_(step.one_minus_beta2))
    below = _root(second).mul_(step.root_correction2).add_(step.epsilon)
    update = (first * step.correction1).div_(below).mul_(step.learning_rate)
    torch._foreach_mul_(values.parameters, step.shrink)
    _take_off(values, update)


_RULES: Dict[int, Callable[[Step, Values], None]] = {
    abi.TW_SGD: _sgd,
    abi.TW_ADAM: _adam,
    abi.TW_ADAMW: _adam,
}


def can_update(optimizer: torch.optim.Optimizer, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether some are on a device, and updates of this optimizer have the engine's bits there. Warns if not."""
    devices = {tensor.device for tensor in tensors if is_away(tensor)}
    if not devices or kind_of(optimizer) not in KINDS:
        return False
    other = next((device for device in devices if not has_the_bits(device)), None)
    if other is not None:
        warn(
            f"{other} computes updates with other bits than the host: they are computed on the host, and the new"
            " parameters cross in each round."
        )
    return other is None


@torch.no_grad()
def has_the_bits(device: torch.device) -> bool:
    """Whether an update on this device ends with the bits of one on the host."""
    host = torch.device("cpu")
    rules = [(kind, 0) for kind in KINDS] + [(abi.TW_SGD, abi.TW_NESTEROV)]
    try:
        return all(torch.equal(_tried(*rule, device), _tried(*rule, host)) for rule in rules)
    except RuntimeError:  # it lacks an operation
        return False


def _tried(kind: int, flags: int, device: torch.device) -> torch.Tensor:
    """What some steps make of values from the smallest to large ones."""
    generator = torch.Generator("cpu").manual_seed(kind)
    host = {"generator": generator, "dtype": torch.float32, "device": "cpu"}

    def drawn() -> torch.Tensor:
        signs = torch.randn(4096, **host)
        return (signs * 10 ** (torch.rand(4096, **host) * 42 - 41)).to(device)

    step = Step(0, 4096, kind, flags, 3e-4, 0.01, 0.9, 0.997, 0.9, 0.1, 0.999, 0.001, 1.9, 4.1, 1e-8)
    buffers = 1 if kind == abi.TW_SGD else 2
    parameters = drawn()
    state = [torch.zeros_like(parameters) for _ in range(buffers)]
    for _ in range(3):
        mean = drawn()
        _RULES[kind](step, Values(mean, state, [parameters], [mean]))
    return torch.cat([parameters, *state]).cpu()


class _Part:
    """Consecutive parameters of one group on one device. state: flat there, one tensor for each of `buffers`, which
    are the engine's, from the first value of the group on.
    """

    MOST_RANGES = 256

    def __init__(self, entries: Sequence[Entry], shift: int, buffers: Sequence[torch.Tensor]) -> None:
        self.entries = tuple(entries)
        self.first = entries[0].first
        self.count = sum(entry.values for entry in entries)
        self.device = entries[0].tensor.device
        at = self.first - shift
        self.buffers = [buffer[at : at + self.count] for buffer in buffers]
        self.state = [torch.zeros(self.count, dtype=torch.float32, device=self.device) for _ in buffers]
        self.held = [self._held(entry.tensor.detach()) for entry in entries]
        self._buckets: Dict[Tuple[int, int], List[List[Placed]]] = {}

    @staticmethod
    def _held(tensor: torch.Tensor) -> torch.Tensor:
        """The run's values, float32: the parameter itself, or a copy beside one of another dtype."""
        return tensor if tensor.dtype == torch.float32 else tensor.float()

    def follow(self) -> None:
        """A parameter that the program gave other memory is updated there."""
        for at, entry in enumerate(self.entries):
            is_held = entry.tensor.dtype == torch.float32
            if is_held and entry.tensor.data_ptr() != self.held[at].data_ptr():
                self.held[at] = self._held(entry.tensor.detach())
                self._buckets.clear()

    def buckets(self, step: Step, most: int) -> List[List[Placed]]:
        """What the step has of this part: consecutive pieces, of so many values at most together."""
        key = (max(step.first, self.first), min(step.first + step.values, self.first + self.count))
        if key not in self._buckets:
            if len(self._buckets) == self.MOST_RANGES:  # which parameters have a gradient changes from round to round
                self._buckets.clear()
            first, end = key
            mine = [(entry, held) for entry, held in zip(self.entries, self.held) if first <= entry.first < end]
            self._buckets[key] = list(buckets(list(pieces(mine, most)), most))
        return self._buckets[key]

    def copies(self) -> Iterator[Tuple[Entry, torch.Tensor]]:
        """Parameters of another dtype than the run's values, and those."""
        for entry, held in zip(self.entries, self.held):
            if entry.tensor.dtype != torch.float32:
                yield entry, held


class DeviceRule(EngineRule):
    """EngineRule, computed on the device of each parameter."""

    updates_here = True
    BUCKET = 1 << 23  # values of the mean that are there at once (32 MiB)

    def __init__(self, optimizer: torch.optim.Optimizer, layout: Layout) -> None:
        super().__init__(optimizer, layout)
        self._parts: List[_Part] = []

    def attach(self, buffers: Sequence[torch.Tensor], counts: Sequence[torch.Tensor]) -> None:
        """As EngineRule's, of the state on the device."""
        at = 0
        for number, (mine, begins_there) in enumerate(self._by_group(buffers)):
            entries = self._layout.parameters[at : at + self._layout.group_sizes[number]]
            at += len(entries)
            shift = entries[0].first if entries and begins_there else 0
            self._parts += [_Part(some, shift, mine) for some in _by_device(entries)]
        numbered = {id(entry.tensor): count for entry, count in zip(self._layout.parameters, counts)}
        for part in self._parts:
            for entry in part.entries:
                self._show(entry._replace(first=entry.first - part.first), part.state, numbered[id(entry.tensor)])
            for buffer, one in zip(part.buffers, part.state):
                buffer.copy_(one)

    @torch.no_grad()
    def update(self, mean: torch.Tensor, steps: Sequence[Step]) -> None:
        """These steps with the mean, float32 [values of the vector] on the host, which was read when this returns."""
        for part in self._parts:
            for step in steps:
                for bucket in part.buckets(step, self.BUCKET):
                    self._update(part, step, bucket, mean)
            for entry, held in part.copies():
                entry.tensor.copy_(held)
        synchronize([part.held[0] for part in self._parts])

    @staticmethod
    def _update(part: _Part, step: Step, bucket: Sequence[Placed], mean: torch.Tensor) -> None:
        first, count = bucket[0][0].first, sum(entry.values for entry, _ in bucket)
        there = upload(mean[first : first + count], part.device)
        at = first - part.first
        parameters = [values for _, values in bucket]
        state = [one[at : at + count] for one in part.state]
        _RULES[step.kind](step, Values(there, state, parameters, _as(there, parameters)))

    @torch.no_grad()
    def keep_changes(self) -> None:
        """The run takes the values that the program changed in parameters; other values keep their float32 bits."""
        for part in self._parts:
            part.follow()
            for entry, held in part.copies():
                keep_changed(entry, held)

    @torch.no_grad()
    def save(self, flat: torch.Tensor, with_state: bool) -> None:
        """Writes the parameters to the engine's vector, and the state to its buffers."""
        self.keep_changes()
        for part in self._parts:
            for entry, held in zip(part.entries, part.held):
                view_of(flat, entry).copy_(held)
            for buffer, one in zip(part.buffers if with_state else (), part.state):
                buffer.copy_(one)

    @torch.no_grad()
    def load(self, flat: torch.Tensor) -> None:
        """Reads them from there; the parameters of the model have the vector's values already."""
        for part in self._parts:
            for entry, held in zip(part.entries, part.held):
                if entry.tensor.dtype != torch.float32:
                    held.copy_(view_of(flat, entry))
            for buffer, one in zip(part.buffers, part.state):
                one.copy_(buffer)


def _by_device(entries: Sequence[Entry]) -> Iterator[List[Entry]]:
    """Consecutive ones of one device."""
    found: List[Entry] = []
    for entry in entries:
        if found and entry.tensor.device != found[0].tensor.device:
            yield found
            found = []
        found.append(entry)
    if found:
        yield found
