# SPDX-License-Identifier: Apache-2.0
"""How many bytes cross between host and device."""

import pytest
import simulated
import torch
from models import data, loss_of, mlp
from simulated import Order

ROUNDS = 3


@pytest.mark.parametrize("make", [torch.optim.AdamW, torch.optim.NAdam])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_round_moves_each_value_once_in_each_direction(make, dtype, fake_run):
    simulated.begin(1, Order.LATE)
    model = mlp(width=40).to("sim", dtype)
    inputs, targets = (values.to("sim", dtype) for values in data())
    run = fake_run(target_batch_size=8, rounds=ROUNDS + 1)
    opt = run.optimizer(model, make(model.parameters(), lr=1e-2, foreach=False), batch_size=8)
    values = sum(one.numel() for one in model.parameters())

    def step():
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()

    step()  # starts the run
    before = simulated.counts()
    for _ in range(ROUNDS):
        step()
    after = simulated.counts()
    to_device, to_host = (after[key] - before[key] for key in ("bytes_to_device", "bytes_to_host"))
    # Up: the mean. Down: the sums, and in rounds 2 and 4 the run's parameters, to compare them. torch's
    # optimizer has them as they are.
    of_rule = 4 if make is torch.optim.AdamW else dtype.itemsize
    assert to_device == ROUNDS * values * of_rule
    assert to_host == ROUNDS * values * 4 + 2 * values * of_rule
