# SPDX-License-Identifier: Apache-2.0
"""Copies between a program's device and the host's memory: all waits for devices are here.

Only calls that PyTorch has for every accelerator, and those of CUDA before PyTorch 2.6. All work goes to the device's
current stream, behind what the program gave it, so no stream waits for another one. The host waits for a stream or an
event, never for a whole device:

    gradients -> host                buckets into pinned slots; the host waits for the event of each before it reads
    the engine's vector -> device    the host waits for the copies before the engine may write the vector again
    the mean -> device               the same, once all of it was given to the stream
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ..engine.abi import TW_BFLOAT16, TW_FLOAT16, TW_FLOAT32
from ..engine.peer import HostTensor
from .layout import Entry

_DTYPES: Dict[torch.dtype, int] = {
    torch.float32: TW_FLOAT32,
    torch.float16: TW_FLOAT16,
    torch.bfloat16: TW_BFLOAT16,
}
# An entry of the vector, and its values where the program has them.
Placed = Tuple[Entry, torch.Tensor]


def host_values(count: int, pinned: bool = False) -> torch.Tensor:
    """float32 [count] in the host's memory, not set, whatever torch's default dtype and device are."""
    return torch.empty(count, dtype=torch.float32, device="cpu", pin_memory=pinned)


def is_away(tensor: torch.Tensor) -> bool:
    """Whether it is on a device, so that copies of it may come later than the call."""
    return bool(tensor.device.type != "cpu")


def fits_float32(dtype: torch.dtype) -> bool:
    """Whether float32 has all of its values."""
    return dtype in _DTYPES


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the engine can read it where it is."""
    return not is_away(tensor) and tensor.dtype in _DTYPES and bool(tensor.is_contiguous())


def host_view(tensor: torch.Tensor) -> HostTensor:
    """A contiguous host tensor of a dtype that the engine reads."""
    return HostTensor(tensor.data_ptr(), tensor.numel(), _DTYPES[tensor.dtype])


def _stream(device: torch.device) -> Any:
    """The current one of this device, which need not be the program's current device."""
    places: Any = torch.accelerator if hasattr(torch, "accelerator") else torch.cuda
    return places.current_stream(device)


def synchronize(tensors: Sequence[torch.Tensor]) -> None:
    """Waits for what the current streams of these tensors' devices were given."""
    for device in {tensor.device for tensor in tensors if is_away(tensor)}:
        _stream(device).synchronize()


def gpu_facts(device: torch.device) -> List[Tuple[str, str]]:
    """Settings that say which GPU the program computes on; none: it is no GPU."""
    if device.type != "cuda":
        return []
    found: Any = torch.cuda.get_device_properties(device)
    uuid = getattr(found, "uuid", None) if torch.version.cuda else None
    return [("gpu", str(found.name)), *([] if uuid is None else [("gpu_uuid", str(uuid))])]


