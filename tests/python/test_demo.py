# SPDX-License-Identifier: Apache-2.0
"""python -m tradewind.demo: the whole story, and what it says when peers end unlike each other."""

import subprocess
import sys

import pytest
from conftest import needs_engine
from tradewind.demo.__main__ import _judge, program
from tradewind.demo.peer import digits


def test_the_digits_are_whole():
    pictures, answers = digits()
    assert pictures.shape == (1797, 64) and pictures.max() == 1
    assert answers.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_peers_that_end_unlike_each_other_are_named(tmp_path, capsys):
    for number, digest in enumerate(("aa", "aa", "aa", "bb")):
        (tmp_path / str(number)).write_text(f"{digest} 90%")
    assert _judge(tmp_path, tmp_path) == 1
    assert "['aa', 'bb']" in capsys.readouterr().out


@needs_engine
def test_four_peers_train_one_is_killed_another_joins_and_all_end_alike():
    if program() is None:
        pytest.skip("tw is not built (make)")
    command = [sys.executable, "-m", "tradewind.demo", "--no-open"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "process 2 is killed" in found.stderr and "process 5 is started" in found.stderr, found.stderr
    assert "4 peers ended, the late one too, with identical parameters" in found.stdout
