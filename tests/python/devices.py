# SPDX-License-Identifier: Apache-2.0
"""Loops on a device, as GPU users write them: in this process, and as real peers."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Iterator

import torch
import tradewind
from loops import state_of, watch
from torch.utils.checkpoint import checkpoint

Report = Callable[..., None]
Step = Callable[[], Any]
BATCH = 8


class Pictures(torch.nn.Module):
    """8 x 8 pictures with a number each. 8192 wide it has more parameters than a piece of a digest."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.wide = torch.nn.Linear(8, width)
        self.last = torch.nn.Linear(width, 1)
        self.checkpointed = False

    def forward(self, pictures: Any) -> Any:
        seen = self.first(pictures).relu()
        if self.checkpointed:
            seen = checkpoint(lambda values: self.second(values).relu(), seen, use_reentrant=False)
        else:
            seen = self.second(seen).relu()
        return self.last(self.wide(seen.mean((2, 3))).tanh())


def pictures(device: str, seed: int = 3) -> Any:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(BATCH, 3, 8, 8, generator=generator)
    return inputs.to(device), inputs.mean((1, 2, 3)).unsqueeze(1).to(device)


def loss_of(model: Any, inputs: Any, targets: Any) -> Any:
    return (model(inputs).float() - targets.float()).pow(2).mean()


# Each: what an optimizer step in this kind of loop is, given model, optimizer and device.


def plain(model: Any, opt: Any, device: str, memory_format: Any = torch.contiguous_format) -> Step:
    inputs, targets = pictures(device)
    inputs = inputs.to(next(model.parameters()).dtype).contiguous(memory_format=memory_format)

    def step() -> Any:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        return opt.step()

    return step


def channels_last(model: Any, opt: Any, device: str) -> Step:
    return plain(model, opt, device, torch.channels_last)


def scaled(model: Any, opt: Any, device: str) -> Step:
    """Automatic mixed precision as torch's recipe has it."""
    inputs, targets = pictures(device)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    half = torch.float16 if device == "cuda" else torch.bfloat16

    def step() -> Any:
        opt.zero_grad()
        with torch.autocast(device, half):
            loss = loss_of(model, inputs, targets)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

    return step


def compiled(model: Any, opt: Any, device: str) -> Step:
    return plain(torch.compile(model), opt, device)


def captured(model: Any, opt: Any, device: str) -> Step:
    """Forward and backward pass as a CUDA graph; its gradients lie where they were captured."""
    inputs, targets = pictures(device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            loss_of(model, inputs, targets).backward()
            model.zero_grad(set_to_none=True)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss_of(model, inputs, targets).backward()

    def step(reads: Any = (inputs, targets)) -> Any:  # the graph does, where they lie
        graph.replay()
        return opt.step()

    return step


# What somebody does with the model before it trains, and how a step is made.
KINDS: Dict[str, Any] = {
    "plain": (lambda model: model, plain),
    "bfloat16": (lambda model: model.to(torch.bfloat16), plain),
    "channels_last": (lambda model: model.to(memory_format=torch.channels_last), channels_last),
    "checkpointed": (lambda model: setattr(model, "checkpointed", True) or model, plain),
    "scaled": (lambda model: model, scaled),
    "compiled": (lambda model: model, compiled),
    "captured": (lambda model: model, captured),
}


def made(kind: str, device: str) -> Any:
    """The model, ready to train."""
    return KINDS[kind][0](Pictures().to(device))


def steps_of(kind: str, model: Any, opt: Any, device: str) -> Iterator[Any]:
    """Steps without end."""
    step = KINDS[kind][1](model, opt, device)
    while True:
        yield step()


def peer(report: Report, device: str, pause_s: float = 0.0, full_in: int = 0, **options: Any) -> Any:
    """A peer that trains there until the run is over. full_in: the round in which memory is not enough."""
    model = Pictures(8192).to(device)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with tradewind.join() as run:
        watch(run, report)
        opt = run.optimizer(model, inner, batch_size=BATCH, **options)
        step = plain(model, opt, device)
        while not run.finished:
            step()
            time.sleep(pause_s)
            if full_in and run.round >= full_in:
                torch.empty(1 << 50, dtype=torch.uint8, device=device)
    return {"state": state_of(model.cpu()), "round": run.round, "metrics": run.metrics}


def long_peer(report: Report, device: str, rounds: int) -> Any:
    """MiB that its process has beyond those after a third of the rounds, on the host and on the device."""
    model = Pictures(8192).to(device)
    run = tradewind.join(target_batch_size=2 * BATCH, rounds=rounds)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters()), batch_size=BATCH)
    step = plain(model, opt, device)
    before = (0.0, 0.0)
    while not run.finished:
        if step() and run.round == rounds // 3:
            before = held(device)
    after = held(device)
    run.close()
    return [one - other for one, other in zip(after, before)]


def held(device: str) -> Any:
    with open("/proc/self/statm") as sizes:
        host = int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return host, torch.cuda.memory_allocated() / 2**20 if device == "cuda" else 0.0
