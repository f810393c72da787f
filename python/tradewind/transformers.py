# SPDX-License-Identifier: Apache-2.0
"""transformers.Trainer over all peers of a run.

    trainer = tradewind.transformers.Trainer(run, model=model, args=arguments, train_dataset=dataset)
    trainer.train()

Each peer trains on samples of its own. The run decides when it is over: epochs and max_steps of the arguments
are not looked at. Steps are rounds, in the schedule and in logging_steps, eval_steps and save_steps;
max_grad_norm clips the mean gradient of a round; checkpoints and logs are the first peer's.
"""

from __future__ import annotations

import os
from typing import Any, Iterator, Optional

import torch
import transformers
from torch.utils.data import IterableDataset
from transformers.trainer_callback import DefaultFlowCallback

from .errors import MisuseError, UnsupportedError, warn
from .loop.ending import leave_early
from .loop.styles import Batches, Optimizer, is_number
from .model.local import MODES
from .model.begun import Begun
from .model.optimizers import swaps_weights
from .run import Run


_OF_SPEED = ("_runtime", "_per_second", "_compilation_time")


def _tells_of_model(name: str, value: Any) -> bool:
    """Of the numbers of an evaluation: not its speed, nor what the run adds (RunCallback.on_log)."""
    return is_number(value) and name != "epoch" and not name.startswith("run_") and not name.endswith(_OF_SPEED)


class _Epoch:
    """A loader of an iterable data set, whose batches the run counts: each iteration is one epoch."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self._batches.once()


class RunCallback(DefaultFlowCallback):
    """Counts rounds as steps, ends the training with the run; saves and evaluates on the first peer alone."""

    def __init__(self, run: Run, trainer: Any) -> None:
        self._run = run
        self._trainer = trainer
        self._round = 0
        self._epoch = 0
        self._turned = False
        self._began: Optional[Begun] = None  # what was done when this peer took its first batch
        self._steps = 0  # since the round changed
        self._begun = False  # a step
        self._stepped = False  # since a callback ended the run
        self.is_first, self._seen = True, -1  # step() of a round; the round of the last one
        self._sum: Any = 0.0  # of the losses, when it did
        self._mean: Any = 0.0  # of the losses of its last steps

    def on_train_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """The first step begins, in the round after those of the checkpoint that it goes on from."""
        self._sum = self._mean = 0.0
        self._began = None
        self._round = state.global_step
        size = self._size()
        if size:
            self._epoch = self._run.samples // size
            state.num_train_epochs = self._epochs(args, size)

    def _size(self) -> int:
        """Samples of an epoch; 0: unknown."""
        dataset = self._trainer.train_dataset
        return len(dataset) if hasattr(dataset, "__len__") else 0

    def _epochs(self, args: Any, size: int) -> int:
        """Epochs of the whole run, as far as it can be known how many samples its rounds have."""
        each = self._run.settings["training.target_batch_size"]
        rounds = int(args.max_steps)
        if each.isdigit():
            return -(-rounds * int(each) // size)
        usual = int(args.train_batch_size * args.gradient_accumulation_steps)
        return -(-rounds * (self._run.samples or usual) // (size * (self._run.round or 1)))

    def on_step_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """The first batch of a step() is in hand, so the run has started."""
        self._trainer.forget_loss()  # of a step() that never came
        self.is_first, self._seen = self._run.round != self._seen, self._run.round
        self._begun = True
        if self._began is None:
            self._began = Begun(self._run.round, self._run.samples)

    def correct_speed(self, logs: Any) -> None:
        """That of the run since this peer came. transformers takes each round for the samples of one step()."""
        seconds = logs.get("train_runtime")
        if seconds and "train_samples_per_second" in logs and self._began is not None:
            logs["train_samples_per_second"] = round((self._run.samples - self._began.samples) / seconds, 3)
            logs["train_steps_per_second"] = round((self._run.round - self._began.round) / seconds, 3)

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> Any:
        """After each step() of this peer, of which a round may have several, and after the run (end())."""
        before, self._round = self._round, self._run.round
        state.global_step = self._round
        self._steps, self._begun = self._steps + self._begun, False
        self._stepped = True
        if self._round > before:
            self._mean_loss(before, self._round - before)
            for step in range(before + 1, self._round + 1):
                state.global_step = step
                super().on_step_end(args, state, control, **named)
            self._follow_epochs(args, state, control)
        return self._verdict(control)

    def _mean_loss(self, before: int, rounds: int) -> None:
        """transformers divides the sum of the losses by the steps: a round adds the mean of its steps. One without a step
        of this peer adds that of the last ones.
        """
        summed = self._trainer._tr_loss
        if self._trainer._globalstep_last_logged == before:  # the sum began anew
            self._sum = 0.0
        if self._steps:
            self._mean = (summed - self._sum) / self._steps
        summed += self._mean * (rounds - self._steps)
        self._sum, self._steps = summed.clone(), 0

    def _follow_epochs(self, args: Any, state: Any, control: Any) -> None:
        size = self._size()
        if size:
            state.epoch = self._run.samples / size
            state.num_train_epochs = self._epochs(args, size)
            if int(state.epoch) > self._epoch:
                self._epoch, self._turned = int(state.epoch), True
                super().on_epoch_end(args, state, control)

    def turned(self) -> bool:
        """Whether the run's epoch has turned since the last call."""
        turned, self._turned = self._turned, False
        return turned

    def on_epoch_end(self, args: Any, state: Any, control: Any, **named: Any) -> Any:
        """transformers counts steps of this peer; epochs are the run's."""
        return self._verdict(control)

    def _verdict(self, control: Any) -> Any:
        if self._run.finished:
            control.should_training_stop = True
        if not self._run.is_first:
            control.should_save = control.should_evaluate = False
        return control

    def end(self, args: Any, state: Any, control: Any) -> Any:
        """There is no further batch. Callbacks hear of the rounds that others did until the end of the run."""
        if self._run.finished and self._run.round > self._round:
            control = self._trainer.callback_handler.on_step_end(args, state, control)
        return self._verdict(control) if self._run.finished else control

    def hand_on_stop(self, control: Any) -> None:
        """A callback, such as EarlyStoppingCallback, wants the training to end: so does the run, for all peers. Until
        then this peer trains on.
        """
        if control.should_training_stop and self._stepped and not self._run.finished:
            control.should_training_stop = self._stepped = False
            self._run.end()

    def on_train_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """Leaves a run that is not over."""
        self.leave()

    def leave(self) -> None:
        """The training of this peer has ended, maybe in the middle of the run."""
        leave_early(self._run, self._trainer.args.max_steps, "before the run")

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Any] = None, **named: Any) -> None:
        """Adds what the run knows."""
        if logs is not None:
            logs.update(
                {f"run_{key}": value for key, value in self._run.metrics.items() if value is not None}
            )


