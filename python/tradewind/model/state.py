# SPDX-License-Identifier: Apache-2.0
"""State that a loop keeps itself (an EMA, a queue, a counter), as part of the run's: bytes of one fixed layout. And the plain
values, JSON, of which that state and the schedule's are made.

The values are nested dicts, lists and tuples of tensors, numbers, texts and None. Nothing is pickled.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ..engine.host_bytes import bytes_of
from ..errors import MisuseError, UnsupportedError

Save = Callable[[], Any]
Load = Callable[[Any], Any]
AfterRound = Callable[[], Any]

LENGTH_BYTES = 8
_ROOM_BYTES = 1024
_ALIGNMENT = 16
_TENSOR, _TUPLE = "\0tensor", "\0tuple"
PAIRS = "\0pairs"
# -2.2250738585072014e-308 has 24.
_MOST_NUMBER = 25


# What a value is part of, for messages, and what to do where it is not plain.
_OF_SCHEDULER = "the state of a scheduler has to be JSON (numbers, texts, lists) to be given to other peers"
OF_OPTIMIZER = (
    "a setting of the optimizer has to be JSON (numbers, texts, lists) to be given to other peers: keep it in an attribute"
    " of the optimizer, or a tensor in self.state[p]"
)
# Settings that torch has no JSON for, and that no step changes.
CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def plain_value(value: Any, where: str, whose: str = _OF_SCHEDULER) -> Any:
    """value as JSON has it; constants of torch as text. UnsupportedError names the key of what is none, and whose it is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, CONSTANTS):
        return value.type if isinstance(value, torch.device) else str(value)
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return plain_value(value.item(), where, whose)
    if isinstance(value, (list, tuple)):
        return [plain_value(item, f"{where}[{at}]", whose) for at, item in enumerate(value)]
    if isinstance(value, dict):
        return _plain_dict(value, where, whose)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise UnsupportedError(f"{where} is a {type(value).__name__}: {whose}.")


def _plain_dict(value: Dict[Any, Any], where: str, whose: str) -> Any:
    kept = {key: item for key, item in value.items() if not callable(item)}
    if all(isinstance(key, str) for key in kept):
        return {key: plain_value(item, f"{where}.{key}", whose) for key, item in kept.items()}
    pairs = sorted(kept.items())
    return {
        PAIRS: [[plain_value(key, where, whose), plain_value(item, f"{where}[{key!r}]", whose)] for key, item in pairs]
    }


