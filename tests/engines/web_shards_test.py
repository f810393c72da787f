# SPDX-License-Identifier: Apache-2.0
"""Shards behind plain web servers: nginx, and one that fails now and then (503, bodies that break off)."""

import http.server
import io
import re
import shutil
import subprocess
import tarfile
import threading
import time

import pytest
import shard_runs
from ceph_bed import free_port
from machine import PROGRAM

pytest.importorskip("torch")


def write_shard(path, samples=300):
    with tarfile.open(path, "w") as tar:
        for i in range(samples):
            for field, content in (("txt", b"1 2 3"), ("cls", str(i % 10).encode()), ("bin", b"x" * 20_000)):
                member = tarfile.TarInfo(f"{i:05}.{field}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


class Failing(http.server.BaseHTTPRequestHandler):
    """Serves ranges of one shard. Some answers are 503, some bodies break off: every so many."""

    protocol_version = "HTTP/1.1"
    content, etag, asked, failures = b"", '"one"', 0, True
    busy_every, broken_every, refused, broken = 5, 7, 0, 0

    def do_GET(self):
        cls = type(self)
        cls.asked += 1
        if cls.failures and cls.asked % cls.busy_every == 0:
            cls.refused += 1
            return self.answer(503, b"")
        if self.headers.get("If-Match", cls.etag) != cls.etag:
            return self.answer(412, b"")
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        body = cls.content[first:last + 1]
        breaks = cls.failures and cls.asked % cls.broken_every == 0
        cls.broken += breaks
        cut = len(body) // 2 if breaks else len(body)
        self.answer(206, body, f"bytes {first}-{first + len(body) - 1}/{len(cls.content)}", cut)

    def answer(self, status, body, content_range="", cut=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", type(self).etag)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None and cut < len(body):
            self.close_connection = True

    def log_message(self, *words):
        pass


@pytest.fixture
def failing(tmp_path):
    write_shard(tmp_path / "a.tar")
    kind = type("Server", (Failing,), {"content": (tmp_path / "a.tar").read_bytes()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield kind, f"http://127.0.0.1:{server.server_port}/a.tar"
    server.shutdown()


def write_digits(folder, name="train-0.tar"):
    """A shard of 1,000 digits."""
    pictures, labels = shard_runs.digits("train")
    shard_runs.write_tar(folder / name, pictures[:1000], labels[:1000], 0)


def train_ten_rounds(folder, url, env=None):
    """Two peers, an epoch of write_digits() from this store: each sample once. Returns what was printed."""
    shard_runs.tw(folder, "data", "index", url, "-o", "train.twi", env=env)
    shard_runs.write_run(folder, batch=100, rounds=10)
    done = shard_runs.tw(folder, *shard_runs.loop_of(2, 10), env=env)
    shard_runs.expect_each_once(folder, rounds=10, batch=100)
    assert len(set(shard_runs.keys_given(folder))) == 1000, "an epoch has each sample of the shard"
    return done.stdout + done.stderr


def tw(folder, *words):
    words = [PROGRAM, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, cwd=folder)


def test_a_server_that_fails_now_and_then_only_takes_longer(failing, tmp_path):
    kind, url = failing
    done = tw(tmp_path, "data", "index", url, "-o", "web.twi", "--contents")
    assert done.returncode == 0, done.stderr
    assert tw(tmp_path, "data", "index", "a.tar", "-o", "file.twi", "--contents").returncode == 0
    identity = r"identity (\w+)"
    of_file = tw(tmp_path, "data", "ls", "file.twi").stdout
    assert re.search(identity, of_file)[1] == re.search(identity, done.stdout)[1], "the same bytes came"
    assert kind.asked > 12, "some were asked for again"


def test_a_run_goes_on_with_a_server_that_refuses_a_tenth_and_breaks_off(failing, tmp_path):
    kind, url = failing
    write_digits(tmp_path, "a.tar")
    kind.content = (tmp_path / "a.tar").read_bytes()
    kind.busy_every, kind.broken_every = 10, 9
    train_ten_rounds(tmp_path, url)
    assert kind.refused >= 5 and kind.broken >= 5


def test_an_object_that_changes_is_told_with_both_versions(failing, tmp_path):
    kind, url = failing
    kind.failures = False
    assert tw(tmp_path, "data", "index", url, "-o", "web.twi").returncode == 0
    kind.etag = '"two"'
    done = tw(tmp_path, "data", "verify", "web.twi")
    assert done.returncode == 1
    assert 'expected ETag "one", found "two"' in done.stderr


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx (packages-engines.txt)")
def test_nginx_serves_the_ranges(tmp_path):
    write_digits(tmp_path, "a.tar")
    port = free_port()
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; daemon off; user root;\n"
        "events {}\n"
        f"http {{ access_log {tmp_path}/access.log; gzip on; gzip_types *;\n"
        f"server {{ listen 127.0.0.1:{port}; root {tmp_path}; }} }}\n")
    server = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)])
    try:
        end = time.monotonic() + 20
        url = f"http://127.0.0.1:{port}/a.tar"
        while (done := tw(tmp_path, "data", "index", url, "-o", "web.twi")).returncode != 0:
            assert time.monotonic() < end, done.stderr
        verified = tw(tmp_path, "data", "verify", "web.twi")
        assert verified.returncode == 0, verified.stderr
        train_ten_rounds(tmp_path, url)
    finally:
        server.terminate()
        server.wait()
    assert '" 206 ' in (tmp_path / "access.log").read_text()
