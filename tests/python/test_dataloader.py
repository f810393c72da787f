# SPDX-License-Identifier: Apache-2.0
"""What becomes of each argument of a DataLoader in run.shard(), as docs/python.md lists them; torch's own
loader is the judge.
"""

import itertools
import random
import time
import warnings
from collections import Counter

import numpy
import pytest
import torch
import tradewind
from conftest import needs_engine
from models import mlp
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    get_worker_info,
)
from tradewind import MisuseError, TradewindError, TradewindWarning, UnsupportedError
from tradewind.data import samples
from tradewind.data.order import Drawn, Shuffled, order_of


class Numbered(Dataset):
    def __init__(self, size=64):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.tensor([float(index)] * 4), index


class Drawing(Numbered):
    """What a worker draws, and who it is."""

    def __getitem__(self, index):
        info = get_worker_info()
        who = (info.id, info.num_workers, info.seed, len(info.dataset)) if info is not None else (-1,) * 4
        draws = (numpy.random.randint(1 << 30), random.getrandbits(30), int(torch.randint(1 << 30, ())))
        return torch.zeros(4), torch.tensor(draws), torch.tensor(who)


def trained(fake_run, source, take=lambda batch: [int(number) for number in batch[1]], **settings):
    """take(batch) of each batch of a run over a data set or a DataLoader."""
    model = mlp()
    run = fake_run(**{"target_batch_size": 16, "rounds": 4, **settings})
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    taken = []
    for batch in run.shard(source):
        taken.append(take(batch))
        opt.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
    run.close()
    return taken


def flat(batches):
    return [number for batch in batches for number in batch]


def test_batch_size_is_that_of_the_batches(fake_run):
    assert [len(batch) for batch in trained(fake_run, DataLoader(Numbered(), batch_size=8))] == [8] * 8


def test_a_batch_size_of_run_optimizer_does_not_go_before_the_loaders(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=16)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=2)
    assert len(next(iter(run.shard(DataLoader(Numbered(), batch_size=8))))[1]) == 8


def test_shuffle_false_is_the_order_of_the_data(monkeypatch, fake_run):
    loader = DataLoader(Numbered(), batch_size=8)
    assert order_of(loader.dataset, 1, loader.sampler, 1).block == 64  # one block: nothing is permuted
    assert flat(trained(fake_run, loader)) == list(range(64))


@pytest.mark.parametrize("block", [1, 4])
def test_shuffle_is_the_order_of_the_run(block):
    loader = DataLoader(Numbered(), batch_size=8, shuffle=True)
    order = order_of(loader.dataset, block, loader.sampler, 1)
    assert type(order) is Shuffled and order.block == block


def test_a_subset_is_a_data_set(fake_run):
    loader = DataLoader(Subset(Numbered(), range(32, 48)), batch_size=8)
    assert sorted(flat(trained(fake_run, loader, rounds=1))) == list(range(32, 48))


def test_a_sampler_that_chooses_a_subset_is_followed(fake_run):
    loader = DataLoader(Numbered(), batch_size=8, sampler=SubsetRandomSampler(range(32, 64)))
    seen = flat(trained(fake_run, loader))
    first, second = seen[:32], seen[32:]
    assert sorted(first) == sorted(second) == list(range(32, 64)) and first != second


def test_weights_of_a_sampler_are_followed(fake_run):
    weights = [0.0] * 32 + [1.0] * 16 + [3.0] * 16
    loader = DataLoader(Numbered(), batch_size=8, sampler=WeightedRandomSampler(weights, 4000))
    counts = Counter(flat(trained(fake_run, loader, target_batch_size=400, rounds=10)))
    assert sum(counts.values()) == 4000 and min(counts) >= 32
    heavy = sum(count for number, count in counts.items() if number >= 48)
    assert 2850 < heavy < 3150


class Backwards(torch.utils.data.Sampler):
    def __init__(self, size):
        self.size, self.epoch = size, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.size

    def __iter__(self):
        return (numpy.int64(at + 10 * self.epoch) for at in reversed(range(self.size)))


def test_a_sampler_of_a_users_own_is_followed_epoch_after_epoch(fake_run):
    loader = DataLoader(Numbered(), batch_size=8, sampler=Backwards(32))
    assert flat(trained(fake_run, loader)) == [*range(31, -1, -1), *range(41, 9, -1)]


