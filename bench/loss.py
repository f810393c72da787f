#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What modes and steps between averagings cost in loss: that after equal samples, beside sync.

    PYTHONPATH=build/python nice -n 19 /usr/bin/python3 bench/loss.py --json

One process trains the copies of four peers in turn, in fp32: no network, no codec, and the same numbers each
time. Own copies, contributions and the settings of the outer step are those of the package
(tradewind.model.local); sync and delayed take the mean of the peers' gradients, delayed one update late. What
codecs cost, in runs of real peers: bench/accuracy.py.

All cells of a task and a seed begin with the same parameters. Each peer takes the same batches in the same
order in all of them, with the same AdamW and the same schedule. So sync and delayed take a step with the mean
of `peers` batches, where a peer of local and streaming takes a step with each of its own.

text: characters of the King James text, a transformer (0.27 M parameters). digits: MNIST, a convolutional
network (13 k). The loss is that of the run's parameters at the end, on data that is in no batch. Ratios to
sync are taken seed by seed: their median, least and largest are printed.

streaming averages a quarter of the values each round, in turn: the changes of each quarter since its last
turn. As in a run, the last round averages one quarter alone.

--joiners: after each quarter of the run a joiner takes the place of one peer, and begins with a fresh
optimizer, as in a run, or with the moments of the first peer (donor). Ratios are to the same cell without.

measured is no setting of a run. It adds mu times the last step to the mean change, mu being the cosine of the
last two mean changes, or 0 where that is negative.
"""

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path
from statistics import median

import torch
from tradewind.model.layout import Means, collect
from tradewind.model.local import CopyOptions, OuterStep, OwnCopy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/python"))
import mnist  # noqa: E402
import text as writing  # noqa: E402

CONTEXT, HELD_OUT = 32, 2048
RATE, WARM_UP, LAST_RATE = 2e-3, 0.05, 0.1  # of AdamW; share of the steps; share of the rate
OUTER = {"mean": ("mean", 1.0, 0.0), "nesterov": ("nesterov", 0.7, 0.9)}
STEPS = (8, 32, 128)  # a round
FRAGMENTS = 4  # of streaming


def cell(mode, steps=1, outer="mean", joiners="none"):
    return {"mode": mode, "steps": steps, "outer": outer, "joiners": joiners}


CELLS = [
    cell("sync"),
    cell("delayed"),
    *(cell("local", steps, outer) for steps in STEPS for outer in ("mean", "nesterov", "measured")),
    *(cell("streaming", steps, outer) for steps in (2, 8, 32) for outer in ("mean", "nesterov")),
]

CELLS_OF_JOINERS = [
    cell(mode, steps, "nesterov", joiners)
    for mode, each in (("local", STEPS), ("streaming", (2, 8)))
    for steps in each
    for joiners in ("none", "fresh", "donor")
]


class Text:
    """Batches of 8 passages."""

    steps, batch = 512, 8

    def __init__(self):
        """Trains on nine tenths of the text."""
        self.read = writing.Passages(writing.TEXT.read_bytes(), CONTEXT)
        self.samples = len(self.read) * 9 // 10
        rest = len(self.read) - self.samples
        self.test = self.batch_of(range(self.samples, len(self.read), rest // HELD_OUT))

    def batch_of(self, indices):
        return tuple(torch.stack(part) for part in zip(*(self.read[at] for at in indices)))

    def model(self):
        made = writing.Writer(width=128, layers=1, context=CONTEXT)
        for module in made.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        return made

    loss = staticmethod(writing.loss)


class Digits:
    """Batches of 16 pictures."""

    steps, batch = 512, 16

    def __init__(self):
        self.pictures, self.targets = mnist.digits("train", 60000)
        self.samples = len(self.targets)
        self.test = mnist.digits("t10k", 10000)

    def batch_of(self, indices):
        return self.pictures[indices], self.targets[indices]

    def model(self):
        return mnist.make_model()

    @staticmethod
    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])


TASKS = {"text": Text, "digits": Digits}


class Trainer:
    """A model with its optimizer and schedule: a peer's, or that of all."""

    def __init__(self, task, seed):
        torch.manual_seed(seed)
        self.task, self.model = task, task.model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._share)

    def _share(self, step):
        """Warm-up, and a cosine."""
        cosine = (1 + math.cos(math.pi * min(1.0, step / self.task.steps))) / 2
        return min(1.0, (step + 1) / (WARM_UP * self.task.steps)) * (LAST_RATE + (1 - LAST_RATE) * cosine)

    def gradient(self, indices):
        self.optimizer.zero_grad()
        self.task.loss(self.model, self.task.batch_of(indices)).backward()

    def step(self):
        self.optimizer.step()
        self.schedule.step()

    def test_loss(self):
        with torch.no_grad():
            return float(self.task.loss(self.model, self.task.test))


