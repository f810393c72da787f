# SPDX-License-Identifier: Apache-2.0
"""The README's loop."""

import torch

import tradewind

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
samples = torch.randn(512, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(samples, samples.sum(1)), batch_size=64)
run = tradewind.join()
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for x, y in run.shard(loader):
    loss = (model(x)[:, 0] - y).pow(2).mean()
    loss.backward()
    opt.step(loss=loss)
    opt.zero_grad()
print("done", run.round, [value for p in model.parameters() for value in p.flatten().tolist()])