def scalars(plain: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """("milestones.0", 3) of each number and text in a plain value."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from scalars(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list):
        for at, value in enumerate(plain):
            yield from scalars(value, f"{path}.{at}")
    else:
        yield path, plain


def room_of(plain: Any) -> int:
    """Bytes that a plain value takes as JSON at most, whatever its numbers are."""
    if isinstance(plain, dict):
        return 2 + sum(len(json.dumps(key)) + 2 + room_of(value) for key, value in plain.items())
    if isinstance(plain, list):
        return 2 + sum(room_of(value) + 1 for value in plain)
    return max(_MOST_NUMBER, len(json.dumps(plain)) if isinstance(plain, str) else 0)


def capacity_for(text: str, more: int = 0) -> int:
    """Bytes for a plain value as JSON and `more`: twice what the value takes at the most, and 1 KiB or more. The same on
    peers that begin at different places.
    """
    needed = LENGTH_BYTES + 2 * room_of(json.loads(text)) + more
    return (needed // _ROOM_BYTES + 2) * _ROOM_BYTES


def write_text(text: bytes, content: torch.Tensor) -> int:
    """Puts a text, with its length before it, to the beginning of uint8 [bytes]; where it ends."""
    framed = len(text).to_bytes(LENGTH_BYTES, "little") + text
    content[: len(framed)].copy_(torch.tensor(list(framed), dtype=torch.uint8, device="cpu"))
    return len(framed)


def read_text(content: torch.Tensor) -> bytes:
    """What write_text() put there; empty: nothing yet."""
    length = int.from_bytes(bytes_of(content[:LENGTH_BYTES]), "little")
    return bytes_of(content[LENGTH_BYTES : LENGTH_BYTES + length])


def _outline(value: Any, path: str, tensors: List[torch.Tensor]) -> Any:
    """value as JSON, with places of tensors; these are appended."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized:
            raise UnsupportedError(f"extra state {path} is not dense: only dense tensors travel.")
        tensors.append(value.detach())
        return {_TENSOR: [str(value.dtype).replace("torch.", ""), list(value.shape)]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise UnsupportedError(f"extra state {path} is a dict with keys that are no text.")
        return {key: _outline(item, f"{path}.{key}", tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_outline(item, f"{path}[{at}]", tensors) for at, item in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    raise UnsupportedError(
        f"extra state {path} is a {type(value).__name__}: expected tensors, numbers, texts, and dicts and lists of"
        " them."
    )


def _bytes(tensor: torch.Tensor) -> int:
    size: int = tensor.numel() * tensor.element_size()
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _built(outline: Any, content: torch.Tensor, at: List[int]) -> Any:
    """The value of an outline; at: where in uint8 [bytes] its next tensor is."""
    if isinstance(outline, list):
        return [_built(item, content, at) for item in outline]
    if not isinstance(outline, dict):
        return outline
    if _TUPLE in outline:
        return tuple(_built(item, content, at) for item in outline[_TUPLE])
    if _TENSOR not in outline:
        return {key: _built(item, content, at) for key, item in outline.items()}
    name, shape = outline[_TENSOR]
    made = torch.empty(shape, dtype=getattr(torch, name), device="cpu")
    size = made.numel() * made.element_size()
    if size:
        made.view(-1).view(torch.uint8).copy_(content[at[0] : at[0] + size])
    at[0] += _bytes(made)
    return made


class ExtraState:
    """What run.extra_state() was given, in the order of the calls. Thread: the run's."""

    def __init__(self) -> None:
        self._parts: List[Tuple[Save, Load, Optional[AfterRound]]] = []
        self._capacity = 0
        self._kinds: Dict[str, str] = {}  # dtype and shape of each tensor at the start, by its place

    def add(self, save: Save, load: Load, after_round: Optional[AfterRound]) -> None:
        """One more; before prepare()."""
        for name, call in (("save", save), ("load", load), ("after_round", after_round)):
            if not callable(call) and not (call is None and name == "after_round"):
                raise MisuseError(f"run.extra_state({name}={call!r}): expected a function.")
        self._parts.append((save, load, after_round))

    def prepare(self) -> Sequence[str]:
        """Looks at the state as it is now; what peers compare of it, a line each."""
        if not self._parts:
            return []
        outline, tensors = self._now()
        self._capacity = capacity_for(_text_of(outline), sum(map(_bytes, tensors)))
        self._kinds = dict(_kinds(outline))
        return [f"extra state: {place} {kind}" for place, kind in self._kinds.items()]

    @property
    def state_values(self) -> int:
        """float32 values that hold it; 0: there is none."""
        return self._capacity // 4

    def _now(self) -> Tuple[List[Any], List[torch.Tensor]]:
        values = [save() for save, _, _ in self._parts]
        tensors: List[torch.Tensor] = []
        try:
            return [_outline(value, str(at), tensors) for at, value in enumerate(values)], tensors
        except RecursionError:
            raise UnsupportedError(
                "the extra state contains itself, or is nested too deeply: expected tensors, numbers, texts, and dicts"
                " and lists of them."
            ) from None

    def _refuse_others(self, outline: List[Any]) -> None:
        """UnsupportedError: a tensor has another dtype or shape than at the start."""
        for place, kind in _kinds(outline):
            before = self._kinds.get(place, kind)
            if kind != before:
                raise UnsupportedError(
                    f"extra state {place.replace(_TUPLE + '.', '')} is {kind} now and was {before} at the start: its tensors keep dtype and"
                    " shape. Let it have its full size when the run starts."
                )

    def save(self, vector: torch.Tensor) -> None:
        """Writes it to float32 [state_values]. UnsupportedError: it has outgrown what it was at the start."""
        outline, tensors = self._now()
        self._refuse_others(outline)
        text = _text_of(outline).encode()
        begin = LENGTH_BYTES + -(-len(text) // _ALIGNMENT) * _ALIGNMENT
        size = begin + sum(map(_bytes, tensors))
        if size > self._capacity:
            raise UnsupportedError(
                f"the extra state has grown to {size} bytes, room for {self._capacity} was made at the start: let it"
                " have its full size when the run starts."
            )
        content = vector.view(torch.uint8)
        write_text(text, content)
        for tensor in tensors:
            values = tensor.to("cpu").contiguous().view(-1).view(torch.uint8)
            content[begin : begin + values.numel()].copy_(values)
            begin += _bytes(tensor)

    def load(self, vector: torch.Tensor) -> None:
        """Gives what a vector holds to the program; zeros: nothing was written yet."""
        content = vector.view(torch.uint8)
        outline = read_text(content)
        if not outline:
            return
        at = [LENGTH_BYTES + -(-len(outline) // _ALIGNMENT) * _ALIGNMENT]
        for (_, load, _), part in zip(self._parts, json.loads(outline)):
            load(_built(part, content, at))

    @property
    def follows_rounds(self) -> bool:
        """Whether after_round() does anything."""
        return any(after is not None for _, _, after in self._parts)

    def after_round(self) -> None:
        """A round was applied."""
        for _, _, after in self._parts:
            if after is not None:
                after()


def _text_of(outline: List[Any]) -> str:
    return json.dumps(outline, separators=(",", ":"))


def _kinds(outline: Any, path: str = "") -> Iterator[Tuple[str, str]]:
    """("0.ema.weight", "float32 (4, 4)") of each tensor."""
    if isinstance(outline, dict) and _TENSOR in outline:
        name, shape = outline[_TENSOR]
        yield path, f"{name} {tuple(shape)}"
    elif isinstance(outline, (dict, list)):
        pairs = outline.items() if isinstance(outline, dict) else enumerate(outline)
        for key, item in pairs:
            yield from _kinds(item, f"{path}.{key}" if path else str(key))
