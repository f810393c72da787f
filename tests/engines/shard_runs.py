# SPDX-License-Identifier: Apache-2.0
"""Runs from shards: MNIST in tars, and the account of samples that their event logs keep (docs/events.md).
The order of samples is computed here anew (Feistel network over blocks, cycle walking), not by tradewind.
"""

import io
import json
import os
import struct
import subprocess
import tarfile
from collections import Counter

from machine import PROGRAM, ROOT

MNIST = os.path.join(ROOT, "data-cache/mnist")
MASK = (1 << 64) - 1


def digits(kind):
    """Pictures (784 bytes each) and labels."""
    with open(f"{MNIST}/{kind}-images-idx3-ubyte", "rb") as file:
        pictures = file.read()[16:]
    with open(f"{MNIST}/{kind}-labels-idx1-ubyte", "rb") as file:
        labels = file.read()[8:]
    return [pictures[i * 784:(i + 1) * 784] for i in range(len(labels))], labels


def npy(picture):
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }"
    head += b" " * (117 - len(head)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + picture


def write_tar(path, pictures, labels, first, form=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=form) as tar:
        for i, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            for field, content in (("npy", npy(picture)), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{first + i:06}.{field}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def write_shards(folder, samples, shards):
    """train-0.tar and so forth, in each of the three formats, and test.tar with 5,000 samples."""
    pictures, labels = digits("train")
    each = samples // shards
    forms = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for i in range(shards):
        here = slice(i * each, (i + 1) * each)
        write_tar(folder / f"train-{i}.tar", pictures[here], labels[here], i * each, forms[i % 3])
    pictures, labels = digits("t10k")
    write_tar(folder / "test.tar", pictures[:5000], labels[:5000], 0)


def tw(folder, *words, env=None, limit_s=280, status=0):
    words = [PROGRAM, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, cwd=folder,
                          env={**os.environ, **(env or {})})
    assert done.returncode == status, done.stderr[-3000:]
    return done


def write_run(folder, batch, rounds, microbatch, more="", data=None):
    data = data or "index: train.twi, test_index: test.twi, inputs: npy, targets: cls"
    (folder / "run.yaml").write_text(
        f"model: mnist-cnn\ndata: {{{data}{more}}}\n"
        f"training: {{target_batch_size: {batch}, microbatch: {microbatch}, rounds: {rounds}, codec: fp16, "
        "exact_batches: true}\n"
        "optimizer: {beta2: 0.98}\n"
        f"schedule: {{kind: cosine, learning_rate: 5e-3, warmup_rounds: {rounds // 10}, final_share: 0.05}}\n"
        f"evaluation: {{every: {rounds}}}\n")


def mixed(a, b):
    """SplitMix64 of two numbers."""
    z = (a ^ b * 0xd6e8feb86659fd93 & MASK) + 0x9e3779b97f4a7c15 & MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def permuted(key, size, i):
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    while True:
        left, right = i >> half, i & (1 << half) - 1
        for step in range(8):
            left, right = right, left ^ mixed(mixed(key, step), right) & (1 << half) - 1
        i = left << half | right
        if i < size:
            return i


def index_of(sample, seed, size, block):
    place, blocks = sample % size, size // block
    if place // block >= blocks:
        return place
    return permuted(mixed(seed, sample // size), blocks, place // block) * block + place % block


def events_of(out, phase):
    for log in sorted(out.glob("events-*.jsonl")):
        for line in log.read_text().splitlines():
            event = json.loads(line)
            if event["phase"] == phase:
                yield event


def records_of(out):
    """For each round of the history that the logs end with: the numbers of samples by contributor."""
    records = {event["digest"]: event for event in events_of(out, "commit")}
    at = max(records.values(), key=lambda event: event["samples_total"])
    history = []
    while at is not None:
        parts = {key[8:]: text for key, text in at.items() if key.startswith("samples:")}
        history.append({
            int(peer): [range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)
                        for part in text.split(",")]
            for peer, text in parts.items()
        })
        at = records.get(at["parent"])
    return history[::-1]


def expect_each_once(out, rounds, epochs):
    """The records name each sample of the data set once an epoch; returns them."""
    start = next(events_of(out, "start"))
    size, seed, block = start["dataset"], int(start["seed"]), start["block"]
    records = records_of(out)
    assert len(records) == rounds
    seen = Counter((sample // size, index_of(sample, seed, size, block)) for sample in samples_in(records))
    assert set(seen.values()) == {1}, "no sample twice"
    all_of_them = {(epoch, index) for epoch in range(epochs) for index in range(size)}
    assert set(seen) == all_of_them, "and none left out"
    return records


def samples_in(records):
    return (sample for record in records for parts in record.values() for part in parts for sample in part)
