# SPDX-License-Identifier: Apache-2.0
"""Where tensors meet the engine's vectors.

Two ways, chosen per tensor. Alias: a contiguous float32 tensor on the CPU becomes a view of the engine's
vector, so an update needs no copy. Copy: everything else (other devices, bfloat16, channels_last, memory that the
program holds elsewhere, too) keeps its own memory beside the engine's float32 values. Alias off (`alias=False`)
copies everything, which is how CPU tests see that way.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..errors import MisuseError, warn
from .device import by_device, fits_float32, host_values, is_away, is_readable, pieces, synchronize
from .layout import Entry, Moving

_PIECE = 1 << 23  # values that are compared at once (32 MiB)
# A larger tensor is sampled to see a change: enough to tell other weights. Each sample may cost a cache miss a round.
_FEW = 1024
_SAMPLED = 64

_Call = TypeVar("_Call", bound=Callable[..., Any])


def makes_tensors(call: _Call) -> _Call:
    """A call whose tensors outlive it: those that were made in torch.inference_mode() could not be trained."""

    @functools.wraps(call)
    def outside(*arguments: Any) -> Any:
        if not torch.is_inference_mode_enabled():
            return call(*arguments)
        with torch.inference_mode(False), torch.no_grad():
            return call(*arguments)

    return outside  # type: ignore[return-value]


def flat_tensor(array: Optional[ctypes.Array[ctypes.c_float]]) -> torch.Tensor:
    """float32 [count]: the array's memory, which lives as long as any tensor on it."""
    if array is None or len(array) == 0:
        return host_values(0)
    return torch.frombuffer(array, dtype=torch.float32)


def _share(values: torch.Tensor) -> torch.Tensor:
    """The same memory, of float32 values, as a storage of its own."""
    assert values.dtype == torch.float32
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


def version_of(tensor: torch.Tensor) -> int:
    """Counts the changes in place that torch knows of; of a tensor made under torch.inference_mode() always -1."""
    return -1 if tensor.is_inference() else int(tensor._version)


def same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors on one device have the same values."""
    return bool(torch.equal(one, other) or torch.allclose(one, other, 0, 0, equal_nan=True))


def _become(tensor: torch.Tensor, view: torch.Tensor) -> bool:
    """The tensor becomes the view, unless others hold its memory and would no longer see its changes: a state_dict(),
    p.data, NumPy. Then it stays as it is, and False is returned; else the values that it had are lost.
    """
    storage: Any = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    kind, held = type(storage), StorageWeakRef(storage)
    place = tensor.storage_offset(), tensor.shape, tensor.stride()
    del storage
    tensor.data = view
    theirs = kind._new_with_weak_ptr(held.cdata)  # None: the tensor alone held it, and it is gone
    if theirs is not None:
        tensor.data = torch.empty(0, dtype=view.dtype, device="cpu").set_(theirs, *place)
    return theirs is None


def keep_changed(entry: Entry, held: torch.Tensor) -> None:
    """The run's values, float32, of which the tensor had its own, take those that the program changed; others keep
    their bits.
    """
    pairs = zip(pieces([(entry, entry.tensor.detach())], _PIECE), pieces([(entry, held)], _PIECE))
    for (_, own), (_, kept) in pairs:
        now = own.to(kept.device)
        had = kept.to(now.dtype)
        if is_away(kept) or not torch.equal(now, had):  # on a device looking would be a wait
            kept.copy_(torch.where(now == had, kept, now.float()))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """A view of some of its values, evenly spread; of all, if they are few."""
    found = tensor.detach()
    apart = -(-found.numel() // _SAMPLED) if found.numel() > _FEW else 1
    if found.is_contiguous():
        return found.view(-1)[:: apart | 1]  # odd: not all in one column
    for dimension in reversed(range(found.dim())):
        step = max(1, min(apart, found.shape[dimension]))
        found = found[(slice(None),) * dimension + (slice(None, None, step),)]
        apart = -(-apart // step)
    return found


def _join(views: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([view.reshape(-1) for view in views])


class _Samples:
    """Some values of each tensor, as they were at take()."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._views = [_sample(tensor) for tensor in tensors]
        self._number = {id(view): at for at, view in enumerate(self._views)}
        self._groups = by_device(self._views)
        self._kept = list(self._views)
        self._joined: List[torch.Tensor] = []  # of each group
        self.take()

    def take(self) -> None:
        """The tensors have not moved since the beginning. One operation for each device."""
        self._joined = [_join(group) for group in self._groups]
        for group, joined in zip(self._groups, self._joined):
            for view, values in zip(group, joined.split([view.numel() for view in group])):
                self._kept[self._number[id(view)]] = values

    def differ_on_host(self) -> bool:
        """Whether a tensor on the host, none of which has moved, has others now."""
        pairs = zip(self._groups, self._joined)
        return any(not is_away(joined) and not same_values(_join(group), joined) for group, joined in pairs)

    def differ(self, at: int, tensor: torch.Tensor) -> bool:
        """Whether this tensor, which may have moved, has others now."""
        now = _sample(tensor).reshape(-1)
        return not same_values(now, self._kept[at].to(now.dtype))


