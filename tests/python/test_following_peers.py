# SPDX-License-Identifier: Apache-2.0
"""Real peers whose programs change settings, layers and state of their own during the run."""

import loops
import pytest
from conftest import needs_engine
from crew import crew_of

pytestmark = [needs_engine, pytest.mark.timeout(100)]


@pytest.mark.parametrize("engine", ["tradewind", "torch"])
@pytest.mark.parametrize("by_round", [True, False])
def test_rates_set_by_hand_survive_losses_and_joins(by_round, engine):
    with crew_of(target_batch_size=32, rounds=60) as crew:
        peers = [crew.start(loops.by_hand, wait_for=2, by_round=by_round, engine=engine) for _ in range(2)]
        peers[0].until_round(12)
        joiner = crew.start(loops.by_hand, by_round=by_round, seed=2, engine=engine)
        joiner.until_round(25)
        peers[1].kill()
        results = [peer.result() for peer in (peers[0], joiner)]
        assert results[0]["state"] == results[1]["state"] and results[0]["round"] == 60
        texts = [report["text"] for report in joiner.all("told") + peers[0].all("told")]
        if by_round:
            assert not texts
            assert abs(results[0]["rates"][0] - 0.02 * 0.97**59) < 1e-9
        else:
            assert any("lr of group 0 is" in text and "follows the run" in text for text in texts)


def test_an_average_that_the_run_knows_is_the_same_on_a_joiner():
    with crew_of(target_batch_size=32, rounds=50) as crew:
        peers = [crew.start(loops.with_ema, wait_for=2) for _ in range(2)]
        peers[0].until_round(10)
        joiner = crew.start(loops.with_ema, seed=2)
        joiner.until_round(20)
        peers[1].kill()
        results = [peer.result() for peer in (peers[0], joiner)]
        assert results[0] == results[1]


def test_groups_of_any_shape_and_layers_that_are_frozen_and_thawed():
    with crew_of(target_batch_size=32, rounds=16) as crew:
        results = [peer.result() for peer in [crew.start(loops.changing, wait_for=2) for _ in range(2)]]
        assert results[0] == results[1]
        begins, ends = results[0]["begins"], results[0]["state"]
        assert {name for name in begins if begins[name] == ends[name]} == {"unused.weight", "unused.bias"}


def test_a_peer_with_less_data_is_turned_away_with_both_lengths():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        crew.start(loops.over_data, size=64).until_round(2)
        text = crew.start(loops.over_data, size=48).error()["text"]
        assert "64 samples" in text and "48 samples" in text
