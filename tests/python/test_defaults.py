# SPDX-License-Identifier: Apache-2.0
"""What programs set for all of torch (default dtype, default device, inference mode) changes no run."""

import contextlib
import copy

import pytest
import torch
import tradewind
from conftest import needs_engine
from models import assert_close, assert_equal, data, loss_of, mlp, with_batch_norm
from tradewind.model import trained
from tradewind.model.device import Crossing
from tradewind.model.layout import Entry
from tradewind.model.on_device import _tried, has_the_bits
from tradewind.model.state import ExtraState

STEPS = 6
MODES = ("sync", "delayed", "local", "streaming")
HAS_DEFAULT_DEVICE = hasattr(torch, "set_default_device")  # PyTorch 2


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def nothing_set():
    yield


DEFAULTS = {
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float64": lambda: default_dtype(torch.float64),
    # Tensors of this device have no values, so what a run makes there is lost.
    "device": lambda: torch.device("meta"),
}
NAMES = ["bfloat16", "float64"] + ["device"] * HAS_DEFAULT_DEVICE


def trained_in(mode, setting, dtype=torch.float32):
    """A model after a run that was joined and trained while this was set; with BatchNorm where it may."""
    model = (mlp() if mode == "delayed" else with_batch_norm()).to(dtype)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = [tuple(one.to(dtype) for one in data(8, seed=step)) for step in range(STEPS)]
    with setting:
        settings = {"training.mode": mode, "checkpoint.folder": "none"}
        run = tradewind.join(
            target_batch_size=8, rounds=STEPS, insecure=True, progress="off", settings=settings
        )
        with run:
            opt = run.optimizer(model, inner, batch_size=8)
            for batch in batches:
                opt.zero_grad()
                loss_of(model, *batch).backward()
                opt.step()
            assert run.finished and run.round == STEPS
    return model


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_a_run_ends_with_the_same_bits_whatever_is_set(mode, name, dtype):
    expected = trained_in(mode, nothing_set(), dtype)
    assert_equal(trained_in(mode, DEFAULTS[name](), dtype), expected)


@pytest.mark.parametrize("name", NAMES)
def test_updates_of_a_device_have_the_same_bits_whatever_is_set(name, fake_run, monkeypatch):
    monkeypatch.setattr(trained.TrainedOptions, "updates_on_device", lambda *_: True)
    expected = stepped(fake_run, nothing_set())
    assert_equal(stepped(fake_run, DEFAULTS[name]()), expected)


def stepped(fake_run, at_start, dtype=torch.float32, kind=torch.optim.AdamW):
    """A model after some steps of a run that was started inside of this."""
    model = mlp().to(dtype)
    inner = kind(model.parameters(), lr=1e-2)
    inputs, targets = (one.to(dtype) for one in data())
    run = fake_run(target_batch_size=8, rounds=STEPS)
    opt = run.optimizer(model, inner, batch_size=8)
    with at_start:
        run.start()
    for _ in range(STEPS):
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
    assert run.finished
    run.close()
    return model


@pytest.mark.parametrize("name", NAMES)
def test_a_device_is_judged_by_float32_on_the_host(name):
    expected = _tried(0, 0, torch.device("cpu"))
    with DEFAULTS[name]():
        assert torch.equal(_tried(0, 0, torch.device("cpu")), expected)
        assert has_the_bits(torch.device("cpu"))


@pytest.mark.parametrize("kind", [torch.optim.AdamW, tradewind.Lamb])
@pytest.mark.parametrize("name", NAMES)
def test_updates_that_a_loaded_state_had_are_counted_exactly(name, kind, fake_run):
    model = mlp()
    inner = kind(model.parameters(), lr=1e-2)
    loss_of(model, *data()).backward()
    inner.step()
    state = copy.deepcopy(inner.state_dict())
    for one in state["state"].values():
        one["step"] = torch.tensor(1001.0)  # bfloat16 has 1000 and 1008
    inner.load_state_dict(state)
    run = fake_run(target_batch_size=8)
    run.optimizer(model, inner, batch_size=8)
    with DEFAULTS[name]():
        run.start()
    assert {float(one["step"]) for one in inner.state.values()} == {1001.0}


@pytest.mark.parametrize("name", NAMES)
def test_what_crosses_arrives_as_float32_on_the_host(name):
    tensor = torch.full((3,), 1.001, dtype=torch.float64)
    with DEFAULTS[name]():
        ((_, found),) = Crossing().each([(Entry("t", tensor, 0, 3), tensor)])
    assert torch.equal(found, tensor.float()) and found.device == tensor.device


