# SPDX-License-Identifier: Apache-2.0
"""Optimizers on the engine's double, against bare torch loops of the same batches."""

import copy
import math
import pickle

import pytest
import torch
from models import assert_close, assert_equal, data, loss_of, mlp, train
from tradewind import Lamb, MisuseError, UnsupportedError
from tradewind.engine import abi


class SignMomentum(torch.optim.Optimizer):
    """An optimizer of a user's own: state of a tensor, an int, a float and a flag."""

    def __init__(self, params, lr=1e-2):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(momentum=torch.zeros_like(p), steps=0, decay=0.5, warm=False)
                state["steps"] += 1
                state["decay"] = 1 - 1 / (1 + state["steps"])
                state["warm"] = state["steps"] > 3
                state["momentum"].mul_(state["decay"]).add_(p.grad, alpha=0.3)
                p.data = p.data - group["lr"] * state["momentum"].sign()  # other memory, as some do


def groups(model):
    return [
        {"params": model[0].parameters(), "lr": 3e-3, "weight_decay": 0.1},
        {"params": model[2].parameters()},
    ]


ENGINE = [
    lambda m: torch.optim.SGD(m.parameters(), lr=0.05),
    lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01),
    lambda m: torch.optim.SGD(groups(m), lr=0.05, momentum=0.9, nesterov=True),
    lambda m: torch.optim.Adam(groups(m), lr=1e-2, betas=(0.8, 0.99)),
    lambda m: torch.optim.AdamW(groups(m), lr=1e-2),
]
FOREIGN = [
    lambda m: torch.optim.NAdam(m.parameters(), lr=1e-2),
    lambda m: torch.optim.RMSprop(m.parameters(), lr=1e-2, momentum=0.5),
    lambda m: torch.optim.Adamax(groups(m), lr=1e-2),
    lambda m: torch.optim.Rprop(m.parameters()),
    lambda m: torch.optim.ASGD(m.parameters()),
    lambda m: torch.optim.Adagrad(m.parameters()),
    lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, dampening=0.1),
    lambda m: SignMomentum(m.parameters()),
]


def loop(run, opt, model, steps):
    inputs, targets = data()
    for _ in range(steps):
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()


@pytest.mark.parametrize("make", ENGINE)
def test_the_engine_computes_what_torch_would(fake_run, make):
    model, other = mlp(), mlp()
    run = fake_run(target_batch_size=8, rounds=30)
    opt = run.optimizer(model, make(model), batch_size=8, engine="tradewind", clip_grad_norm=0.5)
    loop(run, opt, model, 30)
    train(other, make(other), 30, clip=0.5)
    assert run.finished
    assert_close(model, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("by_group", [True, False])
@pytest.mark.parametrize("make", ENGINE[1:])
def test_the_state_of_the_users_optimizer_is_that_of_the_engine(fake_run, monkeypatch, make, by_group):
    monkeypatch.setattr("fake_engine.FakeEngine.BY_GROUP", by_group)
    model, other = mlp(), mlp()
    inner = make(model)
    run = fake_run(target_batch_size=8, rounds=5)
    opt = run.optimizer(model, inner, batch_size=8)
    loop(run, opt, model, 5)
    bare = make(other)
    train(other, bare, 5)
    for mine, theirs in zip(opt.state_dict()["state"].values(), bare.state_dict()["state"].values()):
        assert set(mine) == set(theirs)
        for key in theirs:
            torch.testing.assert_close(mine[key], theirs[key], rtol=1e-5, atol=1e-7)
    assert (
        opt.state_dict()["state"] is not None and inner.state[model[0].weight] is opt.state[model[0].weight]
    )


@pytest.mark.parametrize("make", FOREIGN)
@pytest.mark.parametrize("alias", [True, False])
def test_any_other_optimizer_runs_as_it_is_bit_for_bit(fake_run, make, alias):
    model, other = mlp(), mlp()
    run = fake_run(target_batch_size=8, rounds=20)
    opt = run.optimizer(model, make(model), batch_size=8, alias=alias)
    loop(run, opt, model, 20)
    train(other, make(other), 20)
    assert run.finished
    assert_equal(model, other)


@pytest.mark.parametrize("make", FOREIGN)
def test_a_joiner_goes_on_with_the_state_of_the_others(fake_run, make):
    model, joiner = mlp(), mlp(seed=2)
    run = fake_run(target_batch_size=8, rounds=12)
    opt = run.optimizer(model, make(model), batch_size=8)
    loop(run, opt, model, 6)
    state = fake_run.engines[0].saved()
    loop(run, opt, model, 6)
    run.close()
    joined = fake_run(given=state, target_batch_size=8, rounds=12)
    opt = joined.optimizer(joiner, make(joiner), batch_size=8)
    loop(joined, opt, joiner, 7)  # the first gradient is that of other parameters
    assert joined.finished and joined.metrics["dropped"] == 1
    assert_equal(joiner, model)


def test_the_probe_leaves_nothing_behind(fake_run):
    model = mlp()
    before = copy.deepcopy(model.state_dict())
    inner = torch.optim.NAdam(model.parameters(), lr=1e-2, weight_decay=0.1)
    settings = [{k: v for k, v in group.items() if k != "params"} for group in inner.param_groups]
    run = fake_run(target_batch_size=8, rounds=2)
    run.optimizer(model, inner, batch_size=8)
    run.start()
    assert not inner.state
    assert settings == [{k: v for k, v in group.items() if k != "params"} for group in inner.param_groups]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.grad is None for parameter in model.parameters())


