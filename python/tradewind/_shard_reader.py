# SPDX-License-Identifier: Apache-2.0
"""An open index of libtradewind.so, as Python sees it: statuses become exceptions, memory becomes tensors."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from . import _abi
from ._errors import DataError, SettingError
from ._warn import warn

# How long a wait lasts before Python looks whether Ctrl-C came.
_SLICE_MS = 100

_NUMBERS = {_abi.TW_ARRAY_FLOAT32: torch.float32, _abi.TW_ARRAY_INT64: torch.int64}


def _value_of(value: _abi.tw_value) -> Any:
    """bytes, a tensor, one number, or None where the sample has no such field. Copies."""
    if value.content == _abi.TW_ABSENT:
        return None
    address = value.data or 0
    if value.content == _abi.TW_BYTES:
        return ctypes.string_at(address, value.size) if value.size else b""
    dtype, shape = _NUMBERS[value.content], value.shape[: value.dimensions]
    if not value.size:
        return torch.empty(shape, dtype=dtype)
    content = bytearray((ctypes.c_char * value.size).from_address(address))
    tensor = torch.frombuffer(content, dtype=dtype)
    return tensor.reshape(shape) if shape else tensor.item()


class ShardReader:
    """Samples of an index. Any thread, one after the other; of the process that made it alone."""

    def __init__(self, settings: Sequence[Tuple[str, str]]) -> None:
        """SettingError: a setting, the index or a field; the text names it."""
        self._library = _abi.library()
        self._lock = threading.Lock()
        self.process = os.getpid()
        pairs = (_abi.tw_setting * len(settings))()
        for at, (key, value) in enumerate(settings):
            pairs[at] = _abi.tw_setting(os.fsencode(key), os.fsencode(value))
        handle = ctypes.c_void_p()
        if self._library.tw_data_open(pairs, len(settings), ctypes.byref(handle)) != _abi.TW_OK:
            raise SettingError(self._sentence())
        self._handle: Optional[ctypes.c_void_p] = handle
        # At the end of the interpreter nothing is waited for.
        self._end = weakref.finalize(self, self._library.tw_data_close, handle)
        self._end.atexit = False
        self.facts: Dict[str, Any] = self._json(self._library.tw_data_facts(handle))

    def _sentence(self) -> str:
        text: bytes = self._library.tw_last_error()
        return text.decode(errors="replace")

    def _json(self, address: Optional[int]) -> Dict[str, Any]:
        if not address:
            raise DataError(self._sentence())
        try:
            found: Dict[str, Any] = json.loads(ctypes.string_at(address).decode(errors="replace"))
            return found
        finally:
            self._library.tw_free(address)

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
            if self._library.tw_data_expect(self._opened(), numbers, len(samples)) != _abi.TW_OK:
                raise DataError(self._sentence())

    def read(self, samples: Sequence[int]) -> List[Tuple[str, List[Any]]]:
        """Key and fields of each. DataError: one of them cannot be had."""
        if not samples:
            return []
        each = 1 + len(self.facts["fields"])
        numbers = (ctypes.c_uint64 * len(samples))(*samples)
        values = (_abi.tw_value * (len(samples) * each))()
        with self._lock:
            status = _abi.TW_TIMEOUT
            while status == _abi.TW_TIMEOUT:
                status = self._library.tw_data_read(
                    self._opened(), numbers, len(samples), _SLICE_MS, values
                )
                self._say_warnings()
            if status != _abi.TW_OK:
                raise DataError(self._sentence())
            return [self._sample(values[at : at + each]) for at in range(0, len(values), each)]

    def _say_warnings(self) -> None:
        address = self._library.tw_data_warnings(self._opened())
        if not address:
            return
        texts = ctypes.string_at(address).decode(errors="replace").splitlines()
        self._library.tw_free(address)
        for text in texts:
            warn(text)

    @staticmethod
    def _sample(values: List[_abi.tw_value]) -> Tuple[str, List[Any]]:
        key: bytes = _value_of(values[0])
        return key.decode(errors="replace"), [_value_of(value) for value in values[1:]]

    def close(self) -> None:
        """Ends its threads, after what they read just now; a second call does nothing."""
        with self._lock:
            self._handle = None
            self._end()
