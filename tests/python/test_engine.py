# SPDX-License-Identifier: Apache-2.0
"""tradewind.engine.peer.Peer over a library of Python functions: structures, callbacks, texts, errors."""

import ctypes
import gc
import json
import signal
import warnings

import pytest
import torch
from tradewind import EngineError, MisuseError, SettingError, TradewindWarning
from tradewind.engine import abi
from tradewind.engine.peer import DataOrder, Group, HostTensor, ModelShape, Order, Peer, Work
from tradewind.model.memory import flat_tensor


class Library:
    """tw_* as the header says, of a peer whose next() calls every callback once."""

    def __init__(self):
        self.seen, self.error, self.released, self.closed = {}, b"", [], 0
        self.memory = (ctypes.c_float * 4)(1, 2, 3, 4)
        self.next_status = abi.TW_GRADIENT
        self.texts = []
        self.warnings = []
        self.interrupts = False
        self.steps = (abi.tw_step * 1)(abi.tw_step(first=1, count=3, kind=abi.TW_ADAM, learning_rate=0.5))

    def tw_open(self, pairs, count, shape, calls, handle):
        self.seen["settings"] = [(pairs[at].key, pairs[at].value) for at in range(count)]
        self.seen["groups"] = [shape.groups[at].learning_rate for at in range(shape.group_count)]
        self.seen["sizes"] = (
            shape.tensor_sizes[: shape.tensor_count],
            shape.state_sizes[: shape.state_count],
        )
        self.seen["layout"], self.seen["clip"] = shape.layout, shape.clip_norm
        self.calls = calls
        handle._obj.value = 42
        if self.error:
            return abi.TW_MISUSE
        return abi.TW_OK

    def tw_start(self, handle, tensors, count):
        self.seen["initial"] = [
            (tensors[at].data, tensors[at].count, tensors[at].dtype) for at in range(count)
        ]
        return abi.TW_OK

    def tw_next(self, handle, limit_ms, order):
        if self.interrupts:
            signal.raise_signal(signal.SIGINT)
        groups = (abi.tw_group * 1)(abi.tw_group(tensors=1, learning_rate=1.0))
        statuses = [
            self.calls.settings(None, 7, b"", groups, 1),
            self.calls.update(None, 7, ctypes.cast(self.memory, ctypes.c_void_p), 4, self.steps, 1),
            self.calls.load(None, 7, 1),
            self.calls.save(None, 1),
        ]
        for text in self.warnings:
            self.calls.warn(None, text)
        self.seen["rate"] = groups[0].learning_rate
        if any(statuses):
            return abi.TW_CALLBACK
        order._obj.round, order._obj.samples, order._obj.first = 8, 5, 30
        return self.next_status

    def tw_samples(self, handle, data, indices, count):
        of = data._obj
        indices[:] = [of.size - of.block - at + of.begun for at in range(count)]
        return abi.TW_OK

    def tw_ahead(self, handle, data, indices, count):
        room, count._obj.value = count._obj.value, 2
        indices[:2] = [data._obj.size * data._obj.block, room]
        return abi.TW_OK

    def tw_done(self, handle, gradient):
        given = gradient._obj
        counts = [given.gradients[at].count for at in range(given.gradient_count)]
        self.seen["done"] = counts, given.weight, given.samples, given.had, given.loss_sum, given.settings
        return self.next_status

    def tw_vector(self, handle, which, data, count):
        if which > 0:
            return None
        data._obj.value, count._obj.value = ctypes.addressof(self.memory), 4
        return 77

    def tw_release(self, memory):
        self.released.append(memory)

    def text(self, value):
        self.texts.append(ctypes.create_string_buffer(value))
        return ctypes.addressof(self.texts[-1])

    def tw_view(self, handle):
        return self.text(b'{"round": 3, "waiting": "for \xc3\xa4"}')

    def tw_events(self, handle):
        return self.text(b'{"phase": "commit"}\n{"phase": "apply"}\n')

    def tw_free(self, text):
        assert text == ctypes.addressof(self.texts.pop())

    def tw_last_error(self):
        return self.error

    def tw_heed(self, handle, number):
        self.seen.setdefault("heeded", []).append(number)
        return abi.TW_OK

    def tw_close(self, handle):
        self.closed += 1

    def tw_busy(self, handle, why):
        self.seen["busy"] = why
        return abi.TW_OK

    def tw_begun(self, handle, rounds):
        self.seen["begun"] = rounds
        return abi.TW_OK

    def tw_leave(self, handle, at_once):
        self.seen["leave"] = at_once
        return abi.TW_OK

    def tw_drop(self, handle):
        self.error = b"nothing to drop"
        return abi.TW_MISUSE


class Recorder:
    contributes = False
    updates_here = True
    rounds_before = 4

    def __init__(self):
        self.calls = []
        self.failing = self.fails_in = None

    def seen(self, *call):
        self.calls.append(call)
        if self.failing is not None and self.fails_in in (None, call[0]):
            raise self.failing

    def settings(self, round, wanted):
        self.seen("settings", round)
        return [Group(1, learning_rate=0.25)]

    def update(self, round, mean, steps):
        ((first, values, kind, flags, learning_rate, *_),) = steps
        self.seen("update", round, list(mean), (first, values, kind, flags, learning_rate))

    def load(self, round, restored):
        self.seen("load", round, restored)

    def save(self, all):
        self.seen("save", all)


SHAPE = ModelShape((Group(2, learning_rate=0.5),), (3, 1), (6,), 1.5, "layout ä")


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(abi, "library", lambda: made)
    return made


