# SPDX-License-Identifier: Apache-2.0
"""Gradients that are added up where they are, and cross once a round."""

import loops
import pytest
import torch
import tradewind
from conftest import needs_engine
from crew import crew_of
from models import assert_close, data, loss_of, mlp, with_batch_norm
from tradewind.model import sums
from tradewind.model.device import Crossing
from tradewind.model.layout import Entry

DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu])]


def entries_of(device):
    shapes, entries, first = [(3, 4), (5,), (2, 2, 2)], [], 2
    for at, shape in enumerate(shapes):
        tensor = torch.nn.Parameter(torch.zeros(shape, device=device))
        entries.append(Entry(f"t{at}", tensor, first, tensor.numel()))
        first += tensor.numel()
    return entries, first


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bucket", [1, 13, 1000])
def test_sums_of_all_buckets_reach_their_places_once(device, bucket, monkeypatch):
    monkeypatch.setattr(Crossing, "BUCKET", bucket)
    entries, size = entries_of(device)
    added = sums.DeviceSums(entries)
    expected = torch.zeros(size)
    for round_ in range(3):
        total = torch.zeros(size)
        expected.zero_()
        for step in range(4):
            for at, entry in enumerate(entries):
                one = torch.randn(entry.tensor.shape)
                entry.tensor.grad = None if at == step else one.to(device)
                if at != step:
                    expected[entry.first : entry.first + entry.values] += 3.0 * one.reshape(-1)
            added.add(3.0)
        added.move_to(total)
        torch.testing.assert_close(total, expected)
    added.move_to(total)
    torch.testing.assert_close(total, expected)


def test_a_sum_that_is_not_finite_is_named():
    entries, size = entries_of("cpu")
    added = sums.DeviceSums(entries)
    entries[1].tensor.grad = torch.tensor([1.0, float("inf"), 0, 0, 0])
    added.add(1.0)
    with pytest.raises(tradewind.MisuseError, match="gradient of t1 is not finite"):
        added.move_to(torch.zeros(size))


def test_large_sums_are_finite():
    entries, size = entries_of("cpu")
    added = sums.DeviceSums(entries)
    entries[1].tensor.grad = torch.full((5,), 1e20)
    added.add(1.0)
    total = torch.zeros(size)
    added.move_to(total)
    assert total.max() == 1e20


def trained(device, accumulate, make, optimizer):
    model = make().to(device)
    nothing_kept = {"checkpoint.folder": "none"}
    run = tradewind.join(rounds=6, target_batch_size=24, insecure=True, progress="off", settings=nothing_kept)
    opt = run.optimizer(model, optimizer(model.parameters(), lr=1e-2), batch_size=8, accumulate=accumulate)
    with run:
        run.start()
        steps = 0
        while not run.finished:
            opt.zero_grad()
            inputs, targets = data(8, seed=steps)
            loss_of(model, inputs.to(device), targets.to(device)).backward()
            opt.step()
            steps += 1
    assert steps == 18
    return model.cpu()


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [mlp, with_batch_norm])
@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.NAdam])
def test_a_round_is_the_same_wherever_gradients_are_added(device, make, optimizer):
    results = [trained(device, how, make, optimizer) for how in ("host", "device")]
    assert_close(*results, rtol=1e-4, atol=1e-5)


@needs_engine
@pytest.mark.timeout(100)
def test_peers_that_add_up_here_and_there_end_alike_though_one_is_killed():
    with crew_of(target_batch_size=64, rounds=20) as crew:
        peers = [
            crew.start(loops.loop, wait_for=3, batch=8, pause_s=0.01, seed=seed, accumulate=how)
            for seed, how in ((1, "device"), (2, "host"), (3, "device"))
        ]
        peers[0].until_round(8)
        peers[2].kill()
        results = [peer.result() for peer in peers[:2]]
        assert results[0]["state"] == results[1]["state"] and results[0]["round"] == 20
