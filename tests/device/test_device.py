# SPDX-License-Identifier: Apache-2.0
"""What the simulated device does to a program that does not wait, and what it leaves alone."""

import subprocess
import sys

import pytest
import simulated
import torch
from conftest import HERE
from simulated import Order

SIM = torch.device("sim")


def stopped(program):
    """Runs it in a process; what it said when it was stopped."""
    whole = f"import torch, simulated\n{program.strip()}"
    command = [sys.executable, "-X", "faulthandler", "-c", whole]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert done.returncode < 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("order", list(Order))
def test_kernels_and_blocking_copies_give_what_the_cpu_gives(order):
    simulated.begin(7, order)
    torch.manual_seed(1)
    weights, inputs = torch.randn(5, 4), torch.randn(3, 4)
    there, found = weights.to(SIM).requires_grad_(), weights.clone().requires_grad_()
    for weight, given in ((there, inputs.to(SIM)), (found, inputs)):
        torch.nn.functional.linear(given, weight).tanh().pow(2).mean().backward()
    assert torch.equal(there.grad.cpu(), found.grad)
    assert there.grad.sum().item() == found.grad.sum().item()


def test_a_host_that_touches_device_memory_is_stopped():
    found = stopped('import ctypes; ctypes.string_at(torch.ones(3, device="sim").data_ptr(), 4)')
    assert "the host touches memory of the device" in found and 'File "<string>", line 2' in found


def test_memory_is_not_a_number_until_somebody_writes_it():
    simulated.begin(1, Order.LATE)
    assert torch.empty(3, device=SIM).isnan().all().item()


def test_a_copy_to_the_host_is_there_when_its_event_was_waited_for():
    simulated.begin(1, Order.LATE)
    slot = torch.zeros(4, pin_memory=True)
    slot.copy_(torch.ones(4, device=SIM), non_blocking=True)
    copied = torch.Event(SIM)
    copied.record()
    assert slot.isnan().all()
    copied.synchronize()
    assert torch.equal(slot, torch.ones(4))


def test_another_stream_sees_what_it_waited_for():
    simulated.begin(1, Order.NEW_STREAMS_FIRST)
    side = torch.Stream(SIM)
    values = torch.ones(4, device=SIM)
    with side:
        early = values + 1
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        late = values + 1
    side.synchronize()
    assert early.cpu().isnan().all() and torch.equal(late.cpu(), torch.full((4,), 2.0))


@pytest.mark.parametrize("recorded", [False, True])
def test_freed_memory_is_another_streams_no_more(recorded):
    simulated.begin(1, Order.OLD_STREAMS_FIRST)
    side, values = torch.Stream(SIM), torch.ones(4, device=SIM)
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        found = values + 1
    if recorded:
        values.record_stream(side)
    del values
    side.synchronize()
    assert bool(found.cpu().isnan().all()) != recorded


def test_pinned_memory_that_is_freed_under_a_copy_stops_the_program():
    found = stopped("""
simulated.begin(1, simulated.Order.LATE)
slot = torch.ones(4, pin_memory=True)
there = slot.to("sim", non_blocking=True)
del slot
""")
    assert "pinned memory is freed at <string>:5, and the copy begun at <string>:4 is open" in found


@pytest.mark.parametrize("order", ["LATE", "AT_ONCE"])
def test_a_source_that_is_rewritten_under_a_copy_stops_the_program(order):
    found = stopped(f"""
simulated.begin(1, simulated.Order.{order})
slot = torch.ones(4, pin_memory=True)
there = slot.to("sim", non_blocking=True)
slot.fill_(2)
there.cpu()
""")
    assert "host memory was changed while the copy begun at <string>:4 is open" in found


def test_two_copies_to_the_same_slot_stop_the_program():
    found = stopped("""
simulated.begin(1, simulated.Order.LATE)
slot, values = torch.ones(4, pin_memory=True), torch.ones(4, device="sim")
slot.copy_(values, non_blocking=True)
with torch.Stream("sim"):
    slot.copy_(values, non_blocking=True)
""")
    assert "a copy begun at <string>:6 writes host memory of the copy begun at <string>:4" in found


def test_two_devices_order_their_streams_by_events_alone():
    simulated.begin(1, Order.LATE)
    first, second = torch.ones(4, device="sim:0"), torch.ones(4, device="sim:1")
    assert torch.equal((first.to("sim:1") + second).cpu(), torch.full((4,), 2.0))
    assert simulated.counts()["device_waits"] == 0


def test_copies_cost_time_and_one_bus_carries_them():
    simulated.begin(1, Order.LATE)
    values = torch.ones(25_000_000, device=SIM)
    slots = [torch.empty(25_000_000, pin_memory=True) for _ in range(2)]
    began = simulated.host_seconds()
    slots[0].copy_(values, non_blocking=True)
    side = torch.Stream(SIM)
    with side:
        slots[1].copy_(values, non_blocking=True)
    assert simulated.host_seconds() - began < 1e-4
    torch.accelerator.current_stream().synchronize()
    assert simulated.host_seconds() - began == pytest.approx(4e-3, rel=0.05)
    side.synchronize()
    assert simulated.host_seconds() - began == pytest.approx(8e-3, rel=0.05)
