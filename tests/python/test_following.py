# SPDX-License-Identifier: Apache-2.0
"""What a program changes in its model and optimizer, before and during a run: followed, or told by name."""

import copy
import io
import math
import re
import warnings

import pytest
import torch
from models import assert_close, assert_equal, data, loss_of, mlp, train, with_batch_norm
from torch.nn.utils import prune
from tradewind import MisuseError, SettingError, UnsupportedError
from tradewind.data.order import content_of

KINDS = {
    "engine": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1),
    "foreign": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.1),
}


def step(opt, model, seed=3):
    opt.zero_grad(set_to_none=True)
    loss_of(model, *data(seed=seed)).backward()
    return opt.step()


def told(call):
    """Texts of the warnings that call() makes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def started(fake_run, model, optimizer, rounds=30, **options):
    run = fake_run(target_batch_size=8, rounds=rounds)
    opt = run.optimizer(model, optimizer, batch_size=8, **options)
    run.start()
    return run, opt


# ---- groups


@pytest.mark.parametrize("kind", KINDS)
def test_groups_without_trained_parameters_are_as_if_they_were_not_there(fake_run, kind):
    model, other = mlp(), mlp()

    def groups(m):
        frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        return [
            {"params": []},
            {"params": [m[0].weight], "lr": 0.02},
            {"params": [frozen], "lr": 0.5},
            {"params": [m[0].bias, *m[2].parameters()]},
            {"params": []},
        ]

    run, opt = started(fake_run, model, KINDS[kind](groups(model)))
    assert len(opt.param_groups) == 5
    for _ in range(4):
        step(opt, model)
    train(other, KINDS[kind](groups(other)), 4)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_groups_may_change_their_order(fake_run):
    model, other = mlp(), mlp()
    pairs = []
    for one in (model, other):
        groups = [{"params": one[0].parameters(), "lr": 0.5}, {"params": one[2].parameters(), "lr": 0.01}]
        pairs.append((one, torch.optim.SGD(groups, lr=0.1)))
    run, opt = started(fake_run, *pairs[0])
    for one, optimizer in ((model, opt), pairs[1]):
        for at in range(4):
            if at == 2:
                optimizer.param_groups.reverse()
                optimizer.param_groups[1]["lr"] = 0.25
            step(optimizer, one)
    assert_close(model, other)


def test_a_group_that_comes_after_the_start_is_refused_with_the_remedy(fake_run):
    model = mlp()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    run, opt = started(fake_run, model, inner)
    with pytest.raises(MisuseError, match="freeze its parameters .* after the start, and thaw"):
        opt.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    inner.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    with pytest.raises(MisuseError, match="other groups than when the run started"):
        step(opt, model)


# ---- frozen, thawed, unused


@pytest.mark.parametrize("kind", KINDS)
def test_layers_may_be_frozen_and_thawed(fake_run, kind):
    model, other = mlp(), mlp()
    run, opt = started(fake_run, model, KINDS[kind](model.parameters()))
    bare = KINDS[kind](other.parameters())
    for one, optimizer in ((model, opt), (other, bare)):
        for at in range(12):
            one[0].requires_grad_(at < 3 or at >= 7)
            step(optimizer, one, seed=at)
            if at == 6:
                frozen = one[0].weight.detach().clone()
            if at == 3:
                assert one[0].weight.grad is None
    assert_close(model, other, rtol=1e-5, atol=1e-6)
    assert not torch.equal(model[0].weight, frozen)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_that_no_peer_uses_are_left_alone(fake_run, kind):
    class Unused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = mlp(), torch.nn.Linear(2, 2)

        def forward(self, inputs):
            return self.used(inputs)

    model = Unused()
    before = copy.deepcopy(model.unused.state_dict())
    run, opt = started(fake_run, model, KINDS[kind](model.parameters()))
    for _ in range(3):
        step(opt, model)
    for name, value in model.unused.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_layer_thawed_after_the_start_is_named(fake_run):
    model = mlp()
    model[0].requires_grad_(False)
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    assert not told(lambda: step(opt, model))
    model[0].requires_grad_(True)
    texts = told(lambda: step(opt, model))
    assert len(texts) == 1 and "0.weight, 0.bias: frozen when the run started" in texts[0]
    assert not told(lambda: step(opt, model))


def test_a_frozen_copy_that_is_thawed_after_the_start_is_named(fake_run):
    model = torch.nn.ModuleDict({"student": mlp(), "teacher": mlp().requires_grad_(False)})
    model.forward = model["student"].forward
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    assert "teacher.0.weight and what belongs to it" in told(run.start)[0]
    step(opt, model)
    model["teacher"][0].requires_grad_(True)
    texts = told(lambda: step(opt, model))
    assert len(texts) == 1 and "teacher.0.weight, teacher.0.bias: frozen when the run started" in texts[0]
    assert not told(lambda: step(opt, model))


def test_a_frozen_weight_that_the_loop_moves_is_named(fake_run):
    model = mlp()
    model[0].requires_grad_(False)
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    step(opt, model)
    model[0].weight.mul_(2)
    texts = told(lambda: step(opt, model))
    assert len(texts) == 1 and "0.weight: frozen" in texts[0] and "run.extra_state()" in texts[0]


def test_a_module_put_in_anothers_place_is_refused_by_name(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    step(opt, model)
    model[2] = torch.nn.Linear(8, 1)
    with pytest.raises(MisuseError, match="2.weight is another tensor now"):
        step(opt, model)


def test_a_module_that_came_later_is_refused_by_name(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    model.add_module("head", torch.nn.Linear(1, 1))
    with pytest.raises(MisuseError, match="head.weight was not there"):
        step(opt, model)


def swap(model):
    model[0].weight, model[2].weight = model[2].weight, model[0].weight


def wrap(model):
    model[0] = torch.nn.Sequential(model[0])


MOVES = {
    "tied": (lambda model: setattr(model[2], "weight", model[0].weight), "2.weight is now what was 0."),
    "pruned": (
        lambda model: prune.l1_unstructured(model[0], "weight", 0.5),
        "0.weight_orig is now what was 0.weight.",
    ),
    "swapped": (swap, "0.weight is now what was 2.weight, 2.weight is now what was 0.weight."),
    "dropped": (lambda model: setattr(model[2], "bias", None), "2.bias is gone."),
    "wrapped": (wrap, None),
}


@pytest.mark.parametrize("move,text", MOVES.values(), ids=MOVES)
def test_parameters_that_get_other_names_are_named_once(fake_run, move, text):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
    model = torch.nn.Sequential(*layers)
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    step(opt, model)
    move(model)
    texts = told(lambda: [step(opt, model) for _ in range(3)])
    texts = [one for one in texts if "moved parameters" in one]
    assert [text in one and "checkpoints" in one for one in texts] == ([True] if text else [])


def test_weights_loaded_in_mid_run_are_named(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    model.load_state_dict(mlp(seed=2).state_dict())
    assert "0.weight was changed outside of step()" in told(lambda: step(opt, model))[0]


# ---- buffers and copies


class Kept(torch.nn.Module):
    """A layer with a buffer that forward() changes as `change` does."""

    def __init__(self, buffer, change, persistent=True):
        super().__init__()
        self.layer, self.change = mlp(), change
        self.register_buffer("kept", buffer, persistent=persistent)

    def forward(self, inputs):
        self.change(self)
        return self.layer(inputs)


def reassign(module):
    module.kept = module.kept + 1


CHANGES = {
    "float": (torch.zeros(3), lambda m: m.kept.add_(1)),
    "reassigned": (torch.zeros(3), reassign),
    "whole": (torch.zeros(1, dtype=torch.long), lambda m: m.kept.add_(1)),
    "complex": (torch.zeros(2, dtype=torch.complex64), lambda m: m.kept.add_(1j)),
    "bool": (torch.zeros(2, dtype=torch.bool), lambda m: m.kept.logical_not_()),
    "infinite": (torch.full((2,), float("inf")), lambda m: m.kept.neg_()),
}


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_a_buffer_that_changes_and_is_no_statistic_is_named_once(fake_run, name, persistent):
    buffer, change = CHANGES[name]
    model = Kept(buffer.clone(), change, persistent)
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    texts = told(lambda: [step(opt, model) for _ in range(3)])
    assert len(texts) == 1 and texts[0].startswith("kept: a buffer that changes")
    assert fake_run.engines[0].shape.groups[-1].tensors == 4  # no group of statistics
    expected = Kept(buffer.clone(), change)
    for _ in range(3):
        change(expected)
    assert torch.equal(model.kept, expected.kept)


def batch_norm(module):
    torch.nn.functional.batch_norm(data()[0], module.kept, torch.ones(4), training=True)


@pytest.mark.parametrize("change", [lambda m: m.kept.data.add_(1), batch_norm], ids=["data", "norm"])
def test_a_buffer_that_changes_behind_autograd_is_named(fake_run, change):
    model = Kept(torch.zeros(4), change)
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    texts = told(lambda: [step(opt, model) for _ in range(5)])
    assert len(texts) == 1 and texts[0].startswith("kept: a buffer that changes")


def test_a_scripted_model_trains_and_its_statistics_are_named(fake_run):
    model, bare = torch.jit.script(with_batch_norm()), with_batch_norm()
    run, opt = started(fake_run, model, KINDS["momentum"](model.parameters()))
    texts = told(lambda: [step(opt, model) for _ in range(3)])
    assert len(texts) == 1 and "1.running_mean, 1.running_var" in texts[0]
    train(bare, KINDS["momentum"](bare.parameters()), 3)
    assert_close(model, bare)


def test_buffers_that_stay_and_buffers_that_are_local_are_not_named(fake_run):
    masked = Kept(torch.full((2, 2), float("-inf")).triu(1), lambda m: None)
    run, opt = started(fake_run, masked, KINDS["engine"](masked.parameters()))
    assert not told(lambda: [step(opt, masked) for _ in range(3)])
    run.close()
    moving = Kept(*CHANGES["float"])
    run, opt = started(fake_run, moving, KINDS["engine"](moving.parameters()), buffers="local")
    assert not told(lambda: [step(opt, moving) for _ in range(3)])
    run.close()
    normed = with_batch_norm()
    run, opt = started(fake_run, normed, KINDS["engine"](normed.parameters()))
    assert not told(lambda: [step(opt, normed) for _ in range(3)])


def test_a_statistic_that_forward_reassigns_is_followed(fake_run):
    class Reassigns(torch.nn.BatchNorm1d):
        def forward(self, inputs):
            self.running_mean = self.running_mean.clone()
            return super().forward(inputs)

    model, other = with_batch_norm(), with_batch_norm()
    model[1] = Reassigns(6)
    run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.1))
    bare = torch.optim.SGD(other.parameters(), lr=0.1)
    for one, optimizer in ((model, opt), (other, bare)):
        for at in range(3):
            step(optimizer, one, seed=at)
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_spectral_norm_is_a_statistic_and_a_statistic_has_to_be_finite(fake_run):
    for norm in (torch.nn.utils.spectral_norm, torch.nn.utils.parametrizations.spectral_norm):
        model = mlp()
        norm(model[0])
        run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.1))
        assert fake_run.engines[-1].shape.groups[-1].tensors == 2
        assert not told(lambda: step(opt, model))
        run.close()
    model = with_batch_norm()
    run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.1))
    model[1].running_var[0] = float("inf")
    with pytest.raises(MisuseError, match="1.running_var is not finite"):
        step(opt, model)


class Pair(torch.nn.Module):
    """A student, and a teacher that begins as its copy."""

    def __init__(self):
        super().__init__()
        self.student = mlp()
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)

    def forward(self, inputs):
        return self.student(inputs) - 0.5 * self.teacher(inputs)

    def follow(self):
        with torch.no_grad():
            for teacher, student in zip(self.teacher.parameters(), self.student.parameters()):
                teacher.mul_(0.9).add_(student, alpha=0.1)


def test_a_frozen_copy_of_a_trained_module_is_averaged(fake_run):
    model, other = Pair(), Pair()
    run = fake_run(target_batch_size=16, rounds=4)
    opt = run.optimizer(model, torch.optim.SGD(model.student.parameters(), lr=0.1), batch_size=8)
    assert "teacher.0.weight" in told(run.start)[0]
    assert fake_run.engines[0].shape.groups[-1].tensors == 4
    bare = torch.optim.SGD(other.student.parameters(), lr=0.1)
    for at in range(4):
        for _ in range(2):  # two steps are a round: the teacher moves once in it
            opt.zero_grad()
            loss_of(model, *data(seed=at)).backward()
            if opt.step():
                model.follow()
        step(bare, other, seed=at)
        other.follow()
    assert_close(model, other, rtol=1e-5, atol=1e-6)


def test_frozen_layers_of_a_stack_are_no_copies_of_the_others(fake_run):
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)), torch.nn.Linear(4, 1))
    for layer in model[:3]:
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    model[0].requires_grad_(False)
    run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert fake_run.engines[0].shape.groups[-1].tensors == 6
    assert not told(lambda: step(opt, model))


# ---- precision, files, data


def test_float64_is_told(fake_run):
    model = mlp().double()
    run = fake_run(target_batch_size=8)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    (text,) = told(run.start)
    assert "0.weight has dtype float64: the run keeps" in text and "beyond 3.4e38 become infinite" in text


def test_a_running_statistic_of_float64_is_told_too(fake_run):
    model = with_batch_norm()
    model[1].running_var = model[1].running_var.double()
    run = fake_run(target_batch_size=8)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    assert "1.running_var has dtype float64: the run keeps" in told(run.start)[0]


@pytest.mark.parametrize("kind", ["engine", "foreign"])
def test_a_saved_part_of_the_model_is_that_part_alone(fake_run, kind):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4096), torch.nn.Linear(4096, 4))
    run, opt = started(fake_run, model, KINDS[kind](model.parameters()))

    def size(what):
        file = io.BytesIO()
        torch.save(what, file)
        return file.tell()

    assert size(model[1].bias) < 2000
    run.close()
    assert size(model[1].bias) < 2000
    state = opt.state[model[1].bias]
    assert all(size(value) < 2000 for value in state.values())


def test_data_sets_are_known_by_what_they_hold():
    values = torch.arange(64.0)
    dataset = torch.utils.data.TensorDataset(values)
    known = content_of(dataset, 64)
    assert known == content_of(torch.utils.data.TensorDataset(values.clone()), 64)
    others = [
        torch.utils.data.TensorDataset(values + 1),
        torch.utils.data.Subset(dataset, range(64)),
        torch.utils.data.Subset(dataset, [*range(63), 0]),
        torch.utils.data.ConcatDataset([dataset]),
        list(range(64)),
    ]
    assert len({known, *(content_of(other, len(other)) for other in others)}) == 1 + len(others)


def test_data_that_comes_after_the_start_is_told(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, KINDS["engine"](model.parameters()))
    texts = told(lambda: run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=8))
    assert "run.shard() after the start" in texts[0] and "64 samples" in texts[0]


# ---- resuming the program's own checkpoint


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [True, False])
def test_a_programs_own_checkpoint_goes_on(fake_run, kind, before):
    model, whole = mlp(), mlp()
    schedule = lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5)  # noqa: E731
    run = fake_run(target_batch_size=8, rounds=5)
    inner = KINDS[kind](model.parameters())
    scheduler = schedule(inner)
    opt = run.optimizer(model, inner, scheduler=scheduler, batch_size=8)
    while not run.finished:
        step(opt, model)
    file = io.BytesIO()
    saved = {"model": model.state_dict(), "run": run.state_dict(), "schedule": scheduler.state_dict()}
    torch.save(saved, file)
    facts = fake_run.engines[0].shape.layout
    run.close()

    file.seek(0)
    saved = torch.load(file)
    resumed = mlp(seed=9)
    inner = KINDS[kind](resumed.parameters())
    resumed.load_state_dict(saved["model"])
    scheduler = schedule(inner)
    scheduler.load_state_dict(saved["schedule"])
    if before:
        inner.load_state_dict(saved["run"]["optimizer"])
    run = fake_run(target_batch_size=8, rounds=9)
    opt = run.optimizer(resumed, inner, scheduler=scheduler, batch_size=8)
    run.load_state_dict(saved["run"])
    run.start()
    assert run.round == 5 and run.samples == 40
    assert fake_run.engines[1].shape.layout == facts
    while not run.finished:
        step(opt, resumed)
    assert run.round == 9 and run.samples == 72

    bare = KINDS[kind](whole.parameters())
    scheduler = schedule(bare)
    train(whole, bare, 9, scheduler=scheduler)
    assert_close(resumed, whole, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(opt.state_dict()["state"].values(), bare.state_dict()["state"].values()):
        assert set(mine) == set(theirs)
        for key in theirs:
            torch.testing.assert_close(mine[key], theirs[key], rtol=1e-4, atol=1e-6)


def test_a_peer_that_begins_later_in_the_schedule_has_as_much_room(fake_run):
    states = []
    for steps in (0, 12345):
        model = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(9)))
        inner = torch.optim.AdamW([{"params": layer.parameters()} for layer in model], lr=0.1)
        scheduler = torch.optim.lr_scheduler.LambdaLR(inner, lambda at: 1 / (1 + at))
        state = scheduler.state_dict()
        scheduler.load_state_dict({**state, "last_epoch": steps, "_step_count": steps + 1})
        for group in inner.param_groups:
            group["lr"] = 0.1 / (1 + steps)
        run = fake_run()
        run.optimizer(model, inner, scheduler=scheduler, batch_size=8)
        run.start()
        states.append((fake_run.engines[-1].shape.state_sizes, fake_run.engines[-1].shape.layout))
        run.close()
    assert states[0] == states[1]


@pytest.mark.parametrize("state", [{}, mlp().state_dict(), 5, {"round": 1, "samples": 8}])
def test_a_state_that_is_none_of_a_run_is_named(fake_run, state):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=9)
    run.optimizer(model, KINDS["engine"](model.parameters()), batch_size=8)
    with pytest.raises(MisuseError, match="without.* optimizer.*expected what run.state_dict"):
        run.load_state_dict(state)


def test_a_joiner_learns_how_far_the_run_before_was(fake_run):
    model, joiner = mlp(), mlp(seed=2)
    run = fake_run(target_batch_size=8, rounds=9)
    opt = run.optimizer(model, KINDS["engine"](model.parameters()), batch_size=8)
    run.load_state_dict({"round": 5, "samples": 40, "optimizer": opt.state_dict()})
    run.start()
    step(opt, model)
    state = fake_run.engines[0].saved()
    run.close()
    joined = fake_run(given=state, target_batch_size=8, rounds=9)
    joined.optimizer(joiner, KINDS["engine"](joiner.parameters()), batch_size=8)
    joined.start()
    assert joined.round == 6
    assert_equal(joiner, model)


# ---- state of the loop


def inside_itself():
    found = {}
    found["all"] = [found]
    return found


def ema_of(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def follow(ema, model):
    for mine, theirs in zip(ema, model.parameters()):
        mine.mul_(0.9).add_(theirs.detach(), alpha=0.1)


@pytest.mark.parametrize("kind", ["engine", "foreign"])
def test_state_of_the_loop_reaches_joiners(fake_run, kind):
    models, states = (mlp(), mlp(seed=2)), []
    given = None
    for at, model in enumerate(models):
        run = fake_run(given=given, target_batch_size=8, rounds=8)
        opt = run.optimizer(model, KINDS[kind](model.parameters()), batch_size=8)
        own = {"ema": ema_of(model), "steps": 0, "name": "x", "pair": (None, torch.tensor(True))}
        own["half"] = torch.ones(3).bfloat16()

        def after(own=own, model=model):
            follow(own["ema"], model)
            own["steps"] += 1
            own["half"].mul_(2)

        def load(state, own=own):
            own.update(state)

        run.extra_state(lambda own=own: own, load, after)
        run.start()
        while run.round < (4 if at == 0 else 8):
            step(opt, model)
        if at == 0:
            given = fake_run.engines[-1].saved()
            while not run.finished:
                step(opt, model)
        states.append(own)
        run.close()
    assert states[0]["steps"] == states[1]["steps"] == 8
    assert states[1]["name"] == "x" and states[1]["pair"][0] is None and bool(states[1]["pair"][1])
    assert torch.equal(states[0]["half"], states[1]["half"])
    for mine, theirs in zip(states[0]["ema"], states[1]["ema"]):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "value,text",
    [
        ({"a": {1, 2}}, r"extra state 0\.a is a set"),
        ({1: 2}, "keys that are no text"),
        (inside_itself(), "the extra state contains itself"),
    ],
)
def test_state_that_cannot_travel_is_named(fake_run, value, text):
    model = mlp()
    run = fake_run()
    run.optimizer(model, KINDS["engine"](model.parameters()), batch_size=8)
    run.extra_state(lambda: value, lambda state: None)
    with pytest.raises(UnsupportedError, match=text):
        run.start()


def test_state_that_grows_is_refused_with_the_remedy(fake_run):
    model, own = mlp(), {"queue": torch.zeros(10), "pair": (1, torch.zeros(2)), "text": ""}
    run = fake_run()
    run.optimizer(model, KINDS["engine"](model.parameters()), batch_size=8)
    run.extra_state(lambda: own, own.update)
    run.start()
    begun = dict(own)
    others = {
        "0.queue is float32 (11,) now and was float32 (10,) at the start": ("queue", torch.zeros(11)),
        "0.queue is int64 (10,) now and was float32 (10,) at": ("queue", torch.zeros(10, dtype=torch.int64)),
        "0.pair.1 is float32 (3,) now and was float32 (2,) at": ("pair", (1, torch.zeros(3))),
        "the extra state has grown to": ("text", "x" * 10000),
    }
    for text, (key, value) in others.items():
        own.update({**begun, key: value})
        with pytest.raises(UnsupportedError, match=re.escape(text) + ".* its full size when the run starts"):
            fake_run.engines[0].saved()
    own.update({**begun, "later": None, "text": "x"})  # of the shapes of the start
    fake_run.engines[0].saved()
    with pytest.raises(MisuseError, match=r"run.extra_state\(\) after the start"):
        run.extra_state(lambda: own, own.update)


# ---- settings by hand


def test_settings_that_others_want_are_followed_and_told_once(fake_run):
    model = mlp()
    run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.5))
    engine = fake_run.engines[0]
    opt.param_groups[0]["lr"] = 0.25

    def others_want():
        done = engine.done
        engine.done = lambda gradients, work: done(gradients, work._replace(settings='{"lr":{"all":0.0}}'))
        before = model[0].weight.detach().clone()
        step(opt, model)
        assert torch.equal(model[0].weight, before)
        engine.done = done

    texts = told(others_want)
    assert len(texts) == 1 and "lr of group 0 is 0.25 here and 0.0 in the run, in round 1" in texts[0]
    assert opt.param_groups[0]["lr"] == 0.0
    opt.param_groups[0]["lr"] = 0.25
    assert not told(others_want)


@pytest.mark.parametrize("both", [True, False])
def test_a_setting_that_is_not_a_number_equals_itself(fake_run, both):
    model = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    groups = [{"params": one.parameters(), "share": 0.5} for one in model]
    sgd = torch.optim.SGD(groups, lr=0.5)
    run, opt = started(fake_run, model, sgd)
    handed = []
    done = fake_run.engines[0].done
    fake_run.engines[0].done = lambda gradients, work: handed.append(work.settings) or done(gradients, work)

    def steps():
        for group in opt.param_groups if both else opt.param_groups[:1]:
            group["share"] = float("nan")
        for _ in range(2):
            opt.zero_grad()
            model[1](model[0](torch.ones(8, 2))).mean().backward()
            opt.step()

    assert not [text for text in told(steps) if "share of group" in text]
    assert handed[0] == ('{"share":{"all":NaN}}' if both else '{"share":[NaN,0.5]}')


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.5)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


AMOUNT = "expected a number of at least 0"
WRONG = {
    "nan": (sgd, "lr", math.nan, f"lr of group 0 is nan: {AMOUNT}"),
    "infinite": (adam, "lr", math.inf, f"lr of group 0 is inf: {AMOUNT}"),
    "negative": (sgd, "lr", -1.0, f"lr of group 0 is -1.0: {AMOUNT}"),
    "text": (sgd, "lr", "0.1", f"lr of group 0 is '0.1': {AMOUNT}"),
    "decay": (adam, "weight_decay", math.nan, f"weight_decay of group 0 is nan: {AMOUNT}"),
    "betas": (adam, "betas", (2.0, 0.9), "betas of group 0 is .*: expected two numbers from 0 to below 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_setting_is_refused_before_it_enters_a_round(fake_run, what):
    make, key, value, text = WRONG[what]
    model = mlp()
    inner = make(model.parameters())
    run, opt = started(fake_run, model, inner)
    step(opt, model)
    handed, right = len(fake_run.engines[0].handed), inner.param_groups[0][key]
    inner.param_groups[0][key] = value
    with pytest.raises(MisuseError, match=text):
        step(opt, model)
    assert len(fake_run.engines[0].handed) == handed
    assert all(torch.isfinite(one).all() for one in model.parameters())
    inner.param_groups[0][key] = right
    step(opt, model)
    assert run.round == 2 and all(torch.isfinite(one).all() for one in model.parameters())


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_scheduler_that_computes_a_wrong_rate_is_stopped_before_the_next_update(fake_run, engine):
    model = mlp()
    run, opt = started(
        fake_run,
        model,
        sgd(model.parameters()),
        engine=engine,
        scheduler=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda at: math.nan if at == 2 else 1.0),
    )
    step(opt, model)
    step(opt, model)
    fake_run.engines[0].missed_next = 1  # others go on
    with pytest.raises(MisuseError, match="lr of group 0 is nan"):
        fake_run.engines[0].next(0)
    with pytest.raises(MisuseError, match="lr of group 0 is nan"):
        step(opt, model)
    assert all(torch.isfinite(one).all() for one in model.parameters())


@pytest.mark.parametrize("wanted", ['{"lr":{"all":NaN}}', '{"lr":[-0.5]}', '{"momentum":{"all":2}}'])
def test_wrong_settings_in_a_record_are_followed_by_nobody(fake_run, wanted):
    model, other = mlp(), mlp()
    run, opt = started(fake_run, model, sgd(model.parameters()))
    engine = fake_run.engines[0]
    done = engine.done
    engine.done = lambda gradients, work: done(gradients, work._replace(settings=wanted))
    texts = told(lambda: [step(opt, model) for _ in range(3)])
    assert len(texts) == 1 and "round 1: a peer wants settings that no peer takes" in texts[0]
    assert "of group 0 is" in texts[0]
    bare = sgd(other.parameters())
    for _ in range(3):
        step(bare, other)
    assert_close(model, other)


def test_a_wrong_rate_is_refused_at_the_start_for_torchs_own_step_too(fake_run):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=math.inf)
    with pytest.raises(SettingError, match="lr of group 0 is inf"):
        started(fake_run, model, optimizer, engine="torch")


def test_what_a_loop_sets_travels_in_few_bytes(fake_run):
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(120)))
    groups = [{"params": layer.parameters()} for layer in model]
    run, opt = started(fake_run, model, torch.optim.AdamW(groups, lr=0.5))
    handed = []
    done = fake_run.engines[0].done
    fake_run.engines[0].done = lambda gradients, work: handed.append(work.settings) or done(gradients, work)

    def once():
        opt.zero_grad()
        model(torch.ones(8, 2)).mean().backward()
        opt.step()

    once()
    for at, group in enumerate(opt.param_groups):
        group["lr"] = 0.123456789 / (at + 1)
    once()
    once()
    assert handed[0] == handed[2] == "{}" and 1000 < len(handed[1]) < 4000


def test_a_state_is_that_of_the_round_whatever_the_loop_set_since(fake_run):
    model, joiner = mlp(), mlp(seed=2)
    run, opt = started(fake_run, model, torch.optim.SGD(model.parameters(), lr=0.5))
    step(opt, model)
    opt.param_groups[0]["lr"] = 0.1
    state = fake_run.engines[0].saved()
    run.close()
    joined = fake_run(given=state, target_batch_size=8)
    opt = joined.optimizer(joiner, torch.optim.SGD(joiner.parameters(), lr=0.5), batch_size=8)
    joined.start()
    assert opt.param_groups[0]["lr"] == 0.5
