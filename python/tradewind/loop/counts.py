# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch, by what its tensors begin with, and of the batches since the last step(). Thread: the run's."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch
from torch.nn.utils.rnn import PackedSequence

from ..errors import MisuseError, attribute_of, whole
from ..model.memory import version_of

Infinite = Callable[[], Optional[str]]

NO_SAMPLES = (
    "step(): the batch has no samples, its tensors begin with 0, so there is no gradient: call run.skip() in place of"
    " step() after it, or leave such batches out of the loader."
)
NO_BATCH_SIZE = (
    "no batch size known: use run.shard(loader) or run.batches(loader), or say step(samples=...) or "
    "run.optimizer(..., batch_size=...)."
)
NO_BATCH = (
    "step() without a batch: the last one was handed in; say step(samples=...) for a further step() with its samples."
)
_REMEDY = "say step(samples=...), run.batches(loader, batch_size=...) or run.optimizer(..., batch_size=...)."
_MOST_CHANNELS = 4
_NAMED = 3  # places that an error names


class _Size(NamedTuple):
    """What a part of a batch begins with. sure: tensors; lists of texts or numbers are not."""

    place: str
    samples: int
    sure: bool = True


class _Rows(NamedTuple):
    """A list whose parts are alike: columns of a batch, or `samples` samples."""

    place: str
    samples: int


_Found = Union[_Size, _Rows]


def count_of(batch: Any) -> Union[int, str]:
    """Samples of a batch, if all of its tensors begin with this dimension; else why that is not known."""
    found = list(_parts_of(batch, "the batch"))
    sizes = [part for part in found if isinstance(part, _Size)]
    sure = [size for size in sizes if size.sure]
    if any(size.samples for size in sure) or not any(size.samples for size in sizes):
        sizes = sure or sizes  # else tensors without rows, beside texts or numbers of each sample
    if not sizes:
        return f"no tensor in the batch tells how many samples it has: {_REMEDY}"
    first = sizes[0]
    others = [size for size in sizes if size.samples != first.samples]
    if others:
        named = ", ".join(f"{place} begins with {count}" for place, count, _ in [first, *others][:_NAMED])
        return f"the samples of a batch cannot be counted: {named}; {_REMEDY}"
    for rows in found:
        if isinstance(rows, _Rows) and rows.samples != first.samples:
            return (
                f"the samples of a batch cannot be counted: {rows.place} is a list of {_counted_parts(rows.samples)},"
                f" and {'its' if rows.samples == 1 else 'their'} tensors begin with {first.samples}; {_REMEDY}"
            )
    return first.samples


def count_unless_single(batch: Any) -> Union[int, str]:
    """count_of() a batch of a source that may give samples one by one: a part without any dimension tells of those."""
    found = count_of(batch)
    place = None if isinstance(found, str) else _single_of(batch, "the batch", found)
    if place is None:
        return found
    return f"{place} has no dimension, as if this were one sample: give a DataLoader with batch_size=, or {_REMEDY}"


def _single_of(value: Any, place: str, samples: int) -> Optional[str]:
    """The first part of a batch of so many samples that is a number, or a tensor without dimensions; not in a list that
    has one of each sample.
    """
    if isinstance(value, numbers.Number) and not isinstance(value, bool) or _shape_of(value) == ():
        return place
    if _own_count(value) is not None:
        return None
    named = list(_named_parts(value, place))
    if isinstance(value, (list, tuple)) and all(isinstance(part, numbers.Number) for part, _ in named):
        return None  # one of each sample, or a size
    singles = (_single_of(*one, samples) for one in named if not _has_one_of_each(one[0], samples))
    return next((found for found in singles if found is not None), None)


def _has_one_of_each(value: Any, samples: int) -> bool:
    """Whether a part of a batch is a list of as many parts as samples, of one kind, which tell no count themselves."""
    if not isinstance(value, (list, tuple)) or hasattr(value, "_fields") or len(value) != samples:
        return False
    return all(_own_count(part) is None for part in value) and len({_kind_of(part) for part in value}) == 1


def _counted_parts(count: int) -> str:
    return "one part" if count == 1 else f"{count} parts that are alike"


def _parts_of(value: Any, place: str) -> Iterator[_Found]:
    own = _own_count(value)
    if own is not None:
        yield _Size(place, own)
        return
    found = [one for part, where in _named_parts(value, place) for one in _parts_of(part, where)]
    is_list = isinstance(value, (list, tuple)) and not hasattr(value, "_fields")
    yield from _found_in_list(value, found, place) if is_list else found


