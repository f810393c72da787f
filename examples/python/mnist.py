#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Digits, in a loop of one's own: kill any of the peers and the others go on.

python3 mnist.py --peers 2           two peers on this machine
TRADEWIND_TOKEN=@token TRADEWIND_LISTEN=10.0.0.6:7000 python3 mnist.py     one peer among many machines
"""

import argparse
import sys
from pathlib import Path

import numpy
import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).resolve().parents[2] / "data-cache/mnist"


def digits(part, count):
    """Pictures [count, 1, 28, 28] from 0 to 1, and their digits [count]."""
    if not DATA.exists():
        sys.exit(f"{DATA} is missing: tools/fetch_data.sh of the repository fetches it")
    pictures = numpy.fromfile(DATA / f"{part}-images-idx3-ubyte", numpy.uint8, offset=16).reshape(
        -1, 1, 28, 28
    )
    targets = numpy.fromfile(DATA / f"{part}-labels-idx1-ubyte", numpy.uint8, offset=8)
    return torch.from_numpy(pictures[:count]).float() / 255, torch.from_numpy(targets[:count]).long()


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(800, 10),
    )


def train(small, rounds):
    """One peer; its share of right answers at the end."""
    torch.manual_seed(1)
    model = make_model()
    data = TensorDataset(*digits("train", 2000 if small else 60000))
    loader = DataLoader(data, batch_size=64, shuffle=True)

    run = tradewind.join(target_batch_size=512, rounds=8 if small else rounds)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=5e-3))
    for pictures, targets in run.shard(loader):
        loss = torch.nn.functional.cross_entropy(model(pictures), targets)
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
    run.close()

    pictures, targets = digits("t10k", 1000 if small else 10000)
    with torch.no_grad():
        return float((model(pictures).argmax(1) == targets).float().mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=int, default=0, help="start so many on this machine")
    parser.add_argument("--rounds", type=int, default=300, help="of 512 samples")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    arguments = parser.parse_args()
    if arguments.peers:
        results = tradewind.launch_local(train, arguments.small, arguments.rounds, peers=arguments.peers)
    else:
        results = [train(arguments.small, arguments.rounds)]
    for number, result in enumerate(results, 1):
        print(f"peer {number}: {result if isinstance(result, Exception) else f'{result:.2%} right'}")
