# SPDX-License-Identifier: Apache-2.0
"""Samples in shards: as they are in the files, decoded, in workers, and as a run leases them."""

import os
import pickle
import re
import threading

import loops
import numpy as np
import pytest
import torch
import tradewind
from conftest import ROOT, needs_engine
from crew import crew_of
from models import loss_of, mlp
from shard_files import npy, numbered, png, write_shards, write_tar
from torch.utils.data import DataLoader
from tradewind import DataError, SettingError

pytestmark = [needs_engine, pytest.mark.timeout(100)]

PICTURE = np.random.default_rng(1).integers(0, 256, (6, 8, 3), dtype=np.uint8)
GREY = np.random.default_rng(2).integers(0, 256, (5, 5), dtype=np.uint8)
REALS = np.arange(6, dtype=np.float64).reshape(2, 3) / 7
WHOLE = np.arange(4, dtype=np.int16)
MIXED = [
    ("a/000", {"png": png(PICTURE), "cls": b"3\n", "cap": b"a cat", "json": b"[1, 2]"}),
    ("a/001", {"png": png(GREY), "cls": b"-4", "npy": npy(REALS)}),
    ("b/000", {"png": png(PICTURE[::-1]), "cls": b"5", "npy": npy(WHOLE), "txt": b"1 2.5"}),
]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("mixed"), MIXED, 2)


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    """Samples (inputs [4], target [1], number)."""
    return write_shards(tmp_path_factory.mktemp("forty"), numbered(40), 15)


OF_FORTY = {"fields": ("in.npy", "out.npy", "cls"), "decode": True}


def test_all_fields_are_the_bytes_of_the_files(mixed):
    data = tradewind.data.shards(mixed)
    assert len(data) == 3 and data.fields == ("png", "cls", "cap", "json", "npy", "txt")
    assert [data[at] for at in range(3)] == [{"__key__": key, **fields} for key, fields in MIXED]
    assert data[-1] == data[2] and list(data) == [data[0], data[1], data[2]]


def test_named_fields_are_tuples_in_their_order(mixed):
    data = tradewind.data.shards(mixed, fields=["cls", "__key__", "npy;json"])
    assert list(data) == [
        (fields["cls"], key, fields.get("npy", fields.get("json"))) for key, fields in MIXED
    ]


def test_decoded_fields_are_tensors_and_numbers(mixed):
    data = tradewind.data.shards(mixed, decode=True)
    first, second, third = data
    assert torch.equal(first["png"], torch.from_numpy(PICTURE.transpose(2, 0, 1) / np.float32(255)))
    assert torch.equal(second["png"], torch.from_numpy(GREY[None] / np.float32(255)))
    assert repr([sample["cls"] for sample in (first, second, third)]) == "[3, -4, 5]"
    assert first["cap"] == b"a cat" and first["json"].tolist() == [1, 2]
    assert torch.equal(second["npy"], torch.from_numpy(REALS.astype(np.float32)))
    assert third["npy"].dtype == torch.int64 and third["npy"].tolist() == [0, 1, 2, 3]
    assert third["txt"].tolist() == [1, 2.5]


def test_pictures_become_squares_of_their_middle(mixed):
    data = tradewind.data.shards(mixed, fields=("png",), decode=True, image=3)
    middle = PICTURE[:, 1:7].reshape(3, 2, 3, 2, 3).mean((1, 3)).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(data[0][0].numpy(), middle, atol=1e-6)
    assert tradewind.data.shards(mixed, fields=("png",), decode=True, channels=3)[1][0].shape == (3, 5, 5)


def test_a_sample_says_where_it_lies(mixed):
    described = tradewind.data.shards(mixed).describe(2)
    assert described["key"] == "b/000" and described["object"].endswith("train-001.tar")
    offset, size = described["fields"]["txt"]
    with open(described["object"], "rb") as tar:
        tar.seek(offset)
        assert tar.read(size) == b"1 2.5"


def test_numbers_that_are_none(mixed):
    data = tradewind.data.shards(mixed)
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"sample {wrong}: expected -3 to 2"):
            data[wrong]
    with pytest.raises(TypeError):
        data["a/000"]
    assert data.__getitems__([]) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_give_every_sample_in_each_of_three_epochs(forty, workers):
    data = tradewind.data.shards(forty, **OF_FORTY)
    assert data[0][2] == 0  # its threads run when workers are forked
    expected = {int(fields["cls"]): fields["in.npy"] for _, fields in numbered(40)}
    loader = DataLoader(data, batch_size=7, shuffle=True, num_workers=workers)
    for _ in range(3):
        seen = []
        for inputs, targets, numbers in loader:
            assert inputs.shape[1:] == (4,) and targets.shape[1:] == (1,)
            seen += numbers.tolist()
            for row, number in zip(inputs, numbers.tolist()):
                assert npy(row.numpy()) == expected[number]
        assert sorted(seen) == list(range(40))


