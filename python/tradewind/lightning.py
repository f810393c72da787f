# SPDX-License-Identifier: Apache-2.0
"""A Lightning strategy: every process is a peer of a run.

    trainer = lightning.Trainer(strategy=tradewind.lightning.Strategy(run), max_epochs=-1)
    trainer.fit(module, loader)

Each peer trains on samples of its own: the run gives them. The run decides when it is over. Steps
(trainer.global_step) are rounds; schedules of the module step once a round ("interval": "step"); an epoch is as
many batches of this peer as the loader has. gradient_clip_val of the Trainer clips microbatches;
clip_grad_norm= of the strategy clips the round's mean. Each peer keeps checkpoints, all but the first in a
folder peer-ID.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

try:
    from lightning.pytorch import LightningModule
    from lightning.pytorch.callbacks import BatchSizeFinder, Checkpoint, LearningRateFinder
    from lightning.pytorch.strategies import SingleDeviceStrategy
except ImportError:
    from pytorch_lightning import LightningModule
    from pytorch_lightning.callbacks import BatchSizeFinder, Checkpoint, LearningRateFinder
    from pytorch_lightning.strategies import SingleDeviceStrategy

from .data.samples import beginning, usual_size
from .errors import UnsupportedError, warn
from .loop.ending import leave_early
from .loop.styles import Batches, Shard, batch_in, is_number
from .model.optimizers import ONE_OPTIMIZER
from .run import Run


class _Epochs:
    """Passes of Lightning through its loader. Each begins with no batch in hand."""

    def __init__(self, run: Run, loop: Any, follow: Callable[[], None]) -> None:
        """loop: Lightning's, of an epoch. follow(): looks whether the run is over."""
        self._run = run
        self._loop = loop
        self.end = follow
        self._given_up: Optional[int] = None  # batches that were taken and not begun
        self._skipped = 0  # by run.skip()

    def begin(self) -> None:
        """UnsupportedError: the epoch before ended with a batch in hand."""
        total = self._loop.batch_progress.total
        given_up: int = total.ready - total.started
        before, self._given_up = self._given_up, given_up
        skipped, self._skipped = self._skipped, self._run.metrics.get("skipped", 0)
        if before is not None and given_up > before and self._skipped == skipped:
            raise UnsupportedError(
                "on_train_batch_start() returned -1, and the batch in hand counts as taken: call run.skip() before it,"
                " or end epochs early with limit_train_batches."
            )


class _Leased:
    """Samples that the run gives, as a loader. With a length: else Lightning takes batches ahead, before the
    step() of those in hand.
    """

    def __init__(self, shard: Shard, length: Callable[[], int], epochs: _Epochs) -> None:
        self._shard = shard
        self._length = length
        self._epochs = epochs

    def __iter__(self) -> Iterator[Any]:
        self._epochs.begin()
        yield from self._shard
        self._epochs.end()

    def __len__(self) -> int:
        return self._length()


class _Counted:
    """A loader of another kind, whose batches Lightning takes ahead. The run counts one when Lightning hands it on, or
    when the module takes it from the loader itself.
    """

    def __init__(self, batches: Batches, epochs: _Epochs, module: Any) -> None:
        self.batches = batches
        self._epochs = epochs
        self._takes_itself = "dataloader_iter" in inspect.signature(module.training_step).parameters
        self._ahead: Deque[Any] = deque()

    def __iter__(self) -> Iterator[Any]:
        self._epochs.begin()
        self._ahead.clear()
        for fetched in self.batches.fetched():
            if self._takes_itself:
                yield self.batches.take(fetched)
                continue
            self._ahead.append(fetched)
            yield batch_in(fetched)
        self._epochs.end()

    def handed_on(self, batch: Any) -> None:
        """The program gets the batch that came first; batch: what its hooks made of it."""
        if self._ahead:
            self.batches.take(self._ahead.popleft(), batch)


class _Stop(Checkpoint):
    """What sets trainer.should_stop on one peer, such as EarlyStopping, ends the run for all. Lightning calls the last
    Checkpoint after everything else in each hook of callbacks.
    """

    best_model_path = ""  # programs ask trainer.checkpoint_callback, which this one is without others

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy

    def on_train_batch_end(self, *arguments: Any, **named: Any) -> None:
        """Callbacks before this one, or training_step(), may have set it."""
        self._strategy.hand_on_stop()

    def on_train_epoch_end(self, *arguments: Any, **named: Any) -> None:
        """As above."""
        self._strategy.hand_on_stop()

    def teardown(self, trainer: Any, *arguments: Any, **named: Any) -> None:
        """The training is over. Lightning looks for the best weights with the Checkpoints that it has then."""
        trainer.callbacks = [callback for callback in trainer.callbacks if callback is not self]


def _refuse_finders(trainer: Any) -> None:
    """UnsupportedError: a callback tries settings in rounds of the run. Tuner adds one, too."""
    for callback in trainer.callbacks:
        if isinstance(callback, (BatchSizeFinder, LearningRateFinder)):
            raise UnsupportedError(
                f"{type(callback).__name__} trains with settings that it tries, and then puts the weights back, which a run"
                " cannot: find them first, with a Trainer that has no tradewind.lightning.Strategy."
            )


