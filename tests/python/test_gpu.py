# SPDX-License-Identifier: Apache-2.0
"""Loops on a GPU as users write them (-m gpu), and the same loops on the CPU where they can be."""

import itertools

import devices
import pytest
import torch
from conftest import needs_engine
from crew import crew_of
from models import assert_close
from test_peers import assert_alike

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
ROUNDS, STEPS = 6, 2
NEWER = ("scaled", "compiled")  # than Debian's PyTorch
KINDS = [pytest.param(one, marks=[pytest.mark.integrations] * (one in NEWER)) for one in devices.KINDS]

pytestmark = pytest.mark.timeout(300)


def started(kind):
    return devices.made(kind, "cpu")


def values_of(model):
    return [value.float().cpu() for value in model.state_dict().values()]


def bare(kind, device):
    """The loop without a run: one step of the same batch a round is one of its mean."""
    model = devices.made(kind, device)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in itertools.islice(devices.steps_of(kind, model, opt, device), ROUNDS):
        pass
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_this_kind_trains_as_without_a_run(kind, device, fake_run):
    if kind == "captured" and device == "cpu":
        pytest.skip("the CPU has no graphs")
    model = devices.made(kind, device)
    run = fake_run(target_batch_size=STEPS * devices.BATCH, rounds=ROUNDS)
    inner = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    opt = run.optimizer(model, inner, batch_size=devices.BATCH)
    for _ in itertools.islice(devices.steps_of(kind, model, opt, device), STEPS * ROUNDS):
        pass
    run.close()
    assert run.round == ROUNDS
    error = 2e-3 if kind in ("bfloat16", "scaled") else 1e-5
    moved = max((one - other).abs().max() for one, other in zip(values_of(model), values_of(started(kind))))
    assert moved > 10 * error
    assert_close(model, bare(kind, device), rtol=10 * error, atol=error)


@needs_engine
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["sync", "delayed", "local", "streaming"])
def test_peers_on_one_card_of_which_one_is_killed(mode, device):
    rounds = 40 if device == "cpu" else 600  # it takes seconds until the joiner has the GPU
    with crew_of(target_batch_size=32, rounds=rounds, **{"training.mode": mode}) as crew:
        peers = [crew.start(devices.peer, wait_for=3, device=device, pause_s=0.02) for _ in range(3)]
        peers[0].until_round(6, limit_s=120)
        peers[2].kill()
        joiner = crew.start(devices.peer, device=device, pause_s=0.02)
        results = [one.result(limit_s=120) for one in (peers[0], peers[1], joiner)]
        assert results[0]["state"] == results[1]["state"] == results[2]["state"]
        assert {one["round"] for one in results} == {rounds}
        assert joiner.all("apply")
        assert_alike([*peers, joiner])


@needs_engine
@pytest.mark.parametrize("device", DEVICES)
def test_a_peer_without_memory_leaves_with_a_message_and_others_go_on(device):
    with crew_of(target_batch_size=32, rounds=12) as crew:
        rest = crew.start(devices.peer, wait_for=2, device=device, pause_s=0.02)
        full = crew.start(devices.peer, wait_for=2, device=device, pause_s=0.02, full_in=3)
        assert "memory" in full.error(120)["text"]
        assert rest.result(120)["round"] == 12


@needs_engine
@pytest.mark.parametrize("device", DEVICES)
def test_memory_does_not_grow_with_rounds(device):
    with crew_of() as crew:
        host, there = crew.start(devices.long_peer, device=device, rounds=600).result(200)
    assert host < 8 and there < 1
