# SPDX-License-Identifier: Apache-2.0
"""One peer of a run, as Python sees it: statuses become exceptions, structures become tuples.

Thread: that of start(); leave(), busy(), vector(), view() and events() may come from any.
"""

from __future__ import annotations

import ctypes
import json
import signal
import threading
import weakref
from array import array
from contextlib import contextmanager
from itertools import chain
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from . import abi
from ..errors import CondemnedError, EngineError, MisuseError, SettingError, warn

_AS_CLOSE, _CLOSES_SOON = 2, 3  # of tw_leave


class Order(NamedTuple):
    """Samples of which a gradient is due; round counts from 1, first is a sample's number in the run."""

    round: int
    samples: int
    first: int


class DataOrder(NamedTuple):
    """tw_dataset: a data set of so many samples; `block` in a row stay together; begun: samples that a run had which
    this one goes on from.
    """

    size: int
    block: int = 1
    begun: int = 0


class Work(NamedTuple):
    """What a gradient is of: tw_gradient without its tensors."""

    weight: float
    samples: int
    had: int
    loss_sum: float
    settings: str = ""


class HostTensor(NamedTuple):
    """So many values at address, one after the other; address 0: zeros; dtype: TW_FLOAT32, ..."""

    address: int
    values: int
    dtype: int


class Group(NamedTuple):
    """tw_group: the next `tensors` tensors, and the rule that updates them."""

    tensors: int
    learning_rate: float = 0.0
    weight_decay: float = 0.0
    momentum: float = 0.0
    beta1: float = 0.0
    beta2: float = 0.0
    epsilon: float = 0.0
    kind: int = abi.TW_CALLER
    flags: int = 0


class Step(NamedTuple):
    """tw_step: what so many values from `first` on take in an update; whole tensors that have a gradient."""

    first: int
    values: int
    kind: int
    flags: int
    learning_rate: float
    weight_decay: float
    momentum: float
    shrink: float
    beta1: float
    one_minus_beta1: float
    beta2: float
    one_minus_beta2: float
    correction1: float
    root_correction2: float
    epsilon: float


class ModelShape(NamedTuple):
    """tw_model. Sizes are values; clip_norm 0: no clipping."""

    groups: Tuple[Group, ...]
    tensor_sizes: Tuple[int, ...]
    state_sizes: Tuple[int, ...]
    clip_norm: float
    layout: str


class Calls(Protocol):
    """Callbacks of the engine inside next(), on its thread. An exception ends the peer; next() raises it."""

    contributes: bool  # done() gets counts alone, and contribution() is asked for the sum
    updates_here: bool  # update() is called; else the engine updates its vector

    @property
    def rounds_before(self) -> int:
        """Rounds of a run before, from whose state the run goes on; known after load()."""

    def settings(self, round: int, wanted: str) -> Optional[Sequence[Group]]:
        """The groups for the update of this round; None: as before. wanted: what done() of one peer of the
        round said, the same text on all peers; empty: as in the round before.
        """

    def update(self, round: int, mean: ctypes.Array[ctypes.c_float], steps: Sequence[Step]) -> None:
        """Changes the parameters with the mean gradient of the whole vector, which is valid only during this call."""

    def load(self, round: int, restored: bool) -> None:
        """Parameters and state are those after this round."""

    def save(self, all: bool) -> None:
        """Parameters and state that the program keeps have to be in the vectors now. Not all: parameters."""

    def contribution(self, round: int, total: ctypes.Array[ctypes.c_float]) -> None:
        """With `contributes`: adds the sum of what done() was told of since the last call, of this round."""


class Engine(Protocol):
    """The interface of a peer for Run: implemented by Peer and by the tests' double."""

    def start(self, initial: Sequence[HostTensor]) -> None: ...

    def next(self, limit_ms: int) -> Tuple[int, Optional[Order]]: ...

    def samples(self, data: DataOrder, count: int) -> List[int]: ...

    def ahead(self, data: DataOrder, most: int) -> List[int]: ...

    def fragment(self, round: int) -> Tuple[int, int]: ...

    def done(self, gradients: Optional[Sequence[HostTensor]], work: Work) -> bool: ...

    def waited(self, seconds: float) -> None: ...

    def evaluated(self, round: int, name: str, value: float) -> None: ...

    def drop(self) -> None: ...

    def busy(self, why: Optional[str]) -> None: ...

    def barrier(self, limit_ms: int) -> int: ...

    def vector(self, which: int) -> Optional[ctypes.Array[ctypes.c_float]]: ...

    def view(self) -> Dict[str, Any]: ...

    def events(self) -> List[Dict[str, Any]]: ...

    def leave(self, at_once: bool) -> None: ...

    def end_run(self) -> None: ...

    def part(self, at_once: bool) -> None: ...

    def signal(self, number: int) -> None: ...

    def heed(self, number: int) -> None: ...

    def close(self) -> None: ...


