# SPDX-License-Identifier: Apache-2.0
"""Batches of the samples that the run gives."""

import os

import pytest
import torch
from models import data, loss_of, mlp
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from tradewind import MisuseError, TradewindError, UnsupportedError
from tradewind._workers import WorkerPool


class Numbers(torch.utils.data.Dataset):
    """Sample i is (i, the process that read it)."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.tensor([float(index)] * 4), os.getpid()


class Broken(Numbers):
    def __getitem__(self, index):
        raise KeyError(f"no sample {index}")


class Deadly(Numbers):
    def __getitem__(self, index):
        os._exit(7)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


def begun(fake_run, batch_size=None, **settings):
    model = mlp()
    run = fake_run(**{"target_batch_size": 8, "rounds": 2, **settings})
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=batch_size)
    return run, opt, model


def go_through(run, opt, model, source):
    batches = []
    for inputs, who in run.shard(source) if not hasattr(source, "__next__") else source:
        batches.append(([int(value) for value in inputs[:, 0]], set(who.tolist())))
        opt.zero_grad()
        model(inputs).sum().backward()
        opt.step()
    return batches


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.timeout(60)
def test_each_sample_once_an_epoch_and_batches_are_cut_to_the_round(fake_run, workers):
    run, opt, model = begun(fake_run)
    batches = go_through(run, opt, model, DataLoader(Numbers(), batch_size=3, num_workers=workers))
    assert [indices for indices, _ in batches] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7],
        [8, 9, 0],
        [1, 2, 3],
        [4, 5],
    ]
    readers = set.union(*(who for _, who in batches))
    assert (os.getpid() in readers) == (workers == 0) and len(readers) == max(1, workers)
    assert run.metrics["surplus"] == 0


class Many(Numbers):
    def __len__(self):
        return 256


def test_workers_read_the_samples_of_a_lease_ahead(fake_run, monkeypatch):
    """That of a round's beginning alone is not known ahead."""
    asked_before = []
    samples = WorkerPool.samples

    def spied(pool, indices, ahead=()):
        asked_before.append(all(index in pool._reader or index in pool._read for index in indices))
        return samples(pool, indices, ahead)

    monkeypatch.setattr(WorkerPool, "samples", spied)
    run, opt, model = begun(fake_run, target_batch_size=64, rounds=4)
    batches = go_through(run, opt, model, DataLoader(Many(), batch_size=8, num_workers=2))
    assert [index for indices, _ in batches for index in indices] == list(range(256))
    assert asked_before == ([False] + [True] * 7) * 4


def test_a_worker_reads_nothing_twice_and_forgets_what_is_not_wanted():
    pool = WorkerPool(list(range(100, 200)), 2)
    assert pool.samples([0, 1, 2], [3, 4, 5, 6]) == [100, 101, 102]
    assert pool.samples([3, 4, 3], [7]) == [103, 104, 103]
    assert pool.samples([9], []) == [109] and pool.samples([5, 6], []) == [105, 106]
    assert not pool._read
    pool.samples([7, 8])
    assert not pool._reader
    pool.close()


def test_a_sample_ahead_that_cannot_be_read_is_told_when_it_is_needed():
    pool = WorkerPool([0, 1, 2], 1)
    assert pool.samples([0, 1], [7]) == [0, 1]
    assert pool.samples([2]) == [2]
    with pytest.raises(TradewindError, match="(?s)could not read.*IndexError"):
        pool.samples([7])
    pool.close()


def test_collate_and_batch_size_of_a_data_set(fake_run):
    run, opt, model = begun(fake_run, rounds=1)
    sizes = []
    for inputs, targets in run.shard(
        TensorDataset(*data()),
        batch_size=5,
        collate_fn=lambda samples: [torch.stack(part) for part in zip(*samples)],
    ):
        sizes.append(len(inputs))
        loss_of(model, inputs, targets).backward()
        opt.step()
    assert sizes == [5, 3]


