# SPDX-License-Identifier: Apache-2.0
"""The engine from order to order. Waits are cut into slices: Ctrl-C is a KeyboardInterrupt at once."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Sequence, Tuple

from ..engine import abi
from ..engine.peer import Engine, HostTensor, Order, Work

SLICE_MS = 100
# Orders are as large as the largest of so many steps: a short batch at an epoch's end would shrink the next,
# and what a batch has beyond its order is lost, while the rest of a large order stays with this peer.
_REMEMBERED_STEPS = 16

# Gradients for the engine, and what has to live until it has read them.
Handed = Tuple[List[HostTensor], List[Any]]


class Verdict(NamedTuple):
    """Fate of a gradient: whether it was added, and as that of how many samples out of how many."""

    added: bool
    counted: int
    had: int


class Driver:
    """An order is in hand after wait(), or the run is over. Thread: the run's."""

    def __init__(self, engine: Engine, tick: Callable[[], None], wanted: Callable[[], str]) -> None:
        """tick: called after each slice of a wait. wanted: settings for the update (Work.settings)."""
        self.engine = engine
        self.order: Optional[Order] = None
        self.finished = False
        self.waited_s = 0.0
        self._tick = tick
        self._wanted = wanted
        self._sizes: Deque[int] = deque(maxlen=_REMEMBERED_STEPS)

    def start(self, initial: Sequence[HostTensor]) -> None:
        """Listens, and joins or starts the run."""
        self.engine.start(initial)

    def wait(self) -> None:
        """Does the engine's jobs until an order is in hand, or the run is over."""
        began = time.monotonic()
        self.order = None
        while self.order is None and not self.finished:
            status, self.order = self.engine.next(SLICE_MS)
            self.finished = status == abi.TW_FINISHED
            self._tick()
        self.waited_s += time.monotonic() - began

    def samples(self, dataset_size: int, count: int, block: int = 1) -> List[int]:
        """Indices of the first samples of the order in hand."""
        return self.engine.samples(dataset_size, count, block)

    def ahead(self, dataset_size: int, taken: int, most: int, block: int = 1) -> List[int]:
        """Indices that will come after the first `taken` samples of the order in hand, at most `most`."""
        assert self.order is not None
        known = min(self.order.samples, taken + most)
        rest = self.engine.samples(dataset_size, known, block)[taken:] if known > taken else []
        if len(rest) < most:
            rest += self.engine.ahead(dataset_size, most - len(rest), block)
        return rest

    def done(
        self, gradients: Callable[[], Handed], had: int, loss: float, current: Callable[[], bool]
    ) -> Verdict:
        """Hands in the mean gradient of `had` samples; loss: their mean.

        An order smaller than that is followed by others of its round, as long as the round has room and
        current() says that the parameters are the same. Then the next order is in hand, or none.
        """
        self._sizes.append(had)
        handed, alive = gradients()
        added, counted, wanted = False, 0, self._wanted()
        while self._takes(current):
            assert self.order is not None
            some = min(had - counted, self.order.samples)
            work = Work(float(some), some, max(self._sizes), loss * some, wanted)
            if not self.engine.done(handed, work):
                break
            added, counted = True, counted + some
            if counted == had:
                break
            Driver.wait(self)
        del alive
        return Verdict(added, counted, had)

    def _takes(self, current: Callable[[], bool]) -> bool:
        return self.order is not None and current()

    def expect(self, samples: int) -> None:
        """The loop takes this many samples at once, even if the next gradient has fewer."""
        self._sizes.append(samples)

    @property
    def at_once(self) -> int:
        """Samples of a step; 0: there was none."""
        return max(self._sizes, default=0)

    def barrier(self) -> None:
        """Waits until all live peers have come here, or the run is over. No order is in hand then."""
        began, status = time.monotonic(), abi.TW_TIMEOUT
        while status == abi.TW_TIMEOUT:
            status = self.engine.barrier(SLICE_MS)
            self._tick()
        self.order, self.finished = None, status == abi.TW_FINISHED
        self.waited_s += time.monotonic() - began

    def drop(self) -> None:
        """Gives the order in hand back."""
        self.engine.drop()

    def finish(self) -> None:
        """Waits for the end after leave(); an order that still comes is given back."""
        while not self.finished:
            self.wait()
            if self.order is not None:
                self.engine.drop()
