# SPDX-License-Identifier: Apache-2.0
"""Batches of a program's own loader: how many samples each has, and which peer goes through which."""

import dataclasses
import os
import time
import warnings
from collections import UserDict, namedtuple
from types import SimpleNamespace

import pytest
import torch
from models import mlp
from torch.utils.data import (
    ChainDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)
from tradewind import MisuseError, SettingError
from tradewind.data.order import content_of
from tradewind.data.samples import to_device
from tradewind.errors import described
from tradewind.model.advice import Sizes, about_sizes, number_of_loss
from tradewind.loop.counts import count_of, count_unless_single

N = 8
PICTURES = [torch.zeros(3, 4, 4)] * N
RAGGED = [torch.zeros(3, 4, 4 + at) for at in range(N)]
BOXES = [{"boxes": torch.zeros(at + 1, 4)} for at in range(N)]
Pair = namedtuple("Pair", "inputs targets")


@dataclasses.dataclass
class Fields:
    inputs: torch.Tensor
    name: str = "train"


class Attributes(dict):
    """Its keys are attributes."""

    __getattr__ = dict.__getitem__


GRAPHS = SimpleNamespace(num_graphs=N, x=torch.zeros(31, 4), batch_size=N)
COUNTED = {
    "a tensor": torch.zeros(N, 4),
    "inputs and targets": [torch.zeros(N, 4), torch.zeros(N)],
    "of one rank": (torch.zeros(N, 4), torch.zeros(N, 1)),
    "a dict": {"input_ids": torch.zeros(N, 5), "attention_mask": torch.zeros(N, 5), "epoch": 3},
    "a BatchEncoding": UserDict(input_ids=torch.zeros(N, 5), labels=torch.zeros(N)),
    "nested": [torch.zeros(N, 3), {"y": torch.zeros(N), "z": (torch.zeros(N, 2), torch.zeros(N))}],
    "a named tuple": Pair(torch.zeros(N, 4), torch.zeros(N, 4)),
    "a dataclass": Fields(torch.zeros(N, 4)),
    "with a scalar": (torch.zeros(N, 4), torch.tensor(0.5), 7, "a text", None),
    "with texts": [torch.zeros(N, 4), ["a"] * N],
    "with a size": {"pixels": torch.zeros(N, 3, 4, 4), "size": (4, 4)},
    "texts alone": ["a"] * N,
    "numpy": (torch.zeros(N, 4).numpy(), torch.zeros(N).numpy()),
    "packed": torch.nn.utils.rnn.pack_sequence([torch.zeros(5 - at % 3) for at in range(N)], False),
    "packed and lengths": (torch.nn.utils.rnn.pack_sequence([torch.zeros(4, 2)] * N), torch.zeros(N)),
    "graphs": GRAPHS,
    "a dict with attributes": Attributes(x=torch.zeros(N, 4), shape=(3, 3), batch_size=5),
    "dicts with attributes": (Attributes(x=torch.zeros(N, 4)), Attributes(y=torch.zeros(N))),
    "one column": [torch.zeros(N, 4)],
    "one column of pictures": [torch.zeros(N, 3, 4, 4)],
    "one column of sequences": [torch.zeros(N, 5, 2)],
    "sequences of one layer": (torch.zeros(N, 4), [torch.zeros(N, 5, 2)]),
    "of one GPU": [{"data": torch.zeros(N, 3, 4, 4), "label": torch.zeros(N, 1)}],
    "of one loader": ([torch.zeros(N, 4), torch.zeros(N)],),
    "of one view": ({"x": torch.zeros(N, 4)}, [{"m": torch.zeros(N)}]),
    "as many pictures as channels": ([torch.zeros(N, 4, 4)] * N, torch.zeros(N)),
}
UNKNOWN = {
    "pictures": PICTURES,
    "one picture": PICTURES[:1],
    "detection in one picture": (PICTURES[:1], [{"boxes": torch.zeros(3, 4), "labels": torch.zeros(3)}]),
    "one sample that is not collated": [(torch.zeros(3, 4, 4), 1)],
    "ragged pictures": RAGGED,
    "detection": (tuple(PICTURES), tuple(BOXES)),
    "pictures and labels": (PICTURES, torch.zeros(N)),
    "time first": (torch.zeros(20, N, 3), torch.zeros(N)),
    "time first in a dict": {"x": torch.zeros(20, N, 3), "y": torch.zeros(N)},
    "ragged sequences": [torch.zeros(3 + at, 2) for at in range(N)],
    "sequences of one length": [torch.zeros(5, 2)] * N,
    "samples that are not collated": [(torch.zeros(3, 4, 4), at) for at in range(N)],
    "dicts of samples": [{"x": torch.zeros(3, 4, 4), "y": at} for at in range(N)],
    "scalars": torch.tensor(1.0),
    "nothing": {},
    "nodes of graphs": {"x": torch.zeros(31, 4), "y": torch.zeros(N)},
}


