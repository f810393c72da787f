#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells three spirals apart, on the GPU that is there. It does not know how many machines train, or which."""

import math
import sys

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset


def spirals(samples):
    """Points [samples, 2] on three noisy arms, and the arm of each [samples]."""
    dice = torch.Generator().manual_seed(7)
    arm = torch.randint(3, (samples,), generator=dice)
    radius = torch.rand(samples, generator=dice)
    angle = 5 * radius + 2 * math.pi / 3 * arm + 0.1 * torch.randn(samples, generator=dice)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), arm


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    points, arms = spirals(60_000)
    layers = [torch.nn.Linear(2, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 3)).to(device)
    loader = DataLoader(TensorDataset(points, arms), batch_size=256, shuffle=True)

    run = tradewind.join()  # run.yaml has the batch size and the rounds, tw up the rest
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=3e-3))
    for inputs, targets in run.shard(loader):
        loss = torch.nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device))
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
    run.close()

    with torch.no_grad():
        right = (model(points.to(device)).argmax(1).cpu() == arms).float().mean()
    print(f"{float(right):.1%} right after round {run.round}")
    return run.exit_code


if __name__ == "__main__":
    sys.exit(main())
