# SPDX-License-Identifier: Apache-2.0
"""What identifies a data set, cheaply and without reading a sample: what peers of run.shard() compare."""

from __future__ import annotations

import zlib
from typing import Any, Iterator, List, Sequence

import torch
from torch.utils.data import ConcatDataset, Dataset, Subset

_SAMPLED = 256


def _evenly(count: int) -> Sequence[int]:
    return range(0, count, max(1, count // _SAMPLED))


def sampled(values: Any) -> str:
    """A checksum over some rows of a tensor or array; the same on every machine."""
    tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(values)
    rows = tensor.detach()[list(_evenly(len(tensor)))].reshape(-1)
    some = rows[:: max(1, rows.numel() // 4096)].contiguous().cpu()
    content = some.view(torch.uint8).numpy().tobytes() if some.numel() else b""
    return format(zlib.crc32(content), "08x")


def _is_array(value: Any, size: int) -> bool:
    is_tensor = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_complex()
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    is_numpy = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and kind in "iuf"
    is_signed = getattr(value, "dtype", None) not in _UNKNOWN_TO_TORCH
    return (is_tensor or (is_numpy and is_signed)) and len(getattr(value, "shape", ())) > 0 and len(value) == size


_UNKNOWN_TO_TORCH = ("uint16", "uint32", "uint64")


def _parts(dataset: Any, size: int) -> Iterator[str]:
    """What can be known of it beside its length."""
    if isinstance(dataset, Subset):
        indices = list(dataset.indices)
        content = repr([int(indices[at]) for at in _evenly(len(indices))]).encode()
        yield f"indices {zlib.crc32(content):08x}"
        yield from _parts(dataset.dataset, len(dataset.dataset))
    elif isinstance(dataset, ConcatDataset):
        for part in dataset.datasets:
            yield f"{len(part)}"
            yield from _parts(part, len(part))
    elif getattr(dataset, "run_fact", ""):
        yield dataset.run_fact
    else:
        yield from (sampled(value) for value in _arrays(dataset) if _is_array(value, size))


# Where data sets keep all their samples: TensorDataset, those of torchvision, and many after their example.
_WHERE = ("tensors", "data", "targets", "labels")


def _arrays(dataset: Any) -> List[Any]:
    found: List[Any] = []
    for name in _WHERE:
        value = getattr(dataset, "__dict__", {}).get(name)
        found.extend(value if isinstance(value, tuple) else [value])
    return found


def content_of(dataset: "Dataset[Any]", size: int) -> str:
    """One line: its class, and what it holds in memory."""
    return " ".join(["data set:", type(dataset).__name__, *_parts(dataset, size)])