@pytest.mark.parametrize("name", COUNTED)
def test_batches_whose_parts_agree_are_counted(name):
    assert count_of(COUNTED[name]) == N


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_number_is_never_guessed(name):
    found = count_of(UNKNOWN[name])
    assert isinstance(found, str) and "samples=" in found and "batch_size=" in found


def test_a_dict_with_attributes_is_a_dict_wherever_it_is_looked_at():
    batch = Attributes(x=torch.zeros(2))
    data_set = TensorDataset(torch.zeros(3))
    data_set.data = batch
    assert described(batch) == "a Attributes of 1"
    assert content_of(data_set, 3).startswith("data set: TensorDataset ")
    assert to_device(batch, torch.device("cpu")).keys() == {"x"}
    with pytest.raises(MisuseError, match="loss= is a Attributes of 1: expected one number"):
        number_of_loss(batch)


def begun(fake_run, batch_size=None, **settings):
    model = mlp()
    run = fake_run(**{"target_batch_size": 2 * N, "rounds": 3, **settings})
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return run, run.optimizer(model, sgd, batch_size=batch_size), model


def steps_of(run, opt, model, batches, **options):
    count = 0
    for _ in batches:
        model(torch.ones(2, 4)).sum().backward()
        opt.step(**options)
        opt.zero_grad()
        count += 1
    return count


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_number_is_an_error_at_the_step_unless_it_is_said(fake_run, name):
    run, opt, model = begun(fake_run)
    with pytest.raises(MisuseError, match="(?s)batch.*samples=.*batch_size="):
        steps_of(run, opt, model, run.batches([UNKNOWN[name]] * 9))
    run.close()
    run, opt, model = begun(fake_run)
    assert steps_of(run, opt, model, run.batches([UNKNOWN[name]] * 9), samples=N) == 6
    run, opt, model = begun(fake_run)
    assert steps_of(run, opt, model, run.batches([UNKNOWN[name]] * 9, batch_size=N)) == 6
    run, opt, model = begun(fake_run, batch_size=N)
    assert steps_of(run, opt, model, run.batches([UNKNOWN[name]] * 9)) == 6


class Rows(torch.utils.data.Dataset):
    def __init__(self, size=20):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.full((5, 2), float(index))


class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.full((5, 2), float(at)) for at in range(20)])


def time_first(samples):
    return torch.stack(samples, 1)


@pytest.mark.timeout(100)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [Rows, Stream])
def test_a_loader_says_how_many_samples_a_batch_has_whatever_it_looks_like(fake_run, data, workers):
    run, opt, model = begun(fake_run, target_batch_size=20 * (max(1, workers) if data is Stream else 1))
    loader = DataLoader(data(), batch_size=8, collate_fn=time_first, num_workers=workers)
    collate = loader.collate_fn
    seen = []
    for batch in run.batches(loader, distinct=True):
        assert batch.shape[0] == 5
        seen.append(batch.shape[1])
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
    assert sorted(seen) == sorted([8, 8, 4] * (3 * (max(1, workers) if data is Stream else 1)))
    assert run.metrics["surplus"] == 0 and loader.collate_fn is collate


