#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planted.py [NAME...]: plants bugs in a copy of the package, one at a time, and sees the laws find each
(make test-device). A bug is a wait, an event, a pin or a copy that is missing; its text has to be there once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SEEDS = "1..80"
LIMIT_S = 1500
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-s", "-p", "no:cacheprovider")


class Bug(NamedTuple):
    name: str
    file: str
    right: str
    wrong: str


BUGS = (
    Bug("a bucket is read before its event", "device.py",
        "            copied.synchronize()\n", "            pass\n"),
    Bug("an event of the current device", "device.py", "    return places.current_stream(device)",
        "    return places.current_stream()"),
    Bug("one slot for all buckets", "device.py", "self._slots[number % 2]", "self._slots[0]"),
    Bug("three buckets under way in two slots", "device.py", "if len(under_way) > 1:",
        "if len(under_way) > 2:"),
    Bug("an event that is recorded before the last copy", "device.py",
        "            part.copy_(tensor.detach(), non_blocking=is_away(tensor))\n",
        "            early = _stream(tensor.device).record_event() if is_away(tensor) else None\n"
        "            part.copy_(tensor.detach(), non_blocking=is_away(tensor))\n"
        "            if entry is bucket[-1][0]:\n"
        "                return [*parts, (entry, part)], early\n"),
    Bug("a bucket of two devices", "device.py", " or tensor.device != bucket[0][1].device", ""),
    Bug("slots are not pinned", "device.py", "host_values(most, pinned)", "host_values(most)"),
    Bug("staged gradients are not pinned", "device.py",
        'device="cpu", pin_memory=is_away(values))', 'device="cpu")'),
    Bug("staged gradients are read at once", "device.py", "        synchronize(copied)\n", ""),
    Bug("the engine writes parameters that still cross", "memory.py",
        "        synchronize(self._copied)\n", ""),
    Bug("a wait for the first device alone", "device.py",
        "for device in {tensor.device for tensor in tensors if is_away(tensor)}:",
        "for device in [tensor.device for tensor in tensors if is_away(tensor)][:1]:"),
    Bug("the engine reads parameters of torch's optimizer that still cross", "memory.py",
        "view.copy_(entry.tensor)", "view.copy_(entry.tensor, non_blocking=True)"),
    Bug("the engine reads parameters that still cross", "on_device.py", "view_of(flat, entry).copy_(held)",
        "view_of(flat, entry).copy_(held, non_blocking=True)"),
    Bug("the engine reads the state of an optimizer that still crosses", "on_device.py",
        "part.buffers if with_state else (), part.state):\n                buffer.copy_(one)",
        "part.buffers if with_state else (), part.state):\n"
        "                buffer.copy_(one, non_blocking=True)"),
    Bug("the engine writes a mean that still crosses", "on_device.py",
        "        synchronize([part.held[0] for part in self._parts])\n", ""),
    Bug("a wait for the first device's part of the mean alone", "on_device.py",
        "[part.held[0] for part in self._parts]", "[self._parts[0].held[0]]"),
    Bug("the engine writes a mean that still crosses to torch's optimizer", "foreign.py",
        "            synchronize([entry.tensor for entry in self._entries])\n", ""),
    Bug("buffers are read before they have crossed", "memory.py", 'value.to("cpu", torch.float32)',
        'value.to("cpu", torch.float32, non_blocking=True)'),
    Bug("a wait for a whole device", "device.py", "        _stream(device).synchronize()",
        "        torch.accelerator.synchronize(device)"),
)  # fmt: skip


NOTHING = Bug("nothing", "device.py", "", "")


def outcome(bug):
    """What the laws say of it. RuntimeError: it is not planted, or they cannot be asked."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "tradewind"
        shutil.copytree(ROOT / "python" / "tradewind", package)
        path = package / "model" / bug.file
        text = path.read_text()
        if bug is not NOTHING and text.count(bug.right) != 1:
            raise RuntimeError(f"{bug.right!r} is {text.count(bug.right)} times in {bug.file}")
        path.write_text(text if bug is NOTHING else text.replace(bug.right, bug.wrong))
        own = {"TRADEWIND_TESTS": "installed", "PYTHONPATH": folder, "TRADEWIND_SIM_SEEDS": SEEDS}
        command = [*PYTEST, "tests/device/test_laws.py"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True,
                              timeout=LIMIT_S)  # fmt: skip
    if done.returncode == 0:
        return None
    lines = (done.stdout + done.stderr).splitlines()
    told = [line for line in lines if line.lstrip(".").startswith(("E  ", "sim: "))]
    if not told or any("SyntaxError" in line or "ImportError" in line for line in told):
        raise RuntimeError((done.stdout + done.stderr)[-2000:])
    return told[0].lstrip(".E ")[:150]


def main(names):
    # Laws that something else breaks would find every bug.
    broken = outcome(NOTHING)
    if broken is not None:
        print(f"without a bug: {broken}")
        return 1
    wrong = 0
    for bug in BUGS:
        if names and not any(name in bug.name for name in names):
            continue
        try:
            told = outcome(bug)
        except RuntimeError as error:
            told, why = None, str(error)
        else:
            why = f"not within seeds {SEEDS}"
        wrong += told is None
        line = f"NOT FOUND: {bug.name}: {why}" if told is None else f"found: {bug.name}\n       {told}"
        print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