class _Epochs:
    """What callbacks hear of epochs: the run's. transformers' own loop has others, by the steps of this peer: the
    beginning of its first one and the end of its last one are those of the run, too.
    """

    def __init__(self, trainer: Any, follows: RunCallback) -> None:
        handler = trainer.callback_handler
        self._trainer = trainer
        self._follows = follows
        self.begin, self.end = handler.on_epoch_begin, handler.on_epoch_end
        handler.on_epoch_begin, handler.on_epoch_end = self._loop_begins, self._loop_ends
        self._started = -1  # the training that has begun its first epoch

    def _are_loops(self) -> bool:
        return isinstance(self._trainer.train_dataset, IterableDataset)

    def _loop_begins(self, args: Any, state: Any, control: Any) -> Any:
        if self._are_loops() or self._started != id(state):
            self._started = id(state)
            return self.begin(args, state, control)
        control.should_epoch_stop = False
        return control

    def _loop_ends(self, args: Any, state: Any, control: Any) -> Any:
        control = self._follows.end(args, state, control)
        return self.end(args, state, control) if self._are_loops() or control.should_training_stop else control


class Trainer(transformers.Trainer):
    """Options of run.optimizer() are given as run_options."""

    def __init__(self, run: Run, *arguments: Any, run_options: Optional[Any] = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._run = run
        self._run_options = dict(run_options or {})
        self._of_run: Optional[Optimizer] = None
        if run.settings["training.mode"] not in MODES:  # else transformers clips before each step
            if self.args.max_grad_norm:
                self._run_options.setdefault("clip_grad_norm", self.args.max_grad_norm)
            self.args.max_grad_norm = 0.0
        self.args.max_steps = int(run.settings["training.rounds"])
        self.args.ignore_data_skip = True  # the run knows which samples come next
        if self.args.load_best_model_at_end:
            warn(
                "load_best_model_at_end: the first peer alone evaluates, so it alone ends with the best model,"
                " and the others with the run's last one."
            )
        self.remove_callback(DefaultFlowCallback)
        self._follows = RunCallback(run, self)
        self.callback_handler.callbacks.insert(0, self._follows)
        self._epochs = _Epochs(self, self._follows)

    def create_optimizer(self, *arguments: Any, **named: Any) -> torch.optim.Optimizer:
        """That of transformers, over all peers."""
        inner = super().create_optimizer(*arguments, **named)
        if swaps_weights(inner):
            raise UnsupportedError(
                f"{type(inner).__name__} swaps weights in its train() and eval(), which transformers calls around each"
                " evaluation, on this peer alone: give another optim=, or train in a loop of your own, which evaluates"
                " copies (docs/python.md)."
            )
        self._of_run = self.optimizer = self._run.optimizer(self.model, inner, **self._run_options)
        return self.optimizer

    def training_step(self, *arguments: Any, **named: Any) -> torch.Tensor:
        """That of transformers, whose losses add up to the mean loss of the step(); the run's log gets it. To read it
        from a GPU takes a wait, so of a round there the first one counts.
        """
        found: torch.Tensor = super().training_step(*arguments, **named)
        if self._of_run is not None and (found.device.type == "cpu" or self._follows.is_first):
            self._of_run.add_loss(found.detach())
        return found

    def forget_loss(self) -> None:
        """The losses of the next step() begin."""
        if self._of_run is not None:
            self._of_run.forget_loss()

    def log(self, logs: Any, *arguments: Any, **named: Any) -> None:
        """That of transformers, with the speed of the run."""
        self._follows.correct_speed(logs)
        super().log(logs, *arguments, **named)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """That of transformers, over the rounds of the run."""
        self.lr_scheduler = self._run.scheduler(super().create_scheduler(num_training_steps, optimizer))
        return self.lr_scheduler

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        """That of transformers; the rounds that were done count."""
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            if self._of_run is None:
                raise MisuseError(
                    f"{type(self).__name__}.create_optimizer() did not call that of tradewind.transformers.Trainer, which"
                    " makes the optimizer of the run: set self.optimizer there, and return super().create_optimizer()."
                )
            state = transformers.TrainerState.load_from_json(os.path.join(checkpoint, "trainer_state.json"))
            batch = self._run.settings["training.target_batch_size"]
            samples = state.global_step * int(batch) if batch.isdigit() else self._samples_of(state)
            done = {"round": state.global_step, "samples": samples, "optimizer": self._of_run.state_dict()}
            self._run.load_state_dict(done)

    def _samples_of(self, state: Any) -> int:
        """Samples of the run until a checkpoint, where rounds have different numbers of them: by its epoch."""
        data = self.train_dataset
        return round((state.epoch or 0) * len(data)) if hasattr(data, "__len__") else 0

    def _maybe_log_save_evaluate(self, *arguments: Any, **named: Any) -> None:
        """That of transformers, after each step; an epoch ends before it and begins after it where the run's turns."""
        epochs = self._epochs
        turned = self._follows.turned() and not isinstance(self.train_dataset, IterableDataset)
        turned = turned and not self._run.finished
        if turned:
            epochs.end(self.args, self.state, self.control)
        super()._maybe_log_save_evaluate(*arguments, **named)
        self._follows.hand_on_stop(self.control)
        if turned and not self._stops():
            epochs.begin(self.args, self.state, self.control)

    def _stops(self) -> bool:
        control: Any = self.control
        return bool(control.should_training_stop)

    def evaluate(self, *arguments: Any, **named: Any) -> Any:
        """That of transformers; others do this peer's part meanwhile."""
        with self._run.paused("evaluating"):
            found = super().evaluate(*arguments, **named)
        if self._run.started:
            self._run.evaluated({name: value for name, value in found.items() if _tells_of_model(name, value)})
        return found

    def _load_best_model(self) -> None:
        """That of transformers, after the last update of the run."""
        self._follows.leave()
        super()._load_best_model()

    def save_model(self, *arguments: Any, **named: Any) -> Any:
        """That of transformers, of the run's parameters."""
        with self._run.committed():
            return super().save_model(*arguments, **named)

    def get_train_dataloader(self) -> Any:
        """That of transformers, whose samples the run gives to this peer. Its length is that of the run, so it
        has none.
        """
        loader = super().get_train_dataloader()
        if isinstance(self.train_dataset, IterableDataset):
            return _Epoch(self._run.batches(loader))
        try:
            return self._run.shard(loader, accumulate=lambda: int(self.args.gradient_accumulation_steps))
        except UnsupportedError as error:
            raise UnsupportedError(f"{error} {self._other_way()}") from None

    def _other_way(self) -> str:
        """What helps where the loader is made by a trainer that the program cannot change."""
        kinds = type(self).__mro__
        plain = kinds[kinds.index(Trainer) + 1].__name__
        samples = int(self.args.train_batch_size * self.args.gradient_accumulation_steps)
        return (
            f"Or train with {plain} alone, optimizers=(run.optimizer(model, optimizer, batch_size={samples}), None), and a"
            " callback that sets control.should_training_stop when run.finished is true."
        )