def test_a_loader_with_persistent_workers_stays_the_programs_own(fake_run):
    run, opt, model = begun(fake_run, target_batch_size=20, rounds=1)
    loader = DataLoader(
        Rows(), batch_size=8, collate_fn=time_first, num_workers=1, persistent_workers=True
    )
    shapes = [(5, 8, 2), (5, 8, 2), (5, 4, 2)]
    assert [batch.shape for batch in loader] == shapes
    assert steps_of(run, opt, model, run.batches(loader)) == 3
    assert [batch.shape for batch in loader] == shapes


class Halves(DataLoader):
    """Makes batches over after collate_fn, as the loaders of PyTorch Geometric for data on a GPU."""

    def _get_iterator(self):
        return (batch / 2 for batch in super()._get_iterator())


def test_a_loader_that_makes_its_batches_over_gets_what_its_collate_fn_made(fake_run, as_peer):
    def epoch(peer):
        as_peer(peer, 2)
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return first_epoch(fake_run, peer, Halves(Rows(), batch_size=10, shuffle=True))

    one, other = epoch(1), epoch(2)
    assert one != other and {number for batch in one for number in batch} == set(range(10))


def test_what_is_changed_in_a_loader_holds_from_the_next_epoch_on(fake_run):
    run, opt, model = begun(fake_run, target_batch_size=20, rounds=4)
    sampler = SubsetRandomSampler(range(20))
    loader = DataLoader(Rows(), batch_size=10, sampler=sampler)
    seen = []
    for batch in run.batches(loader):
        seen.append((list(batch.shape), set(batch.flatten().tolist()) == {7.0}))
        model(torch.ones(2, 4)).sum().backward()
        opt.step(samples=10)
        opt.zero_grad()
        if len(seen) == 2:
            loader.batch_sampler.batch_size = 20
        elif len(seen) == 3:
            sampler.indices = [7] * 20
        elif len(seen) == 4:
            loader.collate_fn = time_first
    assert seen[:2] == [([10, 5, 2], False)] * 2 and seen[2] == ([20, 5, 2], False)
    assert seen[3] == ([20, 5, 2], True) and seen[4] == ([5, 20, 2], True)


class Owned(Rows):
    def __getitem__(self, index):
        return torch.full((5, 2), float(os.getpid()))


@pytest.mark.timeout(100)
def test_persistent_workers_outlive_epochs_of_an_unchanged_loader(fake_run):
    run, opt, model = begun(fake_run, target_batch_size=20, rounds=3)
    pids = set()
    loader = DataLoader(Owned(), batch_size=20, shuffle=True, num_workers=1, persistent_workers=True)
    for batch in run.batches(loader):
        pids.update(batch.flatten().tolist())
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
        assert len(loader) == 1
    assert len(pids) == 1


def test_batches_of_a_loader_without_batches_are_counted_by_their_tensors(fake_run):
    run, opt, model = begun(fake_run)
    loader = DataLoader([torch.zeros(N, 4)] * 4, batch_size=None)
    assert steps_of(run, opt, model, run.batches(loader)) == 6


# Which samples.


def first_epoch(fake_run, peer, loader, **options):
    run, opt, model = begun(fake_run, target_batch_size=40, rounds=2)
    fake_run.ids = peer
    numbers = []
    for batch in run.batches(loader, **options):
        numbers.append([int(value) for value in batch[:, 0, 0]])
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
    run.close()
    return numbers


@pytest.fixture
def as_peer(monkeypatch):
    """as_peer(2, peers=3): what the engine says of itself."""
    from fake_engine import FakeEngine

    view = FakeEngine.view

    def set_to(number, peers=1):
        monkeypatch.setattr(FakeEngine, "view", lambda self: {**view(self), "id": number, "peers": peers})

    return set_to


