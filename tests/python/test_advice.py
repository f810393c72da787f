# SPDX-License-Identifier: Apache-2.0
"""Gradients that train nothing are named, once."""

import warnings

import pytest
import torch
from models import data, loss_of, mlp

NO_GRADIENT = "no parameter had a gradient in the first 3 steps.*backward.* before step"


def steps_with(fake_run, gradient, count=9, **options):
    """gradient(step, model) stands where a loop computes it."""
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=count)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8, **options)
    for step in range(count):
        opt.zero_grad(set_to_none=True)
        gradient(step, model)
        opt.step()


def backward(model):
    loss_of(model, *data()).backward()


def zeroed(step, model):
    backward(model)
    for parameter in model.parameters():
        parameter.grad.zero_()


@pytest.mark.parametrize("gradient", [lambda step, model: None, zeroed])
@pytest.mark.parametrize("accumulate", ["host", "device"])
def test_a_loop_without_any_gradient_is_told_once(fake_run, gradient, accumulate):
    with pytest.warns(UserWarning, match=NO_GRADIENT) as told:
        steps_with(fake_run, gradient, accumulate=accumulate)
    assert len(told) == 1


def some(step, model):
    if step % 3 == 2:
        backward(model)


def of_one(step, model):
    model[2].bias.grad = torch.ones(1)


def later_none(step, model):
    if step < 1:
        backward(model)


@pytest.mark.parametrize("gradient", [some, of_one, later_none])
def test_gradients_that_are_there_in_some_steps_or_parameters_are_no_fault(fake_run, gradient):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps_with(fake_run, gradient)
