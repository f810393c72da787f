# SPDX-License-Identifier: Apache-2.0
"""Arguments of join() and the environment."""

import re

import pytest
import torch
import tradewind
from conftest import ROOT, needs_engine
from models import data, loss_of, mlp
from tradewind import SettingError
from tradewind.engine.settings import OWN_KEYS, TAKE_NONE, resolve, rows

# Variables beside those of the library's table.
OF_FILES = """\
| `TRADEWIND_RUN` | the first one, `file` |  | the run file |
| `TRADEWIND_SET` | keys of the run file |  | `KEY=VALUE;KEY=VALUE`, as `rounds=5;training.codec=int8` |
"""
OF_PYTHON = """\
| `TRADEWIND_THREADS` | `threads` |  | 1 to 1024 threads: of PyTorch, and of the engine's sums and updates |
| `TRADEWIND_LIBRARY` | |  | another `libtradewind.so` |
| `TRADEWIND_PROGRAM` | |  | the `tw` that makes the token of `launch_local`, and runs the demo |
"""


def test_the_table_of_the_docs_is_that_of_the_library():
    table = "| variable | argument of `join` | default | meaning |\n|---|---|---|---|\n" + OF_FILES
    for row in rows([]):
        if row["variable"]:
            default = f"`{row['default']}`" if row["default"] else ""
            table += f"| `{row['variable']}` | `{row['key']}` | {default} | {row['meaning']} |\n"
    table += OF_PYTHON
    assert table in (ROOT / "docs/python.md").read_text(), f"docs/python.md should have:\n{table}"


def test_none_is_an_error_where_it_could_mean_the_word():
    of_run_files = {row["key"] for row in rows([]) if row["expected"].endswith(" or none")}
    assert of_run_files | {"folder", "listen", "notices"} == set(TAKE_NONE)
    for key in TAKE_NONE:
        with pytest.raises(SettingError, match=f'{key}=None: expected a text; say "none" for none, or leave'):
            tradewind.join(settings={key: None})
    with pytest.raises(SettingError, match="notices=None"):
        tradewind.join(notices=None)
    tradewind.join(token=None, settings={"checkpoint.folder": "none", "watch": None}).close()


def test_keys_that_the_program_decides_are_none_of_the_library():
    assert not {row["key"] for row in rows([])} & set(OWN_KEYS)


@pytest.mark.parametrize(
    "given,told",
    [
        ({"modell": torch.nn.Linear(1, 1)}, "there is no setting modell"),
        ({"roundz": [3]}, 'there is no setting roundz; did you mean "rounds"'),
        ({"checkpoint.foldr": [3]}, 'checkpoint.foldr: unknown key; did you mean "folder"'),
        ({"on_event": print}, r"on_event cannot be set here: it is decided by run.on_event\(function\)"),
        ({"rounds": [3]}, r"rounds=\[3\]: expected a text, a number, True or False"),
        ({"file": [3]}, r"file=\[3\]: expected a text, a number, True or False"),
    ],
)
def test_what_is_no_setting_is_told_before_what_is_no_value(given, told):
    with pytest.raises(SettingError, match=told):
        resolve(given)


def test_arguments_are_looked_up_by_their_last_part():
    values = resolve({"target_batch_size": 4096, "rounds": 500}).values
    assert values["training.target_batch_size"] == "4096" and values["training.rounds"] == "500"
    values = resolve({"training.codec": "int8", "checkpoint.every": 5, "norm_cap": 1e-3}).values
    assert values["training.codec"] == "int8" and values["checkpoint.every"] == "5"
    assert values["training.norm_cap"] == "0.001" and values["training.rounds"] == "100"
    assert resolve({"target_batch_size": "auto"}).values["training.target_batch_size"] == "auto"


def test_options_of_a_peer(tmp_path):
    (tmp_path / "run.yaml").write_text("training: {rounds: 7, seed: 3}\n")
    given = {"join": ["a:1", "b:2"], "listen": "0.0.0.0:7000", "insecure": True, "file": "run.yaml"}
    settings = resolve({**given, "seed": 4})
    assert settings.pairs == (
        ("join", "a:1"),
        ("join", "b:2"),
        ("listen", "0.0.0.0:7000"),
        ("insecure", "true"),
        ("run_file", "run.yaml"),
        ("seed", "4"),
    )
    values = settings.values
    assert values["join"] == "a:1,b:2" and values["insecure"] == "1" and not values["rejoin"]
    assert values["training.rounds"] == "7" and values["training.seed"] == "4"


