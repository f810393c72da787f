# SPDX-License-Identifier: Apache-2.0
"""What the tests of launched runs share: a small run, the program, and waiting without guessing."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TW = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
TOY = os.environ.get("TRADEWIND_TOY", str(ROOT / "build/tests/toy"))  # tests/toy/toy.c
TW_WAN = os.environ.get("TRADEWIND_WAN", str(ROOT / "build/tw-wan"))
PATIENCE = 200  # seconds; a machine with other work must pass


def missing(*programs):
    """Why these programs cannot be used here; empty: they can. Servers lie in sbin."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    absent = [name for name in programs if shutil.which(name, path=path) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (packages-engines.txt)"
    return "needs root" if os.geteuid() != 0 else ""


def wait_for(holds, what, limit=PATIENCE, every=0.1):
    """The first true value of holds()."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = holds()
        if value:
            return value
        time.sleep(every)
    raise AssertionError(f"not within {limit} s: {what}")


class Run:
    """A run in a folder of its own, with the commands of a user."""

    def __init__(self, folder, batch=256, rounds=100_000, prefix=(), name="words"):
        self.folder, self.prefix, self.name, self.batch = Path(folder), list(prefix), name, batch
        (self.folder / "run.yaml").write_text(
            f"training: {{target_batch_size: {batch}, rounds: {rounds}, exact_batches: true}}\n"
            f"program: {{command: [{TOY}, --work-ms, '5']}}\n")
        self.state = self.folder / "state" / name
        self.both = False  # tw() returns both outputs

    def plan(self, groups, file="PLAN.yaml"):
        """groups: lines such as 'site: "onprem:eu", count: 2, purchase: spot'."""
        lines = [f"  - {{gpu: cpu, {group}}}" for group in groups]
        (self.folder / file).write_text("run: run.yaml\npeers:\n" + "\n".join(lines) + "\n")

    def tw(self, *words, code=0):
        done = subprocess.run([*self.prefix, TW, *words], cwd=self.folder, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == code, f"tw {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr if self.both else done.stdout

    def up(self, *words, plan="PLAN.yaml", code=0):
        return self.tw("up", plan, "--name", self.name, "--state", "state", *words, code=code)

    @contextlib.contextmanager
    def kept(self, *words):
        """Beside tw up --keep; what it said is in `said` afterwards."""
        command = [*self.prefix, TW, "up", "PLAN.yaml", "--name", self.name, "--state", "state", *words]
        keeper = subprocess.Popen([*command, "--keep", "--every", "2s"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            begun = iter(keeper.stdout.readline, "")
            assert any(line.startswith("watching ") for line in begun), "it ended at once"
            yield
        finally:
            keeper.send_signal(signal.SIGINT)
            self.said, _ = keeper.communicate(timeout=60)

    def down(self):
        return self.tw("down", self.name, "--state", "state")

    def status(self):
        return json.loads(self.tw("status", self.name, "--state", "state", "--json"))

    def peers(self):
        return {peer["peer"]: peer for peer in self.status()["peers"]}

    def states(self):
        return {number: peer["state"] for number, peer in self.peers().items()}

    def report(self):
        return json.loads(self.tw("report", str(self.state / "logs"), "--json"))

    def events(self, peer_id, phase):
        log = self.state / "logs" / f"events-{peer_id}.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        events = []
        for line in lines:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:  # its end is being written
                continue
            if event.get("phase") == phase:
                events.append(event)
        return events

    def contributes(self, peer_id, rounds=2):
        """It has given samples to so many committed rounds."""
        return sum(event.get("samples", 0) > 0 for event in self.events(peer_id, "commit")) >= rounds
