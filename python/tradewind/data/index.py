# SPDX-License-Identifier: Apache-2.0
"""Shards of samples by an index: a reader of libtradewind.so, whose memory becomes tensors, and the data set on top."""

from __future__ import annotations

import ctypes
import json
import operator
import os
import threading
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch.utils.data import Dataset

from ..engine import abi
from ..errors import DataError, SettingError, truth, warn

# How long a wait lasts before Python looks whether Ctrl-C came.
_SLICE_MS = 100

_NUMBERS = {abi.TW_ARRAY_FLOAT32: torch.float32, abi.TW_ARRAY_INT64: torch.int64}


def _value_of(value: abi.tw_value) -> Any:
    """bytes, a tensor, one number, or None where the sample has no such field. Copies."""
    if value.content == abi.TW_ABSENT:
        return None
    address = value.data or 0
    if value.content == abi.TW_BYTES:
        return ctypes.string_at(address, value.size) if value.size else b""
    dtype, shape = _NUMBERS[value.content], value.shape[: value.dimensions]
    if not value.size:
        return torch.empty(shape, dtype=dtype, device="cpu")
    content = bytearray((ctypes.c_char * value.size).from_address(address))
    tensor = torch.frombuffer(content, dtype=dtype)
    return tensor.reshape(shape) if shape else tensor.item()


