# SPDX-License-Identifier: Apache-2.0
"""Those who look at a run, many, slow or hostile, leave it alone.

Answers ray#60665 and hivemind#519: what shows a run must not be what disturbs it.
"""
import contextlib
import json
import os
import socket
import ssl
import statistics
import sys
import urllib.parse
from pathlib import Path

from launched import wait_for
from watch_bed import Crew, get

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from watching import window  # noqa: E402

CLIENTS, WINDOWS, WINDOW_S = 100, 5, 6
# bench/watching.py judges by 2 %; here a busy machine must not decide.
MOST_SLOWER = 0.15
MiB = 1 << 20


@contextlib.contextmanager
def crew_in(folder, **options):
    crew = Crew(folder, **options)
    try:
        yield crew
    finally:
        crew.end()


def test_a_hundred_followers_leave_the_run_as_fast_as_it_is(tmp_path):
    """Windows with and without them take turns. What windows of one kind differ by anyway is allowed."""
    busy = ("--values", "200000")  # it computes all the time, so whoever takes a core is seen
    with crew_in(tmp_path, options=busy) as crew:
        wait_for(lambda: json.loads(get(crew.url + "/board.json"))["round"] > 20, "the run is warm")
        speeds = {0: [], CLIENTS: []}
        for number in range(WINDOWS):
            for clients in sorted(speeds, reverse=number % 2 == 1):
                speeds[clients].append(window(crew, clients, WINDOW_S)["samples"])
    alone, watched = (statistics.median(speeds[clients]) for clients in (0, CLIENTS))
    quarters = statistics.quantiles(speeds[0], n=4)
    noise = (quarters[2] - quarters[0]) / alone
    assert watched > (1 - MOST_SLOWER - noise) * alone, speeds


class Door:
    """The server of a crew, as no browser would speak to it."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.port, self.sealed = parts.port, parts.scheme == "https"

    def open(self, receives=None):
        plain = socket.socket()
        plain.settimeout(20)
        if receives:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        plain.connect(("127.0.0.1", self.port))
        if not self.sealed:
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(plain)

    def request(self, path="/board.json", token="", host="", extra=""):
        head = f"GET {path} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{self.port}'}\r\n"
        head += f"Authorization: Bearer {token}\r\n" if token else ""
        return (head + extra + "\r\n").encode()

    def status(self, **request):
        """Of the answer; 0: cut off without one."""
        with self.open() as wire:
            try:
                wire.sendall(self.request(**request))
                answer = wire.recv(4096)
            except OSError:
                return 0
        return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def memory_of(pid):
    words = Path(f"/proc/{pid}/status").read_text().split()
    return 1024 * int(words[words.index("VmRSS:") + 1])


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_attacks_are_turned_away_while_rounds_go_on(tmp_path):
    with crew_in(tmp_path, watch="0.0.0.0:0") as crew:
        shows = crew.processes[0].pid
        door = Door(crew.url)
        observer = crew.run.tw("token", "myrun", "--role", "observer").split()[-1]
        crew.run.tw("init", "other")
        stranger = crew.run.tw("token", "other", "--role", "observer").split()[-1]

        def board():
            with door.open() as wire:
                wire.sendall(door.request(token=observer, extra="Connection: close\r\n"))
                text = b"".join(iter(lambda: wire.recv(1 << 16), b""))
            return json.loads(text.split(b"\r\n\r\n", 1)[1])

        wait_for(lambda: board()["round"] > 3, "rounds go on")
        before, memory, files = board()["round"], memory_of(shows), files_of(shows)
        assert door.status() == 401
        assert door.status(token="x" * 60) == 401
        assert door.status(token=stranger) == 401
        assert door.status(token=observer) == 200
        assert door.status(token=observer, host="evil.example") == 403
        assert door.status(token=observer, path="/../../etc/passwd") == 400
        assert door.status(token=observer, extra=f"X-Long: {'x' * MiB}\r\n") in (0, 400, 431)

        slow = [door.open(receives=4096) for _ in range(20)]
        for wire in slow:
            wire.sendall(door.request(path="/events", token=observer))
        wait_for(lambda: files_of(shows) >= files + 10, "they are let in")
        wait_for(lambda: files_of(shows) <= files + 5, "readers that read nothing are cut off", every=1)
        for wire in slow:
            wire.close()
        assert memory_of(shows) < memory + 64 * MiB
        wait_for(lambda: board()["round"] > before + 3, "rounds went on")
        assert all(process.poll() is None for process in crew.processes)
