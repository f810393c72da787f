# SPDX-License-Identifier: Apache-2.0
"""Where tensors meet the engine's vectors: all work on memory and devices is here.

Two ways, chosen per tensor. Alias: a contiguous float32 tensor on the CPU becomes a view of the engine's
vector, so an update needs no copy. Copy: everything else (CUDA, bfloat16, channels_last) keeps its own
memory beside the engine's float32 values. Alias off (`alias=False`) copies everything, which is how CPU
tests see that way.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ..engine.abi import TW_BFLOAT16, TW_FLOAT16, TW_FLOAT32
from ..engine.peer import HostTensor
from ..errors import MisuseError
from .layout import Entry, Moving

_DTYPES: Dict[torch.dtype, int] = {
    torch.float32: TW_FLOAT32,
    torch.float16: TW_FLOAT16,
    torch.bfloat16: TW_BFLOAT16,
}


def flat_tensor(array: Optional[ctypes.Array[ctypes.c_float]]) -> torch.Tensor:
    """float32 [count]: the array's memory, which lives as long as any tensor on it."""
    if array is None or len(array) == 0:
        return torch.empty(0)
    return torch.frombuffer(array, dtype=torch.float32)


def _share(values: torch.Tensor) -> torch.Tensor:
    """The same memory as a storage of its own."""
    memory = (ctypes.c_float * values.numel()).from_address(values.data_ptr())
    memory.owner = values  # type: ignore[attr-defined]
    return flat_tensor(memory)


def view_of(flat: torch.Tensor, entry: Entry) -> torch.Tensor:
    """The entry's values in a flat vector, in its shape. Its storage has them alone, so torch.save() of a part of
    the model writes that part.
    """
    part = _share(flat[entry.first : entry.first + entry.values])
    if entry.tensor.is_contiguous():
        return torch.as_strided(part, entry.tensor.shape, entry.tensor.stride())
    return part.view(entry.tensor.shape)


def pin(array: ctypes.Array[ctypes.c_float]) -> None:
    """Makes the array's memory fast for a CUDA device, as long as the array lives: memory that is freed while it is
    registered would make copies fail that come to lie there.
    """
    address, size = ctypes.addressof(array), ctypes.sizeof(array)
    runtime = torch.cuda.cudart()
    if size and int(runtime.cudaHostRegister(address, size, 0)) == 0:
        weakref.finalize(array, runtime.cudaHostUnregister, address).atexit = False


def synchronize(tensors: Sequence[torch.Tensor]) -> None:
    """Waits for the copies of the current stream of each device that the tensors are on."""
    for device in {tensor.device for tensor in tensors if tensor.device.type == "cuda"}:
        torch.cuda.current_stream(device).synchronize()


def host_view(tensor: torch.Tensor) -> HostTensor:
    """A contiguous host tensor of a dtype that the engine reads."""
    return HostTensor(tensor.data_ptr(), tensor.numel(), _DTYPES[tensor.dtype])


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the engine can read it where it is."""
    return tensor.device.type == "cpu" and tensor.dtype in _DTYPES and bool(tensor.is_contiguous())


def _marked(device: torch.device) -> Any:
    """An event after what was given to the device's current stream."""
    event: Any = torch.cuda.Event() if device.type == "cuda" or not hasattr(torch, "Event") else torch.Event(device)
    event.record()
    return event


# An entry of the vector, and its values where the program has them.
Placed = Tuple[Entry, torch.Tensor]


class Crossing:
    """Tensors on their way to the host, in buckets: one is read there while the next one crosses. Nothing waits for a
    whole device.
    """

    BUCKET = 1 << 23  # values (32 MiB)

    def __init__(self) -> None:
        self._slots: List[torch.Tensor] = []  # host memory of two buckets, once something has crossed

    def each(self, placed: Sequence[Placed]) -> Iterator[Placed]:
        """The values of each on the host, float32 in its shape, valid until the next one is asked for."""
        there = [one for one in placed if not is_readable(one[1]) or one[1].dtype != torch.float32]
        yield from (one for one in placed if is_readable(one[1]) and one[1].dtype == torch.float32)
        buckets = list(self._buckets(there))
        most = max((sum(entry.values for entry, _ in bucket) for bucket in buckets), default=0)
        if buckets and (not self._slots or self._slots[0].numel() < most):
            pinned = any(tensor.device.type == "cuda" for _, tensor in there)
            self._slots = [torch.empty(most, pin_memory=pinned) for _ in range(2)]
        under_way: List[Tuple[List[Placed], Any]] = []
        for number, bucket in enumerate(buckets):
            under_way.append(self._begun(bucket, self._slots[number % 2]))
            if len(under_way) > 1:
                yield from self._arrived(*under_way.pop(0))
        for one in under_way:
            yield from self._arrived(*one)

    def _buckets(self, placed: Sequence[Placed]) -> Iterator[List[Placed]]:
        bucket: List[Placed] = []
        values = 0
        for entry, tensor in placed:
            if bucket and (values + entry.values > self.BUCKET or tensor.device != bucket[0][1].device):
                yield bucket
                bucket, values = [], 0
            bucket.append((entry, tensor))
            values += entry.values
        if bucket:
            yield bucket

    @staticmethod
    def _begun(bucket: Sequence[Placed], slot: torch.Tensor) -> Tuple[List[Placed], Any]:
        """Parts of the slot that get the bucket's values, and an event when they have them."""
        device, first, parts = bucket[0][1].device, 0, []
        for entry, tensor in bucket:
            part = slot[first : first + entry.values].view(tensor.shape)
            part.copy_(tensor.detach(), non_blocking=device.type != "cpu")
            parts.append((entry, part))
            first += entry.values
        return parts, None if device.type == "cpu" else _marked(device)

    @staticmethod
    def _arrived(parts: Sequence[Placed], copied: Any) -> Iterator[Placed]:
        if copied is not None:
            copied.synchronize()
        yield from parts


