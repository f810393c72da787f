# SPDX-License-Identifier: Apache-2.0
"""The board shows what slow lines carry: two hosts of the testbed, a model whose means fill the lines."""
import csv
import os
import subprocess

import pytest
from launched import TW, TW_WAN, Run, missing, wait_for

torch = pytest.importorskip("torch")

LINE_MBIT_S = 40
TOPOLOGY = f"""
about: two hosts with slow lines
sites:
  - {{name: a, nic: {LINE_MBIT_S}mbit}}
  - {{name: b, nic: {LINE_MBIT_S}mbit}}
links:
  - {{rtt: 20ms}}
"""
NO_WAN = missing("ip") or ("" if os.path.exists(TW_WAN) else f"no {TW_WAN}")


class Wide(torch.nn.Module):
    """3.3 million parameters: its mean takes 1.3 s on these lines."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(784, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10))

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.net(inputs), targets)


def bounds(folder):
    """Mbit/s by (from, to), as far as the logs tell."""
    done = subprocess.run([TW, "report", "logs", "--csv", "tables"], cwd=folder, capture_output=True)
    if done.returncode != 0:  # no logs yet
        return {}
    with open(folder / "tables/links.csv") as table:
        return {(link["from"], link["to"]): float(link["bound_mbit_s"])
                for link in csv.DictReader(table) if link["bound_mbit_s"]}


@pytest.mark.skipif(bool(NO_WAN), reason=NO_WAN)
def test_what_slow_lines_carry_is_on_the_board(tmp_path):
    topology = tmp_path / f"tw{os.getpid() % 10000}.yaml"
    topology.write_text(TOPOLOGY)
    run = Run(tmp_path)
    torch.jit.script(Wide()).save(str(tmp_path / "wide.pt"))
    settings = tmp_path / "run.yaml"
    settings.write_text(settings.read_text().replace("mnist-cnn", "wide.pt"))
    run.tw("init", "myrun")

    def wan(*words):
        return [TW_WAN, str(topology), *words]

    subprocess.run(wan("up"), check=True, timeout=60)
    peers = []
    try:
        for number, host in enumerate("ab", start=1):
            words = ["--listen", "a:7000", "--wait-for", "2"] if host == "a" else ["--join", "a:7000"]
            words += ["--id", str(number), "--site", f"onprem:{host}", "--threads", "1", "--out", "logs"]
            command = wan("exec", host, TW, "train", "run.yaml", "--run", "myrun", *words)
            peers.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL))
        wait_for(lambda: len(bounds(tmp_path)) == 2, "both lines are known", every=2)
        found = bounds(tmp_path)
        assert set(found) == {("onprem:a", "onprem:b"), ("onprem:b", "onprem:a")}
        assert all(LINE_MBIT_S / 10 < bound < 1.5 * LINE_MBIT_S for bound in found.values()), found
    finally:
        for peer in peers:
            peer.kill()
            peer.wait()
        subprocess.run(wan("down"), capture_output=True, check=False, timeout=60)
