# SPDX-License-Identifier: Apache-2.0
"""The engine's rules where the parameters are (model/on_device.py): the bits of the engine."""

import copy
from types import SimpleNamespace

import pytest
import torch
import tradewind
from conftest import needs_engine
from models import data, loss_of, mlp
from tradewind.engine import abi
from tradewind.model import on_device, trained
from tradewind.model.device import gpu_facts
from tradewind.model.on_device import DeviceRule, has_the_bits

STEPS, BATCH = 14, 8  # rounds, of which the tenth compares the parameters


def two_groups(make, **settings):
    """Of a model, the last layer with another rate."""

    def made(model):
        *first, last = model.children()
        groups = [
            {"params": [one for module in first for one in module.parameters()]},
            {"params": last.parameters(), "lr": 3e-3},
        ]
        return make(groups, lr=1e-2, **settings)

    return made


OPTIMIZERS = {
    "adamw": two_groups(torch.optim.AdamW),
    "adam": two_groups(torch.optim.Adam, weight_decay=0.1, betas=(0.8, 0.95)),
    "sgd": two_groups(torch.optim.SGD, weight_decay=0.1),
    "momentum": two_groups(torch.optim.SGD, momentum=0.9),
    "nesterov": two_groups(torch.optim.SGD, momentum=0.9, nesterov=True, weight_decay=0.1),
}


def updates_here(monkeypatch, here=True):
    monkeypatch.setattr(trained.TrainedOptions, "updates_on_device", lambda *_: here)


def trained_by(optimizer, device, dtype):
    """Whether it was by a DeviceRule; parameters and the optimizer's state after a run on the real engine."""
    model = mlp(width=40).to(device, dtype)
    inner = OPTIMIZERS[optimizer](model)
    run = tradewind.join(
        target_batch_size=BATCH,
        rounds=STEPS,
        insecure=True,
        listen="127.0.0.1:0",
        progress="off",
        folder="none",
    )
    opt = run.optimizer(model, inner, batch_size=BATCH, clip_grad_norm=0.5)
    run.start()
    generator = torch.Generator().manual_seed(3)
    for step in range(STEPS):
        for at, one in enumerate(model.parameters()):
            size = 10 ** (step % 4 - 5.0)
            one.grad = (size * torch.randn(one.shape, generator=generator)).to(device, dtype)
            one.grad = None if at == 0 and step < 3 else one.grad
        opt.step()
    is_here = isinstance(run._life.trained._rule, DeviceRule)
    run.close()
    states = [inner.state[one] for one in model.parameters()]
    values = [*model.parameters(), *(torch.as_tensor(one) for state in states for one in state.values())]
    return is_here, [one.detach().cpu() for one in values]


@needs_engine
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("bucket", [7, 1 << 22])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_ends_with_the_bits_of_the_engine(optimizer, dtype, bucket, device, place, monkeypatch):
    monkeypatch.setattr(DeviceRule, "BUCKET", bucket)
    is_here, engine = trained_by(optimizer, "cpu", dtype)
    assert not is_here
    if device == "cpu":
        updates_here(monkeypatch)
    is_here, mine = trained_by(optimizer, device, dtype)
    assert is_here and len(mine) == len(engine)
    for one, other in zip(mine, engine):
        assert torch.equal(one, other)


def begun(fake_run, given=None, state=None):
    """Model, optimizer with this state, and that of a run which goes on from what is given."""
    for run in fake_run.runs:
        run.close()
    model = mlp()
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if state is not None:
        inner.load_state_dict(state)
    run = fake_run(given, target_batch_size=BATCH, rounds=9)
    opt = run.optimizer(model, inner, batch_size=BATCH)
    run.start()
    return model, inner, opt


def trains(model, opt, steps):
    for step in steps:
        opt.zero_grad()
        loss_of(model, *data(BATCH, seed=step)).backward()
        opt.step()


def test_it_goes_on_from_the_state_of_another(fake_run, monkeypatch):
    updates_here(monkeypatch)
    model, _, opt = begun(fake_run)
    trains(model, opt, range(3))
    given = fake_run.engines[-1].saved()
    trains(model, opt, range(3, 5))
    joined, _, its = begun(fake_run, given)
    trains(joined, its, range(3, 5))
    assert given[0] == 3
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), joined.parameters()))


def test_a_peer_that_begins_anew_keeps_what_it_has(fake_run, monkeypatch):
    updates_here(monkeypatch)
    model, inner, opt = begun(fake_run)
    trains(model, opt, range(3))
    before = copy.deepcopy([model.state_dict(), inner.state_dict()["state"]])
    engine = fake_run.engines[-1]
    engine.calls.save(True)
    engine.calls.load(3, True)
    for mine, theirs in zip(before[0].values(), model.state_dict().values()):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(before[1].values(), inner.state_dict()["state"].values()):
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def test_it_goes_on_from_the_state_that_its_optimizer_had(fake_run, monkeypatch):
    updates_here(monkeypatch)
    model, inner, opt = begun(fake_run)
    trains(model, opt, range(3))
    state = copy.deepcopy(inner.state_dict())
    again, anew, its = begun(fake_run, state=state)
    trains(again, its, range(1))
    before, after = state["state"][0], anew.state_dict()["state"][0]
    assert after["step"] == before["step"] + 1
    assert torch.allclose(after["exp_avg"], 0.9 * before["exp_avg"], atol=0.1) and after["exp_avg"].any()


@pytest.mark.gpu
def test_a_gpu_has_the_bits_of_the_host():
    assert has_the_bits(torch.device("cuda"))


def test_a_device_with_other_bits_is_found(monkeypatch):
    assert has_the_bits(torch.device("cpu"))
    right, calls = on_device._adam, []

    def fused(step, values):
        right(step, values)
        calls.append(step)
        if len(calls) <= 3:  # as if the first device rounded once less
            values.parameters[0].add_(values.parameters[0], alpha=1e-7)

    monkeypatch.setitem(on_device._RULES, abi.TW_ADAMW, fused)
    assert not has_the_bits(torch.device("cpu"))


def test_lamb_and_the_ranks_of_a_node_stay_on_the_host():
    options = trained.TrainedOptions(None, None, "mean", "auto", True)
    there = [torch.empty(1, device="meta")]
    adamw = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    lamb = tradewind.Lamb([torch.nn.Parameter(torch.zeros(1))])
    assert not options.updates_on_device(lamb, there)
    assert not options.updates_on_device(adamw, [torch.zeros(1)])
    options.in_group = True
    assert not options.updates_on_device(adamw, there)


def test_a_device_that_lacks_an_operation_updates_on_the_host(monkeypatch):
    def lacks(step, values):
        raise NotImplementedError("no such operation")

    monkeypatch.setitem(on_device._RULES, abi.TW_SGD, lacks)
    assert not has_the_bits(torch.device("cpu"))


def test_the_engine_hears_which_gpu_it_is(monkeypatch):
    properties = SimpleNamespace(name="Tesla T4", uuid="0a1b-2c3d")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    assert gpu_facts(torch.device("cuda:1")) == [("gpu", "Tesla T4"), ("gpu_uuid", "0a1b-2c3d")]
    monkeypatch.setattr(torch.version, "cuda", None)  # ROCm has another driver
    assert gpu_facts(torch.device("cuda:1")) == [("gpu", "Tesla T4")]
    assert gpu_facts(torch.device("cpu")) == []
