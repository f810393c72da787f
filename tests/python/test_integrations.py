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
    accelerator = accelerate.Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=2)
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


@pytest.mark.skipif(not hasattr(torch, "_disable_dynamo"), reason="without torch.compile")
def test_a_compiled_train_step_leaves_the_step_of_the_run_as_it_is(fake_run, monkeypatch):
    model, traced = mlp(), []
    run = fake_run(target_batch_size=8, rounds=4)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    for name in ("step", "zeroed"):

        def seen(*arguments, call=getattr(run._life, name)):
            traced.append(torch.compiler.is_compiling())
            return call(*arguments)

        monkeypatch.setattr(run._life, name, seen)

    @torch.compile(backend="eager")
    def train(inputs, targets):
        loss_of(model, inputs, targets).backward()
        opt.step()
        opt.zero_grad()

    while not run.finished:
        train(*data())
    assert run.round == 4 and traced == [False] * 8


def transformers_trainer(run, folder, model=None, **arguments):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import tradewind.transformers

    return tradewind.transformers.Trainer(
        run,
        model=model or trainers.language_model(),
        args=trainers.arguments_of(folder, **arguments),
        train_dataset=trainers.Rows(),
        eval_dataset=trainers.Rows(),
    )


def test_transformers_trains_until_the_run_is_over(fake_run, tmp_path):
    run = fake_run(target_batch_size=16, rounds=6)
    trainer = transformers_trainer(run, tmp_path)
    trainer.train()
    engine = fake_run.engines[0]
    assert run.finished and [had for _, _, had, _ in engine.handed] == [8] * 12
    assert engine.shape.clip_norm == 1.0 and trainer.optimizer.param_groups[0]["lr"] == 0.0
    # 96 of the run's samples, none twice in an epoch of 40.
    seen = trainer.train_dataset.seen
    assert sorted(seen) == sorted([*range(40), *range(40), *seen[80:]]) and len(set(seen[80:])) == 16


@pytest.mark.parametrize("every", [1, 2])
def test_steps_and_epochs_of_transformers_are_those_of_the_run(fake_run, tmp_path, every):
    run = fake_run(target_batch_size=16, rounds=6)
    often = {"logging_steps": every, "save_strategy": "steps", "save_steps": 3, "eval_strategy": "epoch"}
    trainer = transformers_trainer(run, tmp_path, **often)
    losses = []
    step = trainer.training_step
    trainer.training_step = lambda *a, **n: losses.append(2 * float(found := step(*a, **n))) or found
    result = trainer.train()
    history = trainer.state.log_history
    logged = {one["step"]: one["loss"] for one in history if "loss" in one}
    assert list(logged) == [*range(every, 7, every)]
    assert result.global_step == 6 and trainer.state.max_steps == 6
    each = 4 * every  # microbatches
    for at, loss in enumerate(logged.values()):
        assert loss == pytest.approx(sum(losses[each * at : each * (at + 1)]) / each, rel=1e-3)
    assert result.training_loss == pytest.approx(sum(losses) / 24, rel=1e-3)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-3", "checkpoint-6"}
    found = [(one["step"], "eval_loss", one["eval_loss"]) for one in history if "eval_loss" in one]
    assert [step for step, _, _ in found] == [3, 5]
    assert fake_run.engines[0].evaluations == found
    assert trainer.state.epoch == pytest.approx(96 / 40)


