# SPDX-License-Identifier: Apache-2.0
"""launch_local: processes of this machine, their results, exceptions and ends."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import torch
import tradewind
from conftest import needs_engine, python_path
from tradewind import MisuseError, SettingError, TradewindError, launch_local
from tradewind.engine.settings import resolve
from tradewind.launch import _options, _Outcome, _results, program
from tradewind.loop import life

pytestmark = [
    needs_engine,
    pytest.mark.skipif(program() is None, reason="tw is not built (make program)"),
    pytest.mark.timeout(120),
]


def settings_of(factor):
    value = torch.tensor([factor * int(os.environ["TRADEWIND_ID"])])
    return value, resolve({}).values, os.environ.get("OMP_NUM_THREADS"), torch.get_num_threads()


def fails_as_second(seconds):
    if os.environ["TRADEWIND_ID"] == "2":
        raise ZeroDivisionError("of the second")
    time.sleep(seconds)


def dies_as_first():
    if os.environ.get("TRADEWIND_ID", "1") == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return os.environ["TRADEWIND_ID"]


def process():
    return os.environ["TRADEWIND_PROCESS"], os.environ.get("TRADEWIND_ID")


def sleeps(seconds):
    time.sleep(seconds)


def first_waits_for_second():
    """The first one waits in vain: the second one catches why it could not join."""
    if os.environ["TRADEWIND_ID"] == "2":
        life.joined("EngineError: another run")
        return "caught"
    model = torch.nn.Linear(2, 2)
    run = tradewind.join(rounds=3)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=2)
    run.start()


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__("text")


def raises_unpicklable():
    raise Unpicklable(1, 2)


def test_each_peer_gets_its_environment_and_gives_its_result(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    settings = {"rounds": 5, "codec": "int8", "progress": "line", "threads": 3, "site": "lab"}
    results = launch_local(settings_of, 10, peers=2, settings=settings, out=tmp_path, timeout=60)
    assert [value for value, *_ in results] == [10, 20]
    assert [threads for *_, threads in results] == [3, 3] == [int(openmp) for _, _, openmp, _ in results]
    first, second = (values for _, values, _, _ in results)
    assert first["training.rounds"] == "5" and first["training.codec"] == "int8" and first["site"] == "lab"
    assert first["wait_for"] == "2" and first["id"] == "1" and first["out"] == str(tmp_path)
    assert first["progress"] == "line" and second["progress"] == "off"
    assert second["join"] == first["listen"] and not second["listen"] and first["token"] == second["token"]


def test_settings_are_options_of_tw_run():
    given = {"file": None, "wait_for": 2, "insecure": True, "anew": False, "threads": 2, "progress": "line"}
    given["rounds"] = 3
    assert _options(given) == ["--wait-for", "2", "--insecure", "--threads", "2", "--set", "rounds=3"]
    assert _options({"progress": "off"}) == ["--progress", "off"]
    flags = {"progress": "off", "anew": "yes", "rejoin": 0, "insecure": 1}
    assert _options(flags)[2:] == ["--anew", "--insecure"]


def test_an_exception_ends_the_others_and_is_raised_with_its_number():
    began = time.monotonic()
    text = "(?s)peer 2 failed.*in fails_as_second.*of the second"
    with pytest.raises(TradewindError, match=text) as raised:
        launch_local(fails_as_second, 500, peers=3)
    assert isinstance(raised.value.__cause__, ZeroDivisionError) and time.monotonic() - began < 90
    with pytest.raises(TradewindError, match="(?s)peer 1 failed.*Unpicklable"):
        launch_local(raises_unpicklable, peers=1)


def test_a_killed_peer_is_lost_and_the_others_go_on():
    results = launch_local(dies_as_first, peers=3)
    assert results[1:] == ["2", "3"] and "peer 1 was lost" in str(results[0])
    with pytest.raises(TradewindError, match="no peer gave a result"):
        launch_local(dies_as_first, peers=1)


def test_a_peer_that_cannot_join_ends_the_wait_of_the_others_for_it():
    with pytest.raises(TradewindError, match="peer 2 returned, and could not join its run: .*another run"):
        launch_local(first_waits_for_second, peers=2)


def test_processes_that_join_a_run_elsewhere_give_their_results_too():
    settings = {"join": "127.0.0.1:9", "insecure": True}
    assert launch_local(process, peers=2, settings=settings) == [("1", None), ("2", None)]


def test_results_that_are_in_outlive_the_deadline(tmp_path):
    runs_on = types.SimpleNamespace(poll=lambda: None, returncode=None)
    for number in (1, 2, 3):  # the third one joined later
        (tmp_path / f"{number}.outcome").write_bytes(pickle.dumps(_Outcome(10 * number)))
    assert _results(tmp_path, runs_on, 2, time.monotonic() - 1) == [10, 20]


def test_the_time_is_up():
    began = time.monotonic()
    with pytest.raises(TradewindError, match="the time is up, and no result came from peers 1, 2"):
        launch_local(sleeps, 500, peers=2, timeout=1)
    assert time.monotonic() - began < 60


def test_what_is_wrong_is_told_before_a_process_begins(monkeypatch):
    with pytest.raises(SettingError, match="whole number from 1"):
        launch_local(sleeps, 1, peers=0)
    with pytest.raises(SettingError, match='did you mean "rounds"'):
        launch_local(sleeps, 1, settings={"round": 1})
    monkeypatch.setattr("tradewind.launch.program", lambda: None)
    with pytest.raises(TradewindError, match="no program tw: `make program`"):
        launch_local(sleeps, 1)


TYPED = """
import sys
sys.path[:0] = {path!r}
import tradewind
class Kept:
    pass
def train(*kept):
    return 7
for arguments in {calls}:
    try:
        print("RESULT", tradewind.launch_local(*arguments, peers=2, timeout=60))
    except tradewind.TradewindError as error:
        print("RESULT", type(error).__name__, error)
"""


def test_a_function_that_was_typed_in_has_to_stand_in_a_file():
    source = TYPED.format(path=sys.path[:1], calls="[(train,), (print, Kept())]")
    done = subprocess.run([sys.executable, "-"], input=source, capture_output=True, text=True, timeout=90)
    refused = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(refused) == 2
    for text in refused:
        assert text.startswith("MisuseError") and "was typed in" in text and "level of a file" in text, text


def test_what_cannot_be_pickled_is_named_before_a_process_begins():
    with pytest.raises(MisuseError, match=r"given \S*<lambda> .*top level of a file.*cloudpickle"):
        launch_local(lambda: 1, peers=2)
    with pytest.raises(MisuseError, match=r"given argument 2 \(.*lock\).*make it in the function"):
        launch_local(print, 1, threading.Lock(), peers=2)


CLOUDPICKLE = """
import pickle
import test_launch
def dumps(value):
    if isinstance(value, test_launch._Outcome):
        return pickle.dumps(value._replace(value=f"packed {value.value}"))
    return pickle.dumps((test_launch.dies_as_first, ()))
"""


def test_cloudpickle_packs_what_pickle_cannot_and_its_results(monkeypatch, tmp_path):
    (tmp_path / "cloudpickle.py").write_text(CLOUDPICKLE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cloudpickle", raising=False)
    assert launch_local(lambda: 1, peers=2)[1] == "packed 2"


def test_a_file_that_calls_it_without_a_guard_is_told_to_have_one(tmp_path):
    file = tmp_path / "unguarded.py"
    file.write_text("import os, tradewind\nprint(tradewind.launch_local(os.getcwd, peers=2))\n")
    environment = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=90)
    assert done.returncode == 1 and "has to stand under `if __name__" in done.stderr, done.stderr
