#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four peers on MNIST in Python against four bare Python loops at the same time, interleaved.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_local.py --repeats 7

Written: samples/s of the four together and their ratio (medians), and what a round costs beyond its work.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import tradewind

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/python"))
import mnist  # noqa: E402

BATCH = 64


def loader_of(seed):
    data = torch.utils.data.TensorDataset(*mnist.digits("train", 20000))
    generator = torch.Generator().manual_seed(seed)
    return torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, generator=generator)


def bare(rounds, peers, target):
    """Samples/s of one loop with its share of the batches; its optimizer steps as often as the run's."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = mnist.make_model()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    each = target // BATCH // peers
    steps = -5 * each
    batches = iter(loader_of(1))
    began = time.monotonic()
    while steps < rounds * each:
        if steps == 0:
            began = time.monotonic()
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader_of(steps + 1000))
            continue
        torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        steps += 1
        if steps % each == 0:
            opt.step()
            opt.zero_grad()
    return steps * BATCH / (time.monotonic() - began)


def peer(rounds, target):
    """Samples a second of all peers, over the rounds after the fifth."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = mnist.make_model()
    run = tradewind.join(target_batch_size=target, rounds=rounds, codec="fp16")
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=5e-3))
    began, before = time.monotonic(), 0
    loader = loader_of(os.getpid())
    while not run.finished:
        for pictures, targets in run.batches(loader):
            torch.nn.functional.cross_entropy(model(pictures), targets).backward()
            if opt.step() and before == 0 and run.round >= 5:
                began, before = time.monotonic(), run.samples
            opt.zero_grad()
    speed = (run.samples - before) / (time.monotonic() - began)
    run.close()
    return speed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--target", type=int, default=512, help="samples of a round")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    rounds, count, target = arguments.rounds, arguments.peers, arguments.target
    begin = {"progress": "off", "wait_for": count}
    loops, peers, ratios, costs = [], [], [], []
    for _ in range(arguments.repeats):
        loops.append(sum(tradewind.launch_local(bare, rounds, count, target, peers=count)))
        speeds = tradewind.launch_local(peer, rounds, target, peers=count, settings=begin)
        peers.append(statistics.median(speeds))
        ratios.append(peers[-1] / loops[-1])
        costs.append(target / peers[-1] - target / loops[-1])
    print(f"{arguments.peers} bare loops  {statistics.median(loops):.0f} samples/s")
    ratio = statistics.median(ratios)
    print(f"{arguments.peers} peers       {statistics.median(peers):.0f} samples/s, {ratio:.3f} of it")
    print(f"a round costs {1e3 * statistics.median(costs):.1f} ms beyond its work")


if __name__ == "__main__":
    main()
