# SPDX-License-Identifier: Apache-2.0
"""A peer that comes to a run with a state of its own, or without what no checkpoint has."""

from contextlib import nullcontext

import hearers
import pytest
import torch
import tradewind
from conftest import needs_engine
from crew import crew_of
from models import data, loss_of, mlp, with_batch_norm


def step(opt, model):
    opt.zero_grad(set_to_none=True)
    loss_of(model, *data()).backward()
    return opt.step()


LOADED = {"round": 5, "samples": 40}


@pytest.mark.parametrize(
    "of_run, of_peer, rounds", [(None, LOADED, 9), (LOADED, None, 4), (LOADED, LOADED, 4)]
)
def test_rounds_count_from_the_beginning_whichever_state_it_goes_on_from(fake_run, of_run, of_peer, rounds):
    models = mlp(), mlp(seed=2)
    runs = []
    for model, before in zip(models, (of_run, of_peer)):
        given = state if runs else None
        run = fake_run(given=given, target_batch_size=8, rounds=9)
        opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=0.01), batch_size=8)
        if before is not None:
            run.load_state_dict({**before, "optimizer": opt.state_dict()})
        differs = runs and of_peer is not None and of_peer != of_run
        said = "began without a state: this peer takes the run's, of round 1" if differs else ""
        with pytest.warns(tradewind.TradewindWarning, match=said) if said else nullcontext():
            run.start()
        step(opt, model)
        state = fake_run.engines[-1].saved()
        runs.append(run)
        if len(runs) == 1:
            run.close()
    assert fake_run.engines[1].rounds == rounds
    while not run.finished:
        step(opt, model)
    assert run.round == 9


def test_round_and_samples_before_the_start_are_those_that_the_program_goes_on_from(fake_run):
    run, model = fake_run(target_batch_size=8, rounds=9), mlp()
    assert (run.round, run.samples) == (0, 0)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=0.01), batch_size=8)
    assert (run.round, run.samples) == (0, 0)
    run.load_state_dict({**LOADED, "optimizer": opt.state_dict()})
    assert (run.round, run.samples) == (5, 40)
    step(opt, model)
    assert (run.round, run.samples) == (6, 48)


def test_a_state_has_the_samples_of_the_rounds_that_the_model_has(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=9)
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=0.01), batch_size=8)
    run.start()
    step(opt, model)
    engine = fake_run.engines[0]
    engine.all_samples = 16  # the next round is decided, and its update waits
    engine.totals.append((2, 16))
    assert run.view["samples"] == 16
    state = run.state_dict()
    assert (state["round"], state["samples"]) == (1, 8) and run.samples == 8


def test_what_no_checkpoint_has_begins_anew_with_a_word(fake_run, recwarn):
    states = []
    for _ in range(3):
        model = with_batch_norm()
        if len(states) == 2:  # statistics that the program kept
            model.load_state_dict(kept)
        run = fake_run(given=states[0] if states else None, target_batch_size=8, rounds=9)
        adamw = torch.optim.AdamW(model.parameters(), lr=0.01)
        opt = run.optimizer(model, adamw, batch_size=8, buffers="local")
        run.start()
        step(opt, model)
        states.append(fake_run.engines[-1].saved())
        kept = model.state_dict()
        run.close()
    said = [str(one.message) for one in recwarn if "begins anew" in str(one.message)]
    assert len(said) == 1 and "after round 1" in said[0] and "running statistics of 1 (buffers=" in said[0]
    assert "save model.state_dict() now and then, and load it before" in said[0]


def test_the_loops_own_optimizer_begins_anew_with_a_word(fake_run, recwarn):
    state = kept = None
    for _ in range(3):
        model = mlp()
        inner = torch.optim.AdamW(model.parameters(), lr=0.01)
        run = fake_run(given=state, mode="local", target_batch_size=8, rounds=9)
        opt = run.optimizer(model, inner, batch_size=8)
        if kept is not None:
            inner.load_state_dict(kept)
        run.start()
        step(opt, model)
        kept = inner.state_dict() if state is not None else None
        state = fake_run.engines[-1].saved()
        run.close()
    said = [str(one.message) for one in recwarn if isinstance(one.message, tradewind.TradewindWarning)]
    assert len(said) == 1 and "after round 1" in said[0] and "the state of the loop's AdamW" in said[0]
    assert "save optimizer.state_dict() now and then, and load it before run.start()" in said[0]
    # The third process loaded it, and no word was needed.
    assert inner.state[next(iter(model.parameters()))]["step"] == 2


class Begun:
    """A run on the engine that goes on from round 4 of one before, and its processes."""

    def __init__(self, folder):
        self.settings = {"checkpoint.folder": str(folder), "checkpoint.every": 1}
        self.events = []

    def rounds(self, rounds, before=None, until=None):
        """Rounds after which a process of it had the model, of so many; before: the state that it loads."""
        model = mlp()
        with tradewind.join(target_batch_size=8, rounds=rounds, settings=self.settings) as run:
            opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
            if before is not None:
                run.load_state_dict({**before, "optimizer": opt.state_dict()})
            self.events.clear()
            run.on_event(self.events.append)
            run.start()
            seen = [run.round]
            for inputs, targets in run.batches([data()] * rounds):
                loss_of(model, inputs, targets).backward()
                opt.step()
                opt.zero_grad()
                seen.append(run.round)
                if run.round == until:
                    break  # it leaves, and has a checkpoint
        return seen

    def last_rounds(self):
        """With which the run ends, in the order in which the log says so."""
        return [event["last_round"] for event in self.events if "last_round" in event]


@needs_engine
def test_a_checkpoint_of_a_run_that_goes_on_from_another_counts_the_rounds_of_both(tmp_path):
    begun = Begun(tmp_path / "ck")
    assert begun.rounds(9, before={"round": 4, "samples": 32}, until=6) == [4, 5, 6]
    assert begun.last_rounds() == [5]
    assert begun.rounds(9) == [6, 7, 8, 9], "this process loaded no state: the checkpoint has it"
    assert begun.last_rounds() == [9, 5], "its start did not know it"
    assert begun.rounds(8) == [9], "it has as many rounds already"
    assert begun.rounds(10) == [9, 10]


@needs_engine
@pytest.mark.engine
def test_peers_that_start_together_end_together_where_the_run_has_more_rounds_than_it_is_to_have():
    with crew_of(target_batch_size=8, rounds=9) as crew:
        kept = crew.start(hearers.until_a_round, last=6).result()
        crew.settings["rounds"] = 4
        first = crew.start(hearers.until_a_round, found=True, wait_for=2, last=9)
        second = crew.start(hearers.until_a_round, last=9)
        ends = first.result(), second.result(90)
    complete = {**kept, "ending": "complete", "code": 0}
    assert kept["round"] == 6 and ends == (complete, complete)
