# SPDX-License-Identifier: Apache-2.0
"""GradScalers: what they unscale, and the batches that they skip."""

import inspect

import pytest
import torch
from models import assert_close, assert_equal, data, loss_of, mlp, train, with_batch_norm
from tradewind import MisuseError

SCALE = 1024.0


class Scaler:
    """torch's GradScaler, in what it asks of an optimizer (torch 1.13 has none for the CPU)."""

    def __init__(self):
        self.scale_by = SCALE
        self.found = None  # infinities; None: not unscaled yet

    def scale(self, loss):
        return loss * self.scale_by

    def unscale_(self, optimizer):
        gradients = [
            p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        for gradient_of in gradients:
            gradient_of.mul_(1 / self.scale_by)
        self.found = not all(bool(torch.isfinite(g).all()) for g in gradients)

    def step(self, optimizer):
        if hasattr(optimizer, "_step_supports_amp_scaling") and optimizer._step_supports_amp_scaling:
            optimizer.step()
            self.found = False
            return
        self.skip_or_step(optimizer)

    def skip_or_step(self, optimizer):
        if self.found is None:
            self.unscale_(optimizer)
        if not self.found:
            optimizer.step()

    def update(self):
        if self.found:
            self.scale_by /= 2
        self.found = None

    def get_scale(self):
        return self.scale_by


class HomeMade(Scaler):
    """It does not ask whether step() unscales."""

    step = Scaler.skip_or_step


def scaler_of_torch():
    """The real one, where torch has it for the CPU (from 2.3 on)."""
    try:
        return torch.amp.GradScaler("cpu", init_scale=SCALE)
    except (AttributeError, TypeError):
        return None


SCALERS = [Scaler] + ([scaler_of_torch] if scaler_of_torch() is not None else [])


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def fused(model):
    """Where torch has none for the CPU (before 2.4): what a scaler sees of one."""
    if "fused" in inspect.signature(torch.optim.SGD).parameters:
        return torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    optimizer = sgd(model)
    optimizer._step_supports_amp_scaling = True
    return optimizer


def started(fake_run, model, make=adamw, batch_size=8, **settings):
    run = fake_run(**{"target_batch_size": 8, "rounds": 4, **settings})
    inner = make(model)
    return run, run.optimizer(model, inner, batch_size=batch_size), inner


def loader(batch_size=8):
    return torch.utils.data.DataLoader(list(zip(*data())), batch_size=batch_size)


def handed(fake_run):
    return [(samples, had) for _, samples, had, _ in fake_run.engines[0].handed]


def to_none(model):
    for parameter in model.parameters():
        parameter.grad = None


ZERO = {
    "optimizer": lambda opt, inner, model: opt.zero_grad(),
    "model": lambda opt, inner, model: model.zero_grad(),
    "inner": lambda opt, inner, model: inner.zero_grad(),
    "none": lambda opt, inner, model: to_none(model),
}


# What a scaler skips that does not ask is seen by the gradients, before opt.zero_grad() or the next batch.
LOOPS = [(make, zero, first) for make in SCALERS for zero in ZERO for first in (True, False)]
LOOPS += [(HomeMade, zero, True) for zero in ZERO] + [(HomeMade, "optimizer", False)]


@pytest.mark.parametrize("make_scaler,zero,zero_first", LOOPS)
@pytest.mark.parametrize("how", ["batches", "shard", "bare"])
def test_a_scaler_that_finds_infinities_costs_one_microbatch(fake_run, make_scaler, zero, zero_first, how):
    model, other = mlp(), mlp()
    run, opt, inner = started(fake_run, model)
    scaler = make_scaler()
    source = {
        "batches": lambda: run.batches(loader()),
        "shard": lambda: run.shard(loader()),
        "bare": lambda: [next(iter(loader()))] * 5,
    }
    steps = 0
    for batch in source[how]():
        if zero_first:
            ZERO[zero](opt, inner, model)
        loss = loss_of(model, *batch)
        scaler.scale(loss * (float("inf") if steps == 1 else 1.0)).backward()
        scaler.step(opt)
        scaler.update()
        if not zero_first:
            ZERO[zero](opt, inner, model)
        steps += 1
    assert run.finished and steps == 5 and scaler.get_scale() == SCALE / 2
    assert handed(fake_run) == [(8, 8)] * 4
    assert run.metrics["skipped"] == (how != "bare")
    train(other, adamw(other), 4)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make_scaler", SCALERS)
def test_all_batches_of_a_skipped_step_are_void_and_no_others(fake_run, make_scaler):
    model, other = mlp(), mlp()
    run, opt, _ = started(fake_run, model, batch_size=None, rounds=2)
    scaler = make_scaler()
    for at, batch in enumerate(run.batches(loader(4))):
        # Lightning and others ask, too, and have no gradient then.
        assert opt._step_supports_amp_scaling is False
        scaler.scale(loss_of(model, *batch) / 2 * (float("inf") if at == 3 else 1.0)).backward()
        if at % 2:
            scaler.step(opt)
            scaler.update()
            model.zero_grad()
    assert at == 5 and handed(fake_run) == [(4, 8), (4, 8), (8, 8)] and run.metrics["skipped"] == 1
    train(other, adamw(other), 2)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make_scaler", SCALERS)
def test_a_skipped_batch_changes_no_running_statistics(fake_run, make_scaler):
    models = []
    for infinite in (1.0, float("inf")):
        model = with_batch_norm()
        run, opt, _ = started(fake_run, model, rounds=3)
        scaler = make_scaler()
        steps = 0
        for batch in run.batches(loader()):
            scaler.scale(loss_of(model, *batch) * (infinite if steps == 1 else 1.0)).backward()
            scaler.step(opt)
            scaler.update()
            model.zero_grad()
            steps += 1
        run.close()
        models.append(model)
    assert steps == 4
    assert_equal(*models)


@pytest.mark.parametrize("make_scaler", SCALERS)
@pytest.mark.parametrize("how", ["batches", "shard"])
def test_a_skipped_batch_is_not_in_hand(fake_run, make_scaler, how):
    model = mlp()
    run, opt, _ = started(fake_run, model, rounds=2)
    scaler = make_scaler()
    for at, batch in enumerate(getattr(run, how)(loader())):
        scaler.scale(loss_of(model, *batch) * (float("inf") if at < 2 else 1.0)).backward()
        scaler.step(opt)
        scaler.update()
        model.zero_grad()
        if at == 0:
            run.barrier()
        if at == 1:
            with run.paused("evaluating"):
                assert fake_run.engines[0].order is None  # it goes to others
    assert run.finished and handed(fake_run) == [(8, 8)] * 2 and run.metrics["skipped"] == 2


def test_a_step_that_was_refused_leaves_its_batches_in_hand(fake_run):
    model = mlp()
    run, opt, _ = started(fake_run, model, batch_size=None, rounds=1)
    scaler = Scaler()
    for at, batch in enumerate(run.batches(loader(4))):
        scaler.scale(loss_of(model, *batch)).backward()
        scaler.unscale_(opt)
        bias = model[0].bias.grad
        if at == 0:
            bias[0] = float("nan")
            with pytest.raises(MisuseError, match="gradient of 0.bias is not finite"):
                scaler.step(opt)
            bias[0] = 0.0
        else:
            scaler.step(opt)
        scaler.update()
    assert handed(fake_run) == [(4, 8), (4, 8)] and run.metrics["skipped"] == 0


@pytest.mark.parametrize("make_scaler", SCALERS)
@pytest.mark.parametrize("unscale_first", [True, False])
@pytest.mark.parametrize("mode", ["sync", "delayed", "local", "streaming"])
def test_gradients_for_a_fused_optimizer_are_unscaled_and_infinite_ones_skipped(
    fake_run, make_scaler, unscale_first, mode
):
    models = []
    for make in (sgd, fused):
        model = mlp()
        run, opt, _ = started(fake_run, model, make, mode=mode)
        scaler = make_scaler()
        for at in range(5):
            opt.zero_grad()
            scaler.scale(loss_of(model, *data()) * (float("inf") if at == 1 else 1.0)).backward()
            if unscale_first:
                scaler.unscale_(opt)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1e6)
            scaler.step(opt)
            scaler.update()
        assert run.finished and scaler.get_scale() == SCALE / 2
        run.close()
        models.append(model)
    assert_close(*models)
    assert all(float(parameter.detach().abs().max()) < 2 for parameter in models[1].parameters())
