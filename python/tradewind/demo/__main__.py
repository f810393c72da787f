# SPDX-License-Identifier: Apache-2.0
"""The story of the demo; peer.py is what is trained."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import List, Optional

from ..errors import NEEDS_TORCH

try:
    from ..launch import program
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    sys.exit(f"tradewind.demo: it {NEEDS_TORCH}")

_PEERS, _ROUNDS, _KILLED_IN, _JOINED_IN = 4, 110, 20, 30
_STORY = """\
{peers} processes on this machine train one model together, on handwritten digits that this package brings.
In round {killed} one of them is killed (SIGKILL), as a spot machine may be; the others go on without it.
In round {joined} another one starts; it gets the model from the others and takes part.
Watch them: {page}
"""


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def _open_later(page: str) -> None:
    """In a browser, once the first peer has loaded PyTorch and shows the run."""
    timer = threading.Timer(8, webbrowser.open, [page])
    timer.daemon = True
    timer.start()


def _judge(results: Path, folder: Path) -> int:
    """Says how the peers ended. Exit code."""
    found = sorted(file.read_text().split() for file in results.iterdir())
    digests = {digest for digest, _ in found}
    if len(found) != _PEERS or len(digests) != 1:
        print(f"tradewind.demo: {len(found)} peers of {_PEERS} ended, with the parameters {sorted(digests)}: see {folder}")
        return 1
    print(
        f"\n{_PEERS} peers ended, the late one too, with identical parameters (SHA-256 {found[0][0]}...).\n"
        f"They get {found[0][1]} of 297 digits right that they never saw. The same table again: {program()} report {folder}"
    )
    return 0


def main(words: Optional[List[str]] = None) -> int:
    """Exit code: 0; 1 (the peers did not end alike); 2 (wrong usage, or no `tw`)."""
    parser = argparse.ArgumentParser(prog="python -m tradewind.demo", description="Trains digits in four processes.")
    parser.add_argument("--no-open", action="store_true", help="leave the browser alone")
    arguments = parser.parse_args(words)
    tw = program()
    if tw is None:
        print("tradewind.demo: `tw` was not found: install a wheel that has it, or name it in TRADEWIND_PROGRAM")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="tradewind-demo-"))
    results = folder / "results"
    results.mkdir()
    page = f"http://127.0.0.1:{_free_port()}/"
    print(_STORY.format(peers=_PEERS, killed=_KILLED_IN, joined=_JOINED_IN, page=page), flush=True)
    if not arguments.no_open:
        _open_later(page)
    command = [tw, "run", "--peers", str(_PEERS), "--wait-for", str(_PEERS), "--out", str(folder)]
    command += ["--kill", f"2@{_KILLED_IN}", "--join", str(_JOINED_IN), "--watch", page[len("http://") : -1]]
    for setting in (f"training.rounds={_ROUNDS}", "training.target_batch_size=256"):
        command += ["--set", setting]
    environment = {**os.environ, "TRADEWIND_DEMO_RESULTS": str(results)}
    code = subprocess.run([*command, "--", sys.executable, "-m", "tradewind.demo.peer"], env=environment).returncode
    return code or _judge(results, folder)


if __name__ == "__main__":
    sys.exit(main())
