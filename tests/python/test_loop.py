# SPDX-License-Identifier: Apache-2.0
"""What a loop may do between two steps: accumulate, scale, change the batch, start late, be interrupted."""

import copy
import pickle
import threading
import warnings

import numpy
import pytest
import torch
from fake_engine import FakeEngine
from models import assert_close, assert_equal, data, loss_of, mlp, train
from tradewind import EngineError, MisuseError, TradewindError, UnsupportedError


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def gradient(model, samples=8, seed=3):
    inputs, targets = data(samples, seed)
    loss = loss_of(model, inputs, targets)
    loss.backward()
    return loss.detach()


def started(fake_run, model, batch_size=8, **settings):
    run = fake_run(**{"target_batch_size": 8, "rounds": 4, **settings})
    opt = run.optimizer(model, adamw(model), batch_size=batch_size)
    return run, opt


def test_step_says_whether_a_round_was_applied_and_the_end_stops_it(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, target_batch_size=16, rounds=2)
    verdicts = []
    for _ in range(6):
        opt.zero_grad()
        gradient(model)
        verdicts.append(opt.step())
    assert verdicts == [False, True, False, True, False, False]
    assert run.finished and run.round == 2 and run.samples == 32


def test_parameters_change_inside_step_alone(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    before = model[0].weight.detach().clone()
    gradient(model)
    assert torch.equal(model[0].weight, before)
    assert opt.step()
    assert not torch.equal(model[0].weight, before)


def test_batches_larger_than_what_is_left_count_with_what_is_left(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=6, target_batch_size=16, rounds=2)
    for _ in range(3):
        opt.zero_grad()
        gradient(model, samples=6)
        opt.step()
    engine = fake_run.engines[0]
    assert [record["samples"] for record in engine.records] == [16]
    assert [(weight, samples, had) for weight, samples, had, _ in engine.handed] == [
        (6, 6, 6),
        (6, 6, 6),
        (4, 4, 6),
    ]
    assert run.metrics["surplus"] == 2


def test_samples_may_differ_at_every_step(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=10, rounds=1)
    for samples in (3, 1, 4, 2):
        opt.zero_grad()
        gradient(model, samples=samples)
        opt.step(samples=samples)
    # An order may be smaller than a batch: the rest goes into the next one.
    assert [samples for _, samples, _, _ in fake_run.engines[0].handed] == [3, 1, 3, 1, 2]
    assert run.metrics["surplus"] == 0 and run.metrics["steps"] == 4


def test_a_short_batch_does_not_shrink_the_next_orders(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=100)
    for samples in (4, 1, 4, 4, 1, 4):
        opt.zero_grad()
        gradient(model, samples=samples)
        opt.step(samples=samples)
    assert [samples for _, samples, _, _ in fake_run.engines[0].handed] == [4, 1, 4, 4, 1, 4]


def test_accumulation_over_several_batches_equals_one_large_batch(fake_run):
    model, other = mlp(), mlp()
    run, opt = started(fake_run, model, batch_size=None, rounds=3)
    inputs, targets = data()
    loader = [(inputs[at : at + 2], targets[at : at + 2]) for at in range(0, 8, 2)]
    for at, batch in enumerate(run.batches(loader)):
        (loss_of(model, *batch) / 4).backward()
        if at % 4 == 3:
            opt.step()
            opt.zero_grad()
    assert run.finished and [had for _, _, had, _ in fake_run.engines[0].handed] == [8, 8, 8]
    train(other, adamw(other), 3)
    assert_close(model, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("to_none", [True, False])
def test_zero_grad_of_either_kind(fake_run, to_none):
    model, other = mlp(), mlp()
    run, opt = started(fake_run, model)
    for _ in range(4):
        opt.zero_grad(set_to_none=to_none)
        gradient(model)
        opt.step()
    train(other, adamw(other), 4)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_a_missing_gradient_is_zero(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=1)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1.0), batch_size=8)
    run.start()
    before = [p.detach().clone() for p in model.parameters()]
    gradient(model)
    model[0].weight.grad = None
    opt.step()
    after = list(model.parameters())
    assert torch.equal(after[0], before[0]) and not torch.equal(after[1], before[1])


