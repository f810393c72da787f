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
from shard_files import PROGRAM

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


def train_an_epoch(folder: Path, more: str = "", **environment: str) -> None:
    """Ten rounds of two peers from train.twi: the records have each sample once."""
    (folder / "run.yaml").write_text(
        "model: mnist-cnn\ndata: {index: train.twi, inputs: npy, targets: cls}\n"
        f"training: {{target_batch_size: {BATCH}, microbatch: 10, rounds: {SAMPLES // BATCH}}}\n"
        f"checkpoint: {{folder: kept, every: 5}}\n{more}"
    )
    tw(folder, "local", "run.yaml", "--peers", "2", "--threads", "1", **environment)
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


def test_safetensors_reads_what_tw_exports_and_writes_what_a_run_begins_with(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.numpy")
    tw(tmp_path, "data", "index", *write_webdataset(tmp_path), "-o", "train.twi")
    train_an_epoch(tmp_path)
    tw(tmp_path, "export", "kept", "-o", "model.safetensors")
    tensors: Dict[str, Any] = files.load_file(tmp_path / "model.safetensors")
    assert tensors and all(np.isfinite(values).all() for values in tensors.values())
    begin = {name: values + np.float32(0.25) for name, values in tensors.items()}
    files.save_file(begin, tmp_path / "begin.safetensors", metadata={"format": "np"})
    second = tmp_path / "second"
    second.mkdir()
    (second / "run.yaml").write_text(
        (tmp_path / "run.yaml").read_text().replace("index: ", "index: ../").replace("every: 5", "every: 1")
        + "model.init: ../begin.safetensors\nschedule: {learning_rate: 1e-9}\n"
    )
    tw(second, "train", "run.yaml", "--quiet", "--set", "training.rounds=1")
    tw(second, "export", "kept", "-o", "model.safetensors")
    after = files.load_file(second / "model.safetensors")
    assert set(after) == set(begin)
    for name, values in after.items():
        np.testing.assert_allclose(values, begin[name], atol=1e-6, err_msg=name)


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
