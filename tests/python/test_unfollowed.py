# SPDX-License-Identifier: Apache-2.0
"""Changes of a loop to its optimizer that the engine does not compute: refused by name, or left to torch."""

import functools
import importlib

import pytest
import torch
from models import assert_close, data, loss_of, mlp, train
from tradewind import MisuseError, UnsupportedError


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def set_all(key, value):
    return lambda inner: [group.update({key: value}) for group in inner.param_groups]


def of_states(change):
    return lambda inner: [change(state) for state in inner.state.values()]


UNFOLLOWED = {
    "maximize": (adam, set_all("maximize", True), "maximize=True is not in the engine"),
    "dampening": (sgd, set_all("dampening", 0.5), "dampening=0.5 is not in the engine"),
    "nesterov": (sgd, set_all("nesterov", True), "nesterov of group 0 is True now"),
    "momentum": (sgd, set_all("momentum", 1.0), "momentum=1.0 is not in the engine"),
    "momentum from 0": (
        lambda model: torch.optim.SGD(model.parameters(), lr=0.01),
        set_all("momentum", 0.9),
        "momentum of group 0 was 0 when the run started",
    ),
    "order": (
        adam,
        lambda inner: inner.param_groups[0]["params"].reverse(),
        "group 0 of the optimizer has other parameters, or another order",
    ),
    "more": (
        adam,
        lambda inner: inner.param_groups[0]["params"].append(torch.nn.Parameter(torch.ones(2))),
        "group 0 of the optimizer has 5 parameters now, 4 when the run started",
    ),
    "cleared": (adam, lambda inner: inner.state.clear(), "exp_avg of 0.weight in the optimizer's state"),
    "step": (adam, of_states(lambda state: state.update(step=torch.tensor(0.0))), "step of 0.weight"),
    "moment": (
        adam,
        of_states(lambda state: state.update(exp_avg=torch.zeros_like(state["exp_avg"]))),
        "exp_avg of 0.weight in the optimizer's state was removed or replaced",
    ),
    "velocity": (sgd, of_states(lambda state: state.update(momentum_buffer=None)), "momentum_buffer of"),
    "fewer": (
        adam,
        lambda inner: inner.param_groups[0]["params"].__delitem__(slice(0, 2)),
        "group 0 of the optimizer has 2 parameters now, 4 when the run started",
    ),
    "method": (adam, lambda inner: setattr(inner, "step", lambda: None), "its step() was replaced"),
}


def steps(opt, model, count):
    for _ in range(count):
        opt.zero_grad(set_to_none=True)
        loss_of(model, *data()).backward()
        opt.step()


@pytest.mark.parametrize("what", UNFOLLOWED)
def test_what_the_engine_cannot_follow_is_refused_by_name(fake_run, what):
    make, change, text = UNFOLLOWED[what]
    model = mlp()
    inner = make(model)
    opt = fake_run(target_batch_size=8, rounds=9).optimizer(model, inner, batch_size=8)
    steps(opt, model, 2)
    change(inner)
    with pytest.raises(MisuseError, match='engine="torch"') as error:
        steps(opt, model, 2)
    assert text in str(error.value)


@pytest.mark.parametrize("what", UNFOLLOWED)
def test_torch_follows_it(fake_run, what):
    make, change, _ = UNFOLLOWED[what]
    models, optimizers = (mlp(), mlp()), []
    for model in models:
        optimizers.append(make(model))
    run = fake_run(target_batch_size=8, rounds=6)
    opt = run.optimizer(models[0], optimizers[0], batch_size=8, engine="torch")
    steps(opt, models[0], 3)
    steps(optimizers[1], models[1], 3)
    for inner in optimizers:
        change(inner)
    steps(opt, models[0], 3)
    steps(optimizers[1], models[1], 3)
    assert_close(*models, rtol=1e-5, atol=1e-6)


def test_moments_that_a_loop_changes_in_place_count(fake_run):
    models = (mlp(), mlp())
    inner, bare = adam(models[0]), adam(models[1])
    opt = fake_run(target_batch_size=8, rounds=6).optimizer(models[0], inner, batch_size=8)
    for _ in range(2):
        steps(opt, models[0], 3)
        steps(bare, models[1], 3)
        for optimizer in (inner, bare):
            of_states(lambda state: state["exp_avg"].zero_())(optimizer)
    assert_close(*models, rtol=1e-5, atol=1e-6)


