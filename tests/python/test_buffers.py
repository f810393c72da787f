# SPDX-License-Identifier: Apache-2.0
"""Running statistics of BatchNorm."""

import re
import warnings

import pytest
import torch
from models import assert_close, data, loss_of, train, with_batch_norm
from tradewind import SettingError, TradewindWarning
from tradewind.engine import abi


def optimizer(model, kind):
    """SGD, which the engine computes, or one that it does not."""
    dampening = 0.1 if kind == "foreign" else 0.0
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5, dampening=dampening)


def loop(opt, model, batches):
    for inputs, targets in batches:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()


@pytest.mark.parametrize("kind", ["engine", "foreign"])
@pytest.mark.parametrize("alias", [True, False])
def test_one_microbatch_a_round_is_what_torch_does(fake_run, kind, alias):
    model, other = with_batch_norm(), with_batch_norm()
    batches = [data(8, seed) for seed in range(5)]
    run = fake_run(target_batch_size=8, rounds=5)
    opt = run.optimizer(model, optimizer(model, kind), batch_size=8, alias=alias)
    loop(opt, model, batches)
    train(other, optimizer(other, kind), 5, batches=batches)
    assert run.finished
    assert_close(model, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["engine", "foreign"])
def test_a_round_takes_as_many_steps_towards_the_mean_as_it_had_microbatches(fake_run, kind):
    model, other = with_batch_norm(), with_batch_norm()
    batches = [data(4, seed) for seed in range(3)]
    run = fake_run(target_batch_size=12, rounds=2)
    opt = run.optimizer(model, optimizer(model, kind), batch_size=4)
    base = model[1].running_var.clone()
    differences = []
    for batch in batches:
        twin = with_batch_norm()
        loss_of(twin, *batch)
        differences.append(twin[1].running_var - base)
        loss_of(other, *batch)
    run.start()
    loop(opt, model, batches[:2])
    assert torch.equal(model[1].running_var, base)  # back to the round's values
    assert model[1].num_batches_tracked == 0
    loop(opt, model, batches[2:])
    steps = (1 - 0.9**3) / 0.1
    torch.testing.assert_close(model[1].running_var, base + steps * sum(differences) / 3)
    # Torch weighs the later batch more.
    torch.testing.assert_close(model[1].running_var, other[1].running_var, rtol=0.05, atol=0.01)
    assert model[1].num_batches_tracked == other[1].num_batches_tracked == 3


class Twice(torch.nn.Module):
    """Statistics of two momenta, one of which have two equal passes in each forward pass."""

    def __init__(self, momentum):
        super().__init__()
        torch.manual_seed(1)
        self.twice = torch.nn.BatchNorm1d(4, momentum=momentum)
        self.once = torch.nn.BatchNorm1d(4, momentum=0.3)
        self.also = torch.nn.BatchNorm1d(4, momentum=momentum)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, inputs):
        return self.last(self.twice(inputs) + self.twice(inputs) + self.once(inputs) + self.also(inputs))


@pytest.mark.parametrize("kind", ["engine", "foreign"])
@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_microbatches_of_equal_statistics_leave_what_torch_does_after_all_passes(fake_run, kind, momentum):
    model, other = Twice(momentum), Twice(momentum)
    run = fake_run(target_batch_size=40, rounds=4)
    opt = run.optimizer(model, optimizer(model, kind), batch_size=8)
    batch = data(8)
    run.start()
    bare = optimizer(other, kind)
    for _ in range(4):
        bare.zero_grad()
        for _ in range(5):
            loop(opt, model, [batch])
            (loss_of(other, *batch) / 5).backward()
        bare.step()
    assert run.finished
    # The first round leaves 1/64 of the initial values in the mean over all passes.
    tolerance = 1e-4 if momentum else 0.01
    assert_close(model, other, rtol=tolerance, atol=tolerance)


def test_several_passes_a_step_count_each(fake_run):
    model, other = with_batch_norm(), with_batch_norm()
    run = fake_run(target_batch_size=16, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.05), batch_size=8)
    bare = torch.optim.SGD(other.parameters(), lr=0.05)
    inputs, targets = data(4)
    run.start()
    for _ in range(3):
        bare.zero_grad()
        for _ in range(2):
            opt.zero_grad()
            for _ in range(2):
                (loss_of(model, inputs, targets) / 2).backward()
                (loss_of(other, inputs, targets) / 4).backward()
            opt.step()
        bare.step()
    assert run.finished and model[1].num_batches_tracked == 12
    assert_close(model, other, rtol=1e-4, atol=1e-5)


def test_a_momentum_that_the_loop_changes_keeps_a_variance_positive(fake_run):
    model = with_batch_norm()
    run = fake_run(target_batch_size=80, rounds=3)
    opt = run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    run.start()
    model[1].momentum = 0.9
    with pytest.warns(TradewindWarning, match="momentum of 1.running_mean is 0.9 now"):
        loop(opt, model, [(torch.zeros(8, 4), torch.zeros(8, 1))] * 30)
    assert run.finished and bool((model[1].running_var > 0).all())
    torch.testing.assert_close(model[1].running_var, torch.full((6,), 0.9**30))


def reset(model):
    model[1].reset_running_stats()


def momentum(value):
    return lambda model: setattr(model[1], "momentum", value)


