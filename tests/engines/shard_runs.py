# SPDX-License-Identifier: Apache-2.0
"""Runs from shards: MNIST in tars, a loop over them, and the account of samples that their event logs keep
(docs/events.md).
"""

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

from machine import PROGRAM, ROOT

LOOP = Path(__file__).with_name("shard_loop.py")
MNIST = os.path.join(ROOT, "data-cache/mnist")


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
    """train-0.tar and so forth, in each of the three formats."""
    pictures, labels = digits("train")
    each = samples // shards
    forms = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for i in range(shards):
        here = slice(i * each, (i + 1) * each)
        write_tar(folder / f"train-{i}.tar", pictures[here], labels[here], i * each, forms[i % 3])


def tw(folder, *words, env=None, limit_s=280, status=0):
    words = [PROGRAM, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, cwd=folder,
                          env={**os.environ, **(env or {})})
    assert done.returncode == status, done.stderr[-3000:]
    return done


def write_run(folder, batch, rounds):
    (folder / "run.yaml").write_text(
        f"training: {{target_batch_size: {batch}, rounds: {rounds}, exact_batches: true}}\n"
        "checkpoint: {folder: none}\n")


def loop_of(peers, batch_size, *words):
    """Words of `tw` that train on train.twi with so many peers, so many samples a step."""
    program = [sys.executable, LOOP, batch_size]
    return ["run", "run.yaml", "--peers", peers, "--out", "out", *words, "--", *program]


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


def expect_each_once(folder, rounds, batch):
    """The records name each sample of these rounds once."""
    records = records_of(folder / "out")
    assert len(records) == rounds
    assert sorted(samples_in(records)) == list(range(rounds * batch)), "each sample once"
    return records


def keys_given(folder):
    """Keys of the samples that the loops were given, those of all peers."""
    return [key for file in folder.glob("keys-*.txt") for key in file.read_text().split()]


def samples_in(records):
    return (sample for record in records for parts in record.values() for part in parts for sample in part)
