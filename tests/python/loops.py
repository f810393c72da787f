# SPDX-License-Identifier: Apache-2.0
"""What real peers do in tests: loops that report rounds, digests and results, each in a process."""

from __future__ import annotations

import os
import signal
import time
import warnings
from typing import Any, Callable, Dict, List, Optional

import torch
import tradewind
from models import data, loss_of, mlp, with_batch_norm
from torch.utils.data import DataLoader, Dataset

Report = Callable[..., None]


class SignMomentum(torch.optim.Optimizer):
    """An optimizer of a user's own, with state."""

    def __init__(self, params: Any, lr: float = 1e-2) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(momentum=torch.zeros_like(p), steps=0)
                state["steps"] += 1
                state["momentum"].mul_(1 - 1 / (1 + state["steps"])).add_(p.grad, alpha=0.3)
                p.add_(state["momentum"].sign(), alpha=-group["lr"])


def groups_of(model: Any) -> List[Dict[str, Any]]:
    return [
        {"params": model[0].parameters(), "lr": 3e-3, "weight_decay": 0.1},
        {"params": model[2].parameters()},
    ]


OPTIMIZERS: Dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.05),
    "momentum": lambda m: torch.optim.SGD(groups_of(m), lr=0.05, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda m: torch.optim.SGD(groups_of(m), lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda m: torch.optim.Adam(groups_of(m), lr=1e-2, betas=(0.8, 0.99)),
    "adamw": lambda m: torch.optim.AdamW(groups_of(m), lr=1e-2),
    "nadam": lambda m: torch.optim.NAdam(m.parameters(), lr=1e-2),
    "own": lambda m: SignMomentum(m.parameters()),
    "lamb": lambda m: tradewind.Lamb(m.parameters(), lr=1e-2),
}
SCHEDULERS: Dict[Optional[str], Any] = {
    None: None,
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=15),
    "onecycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=200),
}


class Numbered(Dataset):
    """Sample i: 4 inputs, a target, and i itself."""

    def __init__(self, size: int) -> None:
        self.inputs, self.targets = data(size)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        return self.inputs[index], self.targets[index], index


def watch(run: tradewind.Run, report: Report) -> None:
    """Reports commits, digests of parameters and losses of peers, as the event log has them."""

    def seen(event: Dict[str, Any]) -> None:
        if event["phase"] in ("commit", "apply", "lost", "restore", "join"):
            kept = {
                key: event.get(key)
                for key in ("round", "digest", "samples", "samples_total", "about", "why")
            }
            kept["of"] = {key[8:]: event[key] for key in event if key.startswith("samples:")}
            report(what=event["phase"], **kept)

    run.on_event(seen)


def state_of(model: torch.nn.Module) -> Dict[str, Any]:
    return {name: value.tolist() for name, value in model.state_dict().items()}


def begun(
    report: Report,
    optimizer: str = "adamw",
    seed: int = 1,
    scheduler: Optional[str] = None,
    model: Optional[torch.nn.Module] = None,
    **options: Any,
) -> Any:
    """run, model and optimizer, all reported."""
    model = mlp(seed) if model is None else model
    run = tradewind.join()
    watch(run, report)
    opt = run.optimizer(model, OPTIMIZERS[optimizer](model), scheduler=SCHEDULERS[scheduler], **options)
    return run, model, opt


def loop(
    report: Report,
    batch: int = 8,
    pause_s: float = 0.0,
    away: Any = None,
    late: bool = False,
    fail_at: int = 0,
    end_at: int = 0,
    **options: Any,
) -> Any:
    """Steps of one batch until the run is over. away: (round, seconds, paused); fail_at: raises there;
    end_at: ends the run there.
    """
    run, model, opt = begun(report, batch_size=batch, **options)
    inputs, targets = data(batch)
    if not late:
        run.start()
        report(what="started", round=run.round, pid=os.getpid())
    while not run.finished:
        opt.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        applied = opt.step(loss=loss)
        if pause_s:
            time.sleep(pause_s)
        if applied and fail_at and run.round >= fail_at:
            raise ZeroDivisionError(f"in round {run.round}")
        if applied and end_at and run.round >= end_at:
            run.end()
            end_at = 0
        if applied and away and run.round >= away[0]:
            report(what="away", seconds=away[1])
            if away[2]:
                with run.paused("looking away"):
                    time.sleep(away[1])
            else:
                time.sleep(away[1])
            report(what="back")
            away = None
    result = {"state": state_of(model), "round": run.round, "metrics": run.metrics, "view": run.view}
    run.close()
    # The model is the program's own again.
    assert torch.isfinite(loss_of(model, inputs, targets))
    return result


def loop_with_batch_norm(report: Report, batch: int = 8, buffers: str = "mean", **options: Any) -> Any:
    """The loop with other samples on each peer, so that local statistics differ."""
    run, model, opt = begun(
        report, optimizer="sgd", model=with_batch_norm(), buffers=buffers, batch_size=batch
    )
    inputs, targets = data(batch, seed=os.getpid())
    while not run.finished:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
    result = state_of(model)
    run.close()
    return result