class Batches:
    """Indices of each peer's batches, the same in all cells."""

    def __init__(self, task, seed, peers):
        generator = torch.Generator().manual_seed(seed)
        self._order = torch.randperm(task.samples, generator=generator)
        self._peers, self._batch = peers, task.batch

    def _of(self, first, count):
        at = torch.arange(first * self._batch, (first + count) * self._batch)
        return self._order[at % len(self._order)]

    def of_peer(self, step, peer):
        return self._of(step * self._peers + peer, 1)

    def of_all(self, step):
        return self._of(step * self._peers, self._peers)


def train_together(task, seed, batches, delayed):
    """sync and delayed."""
    trainer = Trainer(task, seed)
    parameters = list(trainer.model.parameters())
    late = None
    for step in range(task.steps):
        trainer.gradient(batches.of_all(step))
        if delayed:
            taken = [one.grad.clone() for one in parameters]
            if late is not None:
                step_with(trainer, parameters, late)
            late = taken
        else:
            trainer.step()
    if late is not None:
        step_with(trainer, parameters, late)
    return trainer.test_loss()


def step_with(trainer, parameters, gradients):
    for one, gradient in zip(parameters, gradients):
        one.grad = gradient
    trainer.step()


class Outer:
    """The run's parameters: what the mean change does to them."""

    def __init__(self, layout, parts, kind):
        """parts: fragments of the run's parameters; those of a round alone have a gradient."""
        self._parts, self._measures = parts, kind == "measured"
        kind, rate, momentum = OUTER.get(kind, OUTER["mean"])
        (group,) = OuterStep(layout, kind, rate, momentum).groups()
        self._sgd = torch.optim.SGD(
            parts, lr=group.learning_rate, momentum=group.momentum, nesterov=group.momentum > 0
        )
        self._last, self._moved = None, None

    def update(self, number, mean):
        """mean: a gradient, against the change, of this part."""
        self._parts[number].grad = self._with_momentum(mean) if self._measures else mean
        self._sgd.step()
        self._parts[number].grad = None

    def _with_momentum(self, mean):
        cosine = 0.0
        if self._last is not None:
            cosine = float(torch.nn.functional.cosine_similarity(mean, self._last, dim=0))
        self._last = mean.clone()
        self._moved = mean + max(0.0, cosine) * self._moved if cosine > 0 else mean.clone()
        return self._moved