@pytest.mark.parametrize(
    "change, said",
    [
        (momentum(0.01), "momentum of 1.running_mean is 0.01 now and 0.1 when.* goes on with 0.1.*local"),
        (momentum(None), "momentum of 1.running_mean is None now and 0.1 when.* goes on with 0.1.*local"),
        (reset, "num_batches_tracked of 1.running_mean was set back by 1 .*local"),
        (momentum(0.0), None),
        (momentum(0.1), None),
    ],
)
def test_what_the_run_does_not_follow_of_statistics_is_named_once(fake_run, change, said):
    model = with_batch_norm()
    run = fake_run(target_batch_size=8, rounds=6)
    opt = run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    loop(opt, model, [data()] * 2)
    change(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop(opt, model, [data()] * 2)
        change(model)
        loop(opt, model, [data()] * 2)
    assert run.finished and len(caught) == (said is not None)
    assert not caught or re.search(said, str(caught[0].message))


def test_a_momentum_of_0_that_the_loop_raises_is_named_once(fake_run):
    model = with_batch_norm()
    momentum(0.0)(model)
    run = fake_run(target_batch_size=8, rounds=6)
    opt = run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop(opt, model, [data()] * 2)
        assert not caught
        momentum(0.1)(model)
        loop(opt, model, [data()] * 4)
    assert run.finished and len(caught) == 1
    assert re.search("momentum of 1.running_mean is 0.1 now and 0 when", str(caught[0].message))


def test_instance_norm_counts_its_passes_too(fake_run):
    def instance_norm():
        torch.manual_seed(1)
        norm = torch.nn.InstanceNorm1d(3, track_running_stats=True)
        return torch.nn.Sequential(norm, torch.nn.Linear(5, 1))

    model, other = instance_norm(), instance_norm()
    inputs = torch.randn(4, 3, 5)
    run = fake_run(target_batch_size=12, rounds=2)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=4)
    run.start()
    for _ in range(6):
        opt.zero_grad()
        model(inputs).sum().backward()
        other(inputs)
        opt.step()
    assert run.finished
    torch.testing.assert_close(model[0].running_var, other[0].running_var)


def test_statistics_of_a_frozen_copy_are_averaged_as_they_are(fake_run):
    model = torch.nn.ModuleList([with_batch_norm(), with_batch_norm().requires_grad_(False)])
    run = fake_run(target_batch_size=16, rounds=1)
    opt = run.optimizer(model, torch.optim.SGD(model[0].parameters(), lr=0.1), batch_size=8)
    run.start()
    for _ in range(2):
        opt.zero_grad()
        loss_of(model[0], *data()).backward()
        model[1].load_state_dict(model[0].state_dict())
        copied = model[1][1].running_var.clone()
        opt.step()
    assert run.finished
    torch.testing.assert_close(model[1][1].running_var, copied)


def test_forward_passes_between_rounds_leave_nothing(fake_run):
    model = with_batch_norm()
    run = fake_run(target_batch_size=8, rounds=2)
    opt = run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    run.start()
    base = model[1].running_mean.clone()
    loss_of(model, *data())
    assert not torch.equal(model[1].running_mean, base)
    run.skip()
    assert torch.equal(model[1].running_mean, base)
    loop(opt, model, [data()])
    assert not torch.equal(model[1].running_mean, base)


def test_local_statistics_are_no_part_of_the_vector(fake_run):
    model = with_batch_norm()
    run = fake_run(target_batch_size=16, rounds=2)
    opt = run.optimizer(model, optimizer(model, "engine"), batch_size=8, buffers="local")
    base = model[1].running_mean.clone()
    loop(opt, model, [data()])
    assert not torch.equal(model[1].running_mean, base)
    assert len(fake_run.engines[0].shape.groups) == 2
    with pytest.raises(SettingError, match="mean, local"):
        fake_run_of_its_own(fake_run, run).optimizer(model, optimizer(model, "engine"), buffers="none")


def fake_run_of_its_own(fake_run, before):
    before.close()
    return fake_run()


def test_mean_statistics_are_the_last_group(fake_run):
    model = with_batch_norm()
    run = fake_run(target_batch_size=8)
    run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    run.start()
    last = fake_run.engines[0].shape.groups[-1]
    assert (last.kind, last.tensors, last.momentum) == (abi.TW_MOVING, 2, 0.1)


@pytest.mark.parametrize("codec", ["int8", "int4"])
def test_mean_statistics_need_a_codec_that_keeps_a_variance_positive(fake_run, codec):
    model = with_batch_norm()
    run = fake_run(codec=codec)
    run.optimizer(model, optimizer(model, "engine"), batch_size=8)
    with pytest.raises(SettingError, match=f'{codec}.*buffers="local"'):
        run.start()


@pytest.mark.parametrize("kind", ["engine", "foreign"])
def test_clipping_looks_at_gradients_alone(fake_run, kind):
    model, other = with_batch_norm(), with_batch_norm()
    batches = [(inputs * 30, targets) for inputs, targets in (data(8, seed) for seed in range(4))]
    run = fake_run(target_batch_size=8, rounds=4)
    opt = run.optimizer(model, optimizer(model, kind), batch_size=8, clip_grad_norm=0.1)
    loop(opt, model, batches)
    train(other, optimizer(other, kind), 4, batches=batches, clip=0.1)
    assert_close(model, other, rtol=1e-4, atol=1e-5)
