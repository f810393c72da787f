# SPDX-License-Identifier: Apache-2.0
"""What a loop may ask of its run between two steps, beside batches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from .errors import MisuseError, UnsupportedError
from ._trains import Trains


class Between(Trains):
    """The part of Run for pauses, and for batches that are given up. Thread: the run's."""

    def __init__(self) -> None:
        super().__init__()
        self._pauses = 0  # that are open, one inside another

    @contextmanager
    def paused(self, why: str) -> Iterator[None]:
        """The loop does something else (evaluates, saves): others do this peer's part meanwhile.

        Inside another pause it changes nothing.
        """
        run = self._whole()
        run._guard()
        if self._loop is None or self.finished:
            yield
            return
        driver = self._loop.driver
        if not self._pauses:
            self._loop.give_back_unused()
            driver.engine.busy(why)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and not self.finished:
                driver.engine.busy(None)
                driver.order = None

    def barrier(self) -> None:
        """Waits until all live peers of the run have called it as often; between steps.

        A peer that leaves or dies is not waited for; run.waiting names those that are. Peers that still train
        do this peer's part meanwhile, so the parameters may change. Returns at once when the run is over.
        """
        run = self._whole()
        run._guard()
        if run._node is not None:
            raise UnsupportedError("run.barrier() in a group: use torch.distributed.barrier() there.")
        if self._loop is None:
            raise MisuseError("run.barrier() before the start: call run.start() first.")
        if not self.finished:
            self._loop.barrier()

    def skip(self) -> None:
        """Gives up the batch in hand: of a shard its samples count with a gradient of zero; else they do
        not count.
        """
        run = self._whole()
        run._guard()
        if self._loop is not None and not self.finished:
            self._loop.skip()