class Counted:
    """A step() of the program's own in place of the optimizer's."""

    def __init__(self, inner):
        self.calls, self.step = 0, inner.step

    def __call__(self, closure=None):
        self.calls += 1
        return self.step()


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_step_that_the_program_replaced_is_called(fake_run, wrapped):
    model = mlp()
    inner = adam(model)
    counted = Counted(inner)
    inner.step = functools.wraps(inner.step)(lambda closure=None: counted()) if wrapped else counted
    opt = fake_run(target_batch_size=8, rounds=4).optimizer(model, inner, batch_size=8)
    steps(opt, model, 4)
    assert counted.calls >= 4


@pytest.mark.skipif(not hasattr(torch.optim.Adam, "register_step_pre_hook"), reason="of PyTorch 2")
def test_hooks_of_step_are_called(fake_run):
    model = mlp()
    inner, calls = adam(model), []
    inner.register_step_pre_hook(lambda *_: calls.append(1))
    opt = fake_run(target_batch_size=8, rounds=4).optimizer(model, inner, batch_size=8)
    steps(opt, model, 4)
    assert len(calls) >= 4


@pytest.fixture
def hooks_of_all(monkeypatch):
    """Hooks of all optimizers, as register_optimizer_step_pre_hook() keeps them. PyTorch 2 calls them."""
    hooks = {}
    module = importlib.import_module("torch.optim.optimizer")
    monkeypatch.setattr(module, "_global_optimizer_pre_hooks", hooks, raising=False)
    return hooks


def test_hooks_of_step_of_all_optimizers_are_called(fake_run, hooks_of_all):
    model, calls = mlp(), []
    hooks_of_all[0] = lambda *_: calls.append(1)
    opt = fake_run(target_batch_size=8, rounds=4).optimizer(model, adam(model), batch_size=8)
    steps(opt, model, 4)
    assert "computed by torch" in fake_run.engines[0].shape.layout
    if hasattr(torch.optim.Adam, "register_step_pre_hook"):
        assert len(calls) >= 4


def test_such_hooks_that_come_after_the_start_are_refused(fake_run, hooks_of_all):
    model = mlp()
    opt = fake_run(target_batch_size=8, rounds=4).optimizer(model, adam(model), batch_size=8)
    steps(opt, model, 2)
    hooks_of_all[0] = lambda *_: None
    text = "registered for all optimizers.*engine would not call.*before run.start"
    with pytest.raises(MisuseError, match=text):
        steps(opt, model, 1)


def test_hooks_of_torchs_own_leave_the_rule_to_the_engine(fake_run, hooks_of_all):
    model = mlp()
    hooks_of_all[0] = torch.nn.Module.zero_grad  # any function of its files: profilers count steps
    run = fake_run()
    run.optimizer(model, adam(model), batch_size=8)
    run.start()
    assert "computed by the engine" in fake_run.engines[0].shape.layout


BEFORE_START = {
    "maximize": (adam, set_all("maximize", True)),
    "dampening": (sgd, set_all("dampening", 0.5)),
    "momentum": (sgd, set_all("momentum", 1.0)),
    "step": (adam, lambda inner: setattr(inner, "step", functools.partial(inner.step))),
}


@pytest.mark.parametrize("name", BEFORE_START)
def test_what_changes_before_the_start_is_left_to_torch(fake_run, name):
    make, change = BEFORE_START[name]
    model, other = mlp(), mlp()
    run = fake_run(target_batch_size=8, rounds=4)
    inner, theirs = make(model), make(other)
    opt = run.optimizer(model, inner, batch_size=8)
    change(inner)
    change(theirs)
    run.start()
    assert "computed by torch" in fake_run.engines[0].shape.layout
    steps(opt, model, 4)
    train(other, theirs, 4)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_the_engine_that_was_asked_for_is_refused_at_the_start_then(fake_run):
    model = mlp()
    run = fake_run()
    opt = run.optimizer(model, adam(model), batch_size=8, engine="tradewind")
    opt.param_groups[0]["maximize"] = True
    with pytest.raises(UnsupportedError, match='engine="tradewind": maximize=True is not in the engine'):
        run.start()
    assert not fake_run.engines


def test_schedulers_that_wrap_step_leave_the_rule_to_the_engine(fake_run):
    model = mlp()
    inner = adam(model)
    scheduler = torch.optim.lr_scheduler.StepLR(inner, 2)
    run = fake_run(target_batch_size=8, rounds=4)
    steps(run.optimizer(model, inner, scheduler=scheduler, batch_size=8), model, 4)
    assert "computed by the engine" in fake_run.engines[0].shape.layout


BEYOND = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=1.0),
    "eps": lambda p: torch.optim.Adam(p, lr=0.01, eps=0.0),
}