def _with_index(device: Any) -> torch.device:
    """Lightning wants the number of a GPU: that of the current one, unless there is one."""
    found = torch.device(device)
    return torch.device("cuda", torch.cuda.current_device()) if found == torch.device("cuda") else found


class Strategy(SingleDeviceStrategy):
    """device: as SingleDeviceStrategy's; options: those of run.optimizer()."""

    strategy_name = "tradewind"

    def __init__(self, run: Run, device: Optional[Any] = None, **options: Any) -> None:
        super().__init__(device=_with_index(device or ("cuda" if torch.cuda.is_available() else "cpu")))
        self._run = run
        self._before: Dict[str, Any] = {}  # metrics that Lightning had before it validated
        self._options = options
        self._counted: Optional[_Counted] = None
        self._batch_size: Optional[int] = None
        self._pause: Any = None

    def _trainer(self) -> Any:
        return self.lightning_module.trainer

    def setup_optimizers(self, trainer: Any) -> None:
        """The module's optimizer, over all peers, and its schedules, once a round."""
        _refuse_finders(trainer)
        super().setup_optimizers(trainer)
        found: List[Any] = list(super().optimizers)
        if len(found) != 1:
            raise UnsupportedError(f"the module has {len(found)} optimizers: {ONE_OPTIMIZER}")
        schedules = [config.scheduler for config in self.lr_scheduler_configs]
        self.optimizers = [self._run.optimizer(self.lightning_module, found[0], **self._options)]
        for config, schedule in zip(self.lr_scheduler_configs, schedules):
            self._look_at_pace(config, type(schedule).__name__)
            config.scheduler = self._run.scheduler(schedule)
        if schedules and type(self.lightning_module).lr_scheduler_step is not LightningModule.lr_scheduler_step:
            warn(
                f"{type(self.lightning_module).__name__}.lr_scheduler_step() changes nothing: the run steps schedules once"
                " a round. Make the schedule a function of rounds, such as LambdaLR."
            )

    def _look_at_pace(self, config: Any, name: str) -> None:
        """UnsupportedError: the schedule cannot have its pace. Lightning looks at it in automatic optimization."""
        if not self.lightning_module.automatic_optimization:
            return
        if config.frequency != 1:
            raise UnsupportedError(
                f"{name} has frequency {config.frequency}, and the run steps it once a round: leave frequency out, and"
                f" make the schedule {config.frequency} times as long."
            )
        if config.interval != "step":
            warn(
                f'{name} has "interval": "{config.interval}", and the run steps it once a round, not once'
                f' {"an" if config.interval == "epoch" else "a"} {config.interval}: count it in rounds, and say'
                ' {"scheduler": ..., "interval": "step"}.'
            )

    # Samples.

    def process_dataloader(self, dataloader: Any) -> Any:
        """That of training: the run gives its samples; those of an iterable data set are counted."""
        trainer = self._trainer()
        if not trainer.training:
            return dataloader
        self._batch_size = usual_size(dataloader)
        epochs = _Epochs(self._run, trainer.fit_loop.epoch_loop, self._follow)
        if not isinstance(dataloader, DataLoader) or isinstance(dataloader.dataset, IterableDataset):
            self._counted = _Counted(self._run.batches(dataloader), epochs, self.lightning_module)
            return self._counted
        self._counted = None

        def accumulate() -> int:
            return int(trainer.accumulate_grad_batches)

        def length() -> int:
            each = accumulate()
            return -(-len(dataloader) // each) * each

        shard = self._run.shard(self._limited(dataloader, length()), accumulate=accumulate)
        return _Leased(shard, length, epochs)

    def _limited(self, loader: DataLoader, length: int) -> Any:
        """The loader of those batches that limit_train_batches and overfit_batches leave. With shuffling, Lightning
        takes others in each epoch, and so does the run.
        """
        limit = self._trainer().limit_train_batches
        batches = min(length, limit) if isinstance(limit, int) else int(length * limit)
        if batches >= len(loader):
            return loader
        sampler = loader.sampler if loader.batch_sampler is None or loader.batch_size else loader.batch_sampler
        if isinstance(sampler, SequentialSampler) and loader.batch_size:
            return beginning(loader, max(1, batches))
        if not isinstance(sampler, RandomSampler):
            warn(
                f"limit_train_batches={limit}: an epoch of Lightning has {batches} batches, and the run goes on in the"
                f" order of {type(sampler).__name__} from one to the next: for the first ones alone give a Subset."
            )
        return loader

    def on_train_start(self) -> None:
        """Joins or starts the run."""
        super().on_train_start()
        self._refuse_several_loaders()
        each = int(self._trainer().accumulate_grad_batches)
        self._run.start(None if self._batch_size is None else self._batch_size * each)
        if self._counted is not None:
            self._counted.batches.advise()
        if not self._run.is_first:
            self._keep_checkpoints_apart()
        callbacks = self._trainer().callbacks
        if not any(isinstance(callback, _Stop) for callback in callbacks):
            callbacks.append(_Stop(self))

    def hand_on_stop(self) -> None:
        """The run ends for all peers with the round under way, or the next one. Until then this peer trains on."""
        trainer = self._trainer()
        may_stop = self._run.started and not self._run.finished and not trainer.sanity_checking
        if trainer.should_stop and may_stop and trainer.fit_loop._can_stop_early:
            self._run.end()
            # What stops each epoch before its first batch, such as on_train_epoch_start(), would do so for ever.
            trainer.should_stop = trainer.fit_loop.epoch_loop.batch_progress.current.ready == 0

    def on_train_end(self) -> None:
        """Leaves a run that is not over."""
        super().on_train_end()
        why = "by max_epochs, max_steps or a hook of the module (max_epochs=-1 goes on)"
        leave_early(self._run, self._run.settings["training.rounds"], why)

    def _refuse_several_loaders(self) -> None:
        several = len(self._trainer().fit_loop._combined_loader.flattened)
        if several != 1:
            raise UnsupportedError(
                f"training has {several} loaders: a run gives the samples of one. Give one of"
                " torch.utils.data.StackDataset (samples side by side) or ConcatDataset (one after the other)."
            )

    def _keep_checkpoints_apart(self) -> None:
        for callback in self._trainer().checkpoint_callbacks:
            if getattr(callback, "dirpath", None):
                callback.dirpath = os.path.join(callback.dirpath, f"peer-{self._run.view.get('id')}")

    def batch_to_device(self, batch: Any, device: Optional[Any] = None, dataloader_idx: int = 0) -> Any:
        """As ever; the run counts the batches of training that it did not give."""
        if self._counted is not None and self.lightning_module is not None and self._trainer().training:
            self._counted.handed_on(batch)
        return super().batch_to_device(batch, device, dataloader_idx)

    # Steps.

    def optimizer_step(self, optimizer: Any, closure: Callable[[], Any], *arguments: Any, **named: Any) -> Any:
        """As ever; the end of the run ends the training."""
        result = super().optimizer_step(optimizer, closure, *arguments, **named)
        self._follow(1)
        return result

    def _follow(self, adds: int = 0) -> None:
        """Steps are rounds; the end of the run ends the training. adds: to its steps Lightning adds so many now."""
        fit = self._trainer().fit_loop
        loop = fit.epoch_loop
        if self.lightning_module.automatic_optimization:
            steps = loop.automatic_optimization.optim_progress.optimizer.step.total
        else:
            steps = loop.manual_optimization.optim_step_progress.total
        steps.ready = self._run.round
        steps.completed = loop._batches_that_stepped = self._run.round - adds
        if self._run.finished:
            self._trainer().should_stop = True
            fit.min_epochs, loop.min_steps = 0, None  # Lightning would wait for them for ever

    # Evaluation and checkpoints.

    def on_validation_start(self) -> None:
        """Others do this peer's part meanwhile."""
        super().on_validation_start()
        self._before = dict(self._trainer().callback_metrics)
        if self._run.started and not self._run.finished:
            self._pause = self._run.paused("validating")
            self._pause.__enter__()

    def on_validation_end(self) -> None:
        """Takes part again."""
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.__exit__(None, None, None)
        self._tell_evaluation()
        super().on_validation_end()
        self.hand_on_stop()  # after the callbacks, of which EarlyStopping is one

    def _tell_evaluation(self) -> None:
        """Lightning keeps what training logs beside what validation logs: new ones are of this validation."""
        trainer = self._trainer()
        if not self._run.started or not self._run.is_first or trainer.sanity_checking:
            return
        found = trainer.callback_metrics.items()
        new = {name: value for name, value in found if value is not self._before.get(name)}
        self._run.evaluated({name: value for name, value in new.items() if is_number(value)})

    @property
    def is_global_zero(self) -> bool:
        """Whether this peer logs: the first of the run."""
        return self._run.is_first if self._run.started else True

    def lightning_module_state_dict(self) -> Any:
        """That of the module, with the run's parameters."""
        with self._run.committed():
            found = super().lightning_module_state_dict()
            return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in found.items()}

    def optimizer_state(self, optimizer: Any) -> Any:
        """That of the optimizer, on every peer."""
        return optimizer.state_dict()

    def save_checkpoint(self, checkpoint: Any, filepath: Any, storage_options: Optional[Any] = None) -> None:
        """On every peer: each may be asked for its best one."""
        self.checkpoint_io.save_checkpoint(checkpoint, filepath, storage_options=storage_options)

    def remove_checkpoint(self, filepath: Any) -> None:
        """On every peer: its own."""
        self.checkpoint_io.remove_checkpoint(filepath)

    def teardown(self) -> None:
        """Leaves the run. Lightning calls this inside its `except`, too."""
        super().teardown()
        self._run.close(failed=sys.exc_info()[0] is not None)
