# SPDX-License-Identifier: Apache-2.0
"""A real image model from a folder of JPEGs: ResNet-18 (He et al. 2016, BatchNorm) in TorchScript."""

import json
import random
import subprocess

import pytest
from machine import PROGRAM

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image", reason="no python3-pil (packages-engines.txt)")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

CLASSES, TRAINING, TEST, SIDE = 4, 2000, 200, 48
ROUNDS, BATCH = 40, 96


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

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.net(inputs), targets)

    @torch.jit.export
    def correct(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (self.net(inputs).argmax(1) == targets).sum()


def picture(kind, dice):
    """Noise in which bars of a chance width and hue run one of four ways."""
    width, height = dice.randrange(60, 120), dice.randrange(60, 120)
    small = (width // 4, height // 4)
    image = Image.frombytes("RGB", small, dice.randbytes(3 * small[0] * small[1])).resize((width, height))
    period, hue = dice.randrange(10, 18), [dice.randrange(120, 256) for _ in range(3)]
    ways = ((1, 0), (0, 1), (1, 1), (1, -1))
    mask = Image.new("L", image.size)
    mask.putdata([160 * ((ways[kind][0] * x + ways[kind][1] * y) % period < period // 2)
                  for y in range(height) for x in range(width)])
    image.paste(tuple(hue), mask=mask)
    return image


def write_pictures(folder, count, seed):
    dice = random.Random(seed)
    for i in range(count):
        kind = i % CLASSES
        (folder / f"way{kind}").mkdir(parents=True, exist_ok=True)
        picture(kind, dice).save(folder / f"way{kind}/{i:05}.jpg", quality=85)


def tw(folder, *words):
    words = [PROGRAM, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_resnet_18_learns_from_jpegs(tmp_path):
    for name, count, seed in (("train", TRAINING, 1), ("test", TEST, 2)):
        write_pictures(tmp_path / f"{name}-pictures", count, seed)
        tw(tmp_path, "data", "pack", f"{name}-pictures", "--classes", "-o", f"shards/{name}")
        shards = sorted(map(str, (tmp_path / "shards").glob(f"{name}*.tar")))
        tw(tmp_path, "data", "index", *shards, "-o", f"{name}.twi")
    torch.manual_seed(1)
    torch.jit.script(ResNet18()).save(str(tmp_path / "resnet.pt"))
    (tmp_path / "run.yaml").write_text(
        "model: resnet.pt\n"
        f"data: {{index: train.twi, test_index: test.twi, inputs: jpg, targets: cls, image: {SIDE}}}\n"
        f"training: {{target_batch_size: {BATCH}, microbatch: 16, rounds: {ROUNDS}, codec: fp16}}\n"
        "schedule: {kind: cosine, learning_rate: 1e-3, warmup_rounds: 5}\n"
        f"evaluation: {{every: {ROUNDS}}}\n")
    words = ("--peers", 3, "--kill", "3@8", "--threads", 1, "--json")
    summary = json.loads(tw(tmp_path, "local", "run.yaml", *words))
    assert summary["identical"] and summary["rounds"] == ROUNDS
    assert summary["samples"] == ROUNDS * BATCH
    assert summary["test_accuracy"] > 0.6, "of four classes"
