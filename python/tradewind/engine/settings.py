# SPDX-License-Identifier: Apache-2.0
"""Arguments of join() and the environment TRADEWIND_*, as settings of the engine (key and text).

A key of the run file may be named by its last part where that is unique: rounds for training.rounds.
"""

from __future__ import annotations

import difflib
import os
from pathlib import PurePath
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import SettingError

# Keys of the run file (docs/run_file.md) that a program with its own model and data may set.
RUN_KEYS = (
    "training.target_batch_size",
    "training.rounds",
    "training.seed",
    "training.codec",
    "training.rounding",
    "training.error_feedback",
    "training.sites",
    "training.exact_batches",
    "training.norm_cap",
    "training.patience",
    "checkpoint.folder",
    "checkpoint.every",
    "checkpoint.keep",
    "checkpoint.to",
    "checkpoint.logs",
    "budget_usd",
    "budget_action",
)
# Keys that the model, the data set and the optimizer of the program decide.
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
}
# Options of a peer (docs/python.md).
LINK_KEYS = (
    "listen",
    "join",
    "token",
    "run",
    "bootstrap",
    "insecure",
    "site",
    "role",
    "id",
    "out",
    "log_limit",
    "wait_for",
    "rejoin",
    "no_rejoin",
    "anew",
    "notices",
    "grace",
    "watch",
    "usd_per_h",
    "progress",
)
_SEVERAL = ("join",)
_ENGINE_KEYS = RUN_KEYS + LINK_KEYS

# Environment variable: the argument that it stands for.
ENVIRONMENT = {
    "TRADEWIND_RUN": "file",
    "TRADEWIND_JOIN": "join",
    "TRADEWIND_LISTEN": "listen",
    "TRADEWIND_BOOTSTRAP": "bootstrap",
    "TRADEWIND_TOKEN": "token",
    "TRADEWIND_RUN_FOLDER": "run",
    "TRADEWIND_INSECURE": "insecure",
    "TRADEWIND_SITE": "site",
    "TRADEWIND_ROLE": "role",
    "TRADEWIND_ID": "id",
    "TRADEWIND_OUT": "out",
    "TRADEWIND_LOG_LIMIT": "log_limit",
    "TRADEWIND_WAIT_FOR": "wait_for",
    "TRADEWIND_REJOIN": "rejoin",
    "TRADEWIND_NO_REJOIN": "no_rejoin",
    "TRADEWIND_ANEW": "anew",
    "TRADEWIND_NOTICES": "notices",
    "TRADEWIND_GRACE": "grace",
    "TRADEWIND_WATCH": "watch",
    "TRADEWIND_USD_PER_H": "usd_per_h",
    "TRADEWIND_THREADS": "threads",
    "TRADEWIND_PROGRESS": "progress",
}
# Arguments that Python itself uses.
LOCAL_KEYS = ("file", "threads")


class Settings(NamedTuple):
    """pairs: for the engine, in order; the rest is Python's own."""

    pairs: Tuple[Tuple[str, str], ...]
    threads: Optional[int]

    def get(self, key: str) -> Optional[str]:
        """The last value of a setting, as text."""
        return dict(self.pairs).get(key)


def full_key(name: str) -> str:
    """The engine's key of an argument. SettingError: unknown (with the nearest name), or not the run's to
    decide.
    """
    if name in _ENGINE_KEYS or name in LOCAL_KEYS:
        return name
    for own in (name, name.split(".")[0]):
        if own in OWN_KEYS:
            raise SettingError(f"{name} cannot be set here: it is decided by {OWN_KEYS[own]}.")
    found = [key for key in RUN_KEYS if key.split(".")[-1] == name]
    if len(found) == 1:
        return found[0]
    candidates = [key.split(".")[-1] for key in _ENGINE_KEYS] + list(LOCAL_KEYS) + list(RUN_KEYS)
    nearest = difflib.get_close_matches(name, candidates, 1, 0.5)
    hint = f'did you mean "{nearest[0]}"?' if nearest else "docs/python.md lists all settings."
    raise SettingError(f"there is no setting {name}; {hint}")


def as_text(key: str, value: Any) -> str:
    """A value as the engine reads it. SettingError: of a kind that no setting has."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, PurePath)):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(int(value)) if value == int(value) else repr(value)
    raise SettingError(f"{key}={value!r}: expected a text, a number, True or False.")


def _texts(key: str, value: Any) -> List[str]:
    if key in _SEVERAL and isinstance(value, (list, tuple)):
        return [as_text(key, one) for one in value]
    return [as_text(key, value)]


def _of_arguments(arguments: Mapping[str, Any]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for name, value in arguments.items():
        if value is not None:
            key = full_key(name)
            if key in found:
                raise SettingError(f"{key} is given twice, once as {name}.")
            found[key] = _texts(key, value)
    return found


def _set_pairs(text: str) -> List[Tuple[str, str]]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise SettingError(f"TRADEWIND_SET has {part!r}: expected KEY=VALUE;KEY=VALUE.")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _of_environment(environment: Mapping[str, str]) -> Dict[str, Tuple[str, List[str]]]:
    """key: (variable, texts)."""
    found: Dict[str, Tuple[str, List[str]]] = {}
    for name, value in _set_pairs(environment.get("TRADEWIND_SET", "")):
        found[full_key(name)] = ("TRADEWIND_SET", [value])
    for variable, key in ENVIRONMENT.items():
        value = environment.get(variable, "")
        if value:
            texts = [one for one in value.split(",") if one] if key in _SEVERAL else [value]
            found[key] = (variable, texts)
    return found


_FLAG_KEYS = ("insecure", "rejoin", "no_rejoin", "anew")
_FLAGS = {"1": "true", "yes": "true", "on": "true", "0": "false", "no": "false", "off": "false"}


def _same(key: str, left: Sequence[str], right: Sequence[str]) -> bool:
    if key in _FLAG_KEYS:
        return [_FLAGS.get(one, one) for one in left] == [_FLAGS.get(one, one) for one in right]
    return list(left) == list(right)


def _threads(found: Dict[str, List[str]]) -> Optional[int]:
    threads = found.pop("threads", None)
    if threads is None:
        return None
    if not threads[0].isdigit() or int(threads[0]) < 1:
        raise SettingError(f"threads={threads[0]}: expected a whole number from 1.")
    return int(threads[0])


def resolve(
    arguments: Mapping[str, Any],
    environment: Optional[Mapping[str, str]] = None,
) -> Settings:
    """Settings of join(): its arguments and the environment. SettingError: unknown, or both differ."""
    found = _of_arguments(arguments)
    for key, (variable, texts) in _of_environment(
        os.environ if environment is None else environment
    ).items():
        if key == "progress" and key in found:
            continue  # the engine knows both, and which of them counts
        if key in found and not _same(key, found[key], texts):
            raise SettingError(
                f"{key} is {', '.join(found[key])} as argument and {', '.join(texts)} in {variable}: leave"
                " one of them out."
            )
        found[key] = found.get(key, texts)
    threads = _threads(found)
    for key in _FLAG_KEYS:
        if key in found:
            found[key] = [_FLAGS.get(found[key][0], found[key][0])]
    pairs = [("run_file", text) for text in found.pop("file", [])]
    pairs += [(key, text) for key, texts in found.items() for text in texts]
    return Settings(tuple(pairs), threads)
