#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers of tradewind and of Hivemind: the same model and batch, in turns, on this machine (as root).

    TRADEWIND_PROGRAM=build/tw build/integrations/3.11/bin/python bench/against_hivemind.py --repeats 3

bench/against.txt says what to install beside `make test-integrations`. Written: the time of a round of a
tiny model, rounds a minute of a small transformer, bytes and CPU seconds of a round (all peers together),
and the longest pause of the others after a peer was killed, or stopped. Both encrypt. Hivemind's settings
are those of its own quick start.
"""

import logging

import beside


class Groups(logging.Handler):
    """With how many peers Hivemind averaged last; 1: it went on with its own gradients."""

    def __init__(self):
        super().__init__()
        self.peers = 1

    def emit(self, record):
        words = record.getMessage().split()
        if words[:3] == ["Averaged", "gradients", "with"]:
            self.peers = int(words[3])
        elif words[:3] == ["Proceeding", "with", "local"]:
            self.peers = 1


def peer(arguments):
    """Steps without end; tells rounds."""
    import hivemind
    import torch

    groups = Groups()
    logging.getLogger("hivemind.optim.optimizer").addHandler(groups)
    model, inputs = beside.make_model(arguments.model)
    dht = hivemind.DHT(
        start=True,
        host_maddrs=["/ip4/127.0.0.1/tcp/0"],
        initial_peers=[arguments.address] if arguments.address else None,
    )
    if not arguments.address:
        beside.tell(address=str(dht.get_visible_maddrs()[0]))
    opt = hivemind.Optimizer(
        dht=dht,
        run_id="against",
        target_batch_size=beside.target_of(arguments),
        batch_size_per_step=len(inputs),
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
        matchmaking_time=arguments.matchmaking,
        averaging_timeout=arguments.averaging,
        verbose=True,
    )
    opt.load_state_from_peers()
    epoch = opt.local_epoch
    while True:
        model(inputs).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
        if opt.local_epoch != epoch:
            epoch = opt.local_epoch
            beside.tell(round=epoch, peers=groups.peers)


def options(parser):
    parser.add_argument("--matchmaking", type=float, default=3.0, help="Hivemind's matchmaking_time, s")
    parser.add_argument("--averaging", type=float, default=10.0, help="Hivemind's averaging_timeout, s")


if __name__ == "__main__":
    beside.main(__doc__, "hivemind", peer, options)
