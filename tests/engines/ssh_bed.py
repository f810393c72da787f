# SPDX-License-Identifier: Apache-2.0
"""Four hosts in network namespaces on a wide-area network: one for the user, three with sshd."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

from launched import TW_WAN

TOPOLOGY = """
about: a user and three hosts with sshd, 20 ms apart
sites:
  - {name: user, nic: 1gbit}
  - {name: one, nic: 1gbit}
  - {name: two, nic: 1gbit}
  - {name: three, nic: 1gbit}
links:
  - {rtt: 20ms, bandwidth: 400mbit}
"""
CONFIG = """
Host *
  User root
  IdentityFile {bed}/user-key
  IdentitiesOnly yes
  UserKnownHostsFile {bed}/known-hosts
  StrictHostKeyChecking yes
  GlobalKnownHostsFile /dev/null
"""
HOSTS = ("one", "two", "three")


class SshBed:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.topology = self.folder / f"tw{os.getpid() % 10000}.yaml"
        self.servers = []

    def wan(self, *words):
        return subprocess.run([TW_WAN, str(self.topology), *words], capture_output=True, text=True,
                              check=True, timeout=60).stdout

    def inside(self, host):
        """Words in front of a command that runs there."""
        return [TW_WAN, str(self.topology), "exec", host]

    def up(self):
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        self.topology.write_text(TOPOLOGY)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("user-key", "host-key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)],
                           check=True)
        shutil.copy(self.folder / "user-key.pub", self.folder / "authorized")
        public = " ".join((self.folder / "host-key.pub").read_text().split()[:2])
        (self.folder / "known-hosts").write_text(f"* {public}\n")
        (self.folder / "config").write_text(CONFIG.format(bed=self.folder))
        self.wan("up")
        for host in HOSTS:
            self.start_server(host)

    def start_server(self, host):
        """Each host has a home of its own, as if it had a disk of its own."""
        home = self.folder / host
        home.mkdir(exist_ok=True)
        words = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"]
        options = [f"HostKey={self.folder}/host-key", f"AuthorizedKeysFile={self.folder}/authorized",
                   "StrictModes=no", "UsePAM=no", "PasswordAuthentication=no", "PermitRootLogin=yes",
                   f"PidFile={self.folder}/{host}.pid", f"SetEnv=HOME={home}"]
        log = open(self.folder / f"{host}.log", "wb")
        self.servers.append(subprocess.Popen(
            [*self.inside(host), *words, *(word for option in options for word in ("-o", option))],
            stdout=log, stderr=log))

    def hosts_file(self, hosts=HOSTS):
        file = self.folder / "hosts.txt"
        file.write_text("".join(f"{host} site=onprem:{host}\n" for host in hosts))
        return file

    def down(self):
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
        subprocess.run([TW_WAN, str(self.topology), "down"], capture_output=True, check=False, timeout=60)
        for server in self.servers:
            server.kill()
            server.wait()
