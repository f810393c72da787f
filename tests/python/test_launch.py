# SPDX-License-Identifier: Apache-2.0
"""launch_local: processes of this machine, their results, exceptions and ends. No engine is needed."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from tradewind import MisuseError, SettingError, TradewindError, launch_local
from tradewind.engine.settings import resolve
from tradewind.loop import process
from tradewind.program import program


@pytest.mark.parametrize(
    "package, tw",
    [
        ("venv/lib/python3.9/site-packages/tradewind", "venv/bin/tw"),
        ("home/.local/lib/python3.9/site-packages/tradewind", "home/.local/bin/tw"),  # pip install --user
        ("usr/local/lib64/python3.9/site-packages/tradewind", "usr/local/bin/tw"),  # RHEL
        ("folder/tradewind", "folder/bin/tw"),  # pip install --target
        ("build/python/tradewind", "build/tw"),
        ("python/tradewind", "build/tw"),
    ],
)
def test_tw_is_found_wherever_the_package_was_installed(package, tw, tmp_path, monkeypatch):
    for path in (tmp_path / package / "program.py", tmp_path / tw):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr("tradewind.program.__file__", str(tmp_path / package / "program.py"))
    monkeypatch.delenv("TRADEWIND_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == str(tmp_path / tw)


def settings_of(factor):
    value = torch.tensor([factor * int(os.environ["TRADEWIND_ID"])])
    return value, resolve({}).values


def threads():
    return os.environ.get("OMP_NUM_THREADS"), torch.get_num_threads()


def fails_as_second(seconds):
    if os.environ["TRADEWIND_ID"] == "2":
        raise ZeroDivisionError("of the second")
    time.sleep(seconds)


def dies_as_first():
    if os.environ["TRADEWIND_ID"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return os.environ["TRADEWIND_ID"]


def leaves(code):
    os._exit(code)


def exits(code):
    sys.exit(code)


def forks(how):
    """A child that ends before this peer does."""
    child = os.fork()
    if child == 0:
        if how == "return":
            return "child"
        raise how
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


def sleeps(seconds):
    time.sleep(seconds)


def second_is_refused(seconds):
    if os.environ["TRADEWIND_ID"] == "2":
        process.joined("EngineError: another run")
        return "caught"
    time.sleep(seconds)


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__("text")


def raises_unpicklable():
    raise Unpicklable(1, 2)


def test_each_peer_gets_its_environment_and_gives_its_result(tmp_path):
    results = launch_local(
        settings_of,
        10,
        peers=2,
        settings={"rounds": 5, "codec": "int8", "progress": "line"},
        out=tmp_path,
        timeout=60,
    )
    assert [value for value, _ in results] == [10, 20]
    first, second = (values for _, values in results[:2])
    assert first["training.rounds"] == "5" and first["training.codec"] == "int8"
    assert first["wait_for"] == "2" and first["id"] == "1" and first["out"] == str(tmp_path)
    assert first["progress"] == "line" and second["progress"] == "off"
    assert second["join"] == first["listen"] and not second["listen"]
    assert bool(first["run"]) == (program() is not None) and bool(first["insecure"]) == (program() is None)


@pytest.mark.timeout(60)
def test_processes_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("tradewind.launch._cores", lambda: 6)
    assert launch_local(threads, peers=2, start="fork") == [("3", 3)] * 2
    assert launch_local(threads, peers=2, start="fork", settings={"threads": 2}) == [("2", 2)] * 2
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert [found for found, _ in launch_local(threads, peers=2, start="fork")] == ["5"] * 2


def test_without_the_program_there_is_no_tls(monkeypatch, tmp_path):
    monkeypatch.setattr("tradewind.launch.program", lambda: None)
    ((value, values),) = launch_local(settings_of, 1, peers=1, start="fork", timeout=60)
    assert (
        value == 1 and values["insecure"] == "1" and values["listen"].startswith("127.0.0.1:")
    )


@pytest.mark.timeout(60)
def test_an_exception_ends_the_others_and_is_raised_with_its_number():
    began = time.monotonic()
    with pytest.raises(
        TradewindError, match="(?s)peer 2 failed.*in fails_as_second.*of the second"
    ) as raised:
        launch_local(fails_as_second, 50, peers=3, start="fork")
    assert isinstance(raised.value.__cause__, ZeroDivisionError) and time.monotonic() - began < 40
    with pytest.raises(TradewindError, match="(?s)peer 1 failed.*Unpicklable"):
        launch_local(raises_unpicklable, peers=1, start="fork")


@pytest.mark.timeout(60)
def test_sys_exit_is_a_return_or_an_exit_code():
    assert launch_local(exits, 0, peers=2, start="fork") == [None, None]
    assert launch_local(exits, None, peers=1, start="fork") == [None]
    for value, code in ((75, 75), ("no data", 1)):
        text = rf"(?s)peer 1 ended with exit code {code}, by sys\.exit.*in exits"
        with pytest.raises(TradewindError, match=text):
            launch_local(exits, value, peers=1, start="fork")


@pytest.mark.timeout(60)
def test_the_end_of_a_child_that_the_function_forked_is_not_that_of_the_peer():
    ends = {"return": "return", "exit": SystemExit(0), "code": SystemExit(3), "error": KeyError("child")}
    found = {name: launch_local(forks, how, peers=1, start="fork") for name, how in ends.items()}
    assert found == {"return": [0], "exit": [0], "code": [3], "error": [1]}


@pytest.mark.timeout(60)
def test_a_killed_peer_is_lost_and_the_others_go_on():
    results = launch_local(dies_as_first, peers=3, start="fork")
    assert results[1:] == ["2", "3"] and "peer 1 was ended by SIGKILL" in str(results[0])
    with pytest.raises(TradewindError, match="peer 1 was ended by SIGKILL"):
        launch_local(dies_as_first, peers=1, start="fork")
    with pytest.raises(TradewindError, match="peer 1 ended with exit code 3"):
        launch_local(leaves, 3, peers=1, start="fork")


@pytest.mark.timeout(60)
def test_a_peer_that_cannot_join_ends_the_wait_of_the_others_for_it():
    with pytest.raises(TradewindError, match="peer 2 returned, and could not .* waits for 2.*: another run"):
        launch_local(second_is_refused, 50, peers=2, start="fork")
    found = launch_local(second_is_refused, 0.1, peers=2, start="fork", settings={"wait_for": 1})
    assert found == [None, "caught"]


@pytest.mark.timeout(60)
def test_the_time_is_up():
    began = time.monotonic()
    with pytest.raises(TradewindError, match="the time is up, and no result came from peers 1, 2"):
        launch_local(sleeps, 50, peers=2, start="fork", timeout=1)
    assert time.monotonic() - began < 20


def test_a_run_that_is_over_is_closed_before_a_fork(fake_run):
    model = torch.nn.Linear(1, 1)
    run = fake_run(target_batch_size=1, rounds=1)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=1)
    run.start()
    with pytest.raises(MisuseError, match="a run is open in this process"):
        launch_local(exits, 0, peers=1, start="fork")
    model(torch.ones(1, 1)).backward()
    assert opt.step() and not fake_run.engines[0].closed
    assert launch_local(exits, 0, peers=1, start="fork") == [None] and fake_run.engines[0].closed


def test_what_is_wrong_is_told_before_a_process_begins(fake_run):
    for wrong in (0, 65, 2.0):
        with pytest.raises(SettingError, match=f"peers={wrong}.: expected a whole number from 1 to 64"):
            launch_local(sleeps, 1, peers=wrong)
    with pytest.raises(SettingError, match="spawn, forkserver or fork"):
        launch_local(sleeps, 1, start="clone")
    with pytest.raises(SettingError, match='did you mean "rounds"'):
        launch_local(sleeps, 1, settings={"round": 1})
    with pytest.raises(SettingError, match="join cannot be set here: launch_local"):
        launch_local(sleeps, 1, settings={"join": "127.0.0.1:5"})
    with pytest.raises(SettingError, match="wait_for=all: expected a whole number"):
        launch_local(sleeps, 1, start="fork", settings={"wait_for": "all"})
    with pytest.raises(MisuseError, match="fn='sleeps': expected a function"):
        launch_local("sleeps", 1, start="fork")
    with pytest.raises(MisuseError, match="timeout is 'long': expected one number"):
        launch_local(sleeps, 1, timeout="long")
    from models import mlp

    model = mlp()
    run = fake_run()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=1)
    run.start()
    with pytest.raises(MisuseError, match="a run is open"):
        launch_local(sleeps, 1, start="fork")


TYPED = """
import sys
sys.path[:0] = {path!r}
import tradewind
class Kept:
    pass
