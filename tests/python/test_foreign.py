# SPDX-License-Identifier: Apache-2.0
"""Optimizers of the shapes that libraries have, on the engine's double: what they keep travels, or is refused
at the start; and the trial before the run leaves nothing behind.
"""

import collections
import copy

import pytest
import torch
from models import assert_equal, data, loss_of, mlp, parameters_of, train
from tradewind import UnsupportedError

ROUNDS = 12


class Around(torch.optim.Optimizer):
    """Lookahead: a state of its own, and that of the optimizer inside, in which more comes after k steps."""

    def __init__(self, base, k=4):
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
        self.base, self.param_groups, self.defaults = base, base.param_groups, base.defaults
        self.state = collections.defaultdict(dict)
        for group in self.param_groups:
            group.update(k=k, n=0)

    @torch.no_grad()
    def step(self, closure=None):
        self.base.step()
        for group in self.param_groups:
            group["n"] += 1
            if group["n"] % group["k"]:
                continue
            for p in group["params"]:
                slow = self.base.state[p].setdefault("slow", p.clone())
                slow.lerp_(p, 0.5)
                p.copy_(slow)


class Base(torch.optim.Optimizer):
    """One that moves parameters by a rate of its own."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        self.begin()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"] * self.rate(group, p))

    def begin(self):
        pass

    def rate(self, group, p):
        return 1.0


class CountsInState(Base):
    """MADGRAD: a count under a text; and a dict of values by parameter (TRAC)."""

    def begin(self):
        self.state.setdefault("k", torch.tensor([0])).add_(1)
        self.state.setdefault("all", {"n": 0})["n"] += 1

    def rate(self, group, p):
        self.state["all"][p] = self.state["all"].get(p, 0.0) + 1 / float(self.state["k"])
        return self.state["all"][p] / self.state["all"]["n"]


class CountsInGroup(Base):
    """Prodigy and D-Adaptation: tensors in param_groups."""

    def rate(self, group, p):
        group.setdefault("k", torch.tensor([0.0], dtype=torch.float64)).add_(1)
        return float(group.setdefault("d", torch.tensor(1.0)).mul_(0.99)) / float(group["k"]) ** 0.5


class BeginsLate(Base):
    """State that comes with the first gradient that is not zero, beside a count that is there before."""

    def rate(self, group, p):
        state = self.state[p]
        state["n"] = state.get("n", 0) + 1
        if bool(p.grad.any()):
            state.setdefault("m", torch.zeros_like(p)).mul_(0.9).add_(p.grad)
            return float(state["m"].norm())
        return 1.0


class OnlyLate(Base):
    """The same, of which it is all."""

    def rate(self, group, p):
        if bool(p.grad.any()):
            self.state[p].setdefault("m", torch.zeros_like(p)).mul_(0.9).add_(p.grad)
        return float(self.state[p]["m"].norm()) if self.state[p] else 1.0


class FirstNone(Base):
    """A value that is None, then a tensor."""

    def rate(self, group, p):
        state = self.state[p]
        before = state.setdefault("before", None)
        state["before"] = p.grad.abs().max()
        return 1.0 if before is None else float(before)


SHAPES = [
    lambda m: Around(torch.optim.AdamW(m.parameters(), lr=1e-2)),
    lambda m: CountsInState(m.parameters()),
    lambda m: CountsInGroup(m.parameters()),
    lambda m: BeginsLate(m.parameters()),
    lambda m: OnlyLate(m.parameters()),
    lambda m: FirstNone(m.parameters()),
]


def loop(opt, model, steps):
    for _ in range(steps):
        opt.zero_grad()
        loss_of(model, *data()).backward()
        opt.step()


def started(fake_run, model, inner, **settings):
    for before in fake_run.runs:
        before.close()
    run = fake_run(target_batch_size=8, rounds=ROUNDS, **settings)
    opt = run.optimizer(model, inner, batch_size=8)
    run.start()
    return run, opt


@pytest.mark.parametrize("make", SHAPES)
@pytest.mark.parametrize("after", [1, 6])
def test_joiners_go_on_with_all_that_an_optimizer_keeps(fake_run, make, after):
    model, bare, joiner = mlp(), mlp(), mlp(seed=2)
    train(bare, make(bare), ROUNDS)
    _, opt = started(fake_run, model, make(model))
    loop(opt, model, after)
    state = fake_run.engines[0].saved()
    loop(opt, model, ROUNDS - after)
    assert_equal(model, bare)
    joined, opt = started(fake_run, joiner, make(joiner), given=state)
    loop(opt, joiner, ROUNDS - after)
    assert joined.finished
    assert_equal(joiner, bare)


def test_an_optimizer_that_divides_by_its_rate_runs(fake_run):
    class Divides(Base):
        def rate(self, group, p):
            return 0.1 / group["lr"]

    model, bare = mlp(), mlp()
    _, opt = started(fake_run, model, Divides(model.parameters()))
    loop(opt, model, ROUNDS)
    train(bare, Divides(bare.parameters()), ROUNDS)
    assert_equal(model, bare)
    text = r"Divides.step\(\) failed on small gradients at lr=0, without arguments"
    with pytest.raises(UnsupportedError, match=text):
        started(fake_run, bare, Divides(bare.parameters(), lr=0))


def test_an_optimizer_that_swaps_weights_begins_in_its_mode_for_training(fake_run):
    class Swaps(Base):
        training = False

        def train(self):
            self.training = True

        def eval(self):
            self.training = False

        def begin(self):
            if not self.training:
                raise RuntimeError("not in train mode")

    model, text = mlp(), r"not in train mode.*Call its train\(\) before run.optimizer\(\)"
    with pytest.raises(UnsupportedError, match=text):
        started(fake_run, model, Swaps(model.parameters()))
    inner = Swaps(model.parameters())
    inner.train()
    run, opt = started(fake_run, model, inner)
    loop(opt, model, ROUNDS)
    assert run.finished


class Attributes(Base):
    """State in attributes: a list of tensors, which other peers cannot get."""

    def __init__(self, params):
        super().__init__(params)
        self.sums = [torch.zeros(1)]

    def begin(self):
        self.sums[0] += 1


class Later(Base):
    """A key that no trial sees."""

    def rate(self, group, p):
        state = self.state[p]
        state["n"] = state.get("n", 0) + 1
        if state["n"] > 5:
            state["later"] = 1.0
        return 1.0


def test_state_that_cannot_travel_is_refused_at_the_start_with_what_to_do(fake_run):
    remedy = r'.*use SGD, Adam, AdamW or tradewind.Lamb, or tradewind.join\(mode="local"\)'
    in_group = type("InGroup", (Base,), {"begin": lambda self: self.param_groups[0].update(m=torch.zeros(2))})
    for make, text in (
        (lambda m: Attributes(m.parameters()), "in its attribute sums" + remedy),
        (lambda m: Around(Attributes(m.parameters())), "Around keeps .* in its attribute base.sums" + remedy),
        (lambda m: in_group(m.parameters()), r"param_groups\[0\].m is a Tensor: a setting of the optimizer"),
    ):
        model = mlp()
        before = parameters_of(model)
        with pytest.raises(UnsupportedError, match=text):
            started(fake_run, model, make(model))
        assert all(map(torch.equal, before, parameters_of(model)))


def test_state_that_comes_later_is_told_then_and_a_joiner_is_refused_not_the_peer_that_trains(fake_run):
    model, bare, joiner = mlp(), mlp(), mlp()
    run, opt = started(fake_run, model, Later(model.parameters()))
    loop(opt, model, 5)
    text = "'later' that Later keeps for 0.weight.*not there at the beginning.*goes on"
    with pytest.warns(UserWarning, match=text):
        loop(opt, model, 1)
    state = fake_run.engines[0].saved()
    loop(opt, model, ROUNDS - 6)
    train(bare, Later(bare.parameters()), ROUNDS)
    assert run.finished
    assert_equal(model, bare)
    text = "Later keeps state on the other peers.*had not when the run started"
    with pytest.raises(UnsupportedError, match=text):
        started(fake_run, joiner, Later(joiner.parameters()), given=state)


@pytest.mark.parametrize("mode", ["sync", "local"])
def test_dtypes_and_devices_are_settings(fake_run, mode):
    def make(model):
        inner = BeginsLate(model.parameters())
        inner.param_groups[0].update(momentum_dtype=torch.float32, device=torch.device("cpu"))
        return inner

    model = mlp()
    _, opt = started(fake_run, model, make(model), mode=mode)
    assert "momentum_dtype: torch.float32" in fake_run.engines[0].shape.layout
    if mode == "sync":
        loop(opt, model, 2)
        state = fake_run.engines[0].saved()
        joiner = mlp()
        _, opt = started(fake_run, joiner, make(joiner), given=state)
        loop(opt, joiner, 2)
    assert opt.param_groups[0]["momentum_dtype"] is torch.float32
    assert opt.param_groups[0]["device"] == torch.device("cpu")


def test_an_optimizer_without_defaults_starts_in_the_mode_local(fake_run):
    model = mlp()
    inner = BeginsLate(model.parameters())
    loop(inner, model, 1)  # with a state settings are those of defaults
    del inner.defaults
    started(fake_run, model, inner, mode="local")


class Draws(Base):
    """Masks, as Magma draws them."""

    def rate(self, group, p):
        return float(torch.rand(1))


def test_peers_draw_alike_in_an_update_and_the_loop_goes_on_with_its_own_numbers(fake_run):
    found = []
    for seed in (3, 4):
        model = mlp()
        torch.manual_seed(seed)
        _, opt = started(fake_run, model, Draws(model.parameters()))
        loop(opt, model, 2)
        drawn = torch.rand(1)
        torch.manual_seed(seed)
        assert torch.equal(drawn, torch.rand(1))
        found.append(parameters_of(model))
    assert all(map(torch.equal, *found))
    other = mlp()
    _, opt = started(fake_run, other, Draws(other.parameters()), seed=2)
    loop(opt, other, 2)
    assert not all(map(torch.equal, found[0], parameters_of(other)))


class Keeps(Base):
    """Changes all that it has, and gives parameters other memory."""

    def __init__(self, params):
        super().__init__(params)
        self.state["old"] = torch.ones(2)
        self.param_groups[0]["t"] = torch.tensor(1.0)

    def begin(self):
        self.state["old"].add_(1)
        self.param_groups[0]["t"].add_(1)
        self.param_groups[0]["new"] = 1
        for p in self.param_groups[0]["params"]:
            self.state[p]["sum"] = p.clone()
            p.data = p.data + 1


def test_the_trial_leaves_nothing_behind(fake_run):
    model = mlp()
    inner = Around(Keeps(model.parameters()))
    memory = [p.data_ptr() for p in model.parameters()]
    values, gradient = parameters_of(model), torch.ones(1)
    model[2].bias.grad = gradient
    settings = copy.deepcopy({key: value for key, value in inner.param_groups[0].items() if key != "params"})
    run = fake_run(target_batch_size=8, rounds=ROUNDS)
    run.optimizer(model, inner, batch_size=8, alias=False)
    run.start()
    assert not inner.state and inner.base.state.keys() == {"old"}
    assert inner.base.state["old"].tolist() == [1, 1]
    assert {key: value for key, value in inner.param_groups[0].items() if key != "params"} == settings
    assert [p.data_ptr() for p in model.parameters()] == memory
    assert all(map(torch.equal, values, parameters_of(model)))
    assert model[2].bias.grad is gradient and model[0].bias.grad is None


@pytest.mark.skipif(not hasattr(torch.optim.Adam, "register_step_pre_hook"), reason="of PyTorch 2")
def test_hooks_are_tried_with_gradients_of_zero_alone(fake_run):
    model = mlp()
    inner = torch.optim.NAdam(model.parameters())
    mean = [p.detach().clone() for p in model.parameters()]
    seen = []

    def after(*_):
        seen.append(bool(model[0].weight.grad.any()))
        inner.state[model[0].weight]["of a hook"] = 1
        for kept, p in zip(mean, model.parameters()):
            kept.mul_(0.5).add_(p.detach(), alpha=0.5)

    inner.register_step_post_hook(after)
    _, opt = started(fake_run, model, inner)
    assert seen == [False] and all(map(torch.equal, mean, parameters_of(model)))
    loop(opt, model, 2)
    assert seen == [False, True, True]
    fake_run.engines[0].saved()


class Swaps(Base):
    """Schedule-free: other weights for an evaluation."""

    def train(self):
        pass

    def eval(self):
        with torch.no_grad():
            self.param_groups[0]["params"][0].mul_(2)


def test_a_swap_of_weights_is_warned_of_with_what_to_do(fake_run):
    model = mlp()
    remedy = r"Swaps.eval\(\) and train\(\) swap weights: evaluate copies"
    run, opt = started(fake_run, model, Swaps(model.parameters()), mode="local")
    with pytest.warns(UserWarning, match=r"in run.committed\(\).*" + remedy), run.paused("evaluating"):
        opt.eval()
    _, opt = started(fake_run, model, Swaps(model.parameters()))
    opt.eval()
    loss_of(model, *data()).backward()
    with pytest.warns(UserWarning, match="outside of step.*" + remedy):
        opt.step()
