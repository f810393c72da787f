#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a peer with a notice is out of a round that lasts longer, on lines of 1 Gbit/s (as root).

    PYTHONPATH=build/python /usr/bin/python3 bench/leaving.py --repeats 5

Four Python peers with a model of 25 M parameters (TLS, fp16), each on a host of a tw-wan bed. Their work is
to sleep, as on machines of their own: four peers that compute would share the cores of this one. In each
round after the first one peer gets SIGTERM with a grace of 30 s, and a new one takes its place for the next
round. The time counts from the signal until the process is gone.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import tradewind

ROOT = Path(__file__).resolve().parents[1]
TW, WAN = ROOT / "build/tw", ROOT / "build/tw-wan"
HOSTS = "abcd"
PARAMETERS, SAMPLES = 25_000_000, 8  # of the model; of a microbatch
LIMIT_S = 300


def peer(folder, item_s):
    """A loop until the end of the run, or of this peer's part."""
    torch.set_num_threads(1)
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(PARAMETERS))])
    gradient = torch.full((PARAMETERS,), 1e-3)
    run = tradewind.join(folder / "run.yaml", run=folder / "token", out=folder / "out", grace="30s")
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=1e-3), batch_size=SAMPLES)
    run.start()
    while not run.finished:
        time.sleep(item_s)
        model[0].grad = gradient
        opt.step()
        opt.zero_grad()
    return run.exit_code


def until(found, what):
    """What is found in the end."""
    end = time.monotonic() + LIMIT_S
    while not (result := found()):
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not in {LIMIT_S} s")
        time.sleep(0.05)
    return result


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Crew:
    """Four peers, each on a host of its own; killed in the end. Times of events are those of this machine."""

    def __init__(self, folder, item_s):
        self.folder, self.item_s, self.peers = folder, item_s, {}
        shown = subprocess.run([WAN, folder / "leaving.yaml", "show"], check=True, capture_output=True)
        self.addresses = {host["name"]: host["address"] for host in json.loads(shown.stdout)["hosts"]}

    def start(self, number, host):
        words = [WAN, self.folder / "leaving.yaml", "exec", host, sys.executable, __file__, "--peer"]
        words += [self.folder, "--item-s", self.item_s]
        environment = {"TRADEWIND_ID": str(number), "TRADEWIND_LISTEN": f"{self.addresses[host]}:0"}
        if number == 1:
            environment["TRADEWIND_WAIT_FOR"] = str(len(HOSTS))
        else:
            environment["TRADEWIND_JOIN"] = self.event(1, "start")["address"]
        with open(self.folder / f"peer-{number}.txt", "w") as output:
            self.peers[number] = subprocess.Popen(
                [str(word) for word in words],
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
            )

    def events(self, number, phase):
        """Events of one phase in its log; a line that is being written is left out."""
        log = self.folder / f"out/events-{number}.jsonl"
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        return [event for event in map(json.loads, lines) if event["phase"] == phase]

    def event(self, number, phase, round_=None):
        """The first one, of this round; waits for it."""

        def found():
            if self.peers[number].poll() is not None:
                print((self.folder / f"peer-{number}.txt").read_text(), file=sys.stderr)
                raise SystemExit(f"peer {number} ended before its {phase} of round {round_}")
            events = self.events(number, phase)
            return [one for one in events if round_ in (None, one["round"])]

        return until(found, f"{phase} of peer {number}, round {round_}")[0]

    def notice(self, number):
        """Sends SIGTERM; when, and how the process went."""
        process = self.peers[number]
        cpu_s, at = cpu_of(process.pid), time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(process.pid, 0)
        out_s = time.monotonic() - at
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_s = used.ru_utime + used.ru_stime - cpu_s
        return at, {"out_s": out_s, "cpu_s": cpu_s, "exit_code": process.returncode}

    def kill(self):
        for process in self.peers.values():
            if process.poll() is None:
                process.kill()
                process.wait()


