# SPDX-License-Identifier: Apache-2.0
"""Fixtures: runs on the double of the engine, and real peers as processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
# TRADEWIND_TESTS=installed: the package that pip installed is tested, else that of the sources.
INSTALLED = os.environ.get("TRADEWIND_TESTS") == "installed"
SOURCES = [] if INSTALLED else [str(ROOT / "python")]
sys.path[:0] = [*SOURCES, str(Path(__file__).parent)]

import tradewind  # noqa: E402
from fake_engine import FakeEngine  # noqa: E402
from tradewind.engine import abi  # noqa: E402
from tradewind.engine.settings import resolve  # noqa: E402


if INSTALLED and ROOT / "python" in Path(tradewind.__file__).parents:
    raise pytest.UsageError(f"TRADEWIND_TESTS=installed, but tradewind is that of {tradewind.__file__}")


def python_path(*more: Path) -> str:
    """PYTHONPATH of a program that a test starts: where the tested package lies, and more."""
    return os.pathsep.join([*SOURCES, *map(str, more)])


# For the server that peers are forked from: it may have another tradewind installed.
os.environ["PYTHONPATH"] = python_path(Path(__file__).parent)


def has_engine() -> bool:
    """Whether libtradewind.so is there; one that is named has to be."""
    if os.environ.get("TRADEWIND_LIBRARY"):
        abi.library()
    try:
        return bool(abi.library())
    except tradewind.TradewindError:
        return False


needs_engine = pytest.mark.skipif(not has_engine(), reason="libtradewind.so is not built (make python)")


class FakeRuns:
    """Runs of one peer on the double; engines: those that were opened."""

    def __init__(self) -> None:
        self.engines: List[FakeEngine] = []
        self.runs: List[tradewind.Run] = []

    def __call__(self, given: Any = None, **settings: Any) -> tradewind.Run:
        resolved = resolve(settings)

        def open_engine(pairs: Any, shape: Any, calls: Any) -> FakeEngine:
            self.engines.append(FakeEngine(pairs, shape, calls, given))
            return self.engines[-1]

        run = tradewind.Run(resolved, open_engine)
        self.runs.append(run)
        return run


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Tests of a card are skipped where there is none, whatever else they are marked with."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs leave their checkpoints where they work."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fake_run() -> Iterator[Callable[..., tradewind.Run]]:
    """fake_run(target_batch_size=8, rounds=3): a run on the double, closed at the end of the test."""
    runs = FakeRuns()
    yield runs
    for run in runs.runs:
        run.close()
