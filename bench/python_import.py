#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `import tradewind` adds to `import torch`: new processes that take turns.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_import.py --repeats 7

Written: seconds of both (medians) and their difference; the exit code is 1 when that is above the limit. The
library is loaded when a run starts, not by the import.
"""

import argparse
import statistics
import subprocess
import sys

KINDS = {"import torch": "import torch", "and tradewind": "import torch, tradewind"}


def seconds(statement):
    """A statement in a new process, from its first line on."""
    code = f"import time; began = time.monotonic(); {statement}; print(time.monotonic() - began)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(found.stderr)
    return float(found.stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit", type=float, default=0.15, help="seconds that it may add")
    arguments = parser.parse_args()
    for statement in KINDS.values():
        seconds(statement)  # its files are in memory from now on
    found = {kind: [] for kind in KINDS}
    for _ in range(arguments.repeats):
        for kind, statement in KINDS.items():
            found[kind].append(seconds(statement))
    torch_s, both_s = (statistics.median(found[kind]) for kind in KINDS)
    for kind in KINDS:
        print(f"{kind:14} {statistics.median(found[kind]):.3f} s")
    print(f"added          {both_s - torch_s:.3f} s, limit {arguments.limit:.3f} s")
    raise SystemExit(both_s - torch_s > arguments.limit)


if __name__ == "__main__":
    main()
