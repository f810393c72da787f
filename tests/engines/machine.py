# SPDX-License-Identifier: Apache-2.0
"""A machine of a cloud for tests: a network namespace with a metadata service at the real address, and
peers.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
TOY = os.environ.get("TRADEWIND_TOY", str(ROOT / "build/tests/toy"))  # tests/toy/toy.c
BATCH = 128
PATIENCE_S = 90


def why_not():
    """What is missing for these tests; empty: nothing."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "needs root and iproute2 for network namespaces"
    if not Path(PROGRAM).exists():
        return f"{PROGRAM} is not built (make program)"
    probe = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    return "" if probe.returncode == 0 else "no network namespaces here"


def wait_until(holds, what, limit_s=PATIENCE_S):
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        time.sleep(0.02)


def soon(seconds, form="%Y-%m-%dT%H:%M:%SZ"):
    """The time by the calendar, in UTC, so many seconds from now."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime(form)


class Peer:
    """One `tw run` of a machine, with the toy program."""

    def __init__(self, machine, number, words, enter=(), **environment):
        self.log = machine.folder / "out" / f"events-{number}.jsonl"
        self.printed = machine.folder / f"peer-{number}.txt"
        with open(self.printed, "w") as out:
            self.process = subprocess.Popen(
                [*machine.enter, *enter, PROGRAM, "run", str(machine.run), "--id", str(number)]
                + ["--out", str(machine.folder / "out"), "--insecure", *words, "--", TOY, "--work-ms", "5"],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )

    def events(self, phase):
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]
        return [line for line in lines if line["phase"] == phase]

    def round(self):
        return max((event["round"] for event in self.events("commit")), default=0)

    def wait_for_round(self, number):
        wait_until(lambda: self.round() >= number, f"round {number}: {self.output()}")

    def output(self):
        return self.printed.read_text()

    def exit_code(self, limit_s=PATIENCE_S):
        return self.process.wait(limit_s)

    def send(self, number):
        self.process.send_signal(number)


class Machine:
    """A network namespace of its own; all of it ends with it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = f"tw-vm-{os.getpid()}-{random.randrange(1 << 30)}"
        self.enter = ["ip", "netns", "exec", self.name]
        self.run = self.folder / "run.yaml"
        self.started = []
        self.service = None
        self.run.write_text(f"training: {{target_batch_size: {BATCH}, rounds: 100000, codec: fp32}}\n")

    def __enter__(self):
        settings = Path("/etc/netns") / self.name
        settings.mkdir(parents=True)
        (settings / "hosts").write_text("127.0.0.1 localhost\n169.254.169.254 metadata.google.internal\n")
        for words in (
            ["ip", "netns", "add", self.name],
            ["ip", "-n", self.name, "link", "set", "lo", "up"],
            ["ip", "-n", self.name, "addr", "add", "169.254.169.254/32", "dev", "lo"],
        ):
            subprocess.run(words, check=True)
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=False)
        shutil.rmtree(Path("/etc/netns") / self.name, ignore_errors=True)

    def start(self, words):
        """A process of this machine, which reads stdin and prints `ready` when it is."""
        process = subprocess.Popen(
            [*self.enter, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def start_service(self, cloud, *more):
        script = Path(__file__).with_name("imds.py")
        log = str(self.folder / "asked")
        self.service = self.start([sys.executable, str(script), cloud, "--log", log, *more])
        assert self.service.stdout.readline() == "ready\n"

    def say(self, path, document=None):
        """The service has this document from now on."""
        text = path if document is None else f"{path} {document}"
        self.service.stdin.write(text + "\n")
        self.service.stdin.flush()
        assert self.service.stdout.readline() == "done\n"

    def asked(self):
        """The requests that the service got."""
        log = self.folder / "asked"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def peer(self, number, *words, enter=(), **environment):
        peer = Peer(self, number, words, enter, **environment)
        self.started.append(peer.process)
        return peer

    def crew(self, *words, **more):
        """Two peers that nothing happens to, and a third with these options; all take part."""
        first = self.peer(1, "--wait-for", "3", "--notices", "signal")
        wait_until(lambda: first.events("start"), f"the first peer starts: {first.output()}")
        address = first.events("start")[0]["address"]
        second = self.peer(2, "--join", address, "--notices", "signal")
        third = self.peer(3, "--join", address, *words, **more)
        third.wait_for_round(2)
        return first, second, third

    def summary(self):
        words = [PROGRAM, "report", str(self.folder / "out"), "--json"]
        return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def expect_the_run_goes_on(machine, first, second, third):
    """The third has left; the others go on, and all samples of all rounds count once."""
    then = first.round()
    first.wait_for_round(then + 2)
    for peer in (second, first):
        peer.send(signal.SIGTERM)
        assert peer.exit_code() == 75, peer.output()
    summary = machine.summary()
    assert summary["identical"], summary.get("difference")
    assert summary["samples"] == BATCH * summary["rounds"]
    assert not summary["lost"], summary["lost"]
    for peer in (first, second, third):
        assert not peer.events("reissue"), peer.events("reissue")
