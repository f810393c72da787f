# SPDX-License-Identifier: Apache-2.0
"""tw up on three hosts with sshd, on a wide-area network of namespaces.

Answers skypilot#3907 (only the lost peer is replaced) and mozilla/translations#964, ray#60665 (logs of a
machine that is gone).
"""
import os
import shutil
import signal

import pytest
from launched import TW_WAN, Run, missing, wait_for
from ssh_bed import HOSTS, SshBed

ABSENT = missing("sshd", "ssh", "ssh-keygen", "ip") or ("" if os.path.exists(TW_WAN) else f"no {TW_WAN}")
ABSENT = ABSENT or ("" if os.path.exists("/dev/net/tun") else "no /dev/net/tun")
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


@pytest.fixture
def bed(tmp_path):
    bed = SshBed(tmp_path / "bed")
    try:
        bed.up()
        yield bed
    finally:
        bed.down()


@pytest.fixture
def run(bed, tmp_path):
    run = Run(tmp_path, prefix=bed.inside("user"))
    run.plan([f'site: "onprem:{host}", purchase: {"owned" if host == "one" else "spot"}' for host in HOSTS])
    return run


def up(run, bed, *words, hosts=HOSTS):
    return run.up("--on", "ssh", "--hosts", str(bed.hosts_file(hosts)), "--ssh-config",
                  str(bed.folder / "config"), *words)


def collected(run, peer_id):
    """The logs are pulled by every tw status."""
    run.status()
    return run.contributes(peer_id)


def processes(run):
    """Each `tw run` that tw up started; their command lines name the run file of their host."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{number}/cmdline", "rb").read().decode().split("\0")
            folder = os.readlink(f"/proc/{number}/cwd")
        except OSError:
            continue
        if "run" in words[:2] and any(w.endswith("/run.yaml") for w in words) and str(run.folder) in folder:
            found.append((int(number), words))
    return found


def test_three_commands_of_a_user_and_what_ssh_does_not_do(bed, run):
    assert "started p1 p2 p3" in up(run, bed)
    wait_for(lambda: all(collected(run, n * 1000) for n in (1, 2, 3)), "three peers contribute", every=1)
    assert run.states() == {1: "running", 2: "running", 3: "running"}
    assert "nothing to change" in up(run, bed), "twice changes nothing"

    secret = (bed.folder / "one/.tradewind/runs/words/p1/token").read_text().strip()
    for _, words in processes(run):
        assert all(secret not in word for word in words)
    for path in [*bed.folder.rglob("*"), *run.state.rglob("*")]:
        if path.is_file() and path.stat().st_size < 1 << 20 and secret.encode() in path.read_bytes():
            assert path.stat().st_mode & 0o077 == 0, path
    copies = [bed.folder / host / ".tradewind/bin" for host in HOSTS]
    assert all(len(list(copy.iterdir())) == 1 for copy in copies), "one program, by its digest"

    victim = next(number for number, words in processes(run) if "2000" in words)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: run.states()[2] == "failed", "the loss is seen")
    assert run.peers()[2]["exit_code"] == 137
    assert "started p2\n" in up(run, bed), "only the lost one"
    wait_for(lambda: collected(run, 2001), "it contributes again", every=1)

    run.down()
    assert processes(run) == [], "no process is left behind"
    for host in HOSTS:
        assert not list((bed.folder / host / ".tradewind/runs").rglob("token")), "no token is left behind"
    report = run.report()
    assert report["identical"], report
    assert [lost["peer"] for lost in report["lost"]] == [2000]


def test_keep_restarts_what_was_killed_and_saves_the_logs_of_hosts_that_are_gone(bed, run):
    up(run, bed)
    wait_for(lambda: all(collected(run, n * 1000) for n in (1, 2, 3)), "three peers contribute", every=1)
    config = str(bed.folder / "config")
    with run.kept("--on", "ssh", "--hosts", str(bed.hosts_file()), "--ssh-config", config):
        os.kill(next(number for number, words in processes(run) if "3000" in words), signal.SIGKILL)
        wait_for(lambda: collected(run, 3001), "--keep started it again", every=1)
    assert "p3 failed (exit 137): started again" in run.said, run.said
    assert len(processes(run)) == 3, "the peers go on without --keep"

    lines = (run.state / "logs/p2.log").read_text()
    bed.wan("set", "two:all", "outage", "on")
    assert run.states()[2] == "unknown", "a host that does not answer may still run its peer"
    assert run.tw("logs", "words", "p2", "--state", "state").startswith(lines[:200]), "its log is here"
    bed.wan("set", "two:all", "outage", "off")
    run.down()
    assert processes(run) == []


def test_a_host_that_lost_its_disk_brings_no_id_back_and_no_log_is_lost(bed, run):
    up(run, bed)
    wait_for(lambda: all(collected(run, n * 1000) for n in (1, 2, 3)), "three peers contribute", every=1)
    os.kill(next(number for number, words in processes(run) if "2000" in words), signal.SIGKILL)
    wait_for(lambda: run.states()[2] == "failed", "the loss is seen, and its log collected")
    shutil.rmtree(bed.folder / "two/.tradewind")
    assert run.states()[2] == "absent"
    output = (run.state / "logs/p2.log").read_text()
    assert "started p2\n" in up(run, bed)
    wait_for(lambda: collected(run, 2001), "it contributes again, as another start", every=1)
    assert run.peers()[2]["restarts"] == 1
    assert (run.state / "logs/p2.log.gone").read_text() == output
    run.down()
    report = run.report()
    assert report["identical"], report
    assert [lost["peer"] for lost in report["lost"]] == [2000]


def test_an_anchor_of_this_machine_and_hosts_of_ssh_in_one_run(bed, run):
    """One state folder, two engines: each starts, is asked for and stops its own peers."""
    words = ["--on", "owned=local", "--with", "local.address=user", "--on", "spot=ssh", "--hosts",
             str(bed.hosts_file(("two", "three"))), "--ssh-config", str(bed.folder / "config")]
    assert "started p1 p2 p3" in run.up(*words)
    wait_for(lambda: all(collected(run, n * 1000) for n in (1, 2, 3)), "three peers contribute", every=1)
    first, *rest = [words[at : at + 2] for at in range(0, len(words), 2)]
    last_first = sum(rest, []) + first
    assert "nothing to change" in run.up(*last_first), "the same in another order changes nothing"
    begun = {words[words.index("--id") + 1]: words for _, words in processes(run)}
    assert "--no-rejoin" in begun["1000"] and begun["1000"][begun["1000"].index("--wait-for") + 1] == "1"
    assert all("--join" in begun[peer] for peer in ("2000", "3000")), "they dial the anchor"

    with run.kept(*words):
        os.kill(next(number for number, words in processes(run) if "3000" in words), signal.SIGKILL)
        wait_for(lambda: collected(run, 3001), "--keep started it again", every=1)
    bed.wan("set", "two:all", "outage", "on")
    assert run.states() == {1: "running", 2: "unknown", 3: "running"}, "a host that is away hides no other"
    bed.wan("set", "two:all", "outage", "off")

    run.down()
    assert processes(run) == [], "no process is left behind"
    report = run.report()
    assert report["identical"], report
    assert {lost["peer"] for lost in report["lost"]} <= {2000, 3000}, "the killed one, and the one cut off"
