# SPDX-License-Identifier: Apache-2.0
"""The model in a checkpoint of a run, by the names of its tensors."""

from __future__ import annotations

import ctypes
import math
import os
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple, Union

import torch

from . import abi
from ..errors import EngineError, SettingError, warn

# As layout.describe() writes them: trained parameters and averaged buffers are the model's, "updates" the engine's.
_LINE = re.compile(
    r"(?P<kind>group \d+|buffer|updates): (?P<name>.+) \((?P<shape>[\d, ]*)\) (?P<dtype>b?float\d+)"
)


class Checkpoint(Dict[str, torch.Tensor]):
    """Tensors by name, as in model.state_dict(): trained parameters and averaged buffers, with their shapes and
    dtypes. round, samples: of the whole run up to it; run: what identifies the run.
    """

    def __init__(self, round: int, samples: int, run: str) -> None:
        super().__init__()
        self.round = round
        self.samples = samples
        self.run = run


class _Place(NamedTuple):
    """A tensor of the vector; inner: of the engine, not of the model."""

    name: str
    shape: Tuple[int, ...]
    dtype: torch.dtype
    inner: bool

    @property
    def values(self) -> int:
        """Their number."""
        return math.prod(self.shape)


def _places(layout: str) -> List[_Place]:
    found = [match for match in map(_LINE.fullmatch, layout.splitlines()) if match]
    return [
        _Place(
            match["name"],
            tuple(int(size) for size in match["shape"].split(",") if size.strip()),
            getattr(torch, match["dtype"]),
            match["kind"] == "updates",
        )
        for match in found
    ]


def _fill(checkpoint: Checkpoint, places: List[_Place], flat: torch.Tensor) -> None:
    first = 0
    for place in places:
        values = flat[first : first + place.values].reshape(place.shape)
        if not place.inner:
            checkpoint[place.name] = values.to(place.dtype, copy=True)
        first += place.values


def _folder_of(path: str) -> str:
    """The folder with checkpoints in or below a folder of this machine, also as file:/FOLDER, where runs have one each;
    others as they are.
    """
    path = path[len("file:") :] if path.startswith("file:/") else path
    for below in ("", "*", "*/*") if os.path.isdir(path) else ():
        folders = sorted({str(file.parent) for file in Path(path).glob(os.path.join(below, "round-*.tw"))})
        if len(folders) > 1:
            raise SettingError(f"{path} has checkpoints of several runs; name one of {', '.join(folders)}.")
        if folders:
            return folders[0]
    return path


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> Checkpoint:
    """The model in a checkpoint: a dict of tensors in host memory, each with its name, shape and dtype.

    path: a file (round-000120-1a2b3c4d.tw, or renamed), or a folder, of which the newest whole one is taken, also while
    the run lives: that of the checkpoints, or one above it (out=). Both also as s3://BUCKET/KEY. Every byte is verified. Frozen parameters and buffers that each peer has for
    itself are not in it: model.load_state_dict(checkpoint, strict=False). Names are those of the module inside of a
    wrapper: load into model._orig_mod of torch.compile(), model.module of DataParallel; strict=False drops all names
    that the wrapper does not know, and returns them as unexpected_keys. Any thread, any process; needs no run.

    SettingError: there is none. EngineError: it cannot be used, or its program did not name its tensors.
    """
    library = abi.library()
    handle, stored = ctypes.c_void_p(), abi.tw_stored()
    given = _folder_of(os.fspath(path))
    status = library.tw_checkpoint_open(os.fsencode(given), ctypes.byref(handle), ctypes.byref(stored))
    if status != abi.TW_OK:
        raise (SettingError if status == abi.TW_MISUSE else EngineError)(abi.last_error(library))
    try:
        for line in (stored.skipped or b"").decode(errors="replace").splitlines():
            warn(f"skipped {line}")
        checkpoint = Checkpoint(stored.round, stored.samples, (stored.run or b"").decode())
        places = _places((stored.layout or b"").decode(errors="replace"))
        if not places:
            raise EngineError(f"{given}: its program did not name its tensors (docs/cpp.md says how).")
        flat = torch.empty(sum(place.values for place in places), dtype=torch.float32, device="cpu")
        if library.tw_checkpoint_values(handle, flat.data_ptr(), flat.numel()) != abi.TW_OK:
            raise EngineError(f"{given}: its tensors are not its parameters: {abi.last_error(library)}")
    finally:
        library.tw_checkpoint_close(handle)
    _fill(checkpoint, places, flat)
    return checkpoint
