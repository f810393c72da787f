# SPDX-License-Identifier: Apache-2.0
"""What real peers do in the tests of integrations: trainers of transformers and Lightning, in processes."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List

import torch
import tradewind
from loops import state_of, watch
from models import data, loss_of, mlp
from torch.utils.data import DataLoader, Dataset, TensorDataset

Report = Callable[..., None]
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


class Rows(Dataset):
    """Rows of 16 tokens; each takes pause_s to load. seen: those that were loaded."""

    def __init__(self, pause_s: float = 0.0, size: int = 40) -> None:
        self.pause_s, self.size = pause_s, size
        self.seen: List[int] = []

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        self.seen.append(index)
        time.sleep(self.pause_s)
        tokens = (torch.arange(16) * (index + 1)) % 50
        return {"input_ids": tokens, "labels": tokens}


def language_model() -> Any:
    import transformers

    torch.manual_seed(1)
    shape = {"vocab_size": 50, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))


def arguments_of(folder: Any, **more: Any) -> Any:
    """Batches of 4, two of them a step."""
    import transformers

    return transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        disable_tqdm=True,
        **{"save_strategy": "no", **more},
    )


def module_of(learning_rate: float = 1e-2) -> Any:
    """A Lightning module whose rate is halved every second step of its schedule."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()

        def training_step(self, batch: Any, number: int) -> Any:
            return loss_of(self.net, *batch[:2])

        def validation_step(self, batch: Any, number: int) -> None:
            self.log("val_loss", loss_of(self.net, *batch[:2]))

        def test_step(self, batch: Any, number: int) -> None:
            self.log("test_loss", loss_of(self.net, *batch[:2]))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=learning_rate)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    return Module()


def transformers_peer(report: Report, folder: str, pause_s: float = 0.0) -> Any:
    """Saves every second round and evaluates every fourth one; the model, and what it did."""
    import tradewind.transformers

    run = tradewind.join()
    watch(run, report)
    model = language_model()
    rows = Rows(pause_s, 400)
    often = {"save_strategy": "steps", "save_steps": 2, "save_total_limit": 2}
    often |= {"eval_strategy": "steps", "eval_steps": 4}
    trainer = tradewind.transformers.Trainer(
        run,
        model=model,
        args=arguments_of(folder, **often),
        train_dataset=rows,
        eval_dataset=Rows(),
    )
    trainer.train()
    result = {
        "state": state_of(model),
        "round": run.round,
        "steps": trainer.state.global_step,
        "saved": sorted(os.listdir(folder)),
        "evaluated": sum("eval_loss" in one for one in trainer.state.log_history),
        "seen": rows.seen,
    }
    run.close()
    return result


def lightning_peer(report: Report, folder: str, pause_s: float = 0.0) -> Any:
    """A peer that trains a module of Lightning, validates, and tests its best checkpoint."""
    import lightning
    import tradewind.lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    seen: List[int] = []

    class Slow(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            seen.append(index)
            time.sleep(pause_s)
            return super().__getitem__(index)

    run = tradewind.join()
    watch(run, report)
    module = module_of()
    best = ModelCheckpoint(folder, monitor="val_loss", filename="{step}", save_top_k=1)
    trainer = lightning.Trainer(
        strategy=tradewind.lightning.Strategy(run),
        max_epochs=-1,
        val_check_interval=5,
        num_sanity_val_steps=1,
        callbacks=[best],
        **{**QUIET, "enable_checkpointing": True, "default_root_dir": folder},
    )
    kept = DataLoader(TensorDataset(*data(16, seed=9)), batch_size=8)
    trainer.fit(module, DataLoader(Slow(*data(400)), batch_size=4, shuffle=True), kept)
    result = {
        "state": state_of(module),
        "round": run.round,
        "steps": trainer.global_step,
        "rate": module.optimizers().param_groups[0]["lr"],
        "seen": seen,
        "best": best.best_model_path,
    }
    result["tested"] = trainer.test(module, kept, ckpt_path="best", verbose=False)[0]["test_loss"]
    result["score"] = float(best.best_model_score)
    return result
