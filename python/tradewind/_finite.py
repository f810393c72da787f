# SPDX-License-Identifier: Apache-2.0
"""Whether gradients are finite, without a wait for each of them."""

from __future__ import annotations

from typing import Dict, List, Sequence

import torch


def all_finite(gradients: Sequence[torch.Tensor]) -> bool:
    """Whether the norms are finite: one pass, one wait for each device. Large values may overflow."""
    by_device: Dict[torch.device, List[torch.Tensor]] = {}
    for gradient in gradients:
        by_device.setdefault(gradient.device, []).append(gradient)
    return all(bool(torch.isfinite(_norms(found)).all()) for found in by_device.values())


def _norms(gradients: List[torch.Tensor]) -> torch.Tensor:
    if hasattr(torch, "_foreach_norm"):
        norms = torch._foreach_norm(gradients)
    else:
        norms = [gradient.norm() for gradient in gradients]
    return torch.stack([norm.float() for norm in norms])
