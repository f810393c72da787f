# SPDX-License-Identifier: Apache-2.0
"""tw up on a real Slurm of four nodes, with a partition that preempts.

Answers skypilot#3907 (only the lost peer is replaced), aws-parallelcluster#3809 and #1671 (a job that drained
comes back) and mozilla/translations#964 (a notice may be shorter than promised: out within 5 s).
"""
import os
import signal
import time

import pytest
from launched import Run, missing, wait_for
from slurm_bed import SlurmBed

ABSENT = missing("slurmctld", "slurmd", "munged", "srun")
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)

MOST_TO_LEAVE_S = 5


@pytest.fixture
def bed(tmp_path, monkeypatch):
    slurm = SlurmBed(tmp_path / "bed")
    slurm.up()
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    yield slurm
    slurm.down()


@pytest.fixture
def run(bed, tmp_path):
    run = Run(tmp_path)
    run.plan(['site: "onprem:eu", count: 3, purchase: spot'])
    return run


UP = ("--on", "slurm", "--with", "spot.partition=preemptible", "--with", "address=127.0.0.1")


def take_node(bed, node):
    """An on-demand job that needs this node."""
    return bed.run("sbatch", "--parsable", "--partition=ondemand", f"--nodelist={node}", "--output=/dev/null",
                   "--wrap=sleep 600").strip()


def job_state(bed, job):
    return bed.run("squeue", "-h", "-j", job, "-o", "%T").strip()


def test_a_preempted_peer_is_out_in_5_s_and_back_without_a_hand(bed, run):
    run.up(*UP)
    wait_for(lambda: all(run.contributes(n * 1000) for n in (1, 2, 3)), "three peers contribute")
    victim = run.peers()[2]
    assert victim["state"] == "running" and victim["where"]

    submitted = time.monotonic()
    job = take_node(bed, victim["where"])
    wait_for(lambda: job_state(bed, job) == "RUNNING", "the on-demand job starts")
    assert time.monotonic() - submitted < MOST_TO_LEAVE_S + 2, "with the time that the scheduler takes"
    assert wait_for(lambda: run.events(2000, "stop"), "the peer wrote how it ended, so it was not killed")
    (notice,), (stop,) = run.events(2000, "notice"), run.events(2000, "stop")
    assert stop["t"] - notice["t"] <= MOST_TO_LEAVE_S
    assert run.states()[2] == "waiting", "requeued"
    assert {run.states()[n] for n in (1, 3)} == {"running"}, "only the lost one is replaced"

    bed.run("scancel", job)
    with run.kept(*UP):  # else it waits for Slurm's two minutes
        wait_for(lambda: run.contributes(2001), "the peer contributes again, as another start")
    assert run.peers()[2]["restarts"] == 1

    before = run.up(*UP)
    assert "nothing to change" in before
    run.down()
    report = run.report()
    assert report["identical"], report
    assert report["lost"] == [], "it left, and was not lost"
    assert report["samples"] == report["rounds"] * run.batch, "samples are exact"
    wait_for(lambda: bed.run("squeue", "-h") == "", "no job is left")


def test_another_plan_adds_and_removes_the_difference(bed, run):
    run.up(*UP)
    wait_for(lambda: all(run.contributes(n * 1000) for n in (1, 2, 3)), "three peers contribute")
    run.plan(['site: "onprem:eu", count: 2, purchase: spot', 'site: "gcp:us", count: 1, purchase: spot'])
    said = run.up(*UP)
    assert "started p4" in said and "stopped p3" in said
    wait_for(lambda: run.contributes(4000), "the new peer contributes")
    assert run.states() == {1: "running", 2: "running", 4: "running"}
    assert len(run.events(1000, "start")) == 1, "nobody else was touched"
    run.down()
    wait_for(lambda: bed.run("squeue", "-h") == "", "no job is left")
    assert run.report()["identical"]


def test_a_silent_controller_makes_no_peer_start_twice(bed, run):
    run.up(*UP)
    wait_for(lambda: all(run.contributes(n * 1000) for n in (1, 2, 3)), "three peers contribute")
    controller = int((bed.folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        peers = run.peers()
        assert {peer["state"] for peer in peers.values()} == {"unknown"}, peers
        assert "started" not in run.up(*UP)
    finally:
        os.kill(controller, signal.SIGCONT)
    wait_for(lambda: set(run.states().values()) == {"running"}, "the controller answers again", every=1)
    assert [len(run.events(n * 1000, "start")) for n in (1, 2, 3)] == [1, 1, 1]
    assert not (run.state / "logs/events-1001.jsonl").exists()
    run.down()


def test_tokens_are_in_files_of_their_owner_alone(bed, run):
    run.up(*UP)
    secret = (run.state / "p1/token").read_text().strip()
    for path in run.state.rglob("*"):
        if path.is_file() and secret.encode() in path.read_bytes():
            assert path.stat().st_mode & 0o077 == 0, path
    for process in os.listdir("/proc"):
        try:
            words = open(f"/proc/{process}/cmdline", "rb").read()
        except (OSError, ValueError):
            continue
        assert secret.encode() not in words, words
    assert secret not in bed.run("squeue", "--json")
    run.down()
