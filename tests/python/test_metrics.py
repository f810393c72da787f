# SPDX-License-Identifier: Apache-2.0
"""run.metrics of each mode, with the real engine."""

import pytest
import torch
import tradewind
from conftest import needs_engine
from models import data, loss_of, mlp


def metrics_of(mode):
    """Of a run of one peer: before the first step(), and after each."""
    model = mlp()
    run = tradewind.join(mode=mode, rounds=6, target_batch_size=32, insecure=True, progress="off")
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1e-2), batch_size=8)
    with run:
        run.start()
        found = [run.metrics]
        while not run.finished:
            inputs, targets = data(8)
            opt.zero_grad()
            loss_of(model, inputs, targets).backward()
            opt.step()
            found.append(run.metrics)
    return found


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", ("sync", "delayed", "local", "streaming"))
def test_numbers_of_a_mode(mode):
    first, *later = metrics_of(mode)
    overlaps = mode in ("delayed", "streaming")
    assert first["inner_steps"] == first["staleness"] == 0
    # A step is the loop's own optimizer's, unless the run took its gradient and all else.
    taken = [one["steps"] - one["dropped"] for one in later]
    own = taken if mode in ("local", "streaming") else [0] * len(later)
    assert taken[-1] >= 24 and [one["inner_steps"] for one in later] == own
    # The first round begins with all updates; the parameters of each later one lack the last.
    late = [one["staleness"] for one in later]
    assert late[:4] == [0] * 4 and set(late[4:]) == {int(overlaps)}
