# SPDX-License-Identifier: Apache-2.0
"""The story of the demo; peer.py is what is trained."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from typing import Dict, List, Optional

from ..errors import NEEDS_TORCH
from ..program import free_port, program

_PEERS, _ROUNDS, _KILLED_IN, _JOINED_IN = 4, 90, 20, 30
_PEER = [sys.executable, "-m", "tradewind.demo.peer"]
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_QUIET = "ignore:Failed to initialize NumPy"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy serves this machine's pages
_STORY = """\
{peers} processes ("peers") on this machine train one model together, on pictures of digits that this package brings.
In round {killed} process 2 is killed (SIGKILL), as a spot machine may be. The others go on without it.
In round {joined} process 5 is started. It gets the model from the others and takes part.
Watch them in a browser: {page}
A line with [1] is from process 1, one with tw: from the program that starts and kills them. Ctrl-C ends all.
"""


def _has_torch() -> bool:
    """Importing it here would take seconds before the first line."""
    try:
        return importlib.util.find_spec("torch") is not None
    except ValueError:  # sys.modules names none
        return False


def _has_display() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open_page(page: str) -> None:
    """In a browser, as soon as the first process has loaded PyTorch and serves it."""
    for _ in range(120):
        with contextlib.suppress(OSError), _DIRECT.open(page, timeout=1):
            webbrowser.open(page)
            return
        time.sleep(0.5)


def _run(command: List[str], environment: Dict[str, str], report: Path) -> int:
    """Shows what the processes print, and keeps the table with which `tw run` ends in `report`. Exit code."""
    libc, demo = ctypes.CDLL(None), os.getpid()

    def end_with_demo() -> None:  # tw run does the same for its processes
        libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != demo:
            os._exit(1)

    crew = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=end_with_demo,
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda received, _: crew.send_signal(received))
    assert crew.stdout is not None
    with report.open("w") as rest:
        for line in crew.stdout:
            print(line, end="", flush=True, file=None if line.startswith("[") else rest)
    return crew.wait()


def _judge(results: Path, folder: Path) -> int:
    """Says how the processes ended. Exit code."""
    found = sorted(file.read_text().split() for file in results.iterdir())
    digests = {digest for digest, _ in found}
    if len(found) != _PEERS or len(digests) != 1:
        print(
            f"tradewind.demo: {len(found)} processes of {_PEERS} ended, with the parameters {sorted(digests)}:"
            f" see {folder}"
        )
        return 1
    print(
        f"\n{_PEERS} processes ended, the late one too, with identical parameters (SHA-256 {found[0][0]}...).\n"
        f"The model reads {found[0][1]} of 297 digits right that it never saw.\n"
        f"What the run lost and sent: {program()} report {folder}\n"
        f"Its page again: {program()} watch {folder} --open"
    )
    return 0


def main(words: Optional[List[str]] = None) -> int:
    """Exit code: 0; 1 (no PyTorch, or their parameters differ); 2 (wrong usage, or no `tw`);
    130 (Ctrl-C); 75 (SIGTERM, or the terminal is closed)."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tradewind.demo", description="Trains digits in four processes."
    )
    parser.add_argument("--no-open", action="store_true", help="leave the browser alone")
    arguments = parser.parse_args(words)
    if not _has_torch():
        print(f"tradewind.demo: it {NEEDS_TORCH}", file=sys.stderr)
        return 1
    tw = program()
    if tw is None:
        print(
            "tradewind.demo: `tw` was not found: install a wheel that has it, or name it in TRADEWIND_PROGRAM"
        )
        return 2
    folder = Path(tempfile.mkdtemp(prefix="tradewind-demo-"))
    results = folder / "results"
    results.mkdir()
    page = f"http://127.0.0.1:{free_port()}/"
    print(_STORY.format(peers=_PEERS, killed=_KILLED_IN, joined=_JOINED_IN, page=page), flush=True)
    if _has_display() and not arguments.no_open:
        threading.Thread(target=_open_page, args=[page], daemon=True).start()
    command = [
        tw,
        "run",
        "--peers",
        str(_PEERS),
        "--wait-for",
        str(_PEERS),
        "--out",
        str(folder),
        "--progress",
        "off",
    ]
    command += ["--kill", f"2@{_KILLED_IN}", "--join", str(_JOINED_IN), "--watch", page[len("http://") : -1]]
    for setting in (f"training.rounds={_ROUNDS}", "training.target_batch_size=256"):
        command += ["--set", setting]
    environment = {
        **os.environ,
        "TRADEWIND_DEMO_RESULTS": str(results),
        "TRADEWIND_DEMO_ROUNDS": str(_ROUNDS),
        # PyTorch says it in each process where NumPy is not installed, and the demo needs none.
        "PYTHONWARNINGS": ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _QUIET])),
    }
    code = _run([*command, "--", *_PEER], environment, folder / "report.txt")
    if code in (75, 130):
        print(f"tradewind.demo: stopped before the end. What it did until then: {tw} report {folder}")
    elif code:
        print(f"{(folder / 'report.txt').read_text()}tradewind.demo: the processes failed: see {folder}")
    return code or _judge(results, folder)


if __name__ == "__main__":
    sys.exit(main())