def train(*kept):
    return 7
for arguments, start in {calls}:
    try:
        print("RESULT", tradewind.launch_local(*arguments, peers=2, start=start, timeout=60))
    except tradewind.TradewindError as error:
        print("RESULT", type(error).__name__, error)
"""


def said(calls, file=None):
    """Of each call, by a program that is typed in, or in a file."""
    source = TYPED.format(path=sys.path[:1], calls=calls)
    if file is not None:
        file.write_text(source)
    done = subprocess.run(
        [sys.executable, "-" if file is None else str(file)],
        input=source,
        capture_output=True,
        text=True,
        timeout=90,
    )
    return [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]


def test_a_function_that_was_typed_in_has_to_stand_in_a_file_or_to_be_forked():
    calls = "((train,), 'spawn'), ((train, Kept()), 'forkserver'), ((print, Kept()), 'spawn')"
    *refused, forked = said(f"[{calls}, ((train,), 'fork')]")
    assert len(refused) == 3 and forked == "[7, 7]"
    for text in refused:
        assert text.startswith("MisuseError") and "was typed in" in text and 'start="fork"' in text, text


def test_what_cannot_be_pickled_is_named_before_a_process_begins():
    with pytest.raises(MisuseError, match=r"given \S*<lambda> .*top level of a file.*fork"):
        launch_local(lambda: 1, peers=2)
    with pytest.raises(MisuseError, match=r"given argument 2 \(.*lock\).*make it in the function"):
        launch_local(print, 1, threading.Lock(), peers=2)


def test_a_file_that_calls_it_without_a_guard_is_told_to_have_one(tmp_path):
    text = said("[((train,), 'spawn')]", tmp_path / "unguarded.py")[0]
    assert "before it found the function" in text and "__main__" in text, text


def test_a_machine_without_loopback_is_named():
    source = f"import sys; sys.path[:0] = {sys.path[:1]!r}; import tradewind.launch as l; l.free_port()"
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", source], capture_output=True, text=True, timeout=60
    )
    if "unshare failed" in done.stderr:
        pytest.skip("may not make a network namespace")
    assert done.returncode == 1 and "tradewind.errors.TradewindError: launch_local(): peers" in done.stderr
