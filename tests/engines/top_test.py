# SPDX-License-Identifier: Apache-2.0
"""tw top in a real terminal (tmux), beside real peers that write their logs."""
import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest
from launched import PATIENCE, TOY, TW, missing, wait_for
from screen import Screen

ABSENT = missing("tmux", "stty").replace("needs root", "")
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)

RUN = "training: {target_batch_size: 128, rounds: 100000}\n"
PLAN = "peers:\n  - {gpu: cpu, site: 'onprem:eu', count: 2, purchase: on_demand, usd_per_h: 3.6}\n"


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    """The folder of two real peers that train as long as the tests last."""
    folder = tmp_path_factory.mktemp("top")
    (folder / "run.yaml").write_text(RUN)
    (folder / "plan.yaml").write_text(PLAN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "address").write_text(address)
    with open(folder / "local.txt", "w") as out:
        process = subprocess.Popen([TW, "run", "run.yaml", "--peers", "2", "--out", "out", "--insecure",
                                    "--watch", address, "--", TOY, "--work-ms", "10"],
                                   cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: re.match(r"run .*round [1-9]", once(folder)), "a round")
        yield folder
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()


def once(folder, *words, where="out"):
    done = subprocess.run([TW, "top", where, "--once", *words], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.stdout


@contextlib.contextmanager
def terminal(folder, width=80, height=24):
    screen = Screen(folder, width, height)
    try:
        yield screen
    finally:
        screen.close()


def process_of(screen):
    """The process id of the tw top that runs in the shell of this terminal."""
    shell = screen.ask("#{pane_pid}")

    def find():
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True).stdout.split()
        return int(found[0]) if found else None

    return wait_for(find, "tw top in the terminal")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_shows_round_peers_and_dollars(peers, size):
    with terminal(peers, *size) as screen:
        screen.run(f"{TW} top out --plan plan.yaml")
        shown = screen.wait("q quits")
        text = "\n".join(shown)
        first = int(re.search(r"round (\d+)", text)[1])
        assert first > 0
        assert re.search(r"2 peers: ", text), text
        assert re.search(r"\$\d+\.\d+ so far", text), text
        assert "$7.20/h" in text, text
        assert all(len(line) <= size[0] for line in shown)
        assert ("MEMORY" in text) == (size[0] == 200)
        title = next(line for line in shown if line.startswith("PEER "))
        rows = shown[shown.index(title) + 1:][:2]
        assert [row.split()[0] for row in rows] == ["1", "2"], text
        # It goes on by itself.
        wait_for(lambda: int(re.search(r"round (\d+)", "\n".join(screen.show()))[1]) > first, "a later round")


def test_a_resize_does_not_tear(peers):
    with terminal(peers) as screen:
        screen.run(f"{TW} top out")
        screen.wait("q quits")
        for width, height in [(132, 40), (60, 15), (80, 24)]:
            screen.resize(width, height)

            def whole():
                lines = screen.show()
                ends = len(lines) == height and lines[-1].startswith("q quits")
                titles = sum(line.startswith("PEER ") for line in lines)
                return lines if ends and lines[0].startswith("run ") and titles == 1 else None

            lines = wait_for(whole, f"a whole screen of {width} x {height}", limit=PATIENCE)
            assert sum("q quits" in line for line in lines) == 1
            assert sum(line.startswith("run ") for line in lines) == 1


def restored(screen, code):
    """The terminal is as the shell had it, and the program ended with this code."""
    lines = screen.wait(f"left with {code}")
    assert screen.ask("#{alternate_on} #{cursor_flag}") == "0 1"
    assert any(line.startswith("ready> echo before") for line in lines), lines
    assert not any(line.startswith("PEER ") for line in lines), lines
    screen.run("clear; stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo -e -icanon -e -echo | "
               "tr '\\n' ' '; echo END")
    screen.wait("END")
    assert wait_for(lambda: [line for line in screen.show() if line.split() in (["icanon", "echo", "END"],
                                                                                 ["echo", "icanon", "END"])],
                    "echo and whole lines: " + "\n".join(screen.show()), limit=PATIENCE)


@pytest.mark.parametrize("way, code", [("q", 0), ("C-c", 130), ("TERM", 130), ("ABRT", 134)])
def test_quitting_restores_the_terminal(peers, way, code):
    with terminal(peers) as screen:
        screen.run("echo before")
        screen.run(f"{TW} top out; echo left with $?")
        screen.wait("q quits")
        assert screen.ask("#{alternate_on} #{cursor_flag}") == "1 0"
        if way.isupper():
            os.kill(process_of(screen), getattr(signal, f"SIG{way}"))
        else:
            screen.key(way)
        restored(screen, code)


def test_a_stop_gives_the_terminal_back_until_it_goes_on(peers):
    with terminal(peers) as screen:
        screen.run(f"{TW} top out")
        screen.wait("q quits")
        screen.key("C-z")
        wait_for(lambda: screen.ask("#{alternate_on} #{cursor_flag}") == "0 1", "the shell's screen")
        screen.run("fg")
        screen.wait("q quits")
        assert screen.ask("#{alternate_on}") == "1"


def test_trouble_later_is_shown_and_the_last_board_stays(peers, tmp_path):
    (tmp_path / "out").mkdir()
    for log in (peers / "out").glob("events-*.jsonl"):
        whole = log.read_bytes()
        (tmp_path / "out" / log.name).write_bytes(whole[:whole.rfind(b"\n") + 1])
    with terminal(tmp_path) as screen:
        screen.run(f"{TW} top out")
        screen.wait("q quits")
        with open(tmp_path / "out" / "events-1.jsonl", "a") as log:
            log.write("{}\n")
        lines = screen.wait("shown: ")
        assert lines[0].startswith("run ") and "events-1.jsonl" in lines[-1], lines


def test_once_is_for_scripts(peers):
    text = once(peers, "--plan", "plan.yaml")
    assert "\x1b" not in text
    assert re.match(r"run [0-9a-f]{8}  round \d+", text), text
    assert re.search(r"^ +1 ", text, re.M) and re.search(r"^ +2 ", text, re.M), text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_shows_what_a_peer_with_watch_tells(peers):
    address = (peers / "address").read_text()
    text = once(peers, where=address)
    assert re.match(r"run [0-9a-f]{8}  round [1-9]", text) and "2 peers: " in text, text
    with terminal(peers) as screen:
        screen.run(f"{TW} top {address}")
        first = int(re.search(r"round (\d+)", "\n".join(screen.wait("q quits")))[1])
        wait_for(lambda: int(re.search(r"round (\d+)", "\n".join(screen.show()))[1]) > first, "a later round")


@pytest.mark.parametrize("words, code, message", [
    (["nowhere"], 2, "nowhere: expected a folder of event logs"),
    (["127.0.0.1:1"], 1, "127.0.0.1:1/board.json"),
    (["out"], 2, "--once prints once"),
])
def test_what_cannot_be_shown_is_one_line(peers, words, code, message):
    done = subprocess.run([TW, "top", *words], cwd=peers, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1 and message in done.stderr, done.stderr
