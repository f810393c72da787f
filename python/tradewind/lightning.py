# SPDX-License-Identifier: Apache-2.0
"""A Lightning strategy: every process is a peer of a run.

    trainer = lightning.Trainer(strategy=tradewind.lightning.Strategy(run), max_epochs=-1)
    trainer.fit(module, loader)

The run decides when it is over; schedules of the module step once a round, whatever their interval says.
gradient_clip_val of the Trainer clips microbatches; clip_grad_norm= of the strategy clips the round's mean.
"""

from __future__ import annotations

from typing import Any, List, Optional

import torch

try:
    from lightning.pytorch.strategies import SingleDeviceStrategy
except ImportError:
    from pytorch_lightning.strategies import SingleDeviceStrategy

from ._errors import UnsupportedError
from ._run import Run


class Strategy(SingleDeviceStrategy):
    """device: as SingleDeviceStrategy's; options: those of run.optimizer()."""

    strategy_name = "tradewind"

    def __init__(self, run: Run, device: Optional[Any] = None, **options: Any) -> None:
        found = device or ("cuda" if torch.cuda.is_available() else "cpu")
        super().__init__(device=torch.device(found))
        self._run = run
        self._options = options

    def setup_optimizers(self, trainer: Any) -> None:
        """The module's optimizer, over all peers, and its schedules, once a round."""
        super().setup_optimizers(trainer)
        found: List[Any] = list(super().optimizers)
        if len(found) != 1:
            raise UnsupportedError(f"the module has {len(found)} optimizers: a run has one.")
        schedules = [config.scheduler for config in self.lr_scheduler_configs]
        self.optimizers = [self._run.optimizer(self.lightning_module, found[0], **self._options)]
        for config, schedule in zip(self.lr_scheduler_configs, schedules):
            config.scheduler = self._run.scheduler(schedule)

    def batch_to_device(self, batch: Any, device: Optional[Any] = None, dataloader_idx: int = 0) -> Any:
        """As ever; the run counts the batches of training."""
        if self.lightning_module is not None and self.lightning_module.trainer.training:
            self._run.start()
            self._run._taken(batch)
        return super().batch_to_device(batch, device, dataloader_idx)

    def optimizer_step(self, *arguments: Any, **named: Any) -> Any:
        """As ever; the end of the run ends the training."""
        result = super().optimizer_step(*arguments, **named)
        if self._run.finished:
            self.lightning_module.trainer.should_stop = True
        return result

    @property
    def is_global_zero(self) -> bool:
        """Whether this peer logs and saves: the first of the run."""
        return self._run.is_first if self._run.started else True

    def teardown(self) -> None:
        """Leaves the run."""
        super().teardown()
        self._run.close()
