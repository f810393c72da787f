# SPDX-License-Identifier: Apache-2.0
"""Writes bible.bin (words as uint16 tokens) and model.pt (a transformer): python3 prepare.py [text]"""
import collections
import pathlib
import re
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
WORDS = 4096
CONTEXT = 64
WIDTH = 128
HEADS = 4


class Block(nn.Module):
    """Attention to what came before, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.width = HEADS, WIDTH  # TorchScript knows no variables of the module around
        self.before_mix = nn.LayerNorm(WIDTH)
        self.all = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.register_buffer("later", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, length = x.size(0), x.size(1)
        all = self.all(self.before_mix(x)).view(samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = all[0].matmul(all[1].transpose(-2, -1)) * (self.width / self.heads) ** -0.5
        weights = (scores + self.later[:length, :length]).softmax(-1)
        x = x + self.mix(weights.matmul(all[2]).transpose(1, 2).reshape(samples, length, self.width))
        return x + self.layers(x)


class Words(nn.Module):
    """Says the next word. forward(inputs, targets) is the mean loss; both are int64 [samples, CONTEXT]."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.LayerNorm(WIDTH)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        places = torch.arange(inputs.size(1))
        x = self.last(self.blocks(self.words(inputs) + self.places(places)))
        return F.linear(x, self.words.weight)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.logits(inputs).flatten(0, 1), targets.flatten())

    @torch.jit.export
    def correct(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (self.logits(inputs).argmax(-1) == targets).sum()


if __name__ == "__main__":
    text = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "../../data-cache/bible.txt")
    found = re.findall(r"\w+|[^\w\s]", text.read_text(errors="replace"))
    common = [word for word, _ in collections.Counter(found).most_common(WORDS - 1)]
    number = {word: i + 1 for i, word in enumerate(common)}  # 0: any other word
    tokens = np.array([number.get(word, 0) for word in found], dtype="<u2")
    tokens.tofile(HERE / "bible.bin")
    torch.manual_seed(1)
    torch.jit.script(Words()).save(str(HERE / "model.pt"))
    print(f"wrote {HERE / 'bible.bin'} ({len(tokens)} tokens) and {HERE / 'model.pt'}")
