# SPDX-License-Identifier: Apache-2.0
"""Batches of the samples leased to this peer: each sample of an epoch is in one record, even if peers die.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional, Sequence, Sized, cast

import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate

from ._errors import MisuseError, UnsupportedError
from ._workers import WorkerPool, samples_of

if TYPE_CHECKING:
    from ._run import Run

_PREFETCH_FACTOR = 2
# Samples that wait are in memory.
_MOST_AHEAD = 256

Collate = Callable[[List[Any]], Any]


class Samples:
    """A map-style data set with what a DataLoader does to its samples. Thread: the run's."""

    def __init__(
        self, data: Any, batch_size: Optional[int], collate: Optional[Collate], workers: int
    ) -> None:
        """data: a data set, or a DataLoader of which collate_fn, num_workers, pin_memory and batch_size are
        taken.
        """
        loader = data if isinstance(data, DataLoader) else None
        dataset = loader.dataset if loader is not None else data
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise UnsupportedError(
                f"shard() of {type(dataset).__name__}, an iterable data set: nobody can take over its"
                " samples; use run.batches(loader), which counts samples."
            )
        self.dataset = dataset
        self.size = len(cast(Sized, dataset))
        if self.size < 1:
            raise UnsupportedError(f"shard() of {type(dataset).__name__}: it has no samples.")
        self.batch_size: Optional[int] = batch_size or (loader.batch_size if loader is not None else None)
        own = loader.collate_fn if loader is not None and loader.batch_size is not None else None
        self._collate: Collate = collate or own or default_collate
        self._pin = loader is not None and loader.pin_memory
        self._workers = workers or (loader.num_workers if loader is not None else 0)
        self._loader = loader
        self._pool: Optional[WorkerPool] = None
        # A data set that reads ahead by itself, such as Shards, has expect().
        self._expect: Optional[Callable[[List[int]], None]] = getattr(dataset, "expect", None)
        self.block: int = getattr(dataset, "block", 1)
        self.fact: str = getattr(dataset, "run_fact", "")

    @property
    def prefetch(self) -> int:
        """Samples that are read ahead. Workers: prefetch_factor batches each, as those of a DataLoader."""
        if not self._workers:
            return _MOST_AHEAD if self._expect is not None else 0
        factor = getattr(self._loader, "prefetch_factor", None) or _PREFETCH_FACTOR
        return min(_MOST_AHEAD, self._workers * factor * (self.batch_size or 1))

    def batch(self, indices: List[int], ahead: Sequence[int] = ()) -> Any:
        """The batch of these samples, collated (and pinned, if the loader says so and there is a GPU).

        ahead: samples that come next, for the workers.
        """
        batch = self._collate(self._samples(indices, ahead))
        if self._pin and torch.cuda.is_available():
            from torch.utils.data._utils.pin_memory import pin_memory

            return pin_memory(batch)
        return batch

    def _samples(self, indices: List[int], ahead: Sequence[int]) -> List[Any]:
        if not self._workers:
            if self._expect is not None:
                self._expect([*indices, *ahead])
            return samples_of(self.dataset, indices)
        if self._pool is None:
            self._pool = WorkerPool(self.dataset, self._workers, self._loader)
        return self._pool.samples(indices, ahead)

    def close(self) -> None:
        """Ends the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class Shard:
    """The result of run.shard(); iterate it once or again, until the run is over."""

    def __init__(self, run: "Run", samples: Samples, batch_size: int) -> None:
        self._run = run
        self._samples = samples
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[Any]:
        run, samples = self._run, self._samples
        try:
            while True:
                indices = run._next_indices(samples, self._batch_size)
                if not indices:
                    return
                yield samples.batch(indices, run._ahead(samples))
        finally:
            samples.close()


class Batches:
    """The result of run.batches(): the loader's batches, counted, epoch after epoch until the run is over."""

    def __init__(self, run: "Run", loader: Any) -> None:
        self._run = run
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        epoch = 0
        size = getattr(self._loader, "batch_size", None)
        self._run._start(size if isinstance(size, int) else self._run._batch_size)
        while not self._run.finished:
            sampler: Any = getattr(self._loader, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            epoch += 1
            empty = True
            for batch in self._loader:
                empty = False
                self._run._taken(batch)
                if self._run.finished:
                    return
                yield batch
            if empty:
                raise MisuseError(
                    "run.batches(): the loader has no batch; a generator can be gone through only once."
                )
