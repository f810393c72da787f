#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees that a bed does what it says, also after its box was killed, and that it leaves nothing.

usage: bench/wan/check.py build/tw-wan        exit code 77: skipped, no root or no /dev/net/tun

Bounds on time are wide: a machine with other work must pass. bench/wan/measure.py is exact.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
BED = """
about: a bed for its own check
sites:
  - {name: a, hosts: 2, nic: 400mbit}
  - {name: b, nic: 400mbit}
links:
  - {rtt: 40ms, bandwidth: 100mbit}
"""

ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 5000))
while True: s.sendto(*s.recvfrom(2048))
"""
PING = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3); best = None
for i in range(int(sys.argv[2])):
    began = time.monotonic(); s.sendto(b"%d" % i, (sys.argv[1], 5000))
    try:
        while s.recv(2048) != b"%d" % i: pass
        took = time.monotonic() - began
        best = took if best is None else min(best, took)
    except (socket.timeout, ConnectionError): pass
print("none" if best is None else best * 1e3)
"""
SINK = """
import socket, time
l = socket.create_server(("", 5001)); print("listening", flush=True)
c, _ = l.accept()
began = time.monotonic()
while time.monotonic() - began < 1: c.recv(1 << 20)
c.setblocking(False)
try:
    while c.recv(1 << 20): pass  # what waited in buffers
except BlockingIOError: pass
c.setblocking(True)
warm = time.monotonic(); n = 0
while data := c.recv(1 << 20): n += len(data)
print(n * 8 / (time.monotonic() - warm) / 1e6)
"""
SOURCE = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 5001)); end = time.monotonic() + 3
while time.monotonic() < end: s.sendall(bytes(1 << 16))
"""


class Bed:
    def __init__(self, program, name, folder):
        self.program, self.name = program, name
        self.file = Path(folder) / f"{name}.yaml"
        self.file.write_text(BED)

    def command(self, *words):
        return [self.program, str(self.file), *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60)

    def must(self, *words):
        done = self.run(*words)
        expect(done.returncode == 0, f"tw-wan {' '.join(words)[:60]}: {done.stderr.strip()}")
        return done.stdout

    def start(self, host, script, **more):
        return subprocess.Popen(self.command("exec", host, sys.executable, "-c", script), text=True, **more)

    def status(self):
        return json.loads(self.must("status", "--json"))

    def link(self, origin, end):
        return next(x for x in self.status()["links"] if (x["from"], x["to"]) == (origin, end))

    def ping_ms(self, host, target, count=20):
        answer = self.must("exec", host, sys.executable, "-c", PING, target, str(count)).strip()
        return None if answer == "none" else float(answer)

    def traces(self):
        """What of the bed is still there."""
        left = [str(p) for p in Path("/run/netns").glob(f"tw-wan.{self.name}.*")]
        left += [str(p) for p in Path("/run/tw-wan").glob(self.name)]
        return left + [x for x in command_lines() if str(self.file) in x]


def command_lines():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass  # it has just ended


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def expect_between(low, value, high, what):
    expect(value is not None and low <= value <= high, f"{what}: expected {low} to {high}, found {value}")
    print(f"{what}: {value:.2f}")


def wait_for(holds, what):
    end = time.monotonic() + 10
    while not holds():
        expect(time.monotonic() < end, f"waited 10 s for: {what}")
        time.sleep(0.02)


def check_delays(bed):
    wait_for(lambda: bed.ping_ms("a", "b", 1) is not None, "the echo on b")
    expect_between(39.8, bed.ping_ms("a", "b"), 43, "round trip a-1 to b in ms, of 40")
    echo = bed.start("a/2", ECHO)
    wait_for(lambda: bed.ping_ms("a/1", "a-2", 1) is not None, "the echo on a-2")
    expect_between(0.2, bed.ping_ms("a/1", "a-2"), 2, "round trip in the LAN in ms, of 0.3")
    return echo


def check_rate(bed):
    sink = bed.start("b", SINK, stdout=subprocess.PIPE)
    expect(sink.stdout.readline() == "listening\n", "the sink does not listen")
    bed.must("exec", "a-1", sys.executable, "-c", SOURCE, "b")
    expect_between(75, float(sink.communicate(timeout=30)[0]), 101, "rate a to b in Mbit/s, of 96.5 for TCP")


def check_changes(bed):
    bed.must("set", "a:b", "delay", "30ms")
    expect_between(59.8, bed.ping_ms("a", "b"), 63, "round trip in ms, of 60")
    bed.must("set", "a:b", "delay", "5ms", "--one-way")
    expect_between(34.8, bed.ping_ms("a", "b"), 38, "round trip in ms, of 35")
    bed.must("set", "a:all", "outage", "on")
    expect(bed.ping_ms("a", "b", 3) is None, "packets pass an outage")
    expect(bed.ping_ms("a", "a-2", 3) is not None, "an outage between sites reaches the LAN")
    expect(bed.link("a", "b")["lost"] >= 3, "packets lost in an outage are not counted")
    bed.must("set", "a:b", "outage", "off")
    expect(bed.ping_ms("a", "b", 5) is not None, "packets do not pass after an outage")
    bed.must("set", "a:b", "bandwidth", "20mbit")
    expect(bed.link("b", "a")["bit_s"] == 20e6, "the bandwidth does not change")


def check_complaints(bed):
    for words, part in [
        (("set", "a:b", "bandwidth", "fast"), "expected a rate"),
        (("set", "a:b", "speed", "1mbit"), "a link has bandwidth"),
        (("set", "a:c", "outage", "on"), "expected two sites"),
        (("exec", "c", "true"), "no such host"),
        (("exec", "a"), "expected a command"),
        (("up",), "is up already"),
    ]:
        done = bed.run(*words)
        expect(done.returncode != 0 and part in done.stderr, f"{words}: {done.stderr!r} lacks {part!r}")
    expect(bed.run("exec", "a", "sh", "-c", "exit 7").returncode == 7, "exec hides the command's exit code")


def check_life(bed, other):
    bed.must("up")
    echo = bed.start("b", ECHO)
    lan_echo = check_delays(bed)
    check_rate(bed)
    check_changes(bed)
    check_complaints(bed)

    other.must("up")
    os.kill(bed.status()["box"]["pid"], signal.SIGKILL)
    wait_for(lambda: bed.run("status").returncode != 0, "the end of the box")
    for words in (("status",), ("exec", "a-1", "true"), ("set", "a:b", "outage", "on")):
        expect("next: tw-wan" in bed.run(*words).stderr, f"{words}: a dead box is not told")
    up = bed.run("up")
    told = f"what was left of {bed.name}" in up.stderr
    expect(up.returncode == 0 and told, f"up after SIGKILL: {up.stderr}")
    expect(echo.wait(10) != 0 and lan_echo.wait(10) != 0, "commands of a dead bed live on")
    expect(len(other.status()["hosts"]) == 3, "the other bed did not survive")

    echo = bed.start("b", ECHO)
    wait_for(lambda: bed.ping_ms("a", "b", 1) is not None, "the echo on b, after up again")
    echo.send_signal(signal.SIGSTOP)
    bed.must("down")
    expect(echo.wait(10) != 0, "a stopped command outlives the bed")
    expect(bed.traces() == [], f"down leaves {bed.traces()}")
    os.kill(other.status()["box"]["pid"], signal.SIGKILL)
    other.must("down")
    expect(other.traces() == [], f"down after SIGKILL leaves {other.traces()}")
    expect(other.must("down") == "", "down of what is not up says something")


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("skipped: network namespaces with TUN devices need root and /dev/net/tun")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        beds = [Bed(sys.argv[1], f"check{i}-{os.getpid()}", folder) for i in (1, 2)]
        try:
            check_life(*beds)
        except AssertionError as failure:
            print(f"failed: {failure}")
            return 1
        finally:
            for bed in beds:
                bed.run("down")
    print("the bed is sound")
    return 0


if __name__ == "__main__":
    sys.exit(main())
