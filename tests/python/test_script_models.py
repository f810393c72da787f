# SPDX-License-Identifier: Apache-2.0
"""`tw train` with models in TorchScript: BatchNorm, parameters to begin with, token files."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
import torch
from conftest import ROOT
from torch import nn
from torch.nn import functional as F

PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
pytestmark = pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")
SIDE = 12


class Normed(nn.Module):
    """A convolution behind BatchNorm, and one whose average is cumulative (momentum=None)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, stride=2, bias=False)
        self.cumulative = nn.BatchNorm2d(8, momentum=None)
        self.out = nn.Linear(8 * (SIDE // 2) ** 2, 4)

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.first(inputs.unsqueeze(1) * 7 + 3)))
        return self.out(F.relu(self.cumulative(self.second(x))).flatten(1))

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.logits(inputs), targets)

    @torch.jit.export
    def correct(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (self.logits(inputs).argmax(1) == targets).sum()


def write_idx(path: Path, values: torch.Tensor) -> None:
    shape = b"".join(struct.pack(">I", size) for size in values.shape)
    path.write_bytes(bytes([0, 0, 8, values.dim()]) + shape + values.to(torch.uint8).numpy().tobytes())


def pictures(count: int, seed: int):
    """Noise with one bright quarter: the class."""
    torch.manual_seed(seed)
    labels = torch.randint(4, (count,))
    images = torch.randint(0, 100, (count, SIDE, SIDE))
    half = SIDE // 2
    for image, label in zip(images, labels.tolist()):
        row, column = half * (label // 2), half * (label % 2)
        image[row : row + half, column : column + half] += 60
    return images, labels


def write_run(folder: Path, more: str = "", rounds: int = 30) -> Path:
    torch.manual_seed(3)
    torch.jit.script(Normed()).save(str(folder / "model.pt"))
    for part, count, seed in (("train", 512, 1), ("test", 200, 2)):
        images, labels = pictures(count, seed)
        write_idx(folder / f"{part}-x", images)
        write_idx(folder / f"{part}-y", labels)
    run = folder / "run.yaml"
    run.write_text(
        textwrap.dedent(
            f"""\
            model: model.pt
            data: {{train_inputs: train-x, train_targets: train-y, test_inputs: test-x, test_targets: test-y}}
            training: {{target_batch_size: 64, microbatch: 16, rounds: {rounds}, exact_batches: true}}
            schedule: {{learning_rate: 3e-3}}
            checkpoint: {{folder: kept, every: 1}}
            """
        )
        + more
    )
    return run


def tw(*words: str, expect: int = 0) -> str:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=200)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def read_safetensors(path: Path):
    """An independent reader: huggingface.co/docs/safetensors."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    types = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(content[first:last]), dtype=types[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def exported(folder: Path, name: str = "model.safetensors"):
    tw("export", str(folder / "kept"), "-o", str(folder / name))
    return read_safetensors(folder / name)


def loaded(tensors) -> Normed:
    model = Normed()
    model.load_state_dict(tensors, strict=True)
    return model.eval()


def test_batch_norm_is_the_same_on_all_peers_when_one_is_killed(tmp_path):
    run = write_run(tmp_path)
    words = ["local", str(run), "--peers", "3", "--kill", "2@4", "--out", str(tmp_path / "out")]
    tw(*words)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["identical"] is True and summary["rounds"] == 30
    assert [lost["peer"] for lost in summary["lost"]] == [2]
    assert summary["test_accuracy"] > 0.9

    model = loaded(exported(tmp_path))
    assert model.norm.num_batches_tracked == 30, "one pass a round"
    assert model.cumulative.num_batches_tracked == 30
    images, labels = pictures(200, 2)
    with torch.no_grad():
        right = model.correct(images / 255, labels).item()
    assert right / 200 == pytest.approx(summary["test_accuracy"], abs=0.011)


def test_statistics_of_the_leader_go_on_with_the_next_one_when_it_is_killed(tmp_path):
    run = write_run(tmp_path)
    settings = ["--set", "training.buffers=leader", "--set", "evaluation.every=1"]
    words = ["--peers", "3", "--kill", "1@10", *settings]
    tw("local", str(run), *words, "--out", str(tmp_path / "out"))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["identical"] is True and summary["rounds"] == 30
    assert [lost["peer"] for lost in summary["lost"]] == [1], "it led"
    assert summary["test_accuracy"] > 0.9
    model = loaded(exported(tmp_path))
    # A round in which no sum of a leader counts leaves them as they are.
    assert 27 <= model.norm.num_batches_tracked <= 30
    assert model.cumulative.num_batches_tracked == model.norm.num_batches_tracked
    assert model.norm.running_var.min() > 0


def test_a_run_with_statistics_of_the_leader_ends_at_its_accuracy(tmp_path):
    run = write_run(tmp_path, rounds=400)
    settings = ["training.buffers=leader", "evaluation.every=1", "evaluation.stop_accuracy=0.9"]
    words = ["--peers", "2", *(word for setting in settings for word in ("--set", setting))]
    tw("local", str(run), *words, "--out", str(tmp_path / "out"))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["rounds"] < 400 and summary["identical"] is True


def test_the_statistics_are_those_of_pytorch(tmp_path):
    """One peer, one round, a whole batch in one pass: a step of PyTorch's moving average."""
    run = write_run(tmp_path, rounds=1)
    settings = ["--set", "training.microbatch=64", "--set", "training.target_batch_size=512"]
    tw("train", str(run), "--quiet", *settings)
    # The 8 passes of 64 move the statistics from the same beginning, and their mean counts.
    found = exported(tmp_path)
    torch.manual_seed(3)
    model = Normed()
    images, _ = pictures(512, 1)
    with torch.no_grad():
        model.train().norm(model.first((images / 255).unsqueeze(1) * 7 + 3))
    assert torch.allclose(found["norm.running_mean"], model.norm.running_mean, rtol=1e-4, atol=1e-6)
    assert torch.allclose(found["norm.running_var"], model.norm.running_var, rtol=2e-2)
    assert found["norm.num_batches_tracked"] == 1


def test_a_run_begins_with_the_parameters_of_a_file(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    tw("train", str(write_run(first)), "--quiet")
    begin = exported(first)
    run = write_run(second, more="model.init: ../first/model.safetensors\n", rounds=1)
    as_it_was = ("train", str(run), "--quiet", "--set", "schedule.learning_rate=1e-9")
    tw(*as_it_was)
    after = exported(second)
    assert after["norm.num_batches_tracked"] == begin["norm.num_batches_tracked"] + 1
    assert torch.allclose(after["out.weight"], begin["out.weight"], atol=1e-6)

    # A run with another file is another run: its checkpoints are not taken.
    content = bytearray((first / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (first / "model.safetensors").write_bytes(bytes(content))
    assert 'it is of another run: there "model.init: ' in tw(*as_it_was, expect=1)


def test_peers_with_another_file_to_begin_with_are_turned_away(tmp_path):
    write_run(tmp_path)
    tw("train", str(tmp_path / "run.yaml"), "--quiet", "--set", "training.rounds=1")
    exported(tmp_path, "a.safetensors")
    content = bytearray((tmp_path / "a.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "b.safetensors").write_bytes(bytes(content))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    tw("init", str(tmp_path / "meet"))

    def words(name: str, *more: str):
        start = str(tmp_path / f"{name}.safetensors")
        kept = str(tmp_path / f"kept-{name}")
        settings = {"training.rounds": "100000", "model.init": start, "checkpoint.folder": kept}
        common = ["train", str(tmp_path / "run.yaml"), "--quiet", "--run", str(tmp_path / "meet"), *more]
        return common + [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    listening = words("a", "--listen", address, "--out", str(tmp_path / "out"))
    running = subprocess.Popen([PROGRAM, *listening], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list((tmp_path / "kept-a").glob("round-*.tw")):
            time.sleep(0.1)
        text = tw(*words("b", "--join", address), expect=1)
    finally:
        running.kill()
        running.wait()
    assert text.count("model.init: ") == 2 and "another run" in text, text


def write_megatron_index(path: Path, tokens: int) -> None:
    """As Megatron-LM's indexed_dataset.py writes it: uint16 tokens, sequences of 1,000, each a document."""
    lengths = [1000] * (tokens // 1000)
    count = len(lengths)
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1)
    places = struct.pack(f"<{count}q", *range(0, 2 * tokens, 2000))
    documents = struct.pack(f"<{count + 1}q", *range(count + 1))
    path.write_bytes(head + struct.pack(f"<{count}i", *lengths) + places + documents)


@pytest.mark.parametrize("kind", ["tokens", "megatron"])
def test_peers_train_on_a_token_file(tmp_path, kind):
    torch.manual_seed(1)
    steps = torch.randint(1, 3, (60000,))
    tokens = (steps.cumsum(0) % 50 + 1000).tolist()
    (tmp_path / "t.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    if kind == "megatron":
        write_megatron_index(tmp_path / "t.idx", len(tokens))
    data = {"tokens": "tokens: t.bin, token_type: uint16", "megatron": "kind: megatron, tokens: t.bin"}[kind]

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(1050, 16)
            self.out = nn.Linear(16, 1050)

        def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(self.out(self.table(inputs)).flatten(0, 1), targets.flatten())

    torch.jit.script(Pairs()).save(str(tmp_path / "model.pt"))
    (tmp_path / "run.yaml").write_text(
        textwrap.dedent(
            f"""\
            model: model.pt
            data: {{{data}, context: 32}}
            training: {{target_batch_size: 64, microbatch: 16, rounds: 60}}
            schedule: {{learning_rate: 3e-2}}
            """
        )
    )
    tw("local", str(tmp_path / "run.yaml"), "--peers", "2", "--out", str(tmp_path / "out"))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["identical"] is True
    # Each token has two successors: ln 2 is the best there is, ln 1050 the beginning.
    assert 0.6 < summary["loss"] < 1.0
