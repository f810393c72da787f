# SPDX-License-Identifier: Apache-2.0
"""The number of samples in the gradient in p.grad: those taken since the last step()."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Optional, Tuple

import torch

from ._errors import MisuseError

Infinite = Callable[[], Optional[str]]


def samples_of(batch: Any) -> Optional[int]:
    """Samples of a batch: the first dimension of the first tensor in it; None: it has none."""
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() > 0 else None
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for part in batch:
            found = samples_of(part)
            if found is not None:
                return found
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape else None


class BatchCount:
    """Samples taken since the last step(). A GradScaler that finds infinities calls no step(): seen by the
    gradients.

    infinite(): names a parameter whose gradient is not finite.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], infinite: Infinite) -> None:
        self._parameters: Tuple[torch.Tensor, ...] = tuple(parameters)
        self._infinite = infinite
        self._marks = 0
        self._last = 0
        self.samples = 0

    def _versions(self) -> int:
        gradients = (parameter.grad for parameter in self._parameters)
        return hash(
            tuple((id(gradient), gradient._version) for gradient in gradients if gradient is not None)
        )

    def take(self, samples: int) -> bool:
        """A batch is handed to the loop. Whether those before it turned out to be void."""
        void = self.samples > 0 and self._infinite() is not None
        self.samples = samples if void else self.samples + samples
        self._last = samples
        self._marks = self._versions()
        return void

    def zeroed(self) -> bool:
        """zero_grad() is about to come. Whether batches are void: their gradients are not finite and go
        unused.
        """
        if not self.samples or self._infinite() is None:
            return False
        before = self.samples
        self.samples = self._last if self._versions() == self._marks else 0
        return self.samples != before

    def stepped(self) -> int:
        """The samples in the gradient now; the next step() starts from zero."""
        samples, self.samples = self.samples, 0
        return samples


def whole_samples(samples: Any) -> int:
    """samples= of step(). MisuseError: no whole number from 1."""
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise MisuseError(f"step(samples={samples!r}): expected a whole number of samples from 1.")
    return samples
