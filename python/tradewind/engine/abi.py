# SPDX-License-Identifier: Apache-2.0
"""src/bind/tradewind*.h in ctypes: the same structures, constants and prototypes (a test compares them).

Only this module passes pointers. ctypes lets go of the interpreter lock in every call, and takes it in
callbacks.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..errors import TradewindError

TW_ABI = 16

TW_OK = 0
TW_GRADIENT = 1
TW_TIMEOUT = 2
TW_FINISHED = 3
TW_STALE = 4
TW_FAILED = -1
TW_MISUSE = -2
TW_CALLBACK = -3
TW_CONDEMNED = -4

TW_SGD = 0
TW_ADAM = 1
TW_ADAMW = 2
TW_LAMB = 3
TW_AVERAGE = 4
TW_CALLER = 5
TW_UPDATES = 6
TW_MOVING = 7

TW_NESTEROV = 1

TW_FLOAT32 = 0
TW_FLOAT16 = 1
TW_BFLOAT16 = 2

TW_ABSENT = 0
TW_BYTES = 1
TW_ARRAY_FLOAT32 = 2
TW_ARRAY_INT64 = 3


class tw_setting(ctypes.Structure):
    """One setting as text."""

    key: Optional[bytes]
    value: Optional[bytes]
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class tw_group(ctypes.Structure):
    """Parameters that one rule updates."""

    tensors: int
    learning_rate: float
    weight_decay: float
    momentum: float
    beta1: float
    beta2: float
    epsilon: float
    kind: int
    flags: int
    _fields_ = [
        ("tensors", c_uint64),
        ("learning_rate", c_double),
        ("weight_decay", c_double),
        ("momentum", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("kind", c_uint32),
        ("flags", c_uint32),
    ]


class tw_step(ctypes.Structure):
    """What consecutive values take in an update."""

    first: int
    count: int
    kind: int
    flags: int
    learning_rate: float
    weight_decay: float
    momentum: float
    shrink: float
    beta1: float
    one_minus_beta1: float
    beta2: float
    one_minus_beta2: float
    correction1: float
    root_correction2: float
    epsilon: float
    _fields_ = [
        ("first", c_uint64),
        ("count", c_uint64),
        ("kind", c_uint32),
        ("flags", c_uint32),
        ("learning_rate", c_float),
        ("weight_decay", c_float),
        ("momentum", c_float),
        ("shrink", c_float),
        ("beta1", c_float),
        ("one_minus_beta1", c_float),
        ("beta2", c_float),
        ("one_minus_beta2", c_float),
        ("correction1", c_float),
        ("root_correction2", c_float),
        ("epsilon", c_float),
    ]


class tw_model(ctypes.Structure):
    """The model that is trained."""

    _fields_ = [
        ("groups", POINTER(tw_group)),
        ("group_count", c_size_t),
        ("tensor_sizes", POINTER(c_uint64)),
        ("tensor_count", c_size_t),
        ("state_sizes", POINTER(c_uint64)),
        ("state_count", c_size_t),
        ("clip_norm", c_double),
        ("layout", c_char_p),
    ]


SettingsCall = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_char_p, POINTER(tw_group), c_size_t)
UpdateCall = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64, POINTER(tw_step), c_size_t)
LoadCall = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_int)
SaveCall = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32)
WarnCall = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
ContributionCall = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64)


class tw_calls(ctypes.Structure):
    """Callbacks of the engine inside tw_next."""

    _fields_ = [
        ("user", c_void_p),
        ("settings", SettingsCall),
        ("update", UpdateCall),
        ("load", LoadCall),
        ("save", SaveCall),
        ("warn", WarnCall),
        ("contribution", ContributionCall),
    ]


class tw_tensor(ctypes.Structure):
    """Values in host memory."""

    data: Optional[int]
    count: int
    dtype: int
    reserved: int
    _fields_ = [("data", c_void_p), ("count", c_uint64), ("dtype", c_uint32), ("reserved", c_uint32)]


class tw_dataset(ctypes.Structure):
    """A data set, and where in the order of its samples the run begins."""

    _fields_ = [("size", c_uint64), ("block", c_uint64), ("begun", c_uint64)]


class tw_order(ctypes.Structure):
    """Samples of which a gradient is due."""

    round: int
    samples: int
    first: int
    _fields_ = [("round", c_uint64), ("samples", c_uint64), ("first", c_uint64)]


class tw_gradient(ctypes.Structure):
    """The result for an order."""

    _fields_ = [
        ("gradients", POINTER(tw_tensor)),
        ("gradient_count", c_size_t),
        ("weight", c_double),
        ("samples", c_uint64),
        ("had", c_uint64),
        ("loss_sum", c_double),
        ("settings", c_char_p),
    ]


class tw_value(ctypes.Structure):
    """A field of a sample, in memory of the library."""

    data: Optional[int]
    shape: Any
    dimensions: int
    size: int
    content: int
    _fields_ = [
        ("data", c_void_p),
        ("shape", POINTER(c_uint64)),
        ("dimensions", c_uint64),
        ("size", c_uint64),
        ("content", c_uint32),
        ("reserved", c_uint32),
    ]


class tw_stored(ctypes.Structure):
    """The facts of a checkpoint, in memory of the library."""

    round: int
    samples: int
    run: Optional[bytes]
    layout: Optional[bytes]
    skipped: Optional[bytes]
    _fields_ = [
        ("round", c_uint64),
        ("samples", c_uint64),
        ("run", c_char_p),
        ("layout", c_char_p),
        ("skipped", c_char_p),
    ]


# name: (result, arguments). Opaque pointers (tw_peer*, tw_memory*, tw_data*, tw_checkpoint*) and texts of the library are c_void_p.
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "tw_last_error": (c_char_p, []),
    "tw_abi": (c_uint32, []),
    "tw_version": (c_char_p, []),
    "tw_settings": (c_void_p, [POINTER(tw_setting), c_size_t]),
    "tw_open": (
        c_int,
        [POINTER(tw_setting), c_size_t, POINTER(tw_model), POINTER(tw_calls), POINTER(c_void_p)],
    ),
    "tw_start": (c_int, [c_void_p, POINTER(tw_tensor), c_size_t]),
    "tw_next": (c_int, [c_void_p, c_uint32, POINTER(tw_order)]),
    "tw_samples": (c_int, [c_void_p, POINTER(tw_dataset), POINTER(c_int64), c_size_t]),
    "tw_ahead": (c_int, [c_void_p, POINTER(tw_dataset), POINTER(c_int64), POINTER(c_size_t)]),
    "tw_fragment": (c_int, [c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64)]),
    "tw_waited": (c_int, [c_void_p, c_double]),
    "tw_evaluated": (c_int, [c_void_p, c_uint64, c_char_p, c_double]),
    "tw_begun": (c_int, [c_void_p, c_uint64]),
    "tw_done": (c_int, [c_void_p, POINTER(tw_gradient)]),
    "tw_drop": (c_int, [c_void_p]),
    "tw_busy": (c_int, [c_void_p, c_char_p]),
    "tw_barrier": (c_int, [c_void_p, c_uint32]),
    "tw_vector": (c_void_p, [c_void_p, c_uint32, POINTER(c_void_p), POINTER(c_uint64)]),
    "tw_release": (None, [c_void_p]),
    "tw_view": (c_void_p, [c_void_p]),
    "tw_events": (c_void_p, [c_void_p]),
    "tw_free": (None, [c_void_p]),
    "tw_leave": (c_int, [c_void_p, c_int]),
    "tw_end_run": (c_int, [c_void_p]),
    "tw_signal": (c_int, [c_void_p, c_int]),
    "tw_heed": (c_int, [c_void_p, c_int]),
    "tw_close": (None, [c_void_p]),
    "tw_after_fork": (None, []),
    "tw_data_open": (c_int, [POINTER(tw_setting), c_size_t, POINTER(c_void_p)]),
    "tw_data_facts": (c_void_p, [c_void_p]),
    "tw_data_sample": (c_void_p, [c_void_p, c_uint64]),
    "tw_data_expect": (c_int, [c_void_p, POINTER(c_uint64), c_size_t]),
    "tw_data_read": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, c_uint32, POINTER(tw_value)]),
    "tw_data_warnings": (c_void_p, [c_void_p]),
    "tw_data_close": (None, [c_void_p]),
    "tw_checkpoint_open": (c_int, [c_char_p, POINTER(c_void_p), POINTER(tw_stored)]),
    "tw_checkpoint_values": (c_int, [c_void_p, c_void_p, c_size_t]),
    "tw_checkpoint_close": (None, [c_void_p]),
}

_loaded: List[ctypes.CDLL] = []


def library_path() -> Path:
    """Path of libtradewind.so: TRADEWIND_LIBRARY, else beside this package. TradewindError: nowhere."""
    named = os.environ.get("TRADEWIND_LIBRARY")
    if named:
        if not Path(named).is_file():
            raise TradewindError(
                f"TRADEWIND_LIBRARY names {named}, which is no file; build it with `make python`."
            )
        return Path(named)
    beside = Path(__file__).parents[1] / "libtradewind.so"
    if beside.is_file():
        return beside
    raise TradewindError(
        f"libtradewind.so is not in {beside.parent}; build it with `make python` and use build/python, "
        "or set TRADEWIND_LIBRARY."
    )


def library() -> ctypes.CDLL:
    """The library, loaded once a process and with its prototypes. TradewindError: missing, or of another
    ABI.
    """
    if not _loaded:
        path = library_path()
        try:
            loaded = ctypes.CDLL(str(path))
            for name, (result, arguments) in PROTOTYPES.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise TradewindError(
                f"{path} cannot be used: {error}; build it again with `make python`."
            ) from error
        if loaded.tw_abi() != TW_ABI:
            raise TradewindError(
                f"{path} has ABI {loaded.tw_abi()}, this package needs {TW_ABI}: both have to come from one"
                " `make python`."
            )
        _loaded.append(loaded)
    return _loaded[0]


def loaded_library() -> Optional[ctypes.CDLL]:
    """The library if library() was called before; loads nothing."""
    return _loaded[0] if _loaded else None


def last_error(library: Any) -> str:
    """The sentence of the call that failed just now."""
    text: bytes = library.tw_last_error()
    return text.decode(errors="replace")


def take_text(library: Any, address: Optional[int]) -> str:
    """A text that the library gives away; empty where there is none."""
    if not address:
        return ""
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        library.tw_free(address)


def setting_array(pairs: Sequence[Tuple[str, str]]) -> ctypes.Array[tw_setting]:
    """Keys and texts for the library; never of length 0."""
    made = (tw_setting * max(1, len(pairs)))()
    for at, (key, value) in enumerate(pairs):
        made[at] = tw_setting(os.fsencode(key), os.fsencode(value))
    return made
