# SPDX-License-Identifier: Apache-2.0
"""The bytes of tensors. Tensor.numpy() needs NumPy, which pip does not install with PyTorch 2."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def bytes_of(values: torch.Tensor) -> bytes:
    """A copy of those of a contiguous tensor in the host's memory."""
    return ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())
