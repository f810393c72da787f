# SPDX-License-Identifier: Apache-2.0
"""Settings of a run: the arguments of join(). The library has the table of them all; it checks them, and adds what the
environment TRADEWIND_* and the run file say.
"""

from __future__ import annotations

import json
import numbers
import os
from pathlib import PurePath
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import SettingError
from . import abi

Pairs = Sequence[Tuple[str, str]]

# What decides keys that a run file had once, that `tw up` alone reads, or that belong to another call.
OWN_KEYS = {
    "model": "the model given to run.optimizer()",
    "data": "the program's own loader, or run.shard()",
    "optimizer": "the optimizer given to run.optimizer()",
    "schedule": "scheduler= of run.optimizer()",
    "program": "`tw up`, which starts it",
    "evaluation": "the program's own loop; see run.paused() and run.is_first",
    "training.clip_norm": "clip_grad_norm= of run.optimizer()",
    "training.buffers": "buffers= of run.optimizer()",
    "training.microbatch": "batch_size of the loader or of run.optimizer()",
    "microbatch": "batch_size of the loader or of run.optimizer()",
    "batch_size": "the loader, or batch_size= of run.optimizer()",
    "lr": "the optimizer given to run.optimizer()",
    "scheduler": "scheduler= of run.optimizer()",
    "clip_grad_norm": "clip_grad_norm= of run.optimizer()",
    "buffers": "buffers= of run.optimizer()",
    "on_event": "run.on_event(function)",
}
# Keys that take the word "none", by their last part too: None could mean that, or that nothing was given.
TAKE_NONE = ("checkpoint.folder", "folder", "listen", "notices", "rendezvous")
_MOST_THREADS = 1024  # far more may never all be there, and the process waits for them for ever
# What the library is told of the loop beside settings.
_OF_THE_LOOP = ("grain", "begun")


class Settings(NamedTuple):
    """pairs: for the engine, as they were given. values: of all settings, by key; empty: none. threads: of torch."""

    pairs: Tuple[Tuple[str, str], ...]
    values: Mapping[str, str]
    threads: Optional[int]


def as_text(key: str, value: Any) -> str:
    """A value as the engine reads it. SettingError: of a kind that no setting has."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, PurePath)):
        return str(value)
    if isinstance(value, numbers.Integral):  # numpy's, too
        return str(int(value))
    if isinstance(value, numbers.Real):
        found = float(value)
        return repr(int(found)) if found.is_integer() else repr(found)
    raise SettingError(f"{key}={value!r}: expected a text, a number, True or False.")


def together(named: Mapping[str, Any], settings: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Arguments of join() with those in its settings=; None: not given. SettingError: a key has two values, is no text,
    or is None where "none" is a value.
    """
    others = {} if settings is None else settings
    if not isinstance(others, Mapping) or not all(isinstance(name, str) for name in others):
        raise SettingError(f'settings={settings!r}: expected a dict with names, as {{"rounds": 500}}.')
    for name, value in (*named.items(), *others.items()):
        if value is None and name in TAKE_NONE:
            raise SettingError(f'{name}=None: expected a text; say "none" for none, or leave it out for the default.')
    given = {name: value for name, value in named.items() if value is not None}
    for name, value in others.items():
        if name in given and value is not None and given[name] != value:
            raise SettingError(
                f"{name} is {given[name]!r} as an argument and {value!r} in settings=: leave one of them out."
            )
    return {**others, **given}


def _pairs_of(name: str, value: Any) -> List[Tuple[str, str]]:
    for own in (name, name.split(".")[0]):
        if own in OWN_KEYS:
            raise SettingError(f"{name} cannot be set here: it is decided by {OWN_KEYS[own]}.")
    several = name == "join" and isinstance(value, (list, tuple))
    key = "run_file" if name == "file" else name
    try:
        return [(key, as_text(name, one)) for one in (value if several else [value])]
    except SettingError:
        _refuse_unknown(key)
        raise


def _refuse_unknown(key: str) -> None:
    """SettingError, with a likely name: there is no such setting."""
    known = {name for row in rows([]) for name in (row["key"], row["key"].rpartition(".")[2])}
    if key not in known | {"run_file"}:
        rows([(key, "")])


def rows(pairs: Pairs) -> List[Dict[str, str]]:
    """All settings, with what may stand there and their values with these (tw_settings). SettingError: one is wrong."""
    library = abi.library()
    address = library.tw_settings(abi.setting_array(pairs), len(pairs))
    if not address:
        error = abi.last_error(library)
        raise SettingError(error if error.endswith("?") else f"{error}.")
    found: List[Dict[str, str]] = json.loads(abi.take_text(library, address))
    return found


def _of_environment() -> Dict[str, str]:
    """What TRADEWIND_SET says, by key; the library reads it, too."""
    parts = (part.partition("=") for part in os.environ.get("TRADEWIND_SET", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in parts}


def _threads(given: Optional[Any], of_set: Optional[str]) -> Optional[int]:
    """SettingError: not a number from 1 to _MOST_THREADS, or not the same one wherever it is said."""
    places = {
        "the program": None if given is None else as_text("threads", given),
        "TRADEWIND_THREADS": os.environ.get("TRADEWIND_THREADS"),
        "TRADEWIND_SET": of_set,
    }
    said = [(place, text) for place, text in places.items() if text]
    if not said:
        return None
    where, found = said[0]
    for place, text in said[1:]:
        if text != found:
            raise SettingError(f"threads is {found} in {where} and {text} in {place}: leave one of them out.")
    if not found.isdecimal() or not 1 <= int(found) <= _MOST_THREADS:
        raise SettingError(f"threads={found}: expected a whole number from 1 to {_MOST_THREADS}.")
    return int(found)


def resolve(arguments: Mapping[str, Any]) -> Settings:
    """Settings of join(). SettingError: unknown, wrong, or another one in the environment."""
    given = {name: value for name, value in arguments.items() if value is not None}
    of_set = _of_environment()
    for name in _OF_THE_LOOP:
        if name in given or name in of_set:
            raise SettingError(f"there is no setting {name}; docs/python.md lists all settings.")
    threads = _threads(given.pop("threads", None), of_set.get("threads"))
    pairs = [pair for name, value in given.items() for pair in _pairs_of(name, value)]
    values = {row["key"]: row["value"] for row in rows(pairs)}
    return Settings(tuple(pairs), values, threads)
