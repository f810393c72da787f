#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real peers of the Python package, disturbed all the while and judged in the end (docs/reliability.md).

    PYTHONPATH=build/python /usr/bin/python3 bench/python_soak.py 10 --mode sync

The argument: minutes. Peers 1 to 3 live to the end, one of them as a slow loop; others are killed, stopped,
replaced and told to leave. Every peer reads its samples with forked workers. The exit code is the verdict.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATASET, BATCH, TARGET, WIDTH = 960, 8, 96, 20_000
LONG_LIVED = (1, 2, 3)
SLOW = 3
OTHERS = 2
CALM_S = 45.0


class Samples:
    """Sample i: four numbers and i itself."""

    def __init__(self):
        import torch

        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(DATASET, 4, generator=generator)

    def __len__(self):
        return DATASET

    def __getitem__(self, index):
        time.sleep(0.001)
        return self.inputs[index], self.inputs[index].sum(), index


def peer(log):
    """One process: a loop over run.shard until it is told to leave. Writes what it handed in, and digests."""
    import torch
    import tradewind

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1))
    loader = torch.utils.data.DataLoader(
        Samples(), batch_size=BATCH, num_workers=2, multiprocessing_context="fork"
    )
    pause_s = 0.25 if int(os.environ["TRADEWIND_ID"]) == SLOW else 0.04
    with tradewind.join() as run, open(log, "a", buffering=1) as out:
        run.on_event(lambda event: out.write(told(event)))
        inner = torch.optim.AdamW(model.parameters(), lr=1e-5)
        opt = run.optimizer(model, inner, batch_size=BATCH)
        for inputs, targets, indices in run.shard(loader):
            opt.zero_grad()
            loss = (model(inputs)[:, 0] - targets).pow(2).mean()
            loss.backward()
            time.sleep(pause_s)
            order = run._life.loop.driver.order
            handed = {"round": order.round, "first": order.first, "indices": indices.tolist()}
            before = run.metrics["dropped"]
            opt.step(loss=loss)
            if run.metrics["dropped"] == before:
                out.write(json.dumps({"handed": handed}) + "\n")
    print("left", flush=True)


def told(event):
    """A line of the log for events that are judged."""
    keys = ("round", "digest", "samples", "samples_total")
    if event["phase"] not in ("apply", "commit"):
        return ""
    of = {key: event[key] for key in event if key.startswith("samples:")}
    return json.dumps({event["phase"]: {**{key: event.get(key) for key in keys}, "of": of}}) + "\n"


def numbers_in(text):
    """Of "0-15,64"."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def resident_mib(pid):
    """VmRSS without what is shared."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


class Crew:
    """Processes by number; a number is never used again."""

    def __init__(self, folder, mode):
        self.folder = folder
        self.mode = mode
        self.processes = {}
        self.ended = {}
        self.next = 1
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]

    def start(self):
        number, self.next = self.next, self.next + 1
        settings = f"target_batch_size={TARGET};rounds=1000000;training.mode={self.mode}"
        if self.is_exact():
            settings += ";exact_batches=true"
        environment = {
            **os.environ,
            "TRADEWIND_INSECURE": "1",
            "TRADEWIND_PROGRESS": "off",
            "TRADEWIND_ID": str(number),
            "TRADEWIND_OUT": str(self.folder / "events"),  # after a fault: tw report says who waited
            "TRADEWIND_SET": settings,
            "TRADEWIND_WAIT_FOR": str(len(LONG_LIVED)),
            "TRADEWIND_LISTEN" if number == 1 else "TRADEWIND_JOIN": f"127.0.0.1:{self.port}",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path[1:])),  # for the folder of the peers
        }
        command = [sys.executable, os.path.abspath(__file__), "--peer", str(self.log(number))]
        with open(self.folder / f"output-{number}", "w") as output:
            self.processes[number] = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        return number

    def is_exact(self):
        """Modes in which peers compute ahead have no exact batches."""
        return self.mode in ("sync", "local")

    def log(self, number):
        return self.folder / f"peer-{number}.jsonl"

    def look(self):
        """Moves those that ended to `ended`."""
        for number, process in list(self.processes.items()):
            if process.poll() is not None:
                self.ended[number] = self.processes.pop(number).returncode

    def lines(self, number):
        """What it wrote; the last line of a killed one may be half."""
        if not self.log(number).exists():
            return
        for line in self.log(number).read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                pass

    def round(self):
        """The newest one that peer 1 wrote."""
        with open(self.log(1), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4000))
            applied = [line for line in log.readlines()[1:] if b'"apply"' in line]
        return json.loads(applied[-1])["apply"]["round"] if applied else 0


