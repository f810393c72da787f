# SPDX-License-Identifier: Apache-2.0
"""Tar files of samples with tarfile, and their index with `tw data index`."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import tarfile
import zlib
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np
from conftest import ROOT

PROGRAM = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))

Fields = Dict[str, bytes]
Members = List[Tuple[str, Fields]]


def png(pixels: np.ndarray) -> bytes:
    """A file of uint8 [height, width] or [height, width, 3]."""
    height, width = pixels.shape[:2]

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_tar(path: Path, members: Members) -> None:
    with tarfile.open(path, "w") as tar:
        for key, fields in members:
            for field, content in fields.items():
                info = tarfile.TarInfo(f"{key}.{field}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def make_index(path: Path, *tars: Path) -> Path:
    command = [PROGRAM, "data", "index", *map(str, tars), "-o", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    return path


def write_shards(folder: Path, members: Members, each: int, name: str = "train") -> Path:
    """Shards of so many samples, and the index of them all."""
    tars = []
    for first in range(0, len(members), each):
        tars.append(folder / f"{name}-{first // each:03}.tar")
        write_tar(tars[-1], members[first : first + each])
    return make_index(folder / f"{name}.twi", *tars)


def numbered(size: int, seed: int = 3) -> Members:
    """Sample i: 4 inputs and a target as npy, and i as cls."""
    generator = np.random.default_rng(seed)
    members = []
    for number in range(size):
        inputs = generator.standard_normal(4).astype(np.float32)
        target = np.sin(inputs.sum(keepdims=True))
        members.append(
            (
                f"{number // 10:02}/{number:03}",
                {"in.npy": npy(inputs), "out.npy": npy(target), "cls": b"%d\n" % number},
            )
        )
    return members