def _group_array(groups: Sequence[Group]) -> ctypes.Array[abi.tw_group]:
    made = (abi.tw_group * max(1, len(groups)))()
    for at, group in enumerate(groups):
        made[at] = abi.tw_group(*group)
    return made


def _sizes(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(1, len(values)))(*values)


def _tensors(tensors: Sequence[HostTensor]) -> ctypes.Array[abi.tw_tensor]:
    """A tw_tensor is three 64-bit words (the last: dtype and reserved), so one flat array is all of them."""
    words = array("Q", chain.from_iterable(tensors) if tensors else (0, 0, 0))
    return (abi.tw_tensor * max(1, len(tensors))).from_buffer(words)


class Peer:
    """A peer of libtradewind.so. Raises SettingError from the constructor, EngineError when it cannot go
    on.
    """

    def __init__(self, settings: Sequence[Tuple[str, str]], model: ModelShape, calls: Calls) -> None:
        self._library = abi.library()
        self._calls = calls
        self._raised: Optional[BaseException] = None
        self._order = abi.tw_order()
        self._callbacks = self._make_callbacks()
        self._handle = ctypes.c_void_p()
        shape = abi.tw_model(
            _group_array(model.groups),
            len(model.groups),
            _sizes(model.tensor_sizes),
            len(model.tensor_sizes),
            _sizes(model.state_sizes),
            len(model.state_sizes),
            model.clip_norm,
            model.layout.encode(),
        )
        pairs = abi.setting_array(settings)
        status = self._library.tw_open(
            pairs, len(settings), shape, self._callbacks, ctypes.byref(self._handle)
        )
        if status != abi.TW_OK:
            raise SettingError(abi.last_error(self._library))

    def _make_callbacks(self) -> abi.tw_calls:
        calls = self._calls

        def settings(_: Any, round: int, wanted: bytes, groups: Any, count: int) -> None:
            changed = calls.settings(round, wanted.decode())
            for at, group in enumerate(changed or ()):
                groups[at] = abi.tw_group(*group)

        def update(_: Any, round: int, mean: int, count: int, steps: Any, step_count: int) -> None:
            fields = [name for name, *_ in abi.tw_step._fields_]
            given = [Step(*(getattr(steps[at], name) for name in fields)) for at in range(step_count)]
            calls.update(round, (ctypes.c_float * count).from_address(mean), given)

        def load(_: Any, round: int, restored: int) -> None:
            calls.load(round, bool(restored))
            if restored:
                self._library.tw_begun(self._handle, calls.rounds_before)

        def save(_: Any, all: int) -> None:
            calls.save(bool(all))

        def contribution(_: Any, round: int, total: int, count: int) -> None:
            calls.contribution(round, (ctypes.c_float * count).from_address(total))

        def says(_: Any, text: bytes) -> None:
            warn(text.decode(errors="replace"))

        return abi.tw_calls(
            None,
            abi.SettingsCall(self._kept(settings)),
            abi.UpdateCall(self._kept(update) if calls.updates_here else 0),
            abi.LoadCall(self._kept(load)),
            abi.SaveCall(self._kept(save)),
            abi.WarnCall(self._kept(says)),
            abi.ContributionCall(self._kept(contribution) if calls.contributes else 0),
        )

    def _kept(self, call: Any) -> Any:
        """The call with its exception kept for next(): none may cross the library."""

        def status(*arguments: Any) -> int:
            try:
                call(*arguments)
                return 0
            except BaseException as error:  # raised again by next()
                self._raised = error
                return 1

        return status

    @contextmanager
    def _interrupt_kept(self) -> Iterator[None]:
        """Ctrl-C is kept for _check(). Where a signal's handler runs as a callback begins, before its `try`,
        ctypes prints the exception and goes on: the program would train on.
        """
        kept = signal.default_int_handler
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not kept:
            yield
            return

        def keep(number: int, frame: Any) -> None:
            self._raised = KeyboardInterrupt()

        signal.signal(signal.SIGINT, keep)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, kept)

    def _check(self, status: int) -> int:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        if status >= 0:
            return status
        raise (MisuseError if status == abi.TW_MISUSE else EngineError)(abi.last_error(self._library))

    def start(self, initial: Sequence[HostTensor]) -> None:
        """Listens, and joins or starts the run. SettingError: a wrong token, or none."""
        status = self._library.tw_start(self._handle, _tensors(initial), len(initial))
        if status == abi.TW_MISUSE:
            raise SettingError(abi.last_error(self._library))
        if status == abi.TW_CONDEMNED:
            raise CondemnedError(abi.last_error(self._library))
        self._check(status)

    def next(self, limit_ms: int) -> Tuple[int, Optional[Order]]:
        """TW_GRADIENT with an order, TW_TIMEOUT or TW_FINISHED. Raises what a callback raised."""
        with self._interrupt_kept():
            status = self._library.tw_next(self._handle, limit_ms, ctypes.byref(self._order))
        self._check(status)
        if status != abi.TW_GRADIENT:
            return status, None
        return status, Order(self._order.round, self._order.samples, self._order.first)

    def samples(self, data: DataOrder, count: int) -> List[int]:
        """Indices in the data set of the order's first `count` samples."""
        indices = (ctypes.c_int64 * count)()
        dataset = abi.tw_dataset(*data)
        self._check(self._library.tw_samples(self._handle, ctypes.byref(dataset), indices, count))
        return list(indices)

    def ahead(self, data: DataOrder, most: int) -> List[int]:
        """Indices of samples that will come after those of the order, as far as known, at most `most`."""
        indices, count = (ctypes.c_int64 * most)(), ctypes.c_size_t(most)
        dataset = abi.tw_dataset(*data)
        self._check(
            self._library.tw_ahead(self._handle, ctypes.byref(dataset), indices, ctypes.byref(count))
        )
        return list(indices[: count.value])

    def fragment(self, round: int) -> Tuple[int, int]:
        """(place of the first, number) of the values of the vector that this round averages."""
        first, count = ctypes.c_uint64(), ctypes.c_uint64()
        self._check(self._library.tw_fragment(self._handle, round, ctypes.byref(first), ctypes.byref(count)))
        return first.value, count.value

    def done(self, gradients: Optional[Sequence[HostTensor]], work: Work) -> bool:
        """Hands in the gradient of `work.samples` samples (None: Calls.contribution() will); False: too late, nothing
        was added.
        """
        tensors = None if gradients is None else _tensors(gradients)
        gradient = abi.tw_gradient(tensors, len(gradients or ()), *work[:4], work.settings.encode() or None)
        status = self._library.tw_done(self._handle, ctypes.byref(gradient))
        return self._check(status) != abi.TW_STALE

    def waited(self, seconds: float) -> None:
        """The program waited so long for data since the last gradient."""
        self._check(self._library.tw_waited(self._handle, seconds))

    def evaluated(self, round: int, name: str, value: float) -> None:
        """For the log: what the program measured of the parameters after this round."""
        self._check(self._library.tw_evaluated(self._handle, round, name.encode(), value))

    def drop(self) -> None:
        """Gives the order back."""
        self._check(self._library.tw_drop(self._handle))

    def busy(self, why: Optional[str]) -> None:
        """The program is busy; None: it is back."""
        self._check(self._library.tw_busy(self._handle, None if why is None else why.encode()))

    def barrier(self, limit_ms: int) -> int:
        """TW_OK: all live peers have come; TW_TIMEOUT: call it again; TW_FINISHED."""
        return self._check(self._library.tw_barrier(self._handle, limit_ms))

    def vector(self, which: int) -> Optional[ctypes.Array[ctypes.c_float]]:
        """A vector of the peer; it lives as long as the array does, longer than the peer."""
        data, count = ctypes.c_void_p(), ctypes.c_uint64()
        memory = self._library.tw_vector(self._handle, which, ctypes.byref(data), ctypes.byref(count))
        if not memory:
            return None
        values = (ctypes.c_float * count.value).from_address(data.value or 0)
        weakref.finalize(values, self._library.tw_release, memory).atexit = False
        return values

    def _text(self, address: Optional[int]) -> str:
        return abi.take_text(self._library, address)

    def view(self) -> Dict[str, Any]:
        """round, samples, peers, leader, waiting, finished, ended, failure, address, member, ..."""
        viewed: Dict[str, Any] = json.loads(self._text(self._library.tw_view(self._handle)) or "{}")
        return viewed

    def events(self) -> List[Dict[str, Any]]:
        """Events since the last call (docs/events.md)."""
        lines = self._text(self._library.tw_events(self._handle)).splitlines()
        return [json.loads(line) for line in lines if line]

    def leave(self, at_once: bool) -> None:
        """Contributes its work and leaves after the round; at_once: does not wait for it."""
        self._check(self._library.tw_leave(self._handle, int(at_once)))

    def end_run(self) -> None:
        """The run ends for all its peers, with the round under way or the next one."""
        self._check(self._library.tw_end_run(self._handle))

    def part(self, at_once: bool) -> None:
        """close() is about to come: the others hear of it now. Nothing, where it has not started. at_once: it does not
        wait for the end of the round.
        """
        self._library.tw_leave(self._handle, _AS_CLOSE if at_once else _CLOSES_SOON)

    def signal(self, number: int) -> None:
        """A signal came: SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are notices."""
        self._check(self._library.tw_signal(self._handle, number))

    def heed(self, number: int) -> None:
        """From now on the engine learns of this signal itself, also while the program is in one long call."""
        self._check(self._library.tw_heed(self._handle, number))

    def close(self) -> None:
        """Leaves (3 s at most, longer while a checkpoint is saved or copied) and frees the peer.

        A second call does nothing. A notice (SIGTERM) and Ctrl-C end the wait.
        """
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._library.tw_heed(handle, signal.SIGINT)  # Python itself hears of it when this call is over
            self._library.tw_close(handle)
            self._check(abi.TW_OK)
