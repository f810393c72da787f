# SPDX-License-Identifier: Apache-2.0
"""What `tw report --tensorboard` writes of a real run, by TensorBoard's own reader, against `--csv`."""

from __future__ import annotations

import csv
import os
import struct
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]
BUILD = Path(__file__).resolve().parents[2] / "build"
PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(BUILD / "tw"))
TOY = os.environ.get("TRADEWIND_TOY", str(BUILD / "tests/toy"))  # tests/toy/toy.c
ROUNDS = 6
RUN = f"training: {{target_batch_size: 64, rounds: {ROUNDS}}}\n"
PLAN = "peers:\n  - {gpu: cpu, site: 'onprem:eu', count: 2, purchase: on_demand, usd_per_h: 3.6}\n"
TAGS = {
    "loss/batch": "loss",
    "speed/calc_s": "calc_s",
    "speed/comm_s": "comm_s",
}


def tw(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two real peers, exported."""
    folder = tmp_path_factory.mktemp("tensorboard")
    (folder / "run.yaml").write_text(RUN)
    (folder / "plan.yaml").write_text(PLAN)
    program = ("--", TOY, "--batch", "16", "--work-ms", "10")
    tw(folder, "run", "run.yaml", "--peers", "2", "--out", "out", "--insecure", *program)
    tw(folder, "report", "out", "--plan", "plan.yaml", "--tensorboard", "tb", "--csv", "csv")
    return folder


def test_its_reader_finds_every_scalar(run: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run / "tb"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {
        *TAGS, "speed/samples_per_s", "speed/granularity", "run/contributors", "money/usd",
        "money/usd_per_million_samples"}

    with open(run / "csv/rounds.csv", newline="") as table:
        rounds: List[Dict[str, str]] = [row for row in csv.DictReader(table) if row["committed_unix_s"]]
    assert len(rounds) == ROUNDS
    for tag, column in TAGS.items():
        found = {event.step: event for event in events.Scalars(tag)}
        told = {int(row["round"]): row for row in rounds if row[column]}
        assert set(found) == set(told) and told, tag
        for number, event in found.items():
            assert event.value == pytest.approx(float(told[number][column]), rel=1e-6)
            assert event.wall_time == pytest.approx(float(told[number]["committed_unix_s"]), abs=1e-3)
    usd = [event.value for event in events.Scalars("money/usd")]
    assert usd == sorted(usd) and usd[0] > 0 and len(usd) == ROUNDS


def test_its_checksums_are_those_of_a_strict_reader(run: Path) -> None:
    """TensorBoard's own reader leaves some checksums alone where TensorFlow is missing."""
    def crc32c(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    (file,) = (run / "tb").iterdir()
    rest, records = file.read_bytes(), 0
    while rest:
        (length,) = struct.unpack("<Q", rest[:8])
        assert struct.unpack("<I", rest[8:12])[0] == crc32c(rest[:8])
        assert struct.unpack("<I", rest[12 + length:16 + length])[0] == crc32c(rest[12:12 + length])
        rest, records = rest[16 + length:], records + 1
    assert records == 1 + ROUNDS
