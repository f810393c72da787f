#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the time the peers of a run compute, by mode, link and samples a round (as root).

    PYTHONPATH=build/python /usr/bin/python3 bench/modes.py --grid --json

Python peers (TLS), each on a host of a tw-wan bed. Their work is to sleep, as on machines of their own: peers
that compute would share the cores of this one. In local and streaming the optimizer's steps are slept, too.
Each parameter is averaged after `steps` steps. A round has as many, or an F-th in streaming, where it
averages one of F fragments; a peer does that as one microbatch.
utilisation: work done by all peers, over what they could have done in the time of the rounds; the
first ones do not count. bound: the same where a round costs its work, or a ring's all-reduce at the rate of
the links (of contributions in the codec, and of a mean in int8 where that is int4), whichever is longer (sync
and local: their sum). share: utilisation / bound.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import tradewind

ROOT = Path(__file__).resolve().parents[1]
TW, WAN = ROOT / "build/tw", ROOT / "build/tw-wan"
NAMES = "abcdefgh"
BITS = {"fp32": 32, "fp16": 16, "int8": 8.0625, "int4": 4.25}  # a value, with the scales of blocks
MEAN = {"fp32": "fp32", "fp16": "fp16", "int8": "int8", "int4": "int8"}
PAYLOAD = 0.994  # of a rate, with packets of 9000 bytes
SKIPPED = 3  # averagings of each parameter at the beginning
GRID = {"mbit_s": (50, 200, 1000), "steps": (8, 32, 128), "mode": ("sync", "delayed", "local", "streaming")}


