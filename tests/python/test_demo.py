# SPDX-License-Identifier: Apache-2.0
"""python -m tradewind.demo: the whole story, and what it says when peers end unlike each other."""

import contextlib
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import needs_engine
from test_folders import wait_until
from tradewind.demo import __main__ as demo
from tradewind.demo.__main__ import _judge, program
from tradewind.demo.peer import Pace, digits, line_of

COMMAND = [sys.executable, "-m", "tradewind.demo", "--no-open"]


@pytest.fixture
def needs_tw():
    if program() is None:
        pytest.skip("tw is not built (make)")


@pytest.fixture
def environment(tmp_path):
    """A folder that goes with the test, and no NumPy: pip does not install it with PyTorch."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['numpy'] = None\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": path}


def test_the_digits_are_whole():
    pictures, answers = digits()
    assert pictures.shape == (1797, 64) and pictures.max() == 1
    assert answers.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_peers_that_end_unlike_each_other_are_named(tmp_path, capsys):
    for number, digest in enumerate(("aa", "aa", "aa", "bb")):
        (tmp_path / str(number)).write_text(f"{digest} 90%")
    assert _judge(tmp_path, tmp_path) == 1
    assert "['aa', 'bb']" in capsys.readouterr().out


def test_one_line_each_for_what_a_stranger_should_see(monkeypatch):
    monkeypatch.setenv("TRADEWIND_DEMO_ROUNDS", "9")
    commit = {"phase": "commit", "round": 1, "peers": [1, 2], "loss": 2.5}
    assert line_of(commit) == "round 1 of 9: 2 processes made the same update; error (loss) 2.500"
    assert line_of({"phase": "lost", "round": 3, "about": 2}).startswith("round 3: process 2 is gone")
    assert line_of({"phase": "join", "round": 1, "about": 2}) is None  # of the beginning
    assert line_of({**commit, "round": 2}) is None


def test_the_others_slow_down_for_a_late_process_that_still_loads():
    pace = Pace(rounds=90)
    usual = pace.work_s

    def hear(number, *peers):
        return pace.hear({"phase": "commit", "round": number, "peers": list(peers)})

    assert hear(69, 1, 3, 4) is None and pace.work_s == usual
    assert "still loads PyTorch" in hear(70, 1, 3, 4) and pace.work_s > 5 * usual
    assert hear(71, 1, 3, 4) is None and pace.work_s > 5 * usual
    assert hear(72, 1, 3, 4, 5) is None and pace.work_s == usual


def test_the_story_begins_before_pytorch_is_loaded():
    code = "import sys, tradewind.demo.__main__; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_without_pytorch_one_line_says_what_to_install():
    run = "runpy.run_module('tradewind.demo', run_name='__main__')"
    code = f"import runpy, sys; sys.modules['torch'] = None; {run}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1 and found.stderr.splitlines() == [found.stderr.strip()], found.stderr
    assert "which is not installed: pip install torch" in found.stderr


def test_no_browser_is_looked_for_without_a_display(monkeypatch):
    for name, value in (("DISPLAY", ""), ("WAYLAND_DISPLAY", "")):
        monkeypatch.setenv(name, value)
    assert not demo._has_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert demo._has_display()


@needs_engine
def test_four_peers_train_one_is_killed_another_joins_and_all_end_alike(needs_tw, environment):
    found = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=110)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "process 2 is killed" in found.stderr and "process 5 is started" in found.stderr, found.stderr
    assert "4 processes ended, the late one too, with identical parameters" in found.stdout
    assert re.search(r"^\[1\] round \d+: process 5 has the model", found.stdout, re.M), found.stdout
    assert "granularity" not in found.stdout  # the table of tw report is in its folder


@needs_engine
def test_ctrl_c_ends_all_processes_with_one_line(needs_tw, environment):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    crew = subprocess.Popen(COMMAND, env=environment, text=True, **pipes)
    shown = []
    for line in crew.stdout:
        shown.append(line)
        if line.startswith("[1] round 1 "):
            crew.send_signal(signal.SIGINT)
    assert crew.wait(timeout=60) == 130, shown
    assert "stopped before the end" in shown[-1] and not any("Traceback" in line for line in shown), shown


def _lives(folder):
    """Processes that name the folder among their variables, as all of a demo do."""
    found = []
    for variables in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"TRADEWIND_DEMO_RESULTS={folder}/".encode() in variables.read_bytes():
                found.append(variables.parent.name)
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 75), (signal.SIGKILL, -signal.SIGKILL)])
@needs_engine
def test_nothing_of_it_lives_on_when_its_terminal_is_closed_or_it_is_killed(
    needs_tw, environment, tmp_path, number, code
):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    demo_itself = subprocess.Popen(COMMAND, env=environment, text=True, start_new_session=True, **pipes)
    while "Watch them" not in demo_itself.stdout.readline():
        pass
    wait_until(lambda: len(_lives(tmp_path)) > 2)  # the demo follows what it has started
    os.killpg(demo_itself.pid, number)
    assert demo_itself.wait(timeout=60) == code
    wait_until(lambda: not _lives(tmp_path))


def test_the_page_opens_once_it_is_served(monkeypatch):
    opened = []
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not for this machine's pages
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    monkeypatch.setattr(demo.time, "sleep", lambda seconds: served.append(serve()) if not served else None)
    served = []
    port = demo.free_port()

    def serve():
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    demo._open_page(f"http://127.0.0.1:{port}/")
    served[0].shutdown()
    assert opened == [f"http://127.0.0.1:{port}/"]