class Noisy(Backwards):
    """Draws from all generators that a sampler may use."""

    def __iter__(self):
        draws = [torch.randperm(64), numpy.random.permutation(64), random.sample(range(64), 64)]
        return (int(draws[at % 3][at]) for at in range(self.size))


def test_all_peers_draw_the_same_and_nobody_elses_numbers_change():
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    expected = (float(torch.rand(())), numpy.random.rand(), random.random())
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    one = Drawn(Noisy(60), 7)
    first = one.indices(range(120))
    assert (float(torch.rand(())), numpy.random.rand(), random.random()) == expected
    other = Drawn(Noisy(60), 7)
    assert other.indices(range(60, 120)) == first[60:] and other.fact == one.fact
    assert other.indices(range(60)) == first[:60] != first[60:]
    assert Drawn(Noisy(60), 8).fact != one.fact


def test_a_sampler_with_a_generator_of_its_own_draws_the_same_on_all_peers():
    draws = []
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(seed)
        sampler = WeightedRandomSampler([1.0] * 48, 64, generator=generator)
        state = sampler.generator.get_state()
        draws.append(order_of(Numbered(48), 1, sampler, 5).indices(range(64)))
        assert torch.equal(sampler.generator.get_state(), state)
    assert draws[0] == draws[1] and len(set(draws[0])) < 64


def test_draws_without_end_take_no_memory(fake_run):
    sampler = RandomSampler(Numbered(), replacement=True, num_samples=10**10)
    seen = flat(trained(fake_run, DataLoader(Numbered(), batch_size=8, sampler=sampler), rounds=100))
    counts = Counter(seen)
    assert len(seen) == 1600 and len(counts) == 64 and 8 < min(counts.values()) and max(counts.values()) < 45


class Endless(Backwards):
    def __iter__(self):
        while True:
            yield 1


def test_a_sampler_without_end_is_refused_by_name(fake_run, monkeypatch):
    monkeypatch.setattr("tradewind.data.order._MOST_DRAWN", 1000)
    with pytest.raises(UnsupportedError, match="Endless gives more than 1000 samples.*run.batches"):
        trained(fake_run, DataLoader(Numbered(), batch_size=8, sampler=Endless(64)))


class Shrinking(Backwards):
    def __iter__(self):
        return iter(range(self.size - self.epoch))


def test_a_sampler_whose_epochs_differ_in_size_is_refused(fake_run):
    with pytest.raises(UnsupportedError, match="Shrinking gave 20 samples.*and 19 in epoch 2.*run.batches"):
        trained(fake_run, DataLoader(Numbered(), batch_size=8, sampler=Shrinking(20)))


def test_a_distributed_sampler_is_refused_by_name(fake_run):
    sampler = DistributedSampler(Numbered(), num_replicas=2, rank=0)
    with pytest.raises(UnsupportedError, match="DistributedSampler takes one of 2 parts.*leave the sampler"):
        trained(fake_run, DataLoader(Numbered(), batch_size=8, sampler=sampler))
    fake_run.runs[-1].close()
    sampler = DistributedSampler(Numbered(), num_replicas=1, rank=0)
    seen = flat(trained(fake_run, DataLoader(Numbered(), batch_size=8, sampler=sampler)))
    assert sorted(seen) == list(range(64))


def pairs(samples):
    return torch.stack([one for one, _ in samples]), [number + 1000 for _, number in samples]


def test_a_batch_sampler_keeps_collate_fn_and_size(fake_run):
    batches = BatchSampler(SequentialSampler(Numbered()), 8, False)
    loader = DataLoader(Numbered(), batch_sampler=batches, collate_fn=pairs)
    assert trained(fake_run, loader, rounds=1) == [[*range(1000, 1008)], [*range(1008, 1016)]]


def test_a_batch_sampler_of_a_users_own_is_refused_by_name(fake_run):
    class Buckets(BatchSampler):
        def __iter__(self):
            return reversed(list(super().__iter__()))

    loader = DataLoader(Numbered(), batch_sampler=Buckets(SequentialSampler(Numbered()), 8, False))
    with pytest.raises(UnsupportedError, match="batch_sampler=Buckets.*run.batches"):
        trained(fake_run, loader)


def test_a_batch_sampler_that_goes_through_batches_as_torchs_counts_as_that(fake_run):
    class Seeded(BatchSampler):
        """As the usual one of sentence-transformers."""

        def set_epoch(self, epoch):
            self.epoch = epoch

    loader = DataLoader(Numbered(), batch_sampler=Seeded(SequentialSampler(Numbered()), 8, False))
    assert trained(fake_run, loader, rounds=1) == [[*range(8)], [*range(8, 16)]]


