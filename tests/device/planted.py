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
    Bug("new slots while a copy is open", "device.py", "        for number, bucket in enumerate(buckets):\n",
        "        for number, bucket in enumerate(buckets):\n"
        "            self._slots = [torch.empty(len(one), pin_memory=True) for one in self._slots]\n"),
    Bug("a bucket of two devices", "device.py", " or tensor.device != bucket[0][1].device", ""),
    Bug("slots are not pinned", "device.py", "torch.empty(most, pin_memory=pinned)", "torch.empty(most)"),
    Bug("staged gradients are not pinned", "device.py",
        'device="cpu", pin_memory=is_away(values))', 'device="cpu")'),
    Bug("staged gradients are read at once", "device.py", "        synchronize(copied)\n", ""),
    Bug("the engine writes parameters that still cross", "memory.py",
        "        synchronize(self._copied)\n", ""),
    Bug("a wait for the first device alone", "device.py",
        "for device in {tensor.device for tensor in tensors if is_away(tensor)}:",
        "for device in [tensor.device for tensor in tensors if is_away(tensor)][:1]:"),
    Bug("the engine reads parameters that still cross", "memory.py", "view.copy_(entry.tensor)",
        "view.copy_(entry.tensor, non_blocking=True)"),
    Bug("the mean is gone before it has crossed", "optimizers.py",
        "gradient.to(entry.tensor.device, entry.tensor.dtype, copy=True)",
        "gradient.to(entry.tensor.device, entry.tensor.dtype, copy=True, non_blocking=True)"),
    Bug("buffers are read before they have crossed", "memory.py", 'value.to("cpu", torch.float32)',
        'value.to("cpu", torch.float32, non_blocking=True)'),
    Bug("a scratch is used again while it crosses", "local.py", "            tensor.copy_(held)\n",
        "            tensor.copy_(held, non_blocking=True)\n"),
    Bug("a wait for a whole device", "device.py", "        _stream(device).synchronize()",
        "        torch.accelerator.synchronize(device)"),
)  # fmt: skip


def outcome(bug):
    """None: found; else what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "tradewind"
        shutil.copytree(ROOT / "python" / "tradewind", package)
        path = package / "model" / bug.file
        text = path.read_text()
        if text.count(bug.right) != 1:
            return f"{bug.right!r} is {text.count(bug.right)} times in {bug.file}"
        path.write_text(text.replace(bug.right, bug.wrong))
        own = {"TRADEWIND_TESTS": "installed", "PYTHONPATH": folder, "TRADEWIND_SIM_SEEDS": SEEDS}
        command = [*PYTEST, "tests/device/test_laws.py"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True,
                              timeout=LIMIT_S)  # fmt: skip
        lines = (done.stdout + done.stderr).splitlines()
        told = [line for line in lines if line.lstrip(".").startswith(("E  ", "sim: "))]
        if done.returncode == 0:
            return f"not found within seeds {SEEDS}"
        if not told or any("SyntaxError" in line or "ImportError" in line for line in told):
            return (done.stdout + done.stderr)[-2000:]
        print(f"found: {bug.name}\n       {told[0].lstrip('.E ')[:150]}", flush=True)
        return None


def main(names):
    wrong = 0
    for bug in BUGS:
        if names and not any(name in bug.name for name in names):
            continue
        said = outcome(bug)
        if said is not None:
            wrong += 1
            print(f"NOT FOUND: {bug.name}: {said}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
