# SPDX-License-Identifier: Apache-2.0
"""Small models, data and loops that several tests train."""

import torch


def mlp(seed=1, width=8):
    """4 inputs, 1 output."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


def with_batch_norm(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 1))


def data(samples=8, seed=3):
    """samples x (4 inputs, 1 target)."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 4, generator=generator)
    return inputs, inputs.sum(1, keepdim=True).sin()


def loss_of(model, inputs, targets):
    return (model(inputs) - targets).pow(2).mean()


def train(model, optimizer, rounds, scheduler=None, batches=None, clip=None):
    """The bare torch loop: one update a batch of data()."""
    for at in range(rounds):
        inputs, targets = data() if batches is None else batches[at]
        optimizer.zero_grad()
        loss_of(model, inputs, targets).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def parameters_of(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_equal(model, other):
    """Bit for bit, buffers too."""
    for (name, mine), theirs in zip(model.state_dict().items(), other.state_dict().values()):
        assert torch.equal(mine, theirs), (name, mine, theirs)


def assert_close(model, other, rtol=2e-6, atol=2e-7):
    for (name, mine), theirs in zip(model.state_dict().items(), other.state_dict().values()):
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, msg=name)
