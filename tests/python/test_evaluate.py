# SPDX-License-Identifier: Apache-2.0
"""A loop that evaluates on its own: the snippet of docs/python.md, and what it costs the others."""

import re

import evaluators
import pytest
import torch
import tradewind
from conftest import ROOT, needs_engine
from crew import crew_of
from models import data, loss_of, mlp
from test_away import commit_times, lost_seconds
from test_peers import assert_alike, records


def snippet():
    """The loop that docs/python.md shows."""
    text = (ROOT / "docs/python.md").read_text()
    found = re.search(r"```python\n(for inputs, targets in run.shard.*?accuracy.*?)```", text, re.S)
    assert found
    return found[1].replace("% 100", "% 2")


def test_the_loop_of_the_docs(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8, rounds=5)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    data_set = torch.utils.data.TensorDataset(*data(16))

    def accuracy(evaluated):
        assert not evaluated.training and not torch.is_grad_enabled()
        assert fake_run.engines[0].why == "evaluating"
        return torch.tensor(0.5)

    def loss(outputs, targets):
        return (outputs - targets).pow(2).mean()

    scope = {
        "run": run,
        "model": model,
        "opt": opt,
        "torch": torch,
        "accuracy": accuracy,
        "loader": torch.utils.data.DataLoader(data_set, batch_size=4),
        "loss_of": loss,
    }
    exec(snippet(), scope)
    assert fake_run.engines[0].evaluations == [(2, "accuracy", 0.5), (4, "accuracy", 0.5)]
    assert model.training and fake_run.engines[0].why is None and run.round == 5


def test_what_is_no_number_is_refused_by_name_and_what_is_not_finite_is_said_once(fake_run):
    run = fake_run(target_batch_size=8, rounds=5)
    model = mlp()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=4)
    with pytest.raises(tradewind.MisuseError, match="between run.start"):
        run.evaluated(accuracy=0.5)
    run.start()
    with pytest.raises(tradewind.MisuseError, match="accuracy='good'.*expected a number"):
        run.evaluated(accuracy="good")
    with pytest.raises(tradewind.MisuseError, match=r"run.evaluated\(0.93\): expected names"):
        run.evaluated(0.93)
    with pytest.raises(tradewind.MisuseError, match="{5: 0.93}.*expected a text as the name"):
        run.evaluated({5: 0.93})
    with pytest.warns(tradewind.TradewindWarning, match="'nll' is nan") as said:
        run.evaluated({"nll": float("nan"), "top 5": torch.tensor([0.75])})
        run.evaluated(nll=float("inf"))
    assert len(said) == 1
    assert fake_run.engines[0].evaluations == [(0, "top 5", 0.75)]


def test_log_and_page_do_not_count_the_rounds_of_the_run_before(fake_run):
    run = fake_run(target_batch_size=8, rounds=5)
    model = mlp()
    run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=4)
    run.start()
    trained = run._life.trained
    trained.begun = trained.begun._replace(round=7)
    run.evaluated(accuracy=0.5)
    assert run.round == 7 and fake_run.engines[0].evaluations == [(0, "accuracy", 0.5)]


FOUND = [(0.5, {"evaluation": 0.5}), ({"a": 1, "b": "text"}, {"a": 1.0}), ("text", {})]


@pytest.mark.parametrize("found, told", FOUND)
def test_fit_tells_what_evaluate_returns(fake_run, found, told):
    model = mlp()
    samples = torch.utils.data.TensorDataset(*data(8))
    run = fake_run(target_batch_size=8, rounds=4)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loss = lambda model, batch: loss_of(model, *batch)  # noqa: E731
    summary = run.fit(
        model, loss, samples, adamw, batch_size=4, evaluate=lambda model: found, evaluate_every=2
    )
    assert summary.evaluations == [(2, found), (4, found)]
    expected = [(round, name, value) for round in (2, 4) for name, value in told.items()]
    assert fake_run.engines[0].evaluations == expected


@needs_engine
@pytest.mark.timeout(100)
def test_one_peer_makes_all_evaluations_though_rounds_leave_it_out_meanwhile():
    with crew_of(target_batch_size=12, rounds=70) as crew:
        peers = [crew.start(evaluators.loop, wait_for=3, seconds=1.5, every=12) for _ in range(3)]
        made = sorted(peer.result()["evaluations"] for peer in peers)
    assert made[:2] == [0, 0] and made[2] >= 1


@needs_engine
@pytest.mark.timeout(60)
def test_an_evaluation_costs_the_others_little_and_loses_no_sample(tmp_path):
    with crew_of(target_batch_size=30, rounds=80, exact_batches="true") as crew:
        crew.out = tmp_path
        first = crew.start(evaluators.loop, wait_for=3, seconds=1.5, every=15)
        others = [crew.start(evaluators.loop, wait_for=3, every=0) for _ in range(2)]
        results = [peer.result() for peer in (first, *others)]
        assert results[0]["state"] == results[1]["state"] == results[2]["state"]
        assert results[0]["evaluations"] >= 1
        assert set(records(others[0]).values()) == {30}
        assert_alike([first, *others])
        _, lost = lost_seconds(commit_times(tmp_path / "events-2.jsonl"))
        # A peer that leads the run is out after a second.
        assert lost[0] < 1.5 and lost[1] < 1.0, lost[:5]
        # All that counted, of an epoch of two rounds, by the peers' own records.
        for epoch in range(25):
            counted = []
            for peer, result in zip((first, *others), results):
                own = {report["round"]: report["samples"] for report in peer.all("commit")}
                for round_ in (2 * epoch + 1, 2 * epoch + 2):
                    handed = result["handed"].get(str(round_), [])
                    if own.get(round_) == len(handed):
                        counted += handed
            assert len(counted) == len(set(counted)), epoch