def test_torchdatas_samplers_count_as_torchs(fake_run):
    """StatefulDataLoader makes batches with subclasses of its own that can go on where they were."""

    def of_torchdata(kind):
        return type(kind.__name__, (kind,), {"__module__": "torchdata.stateful_dataloader.sampler"})

    batches = of_torchdata(BatchSampler)(of_torchdata(RandomSampler)(Numbered()), 8, False)
    seen = flat(trained(fake_run, DataLoader(Numbered(), batch_sampler=batches)))
    assert sorted(seen) == list(range(64))


def test_collate_fn_of_single_samples_is_refused_by_name(fake_run):
    run = fake_run(target_batch_size=16)
    model = mlp()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(UnsupportedError, match="batch_size=None takes one sample.*collate_fn="):
        run.shard(DataLoader(Numbered(), batch_size=None, collate_fn=pairs), batch_size=4)


@pytest.mark.timeout(60)
def test_workers_know_who_they_are_and_draw_what_those_of_torch_draw(fake_run):
    """One round is one batch for each worker, so both loaders read the same samples in them."""

    def seen(batches):
        return sorted(tuple(row) for draws, who in batches for row in torch.cat([draws, who], 1).tolist())

    def loader():
        return DataLoader(Drawing(8), batch_size=4, num_workers=2)

    torch.manual_seed(5)
    plain = seen([(draws, who) for _, draws, who in loader()])
    torch.manual_seed(5)
    model = mlp()
    torch.manual_seed(5)
    run = fake_run(target_batch_size=8, rounds=1)
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    torch.manual_seed(5)
    _, draws, who = next(iter(run.shard(loader(), batch_size=8)))
    assert seen([(draws, who)]) == plain and len({row[0] for row in plain}) == 8


def test_without_workers_there_is_no_worker_info(fake_run):
    who = trained(fake_run, DataLoader(Drawing(), batch_size=8), take=lambda batch: batch[2].tolist())
    assert who[0][0] == [-1] * 4


class InitialFails:
    def __call__(self, number):
        raise KeyError(f"no device for worker {number}")


@pytest.mark.timeout(60)
def test_what_worker_init_fn_raises_is_raised(fake_run):
    loader = DataLoader(Numbered(), batch_size=8, num_workers=1, worker_init_fn=InitialFails())
    with pytest.raises(TradewindError, match="(?s)Traceback.*no device for worker 0"):
        trained(fake_run, loader)


class Slow(Numbered):
    def __getitem__(self, index):
        time.sleep(30)


@pytest.mark.timeout(60)
def test_timeout_is_an_error_that_names_it(fake_run):
    loader = DataLoader(Slow(), batch_size=8, num_workers=1, timeout=0.2)
    with pytest.raises(TradewindError, match="worker 0 of the data set gave no samples for 0.2 s, the time"):
        trained(fake_run, loader)


class Started(Numbered):
    def __getitem__(self, index):
        return torch.zeros(4), "spawn" if "spawn_main" in " ".join(map(str, [*_command()])) else "fork"


def _command():
    with open("/proc/self/cmdline") as command:
        return command.read().split("\0")


@pytest.mark.timeout(100)
def test_multiprocessing_context_starts_the_workers(fake_run):
    loader = DataLoader(Started(), batch_size=8, num_workers=1, multiprocessing_context="spawn")
    assert set(flat(trained(fake_run, loader, take=lambda batch: list(batch[1]), rounds=1))) == {"spawn"}


@pytest.mark.timeout(60)
def test_generator_gives_the_seed_of_the_workers(fake_run):
    def draws(seed):
        generator = torch.Generator().manual_seed(seed)
        loader = DataLoader(Drawing(), batch_size=8, num_workers=1, generator=generator)
        return trained(fake_run, loader, take=lambda batch: batch[1].tolist(), rounds=1)

    assert draws(1) == draws(1) != draws(2)


def test_a_generator_that_does_not_give_the_order_is_told(fake_run):
    loader = DataLoader(Numbered(), batch_size=8, shuffle=True, generator=torch.Generator())
    with pytest.warns(UserWarning, match="generator= of the loader.*not the order.*training.seed"):
        trained(fake_run, loader)