def test_state_that_cannot_travel_is_refused(fake_run):
    class InAttribute(torch.optim.SGD):
        counted = 0

        def step(self, closure=None):
            self.counted += 1
            return super().step(closure)

    class InList(torch.optim.SGD):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p]["history"] = [1, 2]

    model = mlp()
    for kind, text in ((InAttribute, "its attribute counted"), (InList, "'history'.*0.weight.*is a list")):
        run = fake_run(target_batch_size=8)
        run.optimizer(model, kind(model.parameters(), lr=0.1), batch_size=8)
        with pytest.raises(UnsupportedError, match=text):
            run.start()
        run.close()


def test_state_that_the_user_loaded_before_is_kept(fake_run):
    model, other = mlp(), mlp()
    bare = torch.optim.NAdam(other.parameters())
    train(other, bare, 3)
    model.load_state_dict(other.state_dict())
    inner = torch.optim.NAdam(model.parameters())
    run = fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, inner, batch_size=8)
    opt.load_state_dict(copy.deepcopy(bare.state_dict()))
    loop(run, opt, model, 3)
    train(other, bare, 3)
    assert_equal(model, other)


@pytest.mark.parametrize(
    "make,text",
    [
        (lambda m: torch.optim.LBFGS(m.parameters()), "LBFGS"),
        (lambda m: torch.optim.SparseAdam(list(m.parameters())), "SparseAdam"),
        (
            lambda m: Both(
                torch.optim.SGD(m[0].parameters(), lr=0.1), torch.optim.SparseAdam(list(m[2].parameters()))
            ),
            "SparseAdam needs",
        ),
    ],
)
def test_optimizers_that_cannot_be_shared_are_refused(fake_run, make, text):
    model = mlp()
    run = fake_run()
    with pytest.raises(UnsupportedError, match=text):
        run.optimizer(model, make(model), batch_size=8)
        run.start()


def test_what_the_engine_cannot_compute_runs_in_torch(fake_run):
    for make in (
        lambda m: torch.optim.Adam(m.parameters(), amsgrad=True),
        lambda m: torch.optim.AdamW(m.parameters(), maximize=True),
        lambda m: type("Mine", (torch.optim.SGD,), {})(m.parameters(), lr=0.1),
    ):
        model = mlp()
        run = fake_run()
        with pytest.raises(UnsupportedError, match='engine="tradewind"'):
            run.optimizer(model, make(model), engine="tradewind")
        run.optimizer(model, make(model), batch_size=8)
        run.start()
        assert fake_run.engines[-1].shape.groups[1].kind == abi.TW_CALLER
        run.close()


def test_engine_torch_keeps_torchs_optimizer(fake_run):
    model, other = mlp(), mlp()
    run = fake_run(target_batch_size=8, rounds=20)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters()), batch_size=8, engine="torch")
    loop(run, opt, model, 20)
    train(other, torch.optim.AdamW(other.parameters()), 20)
    assert_equal(model, other)


def test_groups_reach_the_engine(fake_run):
    model = mlp()
    run = fake_run()
    inner = torch.optim.SGD(groups(model), lr=0.5, momentum=0.9, nesterov=True)
    run.optimizer(model, inner, batch_size=8)
    run.start()
    _, first, second = fake_run.engines[0].shape.groups
    assert (first.tensors, first.learning_rate, first.weight_decay, first.flags) == (
        2,
        3e-3,
        0.1,
        abi.TW_NESTEROV,
    )
    assert (second.tensors, second.learning_rate, second.momentum, second.kind) == (
        2,
        0.5,
        0.9,
        abi.TW_SGD,
    )


