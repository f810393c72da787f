# SPDX-License-Identifier: Apache-2.0
"""The engine from order to order: of a process alone, or of the processes of one node as one peer. Waits are cut into slices:
Ctrl-C is a KeyboardInterrupt at once.

In a node DistributedDataParallel averages, and rank 0 is the peer. Each step() costs one broadcast of a few numbers, each
round one of the parameters. Ranks other than 0 have no engine: NodeVectors replaces it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from ..engine import abi
from ..engine.peer import DataOrder, Engine, HostTensor, ModelShape, Order, Work
from ..errors import MisuseError, UnsupportedError
from ..model.trained import Trained

SLICE_MS = 100
# Orders are as large as the largest of so many steps: a short batch at an epoch's end would shrink the next,
# and what a batch has beyond its order is lost, while the rest of a large order stays with this peer.
_REMEMBERED_STEPS = 16

_POLL_S = 0.001
_NO_SHARD = (
    "run.shard() in a group: which rank reads which sample is not decided; use run.batches(loader) with a "
    "DistributedSampler."
)


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
        self._leaves = False
        self._ends = False
        self._thread = threading.get_ident()
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
            self._wait_a_slice()
        self.waited_s += time.monotonic() - began

    def _wait_a_slice(self) -> None:
        status, self.order = self.engine.next(SLICE_MS)
        self.finished = status == abi.TW_FINISHED
        self._tick()

    def samples(self, data: DataOrder, count: int) -> List[int]:
        """Indices of the first samples of the order in hand."""
        return self.engine.samples(data, count)

    def ahead(self, data: DataOrder, taken: int, most: int) -> List[int]:
        """Indices that will come after the first `taken` samples of the order in hand, at most `most`."""
        assert self.order is not None
        known = min(self.order.samples, taken + most)
        rest = self.engine.samples(data, known)[taken:] if known > taken else []
        if len(rest) < most:
            rest += self.engine.ahead(data, most - len(rest))
        return rest

    def done(self, trained: Trained, had: int, loss: float, current: Callable[[], bool]) -> Verdict:
        """Hands in the mean gradient of `had` samples; loss: their mean.

        An order smaller than that, or taken back meanwhile, is followed by others, as long as current() says that the
        gradient is what they want. Then the next order is in hand, or none.
        """
        self._sizes.append(had)
        handed, alive = trained.gradients(had)
        added, counted, wanted = False, 0, self._wanted()
        while self._takes(current):
            assert self.order is not None
            some = min(had - counted, self.order.samples)
            work = Work(float(some), some, max(self._sizes), loss * some, wanted)
            if self.engine.done(handed, work):
                trained.added(some)
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

    def leave(self, at_once: bool) -> None:
        """Hands in what is done and leaves after the round, during later waits. Any thread."""
        self._leaves = True
        self.engine.leave(at_once)

    def end_run(self) -> None:
        """The run ends for all its peers with the round under way, or the next one. Any thread."""
        self._ends = True
        self.engine.end_run()

    def finish(self) -> None:
        """Waits for the end after leave(); an order that still comes is given back."""
        while not self.finished:
            self.wait()
            if self.order is not None:
                self.engine.drop()

    def finish_leave(self, limit_s: float) -> bool:
        """The program is over: finish(), at most so long, if leave() was called. Whether this peer has left."""
        if self._leaves:
            self._drain(limit_s)
        return self.finished or not self._leaves

    def _drain(self, limit_s: float) -> None:
        """Waits for the end of this peer's part, at most so long; orders are given back. Not on another thread."""
        until, is_mine = time.monotonic() + limit_s, threading.get_ident() == self._thread
        while is_mine and not self.finished and time.monotonic() < until:
            self._wait_a_slice()
            if self.order is not None:
                self.engine.drop()

    def part(self, limit_s: float) -> None:
        """close() is about to come. Others get at once what this peer has not done, and hear what it has done, if the
        round ends within limit_s. The last peer of the run saves what no checkpoint has.
        """
        self.engine.part(at_once=False)
        try:
            self._drain(limit_s)
        finally:
            self.engine.part(at_once=True)