class Staging:
    """Host copies of tensors that the engine cannot read where they are; the memory is kept for the next
    time.
    """

    def __init__(self, always: bool = False) -> None:
        self._always = always
        self._kept: Dict[int, torch.Tensor] = {}

    def host(
        self, tensors: Sequence[Optional[torch.Tensor]], counts: Sequence[int]
    ) -> Tuple[List[HostTensor], List[Any]]:
        """Each tensor for the engine (None: zeros), and what has to live until the engine has read them."""
        found: List[HostTensor] = []
        alive: List[Any] = []
        copied: List[torch.Tensor] = []
        for at, values in enumerate(tensors):
            if values is None:
                found.append(HostTensor(0, counts[at], TW_FLOAT32))
                continue
            if self._always or not is_readable(values):
                copied.append(values)
                values = self._copy(at, values.detach())
            alive.append(values)
            found.append(HostTensor(values.data_ptr(), counts[at], _DTYPES[values.dtype]))
        synchronize(copied)
        return found, alive

    def _copy(self, at: int, values: torch.Tensor) -> torch.Tensor:
        dtype = values.dtype if values.dtype in _DTYPES else torch.float32
        kept = self._kept.get(at)
        if kept is None or kept.shape != values.shape or kept.dtype != dtype:
            pinned = values.device.type == "cuda"
            kept = torch.empty(values.shape, dtype=dtype, device="cpu", pin_memory=pinned)
            self._kept[at] = kept
        kept.copy_(values, non_blocking=values.device.type == "cuda")
        return kept


class Bound:
    """Tensors of the model and their ranges of the engine's vector. Thread: the run's."""

    def __init__(self, entries: Sequence[Entry], flat: torch.Tensor, alias: bool) -> None:
        self.flat = flat
        self._entries = tuple(entries)
        self._views = [view_of(flat, entry) for entry in entries]
        self._aliased = [alias and self._can_alias(entry.tensor) for entry in entries]
        self._tensors = [entry.tensor for entry in entries]
        self._copied = [entry.tensor for entry, aliased in zip(entries, self._aliased) if not aliased]
        self._pointers: List[int] = []
        self._shapes: List[torch.Size] = []
        self._kinds: List[Tuple[torch.dtype, torch.device]] = []
        self._versions: List[int] = []

    @staticmethod
    def _can_alias(tensor: torch.Tensor) -> bool:
        return is_readable(tensor) and bool(tensor.dtype == torch.float32)

    @property
    def is_bound(self) -> bool:
        """Whether take() was called."""
        return bool(self._kinds)

    def differs(self) -> bool:
        """Whether the vector holds other values than the tensors."""
        for entry, view in zip(self._entries, self._views):
            if not torch.equal(entry.tensor.detach().to("cpu"), view.to(entry.tensor.dtype)):
                return True
        return False

    def take(self) -> None:
        """The tensors get the vector's values; the first time those that can become views of it."""
        with torch.no_grad():
            for entry, view, aliased in zip(self._entries, self._views, self._aliased):
                if not aliased:
                    entry.tensor.copy_(view, non_blocking=entry.tensor.device.type == "cuda")
                elif not self._kinds:
                    entry.tensor.data = view
        synchronize(self._copied)
        self.mark()

    def give(self) -> None:
        """The vector gets the tensors' values, also those of a tensor that was given other memory."""
        with torch.no_grad():
            for entry, view, aliased in zip(self._entries, self._views, self._aliased):
                if aliased and entry.tensor.data_ptr() == view.data_ptr():
                    continue
                view.copy_(entry.tensor)
                if aliased:
                    entry.tensor.data = view
        self.mark()

    def mark(self) -> None:
        """From now on check() sees what others do to the tensors."""
        self._pointers, self._shapes = self._places()
        self._kinds = [(tensor.dtype, tensor.device) for tensor in self._tensors]
        self._versions = [tensor._version for tensor in self._tensors]

    def _places(self) -> Tuple[List[int], List[torch.Size]]:
        tensors = self._tensors
        return [tensor.data_ptr() for tensor in tensors], [tensor.shape for tensor in tensors]

    def check(self) -> Optional[str]:
        """MisuseError: a tensor moved. Returns the name of one whose values were changed in place, if any."""
        if self._places() != (self._pointers, self._shapes):
            raise MisuseError(self._moved())
        versions = [tensor._version for tensor in self._tensors]
        if versions == self._versions:
            return None
        changed = (at for at, version in enumerate(versions) if version != self._versions[at])
        return self._entries[next(changed)].name

    def _moved(self) -> str:
        for entry, pointer, shape, kind in zip(self._entries, self._pointers, self._shapes, self._kinds):
            if entry.tensor.data_ptr() != pointer or entry.tensor.shape != shape:
                return _moved(entry, shape, *kind)
        return ""


