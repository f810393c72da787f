#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce on loopback: tradewind against Gloo and OpenMPI, taking turns in one run.

    bench/reduce_versus.py [--peers 2,3,4] [--bytes N] [--turns N] [--repetitions N] [--json]

Every turn starts each system anew; medians are over all repetitions of all turns. CPU is that of all peers
for each GB that an fp32 all-reduce has to move, 2 (peers - 1) x bytes, whatever the codec.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent.parent / "build/bench"
# --bind-to none: with more peers than cores; yield: ranks that wait leave the core to others.
MPIRUN = ("mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl tcp,self"
          " --mca btl_tcp_if_include lo").split()


def commands(peers):
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    count = ["--peers", str(peers)]
    yield "tradewind fp32", [BENCH / "bench_reduce", *count]
    yield "gloo default", [BENCH / "bench_gloo_reduce", *count]
    yield "gloo ring_chunked", [BENCH / "bench_gloo_reduce", *count, "--algorithm", "ring_chunked"]
    yield "openmpi", [*MPIRUN, *as_root, "-n", str(peers), BENCH / "bench_mpi_reduce"]
    yield "tradewind fp16", [BENCH / "bench_reduce", *count, "--codec", "fp16"]


def measure(peers, options):
    size = ["--bytes", str(options.bytes), "--repetitions", str(options.repetitions)]
    times = {name: ([], []) for name, _ in commands(peers)}
    for _ in range(options.turns):
        for name, command in commands(peers):
            done = subprocess.run([*command, *size], stdout=subprocess.PIPE, check=True, text=True)
            result = json.loads(done.stdout)
            times[name][0].extend(result["wall_s"])
            times[name][1].extend(result["cpu_s"])
    gigabytes = 2 * (peers - 1) * options.bytes / 1e9
    reference = median(times["tradewind fp32"][0])
    for name, (wall, cpu) in times.items():
        yield {"peers": peers, "system": name, "wall_s": median(wall), "fastest_s": min(wall),
               "cpu_s_per_gb": median(cpu) / gigabytes, "tradewind_is_faster_by": median(wall) / reference}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", default="2,3,4")
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        load = os.getloadavg()[0]
        turns = f"{options.turns} turns of {options.repetitions}"
        print(f"{options.bytes} bytes, {turns}; load before: {load:.1f}")
        print("peers  system              median s  fastest s  CPU s/GB  x tradewind's time")
    for peers in (int(n) for n in options.peers.split(",")):
        for row in measure(peers, options):
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                print(f"{row['peers']:5}  {row['system']:18}  {row['wall_s']:8.3f}  {row['fastest_s']:9.3f}"
                      f"  {row['cpu_s_per_gb']:8.2f}  {row['tradewind_is_faster_by']:6.2f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, subprocess.CalledProcessError) as problem:
        sys.exit(f"{problem}; built with `make bench`?")
