# SPDX-License-Identifier: Apache-2.0
"""Signals, forks and the end of the process, on the engine's double."""

import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
import tradewind
from conftest import ROOT, python_path
from models import data, loss_of, mlp
from tradewind.engine import abi
from tradewind.engine.peer import Order
from tradewind.loop import ending, process

NOTICES = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def begun(fake_run, **settings):
    model = mlp()
    run = fake_run(**{"target_batch_size": 8, "rounds": 4, **settings})
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    run.start()
    return run, opt, model


@pytest.fixture
def default_signals(monkeypatch):
    """As in a program that handles none; its handlers are back afterwards."""
    monkeypatch.setattr(process, "_taken_over", False)
    monkeypatch.setattr(process, "_terminated_at", None)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in NOTICES}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NOTICES)
def test_signals_are_notices(fake_run, default_signals, number):
    run, opt, model = begun(fake_run)
    assert run.ending == "" and run.exit_code == 0
    os.kill(os.getpid(), number)
    loss_of(model, *data()).backward()
    opt.step()
    assert run.finished and fake_run.engines[0].signals == [number]
    run.close()
    assert run.ending == "notice" and run.exit_code == 75


def test_sigterm_twice_within_milliseconds_ends_nothing(fake_run, default_signals):
    run, opt, model = begun(fake_run)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
    assert fake_run.engines[0].signals == [signal.SIGTERM, signal.SIGTERM], "the engine tells doubles apart"
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    run.close()


def test_a_handler_of_the_programs_own_stays(fake_run, default_signals):
    seen = []
    signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    begun(fake_run)
    os.kill(os.getpid(), signal.SIGTERM)
    assert seen == [1] and not fake_run.engines[0].signals


def test_without_notices_user_signals_keep_their_meaning(fake_run, default_signals):
    begun(fake_run, notices="none")
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL


def test_a_hangup_that_nohup_ignores_stays_ignored(fake_run, default_signals):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begun(fake_run)
    os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and not fake_run.engines[0].signals


def test_a_child_cannot_use_the_run_and_the_library_hears_of_it(fake_run, monkeypatch):
    run, opt, model = begun(fake_run)
    reader, writer = os.pipe()

    class Told:
        @staticmethod
        def tw_after_fork():
            os.write(writer, b"told. ")

    monkeypatch.setattr(abi, "_loaded", [Told])
    process.watch_forks()
    child = os.fork()
    if child == 0:
        try:
            opt.step()
        except tradewind.MisuseError as error:
            os.write(writer, str(error).encode())
        run.close()
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    assert (
        text.startswith("told. ") and f"joined by process {os.getpid()}, this is its fork {child}" in text
    )
    assert not fake_run.engines[0].closed
    loss_of(model, *data()).backward()
    assert opt.step()


def test_the_end_of_the_process_says_goodbye():
    code = """
import torch, tradewind
from fake_engine import FakeEngine
import tradewind.loop.life
class Engine(FakeEngine):
    def close(self):
        print("goodbye")
tradewind.loop.life.Peer = Engine
model = torch.nn.Linear(2, 2)
run = tradewind.join(rounds=3)
run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=2)
run.start()
"""
    path = python_path(ROOT / "tests/python")
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert found.stdout == "goodbye\n", found.stderr


def leaving(fake_run):
    """A run whose program called leave() and is over, though it forgot the run."""
    run, opt, model = begun(fake_run)
    fake_run.runs.clear()
    loss_of(model, *data()).backward()
    opt.step()
    run.leave()
    return fake_run.engines[0]


def noted(engine, monkeypatch, *names):
    """The calls of these that come from now on."""
    done = []

    def note(name, call, *given, **how):
        done.append(name)
        return call(*given, **how)

    for name in names:
        monkeypatch.setattr(engine, name, functools.partial(note, name, getattr(engine, name)))
    return done


def test_a_program_that_ends_after_leave_waits_until_it_has_left(fake_run, monkeypatch):
    engine = leaving(fake_run)
    gc.collect()
    done = noted(engine, monkeypatch, "next", "part", "close")
    ending.say_goodbye(process.active)
    assert done == ["next", "part", "part", "close"] and process.active() is None


def test_a_program_that_ends_before_it_has_left_is_told(fake_run, monkeypatch):
    engine = leaving(fake_run)
    order = Order(2, 8, 8)
    dropped = []
    monkeypatch.setattr(engine, "next", lambda limit_ms: (abi.TW_GRADIENT, order))
    monkeypatch.setattr(engine, "drop", lambda: dropped.append(1))
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10**6, 25)).__next__)
    with pytest.warns(tradewind.TradewindWarning, match="has not left yet, as run.leave.* wanted"):
        ending.say_goodbye(process.active)
    assert dropped == [1, 1] and engine.closed


def test_a_program_that_ends_without_leave_waits_a_second_for_the_end_of_the_round(fake_run, monkeypatch):
    begun(fake_run)
    engine = fake_run.engines[0]
    dropped, parted, part = [], [], engine.part
    monkeypatch.setattr(engine, "next", lambda limit_ms: (abi.TW_GRADIENT, Order(1, 8, 0)))
    monkeypatch.setattr(engine, "drop", lambda: dropped.append(1))
    monkeypatch.setattr(engine, "part", lambda at_once: (parted.append(at_once), part(at_once)))
    monkeypatch.setattr(time, "monotonic", iter([i / 4 for i in range(100)]).__next__)
    ending.say_goodbye(process.active)
    assert engine.closed and parted == [False, True] and len(dropped) in (3, 4)


