# SPDX-License-Identifier: Apache-2.0
"""transformers.Trainer over all peers of a run.

    trainer = tradewind.transformers.Trainer(run, model=model, args=arguments, train_dataset=dataset)
    trainer.train()

The run decides when it is over: epochs and max_steps of the arguments are not looked at. Rounds are the steps
of the schedule; max_grad_norm clips the mean gradient of a round; checkpoints and logs are the first peer's.
"""

from __future__ import annotations

from typing import Any, Iterator, Optional

import torch
import transformers

from ._run import Run

# Steps of one peer until the run is over are not known; the callback ends it.
_WITHOUT_END = 1 << 40


class _Counted:
    """A loader whose batches the run counts."""

    def __init__(self, run: Run, loader: Any) -> None:
        self._run = run
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        self._run.start()
        for batch in self._loader:
            self._run._taken(batch)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class RunCallback(transformers.TrainerCallback):
    """Ends the training with the run; saves and evaluates on the first peer alone."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """After each step()."""
        if self._run.finished:
            control.should_training_stop = True
        self._leave_to_the_first(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """After each epoch of this peer's loader."""
        self._leave_to_the_first(control)

    def _leave_to_the_first(self, control: Any) -> None:
        if not self._run.is_first:
            control.should_save = control.should_evaluate = False

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Any] = None, **named: Any) -> None:
        """Adds what the run knows."""
        if logs is not None:
            logs.update(
                {f"run_{key}": value for key, value in self._run.metrics.items() if value is not None}
            )


class Trainer(transformers.Trainer):
    """Options of run.optimizer() are given as run_options."""

    def __init__(self, run: Run, *arguments: Any, run_options: Optional[Any] = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._run = run
        self._run_options = dict(run_options or {})
        clip = self.args.max_grad_norm
        if clip:
            self._run_options.setdefault("clip_grad_norm", clip)
        self.args.max_grad_norm = 0.0
        self.args.max_steps = _WITHOUT_END
        self.add_callback(RunCallback(run))

    def create_optimizer(self, *arguments: Any, **named: Any) -> torch.optim.Optimizer:
        """That of transformers, over all peers."""
        inner = super().create_optimizer(*arguments, **named)
        self.optimizer = self._run.optimizer(self.model, inner, **self._run_options)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """That of transformers, over the rounds of the run."""
        rounds = int(self._run._settings.get("training.rounds") or 100)
        self.lr_scheduler = self._run.scheduler(super().create_scheduler(rounds, optimizer))
        return self.lr_scheduler

    def evaluate(self, *arguments: Any, **named: Any) -> Any:
        """That of transformers; others do this peer's part meanwhile."""
        with self._run.paused("evaluating"):
            return super().evaluate(*arguments, **named)

    def get_train_dataloader(self) -> Any:
        """That of transformers; the run counts its batches."""
        return _Counted(self._run, super().get_train_dataloader())
