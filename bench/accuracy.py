#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What codecs cost in accuracy: the loss after the same samples, of each codec against fp32.

    bench/accuracy.py [--run RUN.yaml] [--rounds N] [--seeds N] [--peers N] [--codecs fp16,int4,...]

Each codec trains with each seed (`tw local`), all from the same parameters and on the same samples in the
same order. Two losses: of the evaluation data at the end, and of the training samples, the mean over the last
quarter of the rounds. Ratios to fp32 are taken seed by seed, and their mean is printed. `fp32 again` is what
chance alone does: who computes which samples, and so the order of sums, differs from run to run. `int4-`:
without error feedback.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parent.parent
CODECS = "fp32 again,fp16,bf16,int8,int4,int4-"


def events_of(folder):
    for log in folder.glob("*.jsonl"):
        yield from map(json.loads, log.read_text().splitlines())


def train(options, codec, seed):
    """Loss of the evaluation data, loss of the training samples."""
    settings = {"training.rounds": options.rounds, "evaluation.every": options.rounds + 1,
                "training.seed": seed, "training.codec": codec.split()[0].rstrip("-")}
    if codec.endswith("-"):
        settings["training.error_feedback"] = "false"
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build/tw", "local", options.run, "--peers", options.peers, "--threads", 1,
                   "--out", folder, *words]
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if ended.returncode != 0:
            raise SystemExit(f"{codec}, seed {seed}: {ended.stderr}")
        events = list(events_of(Path(folder)))
    evaluated = [e["loss"] for e in events if e["phase"] == "evaluate"]
    trained = [(e["loss"], e["samples"]) for e in events
               if e["phase"] == "commit" and "loss" in e and e["round"] > 0.75 * options.rounds]
    return evaluated[-1], sum(l * n for l, n in trained) / sum(n for _, n in trained)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", default=ROOT / "examples/mnist.yaml")
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
    print("| codec | evaluation loss | to fp32 | training loss | to fp32 |\n|---|---|---|---|---|")
    for name in names:
        cells = []
        for which in (0, 1):
            ratios = [ours[which] / plain[which] for ours, plain in zip(losses[name], losses["fp32"])]
            cells += [f"{mean(l[which] for l in losses[name]):.4f}",
                      f"{100 * (mean(ratios) - 1):+.2f} % ({100 * (min(ratios) - 1):+.2f} to "
                      f"{100 * (max(ratios) - 1):+.2f})"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as problem:
        sys.exit(f"{problem}; built with `make build`?")