class Node:
    """A process group as a node. Every rank has to make the same calls in the same order."""

    def __init__(self, group: Any) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise MisuseError(
                "join(group=...): torch.distributed is not initialised; call init_process_group() first."
            )
        self._group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self._first = (
            dist.get_global_rank(group, 0) if hasattr(dist, "get_global_rank") and _is_part(group) else 0
        )
        backend = str(dist.get_backend(group))
        self._device = torch.device("cuda" if "nccl" in backend else "cpu")

    def _finish(self, work: Any) -> None:
        """Waits for a collective in slices, so that Ctrl-C is a KeyboardInterrupt at once."""
        while not work.is_completed():
            time.sleep(_POLL_S)
        work.wait()

    def broadcast(self, values: torch.Tensor) -> None:
        """values of rank 0 to all, in place."""
        there = values.to(self._device)
        self._finish(dist.broadcast(there, self._first, group=self._group, async_op=True))
        if there.data_ptr() != values.data_ptr():
            values.copy_(there)

    def sums(self, *values: int) -> List[int]:
        """Over all ranks."""
        there = torch.tensor(values, dtype=torch.int64, device=self._device)
        self._finish(dist.all_reduce(there, group=self._group, async_op=True))
        found: List[int] = there.tolist()
        return found


def _is_part(group: Any) -> bool:
    return group is not None and group is not getattr(dist.group, "WORLD", None)


class NodeVectors:
    """Replaces the engine on a rank other than 0: the vectors, and the last news of rank 0."""

    def __init__(self, shape: ModelShape, engine_buffers: int) -> None:
        total = sum(shape.tensor_sizes)
        sizes = [total] + [0] * engine_buffers + list(shape.state_sizes)
        self._arrays = [(ctypes.c_float * size)() for size in sizes]
        self.seen: Dict[str, Any] = {}

    def start(self, initial: Sequence[HostTensor]) -> None:
        """Rank 0 does."""

    def next(self, limit_ms: int) -> Tuple[int, Optional[Order]]:
        """Rank 0 does."""
        raise MisuseError("only rank 0 of the group has an engine.")

    def samples(self, data: DataOrder, count: int) -> List[int]:
        """Not in a group."""
        raise UnsupportedError(_NO_SHARD)

    def ahead(self, data: DataOrder, most: int) -> List[int]:
        """Not in a group."""
        return []

    def fragment(self, round: int) -> Tuple[int, int]:
        """Not in a group."""
        return 0, len(self._arrays[0])

    def done(self, gradients: Optional[Sequence[HostTensor]], work: Work) -> bool:
        """Rank 0 does."""
        return True

    def waited(self, seconds: float) -> None:
        """Rank 0 says how long it waited for data itself."""

    def evaluated(self, round: int, name: str, value: float) -> None:
        """Rank 0 says what it measured itself."""

    def drop(self) -> None:
        """Rank 0 does."""

    def busy(self, why: Optional[str]) -> None:
        """Rank 0 does."""

    def barrier(self, limit_ms: int) -> int:
        """Not in a group."""
        raise UnsupportedError("a group has no barrier of the run.")

    def vector(self, which: int) -> Optional[ctypes.Array[ctypes.c_float]]:
        """As an engine's."""
        return self._arrays[which] if which < len(self._arrays) else None

    def view(self) -> Dict[str, Any]:
        """round, samples, peers, ended: the last news of rank 0."""
        return dict(self.seen)

    def events(self) -> List[Dict[str, Any]]:
        """Rank 0 has them."""
        return []

    def leave(self, at_once: bool) -> None:
        """Rank 0 does."""

    def end_run(self) -> None:
        """Rank 0 does."""

    def part(self, at_once: bool) -> None:
        """Rank 0 does."""

    def signal(self, number: int) -> None:
        """Rank 0 does."""

    def heed(self, number: int) -> None:
        """Rank 0 does."""

    def close(self) -> None:
        """Nothing is open."""


def applied_samples(view: Dict[str, Any], round: int) -> int:
    """Samples in the rounds up to this one, which the model has: later ones may be decided already."""
    counts = [samples for of, samples in view.get("totals", ()) if of <= round]
    return int((counts[-1] if counts else view["samples"]) if round else 0)


