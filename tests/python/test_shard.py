# SPDX-License-Identifier: Apache-2.0
"""Batches of the samples that the run gives."""

import multiprocessing
import os
import resource
import time
import warnings

import pytest
import torch
from models import data, loss_of, mlp
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)
from tradewind import MisuseError, TradewindError, TradewindWarning, UnsupportedError
from tradewind.data.workers import WorkerPool, _packed


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


class Lengthless(torch.utils.data.Dataset):
    """Its sampler alone knows its samples."""

    def __getitem__(self, index):
        return torch.tensor([float(index)] * 4), os.getpid()


class Unsaid(Lengthless):
    def __len__(self):
        raise NotImplementedError


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


@pytest.mark.parametrize("data", [Lengthless(), Unsaid(), Subset(Lengthless(), range(8))])
@pytest.mark.parametrize("sampler", [range(8), SequentialSampler(range(8)), RandomSampler(range(8))])
def test_a_sampler_stands_for_the_length_of_a_data_set(fake_run, data, sampler):
    batches = go_through(*begun(fake_run), DataLoader(data, batch_size=4, sampler=sampler))
    indices = [index for found, _ in batches for index in found]
    assert sorted(indices[:8]) == sorted(indices[8:]) == [*range(8)]


@pytest.mark.parametrize("data", [Lengthless(), Unsaid()])
def test_a_data_set_without_a_length_and_a_sampler_is_refused(fake_run, data):
    with pytest.raises(UnsupportedError, match="no length; give the DataLoader a sampler"):
        fake_run().shard(data, batch_size=4)


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


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.01)
        return super().__getitem__(index)


@pytest.mark.parametrize("style", ["shard", "batches"])
def test_the_engine_hears_how_long_the_loop_waited_for_data(fake_run, style):
    run, opt, model = begun(fake_run)
    loader = DataLoader(Slow(), batch_size=4)
    for inputs, _ in run.shard(loader) if style == "shard" else run.batches(loader, distinct=True):
        opt.zero_grad()
        model(inputs).sum().backward()
        opt.step()
    assert 16 * 0.01 <= fake_run.engines[0].data_s < 2


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


def test_a_sample_ahead_that_cannot_be_read_spoils_no_other():
    pool = WorkerPool([0, 1, 2, 3], 1)
    assert pool.samples([0, 1, 2], [3, 7, 3]) == [0, 1, 2]
    assert pool.samples([3]) == [3]
    assert pool.samples([1], [2]) == [1] and pool.samples([2, 0]) == [2, 0]
    with pytest.raises(TradewindError, match="(?s)could not read.*IndexError"):
        pool.samples([7, 3])
    assert pool.samples([3]) == [3] and not pool._read and not pool._reader
    pool.close()


class FourTensors(Numbers):
    def __getitem__(self, index):
        return tuple(torch.full((3,), float(index + at)) for at in range(4))


def with_few_descriptors(results):
    most = len(os.listdir("/proc/self/fd")) + 60
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    pool = WorkerPool(FourTensors(), 1)
    kept = [pool.samples(range(64), range(64, 192)), pool.samples(range(64, 128), range(128, 192))]
    pool.close()
    results.send([[float(sample[3][0]) for sample in batch] for batch in kept])


@pytest.mark.timeout(60)
def test_samples_of_workers_need_no_descriptors():
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=with_few_descriptors, args=(theirs,))
    child.start()
    theirs.close()
    assert ours.recv() == [
        [index + 3.0 for index in range(64)],
        [index + 3.0 for index in range(64, 128)],
    ]
    child.join()
    assert child.exitcode == 0


TENSORS = [
    torch.arange(6.0).reshape(2, 3).t(),
    torch.arange(1000)[10],
    torch.zeros(0, 3),
    torch.tensor([True, False]),
    torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    torch.tensor([1 + 2j]).conj(),
    torch.tensor([1.0], requires_grad=True),
    torch.nn.Parameter(torch.ones(2)),
    torch.eye(2).to_sparse(),
    torch.ones((), dtype=torch.float16),
]


def test_all_kinds_of_tensors_come_from_a_worker_as_they_are():
    pool = WorkerPool(TENSORS, 1)
    for tensor, found in zip(TENSORS, pool.samples(range(len(TENSORS)))):
        assert type(found) is type(tensor) and found.dtype == tensor.dtype and found.shape == tensor.shape
        assert found.requires_grad == tensor.requires_grad and found.layout == tensor.layout
        assert torch.equal(found.to_dense().resolve_conj(), tensor.to_dense().resolve_conj())
    found.add_(1)
    pool.close()


def test_a_row_is_sent_without_the_rows_beside_it():
    rows = torch.zeros(1000, 1000)
    assert len(_packed((True, [rows[3]]))) < 5000


class Large(Numbers):
    def __getitem__(self, index):
        return torch.zeros(1 << 20) + index % 7


