# SPDX-License-Identifier: Apache-2.0
"""Lamb as an optimizer of torch: the formula that the engine computes."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Tuple

import torch


class Lamb(torch.optim.Optimizer):
    """Adam's direction with decoupled weight decay, scaled per tensor by norm(parameter) / norm(update).

    lr, weight_decay >= 0; betas in [0, 1); eps > 0. A tensor of which a norm is zero takes the plain step.
    run.optimizer() lets the engine compute it; step() is the same formula in torch, for loops without a run.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        if lr < 0 or weight_decay < 0 or eps <= 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(
                f"Lamb: lr={lr}, betas={betas}, eps={eps}, weight_decay={weight_decay} is out of range."
            )
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One update with the gradients in p.grad; returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: Any) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step, (beta1, beta2) = state["step"].item(), group["betas"]
        gradient = parameter.grad
        assert gradient is not None
        first = state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        second = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        denominator = (second / (1 - beta2**step)).sqrt_().add_(group["eps"])
        update = (first / (1 - beta1**step)).div_(denominator).add_(parameter, alpha=group["weight_decay"])
        norms = float(parameter.norm()), float(update.norm())
        trust = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
        parameter.add_(update, alpha=-group["lr"] * trust)
