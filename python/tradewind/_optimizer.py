# SPDX-License-Identifier: Apache-2.0
"""The result of run.optimizer(): a torch optimizer whose step() hands the gradient to the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

import torch

from .errors import MisuseError
from .loop.loop import Closure, Loss

if TYPE_CHECKING:
    from ._run import Run


class Optimizer(torch.optim.Optimizer):
    """The user's optimizer, over all peers. param_groups, state and defaults are those of the optimizer
    inside.

    torch's schedulers, GradScaler, Accelerate and Lightning take it for what it is: a torch.optim.Optimizer.
    """

    def __init__(self, run: "Run", inner: torch.optim.Optimizer) -> None:
        # Not the base's constructor: it would make groups and state of its own.
        self._run = run
        self._inner = inner

    def step(  # type: ignore[override]
        self,
        closure: Optional[Closure] = None,
        *,
        samples: Optional[int] = None,
        loss: Optional[Loss] = None,
    ) -> Any:
        """Hands in the gradient in p.grad, the mean over `samples` samples, and waits until the next one is
        wanted.

        samples: what the loop computed since the last step(); not needed with run.shard(), run.batches() or
        batch_size=. loss: their mean loss, for logs. closure: computes loss and gradient, called once.
        Returns whether a round was applied meanwhile, or with a closure its loss. Does nothing once the run
        is over.
        """
        return self._run._step(closure, samples, loss)

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        """As torch's."""
        self._run._zeroed()
        self._inner.zero_grad(*arguments, **named)

    @property
    def param_groups(self) -> List[Dict[str, Any]]:  # type: ignore[override]
        """Those of the optimizer inside."""
        groups: List[Dict[str, Any]] = self._inner.param_groups
        return groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """That of the optimizer inside; of SGD, Adam, AdamW and Lamb views of the engine's buffers."""
        return self._inner.state

    @property
    def defaults(self) -> Dict[str, Any]:  # type: ignore[override]
        """Those of the optimizer inside."""
        defaults: Dict[str, Any] = self._inner.defaults
        return defaults

    def state_dict(self) -> Dict[str, Any]:
        """As torch's."""
        state: Dict[str, Any] = self._inner.state_dict()
        return state

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """As torch's, before the start."""
        if self._run.started:
            raise MisuseError(
                "load_state_dict() after the start: the run has the state; load before run.start()."
            )
        self._inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """As torch's, before the start."""
        if self._run.started:
            raise MisuseError(
                "add_param_group() after the start: all peers need the same groups before run.start(). Add the"
                " group before; freeze its parameters with requires_grad_(False) after the start, and thaw them"
                " when they shall train."
            )
        self._inner.add_param_group(param_group)

    def __getattr__(self, name: str) -> Any:
        # Hooks and counters that torch's constructor would have made.
        if name in ("_run", "_inner"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"tradewind.Optimizer of {self._inner!r}"
