# SPDX-License-Identifier: Apache-2.0
"""What users of Lightning, transformers and Accelerate set, and the run has to honour or to name."""

import warnings

import pytest
import torch
import trainers
from models import data, loss_of, mlp
from test_integrations import transformers_trainer
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    SequentialSampler,
    TensorDataset,
    default_collate,
)
from tradewind import MisuseError, TradewindWarning, UnsupportedError

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]


def numbered(size=40):
    return TensorDataset(*data(size), torch.arange(size))


def lightning_fit(run, module, loaders, **arguments):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning

    strategy = tradewind.lightning.Strategy(run)
    lightning.Trainer(strategy=strategy, max_epochs=-1, **arguments, **trainers.QUIET).fit(module, loaders)


def seeing(module):
    seen = []
    step = module.training_step

    def training_step(batch, batch_idx):
        seen.extend(batch[2].tolist())
        return step(batch, batch_idx)

    module.training_step = training_step
    return seen


@pytest.mark.parametrize("limit,shuffle", [("overfit_batches", True), ("limit_train_batches", False)])
@pytest.mark.parametrize("batches", [2, 0.2])
def test_the_first_batches_alone_are_trained(fake_run, limit, shuffle, batches):
    pytest.importorskip("lightning")
    module = trainers.module_of()
    seen = seeing(module)
    loader = DataLoader(numbered(), batch_size=4, shuffle=shuffle)
    lightning_fit(fake_run(target_batch_size=4, rounds=6), module, loader, **{limit: batches})
    assert seen == [*range(8)] * 3


def scheduled(**config):
    module = trainers.module_of()

    def configure_optimizers():
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **config}}

    module.configure_optimizers = configure_optimizers
    return module


def test_the_pace_of_a_schedule_of_lightning_is_named(fake_run):
    pytest.importorskip("lightning")
    loader = DataLoader(TensorDataset(*data(40)), batch_size=4)
    with pytest.raises(UnsupportedError, match="StepLR has frequency 3"):
        lightning_fit(fake_run(), scheduled(interval="step", frequency=3), loader)
    run = fake_run(target_batch_size=4, rounds=2)
    with pytest.warns(UserWarning, match='StepLR has "interval": "epoch", and the run steps it once a round'):
        lightning_fit(run, scheduled(), loader)
    run.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lightning_fit(fake_run(target_batch_size=4, rounds=2), scheduled(interval="step"), loader)
    assert not [one for one in told if "interval" in str(one.message) and "the run" in str(one.message)]


def test_several_loaders_of_lightning_are_named(fake_run):
    pytest.importorskip("lightning")
    loaders = [DataLoader(TensorDataset(*data(40)), batch_size=4) for _ in range(2)]
    with pytest.raises(UnsupportedError, match="training has 2 loaders"):
        lightning_fit(fake_run(target_batch_size=4, rounds=2), trainers.module_of(), loaders)


@pytest.mark.parametrize("skips", [False, True])
def test_an_epoch_of_lightning_that_ends_early(fake_run, skips):
    pytest.importorskip("lightning")
    run, module = fake_run(target_batch_size=4, rounds=6), trainers.module_of()

    def on_train_batch_start(batch, number):
        if number == 3:
            if skips:
                run.skip()
            return -1

    module.on_train_batch_start = on_train_batch_start
    loader = DataLoader(TensorDataset(*data(40)), batch_size=4)
    if skips:
        lightning_fit(run, module, loader)
        assert run.finished and run.metrics["skipped"] == 1
    else:
        with pytest.raises(UnsupportedError, match=r"on_train_batch_start\(\) returned -1"):
            lightning_fit(run, module, loader)


def test_callbacks_of_transformers_hear_epochs_of_the_run(fake_run, tmp_path):
    transformers = pytest.importorskip("transformers")
    heard = []

    class Epochs(transformers.TrainerCallback):
        def on_epoch_begin(self, args, state, control, **named):
            heard.append(("begin", state.global_step))

        def on_epoch_end(self, args, state, control, **named):
            heard.append(("end", state.global_step))

    trainer = transformers_trainer(fake_run(target_batch_size=20, rounds=4), tmp_path)
    trainer.add_callback(Epochs())
    trainer.train()
    assert heard == [("begin", 0), ("end", 2), ("begin", 2), ("end", 4)]
    assert trainer.state.num_train_epochs == 2