def test_a_closure_gives_loss_and_gradient(fake_run):
    model, other = mlp(), mlp()
    run, opt = started(fake_run, model)

    def closure():
        opt.zero_grad()
        inputs, targets = data()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        return loss

    losses = [opt.step(closure).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert fake_run.engines[0].handed[0][3] == pytest.approx(losses[0] * 8)
    train(other, adamw(other), 4)
    assert_close(model, other, rtol=1e-5, atol=1e-6)
    with torch.no_grad():  # after the end it is called all the same, as in torch, and trains nothing
        assert run.finished and opt.step(closure).item() < losses[-1]
    assert run.metrics["steps"] == 4 and opt.step() is False
    run.close()
    assert opt.step(closure).item() < losses[-1]
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_a_loop_that_goes_on_after_the_end_is_told_once(fake_run):
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), *mlp())
    run, opt = started(fake_run, model, rounds=1)
    gradient(model)
    opt.step()
    mean = model[0].running_mean.clone()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(99):
            opt.step()
        assert run.finished and not caught
        gradient(model, seed=4)
        for _ in range(200):
            opt.step()
    (told,) = caught
    assert "called step() 100 times since, which trains nothing: end it when" in str(told.message)
    assert torch.equal(model[0].running_mean, mean), "statistics stay those of the run, too"


def test_frozen_parameters_that_moved_before_the_start_are_explained(fake_run, monkeypatch):
    text = 'another run: expected "frozen: mean (4,) float32 9a", this peer has "frozen: mean (4,) float32 0"'

    def refused(self, initial):
        raise EngineError(text)

    monkeypatch.setattr(FakeEngine, "start", refused)
    run, opt = started(fake_run, mlp())
    with pytest.raises(EngineError, match=r"9a.*change them, call run.start\(\) before the first one"):
        run.start()


