#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An exponential moving average (EMA) of the weights, which joiners and checkpoints get with the run."""

import argparse
import copy

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset

KEPT = 0.99


@torch.no_grad()
def move(ema, model):
    """One step of the average."""
    for mine, theirs in zip(ema.parameters(), model.parameters()):
        mine.mul_(KEPT).add_(theirs, alpha=1 - KEPT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    small = parser.parse_args().small
    torch.manual_seed(1)
    inputs = torch.randn(1000, 8)
    targets = inputs.prod(1, keepdim=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    ema = copy.deepcopy(model)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=32)
    with tradewind.join(target_batch_size=128, rounds=10 if small else 300) as run:
        opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
        run.extra_state(ema.state_dict, ema.load_state_dict, after_round=lambda: move(ema, model))
        for batch, wanted in run.shard(loader):
            torch.nn.functional.mse_loss(model(batch), wanted).backward()
            opt.step()
            opt.zero_grad()
        with torch.no_grad():
            losses = [float(torch.nn.functional.mse_loss(one(inputs), targets)) for one in (model, ema)]
        print(f"round {run.round}: loss {losses[0]:.4f}, of the average {losses[1]:.4f}")
