# SPDX-License-Identifier: Apache-2.0
"""The state of a run for a loop. Thread: any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from .loop.loop import Loop


class Status:
    """The life of a run (joined, started, over, closed), and what its engine sees."""

    def __init__(self) -> None:
        self._loop: Optional["Loop"] = None
        self._closed = False
        self._last_view: Dict[str, Any] = {}

    @property
    def started(self) -> bool:
        """Whether the run was joined."""
        return self._loop is not None

    @property
    def finished(self) -> bool:
        """Whether the run is over, or this peer has left or closed it."""
        return self._closed or (self._loop is not None and self._loop.finished)

    @property
    def view(self) -> Dict[str, Any]:
        """The engine's view: round, samples, peers, leader, waiting, address, ..."""
        if self._loop is None or self._closed:
            return dict(self._last_view)
        return self._loop.counted_on(self._loop.driver.engine.view())

    @property
    def round(self) -> int:
        """The round that the model's parameters are of: rounds that were applied."""
        return self._loop.round if self._loop is not None else 0

    @property
    def samples(self) -> int:
        """Samples of all peers in these rounds."""
        return int(self.view.get("samples", 0))

    @property
    def peers(self) -> int:
        """Peers of the run now."""
        return int(self.view.get("peers", 0))

    @property
    def ending(self) -> str:
        """How this peer's part ended: "complete" (with the run), "notice" (of a preemption), "left", "failed",
        "lost" (nothing is left of the run's state); empty before.
        """
        return str(self.view.get("ending") or "")

    @property
    def exit_code(self) -> int:
        """For sys.exit(): 75 when this peer left on a notice, so that the run goes on and whoever started this
        process may start it again; 1 when it failed, or when the run's last checkpoint is missing; 2 when
        nothing is left of the run, so that another start cannot help; else 0.
        """
        if self.ending == "complete" and self.unsaved:
            return 1
        return {"notice": 75, "failed": 1, "lost": 2}.get(self.ending, 0)

    @property
    def unsaved(self) -> str:
        """Why the newest checkpoint that was due could not be written; empty: it was, or none was due."""
        return str(self.view.get("unsaved") or "")

    @property
    def waiting(self) -> str:
        """The peers or event that this peer waits for; empty: none."""
        return str(self.view.get("waiting") or "")

    @property
    def is_first(self) -> bool:
        """Whether this peer is the first of the run's members: one that evaluates, saves and logs for all."""
        return bool(self.view.get("first", False))

    @property
    def metrics(self) -> Dict[str, Any]:
        """Numbers by name: round, samples, peers and loss of the run (over the samples of all peers in its newest
        round that all have told of; None: no step() said a loss=); of this peer steps, surplus (samples
        beyond the round's), dropped (gradients that came too late), skipped (batches), waited_s.
        """
        view = self.view
        shown: Dict[str, Any] = {key: view.get(key) for key in ("samples", "peers", "loss")}
        shown["round"] = self.round
        if self._loop is not None:
            shown.update(self._loop.counters, waited_s=self._loop.driver.waited_s)
        return shown
