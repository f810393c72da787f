# SPDX-License-Identifier: Apache-2.0
"""How a program may train: its own loop over the run's samples or over its own, or no loop at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, cast

import torch

from ._errors import MisuseError
from ._fit import Gradients, Summary, fit
from ._fit import Loss as BatchLoss
from ._shard import Batches, Collate, Samples, Shard
from ._status import Status

if TYPE_CHECKING:
    from ._run import Run


class Styles(Status):
    """The part of Run that gives batches. Thread: the run's."""

    def _whole(self) -> "Run":
        return cast("Run", self)

    def _uses(self, samples: Samples) -> None:
        """The data is part of what peers compare, as far as it can name itself; before the start."""
        facts = self._whole()._data_facts
        if samples.fact and samples.fact not in facts:
            facts.append(samples.fact)

    def fit(
        self,
        model: torch.nn.Module,
        loss: BatchLoss,
        dataset: Any,
        optimizer: torch.optim.Optimizer,
        *,
        batch_size: int = 32,
        collate: Optional[Collate] = None,
        workers: int = 0,
        autocast: Optional[torch.dtype] = None,
        evaluate: Optional[Callable[[Any], Any]] = None,
        evaluate_every: int = 0,
        **options: Any,
    ) -> Summary:
        """Trains until the run is over: the run asks for gradients, so no loop is needed.

        loss(model, batch): the mean over the batch, without dimensions. dataset: map-style, or a
        DataLoader. autocast: dtype of the forward pass; float16 scales the loss. evaluate(model): on the
        first peer, in evaluation mode and without gradients, every `evaluate_every` rounds (0: none) and at
        the end. options: those of
        run.optimizer(). Dropout is a function of the samples, so any peer's work can be done again by
        another.
        """
        run = self._whole()
        wrapped = run.optimizer(model, optimizer, batch_size=batch_size, **options)
        samples = Samples(dataset, batch_size, collate, workers)
        self._uses(samples)
        gradients = Gradients(model, loss, wrapped, autocast)
        return fit(run, gradients, wrapped, samples, evaluate, evaluate_every, model)

    def shard(
        self,
        data: Any,
        *,
        batch_size: Optional[int] = None,
        collate_fn: Optional[Collate] = None,
        num_workers: int = 0,
    ) -> Shard:
        """Batches of the samples that the run gives to this peer, until the run is over; each one once an
        epoch.

        data: a map-style data set, or a DataLoader of one (its collate_fn, num_workers, pin_memory and
        batch_size are used, its sampler is not). Each batch is followed by one step(); the last one of a
        round may be smaller.
        """
        run = self._whole()
        samples = Samples(data, batch_size or run._batch_size, collate_fn, num_workers)
        if samples.batch_size is None:
            raise MisuseError(
                "no batch size known: run.shard(dataset, batch_size=...), or a DataLoader that has one."
            )
        self._uses(samples)
        return Shard(run, samples, samples.batch_size)

    def batches(self, loader: Any) -> Batches:
        """The loader's own batches, counted, epoch after epoch until the run is over. Several may make one
        step().
        """
        return Batches(self._whole(), loader)
