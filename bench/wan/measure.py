#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures with iperf3 what the links of a bed give, as a Markdown table.

usage: bench/wan/measure.py [--streams 1,32] [--seconds 8] [--omit 4] TOPOLOGY...

From the first host of the first site to that of every other one, and to the second host in its LAN. Round
trips are the least of 40 UDP packets. `of rate` is relative to what TCP gets of the narrowest rate on the
way, headers counted.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from check import ECHO, PING

PROGRAM = Path(__file__).resolve().parents[2] / "build/tw-wan"


class Bed:
    def __init__(self, topology):
        self.topology = topology
        self.shape = json.loads(self.run("show"))
        self.hosts = {x["name"]: x for x in self.shape["hosts"]}
        self.sites = {x["name"]: x for x in self.shape["sites"]}

    def run(self, *words):
        command = [PROGRAM, self.topology, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def start(self, *words):
        return subprocess.Popen([PROGRAM, self.topology, "exec", *words], stdout=subprocess.DEVNULL)

    def link(self, origin, end):
        sites = (self.hosts[origin]["site"], self.hosts[end]["site"])
        return next(x for x in self.shape["links"] if (x["from"], x["to"]) == sites)

    def pairs(self):
        first = {}
        for host in self.shape["hosts"]:
            first.setdefault(host["site"], host["name"])
        origin, *others = first.values()
        mates = [x["name"] for x in self.shape["hosts"] if x["site"] == self.hosts[origin]["site"]]
        return [(origin, end) for end in mates[1:2] + others]

    def rate(self, origin, end):
        """Mbit/s of TCP payload on the way; None: no limit."""
        sender, receiver = self.hosts[origin], self.hosts[end]
        rates = [sender["up_bit_s"], receiver["down_bit_s"], self.link(origin, end)["bit_s"]]
        if sender["site"] != receiver["site"]:
            rates.append(self.sites[sender["site"]]["egress_bit_s"])
            rates.append(self.sites[receiver["site"]]["ingress_bit_s"])
        rates = [x for x in rates if x is not None]
        return min(rates) * self.shape["payload_share"] / 1e6 if rates else None

    def round_trip_ms(self, origin, end):
        link, back = self.link(origin, end), self.link(end, origin)
        measured = self.run("exec", origin, sys.executable, "-c", PING, end, "40").strip()
        return link["delay_ms"] + back["delay_ms"], float(measured)

    def stream_mbit_s(self, origin, end, streams, options):
        span = ["-t", str(options.seconds), "-O", str(options.omit)]
        answer = self.run("exec", origin, "iperf3", "-c", end, "-P", str(streams), *span, "-J")
        return json.loads(answer)["end"]["sum_received"]["bits_per_second"] / 1e6


def print_row(*cells):
    print("|", " | ".join(cells), "|", flush=True)


def measure(topology, options):
    bed = Bed(topology)
    bed.run("up")
    try:
        for origin, end in bed.pairs():
            servers = [bed.start(end, "iperf3", "-s"), bed.start(end, sys.executable, "-c", ECHO)]
            time.sleep(1)
            wanted, found = bed.round_trip_ms(origin, end)
            for streams in options.streams:
                got, rate = bed.stream_mbit_s(origin, end, streams, options), bed.rate(origin, end)
                share = f"{100 * got / rate:.1f} %" if rate else "-"
                print_row(topology, f"{origin} to {end}", f"{wanted:.2f}", f"{found:.2f}", str(streams),
                          f"{got:.1f}", share)
            for server in servers:
                server.kill()
                server.wait()
        box = json.loads(bed.run("status", "--json"))["box"]
        why = f" ({box['why']})" if box["why"] else ""
        print(f"{topology}: box {box['cpu_s_per_gb']:.2f} CPU s/GB, at most "
              f"{100 * box['cpu_share_max']:.0f} % of a core, overloaded in "
              f"{box['overloaded_s']} of {box['up_s']:.0f} s{why}", file=sys.stderr)
    finally:
        bed.run("down")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topologies", nargs="+")
    parser.add_argument("--streams", default="1,32", type=lambda text: [int(x) for x in text.split(",")])
    parser.add_argument("--seconds", default=8, type=int)
    parser.add_argument("--omit", default=4, type=int, help="seconds left out at the beginning")
    options = parser.parse_args()
    print_row("topology", "from, to", "round trip ms", "measured", "streams", "Mbit/s", "of rate")
    print_row(*["---"] * 7)
    for topology in options.topologies:
        measure(topology, options)


if __name__ == "__main__":
    main()
