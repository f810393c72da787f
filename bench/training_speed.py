#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tradewind costs: samples/s of `tw local` against the same training in plain loops at the same time.

    bench/training_speed.py [--run examples/mnist.yaml] [--peers N] [--rounds N] [--turns N] [--threads N]

One peer against one loop, or N against N, each with its share of the batch. The two take turns. Speed is
over the rounds alone, from the first one's begin to the last one's update; CPU seconds are those of the whole
processes, with loading and the one evaluation at the end, which both do.
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


def run(commands):
    """Standard output of each, and the CPU seconds of all processes."""
    processes = [subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
                 for command in commands]
    texts, cpu = [], 0
    for process in processes:
        texts.append(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{process.args[0]} ended with {process.returncode}")
        cpu += used.ru_utime + used.ru_stime
    return texts, cpu


def batch_of(options):
    """target_batch_size of the run file."""
    for line in Path(options.run).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "target_batch_size":
            return int(value)
    raise SystemExit(f"{options.run} has no target_batch_size")


def overrides(options, loops=1):
    # The run file may stop at an accuracy, which needs evaluations: none falls within the rounds.
    settings = {"training.rounds": options.rounds, "evaluation.every": options.rounds + 1}
    if loops > 1:
        settings["training.target_batch_size"] = batch_of(options) // loops
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def events_of(folder):
    for log in folder.glob("*.jsonl"):
        yield from map(json.loads, log.read_text().splitlines())


def train(options):
    with tempfile.TemporaryDirectory() as folder:
        _, cpu = run([[ROOT / "build/tw", "local", options.run, "--peers", options.peers, "--threads",
                       options.threads, "--json", "--out", folder, *overrides(options)]])
        events = list(events_of(Path(folder)))
    rounds = {e["round"]: e for e in events if e["phase"] == "apply"}
    began = min(e["t"] for e in events if e["phase"] == "accumulate")
    samples = sum(e["samples"] for e in events if e["phase"] == "commit")
    return samples / (rounds[max(rounds)]["t"] - began), cpu


def plain_loop(options):
    command = [ROOT / "build/bench/bench_torch_plain_loop", options.run, "--threads", options.threads,
               *overrides(options, options.peers)]
    texts, cpu = run([command] * options.peers)
    return sum(json.loads(text)["samples_per_s"] for text in texts), cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", default=ROOT / "examples/mnist.yaml")
    parser.add_argument("--peers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    results = {"tw local": [], "plain loops": []}
    for _ in range(options.turns):
        results["plain loops"].append(plain_loop(options))
        results["tw local"].append(train(options))
    for name, pairs in results.items():
        speeds = [speed for speed, _ in pairs]
        print(f"{name:11}  {median(speeds):8.1f} samples/s  (from {min(speeds):.1f} to {max(speeds):.1f})"
              f"  {median(cpu for _, cpu in pairs):7.2f} CPU s")
    turns = list(zip(results["tw local"], results["plain loops"]))
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
