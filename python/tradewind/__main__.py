# SPDX-License-Identifier: Apache-2.0
"""python -m tradewind export CHECKPOINT -o model.safetensors"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Callable, Dict, List, Optional

from .errors import NEEDS_TORCH, SettingError, TradewindError

try:
    import torch

    from .engine.checkpoint import Checkpoint, load_checkpoint
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    sys.exit(f"tradewind: python3 -m tradewind {NEEDS_TORCH}")

_EXAMPLES = """\
model.safetensors: for safetensors.torch.load_file and other programs; needs `pip install safetensors`.
model.pt: for torch.load.

examples:
  python3 -m tradewind export tradewind-checkpoints -o model.safetensors
  python3 -m tradewind export s3://bucket/run/round-000120-1a2b3c4d.tw -o model.pt
"""


def _save_safetensors(checkpoint: Checkpoint, path: str) -> None:
    try:
        from safetensors.torch import save_file
    except ImportError as error:
        raise SettingError(
            "safetensors is not installed: `pip install safetensors`, or write model.pt, which needs nothing."
        ) from error
    facts = {"format": "pt", "round": str(checkpoint.round), "run": checkpoint.run}
    save_file(dict(checkpoint), path, metadata=facts)


def _save_torch(checkpoint: Checkpoint, path: str) -> None:
    torch.save(dict(checkpoint), path)


_WRITERS: Dict[str, Callable[[Checkpoint, str], None]] = {
    ".safetensors": _save_safetensors,
    ".pt": _save_torch,
}


def _write(writer: Callable[[Checkpoint, str], None], checkpoint: Checkpoint, part: str, out: str) -> None:
    """TradewindError: the disk is full, for example; torch and safetensors have exceptions of their own for that."""
    try:
        writer(checkpoint, part)
        os.replace(part, out)
    except TradewindError:
        raise
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise TradewindError(f"-o {out}: cannot be written: {why}.") from error


def _export(source: str, out: str) -> None:
    """Writes beside the name and renames, so that the file is whole or not there."""
    writer = _WRITERS.get(os.path.splitext(out)[1])
    if writer is None:
        raise SettingError(f"-o {out}: expected a name that ends with {' or '.join(_WRITERS)}.")
    folder = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise SettingError(f"-o {out}: there is no folder {folder}.")
    if os.path.isdir(out):
        raise SettingError(f"-o {out}: expected the name of a file, found a folder.")
    part = f"{out}.part-{os.getpid()}"
    try:
        open(part, "wb").close()
    except OSError as error:
        raise SettingError(f"-o {out}: cannot be written: {error.strerror}.") from error
    try:
        checkpoint = load_checkpoint(source)
        _write(writer, checkpoint, part, out)
    finally:
        if os.path.exists(part):
            os.remove(part)
    values = sum(tensor.numel() for tensor in checkpoint.values())
    print(f"{out}: {len(checkpoint)} tensors with {values} values, after round {checkpoint.round} ({source})")


def main(words: Optional[List[str]] = None) -> int:
    """Exit code: 0, 1 (failed), 2 (wrong usage)."""
    parser = argparse.ArgumentParser(prog="python3 -m tradewind")
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser(
        "export",
        help="write the model in a checkpoint as a file for other programs",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("checkpoint", metavar="CHECKPOINT", help="a file, or a folder: its newest one; also s3://")
    export.add_argument("-o", "--out", required=True, help="the file to write: .safetensors or .pt")
    arguments = parser.parse_args(words)
    try:
        _export(arguments.checkpoint, arguments.out)
    except (TradewindError, OSError) as error:
        print(f"tradewind: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
