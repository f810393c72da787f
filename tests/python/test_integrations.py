# SPDX-License-Identifier: Apache-2.0
"""The real Accelerate, transformers and Lightning, on the engine's double; skipped where there are none."""

import pytest
import torch
import trainers
from conftest import needs_engine
from crew import crew_of
from models import data, loss_of, mlp
from torch.utils.data import DataLoader, TensorDataset

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]


def test_accelerate_accumulates_clips_and_schedules(fake_run):
    accelerate = pytest.importorskip("accelerate")
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=5)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    opt = run.optimizer(model, inner)
    schedule = run.scheduler(torch.optim.lr_scheduler.LambdaLR(opt, lambda round_: 0.9**round_))
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    loader = DataLoader(TensorDataset(*data(64)), batch_size=4)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in run.batches(loader):
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(model, *batch))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            schedule.step()
            opt.zero_grad()
    assert run.metrics["steps"] == 5 and run.metrics["surplus"] == 0
    assert inner.param_groups[0]["lr"] == pytest.approx(1e-2 * 0.9**5)


def test_transformers_trains_until_the_run_is_over(fake_run, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import tradewind.transformers

    run = fake_run(target_batch_size=16, rounds=6)
    trainer = tradewind.transformers.Trainer(
        run,
        model=trainers.language_model(),
        args=trainers.arguments_of(tmp_path),
        train_dataset=trainers.Rows(),
    )
    trainer.train()
    engine = fake_run.engines[0]
    assert run.finished and [had for _, _, had, _ in engine.handed] == [8] * 12
    assert engine.shape.clip_norm == 1.0 and trainer.optimizer.param_groups[0]["lr"] == 0.0


def test_lightning_trains_until_the_run_is_over(fake_run):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning

    run = fake_run(target_batch_size=16, rounds=6)
    strategy = tradewind.lightning.Strategy(run, clip_grad_norm=1.0)
    trainer = lightning.Trainer(
        strategy=strategy, max_epochs=-1, accumulate_grad_batches=2, **trainers.QUIET
    )
    module = trainers.module_of()
    trainer.fit(module, DataLoader(TensorDataset(*data(40)), batch_size=4))
    assert run.finished and [had for _, _, had, _ in fake_run.engines[0].handed] == [8] * 12
    assert module.optimizers().param_groups[0]["lr"] == 1e-2 / 8


def survivors(crew, peers):
    """What the first two say at the end, after the third was killed."""
    peers[0].until_round(2)
    peers[2].kill()
    found = [peer.result(200) for peer in peers[:2]]
    assert found[0]["state"] == found[1]["state"] and found[0]["round"] == 12
    return found


@needs_engine
def test_peers_of_transformers_go_on_when_one_is_killed(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    with crew_of(target_batch_size=24, rounds=12) as crew:
        peers = [
            crew.start(trainers.transformers_peer, wait_for=3, folder=str(folder), pause_s=0.02)
            for folder in folders
        ]
        found = survivors(crew, peers)
    for what in ("saved", "evaluated"):
        assert [bool(one[what]) for one in found] == [True, False], (what, found)


@needs_engine
def test_peers_of_lightning_go_on_when_one_is_killed():
    pytest.importorskip("lightning")
    with crew_of(target_batch_size=24, rounds=12) as crew:
        peers = [crew.start(trainers.lightning_peer, wait_for=3, pause_s=0.02) for _ in range(3)]
        found = survivors(crew, peers)
    assert [one["rate"] for one in found] == [1e-2 / 64] * 2
