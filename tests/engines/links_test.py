# SPDX-License-Identifier: Apache-2.0
"""The board shows the bandwidth of slow links: two hosts of the testbed, a vector whose means fill them."""
import csv
import os
import subprocess

import pytest
from launched import TOY, TW, TW_WAN, Run, missing, wait_for

LINE_MBIT_S = 40
VALUES = 3_300_000  # their mean takes 1.3 s on these lines
TOPOLOGY = f"""
about: two hosts with slow links
sites:
  - {{name: a, nic: {LINE_MBIT_S}mbit}}
  - {{name: b, nic: {LINE_MBIT_S}mbit}}
links:
  - {{rtt: 20ms}}
"""
NO_WAN = missing("ip") or ("" if os.path.exists(TW_WAN) else f"no {TW_WAN}")


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
    run.tw("init", "myrun")

    def wan(*words):
        return [TW_WAN, str(topology), *words]

    subprocess.run(wan("up"), check=True, timeout=60)
    peers = []
    try:
        for number, host in enumerate("ab", start=1):
            settings = ["listen=a:7000", "wait_for=2"] if host == "a" else ["join=a:7000"]
            settings += [f"id={number}", f"site=onprem:{host}", "out=logs", "run_file=run.yaml", "run=myrun"]
            command = wan("exec", host, TOY, "--values", str(VALUES), *settings)
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
