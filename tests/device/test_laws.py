# SPDX-License-Identifier: Apache-2.0
"""The laws of a loop on a device, over many seeds: TRADEWIND_SIM_SEEDS="1..1000" or one of them, "17"."""

import os

import pytest
import simulated
import torch
from stories import Story, bucket_of, told

_FIRST, _, _LAST = os.environ.get("TRADEWIND_SIM_SEEDS", "1..200").partition("..")
SEEDS = range(int(_FIRST), int(_LAST or _FIRST) + 1)
_PARTS = 8

_by_the_cpu = {}


def difference(mine, theirs):
    """The first one; None: there is none."""
    assert len(mine) == len(theirs)
    found = (f"value {at}: {one} instead of {other}" for at, (one, other) in enumerate(zip(mine, theirs))
             if not torch.equal(one, other))  # fmt: skip
    return next(found, None)


@pytest.mark.parametrize("part", range(_PARTS))
def test_a_loop_on_the_device_ends_as_that_of_the_cpu_bit_for_bit(part, fake_run, monkeypatch):
    for seed in SEEDS[part::_PARTS]:
        story = Story.of(seed)
        bucket_of(story, monkeypatch)
        if story not in _by_the_cpu:
            _by_the_cpu[story] = told(story, "cpu", fake_run)
        simulated.begin(seed)
        found = told(story, "sim", fake_run)
        differs = difference(found, _by_the_cpu[story])
        assert differs is None, f"seed {seed}: {story}: {differs}"
        counts = simulated.counts()
        assert counts["device_waits"] == 0, f"seed {seed} waited for a whole device"
        assert counts["late_to_pageable"] == 0, f"seed {seed}: copies to memory that is not pinned"
