# SPDX-License-Identifier: Apache-2.0
"""The life of this process as a peer: joined, started, over, closed."""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from ..data.order import span_seed
from ..data.samples import Samples
from ..engine.peer import Calls, DataOrder, Engine, ModelShape, Peer
from ..engine.settings import Settings
from ..errors import MisuseError, UnsupportedError, warn
from ..model.advice import explained
from ..model.begun import Begun
from ..model.optimizers import ONE_OPTIMIZER
from ..model.trained import Trained
from . import process
from .counts import known_samples
from .driver import Driver, Node, NodeDriver, NodeVectors
from .loop import Closure, Loop, Loss, StepsAfterEnd

# A program that ends in the middle of the run waits so long for the end of the round.
_PART_S = 1.0

OpenEngine = Callable[[Sequence[Tuple[str, str]], ModelShape, Calls], Engine]


class Life:
    """One peer of a run. Thread: that of the first start, batch or step(); leave(), close() and what it shows: any."""

    def __init__(
        self, settings: Settings, open_engine: Optional[OpenEngine] = None, node: Optional[Node] = None
    ) -> None:
        """node: the processes that are one peer together; None: this one is alone."""
        self.joined_at = process.become_active(self)
        self.joined_in = os.getpid()
        self.settings = settings
        self.node = node
        self.batch_size: Optional[int] = None  # samples of a step where nothing else tells
        self.listeners: List[Callable[[Dict[str, Any]], None]] = []
        self.loop: Optional[Loop] = None  # after the start
        self.loss: Optional[Loss] = None  # of the next step(), where its caller cannot say it
        self._open_engine: OpenEngine = open_engine or Peer
        self._trained: Optional[Trained] = None
        self._no_numbers: Set[str] = set()  # evaluations that were not finite once
        self._data_facts: List[str] = []
        self._drawn: Optional[DataOrder] = None  # data set of the shard's last batch
        self._thread: Optional[int] = None
        self._closed = False
        self._last_view: Dict[str, Any] = {}
        self._pauses = 0  # that are open, one inside another
        self._after_end = StepsAfterEnd()
        if settings.threads:
            torch.set_num_threads(settings.threads)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise MisuseError(
            "a run cannot be copied or pickled, nor what holds it: keep it out of data sets and modules that go to"
            " other processes; run.state_dict() can be saved."
        )

    # What it shows.

    @property
    def started(self) -> bool:
        """Whether the run was joined."""
        return self.loop is not None

    @property
    def finished(self) -> bool:
        """Whether the run is over, or this peer has left or closed it."""
        return self._closed or (self.loop is not None and self.loop.finished)

    @property
    def view(self) -> Dict[str, Any]:
        """The engine's view; the last one, after close()."""
        if self.loop is None or self._closed:
            return dict(self._last_view)
        return self.loop.counted_on(self.loop.driver.engine.view())

    @property
    def round(self) -> int:
        """The round that the model's parameters are of."""
        return self.loop.round if self.loop is not None else self.begun.round

    @property
    def begun(self) -> Begun:
        """What was done in the run before, if this one goes on from it."""
        return Begun(0, 0) if self._trained is None else self._trained.begun

    @property
    def is_first(self) -> bool:
        """Whether this peer is the first of the run's members."""
        return bool(self.view.get("first", False))

    @property
    def ranks(self) -> int:
        """Processes that are one peer."""
        ranks: int = 1 if self.node is None else self.node.size
        return ranks

    @property
    def peer_number(self) -> Optional[int]:
        """Number of this peer, after the start; None: in a node not all ranks know it."""
        return None if self.node is not None else int(self.view.get("id") or 0)

    @property
    def seed(self) -> int:
        """That of the run."""
        return int(self.settings.values["training.seed"])

    @property
    def seed_in_hand(self) -> int:
        """That of the samples in hand, whoever computes them."""
        assert self.loop is not None and self.loop.driver.order is not None
        return span_seed(self.seed, self.trained.begun.samples + self.loop.driver.order.first)

    # Before the start.

    @property
    def trained(self) -> Trained:
        """The one model of the run, and its optimizer. MisuseError: there is none yet."""
        if self._trained is None:
            raise MisuseError("nothing to train: call run.optimizer(model, optimizer) first.")
        return self._trained

    @trained.setter
    def trained(self, trained: Trained) -> None:
        self._trained = trained

    def refuse_second(self) -> None:
        """UnsupportedError: there is an optimizer already."""
        if self._trained is not None:
            raise UnsupportedError(ONE_OPTIMIZER)
        self.refuse_started("run.optimizer()")

    def uses(self, samples: Samples) -> None:
        """The data is part of what peers compare, as far as it can name itself. The engine warns of another size."""
        new = [fact for fact in samples.facts if fact not in self._data_facts]
        drawn = self._drawn
        is_another = drawn is not None and drawn[:2] != samples.in_run[:2]
        if new and self.started and not is_another:
            warn(
                f"run.shard() after the start: peers did not compare this data ({', '.join(new)}). Call it before the"
                " first batch, step() or run.start()."
            )
        self._data_facts.extend(new)

    def refuse_started(self, call: str) -> None:
        """MisuseError: too late for it."""
        if self.loop is not None:
            raise MisuseError(f"{call} after the start: it has to come before the first batch or step().")

    # The start and the end.

    def start(self, grain: Optional[int]) -> None:
        """Joins or starts the run, and waits until it wants a gradient. grain: samples of the first step(), if known."""
        self.guard()
        if self.loop is not None or self._closed:
            return
        trained = self.trained
        shape = trained.prepare(self.settings.values["training.codec"], self._data_facts)
        process.watch_forks()
        self._thread = threading.get_ident()
        driver = self._open(shape, trained, grain)
        self.loop = Loop(driver, trained, self.batch_size, self._tick)
        self.loop.advice.is_target_chosen = self.settings.values["training.target_batch_size"] == "auto"
        try:
            initial, alive = trained.initial()
            driver.start(initial)
            del alive
            trained.bind(driver.engine)
            process.heed_signals(self, driver.engine)
            self.loop.wait()
            process.joined(None)
        except BaseException as error:
            self.close(failed=True)
            process.joined(f"{type(error).__name__}: {error}")
            told = explained(error)
            raise told from error.__cause__ if told is error else None

    def _open(self, shape: ModelShape, trained: Trained, grain: Optional[int]) -> Driver:
        node, pairs = self.node, list(self.settings.pairs)
        if trained.begun.round:
            pairs.append(("begun", str(trained.begun.round)))
        pairs.append(("grain", str((grain or 0) * self.ranks)))
        pairs.append(("threads", str(torch.get_num_threads())))
        pairs.extend(trained.gpu_facts())
        if node is None:
            return Driver(self._open_engine(pairs, shape, trained), self._tick, trained.wanted)
        if node.rank == 0:
            engine = self._open_engine(pairs, shape, trained)
        else:
            engine = NodeVectors(shape, trained.engine_buffers)
        return NodeDriver(engine, self._tick, node, trained)

    def leave(self, at_once: bool = False, wait: bool = False) -> None:
        """Hands in what is done and leaves after the round; wait: it has left then. MisuseError: it has not joined."""
        if self._closed:
            return
        if self.loop is None:
            raise MisuseError("run.leave() before the start: nothing was joined yet; run.close() ends it.")
        if wait:
            self.guard()
        process.hold(self)
        self.loop.driver.leave(at_once)
        if wait:
            self.loop.finish()

    def end_run(self) -> None:
        """The run ends for all its peers. MisuseError: it has not started."""
        if self._closed:
            return
        if self.loop is None:
            raise MisuseError("run.end() before the start: nothing was joined yet; run.close() ends it.")
        self.loop.driver.end_run()

    def finish(self) -> None:
        """leave(wait=True), unless there is nothing to leave."""
        if self.loop is not None and not self.finished:
            self.leave(wait=True)

    def close(self, failed: bool = False) -> None:
        """Says goodbye (Driver.part, Engine.close). A second call does nothing, nor does one in a fork. failed: by an
        exception.
        """
        if self._closed or os.getpid() != self.joined_in:
            return
        self._closed = True
        try:
            if self.loop is None:
                self._last_view = {"ending": "failed"} if failed else self._last_view
            else:
                self._end(self.loop, failed)
        finally:
            process.released(self)

    def _end(self, loop: Loop, failed: bool) -> None:
        driver = loop.driver
        before_end = not driver.finished
        try:
            driver.part(_PART_S if before_end else 0.0)
        except Exception as error:
            if not failed:  # else the program's own error is what counts
                warn(f"run.close(): {type(error).__name__}: {error}")
        finally:  # Ctrl-C, too, which ends the wait
            driver.finished = True
            try:
                self._last_view = loop.counted_on(driver.engine.view())
                if before_end and (self._last_view.get("ending") or "") in ("", "left"):
                    self._last_view["ending"] = "failed" if failed else "left"
                self.trained.settle()
            finally:
                driver.engine.close()

    def signal(self, number: int) -> None:
        """A signal came. Any thread."""
        if self.loop is not None and not self._closed:
            self.loop.driver.engine.signal(number)

    def guard(self) -> None:
        """MisuseError: called in a forked child, or by another thread than the one that started the run."""
        if os.getpid() != self.joined_in:
            raise MisuseError(
                f"the run was joined by process {self.joined_in}, this is its fork {os.getpid()}: use the run in the"
                " process that joined it alone."
            )
        if self._thread is not None and threading.get_ident() != self._thread:
            raise MisuseError(
                "the run was started by another thread: call step() and take batches on that one alone"
                " (leave() may be called by any)."
            )

    def _guard_work(self, call: str) -> None:
        """guard(); MisuseError: a pause is open, in which others do this peer's part, so it would wait for ever."""
        self.guard()
        if self._pauses and not self.finished:
            raise MisuseError(f"{call} inside run.paused(): leave it first.")

    def _tick(self) -> None:
        assert self.loop is not None
        if self.listeners:
            for event in self.loop.driver.engine.events():
                for listener in self.listeners:
                    listener(event)

    # Steps and batches. After the end they train nothing.

    @property
    def _going(self) -> Optional[Loop]:
        """The loop of a run that is under way."""
        return None if self.finished else self.loop

    def step(self, closure: Optional[Closure], samples: Optional[int], loss: Optional[Loss]) -> Any:
        """Optimizer.step(), the first of which starts the run."""
        self._guard_work("step()")
        loss, self.loss = self.loss if loss is None else loss, None
        if self.finished:
            found = self._after_end.step(closure)
            if self.loop is not None and not self._closed:
                self.trained.undo_forward()
            return found
        if self.loop is None:
            if closure is None:
                samples = known_samples(samples, 0, self.batch_size)
            self.start(samples)
            assert self.loop is not None
            if closure is None and self.trained.replaced:
                return self.loop.discard()
        return self.loop.step(closure, samples, loss)

    def zeroed(self) -> None:
        """zero_grad() is about to come."""
        if self._going is not None:
            self.guard()
            self._going.zeroed()

    def offered(self) -> None:
        """A GradScaler has the gradient (Loop.offered)."""
        if self._going is not None:
            self._going.offered()

    def next_indices(self, samples: Samples, batch_size: int) -> List[int]:
        """Indices of the next batch, for samples.parts(); none: the run is over."""
        self._guard_work("the next batch of run.shard()")
        self.start(batch_size)
        samples.begun = self.trained.begun.samples
        self._drawn = samples.in_run
        return [] if self._going is None else self._going.next_indices(samples.in_run, batch_size)

    def ahead(self, samples: Samples) -> List[int]:
        """Indices of those that come after it, as many as samples reads ahead."""
        return [] if self._going is None else self._going.ahead(samples.in_run, samples.prefetch)

    @contextmanager
    def fetching(self) -> Iterator[None]:
        """The program waits for a batch meanwhile; the event log tells how long (`data_s`)."""
        began = time.monotonic()
        yield
        if self._going is not None and not self.finished:
            self._going.driver.engine.waited(time.monotonic() - began)

    def part_taken(self, taken: int, filled: int) -> None:
        """The program gets a part of this batch (Loop.part_taken)."""
        if self._going is not None:
            self._going.part_taken(taken, filled)

    def look(self, batch: Any, made_of: int) -> None:
        """A collate_fn made this batch of so many samples."""
        if self._going is not None:
            self._going.look(batch, made_of)

    def taken(self, batch: Any, samples: Union[int, str, None] = None) -> None:
        """The program gets a batch of its own loader; samples: of it, if known, or why they are not."""
        self._guard_work("the next batch of run.batches()")
        if self._going is not None:
            self._going.taken(batch, samples)

    def skip(self) -> None:
        """The program gives up the batch in hand."""
        self._guard_work("run.skip()")
        if self._going is not None:
            self._going.skip()

    def advise(self, text: str) -> None:
        """Said when the run has several peers."""
        if self.loop is not None:
            self.loop.advice.of_several(text)

    @contextmanager
    def paused(self, why: str) -> Iterator[None]:
        """The program does something else, with the run's parameters in the model. Inside another pause it changes
        nothing.
        """
        self.guard()
        if not isinstance(why, str):
            raise MisuseError(f"run.paused({why!r}): expected a text that says why.")
        loop = self._going
        if loop is None:
            yield
            return
        if not self._pauses:
            loop.give_back_unused()
            loop.driver.engine.busy(why)
        self._pauses += 1
        try:
            with self.trained.committed():
                yield
        finally:
            self._pauses -= 1
            if not self._pauses and not self.finished:
                loop.driver.engine.busy(None)
                loop.driver.order = None

    def evaluated(self, values: Mapping[str, Any]) -> None:
        """What was measured of the run's parameters, for log and page."""
        if self.loop is None or self._closed:
            raise MisuseError("run.evaluated() goes between run.start(), or the first step, and run.close().")
        for name, value in values.items():
            if not isinstance(name, str):
                raise MisuseError(f"run.evaluated({{{name!r}: {value!r}}}): expected a text as the name.")
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise MisuseError(f"run.evaluated({name}={value!r}): expected a number.") from None
            if math.isfinite(number):
                # The round as log and page count it, which know nothing of the run before.
                self.loop.driver.engine.evaluated(self.trained.round, name, number)
            elif name not in self._no_numbers:
                self._no_numbers.add(name)
                warn(f"the evaluation {name!r} is {number}: neither log nor page can show it.")

    def barrier(self) -> None:
        """Waits for all live peers."""
        self._guard_work("run.barrier()")
        if self.node is not None:
            raise UnsupportedError("run.barrier() in a group: use torch.distributed.barrier() there.")
        if self.loop is None:
            raise MisuseError("run.barrier() before the start: call run.start() first.")
        if not self.finished:
            self.loop.barrier()
