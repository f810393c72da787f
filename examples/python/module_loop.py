#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The structure of Lightning without it: a module with hooks, a trainer that calls them with a closure."""

import argparse

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset


class Regression(torch.nn.Module):
    """What a LightningModule has: its steps, its optimizer, its schedule."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))

    def training_step(self, batch):
        inputs, targets = batch
        return torch.nn.functional.mse_loss(self.layers(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def configure_scheduler(self, optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=1000)


class Trainer:
    """Calls the hooks. The two lines that a run adds are marked."""

    def __init__(self, run):
        self.run = run

    def fit(self, module, loader):
        optimizer = module.configure_optimizers()
        optimizer = self.run.optimizer(module, optimizer, scheduler=module.configure_scheduler)  # tradewind
        losses = []
        for batch in self.run.shard(loader):  # tradewind

            def closure():
                optimizer.zero_grad()
                loss = module.training_step(batch)
                loss.backward()
                return loss

            losses.append(float(optimizer.step(closure)))
        return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    small = parser.parse_args().small
    torch.manual_seed(1)
    data = torch.randn(1000, 8)
    loader = DataLoader(TensorDataset(data, data.prod(1, keepdim=True)), batch_size=32, shuffle=True)
    with tradewind.join(target_batch_size=128, rounds=10 if small else 300) as run:
        losses = Trainer(run).fit(Regression(), loader)
        print(f"{run.round} rounds, loss {losses[0]:.4f} -> {losses[-1]:.4f}")
