# SPDX-License-Identifier: Apache-2.0
"""What it costs to be watched: samples/s of four peers on this machine, in turns with and without viewers.

    python3 bench/watching.py --clients 100 --windows 6 --seconds 20
    python3 bench/watching.py --idle --seconds 20

One run; windows of 0 and of so many viewers of one peer's /events follow each other. For each kind the
medians of the windows: samples/s, CPU seconds a second of the peer that shows the run, how much more that is
than the mean of the other three, and bytes a second to the viewers. The viewers are one process, whose CPU
time is told too: on a small machine it is taken from the peers. --idle tells the bytes that peers send to
each other while they wait for one more, so none works: what they tell of themselves once a second, and
whatever keeps the links alive (by ss, payload of TCP with TLS records).
"""
import argparse
import json
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/engines"))
from launched import wait_for  # noqa: E402
from watch_bed import Crew, get  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def follow(host, port, clients, counter):
    """The viewers: a process of its own, which counts bytes in shared memory until it is killed."""
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        viewer = socket.create_connection((host, port))
        viewer.sendall(f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        selector.register(viewer, selectors.EVENT_READ)
    total = 0
    while True:
        for key, _ in selector.select():
            total += len(key.fileobj.recv(1 << 16))
        counter.seek(0)
        counter.write(f"{total:20d}".encode())
        counter.flush()


class Viewers:
    def __init__(self, url, clients, folder):
        self.path = Path(folder) / "bytes"
        self.path.write_text(f"{0:20d}")
        self.pid = None
        if clients == 0:
            return
        host, port = url[len("http://"):].split(":")
        self.pid = os.fork()
        if self.pid == 0:
            with open(self.path, "r+b") as counter:
                follow(host, int(port), clients, counter)

    def state(self):
        return int(self.path.read_text()), cpu_seconds(self.pid) if self.pid else 0.0

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def snapshot(crew, viewers):
    pids = [process.pid for process in crew.processes]
    sent, viewers_cpu = viewers.state()
    board = json.loads(get(crew.url + "/board.json"))
    return {"at": time.monotonic(), "samples": board["samples"], "shown": cpu_seconds(pids[0]),
            "others": statistics.mean(map(cpu_seconds, pids[1:])), "bytes": sent, "viewers": viewers_cpu}


def window(crew, clients, seconds):
    viewers = Viewers(crew.url, clients, crew.folder)
    try:
        time.sleep(3)  # they connect, and the speed settles
        before = snapshot(crew, viewers)
        time.sleep(seconds)
        after = snapshot(crew, viewers)
    finally:
        viewers.end()
    took = after["at"] - before["at"]
    rates = {key: (after[key] - before[key]) / took for key in before if key != "at"}
    return {**rates, "more": rates["shown"] - rates["others"]}


def sent_bytes(pids):
    """Of all connections between these processes, so far."""
    words = ["ss", "-Htinp", "state", "established"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    owned = [line for line in listed.replace("\n\t", " ").splitlines()
             if any(f"pid={pid}," in line for pid in pids)]
    return len(owned), sum(int(found[1]) for line in owned if (found := re.search(r"bytes_sent:(\d+)", line)))


def idle(seconds):
    for peers in (2, 4, 8):
        with tempfile.TemporaryDirectory() as folder:
            crew = Crew(folder, peers=peers, awaited=peers + 1)
            try:
                wait_for(lambda: crew.said(1, rf"({peers} of {peers + 1}) are here"), "all but one are here")
                time.sleep(5)
                pids = [process.pid for process in crew.processes]
                before, began = sent_bytes(pids), time.monotonic()
                time.sleep(seconds)
                after, took = sent_bytes(pids), time.monotonic() - began
            finally:
                crew.end()
        assert before[0] == after[0], "the same connections"
        rate = (after[1] - before[1]) / took
        print(f"{peers} idle peers, {after[0] // 2} connections: each sends {rate / peers:.0f} bytes/s, "
              f"{rate / peers / (peers - 1):.0f} to each other")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--windows", type=int, default=6, help="of each kind")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--idle", action="store_true", help="bytes between peers that wait")
    arguments = parser.parse_args()
    if arguments.idle:
        return idle(arguments.seconds)
    with tempfile.TemporaryDirectory() as folder:
        crew = Crew(folder, options=("--values", "200000"))  # busy all the time
        try:
            wait_for(lambda: json.loads(get(crew.url + "/board.json"))["round"] > 20, "the run is warm")
            results = {0: [], arguments.clients: []}
            for number in range(arguments.windows):
                for clients in sorted(results, reverse=number % 2 == 1):
                    results[clients].append(window(crew, clients, arguments.seconds))
            event = len(get(crew.url + "/board.json"))
        finally:
            crew.end()
    print(f"{'viewers':>8} {'samples/s':>10} {'CPU of the peer':>16} {'more than others':>17} "
          f"{'CPU of viewers':>15} {'MB/s':>7}")
    for clients, windows in results.items():
        middle = {key: statistics.median(one[key] for one in windows) for key in windows[0]}
        print(f"{clients:>8} {middle['samples']:>10.1f} {middle['shown']:>16.3f} {middle['more']:>17.3f} "
              f"{middle['viewers']:>15.3f} {middle['bytes'] / 1e6:>7.2f}")
    speeds = [statistics.median(one["samples"] for one in windows) for windows in results.values()]
    spread = [f"{min(w['samples'] for w in one):.0f} to {max(w['samples'] for w in one):.0f}"
              for one in results.values()]
    change = 100 * (speeds[1] / speeds[0] - 1)
    print(f"samples/s with viewers: {change:+.1f} %; windows: {' and '.join(spread)}")
    print(f"a board: {event / 1e3:.1f} kB; load of the machine at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
