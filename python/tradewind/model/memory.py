# SPDX-License-Identifier: Apache-2.0
"""Where tensors meet the engine's vectors.

Two ways, chosen per tensor. Alias: a contiguous float32 tensor on the CPU becomes a view of the engine's
vector, so an update needs no copy. Copy: everything else (other devices, bfloat16, channels_last) keeps its own
memory beside the engine's float32 values. Alias off (`alias=False`) copies everything, which is how CPU
tests see that way.
"""

from __future__ import annotations

import ctypes
from typing import List, Optional, Sequence, Tuple

import torch

from ..errors import MisuseError
from .device import fits_float32, is_away, is_readable, synchronize
from .layout import Entry, Moving

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
    """The entry's values in a flat vector, in its shape. On the host its storage has them alone, so torch.save() of a
    part of the model writes that part.
    """
    part = flat[entry.first : entry.first + entry.values]
    if not is_away(part):
        part = _share(part)
    if entry.tensor.is_contiguous():
        return torch.as_strided(part, entry.tensor.shape, entry.tensor.stride())
    return part.view(entry.tensor.shape)


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
        # Memory that the program shares with other processes stays where it is.
        return is_readable(tensor) and bool(tensor.dtype == torch.float32) and not tensor.is_shared()

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
                    entry.tensor.copy_(view, non_blocking=is_away(entry.tensor))
                elif not self._kinds:
                    entry.tensor.data = view
        synchronize(self._copied)
        self.mark()

    def give(self) -> None:
        """The vector gets the tensors' values, also those of a tensor that was given other memory. What float32 rounds is
        rounded in the tensor, too: both have the same values.
        """
        changed = False
        with torch.no_grad():
            for entry, view, aliased in zip(self._entries, self._views, self._aliased):
                if aliased and entry.tensor.data_ptr() == view.data_ptr():
                    continue
                view.copy_(entry.tensor)
                if aliased:
                    entry.tensor.data = view
                elif not fits_float32(entry.tensor.dtype):
                    entry.tensor.copy_(view)
                else:
                    continue
                changed = True
        if changed:
            self.mark()

    def keep_changes(self) -> None:
        """The vector gets what the program changed in the tensors since mark(); other values keep their float32 bits. On
        a device those changes count that torch knows of.
        """
        with torch.no_grad():
            for entry, view, aliased, version in zip(self._entries, self._views, self._aliased, self._versions):
                if aliased or is_away(entry.tensor) and entry.tensor._version == version:
                    continue
                now = entry.tensor.detach().to("cpu")
                view.copy_(torch.where(now == view.to(now.dtype), view, now.float()))

    @property
    def rounds(self) -> bool:
        """Whether give() changes a tensor."""
        return not all(fits_float32(tensor.dtype) for tensor in self._tensors)

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
