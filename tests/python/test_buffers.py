# SPDX-License-Identifier: Apache-2.0
"""Running statistics of BatchNorm."""

import pytest
import torch
from models import assert_close, data, loss_of, train, with_batch_norm
from tradewind import SettingError
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
def test_a_round_is_one_step_of_the_mean_over_its_microbatches(fake_run, kind):
    model, other = with_batch_norm(), with_batch_norm()
    batches = [data(4, seed) for seed in range(3)]
    run = fake_run(target_batch_size=12, rounds=2)
    opt = run.optimizer(model, optimizer(model, kind), batch_size=4)
    base = model[1].running_mean.clone()
    differences = []
    for batch in batches:
        twin = with_batch_norm()
        loss_of(twin, *batch)
        differences.append(twin[1].running_mean - base)
    run.start()
    loop(opt, model, batches[:2])
    assert torch.equal(model[1].running_mean, base)  # back to the round's values
    loop(opt, model, batches[2:])
    torch.testing.assert_close(model[1].running_mean, base + sum(differences) / 3)
    del other


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
    assert fake_run.engines[0].shape.groups[-1].kind == abi.TW_AVERAGE
    assert fake_run.engines[0].shape.groups[-1].tensors == 2


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