class ShardReader:
    """Samples of an index. Any thread, one after the other; of the process that made it alone."""

    def __init__(self, settings: Sequence[Tuple[str, str]]) -> None:
        """SettingError: a setting, the index or a field; the text names it."""
        self._library = abi.library()
        self._lock = threading.Lock()
        self.process = os.getpid()
        pairs = abi.setting_array(settings)
        handle = ctypes.c_void_p()
        if self._library.tw_data_open(pairs, len(settings), ctypes.byref(handle)) != abi.TW_OK:
            raise SettingError(abi.last_error(self._library))
        self._handle: Optional[ctypes.c_void_p] = handle
        # At the end of the interpreter nothing is waited for.
        self._end = weakref.finalize(self, self._library.tw_data_close, handle)
        self._end.atexit = False
        self.facts: Dict[str, Any] = self._json(self._library.tw_data_facts(handle))

    def _json(self, address: Optional[int]) -> Dict[str, Any]:
        if not address:
            raise DataError(abi.last_error(self._library))
        found: Dict[str, Any] = json.loads(abi.take_text(self._library, address))
        return found

    def _opened(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise DataError("the data was closed while it was read.")
        return self._handle

    def describe(self, sample: int) -> Dict[str, Any]:
        """key, object, fields: {name: [offset, bytes]}."""
        with self._lock:
            return self._json(self._library.tw_data_sample(self._opened(), sample))

    def expect(self, samples: Sequence[int]) -> None:
        """These will be read next, and no others. Does not wait."""
        numbers = (ctypes.c_uint64 * max(1, len(samples)))(*samples)
        with self._lock:
            if self._library.tw_data_expect(self._opened(), numbers, len(samples)) != abi.TW_OK:
                raise DataError(abi.last_error(self._library))

    def read(self, samples: Sequence[int]) -> List[Tuple[str, List[Any]]]:
        """Key and fields of each. DataError: one of them cannot be had."""
        if not samples:
            return []
        each = 1 + len(self.facts["fields"])
        numbers = (ctypes.c_uint64 * len(samples))(*samples)
        values = (abi.tw_value * (len(samples) * each))()
        with self._lock:
            status = abi.TW_TIMEOUT
            while status == abi.TW_TIMEOUT:
                status = self._library.tw_data_read(
                    self._opened(), numbers, len(samples), _SLICE_MS, values
                )
                self._say_warnings()
            if status != abi.TW_OK:
                raise DataError(abi.last_error(self._library))
            return [self._sample(values[at : at + each]) for at in range(0, len(values), each)]

    def _say_warnings(self) -> None:
        texts = abi.take_text(self._library, self._library.tw_data_warnings(self._opened()))
        for text in texts.splitlines():
            warn(text)

    @staticmethod
    def _sample(values: List[abi.tw_value]) -> Tuple[str, List[Any]]:
        key: bytes = _value_of(values[0])
        return key.decode(errors="replace"), [_value_of(value) for value in values[1:]]

    def close(self) -> None:
        """Ends its threads, after what they read just now; a second call does nothing."""
        with self._lock:
            self._handle = None
            self._end()


KEY = "__key__"

# What iteration in order reads at once, and how far ahead.
_AT_ONCE = 16
_AHEAD = 128
_MOST_THREADS = 4


class Options(NamedTuple):
    """The arguments of shards()."""

    path: str
    fields: Optional[Tuple[str, ...]]
    decode: bool
    image: int
    channels: int
    block: int
    threads: Optional[int]
    memory: str
    cache: Optional[str]
    cache_limit: Optional[str]

    def pairs(self, threads: int) -> List[Tuple[str, str]]:
        """Settings of the library."""
        pairs = [("index", self.path), ("decode", "true" if self.decode else "false")]
        pairs += [("field", name) for name in self.fields or () if name != KEY]
        pairs += [("image", str(self.image)), ("channels", str(self.channels)), ("threads", str(threads))]
        pairs += [("memory", self.memory)]
        given = (("cache", self.cache), ("cache_limit", self.cache_limit))
        return pairs + [(name, value) for name, value in given if value]


class Shards(Dataset):
    """Samples of an index, by number: len(), [number], and in order by iteration.

    A sample is a tuple in the order of `fields`; where no fields were named, a dict of all that it has and
    "__key__". A field is bytes; decoded, a tensor (float32 or int64), or an int or a float where it is one
    number. Any thread. It can be pickled; a forked or started process opens the index for itself. Raises
    IndexError, and DataError where a sample cannot be had.
    """

    def __init__(self, options: Options) -> None:
        """SettingError: wrong, an index that is not there, or a field that some sample lacks."""
        self._options = options
        self._opened_first_by = os.getpid()
        self._reader: Optional[ShardReader] = None
        facts = self._open().facts
        self._size: int = facts["samples"]
        self._identity: str = facts["identity"]
        if not 1 <= options.block <= self._size:
            raise SettingError(f"block={options.block}: expected 1 to {self._size}, the samples of the data.")

    def _open(self) -> ShardReader:
        """The reader of this process."""
        if self._reader is None or self._reader.process != os.getpid():
            threads = self._options.threads
            if threads is None:
                # Workers of a loader are many, and each has a process.
                here = os.getpid() == self._opened_first_by
                threads = min(_MOST_THREADS, os.cpu_count() or 1) if here else 1
            reader = ShardReader(self._options.pairs(threads))
            if self._reader is not None or hasattr(self, "_identity"):
                self._refuse_other(reader.facts["identity"])
            self._reader = reader
        return self._reader

    def _refuse_other(self, identity: str) -> None:
        if identity != self._identity:
            raise DataError(
                f"{self._options.path} was {self._identity} when it was opened first, and is {identity} now:"
                " leave it as it is while it is in use."
            )

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_reader": None}

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Shards({self._options.path!r}, {self._size} samples, fields {', '.join(self.fields)})"

    @property
    def fields(self) -> Tuple[str, ...]:
        """Those that were named; else all that samples have."""
        return self._options.fields or tuple(self._open().facts["fields"])

    @property
    def identity(self) -> str:
        """Identifies the data in a run (docs/data.md): 32 hexadecimal digits."""
        return self._identity

    @property
    def block(self) -> int:
        """This many consecutive samples stay together in the order of a run."""
        return self._options.block

    @property
    def run_fact(self) -> str:
        """The text that peers of a run compare: data, fields and decoding."""
        names = "all" if self._options.fields is None else ",".join(self._options.fields)
        decoded = f"image {self._options.image} channels {self._options.channels}"
        return (
            f"data: {self._identity} fields {names} {decoded if self._options.decode else 'bytes'} block"
            f" {self._options.block}"
        )

    def describe(self, number: int) -> Dict[str, Any]:
        """key, object (the shard), fields: {name: [offset, bytes]} of a sample; reads nothing."""
        return self._open().describe(self._number(number))

    def expect(self, numbers: Sequence[int]) -> None:
        """These samples will be read next, in this order, and no others: fetches and decodes them ahead, as
        far as the memory goes. Does not wait.
        """
        self._open().expect([self._number(number) for number in numbers])

    def __getitem__(self, number: int) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> List[Any]:
        """The samples of these numbers, read and decoded at once; PyTorch's loaders ask so from 2.0 on."""
        read = self._open().read([self._number(number) for number in numbers])
        return [self._sample(key, values) for key, values in read]

    def __iter__(self) -> Iterator[Any]:
        """All samples once, in the order of the index, read ahead."""
        for first in range(0, self._size, _AT_ONCE):
            self.expect(range(first, min(self._size, first + _AHEAD)))
            yield from self.__getitems__(range(first, min(self._size, first + _AT_ONCE)))

    def _number(self, number: int) -> int:
        whole = operator.index(number)
        if not -self._size <= whole < self._size:
            raise IndexError(f"sample {whole}: expected {-self._size} to {self._size - 1}")
        return whole % self._size

    def _sample(self, key: str, values: List[Any]) -> Any:
        names = self._options.fields
        if names is None:
            has = {name: value for name, value in zip(self.fields, values) if value is not None}
            return {KEY: key, **has}
        read = iter(values)
        return tuple(key if name == KEY else next(read) for name in names)

    def close(self) -> None:
        """Ends its threads; the next read opens the index again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _names(fields: Union[str, Sequence[str], None]) -> Optional[Tuple[str, ...]]:
    if fields is None:
        return None
    if isinstance(fields, (str, bytes)):
        raise SettingError(f'fields={fields!r}: expected several names, as ("jpg", "cls") or ["{fields!s}"].')
    if not isinstance(fields, Sequence) or not all(isinstance(name, str) for name in fields):
        raise SettingError(
            f'fields={fields!r}: expected a list of names in the order of a sample, as ["jpg", "cls"].'
        )
    names = tuple(fields)
    if all(name == KEY for name in names):
        raise SettingError(f"fields={names!r}: expected the name of one field at least, beside {KEY}.")
    return names


def _decoding(decode: bool, image: int, channels: int) -> bool:
    """decode=, which the size and the channels of pictures need."""
    decodes = truth("decode", decode)
    for name, value in (("image", image), ("channels", channels)):
        if value and not decodes:
            raise SettingError(f"{name}={value!r}: expected with decode=True, or pictures stay bytes.")
    return decodes


def _block(block: int) -> int:
    try:
        return operator.index(block)
    except TypeError:
        raise SettingError(f"block={block!r}: expected a whole number from 1.") from None


def shards(
    index: Union[str, "os.PathLike[str]"],
    *,
    fields: Optional[Sequence[str]] = None,
    decode: bool = False,
    image: int = 0,
    channels: int = 0,
    block: int = 1,
    threads: Optional[int] = None,
    memory: Union[str, int] = "256MiB",
    cache: Union[str, "os.PathLike[str]", None] = None,
    cache_limit: Union[str, int, None] = None,
) -> Shards:
    """The samples of an index that `tw data index` made, for run.shard(), run.fit(), a DataLoader, or as they
    are.

    fields: what a sample's tuple has; "jpg;png" is the first of both that a sample has, "__key__" its key.
    None: samples are dicts of all fields. decode: by the kind of the field, as docs/data.md says; other
    kinds stay bytes. image: pictures become squares of this many pixels a side, their middle; 0: they stay as
    they are. channels: 1 grey, 3 colours, 0 as they are. block: this many consecutive samples stay
    together in the order of a run, and are one read. threads: that decode and read files; None: 4 or as
    many as there are cores, in workers of a loader 1. memory: samples that are read ahead (bytes, or "256MiB"), in each
    process. cache: folder that keeps what came over the network, up to cache_limit ("10GiB"). SettingError: a
    wrong argument, an index that is not there, or a field that some sample lacks; the text names it.
    """
    return Shards(
        Options(
            os.fspath(index),
            _names(fields),
            _decoding(decode, image, channels),
            image,
            channels,
            _block(block),
            threads,
            str(memory),
            None if cache is None else os.fspath(cache),
            None if cache_limit is None else str(cache_limit),
        )
    )
