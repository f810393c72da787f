#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does tw report name the right culprit? Planted faults on an emulated network (as root, at least 2 cores).

    python3 bench/blame.py                        # 10 of each kind
    python3 bench/blame.py --kind link --seed 7   # one

Each time four peers (tests/toy, TLS) on hosts of a tw-wan bed do some rounds, and one thing is slow: how
much, and at which peer, is the seed's. right: the first of `delays` in tw report --json is that cause at that
peer. Per cents: of the rounds' time that it costs by tw report. The exit code is 1 if any is not first.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TW = os.environ.get("TRADEWIND_PROGRAM", str(ROOT / "build/tw"))
WAN, TOY = ROOT / "build/tw-wan", ROOT / "build/tests/toy"
NAMES = "abcd"
MBIT_S, RTT = 200, "2ms"
BATCH, TARGET, ROUNDS = 32, 2048, 14
VALUES, VALUES_OF_LINK = 400_000, 2_000_000
# Peers mostly sleep, as on machines of their own: they share the cores of this one.
WORK_MS, BURN_MS = 10, 1
WORK_MS_OF_CORE, BURN_MS_OF_CORE = 20, 4
LIMIT_S = 120
NICE = -10  # other programs of this machine are nobody's fault
NEVER = "none"


def compute(seed):
    return {"work_ms": WORK_MS * seed.choice((2, 2.5, 3, 4))}


def loader(seed):
    return {"data_ms": seed.choice((8, 12, 16, 24))}


def disk(seed):
    return {"write_ms": seed.choice((15, 25, 40, 60))}


def core(seed):
    return {"hogs": seed.choice((2, 3)), "hog_nice": seed.choice((-13, -14, -15))}


def link(seed):
    # Of the whole host, or to one other: shares go around such a pair, so only a very slow one costs much.
    to = seed.choice(("all", "all", "one"))
    return {"mbit_s": seed.choice((8, 10, 14) if to == "one" else (10, 20, 30)), "to": to}


KINDS = {
    "compute": compute,
    "link": link,
    "loader": loader,
    "disk": disk,
    "core": core,
    NEVER: lambda seed: {},
}


def bed_file(folder):
    sites = "".join(f"  - {{name: {name}, nic: {MBIT_S}mbit}}\n" for name in NAMES)
    (folder / "bed.yaml").write_text(f"about: four hosts of {MBIT_S} Mbit/s\nmtu: 9000\nsites:\n{sites}"
                                     f"links:\n  - rtt: {RTT}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", folder / "slow_disk.so",
                    ROOT / "bench/slow_disk.c", "-ldl"], check=True)
    return folder / "bed.yaml"