def parts(crew, number, at):
    """Where the time went, in seconds from one to the next, and what was handed over."""
    (notice,), (stop,) = crew.events(number, "notice"), crew.events(number, "stop")
    handovers = crew.events(number, "handover")
    if not handovers:
        return {"samples": None}  # it left otherwise
    (handover,) = handovers
    ordered = handover["t"] - handover["took_s"]
    return {
        "notice_s": notice["t"] - at,
        "order_s": ordered - notice["t"],
        "took_s": handover["took_s"],
        "farewell_s": stop["t"] - handover["t"],
        "mb": handover["bytes"] / 1e6,
        "samples": handover["samples"],
        "round_left_s": handover["round_left_s"],
        "to": handover["about"],
    }


def disturb(crew, number, round_, after_s):
    """One notice, in this round, for the last peer that came; what became of the round."""
    began = crew.event(1, "accumulate", round_)["t"]
    crew.event(number, "accumulate", round_)
    time.sleep(max(0, began + after_s - time.monotonic()))
    at, found = crew.notice(number)
    found |= parts(crew, number, at)
    crew.start(number + 1, HOSTS[-1])
    commit = crew.event(1, "commit", round_)
    before = crew.event(1, "commit", round_ - 1)
    others = [other for other in crew.peers if other != number]
    reissues = [one for other in others for one in crew.events(other, "reissue")]
    found["round_s"] = commit["t"] - began
    found["batch"] = commit["samples_total"] - before["samples_total"]
    found["carried"] = commit["carried"]
    found["reissues"] = sum(one["round"] == round_ for one in reissues)
    shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in found.items()}
    print(json.dumps(shown), flush=True)
    return found


SPANS = ("out_s", "cpu_s", "notice_s", "order_s", "took_s", "farewell_s", "mb", "round_left_s", "round_s")


def show(results):
    """Medians and the most; what has to be the same each time."""
    for key in SPANS:
        values = [one[key] for one in results if key in one]
        if values:
            print(f"{key:14} median {statistics.median(values):7.3f}  most {max(values):7.3f}")
    for key in ("exit_code", "batch", "reissues"):
        print(f"{key:14} {sorted({one[key] for one in results})}")


def prepare(folder, arguments, batch):
    (folder / "run.yaml").write_text(
        f"training: {{target_batch_size: {batch}, rounds: {arguments.repeats + 1}, codec: fp16}}\n"
    )
    sites = "".join(f"  - {{name: {host}, nic: {arguments.rate}}}\n" for host in HOSTS)
    (folder / "leaving.yaml").write_text(
        f"about: four hosts of {arguments.rate}, 1 ms apart\nmtu: 9000\nsites:\n{sites}links:\n  - rtt: 1ms\n"
    )
    subprocess.run([TW, "init", folder / "token"], check=True, stdout=subprocess.DEVNULL)


def measure(folder, arguments):
    items = round(arguments.round_s * len(HOSTS) / arguments.item_s)
    prepare(folder, arguments, items * SAMPLES)
    subprocess.run([WAN, folder / "leaving.yaml", "up"], check=True)
    crew = Crew(folder, arguments.item_s)
    try:
        for number, host in enumerate(HOSTS, 1):
            crew.start(number, host)
        numbers = range(len(HOSTS), len(HOSTS) + arguments.repeats)
        show([disturb(crew, number, at + 2, arguments.after_s) for at, number in enumerate(numbers)])
        print(f"a batch has {items * SAMPLES} samples; load at the end {os.getloadavg()[0]:.1f}")
    finally:
        crew.kill()
        subprocess.run([WAN, folder / "leaving.yaml", "down"], check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=60, help="work of a round, of four peers")
    parser.add_argument("--after-s", type=float, default=20, help="of the round, when the signal comes")
    parser.add_argument("--item-s", type=float, default=0.25, help="work of a microbatch")
    parser.add_argument("--rate", default="1gbit", help="of each line")
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        sys.exit(peer(arguments.peer, arguments.item_s))
    with tempfile.TemporaryDirectory(prefix="tw-leaving-") as folder:
        measure(Path(folder), arguments)


if __name__ == "__main__":
    main()
