# SPDX-License-Identifier: Apache-2.0
"""What a run trains, and what it keeps beside that."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

import torch

from .loop.loop import whole_samples
from .errors import UnsupportedError
from .model.layout import Modules
from ._optimizer import Optimizer
from .model.trained import TrainedOptions
from .model.schedule import RoundScheduler, SchedulerLike
from ._styles import Styles
from .model.trained import Begun, Trained


class Trains(Styles):
    """The part of Run that has model, optimizer and state. Thread: the run's."""

    def optimizer(
        self,
        model: Modules,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: SchedulerLike = None,
        clip_grad_norm: Optional[float] = None,
        buffers: str = "mean",
        batch_size: Optional[int] = None,
        engine: str = "auto",
        alias: bool = True,
    ) -> Optimizer:
        """The optimizer for the loop: its step() trains with all peers.

        scheduler: steps once a round; an object made on `optimizer`, a function of it, or several.
        clip_grad_norm: L2 norm to which the mean gradient of a round is clipped. buffers: running
        statistics (BatchNorm) are averaged ("mean") or each peer's own ("local"). batch_size: samples of a
        step() where nothing else tells. engine: "auto" lets the engine compute SGD, Adam, AdamW and Lamb,
        and runs others as they are; "torch" runs all as they are; "tradewind" refuses others. alias: False
        keeps the model's memory apart from the engine's.
        """
        if self._whole()._trained is not None:
            raise UnsupportedError("a run has one optimizer: give it all parameters, in groups.")
        self._whole()._refuse_started("run.optimizer()")
        options = TrainedOptions(scheduler, clip_grad_norm, buffers, engine, alias)
        self._whole()._batch_size = None if batch_size is None else whole_samples(batch_size)
        self._whole()._trained = Trained(model, optimizer, options)
        return Optimizer(self._whole(), optimizer)

    def scheduler(self, scheduler: Any) -> Any:
        """For loops that call scheduler.step(): a stand-in whose step() does nothing; the run steps it once
        a round.
        """
        self._whole()._refuse_started("run.scheduler()")
        self._whole()._model().add_scheduler(scheduler)
        return RoundScheduler(scheduler)

    def extra_state(
        self,
        save: Callable[[], Any],
        load: Callable[[Any], Any],
        after_round: Optional[Callable[[], Any]] = None,
    ) -> None:
        """State that the loop keeps itself, such as an EMA or a queue: joiners and restarts get it, and checkpoints
        have it.

        save(): the state now, as dicts, lists and tuples of tensors, numbers and texts. Tensors keep their shapes and
        dtypes from the start on. load(state): takes what another peer saved. after_round(): is called after each
        update, on every peer and once a round, so that a state which it alone changes is the same everywhere.
        """
        self._whole()._refuse_started("run.extra_state()")
        self._whole()._model().extra.add(save, load, after_round)

    def state_dict(self) -> Dict[str, Any]:
        """round, samples, and the optimizer's state_dict(): for torch.save(); the run itself keeps
        checkpoints.
        """
        return {
            "round": self.round,
            "samples": self.samples,
            "optimizer": self._whole()._model().optimizer.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() gave, before the start: the optimizer's state, and the rounds and samples
        that were done, which count for `rounds`. Peers that join take all of it from the run.
        """
        self._whole()._refuse_started("run.load_state_dict()")
        self._whole()._model().optimizer.load_state_dict(state["optimizer"])
        self._go_on_from(int(state["round"]), int(state["samples"]))

    def _go_on_from(self, round: int, samples: int) -> None:
        """So much was done in a run before this one; before the start."""
        self._whole()._model().begun = Begun(round, samples)