def test_lamb_is_the_papers(fake_run):
    model = torch.nn.Linear(3, 1, bias=False)
    weight = model.weight.detach().clone()
    opt = Lamb(model.parameters(), lr=0.1, weight_decay=0.0)
    model(torch.ones(1, 3)).sum().backward()
    opt.step()
    # The first step of Adam is the sign of the gradient, here 1 for each value.
    expected = weight - 0.1 * float(weight.norm()) / math.sqrt(3)
    torch.testing.assert_close(model.weight.detach(), expected)
    run = fake_run()
    run.optimizer(model, Lamb(model.parameters()), batch_size=8)
    run.start()
    shape = fake_run.engines[0].shape
    assert shape.groups[1].kind == abi.TW_LAMB
    assert "optimizer: tradewind._lamb.Lamb computed by the engine" in shape.layout


def test_the_wrapper_is_a_torch_optimizer(fake_run):
    model = mlp()
    inner = torch.optim.AdamW(model.parameters())
    run = fake_run()
    opt = run.optimizer(model, inner, batch_size=8)
    assert isinstance(opt, torch.optim.Optimizer)
    assert (
        opt.param_groups is inner.param_groups
        and opt.state is inner.state
        and opt.defaults is inner.defaults
    )
    opt.load_state_dict(opt.state_dict())  # as Accelerate does before the start
    assert "AdamW" in repr(opt)
    run.start()
    with pytest.raises(MisuseError, match="load_state_dict"):
        opt.load_state_dict(opt.state_dict())
    with pytest.raises(MisuseError, match="add_param_group"):
        opt.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})


def test_a_model_of_float64_has_the_values_that_joiners_get(fake_run):
    model = mlp().double()
    run = fake_run(target_batch_size=8, rounds=2)
    opt = run.optimizer(model, torch.optim.NAdam(model.parameters(), lr=1e-2), batch_size=8)
    for _ in range(2):
        opt.zero_grad()
        loss_of(model, *(values.double() for values in data())).backward()
        opt.step()
    assert all(torch.equal(value, value.float().double()) for value in model.parameters())


class Twice(torch.optim.SGD):
    def first_step(self):
        """Moves the parameters, as SAM does."""

    def step(self, closure=None):
        assert closure is not None, "a closure is needed"


def test_an_optimizer_of_several_steps_is_refused_by_name(fake_run):
    model = mlp()
    run = fake_run()
    opt = run.optimizer(model, Twice(model.parameters(), lr=0.1), batch_size=8)
    with pytest.raises(MisuseError, match=r"Twice.first_step\(\) would move.* Where several gradients"):
        opt.first_step()
    with pytest.raises(UnsupportedError, match=r"(?s)Twice.step\(\) failed.*a closure.* Where several"):
        run.start()


class PassingOn:
    """As fastai's OptimWrapper."""

    param_groups = property(lambda self: [dict(group) for group in self.opt.param_groups])

    def __init__(self, opt):
        self.opt, self.state = opt, {}

    def __getattr__(self, name):
        if name in ("step", "zero_grad", "defaults"):
            return getattr(self.opt, name)
        raise AttributeError(name)


class ItsOwn(PassingOn):
    """As fastai's own optimizers."""

    def step(self):
        self.opt.step()


def test_what_hides_a_torch_optimizer_is_named_with_another_way(fake_run):
    model = mlp()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    for one, text in (
        (PassingOn(inner), r"PassingOn has no step\(\) of its own.*PassingOn\(opt=run.optimizer\(model"),
        (ItsOwn(inner), "ItsOwn makes its param_groups anew at each read.*torch.optim"),
        ([inner, inner], "found a list of 2: a run has one optimizer.*of two kinds"),
    ):
        with pytest.raises(MisuseError, match=text):
            fake_run().optimizer(model, one, batch_size=8)
        fake_run.runs[-1].close()


class Both(torch.optim.Optimizer):
    """Two optimizers as one, as the refusal of two advises."""

    def __init__(self, *both):
        self.both = both
        super().__init__([group for one in both for group in one.param_groups], {})
        self.param_groups = [group for one in both for group in one.param_groups]

    def step(self, closure=None):
        for one in self.both:
            one.step()


def test_optimizers_of_two_kinds_train_as_one(fake_run):
    model, other = mlp(), mlp()

    def both(of):
        return Both(
            torch.optim.RMSprop(of[0].parameters(), lr=1e-2, momentum=0.5),
            torch.optim.AdamW(of[2].parameters(), lr=1e-3),
        )

    run = fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, both(model), batch_size=8)
    loop(run, opt, model, 3)
    train(other, both(other), 3)
    assert run.finished
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_the_optimizer_of_a_run_is_not_copied(fake_run):
    model = mlp()
    run = fake_run()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    run.start()
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(MisuseError, match="copy or save its state_dict"):
            call(opt)