@pytest.mark.timeout(60)
def test_large_samples_and_large_requests_do_not_wait_for_each_other():
    """Each more than a pipe holds: a worker takes the request while the loop has not taken its answer."""
    pool = WorkerPool(Large(), 1)
    assert pool.samples([0], [1, 2, 3])[0][0] == 0
    pool._ask(range(4, 300_000))
    assert pool.samples([3, 1], [])[0][0] == 3
    for process in pool._processes:
        process.kill()
    pool.close()


class NotToPack(Numbers):
    def __getitem__(self, index):
        return lambda: index


def test_what_cannot_be_sent_is_told_with_its_trace():
    pool = WorkerPool(NotToPack(), 1)
    with pytest.raises(TradewindError, match="(?s)could not read a sample.*Traceback.*pickle.*NotToPack"):
        pool.samples([0])
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


def test_the_loop_says_before_each_step_how_many_batches_it_has(fake_run):
    run, model = fake_run(target_batch_size=12, rounds=2), mlp()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    asked, batches = [], 0

    def accumulate():
        asked.append(1 + len(asked) % 2)  # one batch, then two
        return asked[-1]

    dataset = TensorDataset(*data(40))
    for inputs, targets in run.shard(dataset, batch_size=4, accumulate=accumulate):
        loss_of(model, inputs, targets).backward()
        batches += 1
        if batches % 3 != 2:
            opt.step()
            opt.zero_grad()
    assert batches == sum(asked[:-1]) and run.samples == 24
    with pytest.raises(MisuseError, match="accumulate='4': expected a whole number"):
        run.shard(dataset, batch_size=4, accumulate="4")


@pytest.mark.parametrize("several", [0, -1, 2.0, "2", None])
def test_a_function_that_tells_no_number_of_batches_is_named(fake_run, several):
    run, _, _ = begun(fake_run)
    shard = run.shard(TensorDataset(*data(40)), batch_size=4, accumulate=lambda: several)
    with pytest.raises(MisuseError, match=r"accumulate\(\)=.*: expected a whole number from 1"):
        next(iter(shard))


def test_a_larger_data_set_of_a_curriculum_is_drawn_from_and_told_by_the_engine_alone(fake_run):
    run, opt, model = begun(fake_run, rounds=4)

    def train(size, rounds):
        for inputs, targets in run.shard(TensorDataset(*data(size)), batch_size=4):
            loss_of(model, inputs, targets).backward()
            opt.step()
            opt.zero_grad()
            if run.round == rounds:
                break

    with warnings.catch_warnings():
        warnings.simplefilter("error", TradewindWarning)
        train(16, 2)
        train(40, 4)
        with pytest.raises(TradewindWarning, match="after the start: peers did not compare this data"):
            run.shard(TensorDataset(torch.zeros(40, 1)), batch_size=4)
    assert run.round == 4


def test_the_name_of_a_file_is_no_data_set(fake_run):
    run, _, _ = begun(fake_run)
    with pytest.raises(MisuseError, match=r"'train.twi': expected a data set.*tradewind.data.shards\(PATH\)"):
        run.shard("train.twi", batch_size=2)


def test_a_batch_that_is_not_handed_in_is_an_error(fake_run):
    run, opt, model = begun(fake_run)
    with pytest.raises(
        MisuseError, match=r"3 samples from sample 0 on, of round 1, was not handed in.*run.skip\(\)"
    ):
        for _ in run.shard(Numbers(), batch_size=3):
            pass


def test_a_loop_that_steps_the_optimizer_inside_is_named(fake_run):
    model = mlp()
    run, inner = fake_run(target_batch_size=8, rounds=2), torch.optim.SGD(model.parameters(), lr=0.1)
    run.optimizer(model, inner)
    with pytest.raises(MisuseError, match="not handed in: 0.weight has changed, so the loop may step"):
        for inputs, targets in run.shard(TensorDataset(*data()), batch_size=4):
            loss_of(model, inputs, targets).backward()
            inner.step()


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
            found = opt.step((lambda: model(inputs).sum()) if how == "closure" else None)
            assert (found == model(inputs).sum() or at) if how == "closure" else isinstance(found, bool)
    assert sizes == [4, 4, 4] and len(fake_run.engines[0].handed) == 2
    assert run.metrics["skipped" if how == "skip" else "dropped"] == 1


@pytest.mark.parametrize("others", [0, 4])
def test_a_batch_whose_order_is_taken_back_counts_where_no_other_peer_got_it(fake_run, others):
    run, opt, model = begun(fake_run, rounds=1)
    for at, (inputs, _) in enumerate(run.shard(Numbers(), batch_size=4)):
        model(inputs).sum().backward()
        if at == 0:
            engine = fake_run.engines[0]
            engine.stale_next, engine.counted = True, others
        opt.step()
    assert run.samples == 8 and len(engine.handed) == 2 - others // 4
    assert run.metrics["dropped"] == others // 4