def upload(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of host memory on the device, which may come later than the call."""
    return values.to(device, non_blocking=device.type != "cpu", copy=True)


def pin(array: ctypes.Array[ctypes.c_float]) -> None:
    """Makes the array's memory fast for a CUDA device, as long as the array lives: memory that is freed while it is
    registered would make copies fail that come to lie there.
    """
    address, size = ctypes.addressof(array), ctypes.sizeof(array)
    runtime = torch.cuda.cudart()
    if size and int(runtime.cudaHostRegister(address, size, 0)) == 0:
        weakref.finalize(array, runtime.cudaHostUnregister, address).atexit = False


def pieces(placed: Sequence[Placed], most: int) -> Iterator[Placed]:
    """The same values in tensors of at most so many, each a range of the vector: large ones are cut along their first
    dimension, of which an index stays whole.
    """
    for entry, tensor in placed:
        dimension = next((at for at, size in enumerate(tensor.shape) if size > 1), None)
        if entry.values <= most or dimension is None:
            yield entry, tensor
            continue
        size = tensor.shape[dimension]
        row = entry.values // size
        step = max(1, most // row)
        for first in range(0, size, step):
            count = min(step, size - first)
            shaped, values = (one.detach().narrow(dimension, first, count) for one in (entry.tensor, tensor))
            yield Entry(entry.name, shaped, entry.first + first * row, count * row), values


def buckets(placed: Sequence[Placed], most: int) -> Iterator[List[Placed]]:
    """Consecutive ones of a device, of so many values at most together; alone where one has more."""
    bucket: List[Placed] = []
    values = 0
    for entry, tensor in placed:
        if bucket and (values + entry.values > most or tensor.device != bucket[0][1].device):
            yield bucket
            bucket, values = [], 0
        bucket.append((entry, tensor))
        values += entry.values
    if bucket:
        yield bucket


class Crossing:
    """Tensors on their way to the host, in buckets: one is read there while the next one crosses."""

    BUCKET = 1 << 22  # values (16 MiB): the last one is read while nothing crosses

    def __init__(self) -> None:
        self._slots: List[torch.Tensor] = []  # host memory of two buckets, once something has crossed

    def each(self, placed: Sequence[Placed]) -> Iterator[Placed]:
        """All values on the host, float32 in pieces(), valid until the next one is asked for."""
        parts = list(pieces(placed, self.BUCKET))
        yield from (one for one in parts if self._is_there(one[1]))
        away = list(buckets([one for one in parts if not self._is_there(one[1])], self.BUCKET))
        self._make_room(away)
        under_way: List[Tuple[List[Placed], Any]] = []
        for number, bucket in enumerate(away):
            under_way.append(self._begun(bucket, self._slots[number % 2]))
            if len(under_way) > 1:
                yield from self._arrived(*under_way.pop(0))
        for one in under_way:
            yield from self._arrived(*one)

    @staticmethod
    def _is_there(tensor: torch.Tensor) -> bool:
        return is_readable(tensor) and tensor.dtype == torch.float32

    def _make_room(self, away: Sequence[Sequence[Placed]]) -> None:
        most = max((sum(entry.values for entry, _ in bucket) for bucket in away), default=0)
        if most and (not self._slots or self._slots[0].numel() < most):
            pinned = any(is_away(tensor) for bucket in away for _, tensor in bucket)
            self._slots = [host_values(most, pinned) for _ in range(2)]

    @staticmethod
    def _begun(bucket: Sequence[Placed], slot: torch.Tensor) -> Tuple[List[Placed], Any]:
        """Parts of the slot that get the bucket's values, and an event when they have them."""
        first, parts = 0, []
        for entry, tensor in bucket:
            part = slot[first : first + entry.values].view(tensor.shape)
            part.copy_(tensor.detach(), non_blocking=is_away(tensor))
            parts.append((entry, part))
            first += entry.values
        last = bucket[0][1]
        return parts, _stream(last.device).record_event() if is_away(last) else None

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
            kept = torch.empty(values.shape, dtype=dtype, device="cpu", pin_memory=is_away(values))
            self._kept[at] = kept
        kept.copy_(values, non_blocking=is_away(values))
        return kept


def all_finite(gradients: Sequence[torch.Tensor]) -> bool:
    """Whether the norms are finite: one pass, one wait for each device. Large values may overflow."""
    return all(bool(torch.isfinite(_norms(found)).all()) for found in by_device(gradients))


def by_device(tensors: Sequence[torch.Tensor]) -> List[List[torch.Tensor]]:
    """Those of each device."""
    found: Dict[torch.device, List[torch.Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.device, []).append(tensor)
    return list(found.values())


def _norms(gradients: List[torch.Tensor]) -> torch.Tensor:
    if hasattr(torch, "_foreach_norm"):
        norms = torch._foreach_norm(gradients)
    else:
        norms = [gradient.norm() for gradient in gradients]
    return torch.stack([norm.float() for norm in norms])
