# SPDX-License-Identifier: Apache-2.0
"""Schedulers against single-process loops, and their state in the run's."""

import math

import pytest
import torch
import tradewind
from models import assert_close, assert_equal, data, loss_of, mlp, train
from torch.optim import lr_scheduler
from tradewind import MisuseError, UnsupportedError
from tradewind.model.schedule import Settings

MAKERS = {
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda round_: 0.9**round_),
    "onecycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=30),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=12),
    "steps": lambda o: lr_scheduler.MultiStepLR(o, [3, 5, 5, 9], gamma=0.5),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=4), lr_scheduler.ExponentialLR(o, 0.9)], [4]
    ),
}


def adam(model):
    return torch.optim.Adam(
        [{"params": model[0].parameters(), "lr": 3e-3}, {"params": model[2].parameters()}], lr=0.01
    )


def loop(opt, model, steps, scheduler=None):
    inputs, targets = data()
    for _ in range(steps):
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
        if scheduler is not None:
            scheduler.step()


@pytest.mark.parametrize("how", ["object", "function", "run.scheduler"])
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("error:.*lr_scheduler.step.*")
def test_schedulers_step_once_a_round(fake_run, name, how):
    model, other = mlp(), mlp()
    inner = adam(model)
    make = MAKERS[name]
    scheduler = {"object": lambda: make(inner), "function": lambda: make, "run.scheduler": lambda: None}[
        how
    ]()
    run = fake_run(target_batch_size=16, rounds=12)  # two steps a round
    opt = run.optimizer(model, inner, scheduler=scheduler, batch_size=8)
    stand_in = run.scheduler(make(opt)) if how == "run.scheduler" else None
    loop(opt, model, 24, stand_in)
    bare = adam(other)
    train(other, bare, 12, make(bare))
    assert run.finished
    assert_close(model, other, rtol=1e-4, atol=1e-6)
    assert [group["lr"] for group in opt.param_groups] == [group["lr"] for group in bare.param_groups]
    if stand_in is not None:
        assert stand_in.get_last_lr() == [group["lr"] for group in bare.param_groups]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("engine", ["tradewind", "torch"])
def test_a_joiner_goes_on_with_the_schedule(fake_run, name, engine):
    model, joiner = mlp(), mlp(seed=2)
    run = fake_run(target_batch_size=8, rounds=12)
    opt = run.optimizer(model, adam(model), scheduler=MAKERS[name], batch_size=8, engine=engine)
    loop(opt, model, 6)
    state = fake_run.engines[0].saved()
    loop(opt, model, 6)
    assert run.finished
    joined = fake_run(given=state, target_batch_size=8, rounds=12)
    opt = joined.optimizer(joiner, adam(joiner), scheduler=MAKERS[name], batch_size=8, engine=engine)
    joined.start()
    loop(opt, joiner, 6)
    assert joined.finished
    assert_equal(joiner, model)


def test_a_metric_of_one_peer_decides_nothing(fake_run):
    model = mlp()
    inner = adam(model)
    with pytest.raises(UnsupportedError, match="ReduceLROnPlateau decides by a metric.*run.metrics"):
        fake_run().optimizer(model, inner, scheduler=lr_scheduler.ReduceLROnPlateau(inner))


class Odd:
    """A scheduler with state that is no JSON."""

    def __init__(self, optimizer):
        self.seen = {1, 2}

    def step(self):
        pass

    def state_dict(self):
        return {"inner": {"seen": self.seen}}

    def load_state_dict(self, state):
        self.seen = state["inner"]["seen"]


def test_state_that_is_no_json_is_named_by_its_key(fake_run):
    model = mlp()
    run = fake_run()
    run.optimizer(model, adam(model), scheduler=Odd, batch_size=8)
    with pytest.raises(UnsupportedError, match=r"Odd\.inner\.seen is a set"):
        run.start()


def test_what_is_no_scheduler_is_named(fake_run):
    class Halfway:
        def step(self):
            pass

    model = mlp()
    with pytest.raises(UnsupportedError, match=r"Halfway has no state_dict\(\)"):
        fake_run().optimizer(model, adam(model), scheduler=Halfway())


@pytest.mark.parametrize("made,text", [(None, "None"), ([], "a list of 0")])
def test_a_function_that_makes_no_scheduler_is_named(fake_run, made, text):
    model, run = mlp(), fake_run()
    with pytest.raises(MisuseError, match=f"the scheduler is {text}: expected an object with step"):
        run.optimizer(model, adam(model), scheduler=lambda optimizer: made)
    run.optimizer(model, adam(model))
    with pytest.raises(MisuseError, match=f"the scheduler is {text}: expected an object with step"):
        run.scheduler(made)


