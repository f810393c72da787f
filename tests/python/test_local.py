# SPDX-License-Identifier: Apache-2.0
"""The modes local and streaming: the loop's own optimizer steps, and what it changed is averaged."""

import copy

import loops
import pytest
import torch
import tradewind
from conftest import needs_engine
from crew import crew_of
from models import assert_close, data, loss_of, mlp
from tradewind.model.layout import Entry
from tradewind.model.local import OwnCopy

MODES = ("local", "streaming")


class Copied:
    """Two parameters of two values and a buffer of one, all in one vector after two counts."""

    def __init__(self, overlaps):
        sizes = (2, 2, 1)
        firsts = (2, 4, 6)
        self.tensors = [torch.zeros(size) for size in sizes]
        self.flat = torch.zeros(7)
        entries = [Entry(f"t{at}", t, firsts[at], sizes[at]) for at, t in enumerate(self.tensors)]
        self.copy = OwnCopy(2, entries, lambda: self.tensors, self.flat, overlaps)

    def step(self, samples, by=1.0):
        self.copy.begin_step()
        for tensor in self.tensors:
            tensor += by
        self.copy.samples += samples

    def contribute(self, round_):
        total = torch.zeros(7)
        self.copy.contribute(round_, total)
        return total.tolist()

    def update(self, round_, by):
        """The run's parameters change by this, and are loaded."""
        self.flat += by
        self.copy.load(round_, False)

    def value(self):
        values = {value for tensor in self.tensors for value in tensor.tolist()}
        assert len(values) == 1
        return values.pop()


def test_a_contribution_is_samples_times_the_change_of_a_gradients_sign():
    copied = Copied(False)
    copied.step(4)
    copied.step(4)
    assert copied.contribute(1) == [8, 8, -16, -16, -16, -16, 16]
    copied.update(1, 1.5)
    assert copied.value() == 1.5
    copied.step(2)
    assert copied.contribute(2) == [2, 2, -2, -2, -2, -2, 2]


def test_two_contributions_to_a_round_are_all_samples_times_the_whole_change():
    copied = Copied(False)
    copied.step(4)
    first = copied.contribute(1)
    copied.step(2, 3.0)
    second = copied.contribute(1)
    assert [a + b for a, b in zip(first, second)] == [6, 6, -24, -24, -24, -24, 24]
    copied.update(1, 2.0)
    assert copied.value() == 2.0


def test_with_overlap_the_newest_contribution_stays_in_the_copy():
    copied = Copied(True)
    copied.step(4)
    copied.contribute(1)
    copied.step(4, 2.0)
    copied.contribute(2)
    copied.update(1, 0.5)  # the mean of round 1; this peer contributed 1
    assert copied.value() == 2.5
    copied.step(4, 4.0)
    assert copied.contribute(3)[2] == -16
    copied.update(2, 2.0)
    assert copied.value() == 2.5 + 4.0
    copied.update(3, 4.0)
    assert copied.value() == 6.5


def test_samples_without_a_step_after_a_contribution_change_nothing():
    copied = Copied(False)
    copied.step(8)
    first = copied.contribute(1)
    copied.copy.samples += 2  # skipped
    second = copied.contribute(1)
    assert [a + b for a, b in zip(first, second)] == [10, 10, -10, -10, -10, -10, 10]
    late = Copied(True)
    late.step(8)
    late.contribute(1)
    late.copy.samples += 2
    assert late.contribute(2) == [2, 2, 0, 0, 0, 0, 0]


def test_inside_committed_contributions_and_loads_are_of_the_own_copy():
    copied = Copied(True)
    copied.step(8)
    with copied.copy.committed(), copied.copy.committed():
        assert copied.value() == 0.0
        assert copied.contribute(1)[2] == -8
        copied.step(0, 0.0)
        copied.copy.contribute(2, torch.zeros(7))
        copied.update(1, 1.5)
        assert copied.value() == 1.5
    assert copied.value() == 1.5


def test_peers_that_change_alike_are_one_peer():
    one, several = Copied(False), [Copied(False) for _ in range(3)]
    for copied in (one, *several):
        copied.step(4)
        copied.step(4)
    alone = torch.tensor(one.contribute(1)) / 8
    together = sum(torch.tensor(copied.contribute(1)) for copied in several) / 24
    assert torch.equal(alone, together)
    for copied in several:
        copied.flat -= together
        copied.copy.load(1, False)
        assert copied.tensors[0].tolist() == one.tensors[0].tolist()