@pytest.mark.parametrize(
    "arguments,text",
    [
        ({"target_batch_sise": 4}, 'no setting target_batch_sise; did you mean "target_batch_size"'),
        ({"wait_four": 4}, 'did you mean "wait_for"'),
        ({"xyzzy": 4}, "docs/python.md"),
        ({"optimizer.kind": "sgd"}, "optimizer.kind cannot be set here.*run.optimizer"),
        ({"microbatch": 8}, "microbatch cannot be set here.*batch_size"),
        ({"schedule.learning_rate": 1}, "scheduler="),
        ({"rounds": 3, "training.rounds": 4}, "training.rounds is given twice, 3 and 4"),
        ({"file": "none.yaml"}, "none.yaml"),
        ({"rounds": [3]}, "expected a text, a number"),
        ({"threads": 0}, "threads=0: expected a whole number from 1 to 1024"),
        ({"threads": 1025}, "threads=1025: expected a whole number from 1 to 1024"),
        ({"threads": "²"}, "threads=²: expected a whole number from 1 to 1024"),
        ({"grain": 2}, "no setting grain; docs/python.md"),
        ({"begun": 2}, "no setting begun; docs/python.md"),
        ({"target_batch_size": "much"}, 'a whole number from 1 to 1000000000 or auto, found "much"'),
        ({"target_batch_size": "auto", "batch_min": 9, "batch_max": 8}, "batch_min: expected.*is 8"),
        ({"batch_min": 64}, "training.target_batch_size is 512; expected auto"),
        ({"target_batch_size": "auto", "exact_batches": True}, "target_batch_size is auto: batches"),
        ({"round": 2}, r'did you mean "rounds"\?$'),
    ],
)
def test_what_is_wrong_is_named(arguments, text):
    with pytest.raises(SettingError, match=text):
        resolve(arguments)


@pytest.mark.parametrize(
    "arguments,text",
    [
        ({"grace": "25"}, "grace=25: expected a duration from 1s to 1h, such as 25s"),
        ({"watch": "8080"}, "watch=8080: expected HOST:PORT, such as 127.0.0.1:8080"),
        ({"join": ["a:1", "b"]}, "join=b: expected HOST:PORT, such as b:7000"),
        ({"id": 0}, "id=0: expected a whole number from 1 to"),
        ({"wait_for": 0}, "wait_for=0: expected a whole number from 1 to"),
        ({"usd_per_h": "catalog"}, "usd_per_h=catalog: a program does not ask the catalogs"),
        ({"role": "chef"}, "role=chef: expected peer or anchor"),
        ({"notices": "foo"}, "notices=foo: expected auto, aws"),
        ({"progress": "loud"}, "progress=loud: expected auto, line or off"),
        ({"run": "folder", "insecure": True}, "insecure=True and a token: TLS is either off or on"),
        ({"rejoin": True, "no_rejoin": True}, "rejoin=True and no_rejoin=True: the peers of a run"),
    ],
)
def test_join_checks_options_of_a_peer_at_once(arguments, text):
    with pytest.raises(SettingError, match=text):
        tradewind.join(**arguments)


def test_join_leaves_for_the_start_what_others_may_still_make(tmp_path):
    tradewind.join(token=f"@{tmp_path}/later", wait_for=2, listen="none").close()
    tradewind.join(run=tmp_path / "later", out=tmp_path / "later").close()


def test_variables_of_a_peer_are_checked_at_once(monkeypatch):
    monkeypatch.setenv("TRADEWIND_GRACE", "25")
    with pytest.raises(SettingError, match="grace=25: expected a duration"):
        tradewind.join()


