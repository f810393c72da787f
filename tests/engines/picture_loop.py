# SPDX-License-Identifier: Apache-2.0
"""One peer that trains ResNet-18 on the JPEGs of train.twi, and then says how many of test.twi it knows."""
import sys

import torch
import tradewind
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

CLASSES, SIDE = 4, 48


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        straight = [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)]
        self.straight = nn.Sequential(*(straight if stride > 1 else []))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.way(x) + self.straight(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [64, 64, 128, 256, 512]
        blocks = []
        for before, after in zip(widths, widths[1:]):
            blocks += [Block(before, after, 1 if before == after else 2), Block(after, after, 1)]
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))

    def forward(self, inputs):
        return self.net(inputs)


def pictures_of(index):
    return tradewind.data.shards(index, fields=("jpg", "cls"), decode=True, image=SIDE, block=16)


torch.set_num_threads(1)
torch.manual_seed(1)
model = ResNet18()
run = tradewind.join()
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
for inputs, targets in run.shard(DataLoader(pictures_of("train.twi"), batch_size=16)):
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    opt.step(loss=loss)
    opt.zero_grad()
run.close()
model.eval()
with torch.no_grad():
    right = [(model(inputs).argmax(1) == targets).sum() for inputs, targets in
             DataLoader(pictures_of("test.twi"), batch_size=50)]
print("passes:", int(model.net[1].num_batches_tracked))
print("of the test pictures:", float(sum(right)) / len(pictures_of("test.twi")))
sys.exit(run.exit_code)
