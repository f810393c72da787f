# SPDX-License-Identifier: Apache-2.0
"""A training loop that a seed varies: model, dtypes, optimizer, mode, streams, devices, sizes of buckets."""

import random
from typing import NamedTuple

import torch
from models import data, loss_of, mlp, with_batch_norm
from tradewind.model.device import Crossing

STEPS, BATCH, ROUNDS = 3, 8, 4


class Halves(torch.nn.Module):
    """One half of the model on each of two devices."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)

    def forward(self, inputs):
        hidden = self.first(inputs.to(self.first.weight.device)).tanh()
        return self.second(hidden.to(self.second.weight.device)).to(inputs.device)


class Scaled(torch.nn.Module):
    """One weight in another order of memory than its values have."""

    def __init__(self):
        super().__init__()
        weight = torch.randn(3, 4, 2, 2)
        self.weight = torch.nn.Parameter(weight.contiguous(memory_format=torch.channels_last))

    def forward(self, inputs):
        return (inputs.view(-1, 1, 4, 1, 1) * self.weight).tanh().sum((2, 3, 4)).mean(1, keepdim=True)


def channels_last():
    torch.manual_seed(4)
    return Scaled()


def halves():
    torch.manual_seed(5)
    return Halves()


def bfloat16():
    return mlp(width=12).to(torch.bfloat16)


MODELS = (mlp, lambda: mlp(width=40), with_batch_norm, channels_last, halves, bfloat16)
OPTIMIZERS = (
    lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, foreach=False),
    lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, foreach=False),
    lambda parameters: torch.optim.NAdam(parameters, lr=1e-2, foreach=False),
)


ENGINES = 2  # the first ones


class Story(NamedTuple):
    model: int
    optimizer: int
    mode: str
    accumulate: str
    bucket: int
    late_gradient: bool  # a parameter has none in the first steps
    evaluates: bool  # the loop reads the parameters between two rounds
    side_stream: bool  # the loop has a stream of its own
    missed: int  # rounds that others decide while this peer computes
    on_the_host: bool  # the engine updates there, if it can
    clamps: bool  # after_round= changes the weights

    @classmethod
    def of(cls, seed):
        dice = random.Random(seed)
        return cls(
            dice.randrange(len(MODELS)),
            dice.randrange(len(OPTIMIZERS)),
            dice.choice(("sync", "sync", "local")),
            dice.choice(("device", "device", "host")),
            dice.choice((5, 7, 30, 1 << 20)),
            dice.random() < 0.3,
            dice.random() < 0.3,
            dice.random() < 0.3,
            dice.choice((0, 0, 1, 2)),
            dice.random() < 0.3,
            dice.random() < 0.3,
        )


def _placed(model, device):
    if device == "cpu" or not isinstance(model, Halves):
        return model.to(device)
    model.first.to(f"{device}:0"), model.second.to(f"{device}:1")
    return model


def told(story, device, fake_run):
    """The loop on the device. Its losses and what it evaluated, then parameters and buffers, on the host."""
    model = _placed(MODELS[story.model](), device)
    settings = {"mode": story.mode} if story.mode == "local" else {}
    run = fake_run(target_batch_size=STEPS * BATCH, rounds=ROUNDS + story.missed, **settings)
    options = {} if story.mode == "local" else {"accumulate": story.accumulate}
    inner = OPTIMIZERS[story.optimizer](model.parameters())
    if story.on_the_host and story.mode != "local" and story.optimizer < ENGINES:
        options["engine"] = "tradewind"
    opt = run.optimizer(model, inner, batch_size=BATCH, **options)
    if story.clamps and story.mode != "local":
        run.extra_state(dict, lambda _: None, after_round=lambda: _clamp(model))
    found = []
    stream = torch.Stream(device) if story.side_stream and device != "cpu" else None
    if stream is not None:
        # As torch says of streams: what the model was made by comes first.
        stream.wait_stream(torch.accelerator.current_stream())
        stream.__enter__()
    try:
        for step in range(STEPS * ROUNDS):
            if step == STEPS + 1:
                fake_run.engines[-1].missed_next = story.missed
            found.append(_step(story, model, opt, step, device))
            if story.evaluates and step % STEPS == 0:
                found.extend(value.detach().cpu().clone() for value in model.parameters())
    finally:
        if stream is not None:
            stream.__exit__(None, None, None)
            torch.accelerator.current_stream().wait_stream(stream)
    _, saved = fake_run.engines[-1].saved()  # for a joiner or a checkpoint
    run.close()
    vectors = [torch.from_numpy(vector).view(torch.int32) for vector in saved]
    for state in (inner.state[one] for one in model.parameters()):
        vectors.extend(value.detach().cpu() for value in state.values() if isinstance(value, torch.Tensor))
    return [*found, *(value.cpu() for value in model.state_dict().values()), *vectors]


@torch.no_grad()
def _clamp(model):
    for parameter in model.parameters():
        parameter.clamp_(-0.2, 0.2)


def _step(story, model, opt, step, device):
    dtype = next(model.parameters()).dtype
    inputs, targets = (values.to(dtype) for values in data(BATCH, seed=step))
    there = next(model.parameters()).device if device != "cpu" else device
    opt.zero_grad(set_to_none=step % 2 == 0)
    loss = loss_of(model, inputs.to(there, non_blocking=True), targets.to(there, non_blocking=True))
    loss.backward()
    if story.late_gradient and step < 2:
        next(model.parameters()).grad = None
    opt.step()
    return loss.detach().cpu()


def bucket_of(story, monkeypatch):
    """Buckets as the story has them."""
    monkeypatch.setattr(Crossing, "BUCKET", story.bucket)
