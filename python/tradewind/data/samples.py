# SPDX-License-Identifier: Apache-2.0
"""Samples of a data set as a DataLoader makes batches of them, and loaders whose batches are counted and in another order
on each peer.
"""

from __future__ import annotations

import copy
import os
import random
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
    default_convert,
)
from torch.utils.data._utils.pin_memory import pin_memory

from ..engine.peer import DataOrder
from ..errors import MisuseError, UnsupportedError, attribute_of, warn, whole
from .order import Sampling, Shuffled, content_of, is_accelerates, order_of, own_iteration, size_of, span_seed
from .workers import Work, WorkerPool, samples_of

_PREFETCH_FACTOR = 2
# Samples that wait are in memory.
_MOST_AHEAD = 256
# So often a sample that a batch has already is drawn before it is taken again.
_MOST_MET = 100
# Of a loader: what torch changes by itself, and what a twin may have copies of.
_STATE = ("_iterator", "_IterableDataset_len_called")
_PARTS = ("base_dataloader", "batch_sampler", "sampler")
_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)

Collate = Callable[[List[Any]], Any]


class Given(NamedTuple):
    """Arguments that go before those of a DataLoader. usual_batch_size: used where neither names one; seed:
    that of the run.
    """

    batch_size: Optional[int] = None
    collate: Optional[Collate] = None
    workers: int = 0
    usual_batch_size: Optional[int] = None
    seed: int = 1

    def check(self) -> None:
        """MisuseError: one that is no number, or no function."""
        if self.batch_size is not None:
            whole("batch_size", self.batch_size)
        whole("workers", self.workers, 0)
        if self.collate is not None and not callable(self.collate):
            raise MisuseError(f"collate_fn={self.collate!r}: expected a function of a list of samples.")


