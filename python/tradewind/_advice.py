# SPDX-License-Identifier: Apache-2.0
"""What a program had better change, said once each, with the number to use."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional

from ._warn import warn

_LOOK_S = 1.0


def about_sizes(target: int, at_once: int, peers: int) -> Optional[str]:
    """On the samples that a peer takes at once, against the target batch size; None: both fit."""
    if at_once > target:
        return (
            f"target_batch_size={target} is less than the {at_once} samples of a step, so {at_once - target}"
            f" of them never count: take {max(1, target // peers)} samples at most, or a target_batch_size of"
            f" {at_once * peers} at least."
        )
    busy = -(-target // at_once)
    if busy < peers:
        return (
            f"target_batch_size={target} is {busy} step{'s' if busy > 1 else ''} of {at_once} samples, so"
            f" {busy} of {peers} peers compute{'' if busy > 1 else 's'} at a time and the others wait: take"
            f" {max(1, target // peers)} samples at most, or a target_batch_size of {at_once * peers} at"
            " least."
        )
    return None


class Advice:
    """Looks at the run now and then. Thread: the run's."""

    def __init__(self) -> None:
        self._of_several: List[str] = []
        self._said_sizes = False
        self._next_look = 0.0

    def of_several(self, text: str) -> None:
        """Said once the run has several peers; {peers}: how many."""
        self._of_several.append(text)
        self._next_look = 0.0

    def look(self, view: Callable[[], Dict[str, Any]], at_once: int, is_cut: bool) -> None:
        """at_once: samples of a step; 0: not known yet. is_cut: steps are cut to what a round has left."""
        if self._said_sizes and not self._of_several or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_S
        seen = view()
        peers, target = int(seen.get("peers") or 1), int(seen.get("target") or 0)
        if peers > 1:
            texts, self._of_several = self._of_several, []
            for text in texts:
                warn(text.format(peers=peers))
        known = target and at_once and not self._said_sizes
        found = about_sizes(target, min(at_once, target) if is_cut else at_once, peers) if known else None
        if found is not None:
            self._said_sizes = True
            warn(found)
