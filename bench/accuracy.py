#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What codecs cost in accuracy: the loss after the same samples, of each codec against fp32.

    PYTHONPATH=build/python /usr/bin/python3 bench/accuracy.py [--rounds N] [--seeds N] [--codecs fp16,...]

Each codec trains the digits of examples/python/mnist.py with each seed, all from the same parameters and on
the same samples in the same order. Two losses: of the test pictures at the end, and of the training
samples, the mean over the last quarter of the rounds. Ratios to fp32 are taken seed by seed; their mean is
printed.
`fp32 again` is what chance alone does: who computes which samples, and so the order of sums, differs from run
to run. `int4-`: without error feedback.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import mean

import torch
import tradewind

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/python"))
import mnist  # noqa: E402

CODECS = "fp32 again,fp16,bf16,int8,int4,int4-"
cross_entropy = torch.nn.functional.cross_entropy


def peer(settings):
    """Loss of the test pictures after the last round."""
    torch.set_num_threads(1)
    torch.manual_seed(settings["training.seed"])
    model = mnist.make_model()
    data = torch.utils.data.TensorDataset(*mnist.digits("train", 60000))
    run = tradewind.join(settings=settings)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=2e-3))
    for pictures, targets in run.shard(torch.utils.data.DataLoader(data, batch_size=32)):
        loss = cross_entropy(model(pictures), targets)
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
    run.close()
    pictures, targets = mnist.digits("t10k", 10000)
    with torch.no_grad():
        return float(cross_entropy(model(pictures), targets))


def events_of(folder):
    for log in Path(folder).glob("*.jsonl"):
        yield from map(json.loads, log.read_text().splitlines())


def train(options, codec, seed):
    """Loss of the test pictures, loss of the training samples."""
    settings = {
        "training.rounds": options.rounds,
        "training.target_batch_size": 512,
        "training.exact_batches": True,
        "training.seed": seed,
        "training.codec": codec.split()[0].rstrip("-"),
        "checkpoint.folder": "none",
    }
    if codec.endswith("-"):
        settings["training.error_feedback"] = False
    with tempfile.TemporaryDirectory() as folder:
        begin = {"progress": "off", "wait_for": options.peers, "out": folder}
        losses = tradewind.launch_local(peer, settings, peers=options.peers, settings=begin)
        trained = [
            (e["loss"], e["samples"])
            for e in events_of(folder)
            if e["phase"] == "commit" and "loss" in e and e["round"] > 0.75 * options.rounds
        ]
    return losses[0], sum(l * n for l, n in trained) / sum(n for _, n in trained)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=240)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--codecs", default=CODECS)
    options = parser.parse_args()
    names = ["fp32", *options.codecs.split(",")]
    losses = {name: [] for name in names}
    for seed in range(1, options.seeds + 1):
        for name in names:
            losses[name].append(train(options, name, seed))
            print(f"seed {seed}, {name}: {losses[name][-1]}", file=sys.stderr)
    print("| codec | test loss | to fp32 | training loss | to fp32 |\n|---|---|---|---|---|")
    for name in names:
        cells = []
        for which in (0, 1):
            ratios = [ours[which] / plain[which] for ours, plain in zip(losses[name], losses["fp32"])]
            cells += [
                f"{mean(l[which] for l in losses[name]):.4f}",
                f"{100 * (mean(ratios) - 1):+.2f} % ({100 * (min(ratios) - 1):+.2f} to "
                f"{100 * (max(ratios) - 1):+.2f})",
            ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