def test_schedules_with_special_numbers_travel(fake_run):
    class Special(Odd):
        def __init__(self, optimizer):
            self.seen = (math.inf, {3: 0.1, 1: (2, None)}, "text", True)

    model, joiner = mlp(), mlp()
    run = fake_run(rounds=2)
    run.optimizer(model, adam(model), scheduler=Special, batch_size=8)
    run.start()
    state = fake_run.engines[0].saved()
    run.close()
    schedulers = []
    joined = fake_run(given=state, rounds=2)
    joined.optimizer(
        joiner,
        adam(joiner),
        scheduler=lambda o: schedulers.append(Special(o)) or schedulers[0],
        batch_size=8,
    )
    schedulers[0].seen = (0.0, {3: 0.0, 1: (0, 1)}, "", False)
    joined.start()
    assert schedulers[0].seen == (math.inf, {3: 0.1, 1: (2, None)}, "text", True)


def test_rates_set_by_hand_reach_the_next_round(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.5), batch_size=8)
    loop(opt, model, 1)
    opt.param_groups[0]["lr"] = 0.0
    before = model[0].weight.detach().clone()
    loop(opt, model, 1)
    assert torch.equal(model[0].weight, before)


@pytest.mark.parametrize("value", [0.1, (0.9, 0.99), [0.9, 0.99], torch.tensor(0.1)])
def test_a_setting_that_is_replaced_or_changed_in_place_is_noticed(value):
    group = {"params": [1], "lr": value, "fused": None}
    settings = Settings([group])
    assert not settings.are_as_marked
    settings.mark()
    assert settings.are_as_marked == isinstance(value, (float, tuple)), "others may change in place"
    group["params"] = [2]
    assert settings.are_as_marked == isinstance(value, (float, tuple))
    group["lr"] = 0.2
    assert not settings.are_as_marked
    settings.mark()
    assert settings.are_as_marked
    group["more"] = 1
    assert not settings.are_as_marked


class Timms(Odd):
    """As timm's: step() is told how far the training is."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.seen = 0

    def step(self, epoch):
        self.seen = epoch
        self.optimizer.param_groups[0]["lr"] = 0.1 / (1 + epoch)


def test_a_step_that_wants_an_epoch_gets_the_round(fake_run):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), scheduler=Timms, batch_size=8)
    loop(opt, model, 3)
    assert opt.param_groups[0]["lr"] == 0.1 / 4


def test_an_argument_of_step_is_named_once(fake_run):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    schedule = run.scheduler(lr_scheduler.CosineAnnealingWarmRestarts(opt, 4))
    named = r"scheduler.step\(0.5\): the run steps CosineAnn.* without this"
    with pytest.warns(UserWarning, match=named) as told:
        for at in range(3):
            loop(opt, model, 1)
            schedule.step(0.5 * (at + 1))
    texts = [str(one.message) for one in told]
    assert sum("scheduler.step(" in text and "the run steps" in text for text in texts) == 1


def test_a_step_that_needs_a_metric_is_refused(fake_run):
    class Greedy(Timms):
        def step(self, metrics):
            pass

    model = mlp()
    with pytest.raises(UnsupportedError, match=r"Greedy.step\(\) needs metrics"):
        fake_run().optimizer(model, adam(model), scheduler=Greedy)


def test_the_last_rate_is_that_of_the_round_until_the_loop_steps(fake_run):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=2)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.4), batch_size=8)
    schedule = run.scheduler(lr_scheduler.StepLR(opt, 1, 0.5))
    found = []
    for _ in range(2):
        loop(opt, model, 1)
        found.append(schedule.get_last_lr())
        schedule.step()
        found.append(schedule.get_last_lr())
    assert found == [[0.4], [0.2], [0.2], [0.1]]


@pytest.mark.parametrize("how", ["object", "run.scheduler"])
def test_a_schedule_that_the_loop_steps_as_well_is_named_once(fake_run, how):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=4)
    inner = torch.optim.SGD(model.parameters(), lr=0.4)
    schedule = lr_scheduler.StepLR(inner, 1, 0.5)
    opt = run.optimizer(model, inner, scheduler=schedule if how == "object" else None, batch_size=8)
    if how == "run.scheduler":
        run.scheduler(schedule)
    with pytest.warns(tradewind.TradewindWarning, match="StepLR was stepped outside .*run.scheduler") as said:
        loop(opt, model, 4, schedule)
    assert len([one for one in said if "outside" in str(one.message)]) == 1


def test_a_stand_in_that_the_loop_steps_is_as_meant(fake_run, recwarn):
    model, run = mlp(), fake_run(target_batch_size=8, rounds=4)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.4), batch_size=8)
    loop(opt, model, 4, run.scheduler(lr_scheduler.StepLR(opt, 1, 0.5)))
    assert not [one for one in recwarn if "outside" in str(one.message)]
