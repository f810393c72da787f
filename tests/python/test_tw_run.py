# SPDX-License-Identifier: Apache-2.0
"""`tw run` starts a program as several peers: the five lines of the README, with a peer that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine, python_path
from tradewind import launch
from tradewind.engine.settings import resolve, rows

PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))

TRAIN = """
import os, time, torch, tradewind
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
inputs = torch.randn(256, 4)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=8)
print("pid", os.getpid(), flush=True)
run = tradewind.join(target_batch_size=64, rounds=200)
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for batch, targets in run.shard(loader):
    time.sleep(0.01)
    ((model(batch) - targets) ** 2).mean().backward()
    opt.step()
    opt.zero_grad()
print("done", run.round, [p.sum().item() for p in model.parameters()])
"""


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_peers_of_one_program_go_on_when_one_is_killed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    environment = {**os.environ, "PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "line"}
    crew = subprocess.Popen(
        [PROGRAM, "run", "--peers", "3", "--", sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert crew.stdout is not None
    lines, pids = [], {}
    for line in crew.stdout:
        lines.append(line)
        begun = re.match(r"\[(\d)\] pid (\d+)", line)
        if begun:
            pids[begun.group(1)] = int(begun.group(2))
        if "3" in pids and re.search(r"round \d+/200  3 peers", line):
            os.kill(pids.pop("3"), signal.SIGKILL)
    assert crew.wait(10) == 0, "".join(lines)
    assert "tw: process 3 ended with signal 9\n" in lines
    done = {line.split("done ")[1] for line in lines if "done" in line}
    assert len(done) == 1 and done.pop().startswith("200 "), "".join(lines)


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
@pytest.mark.parametrize("mode", ["sync", "delayed"])
def test_the_leader_chooses_the_samples_of_each_round(tmp_path, mode):
    script = tmp_path / "train.py"
    chosen = f'target_batch_size="auto", batch_min=16, batch_max=512, mode="{mode}", rounds=30'
    script.write_text(TRAIN.replace("target_batch_size=64, rounds=200", chosen))
    done = subprocess.run(
        [PROGRAM, "run", "--peers", "3", "--wait-for", "3", "--kill", "leader@9", "--out",
         str(tmp_path / "out"), "--", sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "line"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"round \d+/30 .* batch \d+", done.stdout + done.stderr)
    logs = list((tmp_path / "out").glob("**/*.jsonl"))
    events = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    commits = {event["round"]: event for event in events if event["phase"] == "commit"}
    assert set(commits) == set(range(1, 31)) and commits[1]["batch"] == 16
    for number in range(1, 30):
        assert commits[number]["next_batch"] == commits[number + 1]["batch"] <= 512
    assert commits[30]["batch"] >= 16, "two peers that compute 8 samples at once"
    batches = sum(commit["batch"] for commit in commits.values())
    report = json.loads(subprocess.check_output([PROGRAM, "report", "--json", str(tmp_path / "out")]))
    assert report["identical"] and report["samples"] + report["samples_carried"] == batches


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
@pytest.mark.parametrize("mode", ["sync", "delayed"])
def test_the_other_one_of_two_goes_on_at_once_when_the_leader_raises(tmp_path, mode):
    script = tmp_path / "train.py"
    ends = 'if run.round >= 5 and os.environ["TRADEWIND_ID"] == "1": run.close(); raise LookupError("own")'
    script.write_text(
        TRAIN.replace("    opt.zero_grad()", f"    opt.zero_grad()\n    {ends}")
        .replace("target_batch_size=64, rounds=200", f'target_batch_size=16, rounds=40, mode="{mode}"')
    )  # fmt: skip
    done = subprocess.run(
        [PROGRAM, "run", "--peers", "2", "--wait-for", "2", "--out", str(tmp_path / "out"), "--set",
         "checkpoint.folder=none", "--", sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": python_path()}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "LookupError: own" in said and "done 40" in said, said
    log = next((tmp_path / "out").glob("events-2*.jsonl")).read_text()
    assert '"phase":"stop"' in log and "minority" not in log


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_the_peer_of_the_wheels_tests_that_has_no_pytorch_trains():
    done = subprocess.run(
        [PROGRAM, "run", "--peers", "2", "--wait-for", "2", "--set", "training.rounds=10", "--set",
         "training.target_batch_size=64", "--", sys.executable, str(ROOT / "tests/wheels/bare.py")],
        env={**os.environ, "PYTHONPATH": python_path()}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    parameters = re.findall(r"done 10 (.*)", done.stdout)
    assert len(parameters) == 2 and len(set(parameters)) == 1, done.stdout + done.stderr


PRINT = "import os, sys; print(os.environ['TRADEWIND_VERDICT'] != '', sys.argv[1:])\n" + (
    "for name in sorted(os.environ):\n    if name.startswith('TRADEWIND_'): print(name, os.environ[name])\n"
)


@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_every_option_is_a_variable_that_the_package_knows(tmp_path, monkeypatch):
    (tmp_path / "run.yaml").write_text("training: {codec: fp16}\n")
    options = (
        "--join a:1 --join b:2 --listen c:3 --out logs --log-limit 9MiB --id 7 --wait-for 2 --site aws:us:a"
        " --role anchor --token @t --rejoin --notices none --grace 9s --watch e:4"
        " --usd-per-h 0.5 --threads 3 --set training.rounds=5 --set training.seed=2"
    )
    nasty = ["a b", "it's", '"', "$HOME `id`", "two\nlines", "", "--", "OUT"]
    done = subprocess.run(
        [PROGRAM, "run", "run.yaml", *options.split(), "--", sys.executable, "-c", PRINT, *nasty],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "never took part in the run: does it call tradewind.join() and step()?" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"[1] True {nasty!r}"
    found = dict(line.split(" ")[1:3] for line in lines[1:])
    for of_others in ("VERDICT", "PROCESS", "LAUNCHER", "LIBRARY", "PROGRAM"):
        found.pop("TRADEWIND_" + of_others, None)
    others = {"TRADEWIND_ANEW", "TRADEWIND_INSECURE", "TRADEWIND_NO_REJOIN", "TRADEWIND_RUN_FOLDER"}
    of_options = {row["variable"] for row in rows([]) if row["variable"]}
    assert set(found) | others == of_options | {"TRADEWIND_RUN", "TRADEWIND_SET", "TRADEWIND_THREADS"}
    (tmp_path / "run.yaml").write_text("training: {codec: fp16}\n")
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    settings = resolve({}).values
    assert settings["rejoin"] == "1" and settings["grace"] == "9s" and settings["join"] == "a:1,b:2"
    assert settings["training.codec"] == "fp16" and resolve({}).threads == 3
    assert settings["training.rounds"] == "5" and settings["log_limit"] == "9MiB"


@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_launch_local_gives_its_processes_the_same_variables(monkeypatch):
    for name in ("OMP_NUM_THREADS", "TRADEWIND_PROGRESS"):
        monkeypatch.delenv(name, raising=False)
    print_all = "import os; print(*sorted(name + '=' + os.environ[name] for name in os.environ))"
    done = subprocess.run(
        [PROGRAM, "run", "--peers", "2", "--threads", "3", "--", sys.executable, "-c", print_all],
        capture_output=True,
        text=True,
    )
    names = ("TOKEN", "VERDICT", "PROCESS", "LAUNCHER", "LIBRARY", "PROGRAM")
    credential = ["TRADEWIND_" + name for name in names]
    for number, line in enumerate(sorted(line for line in done.stdout.splitlines() if line.startswith("["))):
        pairs = dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
        found = {name: pairs[name] for name in pairs if name.startswith(("TRADEWIND_", "OMP_"))}
        address = found.get("TRADEWIND_LISTEN") or found["TRADEWIND_JOIN"]
        port = int(address.split(":")[1])
        given = launch._environment(number, 2, port, {"progress": "line", "threads": 3}, None)
        assert {name: found[name] for name in found if name not in credential} == given


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
@pytest.mark.parametrize("end", ["os._exit(0)", "raise SystemExit(0)"])
def test_a_program_that_ends_with_0_in_the_middle_of_its_run_has_failed(tmp_path, end):
    script = tmp_path / "train.py"
    script.write_text(TRAIN.replace("time.sleep(0.01)", f"if run.round == 4: {end}"))
    crew = subprocess.run(
        [PROGRAM, "run", "--peers", "2", "--out", str(tmp_path / "out"), "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=60,
    )
    assert crew.returncode == 1, crew.stdout + crew.stderr
    for number in (1, 2):
        expected = rf"process {number} ended with exit code 0 in round \d of 200; the run is not complete"
        assert re.search(expected, crew.stderr), crew.stderr


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_left_on_a_notice_may_be_started_again(tmp_path, number):
    script = tmp_path / "train.py"
    script.write_text(TRAIN.replace("rounds=200", "rounds=100000"))
    environment = {**os.environ, "PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "line"}
    crew = subprocess.Popen(
        [PROGRAM, "run", "--peers", "2", "--out", str(tmp_path / "out"), "--", sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert crew.stdout is not None
    lines, told = [], False
    for line in crew.stdout:
        if not told and re.search(r"round [1-9]\d*/", line):
            told = True
            crew.send_signal(number)
            crew.send_signal(number)  # as Slurm does, within milliseconds
        lines.append(line)
    assert crew.wait(10) == 75, "".join(lines)
    assert sum("] done" in line for line in lines) == 2, "".join(lines)
    logs = [path.read_text() for path in (tmp_path / "out").glob("events-[0-9]*.jsonl")]
    assert len(logs) == 2
    assert all('"phase":"notice"' in log and '"cause":"preempt","source":"signal"' in log for log in logs)


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_a_program_on_a_machine_that_is_about_to_go_does_not_join(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    (tmp_path / "notice").write_text("preempt 30 the owner is back\n")
    environment = {**os.environ, "PYTHONPATH": python_path()}
    notices = f"file:{tmp_path / 'notice'}"
    made = subprocess.run(
        [PROGRAM, "run", "--notices", notices, "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert made.returncode == 75, made.stdout + made.stderr
    assert "CondemnedError: does not join, because this machine is about to go: file: preempt in 30 s" in (
        made.stdout
    )


@needs_engine
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
def test_a_run_that_is_lost_ends_with_one_message_and_begins_again_when_told_so(tmp_path):
    script = tmp_path / "train.py"
    dies = "time.sleep(0.01)\n    if run.round == int(os.environ['DIES_IN']): os.kill(os.getpid(), 9)"
    rounds = "rounds=int(os.environ['ROUNDS'])"
    script.write_text(TRAIN.replace("rounds=200", rounds).replace("time.sleep(0.01)", dies))
    settings = {"PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "line"}

    def made(rounds, dies_in, *words):
        """Exit code and output."""
        crew = subprocess.run(
            [PROGRAM, "run", "--restarts", "5", "--out", "out", *words, "--", sys.executable, str(script)],
            capture_output=True,
            text=True,
            env={**os.environ, **settings, "DIES_IN": str(dies_in), "ROUNDS": str(rounds)},
            timeout=100,
        )
        return crew.returncode, crew.stdout + crew.stderr

    code, said = made(8, 5)
    assert code == 2, said
    assert re.search(rf"checkpoints in {tmp_path}/out/checkpoints/[0-9a-f]{{8}}, every 5 min", said), said
    assert said.count("starting it again") == 1, said
    assert said.count(" rounds of this run are lost (its event log is ") == 1, said
    assert f"no checkpoint is in {tmp_path}/out/checkpoints/" in said and "TRADEWIND_ANEW=1" in said
    code, said = made(8, -1, "--anew")
    assert code == 0 and "done 8" in said, said
    saved = [path.name for path in (tmp_path / "out" / "checkpoints").glob("*/*.tw*")]
    assert len(saved) == 1 and saved[0].startswith("round-000008-"), saved
    code, said = made(12, -1)
    assert code == 0 and "done 12" in said, said
    assert f"goes on from the checkpoint of round 8 in {tmp_path}/out/checkpoints/" in said
    assert "begins again: its checkpoints in" not in said
    code, said = made(12, -1)
    assert code == 0 and "done 12" in said, said
    assert "the run was over in round 12, and begins again: its checkpoints in" in said