class Samples:
    """A map-style data set with what a DataLoader does to its samples. Thread: the run's."""

    def __init__(self, data: Any, given: Given) -> None:
        """data: a data set, or a DataLoader, whose arguments docs/python.md lists."""
        given.check()
        loader = data if isinstance(data, DataLoader) else None
        dataset: Any = loader.dataset if loader is not None else data
        if isinstance(dataset, (str, bytes, os.PathLike)):
            raise MisuseError(
                f"shard() of {dataset!r}: expected a data set or a DataLoader; that of an index is"
                " tradewind.data.shards(PATH)."
            )
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise UnsupportedError(
                f"shard() of {type(dataset).__name__}, an iterable data set: nobody can take over its"
                " samples; use run.batches(loader), which counts samples."
            )
        sampling = Sampling(loader) if loader is not None else None
        self.dataset = dataset
        self.drop_last = sampling is not None and sampling.drop_last
        self.order = order_of(
            dataset, getattr(dataset, "block", 1), sampling.sampler if sampling is not None else None, given.seed
        )
        if loader is not None and loader.generator is not None and type(self.order) is Shuffled:
            warn(
                "run.shard(): generator= of the loader gives its workers their seeds, not the order, which is"
                " that of training.seed on all peers."
            )
        of_loader = sampling.batch_size if sampling is not None else None
        self.batch_size: Optional[int] = given.batch_size or of_loader or given.usual_batch_size
        self._collate: Collate = given.collate or _collate_of(loader, of_loader is not None)
        self._workers = given.workers or (loader.num_workers if loader is not None else 0)
        self._loader = loader
        self.begun = 0  # samples of the run that this one goes on from, known once it has started
        self._pool: Optional[WorkerPool] = None
        # A data set that reads ahead by itself, such as Shards, has expect().
        self._expect: Optional[Callable[[List[int]], None]] = getattr(dataset, "expect", None)
        named = getattr(dataset, "run_fact", "")
        self.facts: List[str] = [f"data: {self.order.fact}", named or content_of(dataset, size_of(dataset))]

    @property
    def in_run(self) -> DataOrder:
        """What the engine has to know of the data set."""
        return DataOrder(self.order.engine_size, self.order.block, self.begun)

    @property
    def prefetch(self) -> int:
        """Samples that are read ahead. Workers: prefetch_factor batches each, as those of a DataLoader."""
        if not self._workers:
            return _MOST_AHEAD if self._expect is not None else 0
        factor = getattr(self._loader, "prefetch_factor", None) or _PREFETCH_FACTOR
        return min(_MOST_AHEAD, self._workers * factor * (self.batch_size or 1))

    def parts(self, found: Sequence[int], batch_size: int, count: int = 1) -> List[List[Any]]:
        """Indices of `count` batches, for what the engine named.

        drop_last: each has batch_size; where there are too few, others that do not count fill them. A part
        without any sample repeats one.
        """
        indices = self.order.indices(found)
        if self.drop_last:
            self._fill(indices, batch_size * count, found[0])
        while len(indices) < count:
            indices.append(indices[0])
        ends = [len(indices) * at // count for at in range(count + 1)]
        return [indices[first:end] for first, end in zip(ends, ends[1:])]

    def _fill(self, indices: List[Any], size: int, first: int) -> None:
        """Adds samples, the same ones whoever does it, and others than those if there are such."""
        draw, known, met = random.Random(first), set(indices), 0
        while len(indices) < size:
            one = self.order.any(draw, first)
            met = met + 1 if one in known else 0
            if not met or met > _MOST_MET:
                known.add(one)
                indices.append(one)

    def batch(self, indices: List[Any], ahead: Sequence[Any] = ()) -> Any:
        """The batch of these samples, collated (and pinned, if the loader says so and there is a device).

        ahead: samples that come next, for the workers.
        """
        batch = self._collate(self._samples(indices, ahead))
        loader = self._loader
        if loader is not None and loader.pin_memory and _has_device():
            batch = pin_memory(batch, loader.pin_memory_device or None)
        device = getattr(loader, "device", None) if is_accelerates(loader) else None
        return batch if device is None else to_device(batch, torch.device(device))

    def _samples(self, indices: List[Any], ahead: Sequence[Any]) -> List[Any]:
        if not self._workers:
            if self._expect is not None:
                self._expect([*indices, *ahead])
            return samples_of(self.dataset, indices)
        if self._pool is None:
            self._pool = WorkerPool(self.dataset, self._workers, Work.of(self._loader))
        return self._pool.samples(indices, ahead)

    def rest(self) -> None:
        """Nobody takes batches now: ends the workers, unless the loader says persistent_workers."""
        if not getattr(self._loader, "persistent_workers", False):
            self.close()

    def close(self) -> None:
        """Ends the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _collate_of(loader: Optional[DataLoader], makes_batches: bool) -> Collate:
    usual: Collate = default_collate
    if loader is None:
        return usual
    own = own_iteration(loader) or own_iteration(loader, "_get_iterator")
    if own is not None and not is_accelerates(loader):
        warn(
            f"run.shard(): {own} goes through its batches by an iterator of its own, which is not called: what"
            " it does to them is up to the loop; or use run.batches(loader)."
        )
    of_loader: Collate = loader.collate_fn
    if makes_batches:
        return of_loader
    if of_loader is not default_convert:
        raise UnsupportedError(
            "run.shard(): the collate_fn of a DataLoader with batch_size=None takes one sample, and a run"
            " needs batches: say run.shard(loader, batch_size=..., collate_fn=...)."
        )
    return usual


def _has_device() -> bool:
    found: Any = getattr(torch, "accelerator", torch.cuda)
    return bool(found.is_available())


def to_device(batch: Any, device: torch.device) -> Any:
    """The tensors of a batch on a device; lists, tuples and dicts keep their kind."""
    if callable(attribute_of(batch, "to")):
        return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


class CountedBatch(NamedTuple):
    """A batch, and of how many samples the loader made it."""

    samples: int
    batch: Any


class _Counting:
    """collate_fn of a loader, which counts."""

    def __init__(self, collate: Any) -> None:
        self._collate = collate

    def __call__(self, samples: Any) -> CountedBatch:
        return CountedBatch(len(samples), self._collate(samples))


def twin(loader: Any, **other: Any) -> Any:
    """The same loader with other attributes; the one given stays as it is. (copy.copy() fails for those of
    Accelerate, and torch's refuse a change of most attributes.)
    """
    made = object.__new__(type(loader))
    made.__dict__.update(loader.__dict__)
    made.__dict__.update(other)
    if "_iterator" in made.__dict__:
        made.__dict__["_iterator"] = None
    return made


def _base(loader: Any) -> Optional[DataLoader]:
    """The DataLoader that makes the batches; None: it is another kind."""
    found = getattr(loader, "base_dataloader", None) if is_accelerates(loader) else loader
    return found if isinstance(found, DataLoader) and own_iteration(found) is None else None


def _with_base(loader: Any, **other: Any) -> Any:
    base = _base(loader)
    made = twin(base, **other)
    return made if base is loader else twin(loader, base_dataloader=made)


def _looks_inside(loader: Any, base: DataLoader) -> bool:
    """Whether it does something to what the base has collated. Accelerate's with dispatch_batches looks for tensors."""
    dispatches = is_accelerates(loader) and type(loader).__name__ == "DataLoaderDispatcher"
    return dispatches or own_iteration(base, "_get_iterator") is not None


def counting(loader: Any) -> Any:
    """The loader, with CountedBatch for each batch; itself where it cannot be known how many samples one has."""
    base = _base(loader)
    if base is None or base.batch_sampler is None and base.batch_size is None or _looks_inside(loader, base):
        return loader
    return _with_base(loader, collate_fn=_Counting(base.collate_fn))


def copied(loader: Any, other: Any) -> List[Any]:
    """Attributes of a loader, of its base and of its samplers, where the other one has a copy of them: what is changed
    there does not reach the other one.
    """
    if loader is other or type(loader) is not type(other):
        return []
    kept: Dict[str, Any] = loader.__dict__
    found = [value for name, value in kept.items() if name not in _STATE]
    for name in _PARTS:
        if name in kept:
            found += copied(kept[name], getattr(other, name, None))
    return found


def _can(value: Any, *calls: str) -> bool:
    """Whether it has all these special methods."""
    return all(callable(getattr(type(value), f"__{call}__", None)) for call in calls)


def is_map_style(data: Any) -> bool:
    """Whether it is a data set whose samples have indices: one of torch, of Hugging Face, or what torch's DataLoader takes
    for one. A list of batches is none.
    """
    if isinstance(data, (Dataset, DataLoader)):
        return isinstance(data, Dataset) and not isinstance(data, IterableDataset)
    return _can(data, "getitems") or _can(data, "getitem", "len") and not _can(data, "iter")


def may_give_samples(loader: Any) -> bool:
    """Whether what it gives may be single samples, not batches: a data set, or a DataLoader that makes no batches."""
    base = _base(loader)
    makes_none = base is not None and base.batch_sampler is None and base.batch_size is None
    may_be_a_data_set = _can(loader, "getitem", "len") and not isinstance(loader, Sequence)
    return makes_none or isinstance(loader, IterableDataset) or may_be_a_data_set


def beginning(loader: DataLoader, batches: int) -> Any:
    """The loader of the first batches alone, which it has in the order of the data set."""
    size = loader.batch_size or 1
    dataset: Any = loader.dataset
    part = Subset(dataset, range(min(len(dataset), batches * size)))
    sampler = SequentialSampler(part)
    return twin(loader, dataset=part, sampler=sampler, batch_sampler=BatchSampler(sampler, size, loader.drop_last))


def usual_size(loader: Any) -> Optional[int]:
    """Samples of a batch, if the loader says."""
    for holder in (loader, getattr(loader, "batch_sampler", None)):
        size = getattr(holder, "batch_size", None)
        if isinstance(size, int) and size > 0:
            return size
    return None


def has_own_part(loader: Any, nodes_ranks: int = 1) -> bool:
    """Whether a DistributedSampler gives each process samples of its own, beyond those of one node."""
    for holder in (loader, getattr(loader, "batch_sampler", None)):
        sampler = getattr(holder, "sampler", None)
        if isinstance(sampler, DistributedSampler):
            return bool(sampler.num_replicas > nodes_ranks)
    return False


def reordered(loader: Any, peer: int) -> Optional[Any]:
    """The loader in an order that this peer alone has; None: it has no random order, or one of its own kind."""
    base = _base(loader)
    if base is None:
        return None
    batches: Any = base.batch_sampler
    if batches is not None and type(batches) is not BatchSampler:
        return None
    sampler = _reseeded(base.sampler if batches is None else batches.sampler, peer)
    if sampler is None:
        return None
    if batches is None:
        return _with_base(loader, sampler=sampler)
    mine = copy.copy(batches)
    mine.sampler = sampler
    return _with_base(loader, sampler=sampler, batch_sampler=mine)


def _reseeded(sampler: Any, peer: int) -> Optional[Any]:
    is_one = type(sampler) in _RANDOM or (isinstance(sampler, RandomSampler) and is_accelerates(sampler))
    if not is_one:
        return None
    drawn = torch.empty((), dtype=torch.int64).random_(generator=sampler.generator)
    seed = span_seed(int(drawn.item()), peer)
    mine = copy.copy(sampler)
    # Where torch's default device is another one, a sampler draws there, with a generator of its own.
    where = "cpu" if sampler.generator is None else sampler.generator.device
    mine.generator = torch.Generator(where).manual_seed(seed)
    if hasattr(mine, "initial_seed"):
        mine.initial_seed = seed >> 1
    return mine
