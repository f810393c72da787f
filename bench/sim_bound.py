#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of what links allow a round's averaging reaches in the simulator, by links, codec and mode.

    bench/sim_bound.py                            # a minute; TRADEWIND_PROGRAM=...: another build of tw

Time is virtual, and computing takes none: the share that is lacking is the protocol's alone. 30.8 M values;
the median time between two commits, beside what the bytes of contributions and of the mean take (equal shares
of both, as for links that are all alike; for others it is less than what can be had).
"""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

TW = os.environ.get("TRADEWIND_PROGRAM", str(Path(__file__).resolve().parents[1] / "build/tw"))
VALUES, SEGMENT, FRAGMENTS, ROUNDS, SKIPPED = 30_800_000, 64, 4, 24, 8
SCALE = 1000  # a value of the simulated vector stands for so many
BITS = {"fp32": 32, "fp16": 16, "int8": 8.25, "int4": 4.25}  # with the scales of segments of 64 values
MEAN = {"int4": "int8"}
EQUAL, UNEVEN = [50] * 4, [100, 50, 50, 25]  # Mbit/s
CASES = [
    (EQUAL, "int4", "streaming"),
    (EQUAL, "int4", "local"),
    (EQUAL, "int8", "sync"),
    (EQUAL, "fp32", "sync"),
    (UNEVEN, "fp32", "sync"),
    (UNEVEN, "int8", "sync"),
    ([50] * 2, "int4", "streaming"),
    ([50] * 8, "int4", "streaming"),
]


def scenario(rates, codec, mode):
    sites = "".join(
        f"  - {{name: s{i}, peers: 1, samples_per_s: 5000, up_mbit_s: {rate}, down_mbit_s: {rate}}}\n"
        for i, rate in enumerate(rates)
    )
    return (
        f"sites:\n{sites}"
        "links:\n  - {latency_ms: 0.5, jitter: 0, mbit_s: 10000, window_kib: 2048}\n"
        "rare_branches: false\nspan_s: 1\ncalm_limit_s: 1000000\n"
        f"workload: {{modes: [{mode}], codecs: [{codec}], averaging: [flat], parameters: {VALUES // SCALE},"
        f" bulk_scale: {SCALE}, segment_length: {SEGMENT}, fragments: {FRAGMENTS}, microbatch: 1,"
        f" microbatches: {4 * len(rates)}, rounds: {ROUNDS}}}\n"
    )


def round_s(rates, codec, mode):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "links.yaml").write_text(scenario(rates, codec, mode))
        subprocess.run([TW, "sim", folder / "links.yaml", "--seed", "1", "--trace", "--out", folder / "out"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        first = {}
        for log in (folder / "out").glob("*.jsonl"):
            for event in map(json.loads, log.read_text().splitlines()):
                if event["phase"] == "commit":
                    first[event["round"]] = min(event["t"], first.get(event["round"], event["t"]))
    times = [first[number] for number in sorted(first)][SKIPPED:]
    return statistics.median(later - sooner for sooner, later in zip(times, times[1:]))


def bound_s(rates, codec, mode):
    values = VALUES / (FRAGMENTS if mode == "streaming" else 1)
    both = BITS[codec] + BITS[MEAN.get(codec, codec)]
    slowest = max(1 / min(rates), 2 * (len(rates) - 1) / sum(rates))
    return both / 2 * values * slowest / 1e6


def main():
    print("| links, Mbit/s | codec | mode | a round, s | bound, s | share |\n|---|---|---|---|---|---|")
    for rates, codec, mode in CASES:
        took, bound = round_s(rates, codec, mode), bound_s(rates, codec, mode)
        links = f"{len(rates)} x {rates[0]}" if len(set(rates)) == 1 else ", ".join(map(str, rates))
        print(f"| {links} | {codec} | {mode} | {took:.2f} | {bound:.2f} | {bound / took:.3f} |", flush=True)


if __name__ == "__main__":
    main()
