# SPDX-License-Identifier: Apache-2.0
"""Function style on the engine's double."""

import pytest
import torch
from models import assert_equal, data, loss_of, mlp
from torch.utils.data import TensorDataset
from tradewind import MisuseError
from tradewind.data.order import span_seed
from tradewind.loop.styles import Gradients


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def loss(model, batch):
    return loss_of(model, *batch)


def test_fit_trains_to_the_end_and_sums_up(fake_run):
    model, other = mlp(), mlp()
    samples = TensorDataset(*data(8))
    summary = fake_run(target_batch_size=8, rounds=5).fit(model, loss, samples, adamw(model), batch_size=4)
    assert (summary.rounds, summary.samples, summary.steps) == (5, 40, 10)
    assert summary.loss == fake_run.engines[0].loss and 0 < summary.loss < 100
    run = fake_run(target_batch_size=8, rounds=5)
    opt = run.optimizer(other, adamw(other))
    for batch in run.shard(samples, batch_size=4):
        opt.zero_grad()
        loss(other, batch).backward()
        opt.step()
    assert_equal(model, other)


def test_dropout_is_a_function_of_the_samples(fake_run):
    def trained(noise):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        torch.manual_seed(noise)
        fake_run(target_batch_size=8, rounds=3).fit(
            model, loss, TensorDataset(*data(8)), adamw(model), batch_size=4
        )
        return model

    assert_equal(trained(1), trained(2))
    assert len({span_seed(seed, first) for seed in range(10) for first in range(1000)}) == 10_000
    assert 0 <= span_seed(1 << 63, 1 << 63) < 1 << 63


def test_evaluate_runs_every_so_many_rounds_and_at_the_end(fake_run):
    model = mlp()
    summary = fake_run(target_batch_size=8, rounds=5).fit(
        model,
        loss,
        TensorDataset(*data(8)),
        adamw(model),
        batch_size=8,
        evaluate=lambda m: "seen",
        evaluate_every=2,
    )
    assert summary.evaluations == [(2, "seen"), (4, "seen"), (5, "seen")]


def test_evaluate_sees_a_model_in_evaluation_mode_and_training_goes_on_as_before(fake_run):
    def trained(evaluate):
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 1)
        )
        model[1].eval()  # frozen statistics stay frozen
        run = fake_run(target_batch_size=8, rounds=4)
        run.fit(
            model,
            loss,
            TensorDataset(*data(8)),
            adamw(model),
            batch_size=8,
            evaluate=evaluate,
            evaluate_every=1,
        )
        assert model.training and not model[1].training and model[2].training
        run.close()
        return model

    def evaluate(model):
        assert not torch.is_grad_enabled() and not any(module.training for module in model.modules())
        model(torch.randn(8, 4))
        seen.append(1)

    seen = []
    assert_equal(trained(evaluate), trained(None))
    assert len(seen) == 4


def test_bfloat16_autocast(fake_run):
    model = mlp()
    summary = fake_run(target_batch_size=8, rounds=5).fit(
        model, loss, TensorDataset(*data(8)), adamw(model), batch_size=8, autocast=torch.bfloat16
    )
    assert summary.rounds == 5


def test_float16_gradients_that_overflow_are_computed_again_with_a_smaller_scale():
    model = mlp()
    seen = []

    class Half(Gradients):
        def _forward(self):
            return torch.autograd.profiler.record_function("nothing")  # the CPU has no float16 autocast

    def loss_that_overflows(module, batch):
        seen.append(1)
        return loss(module, batch) * 1e34  # times 65536 it is inf

    gradients = Half(model, loss_that_overflows, torch.optim.SGD(model.parameters(), lr=0.1), torch.float16)
    gradients.compute(data(), 1)
    assert len(seen) > 1 and all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())


def test_fit_takes_several_modules(fake_run):
    encoder, head = mlp(1), torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1))
    sgd = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    seen = []

    def loss_of_both(models, batch):
        return (models[1](models[0](batch[0])) - batch[1]).pow(2).mean()

    def evaluate(models):
        seen.append([module.training for one in models for module in one.modules()])
        return 1.0

    before = head[1].weight.detach().clone()
    summary = fake_run(target_batch_size=8, rounds=3).fit(
        [encoder, head], loss_of_both, TensorDataset(*data(8)), sgd, batch_size=8, evaluate=evaluate
    )
    assert summary.rounds == 3 and not torch.equal(head[1].weight, before)
    assert len(seen) == 1 and not any(seen[0]) and encoder.training and head[0].training


def test_fit_names_a_model_that_is_none(fake_run):
    model = mlp()
    text = r"run\.fit\(\): model is .*expected a torch\.nn\.Module or a list"
    for wrong in ([model, 3], [], {"net": model}, None):
        with pytest.raises(MisuseError, match=text):
            fake_run(target_batch_size=8, rounds=3).fit(wrong, loss, TensorDataset(*data(8)), adamw(model))
        fake_run.runs[-1].close()


@pytest.mark.parametrize(
    "found, text",
    [
        (lambda one: (one, 3), "a tuple of 2"),
        (lambda one: {"loss": one}, "a dict of 1"),
        (lambda one: None, "None"),
        (lambda one: float(one), "[0-9.]+"),
        (lambda one: one.expand(8), r"a Tensor of shape \[8\]"),
    ],
)
def test_fit_names_a_loss_that_is_no_tensor_of_one_element(fake_run, found, text):
    def wrong(net, batch):
        return found(loss(net, batch))

    model, run = mlp(), fake_run(target_batch_size=8, rounds=3)
    with pytest.raises(MisuseError, match=rf"loss\(model, batch\) returned {text}: expected a tensor of one"):
        run.fit(model, wrong, TensorDataset(*data(8)), adamw(model), batch_size=8)


@pytest.mark.parametrize(
    "given, text",
    [
        ({"loss": 5}, "loss=5: expected a function of the model and a batch"),
        ({"evaluate": 5}, "evaluate=5: expected a function of the model"),
        ({"evaluate": len, "evaluate_every": -1}, "evaluate_every=-1: expected a whole number from 0"),
    ],
)
def test_fit_names_arguments_that_are_wrong_before_it_trains(fake_run, given, text):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=5)
    with pytest.raises(MisuseError, match=text):
        run.fit(model, **{"loss": loss, **given}, dataset=TensorDataset(*data(8)), optimizer=adamw(model))
    assert not run.started
