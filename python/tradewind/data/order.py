# SPDX-License-Identifier: Apache-2.0
"""Which samples of a data set those of a run are: as the sampler of a DataLoader says, the same on all peers. And what
identifies a data set, cheaply and without reading a sample: what peers of run.shard() compare.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import operator
import random
import sys
import zlib
from typing import Any, Dict, Hashable, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
)

from ..engine.host_bytes import bytes_of
from ..errors import UnsupportedError, attribute_of

_SAMPLED = 256


def _evenly(count: int) -> Sequence[int]:
    return range(0, count, max(1, count // _SAMPLED))


def sampled(values: Any) -> str:
    """A checksum over some rows of a tensor or array; the same on every machine."""
    tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(values)
    rows = tensor.detach()[list(_evenly(len(tensor)))].reshape(-1)
    some = rows[:: max(1, rows.numel() // 4096)].contiguous().cpu()
    return format(zlib.crc32(bytes_of(some)), "08x")


def _is_array(value: Any, size: int) -> bool:
    is_tensor = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_complex()
    dtype = attribute_of(value, "dtype")
    kind = attribute_of(dtype, "kind") or ""
    is_numpy = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and kind in "iuf"
    is_array = is_tensor or is_numpy and dtype not in _UNKNOWN_TO_TORCH
    return is_array and len(value.shape) > 0 and len(value) == size


_UNKNOWN_TO_TORCH = ("uint16", "uint32", "uint64")


def _parts(dataset: Any, size: int) -> Iterator[str]:
    """What can be known of it beside its length."""
    if isinstance(dataset, Subset):
        indices = list(dataset.indices)
        content = repr([int(indices[at]) for at in _evenly(len(indices))]).encode()
        yield f"indices {zlib.crc32(content):08x}"
        yield from _parts(dataset.dataset, size_of(dataset.dataset))
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


def size_of(dataset: Any) -> int:
    """Its samples; 0: it has no length, as one whose sampler alone knows them."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return 0


def content_of(dataset: "Dataset[Any]", size: int) -> str:
    """One line: its class, and what it holds in memory."""
    return " ".join(["data set:", type(dataset).__name__, *_parts(dataset, size)])


# In a data set that is one block of so many samples (the most that the engine knows), a sample's index is its
# place in the order of all epochs.
_NUMBERS = 1 << 62
_MOST_DRAWN = 1 << 24  # indices of an epoch, in memory
_KEPT = 8  # samplers that count their epochs, each before another one


def span_seed(seed: int, first: int) -> int:
    """Seed of the samples from number `first` on, whoever computes them (splitmix64 of run and sample)."""
    mask = (1 << 64) - 1
    mixed = (seed * 0x9E3779B97F4A7C15 + first + 0x9E3779B97F4A7C15) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return (mixed ^ (mixed >> 31)) >> 1


@contextlib.contextmanager
def seeded(seed: int, cards: Sequence[int] = ()) -> Iterator[None]:
    """The generators of torch, random and numpy begin with this seed, and go on as before afterwards. cards: CUDA devices
    whose generators do, too.
    """
    numpy: Any = sys.modules.get("numpy")
    before = (torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None)
    on_cards = [(torch.cuda.default_generators[card], torch.cuda.get_rng_state(card)) for card in cards]
    torch.default_generator.manual_seed(seed)
    for generator, _ in on_cards:
        generator.manual_seed(seed)
    random.seed(seed)
    if numpy:
        numpy.random.seed(seed % (1 << 32))
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        for generator, state in on_cards:
            generator.set_state(state)
        random.setstate(before[1])
        if numpy:
            numpy.random.set_state(before[2])