def _moved(entry: Entry, shape: torch.Size, dtype: torch.dtype, device: torch.device) -> str:
    tensor = entry.tensor
    if tensor.dtype != dtype:
        what = f"has dtype {tensor.dtype} now, {dtype} when the run started"
    elif tensor.shape != shape:
        what = f"has shape {tuple(tensor.shape)} now, {tuple(shape)} when the run started"
    elif tensor.device != device:
        what = f"is on {tensor.device} now, on {device} when the run started"
    else:
        what = "lies elsewhere in memory than when the run started"
    return f"{entry.name} {what}: move and convert the model before run.start() or the first step()."


def all_finite(gradients: Sequence[torch.Tensor]) -> bool:
    """Whether the norms are finite: one pass, one wait for each device. Large values may overflow."""
    by_device: Dict[torch.device, List[torch.Tensor]] = {}
    for gradient in gradients:
        by_device.setdefault(gradient.device, []).append(gradient)
    return all(bool(torch.isfinite(_norms(found)).all()) for found in by_device.values())


def _norms(gradients: List[torch.Tensor]) -> torch.Tensor:
    if hasattr(torch, "_foreach_norm"):
        norms = torch._foreach_norm(gradients)
    else:
        norms = [gradient.norm() for gradient in gradients]
    return torch.stack([norm.float() for norm in norms])


class MeanBuffers:
    """The buffers of one model and their range of the engine's vector. counts: passes of the moving averages, with
    which they begin. Thread: the run's.
    """

    def __init__(
        self, moving: Sequence[Moving], entries: Sequence[Entry], flat: torch.Tensor, counts: torch.Tensor
    ) -> None:
        self._moving = tuple(moving)
        self._base = [view_of(flat, entry) for entry in entries]
        self._counts = counts
        self._counters = {id(one.module): (one.module, count) for one, count in zip(moving, counts)}

    def passes(self) -> List[int]:
        """Forward passes since the round, of each moving average."""
        made = {
            key: max(0, int(module.num_batches_tracked) - int(count))
            for key, (module, count) in self._counters.items()
        }
        return [made[id(one.module)] for one, _ in zip(self._moving, self._counts)]

    @torch.no_grad()
    def differences(self, passes: Sequence[int]) -> List[torch.Tensor]:
        """float32 on the host, each in its buffer's shape: what one pass added since the round, of those that were
        made. MisuseError: one that has another shape.
        """
        found: List[torch.Tensor] = []
        steps = [_of_one(*made) for made in zip(self._moving, passes, self._counts)]
        steps += [1.0] * (len(self._moving) - len(steps))
        for one, base, step in zip(self._moving, self._base, steps):
            value = one.tensor.detach()
            if value.shape != base.shape:
                raise MisuseError(
                    f"{one.name} has shape {tuple(value.shape)} now, {tuple(base.shape)} when the run started: a"
                    ' running statistic keeps its shape, or say buffers="local" in run.optimizer().'
                )
            found.append(value.to("cpu", torch.float32).contiguous().sub(base).mul_(step))
        return found

    def infinite(self) -> Optional[str]:
        """Name of a buffer that has a value which is not finite."""
        found = (one.name for one in self._moving if not bool(torch.isfinite(one.tensor).all()))
        return next(found, None)

    @torch.no_grad()
    def undo(self) -> None:
        """Running statistics get the round's values."""
        self._set(copies=False)

    @torch.no_grad()
    def reset(self) -> None:
        """All get the round's values."""
        self._set(copies=True)

    def _set(self, copies: bool) -> None:
        for one, base in zip(self._moving, self._base):
            if copies or not one.is_copy:
                one.tensor.detach().copy_(base)
        for module, count in self._counters.values():
            module.num_batches_tracked.fill_(int(count))


def _of_one(one: Moving, passes: int, before: torch.Tensor) -> float:
    """Which share of what so many passes add would be that of one, which moves as far towards the same mean."""
    if passes == 0:
        return 1.0
    momentum = one.module.momentum  # a loop may have changed it
    moved = passes / (int(before) + passes) if momentum is None else 1 - (1 - float(momentum)) ** passes
    return float((one.momentum or 1 / (int(before) + 1)) / moved) if moved > 0 else 1.0