@pytest.mark.parametrize("make", BEYOND.values(), ids=BEYOND)
def test_settings_beyond_the_engines_bounds_are_left_to_torch(fake_run, make):
    models = (mlp(), mlp())
    run = fake_run(target_batch_size=8, rounds=4)
    steps(run.optimizer(models[0], make(models[0].parameters()), batch_size=8), models[0], 4)
    train(models[1], make(models[1].parameters()), 4)
    assert "computed by torch" in fake_run.engines[0].shape.layout
    assert all(torch.isfinite(one).all() for one in models[0].parameters())


# ---- schedulers of a program's own checkpoint


def decay(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: 1 / (1 + at))


def rates(run, opt, model):
    found = []
    while not run.finished:
        found.append(opt.param_groups[0]["lr"])
        steps(opt, model, 1)
    return found


@pytest.mark.parametrize("how", ["function", "object", "run.scheduler() after the state"])
def test_the_schedule_of_a_checkpoint_goes_on(fake_run, how):
    def begin(rounds, state):
        model = mlp()
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        given = {"function": decay, "object": decay(inner) if how == "object" else None}.get(how)
        run = fake_run(target_batch_size=8, rounds=rounds)
        opt = run.optimizer(model, inner, scheduler=given, batch_size=8)
        if state is not None:
            run.load_state_dict(state)
        if given is None:
            run.scheduler(decay(inner))
        found = rates(run, opt, model)
        state = run.state_dict()
        run.close()
        return found, state

    first, state = begin(3, None)
    second, _ = begin(6, state)
    assert first + second == pytest.approx([1 / (1 + at) for at in range(6)])


def resumed(fake_run, state, scheduler):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=9)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1.0), scheduler=scheduler, batch_size=8)
    run.load_state_dict(state)
    run.start()
    return opt


@pytest.fixture
def state(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1.0), scheduler=decay, batch_size=8)
    steps(opt, model, 3)
    found = run.state_dict()
    run.close()
    return found


@pytest.mark.parametrize("scheduler", [None, lambda inner: torch.optim.lr_scheduler.StepLR(inner, 2)])
def test_other_schedulers_than_the_checkpoints_are_refused_by_name(fake_run, state, scheduler):
    with pytest.raises(MisuseError, match="the state has LambdaLR, and this run has (no scheduler|StepLR)"):
        resumed(fake_run, state, scheduler)


def test_a_scheduler_that_cannot_read_the_state_of_another_is_refused_by_name(fake_run, state):
    state["schedulers"] = [{"name": "StepLR", "state": {"step_size": 2}}]
    with pytest.raises(MisuseError, match="the state has StepLR, and this run has LambdaLR"):
        resumed(fake_run, state, decay)


def test_a_setting_that_no_scheduler_moves_stays_as_the_program_sets_it_after_the_state(fake_run, state):
    model = mlp()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    run = fake_run(target_batch_size=8, rounds=9)
    run.optimizer(model, inner, batch_size=8)
    run.load_state_dict(state)
    inner.param_groups[0]["weight_decay"] = 0.5
    run.scheduler(decay(inner))
    assert inner.param_groups[0]["weight_decay"] == 0.5
    assert inner.param_groups[0]["lr"] == pytest.approx(1 / 4)


def test_a_schedule_that_begins_anew_on_a_checkpoint_is_told(fake_run, state):
    state["schedulers"] = []
    with pytest.warns(UserWarning, match="the state of round 3 has no scheduler, so LambdaLR begins anew"):
        resumed(fake_run, state, decay)


# ---- weights that after_round= changes


@pytest.mark.parametrize("kind", ["float32", "channels_last", "bfloat16"])
def test_weights_that_after_round_changes_count(fake_run, kind):
    def made():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, (1, 2)), torch.nn.Flatten(), torch.nn.Linear(3, 1))
        if kind == "channels_last":
            model = model.to(memory_format=torch.channels_last)
        return model.bfloat16() if kind == "bfloat16" else model

    def clamp(model):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.2, 0.2)

    models = (made(), made())
    inputs = torch.randn(8, 2, 1, 2).to(next(models[0].parameters()).dtype)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    run = fake_run(target_batch_size=8, rounds=6)
    opt = run.optimizer(models[0], optimizers[0], batch_size=8)
    run.extra_state(dict, lambda _: None, after_round=lambda: clamp(models[0]))
    for _ in range(6):
        for model, optimizer in zip(models, (opt, optimizers[1])):
            optimizer.zero_grad()
            (model(inputs) - 3).square().mean().backward()
            optimizer.step()
        clamp(models[1])
    tolerance = 2e-2 if kind == "bfloat16" else 1e-6
    assert_close(*models, rtol=tolerance, atol=tolerance)
    assert max(parameter.abs().max() for parameter in models[0].parameters()) <= 0.2