def test_it_travels_to_other_processes_and_opens_there(forty):
    data = tradewind.data.shards(forty, **OF_FORTY)
    again = pickle.loads(pickle.dumps(data))
    assert again.identity == data.identity and again[7][2] == 7
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr([data[at][2] for at in (3, 39)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"[3, 39]"
    assert data[11][2] == 11


def test_several_threads_read_from_one(forty):
    data = tradewind.data.shards(forty, threads=2, **OF_FORTY)
    read = {}

    def go(first):
        read[first] = [data[(first + at) % 40][2] for at in range(80)]

    threads = [threading.Thread(target=go, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == {first: [(first + at) % 40 for at in range(80)] for first in range(4)}


def test_a_closed_one_opens_again(forty):
    data = tradewind.data.shards(forty, **OF_FORTY)
    threads = len(os.listdir("/proc/self/task"))
    data.close()
    assert len(os.listdir("/proc/self/task")) < threads
    assert data[1][2] == 1


def test_a_broken_sample_is_named_with_object_and_bytes(tmp_path):
    members = [("x/0", {"cls": b"1"}), ("x/1", {"cls": b"eight"}), ("x/2", {"cls": b"1"})]
    data = tradewind.data.shards(write_shards(tmp_path, members, 9), fields=("cls",), decode=True)
    wrong = 'train-000.tar: x/1: cls, bytes 1536-1540: expected a whole number, found "eight"'
    with pytest.raises(DataError, match=wrong):
        data[1]
    assert data[0] == (1,)
    loader = DataLoader(data, batch_size=2, num_workers=1)
    with pytest.raises(DataError, match="x/1: cls, bytes 1536-1540"):
        list(loader)


def test_a_field_that_some_samples_lack_is_refused_at_once(tmp_path):
    members = [("x/0", {"jpg": b"1", "cls": b"1"}), ("x/1", {"png": b"2", "cls": b"2"})]
    index = write_shards(tmp_path, [*members, ("x/Thumbs", {"db": b"3"})], 9)
    lacks = r"train.twi: 1 of 3 samples has no field {}, the first of them .*-000.tar: x/Thumbs \(it has db\)"
    for field in ("cls", "jpg;png"):
        with pytest.raises(SettingError, match=lacks.format(field)):
            tradewind.data.shards(index, fields=("__key__", field))
    index = write_shards(tmp_path, members, 9)
    assert list(tradewind.data.shards(index, fields=("jpg;png", "cls"))) == [(b"1", b"1"), (b"2", b"2")]
    assert tradewind.data.shards(index)[1] == {"__key__": "x/1", "png": b"2", "cls": b"2"}


def test_shards_that_changed_are_named(tmp_path):
    data = tradewind.data.shards(write_shards(tmp_path, MIXED, 9))
    write_tar(tmp_path / "train-000.tar", MIXED[::-1])
    os.utime(tmp_path / "train-000.tar", (1e9, 1e9))
    with pytest.raises(DataError, match="train-000.tar: it changed since its index was made"):
        data[0]


def test_a_shard_that_is_gone_is_named(tmp_path):
    data = tradewind.data.shards(write_shards(tmp_path, MIXED, 9))
    os.remove(tmp_path / "train-000.tar")
    with pytest.raises(DataError, match="train-000.tar: No such file"):
        data[0]


def test_an_index_that_changed_is_not_mixed_with_the_one_before(tmp_path):
    data = tradewind.data.shards(write_shards(tmp_path, numbered(10), 5))
    copy = pickle.dumps(data)
    write_shards(tmp_path, numbered(10, seed=4), 10)
    with pytest.raises(DataError, match=f"was {data.identity} when it was opened first"):
        pickle.loads(copy)[0]


@pytest.mark.parametrize(
    "given,text",
    [
        ({"fields": ("pgn",)}, r"train.twi: no sample has the field pgn; there are png"),
        ({"fields": "png"}, "fields='png': expected several names"),
        ({"fields": ("__key__",)}, "expected the name of one field at least"),
        ({"fields": {"png", "cls"}}, "expected a list of names in the order of a sample"),
        ({"fields": ("png", None)}, "expected a list of names"),
        ({"decode": "pil"}, "decode='pil': expected True or False"),
        ({"image": 224}, "image=224: expected with decode=True"),
        ({"channels": 3}, "channels=3: expected with decode=True"),
        ({"decode": True, "image": -1}, "image=-1: expected a whole number"),
        ({"decode": True, "image": 5000}, "image=5000: expected a whole number"),
        ({"decode": True, "channels": 2}, "channels=2: expected 1 for grey"),
        ({"threads": 0}, "threads=0"),
        ({"memory": "lots"}, "memory=lots: expected a size such as 256MiB"),
        ({"memory": "1KiB"}, "memory=1KiB: expected a size such as 256MiB, from 1 MiB to 1 TiB"),
        ({"cache_limit": 0}, "cache_limit=0: expected a size"),
        ({"cache_limit": "1GiB"}, "cache_limit=1GiB: expected with cache=FOLDER"),
        ({"block": 4}, "block=4: expected 1 to 3, the samples of the data"),
        ({"block": 2.0}, "block=2.0: expected a whole number"),
    ],
)
def test_wrong_arguments_are_named(mixed, given, text):
    with pytest.raises(SettingError, match=text):
        tradewind.data.shards(mixed, **given)


def test_what_is_no_index_is_named(tmp_path):
    with pytest.raises(SettingError, match="none.twi"):
        tradewind.data.shards(tmp_path / "none.twi")
    (tmp_path / "text.twi").write_text("no index, but a text that is long enough to be one")
    with pytest.raises(SettingError, match="text.twi"):
        tradewind.data.shards(tmp_path / "text.twi")


# In a run.


def go_through(run, data, **options):
    """Numbers of the samples of each batch."""
    model = mlp()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    batches = []
    for inputs, targets, numbers in run.shard(data, **options):
        batches.append(numbers.tolist())
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
    return batches


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_takes_them_and_reads_ahead_what_it_is_promised(fake_run, forty, monkeypatch, workers):
    expected = []
    expect = tradewind.data.Shards.expect

    def spied(data, numbers):
        expected.append(list(numbers))
        expect(data, numbers)

    monkeypatch.setattr(tradewind.data.Shards, "expect", spied)
    data = tradewind.data.shards(forty, **OF_FORTY)
    run = fake_run(target_batch_size=20, rounds=4)
    batches = go_through(run, data, batch_size=8, num_workers=workers)
    # The first sample of each batch, and the end of its round.
    begins = [(0, 20), (8, 20), (16, 20), (20, 40), (28, 40), (36, 40)]
    assert batches == 2 * [[*range(first, min(first + 8, end))] for first, end in begins]
    assert expected == ([] if workers else 2 * [[*range(first, end)] for first, end in begins])


def test_fit_takes_them(fake_run, forty):
    seen = []

    def loss(model, batch):
        seen.extend(batch[2].tolist())
        return loss_of(model, batch[0], batch[1])

    model = mlp()
    run = fake_run(target_batch_size=20, rounds=2)
    data, sgd = tradewind.data.shards(forty, **OF_FORTY), torch.optim.SGD(model.parameters(), lr=0.1)
    summary = run.fit(model, loss, data, sgd, batch_size=4)
    assert summary.rounds == 2 and seen == list(range(40))


def test_the_snippet_of_the_docs(fake_run, tmp_path, monkeypatch):
    """That of docs/python.md, on the engine's double."""
    text = (ROOT / "docs/python.md").read_text()
    (snippet,) = re.findall(r"```python\n(data = tradewind\.data\.shards.*?)```", text, re.S)
    members = [(f"{at:03}", {"png": png(PICTURE), "cls": b"%d" % (at % 10)}) for at in range(40)]
    write_shards(tmp_path, members, 40)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tradewind, "join", fake_run)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    names = {"tradewind": tradewind, "torch": torch, "model": model}
    exec(snippet, names)
    assert names["run"].round == 2 and names["pictures"].shape[1:] == (3, 32, 32)
    assert names["label"] == 7


def test_peers_compare_their_data(fake_run, forty, tmp_path):
    """It is in the text that the engine compares, and only what matters is."""

    def layout(**options):
        data = tradewind.data.shards(options.pop("index", forty), **{**OF_FORTY, **options})
        run = fake_run(target_batch_size=20, rounds=1)
        go_through(run, data, batch_size=8)
        run.close()
        lines = run._life.loop.driver.engine.shape.layout.splitlines()
        return [line for line in lines if line.startswith("data: ")]

    data = tradewind.data.shards(forty)
    assert f"data: {data.identity} fields in.npy,out.npy,cls image 0 channels 0 block 1" in layout()
    assert layout(threads=3, memory="1MiB", cache=tmp_path / "cache") == layout()
    assert layout(block=4) != layout()
    other = write_shards(tmp_path, numbered(40, seed=4), 20, "other")
    assert layout(index=other) != layout()


def numbers(ranges):
    """Of "0-15,64,70-79"."""
    spans = [one.split("-") for one in ranges.split(",") if one]
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_of_an_epoch_is_in_one_record_though_a_peer_is_killed(tmp_path, workers):
    index = write_shards(tmp_path, numbered(60), 17)
    with crew_of(target_batch_size=30, rounds=8, exact_batches="true") as crew:
        options = {"index": str(index), "batch": 3, "workers": workers, "pause_s": 0.02, "block": 2}
        peers = [crew.start(loops.in_shards, wait_for=3, **options) for _ in range(3)]
        peers[0].until_round(3)
        peers[2].kill()
        assert peers[0].result()["state"] == peers[1].result()["state"]
        records = {report["round"]: report["of"] for report in peers[0].all("commit")}
        for round_, of in records.items():
            recorded = sorted(number for ranges in of.values() for number in numbers(ranges))
            assert recorded == [*range(30 * round_ - 30, 30 * round_)], round_
        assert sorted(records) == [*range(1, 9)]
        handed = {(round_, peer.number): [] for round_ in records for peer in peers}
        for peer in peers:
            for report in peer.all("batch"):
                handed[report["round"], peer.number].extend(report["indices"])
    for epoch in range(4):
        mine = {key: indices for key, indices in handed.items() if key[0] in (2 * epoch + 1, 2 * epoch + 2)}
        once = sorted(index for indices in mine.values() for index in indices)
        assert set(once) == set(range(60)), epoch
        counted = {key: len(numbers(records[key[0]].get(str(key[1]), ""))) for key in mine}
        assert all(counted[key] <= len(mine[key]) for key in mine), epoch
        # Others computed again what a peer was killed with, and what came too late on a busy machine.
        if counted == {key: len(indices) for key, indices in mine.items()}:
            assert once == [*range(60)], epoch


def test_a_sample_that_nobody_can_decode_ends_each_peer_with_its_name(tmp_path):
    members = numbered(60)
    members[33][1]["in.npy"] = b"no array"
    index = write_shards(tmp_path, members, 20)
    with crew_of(target_batch_size=30, rounds=100000, patience="1s") as crew:
        peers = [crew.start(loops.in_shards, wait_for=2, index=str(index), batch=3) for _ in range(2)]
        for peer in peers:
            error = peer.error()
            assert error["kind"] == "DataError", error
            assert re.search(r"train-001\.tar: 03/033: in\.npy, bytes \d+-\d+", error["text"]), error


def test_a_peer_with_other_data_is_told_so(tmp_path):
    mine = write_shards(tmp_path, numbered(60), 20, "mine")
    others = write_shards(tmp_path, numbered(60, seed=9), 20, "others")
    with crew_of(target_batch_size=30, rounds=100000) as crew:
        first = crew.start(loops.in_shards, index=str(mine), batch=3, pause_s=0.02)
        first.until_round(1)
        refused = crew.start(loops.in_shards, index=str(others), batch=3).error()
        one, other = (tradewind.data.shards(index).identity for index in (mine, others))
        text = f'another run: expected "data: {one} .*this peer has "data: {other} '
        assert re.search(text, refused["text"])


def test_blocks_stay_together_in_a_run(tmp_path):
    index = write_shards(tmp_path, numbered(60), 20)
    with crew_of(target_batch_size=60, rounds=2) as crew:
        peer = crew.start(loops.in_shards, index=str(index), batch=6, block=6)
        peer.result()
        batches = [report["indices"] for report in peer.all("batch")]
    assert len(batches) == 20 and all(batch == [*range(batch[0], batch[0] + 6)] for batch in batches)
    assert batches[:10] != batches[10:] and sorted(batches[:10]) == sorted(batches[10:])
