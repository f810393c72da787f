# SPDX-License-Identifier: Apache-2.0
"""What objects hold, kept to put it back bit for bit: an optimizer is tried before the run, and nothing of that may stay."""

from __future__ import annotations

import collections
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from .memory import same_values

_LISTS = (list, set, collections.deque)
# Functions are no data; a logger leads to all others.
_LEFT_ALONE = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, torch.Generator)
_LEFT_ALONE_OF = ("logging", "threading", "weakref")


class _Tensor(NamedTuple):
    """name None: changes of it are not told."""

    name: Optional[str]
    tensor: torch.Tensor
    memory: torch.Tensor  # where it had its values
    values: torch.Tensor


class _Items(NamedTuple):
    """Of a dict or a list (numbered) or the attributes of an object."""

    name: Optional[str]
    holder: Any
    items: Dict[Any, Any]
    left_out: Sequence[str]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same bits, wherever they are."""
    if one is other:
        return True
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.dtype != other.dtype or one.shape != other.shape or one.layout != other.layout:
            return False
        there = other.detach().to(one.device)
        return same_values(one.detach(), there)
    return type(one) is type(other) and isinstance(one, (bool, int, float, str)) and one == other


def _of_item(name: str, key: Any) -> str:
    return f"{name}{key}" if not name or name.endswith(".") else name


def _items_of(holder: Any) -> Dict[Any, Any]:
    return dict(holder if isinstance(holder, dict) else enumerate(holder))


class Kept:
    """Tensors, numbers and containers of them. put_back() gives all of them what they had when they were added."""

    def __init__(self) -> None:
        self._seen: Set[int] = set()
        self._alive: List[Any] = []  # so that no other object gets an id that was seen
        self._tensors: List[_Tensor] = []
        self._items: List[_Items] = []

    def leave_alone(self, values: Iterable[Any]) -> None:
        """They are not kept, wherever they turn up."""
        for value in values:
            self._seen.add(id(value))
            self._alive.append(value)

    def add(self, value: Any, name: Optional[str] = None, left_out: Sequence[str] = ()) -> None:
        """All that it holds. name: by which changed() tells of it; empty or with a dot at its end, a beginning of the
        names of its items. left_out: items of which it tells nothing.
        """
        self._add(value, name, left_out, inside=False)

    def _add(self, value: Any, name: Optional[str], left_out: Sequence[str], inside: bool) -> None:
        """inside: of an object, so other objects that it leads to are not looked into."""
        if isinstance(value, _LEFT_ALONE) or id(value) in self._seen:
            return
        self.leave_alone([value])
        if isinstance(value, torch.Tensor):
            if value.layout == torch.strided:
                self._tensors.append(_Tensor(name, value, value.data, value.detach().clone()))
        elif isinstance(value, (dict, *_LISTS)):
            items = _items_of(value)
            self._items.append(_Items(name, value, items, left_out))
            self._add_items(items, name, left_out, inside)
        elif isinstance(value, tuple):
            self._add_items(_items_of(value), name, left_out, inside)
        elif hasattr(value, "__dict__") and not inside and type(value).__module__ not in _LEFT_ALONE_OF:
            self._add(vars(value), name, left_out, inside=True)

    def _add_items(self, items: Dict[Any, Any], name: Optional[str], left_out: Sequence[str], inside: bool) -> None:
        for key, item in items.items():
            below = None if name is None or key in left_out else _of_item(name, key)
            self._add(item, below, (), inside)

    def changed(self) -> Iterator[str]:
        """Names of what has other values now."""
        for name, tensor, _, values in self._tensors:
            if name is not None and not _is_same(tensor, values):
                yield name
        for name, holder, items, left_out in self._items:
            if name is None:
                continue
            now = _items_of(holder)
            for key in {**items, **now}:
                if key not in left_out and not (key in now and key in items and _is_same(items[key], now[key])):
                    yield _of_item(name, key)

    def put_back(self) -> None:
        """As they were."""
        for _, holder, items, _ in self._items:
            now = _items_of(holder)
            if list(now) != list(items) or any(now[key] is not item for key, item in items.items()):
                _refill(holder, items)
        with torch.no_grad():
            for name, tensor, memory, values in self._tensors:
                if tensor.data_ptr() != memory.data_ptr() or tensor.shape != memory.shape:
                    tensor.data = memory
                if name is None or not _is_same(tensor, values):
                    tensor.copy_(values)


def _refill(holder: Any, items: Dict[Any, Any]) -> None:
    holder.clear()
    if isinstance(holder, dict):
        holder.update(items)
    else:
        put: Callable[[Iterable[Any]], Any] = holder.update if isinstance(holder, set) else holder.extend
        put(items.values())


def all_of(pairs: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
    """(name, value) of each, and of those in lists and dicts one level below."""
    for name, value in pairs:
        if isinstance(value, (dict, list, tuple)):
            yield from ((f"{name}.{key}", item) for key, item in _items_of(value).items())
        else:
            yield name, value
