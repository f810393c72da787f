# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/python/test_heard.py: what they hear from the engine and from each other."""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
import time
import warnings
from typing import Any, Callable, Dict

import torch
import tradewind
from models import data, loss_of, mlp

Report = Callable[..., None]


def begun(**settings: Any) -> Any:
    torch.manual_seed(1)
    model = mlp()
    run = tradewind.join(settings=settings)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.01), batch_size=4)
    return run, opt, model


def without_a_disk(report: Report, folder: str) -> Dict[str, Any]:
    """The folder of the checkpoints is a file from the first round on."""
    events = []
    run, opt, model = begun(**{"checkpoint.folder": folder, "checkpoint.every": 1})
    run.on_event(events.append)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", tradewind.TradewindWarning)
        run.start()
        shutil.rmtree(folder, ignore_errors=True)
        with open(folder, "w", encoding="ascii") as file:
            file.write("a file")
        for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=8):
            loss_of(model, *batch).backward()
            opt.step()
            opt.zero_grad()
        run.close()
    told = [event["why"] for event in events if event["phase"] == "warn"]
    texts = [str(one.message) for one in said if one.category is tradewind.TradewindWarning]
    return dict(warnings=texts, events=told, code=run.exit_code, unsaved=run.unsaved)


def with_parameters_of_its_own(report: Report, changes: bool) -> Dict[str, Any]:
    """The program may change a parameter itself, which no comparison before the end of five rounds sees."""
    run, opt, model = begun()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", tradewind.TradewindWarning)
        for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=4):
            loss_of(model, *batch).backward()
            opt.step()
            opt.zero_grad()
            if changes and run.round >= 2:
                changes = False
                with torch.no_grad():
                    next(model.parameters()).add_(1.0)
        run.close()
    texts = [str(one.message) for one in said if one.category is tradewind.TradewindWarning]
    return dict(warnings=texts, ending=run.ending, code=run.exit_code, differs=run.differs)


def until_a_round(report: Report, last: int) -> Dict[str, Any]:
    """Leaves after this round, or at the end of the run."""
    run, opt, model = begun()
    with run:
        for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=4):
            loss_of(model, *batch).backward()
            opt.step()
            opt.zero_grad()
            if run.round == last:
                break
    weights = [value for tensor in model.parameters() for value in tensor.flatten().tolist()]
    return dict(ending=run.ending, code=run.exit_code, round=run.round, weights=weights)


def with_a_loss(report: Report, loss: float) -> Dict[str, Any]:
    """Says this loss of each of its batches."""
    run, opt, model = begun()
    samples = 0
    for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=4):
        samples += len(batch[0])
        loss_of(model, *batch).backward()
        opt.step(loss=loss)
        opt.zero_grad()
        time.sleep(0.02)
    run.close()
    return dict(loss=run.metrics["loss"], samples=samples)


def at_a_barrier(report: Report, busy_s: float, dies: bool = False) -> Dict[str, Any]:
    """Trains a little, is busy, and comes to two barriers; watches for whom it waits."""
    run, opt, model = begun()
    run.start()
    for _ in range(2):
        opt.zero_grad()
        loss_of(model, *data(4)).backward()
        opt.step(samples=4)
    time.sleep(busy_s)
    if dies:
        os._exit(9)
    seen: Dict[str, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            seen.setdefault(run.waiting, time.monotonic())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    run.barrier()
    first = time.monotonic()
    if not dies:
        run.barrier()
    over.set()
    watcher.join()
    run.close()
    return dict(took=first - began, waits=sorted(seen))


def founds(report: Report) -> None:
    """Waits for others, and reports what it hears meanwhile, and for whom it waits then."""
    run, _, _ = begun()
    warnings.simplefilter("always", tradewind.TradewindWarning)
    warnings.showwarning = lambda message, *_: report(what="warning", text=str(message), waits=run.waiting)
    run.start()


def with_other_data(report: Report, own: int) -> Any:
    """A loop over data of another length on the second peer; its error is the result."""
    os.environ["TRADEWIND_PROGRESS"] = "off"
    run, opt, model = begun()
    try:
        for batch in run.shard(torch.utils.data.TensorDataset(*data(own)), batch_size=4):
            loss_of(model, *batch).backward()
            opt.step()
            opt.zero_grad()
    except tradewind.TradewindError as error:
        return str(error)
    return ""


def in_one_long_call(report: Report, seconds: float) -> None:
    """Some rounds, then one call of C that keeps the interpreter, and goes on whatever signals come."""
    run, opt, model = begun()
    for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=4):
        loss_of(model, *batch).backward()
        opt.step()
        opt.zero_grad()
        if run.round >= 3:
            break
    lock = ctypes.create_string_buffer(64)
    library = ctypes.PyDLL(None)
    library.pthread_mutex_lock(lock)
    end = (ctypes.c_long * 2)(int(time.time() + seconds), 0)
    report(what="inside")
    library.pthread_mutex_timedlock(lock, end)
    report(what="back")


def counts_peers(report: Report) -> None:
    """Reports when it is alone."""
    run, opt, model = begun()
    for batch in run.shard(torch.utils.data.TensorDataset(*data(64)), batch_size=4):
        loss_of(model, *batch).backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.01)
        if run.peers == 1:
            report(what="alone")
            return
