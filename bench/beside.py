# SPDX-License-Identifier: Apache-2.0
"""Peers of two engines in turns, watched from outside: for against_hivemind.py and against_torchft.py.

Each crew of peers has a network of its own (unshare), so all bytes on its loopback are its own. A peer
prints a line a round; the CPU seconds are those of all processes of its session, daemons too.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PORT = 7000
ROUNDS_AFTER = 5  # that the others do after a peer is lost
LIMIT_S = 150.0
# Millions of parameters; samples of a microbatch, and microbatches of a peer's share of a round.
MODELS = {"tiny": (0, 4, 1), "small": (1, 4, 8)}


def make_model(kind):
    """The model, and the inputs of one microbatch."""
    import torch
    from python_step import make_model as transformer

    millions, samples, _ = MODELS[kind]
    torch.manual_seed(1)
    if millions:
        model, width = transformer(millions)
        return model, torch.randn(samples, 128, width)
    return torch.nn.Linear(64, 64), torch.randn(samples, 64)


def target_of(arguments):
    """Samples of a round, of all peers."""
    _, samples, microbatches = MODELS[arguments.model]
    return samples * microbatches * arguments.peers


def tell(**what):
    """A line for the one who measures."""
    print(json.dumps({"at": time.monotonic(), **what}), flush=True)


def tradewind_peer(arguments):
    """Steps without end; tells rounds."""
    import torch
    import tradewind

    model, inputs = make_model(arguments.model)
    first = arguments.number == 1
    run = tradewind.join(
        target_batch_size=target_of(arguments),
        rounds=1000000,
        progress="off",
        wait_for=arguments.peers,
        **({"listen": f"127.0.0.1:{PORT}"} if first else {"join": f"127.0.0.1:{PORT}"}),
    )
    opt = run.optimizer(model, torch.optim.AdamW(model.parameters(), lr=1e-4), batch_size=len(inputs))
    run.start()
    while True:
        opt.zero_grad()
        model(inputs).pow(2).mean().backward()
        if opt.step():
            tell(round=run.round, peers=run.peers)


class Crew:
    """Peers of one engine in this network; what they told."""

    def __init__(self, arguments, mode):
        self.arguments, self.mode = arguments, mode
        self.processes, self.rounds = [], []
        self.selector = selectors.DefaultSelector()
        self.told = {}

    def start(self, number, environment, **options):
        more = [f"--{key}={value}" for key, value in options.items()]
        command = [sys.executable, *sys.argv, "--mode", self.mode, "--number", str(number), *more]
        logs = self.arguments.logs
        with open(f"{logs}/{self.mode}-{number}.log" if logs else os.devnull, "w") as log:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        os.set_blocking(process.stdout.fileno(), False)
        self.processes.append(process)
        self.rounds.append([])
        self.selector.register(process.stdout, selectors.EVENT_READ, number)
        self.told[number] = b""

    def read(self, limit_s=0.1):
        """Takes what peers told; the last thing that is no round."""
        found = {}
        for key, _ in self.selector.select(limit_s):
            new = key.fileobj.read()
            if not new:
                self.selector.unregister(key.fileobj)
                continue
            *lines, self.told[key.data] = (self.told[key.data] + new).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    one = json.loads(line)
                    if "round" in one:
                        self.rounds[key.data - 1].append(one)
                    else:
                        found = one
        return found

    def until(self, reached, limit_s=LIMIT_S):
        """Whether it came so far in time."""
        end = time.monotonic() + limit_s
        while not reached():
            if time.monotonic() > end:
                return False
            self.read()
        return True

    def all_did(self, rounds, counts, peers=None):
        """Whether each of the peers (numbers) did so many rounds more than in counts."""
        numbers = range(len(self.processes)) if peers is None else peers
        return all(len(self.rounds[at]) >= counts[at] + rounds for at in numbers)

    def counts(self):
        return [len(one) for one in self.rounds]

    def cpu_s(self):
        """CPU seconds of all processes in the sessions of peers."""
        sessions = {process.pid for process in self.processes}
        ticks = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(") ", 1)[1].split()
                if int(fields[3]) in sessions:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def send(self, at, number):
        """A signal to all processes of a peer; when."""
        pid = self.processes[at].pid
        for other in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.getsid(int(other)) == pid:
                    os.kill(int(other), number)
        return time.monotonic()

    def end(self):
        for at, process in enumerate(self.processes):
            self.send(at, signal.SIGKILL)
            process.wait()


def wire_bytes():
    """Sent over the loopback of this network."""
    with open("/proc/self/net/dev") as found:
        (line,) = [line for line in found if line.strip().startswith("lo:")]
    return int(line.split(":")[1].split()[8])


def steady(crew, arguments):
    """Rounds a minute of the first peer, and what a round costs all."""
    before, bytes_before, cpu_before = crew.counts(), wire_bytes(), crew.cpu_s()
    began = time.monotonic()
    enough = began + arguments.seconds
    crew.until(lambda: crew.all_did(arguments.rounds, before, [0]) and time.monotonic() >= enough)
    done = crew.rounds[0][before[0] :]
    if not done:
        return {}
    bytes_, cpu_s = wire_bytes() - bytes_before, crew.cpu_s() - cpu_before
    seconds = time.monotonic() - began
    full = sum(one["peers"] == arguments.peers for one in done)
    return {
        "rounds_minute": 60 * len(done) / seconds,
        "full": full / len(done),
        "mb_round": bytes_ / len(done) / 1e6,
        "cpu_round": cpu_s / len(done),
    }


def struck(crew, arguments, number):
    """Seconds of the longest pause between rounds of the others, after the last peer got the signal."""
    others = range(arguments.peers - 1)
    before = crew.counts()
    at = crew.send(arguments.peers - 1, number)
    crew.until(lambda: crew.all_did(ROUNDS_AFTER, before, others))
    pauses = []
    for other in others:
        times = [one["at"] for one in crew.rounds[other][max(0, before[other] - 1) :]]
        ends = [*times, time.monotonic()] if len(times) <= ROUNDS_AFTER else times
        pauses += [later - max(at, earlier) for earlier, later in zip(ends, ends[1:]) if later > at]
    return max(pauses)


def address_of_the_first(crew):
    """What others have to be told."""
    while crew.processes[0].poll() is None:
        found = crew.read()
        if "address" in found:
            return {"address": found["address"]}
    raise SystemExit(f"the first peer of {crew.mode} ended; --logs=FOLDER keeps what it wrote")


def crew_main(arguments):
    """Inside its own network: starts a crew, measures, prints what it found."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    crew = Crew(arguments, arguments.crew)
    ours = arguments.crew == "tradewind"
    with contextlib.ExitStack() as stack:
        environment = tradewind_environment(stack, arguments) if ours else {}
        stack.callback(crew.end)
        address = {}
        for number in range(1, arguments.peers + 1):
            crew.start(number, environment, **address)
            if not ours and not address:
                address = address_of_the_first(crew)
        if not crew.until(lambda: crew.all_did(3, [0] * arguments.peers)):
            raise SystemExit(f"the peers of {arguments.crew} did no three rounds in {LIMIT_S:.0f} s")
        found = steady(crew, arguments)
        if arguments.strike != "none":
            found["pause_s"] = struck(crew, arguments, getattr(signal, arguments.strike))
    print(json.dumps(found))


