# SPDX-License-Identifier: Apache-2.0
"""The folders of `tw run` while it trains: a second start there, another working folder, removed logs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
from conftest import needs_engine, python_path
from test_tw_run import PROGRAM, TRAIN

pytestmark = [
    needs_engine,
    pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)"),
]


class Started:
    """`tw run --out out` with two peers of one script, whose loop does something more; rounds: of the run."""

    def __init__(self, folder: Path, rounds: int, more: str = "pass") -> None:
        script = folder / "train.py"
        pause = "time.sleep(0.01)"
        program = TRAIN.replace("rounds=200", f"rounds={rounds}").replace(pause, f"{pause}\n    {more}")
        script.write_text(program)
        words = ["--peers", "2", "--out", "out", "--set", "checkpoint.every=2"]
        words += ["--", sys.executable, str(script)]
        self.process = subprocess.Popen(
            [PROGRAM, "run", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": python_path(), "TRADEWIND_PROGRESS": "off"},
            cwd=folder,
        )

    def ended(self) -> "tuple[int, str]":
        """Exit code and output."""
        said, _ = self.process.communicate(timeout=100)
        return self.process.returncode, said


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def report_of(out: Path) -> dict:
    return json.loads(subprocess.check_output([PROGRAM, "report", "--json", str(out)]))


def test_a_second_start_in_the_folder_of_a_living_run_is_refused(tmp_path):
    first = Started(tmp_path, 2000, "if os.path.exists('end'): run.leave()")
    wait_until(lambda: list(tmp_path.glob("out/checkpoints/*/round-*.tw")))
    code, said = Started(tmp_path, 2000).ended()
    (tmp_path / "end").touch()
    assert code == 2, said
    assert f"a run trains in {tmp_path}/out/checkpoints/" in said, said
    assert "already (process " in said and "give another --out / checkpoint.folder" in said, said
    assert "ended with exit code 2: another run trains in its folder" in said, said
    code, others = first.ended()
    assert code == 0, others
    assert "the token is not of run" not in others, others
    assert len(list((tmp_path / "out").glob("events-[0-9]*.jsonl"))) == 2, "the refused ones wrote nothing"


def test_of_two_starts_at_the_same_time_one_trains(tmp_path):
    (tmp_path / "out").mkdir()
    both = [Started(tmp_path, 300) for _ in range(2)]
    ends = sorted(start.ended() for start in both)
    assert [code for code, _ in ends] == [0, 2], ends
    assert report_of(tmp_path / "out")["rounds"] == 300


def test_folders_stay_where_they_are_when_the_program_goes_elsewhere(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code, said = Started(tmp_path, 12, f"if run.round == 4: os.chdir({str(elsewhere)!r})").ended()
    assert code == 0, said
    assert list(tmp_path.glob("out/checkpoints/*/round-000012-*.tw")), said
    assert list((tmp_path / "out").glob("peers-*.csv"))
    assert not list(elsewhere.iterdir())


def test_logs_that_are_removed_in_mid_run_go_on_in_new_ones(tmp_path):
    run = Started(tmp_path, 300)
    wait_until(lambda: list(tmp_path.glob("out/checkpoints/*/round-*.tw")))
    shutil.move(tmp_path / "out", tmp_path / "moved")
    code, said = run.ended()
    assert code == 0, said
    assert "was removed or moved; a new one goes on without the " in said, said
    report = report_of(tmp_path / "out")
    assert 0 < report["rounds"] < 300, report


def test_a_complete_run_whose_logs_are_gone_at_its_end_is_complete(tmp_path):
    gone = "__import__('atexit').register(__import__('shutil').rmtree, 'out', True)"
    code, said = Started(tmp_path, 12, f"if run.round == 4: {gone}").ended()
    assert code == 0, said
    assert "the event logs of this run are gone, so there is no report" in said, said
