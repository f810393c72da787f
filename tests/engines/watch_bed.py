# SPDX-License-Identifier: Apache-2.0
"""Four peers on this machine, one of which shows the run."""
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

from launched import TOY, Run, wait_for


class Crew:
    """The toy program, so many times; the first one has `watch`. settings: more of each peer."""

    def __init__(
        self, folder, watch="127.0.0.1:0", peers=4, rounds=100_000, settings=lambda number: [], batch=128,
        awaited=None, options=("--work-ms", "5"),
    ):
        self.run = Run(folder, batch=batch, rounds=rounds)
        self.folder, self.watch = Path(folder), watch
        self.settings, self.options = settings, options
        self.run.tw("init", "myrun")
        first = ["listen=127.0.0.1:0", f"wait_for={awaited or peers}", f"watch={watch}"]
        self.processes = [self.start(1, *first)]
        address = wait_for(lambda: self.said(1, r"join=(\S+)"), "the first peer listens")
        self.processes += [self.start(number, f"join={address}") for number in range(2, peers + 1)]

    def start(self, number, *settings):
        with open(self.folder / f"peer-{number}.txt", "w") as out:
            command = [TOY, *self.options, "run_file=run.yaml", "run=myrun", f"id={number}", "out=logs",
                       "progress=line", *self.settings(number), *settings]
            return subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=subprocess.STDOUT)

    def said(self, number, pattern):
        """The first group of the pattern in what the peer printed."""
        found = re.search(pattern, (self.folder / f"peer-{number}.txt").read_text())
        return found and found.group(1)

    @property
    def url(self):
        return wait_for(lambda: self.said(1, r"watch: (\S+?)/(?:\?\S*)?(?:\s|$)"), "the run is shown")

    def send(self, number_of_signal):
        for process in self.processes:
            process.send_signal(number_of_signal)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def get(url, limit_s=5):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=limit_s) as answer:
        return answer.read().decode()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
