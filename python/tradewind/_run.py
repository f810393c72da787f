# SPDX-License-Identifier: Apache-2.0
"""A run, as the training loop of one peer sees it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from . import _ends
from . import _fork
from ._between import Between
from .loop.driver import Driver
from .engine.peer import Calls, Engine, ModelShape, Peer
from .errors import EngineError, MisuseError, TradewindError
from .loop.node import Node, NodeDriver, NodeVectors
from .loop.loop import Closure, Loop, Loss, known_samples
from .engine.settings import Settings
from ._shard import Samples
from .model.trained import Trained

# How the engine's word begins for a run that needs no more peers.
_OVER = ("the run is complete", "the run is over")

OpenEngine = Callable[[Sequence[Tuple[str, str]], ModelShape, Calls], Engine]


class Run(Between):
    """One peer of a run. Thread: that of the first start, batch or step(); leave() and properties: any."""

    def __init__(
        self,
        settings: Settings,
        open_engine: Optional[OpenEngine] = None,
        node: Optional[Node] = None,
    ) -> None:
        self._joined_at = _ends.become_active(self)
        self._settings = settings
        self._open_engine: OpenEngine = open_engine or Peer
        self._node = node
        self._trained: Optional[Trained] = None
        super().__init__()
        self._batch_size: Optional[int] = None
        self._data_facts: List[str] = []
        self._listeners: List[Callable[[Dict[str, Any]], None]] = []
        self._joined_in = os.getpid()
        self._thread: Optional[int] = None
        if settings.threads:
            torch.set_num_threads(settings.threads)

    # The life of the run.

    def start(self) -> None:
        """Joins or starts the run, and waits until it wants a gradient. Then the model has the run's
        parameters.
        """
        self._start(self._batch_size)

    def _start(self, grain: Optional[int]) -> None:
        """grain: samples of the first step(), if known."""
        self._guard()
        if self._loop is not None or self._closed:
            return
        trained = self._model()
        shape = trained.prepare(self._settings.get("training.codec"), self._data_facts)
        _fork.watch()
        self._thread = threading.get_ident()
        driver = self._open(shape, trained, grain)
        self._loop = Loop(driver, trained, self._batch_size, self._tick)
        try:
            initial, alive = trained.initial()
            driver.start(initial)
            del alive
            trained.bind(driver.engine)
            _ends.heed_signals(self)
            self._loop.wait()
            self._refuse_complete()
            _ends.joined(None)
        except BaseException as error:
            self.close()
            _ends.joined(f"{type(error).__name__}: {error}")
            raise

    def _refuse_complete(self) -> None:
        """EngineError: the run was over before this peer had anything of it, so the model is not the run's."""
        if self.finished and not self._model().loads:
            ended = str(self.view.get("ended") or "")
            if ended.startswith(_OVER):
                folder = self._settings.get("checkpoint.folder")
                anew = f"give another checkpoint.folder than {folder}" if folder else "start it once with anew=True"
                raise EngineError(f"{ended}. To train anew, {anew}.")

    def leave(self, at_once: bool = False) -> None:
        """This peer hands in what is done and leaves after the round; the loop ends as at the run's end.
        Any thread.
        """
        if self._loop is not None and not self._closed:
            self._loop.driver.engine.leave(at_once)

    def close(self) -> None:
        """Says goodbye (3 s at most). The model stays usable; another run may be joined. A second call does
        nothing.
        """
        if self._closed or os.getpid() != self._joined_in:
            return
        self._closed = True
        _ends.released(self)
        if self._loop is not None:
            driver = self._loop.driver
            driver.finished = True
            try:
                self._last_view = self._loop.counted_on(driver.engine.view())
            finally:
                driver.engine.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Leaves after the round, on an exception at once; then closes."""
        try:
            if self._loop is None or self.finished:
                return
            if kind is None:
                self.leave()
                self._loop.driver.finish()
            else:
                with suppress(TradewindError):  # what the loop raised is what counts
                    self.leave(at_once=True)
        finally:
            self.close()

    # What the loop asks.

    def on_event(self, listener: Callable[[Dict[str, Any]], None]) -> None:
        """Calls listener(event) inside step() for each event of the log (docs/events.md) from now on."""
        self._listeners.append(listener)


    def _heed(self, number: int) -> None:
        """A signal came. Any thread."""
        if self._loop is not None and not self._closed:
            self._loop.driver.engine.signal(number)

    # For Optimizer, Shard and Batches.

    def _step(self, closure: Optional[Closure], samples: Optional[int], loss: Optional[Loss]) -> Any:
        self._guard()
        if self.finished:
            return None if closure is not None else False
        if self._loop is None:
            if closure is None:
                samples = known_samples(samples, 0, self._batch_size)
            self._start(samples)
            assert self._loop is not None
            if closure is None and self._model().replaced:
                return self._loop.discard()
        assert self._loop is not None
        return self._loop.step(closure, samples, loss)

    def _zeroed(self) -> None:
        if self._loop is not None and not self.finished:
            self._guard()
            self._loop.zeroed()

    def _next_indices(self, samples: Samples, batch_size: int) -> List[int]:
        self._start(batch_size)
        self._guard()
        loop, order = None if self.finished else self._loop, samples.order
        return [] if loop is None else loop.next_indices(order.engine_size, batch_size, order.block)

    def _ahead(self, samples: Samples) -> List[int]:
        loop, order = None if self.finished else self._loop, samples.order
        return [] if loop is None else loop.ahead(order.engine_size, samples.prefetch, order.block)

    def _part_taken(self, taken: int, filled: int) -> None:
        if self._loop is not None and not self.finished:
            self._loop.part_taken(taken, filled)

    def _taken(self, batch: Any, samples: Optional[int] = None) -> None:
        self._guard()
        if self._loop is not None and not self.finished:
            self._loop.taken(batch, samples)

    def _advise(self, text: str) -> None:
        """Said when the run has several peers."""
        if self._loop is not None:
            self._loop.advice.of_several(text)

    @property
    def _ranks(self) -> int:
        """Processes that are one peer."""
        ranks: int = 1 if self._node is None else self._node.size
        return ranks

    @property
    def _peer_number(self) -> Optional[int]:
        """Number of this peer, after the start; None: in a node not all ranks know it."""
        return None if self._node is not None else int(self.view.get("id") or 0)

    # Within.

    def _open(self, shape: ModelShape, trained: Trained, grain: Optional[int]) -> Driver:
        node, pairs = self._node, list(self._settings.pairs)
        if trained.begun.round:
            pairs.append(("begun", str(trained.begun.round)))
        pairs.append(("grain", str((grain or 0) * (node.size if node is not None else 1))))
        if node is None:
            return Driver(self._open_engine(pairs, shape, trained), self._tick, trained.wanted)
        if node.rank == 0:
            engine = self._open_engine(pairs, shape, trained)
        else:
            engine = NodeVectors(shape, trained.engine_buffers)
        return NodeDriver(engine, self._tick, node, trained)

    def _model(self) -> Trained:
        if self._trained is None:
            raise MisuseError("nothing to train: call run.optimizer(model, optimizer) first.")
        return self._trained

    def _guard(self) -> None:
        """MisuseError: called in a forked child, or by another thread than the one that started the run."""
        _fork.refuse_child(self._joined_in)
        if self._thread is not None and threading.get_ident() != self._thread:
            raise MisuseError(
                "the run was started by another thread: call step() and take batches on that one alone"
                " (leave() may be called by any)."
            )

    def _refuse_started(self, call: str) -> None:
        if self._loop is not None:
            raise MisuseError(f"{call} after the start: it has to come before the first batch or step().")

    def _tick(self) -> None:
        assert self._loop is not None
        engine = self._loop.driver.engine
        if self._listeners:
            for event in engine.events():
                for listener in self._listeners:
                    listener(event)
