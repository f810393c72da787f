# SPDX-License-Identifier: Apache-2.0
"""An engine of one peer in numpy, with the calls of engine.peer.Peer: unit tests need no library and
no sockets.

It sums gradients until the target batch size is reached, and updates as docs say of SGD, Adam and AdamW.
Orders have as many samples as the program had last (`grain`; at the beginning the whole batch).
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from tradewind import MisuseError
from tradewind.engine import abi
from tradewind.engine.peer import Calls, DataOrder, Group, HostTensor, ModelShape, Order, Step, Work

AVERAGES = (abi.TW_AVERAGE, abi.TW_MOVING)
COMPARE_EVERY = 2  # rounds between two comparisons of the parameters
ENGINE_BUFFERS = {abi.TW_SGD: 1, abi.TW_ADAM: 2, abi.TW_ADAMW: 2, abi.TW_LAMB: 2}


def buffers_of(group: Group) -> int:
    """Moments that the engine keeps for a group."""
    return ENGINE_BUFFERS.get(group.kind, 0) if group.kind != abi.TW_SGD or group.momentum else 0


def read(tensor: HostTensor) -> np.ndarray:
    """float32 [values] of a host tensor."""
    address, values, dtype = tensor
    if not address:
        return np.zeros(values, np.float32)
    kind = {
        abi.TW_FLOAT32: ctypes.c_float,
        abi.TW_FLOAT16: ctypes.c_uint16,
        abi.TW_BFLOAT16: ctypes.c_uint16,
    }[dtype]
    raw = (
        np.ctypeslib.as_array((kind * values).from_address(address)) if values else np.zeros(0, np.float32)
    )
    if dtype == abi.TW_FLOAT16:
        return raw.view(np.float16).astype(np.float32)
    if dtype == abi.TW_BFLOAT16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.copy()


def power(base: float, exponent: int) -> float:
    """By repeated squaring, as the engine has it."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base *= base
        exponent >>= 1
    return found


def gain_of(momentum: float, before: int, passes: int) -> float:
    """So many steps of momentum, in units of one."""
    if passes <= 1:
        return 1.0
    if momentum == 0:
        return min(63 / 64, passes / (before + passes)) * (before + 1)
    return min(63 / 64, 1 - power(1 - momentum, passes)) / momentum


def step_of(group: Group, place: slice, count: int) -> Step:
    """The step of a tensor with so many updates: float32 made of double constants, as the engine has them."""
    is_adam = group.kind in (abi.TW_ADAM, abi.TW_ADAMW)
    shrink = 1 - group.learning_rate * group.weight_decay if group.kind == abi.TW_ADAMW else 1.0
    numbers = [group.learning_rate, group.weight_decay, group.momentum, shrink]
    numbers += [group.beta1, 1 - group.beta1, group.beta2, 1 - group.beta2]
    numbers += [1 / (1 - power(group.beta1, count)) if is_adam else 1.0]
    numbers += [1 / np.sqrt(1 - power(group.beta2, count)) if is_adam else 1.0, group.epsilon]
    values = place.stop - place.start
    return Step(place.start, values, group.kind, group.flags, *(float(np.float32(one)) for one in numbers))


def update_tensor(step: Step, p: np.ndarray, buffers: List[np.ndarray], g: np.ndarray) -> None:
    """One update of a tensor, in place."""
    f = np.float32
    if step.kind == abi.TW_SGD:
        d = g + f(step.weight_decay) * p
        if step.momentum:
            buffers[0][:] = f(step.momentum) * buffers[0] + d
            d = d + f(step.momentum) * buffers[0] if step.flags & abi.TW_NESTEROV else buffers[0]
        p -= f(step.learning_rate) * d
        return
    if step.kind == abi.TW_ADAM:
        g = g + f(step.weight_decay) * p
    m, v = buffers
    m[:] = f(step.beta1) * m + f(step.one_minus_beta1) * g
    v[:] = f(step.beta2) * v + f(step.one_minus_beta2) * (g * g)
    direction = (m * f(step.correction1)) / (np.sqrt(v) * f(step.root_correction2) + f(step.epsilon))
    p[:] = f(step.shrink) * p - f(step.learning_rate) * direction


