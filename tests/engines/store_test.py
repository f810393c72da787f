# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in an object store that checks signatures (Ceph's S3 gateway): whole or not there, whatever
is killed. Answers composer#3902 (autoresume finds the right, whole checkpoint also in a bucket).
"""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from ceph_bed import BUCKET, KEY, SECRET, CephBed, why_not
from machine import PROGRAM, TOY, wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

COPIES = f"s3://{BUCKET}/run"


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    bed = CephBed(tmp_path_factory.mktemp("ceph") / "bed")
    try:
        bed.up()
        yield bed
    finally:
        bed.down()


class Anchor:
    """One peer of the toy program that copies its checkpoints away."""

    def __init__(self, folder, bed, name, copies=COPIES, rounds=100_000, **environment):
        self.folder = folder / name
        self.folder.mkdir()
        self.log = self.folder / "out/events-1.jsonl"
        run = self.folder / "run.yaml"
        run.write_text(
            f"training: {{target_batch_size: 8, rounds: {rounds}, patience: 3s}}\n"
            f"checkpoint: {{folder: own, every: 5, keep: 2, to: '{copies}'}}\n"
        )
        words = [TOY, "--work-ms", "20", "--values", "30000", f"run_file={run}", "id=1", "insecure=true"]
        words += [f"out={self.folder / 'out'}", "role=anchor", "listen=127.0.0.1:0", "progress=line"]
        self.printed = self.folder / "printed.txt"
        with open(self.printed, "w") as out:
            self.process = subprocess.Popen(
                words,
                stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                env={**os.environ, **bed.environment, **environment},
            )

    def events(self, phase):
        if not self.log.exists():
            return []
        lines = [line for line in self.log.read_text().split("\n") if line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["phase"] == phase]

    def copied(self):
        """Rounds whose checkpoint is in the store, by its own word."""
        return [event["round"] for event in self.events("copy") if "cause" not in event]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def test_the_log_of_a_peer_that_is_killed_with_its_machine_is_in_the_store(bed, tmp_path):
    copies = f"s3://{BUCKET}/logs-of-the-lost"
    for number in range(2):
        anchor = Anchor(tmp_path, bed, f"lost-{number}", copies=copies)
        try:
            wait_until(lambda: anchor.copied(), "a checkpoint is copied")
            seen = anchor.events("commit")[-1]["round"]
            wait_until(lambda: last_round_in(bed, copies) >= seen, "its log follows", limit_s=60)
        finally:
            anchor.kill()
        last = last_round_in(bed, copies)
        assert last <= anchor.events("commit")[-1]["round"], "nothing but what happened"
        # A log that grows past 256 KiB goes on in ".2.jsonl" and so forth.
        logs = {name.split(".")[0] for name in objects(bed, copies + "/logs") if name.startswith("events-1-")}
        shutil.rmtree(anchor.folder)
    assert len(logs) == 2, f"each machine has a log of its own: {logs}"
    report = report_of(bed, copies + "/")
    assert report["samples"] == 8 * last, "the second machine went on where the first one was"
    written = [store["written"] for store in report["stores"]]
    assert sum(one["requests"] for one in written) > 0, "lists and copies until the last traffic event"
    assert report["rounds"] > last / 2, "all but those between its last copy and its last checkpoint"
    assert [peer["id"] for peer in report["peers"]] == [1]
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    bed.s3cmd("get", "--recursive", copies + "/logs/", f"{fetched}/")
    assert report_of(bed, fetched) == report, "any client of S3 gets them, too"


def report_of(bed, logs):
    done = subprocess.run(
        [PROGRAM, "report", str(logs), "--json"],
        env={**os.environ, **bed.environment}, capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def last_round_in(bed, copies):
    names = bed.s3cmd("ls", copies + "/logs/").splitlines()
    return report_of(bed, copies)["samples"] // 8 if names else 0


def objects(bed, folder=COPIES):
    return sorted(line.split("/")[-1] for line in bed.s3cmd("ls", folder + "/").splitlines())


def test_copies_survive_kills_and_another_machine_goes_on_from_the_newest(bed, tmp_path):
    newest = 0
    for number in range(3):
        anchor = Anchor(tmp_path, bed, f"machine-{number}")
        try:
            if newest:
                wait_until(lambda: anchor.events("restore"), "it takes up the copy")
                resumed = anchor.events("restore")[0]
                assert resumed["cause"] == "checkpoint"
                assert resumed["round"] >= newest, "the newest one that was whole, or one after it"
            wait_until(lambda: len(anchor.copied()) >= 2, "two checkpoints are copied")
            time.sleep(0.05 * number)  # somewhere in the next one
        finally:
            anchor.kill()
        newest = anchor.copied()[-1]
        whole = [name for name in objects(bed) if name.endswith(".tw")]
        assert 1 <= len(whole) <= 3, "as many as are kept, and one that was not pruned yet"
        assert any(name.startswith(f"round-{newest:06}-") for name in whole), whole


def test_a_store_that_is_away_for_a_while_only_delays_copies(bed, tmp_path):
    anchor = Anchor(tmp_path, bed, "machine", copies=f"s3://{BUCKET}/away")
    try:
        wait_until(lambda: anchor.copied(), "a checkpoint is copied")
        bed.kill_gateway()
        rounds = len(anchor.events("commit"))
        wait_until(lambda: len(anchor.events("commit")) > rounds + 5, "the run goes on")
        bed.begin_gateway()
        before = anchor.copied()[-1]
        wait_until(lambda: anchor.copied()[-1] > before, "copies go on", limit_s=150)
    finally:
        anchor.kill()


def test_a_wrong_secret_is_told_without_any_secret(bed, tmp_path):
    anchor = Anchor(tmp_path, bed, "machine", AWS_SECRET_ACCESS_KEY="not" + SECRET)
    assert anchor.process.wait(timeout=60) == 1, "whether there is a checkpoint cannot be told"
    told = anchor.printed.read_text()
    assert "403 SignatureDoesNotMatch" in told and f"as key {KEY}" in told
    assert SECRET not in told + anchor.log.read_text()


def test_a_bad_name_or_endpoint_is_refused_before_anything_begins(bed, tmp_path):
    anchor = Anchor(tmp_path, bed, "name", copies="s3://x/run")
    assert anchor.process.wait(timeout=60) == 1
    assert "s3://x/run: expected s3://BUCKET/KEY" in anchor.printed.read_text()
    anchor = Anchor(tmp_path, bed, "endpoint", AWS_ENDPOINT_URL="store:80")
    assert anchor.process.wait(timeout=60) == 1
    assert "AWS_ENDPOINT_URL=store:80: expected http://HOST" in anchor.printed.read_text()