class Counting(Numbered):
    reads = 0

    def __getitem__(self, index):
        Counting.reads += 1
        return torch.zeros(4), Counting.reads


@pytest.mark.timeout(60)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_a_sampler_gives_twice_is_read_twice(fake_run, workers):
    """As torch does: each time it is augmented in another way."""
    Counting.reads = 0
    loader = DataLoader(Counting(), batch_size=4, sampler=[5, 5, 5, 6] * 4, num_workers=workers)
    batches = trained(fake_run, loader, rounds=1)
    assert all(len(set(batch)) == 4 for batch in batches)


def test_prefetch_factor_is_how_many_batches_are_read_ahead(fake_run):
    run = fake_run()
    model = mlp()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    loader = DataLoader(Numbered(), batch_size=8, num_workers=2, prefetch_factor=3)
    assert run.shard(loader)._samples.prefetch == 2 * 3 * 8


@pytest.mark.timeout(60)
@pytest.mark.parametrize("persistent", [False, True])
def test_persistent_workers_outlive_a_loop(fake_run, persistent):
    run = fake_run(target_batch_size=64)
    model = mlp()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    loader = DataLoader(Numbered(), batch_size=8, num_workers=1, persistent_workers=persistent)
    shard = run.shard(loader)
    pools = []
    for _ in range(2):
        for _ in shard:
            model(torch.ones(2, 4)).sum().backward()
            opt.step()
            pools.append(shard._samples._pool)
            break
    assert (pools[0] is pools[1]) == persistent
    shard._samples.close()


def test_pin_memory_pins_what_goes_to_a_device(fake_run, monkeypatch):
    pinned = []
    monkeypatch.setattr(samples, "_has_device", lambda: True)
    monkeypatch.setattr(samples, "pin_memory", lambda batch, device: pinned.append(device) or batch)
    trained(fake_run, DataLoader(Numbered(), batch_size=16, pin_memory=True), rounds=1)
    loader = DataLoader(Numbered(), batch_size=16, pin_memory=True, pin_memory_device="xpu")
    trained(fake_run, loader, rounds=1)
    trained(fake_run, DataLoader(Numbered(), batch_size=16), rounds=1)
    assert pinned == [None, "xpu"]


def test_drop_last_fills_the_last_batch_of_a_round(fake_run):
    """The gradient counts as that of the samples that the round had left."""
    loader = DataLoader(Numbered(), batch_size=8, drop_last=True)
    batches = trained(fake_run, loader, target_batch_size=17, rounds=3)
    assert [len(batch) for batch in batches] == [8] * 9
    assert all(len(set(batch)) == 8 for batch in batches)
    assert [samples for _, samples, _, _ in fake_run.engines[0].handed] == [8, 8, 1] * 3
    assert fake_run.runs[0].metrics["surplus"] == 21
    counted = [number for at, batch in enumerate(batches) for number in batch[: 1 if at % 3 == 2 else 8]]
    assert counted == list(range(51))


def test_the_samples_that_fill_a_batch_are_the_same_on_all_peers_and_those_of_the_sampler(fake_run):
    def batches():
        sampler = SubsetRandomSampler(range(40, 50))
        loader = DataLoader(Numbered(), batch_size=8, sampler=sampler, drop_last=True)
        return trained(fake_run, loader, target_batch_size=9)

    one = batches()
    assert one == batches() and set(flat(one)) == set(range(40, 50))


def test_a_batch_is_filled_from_a_sampler_that_gives_few(fake_run):
    sampler = WeightedRandomSampler([1.0] * 3 + [0.0] * 61, 64)
    loader = DataLoader(Numbered(), batch_size=8, sampler=sampler, drop_last=True)
    batches = trained(fake_run, loader, target_batch_size=9)
    assert {len(batch) for batch in batches} == {8} and set(flat(batches)) == {0, 1, 2}


def test_drop_last_with_a_data_set_smaller_than_a_batch(fake_run):
    batches = trained(fake_run, DataLoader(Numbered(3), batch_size=8, drop_last=True), target_batch_size=2)
    assert [len(batch) for batch in batches] == [8] * 4


@pytest.mark.parametrize("way", ["__iter__", "_get_iterator"])
def test_a_loader_with_an_iterator_of_its_own_is_told(fake_run, way):
    def doubled(loader):
        return (batch for batch in getattr(DataLoader, way)(loader) for _ in range(2))

    doubling = type("Doubling", (DataLoader,), {way: doubled})
    with pytest.warns(UserWarning, match="Doubling goes through its batches by an iterator of its own"):
        trained(fake_run, doubling(Numbered(), batch_size=8))