@pytest.mark.parametrize("best", [False, True])
def test_a_callback_that_ends_the_training_of_transformers_leaves_the_run(fake_run, tmp_path, best):
    transformers = pytest.importorskip("transformers")

    class Stops(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **named):
            control.should_training_stop = state.global_step == 4

    often = {"eval_strategy": "steps", "eval_steps": 1, "save_strategy": "steps", "save_steps": 1}
    run = fake_run(target_batch_size=8, rounds=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = transformers_trainer(run, tmp_path, **often, load_best_model_at_end=best, learning_rate=1.0)
    trainer.add_callback(Stops())
    with pytest.warns(TradewindWarning, match="peer ended in round 4 of 9, by a callback .*: it has left"):
        trainer.train()
    assert run.finished and run.round == 4 and fake_run.engines[0].leaving
    trainer.evaluate()
    losses = [one["eval_loss"] for one in trainer.state.log_history if "eval_loss" in one]
    assert losses[-1] == (min(losses[:4]) if best else losses[3])


def test_transformers_logs_the_rate_that_a_round_used(fake_run, tmp_path):
    trainer = transformers_trainer(
        fake_run(target_batch_size=8, rounds=4), tmp_path, logging_steps=1, learning_rate=0.1
    )
    trainer.train()
    rates = [one["learning_rate"] for one in trainer.state.log_history if "learning_rate" in one]
    assert rates == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_the_log_of_a_run_has_the_loss_of_transformers(fake_run, tmp_path):
    run = fake_run(target_batch_size=16, rounds=2)
    trainer = transformers_trainer(run, tmp_path)
    losses = []
    step = type(trainer).training_step

    def training_step(self, *arguments):
        losses.append(float(found := step(self, *arguments)))
        return found

    trainer.__class__ = type("Trainer", (type(trainer),), {"training_step": training_step})
    trainer.train()
    each = [8 * (losses[at] + losses[at + 1]) for at in range(0, 8, 2)]  # two batches of 4 a step
    assert [loss for _, _, _, loss in fake_run.engines[0].handed] == pytest.approx(each)
    assert run.metrics["loss"] == pytest.approx(sum(each[2:]) / 16)


def test_transformers_logs_the_speed_of_the_run(fake_run, tmp_path):
    trainer = transformers_trainer(fake_run(target_batch_size=32, rounds=3), tmp_path)
    metrics = trainer.train().metrics
    logged = trainer.state.log_history[-1]
    for found in (metrics, logged):
        assert found["train_samples_per_second"] * found["train_runtime"] == pytest.approx(96, rel=0.02)
        assert found["train_steps_per_second"] * found["train_runtime"] == pytest.approx(3, rel=0.02)


def test_a_trainer_whose_batches_the_run_cannot_make_names_the_plain_one(fake_run, tmp_path):
    transformers = pytest.importorskip("transformers")
    import tradewind.transformers

    class Buckets(BatchSampler):
        def __iter__(self):
            return reversed(list(super().__iter__()))

    class Bucketed(transformers.Trainer):
        def get_train_dataloader(self):
            batches = Buckets(SequentialSampler(self.train_dataset), 4, False)
            return DataLoader(self.train_dataset, batch_sampler=batches)

    class Mixed(tradewind.transformers.Trainer, Bucketed):
        pass

    arguments = trainers.arguments_of(tmp_path)
    model, rows = trainers.language_model(), trainers.Rows()
    trainer = Mixed(fake_run(), model=model, args=arguments, train_dataset=rows)
    text = r"batch_sampler=Buckets.*Or train with Bucketed alone, optimizers=.*batch_size=8\), None"
    with pytest.raises(UnsupportedError, match=text):
        trainer.train()


def test_batches_that_accelerate_dispatches_are_counted(fake_run):
    accelerate = pytest.importorskip("accelerate")
    model, run = mlp(), fake_run(target_batch_size=8, rounds=3)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    config = accelerate.DataLoaderConfiguration(dispatch_batches=True)
    accelerator = accelerate.Accelerator(cpu=not torch.cuda.is_available(), dataloader_config=config)
    loader = DataLoader(TensorDataset(*data(64)), batch_size=8)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in run.batches(loader):
        accelerator.backward(loss_of(model, *batch))
        opt.step()
        opt.zero_grad()
    assert run.finished and [had for _, _, had, _ in fake_run.engines[0].handed] == [8] * 3


class Stream(IterableDataset):
    """Samples of data(), one by one."""

    def __init__(self, size):
        self.rows = list(zip(*data(size)))

    def __iter__(self):
        return iter(self.rows)


def every_second_none():
    """A collate_fn of which every second batch is None."""
    made = []

    def collate(samples):
        made.append(len(samples))
        return None if len(made) % 2 == 0 else default_collate(samples)

    return collate


def handed(fake_run):
    return [had for _, _, had, _ in fake_run.engines[0].handed]


@pytest.mark.parametrize("none", [False, True])
def test_lightning_counts_what_it_hands_on_of_an_iterable_data_set(fake_run, none):
    pytest.importorskip("lightning")
    run = fake_run(target_batch_size=4, rounds=4)
    loader = DataLoader(Stream(40), batch_size=4, collate_fn=every_second_none() if none else None)
    lightning_fit(run, trainers.module_of(), loader)
    assert run.finished and handed(fake_run) == [4] * 4 and run.samples == 16


def test_single_samples_of_lightning_are_no_batches(fake_run):
    pytest.importorskip("lightning")
    module, stream = trainers.module_of(), Stream(40)
    stream.rows = [(row, float(target)) for row, target in stream.rows]
    module.training_step = lambda batch, batch_idx: module.net(batch[0]).sum()
    with pytest.raises(MisuseError, match="as if this were one sample"):
        lightning_fit(fake_run(target_batch_size=4, rounds=2), module, DataLoader(stream, batch_size=None))


def test_lightning_that_fails_ends_the_part_of_its_peer_as_failed(fake_run):
    pytest.importorskip("lightning")
    run, module = fake_run(target_batch_size=4, rounds=6), trainers.module_of()

    def on_train_batch_end(*_):
        raise RuntimeError("enough")

    module.on_train_batch_end = on_train_batch_end
    with pytest.raises(RuntimeError, match="enough"):
        lightning_fit(run, module, DataLoader(TensorDataset(*data(40)), batch_size=4))
    assert run.ending == "failed"


def test_transformers_counts_an_iterable_data_set_epoch_after_epoch(fake_run, tmp_path):
    class Lines(IterableDataset):
        def __iter__(self):
            return iter([trainers.Rows()[at] for at in range(16)])

    pytest.importorskip("transformers")
    import tradewind.transformers

    run = fake_run(target_batch_size=8, rounds=5)
    arguments = trainers.arguments_of(tmp_path, max_steps=5)
    model = trainers.language_model()
    tradewind.transformers.Trainer(run, model=model, args=arguments, train_dataset=Lines()).train()
    assert run.finished and run.samples == 40 and set(handed(fake_run)) == {8}  # two batches a step


def test_lightning_counts_what_a_module_takes_from_the_loader_itself_and_keeps_none(fake_run):
    pytest.importorskip("lightning")
    module, kept = trainers.module_of(), []

    def training_step(self, dataloader_iter):
        batch, _, _ = next(dataloader_iter)
        kept.append(len(self.trainer.strategy._counted._ahead))
        return loss_of(self.net, *batch)

    module.training_step = training_step.__get__(module)
    lightning_fit(fake_run(target_batch_size=4, rounds=4), module, DataLoader(Stream(40), batch_size=4))
    assert handed(fake_run) == [4] * 4 and kept == [0] * 4


def test_lightning_counts_what_a_hook_makes_of_a_batch(fake_run):
    pytest.importorskip("lightning")
    module = trainers.module_of()
    module.on_before_batch_transfer = lambda batch, _: [torch.stack(list(column)) for column in zip(*batch)]
    stream = Stream(40)
    stream.rows = [stream.rows[at : at + 4] for at in range(0, 40, 4)]  # how many samples is not known
    lightning_fit(fake_run(target_batch_size=4, rounds=4), module, DataLoader(stream, batch_size=None))
    assert handed(fake_run) == [4] * 4


def test_a_trainer_whose_optimizer_is_not_the_runs_cannot_resume(fake_run, tmp_path):
    trainer = transformers_trainer(fake_run(target_batch_size=8, rounds=3), tmp_path)
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.1)
    with pytest.raises(MisuseError, match=r"Trainer.create_optimizer\(\) did not call that of tradewind"):
        trainer._load_optimizer_and_scheduler(str(tmp_path))
