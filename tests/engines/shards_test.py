# SPDX-License-Identifier: Apache-2.0
"""Training from shards in an object store that checks signatures (Ceph's S3 gateway), put there by s3cmd.
Answers webdataset#271 and streaming#437 (each sample once over machines that come and go).
"""

import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from ceph_bed import BUCKET, KEY, SECRET, CephBed, free_port, why_not
from machine import PROGRAM, ROOT, soon

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

MNIST = os.path.join(ROOT, "data-cache/mnist")
SHARDS, SAMPLES, BATCH, ROUNDS = 10, 30_000, 512, 60
URL = f"s3://{BUCKET}/mnist/train-{{0..{SHARDS - 1}}}.tar"


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


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    pictures, labels = digits("train")
    each = SAMPLES // SHARDS
    forms = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for i in range(SHARDS):
        here = slice(i * each, (i + 1) * each)
        write_tar(folder / f"train-{i}.tar", pictures[here], labels[here], i * each, forms[i % 3])
    pictures, labels = digits("t10k")
    write_tar(folder / "test.tar", pictures[:5000], labels[:5000], 0)
    return folder


@pytest.fixture(scope="module")
def bed(tmp_path_factory, shards):
    bed = CephBed(tmp_path_factory.mktemp("ceph") / "bed")
    try:
        bed.up()
        bed.s3cmd("put", *map(str, sorted(shards.glob("train-*.tar"))), f"s3://{BUCKET}/mnist/")
        yield bed
    finally:
        bed.down()


def tw(bed, *words, folder, **environment):
    env = {**os.environ, **(bed.environment if bed else {}), **environment}
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=280,
                          cwd=folder, env=env)


def write_run(folder, more="", microbatch=64):
    (folder / "run.yaml").write_text(
        "model: mnist-cnn\n"
        f"data: {{index: train.twi, test_index: test.twi, inputs: npy, targets: cls{more}}}\n"
        f"training: {{target_batch_size: {BATCH}, microbatch: {microbatch}, rounds: {ROUNDS}, codec: fp16}}\n"
        "optimizer: {beta2: 0.98}\n"
        "schedule: {kind: cosine, learning_rate: 5e-3, warmup_rounds: 10, final_share: 0.05}\n"
        "evaluation: {every: 30}\n")


def indexed(bed, shards, folder):
    for words in ((URL, "-o", "train.twi"), (shards / "test.tar", "-o", "test.twi")):
        done = tw(bed, "data", "index", *words, folder=folder)
        assert done.returncode == 0, done.stderr
    return done


def sent_bytes(bed):
    """By the gateway's own log, of answers with a range."""
    log = "".join(path.read_text(errors="replace") for path in bed.folder.glob("*rgw*.log"))
    return sum(int(count) for count in re.findall(r'"GET /[^"]*\.tar HTTP/1.1" 206 (\d+)', log))


def moved_share(bed, shards, before):
    """Bytes that the gateway sent since then, of those that the samples of a run have in the tars."""
    time.sleep(1)  # until the gateway has written its log
    tars = sum(path.stat().st_size for path in shards.glob("train-*.tar"))
    share = (sent_bytes(bed) - before) / (tars * ROUNDS * BATCH / SAMPLES)
    print(f"{share:.3f} of the bytes that were used")
    return share


