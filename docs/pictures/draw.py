#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws round.svg (docs/protocol.md) and, by the table of ARCHITECTURE.md, rooms.svg.

    docs/pictures/draw.py            # writes both
    docs/pictures/draw.py --check    # fails where a file is not what this script draws
"""
import re
import sys
import textwrap
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INK, SOFT, FAINT = "#1f2933", "#52606d", "#9aa5b1"
CONTROL, BULK, WORK = "#1d4ed8", "#b45309", "#d9f0e3"
SPDX = "<!-- SPDX-License-Identifier: Apache-2.0 -->"


class Svg:
    def __init__(self, width, height):
        self.width, self.height, self.parts, self.colors = width, height, [], set()

    def rect(self, x, y, width, height, fill, stroke=FAINT):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" '
                          f'fill="{fill}" stroke="{stroke}"/>')

    def text(self, x, y, text, size=12, color=INK, anchor="middle", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{color}" '
                          f'text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, color=FAINT, width=1, dashes=""):
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
                          f'stroke-width="{width:g}"{dashed}/>')

    def arrow(self, x1, y1, x2, y2, color=CONTROL, width=1.5):
        self.colors.add(color)
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
                          f'stroke-width="{width:g}" marker-end="url(#to{color[1:]})"/>')

    def __str__(self):
        heads = "".join(
            f'<marker id="to{color[1:]}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{color}"/></marker>'
            for color in sorted(self.colors))
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" font-family="Helvetica, Arial, sans-serif">',
            SPDX, f"<defs>{heads}</defs>",
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>',
            *self.parts, "</svg>", ""])


# ---- a round

LANES = {"peer 1, the leader": 330, "peer 2": 580, "peer 3": 830}
LEADER, TWO, THREE = LANES.values()


class Round:
    def __init__(self):
        self.svg, self.y = Svg(960, 812), 40
        self.begin = len(self.svg.parts)
        for name, x in LANES.items():
            self.svg.rect(x - 75, 12, 150, 28, "#f5f7fa")
            self.svg.text(x, 31, name, 13, bold=True)

    def step(self, number, name, *notes):
        """A new step: its name and what it means stand at the left."""
        self.y += 22
        self.svg.line(20, self.y - 12, 940, self.y - 12, "#e4e7eb")
        self.svg.text(20, self.y + 10, f"{number}  {name}", 14, anchor="start", bold=True)
        for at, note in enumerate(notes):
            self.svg.text(20, self.y + 28 + 15 * at, note, 11, SOFT, "start")

    def sends(self, arrows, label, color=CONTROL):
        """Arrows (from, to) that leave together; the label stands above the first one."""
        self.y += 22
        x1, x2 = arrows[0]
        self.svg.text((x1 + x2) / 2, self.y - 5, label, 11, color)
        for x1, x2 in arrows:
            toward = 1 if x2 > x1 else -1
            self.svg.arrow(x1 + 8 * toward, self.y, x2 - 8 * toward, self.y, color)
            self.y += 14

    def works(self, label):
        self.y += 8
        for x in LANES.values():
            self.svg.rect(x - 85, self.y, 170, 24, WORK)
            self.svg.text(x, self.y + 16, label, 11)
        self.y += 30

    def __str__(self):
        for x in LANES.values():  # beneath all else
            self.svg.parts.insert(self.begin, f'<line x1="{x}" y1="40" x2="{x}" y2="{self.y + 6:g}" '
                                  f'stroke="{FAINT}" stroke-dasharray="3 4"/>')
        legend = "blue: control messages; brown: segments of the gradient, over data streams"
        self.svg.text(20, self.y + 30, legend, 11, SOFT, "start")
        self.svg.height = int(self.y + 44)
        return str(self.svg)


def draw_round():
    to_leader, from_leader = [(TWO, LEADER), (THREE, LEADER)], [(LEADER, TWO), (LEADER, THREE)]
    everybody = [(LEADER, TWO), (LEADER, THREE), (TWO, THREE), (TWO, LEADER), (THREE, TWO), (THREE, LEADER)]
    picture = Round()
    picture.step(1, "Progress", "digest of the parameters,", "speed, wants work")
    picture.sends(to_leader, "Progress")
    picture.step(2, "Leases", "microbatches, in", "shrinking portions")
    picture.sends(from_leader, "Lease")
    picture.works("add gradients to a slot")
    picture.sends(to_leader, "Progress: done")
    picture.step(3, "Call", "contributions, shares,", "participants")
    picture.sends(from_leader, "Plan")
    picture.step(4, "Reduce-scatter", "each contribution, segment", "by segment, to the owner",
                 "of the segment")
    picture.sends(everybody, "Scatter", BULK)
    picture.works("add, encode the mean once")
    picture.step(4, "All-gather", "each owner's part of the", "mean, to every peer")
    picture.sends(everybody, "Gather", BULK)
    picture.step(5, "Vote and commit", "digest of the mean;", "a majority decides")
    picture.sends(to_leader, "Vote")
    picture.sends(from_leader, "Commit: the record")
    picture.step(6, "Apply")
    picture.works("the same update")
    return str(picture)


# ---- the rooms

ROW = re.compile(r"^\| `([a-z]+)` +\|([^|]*)\|$", re.MULTILINE)
COLUMNS = {"cli": 2, "measure": 1, "sim": 3, "train": 3, "launch": 5.5, "peer": 4.5, "bind": 4,
           "plan": 0, "average": 2, "sync": 3, "data": 4, "monitor": 5, "spot": 1,
           "market": 1, "swarm": 3, "host": 6, "codec": 2, "world": 3, "wire": 4, "event": 3, "base": 3}
BOX, GAP_X, GAP_Y, LEFT, TOP = (180, 98), 14, 44, 20, 20


def read_layers():
    """Folder -> (what it holds, by ARCHITECTURE.md; the folders it may include, by src/layers.txt)."""
    holds, layers = dict(ROW.findall((ROOT / "ARCHITECTURE.md").read_text())), {}
    lines = [line for line in (ROOT / "src/layers.txt").read_text().splitlines() if not line.startswith("#")]
    for folder, below in (line.split(": ") for line in lines):
        under = {"nothing": set(), "all": set(layers)}.get(below, set(below.split()))
        layers[folder] = holds.get(folder, "").replace("`", "").strip(), under
    lost = sorted((set(layers) ^ set(COLUMNS)) | (set(layers) - set(holds)))
    if lost:
        sys.exit(f"draw.py: COLUMNS, ARCHITECTURE.md and src/layers.txt differ in: {' '.join(lost)}")
    return layers


def reach(layers, folder):
    """All folders to which arrows lead from this one."""
    below = set()
    for other in layers[folder][1]:
        below |= {other} | reach(layers, other)
    return below


def draw_rooms():
    layers = read_layers()
    level = {}
    for folder, (_, below) in layers.items():
        level[folder] = 1 + max((level[other] for other in below), default=-1)
    top = max(level.values())

    def corner(folder):
        return (LEFT + COLUMNS[folder] * (BOX[0] + GAP_X), TOP + (top - level[folder]) * (BOX[1] + GAP_Y))

    svg = Svg(LEFT * 2 + 7 * (BOX[0] + GAP_X) - GAP_X, TOP + (top + 1) * (BOX[1] + GAP_Y))
    for folder, (_, below) in layers.items():
        direct = [other for other in below if not any(other in reach(layers, via) for via in below)]
        for other in sorted(direct, key=list(layers).index):
            (x1, y1), (x2, y2) = corner(folder), corner(other)
            lean = max(-60, min(60, (x2 - x1) / 6))
            svg.arrow(x1 + BOX[0] / 2 + lean, y1 + BOX[1], x2 + BOX[0] / 2 - lean, y2, SOFT, 1.2)
    for folder, (holds, _) in layers.items():
        x, y = corner(folder)
        svg.rect(x, y, *BOX, "#f5f7fa" if level[folder] % 2 else "#eef4ff", FAINT)
        svg.text(x + BOX[0] / 2, y + 17, f"{folder}/", 14, bold=True)
        for at, line in enumerate(textwrap.wrap(holds, 31)):
            svg.text(x + BOX[0] / 2, y + 33 + 13 * at, line, 10, SOFT)
    notes = ["An arrow leads to a folder that may be included,", "with everything below it."]
    for folder, (_, below) in layers.items():
        if reach(layers, folder) - below:
            notes.append(f"But {folder} may not include {' or '.join(sorted(reach(layers, folder) - below))}.")
    for at, note in enumerate(notes):
        svg.text(LEFT, TOP + 14 + 16 * at, note, 12, SOFT, "start")
    return str(svg)


def main():
    stale = []
    for name, draw in (("round.svg", draw_round), ("rooms.svg", draw_rooms)):
        path, picture = HERE / name, draw()
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != picture:
                stale.append(name)
        else:
            path.write_text(picture)
    if stale:
        sys.exit(f"docs/pictures: {' '.join(stale)}: not what draw.py draws; run docs/pictures/draw.py")


if __name__ == "__main__":
    main()
