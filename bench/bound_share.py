#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the bound tradewind and others reach on several networks: measured, and drawn.

    bench/bound_share.py measure RESULTS [--turns N]    # as root; minutes; a JSON object a line
    bench/bound_share.py table RESULTS                  # Markdown
    bench/bound_share.py plot RESULTS OUT.svg

Run it on a machine with nothing else to do. A run that the emulated network limited is measured once more,
then left out.
"""
import argparse
import json
import subprocess
import sys
from html import escape
from pathlib import Path

TW = Path(__file__).resolve().parent.parent / "build/tw"
RUNS = [
    "--peers 2 --bytes 256MB --codec fp32 --vs gloo,gloo-ring,openmpi",
    "--wan equal4 --bytes 64MiB --codec fp32 --vs gloo,gloo-ring,openmpi",
    "--wan hetero4 --bytes 64MiB --codec fp32 --vs gloo,gloo-ring,openmpi",
    "--wan hetero4 --bytes 64MiB --codec int8",
]
COLOURS = {"tradewind": "#1f6f8b", "gloo": "#d9822b", "gloo-ring": "#e8b878", "openmpi": "#8a8f98"}
WIDTH, HEIGHT, LEFT, TOP, BAR = 720, 300, 48, 40, 26


def measure(path, turns):
    with open(path, "a", encoding="utf-8") as results:
        for run in RUNS:
            command = f"bench reduce {run} --turns {turns} --json"
            for _ in range(2):
                print("tw", command, flush=True)
                done = subprocess.run([TW, *command.split()], stdout=subprocess.PIPE, text=True, check=False)
                if done.returncode == 0:
                    results.write(json.dumps({"command": "tw " + command, **json.loads(done.stdout)}) + "\n")
                    results.flush()
                    break


def read(path):
    """The last result of each command."""
    results = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        results[result["command"]] = result
    return list(results.values())


def systems(result):
    yield "tradewind", result
    yield from result["vs"].items()


def size(count):
    """Binary units where the number is round in them: 64 MiB is not 67 MB."""
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count / 1e6:.0f} MB"


def table(results):
    print("| network, peers, bytes, codec | system | seconds (fastest to slowest) | of bound | CPU s/GB |")
    print("|---|---|---|---|---|")
    for result in results:
        what = f"{result['topology']}, {result['peers']}, {size(result['bytes'])}, {result['codec']}"
        for name, times in systems(result):
            span = f"{times['fastest_s']:.3f} to {times['slowest_s']:.3f}"
            spread = f"{times['seconds']:.3f} ({span})"
            share, cpu = f"{100 * times['bound_share']:.1f} %", f"{times['cpu_s_per_gb']:.2f}"
            print("|", " | ".join((what, name, spread, share, cpu)), "|")


def text(x, y, words, **style):
    attributes = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}>{escape(words)}</text>'


def plot(results, path):
    floor = HEIGHT - 40
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'
             f' viewBox="0 0 {WIDTH} {HEIGHT}">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for share in (0, 25, 50, 75, 100):
        y = floor - (floor - TOP) * share / 100
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y + 4, f"{share} %", text_anchor="end", fill="#555"))
    group = (WIDTH - LEFT - 10) / len(results)
    for number, result in enumerate(results):
        bars = list(systems(result))
        x = LEFT + group * (number + 0.5) - BAR * len(bars) / 2
        for name, times in bars:
            height = (floor - TOP) * min(1, times["bound_share"])
            parts.append(f'<rect x="{x:.0f}" y="{floor - height:.0f}" width="{BAR - 4}"'
                         f' height="{height:.0f}" fill="{COLOURS[name]}"/>')
            parts.append(text(x + BAR / 2 - 2, floor - height - 4, f"{100 * times['bound_share']:.0f}",
                              text_anchor="middle", fill="#333", font_size=11))
            x += BAR
        middle = LEFT + group * (number + 0.5)
        lines = (f"{result['topology']}, {result['peers']} peers",
                 f"{size(result['bytes'])}, {result['codec']}")
        for line, words in enumerate(lines):
            parts.append(text(middle, floor + 16 + 15 * line, words, text_anchor="middle", fill="#333"))
    x = LEFT
    for name in dict.fromkeys(name for result in results for name, _ in systems(result)):
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{COLOURS[name]}"/>')
        parts.append(text(x + 17, 22, name, fill="#333"))
        x += 100
    parts.append("</svg>")
    Path(path).write_text("\n".join(parts) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["measure", "table", "plot"])
    parser.add_argument("results")
    parser.add_argument("svg", nargs="?", default="docs/bound_share.svg")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.results, options.turns)
    elif options.what == "table":
        table(read(options.results))
    else:
        plot(read(options.results), options.svg)


if __name__ == "__main__":
    sys.exit(main())
