# SPDX-License-Identifier: Apache-2.0
"""Writes a model of your own as a file that `tw train` can train: python3 export.py [model.pt]"""
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Digits(nn.Module):
    """A perceptron for pictures of 28 x 28 pixels. Any module will do that has `forward(inputs, targets)`."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(28 * 28, 128),
            nn.LayerNorm(128),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(128, 10),
        )

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean loss of the batch."""
        return F.cross_entropy(self.layers(inputs), targets)

    @torch.jit.export
    def correct(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Number of right answers; leave it out if your model has no such thing."""
        return (self.layers(inputs).argmax(1) == targets).sum()


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).with_name("model.pt"))
    torch.manual_seed(1)  # the parameters in the file are those with which the run begins
    torch.jit.script(Digits()).save(path)
    print(f"wrote {path}")
