# SPDX-License-Identifier: Apache-2.0
"""The modes local and streaming: the loop's own optimizer steps, and what it changed is averaged."""

import copy
import warnings

import loops
import pytest
import torch
import tradewind
from conftest import needs_engine
from crew import crew_of
from models import assert_close, data, loss_of, mlp, with_batch_norm
from tradewind.model.layout import Entry
from tradewind.model.local import CopyOptions, OwnCopy

MODES = ("local", "streaming")


WHOLE = ((0, 7),)
HALVES = ((0, 5), (5, 2))  # the second parameter is in both


class Copied:
    """Two parameters of two values and a buffer of one, all in one vector after two other values."""

    def __init__(self, overlaps, fragments=WHOLE):
        sizes = (2, 2, 1)
        firsts = (2, 4, 6)
        self.tensors = [torch.zeros(size) for size in sizes]
        self.flat = torch.zeros(7)
        entries = [Entry(f"t{at}", t, firsts[at], sizes[at]) for at, t in enumerate(self.tensors)]
        self.fragments = fragments
        options = CopyOptions(self.fragment, overlaps)
        self.copy = OwnCopy(entries, firsts[2], lambda: self.tensors, self.flat, options)
        self.copy.load(0, True)

    def fragment(self, round_):
        return self.fragments[round_ % len(self.fragments)]

    def step(self, samples, by=1.0):
        self.copy.begin_step()
        for tensor in self.tensors:
            tensor += by
        self.copy.samples += samples

    def contribute(self, round_):
        total = torch.zeros(self.fragment(round_)[1])
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
    assert copied.contribute(1) == [0, 0, -16, -16, -16, -16, 16]
    copied.update(1, 1.5)
    assert copied.value() == 1.5
    copied.step(2)
    assert copied.contribute(2) == [0, 0, -2, -2, -2, -2, 2]


def test_two_contributions_to_a_round_are_all_samples_times_the_whole_change():
    copied = Copied(False)
    copied.step(4)
    first = copied.contribute(1)
    copied.step(2, 3.0)
    second = copied.contribute(1)
    assert [a + b for a, b in zip(first, second)] == [0, 0, -24, -24, -24, -24, 24]
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
    assert [a + b for a, b in zip(first, second)] == [0, 0, -10, -10, -10, -10, 10]
    late = Copied(True)
    late.step(8)
    late.contribute(1)
    late.copy.samples += 2
    assert late.contribute(2) == [0, 0, 0, 0, 0, 0, 0]


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


def of(copied):
    """The model's values, as they lie in the vector."""
    return torch.cat([torch.zeros(2), *copied.tensors])


def test_a_fragment_gets_the_change_since_its_last_turn():
    copied = Copied(True, HALVES)
    copied.step(4)
    assert copied.contribute(1) == [-4, 4]  # the second half of the second parameter, and the buffer
    copied.step(2)
    assert copied.contribute(2) == [0, 0, -4, -4, -4]  # two steps, of 2 samples
    copied.flat[5:] += 10
    copied.copy.load(1, False)
    # The step since the turn of the second half is still the copy's own.
    assert of(copied).tolist() == [0, 0, 2, 2, 2, 11, 11]
    copied.step(2)
    assert copied.contribute(3) == [-4, 4]


@pytest.mark.parametrize("fragments", [WHOLE, HALVES, ((0, 3), (3, 2), (5, 2))])
def test_each_step_of_each_peer_is_in_one_contribution_and_stays_in_its_copy_until_it_is_applied(fragments):
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        peers = [Copied(True, fragments) for _ in range(2)]
        made = [torch.zeros(7) for _ in peers]  # all steps
        applied = [torch.zeros(7) for _ in peers]  # of them, in P
        late = None
        for round_ in range(1, 12):
            first, count = peers[0].fragment(round_)
            total = torch.zeros(count)
            mine = []
            for copied, steps in zip(peers, made):
                for _ in range(int(torch.randint(1, 4, (1,), generator=generator))):
                    by = torch.randint(-4, 5, (5,), generator=generator).float()
                    copied.copy.begin_step()
                    for tensor, change in zip(copied.tensors, by.split([2, 2, 1])):
                        tensor += change
                    steps[2:] += by
                copied.copy.samples += 1
                copied.copy.contribute(round_, total)
                mine.append(steps[first : first + count].clone())
            if late is not None:
                of_round, mean, theirs = late
                at, size = peers[0].fragment(of_round)
                for copied, done, steps in zip(peers, applied, theirs):
                    copied.flat[at : at + size] += mean
                    copied.copy.load(of_round, False)
                    done[at : at + size] = steps
            signs = torch.tensor([-1.0] * 6 + [1.0])[first : first + count]
            late = (round_, signs * total / 2, mine)
            for copied, steps, done in zip(peers, made, applied):
                assert torch.equal(of(copied)[2:], (copied.flat + steps - done)[2:]), (seed, round_)
            assert torch.equal(peers[0].flat, (applied[0] + applied[1]) / 2), (seed, round_)


@pytest.mark.parametrize("fragments", [((0, 4),), ((0, 2), (2, 2))])
def test_what_a_coarse_dtype_rounds_is_in_no_contribution(fragments):
    tensor = torch.ones(4, dtype=torch.bfloat16)
    flat = torch.ones(4) + 2.0**-10  # less than half a step of bfloat16 at 1
    options = CopyOptions(lambda round_: fragments[round_ % len(fragments)], True)
    copied = OwnCopy([Entry("t", tensor, 0, 4)], 4, lambda: [tensor], flat, options)
    copied.load(0, True)
    for round_ in range(1, 8):
        copied.begin_step()
        copied.samples += 1
        total = torch.zeros(fragments[round_ % len(fragments)][1])
        copied.contribute(round_, total)
        assert total.tolist() == [0.0] * len(total), round_
        copied.load(round_ - 1, False)