def tradewind_environment(stack, arguments):
    from tradewind import launch

    if arguments.plain:
        return {"TRADEWIND_INSECURE": "1"}
    tw = launch.program()
    if tw is None:
        raise SystemExit("TRADEWIND_PROGRAM has to name tw, which makes the token (or --plain: without TLS)")
    folder = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "run")
    subprocess.run([tw, "init", folder], check=True, stdout=subprocess.DEVNULL)
    return {"TRADEWIND_RUN_FOLDER": folder}


def measured(arguments, engine, model, strike):
    """One crew, in a network of its own."""
    inner = [sys.executable, *sys.argv, "--crew", engine, "--model", model, "--strike", strike]
    found = subprocess.run(["unshare", "--net", *inner], stdout=subprocess.PIPE, text=True)
    if found.returncode:
        print(f"{engine}, {model}, {strike}: nothing was measured", file=sys.stderr)
        return {}
    one = json.loads(found.stdout.splitlines()[-1])
    print(engine, model, strike, {key: round(value, 4) for key, value in one.items()}, file=sys.stderr)
    return one


CASES = [("tiny", "none"), ("small", "SIGKILL"), ("small", "SIGSTOP")]
ROWS = [
    ("a round of a tiny model, s", ("tiny",), lambda one: 60 / one["rounds_minute"]),
    ("of them with all peers, %", ("tiny",), lambda one: 100 * one["full"]),
    ("kB on the wire, tiny", ("tiny",), lambda one: 1e3 * one["mb_round"]),
    ("CPU s a round, tiny", ("tiny",), lambda one: one["cpu_round"]),
    ("rounds a minute", ("small",), lambda one: one["rounds_minute"]),
    ("of them with all peers, %", ("small",), lambda one: 100 * one["full"]),
    ("MB on the wire a round", ("small",), lambda one: one["mb_round"]),
    ("CPU s a round", ("small",), lambda one: one["cpu_round"]),
    ("longest pause, peer killed, s", ("small", "SIGKILL"), lambda one: one["pause_s"]),
    ("longest pause, peer stopped, s", ("small", "SIGSTOP"), lambda one: one["pause_s"]),
]


