# SPDX-License-Identifier: Apache-2.0
"""A loop that does something else for long: what it costs the others, and the peer itself.

TRADEWIND_TEST_AWAY_S: seconds that it is away (12).
"""

import json
import os

import pytest
import sleepers
from conftest import needs_engine
from crew import crew_of

AWAY_S = float(os.environ.get("TRADEWIND_TEST_AWAY_S", 12))

pytestmark = [needs_engine, pytest.mark.timeout(90 + 2 * AWAY_S)]


def commit_times(log):
    """round: seconds, of an event log."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return {event["round"]: event["t"] for event in events if event["phase"] == "commit"}


def lost_seconds(times):
    """What rounds took beyond twice the usual, the longest first."""
    moments = sorted(times.values())
    gaps = sorted(later - earlier for earlier, later in zip(moments, moments[1:]))
    usual = gaps[len(gaps) // 2]
    return [round(gap - 2 * usual, 3) for gap in reversed(gaps)]


@pytest.mark.parametrize("paused", [False, True], ids=["with a lease", "paused"])
def test_a_loop_that_is_away_for_long(paused, tmp_path):
    with crew_of(target_batch_size=32, rounds=100000) as crew:
        crew.out = tmp_path
        busy = [crew.start(sleepers.busy, wait_for=3) for _ in range(2)]
        away = crew.start(sleepers.away, wait_for=3, seconds=AWAY_S, paused=paused)
        result = away.result(60 + 2 * AWAY_S)
        lost = lost_seconds(commit_times(tmp_path / "events-1.jsonl"))
        # The others do not wait for its return: its order goes to others after a second or four usual steps.
        assert lost[0] < 0.8 * AWAY_S, (lost[:5], result)
        # Nothing piles up: the rounds it misses would be tens of vectors. The state of others is one to five.
        assert result["asleep"] < 3 and result["vectors"] < 10, result
        mine, theirs = ({one["round"]: one["sum"] for one in peer.all("model")} for peer in (away, busy[0]))
        common = [round_ for round_ in mine if round_ in theirs and round_ >= result["back"]]
        assert len(common) >= 5 and all(mine[round_] == theirs[round_] for round_ in common)
        assert result["loss"] > 0
