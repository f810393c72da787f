# SPDX-License-Identifier: Apache-2.0
"""tw export: what other programs read from a checkpoint is what the model was."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import needs_engine
from models import data, loss_of, with_batch_norm

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
needs_program = pytest.mark.skipif(not Path(PROGRAM).exists(), reason="tw is not built (make program)")


def read(path):
    """An independent reader: huggingface.co/docs/safetensors."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length], object_pairs_hook=unique)
    facts = header.pop("__metadata__")
    tensors, end = {}, 0
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert entry["dtype"] == "F32" and first == end, "no gaps, no overlaps"
        raw = content[8 + length + first : 8 + length + last]
        tensors[name] = torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(entry["shape"])
        end = last
    assert (8 + length) % 8 == 0 and 8 + length + end == len(content)
    return tensors, facts


def unique(pairs):
    assert len({name for name, _ in pairs}) == len(pairs), "a name twice"
    return dict(pairs)


def export(checkpoint, out):
    words = [PROGRAM, "export", str(checkpoint), "-o", str(out)]
    return subprocess.run(words, capture_output=True, text=True)


def train(folder):
    """Three rounds of one peer; its model after them. Run in a process of its own."""
    import tradewind

    model = with_batch_norm()
    run = tradewind.join(
        target_batch_size=8, rounds=3, settings={"checkpoint.folder": folder, "checkpoint.every": 1}
    )
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    for inputs, targets in run.batches([data()] * 3):
        loss_of(model, inputs, targets).backward()
        opt.step()
        opt.zero_grad()
    torch.save(model.state_dict(), folder + ".pt")


@needs_engine
@needs_program
def test_the_newest_checkpoint_has_the_parameters_of_the_model(tmp_path):
    subprocess.run([sys.executable, __file__, str(tmp_path / "ck")], check=True, timeout=100)
    done = export(tmp_path / "ck", tmp_path / "model.safetensors")
    assert done.returncode == 0, done.stderr
    tensors, facts = read(tmp_path / "model.safetensors")
    state = {k: v for k, v in torch.load(tmp_path / "ck.pt").items() if v.dtype.is_floating_point}
    assert facts["round"] == "3"
    assert set(tensors) <= set(state) and {"0.weight", "2.bias"} <= set(tensors)
    for name, values in tensors.items():
        assert torch.equal(values, state[name]), name


@needs_program
def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path):
    torn = tmp_path / "round-000001-1a2b3c4d.tw"
    torn.write_bytes(b"tradewind state\n\0")
    done = export(tmp_path, tmp_path / "model.safetensors")
    assert (done.returncode, done.stderr) == (1, f"tw: {torn}: it is cut off\n")
    torn.unlink()
    done = export(tmp_path, tmp_path / "model.safetensors")
    wanted = f"tw: {tmp_path}: expected a checkpoint (round-NNNNNN-*.tw) or a folder of them\n"
    assert (done.returncode, done.stderr) == (2, wanted)
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    train(sys.argv[1])
