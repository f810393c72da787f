#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs a PyTorch loop: one peer against the bare loop of the same accumulation, interleaved.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_step.py --millions 25 --repeats 7

Both train a transformer on the CPU, or with --device cuda on a GPU in bfloat16, AdamW. Written: samples/s
of each and their ratio (medians), the time of a step() without an update, what a round takes beyond its work
and in which parts, and memory beyond the bare loop.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def make_model(millions):
    """A transformer of about so many million parameters: width, layers, tokens of a sample."""
    import torch

    width, layers = {1: (128, 4), 25: (512, 8), 125: (1024, 10), 1000: (2048, 20)}[millions]
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(
        width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True
    )
    return torch.nn.TransformerEncoder(layer, layers), width


class Parts:
    """Milliseconds of each round: what the engine tells, and how long its calls into the package take."""

    def __init__(self, run, rounds):
        from tradewind.model.trained import Trained

        self.rounds = rounds
        parts = ("averaging", "sums to the host", "update", "parameters back", "on the device")
        self.found = {part: [] for part in parts}
        self._time(Trained, "contribution", "sums to the host")
        self._time(Trained, "_take", "parameters back")
        self._time(Trained, "update", "on the device")  # the mean there, and the launches
        run.on_event(self._hear)

    def _hear(self, event):
        if event.get("phase") == "commit":
            self.found["averaging"].append(1e3 * event["comm_s"])
        elif event.get("phase") == "apply":
            self.found["update"].append(1e3 * event["took_s"])

    def _time(self, kind, name, part):
        call = getattr(kind, name)

        def timed(*values):
            before = time.monotonic()
            found = call(*values)
            self.found[part].append(1e3 * (time.monotonic() - before))
            return found

        setattr(kind, name, timed)

    def medians(self):
        """Of the rounds that are timed."""
        return {part: statistics.median(times[-self.rounds :]) for part, times in self.found.items() if times}


def measure(mode, arguments):
    """One process: the loop of one kind for so many rounds. The first one warms up; the run's last one is
    not among them, since a checkpoint follows it.
    """
    import torch

    torch.set_num_threads(arguments.threads)
    model, width = make_model(arguments.millions)
    device = torch.device(arguments.device)
    model.to(device)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-4)
    samples, microbatches = arguments.samples, arguments.microbatches
    inputs = torch.randn(samples, arguments.tokens // samples, width).to(device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    opt, run = inner, None
    if mode == "run":
        import tradewind

        run = tradewind.join(
            target_batch_size=samples * microbatches,
            rounds=arguments.rounds + 2,
            codec=arguments.codec,
            mode=arguments.run_mode,
            insecure=True,
            listen="127.0.0.1:0",
            progress="off",
        )
        parts = Parts(run, arguments.rounds)
        options = {"accumulate": arguments.accumulate, "engine": arguments.engine}
        opt = run.optimizer(model, inner, batch_size=samples, **options)
        run.start()
    step_s, boundary_s, began = [], [], time.monotonic()
    for at in range((arguments.rounds + 1) * microbatches):
        if at == microbatches:
            wait()
            began = time.monotonic()
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = model(inputs).float().pow(2).mean()
        local = arguments.run_mode in ("local", "streaming")
        (loss if run or local else loss / microbatches).backward()
        is_last = at % microbatches == microbatches - 1
        if is_last:  # a loop of a user waits when the update needs the gradients
            wait()
        if run:
            before = time.monotonic()
            times = boundary_s if opt.step() else step_s
            times.append(time.monotonic() - before)
            opt.zero_grad()
        elif local or is_last:
            opt.step()
            opt.zero_grad()
    wait()
    seconds = time.monotonic() - began
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    found = {
        "samples_s": arguments.rounds * microbatches * samples / seconds,
        "peak_mib": peak,
        "step_ms": 1e3 * statistics.median(step_s) if step_s else 0.0,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    if run:
        run.leave()
        run.close()
        found["round_ms"] = 1e3 * statistics.median(boundary_s[1:])
        found["parts_ms"] = parts.medians()
    return found


def parts_of(runs):
    """Medians over the runs, as text."""

    def part(name, inner):
        found, of_it = ([run["parts_ms"].get(one, 0) for run in runs] for one in (name, inner))
        return f"{name} {statistics.median(found):.0f} (of it {inner} {statistics.median(of_it):.0f})"

    back = "on the device" if any("on the device" in run["parts_ms"] for run in runs) else "parameters back"
    return ", ".join((part("averaging", "sums to the host"), part("update", back)))


def child(mode):
    command = [sys.executable, __file__, *sys.argv[1:], "--mode", mode]
    with tempfile.TemporaryDirectory() as out:  # its checkpoints
        environment = {**os.environ, "TRADEWIND_OUT": out}
        found = subprocess.run(command, capture_output=True, text=True, env=environment)
    if found.returncode:
        raise SystemExit(found.stderr)
    return json.loads(found.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--millions", type=int, choices=[1, 25, 125, 1000], default=25)
    parser.add_argument("--tokens", type=int, default=1024, help="of a microbatch")
    parser.add_argument("--samples", type=int, default=8, help="of a microbatch")
    parser.add_argument("--microbatches", type=int, default=4, help="of a round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--codec", default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--run-mode", default="sync", help="training.mode")
    parser.add_argument("--accumulate", default="auto", help="as in run.optimizer()")
    parser.add_argument("--engine", default="auto", help="the same; tradewind: updates on the host")
    parser.add_argument("--mode", choices=["bare", "run"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(measure(arguments.mode, arguments)))
        return
    found = {"bare": [], "run": []}
    for _ in range(arguments.repeats):
        for mode, values in found.items():
            values.append(child(mode))

    def median(mode, key):
        return statistics.median(value[key] for value in found[mode])

    ratios = [run["samples_s"] / bare["samples_s"] for run, bare in zip(found["run"], found["bare"])]
    parameters = found["run"][0]["parameters"]
    limit_ms = 0.3 + 12 * parameters / 10e9 * 1e3
    print(
        f"parameters                {parameters / 1e6:.1f} M, codec {arguments.codec}, {arguments.threads}"
        f" threads, {arguments.run_mode}, {arguments.microbatches} microbatches a round,"
        f" engine={arguments.engine}"
    )
    ratio = statistics.median(ratios)
    print(f"bare loop                 {median('bare', 'samples_s'):.2f} samples/s")
    print(f"run                       {median('run', 'samples_s'):.2f} samples/s, {ratio:.3f} of it")
    print(f"step() without an update  {median('run', 'step_ms'):.2f} ms, limit {limit_ms:.2f} ms")
    print(f"step() with an update     {median('run', 'round_ms'):.0f} ms: {parts_of(found['run'])}")
    extra = median("run", "peak_mib") - median("bare", "peak_mib")
    print(f"memory beyond it          {extra:.0f} MiB, one copy is {parameters * 4 / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