@pytest.mark.parametrize("sampler", [None, SubsetRandomSampler(range(20))])
@pytest.mark.parametrize("generator", [False, True])
def test_each_peer_shuffles_in_another_way(fake_run, as_peer, sampler, generator):
    def epochs(peer):
        as_peer(peer, 3)
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loader = DataLoader(
                Rows(),
                batch_size=10,
                shuffle=sampler is None,
                sampler=sampler,
                generator=torch.Generator().manual_seed(3) if generator else None,
            )
            return first_epoch(fake_run, peer, loader)

    one, again, other = epochs(1), epochs(1), epochs(2)
    assert one == again != other
    for numbers in (one, other):
        halves = [sum(numbers[:2], []), sum(numbers[2:4], [])]
        assert all(sorted(half) == list(range(20)) for half in halves) and halves[0] != halves[1]


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Rows(), batch_size=10),
        DataLoader(Stream(), batch_size=10),
        [torch.zeros(10, 5, 2)] * 2,
        DataLoader(Rows(), batch_size=10, sampler=DistributedSampler(Rows(), num_replicas=1, rank=0)),
    ],
)
def test_peers_that_may_train_on_the_same_samples_are_told_once(fake_run, as_peer, loader):
    as_peer(1, 3)
    with pytest.warns(UserWarning, match="3 peers.*run.shard.*shuffle=True.*distinct=True") as told:
        first_epoch(fake_run, 1, loader)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_epoch(fake_run, 1, loader, distinct=True)
        as_peer(1, 1)
        first_epoch(fake_run, 1, loader)


def test_peers_of_a_trainer_with_epochs_of_its_own_are_told_once(fake_run, as_peer):
    as_peer(1, 3)
    run, opt, model = begun(fake_run, target_batch_size=40, rounds=1)
    batches = run.batches([torch.zeros(N, 4)] * 2)
    with pytest.warns(UserWarning, match="3 peers.*run.shard") as told:
        while not run.finished:
            for batch in batches.once():
                model(batch).sum().backward()
                opt.step()
                opt.zero_grad()
    assert len(told) == 1 and run.samples == 40


def test_a_distributed_sampler_of_several_ranks_is_a_part_of_its_own(fake_run, as_peer):
    as_peer(1, 3)
    loader = DataLoader(
        Rows(), batch_size=10, sampler=DistributedSampler(Rows(), num_replicas=2, rank=1, shuffle=False)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = first_epoch(fake_run, 1, loader)
    assert numbers[0] == list(range(1, 20, 2))


# Sizes that fit each other.


def test_sizes_that_let_one_peer_work_at_a_time():
    assert about_sizes(64, Sizes(16), 4) is None and about_sizes(64, Sizes(64), 1) is None
    assert about_sizes(64, Sizes(64), 2) == (
        "target_batch_size=64 is 1 step of 64 samples, so 1 of 2 peers computes at a time and the others"
        " wait: take 32 samples at most, or a target_batch_size of 128 at least."
    )
    assert "2 of 3 peers compute at a time" in about_sizes(64, Sizes(32), 3)
    assert about_sizes(32, Sizes(48), 1) == (
        "target_batch_size=32 is less than the 48 samples of a step, so 16 of them never count: take 32"
        " samples at most, or a target_batch_size of 48 at least."
    )


def test_sizes_of_which_the_last_step_of_a_round_is_mostly_for_nothing():
    assert about_sizes(32, Sizes(24, lost=1 / 3), 2) == (
        "target_batch_size=32 takes 2 steps of 24 samples, and 16 of these 48 never count: take 16"
        " samples, or a target_batch_size of 48."
    )
    assert "take 50 samples" in about_sizes(100, Sizes(64, lost=0.2), 1)
    assert about_sizes(32, Sizes(24, lost=0.05), 2) is None, "steps of many sizes, which mostly fit"
    assert about_sizes(1000, Sizes(64, lost=0.2), 2) is None, "a tenth at most"


def test_a_shard_whose_last_peer_gets_little():
    assert about_sizes(32, Sizes(24, is_cut=True), 2) == (
        "target_batch_size=32 is 2 steps of 24 samples at most, one for each peer, of which the last has"
        " 8: take 16 samples, or a target_batch_size of 48."
    )
    assert about_sizes(32, Sizes(24, is_cut=True), 1) is None
    assert about_sizes(32, Sizes(9, is_cut=True), 2) is None
    assert about_sizes(32, Sizes(40, is_cut=True), 1) is None


def with_target(monkeypatch):
    from fake_engine import FakeEngine

    view = FakeEngine.view
    monkeypatch.setattr(FakeEngine, "view", lambda self: {**view(self), "target": self.target})
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10**6, 5)).__next__)