class Bound:
    """Tensors of the model and their ranges of the engine's vector. Thread: the run's.

    What the program changes in a tensor is the run's: at once where that is a view, else at keep_changes(). It may give a
    tensor other memory, as p.data = ... and torch.multiprocessing do; not another shape, dtype or device.
    """

    def __init__(self, entries: Sequence[Entry], flat: torch.Tensor, alias: bool) -> None:
        self.flat = flat
        self._entries = tuple(entries)
        # The program has none of them: torch.multiprocessing moves the memory of tensors that it is given.
        self._views = [view_of(flat, entry) for entry in entries]
        self._aliased = [alias and self._can_alias(entry.tensor) for entry in entries]
        self._tensors = [entry.tensor for entry in entries]
        self._copied = [entry.tensor for entry, aliased in zip(entries, self._aliased) if not aliased]
        self._pointers: List[int] = []
        self._shapes: List[torch.Size] = []
        self._kinds: List[Tuple[torch.dtype, torch.device]] = []
        self._versions: List[int] = []
        self._in_sync: List[Tuple[int, int]] = []  # place and version of each tensor when it had the vector's values
        self._samples: Optional[_Samples] = None
        self._is_first_check = False  # since mark()
        self._named: Set[str] = set()  # by check()

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

    def _is_view(self, at: int) -> bool:
        """Whether this tensor is where the vector has its values."""
        return self._aliased[at] and self._tensors[at].data_ptr() == self._views[at].data_ptr()

    def _settle(self, at: int) -> None:
        """This tensor, which has memory of the program's, becomes a view; or a copy, if it cannot be one any more."""
        tensor = self._tensors[at]
        if self._samples is not None:
            if tensor.data_ptr() == self._pointers[at]:
                self._samples = None  # which hold its memory, too
            else:
                self._is_first_check = True  # as its place may soon be again the one that mark() saw
        if not self._can_alias(tensor) or not _become(tensor, view_of(self.flat, self._entries[at])):
            self._aliased[at] = False
            self._copied.append(tensor)

    def take(self) -> None:
        """The tensors get the vector's values; the first time those that can become views of it."""
        self._refuse_converted()
        with torch.no_grad():
            for at, view in enumerate(self._views):
                if self._is_view(at):
                    continue
                if self._aliased[at]:
                    self._settle(at)
                if not self._aliased[at]:
                    self._tensors[at].copy_(view, non_blocking=is_away(self._tensors[at]))
        synchronize(self._copied)
        self.mark()

    def give(self) -> None:
        """The vector gets the tensors' values, also those of a tensor that was given other memory. What float32 rounds is
        rounded in the tensor, too: both have the same values.
        """
        changed = False
        with torch.no_grad():
            for at, (entry, view) in enumerate(zip(self._entries, self._views)):
                if self._is_view(at):
                    continue
                view.copy_(entry.tensor)
                if self._aliased[at]:
                    self._settle(at)
                elif not fits_float32(entry.tensor.dtype):
                    entry.tensor.copy_(view)
                else:
                    continue
                changed = True
        if changed:
            self.mark()

    @torch.no_grad()
    def keep_changes(self) -> None:
        """The vector gets what the program changed in the tensors since take(); other values keep their float32 bits. On
        a device those changes count that torch knows of.
        """
        self._refuse_converted()
        for at, (entry, view) in enumerate(zip(self._entries, self._views)):
            if self._is_view(at) or is_away(entry.tensor) and self._in_sync[at] == _state(entry.tensor):
                continue
            keep_changed(entry, view)
            if self._aliased[at]:
                self._settle(at)

    @property
    def rounds(self) -> bool:
        """Whether give() changes a tensor."""
        return not all(fits_float32(tensor.dtype) for tensor in self._tensors)

    def mark(self) -> None:
        """From now on check() sees what others do to the tensors, which have the vector's values."""
        self._look()
        self._is_first_check = True
        self._in_sync = list(zip(self._pointers, self._versions))

    def _look(self) -> None:
        self._refuse_converted()
        before = self._pointers
        self._pointers, self._shapes = self._places()
        self._kinds = [(tensor.dtype, tensor.device) for tensor in self._tensors]
        self._versions = [version_of(tensor) for tensor in self._tensors]
        if self._samples is None or self._pointers != before:
            self._samples = _Samples(self._tensors)
        else:
            self._samples.take()

    def _places(self) -> Tuple[List[int], List[torch.Size]]:
        tensors = self._tensors
        return [tensor.data_ptr() for tensor in tensors], [tensor.shape for tensor in tensors]

    def check(self) -> Optional[str]:
        """MisuseError: a tensor has another dtype, shape or device. Returns the name of one that has other values than
        mark() saw; each name once. What torch does not know of, changes through .data, is seen on the host alone, and by
        the first check() after mark().
        """
        looks, self._is_first_check = self._is_first_check, False
        versions = [version_of(tensor) for tensor in self._tensors]
        if versions == self._versions and self._places() == (self._pointers, self._shapes):
            if not looks or self._samples is None or not self._samples.differ_on_host():
                return None
        self._refuse_converted()
        before = zip(self._pointers, self._versions, self._tensors)
        touched = [
            at
            for at, (*state, tensor) in enumerate(before)
            if looks and not is_away(tensor) or _state(tensor) != tuple(state)
        ]
        changed = [self._entries[at].name for at in touched if self._has_other_values(at)]
        self._look()
        new = [name for name in changed if name not in self._named]
        self._named.update(new)
        return new[0] if new else None

    def _has_other_values(self, at: int) -> bool:
        return self._samples is not None and self._samples.differ(at, self._tensors[at])

    def _refuse_converted(self) -> None:
        """MisuseError: what the program may not change of a tensor."""
        for entry, shape, kind in zip(self._entries, self._shapes, self._kinds):
            tensor = entry.tensor
            if tensor.shape != shape or (tensor.dtype, tensor.device) != kind:
                raise MisuseError(_converted(entry, shape, *kind))