@pytest.mark.parametrize("name", NAMES)
def test_state_of_the_loop_crosses_whatever_is_set(name):
    extra, got = ExtraState(), []
    state = {"ema": torch.rand(3), "round": 7}
    extra.add(lambda: state, got.append, None)
    extra.prepare()
    vector = torch.zeros(extra.state_values)
    with DEFAULTS[name]():
        extra.save(vector)
        extra.load(vector)
    assert torch.equal(got[0]["ema"], state["ema"]) and got[0]["round"] == 7


def test_lambs_own_count_of_updates_is_exact():
    weight = torch.nn.Parameter(torch.ones(2))
    lamb = tradewind.Lamb([weight])
    weight.grad = torch.ones(2)
    with default_dtype(torch.bfloat16):
        for _ in range(300):
            lamb.step()
    assert lamb.state[weight]["step"] == 300


# ---- inference mode


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.NAdam])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("here", [False, True], ids=["host", "device"])
def test_a_run_that_was_started_in_inference_mode_trains(here, dtype, kind, fake_run, monkeypatch):
    monkeypatch.setattr(trained.TrainedOptions, "updates_on_device", lambda *_: here)
    expected = stepped(fake_run, nothing_set(), dtype, kind)
    assert_equal(stepped(fake_run, torch.inference_mode(), dtype, kind), expected)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.NAdam])
def test_a_state_that_came_in_inference_mode_can_be_trained(kind, fake_run):
    stepped(fake_run, nothing_set(), kind=kind)
    given = fake_run.engines[-1].saved()
    for setting in (nothing_set(), torch.inference_mode()):
        model = mlp(seed=2)
        inner = kind(model.parameters(), lr=1e-2)
        run = fake_run(given, target_batch_size=8, rounds=2 * STEPS)
        opt = run.optimizer(model, inner, batch_size=8)
        with setting:
            run.start()
        loss_of(model, *data()).backward()
        opt.step()
        assert run.round == STEPS + 1
        run.close()


class Angles(torch.nn.Linear):
    """A layer with a buffer that is made anew for a longer batch, as rotary embeddings do."""

    def __init__(self):
        super().__init__(8, 1)
        self.register_buffer("angles", torch.zeros(1), persistent=False)

    def forward(self, inputs):
        if len(inputs) > len(self.angles):
            self.angles = torch.arange(len(inputs), dtype=torch.float32).cos()
        return super().forward(inputs) * (1 + self.angles[: len(inputs), None])


def with_angles(frozen_in):
    """Its first layer, frozen, was made in that mode."""
    torch.manual_seed(1)
    with frozen_in:
        first = torch.nn.Linear(4, 8).requires_grad_(False)
    return torch.nn.Sequential(first, torch.nn.Tanh(), Angles())


@pytest.mark.filterwarnings("ignore:2.angles:tradewind.TradewindWarning")
def test_layers_and_buffers_made_in_inference_mode_change_nothing(fake_run):
    bare, model = with_angles(nothing_set()), with_angles(torch.inference_mode())
    with torch.inference_mode():
        bare(data(9)[0]), model(data(9)[0])
    inner = torch.optim.AdamW(bare[2].parameters(), lr=1e-2)
    run = fake_run(target_batch_size=8, rounds=STEPS)
    opt = run.optimizer(model, torch.optim.AdamW(model[2].parameters(), lr=1e-2), batch_size=8)
    for at in range(STEPS):
        for mine, one in ((bare, inner), (model, opt)):
            one.zero_grad()
            loss_of(mine, *data()).backward()
            one.step()
            with torch.inference_mode():
                mine(data(10 + at)[0])  # as an evaluation
    assert run.finished
    assert_close(model, bare)


def test_gradients_made_in_inference_mode_count(fake_run):
    bare, model = mlp(), mlp()
    inner = torch.optim.SGD(bare.parameters(), lr=0.1)
    run = fake_run(target_batch_size=8, rounds=STEPS)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in run.batches([data()]):
        for mine, one in ((bare, inner), (model, opt)):
            with torch.inference_mode():
                gradients = [values.sin() for values in mine.parameters()]
            for parameter, gradient in zip(mine.parameters(), gradients):
                parameter.grad = gradient
            one.step()
    assert_close(model, bare)


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_trains_after_a_start_in_inference_mode(mode):
    model = mlp()
    settings = {"training.mode": mode, "checkpoint.folder": "none"}
    run = tradewind.join(target_batch_size=8, rounds=STEPS, insecure=True, progress="off", settings=settings)
    with run:
        opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2), batch_size=8)
        with torch.inference_mode():
            run.start()
            model(data()[0])
        for _ in range(STEPS):
            opt.zero_grad()
            loss_of(model, *data()).backward()
            opt.step()
        assert run.finished
