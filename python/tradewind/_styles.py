# SPDX-License-Identifier: Apache-2.0
"""How a program may train: its own loop over the run's samples or over its own, or no loop at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, cast

import torch

from ._batches import Batches
from .errors import MisuseError
from ._fit import Gradients, Summary, fit
from ._fit import Loss as BatchLoss
from ._shard import Collate, Given, Samples, Shard
from ._status import Status
from .errors import warn

if TYPE_CHECKING:
    from ._run import Run

# Of run.fit(), where neither an argument nor a DataLoader says.
_BATCH_SIZE = 32


class Styles(Status):
    """The part of Run that gives batches. Thread: the run's."""

    def _whole(self) -> "Run":
        return cast("Run", self)

    def _uses(self, samples: Samples) -> None:
        """The data is part of what peers compare, as far as it can name itself; before the start."""
        facts = self._whole()._data_facts
        new = [fact for fact in samples.facts if fact not in facts]
        if new and self._whole().started:
            warn(
                f"run.shard() after the start: peers did not compare this data ({', '.join(new)}). Call it before the"
                " first batch, step() or run.start()."
            )
        facts.extend(new)

    def _seed(self) -> int:
        return int(self._whole()._settings.get("training.seed") or 1)

    def fit(
        self,
        model: torch.nn.Module,
        loss: BatchLoss,
        dataset: Any,
        optimizer: torch.optim.Optimizer,
        *,
        batch_size: Optional[int] = None,
        collate: Optional[Collate] = None,
        workers: int = 0,
        autocast: Optional[torch.dtype] = None,
        evaluate: Optional[Callable[[Any], Any]] = None,
        evaluate_every: int = 0,
        **options: Any,
    ) -> Summary:
        """Trains until the run is over: the run asks for gradients, so no loop is needed.

        loss(model, batch): the mean over the batch, without dimensions. dataset: map-style, or a
        DataLoader. batch_size: left out, that of the DataLoader, or 32. autocast: dtype of the forward pass; float16 scales the loss. evaluate(model): on the
        first peer, in evaluation mode and without gradients, every `evaluate_every` rounds (0: none) and at
        the end. options: those of
        run.optimizer(). Dropout is a function of the samples, so any peer's work can be done again by
        another.
        """
        run = self._whole()
        samples = Samples(dataset, Given(batch_size, collate, workers, _BATCH_SIZE, self._seed()))
        wrapped = run.optimizer(model, optimizer, batch_size=samples.batch_size, **options)
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
        accumulate: int = 1,
    ) -> Shard:
        """Batches of the samples that the run gives to this peer, until the run is over; each one once an
        epoch.

        data: a map-style data set, or a DataLoader of one: docs/python.md lists what becomes of its
        arguments. Each batch is followed by one step(), or each `accumulate` batches; the last ones of a round
        may be smaller.
        """
        if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
            raise MisuseError(f"run.shard(accumulate={accumulate!r}): expected a whole number from 1.")
        return self._shard(data, Given(batch_size, collate_fn, num_workers), lambda: accumulate)

    def _shard(self, data: Any, given: Given, accumulate: Callable[[], int]) -> Shard:
        run = self._whole()
        samples = Samples(data, given._replace(usual_batch_size=run._batch_size, seed=self._seed()))
        if samples.batch_size is None:
            raise MisuseError(
                "no batch size known: run.shard(dataset, batch_size=...), or a DataLoader that has one."
            )
        self._uses(samples)
        return Shard(run, samples, samples.batch_size, accumulate)

    def batches(self, loader: Any, *, batch_size: Optional[int] = None, distinct: bool = False) -> Batches:
        """The loader's own batches, counted, epoch after epoch until the run is over. Several may make one
        step().

        Each peer goes through a DataLoader with shuffle=True in an order of its own; with any other one it
        warns, unless distinct says that this peer has samples of its own. batch_size: samples of each batch,
        where neither loader nor batch tells.
        """
        return Batches(self._whole(), loader, batch_size, distinct)