def _state(tensor: torch.Tensor) -> Tuple[int, int]:
    """Changes when the program gives it other memory, or other values in a way that torch knows of."""
    return tensor.data_ptr(), version_of(tensor)


def _converted(entry: Entry, shape: torch.Size, dtype: torch.dtype, device: torch.device) -> str:
    tensor = entry.tensor
    if tensor.dtype != dtype:
        what = f"has dtype {tensor.dtype} now, {dtype} when the run started"
    elif tensor.shape != shape:
        what = f"has shape {tuple(tensor.shape)} now, {tuple(shape)} when the run started"
    else:
        what = f"is on {tensor.device} now, on {device} when the run started"
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
        self._still = [
            one
            for one in moving
            if not one.is_copy and one.momentum is None and getattr(one.module, "momentum", None) == 0
        ]
        self._told: Set[str] = set()

    def passes(self) -> List[int]:
        """Forward passes since the round, of each moving average. Names what the run does not follow."""
        made = {
            key: int(module.num_batches_tracked) - int(count) for key, (module, count) in self._counters.items()
        }
        found = [made[id(one.module)] for one, _ in zip(self._moving, self._counts)]
        for one, passes in zip(self._moving, found):
            self._name_changes(one, passes)
        for one in self._still:
            if one.module.momentum != 0:
                self._name_momentum(one, 0, "adds the mean of what the peers changed, whatever their passes")
        return [max(0, passes) for passes in found]

    def _name_changes(self, one: Moving, passes: int) -> None:
        """Each kind once: momentum and passes are those of the run, the same on all peers."""
        now, then = one.module.momentum, one.momentum or None
        if now != then and now != 0:  # of 0 nothing moves, which the run follows
            self._name_momentum(one, then, f"goes on with {then}")
        if passes < 0:
            self._tell_once(
                "passes",
                f"num_batches_tracked of {one.name} was set back by {-passes} (reset_running_stats()?): the run"
                " counts its passes on, and adds once what changed in the values.",
            )

    def _name_momentum(self, one: Moving, then: Optional[float], instead: str) -> None:
        self._tell_once(
            "momentum",
            f"the momentum of {one.name} is {one.module.momentum} now and {then} when the run started, and the run"
            f" {instead}: set it before run.start().",
        )

    def _tell_once(self, what: str, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            warn(
                f'{text} Or say buffers="local" in run.optimizer(): then each peer keeps its own running'
                " statistics, as in torch."
            )

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
