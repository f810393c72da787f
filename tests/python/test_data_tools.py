# SPDX-License-Identifier: Apache-2.0
"""Other people's programs at both ends of the data: webdataset, safetensors and moto, of integrations.txt."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import pytest
import torch
import tradewind
from conftest import python_path
from models import data, loss_of, with_batch_norm
from shard_files import PROGRAM
from tradewind.__main__ import main as export_main

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)"),
]
SAMPLES, BATCH = 600, 60  # an epoch is 10 rounds


def tw(folder: Path, *words: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=200, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pictures() -> Iterator[Tuple[np.ndarray, int]]:
    """Noise with a bright stripe: the class is its place."""
    dice = np.random.default_rng(1)
    for i in range(SAMPLES):
        image = dice.integers(0, 100, (28, 28), dtype=np.uint8)
        image[2 + 2 * (i % 10) : 4 + 2 * (i % 10)] += 120
        yield image, i % 10


def write_webdataset(folder: Path) -> List[str]:
    wds = pytest.importorskip("webdataset")
    with wds.ShardWriter(str(folder / "train-%06d.tar"), maxcount=200, verbose=0) as writer:
        for i, (image, label) in enumerate(pictures()):
            writer.write({"__key__": f"sample{i:06}", "npy": image, "cls": label, "json": {"number": i}})
    return sorted(path.name for path in folder.glob("train-*.tar"))


TRAIN = f"""
import torch, tradewind
torch.manual_seed(1)
data = tradewind.data.shards("train.twi", fields=("npy", "cls"), decode=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 10))
run = tradewind.join(target_batch_size={BATCH}, rounds={SAMPLES // BATCH})
opt = run.optimizer(model, torch.optim.Adam(model.parameters(), lr=3e-3))
for pictures, classes in run.shard(data, batch_size=10):
    loss = torch.nn.functional.cross_entropy(model(pictures.float() / 255), classes)
    loss.backward()
    opt.step(loss=loss)
    opt.zero_grad()
run.close()
"""


def train_an_epoch(folder: Path, **environment: str) -> None:
    """Ten rounds of two peers from train.twi: the records have each sample once."""
    (folder / "train.py").write_text(TRAIN)
    environment["PYTHONPATH"] = python_path()
    tw(folder, "run", "--peers", "2", "--out", "tw-out", "--", sys.executable, "train.py", **environment)
    told = tw(folder, "report", "tw-out", "--samples", "samples.csv")
    assert told == f"samples.csv: {SAMPLES // BATCH} rounds, {SAMPLES} samples, each once\n"
    rows = [line.split(",") for line in (folder / "samples.csv").read_text().splitlines()[1:]]
    assert sorted(int(row[4]) for row in rows) == list(range(SAMPLES))
    lines = (folder / "tw-out/events-1.jsonl").read_text().splitlines()
    commits = [event for event in map(json.loads, lines) if event["phase"] == "commit"]
    losses = [event["loss"] for event in commits if "loss" in event]
    assert losses[-1] < 0.85 * losses[0]


def test_a_run_trains_on_tars_that_webdataset_writes(tmp_path: Path) -> None:
    shards = write_webdataset(tmp_path)
    assert len(shards) == 3
    tw(tmp_path, "data", "index", *shards, "-o", "train.twi")
    tw(tmp_path, "data", "verify", "train.twi")
    train_an_epoch(tmp_path)


def test_webdataset_reads_tars_that_tw_packs(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    for i in range(30):
        folder = tmp_path / f"texts/class{i % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:03}.txt").write_text(f"text {i}")
    tw(tmp_path, "data", "pack", "texts", "--classes", "-o", "packed")
    shards = sorted(map(str, tmp_path.glob("packed*.tar")))
    samples = list(wds.WebDataset(shards, shardshuffle=False).decode())
    found = {sample["txt"]: sample["cls"] for sample in samples}
    assert found == {f"text {i}": i % 3 for i in range(30)}


def test_safetensors_reads_what_a_checkpoint_is_exported_to(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.torch")
    kept = {"checkpoint.folder": str(tmp_path / "kept")}
    model = with_batch_norm()
    with tradewind.join(target_batch_size=8, rounds=2, settings=kept) as run:
        opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for inputs, targets in run.batches([data()] * 2):
            loss_of(model, inputs, targets).backward()
            opt.step()
            opt.zero_grad()
    out = tmp_path / "model.safetensors"
    assert export_main(["export", str(tmp_path / "kept"), "-o", str(out)]) == 0
    tensors: Dict[str, Any] = files.load_file(out)
    state = model.state_dict()
    assert set(tensors) == set(state) - {"1.num_batches_tracked"}
    assert all(torch.equal(values, state[name]) for name, values in tensors.items())


@pytest.fixture
def moto(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("moto.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with open(tmp_path / "moto.txt", "w") as out:
        server = subprocess.Popen(words, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/moto-api/", timeout=2).close()
                break
            except OSError:
                assert time.monotonic() < end and server.poll() is None, (tmp_path / "moto.txt").read_text()
                time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


def test_a_run_reads_shards_from_moto(moto: str, tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3")
    keys = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "a secret"}
    client = boto3.client("s3", endpoint_url=moto, region_name="us-east-1",
                          aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
                          aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"])
    client.create_bucket(Bucket="shards")
    for shard in write_webdataset(tmp_path):
        client.upload_file(str(tmp_path / shard), "shards", f"set/{shard}")
        (tmp_path / shard).unlink()
    environment = {**keys, "AWS_ENDPOINT_URL": moto}
    tw(tmp_path, "data", "index", "s3://shards/set/", "-o", "train.twi", **environment)
    train_an_epoch(tmp_path, **environment)
    asked = (tmp_path / "moto.txt").read_text()
    assert len(re.findall(r'GET /shards/set/\S+ HTTP/1\.1[^"]*" 206', asked)) > 10
    assert keys["AWS_SECRET_ACCESS_KEY"] not in (tmp_path / "tw-out/events-1.jsonl").read_text()
