# SPDX-License-Identifier: Apache-2.0
"""Real peers in loop style: killed, interrupted, away, with other seeds and other batch sizes."""

import re
import signal
import time

import loops
import numpy as np
import pytest
import torch
import tradewind
from conftest import needs_engine
from crew import context, crew_of, free_port
from fake_engine import step_of, update_tensor
from models import loss_of, mlp, train
from tradewind.engine import abi
from tradewind.model.engine_rules import group_of

pytestmark = [needs_engine, pytest.mark.timeout(100)]


def digests(peer):
    """round: digest of the parameters after it."""
    return {report["round"]: report["digest"] for report in peer.all("apply")}


def records(peer):
    """round: samples of its record, of rounds after whose predecessor the peer was there."""
    total = {0: 0, **{report["round"]: report["samples_total"] for report in peer.all("commit")}}
    return {round_: samples - total[round_ - 1] for round_, samples in total.items() if round_ - 1 in total}


def assert_alike(peers, rounds=None):
    """All digests of rounds that peers have in common are equal."""
    known = [digests(peer) for peer in peers]
    for round_ in range(1, (rounds or max(map(max, known))) + 1):
        assert len({one[round_] for one in known if round_ in one}) <= 1, round_


def tensors(result):
    return {name: torch.tensor(value) for name, value in result["state"].items()}


@pytest.fixture(scope="module", autouse=True)
def alone():
    """A peer that looks for others in vain, beside all tests: it does so for 30 s."""
    with crew_of(target_batch_size=8) as crew:
        crew.start(loops.start_only, found=False)
        yield crew


def test_three_peers_one_killed_exact_batches():
    with crew_of(target_batch_size=64, rounds=20, exact_batches="true") as crew:
        peers = [crew.start(loops.loop, wait_for=3, batch=8, pause_s=0.01, seed=seed) for seed in (1, 2, 3)]
        peers[0].until_round(8)
        peers[2].kill()
        results = [peer.result() for peer in peers[:2]]
        assert results[0]["state"] == results[1]["state"] and results[0]["round"] == 20
        assert set(records(peers[0]).values()) == {64} and len(records(peers[0])) == 20
        assert_alike(peers)


@pytest.mark.parametrize("exact", ["true", "false"])
def test_batches_of_16_24_and_50_in_one_run(exact):
    with crew_of(target_batch_size=160, rounds=12, exact_batches=exact) as crew:
        peers = [crew.start(loops.loop, wait_for=3, batch=batch, pause_s=0.01) for batch in (16, 24, 50)]
        results = [peer.result() for peer in peers]
        assert results[0]["state"] == results[1]["state"] == results[2]["state"]
        assert set(records(peers[0]).values()) == {160}
        assert_alike(peers, 12)


def test_what_a_record_lacks_is_carried_by_the_next():
    with crew_of(target_batch_size=64, rounds=20) as crew:
        peers = [crew.start(loops.loop, wait_for=3, batch=8, pause_s=0.01) for _ in range(3)]
        peers[0].until_round(8)
        peers[1].kill()
        assert peers[0].result()["state"] == peers[2].result()["state"]
        counted = records(peers[0])
        assert sum(counted.values()) >= 64 * 19 and all(0 < samples <= 128 for samples in counted.values())
        assert_alike(peers)


@pytest.mark.parametrize("name", ["nadam", "own", "sgd"])
def test_one_peer_equals_the_bare_loop_bit_for_bit(name):
    with crew_of(target_batch_size=8, rounds=20) as crew:
        mine = tensors(crew.start(loops.loop, optimizer=name, batch=8, seed=1).result())
    other = mlp(1)
    torch.set_num_threads(1)
    train(other, loops.OPTIMIZERS[name](other), 20)
    for key, value in other.state_dict().items():
        if name != "sgd":
            assert torch.equal(mine[key], value), key
        torch.testing.assert_close(mine[key], value, rtol=2e-6, atol=1e-7)


def test_rates_set_by_round_hold_from_the_first_change_on():
    with crew_of(target_batch_size=8) as crew:
        moved = crew.start(loops.falling_rate, rounds=8).result()
    assert moved == pytest.approx([0.5**round for round in range(8)], rel=1e-3)