def test_a_tensor_in_another_memory_format_gets_its_part():
    rows = torch.arange(16.0).reshape(1, 4, 2, 2)
    tensor = rows.clone(memory_format=torch.channels_last)
    flat = rows.flatten().clone()
    options = CopyOptions(lambda round_: ((0, 6), (6, 10))[round_ % 2], True)
    copied = OwnCopy([Entry("t", tensor, 0, 16)], 16, lambda: [tensor], flat, options)
    copied.load(0, True)
    flat[6:] += 1
    copied.load(1, False)
    assert torch.equal(tensor.flatten(), flat) and not tensor.is_contiguous()


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


def to_one(model):
    with torch.no_grad():
        model[0].weight.fill_(1.0)


def there_and_back(model):
    before = model[0].weight.detach().clone()
    to_one(model)
    model[0].weight.data.copy_(before)


def statistics(model):
    model[1].running_mean.add_(1.0)


@pytest.mark.parametrize("change,count", [(to_one, 1), (there_and_back, 0), (statistics, 0)])
def test_weights_that_are_changed_in_the_runs_parameters_are_told_as_dropped(fake_run, change, count):
    model = with_batch_norm()
    run = fake_run(mode="local", target_batch_size=8)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    run.start()
    before = copy.deepcopy(model.state_dict())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for context in (run.committed(), run.paused("looking"), run.committed()):
            with context:
                change(model)
    texts = [str(one.message) for one in caught]
    assert len(texts) == count and all(
        "0.weight was changed in run.committed() or run.paused(): with mode=local" in text for text in texts
    )
    assert all(one.filename == __file__ for one in caught)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


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
    # With more fragments, what the last steps changed in the others is in no round.
    settings = {"fragments": 1} if mode == "streaming" else {}
    run = tradewind.join(
        mode=mode, rounds=25, target_batch_size=64, insecure=True, progress="off", **settings
    )
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


def six_rounds_alone(mode):
    model = mlp()
    run = tradewind.join(mode=mode, rounds=6, target_batch_size=8, insecure=True, progress="off")
    return model, run, run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1e-2), batch_size=8)


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", ["sync", "delayed", *MODES])
def test_a_lone_peer_is_the_first_from_the_start_on_and_keeps_what_is_loaded_after_the_last(mode):
    model, run, opt = six_rounds_alone(mode)
    with run:
        run.start()
        seen = [(run.is_first, run.peers)]
        while not run.finished:
            loss_of(model, *data(8)).backward()
            if opt.step():
                seen.append((run.is_first, run.peers))
            opt.zero_grad()
        best = {name: torch.full_like(value, 7) for name, value in model.state_dict().items()}
        model.load_state_dict(best)
    assert seen and set(seen) == {(True, 1)}
    assert all(torch.equal(value, best[name]) for name, value in model.state_dict().items())


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("changes", [False, True])
def test_weights_that_after_round_changes_are_told_as_dropped(mode, changes):
    model, run, opt = six_rounds_alone(mode)

    def after_round():
        if changes:
            model[0].weight.data.fill_(7)

    run.extra_state(dict, lambda _: None, after_round=after_round)
    with run, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while not run.finished:
            loss_of(model, *data(8)).backward()
            opt.step()
            opt.zero_grad()
    told = [str(one.message) for one in caught if "0.weight was changed in after_round=" in str(one.message)]
    assert len(told) == int(changes)


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
@pytest.mark.parametrize("mode", MODES)
def test_a_last_step_with_more_samples_than_its_round_leaves_the_runs_parameters(mode):
    model = mlp()
    run = tradewind.join(mode=mode, rounds=1, target_batch_size=12, insecure=True, progress="off")
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    while not run.finished:
        opt.zero_grad()
        loss_of(model, *data(8)).backward()
        opt.step()
    model.load_state_dict({name: torch.full_like(value, 7) for name, value in model.state_dict().items()})
    run.close()
    assert run.metrics["surplus"] == 4
    assert all(bool((value == 7).all()) for value in model.state_dict().values())


@needs_engine
@pytest.mark.timeout(100)
@pytest.mark.parametrize("mode", MODES)
def test_a_peer_that_waits_until_it_has_left_has_the_runs_parameters_and_keeps_what_is_loaded_then(mode):
    model = mlp()
    run = tradewind.join(mode=mode, rounds=100, target_batch_size=32, insecure=True, progress="off")
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    heard = []
    run.on_event(heard.append)
    for seed in range(6):  # the last two steps are in no round
        opt.zero_grad()
        loss_of(model, *data(8, seed=seed)).backward()
        opt.step()
    run.leave(wait=True)
    left = {name: value.clone() for name, value in model.state_dict().items()}
    with run.committed():
        assert all(torch.equal(value, left[name]) for name, value in model.state_dict().items())
    told = len(heard)
    model.load_state_dict({name: torch.full_like(value, 7) for name, value in left.items()})
    run.close()
    assert all(bool((value == 7).all()) for value in model.state_dict().values())
    assert run.ending == "left" and told and len(heard) == told


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
