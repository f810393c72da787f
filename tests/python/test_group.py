# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel inside a node: all ranks are one peer, whose engine rank 0 has."""

import multiprocessing

import pytest
import torch
import torch.distributed as dist
import tradewind
from fake_engine import FakeEngine
from models import assert_close, data, loss_of, train, with_batch_norm
from torch.nn.parallel import DistributedDataParallel
from tradewind.engine.settings import resolve
from tradewind.loop.driver import Node

ROUNDS = 6


def model_of(kind):
    return with_batch_norm() if kind == "batchnorm" else torch.nn.Sequential(*list(with_batch_norm())[::2])


def optimizer_of(kind, model):
    if kind in ("foreign", "copied"):
        return torch.optim.NAdam(model.parameters(), lr=1e-2)
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def decay(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.9)


def rank_main(rank, world, store, kind, results):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    settings = resolve({"target_batch_size": 16, "rounds": ROUNDS, "progress": "off"})
    run = tradewind.Run(settings, FakeEngine, node=Node(dist.group.WORLD))
    model = DistributedDataParallel(model_of(kind))
    inner = optimizer_of(kind, model)
    opt = run.optimizer(
        model,
        inner,
        scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
        batch_size=4,
        alias="copied" not in kind,
    )
    if "decays" in kind:
        run.extra_state(dict, lambda _: None, after_round=lambda: decay(model))
    inputs, targets = data(8)
    mine = slice(rank * 4, rank * 4 + 4)
    verdicts = []
    while not run.finished:
        if kind == "leaves" and rank == 1 and run.round == 2:
            run.leave()
        opt.zero_grad()
        loss_of(model, inputs[mine], targets[mine]).backward()
        verdicts.append(opt.step())
    state = {name: value.numpy().copy() for name, value in model.module.state_dict().items()}
    results.put((rank, verdicts, state, inner.param_groups[0]["lr"], run.round, run.is_first))
    run.close()
    dist.destroy_process_group()


class Complete(FakeEngine):
    """A run that was complete before this peer came: it has the parameters of the last round."""

    def _begin(self):
        self.vectors[0][:] = 0.5
        self.round, self.loaded = self.rounds, True
        self.calls.load(self.round, True)

    def view(self):
        return {**super().view(), "ended": "the run is complete: 6 rounds – done"}


def late_main(rank, world, store, kind, results):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    settings = resolve({"rounds": ROUNDS, "progress": "off"})
    run = tradewind.Run(settings, Complete, node=Node(dist.group.WORLD))
    model = model_of(kind)
    run.optimizer(model, optimizer_of(kind, model), batch_size=4)
    run.start()
    state = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    results.put((rank, run.finished, state, run.round))
    run.close()
    dist.destroy_process_group()


class Ahead(FakeEngine):
    """One round more is decided than the model has, as in delayed."""

    def view(self):
        view = super().view()
        return {**view, "samples": view["samples"] + 16}


def ahead_main(rank, world, store, kind, results):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    settings = resolve({"target_batch_size": 16, "rounds": ROUNDS, "progress": "off"})
    run = tradewind.Run(settings, Ahead, node=Node(dist.group.WORLD))
    model = model_of(kind)
    opt = run.optimizer(model, optimizer_of(kind, model), batch_size=4)
    inputs, targets = data(4)
    counts = []
    while not run.finished:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
        counts.append(run.samples)
    results.put((rank, counts, {}))
    run.close()
    dist.destroy_process_group()


def ranks(tmp_path, kind, world=2, main=rank_main):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [
        context.Process(target=main, args=(rank, world, tmp_path / "store", kind, results))
        for rank in range(world)
    ]
    for process in processes:
        process.start()
    found = sorted((results.get(timeout=150) for _ in processes), key=lambda result: result[0])
    for process in processes:
        process.join(20)
    return [
        (*one[:2], {name: torch.from_numpy(value) for name, value in one[2].items()}, *one[3:])
        for one in found
    ]


@pytest.mark.timeout(180)
def test_all_ranks_count_the_samples_of_the_rounds_that_the_model_has(tmp_path):
    first, second = ranks(tmp_path, "plain", main=ahead_main)
    assert first[1] == second[1] and first[1][-1] == 16 * ROUNDS


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["plain", "foreign", "copied", "batchnorm", "decays", "decays copied"])
def test_all_ranks_have_the_parameters_of_rank_0(tmp_path, kind):
    first, second = ranks(tmp_path, kind)
    assert first[1] == second[1] == [False, True] * ROUNDS
    for name, value in first[2].items():
        if "num_batches" not in name:
            assert torch.equal(value, second[2][name]), name
    assert first[3:5] == second[3:5] == (1e-2 / 8, ROUNDS)
    assert first[5] and not second[5]
    if kind in ("plain", "foreign", "copied"):
        other = model_of(kind)
        bare = optimizer_of(kind, other)
        train(other, bare, ROUNDS, torch.optim.lr_scheduler.StepLR(bare, 2, 0.5))
        mine = model_of(kind)
        mine.load_state_dict(first[2])
        assert_close(mine, other, rtol=1e-3, atol=1e-5)


@pytest.mark.timeout(60)
def test_all_ranks_leave_where_one_of_them_does(tmp_path):
    first, second = ranks(tmp_path, "leaves")
    assert first[1] == second[1] and len(first[1]) < 2 * ROUNDS
    assert first[4] == second[4] in (2, 3)


@pytest.mark.timeout(60)
def test_all_ranks_have_the_parameters_of_a_run_that_was_complete(tmp_path):
    for rank in ranks(tmp_path, "plain", main=late_main):
        assert rank[1] and rank[3] == ROUNDS
        assert all(bool((value == 0.5).all()) for value in rank[2].values())


def test_a_group_needs_torch_distributed():
    with pytest.raises(tradewind.MisuseError, match="init_process_group"):
        tradewind.join(group="world")