class Slept(torch.optim.Optimizer):
    """Its step is part of the time that the loop sleeps: one value in a thousand changes."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for one in group["params"]:
                one[::1000] -= group["lr"]


def peer(folder, work_s, parameters, steps_here):
    """A loop until the end of the run. steps_here: its own optimizer steps in the peer."""
    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(parameters))])
    gradient = torch.full((parameters,), 1e-3)
    run = tradewind.join(folder / "run.yaml", run=folder / "token", out=folder / "out")
    inner = Slept(model.parameters()) if steps_here else torch.optim.SGD(model.parameters(), lr=1e-3)
    opt = run.optimizer(model, inner, batch_size=1)
    run.start()
    while not run.finished:
        time.sleep(work_s)
        model[0].grad = gradient
        opt.step()
        opt.zero_grad(set_to_none=True)
    return run.exit_code


def fragments(arguments, cell):
    """Rounds between two averagings of a parameter."""
    return arguments.fragments if cell["mode"] == "streaming" else 1


def bound(arguments, cell):
    """The utilisation that no averaging of whole vectors exceeds."""
    work_s = cell["steps"] * arguments.step_s
    both = BITS[arguments.codec] + BITS[MEAN[arguments.codec]]  # contributions, then the mean
    sent = (arguments.peers - 1) / arguments.peers * arguments.parameters * both
    wire_s = sent / (cell["mbit_s"] * 1e6 * PAYLOAD)
    return work_s / (work_s + wire_s if cell["mode"] in ("sync", "local") else max(work_s, wire_s))


@contextlib.contextmanager
def bed(folder, hosts, mbit_s, rtt):
    """A wide-area network of equal hosts and a token of a run; addresses by name."""
    sites = "".join(f"  - {{name: {host}, nic: {mbit_s}mbit}}\n" for host in hosts)
    (folder / "bed.yaml").write_text(
        f"about: hosts of {mbit_s} Mbit/s, {rtt} apart\nmtu: 9000\nsites:\n{sites}links:\n  - rtt: {rtt}\n"
    )
    subprocess.run([TW, "init", folder / "token"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([WAN, folder / "bed.yaml", "up"], check=True, stdout=sys.stderr)
    try:
        shown = subprocess.run([WAN, folder / "bed.yaml", "show"], check=True, capture_output=True)
        yield {host["name"]: host["address"] for host in json.loads(shown.stdout)["hosts"]}
    finally:
        subprocess.run([WAN, folder / "bed.yaml", "down"], check=True, stdout=sys.stderr)


def start(folder, number, addresses, command):
    """A peer: a Python program and its words."""
    environment = {**os.environ, "TRADEWIND_ID": str(number)}
    environment["TRADEWIND_LISTEN"] = f"{addresses[NAMES[number - 1]]}:7000"
    if number == 1:
        environment["TRADEWIND_WAIT_FOR"] = str(len(addresses))
    else:
        environment["TRADEWIND_JOIN"] = f"{addresses['a']}:7000"
    words = [WAN, folder / "bed.yaml", "exec", NAMES[number - 1], sys.executable, *command]
    with open(folder / f"peer-{number}.txt", "w") as output:
        return subprocess.Popen([str(word) for word in words], stdout=output, stderr=output, env=environment)


def rounds_of(folder, skipped):
    """Seconds and samples of the rounds that count, from the log of the first peer."""
    lines = (folder / "out/events-1.jsonl").read_text().splitlines()
    commits = [event for event in map(json.loads, lines) if event["phase"] == "commit"][skipped:]
    times, samples = [one["t"] for one in commits], [one["samples_total"] for one in commits]
    return times[-1] - times[0], samples[-1] - samples[0]


def measure(arguments, cell):
    with tempfile.TemporaryDirectory() as name:
        folder, hosts, turns = Path(name), NAMES[: arguments.peers], fragments(arguments, cell)
        parts = f", fragments: {turns}" if turns > 1 else ""
        (folder / "run.yaml").write_text(
            f"training: {{target_batch_size: {arguments.peers}, "
            f"rounds: {(arguments.rounds + SKIPPED) * turns}, "
            f"codec: {arguments.codec}, mode: {cell['mode']}{parts}}}\n"
        )
        work_s = cell["steps"] * arguments.step_s / turns
        command = [__file__, "--peer", folder, "--work-s", work_s, "--parameters", arguments.parameters]
        command += ["--mode", cell["mode"]]
        with bed(folder, hosts, cell["mbit_s"], arguments.rtt) as addresses:
            peers = [start(folder, n, addresses, command) for n in range(1, arguments.peers + 1)]
            codes = [process.wait(arguments.limit_s) for process in peers]
            if any(codes):
                raise SystemExit((folder / f"peer-{codes.index(max(codes)) + 1}.txt").read_text())
            seconds, samples = rounds_of(folder, SKIPPED * turns)
    utilisation = samples / arguments.peers * work_s / seconds
    most = bound(arguments, cell)
    return {**cell, "utilisation": utilisation, "bound": most, "share": utilisation / most}


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--grid", action="store_true", help="all cells; without: one, of the values given")
    parser.add_argument("--json", action="store_true", help='{"cells": [...]} on stdout at the end')
    parser.add_argument("--mbit-s", type=float, default=200)
    parser.add_argument("--steps", type=int, default=32, help="of a peer, between two averagings")
    parser.add_argument("--mode", choices=GRID["mode"], nargs="*", default=GRID["mode"])
    parser.add_argument("--codec", choices=MEAN, default="int4")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--parameters", type=int, default=30_800_000)
    parser.add_argument("--step-s", type=float, default=0.0253)
    parser.add_argument("--fragments", type=int, default=4, help="of streaming")
    parser.add_argument("--rtt", default="1ms")
    parser.add_argument("--rounds", type=int, default=6, help="that count")
    parser.add_argument("--limit-s", type=float, default=900)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work-s", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        steps_here = arguments.mode[0] in ("local", "streaming")
        return peer(arguments.peer, arguments.work_s, arguments.parameters, steps_here)
    one = {"mbit_s": (arguments.mbit_s,), "steps": (arguments.steps,), "mode": arguments.mode}
    axes = GRID if arguments.grid else one
    cells = []
    for values in itertools.product(*axes.values()):
        cells.append(measure(arguments, dict(zip(axes, values))))
        shown = {key: round(v, 3) if isinstance(v, float) else v for key, v in cells[-1].items()}
        print(shown, file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps({"codec": arguments.codec, "peers": arguments.peers, "cells": cells}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
