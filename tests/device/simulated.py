# SPDX-License-Identifier: Apache-2.0
"""The simulated device for Python: torch.device("sim"), of which a process has two. TRADEWIND_SIM names its
library (build.py makes it).
"""

import importlib.util
import os
import types
from enum import IntEnum

import torch

DEVICES = 2


def _library():
    spec = importlib.util.spec_from_file_location("tradewind_sim", os.environ["TRADEWIND_SIM"])
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


_sim = _library()
spend, counts, host_seconds = _sim.spend, _sim.counts, _sim.host_seconds


class Order(IntEnum):
    """When jobs run that nobody waits for."""

    AT_ONCE = 0
    LATE = 1
    RANDOM = 2
    NEW_STREAMS_FIRST = 3
    OLD_STREAMS_FIRST = 4


def begin(seed=0, order=None, real_host=False, checks=True):
    """Begins a story: clocks and counts at 0. order: one that the seed says. real_host: the host's own time
    counts, else only its waits and launches. checks: sources of copies are watched, which is slow.
    """
    order = Order(seed % len(Order)) if order is None else order
    _sim.begin(seed, int(order), real_host, checks)


def _module():
    """What torch asks a device's module for."""
    found = types.ModuleType("torch.sim")
    found.device_count = lambda: DEVICES
    found.is_available = lambda: True
    found.is_initialized = lambda: True
    found.current_device = _sim.current_device
    found.set_device = lambda device: _sim.set_device(torch.device(device).index or 0)
    found._is_in_bad_fork = lambda: False
    found.manual_seed_all = lambda seed: None
    return found


torch.utils.rename_privateuse1_backend("sim")
torch._register_device_module("sim", _module())
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