def wan(bed, *words):
    done = subprocess.run([WAN, bed, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def start(bed, folder, number, fault, peer, addresses):
    odd = fault if number == peer else {}
    environment = {**os.environ}
    if "write_ms" in odd:
        environment |= {"LD_PRELOAD": str(bed.parent / "slow_disk.so"), "SLOW_DISK_MS": str(odd["write_ms"])}
    command = [TOY, "--batch", BATCH, "--values", VALUES_OF_LINK if "mbit_s" in fault else VALUES,
               "--burn-ms", BURN_MS_OF_CORE if "hogs" in fault else BURN_MS,
               "--work-ms", int(odd.get("work_ms", WORK_MS_OF_CORE if "hogs" in fault else WORK_MS)),
               "--data-ms", odd.get("data_ms", 0),
               f"run_file={folder}/run.yaml", f"run={folder}/token", f"id={number}", f"out={folder}/logs",
               f"listen={addresses[NAMES[number - 1]]}:7000"]
    first = number == 1
    command.append(f"wait_for={len(NAMES)}" if first else f"join={addresses['a']}:7000")
    # A machine of its own, whose processor is busy; the other peers share a core that has time for them all.
    alone = ["taskset", "-c", "1" if odd else "0"] if "hogs" in fault else []
    words = [WAN, bed, "exec", NAMES[number - 1], *alone, *command]
    with open(folder / f"peer-{number}.txt", "w") as output:
        return subprocess.Popen([str(word) for word in words], env=environment, stdout=output, stderr=output,
                                preexec_fn=lambda: os.nice(NICE))


def hogs_of(fault):
    nice = lambda: os.nice(fault["hog_nice"])  # noqa: E731
    spin = ["taskset", "-c", "1", sys.executable, "-c", "while True: pass"]
    return [subprocess.Popen(spin, preexec_fn=nice) for _ in range(fault.get("hogs", 0))]


def slow_links(fault, peer, other):
    if "mbit_s" not in fault:
        return []
    here = NAMES[peer - 1]
    return [f"{here}:{NAMES[other - 1]}"] if fault["to"] == "one" else [f"{here}:all"]


def delays_of(bed, addresses, fault, peer, other):
    """`delays` of the report of a run with this fault."""
    links = slow_links(fault, peer, other)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.yaml").write_text(
            f"training: {{target_batch_size: {TARGET}, rounds: {ROUNDS}, codec: fp16}}\n"
        )
        subprocess.run([TW, "init", folder / "token"], check=True, stdout=subprocess.DEVNULL)
        for ends in links:
            wan(bed, "set", ends, "bandwidth", f"{fault['mbit_s']}mbit")
        hogs, peers = hogs_of(fault), []
        try:
            peers = [start(bed, folder, n, fault, peer, addresses) for n in range(1, len(NAMES) + 1)]
            codes = [process.wait(LIMIT_S) for process in peers]
            if any(codes):
                raise SystemExit((folder / f"peer-{codes.index(max(codes)) + 1}.txt").read_text())
        finally:
            for process in [*hogs, *(p for p in peers if p.poll() is None)]:
                process.send_signal(signal.SIGKILL)
                process.wait()
            for ends in links:
                wan(bed, "set", ends, "bandwidth", f"{MBIT_S * 5}mbit")
        done = subprocess.run([TW, "report", folder / "logs", "--json"], check=True, capture_output=True)
        return json.loads(done.stdout)["delays"]


def is_right(first, kind, fault, peer, other):
    if kind == NEVER:
        return first is None or first["since_s"] is None
    if first is None or first["cause"] != kind:
        return False
    ends = {first["peer"], first["to"] or first["peer"]}
    return ends == {peer, other} if fault.get("to") == "one" else peer in ends


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=[kind for kind in KINDS if kind != NEVER])
    parser.add_argument("--times", type=int, default=10, help="of each kind")
    parser.add_argument("--seed", type=int, help="this one alone")
    arguments = parser.parse_args()
    seeds = [arguments.seed] if arguments.seed is not None else range(arguments.times)
    right = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        bed = bed_file(Path(name))
        wan(bed, "up")
        try:
            hosts = json.loads(wan(bed, "show"))["hosts"]
            addresses = {host["name"]: host["address"] for host in hosts}
            for kind in arguments.kind:
                for number in seeds:
                    seed = random.Random(f"{kind} {number}")
                    fault = KINDS[kind](seed)
                    peer, other = seed.sample(range(1, len(NAMES) + 1), 2)
                    delays = delays_of(bed, addresses, fault, peer, other)
                    first = delays[0] if delays else None
                    good = is_right(first, kind, fault, peer, other)
                    right[kind] += good
                    told = [f"{one['what']} {100 * one['share']:.0f} %" for one in delays[:3]]
                    who = f"peer {peer}" + (f" and {other}" if fault.get("to") == "one" else "")
                    verdict = "right" if good else "WRONG"
                    print(f"{verdict}  {kind} {number} at {who} {fault}: {'; '.join(told)}", flush=True)
        finally:
            wan(bed, "down")
    total = len(arguments.kind) * len(seeds)
    kinds = ", ".join(f"{kind} {right[kind]}" for kind in arguments.kind)
    print(f"{sum(right.values())} of {total}: {kinds}")
    return sum(right.values()) < total


if __name__ == "__main__":
    sys.exit(main())
