#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of tokens as a data set: train.bin of nanoGPT, or the .bin and .idx of Megatron-LM.

python3 tokens.py [train.bin]        without a file it makes one of each kind
"""

import argparse
import struct
import tempfile
from pathlib import Path

import numpy
import torch
import tradewind


class Tokens(torch.utils.data.Dataset):
    """Every `context` tokens of a file, and those that follow them; mapped, not read. The type of a token is
    that of the .idx of Megatron-LM beside it, else uint16 as in nanoGPT.
    """

    TYPES = {1: numpy.uint8, 2: numpy.int8, 3: numpy.int16, 4: numpy.int32, 5: numpy.int64, 8: numpy.uint16}

    def __init__(self, path, context):
        index, dtype = Path(path).with_suffix(".idx"), numpy.uint16
        if index.exists():
            magic, version, code = struct.unpack("<9sQB", index.read_bytes()[:18])
            assert (magic, version) == (b"MMIDIDX\0\0", 1), f"{index}: not of Megatron-LM"
            dtype = self.TYPES[code]
        self.tokens, self.context = numpy.memmap(path, dtype, "r"), context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index):
        first = index * self.context
        passage = torch.from_numpy(self.tokens[first : first + self.context + 1].astype(numpy.int64))
        return passage[:-1], passage[1:]


def write_examples(folder):
    """Ten thousand tokens in which each one follows from that before it, in both formats."""
    tokens = numpy.cumsum(numpy.arange(10_000) % 7) % 50
    tokens.astype(numpy.uint16).tofile(folder / "train.bin")
    tokens.astype(numpy.int32).tofile(folder / "corpus.bin")
    (folder / "corpus.idx").write_bytes(struct.pack("<9sQB", b"MMIDIDX\0\0", 1, 4))
    return [folder / "train.bin", folder / "corpus.bin"]


def train(path, rounds):
    torch.manual_seed(1)
    data = Tokens(path, context=32)
    words = int(data.tokens.max()) + 1
    model = torch.nn.Sequential(torch.nn.Embedding(words, 64), torch.nn.GRU(64, 64, batch_first=True))
    scores = torch.nn.Linear(64, words)
    run = tradewind.join(target_batch_size=64, rounds=rounds)
    both = torch.nn.ModuleList([model, scores])
    opt = run.optimizer(both, torch.optim.AdamW(both.parameters(), lr=1e-2))
    for text, following in run.shard(torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)):
        loss = torch.nn.functional.cross_entropy(scores(model(text)[0]).flatten(0, 1), following.flatten())
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
    run.close()
    return float(loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", help="the .bin; an .idx beside it is found")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for file in [Path(arguments.file)] if arguments.file else write_examples(Path(folder)):
            print(f"{file.name}: loss {train(file, 8 if arguments.small else 200):.3f}")