@pytest.mark.parametrize("name", ["momentum", "nesterov", "adam", "adamw", "lamb"])
def test_the_engines_optimizers_are_torchs(name):
    with crew_of(target_batch_size=8, rounds=100) as crew:
        result = crew.start(
            loops.loop, optimizer=name, batch=8, seed=1, clip_grad_norm=0.5, engine="tradewind"
        ).result()
        mine = tensors(result)
    other = mlp(1)
    train(other, loops.OPTIMIZERS[name](other), 100, clip=0.5)
    for key, value in other.state_dict().items():
        # torch's clipping adds 1e-6 to the norm.
        torch.testing.assert_close(mine[key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["nadam", "own", "adamw"])
def test_a_joiner_has_the_state_and_contributes(name):
    with crew_of(target_batch_size=32, rounds=60) as crew:
        options = {"optimizer": name, "batch": 8, "pause_s": 0.01, "scheduler": "cosine"}
        first = crew.start(loops.loop, **options)
        first.until_round(5)
        joiner = crew.start(loops.loop, seed=2, **options)
        assert first.result()["state"] == joiner.result()["state"]
        assert joiner.result()["metrics"]["steps"] > 5
        assert_alike([first, joiner])


def test_other_seeds_start_and_are_equal_after_a_round():
    with crew_of(target_batch_size=32, rounds=3) as crew:
        peers = [crew.start(loops.loop, wait_for=3, seed=seed) for seed in (5, 6, 7)]
        states = [peer.result()["state"] for peer in peers]
        assert states[0] == states[1] == states[2]
        assert_alike(peers, 3)


def test_peers_that_start_in_step():
    with crew_of(target_batch_size=32, rounds=6) as crew:
        peers = [crew.start(loops.loop, wait_for=2, seed=seed, late=True) for seed in (5, 6)]
        states = [peer.result()["state"] for peer in peers]
        assert states[0] == states[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_records_of_an_epoch_name_each_sample_once(workers):
    """Samples of a peer that died are computed by another."""
    with crew_of(target_batch_size=30, rounds=8, exact_batches="true") as crew:
        peers = [
            crew.start(loops.shard, wait_for=3, size=60, batch=3, workers=workers, pause_s=0.02)
            for _ in range(3)
        ]
        peers[0].until_round(3)
        peers[2].kill()
        assert peers[0].result()["state"] == peers[1].result()["state"]
        handed = {}
        for peer in peers:
            for report in peer.all("batch"):
                handed.setdefault(report["round"], []).extend(report["indices"])
        for epoch in range(4):
            once = handed[2 * epoch + 1] + handed[2 * epoch + 2]
            # Those of the killed peer were computed twice at most; all others exactly once.
            assert set(once) == set(range(60)), epoch
            lost = [index for report in peers[2].all("batch") for index in report["indices"]]
            assert all(once.count(index) == 1 for index in once if index not in lost)


@pytest.mark.parametrize("buffers", ["mean", "local"])
def test_batch_norm(buffers):
    with crew_of(target_batch_size=32, rounds=8) as crew:
        peers = [crew.start(loops.loop_with_batch_norm, wait_for=2, buffers=buffers) for _ in range(2)]
        first, second = (peer.result() for peer in peers)
        if buffers == "mean":
            # A pass before the start is none of the run.
            assert first["1.num_batches_tracked"] in (31, 32)
        for name in first:
            if "running" in name:
                assert (first[name] == second[name]) is (buffers == "mean"), name
            elif buffers == "mean" or "num_batches" not in name:
                assert first[name] == second[name], name




@pytest.mark.parametrize("where", ["waiting for others", "in step"])
def test_ctrl_c_ends_a_wait_at_once(where):
    with crew_of(target_batch_size=1_000_000, rounds=5) as crew:
        peer = crew.start(loops.interrupted, wait_for=2 if where != "in step" else 1)
        peer.until(lambda report: report["what"] == "begins")
        time.sleep(1.5)
        sent = peer.kill(signal.SIGINT)
        ended = peer.until(lambda report: report["what"] == "interrupted")
        assert ended["at"] - sent < 0.3
        assert peer.result(10) == "closed"


@pytest.mark.parametrize("peers", [1, 2])
def test_ctrl_c_of_all_peers_loses_no_round(tmp_path, peers):
    with crew_of(target_batch_size=16, rounds=100000, **{"checkpoint.folder": str(tmp_path)}) as crew:
        all = [crew.start(loops.interrupted, wait_for=peers, pause_s=0.01) for _ in range(peers)]
        for peer in all:
            peer.until_round(6)
        for peer in all:
            peer.kill(signal.SIGINT)
        assert [peer.result(10) for peer in all] == ["closed"] * peers
        done = max(commit["round"] for peer in all for commit in peer.all("commit"))
    with crew_of(target_batch_size=16, rounds=done + 1, **{"checkpoint.folder": str(tmp_path)}) as crew:
        again = crew.start(loops.loop, pause_s=0.01)
        assert again.result()["round"] == done + 1 and again.all("started")[0]["round"] >= done - 1


def test_an_exception_in_the_loop_is_noticed_at_once():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        options = {"batch": 8, "pause_s": 0.01}
        first = crew.start(loops.loop, wait_for=2, **options)
        second = crew.start(loops.loop, wait_for=2, fail_at=5, **options)
        failed = second.error()
        assert failed["kind"] == "ZeroDivisionError"
        lost = first.until(lambda report: report["what"] == "lost")
        assert lost["at"] - failed["at"] < 0.5


def test_a_kill_is_noticed_at_once_though_loader_workers_live():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        first = crew.start(loops.loop, wait_for=2, batch=8, pause_s=0.01)
        second = crew.start(loops.with_loader_workers, wait_for=2)
        second.until_round(5)
        killed = second.kill()
        lost = first.until(lambda report: report["what"] == "lost")
        assert lost["at"] - killed < 0.5


def test_sigterm_leaves_after_the_round():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        options = {"batch": 8, "pause_s": 0.01}
        first = crew.start(loops.loop, wait_for=2, **options)
        second = crew.start(loops.loop, wait_for=2, **options)
        round_ = second.until_round(5)["round"]
        second.kill(signal.SIGTERM)
        assert second.result()["round"] >= round_
        assert first.until_round(round_ + 5)


def test_a_forked_child_cannot_use_the_run_and_the_parent_goes_on():
    with crew_of(target_batch_size=16, rounds=6) as crew:
        result = crew.start(loops.forked).result()
        assert "fork" in result["text"] and result["round"] == 6


def test_a_second_run_after_close():
    with crew_of(target_batch_size=8, rounds=3) as crew:
        assert crew.start(loops.twice).result() == [3, 3]


@pytest.mark.parametrize("optimizer", ["nadam", "adamw"])
def test_a_checkpoint_goes_on_after_all_were_killed(tmp_path, optimizer):
    folder = {"checkpoint.folder": str(tmp_path), "checkpoint.every": 1, "patience": "500ms"}
    options = {"optimizer": optimizer, "batch": 8, "scheduler": "onecycle", "pause_s": 0.02}
    with crew_of(target_batch_size=8, rounds=12, **folder) as crew:
        crew.start(loops.loop, **options).until_round(6)
    with crew_of(target_batch_size=8, rounds=12, **folder) as crew:
        again = crew.start(loops.loop, **options)
        resumed = tensors(again.result())
        assert again.all("started")[0]["round"] >= 5
    with crew_of(target_batch_size=8, rounds=12) as crew:
        whole = tensors(crew.start(loops.loop, **options).result())
    for name, value in whole.items():
        assert torch.equal(resumed[name], value), name


@pytest.mark.parametrize("mode", ["sync", "delayed"])
def test_one_peer_ends_the_run_for_all_and_for_those_that_start_again(tmp_path, mode):
    run = {"target_batch_size": 8, "rounds": 500, "mode": mode, "checkpoint.folder": str(tmp_path)}
    with crew_of(**run) as crew:
        peers = [crew.start(loops.loop, wait_for=2, batch=4, pause_s=0.02, end_at=4 * at) for at in (0, 1)]
        results = [peer.result() for peer in peers]
    rounds = results[0]["round"]
    assert 4 < rounds < 12 and [result["round"] for result in results] == [rounds] * 2
    assert [result["view"]["ending"] for result in results] == ["complete"] * 2
    assert "the program of peer" in results[0]["view"]["ended"], results[0]["view"]
    assert f"this program ended it in round {rounds} of 500" in results[1]["view"]["ended"]
    with crew_of(**run) as crew:
        again = crew.start(loops.loop, batch=4, late=True).result()
    assert again["round"] == rounds
    assert f"a program ended it in round {rounds} of 500" in again["view"]["ended"], again["view"]
    with crew_of(**{**run, "rounds": rounds + 3}) as crew:
        assert crew.start(loops.loop, batch=4).result()["round"] == rounds + 3


def test_an_anchor_goes_on_from_the_copy_of_its_checkpoints(tmp_path):
    run = {"target_batch_size": 8, "rounds": 12, "role": "anchor", "patience": "500ms"}
    run |= {"checkpoint.to": str(tmp_path / "away"), "checkpoint.every": 1}
    options = {"batch": 8, "pause_s": 0.02}
    with crew_of(**run, **{"checkpoint.folder": str(tmp_path / "one")}) as crew:
        crew.start(loops.loop, **options).until_round(6)
    with crew_of(**run, **{"checkpoint.folder": str(tmp_path / "two")}) as crew:
        again = crew.start(loops.loop, **options)
        again.result()
        assert again.all("started")[0]["round"] >= 3


def test_a_model_of_another_shape_is_turned_away_with_what_differs():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        first = crew.start(loops.loop, batch=8, pause_s=0.01)
        first.until_round(2)
        other = crew.start(loops.loop, optimizer="nadam", batch=8)
        assert 'this peer has "optimizer: torch.optim.nadam.NAdam' in other.error()["text"]
        crew.settings["target_batch_size"] = 32
        other = crew.start(loops.loop, batch=8)
        assert 'expected "batch=64", this peer has "batch=32"; use the same' in other.error()["text"]


def reference_of_fit(batches, target):
    """numpy: sums of microbatches until the target is reached, then AdamW of each group."""
    model = mlp()
    samples = loops.Numbered(64)
    inner = loops.OPTIMIZERS["adamw"](model)
    groups = [group_of(abi.TW_ADAMW, group, 2) for group in inner.param_groups]
    tensors = list(model.parameters())
    flat = [np.concatenate([p.detach().numpy().ravel() for p in tensors[at : at + 2]]) for at in (0, 2)]
    moments = [[np.zeros_like(one), np.zeros_like(one)] for one in flat]
    total, counted, step = [np.zeros_like(one) for one in flat], 0, 0
    for indices in batches:
        model.zero_grad()
        loss_of(model, samples.inputs[indices], samples.targets[indices]).backward()
        for at in range(2):
            gradient = np.concatenate([p.grad.numpy().ravel() for p in tensors[2 * at : 2 * at + 2]])
            total[at] += np.float32(len(indices)) * gradient
        counted += len(indices)
        if counted < target:
            continue
        step, counted = step + 1, 0
        for at in range(2):
            now = step_of(groups[at], slice(0, len(flat[at])), step)
            update_tensor(now, flat[at], moments[at], total[at] * np.float32(1 / target))
            total[at][:] = 0
            torch.nn.utils.vector_to_parameters(
                torch.from_numpy(flat[at].copy()), tensors[2 * at : 2 * at + 2]
            )
    return model


def test_fit_is_sums_and_adamw_and_peers_agree():
    with crew_of(target_batch_size=16, rounds=20) as crew:
        peer = crew.start(loops.fit, batch=8)
        one = peer.result()
        batches = [report["indices"] for report in peer.all("batch")]
    assert one["summary"][0] == 20 and one["summary"][1] == 320
    torch.set_num_threads(1)
    for name, value in reference_of_fit(batches, 16).state_dict().items():
        assert torch.equal(tensors(one)[name], value), name
    with crew_of(target_batch_size=16, rounds=20) as crew:
        peers = [crew.start(loops.fit, wait_for=2, batch=8) for _ in range(2)]
        states = [peer.result()["state"] for peer in peers]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    "settings,kind,text",
    [
        ({"training.rounds": "many"}, "SettingError", "rounds.*many"),
        ({"token": "nonsense"}, "SettingError", "token"),
        ({"listen": "nowhere", "insecure": True}, "SettingError", "nowhere"),
    ],
)
def test_what_the_engine_refuses_is_told_with_its_name(settings, kind, text):
    with crew_of(target_batch_size=8) as crew:
        error = crew.start(loops.start_only, environment={}, settings=settings).error()
        assert error["kind"] == kind and re.search(text, error["text"]), error["text"]


def node(crew, number, wait_for, first):
    """Two ranks that are one peer."""
    port = free_port()
    ranks = []
    for rank in range(2):
        environment = {
            **crew.usual(number, first, wait_for),
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        ranks.append(crew.start(loops.rank, environment=environment))
    return ranks


def test_two_nodes_of_two_ranks():
    with crew_of(target_batch_size=64, rounds=10) as crew:
        ranks = node(crew, 1, 2, True) + node(crew, 2, 2, False)
        results = [rank.result() for rank in ranks]
        assert all(result["state"] == results[0]["state"] for result in results)
        assert [result["round"] for result in results] == [10] * 4


def test_a_node_whose_first_rank_is_killed_ends_and_the_others_go_on():
    with crew_of(target_batch_size=64, rounds=100000) as crew:
        first, second = node(crew, 1, 2, True), node(crew, 2, 2, False)
        second[0].until(lambda report: report.get("round", 0) >= 5)
        second[0].kill()
        assert second[1].error(20)["trace"]
        seen = first[1].reports[-1]["round"]
        first[1].until(lambda report: report.get("round", 0) > seen + 5)


def test_launch_local_goes_on_without_a_peer_that_was_killed(tmp_path):
    settings = {"target_batch_size": 64, "rounds": 15, "progress": "off"}
    context()  # its server has torch loaded
    results = tradewind.launch_local(
        loops.local, 5, peers=3, start="forkserver", settings=settings, out=tmp_path, timeout=60
    )
    assert results[0] == results[2] and "peer 2 was ended by SIGKILL" in str(results[1])
    assert len(list(tmp_path.glob("events-*.jsonl"))) == 3


def test_nobody_there_is_told_after_30_s(alone):
    error = alone.peers[0].error()
    where = f"127.0.0.1:{alone.port}"
    assert (error["kind"], error["text"]) == (
        "EngineError",
        f"nobody who has the state of the run can be reached at {where} for 30 s: cannot connect to {where}:"
        " connection refused; is a peer running there, and does a firewall let it be reached?",
    )