class _News(NamedTuple):
    """News of rank 0 after each wait, as whole numbers."""

    finished: int
    order_round: int
    order_samples: int
    order_first: int
    updates: int
    loads: int
    round: int
    samples: int
    applied: int
    peers: int
    ended: int  # bytes of the text that follows: why the run is over


class NodeDriver(Driver):
    """A Driver on every rank of a node; only that of rank 0 has an engine."""

    def __init__(self, engine: Engine, tick: Callable[[], None], node: Node, trained: Trained) -> None:
        super().__init__(engine, tick, trained.wanted)
        self._node = node
        self._trained = trained
        self._told = (0, 0)
        self._at_once = False

    def wait(self) -> None:
        """As Driver.wait(), on all ranks at once; all have the parameters of rank 0 then."""
        news: Optional[_News] = None
        ended = b""
        if self._node.rank == 0:
            super().wait()
            view = self.engine.view()
            ended = str(view.get("ended") or "").encode()
            news = self._news(view, len(ended))
        told = torch.zeros(len(_News._fields), dtype=torch.int64) if news is None else torch.tensor(news)
        self._node.broadcast(told)
        news = _News(*told.tolist())
        self._follow(news, self._text(ended, news.ended))

    def _text(self, text: bytes, size: int) -> str:
        """That of rank 0, of so many bytes."""
        if not size:
            return ""
        told = torch.tensor(list(text or bytes(size)), dtype=torch.uint8)
        self._node.broadcast(told)
        return bytes(told.tolist()).decode()

    def _news(self, view: Dict[str, Any], ended: int) -> _News:
        order = self.order or Order(0, 0, 0)
        view = {"samples": 0, **view}
        view["applied"] = applied_samples(view, self._trained.round)
        numbers = [*(int(view.get(key) or 0) for key in ("round", "samples", "applied", "peers")), ended]
        return _News(int(self.finished), *order, self._trained.updates, self._trained.loads, *numbers)

    def _follow(self, news: _News, ended: str) -> None:
        changed, loaded = self._told != (news.updates, news.loads), self._told[1] != news.loads
        self._told = (news.updates, news.loads)
        if changed:
            if self._node.rank == 0:
                self._trained.share()
            for vector in self._trained.shared(loaded):
                self._node.broadcast(vector)
        if self._node.rank == 0:
            return
        if changed:
            self._trained.follow(news.updates, news.loads, news.round)
        self.finished = bool(news.finished)
        order = Order(news.order_round, news.order_samples, news.order_first)
        self.order = order if order.samples else None
        assert isinstance(self.engine, NodeVectors)
        self.engine.seen = {
            "round": news.round,
            "samples": news.samples,
            "applied": news.applied,
            "peers": news.peers,
            "first": False,
            "ended": ended,
        }
        self._tick()

    def samples(self, data: DataOrder, count: int) -> List[int]:
        """Not in a group."""
        raise UnsupportedError(_NO_SHARD)

    def leave(self, at_once: bool) -> None:
        """The call of one rank counts for all at their next step()."""
        self._at_once = self._at_once or at_once
        super().leave(at_once)

    def finish_leave(self, limit_s: float) -> bool:
        """Does not wait: the other ranks would have to, too."""
        return self.finished or not self._leaves

    def part(self, limit_s: float) -> None:
        """Does not wait, as above."""
        self.engine.part(at_once=True)

    def done(self, trained: Trained, had: int, loss: float, current: Callable[[], bool]) -> Verdict:
        """The gradient is that of all ranks' samples, as DistributedDataParallel averaged it."""
        self._trained.refuse_infinite()  # all ranks raise, or none
        own = (self._leaves, self._at_once, self._ends)
        total, leaves, at_once, ends = self._node.sums(had, *own)
        if ends and not self._ends:
            self.end_run()
        if (leaves > 0, at_once > 0) != own[:2]:
            self.leave(at_once > 0)
        if self._node.rank == 0:
            return super().done(trained, total, loss, current)
        return Verdict(True, total, total)