class Copies:
    """The peers of local and streaming."""

    def __init__(self, task, seed, peers, one):
        self._overlaps = one["mode"] == "streaming"
        self._count = FRAGMENTS if self._overlaps else 1
        self._trainers = [Trainer(task, seed) for _ in range(peers)]
        everything = Means(True, True)
        layouts = [collect(one.model, one.optimizer.param_groups, everything) for one in self._trainers]
        self._flat = torch.zeros(sum(layouts[0].tensor_sizes))
        for entry in layouts[0].parameters:
            self._flat[entry.first : entry.first + entry.values] = entry.tensor.detach().flatten()
        # The values of a fragment that are no parameters (counts, before them) change nothing.
        edges = [len(self._flat) * at // self._count for at in range(self._count + 1)]
        self._fragments = [(begin, end - begin) for begin, end in zip(edges, edges[1:])]
        self._copies = [self._copy(layout) for layout in layouts]
        parts = [self._flat[at : at + count] for at, count in self._fragments]
        self._outer = Outer(layouts[0], parts, one["outer"])
        self._late = None  # with overlap, the mean of the last round

    def _fragment(self, round_):
        return self._fragments[round_ % self._count]

    def _copy(self, layout):
        def tensors():
            return [entry.tensor for entry in layout.parameters]

        options = CopyOptions(self._fragment, self._overlaps)
        return OwnCopy(layout.parameters, len(self._flat), tensors, self._flat, options)

    def step(self, batch_of):
        for number, (trainer, own) in enumerate(zip(self._trainers, self._copies)):
            indices = batch_of(number)
            trainer.gradient(indices)
            own.begin_step()
            trainer.step()
            own.samples += len(indices)

    def average(self, round_):
        """The end of a round."""
        total = torch.zeros(self._fragment(round_)[1])
        samples = sum(own.samples for own in self._copies)
        for own in self._copies:
            own.contribute(round_, total)
        mean = total / samples
        if not self._overlaps:
            self._apply(mean, round_)
            return
        if self._late is not None:
            self._apply(self._late, round_ - 1)
        self._late = mean

    def _apply(self, mean, round_):
        self._outer.update(round_ % self._count, mean)
        for own in self._copies:
            own.load(round_, False)

    def join(self, number, round_, begins):
        """A joiner takes the place of this peer."""
        state = copy.deepcopy(self._trainers[0].optimizer.state_dict()["state"]) if begins == "donor" else {}
        optimizer = self._trainers[number].optimizer
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
        self._copies[number].load(round_, True)

    def end(self, round_):
        """The loss of the run's parameters."""
        if self._late is not None:
            self._apply(self._late, round_)
        self._copies[0].load(round_, True)
        return self._trainers[0].test_loss()


def train_apart(task, seed, batches, peers, one):
    """local and streaming."""
    copies = Copies(task, seed, peers, one)
    round_, quarter = 0, task.steps // 4
    for step in range(task.steps):
        if step and step % quarter == 0 and one["joiners"] != "none":
            copies.join(peers - step // quarter, round_, one["joiners"])
        copies.step(lambda peer, step=step: batches.of_peer(step, peer))
        if (step + 1) % one["steps"] == 0:
            round_ += 1
            copies.average(round_)
    return copies.end(round_)


def train(task, seed, peers, one):
    """The loss of a cell."""
    batches = Batches(task, seed, peers)
    if one["mode"] in ("sync", "delayed"):
        return train_together(task, seed, batches, one["mode"] == "delayed")
    return train_apart(task, seed, batches, peers, one)


def summary_of(name, one, losses, base):
    ratios = [ours / plain - 1 for ours, plain in zip(losses, base)]
    scatter = {"to_base": median(ratios), "least": min(ratios), "largest": max(ratios)}
    return {"task": name, **one, "loss": median(losses), "losses": losses, **scatter}


def table_of(cells):
    columns = ("task", "mode", "steps", "outer", "joiners", "loss", "to sync, or to none (scatter)")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one in cells:
        ratio = f"{one['to_base']:+.1%} ({one['least']:+.1%} to {one['largest']:+.1%})"
        words = (*(one[key] for key in columns[:5]), f"{one['loss']:.4f}", ratio)
        lines.append(f"| {' | '.join(map(str, words))} |")
    return "\n".join(lines)


def measure(arguments, name):
    """Summaries of a task's cells."""
    task = TASKS[name]()
    cells = CELLS_OF_JOINERS if arguments.joiners else CELLS
    losses = [[] for _ in cells]
    for seed in range(1, arguments.seeds + 1):
        for one, of_cell in zip(cells, losses):
            of_cell.append(train(task, seed, arguments.peers, one))
            done = {"task": name, "seed": seed, **one, "loss": of_cell[-1]}
            print(json.dumps(done), file=sys.stderr, flush=True)
    base = {at: at - at % 3 if arguments.joiners else 0 for at in range(len(cells))}
    return [summary_of(name, one, losses[at], losses[base[at]]) for at, one in enumerate(cells)]


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--joiners", action="store_true", help="what joiners cost in local and streaming")
    parser.add_argument("--json", action="store_true", help='{"peers", "cpu_s", "cells": [...]}, not a table')
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells = [found for name in arguments.tasks for found in measure(arguments, name)]
    spent = round(time.process_time())
    print(f"{spent} s of processor time", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"peers": arguments.peers, "cpu_s": spent, "cells": cells}, indent=1))
    else:
        print(table_of(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