def test_a_run_says_once_how_much_of_its_work_is_for_nothing(fake_run, monkeypatch):
    with_target(monkeypatch)
    run, opt, model = begun(fake_run, target_batch_size=10, rounds=30)
    text = "takes 2 steps of 8 samples, and 6 of these 16 never count: take 5"
    with pytest.warns(UserWarning, match=text) as told:
        steps_of(run, opt, model, run.batches([torch.zeros(N, 4)], distinct=True))
    assert len(told) == 1 and run.metrics["surplus"] == 30 * 6


def without_step(run, opt, model, inner=None):
    """Takes 200 batches."""
    for at, batch in enumerate(run.batches([torch.zeros(N, 4)], distinct=True)):
        model(batch).sum().backward()
        if inner is not None:
            inner.step()
        if at == 200:
            return


def test_batches_without_a_step_are_named_once(fake_run, monkeypatch):
    with_target(monkeypatch)
    run, opt, model = begun(fake_run)
    text = "64 batches were taken since the last step.., more than 2 rounds of target_batch_size=16 have"
    with pytest.warns(UserWarning, match=text) as told:
        without_step(run, opt, model)
    assert len(told) == 1
    run.close()
    model = mlp()
    run, inner = fake_run(target_batch_size=2 * N), torch.optim.SGD(model.parameters(), lr=0.1)
    opt = run.optimizer(model, inner)
    with pytest.warns(UserWarning, match="have: 0.bias has changed, so the loop may step"):
        without_step(run, opt, model, inner)


