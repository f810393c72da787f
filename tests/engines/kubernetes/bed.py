# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes 1.20 of one node on this machine: etcd, control plane, kubelet, containerd.

As root, in a network namespace of its own (run.sh makes it). Nothing is written outside of its folder but the
cgroups of its pods.
"""

import json
import os
import subprocess
import time
from pathlib import Path

from names import Names

HERE = Path(__file__).resolve().parent
NODE = "10.88.0.1"
PAUSE = "tradewind.test/pause:1"

CONTAINERD = """
version = 2
root = "{bed}/containerd"
state = "{bed}/containerd-state"
[grpc]
  address = "{bed}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{bed}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "bed",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "dataDir": "{bed}/addresses",
                "ranges": [[{"subnet": "10.88.0.0/16"}]],
            },
        }
    ],
}
# One node without the kernel's memory of swap and without systemd; its disks may be nearly full.
KUBELET = {
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "clusterDNS": [NODE],
    "clusterDomain": "cluster.local",
    "failSwapOn": False,
    "resolvConf": "{bed}/resolv.conf",
    "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
    "imageGCLowThresholdPercent": 99,
}


class Bed:
    """up() and down(); between them kubectl() works, and other programs do with `environment`."""

    def __init__(self, folder, programs):
        self.folder, self.programs, self.children, self.names = Path(folder), Path(programs), [], None
        self.environment = dict(
            os.environ,
            KUBECONFIG=str(self.folder / "kubeconfig"),
            PATH=f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin",
        )
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            self.environment.pop(name, None)

    def run(self, *words, stdin=None, check=True):
        done = subprocess.run(
            words,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert not check or done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}"
        return done.stdout

    def kubectl(self, *words, **how):
        return self.run(str(self.programs / "kubectl"), *words, **how)

    def start(self, *words):
        log = open(self.folder / f"{Path(words[0]).name}.log", "ab")
        self.children.append(
            subprocess.Popen(
                list(map(str, words)), env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        )

    def wait_for(self, holds, what, limit=180):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                value = holds()
            except (OSError, ValueError):
                value = None
            if value:
                return value
            for child in self.children:
                assert child.poll() is None, f"{child.args[0]} has ended; its log is in {self.folder}"
            time.sleep(0.2)
        raise AssertionError(f"not within {limit} s: {what}")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text if isinstance(text, str) else json.dumps(text).replace("{bed}", str(self.folder))
        )
        return path

    def up(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.network()
        self.control_plane()
        self.node()
        self.names = Names(NODE, self.kubectl)
        self.names.start()

    def network(self):
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "add", "cni0", "type", "bridge")
        self.run("ip", "address", "add", f"{NODE}/16", "dev", "cni0")
        self.run("ip", "link", "set", "cni0", "up")
        # kube-apiserver and kubelet want a way out, which no packet takes.
        self.run("ip", "route", "add", "default", "via", NODE, check=False)

    def control_plane(self):
        key = self.folder / "accounts.key"
        self.run("openssl", "genrsa", "-out", str(key), "2048")
        tokens = self.write("tokens.csv", "bed-admin,admin,admin,system:masters\n")
        self.write(
            "kubeconfig",
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bed",
                "clusters": [
                    {
                        "name": "bed",
                        "cluster": {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True},
                    }
                ],
                "users": [{"name": "admin", "user": {"token": "bed-admin"}}],
                "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}],
            },
        )
        self.start(
            "etcd",
            "--data-dir",
            self.folder / "etcd",
            "--listen-client-urls",
            "http://127.0.0.1:2379",
            "--advertise-client-urls",
            "http://127.0.0.1:2379",
            "--listen-peer-urls",
            "http://127.0.0.1:2380",
            "--unsafe-no-fsync",
        )
        self.start(
            self.programs / "kube-apiserver",
            "--etcd-servers",
            "http://127.0.0.1:2379",
            "--cert-dir",
            self.folder / "certificates",
            "--token-auth-file",
            tokens,
            "--service-account-key-file",
            key,
            "--service-account-signing-key-file",
            key,
            "--service-account-issuer",
            "https://bed",
            "--disable-admission-plugins",
            "ServiceAccount",
            "--endpoint-reconciler-type",
            "none",
            "--service-cluster-ip-range",
            "10.96.0.0/16",
            "--advertise-address",
            NODE,
            "--kubelet-preferred-address-types",
            "InternalIP",
            "--allow-privileged",
        )
        self.wait_for(
            lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", "the API server is ready"
        )
        config = self.folder / "kubeconfig"
        self.start(
            self.programs / "kube-controller-manager",
            "--kubeconfig",
            config,
            "--leader-elect=false",
            "--service-account-private-key-file",
            key,
        )
        self.start(self.programs / "kube-scheduler", "--kubeconfig", config, "--leader-elect=false")

    def node(self):
        self.write("containerd.toml", CONTAINERD.format(bed=self.folder, pause=PAUSE))
        self.write("cni/bed.conflist", NETWORK)
        self.write("resolv.conf", f"nameserver {NODE}\n")
        self.start("containerd", "--config", self.folder / "containerd.toml")
        self.wait_for(lambda: "1.6" in self.ctr("version", check=False), "containerd answers")
        self.pause_image()
        self.start(
            self.programs / "kubelet",
            "--config",
            self.write("kubelet.json", KUBELET),
            "--kubeconfig",
            self.folder / "kubeconfig",
            "--container-runtime",
            "remote",
            "--container-runtime-endpoint",
            f"unix://{self.folder}/containerd.sock",
            "--root-dir",
            self.folder / "kubelet",
            "--cert-dir",
            self.folder / "kubelet-certificates",
            "--hostname-override",
            "node-1",
            "--node-ip",
            NODE,
        )
        self.wait_for(
            lambda: self.kubectl("get", "nodes", check=False).find(" Ready") > 0, "the node is ready"
        )

    def ctr(self, *words, **how):
        return self.run(
            "ctr", "--address", f"{self.folder}/containerd.sock", "--namespace", "k8s.io", *words, **how
        )

    def pause_image(self):
        source = self.run(str(HERE / "source.sh")).strip()
        self.run(
            "cc", "-Os", "-static", "-o", str(self.folder / "pause"), f"{source}/build/pause/linux/pause.c"
        )
        self.image(PAUSE, f"{self.folder}/pause=/pause", entry=["/pause"])

    def image(self, name, *files, entry=()):
        """Into containerd; see image.py."""
        archive = self.folder / "image.tar"
        self.run(
            "/usr/bin/python3", str(HERE / "image.py"), str(archive), name, json.dumps(list(entry)), *files
        )
        self.ctr("images", "import", str(archive))
        archive.unlink()

    def label(self, **labels):
        self.kubectl(
            "label", "--overwrite", "nodes", "node-1", *(f"{key}={value}" for key, value in labels.items())
        )

    def down(self):
        if self.names:
            self.names.ended = True
            self.names.join()
        self.kubectl("delete", "jobs,pods", "--all", "--grace-period=1", check=False)
        for child in reversed(self.children):
            child.terminate()
        for child in reversed(self.children):
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        # Shims and their containers outlive containerd.
        for pid in self.processes_of_bed():
            os.kill(pid, 9)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(str(self.folder)):
                self.run("umount", "-l", line.split()[1], check=False)

    def processes_of_bed(self):
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            try:
                if f"{self.folder}/containerd.sock".encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                pass
        return found