def test_a_start_that_fails_closes(fake_run, monkeypatch):
    model = mlp()
    run = fake_run()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)

    def fails(self, limit_ms):
        raise tradewind.EngineError("the run is complete")

    monkeypatch.setattr("fake_engine.FakeEngine.next", fails)
    with pytest.raises(tradewind.EngineError, match="complete"):
        run.start()
    assert fake_run.engines[0].closed and run.finished
    fake_run().close()


def test_the_others_hear_of_an_exception_before_anything_else_is_done(fake_run, monkeypatch):
    run, _, _ = begun(fake_run)
    engine = fake_run.engines[0]
    done = noted(engine, monkeypatch, "part", "view", "close")
    with pytest.raises(KeyError), run:
        raise KeyError
    assert done[0] == "part" and done[-1] == "close" and not engine.leaving


def test_the_ending_of_a_run_that_the_program_closes_is_named(fake_run):
    run, _, _ = begun(fake_run)
    run.close()
    assert (run.ending, run.exit_code) == ("left", 0)
    for late in (False, True):
        run, opt, model = begun(fake_run, rounds=1)
        with pytest.raises(KeyError), run:
            if late:
                loss_of(model, *data()).backward()
                opt.step()
            raise KeyError
        assert (run.ending, run.exit_code) == (("", 0) if late else ("failed", 1)), "its run was over"
    run, _, _ = begun(fake_run)
    fake_run.engines[-1].signal(signal.SIGTERM)
    run.close(), run.close()
    assert (run.ending, run.exit_code) == ("notice", 75)


def test_a_signal_while_a_run_closes_ends_no_process(fake_run, default_signals, monkeypatch):
    run, _, _ = begun(fake_run)
    engine = fake_run.engines[0]
    come = iter([signal.SIGTERM, None, None])

    def wait(limit_ms):
        number = next(come)
        if number:
            os.kill(os.getpid(), number)
        return (abi.TW_TIMEOUT if number else abi.TW_FINISHED), None

    monkeypatch.setattr(engine, "next", wait)
    run.close()
    assert engine.closed and run.ending == "left"


def test_ctrl_c_while_a_run_closes_ends_the_wait_alone(fake_run, monkeypatch):
    run, _, _ = begun(fake_run)
    engine = fake_run.engines[0]

    def interrupted(limit_ms):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "next", interrupted)
    with pytest.raises(KeyboardInterrupt), run:
        raise ValueError
    assert engine.closed and run.ending == "failed" and run.finished


def test_an_error_of_the_wait_is_told_where_the_program_had_none(fake_run, monkeypatch):
    for failed in (False, True):
        run, _, _ = begun(fake_run)
        monkeypatch.setattr(fake_run.engines[-1], "next", lambda limit_ms: 1 / 0)
        said = pytest.warns(tradewind.TradewindWarning, match="run.close.*ZeroDivisionError")
        with contextlib.nullcontext() if failed else said:
            run.close(failed=failed)
        assert fake_run.engines[-1].closed


def test_another_thread_closes_at_once(fake_run, monkeypatch):
    run, _, _ = begun(fake_run)
    monkeypatch.setattr(fake_run.engines[0], "next", None)
    other = threading.Thread(target=run.close)
    other.start(), other.join()
    assert fake_run.engines[0].closed and run.ending == "left"


def test_the_ending_is_named_where_the_news_have_none(fake_run, monkeypatch):
    run, _, _ = begun(fake_run)
    view = fake_run.engines[-1].view()
    del view["ending"]  # as on the other ranks of a node
    monkeypatch.setattr(fake_run.engines[-1], "view", lambda: dict(view))
    with pytest.raises(KeyError), run:
        raise KeyError
    assert (run.ending, run.exit_code) == ("failed", 1)


def test_the_program_of_one_peer_ends_the_run_for_all(fake_run):
    run = fake_run(target_batch_size=8, rounds=4)
    with pytest.raises(tradewind.MisuseError, match=r"run.end\(\) before the start"):
        run.end()
    run.close()
    run, opt, model = begun(fake_run)
    steps = 0
    while not run.finished:
        loss_of(model, *data()).backward()
        opt.step()
        steps += 1
        if steps == 2:
            run.end()
    assert steps == 3 and run.samples == 24, "the round under way is the last one"


def test_a_run_that_was_not_joined_cannot_be_left(fake_run):
    run = fake_run(target_batch_size=8, rounds=4)
    with pytest.raises(tradewind.MisuseError, match="run.leave.. before the start"):
        run.leave()
    with pytest.raises(ValueError, match="of the program"):
        with run:
            raise ValueError("of the program")
    run.leave()
    assert run.finished


def test_a_pause_and_a_listener_of_another_kind_are_named(fake_run):
    run, _, _ = begun(fake_run)
    with pytest.raises(tradewind.MisuseError, match=r"run.paused\(5\): expected a text"):
        with run.paused(5):
            pass
    with pytest.raises(tradewind.MisuseError, match="listener=5: expected a function of an event"):
        run.on_event(5)


@pytest.mark.parametrize("failed", [False, True])
def test_a_trainer_says_whether_it_closes_its_run_because_of_an_error(fake_run, failed):
    run, _, _ = begun(fake_run)
    with pytest.raises(tradewind.SettingError, match="failed='no': expected True or False"):
        run.close(failed="no")
    run.close(failed=failed)
    assert (run.ending, run.exit_code) == (("failed", 1) if failed else ("left", 0))
    unstarted = fake_run()
    unstarted.close(failed=failed)
    assert (unstarted.ending, unstarted.exit_code) == (("failed", 1) if failed else ("", 0))