def test_a_loss_that_is_said_reaches_the_log(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    loss = gradient(model)
    opt.step(loss=loss)
    assert fake_run.engines[0].handed[0][3] == pytest.approx(float(loss) * 8)


def test_a_loss_that_is_not_finite_is_told_once(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    texts = []
    for loss in (1.0, float("nan"), float("inf"), None):
        gradient(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            opt.step(loss=loss)
        texts.append([str(one.message) for one in caught])
    assert texts == [[], texts[1], [], []] and len(texts[1]) == 1
    assert texts[1][0].startswith("step(loss=nan) in round 2: the loss is not finite, and log, page and run")


def test_what_is_no_closure_is_named(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    loss = gradient(model)
    for value, found in ((loss, r"a Tensor of shape \[\]"), ("x", "'x'")):
        with pytest.raises(MisuseError, match=f"step.. of {found}: expected a function .*=32, loss=loss"):
            opt.step(value)


def test_a_run_and_what_holds_it_is_not_copied(fake_run):
    run, opt = started(fake_run, mlp())
    for held in (run, run.shard([1, 2], batch_size=1), [run]):
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(MisuseError, match="a run cannot be copied or pickled.*run.state_dict"):
                copied(held)


@pytest.mark.parametrize("mode", ["sync", "local"])
def test_contexts_of_a_run_may_be_entered_again(fake_run, mode):
    model = mlp()
    run = fake_run(mode=mode, target_batch_size=8)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    contexts = run.committed(), run.paused("looking")  # before the start, too
    for context in contexts:
        with context:
            pass
    run.start()
    for context in contexts:
        for _ in range(2):
            with context, context:
                assert fake_run.engines[0].why == ("looking" if context is contexts[1] else None)
            assert fake_run.engines[0].why is None


def test_a_gradient_that_is_not_finite_is_named(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    model[2].bias.grad.fill_(float("nan"))
    with pytest.raises(MisuseError, match=r"gradient of 2\.bias is not finite.*run\.skip\(\)"):
        opt.step()
    run.skip()
    opt.zero_grad()
    gradient(model)
    assert opt.step()


def test_large_gradients_are_finite(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    model[0].weight.grad.fill_(1e37)  # their sum is not
    assert opt.step()


def test_no_batch_size_is_an_error_before_anything_is_opened(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None)
    gradient(model)
    with pytest.raises(MisuseError, match="no batch size known.*run.shard.*samples="):
        opt.step()
    assert not fake_run.engines
    with pytest.raises(MisuseError, match=r"samples=0\): no sample has a gradient: call run.skip\(\)"):
        opt.step(samples=0)
    for samples in (-1, 1.5, True, False):
        with pytest.raises(MisuseError, match="samples=.*whole number from 1"):
            opt.step(samples=samples)


def test_a_loop_without_optimizer(fake_run):
    with pytest.raises(MisuseError, match="run.optimizer"):
        fake_run().start()


def test_one_optimizer_a_run(fake_run):
    model = mlp()
    run, _ = started(fake_run, model)
    with pytest.raises(UnsupportedError, match="one optimizer"):
        run.optimizer(model, adamw(model))


def test_settings_after_the_start(fake_run):
    model = mlp()
    run = fake_run()
    opt = run.optimizer(model, adamw(model), batch_size=8)
    run.start()
    with pytest.raises(MisuseError, match="run.scheduler.* after the start"):
        run.scheduler(torch.optim.lr_scheduler.StepLR(opt, 1))


def shrunk(model):
    model[0].weight.data = torch.zeros(2, 4)


def halved(model):
    model.half()


@pytest.mark.parametrize(
    "change,text",
    [
        (shrunk, r"0.weight has shape \(2, 4\)"),
        (halved, "0.weight has dtype"),
    ],
)
def test_a_parameter_that_was_converted_is_named(fake_run, change, text):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    opt.step()
    opt.zero_grad()
    change(model)
    with pytest.raises(MisuseError, match=text + ".*before run.start"):
        opt.step()


def test_values_changed_outside_of_step_are_warned_of_once(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    gradient(model)
    with torch.no_grad():
        model[2].bias.add_(1)
    with pytest.warns(UserWarning, match="2.bias was changed outside of step"):
        opt.step()
    gradient(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt.step()


def test_sparse_gradients_are_refused(fake_run):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3, sparse=True))
    run = fake_run()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=2)
    with pytest.raises(UnsupportedError, match="0.weight gets sparse gradients"):
        run.start()
    model[0].sparse = False
    run.close()
    run = fake_run()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=2)
    run.start()
    model[0].weight.grad = torch.sparse_coo_tensor([[1]], [[1.0, 1, 1]], (5, 3))
    with pytest.raises(UnsupportedError, match="gradient of 0.weight is sparse"):
        opt.step()


def test_a_gradient_of_other_parameters_is_thrown_away_at_a_late_start(fake_run):
    donor = mlp(seed=7)
    run, opt = started(fake_run, donor)
    gradient(donor)
    opt.step()
    state = fake_run.engines[0].saved()
    run.close()
    model = mlp(seed=1)
    run, opt = started(fake_run, model)
    fake_run.engines.clear()
    run.close()
    run = fake_run(given=state, target_batch_size=8, rounds=4)
    opt = run.optimizer(model, adamw(model), batch_size=8)
    gradient(model)
    assert opt.step() is False
    assert not fake_run.engines[0].handed and run.metrics["dropped"] == 1
    assert_equal(model, donor)


def test_a_gradient_at_a_late_start_of_a_founder_counts(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    assert opt.step() is True


def test_a_gradient_whose_order_was_taken_back_counts_in_the_next_one(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    fake_run.engines[0].stale_next = True
    gradient(model)
    assert opt.step() is True
    assert run.metrics["dropped"] == 0 and run.samples == 8


def test_what_comes_too_late_for_its_round_is_dropped_however_often(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, rounds=22)
    run.start()
    for _ in range(20):
        fake_run.engines[0].stale_next, fake_run.engines[0].missed_next = True, 1
        gradient(model)
        opt.step()
    assert run.metrics["dropped"] == 20 and not fake_run.engines[0].handed
    assert opt.step() is True


def test_another_thread_is_refused(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    gradient(model)
    errors = []

    def other():
        try:
            opt.step()
        except MisuseError as error:
            errors.append(str(error))
        run.leave()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "another thread" in errors[0]
    opt.step()
    assert run.finished


def test_one_run_at_a_time_and_another_after_close(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    with pytest.raises(MisuseError, match=r"open in this process already, joined at .*conftest.py:\d+"):
        fake_run()
    run.close()
    again, opt = started(fake_run, model, rounds=1)
    gradient(model)
    opt.step()
    assert again.finished
    fake_run()  # a run that is over is closed for the next one
    assert fake_run.engines[0].closed


def test_the_model_is_usable_after_close(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    opt.step()
    expected = model[0].weight.detach().clone()
    run.close()
    fake_run.engines.clear()
    assert torch.equal(model[0].weight, expected)
    assert run.round == 1 and run.finished and opt.step() is False


def test_with_leaves_after_the_round_and_at_once_on_an_exception(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    with run:
        gradient(model)
        opt.step()
        run.leave(wait=True)
        assert run.finished and not fake_run.engines[0].closed
    assert fake_run.engines[0].closed and fake_run.engines[0].leaving
    run, opt = started(fake_run, model)
    with pytest.raises(ZeroDivisionError):
        with run:
            opt.step()
            raise ZeroDivisionError
    assert fake_run.engines[1].closed


def test_paused_tells_the_engine_why(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    gradient(model)
    with run.paused("evaluating"):
        assert fake_run.engines[0].why == "evaluating"
    assert fake_run.engines[0].why is None
    assert opt.step()


@pytest.mark.parametrize("mode", ["sync", "delayed", "local"])
def test_a_pause_has_no_steps_and_batches(fake_run, mode):
    model = mlp()
    run, opt = started(fake_run, model, mode=mode, rounds=1)
    batches = run.batches([data()[0]] * 9, distinct=True)
    shard = run.shard([data()[0]] * 9, batch_size=1)
    calls = [opt.step, lambda: opt.step(gradient), lambda: next(iter(shard)), lambda: next(iter(batches))]
    run.start()
    for call in [*calls, run.skip, run.barrier]:
        with run.paused("evaluating"), pytest.raises(MisuseError, match="inside run.paused.*leave it first"):
            call()
    gradient(model)
    with run.paused("evaluating"), run.paused("saving"):
        pass
    assert opt.step()
    with run.paused("evaluating"):
        assert run.finished and not opt.step(), "the run is over"


def test_a_pause_inside_a_pause_does_not_end_it(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    run.start()
    engine = fake_run.engines[0]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            with run.paused("saving"):
                with run.paused("evaluating"):
                    assert engine.why == "saving"
                assert engine.why == "saving"
                raise ZeroDivisionError
        assert engine.why is None
    gradient(model)
    assert opt.step()


def test_events_reach_their_listeners_inside_step(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, rounds=2)
    seen = []
    run.on_event(seen.append)
    for _ in range(2):
        gradient(model)
        opt.step()
    assert [(event["phase"], event["round"]) for event in seen] == [("commit", 1), ("commit", 2)]


def test_an_exception_of_a_listener_is_the_loops(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)

    def listener(event):
        raise ZeroDivisionError

    run.on_event(listener)
    gradient(model)
    with pytest.raises(ZeroDivisionError):
        opt.step()


def test_batches_goes_on_for_epochs_and_counts_the_last_short_one(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=10, rounds=2)
    loader = torch.utils.data.DataLoader(list(zip(*data(5))), batch_size=2)
    sizes = []
    for inputs, targets in run.batches(loader):
        sizes.append(len(inputs))
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
    assert sizes == [2, 2, 1] * 4 and run.samples == 20 and run.metrics["surplus"] == 0


def test_batches_of_a_generator_say_that_it_is_used_up(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None)
    with pytest.raises(MisuseError, match="only once"):
        for batch in run.batches(batch for batch in [data()]):
            loss_of(model, *batch).backward()
            opt.step()


def test_state_dict_has_round_and_optimizer(fake_run):
    model = mlp()
    run, opt = started(fake_run, model)
    gradient(model)
    opt.step()
    state = run.state_dict()
    assert state["round"] == 1 and state["samples"] == 8
    assert state["optimizer"]["state"][0]["exp_avg"].shape == model[0].weight.shape


class OrdersOf:
    """Orders of one size, whatever the program had."""

    def __init__(self, engine, size):
        self.engine, self.size = engine, size

    def __call__(self, limit_ms):
        status, order = type(self.engine).next(self.engine, limit_ms)
        if order is not None:
            order = self.engine.order = order._replace(samples=min(order.samples, self.size))
        return status, order


def test_steps_of_any_size_count_whole_while_the_round_has_room(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=100, rounds=20)
    run.start()
    engine = fake_run.engines[0]
    engine.next = OrdersOf(engine, 7)
    sizes = torch.randint(1, 60, (500,), generator=torch.Generator().manual_seed(1)).tolist()
    cut = []
    for samples in sizes:
        before = run.metrics["surplus"]
        opt.zero_grad()
        gradient(model)
        opt.step(samples=samples)
        if run.finished:
            break
        cut.append(run.metrics["surplus"] - before)
    assert sum(1 for surplus in cut if surplus) <= 20
    assert [record["samples"] for record in engine.records] == [100] * 20


def test_what_is_left_of_a_step_does_not_count_for_other_parameters(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=10, rounds=2)
    run.start()
    gradient(model)
    assert opt.step(samples=25) is True
    assert [(samples, had) for _, samples, had, _ in fake_run.engines[0].handed] == [(10, 25)]
    assert run.round == 1 and run.metrics["surplus"] == 15


@pytest.mark.parametrize("how", ["closure", "batches"])
def test_a_start_before_the_first_batch_cuts_no_batch(fake_run, how):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=16, rounds=2)
    run.start()
    assert fake_run.engines[0].settings["grain"] == "0"
    engine = fake_run.engines[0]
    engine.next = OrdersOf(engine, 1)  # the engine knows no size yet
    loader = torch.utils.data.DataLoader(list(zip(*data(16))), batch_size=8)
    for batch in run.batches(loader):
        opt.zero_grad()
        if how == "closure":
            opt.step(lambda: loss_and_gradient(model, batch))
        else:
            loss_and_gradient(model, batch)
            opt.step()
    assert run.metrics["surplus"] == 0 and run.metrics["steps"] == 4


def loss_and_gradient(model, batch):
    loss = loss_of(model, *batch)
    loss.backward()
    return loss


def losses_of(model, inputs, targets):
    """name: (loss, whether it is a sum over the batch)."""
    found = model(inputs)
    each = (found - targets).pow(2).squeeze(1)
    error = found - targets
    recon, kl = (found - inputs).pow(2).mean(0), found.exp() - found - 1
    mse, bce = torch.nn.functional.mse_loss, torch.nn.functional.binary_cross_entropy_with_logits
    return {
        "functional": (mse(found, targets, reduction="sum"), True),
        "module": (torch.nn.L1Loss(reduction="sum")(found, targets), True),
        "by hand": (each.sum(), True),
        "with a penalty": (bce(found, targets.sigmoid(), reduction="sum") - 0.5 * each.sum(), True),
        "a sum of a sum": (each.sum().view(1).sum(), True),
        "mean": (mse(found, targets), False),
        "mean of sums": (found.pow(2).sum(1).mean(), False),
        "divided": (each.sum() / len(inputs), False),
        "several means": (torch.stack([each.mean(), found.mean()]).sum(), False),
        "a sum of one": (each.mean().sum(), False),
        "mean with a penalty": (each.mean() + 0.1 * sum(p.pow(2).sum() for p in model.parameters()), False),
        "the outputs": (found.sum(), True),
        "product of one": ((error * error).sum(), True),
        "flattened": ((found - targets).abs().view(-1).sum(), True),
        "dimension by dimension": ((found - targets).pow(2).sum(0).sum(), True),
        "of means of samples": ((inputs * found).pow(2).mean(-1).sum(), True),
        "square of a product": ((found * 2 - targets).pow(2).sum(), True),
        "sum and sums of penalties": (mse(found, targets, reduction="sum") + penalty_of(model), True),
        "mean over the batch, then features": ((found * inputs).pow(2).mean(0).sum(), False),
        "variational": ((recon + kl.mean(0)).sum(), False),
        "as many features as samples": ((found * torch.ones(8)).pow(2).mean(0).sum(), False),
        "weighed": ((each * torch.full((8,), 1 / 8)).sum(), False),
        "weighed by a softmax": ((each * torch.softmax(-each, 0)).sum(), False),
        "divided inside": ((each / 8).neg().sum(), False),
        "of other things than samples": (found.view(2, 4).pow(2).mean(1).sum(), False),
        "mean and a distance from a start": (each.mean() + distance_of(model), False),
        "mean and sums of penalties": (each.mean() + penalty_of(model), False),
        "sum of the mean output": (mse(found.mean(0), targets[0], reduction="sum"), False),
    }


def distance_of(model):
    """L2-SP: a sum over parameters, not over samples."""
    weight = model[0].weight
    return torch.nn.functional.mse_loss(weight, 0 * weight.detach(), reduction="sum")


def penalty_of(model):
    flat = torch.cat([one.flatten() for one in model.parameters()])
    gram = model[0].weight @ model[0].weight.t()
    mse = torch.nn.functional.mse_loss
    of_all = mse(flat, torch.zeros_like(flat), reduction="sum")
    return distance_of(model) + of_all + mse(gram, torch.eye(len(gram)), reduction="sum")


@pytest.mark.parametrize("name", losses_of(mlp(), *data(8)))
@pytest.mark.parametrize("told", [True, False])
def test_a_loss_that_is_a_sum_is_noticed(fake_run, name, told):
    model = mlp()
    opt = started(fake_run, model)[1]
    loss, is_sum = losses_of(model, *data(8))[name]
    loss.backward()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            opt.step(loss=loss) if told else opt.step()
    texts = [str(one.message) for one in said if "is a sum over the 8 samples" in str(one.message)]
    assert len(texts) == is_sum, [str(one.message) for one in said]


def test_a_sum_is_noticed_where_several_batches_make_a_step(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for at, (inputs, _) in enumerate(run.batches([data(4)] * 4, distinct=True)):
            loss = model(inputs).pow(2).sum()
            loss.backward()
            if at % 2:
                opt.step()
    assert sum("is a sum over the 8 samples" in str(one.message) for one in said) == 1


def test_a_loss_that_is_no_number_is_named(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, rounds=2)
    for wrong, text in (
        (torch.ones(8), r"a Tensor of shape \[8\]"),
        ({"loss": torch.ones(())}, "a dict of 1"),
        ((1.0, 2.0), "a tuple of 2"),
        ("much", "'much'"),
        (torch.ones(1, dtype=torch.complex64), "a Tensor of shape"),
    ):
        gradient(model)
        with pytest.raises(MisuseError, match=rf"loss= is {text}.*expected one number.*loss\.mean\(\)"):
            opt.step(loss=wrong)
        with pytest.raises(MisuseError, match=rf"step\(\): loss= is {text}"):
            opt.step(lambda: wrong)
    for fine in (numpy.float32(1), torch.ones(1, 1), 2):  # the gradient in hand is still there
        gradient(model)
        opt.step(loss=fine)
    assert run.finished and fake_run.engines[0].loss == 1


def test_a_barrier_stands_between_steps(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, rounds=2)
    with pytest.raises(MisuseError, match="before the start: call run.start"):
        run.barrier()
    run.start()
    run.barrier()
    assert fake_run.engines[0].barriers == 2  # the first time not all had come
    for batch in run.batches([data(8)] * 3):
        loss_of(model, *batch).backward()
        with pytest.raises(MisuseError, match="with a batch in hand"):
            run.barrier()
        assert opt.step()
        run.barrier()
    assert run.finished and run.round == 2


def test_arguments_of_another_kind_are_named(fake_run):
    model, other = mlp(), mlp()
    step_lr = torch.optim.lr_scheduler.StepLR
    others = step_lr(adamw(other), 1)
    for arguments, options, text in (
        ((model, "adam"), {}, "expected a torch.optim.Optimizer, found 'adam'"),
        ((model, torch.optim.Adam), {}, "expected a torch.optim.Optimizer"),
        ((adamw(model), model), {}, "found Sequential.*no param_groups"),
        ((model, adamw(model)), {"scheduler": "cosine"}, "scheduler='cosine': expected a scheduler"),
        ((model, adamw(model)), {"scheduler": step_lr}, "StepLR needs more.*step_size"),
        ((model, adamw(model)), {"scheduler": others}, "StepLR was made on another optimizer"),
        ((model, adamw(model)), {"clip_grad_norm": "1"}, "clip_grad_norm='1': expected a number above 0"),
        ((model, adamw(model)), {"alias": "no"}, "alias='no': expected True or False"),
        ((model, adamw(model)), {"batch_size": 8.0}, "batch_size=8.0: expected a whole number from 1"),
    ):
        with pytest.raises(TradewindError, match=f"(?s){text}"):
            fake_run().optimizer(*arguments, **options)
        fake_run.runs[-1].close()
    for wrong in (None, {"net": model}, [model, 3]):
        run = fake_run()
        run.optimizer(wrong, adamw(model), batch_size=8)
        with pytest.raises(MisuseError, match="expected a torch.nn.Module or a list"):
            run.start()
        run.close()


def test_any_kind_of_whole_number_is_one(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, batch_size=None, target_batch_size=numpy.int64(8), rounds=2)
    for samples in (numpy.int64(8), torch.tensor(8)):
        opt.zero_grad()
        gradient(model)
        assert opt.step(samples=samples)
