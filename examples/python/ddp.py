#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several processes of a node as one peer: DistributedDataParallel inside, tradewind between nodes.

torchrun --nproc-per-node 2 ddp.py      on every node, with its TRADEWIND_* in the environment
"""

import argparse

import torch
import torch.distributed as dist
import tradewind
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main(small):
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = (
        torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
        if torch.cuda.is_available()
        else "cpu"
    )
    torch.manual_seed(1)
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True).cos())
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    model = DistributedDataParallel(model)
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))

    run = tradewind.join(target_batch_size=128, rounds=10 if small else 200, group=dist.group.WORLD)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    for x, y in run.batches(loader):  # the samples of all ranks count
        loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        opt.zero_grad()
    print(f"rank {dist.get_rank()}: {run.round} rounds, loss {float(loss.detach()):.4f}")
    run.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    main(parser.parse_args().small)
