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


def lightning_fit(run, module, loaders, validation=None, **arguments):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning

    strategy = tradewind.lightning.Strategy(run)
    trainer = lightning.Trainer(strategy=strategy, max_epochs=-1, **arguments, **trainers.QUIET)
    trainer.fit(module, loaders, validation)


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


def test_epochs_go_on_where_a_callback_of_transformers_ends_the_run(fake_run, tmp_path):
    transformers = pytest.importorskip("transformers")
    heard = []

    class Stops(transformers.TrainerCallback):
        def on_epoch_begin(self, args, state, control, **named):
            heard.append(("begin", state.global_step))

        def on_epoch_end(self, args, state, control, **named):
            heard.append(("end", state.global_step))

        def on_step_end(self, args, state, control, **named):
            control.should_training_stop = control.should_training_stop or state.global_step == 2

    run = fake_run(target_batch_size=20, rounds=9)
    trainer = transformers_trainer(run, tmp_path)
    trainer.add_callback(Stops())
    trainer.train()
    assert run.finished and heard == [("begin", 0), ("end", 2), ("begin", 2), ("end", 3)]


def test_a_peer_that_transformers_alone_ends_is_told(fake_run, tmp_path):
    transformers = pytest.importorskip("transformers")

    class Stops(transformers.TrainerCallback):
        def on_substep_end(self, args, state, control, **named):
            control.should_training_stop = True

    run = fake_run(target_batch_size=20, rounds=9)
    trainer = transformers_trainer(run, tmp_path)
    trainer.add_callback(Stops())
    with pytest.warns(TradewindWarning, match="peer ended in round 0 of 9, .*: it has left"):
        trainer.train()
    assert run.finished and fake_run.engines[0].leaving


@pytest.mark.parametrize("best", [False, True])
def test_a_callback_that_ends_the_training_of_transformers_ends_the_run(fake_run, tmp_path, best):
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
    trainer.train()
    assert run.finished and run.round == 5 and not fake_run.engines[0].leaving
    trainer.evaluate()
    losses = [one["eval_loss"] for one in trainer.state.log_history if "eval_loss" in one]
    assert losses[-1] == (min(losses[:5]) if best else losses[4])


def later_rounds(fake_run, at, rounds):
    """A callback in whose evaluation after round `at` other peers do so many rounds."""
    transformers = pytest.importorskip("transformers")

    class Others(transformers.TrainerCallback):
        def on_evaluate(self, args, state, control, **named):
            if state.global_step == at:
                fake_run.engines[0].missed_next = rounds

    return Others()