def test_a_state_of_others_drops_what_was_changed_here():
    for overlaps in (False, True):
        copied = Copied(overlaps)
        copied.step(4)
        copied.contribute(1)
        copied.step(4)
        copied.flat.fill_(3.0)
        copied.copy.load(7, True)
        assert copied.value() == 3.0
        copied.step(2)
        assert copied.contribute(8)[2] == -2


def test_inside_committed_the_model_has_the_runs_parameters():
    copied = Copied(False)
    copied.step(4)
    with copied.copy.committed():
        assert copied.value() == 0.0
    assert copied.value() == 1.0


def test_a_change_that_is_not_finite_is_named():
    copied = Copied(False)
    copied.step(1)
    copied.tensors[1][0] = float("nan")
    with pytest.raises(tradewind.MisuseError, match="t1 is not finite"):
        copied.contribute(1)


def test_before_the_start_committed_is_the_model_as_it_is(fake_run):
    model = mlp()
    run = fake_run(mode="streaming")
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with run.committed(), run.paused("looking"):
        assert_close(model, mlp())


def test_an_optimizer_that_needs_a_closure_is_refused(fake_run):
    model = mlp()
    run = fake_run(mode="local", target_batch_size=8)
    opt = run.optimizer(model, torch.optim.LBFGS(model.parameters()), batch_size=8)
    with pytest.raises(tradewind.UnsupportedError, match="LBFGS"):
        opt.step()


def test_what_a_mode_cannot_honour_is_refused_by_name(fake_run):
    model = mlp()
    refused = (({"engine": "tradewind"}, "leave it out"), ({"clip_grad_norm": 1.0}, "clip in the loop"))
    for options, named in refused:
        run = fake_run(mode="local")
        with pytest.raises(tradewind.SettingError, match=named):
            run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
        run.close()


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", MODES)
def test_one_peer_is_plain_training(mode):
    model = mlp()
    plain = copy.deepcopy(model)
    bare = torch.optim.AdamW(plain.parameters(), lr=1e-2)
    run = tradewind.join(mode=mode, rounds=25, target_batch_size=64, insecure=True, progress="off")
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2), batch_size=8)
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(one, T_max=200) for one in (opt, bare)]
    with run:
        run.start()
        steps = 0
        while not run.finished:
            inputs, targets = data(8, seed=steps)
            for one, optimizer, scheduler in zip((model, plain), (opt, bare), schedulers):
                optimizer.zero_grad()
                loss_of(one, inputs, targets).backward()
                torch.nn.utils.clip_grad_norm_(one.parameters(), 0.5)
                optimizer.step()
                scheduler.step()
            steps += 1
    assert steps == 200 and run.round == 25
    assert_close(model, plain, rtol=1e-6, atol=1e-6)


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_peer_that_leaves_ends_with_parameters_of_the_run(mode, at_once):
    model = mlp()
    run = tradewind.join(mode=mode, rounds=100, target_batch_size=32, insecure=True, progress="off")
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    run.start()
    steps = 0
    while not run.finished:
        if steps == 14:
            run.leave(at_once=at_once)
        opt.zero_grad()
        loss_of(model, *data(8, seed=steps)).backward()
        opt.step()
        steps += 1
    run.close()
    with run.committed():
        committed = [parameter.detach().clone() for parameter in model.parameters()]
    assert 14 <= steps < 400
    assert all(torch.equal(mine, one) for mine, one in zip(model.parameters(), committed))


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("outer", ["mean", "nesterov"])
@pytest.mark.parametrize("mode", MODES)
def test_survivors_of_a_kill_and_a_joiner_end_alike(mode, outer):
    settings = {"mode": mode, "outer": outer, "codec": "int4" if outer == "mean" else "fp32"}
    with crew_of(target_batch_size=64, rounds=60, **settings) as crew:
        peers = [crew.start(loops.locally, wait_for=3, pause_s=0.005, seed=seed) for seed in (1, 2, 3)]
        peers[0].until_round(8)
        peers[2].kill()
        peers[0].until_round(16)
        joiner = crew.start(loops.locally, pause_s=0.005, seed=4)
        joiner.until_round(30)
        results = [peer.result() for peer in (*peers[:2], joiner)]
        assert results[0]["state"] == results[1]["state"] == results[2]["state"]
        assert results[0]["round"] == 60
        if outer == "mean":  # momentum over so few steps a round, one round late, swings
            assert results[0]["loss"] < 0.8 * results[0]["began"]
        assert all(result["apart"] > 0 for result in results), "inside a round each has a copy of its own"
