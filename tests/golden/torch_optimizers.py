#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_optimizers.csv beside itself: parameters under PyTorch's optimizers, in double precision.

src/train/learn/optimizer_torch_test.cc holds the engine's optimizers against it and knows the same cases.
Parameters keep away from zero, so that a relative tolerance makes sense. Rows of the case "gradient" are the
gradients of all cases; their values are multiples of 1/512, which every format holds exactly.
"""
import random
from pathlib import Path

import torch
from torch.optim import SGD, Adam, AdamW

STEPS, SIZE, CUT = 20, 8, 5  # two groups: the first CUT parameters, and the rest
START = [1.5, -2.25, 3.0, -0.75, 1.0, 2.0, -1.25, 4.0]
RATES = [0.004 * (1 + step % 4) for step in range(STEPS)]
MOMENTA = [0.85 + 0.01 * (step % 6) for step in range(STEPS)]  # where a schedule moves them

MOMENTS = {"lr": 0.001, "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1}
CASES = {
    "sgd": (SGD, {"lr": 0.001, "weight_decay": 0.01}),
    "sgd_momentum": (SGD, {"lr": 0.001, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd_nesterov": (SGD, {"lr": 0.001, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    "sgd_cycled": (SGD, {"lr": 0.001, "momentum": 0.85, "nesterov": True}),
    "adam": (Adam, MOMENTS),
    "adam_cycled": (Adam, MOMENTS),
    "adamw": (AdamW, MOMENTS),
    "sgd_clipped": (SGD, {"lr": 0.001, "momentum": 0.9}),
    "adamw_clipped": (AdamW, MOMENTS),
    "groups": (AdamW, MOMENTS),
    "groups_clipped": (SGD, {"lr": 0.001, "momentum": 0.9}),
}
SECOND_GROUP = {
    "groups": {"weight_decay": 0.0, "betas": (0.8, 0.9), "eps": 1e-8},
    "groups_clipped": {"momentum": 0.5, "nesterov": True, "weight_decay": 0.02},
}
CLIP = 2.0  # about half of the gradients are longer


def gradients():
    draw = random.Random(5)
    value = lambda: draw.randrange(-384, 385) / 256 * draw.choice((0.5, 1))
    return [[value() for _ in range(SIZE)] for _ in range(STEPS)]


def parameters_of(name, gradient):
    """The parameters after each step."""
    kind, options = CASES[name]
    start = torch.tensor(START, dtype=torch.float64)
    parts = [start[:CUT].clone().requires_grad_(), start[CUT:].clone().requires_grad_()]
    groups = [{"params": [parts[0]]}, {"params": [parts[1]], **SECOND_GROUP.get(name, {})}]
    optimizer = kind(groups, **options)
    for step in range(STEPS):
        g = torch.tensor(gradient[step], dtype=torch.float64)
        parts[0].grad, parts[1].grad = g[:CUT].clone(), g[CUT:].clone()
        if name.endswith("_clipped"):
            torch.nn.utils.clip_grad_norm_(parts, CLIP)
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = RATES[step] * (1 + number)
            if name == "sgd_cycled":
                group["momentum"] = MOMENTA[step]
            if name == "adam_cycled":
                group["betas"] = (MOMENTA[step], 0.98)
        optimizer.step()
        yield torch.cat([p.detach() for p in parts]).tolist()


def main():
    gradient = gradients()
    rows = [f"gradient,{step + 1}," + ",".join(map(repr, g)) for step, g in enumerate(gradient)]
    for name in CASES:
        for step, values in enumerate(parameters_of(name, gradient)):
            rows.append(f"{name},{step + 1}," + ",".join(f"{x:.9g}" for x in values))
    header = "case,step," + ",".join(f"x{i}" for i in range(SIZE))
    Path(__file__).with_suffix(".csv").write_text("\n".join([header, *rows]) + "\n")


if __name__ == "__main__":
    main()