@pytest.mark.parametrize("rows", [40, 12])
def test_the_run_may_end_while_transformers_evaluates(fake_run, tmp_path, rows, caplog):
    run = fake_run(target_batch_size=8, rounds=6)
    often = {"eval_strategy": "steps", "eval_steps": 3, "save_strategy": "steps", "save_steps": 3}
    trainer = transformers_trainer(run, tmp_path, **often, logging_steps=1)
    trainer.train_dataset = trainers.Rows(size=rows)
    heard = []
    for name in ("begin", "end"):
        call = getattr(trainer._epochs, name)
        setattr(trainer._epochs, name, lambda *rest, n=name, c=call: heard.append(n) or c(*rest))
    trainer.add_callback(later_rounds(fake_run, 3, 3))
    result = trainer.train()
    history = trainer.state.log_history
    assert run.finished and run.round == trainer.state.global_step == result.global_step == 6
    assert [one["step"] for one in history if "eval_loss" in one] == [3, 6]
    assert (tmp_path / "checkpoint-6").is_dir() and "not to be a single sample" not in caplog.text
    losses = [one["loss"] for one in history if "loss" in one]
    assert len(losses) == 4 and losses[3] == pytest.approx(losses[2], rel=1e-3)
    assert result.metrics["train_loss"] == pytest.approx((sum(losses) + 2 * losses[3]) / 6, rel=1e-3)
    assert trainer.state.epoch == run.samples / rows
    assert heard[::2] == ["begin"] * (len(heard) // 2) and heard[1::2] == ["end"] * (len(heard) // 2)


def test_an_optimizer_that_swaps_weights_is_refused_by_the_trainer(fake_run, tmp_path):
    trainer = transformers_trainer(fake_run(), tmp_path)

    class ScheduleFree(torch.optim.SGD):
        def train(self):
            pass

        eval = train

    trainer.optimizer = ScheduleFree(trainer.model.parameters(), lr=0.1)
    with pytest.raises(UnsupportedError, match=r"ScheduleFree swaps weights in its train\(\) and eval\(\)"):
        trainer.train()


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


@pytest.mark.parametrize("often", [2, None])
def test_early_stopping_of_lightning_ends_the_run(fake_run, often):
    pytest.importorskip("lightning")
    from lightning.pytorch.callbacks import EarlyStopping

    module = trainers.module_of()
    module.validation_step = lambda batch, batch_idx: module.log("worse", float(module.global_step))
    run = fake_run(target_batch_size=4, rounds=50)
    loader = DataLoader(TensorDataset(*data(40)), batch_size=4)
    stopping = EarlyStopping("worse", patience=1)
    validated = {"val_check_interval": often, "check_val_every_n_epoch": None} if often else {}
    lightning_fit(run, module, loader, loader, callbacks=[stopping], **validated)
    second = 2 * often if often else 20
    assert run.finished and run.round == second + 1, "the second evaluation is the first one that is worse"


@pytest.mark.parametrize("hook,last", [("training_step", 5), ("on_train_batch_end", 4)])
def test_what_stops_lightning_ends_the_run(fake_run, hook, last):
    pytest.importorskip("lightning")
    module = trainers.module_of()
    step = getattr(module, hook)

    def stops(*arguments):
        module.trainer.should_stop = module.trainer.should_stop or module.global_step == 3
        return step(*arguments)

    setattr(module, hook, stops)
    run = fake_run(target_batch_size=4, rounds=50)
    lightning_fit(run, module, DataLoader(TensorDataset(*data(40)), batch_size=4))
    assert run.finished and run.round == last and not fake_run.engines[0].leaving
    assert not module.trainer.checkpoint_callbacks, "those of the program alone"


def test_what_stops_each_epoch_of_lightning_before_its_first_batch(fake_run):
    pytest.importorskip("lightning")
    run, module, epochs = fake_run(target_batch_size=4, rounds=50), trainers.module_of(), []

    def on_train_epoch_start():
        epochs.append(run.round)
        module.trainer.should_stop = run.round >= 10 or len(epochs) > 9

    module.on_train_epoch_start = on_train_epoch_start
    with pytest.warns(TradewindWarning, match="peer ended in round 10 of 50"):
        lightning_fit(run, module, DataLoader(TensorDataset(*data(40)), batch_size=4))
    assert run.finished and epochs == [0, 10]


def test_a_peer_that_lightning_alone_ends_is_told(fake_run):
    pytest.importorskip("lightning")
    run = fake_run(target_batch_size=4, rounds=50)
    loader = DataLoader(TensorDataset(*data(40)), batch_size=4)
    with pytest.warns(TradewindWarning, match="peer ended in round 3 of 50, .* it has left"):
        lightning_fit(run, trainers.module_of(), loader, max_steps=3)
    assert run.finished and fake_run.engines[0].leaving


@pytest.mark.parametrize("is_iterable", [False, True])
@pytest.mark.parametrize("how", ["others end it", "this peer leaves"])
def test_lightning_ends_where_the_run_ends_during_a_validation(fake_run, how, is_iterable):
    pytest.importorskip("lightning")
    run, module, epochs = fake_run(target_batch_size=4, rounds=12), trainers.module_of(), []

    def on_validation_start():
        if run.round == 6 and how == "others end it":
            fake_run.engines[0].missed_next = 6
        elif run.round == 6:
            run.leave()

    module.on_validation_start = on_validation_start
    module.on_train_epoch_start = lambda: epochs.append(run.round)
    rows = TensorDataset(*data(40))
    loader = DataLoader(Stream(40) if is_iterable else rows, batch_size=4)
    often = {"val_check_interval": 3, "check_val_every_n_epoch": None, "min_steps": 100}
    lightning_fit(run, module, loader, DataLoader(rows, batch_size=4), **often)
    last = 6 if how == "this peer leaves" else 12
    assert run.finished and run.round == module.trainer.global_step == last
    assert epochs == [0]


@pytest.mark.parametrize("how", ["LearningRateFinder", "BatchSizeFinder", "Tuner"])
def test_what_tries_settings_in_lightning_is_refused(fake_run, how):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning
    from lightning.pytorch import callbacks, tuner

    run, module = fake_run(target_batch_size=4, rounds=12), trainers.module_of()
    module.batch_size, module.train_dataloader = 4, lambda: DataLoader(TensorDataset(*data(40)), batch_size=4)
    with pytest.raises(UnsupportedError, match="Finder trains with settings that it tries"):
        if how != "Tuner":
            lightning_fit(run, module, None, callbacks=[getattr(callbacks, how)()])
        strategy = tradewind.lightning.Strategy(run)
        trainer = lightning.Trainer(strategy=strategy, max_epochs=-1, **trainers.QUIET)
        tuner.Tuner(trainer).lr_find(module)
    assert not run.started


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