def test_peers_compare_the_length_and_the_order_of_the_data(fake_run):
    def layout(source):
        trained(fake_run, source, rounds=1)
        return fake_run.engines[-1].shape.layout

    first = layout(DataLoader(Numbered(), batch_size=8))
    assert layout(DataLoader(Numbered(), batch_size=4)) == first
    assert "data: 64 samples, in order" in first
    for other in (
        DataLoader(Numbered(), batch_size=8, shuffle=True),
        DataLoader(Numbered(48), batch_size=8),
        DataLoader(Numbered(), batch_size=8, sampler=Backwards(64)),
    ):
        assert layout(other) != first


@pytest.mark.parametrize("samples,parts", [(8, [4, 4]), (7, [3, 4]), (1, [1, 1])])
def test_several_batches_make_a_step(fake_run, samples, parts):
    model = mlp()
    run = fake_run(target_batch_size=samples, rounds=2)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    sizes = []
    for at, (inputs, _) in enumerate(run.shard(DataLoader(Numbered(), batch_size=4), accumulate=2)):
        sizes.append(len(inputs))
        model(inputs).sum().backward()
        if at % 2:
            opt.step()
            opt.zero_grad()
    assert sizes == parts * 2
    assert [handed for _, handed, _, _ in fake_run.engines[0].handed] == [samples] * 2


def test_a_step_before_the_last_of_its_batches_counts_those_taken(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=1)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    seen = []
    for _ in range(2):
        for inputs, numbers in run.shard(DataLoader(Numbered(), batch_size=4), accumulate=2):
            seen += numbers.tolist()
            model(inputs).sum().backward()
            opt.step()
            break
    assert seen == [0, 1, 2, 3, 4, 5][: len(seen)]
    assert [handed for _, handed, _, _ in fake_run.engines[0].handed] == [4, 2]


@pytest.mark.timeout(60)
def test_workers_serve_several_batches_of_a_step(fake_run):
    loader = DataLoader(Numbered(), batch_size=4, num_workers=2)
    model = mlp()
    run = fake_run(target_batch_size=16, rounds=2)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    seen = []
    for at, (inputs, numbers) in enumerate(run.shard(loader, accumulate=2)):
        seen += numbers.tolist()
        model(inputs).sum().backward()
        if at % 2:
            opt.step()
            opt.zero_grad()
    assert seen == list(range(32))