def _named_parts(value: Any, place: str) -> Iterator[Tuple[Any, str]]:
    """Parts of a dict, list, tuple or dataclass, each with its place."""
    if isinstance(value, Mapping):
        yield from ((part, f"{place}[{key!r}]") for key, part in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((part, f"{place}.{key}") for key, part in zip(value._fields, value))
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        yield from ((getattr(value, name), f"{place}.{name}") for name in names)
    elif isinstance(value, (list, tuple)):
        yield from ((part, f"{place}[{at}]") for at, part in enumerate(value))


def _found_in_list(value: Any, parts: List[_Found], place: str) -> Iterator[_Found]:
    if value and not parts:
        yield _Size(place, len(value), sure=False)
    elif _are_alike(value):
        yield _Rows(place, len(value))
    yield from parts


def why_fewer(batch: Any, made_of: int) -> Optional[str]:
    """Of a batch that has fewer rows than it was made of samples; None: it has all, cannot be counted, or is one row,
    into which a collate_fn packs them.
    """
    if batch is None:
        return f"collate_fn made no batch of {made_of} samples, and all {made_of} count as trained"
    found = count_of(batch)
    if isinstance(found, int) and found != 1 and found < made_of and made_of not in _second_sizes(batch):
        return f"collate_fn made {found} rows of {made_of} samples, and all {made_of} count as trained"
    return None


def _second_sizes(value: Any) -> List[int]:
    """Second dimensions of the tensors of a batch: there the samples are, where time comes first."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [size for part in value for size in _second_sizes(part)]
    shape = _shape_of(value)
    return [int(shape[1])] if isinstance(shape, tuple) and len(shape) > 1 else []


def _shape_of(value: Any) -> Any:
    """None: it has none, as a dict, whatever its keys are called."""
    return None if isinstance(value, Mapping) else attribute_of(value, "shape")


def _own_count(value: Any) -> Optional[int]:
    """Of what says by itself how many samples it has; None: it does not."""
    if isinstance(value, Mapping):
        return None
    if isinstance(value, PackedSequence):
        return int(value.batch_sizes[0])
    for name in ("num_graphs", "batch_size"):  # torch_geometric; dgl, tensordict
        said = attribute_of(value, name)
        said = said[0] if isinstance(said, tuple) and said else said
        if isinstance(said, int) and not isinstance(said, bool):
            return said
    if isinstance(value, torch.Tensor):
        return value.size(0) if value.dim() > 0 else None
    shape = _shape_of(value)
    return int(shape[0]) if isinstance(shape, tuple) and shape else None


def _are_alike(parts: Any) -> bool:
    """Whether parts of a list may be one sample each: dicts or lists of one kind, tensors of one type that are
    of one shape, or pictures. (Inputs and targets mostly are of two.) A single part is, if it begins with what may be
    a picture.
    """
    if not parts:
        return False
    kinds = {_kind_of(part) for part in parts}
    if len(kinds) > 1:
        return False
    first = parts[0]
    if len(parts) == 1:
        return _may_be_a_picture(first)
    shape = _shape_of(first)
    if shape is None:
        return isinstance(first, (Mapping, list, tuple))
    return len(shape) >= 3 or len({tuple(part.shape) for part in parts}) == 1


def _may_be_a_picture(value: Any) -> bool:
    """Whether its first tensor has the shape [channels, height, width]."""
    while isinstance(value, (Mapping, list, tuple)) and value:
        value = next(iter(value.values())) if isinstance(value, Mapping) else value[0]
    shape = _shape_of(value)
    return isinstance(shape, tuple) and len(shape) == 3 and shape[0] <= _MOST_CHANNELS


def _kind_of(value: Any) -> Any:
    shape = _shape_of(value)
    if shape is not None:
        return type(value), str(getattr(value, "dtype", "")), len(shape)
    if isinstance(value, Mapping):
        return type(value), tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value), tuple(_kind_of(part) for part in value)
    return type(value)


class BatchCount:
    """Samples taken since the last step(). A GradScaler that finds infinities calls no step(): seen by its call of
    offer(), after which no step() comes, and with one that does not call it by the gradients.

    infinite(): names a parameter whose gradient is not finite.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], infinite: Infinite) -> None:
        self._parameters: Tuple[torch.Tensor, ...] = tuple(parameters)
        self._infinite = infinite
        self._marks = 0
        self._taken: List[Union[int, str]] = []  # of each batch, or why that is not known
        self.had_any = False  # at any time
        self.is_offered = False  # a GradScaler has the gradient of all that was taken, and no step() came

    @property
    def samples(self) -> int:
        """Those that are known."""
        return sum(one for one in self._taken if isinstance(one, int))

    @property
    def batches(self) -> int:
        """How many were taken."""
        return len(self._taken)

    @property
    def unknown(self) -> Optional[str]:
        """Why the samples of a batch are not known."""
        return next((one for one in self._taken if isinstance(one, str)), None)

    @property
    def has_any(self) -> bool:
        """Whether a batch was taken."""
        return bool(self._taken)

    @property
    def is_empty(self) -> bool:
        """Whether batches were taken that are known to have no samples."""
        return self.has_any and not any(self._taken)

    def _versions(self) -> int:
        gradients = (parameter.grad for parameter in self._parameters)
        return hash(
            tuple((id(gradient), version_of(gradient)) for gradient in gradients if gradient is not None)
        )

    def take(self, samples: Union[int, str]) -> bool:
        """A batch is handed to the loop. Whether those before it turned out to be void."""
        void = self.has_any and self._infinite() is not None
        if void:
            self._taken = []
        self._taken.append(samples)
        self.had_any = True
        self._marks = self._versions()
        return void

    def zeroed(self) -> bool:
        """zero_grad() is about to come. Whether batches are void: their gradients are not finite and go
        unused.
        """
        if not self.has_any or self._infinite() is None:
            return False
        before = len(self._taken)
        self._taken = self._taken[-1:] if self._versions() == self._marks else []
        return len(self._taken) != before

    def offer(self) -> None:
        """A GradScaler has the gradient: it calls step() now, or not at all."""
        self.is_offered = self.has_any

    def stepped(self) -> None:
        """The next step() starts from zero."""
        self._taken, self.is_offered = [], False


def said_samples(samples: Any) -> int:
    """What step(samples=) says. MisuseError: no whole number from 1."""
    if isinstance(samples, int) and samples == 0 and samples is not False:
        raise MisuseError("step(samples=0): no sample has a gradient: call run.skip() in place of step() there.")
    return whole("step(): samples", samples)


def known_samples(samples: Optional[int], taken: int, batch_size: Optional[int]) -> int:
    """Samples of a gradient: said, else counted, else as always. MisuseError: none of them."""
    if samples is not None:
        return said_samples(samples)
    if taken or batch_size:
        return taken or batch_size or 0
    raise MisuseError(NO_BATCH_SIZE)
