#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers of tradewind and replicas of torchft: the same model and batch, in turns, on this machine (as root).

    build/integrations/3.11/bin/python bench/against_torchft.py --plain --repeats 3

bench/against.txt says what to install beside `make test-integrations`. Written is what against_hivemind.py
writes. torchft does not encrypt: so --plain. Its lighthouse, which all need, runs in the first replica and
is never struck. Its settings are those of its own example. The replicas average by Manager.allreduce:
torchft's DistributedDataParallel ended with an AssertionError after a timeout of Gloo.
"""

import datetime

import beside


def lighthouse():
    """The server that all replicas ask who takes part; its address."""
    from torchft.coordination import LighthouseServer

    return LighthouseServer(bind="[::]:0", min_replicas=1, join_timeout_ms=10000, quorum_tick_ms=100)


def manager_of(arguments, model, optimizer, timeout):
    """The manager of this replica, of one process."""
    import torch.distributed as dist
    import torchft

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["opt"])

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=timeout),
        min_replica_size=1,
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "opt": optimizer.state_dict()},
        replica_id=f"replica_{arguments.number}",
        timeout=timeout,
        store_addr="127.0.0.1",
        store_port=store.port,
        rank=0,
        world_size=1,
        lighthouse_addr=arguments.address,
        hostname="127.0.0.1",
    )
    return manager, store


def peer(arguments):
    """Steps without end; tells rounds."""
    import torch
    import torchft

    if not arguments.address:
        server = lighthouse()
        arguments.address = f"http://127.0.0.1:{server.address().rsplit(':', 1)[1]}"
        beside.tell(address=arguments.address)
    model, inputs = beside.make_model(arguments.model)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-4)
    manager, store = manager_of(arguments, model, inner, datetime.timedelta(seconds=arguments.timeout))
    opt = torchft.Optimizer(manager, inner)
    parameters = list(model.parameters())
    microbatches = beside.MODELS[arguments.model][2]
    while True:
        opt.zero_grad()
        for _ in range(microbatches):
            (model(inputs).pow(2).mean() / microbatches).backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in parameters])
        manager.allreduce(gradient).wait()
        for parameter, mean in zip(parameters, gradient.split([p.numel() for p in parameters])):
            parameter.grad.copy_(mean.view_as(parameter))
        before = manager.current_step()
        opt.step()
        if manager.current_step() != before:
            beside.tell(round=manager.current_step(), peers=manager.num_participants())


def options(parser):
    parser.add_argument("--timeout", type=float, default=30.0, help="torchft's timeout, s")


if __name__ == "__main__":
    beside.main(__doc__, "torchft", peer, options)
