# SPDX-License-Identifier: Apache-2.0
"""Shards in Google Cloud Storage: fake-gcs-server has its XML interface. It checks no signature."""

import os
import re
import shutil
import subprocess
import urllib.request

import pytest
from ceph_bed import free_port
from machine import PROGRAM, wait_until
from npm import CACHE
from web_shards_test import train_ten_rounds, write_digits, write_shard

MODULE = "github.com/fsouza/fake-gcs-server@v1.37.12"
BUCKET = "shards"


def server_program(limit_s=300):
    """fake-gcs-server, built once into the cache; None where Go is missing or cannot fetch it."""
    folder = CACHE.parent / "go"
    program = folder / "fake-gcs-server"
    if not program.exists() and shutil.which("go"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["go", "install", MODULE], timeout=limit_s, check=False, capture_output=True,
                           env={**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"})
        except subprocess.TimeoutExpired:
            return None
    return program if program.exists() else None


@pytest.fixture
def endpoint(tmp_path):
    program = server_program()
    if program is None:
        pytest.skip(f"Go is missing, or {MODULE} cannot be built")
    url = f"http://127.0.0.1:{free_port()}"
    words = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", url.rsplit(":")[-1],
             "-public-host", url.split("//")[1], "-backend", "memory", "-data", tmp_path / "buckets"]
    write_shard(tmp_path / "train-0.tar")
    (tmp_path / "buckets" / BUCKET).mkdir(parents=True)
    shutil.copy(tmp_path / "train-0.tar", tmp_path / "buckets" / BUCKET / "train-0.tar")
    with open(tmp_path / "server.txt", "w") as out:
        server = subprocess.Popen([*map(str, words)], stdout=out, stderr=out)
    try:
        wait_until(lambda: answers(url), "fake-gcs-server answers")
        yield url
    finally:
        server.kill()
        server.wait()


def answers(url):
    try:
        return urllib.request.urlopen(f"{url}/{BUCKET}/train-0.tar", timeout=2).status == 200
    except OSError:
        return False


def put(url, content):
    request = urllib.request.Request(
        f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=train-0.tar", content, method="POST")
    assert urllib.request.urlopen(request, timeout=30).status == 200


def environment(endpoint):
    return {"GS_ENDPOINT_URL": endpoint, "GS_ACCESS_KEY_ID": "GOOG1TEST",
            "GS_SECRET_ACCESS_KEY": "a secret of the tests"}


def tw(folder, endpoint, *words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=200,
                          cwd=folder, env={**os.environ, **environment(endpoint)})


def test_shards_in_google_cloud_storage(endpoint, tmp_path):
    done = tw(tmp_path, endpoint, "data", "index", f"gs://{BUCKET}/train-0.tar", "-o", "gs.twi")
    assert done.returncode == 0, done.stderr
    verified = tw(tmp_path, endpoint, "data", "verify", "gs.twi")
    assert verified.returncode == 0, verified.stderr
    missing = tw(tmp_path, endpoint, "data", "index", f"gs://{BUCKET}/train-9.tar", "-o", "gs.twi")
    assert missing.returncode == 2
    told = r"gs://shards/train-9.tar, bytes 0-0: answered with 404 .*\(as key GOOG1TEST"
    assert re.search(told, missing.stderr)
    assert "secret" not in missing.stderr


def test_a_run_reads_from_google_cloud_storage(endpoint, tmp_path):
    write_digits(tmp_path, "digits.tar")
    put(endpoint, (tmp_path / "digits.tar").read_bytes())
    train_ten_rounds(tmp_path, f"gs://{BUCKET}/train-0.tar", environment(endpoint))


def test_a_shard_that_was_put_there_anew(endpoint, tmp_path):
    done = tw(tmp_path, endpoint, "data", "index", f"gs://{BUCKET}/train-0.tar", "-o", "gs.twi")
    assert done.returncode == 0, done.stderr
    # Versions are times of whole seconds where the server gives no ETag.
    first = version(endpoint)
    content = (tmp_path / "train-0.tar").read_bytes()
    wait_until(lambda: put(endpoint, content) or version(endpoint) != first, "a later time")
    changed = tw(tmp_path, endpoint, "data", "verify", "gs.twi")
    assert changed.returncode == 1
    assert "it changed since its index was made" in changed.stderr


def version(url):
    return urllib.request.urlopen(f"{url}/{BUCKET}/train-0.tar", timeout=10).headers["Last-Modified"]
