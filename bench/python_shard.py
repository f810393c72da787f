#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether workers of run.shard() hide slow samples: one takes 5 ms to read, a batch of 16 takes 60 ms.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_shard.py --peers 2

Written, without workers and with two: samples/s of each peer, and how long its loop waited for a batch
(median). A loop that never waits for samples does 267 samples/s.
"""

import argparse
import statistics
import time

import torch
import tradewind

BATCH, TARGET, READ_S, COMPUTE_S = 16, 512, 0.005, 0.06


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(READ_S)
        return torch.full((4,), float(index))


def peer(workers, rounds):
    """samples/s of this peer and seconds of each wait for a batch, after the first round."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    run = tradewind.join(target_batch_size=TARGET, rounds=rounds)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1e-12))
    waited, samples, first = [], 0, None
    began = time.monotonic()
    for inputs in run.shard(Slow(), batch_size=BATCH, num_workers=workers):
        if run.round >= 1:
            first = first or time.monotonic()
            waited.append(time.monotonic() - began)
            samples += len(inputs)
        time.sleep(COMPUTE_S)
        model(inputs).sum().backward()
        opt.step()
        began = time.monotonic()
    speed = samples / (time.monotonic() - first)
    run.close()
    return speed, statistics.median(waited)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    quiet = {"progress": "off"}
    for workers in (0, 2):
        found = tradewind.launch_local(
            peer, workers, arguments.rounds, peers=arguments.peers, settings=quiet
        )
        speed, waited = (statistics.median(values) for values in zip(*found))
        print(f"{workers} workers  {speed:.0f} samples/s a peer, {1e3 * waited:.1f} ms a batch waited")


if __name__ == "__main__":
    main()