class Soak:
    """What is done to the crew, and what was seen."""

    def __init__(self, crew, minutes, seed):
        self.crew = crew
        self.seconds = 60 * minutes
        self.random = random.Random(seed)
        self.done = collections.Counter()
        self.memory = {number: [] for number in LONG_LIVED}
        self.expected = {}  # number: exit code
        self.faults = []

    def run(self):
        crew = self.crew
        for _ in range(len(LONG_LIVED) + OTHERS):
            crew.start()
        self.until_round(3, 90)
        began, calm = time.monotonic(), time.monotonic() + CALM_S
        while time.monotonic() - began < self.seconds and not self.faults:
            time.sleep(self.random.uniform(1, 3))
            self.disturb()
            if time.monotonic() > calm:
                self.rest(time.monotonic() - began)
                calm = time.monotonic() + CALM_S
        self.rest(self.seconds)
        self.end()

    def others(self):
        self.crew.look()
        return [number for number in self.crew.processes if number not in LONG_LIVED]

    def disturb(self):
        others = self.others()
        kinds = ["stop", "stop long-lived"]
        if others:
            kinds += ["kill", "leave"]
        if len(others) < OTHERS:
            kinds += ["join"] * 3
        kind = self.random.choice(kinds)
        self.done[kind] += 1
        if kind == "join":
            self.crew.start()
        elif kind == "kill":
            self.signal(self.random.choice(others), signal.SIGKILL, -signal.SIGKILL)
        elif kind == "leave":
            self.signal(self.random.choice(others), signal.SIGTERM, None)
        else:
            self.stop(self.random.choice(others if kind == "stop" and others else LONG_LIVED))

    def signal(self, number, what, code):
        self.expected[number] = code
        self.crew.processes[number].send_signal(what)

    def stop(self, number):
        process = self.crew.processes[number]
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.choice([0.3, 1.0, 4.0]))
        process.send_signal(signal.SIGCONT)

    def until_round(self, round_, limit_s):
        end = time.monotonic() + limit_s
        while self.crew.log(1).exists() is False or self.crew.round() < round_:
            self.judge_ends()
            if time.monotonic() > end or self.faults:
                return self.faults.append(f"round {round_} did not come within {limit_s} s")
            time.sleep(0.2)

    def judge_ends(self):
        self.crew.look()
        for number, code in self.crew.ended.items():
            wanted = self.expected.get(number, "alive")
            if wanted == "alive" or (wanted is not None and code != wanted):
                output = (self.crew.folder / f"output-{number}").read_text()[-1500:]
                self.faults.append(f"peer {number} ended by itself with {code}:\n{output}")
                self.expected[number] = None

    def rest(self, at_s):
        """All go on for three rounds; then memory is noted."""
        self.until_round(self.crew.round() + 3, 60)
        for number in LONG_LIVED:
            if number in self.crew.processes:
                mib = resident_mib(self.crew.processes[number].pid)
                self.memory[number].append((at_s, mib))
        known = ", ".join(f"{self.memory[number][-1][1]:.1f}" for number in LONG_LIVED)
        done = ", ".join(f"{kind} {count}" for kind, count in sorted(self.done.items()))
        print(f"{at_s:5.0f} s  round {self.crew.round()}; {done}; MiB of 1 to 3: {known}", flush=True)

    def end(self):
        """All leave, one after the other; then the logs are judged."""
        for number in list(self.crew.processes):
            self.signal(number, signal.SIGTERM, None)
            try:
                self.crew.processes[number].wait(30)
            except subprocess.TimeoutExpired:
                self.faults.append(f"peer {number} did not leave within 30 s")
                self.crew.processes[number].kill()
        self.judge_ends()
        for number in range(1, self.crew.next):
            if "left" not in (self.crew.folder / f"output-{number}").read_text():
                if self.expected.get(number) != -signal.SIGKILL and self.crew.ended.get(number) != -15:
                    self.faults.append(f"peer {number} did not end in order")
        self.judge_history()
        self.judge_memory()

    def judge_history(self):
        """One set of parameters a round, records of each sample once, exact ones of the target batch."""
        digests, totals, samples = (collections.defaultdict(set) for _ in range(3))
        own, handed = {}, collections.defaultdict(lambda: collections.defaultdict(list))
        for number in range(1, self.crew.next):
            for line in self.crew.lines(number):
                if "apply" in line:
                    digests[line["apply"]["round"]].add(line["apply"]["digest"])
                elif "commit" in line:
                    commit = line["commit"]
                    totals[commit["round"]].add(commit["samples_total"])
                    samples[commit["round"]].add(tuple(sorted(commit["of"].items())))
                    own[commit["round"], number] = int(commit["samples"])
                else:
                    handed[line["handed"]["round"]][number] += line["handed"]["indices"]
        newest = max(totals, default=0)
        for round_, found in sorted(digests.items()):
            if len(found) != 1:
                self.faults.append(f"round {round_}: parameters {sorted(found)}")
        print(f"{newest} rounds, {len(digests)} sets of parameters compared")
        self.judge_records(samples)
        if not self.crew.is_exact():
            return
        for round_, found in sorted(totals.items()):
            if found != {round_ * TARGET}:
                self.faults.append(f"round {round_}: {sorted(found)} samples in all, not {round_ * TARGET}")
        self.judge_epochs(handed, own, newest)

    def judge_records(self, samples):
        """All logs have the same samples in a record, and records each sample once. What the last two leave
        over is in none.
        """
        counts = collections.Counter()
        for round_, found in sorted(samples.items()):
            if len(found) != 1:
                self.faults.append(f"round {round_}: samples {sorted(found)}")
            for _, text in next(iter(found)):
                counts.update(numbers_in(text))
        twice = [number for number, count in counts.items() if count > 1]
        end = max(counts, default=0)
        missing = [number for number in range(end - 4 * TARGET) if not counts[number]]
        if twice or missing:
            self.faults.append(f"records lack {len(missing)} samples and have {len(twice)} twice")
        print(f"{len(counts)} samples in records, {len(missing)} missing, {len(twice)} twice")

    def judge_epochs(self, handed, own, newest):
        """Samples of which a peer's own record says that they count: each once. Others are not known of peers
        that were killed, or stopped until others had decided without them.
        """
        rounds, epochs, whole = DATASET // TARGET, 0, 0
        killed = sum(code == -signal.SIGKILL for code in self.crew.ended.values())
        for first in range(1, newest - rounds + 1, rounds):
            counts, unknown = collections.Counter(), set()
            for round_ in range(first, first + rounds):
                for number, indices in handed[round_].items():
                    counted = own.get((round_, number))
                    if counted == len(indices):
                        counts.update(indices)
                    elif counted != 0:
                        unknown.update(indices)
            twice = [index for index, count in counts.items() if count > 1]
            missing = [index for index in range(DATASET) if not counts[index] and index not in unknown]
            # A process that is killed between step() and its note has handed in what nobody noted.
            if twice or len(missing) > BATCH * killed:
                self.faults.append(
                    f"epoch from round {first}: {len(missing)} samples missing, {len(twice)} twice"
                )
            epochs += 1
            whole += len(counts) == DATASET
        print(f"{epochs} epochs, no sample twice in one; of {whole} all {DATASET} samples are known")

    def judge_memory(self):
        for number, seen in self.memory.items():
            warm = [mib for at_s, mib in seen if at_s >= 120]
            if len(warm) < 2:
                print(f"peer {number}: too short to judge its memory")
                continue
            print(f"peer {number}: {warm[0]:.1f} MiB after 2 minutes, {warm[-1]:.1f} MiB at the end")
            if warm[-1] > max(1.05 * warm[0], warm[0] + 2):
                self.faults.append(f"peer {number}: memory grew from {warm[0]:.1f} to {warm[-1]:.1f} MiB")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("minutes", type=float, nargs="?", default=10)
    parser.add_argument("--mode", default="sync", help="training.mode")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(arguments.peer)
    folder = Path(tempfile.mkdtemp(prefix="tradewind-soak-"))
    print(f"{arguments.mode}, seed {arguments.seed}, {arguments.minutes:g} minutes; {folder}", flush=True)
    soak = Soak(Crew(folder, arguments.mode), arguments.minutes, arguments.seed)
    try:
        soak.run()
    finally:
        for process in soak.crew.processes.values():
            process.kill()
    print(f"done to peers: {dict(soak.done)}")
    for fault in soak.faults:
        print(f"FAULT: {fault}")
    if not soak.faults:
        shutil.rmtree(folder)
    raise SystemExit(bool(soak.faults))


if __name__ == "__main__":
    main()
