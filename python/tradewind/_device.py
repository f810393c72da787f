# SPDX-License-Identifier: Apache-2.0
"""Where tensors meet the engine's vectors: all work on memory and devices is here.

Two ways, chosen per tensor. Alias: a contiguous float32 tensor on the CPU becomes a view of the engine's
vector, so an update needs no copy. Copy: everything else (CUDA, bfloat16, channels_last) keeps its own
memory beside the engine's float32 values. Alias off (`alias=False`) copies everything, which is how CPU
tests see that way.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from ._abi import TW_BFLOAT16, TW_FLOAT16, TW_FLOAT32
from ._engine import HostTensor
from ._errors import MisuseError
from ._layout import Entry

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


def view_of(flat: torch.Tensor, entry: Entry) -> torch.Tensor:
    """The entry's values in a flat vector, in its shape."""
    if entry.tensor.is_contiguous():
        return torch.as_strided(flat, entry.tensor.shape, entry.tensor.stride(), entry.first)
    return flat[entry.first : entry.first + entry.values].view(entry.tensor.shape)


def pin(flat: torch.Tensor) -> None:
    """Makes host memory fast for a GPU where there is one; without effect else."""
    if flat.numel() and torch.cuda.is_available():
        torch.cuda.cudart().cudaHostRegister(flat.data_ptr(), flat.numel() * flat.element_size(), 0)


def synchronize(tensors: Sequence[torch.Tensor]) -> None:
    """Waits for the copies of the current stream of each device that the tensors are on."""
    for device in {tensor.device for tensor in tensors if tensor.device.type == "cuda"}:
        torch.cuda.current_stream(device).synchronize()


def host_view(tensor: torch.Tensor) -> HostTensor:
    """A contiguous host tensor of a dtype that the engine reads."""
    return HostTensor(tensor.data_ptr(), tensor.numel(), _DTYPES[tensor.dtype])


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the engine can read it where it is."""
    return tensor.device.type == "cpu" and bool(tensor.is_contiguous()) and tensor.dtype in _DTYPES


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
        for at, tensor in enumerate(tensors):
            if tensor is None:
                found.append(HostTensor(0, counts[at], TW_FLOAT32))
                continue
            values = tensor.detach()
            if self._always or not is_readable(values):
                copied.append(values)
                values = self._copy(at, values)
            alive.append(values)
            found.append(host_view(values))
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
        self._marks: List[Tuple[int, torch.dtype, torch.Size, torch.device]] = []
        self._versions: List[int] = []
        if any(entry.tensor.device.type == "cuda" for entry in entries):
            pin(flat)

    @staticmethod
    def _can_alias(tensor: torch.Tensor) -> bool:
        return is_readable(tensor) and bool(tensor.dtype == torch.float32)

    @property
    def is_bound(self) -> bool:
        """Whether take() was called."""
        return bool(self._marks)

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
                elif not self._marks:
                    entry.tensor.data = view
        synchronize([entry.tensor for entry in self._entries])
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
        tensors = [entry.tensor for entry in self._entries]
        self._marks = [(tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.device) for tensor in tensors]
        self._versions = [tensor._version for tensor in tensors]

    def check(self) -> Optional[str]:
        """MisuseError: a tensor moved. Returns the name of one whose values were changed in place, if any."""
        changed: Optional[str] = None
        for entry, mark, version in zip(self._entries, self._marks, self._versions):
            tensor = entry.tensor
            if tensor.data_ptr() != mark[0] or tensor.shape != mark[2] or tensor.dtype != mark[1]:
                raise MisuseError(_moved(entry, mark))
            if tensor._version != version and changed is None:
                changed = entry.name
        return changed


def _moved(entry: Entry, mark: Tuple[int, torch.dtype, torch.Size, torch.device]) -> str:
    tensor = entry.tensor
    if tensor.dtype != mark[1]:
        what = f"has dtype {tensor.dtype} now, {mark[1]} when the run started"
    elif tensor.shape != mark[2]:
        what = f"has shape {tuple(tensor.shape)} now, {tuple(mark[2])} when the run started"
    elif tensor.device != mark[3]:
        what = f"is on {tensor.device} now, on {mark[3]} when the run started"
    else:
        what = "lies elsewhere in memory than when the run started"
    return f"{entry.name} {what}: move and convert the model before run.start() or the first step()."