class Shuffled:
    """All samples in an order of the run's own: another one in each epoch; `block` in a row stay together."""

    def __init__(self, size: int, block: int) -> None:
        self.size = self.engine_size = size
        self.block = block
        self.fact = f"{size} samples, shuffled"

    def indices(self, found: Sequence[int]) -> List[Any]:
        """Of the data set, for those that the engine named."""
        return list(found)

    def any(self, draw: random.Random, place: int) -> Any:
        """Some index of the data set."""
        return draw.randrange(self.size)


class InOrder(Shuffled):
    """All samples as they stand in the data set."""

    def __init__(self, size: int) -> None:
        super().__init__(size, size)
        self.fact = f"{size} samples, in order (shuffle=False)"


class Replaced:
    """Any sample at any time (RandomSampler with replacement), whatever num_samples says."""

    block = engine_size = _NUMBERS

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self.fact = f"{size} samples, drawn with replacement"

    def indices(self, found: Sequence[int]) -> List[Any]:
        """Of the data set, for places of the order."""
        return [span_seed(self._seed, place) % self._size for place in found]

    def any(self, draw: random.Random, place: int) -> Any:
        """Some index of the data set."""
        return draw.randrange(self._size)


class Drawn:
    """What a sampler gives in each epoch; its random numbers are those of the run, the same on all peers."""

    block = engine_size = _NUMBERS

    def __init__(self, sampler: Any, seed: int) -> None:
        self._sampler = sampler
        self._seed = seed
        self._epochs: List[Tuple[int, List[Any]]] = []
        # Samplers as they are before an epoch, where an epoch changes them; else the first one alone.
        self._before: Dict[int, Any] = {0: sampler}
        self._counts = False
        name = type(sampler).__name__
        first = self._epoch(0, None)
        self.size = len(first)
        if not first:
            raise UnsupportedError(f"run.shard(): the sampler {name} gives no samples.")
        if any(isinstance(index, torch.Tensor) or not isinstance(index, Hashable) for index in first):
            raise UnsupportedError(
                f"run.shard(): the sampler {name} gives several indices at once, batches of its own: use"
                " run.batches(loader), or give the loader a sampler of single indices and batch_size=."
            )
        if not _is_torchs(sampler) and self._draw(0) != first:
            raise UnsupportedError(
                f"run.shard(): the sampler {name} gives other samples when it is asked again, and each peer asks its"
                " own: let it draw by torch, random, numpy or a generator that it keeps, or use run.batches(loader)."
            )
        self._counts = self._goes_on()
        digest = hashlib.sha256(repr(first).encode()).hexdigest()[:12]
        self.fact = f"{self.size} samples of the sampler {name}, {digest}"

    def _epoch(self, number: int, size: Optional[int] = -1) -> List[Any]:
        """Indices of an epoch; of the two last asked for they are kept. size: expected; None: any."""
        for known, indices in self._epochs:
            if known == number:
                return indices
        indices = self._draw(number)
        wanted = self.size if size == -1 else size
        if wanted is not None and len(indices) != wanted:
            raise UnsupportedError(
                f"run.shard(): the sampler {type(self._sampler).__name__} gave {wanted} samples in the first"
                f" epoch and {len(indices)} in epoch {number + 1}: epochs have to be of one size; use"
                " run.batches(loader)."
            )
        self._epochs = [*self._epochs[-1:], (number, indices)]
        return indices

    def _goes_on(self) -> bool:
        """Whether an epoch changes the sampler, as one that counts its epochs itself: then another peer has to go
        through the epochs before, too.
        """
        if _is_torchs(self._sampler):
            return False
        gone_through = self._prepared(self._sampler, 0)
        self._gone_through(gone_through, 0)
        later, fresh = self._prepared(gone_through, 1), self._prepared(self._sampler, 1)
        if _are_alike(later, fresh):
            return False
        # What it drew may only be kept there, or be what it draws from.
        keeps = _are_alike(later, fresh, of_each=self.size)
        return not keeps or self._gone_through(later, 1) != self._gone_through(fresh, 1)

    def _prepared(self, sampler: Any, number: int) -> Any:
        """A copy that is about to draw this epoch."""
        mine = _with_seed(sampler, span_seed(self._seed, number))
        if hasattr(mine, "set_epoch"):
            mine.set_epoch(number)
        return mine

    def _draw(self, number: int) -> List[Any]:
        if not self._counts:
            return self._gone_through(self._prepared(self._sampler, number), number)
        epoch = max(known for known in self._before if known <= number)
        sampler = self._before[epoch]
        while True:
            sampler = self._prepared(sampler, epoch)
            found = self._gone_through(sampler, epoch)
            self._keep(epoch + 1, sampler)
            if epoch == number:
                return found
            epoch += 1

    def _keep(self, epoch: int, sampler: Any) -> None:
        """The sampler before this epoch; of the last ones and the first."""
        self._before[epoch] = sampler
        if len(self._before) > _KEPT:
            del self._before[min(known for known in self._before if known)]

    def _gone_through(self, sampler: Any, number: int) -> List[Any]:
        with seeded(span_seed(self._seed, number)):
            found = [_plain(index) for index in itertools.islice(sampler, _MOST_DRAWN + 1)]
        if len(found) > _MOST_DRAWN:
            raise UnsupportedError(
                f"run.shard(): the sampler {type(sampler).__name__} gives more than {_MOST_DRAWN} samples in an"
                " epoch, or has no end: use run.batches(loader)."
            )
        return found

    def indices(self, found: Sequence[int]) -> List[Any]:
        """Of the data set, for places of the order."""
        return [self._epoch(place // self.size)[place % self.size] for place in found]

    def any(self, draw: random.Random, place: int) -> Any:
        """Some index that the sampler gave in the epoch of this place."""
        return draw.choice(self._epoch(place // self.size))


def _is_torchs(sampler: Any) -> bool:
    """Whether two draws with one seed are known to be the same."""
    return isinstance(sampler, (list, tuple, range)) or type(sampler).__module__.startswith("torch.utils.data.")


def _with_seed(sampler: Any, seed: int) -> Any:
    """A copy whose generators begin with this seed, and those of samplers inside of it. UnsupportedError: it can be gone
    through only once.
    """
    try:
        mine = copy.copy(sampler)
    except TypeError as error:
        raise UnsupportedError(
            f"run.shard(): the sampler is a {type(sampler).__name__}, which cannot be gone through once an epoch"
            f" ({error}): give the DataLoader a list of indices, or a Sampler."
        ) from None
    kept = getattr(mine, "__dict__", {})
    for name, value in list(kept.items()):
        kept[name] = _with_seed(value, seed) if isinstance(value, Sampler) else _generator_like(value, seed)
    return mine


def _generator_like(value: Any, seed: int) -> Any:
    """A generator of its kind that begins with this seed; the value, if it is none."""
    if isinstance(value, torch.Generator):
        return torch.Generator().manual_seed(seed)
    if type(value) is random.Random:
        return random.Random(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.random.Generator):
        return numpy.random.default_rng(seed)
    if numpy and isinstance(value, numpy.random.RandomState):
        return numpy.random.RandomState(seed % (1 << 32))
    return value


def _are_alike(one: Any, other: Any, of_each: int = -1) -> bool:
    """Whether two copies of a sampler have the same attributes; their generators begin alike. of_each: those that
    have so many values do not count.
    """
    mine, theirs = getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
    same = (_is_same(value, theirs.get(name), of_each) for name, value in mine.items())
    return (mine.keys() == theirs.keys() or of_each >= 0) and all(same)


def _is_same(value: Any, other: Any, of_each: int) -> bool:
    if isinstance(value, Sampler):
        return type(value) is type(other) and _are_alike(value, other, of_each)
    if not isinstance(value, str) and hasattr(value, "__len__") and len(value) == of_each:
        return True
    if value is other or _generator_like(value, 0) is not value:
        return type(value) is type(other)
    try:
        return bool(value == other)
    except (RuntimeError, TypeError, ValueError):  # of several elements
        return False


def _plain(index: Any) -> Any:
    """A whole number of any kind as an int; other keys of a data set as they are."""
    try:
        return operator.index(index)
    except TypeError:
        return index


def own_iteration(loader: DataLoader, way: str = "__iter__") -> Optional[str]:
    """Name of a loader's class that goes through its batches in a way of its own; None: as torch does.

    way: "_get_iterator" is called by torch's __iter__; one of its own gets what collate_fn made.
    """
    kind = type(loader)
    return None if getattr(kind, way) is getattr(DataLoader, way) else kind.__name__


def is_accelerates(value: Any) -> bool:
    """Whether Accelerate made it."""
    return type(value).__module__.partition(".")[0] == "accelerate"


def is_torchs(value: Any, kind: type) -> bool:
    """Whether it is a sampler of this kind of torch's, or torchdata's twin of it, which can go on where it was."""
    return type(value) is kind or isinstance(value, kind) and type(value).__module__.startswith("torchdata.")


class Sampling:
    """How a DataLoader chooses samples: sampler, batch_size (None: no batches) and drop_last."""

    def __init__(self, loader: DataLoader) -> None:
        """UnsupportedError: a batch_sampler that run.shard() cannot follow."""
        batches: Any = loader.batch_sampler
        if is_accelerates(batches) and getattr(batches, "num_processes", 0) == 1:
            batches = batches.batch_sampler
        self.sampler: Any = loader.sampler
        self.batch_size: Optional[int] = None
        self.drop_last = False
        if batches is None:
            return
        kind = type(batches)
        # One that inherits torch's __iter__ makes torch's batches, as the usual one of sentence-transformers.
        if not is_torchs(batches, BatchSampler) and getattr(kind, "__iter__", None) is not BatchSampler.__iter__:
            raise UnsupportedError(
                f"run.shard(): batch_sampler={kind.__name__} of {kind.__module__} makes batches of its own, and the"
                " run's batches are cut to its rounds: use run.batches(loader), or give the loader sampler="
                " and batch_size=."
            )
        self.sampler = batches.sampler
        self.batch_size = batches.batch_size
        self.drop_last = batches.drop_last


Order = Any  # Shuffled, Replaced or Drawn


def order_of(dataset: Any, block: int, sampler: Any, seed: int) -> Order:
    """The order of a data set. sampler: None without a DataLoader; seed: that of the run."""
    if sampler is None:
        return Shuffled(_length(dataset), block)
    if isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1:
        raise UnsupportedError(
            f"run.shard(): the loader's DistributedSampler takes one of {sampler.num_replicas} parts of the"
            " data, and run.shard() gives each peer its samples: leave the sampler out."
        )
    if getattr(sampler, "data_source", None) is dataset:
        _length(dataset)
    if type(sampler) is SequentialSampler and _covers(sampler, dataset):
        return InOrder(_length(dataset))
    plain = is_torchs(sampler, RandomSampler) or (
        isinstance(sampler, RandomSampler) and is_accelerates(sampler)
    )
    if plain and sampler.replacement and len(sampler.data_source) == size_of(dataset):
        return Replaced(_length(dataset), seed)
    if plain and not sampler.replacement and _covers(sampler, dataset):
        return Shuffled(_length(dataset), block)
    return Drawn(sampler, seed)


def _covers(sampler: Any, dataset: Any) -> bool:
    return bool(len(sampler) == len(sampler.data_source) == size_of(dataset))


def _length(dataset: Any) -> int:
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):
        raise UnsupportedError(
            f"run.shard() of {type(dataset).__name__}: it has no length; give the DataLoader a sampler."
        ) from None
    if size < 1:
        raise UnsupportedError(f"run.shard() of {type(dataset).__name__}: it has no samples.")
    return size