def test_peers_that_are_killed_and_join_use_each_sample_once(bed, shards, tmp_path):
    indexed(bed, shards, tmp_path)
    write_run(tmp_path, microbatch=16)
    before = sent_bytes(bed)
    done = tw(bed, "local", "run.yaml", "--peers", 4, "--kill", "2@10", "--kill", "3@20", "--join", 25,
              "--threads", 1, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["identical"] and summary["rounds"] == ROUNDS
    assert summary["samples"] == ROUNDS * BATCH, "exactly the samples of the rounds"
    assert summary["test_accuracy"] > 0.94, "as from IDX files"
    # 1.04 to 1.1 on two cores: a microbatch that moves to another peer after it was read is read by both.
    assert 0.5 < moved_share(bed, shards, before) < 1.25


def test_the_role_of_a_machine_is_a_name(bed, tmp_path):
    """As an EC2 instance without keys: its metadata service has them."""
    port = free_port()
    words = [sys.executable, Path(__file__).with_name("imds.py"), "aws", "--listen", f"127.0.0.1:{port}"]
    service = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout.readline() == "ready\n"
        keys = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": soon(3600)}
        for path, said in (("", "reader"), ("reader", json.dumps(keys))):
            service.stdin.write(f"iam/security-credentials/{path} {said}\n")
            service.stdin.flush()
            assert service.stdout.readline() == "done\n"
        without = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path)}
        words = ("data", "index", URL, "-o", "train.twi")
        refused = tw(bed, *words, folder=tmp_path, **without)
        assert refused.returncode == 1 and "nobody: no credentials" in refused.stderr
        service_at = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{port}"}
        done = tw(bed, *words, folder=tmp_path, **without, **service_at)
        assert done.returncode == 0, done.stderr
    finally:
        service.kill()
        service.wait()


def test_one_peer_reads_each_byte_once(bed, shards, tmp_path):
    indexed(bed, shards, tmp_path)
    write_run(tmp_path)
    before = sent_bytes(bed)
    done = tw(bed, "local", "run.yaml", "--peers", 1, "--threads", 1, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert 0.9 < moved_share(bed, shards, before) < 1.05
    log = (tmp_path / "tw-out/events-1.jsonl").read_text().splitlines()
    told = [event for event in map(json.loads, log) if event["phase"] == "traffic"][-1]
    name = bed.environment["AWS_ENDPOINT_URL"].split("//")[1]
    assert told[f"from:{name}"] == pytest.approx(sent_bytes(bed) - before, rel=0.01)
    assert told[f"asked:{name}"] > ROUNDS


def test_a_store_that_is_away_for_a_while_only_delays_the_run(bed, shards, tmp_path):
    indexed(bed, shards, tmp_path)
    write_run(tmp_path)
    env = {**os.environ, **bed.environment}
    with open(tmp_path / "printed.txt", "w") as out:
        run = subprocess.Popen([PROGRAM, "local", "run.yaml", "--peers", "2", "--threads", "1"],
                               stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path, env=env)
    try:
        log = tmp_path / "tw-out/events-1.jsonl"
        end = time.monotonic() + 60
        while not (log.exists() and log.read_text().count('"commit"') > 5):
            assert time.monotonic() < end, (tmp_path / "printed.txt").read_text()
            time.sleep(0.1)
        bed.kill_gateway()
        time.sleep(5)
        bed.begin_gateway()
        assert run.wait(timeout=200) == 0, (tmp_path / "printed.txt").read_text()
    finally:
        run.kill()
    waits = [line for line in log.read_text().split("\n") if '"wait"' in line and "for data" in line]
    assert waits, "the wait has its reason"


def test_an_object_that_changed_ends_the_run_with_both_versions(bed, shards, tmp_path):
    name = f"s3://{BUCKET}/changes.tar"
    bed.s3cmd("put", str(shards / "train-0.tar"), name)
    assert tw(bed, "data", "index", name, "-o", "train.twi", folder=tmp_path).returncode == 0
    bed.s3cmd("put", str(shards / "train-1.tar"), name)
    done = tw(bed, "data", "verify", "train.twi", folder=tmp_path)
    assert done.returncode == 1
    assert re.search(r"changed since its index was made: expected ETag \"\w+\", found \"\w+\"", done.stderr)


def test_a_wrong_secret_is_told_without_any_secret(bed, tmp_path):
    done = tw(bed, "data", "index", URL, "-o", "train.twi", folder=tmp_path,
              AWS_SECRET_ACCESS_KEY="not" + SECRET)
    assert done.returncode == 1
    assert "403 SignatureDoesNotMatch" in done.stderr and f"as key {KEY}" in done.stderr
    assert SECRET not in done.stderr
