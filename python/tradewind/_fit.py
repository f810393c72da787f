# SPDX-License-Identifier: Apache-2.0
"""Function style: the run asks for gradients of samples, and any peer's work can be done again by another."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Tuple

import torch

from .data.order import span_seed
from ._shard import Samples, to_device

Loss = Callable[[Any, Any], torch.Tensor]

# Dynamic scaling of float16 losses, as torch's GradScaler has it.
_FIRST_SCALE = 65536.0
_GROWTH_STEPS = 2000


class Summary(NamedTuple):
    """Result of run.fit(): rounds and samples of the run, and steps of this peer. The samples are
    rounds times the target batch size, less those that were lost too late for their round: the next one took them in place of new ones.

    loss: mean over the samples of all peers in the last round. evaluations: (round, result of evaluate). ended: why.
    """

    rounds: int
    samples: int
    steps: int
    loss: Optional[float]
    evaluations: List[Tuple[int, Any]]
    ended: str


class Gradients:
    """Gradients of batches in p.grad. autocast: dtype of the forward pass; float16 scales the loss."""

    def __init__(self, model: Any, loss: Loss, optimizer: Any, autocast: Optional[torch.dtype]) -> None:
        self._model = model
        self._loss = loss
        self._optimizer = optimizer
        self._autocast = autocast
        self._scale = _FIRST_SCALE if autocast == torch.float16 else 1.0
        self._good_steps = 0
        self._device = next(model.parameters()).device

    def _forward(self) -> ContextManager[Any]:
        if self._autocast is None:
            return contextlib.nullcontext()
        cast: ContextManager[Any] = torch.autocast(self._device.type, dtype=self._autocast)
        return cast

    def compute(self, batch: Any, seed: int) -> torch.Tensor:
        """The mean loss of a batch; its gradient is in p.grad. Done again with a smaller scale where
        float16 ended.
        """
        moved = to_device(batch, self._device)
        while True:
            torch.manual_seed(seed)
            self._optimizer.zero_grad()
            with self._forward():
                loss = self._loss(self._model, moved)
            (loss * self._scale if self._scale != 1 else loss).backward()  # type: ignore[no-untyped-call]
            if self._autocast != torch.float16 or self._unscale():
                return loss

    def _unscale(self) -> bool:
        """Whether all gradients are finite, or the scale can become no smaller."""
        gradients = [
            p.grad for group in self._optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        for gradient in gradients:
            gradient.mul_(1 / self._scale)
        if self._scale > 1 and not all(bool(torch.isfinite(gradient).all()) for gradient in gradients):
            self._scale, self._good_steps = self._scale / 2, 0
            return False
        self._good_steps += 1
        if self._good_steps == _GROWTH_STEPS:
            self._scale, self._good_steps = self._scale * 2, 0
        return True


def evaluated(model: Any, evaluate: Callable[[Any], Any]) -> Any:
    """evaluate(model) in evaluation mode and without gradients; the model trains on after it."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            return evaluate(model)
    finally:
        for module in training:
            module.training = True


def fit(
    run: Any,
    gradients: Gradients,
    optimizer: Any,
    samples: Samples,
    evaluate: Optional[Callable[[Any], Any]],
    every: int,
    model: Any,
) -> Summary:
    """The loop of run.fit()."""
    steps, evaluations = 0, []
    seed = int(run._settings.get("training.seed") or 1)
    try:
        while True:
            indices = run._next_indices(samples, samples.batch_size)
            if not indices:
                break
            first = run._loop.driver.order.first
            (part,) = samples.parts(indices, samples.batch_size or 1)
            batch = samples.batch(part, samples.order.indices(run._ahead(samples)))
            run._part_taken(len(indices), len(part) - len(indices))
            applied = optimizer.step(loss=gradients.compute(batch, span_seed(seed, first)))
            steps += 1
            if applied and evaluate is not None and every and run.round % every == 0 and run.is_first:
                with run.paused("evaluating"):
                    evaluations.append((run.round, evaluated(model, evaluate)))
    finally:
        samples.close()
    view = run.view
    if evaluate is not None and run.is_first and (not evaluations or evaluations[-1][0] != run.round):
        evaluations.append((run.round, evaluated(model, evaluate)))
    return Summary(run.round, run.samples, steps, view.get("loss"), evaluations, str(view.get("ended") or ""))
