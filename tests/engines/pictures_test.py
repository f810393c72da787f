# SPDX-License-Identifier: Apache-2.0
"""A real image model from a folder of JPEGs: ResNet-18 (He et al. 2016, BatchNorm)."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from machine import PROGRAM

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image", reason="no python3-pil (packages-engines.txt)")

LOOP = Path(__file__).with_name("picture_loop.py")
CLASSES, TRAINING, TEST = 4, 2000, 200
ROUNDS, BATCH, MICROBATCH = 40, 96, 16


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
    (tmp_path / "run.yaml").write_text(
        f"training: {{target_batch_size: {BATCH}, rounds: {ROUNDS}, codec: fp32, exact_batches: true}}\n")
    crew = ("--peers", 3, "--kill", "3@8", "--out", "out")
    said = tw(tmp_path, "run", "run.yaml", *crew, "--", sys.executable, LOOP)
    summary = json.loads(tw(tmp_path, "report", "out", "--json"))
    assert summary["identical"] and summary["rounds"] == ROUNDS
    assert summary["samples"] == ROUNDS * BATCH
    # Each once, though a peer died.
    assert re.findall(r"passes: (\d+)", said) == 2 * [str(ROUNDS * BATCH // MICROBATCH)]
    found = [float(share) for share in re.findall(r"of the test pictures: (\S+)", said)]
    assert len(found) == 2 and min(found) > 0.5, "of four classes"