def test_many_batches_of_one_step_are_no_fault(fake_run, monkeypatch):
    with_target(monkeypatch)
    run, opt, model = begun(fake_run, target_batch_size=130 * N, rounds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at, batch in enumerate(run.batches([torch.zeros(N, 4)], distinct=True)):
            model(batch).sum().backward()
            if at % 130 == 129:
                opt.step()
    assert run.samples == 130 * N


def test_a_second_step_with_a_batch_says_its_samples(fake_run):
    run, opt, model = begun(fake_run)
    text = r"step\(\) without a batch: the last one was handed in; say step\(samples="
    for batch in run.batches([torch.zeros(N, 4)], distinct=True):
        model(batch).sum().backward()
        opt.step()
        with pytest.raises(MisuseError, match=text):
            opt.step()
        opt.step(samples=N)
    assert run.samples == 6 * N


class Singles(IterableDataset):
    """Samples one by one, each with a target."""

    def __init__(self, target):
        self.target = target

    def __iter__(self):
        return iter([{"x": torch.zeros(6), "y": self.target}] * 4)


ONE_BY_ONE = [lambda data: data, lambda data: ChainDataset([data]), lambda data: DataLoader(data, None)]


@pytest.mark.parametrize("target", [torch.tensor(1), 1, torch.tensor(1).numpy()])
@pytest.mark.parametrize("how", ONE_BY_ONE)
def test_samples_that_come_one_by_one_are_no_batches(fake_run, target, how):
    run, opt, model = begun(fake_run)
    text = r"the batch\['y'\] has no dimension, as if.*one sample.*batch_size=.*samples="
    with pytest.raises(MisuseError, match=text):
        steps_of(run, opt, model, run.batches(how(Singles(target)), distinct=True))
    run.close()
    run, opt, model = begun(fake_run)
    assert steps_of(run, opt, model, run.batches(how(Singles(target)), batch_size=1, distinct=True)) == 6 * N
    run.close()
    run, opt, model = begun(fake_run)
    loader = DataLoader(Singles(target), batch_size=2)
    assert steps_of(run, opt, model, run.batches(loader, distinct=True)) == 3 * N


class Indexed:
    """A map-style data set that is none of torch's."""

    def __len__(self):
        return 4

    def __getitem__(self, at):
        if at >= 4:
            raise IndexError(at)
        return {"x": torch.zeros(6), "y": 1}


class Columns(Indexed):
    """As those of Hugging Face."""

    def __iter__(self):
        return map(self.__getitem__, range(4))

    def __getitems__(self, indices):
        return [self[at] for at in indices]


class Whole(Indexed):
    """It may be one of batches."""

    __iter__ = Columns.__iter__


@pytest.mark.parametrize("kind", [Indexed, Columns])
def test_a_data_set_of_any_class_has_no_batches(fake_run, kind):
    run, opt, model = begun(fake_run)
    with pytest.raises(MisuseError, match=f"{kind.__name__}, a data set: it has samples, no batches"):
        run.batches(kind())
    assert steps_of(run, opt, model, run.batches(kind(), batch_size=1, distinct=True)) == 6 * N


def test_what_has_indices_may_give_samples(fake_run):
    run, opt, model = begun(fake_run)
    with pytest.raises(MisuseError, match="as if this were one sample"):
        steps_of(run, opt, model, run.batches(Whole(), distinct=True))
    run.close()
    run, opt, model = begun(fake_run)
    batches = [{"x": torch.zeros(2, 6), "scale": 0.5}] * 4
    assert steps_of(run, opt, model, run.batches(batches, distinct=True)) == 3 * N


BATCHES = ("inputs and targets", "with texts", "with a size", "packed", "graphs")
WITH_ONE_OF_EACH = {
    "records": {"x": torch.zeros(N, 3), "json": [{"id": at} for at in range(N)]},
    "scalars": (torch.zeros(N, 3), [torch.tensor(at) for at in range(N)]),
    "pairs": [torch.zeros(N, 3), [(at, 0.5) for at in range(N)]],
    "a truth": {"x": torch.zeros(N, 3), "last": False},
}


@pytest.mark.parametrize("name", [*BATCHES, *WITH_ONE_OF_EACH])
def test_a_data_set_may_give_batches(name):
    assert count_unless_single({**COUNTED, **WITH_ONE_OF_EACH}[name]) == N


@pytest.mark.parametrize(
    "sample",
    [
        (torch.tensor(1.0), torch.tensor(2.0)),
        (torch.zeros(N, 3), [torch.tensor(1)] * (N - 1)),
        (torch.zeros(2), [torch.tensor(1), 2]),
        {"x": torch.zeros(N), "y": 1},
    ],
)
def test_lists_that_have_not_one_part_of_each_sample_tell_of_single_samples(sample):
    assert "has no dimension, as if this were one sample" in count_unless_single(sample)


@pytest.mark.parametrize("how", ["shard", "batches", "samples"])
def test_a_run_says_once_that_its_batches_are_too_large_for_its_peers(fake_run, monkeypatch, how):
    from fake_engine import FakeEngine

    view = FakeEngine.view
    monkeypatch.setattr(FakeEngine, "view", lambda self: {**view(self), "peers": 3, "target": self.target})
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10**6, 5)).__next__)
    run, opt, model = begun(fake_run, target_batch_size=20)
    loader = DataLoader(Rows(), batch_size=20, shuffle=True)
    source = {"shard": run.shard, "batches": run.batches, "samples": lambda loader: [0] * 3}[how](loader)
    with pytest.warns(UserWarning, match="1 of 3 peers computes at a time.*take 6 samples") as told:
        steps_of(run, opt, model, source, **({"samples": 20} if how == "samples" else {}))
    assert len(told) == 1