class FakeEngine:
    """given: round and vectors of another peer (saved()), to take at the beginning.

    BY_GROUP: optimizer buffers group after group, not as long as the model.
    """

    BY_GROUP = False

    def __init__(
        self,
        settings: Sequence[Tuple[str, str]],
        shape: ModelShape,
        calls: Calls,
        given: Optional[Tuple[int, List[np.ndarray]]] = None,
    ) -> None:
        self.settings = {key.split(".")[-1]: value for key, value in settings}
        self.shape, self.calls = shape, calls
        target = str(self.settings.get("target_batch_size", 512))
        self.target = 512 if target == "auto" else int(target)
        self.rounds = int(self.settings.get("rounds", 100)) - int(self.settings.get("begun", 0))
        self.grain = int(self.settings.get("grain", 0)) or self.target
        self.given = given
        total = sum(shape.tensor_sizes)
        assert shape.groups[0].tensors == 1
        self.counts_updates = shape.groups[0].kind == abi.TW_UPDATES
        buffers = ENGINE_BUFFERS.get(shape.groups[1].kind, 0)
        sizes = [total] * (1 + buffers)
        if self.BY_GROUP:
            sizes = [total] + self._group_buffers()
        self.memory = [(ctypes.c_float * size)() for size in sizes + list(shape.state_sizes)]
        self.vectors = [np.ctypeslib.as_array(array) for array in self.memory]
        self.buffers = buffers
        self.sum = np.zeros(total, np.float32)
        self.mean_memory = (ctypes.c_float * total)()
        self.mean = np.ctypeslib.as_array(self.mean_memory)
        self.compared = 0
        self.groups: Sequence[Group] = shape.groups
        self.round, self.counted, self.all_samples = 0, 0, 0
        self.totals: List[Tuple[int, int]] = []
        self.barriers = 0
        self.loss: Optional[float] = None
        self.loss_sum = self.data_s = 0.0
        self.evaluations: List[Tuple[int, str, float]] = []
        self.order: Optional[Order] = None
        self.loaded = self.leaving = self.parted = self.closed = False
        self.signals: List[int] = []
        self.stale_next = False
        self.missed_next = 0  # rounds that others decide meanwhile
        self.wanted = ""  # settings that the program wants for the update
        self.records: List[Dict[str, Any]] = []
        self.log: List[Dict[str, Any]] = []
        self.why: Optional[str] = None
        self.handed: List[Tuple[float, int, int, float]] = []

    def start(self, initial: Sequence[HostTensor]) -> None:
        self.vectors[0][:] = np.concatenate([read(tensor) for tensor in initial])

    def next(self, limit_ms: int) -> Tuple[int, Optional[Order]]:
        if not self.loaded:
            self._begin()
        for _ in range(self.missed_next):
            self.missed_next -= 1
            self._apply(np.full_like(self.sum, 1 / 64))
        if self.counted >= self.target:
            self._update()
        if self.round >= self.rounds or self.leaving or self.parted:
            self.order = None
            return abi.TW_FINISHED, None
        if self.order is None:
            samples = min(self.grain, self.target - self.counted)
            self.order = Order(self.round + 1, samples, self.round * self.target + self.counted)
        return abi.TW_GRADIENT, self.order

    def _begin(self) -> None:
        self.loaded = True
        if self.given is not None:
            self.round, vectors = self.given
            for mine, theirs in zip(self.vectors, vectors):
                mine[:] = theirs
        self.calls.load(self.round, True)
        self.rounds = int(self.settings.get("rounds", 100)) - self.calls.rounds_before

    def saved(self) -> Tuple[int, List[np.ndarray]]:
        """What a joiner gets."""
        self.calls.save(True)
        return self.round, [vector.copy() for vector in self.vectors]

    def _update(self) -> None:
        if self.calls.contributes:
            self.calls.contribution(self.round + 1, (ctypes.c_float * len(self.sum)).from_buffer(self.sum))
        mean = self.sum * np.float32(1 / self.target)
        self.log.append({"phase": "commit", "round": self.round + 1, "samples_total": self.counted})
        self.records.append({"round": self.round + 1, "samples": self.counted})
        self.all_samples += self.counted
        self.totals.append((self.round + 1, self.all_samples))
        self.loss, self.loss_sum = self.loss_sum / self.counted, 0.0
        self.sum[:] = 0
        samples, self.counted = self.counted, 0
        self._apply(mean, samples)

    def _apply(self, mean: np.ndarray, samples: int = 0) -> None:
        self.round += 1
        self.groups = self.calls.settings(self.round, self.wanted) or self.groups
        self.wanted = ""
        trained = sum(g.tensors for g in self.groups if g.kind not in AVERAGES)
        first = sum(self.shape.tensor_sizes[:trained])
        counts = self.shape.tensor_sizes[0]
        self.shares = mean[:counts].copy() if self.counts_updates else np.ones(counts, np.float32)
        if self.shape.clip_norm:
            norm = float(np.sqrt(np.sum(mean[counts:first].astype(np.float64) ** 2)))
            if norm > self.shape.clip_norm:
                mean[counts:first] *= np.float32(self.shape.clip_norm / (norm + 1e-6))
        if self.counts_updates:
            self.vectors[0][: trained - 1] += mean[: trained - 1] > 1e-6
        steps = self._update_groups(mean, samples)
        if self.calls.updates_here:
            self.mean[:] = mean
            self.calls.update(self.round, self.mean_memory, steps)
            self.mean[:] = np.nan  # it is valid only during the call
        self.compared += 1
        if self.compared % COMPARE_EVERY == 0:
            self.calls.save(False)
        self.calls.load(self.round, False)

    def _group_buffers(self) -> List[int]:
        """Sizes of the buffers, group after group."""
        sizes, at = [], 0
        for group in self.shape.groups:
            size = sum(self.shape.tensor_sizes[at : at + group.tensors])
            sizes += [size] * buffers_of(group)
            at += group.tensors
        return sizes

    def _buffers_of(self, group: Group, span: slice) -> List[np.ndarray]:
        if not self.BY_GROUP:
            return [vector[span] for vector in self.vectors[1 : 1 + self.buffers]]
        first = 1 + sum(buffers_of(before) for before in self.groups[: list(self.groups).index(group)])
        return self.vectors[first : first + buffers_of(group)]

    def _update_groups(self, mean: np.ndarray, samples: int) -> List[Step]:
        """Updates what the program does not. Returns the steps of what it does."""
        steps: List[Step] = []
        sizes = list(self.shape.tensor_sizes)
        begin, at = sizes[0], 1
        for group in self.groups[1:]:
            end = begin + sum(sizes[at : at + group.tensors])
            buffers = self._buffers_of(group, slice(begin, end))
            first = begin
            for number in range(at, at + group.tensors):
                span = slice(first, first + sizes[number])
                part = [buffer[first - begin : span.stop - begin] for buffer in buffers]
                first = span.stop
                if group.kind in AVERAGES:
                    self._add_mean(group, number - 1, span, mean, samples)
                elif self.shares[number - 1] > 1e-6:
                    steps.append(step_of(group, span, int(self.vectors[0][number - 1])))
                    if not self.calls.updates_here:
                        update_tensor(steps[-1], self.vectors[0][span], part, mean[span])
            begin, at = end, at + group.tensors
        return steps

    def _add_mean(self, group: Group, number: int, span: slice, mean: np.ndarray, samples: int) -> None:
        passes = (0, 0)
        if group.kind == abi.TW_MOVING:
            passes = (int(self.vectors[0][number]), round(float(self.shares[number]) * samples))
            self.vectors[0][number] += passes[1]
        self.vectors[0][span] += np.float32(gain_of(group.momentum, *passes)) * mean[span]

    def samples(self, data: DataOrder, count: int) -> List[int]:
        assert self.order is not None and count <= self.order.samples
        return [(data.begun + self.order.first + at) % data.size for at in range(count)]

    def ahead(self, data: DataOrder, most: int) -> List[int]:
        assert self.order is not None
        first = data.begun + self.order.first + self.order.samples
        left = self.target - self.counted - self.order.samples
        return [(first + at) % data.size for at in range(min(most, left))]

    def done(self, gradients: Optional[Sequence[HostTensor]], work: Work) -> bool:
        weight, samples, had, loss_sum, settings = work
        assert self.order is not None and 1 <= samples <= self.order.samples <= self.target
        assert had >= samples and len(settings.encode()) <= 4000
        assert (gradients is None) == bool(self.calls.contributes)
        values = None if gradients is None else self._values(gradients)
        self.order, self.grain = None, had
        if self.stale_next:
            self.stale_next = False
            return False
        self.handed.append((weight, samples, had, loss_sum))
        self.loss_sum += loss_sum
        self.wanted = settings
        if values is not None:
            self.sum += np.float32(weight) * values
        self.counted += samples
        return True

    def _values(self, gradients: Sequence[HostTensor]) -> np.ndarray:
        assert [tensor.values for tensor in gradients] == list(self.shape.tensor_sizes)
        values = np.concatenate([read(tensor) for tensor in gradients])
        if not np.isfinite(values).all():
            raise MisuseError("the gradient of some tensor is not finite")
        return values

    def waited(self, seconds: float) -> None:
        self.data_s += seconds

    def evaluated(self, round: int, name: str, value: float) -> None:
        self.evaluations.append((round, name, value))

    def drop(self) -> None:
        assert self.order is not None
        self.order = None

    def busy(self, why: Optional[str]) -> None:
        self.why = why

    def barrier(self, limit_ms: int) -> int:
        self.order = None
        self.barriers += 1
        if self.round >= self.rounds or self.leaving or self.parted:
            return abi.TW_FINISHED
        return abi.TW_OK if self.barriers % 2 == 0 else abi.TW_TIMEOUT

    def fragment(self, round: int) -> Tuple[int, int]:
        return 0, len(self.sum)

    def vector(self, which: int) -> Any:
        return self.memory[which] if which < len(self.memory) else None

    def view(self) -> Dict[str, Any]:
        return {
            "round": self.round,
            "samples": self.all_samples,
            "totals": self.totals[-16:],
            "peers": 1,
            "id": 1,
            "first": True,
            "leader": 1,
            "waiting": "",
            "loss": self.loss,
            "finished": self.round >= self.rounds,
            "ending": "notice" if self.signals else "",
        }

    def events(self) -> List[Dict[str, Any]]:
        log, self.log = self.log, []
        return log

    def leave(self, at_once: bool) -> None:
        self.leaving = True

    def end_run(self) -> None:
        self.rounds = min(self.rounds, self.round + 1)

    def part(self, at_once: bool) -> None:
        self.parted = True

    def heed(self, number: int) -> None:
        """Of real signals it learns by signal() alone."""

    def signal(self, number: int) -> None:
        self.signals.append(number)
        self.leaving = True

    def close(self) -> None:
        self.closed = True
