# SPDX-License-Identifier: Apache-2.0
"""A peer without PyTorch: 64 parameters go to 3."""

import ctypes

from tradewind.engine import abi
from tradewind.engine.peer import Group, HostTensor, ModelShape, Peer, Work

VALUES = 64


class Calls:
    contributes = updates_here = False
    rounds_before = 0
    settings = update = load = save = contribution = lambda *_: None


peer = Peer([], ModelShape((Group(1, 0.1, kind=abi.TW_SGD),), (VALUES,), (), 0.0, "bare"), Calls())
peer.start([HostTensor(0, VALUES, abi.TW_FLOAT32)])
parameters = peer.vector(0)
gradient = (ctypes.c_float * VALUES)()
status = abi.TW_OK
while status != abi.TW_FINISHED:
    status, order = peer.next(100)
    if status == abi.TW_GRADIENT:
        samples = min(order.samples, 32)
        for i in range(VALUES):
            gradient[i] = (parameters[i] - 3 - i / VALUES) * samples
        work = Work(weight=1.0, samples=samples, had=32, loss_sum=0.0)
        peer.done([HostTensor(ctypes.addressof(gradient), VALUES, abi.TW_FLOAT32)], work)
print("done", peer.view()["round"], list(parameters))
peer.close()
