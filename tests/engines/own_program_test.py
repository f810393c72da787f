# SPDX-License-Identifier: Apache-2.0
"""tw up starts a program of the user's own: on hosts with sshd, on Slurm."""
import os
import signal
from pathlib import Path

import pytest
import ssh_test
from launched import wait_for
from own_program import SECRET, OwnProgram
from slurm_bed import SlurmBed
from slurm_test import ABSENT as NO_SLURM
from slurm_test import UP as ON_SLURM
from slurm_test import job_state, take_node
from ssh_bed import HOSTS
from ssh_test import bed  # noqa: F401: a fixture

pytest.importorskip("torch")


@pytest.fixture
def run(bed, tmp_path):  # noqa: F811
    (tmp_path / "job").mkdir()
    run = OwnProgram(tmp_path / "job", prefix=bed.inside("user"))
    run.plan([f'site: "onprem:{host}", purchase: {"owned" if host == "one" else "spot"}' for host in HOSTS])
    return run


def up(run, bed, *words, code=0):  # noqa: F811
    return run.up("--on", "ssh", "--hosts", str(bed.hosts_file()), "--ssh-config", str(bed.folder / "config"),
                  *words, code=code)


def collected(run, peer_id):
    run.status()
    return run.contributes(peer_id)


def peers_on(bed, host):  # noqa: F811
    """Processes of `tw run` whose command line names the folder of this host."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{number}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "run" in words[:2] and any(str(bed.folder / host) in word for word in words):
            found.append((int(number), words))
    return found


@pytest.mark.skipif(bool(ssh_test.ABSENT), reason=ssh_test.ABSENT)
def test_a_program_runs_on_hosts_loses_one_gets_it_back_and_is_exact(bed, run):  # noqa: F811
    assert "p1 p2 p3: ready" in up(run, bed, "--check")
    assert not any(peers_on(bed, host) for host in HOSTS), "nothing is started"
    assert "started p1 p2 p3" in up(run, bed)
    wait_for(lambda: all(collected(run, n * 1000) for n in (1, 2, 3)), "three peers contribute", every=1)
    folder = bed.folder / "two/.tradewind/runs/words"
    assert (folder / "count").read_text() == "counted\n", "setup ran once"

    (process, words), = peers_on(bed, "two")
    assert not any(SECRET in word for word in words)
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: run.states()[2] == "failed", "the loss is seen")
    before = (folder / "program/train.py").stat().st_ino
    (run.folder / "parts/model.py").write_text((run.folder / "parts/model.py").read_text() + "# changed\n")
    assert "started p2\n" in up(run, bed), "only the lost one"
    wait_for(lambda: collected(run, 2001), "it contributes again", every=1)
    assert (folder / "program/train.py").stat().st_ino == before, "only what changed was copied"
    assert (folder / "program/parts/model.py").read_text().endswith("# changed\n")
    run.down()
    assert [lost["peer"] for lost in run.exact()["lost"]] == [2000]
    token = (bed.folder / "one/.tradewind/runs/words/p1/log").read_text()
    assert "'TRADEWIND_TOKEN', '@" in token and "tw1_" not in token and "tw1-" not in token
    assert not list(bed.folder.rglob("p*/token")) and not list(bed.folder.rglob("p*/env"))


@pytest.mark.skipif(bool(ssh_test.ABSENT), reason=ssh_test.ABSENT)
def test_what_is_wrong_with_a_program_is_said_and_other_machines_go_on(bed, run):  # noqa: F811
    run.write(["echo here; test $HOME != " + str(bed.folder / "two") + " && echo yes >prepared"])
    said = up_failed(run, bed)
    assert "two: line 1 of program.setup (echo here; test" in said and "ended with exit code 1" in said, said
    assert "started p1 p3" in said
    wait_for(lambda: collected(run, 1000) and collected(run, 3000), "the others train", every=1)
    run.write(["echo yes >prepared"])
    assert "started p2\n" in up(run, bed)
    wait_for(lambda: collected(run, 2000), "with a right line it takes part", every=1)
    run.down()
    run.exact()

    run.write([], files=["parts"])
    assert "train.py of the command is not among them" in up_failed(run, bed, "--check", code=2)
    run.write([], command=["python4", "train.py"])
    assert "one: python4: no such program there" in up_failed(run, bed, "--check")
    (run.folder / "train.py").write_text("import no_such_package\n")
    run.write([])
    assert "one: /usr/bin/python3 there has no no_such_package: install it" in up_failed(run, bed, "--check")


@pytest.mark.parametrize("script, words, code", [
    ("import sys\nprint('no luck')\nsys.exit(3)\n", "[1] no luck\ntw: process 1 ended with exit code 3\n", 3),
    ("import tradewind\ntradewind.join()\n", "does it call tradewind.join() and step()?", 1),
])
def test_a_program_that_fails_or_never_takes_part_says_so_in_its_log(tmp_path, script, words, code):
    run = OwnProgram(tmp_path)
    (run.folder / "train.py").write_text(script)
    run.write([])
    run.plan(['site: "onprem:eu", purchase: owned'])
    run.up("--on", "local")
    wait_for(lambda: run.states()[1] == "failed", "its end is seen")
    assert run.peers()[1]["exit_code"] == code
    assert words in run.tw("logs", "words", "p1", "--state", "state")


def up_failed(run, bed, *words, code=1):  # noqa: F811
    """Both outputs of a tw up that fails."""
    run.both = True
    try:
        return up(run, bed, *words, code=code)
    finally:
        run.both = False


@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM)
def test_a_program_on_slurm_is_preempted_and_comes_back(tmp_path, monkeypatch):
    slurm = SlurmBed(tmp_path / "bed")
    slurm.up()
    try:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, slurm.environment[name])
        (tmp_path / "job").mkdir()
        run = OwnProgram(tmp_path / "job")
        run.plan(['site: "onprem:eu", count: 3, purchase: spot'])
        run.up(*ON_SLURM)
        wait_for(lambda: all(run.contributes(n * 1000) for n in (1, 2, 3)), "three peers contribute")
        assert (run.state / "count").read_text() == "counted\n", "once on a machine, whatever its nodes"
        job = take_node(slurm, run.peers()[2]["where"])
        wait_for(lambda: job_state(slurm, job) == "RUNNING", "the on-demand job starts")
        wait_for(lambda: run.states()[2] == "waiting", "it left with 75, and is requeued")
        slurm.run("scancel", job)
        with run.kept(*ON_SLURM):
            wait_for(lambda: run.contributes(2001), "it contributes again")
        run.down()
        assert run.exact()["lost"] == [], "it left, and was not lost"
        wait_for(lambda: slurm.run("squeue", "-h") == "", "no job is left")
    finally:
        slurm.down()
