# SPDX-License-Identifier: Apache-2.0
"""load_checkpoint and `python -m tradewind export`: what a checkpoint holds is what the model was."""

import os
import subprocess
import sys
import threading

import pytest
import torch
import tradewind
from conftest import needs_engine, python_path
from models import data, loss_of, with_batch_norm
from tradewind.__main__ import main

pytestmark = needs_engine


def train(folder, rounds, dtype=torch.float32, on_round=lambda model: None):
    """The model of one peer after so many rounds."""
    model = with_batch_norm().to(dtype)
    kept = {"checkpoint.folder": str(folder), "checkpoint.every": 1}
    with tradewind.join(target_batch_size=8, rounds=rounds, settings=kept) as run:
        opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
        for inputs, targets in run.batches([data()] * rounds):
            loss_of(model, inputs.to(dtype), targets.to(dtype)).backward()
            opt.step()
            opt.zero_grad()
            on_round(model)
    return model


def leaves_in(round_):
    """The last peer of its run, which breaks out of its loop."""
    model = with_batch_norm()
    run = tradewind.join()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1e-2))
    for inputs, targets in run.batches([data()], distinct=True):
        loss_of(model, inputs, targets).backward()
        opt.step()
        if run.round == round_:
            run.leave()
            break


def test_the_last_peer_leaves_a_checkpoint_though_its_loop_breaks(tmp_path):
    settings = {"target_batch_size": 8, "rounds": 9, "checkpoint.folder": str(tmp_path / "ck")}
    tradewind.launch_local(leaves_in, 3, peers=1, settings=settings, timeout=90)
    assert tradewind.load_checkpoint(tmp_path / "ck").round == 3


def export(*words, **environment):
    environment = {**os.environ, "PYTHONPATH": python_path(), **environment}
    command = [sys.executable, "-m", "tradewind", "export", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_newest_checkpoint_of_a_folder_is_the_model(tmp_path, dtype):
    state = train(tmp_path / "ck", 3, dtype).state_dict()
    found = tradewind.load_checkpoint(tmp_path / "ck")
    assert (found.round, found.samples, len(found.run)) == (3, 24, 32)
    assert set(found) == set(state) - {"1.num_batches_tracked"}
    for name, values in found.items():
        assert values.dtype == state[name].dtype and torch.equal(values, state[name]), name
    (newest,) = (tmp_path / "ck").glob("round-000003-*.tw")
    for same in (newest, f"file:{tmp_path}/ck", f"file:{newest}"):
        assert torch.equal(tradewind.load_checkpoint(same)["0.weight"], found["0.weight"])


def test_a_loop_goes_on_with_weights_of_another_run(tmp_path):
    kept = train(tmp_path / "ck", 3)
    model = with_batch_norm(seed=9)
    missing, unexpected = model.load_state_dict(tradewind.load_checkpoint(tmp_path / "ck"), strict=False)
    assert missing == [] and unexpected == []
    with tradewind.join(target_batch_size=8, rounds=1, settings={"checkpoint.folder": "none"}) as run:
        run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.0))
        run.start()
        assert torch.equal(model[0].weight, kept[0].weight)


def test_a_folder_above_names_its_run(tmp_path):
    train(tmp_path / "out/checkpoints/one", 2)
    assert tradewind.load_checkpoint(tmp_path / "out").round == 2
    train(tmp_path / "out/checkpoints/two", 3)
    with pytest.raises(tradewind.SettingError, match="several runs; name one of .*/one, .*/two"):
        tradewind.load_checkpoint(tmp_path / "out")


def test_a_run_that_lives_replaces_its_checkpoints_meanwhile(tmp_path):
    over, rounds = threading.Event(), []

    def look():
        while not over.is_set():
            if any(tmp_path.glob("ck/*.tw")):
                rounds.append(tradewind.load_checkpoint(tmp_path / "ck").round)

    looking = threading.Thread(target=look)
    looking.start()
    # A loop of its own has the interpreter lock most of the time.
    seen = train(tmp_path / "ck", 60, on_round=lambda model: rounds and threading.Event().wait(0.001))
    over.set()
    looking.join()
    assert seen is not None and rounds == sorted(rounds) and len(set(rounds)) > 1, rounds


def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path):
    torn = tmp_path / "round-000001-1a2b3c4d.tw"
    torn.write_bytes(b"tradewind state\n\0")
    out = tmp_path / "model.pt"
    done = export(tmp_path, "-o", out)
    assert (done.returncode, done.stderr) == (1, f"tradewind: {torn}: it is cut off\n")
    torn.unlink()
    done = export(tmp_path, "-o", out)
    wanted = f"tradewind: {tmp_path}: expected a checkpoint (round-NNNNNN-*.tw) or a folder of them\n"
    assert (done.returncode, done.stderr) == (2, wanted)
    assert list(tmp_path.iterdir()) == []
    done = export(tmp_path, "-o", "model.onnx")
    wanted = "tradewind: -o model.onnx: expected a name that ends with .safetensors or .pt.\n"
    assert (done.returncode, done.stderr) == (2, wanted)
    done = export(tmp_path, "-o", tmp_path / "none" / "model.pt")
    wanted = f"tradewind: -o {tmp_path}/none/model.pt: there is no folder {tmp_path}/none.\n"
    assert (done.returncode, done.stderr) == (2, wanted)


def test_export_names_what_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "dir.pt").mkdir()
    done = export(tmp_path, "-o", tmp_path / "dir.pt")
    wanted = f"tradewind: -o {tmp_path}/dir.pt: expected the name of a file, found a folder.\n"
    assert (done.returncode, done.stderr) == (2, wanted)
    done = export(tmp_path, "-o", "/proc/x.pt")  # no user may write there
    wanted = "tradewind: -o /proc/x.pt: cannot be written: No such file or directory.\n"
    assert (done.returncode, done.stderr) == (2, wanted)
    train(tmp_path / "ck", 1)

    def save(values, path):
        raise RuntimeError("the disk is full\nframe #0: of C++")  # as torch has it

    monkeypatch.setattr(torch, "save", save)
    assert main(["export", str(tmp_path / "ck"), "-o", str(tmp_path / "full.pt")]) == 1
    wanted = f"tradewind: -o {tmp_path}/full.pt: cannot be written: the disk is full.\n"
    assert capsys.readouterr().err == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ck", "dir.pt"]


def test_export_writes_a_file_of_torch_and_says_what_safetensors_needs(tmp_path):
    state = train(tmp_path / "ck", 2).state_dict()
    done = export(tmp_path / "ck", "-o", tmp_path / "model.pt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/model.pt: 8 tensors with 61 values, after round 2 ({tmp_path}/ck)\n"
    found = torch.load(tmp_path / "model.pt")
    assert type(found) is dict and all(torch.equal(found[name], state[name]) for name in found)
    # A module of that name that cannot be imported stands for one that is not there.
    (tmp_path / "safetensors.py").write_text("raise ImportError")
    hidden = os.pathsep.join([str(tmp_path), python_path()])
    done = export(tmp_path / "ck", "-o", tmp_path / "model.safetensors", PYTHONPATH=hidden)
    assert done.returncode == 2 and "`pip install safetensors`" in done.stderr
    assert [path.name for path in tmp_path.glob("model*")] == ["model.pt"]
