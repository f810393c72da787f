# SPDX-License-Identifier: Apache-2.0
"""Real peers for tests: processes with the engine, which report as they go and can be killed."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import tempfile
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional

# one_thread first: OpenBLAS looks once how many threads it has, which set_num_threads does not change.
# Beside other work on all cores its threads wait for each other, and a step takes seconds instead of
# milliseconds.
PRELOADED = ["one_thread", "torch", "numpy", "tradewind"]
# The first optimizer of PyTorch 2 loads it, which takes seconds.
PRELOADED += ["torch._dynamo"] if importlib.metadata.version("torch") >= "2" else []
PRELOADED += ["models", "loops", "troubles", "sleepers", "evaluators"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def context() -> Any:
    """Processes begin at a server that has torch loaded: clean, and in milliseconds."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(PRELOADED)
    return found


def child(
    connection: Any,
    place: str,
    environment: Dict[str, str],
    fn: Callable[..., Any],
    arguments: Dict[str, Any],
) -> None:
    import torch

    os.chdir(place)
    os.environ.update(environment)
    torch.set_num_threads(1)

    def report(**what: Any) -> None:
        connection.send_bytes(json.dumps({"at": time.monotonic(), **what}).encode())

    try:
        report(what="result", result=fn(report, **arguments))
    except BaseException as error:
        report(what="error", kind=type(error).__name__, text=str(error), trace=traceback.format_exc())
        raise SystemExit(1)


class Peer:
    """A process, and all that it reported (dicts with `at`, monotonic seconds)."""

    def __init__(self, number: int, process: Any, connection: Any, crew: Crew) -> None:
        self.number, self.process, self.connection, self.crew = number, process, connection, crew
        self.reports: List[Dict[str, Any]] = []

    def read(self, limit_s: float) -> bool:
        """Takes what all reported (a full pipe would hold them up); False: nothing came from this one."""
        known = len(self.reports)
        self.crew.drain(limit_s)
        return len(self.reports) > known

    def take(self) -> bool:
        """Takes one report that is there."""
        try:
            self.reports.append(json.loads(self.connection.recv_bytes()))
            return True
        except (EOFError, OSError):
            self.connection = None
            return False

    def until(self, wanted: Callable[[Dict[str, Any]], bool], limit_s: float = 60) -> Dict[str, Any]:
        """The first report that is wanted."""
        seen, end = 0, time.monotonic() + limit_s
        while True:
            for report in self.reports[seen:]:
                if wanted(report):
                    return report
                if report.get("what") == "error":
                    raise AssertionError(f"peer {self.number}: {report['trace']}")
            seen = len(self.reports)
            if time.monotonic() > end or (not self.read(0.2) and self.connection is None):
                raise AssertionError(f"peer {self.number} did not report it; last: {self.reports[-3:]}")

    def until_round(self, round_: int, limit_s: float = 60) -> Dict[str, Any]:
        return self.until(
            lambda report: report.get("what") == "commit" and report["round"] >= round_, limit_s
        )

    def result(self, limit_s: float = 60) -> Any:
        return self.until(lambda report: report.get("what") == "result", limit_s)["result"]

    def error(self, limit_s: float = 60) -> Dict[str, Any]:
        """What it raised."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            for report in self.reports:
                if report.get("what") == "error":
                    return report
            self.read(0.2)
        raise AssertionError(f"peer {self.number} raised nothing; last: {self.reports[-3:]}")

    def all(self, what: str) -> List[Dict[str, Any]]:
        while self.read(0):
            pass
        return [report for report in self.reports if report.get("what") == what]

    def kill(self, number: int = signal.SIGKILL) -> float:
        """Sends a signal; when."""
        os.kill(self.process.pid, number)
        return time.monotonic()


class Crew:
    """Peers of one run on this machine, without TLS."""

    def __init__(self, **settings: Any) -> None:
        self.port = free_port()
        self.settings = settings
        self.peers: List[Peer] = []
        self.out = ""  # folder of event logs
        self.place = tempfile.TemporaryDirectory()  # where they work

    def usual(self, number: int, first: bool, wait_for: int) -> Dict[str, str]:
        """The environment of a peer."""
        return {
            "TRADEWIND_INSECURE": "1",
            "TRADEWIND_PROGRESS": "off",
            "TRADEWIND_ID": str(number),
            "TRADEWIND_SET": ";".join(f"{key}={value}" for key, value in self.settings.items()),
            "TRADEWIND_WAIT_FOR": str(wait_for),
            **({"TRADEWIND_OUT": str(self.out)} if self.out else {}),
            "TRADEWIND_LISTEN" if first else "TRADEWIND_JOIN": f"127.0.0.1:{self.port}",
        }

    def start(
        self,
        fn: Callable[..., Any],
        wait_for: int = 1,
        found: Optional[bool] = None,
        environment: Optional[Dict[str, str]] = None,
        **arguments: Any,
    ) -> Peer:
        """One more peer, which runs fn(report, **arguments).

        found: it is the first one, which others join. environment: instead of that of the crew.
        """
        number = len(self.peers) + 1
        usual = self.usual(number, not self.peers if found is None else found, wait_for)
        ours, theirs = context().Pipe(duplex=False)
        process = context().Process(
            target=child,
            args=(theirs, self.place.name, usual if environment is None else environment, fn, arguments),
        )
        process.start()
        theirs.close()
        self.peers.append(Peer(number, process, ours, self))
        return self.peers[-1]

    def drain(self, limit_s: float) -> None:
        """Takes what all peers reported; waits for something, so long."""
        alive = {peer.connection: peer for peer in self.peers if peer.connection is not None}
        for connection in multiprocessing.connection.wait(list(alive), limit_s):
            peer = alive[connection]
            while peer.connection is not None and peer.connection.poll(0):
                peer.take()

    def end(self) -> None:
        for peer in self.peers:
            if peer.process.is_alive():
                peer.process.kill()
            peer.process.join()
        self.place.cleanup()


@contextlib.contextmanager
def crew_of(**settings: Any) -> Iterator[Crew]:
    crew = Crew(**settings)
    try:
        yield crew
    finally:
        crew.end()
