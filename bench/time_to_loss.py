#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds until a run has a given loss over thin links: each mode, and one machine alone (as root).

    PYTHONPATH=build/python nice -n -15 /usr/bin/python3 bench/time_to_loss.py --json

Python peers (TLS) train the digits of MNIST, each on a host of a tw-wan bed. A step takes `--step-s`, of
which a part is slept: peers share the cores of this machine. Each cell begins with the same parameters, and
has the same AdamW at the same rate; a step is of 16 samples. `steps`: of a peer, between two averagings of a
parameter. The loss is that of the run's parameters, on 2,000 pictures that are in no batch; the first peer
measures it twice a second at most. seconds: of the first loss that is no larger than `--loss`, from the
peer's first step on; null where it did not come within `--limit-s`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import tradewind

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/python"))
import mnist  # noqa: E402
import modes  # noqa: E402

BATCH, HELD_OUT, EACH_S, FRAGMENTS = 16, 2000, 0.5, 4
CELLS = [
    {"mode": "alone", "peers": 1, "steps": 1},
    *({"mode": "sync", "peers": 4, "steps": steps} for steps in (8, 32)),
    *({"mode": "delayed", "peers": 4, "steps": steps} for steps in (8, 32)),
    *({"mode": mode, "peers": 4, "steps": 32} for mode in ("local", "streaming")),
]
cross_entropy = torch.nn.functional.cross_entropy


def make_model(width):
    layers = torch.nn.Linear(784, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
    return torch.nn.Sequential(torch.nn.Flatten(), *layers)


class Watch:
    """Ends the loop at the loss that is wanted."""

    def __init__(self, run, model, wanted):
        self._run, self._model, self._wanted = run, model, wanted
        self._held_out = mnist.digits("t10k", HELD_OUT)
        self._began = self._looked = time.monotonic()

    def reached(self):
        now = time.monotonic()
        if now - self._looked < EACH_S:
            return False
        self._looked = now
        with self._run.committed(), torch.no_grad():
            loss = float(cross_entropy(self._model(self._held_out[0]), self._held_out[1]))
        self.result = {"seconds": now - self._began, "loss": loss, "samples": self._run.samples}
        return loss <= self._wanted


def peer(options):
    """A loop that the parent ends; the first peer writes what it measured."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    model = make_model(options.width)
    data = torch.utils.data.TensorDataset(*mnist.digits("train", 60000))
    run = tradewind.join(options.peer / "run.yaml", run=options.peer / "token", out=options.peer / "out")
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=2e-3))
    watch = None
    for pictures, targets in run.shard(torch.utils.data.DataLoader(data, batch_size=BATCH)):
        ends = time.monotonic() + options.step_s
        if options.number == 1 and watch is None:
            watch = Watch(run, model, options.loss)
        cross_entropy(model(pictures), targets).backward()
        time.sleep(max(0.0, ends - time.monotonic()))
        opt.step()
        opt.zero_grad()
        if watch and watch.reached():
            part = options.peer / "result.part"
            part.write_text(json.dumps(watch.result))
            part.rename(options.peer / "result.json")
            time.sleep(60)  # the parent ends it


def settings_of(cell, seed, codec):
    turns = FRAGMENTS if cell["mode"] == "streaming" else 1
    words = {
        "target_batch_size": cell["peers"] * BATCH * cell["steps"] // turns,
        "rounds": 1_000_000,
        "seed": seed,
        "codec": codec,
        "mode": "sync" if cell["mode"] == "alone" else cell["mode"],
    }
    if cell["mode"] in ("local", "streaming"):
        words["outer"] = "nesterov"
    if turns > 1:
        words["fragments"] = turns
    lines = [f"  {name}: {value}" for name, value in words.items()]
    return "\n".join(["training:", *lines, "checkpoint: {folder: none}", ""])


def measure(options, cell, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.yaml").write_text(settings_of(cell, seed, options.codec))
        with modes.bed(folder, modes.NAMES[: cell["peers"]], options.mbit_s, options.rtt) as addresses:
            command = ["--peer", folder, "--seed", seed, "--step-s", options.step_s]
            command += ["--loss", options.loss, "--width", options.width]
            crew = [
                modes.start(folder, n, addresses, [__file__, *command, "--number", n])
                for n in range(1, cell["peers"] + 1)
            ]
            try:
                return result_of(folder, crew, options.limit_s)
            finally:
                for process in crew:
                    process.kill()
                for process in crew:
                    process.wait()


def result_of(folder, crew, limit_s):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if (folder / "result.json").exists():
            return json.loads((folder / "result.json").read_text())
        for number, process in enumerate(crew, 1):
            if process.poll() is not None:
                raise SystemExit((folder / f"peer-{number}.txt").read_text())
        time.sleep(0.05)
    return {"seconds": None}


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--json", action="store_true", help='{"cells": [...]} on stdout at the end')
    parser.add_argument("--mbit-s", type=float, default=20)
    parser.add_argument("--rtt", default="20ms")
    parser.add_argument("--codec", choices=modes.MEAN, default="fp16")
    parser.add_argument("--step-s", type=float, default=0.025)
    parser.add_argument("--width", type=int, default=512, help="of the hidden layer: 795 parameters each")
    parser.add_argument("--loss", type=float, default=0.15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=240)
    parser.add_argument("--modes", nargs="*", default=["alone", *modes.GRID["mode"]])
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(options)
    cells = [dict(cell, results=[]) for cell in CELLS if cell["mode"] in options.modes]
    for seed in range(1, options.seeds + 1):  # interleaved: all cells of a seed after each other
        for cell in cells:
            cell["results"].append(measure(options, cell, seed))
            shown = [cell[key] for key in ("mode", "steps")]
            print(*shown, f"seed {seed}:", cell["results"][-1], file=sys.stderr, flush=True)
    for cell in cells:
        times = [one["seconds"] for one in cell["results"]]
        cell["seconds"] = None if None in times else median(times)
    if options.json:
        print(json.dumps({"mbit_s": options.mbit_s, "loss": options.loss, "cells": cells}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
