# SPDX-License-Identifier: Apache-2.0
"""Training from shards in an object store that checks signatures (Ceph's S3 gateway), put there by s3cmd.
Answers webdataset#271 and streaming#437 (each sample once over machines that come and go).
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import shard_runs
from ceph_bed import BUCKET, KEY, SECRET, CephBed, free_port, why_not
from machine import PROGRAM, soon

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

SHARDS, SAMPLES = 10, 60_000
BATCH, ROUNDS, MICROBATCH = 600, 100, 10  # one epoch
URL = f"s3://{BUCKET}/mnist/train-{{0..{SHARDS - 1}}}.tar"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    shard_runs.write_shards(folder, SAMPLES, SHARDS)
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


def write_run(folder, rounds=ROUNDS):
    shard_runs.write_run(folder, BATCH, rounds)


def indexed(bed, url, folder):
    done = tw(bed, "data", "index", url, "-o", "train.twi", folder=folder)
    assert done.returncode == 0, done.stderr


def trained(bed, folder, peers, *words):
    done = tw(bed, *shard_runs.loop_of(peers, MICROBATCH, *words), folder=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def sent_bytes(bed):
    """By the gateway's own log, of answers with a range."""
    log = "".join(path.read_text(errors="replace") for path in bed.folder.glob("*rgw*.log"))
    return sum(int(count) for count in re.findall(r'"GET /[^"]*\.tar HTTP/1.1" 206 (\d+)', log))


def moved_share(bed, shards, before, rounds=ROUNDS):
    """Bytes that the gateway sent since then, of those that the samples of a run have in the tars."""
    time.sleep(1)  # until the gateway has written its log
    tars = sum(path.stat().st_size for path in shards.glob("train-*.tar"))
    share = (sent_bytes(bed) - before) / (tars * rounds * BATCH / SAMPLES)
    print(f"{share:.3f} of the bytes that were used")
    return share


@pytest.mark.timeout(600)
def test_peers_that_are_killed_and_join_use_each_sample_once(bed, shards, tmp_path):
    """An epoch of MNIST. The account is that of the records, the bytes are those of the gateway's log."""
    indexed(bed, URL, tmp_path)
    write_run(tmp_path)
    before = sent_bytes(bed)
    trained(bed, tmp_path, 4, "--kill", "2@20", "--kill", "3@35", "--join", 50)
    assert moved_share(bed, shards, before) <= 1.05
    records = shard_runs.expect_each_once(tmp_path, ROUNDS, BATCH)
    summary = json.loads(tw(bed, "report", "out", "--json", folder=tmp_path).stdout)
    assert summary["identical"] and summary["rounds"] == ROUNDS
    joined = {lost["peer"] for lost in summary["joined"]}
    assert {1, 2, 3, 4} <= set(records[9]) and joined & set(records[-1]) and not {2, 3} & set(records[-1])
    table = tw(bed, "report", "out", "--samples", "samples.csv", folder=tmp_path)
    assert table.stdout == f"samples.csv: {ROUNDS} rounds, {SAMPLES} samples, each once\n", table.stderr
    assert len(set(shard_runs.keys_given(tmp_path))) == SAMPLES, "an epoch has each sample of the shards"


def test_rclone_puts_a_shard_in_parts_and_a_run_reads_it(bed, shards, tmp_path):
    """A third client of S3. The ETag of an object of several parts is no digest of its bytes."""
    remote = {"TYPE": "s3", "PROVIDER": "Ceph", "ENDPOINT": bed.environment["AWS_ENDPOINT_URL"],
              "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    env.update({f"RCLONE_CONFIG_BED_{key}": value for key, value in remote.items()})
    (tmp_path / "put").mkdir()
    os.link(shards / "train-0.tar", tmp_path / "put/train-0.tar")
    words = ["rclone", "copy", "--s3-upload-cutoff=5M", "--s3-chunk-size=5M", "put", f"bed:{BUCKET}/rclone"]
    put = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert put.returncode == 0, put.stderr
    indexed(bed, f"s3://{BUCKET}/rclone/", tmp_path)
    write_run(tmp_path, rounds=10)
    trained(bed, tmp_path, 2)
    shard_runs.expect_each_once(tmp_path, 10, BATCH)
    assert len(set(shard_runs.keys_given(tmp_path))) == 10 * BATCH


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
    indexed(bed, URL, tmp_path)
    write_run(tmp_path, rounds=30)
    before = sent_bytes(bed)
    trained(bed, tmp_path, 1)
    assert 0.9 < moved_share(bed, shards, before, rounds=30) < 1.05


class Begun:
    """A run of two peers, once it has committed some rounds."""

    def __init__(self, bed, folder):
        self.printed = folder / "printed.txt"
        self.log = folder / "out/events-1.jsonl"
        with open(self.printed, "w") as out:
            self.process = subprocess.Popen([PROGRAM, *map(str, shard_runs.loop_of(2, MICROBATCH))],
                                            stdout=out, stderr=subprocess.STDOUT, cwd=folder,
                                            env={**os.environ, **bed.environment})
        end = time.monotonic() + 60
        while not (self.log.exists() and self.log.read_text().count('"commit"') > 5):
            assert time.monotonic() < end and self.process.poll() is None, self.printed.read_text()
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def status(self):
        return self.process.wait(timeout=200)


def test_a_store_that_is_away_for_a_while_only_delays_the_run(bed, shards, tmp_path):
    indexed(bed, URL, tmp_path)
    write_run(tmp_path, rounds=60)
    with Begun(bed, tmp_path) as run:
        bed.kill_gateway()
        time.sleep(20)
        bed.begin_gateway()
        assert run.status() == 0, run.printed.read_text()
    shard_runs.expect_each_once(tmp_path, 60, BATCH)


def said_by_both(run):
    """What both peers say of the data, each once."""
    printed = run.printed.read_text()
    said = re.findall(r"^\[([12])\] \S*DataError: (.*)$", printed, re.M)
    assert sorted(number for number, _ in said) == ["1", "2"], printed
    return {re.sub(r"bytes \d+-\d+", "bytes", text) for _, text in said}


def test_an_object_that_changes_ends_the_run_that_reads_it(bed, shards, tmp_path):
    name = f"s3://{BUCKET}/changing.tar"
    bed.s3cmd("put", str(shards / "train-0.tar"), name)
    indexed(bed, name, tmp_path)
    write_run(tmp_path)
    with Begun(bed, tmp_path) as run:
        bed.s3cmd("put", str(shards / "train-1.tar"), name)
        assert run.status() == 1
    for text in said_by_both(run):
        assert re.search(rf"{re.escape(name)}, bytes: it changed since its index was made: "
                         r"expected ETag \"\w+\", found \"\w+\"", text), text


def test_an_object_that_is_deleted_ends_the_run_that_reads_it(bed, shards, tmp_path):
    folder = f"s3://{BUCKET}/going"
    for shard in ("train-0.tar", "train-1.tar"):
        bed.s3cmd("put", str(shards / shard), f"{folder}/{shard}")
    indexed(bed, folder + "/", tmp_path)
    write_run(tmp_path)
    with Begun(bed, tmp_path) as run:
        bed.s3cmd("del", f"{folder}/train-1.tar")
        assert run.status() == 1
    for text in said_by_both(run):
        assert re.search(rf"{re.escape(folder)}/train-1.tar, bytes: .* 404 NoSuchKey", text), text


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