def shard(
    report: Report, size: int = 60, batch: int = 4, workers: int = 0, pause_s: float = 0.0, **options: Any
) -> Any:
    """Reports which samples were handed in, in which round."""
    run, model, opt = begun(report, **options)
    loader = DataLoader(Numbered(size), batch_size=batch, num_workers=workers)
    for inputs, targets, indices in run.shard(loader):
        if pause_s:
            time.sleep(pause_s)
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        order = run._life.loop.driver.order
        report(what="batch", round=order.round, indices=indices.tolist())
        opt.step()
    result = {"state": state_of(model), "metrics": run.metrics}
    run.close()
    return result


def in_shards(
    report: Report, index: str, batch: int, workers: int = 0, pause_s: float = 0.0, block: int = 1
) -> Any:
    """Reports which samples of an index were handed in, in which round."""
    run, model, opt = begun(report)
    data = tradewind.data.shards(index, fields=("in.npy", "out.npy", "cls"), decode=True, block=block)
    for inputs, targets, numbers in run.shard(data, batch_size=batch, num_workers=workers):
        if pause_s:
            time.sleep(pause_s)
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        handed = {"round": run._life.loop.driver.order.round, "indices": numbers.tolist()}
        report(what="batch", at=time.monotonic(), **handed)
        opt.step()
    result = {"state": state_of(model), "round": run.round}
    run.close()
    return result


def fit(report: Report, size: int = 64, batch: int = 8, **options: Any) -> Any:
    """Function style."""
    run = tradewind.join()
    watch(run, report)
    model = mlp()

    def loss(module: Any, samples: Any) -> torch.Tensor:
        report(what="batch", indices=samples[2].tolist())
        return loss_of(module, samples[0], samples[1])

    summary = run.fit(model, loss, Numbered(size), OPTIMIZERS["adamw"](model), batch_size=batch, **options)
    run.close()
    return {"summary": list(summary), "state": state_of(model)}


def with_loader_workers(report: Report, batch: int = 8, **options: Any) -> Any:
    """A loop whose own DataLoader has forked workers."""
    run, model, opt = begun(report, **options)
    run.start()
    loader = DataLoader(Numbered(64), batch_size=batch, num_workers=2, multiprocessing_context="fork")
    for inputs, targets, _ in run.batches(loader):
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
    return state_of(model)


def interrupted(report: Report, batch: int = 8, pause_s: float = 0.0, **options: Any) -> Any:
    """Ctrl-C, in step() or while waiting for others at the start: when it came out of the wait."""
    run, model, opt = begun(report, batch_size=batch, **options)
    inputs, targets = data(batch)
    report(what="begins", pid=os.getpid())
    try:
        while True:
            loss_of(model, inputs, targets).backward()
            opt.step()
            time.sleep(pause_s)
    except KeyboardInterrupt:
        report(what="interrupted")
    run.close()
    return "closed"


def forked(report: Report, batch: int = 8, **options: Any) -> Any:
    """Uses the run in a forked child, and goes on after that."""
    run, model, opt = begun(report, batch_size=batch, **options)
    inputs, targets = data(batch)
    loss_of(model, inputs, targets).backward()
    opt.step()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            opt.step()
            text = "no error"
        except tradewind.TradewindError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    while not run.finished:
        opt.step()
    run.close()
    return {"text": text, "round": run.round}


def twice(report: Report, batch: int = 8) -> Any:
    """Two runs, one after the other, with the same model."""
    results = []
    model = mlp()
    for _ in range(2):
        run, _, opt = begun(report, model=model, batch_size=batch)
        inputs, targets = data(batch)
        while not run.finished:
            opt.zero_grad()
            loss_of(model, inputs, targets).backward()
            opt.step()
        results.append(run.round)
        run.close()
    return results


def start_only(report: Report, settings: Any = None, **options: Any) -> Any:
    """Raises what the start raises."""
    model = mlp()
    run = tradewind.join(settings=settings)
    run.optimizer(model, OPTIMIZERS["adamw"](model), batch_size=8, **options)
    run.start()
    return run.view


def rank(report: Report, batch: int = 8) -> Any:
    """One rank of a node: DistributedDataParallel inside, the run between nodes."""
    torch.distributed.init_process_group("gloo")
    number = torch.distributed.get_rank()
    run = tradewind.join(group=torch.distributed.group.WORLD)
    model = torch.nn.parallel.DistributedDataParallel(mlp())
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-2), batch_size=batch)
    inputs, targets = data(2 * batch)
    mine = slice(number * batch, (number + 1) * batch)
    while not run.finished:
        opt.zero_grad()
        loss_of(model, inputs[mine], targets[mine]).backward()
        if opt.step():
            report(what="round", round=run.round)
        time.sleep(0.005)
    result = {"state": state_of(model.module), "round": run.round, "first": run.is_first}
    run.close()
    return result


def local(dies_in: int) -> Any:
    """A peer of launch_local; the second one is killed in a round."""
    torch.set_num_threads(1)
    run, model, opt = begun(lambda **_: None, batch_size=8)
    inputs, targets = data(8)
    while not run.finished:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
        time.sleep(0.005)
        if os.environ["TRADEWIND_ID"] == "2" and run.round >= dies_in:
            os.kill(os.getpid(), signal.SIGKILL)
    result = state_of(model)
    run.close()
    return result


