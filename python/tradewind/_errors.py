# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of this package. Every text is one sentence or two: what was found, what was expected, what to
do next.
"""


class TradewindError(RuntimeError):
    """The run cannot go on, or a request cannot be fulfilled."""


class SettingError(TradewindError, ValueError):
    """An argument, a setting or an environment variable is wrong; nothing was opened."""


class MisuseError(TradewindError):
    """A call came at the wrong time, from the wrong thread or process, or with a wrong argument."""


class UnsupportedError(TradewindError):
    """The model, the optimizer or the data cannot be trained over peers as it is; the text says why."""


class EngineError(TradewindError):
    """The engine cannot go on; the text is its own."""


class DataError(TradewindError):
    """A sample cannot be read; the text names object and bytes, or sample and field."""


class TradewindWarning(UserWarning):
    """What the run does not do although the program may count on it; the text says what helps."""


class CondemnedError(EngineError):
    """This machine has a preemption notice, so the peer did not join. The run goes on: exit with 75."""