def test_open_passes_settings_and_shape(library):
    peer = Peer([("training.rounds", "5"), ("site", "ä")], SHAPE, Recorder())
    assert library.seen["settings"] == [(b"training.rounds", b"5"), (b"site", "ä".encode())]
    assert library.seen["groups"] == [0.5] and library.seen["sizes"] == ([3, 1], [6])
    assert library.seen["layout"].decode() == "layout ä" and library.seen["clip"] == 1.5
    tensor = torch.tensor([1.0, 2])
    peer.start([HostTensor(tensor.data_ptr(), 2, 0), HostTensor(0, 3, 2)])
    assert library.seen["initial"] == [(tensor.data_ptr(), 2, 0), (None, 3, 2)]


def test_what_open_refuses_is_a_setting_error(library):
    library.error = b"training.rounds = x: expected a whole number"
    with pytest.raises(SettingError, match="training.rounds"):
        Peer([], SHAPE, Recorder())


def test_next_runs_the_callbacks_and_gives_the_order(library):
    calls = Recorder()
    peer = Peer([], SHAPE, calls)
    assert peer.next(100) == (abi.TW_GRADIENT, Order(8, 5, 30))
    step = (1, 3, abi.TW_ADAM, 0, 0.5)
    update = ("update", 7, [1, 2, 3, 4], step)
    assert calls.calls == [("settings", 7), update, ("load", 7, True), ("save", True)]
    assert library.seen["begun"] == 4
    assert library.seen["rate"] == 0.25
    library.next_status = abi.TW_TIMEOUT
    assert peer.next(100) == (abi.TW_TIMEOUT, None)


@pytest.mark.parametrize("error", [ZeroDivisionError("in the callback"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["settings", "update", "load", "save"])
def test_an_exception_of_a_callback_comes_out_of_next_once(library, error, where):
    calls = Recorder()
    calls.failing, calls.fails_in = error, where
    peer = Peer([], SHAPE, calls)
    with pytest.raises(type(error)):
        peer.next(100)
    calls.failing = None
    assert peer.next(100)[0] == abi.TW_GRADIENT


def test_ctrl_c_comes_out_of_next_and_no_callback_loses_it(library):
    calls = Recorder()
    peer = Peer([], SHAPE, calls)
    library.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        peer.next(100)
    assert [call[0] for call in calls.calls] == ["settings", "update", "load", "save"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    library.interrupts = False
    assert peer.next(100)[0] == abi.TW_GRADIENT


def test_warnings_of_the_engine_are_those_of_the_package_at_the_line_of_the_program(library):
    peer = Peer([], SHAPE, Recorder())
    library.warnings = ["round 7: no checkpoint: f\u00fcll".encode(), b"the budget is spent"]
    with pytest.warns(TradewindWarning) as warned:
        peer.next(100)
    texts = [str(one.message) for one in warned]
    assert texts == ["round 7: no checkpoint: f\u00fcll", "the budget is spent"]
    assert {one.filename for one in warned} == {__file__}


def test_a_warning_that_is_an_error_comes_out_of_next_and_the_peer_lives(library):
    peer = Peer([], SHAPE, Recorder())
    library.warnings = [b"no checkpoint"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", TradewindWarning)
        with pytest.raises(TradewindWarning, match="no checkpoint"):
            peer.next(100)
    library.warnings = []
    assert peer.next(100)[0] == abi.TW_GRADIENT


def test_errors_are_the_engines_sentences(library):
    peer = Peer([], SHAPE, Recorder())
    with pytest.raises(MisuseError, match="nothing to drop"):
        peer.drop()
    library.next_status, library.error = abi.TW_FAILED, b"the run is complete"
    with pytest.raises(EngineError, match="the run is complete"):
        peer.next(100)


def test_done_and_samples(library):
    peer = Peer([], SHAPE, Recorder())
    assert peer.samples(DataOrder(10), 3) == [9, 8, 7]
    assert peer.ahead(DataOrder(10), 4) == [10, 4]
    assert peer.samples(DataOrder(10, 5), 3) == [5, 4, 3] and peer.ahead(DataOrder(10, 2), 4) == [20, 4]
    assert peer.samples(DataOrder(10, 1, 40), 2) == [49, 48]
    library.next_status = abi.TW_OK
    assert peer.done([HostTensor(0, 3, 0), HostTensor(0, 1, 0)], Work(5.0, 5, 8, 2.5, "rate"))
    assert library.seen["done"] == ([3, 1], 5.0, 5, 8, 2.5, b"rate")
    library.next_status = abi.TW_STALE
    assert not peer.done([], Work(1.0, 1, 1, 0.0, ""))


def test_texts_are_freed_and_read(library):
    peer = Peer([], SHAPE, Recorder())
    assert peer.view() == json.loads('{"round": 3, "waiting": "for ä"}')
    assert [event["phase"] for event in peer.events()] == ["commit", "apply"] and not library.texts
    peer.busy("evaluating")
    assert library.seen["busy"] == b"evaluating"
    peer.busy(None)
    assert library.seen["busy"] is None
    peer.leave(True)
    assert library.seen["leave"] == 1
    for at_once, how in ((False, 3), (True, 2)):
        peer.part(at_once)
        assert library.seen["leave"] == how


def test_a_vector_lives_as_long_as_tensors_on_it(library):
    peer = Peer([], SHAPE, Recorder())
    assert peer.vector(1) is None
    view = flat_tensor(peer.vector(0))[1:3]
    peer.close()
    peer.close()
    gc.collect()
    assert library.closed == 1 and not library.released
    view[0] = 20
    assert list(library.memory) == [1, 20, 3, 4]
    del view
    gc.collect()
    assert library.released == [77]
