# SPDX-License-Identifier: Apache-2.0
"""One peer that trains on train.twi, as a program of `tw run`: shard_loop.py SAMPLES_A_STEP.

It writes what it was given: keys-ID.txt has a line for each batch, with the keys of its samples.
"""
import os
import sys

import torch
import tradewind

batch_size = int(sys.argv[1])
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
data = tradewind.data.shards("train.twi", fields=("npy", "cls", "__key__"), decode=True, block=batch_size)
run = tradewind.join()
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
with open(f"keys-{os.getpid()}.txt", "w") as given:
    for pictures, labels, keys in run.shard(torch.utils.data.DataLoader(data, batch_size=batch_size)):
        print(*keys, file=given, flush=True)
        loss = torch.nn.functional.cross_entropy(model(pictures.float() / 255), labels)
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
sys.exit(run.exit_code)