@pytest.mark.parametrize("target", [512, "auto"])
def test_sizes_are_no_fault_where_the_leader_chooses_the_target_batch_size(fake_run, monkeypatch, target):
    from fake_engine import FakeEngine

    view = FakeEngine.view
    monkeypatch.setattr(FakeEngine, "view", lambda self: {**view(self), "peers": 3, "target": self.target})
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10**6, 5)).__next__)
    run, opt, model = begun(fake_run, target_batch_size=target)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        steps_of(run, opt, model, [0] * 3, samples=512)
    assert len(told) == (0 if target == "auto" else 1), [str(one.message) for one in told]


def test_tensor_data_sets_are_counted(fake_run):
    run, opt, model = begun(fake_run, target_batch_size=20)
    loader = DataLoader(TensorDataset(torch.zeros(20, 4), torch.zeros(20)), batch_size=N, shuffle=True)
    assert steps_of(run, opt, model, run.batches(loader)) == 9 and run.metrics["surplus"] == 0


@pytest.mark.parametrize("batch_size", [None, N])
def test_a_batch_without_samples_is_named_and_can_be_skipped(fake_run, batch_size):
    empty, full = torch.zeros(0, 4), torch.zeros(N, 4)
    run, opt, model = begun(fake_run, batch_size)
    with pytest.raises(MisuseError, match=r"batch has no samples.*run\.skip\(\)"):
        steps_of(run, opt, model, run.batches([full, empty], distinct=True))
    run.close()
    run, opt, model = begun(fake_run, batch_size)
    seen = []
    for batch in run.batches([full, empty], distinct=True):
        seen.append(len(batch))
        if not seen[-1]:
            run.skip()
            continue
        model(batch).mean().backward()
        opt.step()
        opt.zero_grad()
    assert seen == [N, 0] * 5 + [N] and run.samples == 6 * N


def test_a_loader_that_drops_all_samples_is_named(fake_run):
    run, opt, model = begun(fake_run)
    loader = DataLoader(Rows(5), batch_size=8, shuffle=True, drop_last=True)
    with pytest.raises(MisuseError, match="it has 5 samples, and drop_last=True.*less than batch_size=8"):
        steps_of(run, opt, model, run.batches(loader))
    with pytest.raises(MisuseError, match="has no batch; a generator can be gone through only once"):
        steps_of(run, opt, model, run.batches(iter([]), distinct=True))
    once = run.batches(iter([torch.zeros(2, 4)]), distinct=True)
    assert len(list(once.once())) == 1
    for way in (once.once, once.fetched):
        with pytest.raises(MisuseError, match="has no batch; a generator can be gone through only once"):
            list(way())


def test_a_batch_that_a_collate_fn_left_without_rows_is_one_without_samples(fake_run):
    def none_from_a_half_on(samples):
        kept = [sample for sample in samples if sample[0, 0] < N]
        return torch.stack(kept)[:, 0].repeat(1, 2) if kept else torch.zeros(0, 4)

    run, opt, model = begun(fake_run)
    batches = run.batches(DataLoader(Rows(2 * N), N, collate_fn=none_from_a_half_on), distinct=True)
    with pytest.raises(MisuseError, match=r"batch has no samples.*run\.skip\(\)"):
        steps_of(run, opt, model, batches)
    assert run.metrics["steps"] == 1


def test_a_batch_without_samples_counts_nothing_among_others(fake_run):
    run, opt, model = begun(fake_run, rounds=1)
    for at, batch in enumerate(run.batches([torch.zeros(N, 4), torch.zeros(0, 4)], distinct=True)):
        model(batch).sum().backward()
        if at % 2:
            opt.step()
    assert run.samples == 2 * N and run.metrics["surplus"] == 0


def test_distinct_is_true_or_false(fake_run):
    run, _, _ = begun(fake_run)
    with pytest.raises(SettingError, match="distinct='no': expected True or False"):
        run.batches([torch.zeros(N, 4)], distinct="no")