def results(found, engine, case):
    """Those of the crews of a case: a model, and perhaps a signal."""
    for key, many in found.items():
        if key[0] == engine and key[1 : 1 + len(case)] == case:
            yield from filter(None, many)


def show(found, rival):
    """Medians of both engines and their ratio, with the least and the most."""
    print(f"{'':32} {'tradewind':>24} {rival:>24}   {rival}/tradewind")
    for name, case, value in ROWS:
        columns = []
        for engine in ("tradewind", rival):
            columns.append([value(one) for one in results(found, engine, case)] or [float("nan")])
        texts = [f"{statistics.median(one):.3g} ({min(one):.3g}-{max(one):.3g})" for one in columns]
        ours, theirs = map(statistics.median, columns)
        ratio = theirs / ours if ours else float("nan")
        print(f"{name:32} {texts[0]:>24} {texts[1]:>24}   {ratio:.3g}")


def main(doc, rival, peer, add_options):
    """rival: the package, measured beside tradewind. peer(arguments): steps without end, tells rounds."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8, help="that are measured, of each crew")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured at least, of each crew")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="tradewind without TLS")
    parser.add_argument("--logs", help="a folder for what peers write")
    for name in ("mode", "number", "crew", "model", "strike", "address"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS, type=int if name == "number" else str)
    add_options(parser)
    arguments = parser.parse_args()
    missing = [name for name in ("torch", "tradewind", rival) if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"{' and '.join(missing)} not installed: run `make test-integrations`, then"
            " build/integrations/VERSION/bin/pip install -r bench/against.txt, and start this with its python"
        )
    if arguments.mode:
        import torch

        torch.set_num_threads(1)
        (tradewind_peer if arguments.mode == "tradewind" else peer)(arguments)
    elif arguments.crew:
        crew_main(arguments)
    else:
        compare(arguments, rival)


def compare(arguments, rival):
    names = ("torch", "tradewind", rival)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"Python {platform.python_version()}, {versions}")
    print(f"{arguments.peers} peers, medians of {arguments.repeats} (least-most)")
    found = {}
    for _ in range(arguments.repeats):
        for model, strike in CASES:
            for engine in ("tradewind", rival):
                one = measured(arguments, engine, model, strike)
                found.setdefault((engine, model, strike), []).append(one)
    show(found, rival)
    print("load of the machine at the end: " + " ".join(f"{one:.1f}" for one in os.getloadavg()))
