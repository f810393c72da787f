# SPDX-License-Identifier: Apache-2.0
"""tw up on a real Kubernetes 1.20: four peers as pods, one of them evicted.

Answers skypilot#3907 (only the lost peer is replaced), kubeflow/trainer#3316 (an eviction uses up no budget)
and ray#63968 (the notice reaches the program). `make test-kubernetes` runs it by run.sh.
"""

import json
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bed import Bed  # noqa: E402
from launched import TOY, TW, Run, wait_for  # noqa: E402

IMAGE = "tradewind.test/tw:1"
PROGRAMS = os.environ.get("TW_KUBERNETES")
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="make test-kubernetes builds Kubernetes and runs this")

GRACE_S = 15  # what GKE leaves a pod of a spot machine
PATIENCE_S = 240


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    cluster = Bed(tmp_path_factory.mktemp("k"), PROGRAMS)
    try:
        cluster.up()
        cluster.label(
            **{
                "cloud.google.com/gke-spot": "true",
                "topology.kubernetes.io/region": "us-central1",
                "topology.kubernetes.io/zone": "us-central1-a",
            }
        )
        cluster.kubectl("taint", "nodes", "node-1", "cloud.google.com/gke-spot=true:NoSchedule")
        small = cluster.folder / "tw"  # without debugging symbols
        cluster.run("strip", "-o", str(small), TW)
        cluster.image(IMAGE, f"{small}=/usr/bin/tw", f"{TOY}=/usr/bin/toy")
        yield cluster
    finally:
        cluster.down()


class PodRun(Run):
    """A run on the bed. Its event logs lie in a folder of the node, one for each peer."""

    def __init__(self, folder, bed):
        super().__init__(folder)
        settings = self.folder / "run.yaml"
        settings.write_text(settings.read_text().replace(TOY, "/usr/bin/toy"))
        self.bed, self.logs = bed, Path(folder) / "node-logs"
        self.logs.mkdir()
        os.environ.update(bed.environment)
        self.plan(['site: "gcp:us-central1:us-central1-a", count: 4, purchase: spot'])

    def start(self, code=0):
        return self.up(
            "--on",
            "k8s",
            "--image",
            IMAGE,
            "--with",
            "pull=Never",
            "--with",
            f"mount=host:{self.folder}:{self.folder}",
            "--with",
            f"logs=host:{self.logs}",
            "--set",
            "training.patience=60s",
            code=code,
        )

    def logs_of(self, number):
        """Event logs of a peer, the oldest first: a log for each pod."""
        return sorted((self.logs / self.name / f"p{number}").glob("*/events-*.jsonl"), key=os.path.getctime)

    def commits(self, log):
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
        return sum(line.get("phase") == "commit" and line.get("samples", 0) > 0 for line in lines)

    def takes_part(self, number, starts=1, commits=2):
        logs = self.logs_of(number)
        return len(logs) >= starts and self.commits(logs[starts - 1]) >= commits

    def pod_of(self, number):
        pods = json.loads(self.bed.kubectl("get", "pods", "-o", "json", "-l", f"tradewind/peer={number}"))[
            "items"
        ]
        live = [
            pod
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] in ("Pending", "Running")
        ]
        return live[0]["metadata"]["name"] if live else None


def evict(bed, pod):
    eviction = {
        "apiVersion": "policy/v1beta1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"},
    }
    bed.kubectl(
        "create",
        "--raw",
        f"/api/v1/namespaces/default/pods/{pod}/eviction",
        "-f",
        "-",
        stdin=json.dumps(eviction),
    )


def gone(bed, pod):
    return not bed.kubectl("get", "pods", pod, "--ignore-not-found", "-o", "name")


def wait(holds, what):
    return wait_for(holds, what, limit=PATIENCE_S, every=0.3)


def test_an_evicted_peer_drains_within_its_grace_is_replaced_and_takes_part(bed, tmp_path):
    run = PodRun(tmp_path, bed)
    run.start()
    wait(lambda: all(run.takes_part(number) for number in (1, 2, 3, 4)), "four peers take part")
    assert set(run.states().values()) == {"running"}
    assert "nothing to change" in run.start()

    # The first peer, which began the run: its next pod has the same command line.
    victim = run.pod_of(1)
    began = time.monotonic()
    evict(bed, victim)
    wait(lambda: gone(bed, victim), "the pod is gone")
    took = time.monotonic() - began
    assert took < GRACE_S, "it left by itself, before SIGKILL"
    wait(lambda: run.takes_part(1, starts=2), "the next pod of the peer takes part")
    assert run.pod_of(1) not in (None, victim)
    assert [len(run.logs_of(number)) for number in (2, 3, 4)] == [1, 1, 1], "only the lost one is replaced"
    print(f"evicted: gone after {took:.1f} s, takes part again after {time.monotonic() - began:.1f} s")

    run.down()
    assert (
        bed.kubectl(
            "get",
            "jobs,pods,secrets,services,configmaps",
            "-l",
            "app.kubernetes.io/instance=words",
            "-o",
            "name",
        )
        == ""
    )
    report = run.report()
    assert report["identical"], report
    assert report["lost"] == [], "it left, and was not lost"
    assert report["samples"] == report["rounds"] * run.batch, "samples are exact"


def test_the_server_takes_what_is_written_for_gke_eks_and_aks(bed):
    golden = Path(__file__).resolve().parents[2] / "golden/launch/k8s"
    for path in sorted(golden.glob("*.json")):
        bed.kubectl("apply", "--server-side", "--dry-run=server", "-f", str(path))


def test_a_complete_run_is_not_started_again(bed, tmp_path):
    run = PodRun(tmp_path, bed)
    run.name = "short"
    run.state = run.folder / "state" / run.name
    text = (run.folder / "run.yaml").read_text().replace("rounds: 100000", "rounds: 8")
    (run.folder / "run.yaml").write_text(text)
    run.start()
    wait(lambda: set(run.states().values()) == {"done"}, "all peers are done")
    assert {peer["restarts"] for peer in run.peers().values()} == {0}
    assert "is complete" in run.start()
    run.down()
