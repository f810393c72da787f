# SPDX-License-Identifier: Apache-2.0
"""Batches of the samples leased to this peer: each sample of an epoch is in one record, even if peers die.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert
from torch.utils.data._utils.pin_memory import pin_memory

from .data.order import content_of
from .errors import MisuseError, UnsupportedError
from .data.order import Sampling, Shuffled, is_accelerates, order_of, own_iteration
from .errors import warn
from .data.workers import Work, WorkerPool, samples_of

if TYPE_CHECKING:
    from ._run import Run

_PREFETCH_FACTOR = 2
# Samples that wait are in memory.
_MOST_AHEAD = 256
# So often a sample that a batch has already is drawn before it is taken again.
_MOST_MET = 100

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


class Samples:
    """A map-style data set with what a DataLoader does to its samples. Thread: the run's."""

    def __init__(self, data: Any, given: Given) -> None:
        """data: a data set, or a DataLoader, whose arguments docs/python.md lists."""
        loader = data if isinstance(data, DataLoader) else None
        dataset: Any = loader.dataset if loader is not None else data
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
        self._pool: Optional[WorkerPool] = None
        # A data set that reads ahead by itself, such as Shards, has expect().
        self._expect: Optional[Callable[[List[int]], None]] = getattr(dataset, "expect", None)
        named = getattr(dataset, "run_fact", "")
        self.facts: List[str] = [f"data: {self.order.fact}", named or content_of(dataset, len(dataset))]

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
    own = own_iteration(loader)
    if own is not None and not is_accelerates(loader):
        warn(
            f"run.shard(): {own} goes through its batches by an __iter__ of its own, which is not called: what"
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
    if callable(getattr(batch, "to", None)):
        return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


class Shard:
    """The result of run.shard(); iterate it once or again, until the run is over."""

    def __init__(self, run: "Run", samples: Samples, batch_size: int, accumulate: Callable[[], int]) -> None:
        """accumulate: batches of the next step."""
        self._run = run
        self._samples = samples
        self._batch_size = batch_size
        self._accumulate = accumulate

    def __iter__(self) -> Iterator[Any]:
        run, samples = self._run, self._samples
        try:
            while True:
                count = self._accumulate()
                found = run._next_indices(samples, self._batch_size * count)
                if not found:
                    samples.close()
                    return
                parts = samples.parts(found, self._batch_size, count)
                ahead = [*sum(parts[1:], []), *samples.order.indices(run._ahead(samples))]
                taken = 0
                for part in parts:
                    batch = samples.batch(part, ahead)
                    counted = min(len(part), len(found) - taken)
                    taken += counted
                    run._part_taken(taken, len(part) - counted)
                    yield batch
                    ahead = ahead[len(part) :]
        finally:
            samples.rest()
