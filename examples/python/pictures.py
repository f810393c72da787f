#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures as a data set, FOLDER/CLASS/NAME.jpg: needs Pillow.

python3 pictures.py [FOLDER]         without a folder it makes a small one

Millions of pictures in an object store: docs/data.md.
"""

import argparse
import tempfile
from pathlib import Path

import numpy
import torch
import tradewind
from PIL import Image


class Pictures(torch.utils.data.Dataset):
    """Pictures [3, side, side] from 0 to 1, the middle of each, and the number of its class."""

    def __init__(self, folder, side):
        self.classes = sorted(path.name for path in Path(folder).iterdir() if path.is_dir())
        self.files = sorted(Path(folder).glob("*/*.jpg"))
        self.side = side

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture = Image.open(self.files[index]).convert("RGB")
        least = min(picture.size)
        left, top = ((size - least) // 2 for size in picture.size)
        picture = picture.crop((left, top, left + least, top + least)).resize((self.side, self.side))
        values = torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)
        return values.float() / 255, self.classes.index(self.files[index].parent.name)


def write_examples(folder):
    """Red and blue noise."""
    dice = numpy.random.default_rng(1)
    for number in range(64):
        place = folder / ("red", "blue")[number % 2]
        place.mkdir(exist_ok=True)
        values = dice.integers(0, 128, (40, 48, 3), dtype=numpy.uint8)
        values[..., 2 * (number % 2)] += 127
        Image.fromarray(values).save(place / f"{number:03}.jpg")


def train(folder, rounds):
    torch.manual_seed(1)
    data = Pictures(folder, side=32)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=3),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, len(data.classes)),
    )
    run = tradewind.join(target_batch_size=32, rounds=rounds)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    for pictures, classes in run.shard(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)):
        loss = torch.nn.functional.cross_entropy(model(pictures), classes)
        loss.backward()
        opt.step(loss=loss)
        opt.zero_grad()
    run.close()
    return float(loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", help="one folder for each class")
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if not arguments.folder:
            write_examples(Path(made))
        print(f"loss {train(arguments.folder or made, 8 if arguments.small else 200):.3f}")
