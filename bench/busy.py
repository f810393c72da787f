#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the other peers lose while the program of one of 2 or 3 is busy.

    PYTHONPATH=build/python /usr/bin/python3 bench/busy.py

Written: the longest time between two rounds of any other peer. The busy one is the leader or another
peer; it says so (run.paused, 10 s), or holds the interpreter lock in a C call (5 s).
"""

import ctypes
import time

import torch
import tradewind

BUSY_IN = 20  # round
PAUSE_S, LOCKED_S = 10, 5


def be_busy(run, how):
    if how == "paused":
        with run.paused("evaluating"):
            time.sleep(PAUSE_S)
    else:
        ctypes.PyDLL(None).usleep(LOCKED_S * 1_000_000)


def train(how, leads):
    """Longest time between two rounds, and whether this peer was the busy one."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    run = tradewind.join()
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    data = torch.utils.data.TensorDataset(torch.randn(640, 4))
    last, longest, busy = time.monotonic(), 0.0, False
    for (inputs,) in run.shard(data, batch_size=8):
        time.sleep(0.01)
        model(inputs).mean().backward()
        if opt.step():
            now = time.monotonic()
            longest, last = max(longest, now - last) if run.round > BUSY_IN // 2 else 0.0, now
            if run.round == BUSY_IN and run.is_first == leads and not busy:
                busy = True
                be_busy(run, how)
                last = time.monotonic()
        opt.zero_grad()
    return longest, busy


def main():
    for peers in (2, 3):
        for how in ("paused", "locked"):
            settings = {"target_batch_size": 32 * peers, "rounds": 300}
            for leads in (True, False) if peers == 2 else (True,):
                found = tradewind.launch_local(train, how, leads, peers=peers, timeout=100, settings=settings)
                stood = max(longest for longest, busy in found if not busy)
                who = "the leader" if leads else "the other"
                print(f"{peers} peers, {who} {how}: {stood:.2f} s", flush=True)


if __name__ == "__main__":
    main()
