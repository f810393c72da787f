# SPDX-License-Identifier: Apache-2.0
"""What a program hears of the engine's troubles and of the other peers, with real peers."""

import signal

import hearers
import pytest
from conftest import needs_engine
from crew import crew_of

pytestmark = [needs_engine, pytest.mark.engine]


def test_a_checkpoint_that_cannot_be_written_is_a_warning_and_the_last_one_the_exit_code(tmp_path):
    with crew_of(target_batch_size=16, rounds=5) as crew:
        found = crew.start(hearers.without_a_disk, folder=str(tmp_path / "kept")).result()
    told = [text for text in found["warnings"] if "checkpoint" in text]
    assert len(told) == 2 and told == found["events"], found
    assert "round 1: no checkpoint, training goes on: " in told[0]
    assert "round 5: no checkpoint: " in told[1]
    assert found["code"] == 1 and "kept" in found["unsaved"]


@pytest.mark.parametrize("changes", [True, False])
def test_parameters_that_differ_at_the_end_are_a_warning_and_the_exit_code(changes):
    with crew_of(target_batch_size=16, rounds=5) as crew:
        first = crew.start(hearers.with_parameters_of_its_own, wait_for=2, changes=False)
        second = crew.start(hearers.with_parameters_of_its_own, changes=changes)
        ends = first.result(), second.result()
    for end, other in zip(ends, "21"):
        assert end["ending"] == "complete" and end["code"] == (2 if changes else 0), end
        said = f"differ after the last round from those of peer {other}: "
        assert (said in end["differs"]) == changes, end
        assert end["warnings"][-1:] == [end["differs"]] * changes, end


def test_the_loss_of_a_run_is_that_of_all_its_peers():
    with crew_of(target_batch_size=32, rounds=8) as crew:
        first = crew.start(hearers.with_a_loss, wait_for=2, loss=1.0)
        second = crew.start(hearers.with_a_loss, loss=3.0)
        one, other = first.result(), second.result()
    assert one["samples"] and other["samples"]
    assert one["loss"] == other["loss"] and 1.0 < one["loss"] < 3.0, (one, other)


def test_a_barrier_is_passed_when_the_last_one_comes():
    with crew_of(target_batch_size=64, rounds=1000) as crew:
        first = crew.start(hearers.at_a_barrier, wait_for=2, busy_s=0)
        second = crew.start(hearers.at_a_barrier, busy_s=1.0)
        one, other = first.result(), second.result()
    assert one["took"] > 0.5 and other["took"] < 0.5, (one, other)
    assert "waiting for peer 2: the barrier that all reach" in one["waits"]


def test_a_barrier_does_not_wait_for_a_peer_that_dies():
    with crew_of(target_batch_size=64, rounds=1000) as crew:
        first = crew.start(hearers.at_a_barrier, wait_for=2, busy_s=0)
        crew.start(hearers.at_a_barrier, busy_s=1.0, dies=True)
        assert 0.5 < first.result()["took"] < 10


def test_a_peer_that_waits_hears_who_was_refused_and_why():
    with crew_of(target_batch_size=16, rounds=2) as crew:
        first = crew.start(hearers.founds, wait_for=2)
        refused = crew.start(hearers.with_other_data, own=64)
        heard = first.until(lambda report: report.get("what") == "warning")
        assert 'another run: expected "' in refused.result()
    assert heard["text"].startswith('peer 2 was refused: another run: expected "'), heard
    assert "; peer 2 was refused: another run" in heard["waits"], heard


def test_a_notice_in_one_long_call_is_followed_and_the_third_sigterm_ends_the_process():
    with crew_of(target_batch_size=16, rounds=100000, notices="auto") as crew:
        first = crew.start(hearers.in_one_long_call, wait_for=2, seconds=60)
        second = crew.start(hearers.counts_peers)
        first.until(lambda report: report.get("what") == "inside")
        first.kill(signal.SIGTERM)
        second.until(lambda report: report.get("what") == "alone", 20)
        first.process.join(1)
        first.kill(signal.SIGTERM)
        first.process.join(0.1)
        first.kill(signal.SIGTERM)
        first.process.join(20)
        assert first.process.exitcode == -signal.SIGTERM and not first.all("back")
