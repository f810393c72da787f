#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BatchNorm: its running statistics are part of the model, the same on every peer after each round.

buffers="mean" (the default): the moving average takes a step for each forward pass of all peers.
buffers="local": each peer keeps its own, as DistributedDataParallel without broadcast does.
"""

import argparse

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset


def main(small, buffers):
    torch.manual_seed(1)
    inputs = torch.randn(600, 3, 8, 8) * 3 + 1
    targets = (inputs.mean((1, 2, 3)) > 1).long()
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(288, 2),
    ).to(memory_format=torch.channels_last)

    run = tradewind.join(target_batch_size=128, rounds=5 if small else 100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    opt = run.optimizer(
        model, optimizer, scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 30), buffers=buffers
    )
    for x, y in run.shard(DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        if opt.step() and run.round % 5 == 0 and run.is_first:
            with run.paused("evaluating"):
                model.eval()
                with torch.no_grad():
                    right = (model(inputs).argmax(1) == targets).float().mean()
                model.train()
                print(
                    f"round {run.round}: {right:.2%} right, running mean"
                    f" {model[1].running_mean[:3].tolist()}"
                )
    run.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--buffers", choices=["mean", "local"], default="mean")
    arguments = parser.parse_args()
    main(arguments.small, arguments.buffers)
