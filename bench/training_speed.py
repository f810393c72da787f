#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tradewind costs one peer: samples/s of `tw train` against the same training in a plain loop.

    bench/training_speed.py [--run examples/mnist.yaml] [--rounds N] [--turns N] [--threads N]

The two take turns. Speed is over the rounds alone, from the first one's begin to the last one's update; CPU
seconds are those of the whole process, with loading and the one evaluation at the end, which both do.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def run(command):
    """Standard output, and the CPU seconds of the process."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return text, used.ru_utime + used.ru_stime


def overrides(options):
    # The run file may stop at an accuracy, which needs evaluations: none falls within the rounds.
    settings = {"training.rounds": options.rounds, "evaluation.every": options.rounds + 1}
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def events_of(folder):
    for log in folder.glob("*.jsonl"):
        yield from map(json.loads, log.read_text().splitlines())


def train(options):
    with tempfile.TemporaryDirectory() as folder:
        _, cpu = run([ROOT / "build/tw", "train", options.run, "--wait-for", 1, "--threads", options.threads,
                      "--quiet", "--out", folder, *overrides(options)])
        events = list(events_of(Path(folder)))
    times = {phase: [e["t"] for e in events if e["phase"] == phase] for phase in ("accumulate", "apply")}
    samples = sum(e["samples"] for e in events if e["phase"] == "commit")
    return samples / (max(times["apply"]) - min(times["accumulate"])), cpu


def plain_loop(options):
    text, cpu = run([ROOT / "build/bench/bench_torch_plain_loop", options.run, "--threads", options.threads,
                     *overrides(options)])
    return json.loads(text)["samples_per_s"], cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", default=ROOT / "examples/mnist.yaml")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    results = {"tw train": [], "plain loop": []}
    for _ in range(options.turns):
        results["plain loop"].append(plain_loop(options))
        results["tw train"].append(train(options))
    for name, pairs in results.items():
        speeds = [speed for speed, _ in pairs]
        print(f"{name:10}  {median(speeds):8.1f} samples/s  (from {min(speeds):.1f} to {max(speeds):.1f})"
              f"  {median(cpu for _, cpu in pairs):7.2f} CPU s")
    turns = list(zip(results["tw train"], results["plain loop"]))
    speed = median(ours[0] / plain[0] for ours, plain in turns)
    cpu = median(ours[1] / plain[1] for ours, plain in turns)
    fastest = max(ours[0] for ours, _ in turns) / max(plain[0] for _, plain in turns)
    print(f"median of the turns' ratios: {speed:.3f} of the speed, {cpu:.3f} of the CPU time")
    print(f"ratio of the fastest turns: {fastest:.3f}")


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as problem:
        sys.exit(f"{problem}; built with `make build bench`?")
