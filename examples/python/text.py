#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A transformer that learns to write, byte by byte: run.fit() instead of a loop, a schedule, clipping."""

import argparse
import math
import sys
from pathlib import Path

import torch
import tradewind

TEXT = Path(__file__).resolve().parents[2] / "data-cache/bible.txt"


class Passages(torch.utils.data.Dataset):
    """Every `context` bytes of a file, and the bytes that follow them."""

    def __init__(self, text, context):
        self.text, self.context = torch.frombuffer(bytearray(text), dtype=torch.uint8).long(), context

    def __len__(self):
        return (len(self.text) - 1) // self.context

    def __getitem__(self, index):
        passage = self.text[index * self.context : (index + 1) * self.context + 1]
        return passage[:-1], passage[1:]


class Writer(torch.nn.Module):
    """[batch, context] bytes to [batch, context, 256] scores of the next one."""

    def __init__(self, width, layers, context):
        super().__init__()
        self.tokens = torch.nn.Embedding(256, width)
        self.places = torch.nn.Parameter(torch.randn(context, width) * 0.02)
        layer = torch.nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, layers)
        self.scores = torch.nn.Linear(width, 256)
        self.register_buffer("mask", torch.full((context, context), -math.inf).triu(1), persistent=False)

    def forward(self, text):
        return self.scores(self.layers(self.tokens(text) + self.places, self.mask))


def loss(model, batch):
    text, following = batch
    return torch.nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    small = parser.parse_args().small
    if not TEXT.exists():
        sys.exit(f"{TEXT} is missing: tools/fetch_data.sh of the repository fetches it")
    context = 32 if small else 64
    rounds = 5 if small else 1000
    torch.manual_seed(1)
    model = Writer(width=32 if small else 128, layers=1 if small else 4, context=context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05)

    with tradewind.join(target_batch_size=32 if small else 256, rounds=rounds) as run:
        summary = run.fit(
            model,
            loss,
            Passages(TEXT.read_bytes()[:20000] if small else TEXT.read_bytes(), context),
            optimizer,
            batch_size=16,
            scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=rounds),
            clip_grad_norm=1.0,
        )
    print(f"{summary.rounds} rounds, {summary.samples} samples, loss of the last round {summary.loss:.3f}")
