# SPDX-License-Identifier: Apache-2.0
"""Arguments of join() and the environment."""

import re

import pytest
import tradewind
from conftest import ROOT
from tradewind import SettingError
from tradewind.engine.settings import OWN_KEYS, RUN_KEYS, resolve


def pairs(arguments, environment=None):
    return list(resolve(arguments, environment or {}).pairs)


def test_keys_are_those_of_the_run_file():
    rows = re.findall(r"^\| `([a-z_.]+)` \|", (ROOT / "docs/run_file.md").read_text(), flags=re.M)
    assert set(RUN_KEYS) <= set(rows)
    left_out = {key for key in rows if key not in RUN_KEYS and not {key, key.split(".")[0]} & set(OWN_KEYS)}
    assert not left_out


def test_arguments_are_looked_up_by_their_last_part():
    assert pairs({"target_batch_size": 4096, "rounds": 500}) == [
        ("training.target_batch_size", "4096"),
        ("training.rounds", "500"),
    ]
    assert pairs({"training.codec": "int8", "checkpoint.every": 5, "norm_cap": 1e-3}) == [
        ("training.codec", "int8"),
        ("checkpoint.every", "5"),
        ("training.norm_cap", "0.001"),
    ]


def test_options_of_a_peer():
    found = pairs({"join": ["a:1", "b:2"], "listen": "0.0.0.0:7000", "insecure": True, "file": "run.yaml"})
    assert found == [
        ("run_file", "run.yaml"),
        ("join", "a:1"),
        ("join", "b:2"),
        ("listen", "0.0.0.0:7000"),
        ("insecure", "true"),
    ]


@pytest.mark.parametrize(
    "arguments,text",
    [
        ({"target_batch_sise": 4}, 'no setting target_batch_sise; did you mean "target_batch_size"'),
        ({"wait_four": 4}, 'did you mean "wait_for"'),
        ({"xyzzy": 4}, "docs/python.md"),
        ({"optimizer.kind": "sgd"}, "optimizer.kind cannot be set here.*run.optimizer"),
        ({"microbatch": 8}, "microbatch cannot be set here.*batch_size"),
        ({"schedule.learning_rate": 1}, "scheduler="),
        ({"rounds": 3, "training.rounds": 4}, "training.rounds is given twice"),
        ({"rounds": [3]}, "expected a text, a number"),
        ({"threads": 0}, "whole number from 1"),
    ],
)
def test_what_is_wrong_is_named(arguments, text):
    with pytest.raises(SettingError, match=text):
        resolve(arguments, {})


def test_the_environment_stands_for_arguments():
    environment = {
        "TRADEWIND_RUN": "a.yaml",
        "TRADEWIND_SET": "rounds=5; training.codec=fp16",
        "TRADEWIND_JOIN": "a:1,b:2",
        "TRADEWIND_RUN_FOLDER": "folder",
        "TRADEWIND_INSECURE": "1",
        "TRADEWIND_WAIT_FOR": "3",
        "TRADEWIND_THREADS": "2",
        "TRADEWIND_PROGRESS": "off",
    }
    assert pairs({}, environment) == [
        ("run_file", "a.yaml"),
        ("training.rounds", "5"),
        ("training.codec", "fp16"),
        ("join", "a:1"),
        ("join", "b:2"),
        ("run", "folder"),
        ("insecure", "true"),
        ("wait_for", "3"),
        ("progress", "off"),
    ]
    assert resolve({}, environment).threads == 2


def test_argument_and_environment_may_agree_but_not_differ():
    assert pairs(
        {"rounds": 5, "insecure": True}, {"TRADEWIND_SET": "rounds=5", "TRADEWIND_INSECURE": "1"}
    ) == [
        ("training.rounds", "5"),
        ("insecure", "true"),
    ]
    with pytest.raises(SettingError, match="rounds is 6 as argument and 5 in TRADEWIND_SET"):
        resolve({"rounds": 6}, {"TRADEWIND_SET": "rounds=5"})
    with pytest.raises(SettingError, match="file is a.yaml as argument and b.yaml in TRADEWIND_RUN"):
        resolve({"file": "a.yaml"}, {"TRADEWIND_RUN": "b.yaml"})
    with pytest.raises(SettingError, match="KEY=VALUE"):
        resolve({}, {"TRADEWIND_SET": "rounds"})


def test_join_says_what_is_unknown_and_opens_nothing():
    with pytest.raises(SettingError, match='did you mean "rounds"'):
        tradewind.join(round=5)
    run = tradewind.join(rounds=5)
    assert not run.started
    run.close()
