# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with real peers, by its text: what was found, and what to do next."""

import re

import pytest
import troubles
from conftest import needs_engine
from crew import crew_of

pytestmark = [needs_engine, pytest.mark.timeout(60)]

# The token of a run folder that is gone; valid for a minute of 2025.
EXPIRED = (
    "tw1-OwEDcnVuxahKTiXz2TJCvL7rnLHGlZ4BlqYkBIzebQU0Iw5iDF0BvIV0ZwAAAAAA4QAwgd4wgZGgAwIBAgIIIvqnyvwHUPYwBQYD"
    "K2VwMA4xDDAKBgNVBAoMA3J1bjAeFw0yNDEyMzEyMzAwMDBaFw0yNTAxMDEwMDAxMDBaMB0xDDAKBgNVBAoMA3J1bjENMAsGA1UECwwE"
    "cGVlcjAqMAUGAytlcAMhACJwSvg3LkTFaA9v3gsR0585nt2jkS539cHQ7iD0U2o-MAUGAytlcANBAIlunLuDCwekIecMM2TxxhNiv76_"
    "grbfolk-w36CCSUFLVH6OksTBaTluEU3iQSiJ9WEy1_ZMcOIJnOU-v7aMwJUVn-lHWx8CXvzyvNzxlAW4AfR5iUXXGtx1dVy_mFjSllR"
    "A1tncH_0"
)


def refusal(crew, **options):
    """kind and text of what the start raises."""
    error = crew.start(troubles.start_only, **options).error()
    return error["kind"], error["text"]


def test_a_token_that_expired():
    with crew_of(target_batch_size=8) as crew:
        assert refusal(crew, environment={}, settings={"token": EXPIRED}) == (
            "SettingError",
            "token: the token of run 'run' (c5a84a4e) expired on 2025-01-01 00:01 UTC;"
            " `tw token FOLDER` makes a new one",
        )


def test_an_address_in_use():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        crew.start(troubles.loop, pause_s=0.01).until_round(1)
        assert refusal(crew, found=True) == (
            "EngineError",
            f"cannot listen on 127.0.0.1:{crew.port}: address already in use (another process has this port;"
            " listen on another one, port 0 picks a free one)",
        )


def is_complete(view, folder):
    """In round 3, as its checkpoint says."""
    file = f"{folder}/round-000003-[0-9a-f]{{8}}.tw"
    end = f"the run is complete: round 3, checkpoint {file}; raise rounds to go on"
    return (view["round"], view["ending"]) == (3, "complete") and re.fullmatch(end, view["ended"])


def test_a_joiner_of_a_run_that_is_complete_has_its_parameters(tmp_path):
    folder = {"checkpoint.folder": str(tmp_path), "patience": "1s"}
    with crew_of(target_batch_size=8, rounds=3, **folder) as crew:
        before = crew.start(troubles.loop, batch=8).result()
        late = crew.start(troubles.loop, batch=8, late=True).result()
        assert is_complete(late["view"], tmp_path) and before["state"] == late["state"]


def test_a_peer_of_a_run_that_is_complete_has_its_parameters(tmp_path):
    folder = {"checkpoint.folder": str(tmp_path), "checkpoint.every": 1, "patience": "1s"}
    with crew_of(target_batch_size=8, rounds=3, **folder) as crew:
        before = crew.start(troubles.loop, batch=8).result()
        again = crew.start(troubles.loop, batch=8, found=True).result()
        assert is_complete(again["view"], tmp_path) and before["state"] == again["state"]
    with crew_of(target_batch_size=8, rounds=5, **folder) as crew:
        assert crew.start(troubles.loop, batch=8).result()["round"] == 5
    with crew_of(target_batch_size=16, rounds=5, **folder) as crew:
        kind, text = refusal(crew, found=True)
        assert kind == "EngineError" and 'another run: there "batch=8", here "batch=16")' in text


def assert_raised(peer, text):
    """Its loop raised so; the time."""
    error = peer.error()
    assert (error["kind"], error["text"]) == ("ArithmeticError", text), error["trace"]
    return error["at"]


def test_an_exception_of_the_programs_own_optimizer_is_that_of_step():
    with crew_of(target_batch_size=16, rounds=100000) as crew:
        first = crew.start(troubles.own_optimizer)
        first.until_round(1)
        at = assert_raised(crew.start(troubles.own_optimizer, where="update"), "in update")
        lost = first.until(lambda report: report["what"] == "lost")
        assert lost["at"] - at < 0.5
        first.until_round(first.all("commit")[-1]["round"] + 5)


def test_an_exception_while_the_state_is_copied_for_a_joiner_is_that_of_step():
    with crew_of(target_batch_size=16, rounds=100000) as crew:
        first = crew.start(troubles.own_optimizer, where="save")
        first.until_round(21)
        crew.start(troubles.own_optimizer)
        assert_raised(first, "in save")


def test_an_exception_while_a_joiner_takes_the_state_is_that_of_its_start():
    with crew_of(target_batch_size=16, rounds=100000) as crew:
        first = crew.start(troubles.own_optimizer)
        first.until_round(3)
        assert_raised(crew.start(troubles.own_optimizer, where="load"), "in load")
        first.until_round(first.all("commit")[-1]["round"] + 5)
