# SPDX-License-Identifier: Apache-2.0
"""The real Accelerate, transformers and Lightning, on the engine's double; skipped where there are none."""

import pytest
import torch
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
    assert [had for _, _, had, _ in fake_run.engines[0].handed] == [8] * 5
    assert inner.param_groups[0]["lr"] == pytest.approx(1e-2 * 0.9**5)


def test_transformers_trains_until_the_run_is_over(fake_run, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import tradewind.transformers

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            tokens = (torch.arange(16) * (index + 1)) % 50
            return {"input_ids": tokens, "labels": tokens}

    shape = {"vocab_size": 50, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    run = fake_run(target_batch_size=16, rounds=6)
    trainer = tradewind.transformers.Trainer(run, model=model, args=arguments, train_dataset=Rows())
    trainer.train()
    engine = fake_run.engines[0]
    assert run.finished and [had for _, _, had, _ in engine.handed] == [8] * 12
    assert engine.shape.clip_norm == 1.0 and trainer.optimizer.param_groups[0]["lr"] == 0.0


def test_lightning_trains_until_the_run_is_over(fake_run):
    lightning = pytest.importorskip("lightning")
    import tradewind.lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp()

        def training_step(self, batch, number):
            return loss_of(self.net, *batch)

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    run = fake_run(target_batch_size=16, rounds=6)
    strategy = tradewind.lightning.Strategy(run, clip_grad_norm=1.0)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(strategy=strategy, max_epochs=-1, accumulate_grad_batches=2, **quiet)
    module = Module()
    trainer.fit(module, DataLoader(TensorDataset(*data(40)), batch_size=4))
    assert run.finished and [had for _, _, had, _ in fake_run.engines[0].handed] == [8] * 12
    assert module.optimizers().param_groups[0]["lr"] == 1e-2 / 8
