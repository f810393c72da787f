#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed precision and gradient accumulation: torch's autocast and GradScaler, several batches a step().

run.batches(loader) counts what was taken since the last step(). Where the scaler finds infinities it calls no
step(): these samples do not count, and other batches take their place.
"""

import argparse

import torch
import tradewind
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


def main(small):
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    inputs = torch.randn(512, 32)
    targets = inputs.sum(1, keepdim=True).sin()
    model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)).to(
        device
    )
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
    scaler = torch.cuda.amp.GradScaler(enabled=device == "cuda")
    dtype = torch.float16 if device == "cuda" else torch.bfloat16

    run = tradewind.join(target_batch_size=256, rounds=10 if small else 200)
    opt = run.optimizer(model, torch.optim.Adam(model.parameters(), lr=1e-3), clip_grad_norm=1.0)
    losses = []
    for number, (x, y) in enumerate(run.batches(loader), 1):
        with torch.autocast(device, dtype=dtype):
            loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        scaler.scale(loss / ACCUMULATE).backward()
        losses.append(float(loss.detach()))
        if number % ACCUMULATE == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
    print(
        f"{run.round} rounds, {run.samples} samples, loss {losses[0]:.3f} -> {losses[-1]:.3f},"
        f" {run.metrics}"
    )
    run.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    main(parser.parse_args().small)
