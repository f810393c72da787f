# SPDX-License-Identifier: Apache-2.0
"""Batches of a program's own loader: counted, and in another order on each peer."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from .errors import MisuseError
from .data.order import is_accelerates, own_iteration, span_seed

if TYPE_CHECKING:
    from ._run import Run

_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
SAME_SAMPLES = (
    "run.batches(): the run has {peers} peers, and nothing shows that they train on different samples: use"
    " run.shard(loader), or a DataLoader with shuffle=True; if each peer has a part of its own, say"
    " run.batches(loader, distinct=True)."
)


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


def _twin(loader: Any, **other: Any) -> Any:
    """The same loader with other attributes; the one given stays as it is. (copy.copy() fails for those of
    Accelerate, and torch's refuse a change of most attributes.)
    """
    twin = object.__new__(type(loader))
    twin.__dict__.update(loader.__dict__)
    twin.__dict__.update(other)
    if "_iterator" in twin.__dict__:
        twin.__dict__["_iterator"] = None
    return twin


def _base(loader: Any) -> Optional[DataLoader]:
    """The DataLoader that makes the batches; None: it is another kind."""
    found = getattr(loader, "base_dataloader", None) if is_accelerates(loader) else loader
    return found if isinstance(found, DataLoader) and own_iteration(found) is None else None


def _with_base(loader: Any, **other: Any) -> Any:
    base = _base(loader)
    twin = _twin(base, **other)
    return twin if base is loader else _twin(loader, base_dataloader=twin)


def counting(loader: Any) -> Any:
    """The loader, with CountedBatch for each batch; itself where it cannot be known how many samples one has."""
    base = _base(loader)
    if base is None or base.batch_sampler is None and base.batch_size is None:
        return loader
    return _with_base(loader, collate_fn=_Counting(base.collate_fn))


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
    mine.generator = torch.Generator().manual_seed(seed)
    if hasattr(mine, "initial_seed"):
        mine.initial_seed = seed >> 1
    return mine


class Batches:
    """The result of run.batches(): the loader's batches, counted, epoch after epoch until the run is over."""

    def __init__(self, run: "Run", loader: Any, batch_size: Optional[int], distinct: bool) -> None:
        self._run = run
        self._loader = loader
        self._batch_size = batch_size
        self._distinct = distinct

    def _source(self) -> Any:
        """The loader to go through, after the start."""
        run, loader = self._run, self._loader
        if not self._distinct and not has_own_part(loader, run._ranks):
            peer = run._peer_number
            other = reordered(loader, peer) if peer is not None else None
            if other is None:
                run._advise(SAME_SAMPLES)
            else:
                loader = other
        return loader if self._batch_size else counting(loader)

    def __iter__(self) -> Iterator[Any]:
        run, epoch = self._run, 0
        run._start(self._batch_size or usual_size(self._loader) or run._batch_size)
        if run.finished:
            return
        source = self._source()
        while not run.finished:
            sampler: Any = getattr(source, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            epoch += 1
            empty = True
            for found in source:
                empty = False
                batch, samples = found, self._batch_size
                if isinstance(found, CountedBatch):
                    samples, batch = found
                run._taken(batch, samples)
                if run.finished:
                    return
                yield batch
            if empty:
                raise MisuseError(
                    "run.batches(): the loader has no batch; a generator can be gone through only once."
                )