def test_the_environment_stands_for_arguments(monkeypatch, tmp_path):
    (tmp_path / "a.yaml").write_text("training: {codec: fp16}\n")
    environment = {
        "TRADEWIND_RUN": "a.yaml",
        "TRADEWIND_SET": "rounds=5; training.seed=6",
        "TRADEWIND_JOIN": "a:1,b:2",
        "TRADEWIND_RUN_FOLDER": "folder",
        "TRADEWIND_REJOIN": "1",
        "TRADEWIND_WAIT_FOR": "3",
        "TRADEWIND_THREADS": "2",
        "TRADEWIND_PROGRESS": "off",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = resolve({"rounds": 5, "rejoin": True})
    assert settings.pairs == (("rounds", "5"), ("rejoin", "true")) and settings.threads == 2
    expected = {
        "training.rounds": "5",
        "training.codec": "fp16",
        "training.seed": "6",
        "join": "a:1,b:2",
        "run": "folder",
        "rejoin": "1",
        "wait_for": "3",
        "progress": "off",
    }
    assert {key: settings.values[key] for key in expected} == expected


@pytest.mark.parametrize(
    "arguments,variable,value,text",
    [
        ({"rounds": 6}, "TRADEWIND_SET", "rounds=5", "rounds is 6 in the program and 5 in TRADEWIND"),
        ({"file": "a"}, "TRADEWIND_RUN", "b", "run_file is a in the program and b in TRADEWIND_RUN"),
        ({"threads": 2}, "TRADEWIND_THREADS", "3", "threads is 2 in the program and 3 in TRADEWIND_THREADS"),
        ({"threads": 2}, "TRADEWIND_SET", "threads=3", "threads is 2 in the program and 3 in TRADEWIND_SET"),
        ({}, "TRADEWIND_SET", "rounds", "KEY=VALUE"),
        ({}, "TRADEWIND_SET", "grain=4", "no setting grain"),
        ({}, "TRADEWIND_SET", "threads=100000", "threads=100000: expected a whole number from 1 to 1024"),
        ({}, "TRADEWIND_THREADS", "100000", "threads=100000: expected a whole number from 1 to 1024"),
    ],
)
def test_argument_and_environment_may_not_differ(monkeypatch, arguments, variable, value, text):
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingError, match=text):
        resolve(arguments)


def test_flags_and_threads_are_read_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("TRADEWIND_SET", "insecure=1; threads = 3")
    settings = resolve({"anew": "yes", "insecure": 1, "no_rejoin": "off"})
    assert settings.threads == 3
    assert [settings.values[key] for key in ("anew", "insecure", "no_rejoin")] == ["1", "1", ""]


def test_join_says_what_is_unknown_and_opens_nothing():
    with pytest.raises(SettingError, match='did you mean "rounds"'):
        tradewind.join(round=5)
    run = tradewind.join(rounds=5)
    assert not run.started
    run.close()


@pytest.mark.parametrize(
    "settings,text",
    [
        ({"rounds": 6}, "rounds is 5 as an argument and 6 in settings=: leave one of them out"),
        (["rounds=6"], r"settings=\['rounds=6'\]: expected a dict with names"),
        ({6: "rounds"}, "expected a dict with names"),
    ],
)
def test_settings_that_do_not_fit_the_arguments_are_named(settings, text):
    with pytest.raises(SettingError, match=text):
        tradewind.join(rounds=5, settings=settings)
    tradewind.join(rounds=5, settings={"rounds": 5, "seed": None}).close()


@needs_engine
def test_a_variable_that_is_misspelt_is_named_once(monkeypatch):
    monkeypatch.setenv("TRADEWIND_DATA_OF_MINE", "of the program")
    monkeypatch.setenv("TRADEWIND_WAITFOR", "5")
    monkeypatch.setenv("TRADEWIND_TOKN", "@token")
    model = mlp()
    with tradewind.join(target_batch_size=8, rounds=1, insecure=True, progress="off") as run:
        with pytest.warns(tradewind.TradewindWarning) as said:
            opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
            for inputs, targets in run.shard(torch.utils.data.TensorDataset(*data(16)), batch_size=8):
                loss_of(model, inputs, targets).backward()
                opt.step()
    texts = [str(one.message) for one in said]
    assert [text for text in texts if "is not read" in text] == [
        "TRADEWIND_TOKN is not read: did you mean TRADEWIND_TOKEN?",
        "TRADEWIND_WAITFOR is not read: did you mean TRADEWIND_WAIT_FOR?",
    ]


def test_the_library_knows_the_variables_that_this_package_reads():
    source = (ROOT / "src/bind/environment.cc").read_text().partition("kOtherVariables[] = {")[2]
    known = {"TRADEWIND_" + name for name in re.findall(r'"(\w+)"', source.partition("}")[0])}
    texts = [path.read_text() for path in (ROOT / "python/tradewind").rglob("*.py")]
    reads = r'environ(?:\.get\(|\[)"(TRADEWIND_\w+)"'
    read = {name for text in texts for name in re.findall(reads, text)}
    assert read >= {"TRADEWIND_LIBRARY", "TRADEWIND_PROGRAM"}
    assert read <= known | {row["variable"] for row in rows([])}


def test_a_run_shows_its_settings_but_not_its_token(fake_run):
    settings = fake_run(rounds=7, token="secret").settings
    assert settings["training.rounds"] == "7" and settings["training.mode"] == "sync"
    assert "token" not in settings and "secret" not in settings.values()