def test_nothing_is_said_where_everything_is_honoured(fake_run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(fake_run, DataLoader(Numbered(), batch_size=8, shuffle=True))


class Seeded(Backwards):
    """Draws by generators of its own, one of them in a sampler inside."""

    def __init__(self, size):
        super().__init__(size)
        self.torchs = torch.Generator().manual_seed(0)
        self.numpys, self.pythons = numpy.random.default_rng(0), random.Random(0)
        self.inside = RandomSampler(range(size), generator=torch.Generator().manual_seed(0))

    def __iter__(self):
        draws = [torch.randperm(self.size, generator=self.torchs).tolist(), list(self.inside)]
        draws += [list(self.numpys.permutation(self.size)), self.pythons.sample(range(self.size), self.size)]
        return (int(draws[at % 4][at]) for at in range(self.size))


def test_generators_of_a_sampler_draw_the_same_whichever_epoch_is_asked_first():
    one, other = Drawn(Seeded(40), 7), Drawn(Seeded(40), 7)
    third = one.indices(range(80, 120))
    other.indices(range(80))
    assert other.indices(range(80, 120)) == third != other.indices(range(40))


class Drifting(Backwards):
    drawn = itertools.count()

    def __iter__(self):
        return iter([next(self.drawn) % 64 for _ in range(self.size)])


@pytest.mark.parametrize(
    "sampler, text",
    [
        (Drifting(8), "Drifting gives other samples when it is asked again"),
        ((at for at in range(8)), "is a generator, which cannot be gone through once an epoch"),
        (map(int, range(8)), "map gives other samples when it is asked again"),
        (BatchSampler(SequentialSampler(range(8)), 4, False), "BatchSampler gives several indices at once"),
    ],
)
def test_a_sampler_that_peers_cannot_follow_is_refused_by_name(fake_run, sampler, text):
    with pytest.raises(UnsupportedError, match=text):
        trained(fake_run, DataLoader(Numbered(), batch_size=None, sampler=sampler))


def only_even(samples):
    kept = [sample for sample in samples if sample[1] % 2 == 0]
    return torch.utils.data.default_collate(kept) if kept else None


def test_samples_that_collate_fn_leaves_out_are_told_once(fake_run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = trained(fake_run, DataLoader(Numbered(), batch_size=8, collate_fn=only_even))
    assert {len(batch) for batch in batches} == {4}
    assert [str(one.message)[:42] for one in caught] == ["collate_fn made 4 rows of 8 samples, and a"]


def test_a_batch_that_collate_fn_did_not_make_is_told_once(fake_run):
    loader = DataLoader(Numbered(), batch_size=8, collate_fn=lambda samples: None)
    with pytest.warns(TradewindWarning, match="collate_fn made no batch of 8 samples, and all 8") as told:
        assert trained(fake_run, loader, lambda batch: batch) == [None] * 8
    assert len(told) == 1


def in_rows(rows):
    """Packs all samples into so many rows."""

    def packed(samples):
        numbers = torch.tensor([sample[1] for sample in samples]).view(rows, -1)
        return {"input_ids": numbers, "position_ids": numbers % 4}

    return packed


def test_samples_that_collate_fn_packs_are_not_called_left_out(fake_run):
    for rows, said in ((1, 0), (2, 1)):
        loader = DataLoader(Numbered(), batch_size=8, collate_fn=in_rows(rows))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shapes = trained(fake_run, loader, lambda batch: tuple(batch["input_ids"].shape))
        assert set(shapes) == {(rows, 8 // rows)}
        texts = [str(one.message) for one in caught]
        assert len(texts) == said
        assert all("all 8 count as trained. If it left samples out" in text for text in texts)


def test_a_batch_that_collate_fn_left_empty_counts_for_nothing(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=2)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    loader = DataLoader([(torch.ones(4), at // 8) for at in range(64)], batch_size=8, collate_fn=only_even)
    for batch in run.batches(loader, distinct=True):
        if batch is not None:
            model(batch[0]).mean().backward()
            opt.step()
            opt.zero_grad()
    assert run.metrics["steps"] == 2 and run.metrics["surplus"] == 0


def test_what_is_no_loader_is_named(fake_run):
    data = Numbered()
    for call, text in (
        (lambda run: run.batches(None), "expected a DataLoader"),
        (lambda run: run.batches(DataLoader), "expected a DataLoader"),
        (lambda run: run.batches(Numbered()), "Numbered, a data set: it has samples, no batches"),
        (lambda run: run.shard(data, batch_size=0), "batch_size=0: expected a whole number from 1"),
        (lambda run: run.shard(data, batch_size="8"), "batch_size='8': expected a whole number"),
        (lambda run: run.shard(data, batch_size=8, num_workers=-1), "workers=-1: expected a whole"),
        (lambda run: run.shard(data, batch_size=8, collate_fn="x"), "collate_fn='x': expected a function"),
    ):
        with pytest.raises(MisuseError, match=text):
            call(fake_run())
        fake_run.runs[-1].close()


# ---- samplers that count their epochs, and runs that go on from a state


class CountingEpochs(Backwards):
    """Counts its epochs itself."""

    set_epoch = property()  # it has none

    def __iter__(self):
        drawn = torch.randperm(self.size, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        self.epoch += 1
        return iter(drawn)


class Warming(CountingEpochs):
    """Its counter makes a difference late."""

    def __iter__(self):
        self.epoch += 1
        return iter(range(self.size) if self.epoch < 4 else range(self.size - 1, -1, -1))


class Outside(torch.utils.data.Sampler):
    """Asks another sampler."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        return iter(self.inner)


@pytest.mark.parametrize("make", [CountingEpochs, Warming, lambda size: Outside(CountingEpochs(size))])
def test_a_sampler_that_counts_its_epochs_itself_goes_on_counting(make):
    judge = make(8)
    expected = [index for _ in range(12) for index in judge]
    order = Drawn(make(8), 7)
    assert order.indices(range(96)) == expected
    assert order.indices(range(96)) == expected, "asked again"
    assert Drawn(make(8), 7).indices(range(80, 96)) == expected[80:], "of a joiner"
    assert len(order._before) < 12


class Keeping(torch.utils.data.Sampler):
    """Keeps what it drew; or shuffles it on."""

    def __init__(self, size, goes_on):
        self.order = list(range(size))
        self.goes_on = goes_on

    def __len__(self):
        return len(self.order)

    def __iter__(self):
        drawn = torch.randperm(len(self.order)).tolist()
        self.order = [self.order[at] for at in drawn] if self.goes_on else drawn
        return iter(self.order)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_sampler_that_keeps_what_it_drew_counts_only_if_the_next_draw_depends_on_it(goes_on):
    assert Drawn(Keeping(8, goes_on), 7)._counts == goes_on


def test_a_sampler_that_does_not_count_is_asked_for_one_epoch_alone():
    order = Drawn(Noisy(60), 7)
    order.indices(range(6000, 6060))
    assert list(order._before) == [0]


SOURCES = {
    "in order": lambda: DataLoader(Numbered(), batch_size=8),
    "shuffled": lambda: DataLoader(Numbered(), batch_size=8, shuffle=True),
    "sampler": lambda: DataLoader(Numbered(), batch_size=8, sampler=SubsetRandomSampler(range(16, 48))),
    "counting": lambda: DataLoader(Numbered(), batch_size=8, sampler=CountingEpochs(48)),
    "replaced": lambda: DataLoader(
        Numbered(), batch_size=8, sampler=RandomSampler(range(64), replacement=True)
    ),
}


def gone_through(run, source, stop, state=None):
    """Indices until a round, and the state then."""
    model = mlp()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    if state is not None:
        run.load_state_dict(state)
    seen = []
    for _, numbers in run.shard(source):
        seen += numbers.tolist()
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
        if run.round == stop:
            break
    state = run.state_dict()
    run.close()
    return seen, state


@needs_engine
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("stop", [5, 9])
def test_the_order_goes_on_where_a_loaded_state_stood(kind, stop):
    def begin():
        return tradewind.join(
            target_batch_size=8, rounds=20, insecure=True, settings={"checkpoint.folder": "none"}
        )

    whole, _ = gone_through(begin(), SOURCES[kind](), 20)
    first, state = gone_through(begin(), SOURCES[kind](), stop)
    rest, after = gone_through(begin(), SOURCES[kind](), 20, state)
    assert first + rest == whole and (after["round"], after["samples"]) == (20, 160)


def test_a_joiner_goes_on_in_the_order_of_the_run(fake_run):
    settings = {"target_batch_size": 8, "rounds": 9}
    begun = {"round": 5, "samples": 40, "optimizer": torch.optim.SGD(mlp().parameters(), lr=0.1).state_dict()}
    first, _ = gone_through(fake_run(**settings), SOURCES["shuffled"](), 7, begun)
    state = fake_run.engines[0].saved()
    rest, _ = gone_through(fake_run(given=state, **settings), SOURCES["shuffled"](), 9)
    places = [place % 64 for place in range(40, 72)]  # the fake's order
    assert first == places[:16] and rest == places[16:32]


def test_another_beginning_than_that_of_the_run_is_told(fake_run):
    begun = {"round": 5, "samples": 40, "optimizer": torch.optim.SGD(mlp().parameters(), lr=0.1).state_dict()}
    gone_through(fake_run(target_batch_size=8, rounds=9), SOURCES["in order"](), 7, begun)
    state = fake_run.engines[0].saved()
    text = "state is of round 4 with 32 samples, and the run goes on from round 5 with 40 samples"
    with pytest.warns(tradewind.TradewindWarning, match=text):
        joined = fake_run(given=state, target_batch_size=8, rounds=9)
        gone_through(joined, SOURCES["in order"](), 9, {**begun, "round": 4, "samples": 32})


@pytest.mark.parametrize(
    "make, counted",
    [(lambda own: torch.optim.SGD(own, lr=0.1), 5.0), (lambda own: torch.optim.AdamW(own, lr=0.1), 0.0)],
)
def test_peers_that_begin_at_other_rounds_differ_where_it_changes_no_update(fake_run, make, counted):
    begun = {"round": 5, "samples": 40, "optimizer": make(mlp().parameters()).state_dict()}
    values = []
    for state in (begun, None):
        model = mlp()
        run = fake_run(target_batch_size=8, rounds=9)
        run.optimizer(model, make(model.parameters()), batch_size=8)
        if state is not None:
            run.load_state_dict(state)
        run.start()
        values.append(fake_run.engines[-1].vectors[0][:4].tolist())
        run.close()
    assert values == [[counted] * 4, [0.0] * 4]