def told_by(call: Callable[[], Any], report: Report) -> Any:
    """What call() returns; its warnings are reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return call()
        finally:
            for one in caught:
                report(what="told", text=str(one.message))


def by_hand(report: Report, by_round: bool, seed: int = 1, engine: str = "auto") -> Any:
    """A rate that the loop sets before each step, by the rounds of the run or by its own steps."""
    run, model, opt = begun(report, optimizer="adamw", seed=seed, batch_size=8, engine=engine)
    inputs, targets = data(8)

    def whole() -> None:
        steps = 0
        while not run.finished:
            at = run.round if by_round else steps
            for group in opt.param_groups:
                group["lr"] = 0.02 * 0.97**at
            opt.zero_grad()
            loss_of(model, inputs, targets).backward()
            opt.step()
            steps += 1
            time.sleep(0.01)

    told_by(whole, report)
    result = {"state": state_of(model), "round": run.round, "rates": [g["lr"] for g in opt.param_groups]}
    run.close()
    return result


def with_ema(report: Report, pause_s: float = 0.01, seed: int = 1) -> Any:
    """An average of the weights, which the run knows."""
    run, model, opt = begun(report, optimizer="momentum", seed=seed, batch_size=8)
    ema = mlp(seed)

    @torch.no_grad()
    def move() -> None:
        for mine, theirs in zip(ema.parameters(), model.parameters()):
            mine.mul_(0.9).add_(theirs, alpha=0.1)

    run.extra_state(ema.state_dict, ema.load_state_dict, after_round=move)
    inputs, targets = data(8)
    while not run.finished:
        opt.zero_grad()
        loss_of(model, inputs, targets).backward()
        opt.step()
        time.sleep(pause_s)
    result = {"state": state_of(model), "ema": state_of(ema)}
    run.close()
    return result


def changing(report: Report, pause_s: float = 0.01, seed: int = 1) -> Any:
    """Groups of any shape; a layer that is frozen, then thawed; a layer that is never used."""
    torch.manual_seed(seed)
    model = torch.nn.ModuleDict({"used": mlp(seed), "unused": torch.nn.Linear(2, 2)})
    groups = [
        {"params": []},
        {"params": model["used"][0].parameters(), "lr": 0.02},
        {"params": model["unused"].parameters()},
        {"params": [torch.nn.Parameter(torch.ones(1), requires_grad=False)]},
        {"params": model["used"][2].parameters()},
    ]
    run = tradewind.join()
    watch(run, report)
    opt = run.optimizer(model, torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1), batch_size=8)
    inputs, targets = data(8)
    run.start()
    begins = state_of(model)
    while not run.finished:
        model["used"][0].requires_grad_(run.round < 5 or run.round >= 10)
        opt.zero_grad(set_to_none=True)
        loss_of(model["used"], inputs, targets).backward()
        opt.step()
        time.sleep(pause_s)
    result = {"begins": begins, "state": state_of(model)}
    run.close()
    return result


def over_data(report: Report, size: int) -> Any:
    """run.shard over so many samples."""
    run, model, opt = begun(report)
    for inputs, targets, _ in run.shard(Numbered(size), batch_size=4):
        loss_of(model, inputs, targets).backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.01)
    return run.round


def locally(report: Report, pause_s: float = 0.0, seed: int = 1) -> Any:
    """A loop whose own optimizer steps, on samples of its own."""
    run, model, opt = begun(report, seed=seed, batch_size=8)
    held_out = data(64, seed=99)
    with torch.no_grad():
        began = float(loss_of(model, *held_out))
    run.start()
    apart, steps = 0.0, 0
    while not run.finished:
        opt.zero_grad()
        loss = loss_of(model, *data(8, seed=1000 * seed + steps))
        loss.backward()
        opt.step(loss=loss)
        steps += 1
        own = [parameter.detach().clone() for parameter in model.parameters()]
        with run.committed():
            differences = [(mine - one.detach()).abs().max() for mine, one in zip(own, model.parameters())]
        apart = max(apart, *map(float, differences))
        time.sleep(pause_s)
    with torch.no_grad():
        ended = float(loss_of(model, *held_out))
    return {
        "state": state_of(model),
        "round": run.round,
        "loss": ended,
        "began": began,
        "apart": apart,
    }


def falling_rate(report: Report, rounds: int) -> List[float]:
    """What each round moves a weight of gradient 1, with a rate that the loop halves for each round."""
    torch.manual_seed(1)
    model = torch.nn.Linear(1, 1, bias=False)
    run = tradewind.join(rounds=rounds)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1.0), batch_size=8)
    moved = []
    for _ in range(rounds):
        opt.param_groups[0]["lr"] = 0.5**run.round
        before = model.weight.item()
        opt.zero_grad()
        model(torch.ones(8, 1)).mean().backward()
        opt.step()
        moved.append(before - model.weight.item())
    return moved
