# SPDX-License-Identifier: Apache-2.0
"""A Slurm of four virtual nodes on this machine: root without systemd, own key, nothing under /etc."""
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

CONF = """
ClusterName=bed
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={bed}/munge/socket
StateSaveLocation={bed}/state
SlurmdSpoolDir={bed}/spool-%n
SlurmctldPidFile={bed}/slurmctld.pid
SlurmdPidFile={bed}/slurmd-%n.pid
SlurmctldLogFile={bed}/slurmctld.log
SlurmdLogFile={bed}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
ReturnToService=2
SlurmdTimeout=10
JobRequeue=1
NodeName=n[1-4] NodeHostName={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1
PartitionName=preemptible Nodes=n[1-4] Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=30
PartitionName=ondemand Nodes=n[1-4] PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE
"""


class SlurmBed:
    """up() and down(); between them, the commands of Slurm work with `environment`.

    A machine has one at a time: jobs of two meet, and neither gets all of its nodes.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.turn = None
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"),
                                PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def run(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True,
                              timeout=60).stdout

    def up(self):
        self.turn = open(Path(tempfile.gettempdir()) / f"tradewind-slurm-bed-{os.getuid()}", "w")
        fcntl.flock(self.turn, fcntl.LOCK_EX)
        munge = self.folder / "munge"
        for name in ("state", "munge"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        munge.chmod(0o711)
        key = munge / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        first = 30_000 + os.getpid() % 1000 * 8
        (self.folder / "slurm.conf").write_text(CONF.format(
            bed=self.folder, host=os.uname().nodename.split(".")[0], port=first, first=first + 1,
            last=first + 4))
        self.run("munged", "--force", f"--key-file={key}", f"--socket={munge}/socket",
                 f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                 f"--seed-file={munge}/seed")
        self.run("slurmctld", "-c")
        for number in range(1, 5):
            self.run("slurmd", "-N", f"n{number}")
        end = time.monotonic() + 60
        while self.run("sinfo", "-h", "-N", "-p", "ondemand", "-o", "%T").split() != ["idle"] * 4:
            assert time.monotonic() < end, (self.folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.1)

    def down(self):
        """Jobs first: slurmd leaves its steps alone when it ends."""
        subprocess.run(["scancel", "--full", "--user=root"], env=self.environment, check=False,
                       capture_output=True, timeout=60)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.run("squeue", "-h"):
            time.sleep(0.2)
        for file in self.folder.glob("*.pid"):
            try:
                os.kill(int(file.read_text()), signal.SIGTERM)
            except (ValueError, ProcessLookupError):
                pass
        self.turn.close()