def test_a_loader_without_batches_needs_a_size(fake_run):
    run, opt, model = begun(fake_run)
    with pytest.raises(MisuseError, match="no batch size known.*batch_size="):
        run.shard(DataLoader(Numbers(), batch_size=None))
    assert run.shard(DataLoader(Numbers(), batch_size=None), batch_size=4)


def test_an_iterable_data_set_is_refused(fake_run):
    run, _, _ = begun(fake_run)
    for source in (Stream(), DataLoader(Stream(), batch_size=2), iter([])):
        with pytest.raises(UnsupportedError, match="iterable.*run.batches"):
            run.shard(source, batch_size=2)


def test_a_batch_that_is_not_handed_in_is_an_error(fake_run):
    run, opt, model = begun(fake_run)
    with pytest.raises(
        MisuseError, match=r"3 samples from sample 0 on, of round 1, was not handed in.*run.skip\(\)"
    ):
        for _ in run.shard(Numbers(), batch_size=3):
            pass


def test_a_skipped_batch_counts_with_a_gradient_of_zero(fake_run):
    run, opt, model = begun(fake_run, rounds=1)
    for at, (inputs, _) in enumerate(run.shard(Numbers(), batch_size=4)):
        if at == 0:
            run.skip()
            continue
        model(inputs).sum().backward()
        opt.step()
    engine = fake_run.engines[0]
    assert [(weight, samples) for weight, samples, _, _ in engine.handed] == [(0.0, 4), (4.0, 4)]
    assert run.metrics["skipped"] == 1


def test_a_step_without_a_batch_is_an_error(fake_run):
    run, opt, model = begun(fake_run)
    for inputs, _ in run.shard(Numbers(), batch_size=3):
        model(inputs).sum().backward()
        with pytest.raises(MisuseError, match="batch of run.shard.. in hand has 3"):
            opt.step(samples=4)
        opt.step()
        with pytest.raises(MisuseError, match="step.. without a batch"):
            opt.step()
        break


def test_a_worker_that_fails_or_dies_is_told(fake_run):
    run, opt, model = begun(fake_run)
    with pytest.raises(TradewindError, match="worker could not read.*no sample 0|KeyError"):
        next(iter(run.shard(Broken(), batch_size=2, num_workers=1)))
    run, opt, model = begun_anew(fake_run, run)
    with pytest.raises(TradewindError, match=r"worker 0 of the data set ended \(exit code 7\)"):
        next(iter(run.shard(Deadly(), batch_size=2, num_workers=1)))
    run, opt, model = begun_anew(fake_run, run)
    with pytest.raises(KeyError):
        next(iter(run.shard(Broken(), batch_size=2)))


def begun_anew(fake_run, before):
    before.close()
    return begun(fake_run)


def test_workers_see_the_loaders_initial_call(fake_run, tmp_path):
    run, opt, model = begun(fake_run)

    def initial(number):
        (tmp_path / str(number)).touch()

    next(iter(run.shard(DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=initial))))
    assert {path.name for path in tmp_path.iterdir()} <= {"0", "1"} and any(tmp_path.iterdir())


@pytest.mark.parametrize("how", ["step", "closure", "skip"])
def test_a_batch_of_an_order_that_others_got_meanwhile_does_not_count(fake_run, how):
    run, opt, model = begun(fake_run, rounds=1)
    sizes = []
    for at, (inputs, _) in enumerate(run.shard(Numbers(), batch_size=4)):
        sizes.append(len(inputs))
        opt.zero_grad()
        model(inputs).sum().backward()
        if at == 0:
            with run.paused("evaluating"):
                engine = fake_run.engines[0]
                engine.order = engine.order._replace(first=4)
        if at == 0 and how == "skip":
            run.skip()
        else:
            opt.step((lambda: model(inputs).sum()) if how == "closure" else None)
    assert sizes == [4, 4, 4] and len(fake_run.engines[0].handed) == 2
    assert run.metrics["skipped" if how == "skip" else "dropped"] == 1
