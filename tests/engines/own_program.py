# SPDX-License-Identifier: Apache-2.0
"""A run of a PyTorch program of the user's own: its files, a setup line, a variable of its environment."""
import json

from launched import Run

TRAIN = """
import os, sys, time
import torch
import tradewind
from parts.model import make

assert open("prepared").read() == "yes\\n", "setup ran"
assert sys.argv[1:] == {words!r}, sys.argv
assert os.environ["SECRET"] == {secret!r}
print("environment", sorted(os.environ.items()))
torch.manual_seed(0)
model = make()
inputs = torch.randn(512, 4)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
run = tradewind.join()
opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for batch, targets in run.shard(torch.utils.data.DataLoader(data, batch_size=8)):
    time.sleep(0.02)
    ((model(batch) - targets) ** 2).mean().backward()
    opt.step(); opt.zero_grad()
sys.exit(run.exit_code)
"""
WORDS = ["a b", "it's", '"q"', "$HOME `id`", "two\nlines", "", "--id"]
SECRET = "it's $a secret"


class OwnProgram(Run):
    def __init__(self, folder, **more):
        super().__init__(folder, **more)
        (self.folder / "parts").mkdir()
        (self.folder / "parts/model.py").write_text(
            "import torch\n\n\ndef make():\n    return torch.nn.Linear(4, 1)\n")
        (self.folder / "train.py").write_text(TRAIN.format(words=WORDS, secret=SECRET))
        self.write(["echo counted >>../count; echo yes >prepared"])

    def write(
        self, setup, files=("train.py", "parts/"), command=("/usr/bin/python3", "-u", "train.py", *WORDS)
    ):
        (self.folder / "run.yaml").write_text(
            f"training: {{target_batch_size: {self.batch}, rounds: 100000, exact_batches: true}}\n"
            f"program:\n  command: {json.dumps(list(command))}\n  files: {json.dumps(list(files))}\n"
            f"  setup: {json.dumps(setup)}\n  env: {{SECRET: {json.dumps(SECRET)}}}\n")

    def exact(self):
        report = self.report()
        assert report["identical"], report
        assert report["samples"] == report["rounds"] * self.batch, report
        return report
