# SPDX-License-Identifier: Apache-2.0
"""The line that says how a run goes: every 2 s, in place on terminals."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict, Optional, TextIO

EVERY_S = 2.0


def line_of(view: Dict[str, Any], samples_per_s: Optional[float], cost_usd: Optional[float]) -> str:
    """round 12/500  4 peers  813 samples/s  loss 0.421  granularity 7.3  $0.12  waiting for peer 3: ..."""
    rounds = view.get("rounds")
    parts = [f"round {view.get('round', 0)}" + (f"/{rounds}" if rounds else "")]
    peers = view.get("peers", 1)
    parts.append(f"{peers} peer" + ("" if peers == 1 else "s"))
    if samples_per_s is not None:
        parts.append(f"{samples_per_s:.0f} samples/s")
    if view.get("loss") is not None:
        parts.append(f"loss {view['loss']:.4g}")
    if view.get("granularity") is not None:
        parts.append(f"granularity {view['granularity']:.3g}")
    if cost_usd is not None:
        parts.append(f"${cost_usd:.2f}")
    if view.get("waiting"):
        parts.append(str(view["waiting"]))
    return "  ".join(parts)


class Progress:
    """Writes the line when it is due. mode: auto (on terminals alone), line, off. price_per_hour: USD, of
    this peer.
    """

    def __init__(self, mode: str, price_per_hour: Optional[float], out: Optional[TextIO] = None) -> None:
        self._out = sys.stderr if out is None else out
        self._in_place = self._out.isatty()
        self._on = mode == "line" or (mode == "auto" and self._in_place)
        self._price = price_per_hour
        self._began = self._last = time.monotonic()
        self._samples: Optional[int] = None
        self._width = 0

    def tick(self, view: Callable[[], Dict[str, Any]], at_once: bool = False) -> None:
        """Called often; view is asked for when a line is due."""
        now = time.monotonic()
        if not self._on or (now - self._last < EVERY_S and not at_once):
            return
        seen = view()
        samples = int(seen.get("samples", 0))
        speed = None
        if self._samples is not None:
            speed = max(0, samples - self._samples) / max(1e-3, now - self._last)
        cost = None if self._price is None else self._price * (now - self._began) / 3600
        self._last, self._samples = now, samples
        self._write(line_of(seen, speed, cost))

    def _write(self, line: str) -> None:
        if self._in_place:
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._out.write(line + "\n")
        self._out.flush()

    def end(self) -> None:
        """Leaves the line on terminals."""
        if self._on and self._in_place and self._width:
            self._out.write("\n")
            self._out.flush()
        self._on = False