def test_a_schedule_of_transformers_has_the_rounds_of_the_run_file(fake_run, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("training: {rounds: 500}\n")
    assert transformers_trainer(fake_run(file=str(file)), tmp_path).args.max_steps == 500


def test_lora_with_its_empty_group_trains(fake_run, tmp_path):
    peft = pytest.importorskip("peft")
    run = fake_run(target_batch_size=16, rounds=3)
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    model = peft.get_peft_model(trainers.language_model(), config)
    trainer = transformers_trainer(run, tmp_path, model=model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer.train()
    assert run.round == 3 and [len(group["params"]) for group in trainer.optimizer.param_groups] == [2, 0]
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved and all("lora_" in name for name in moved)


def test_transformers_goes_on_from_a_checkpoint_of_its_own(fake_run, tmp_path):
    often = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 1}
    trainer = transformers_trainer(fake_run(target_batch_size=16, rounds=6), tmp_path, **often)
    trainer.train()
    moments = trainer.optimizer.state_dict()["state"]
    trainer._run.close()
    run = fake_run(target_batch_size=16, rounds=6)
    resumed = transformers_trainer(run, tmp_path, **often)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    rates, whole = (
        [(one["step"], one["learning_rate"]) for one in history if "learning_rate" in one]
        for history in (resumed.state.log_history, trainer.state.log_history)
    )
    assert run.round == 6 and fake_run.engines[1].round == 3 and run.samples == 96
    assert rates == whole
    for mine, theirs in zip(resumed.optimizer.state_dict()["state"].values(), moments.values()):
        assert mine["step"] == theirs["step"] == 6


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
    assert module.optimizers().param_groups[0]["lr"] == 1e-2 / 8 and trainer.global_step == 6


def test_lightning_gets_the_number_of_the_gpu(monkeypatch):
    pytest.importorskip("lightning")
    import tradewind.lightning

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    strategy = tradewind.lightning.Strategy
    assert strategy(None, device="cuda").root_device == torch.device("cuda", 3)
    assert strategy(None, device="cuda:1").root_device == torch.device("cuda", 1)
    assert strategy(None, device="cpu").root_device == torch.device("cpu")


def test_others_do_the_part_of_a_peer_of_lightning_that_validates(fake_run):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning

    run = fake_run(target_batch_size=16, rounds=6)
    trainer = lightning.Trainer(
        strategy=tradewind.lightning.Strategy(run),
        max_epochs=-1,
        val_check_interval=4,
        num_sanity_val_steps=0,
        **trainers.QUIET,
    )
    module = trainers.module_of()
    said = []

    def validation_step(batch, batch_idx):
        said.append(fake_run.engines[0].why)
        module.log("score", float(len(said)))

    module.validation_step = validation_step
    kept = DataLoader(TensorDataset(*data(8)), batch_size=8)
    trainer.fit(module, DataLoader(TensorDataset(*data(40)), batch_size=4), kept)
    assert set(said[:-1]) == {"validating"} and said[-1] is None  # the last time the run was over
    told = fake_run.engines[0].evaluations
    assert [(name, value) for _, name, value in told] == [("score", n + 1.0) for n in range(len(said))]


def test_accelerate_prepares_a_loader_for_shard(fake_run):
    accelerate = pytest.importorskip("accelerate")
    model = mlp()
    run = fake_run(target_batch_size=16, rounds=3)
    accelerator = accelerate.Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=2)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    loader = DataLoader(TensorDataset(*data(48)), batch_size=4, shuffle=True, drop_last=True)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    steps = 0
    for batch in run.shard(loader, accumulate=2):
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(model, *batch))
            opt.step()
            opt.zero_grad()
        steps += 1
    assert steps == 12 and [had for _, _, had, _ in fake_run.engines[0].handed] == [8] * 6


def survivors(crew, peers):
    """What the first two say at the end, after the third was killed."""
    peers[0].until_round(2)
    peers[2].kill()
    found = [peer.result(200) for peer in peers[:2]]
    assert found[0]["state"] == found[1]["state"]
    assert [(one["round"], one["steps"]) for one in found] == [(12, 12)] * 2
    # Samples of a peer that was late are computed again; peers with one order would share all.
    seen = [*found[0]["seen"], *found[1]["seen"]]
    assert len(set(seen)) > 0.9 * len(seen)
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
    assert found[0]["saved"] == ["checkpoint-10", "checkpoint-12"]


@needs_engine
def test_peers_of_lightning_go_on_when_one_is_killed(tmp_path):
    pytest.importorskip("lightning")
    with crew_of(target_batch_size=24, rounds=12) as crew:
        peers = [
            crew.start(trainers.lightning_peer, wait_for=3, folder=str(tmp_path), pause_s=0.02)
            for _ in range(3)
        ]
        found = survivors(crew, peers)
    assert [one["rate"] for one in found] == [1e-2 / 64] * 2
    assert found[0]["best"] != found[1]["best"]
    for one in found:
        assert one["tested"] == pytest.approx(one["score"])
