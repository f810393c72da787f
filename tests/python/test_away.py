# SPDX-License-Identifier: Apache-2.0
"""A loop that does something else for long: what it costs the others, and the peer itself.

TRADEWIND_TEST_AWAY_S: seconds that it is away (8).
"""

import json
import os

import loops
import pytest
import sleepers
from conftest import needs_engine
from crew import crew_of

AWAY_S = float(os.environ.get("TRADEWIND_TEST_AWAY_S", 8))

pytestmark = [needs_engine, pytest.mark.timeout(90 + 2 * AWAY_S)]


def commit_times(log):
    """round: seconds, of an event log."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return {event["round"]: event["t"] for event in events if event["phase"] == "commit"}


def lost_seconds(times):
    """What a round takes as usual, and what rounds took beyond twice of that, the longest first."""
    moments = sorted(times.values())
    gaps = sorted(later - earlier for earlier, later in zip(moments, moments[1:]))
    usual = gaps[len(gaps) // 2]
    return usual, [round(gap - 2 * usual, 3) for gap in reversed(gaps)]


# Of two peers the first one leads, and without its vote there is no majority.
@pytest.mark.parametrize("how, peers", [("with a lease", 3), ("paused", 2), ("interpreter", 2)])
def test_a_loop_that_is_away_for_long(how, peers, tmp_path):
    with crew_of(target_batch_size=32, rounds=100000) as crew:
        crew.out = tmp_path
        away = crew.start(sleepers.away, wait_for=peers, seconds=AWAY_S, how=how)
        busy = [crew.start(sleepers.busy, wait_for=peers) for _ in range(peers - 1)]
        result = away.result(60 + 2 * AWAY_S)
        usual, lost = lost_seconds(commit_times(tmp_path / "events-2.jsonl"))
        # A second or four usual steps until the others know, none if it says so; then some time to elect.
        # Other work on this machine may double that; it is far below the time away.
        assert lost[0] < max(3, 6 * usual), (usual, lost[:5], result)
        # Nothing piles up: the rounds it misses would be tens of vectors. The state of others is one to five.
        assert result["asleep"] < 3 and result["vectors"] < 10, result
        mine, theirs = ({one["round"]: one["sum"] for one in peer.all("model")} for peer in (away, busy[0]))
        common = [round_ for round_ in mine if round_ in theirs and round_ >= result["back"]]
        assert len(common) >= 5 and all(mine[round_] == theirs[round_] for round_ in common)
        assert result["loss"] > 0


def test_a_loop_alone_is_waited_for_and_loses_nothing():
    with crew_of(target_batch_size=8, rounds=8) as crew:
        alone = crew.start(loops.loop, batch=8, away=(4, 3.0, False))
        metrics = alone.result(60)["metrics"]
        assert metrics["dropped"] == 0 and metrics["samples"] == 64
        assert not alone.all("lost"), alone.all("lost")
