# SPDX-License-Identifier: Apache-2.0
"""State that a loop keeps itself (an EMA, a queue, a counter), as part of the run's: bytes of one fixed layout.

The values are nested dicts, lists and tuples of tensors, numbers, texts and None. Nothing is pickled.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import torch

from ._errors import MisuseError, UnsupportedError
from ._settings_text import room_of

Save = Callable[[], Any]
Load = Callable[[Any], Any]
AfterRound = Callable[[], Any]

_LENGTH_BYTES = 8
_ROOM_BYTES = 1024
_ALIGNMENT = 16
_TENSOR, _TUPLE = "\0tensor", "\0tuple"


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
    made = torch.empty(shape, dtype=getattr(torch, name))
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
        needed = _LENGTH_BYTES + 2 * room_of(json.loads(outline)) + sum(map(_bytes, tensors))
        self._capacity = (needed // _ROOM_BYTES + 2) * _ROOM_BYTES
        return list(_facts(json.loads(outline)))

    @property
    def state_values(self) -> int:
        """float32 values that hold it; 0: there is none."""
        return self._capacity // 4

    def _now(self) -> Tuple[str, List[torch.Tensor]]:
        tensors: List[torch.Tensor] = []
        values = [_outline(save(), str(at), tensors) for at, (save, _, _) in enumerate(self._parts)]
        return json.dumps(values, separators=(",", ":")), tensors

    def save(self, vector: torch.Tensor) -> None:
        """Writes it to float32 [state_values]."""
        outline, tensors = self._now()
        text = outline.encode()
        begin = _LENGTH_BYTES + -(-len(text) // _ALIGNMENT) * _ALIGNMENT
        size = begin + sum(map(_bytes, tensors))
        if size > self._capacity:
            raise UnsupportedError(
                f"the extra state has grown to {size} bytes, room for {self._capacity} was made at the start: let it"
                " have its full size when the run starts."
            )
        content = vector.view(torch.uint8)
        framed = len(text).to_bytes(_LENGTH_BYTES, "little") + text
        content[: len(framed)].copy_(torch.tensor(list(framed), dtype=torch.uint8))
        for tensor in tensors:
            values = tensor.to("cpu").contiguous().view(-1).view(torch.uint8)
            content[begin : begin + values.numel()].copy_(values)
            begin += _bytes(tensor)

    def load(self, vector: torch.Tensor) -> None:
        """Gives what a vector holds to the program; zeros: nothing was written yet."""
        content = vector.view(torch.uint8)
        length = int.from_bytes(bytes(content[:_LENGTH_BYTES].tolist()), "little")
        if not length:
            return
        outline = bytes(content[_LENGTH_BYTES : _LENGTH_BYTES + length].tolist()).decode()
        at = [_LENGTH_BYTES + -(-length // _ALIGNMENT) * _ALIGNMENT]
        for (_, load, _), part in zip(self._parts, json.loads(outline)):
            load(_built(part, content, at))

    def after_round(self) -> None:
        """A round was applied."""
        for _, _, after in self._parts:
            if after is not None:
                after()


def _facts(outline: Any, path: str = "") -> Iterator[str]:
    """"extra state: 0.ema.weight float32 (4, 4)" of each tensor."""
    if isinstance(outline, dict) and _TENSOR in outline:
        name, shape = outline[_TENSOR]
        yield f"extra state: {path} {name} {tuple(shape)}"
    elif isinstance(outline, (dict, list)):
        pairs = outline.items() if isinstance(outline, dict) else enumerate(outline)
        for key, item in pairs:
            yield from _facts(item, f"{path}.{key}" if path else str(key))
