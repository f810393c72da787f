# SPDX-License-Identifier: Apache-2.0
"""An object store that checks signatures: Ceph's S3 gateway over a monitor and an OSD in memory, all on
loopback. It takes about 15 s to begin.
"""

import os
import shutil
import socket
import subprocess
import time
import uuid
from pathlib import Path

KEY, SECRET, BUCKET = "TRADEWINDKEY", "a/secret+of=tests", "twdata"
PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph", "s3cmd")


def why_not():
    """What is missing for these tests; empty: nothing."""
    lacking = [program for program in PROGRAMS if not shutil.which(program)]
    return f"no {', '.join(lacking)} (packages-engines.txt)" if lacking else ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class CephBed:
    """up() and down(); in between `environment` is what a user of the store sets."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.port = free_port()
        self.daemons = {}
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def up(self):
        self.folder.mkdir(parents=True)
        fsid, mon = str(uuid.uuid4()), f"127.0.0.1:{free_port()}"
        (self.folder / "ceph.conf").write_text(self._settings(fsid, mon))
        self._run("monmaptool", "--create", "--add", "a", mon, "--fsid", fsid, str(self.folder / "monmap"))
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", str(self.folder / "monmap"), *self._conf())
        self._begin("mon", "ceph-mon", "-f", "-i", "a", *self._conf())
        osd = str(uuid.uuid4())
        self._run("ceph", *self._conf(), "--connect-timeout", "30", "osd", "new", osd, "0")
        self._run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd, *self._conf())
        self._begin("osd", "ceph-osd", "-f", "-i", "0", *self._conf())
        self._run("radosgw-admin", *self._conf(), "user", "create", "--uid=tw", "--display-name=tw",
                  f"--access-key={KEY}", f"--secret-key={SECRET}")
        self.begin_gateway()
        self.s3cmd("mb", f"s3://{BUCKET}")

    def begin_gateway(self):
        self._begin("rgw", "radosgw", "-f", "-n", "client.rgw", *self._conf())
        end = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", self.port)) != 0:
            assert time.monotonic() < end, "the gateway does not listen"
            assert self.daemons["rgw"].poll() is None, (self.folder / "rgw.txt").read_text()[-2000:]
            time.sleep(0.05)

    def kill_gateway(self):
        daemon = self.daemons.pop("rgw")
        daemon.kill()
        daemon.wait()

    def down(self):
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()

    def s3cmd(self, *words):
        """Another client of S3, which signs by itself."""
        where = f"127.0.0.1:{self.port}"
        return self._run("s3cmd", "--no-ssl", "--config=/dev/null", f"--host={where}",
                         f"--host-bucket={where}", f"--access_key={KEY}", f"--secret_key={SECRET}", *words)

    def _conf(self):
        return ["-c", str(self.folder / "ceph.conf")]

    def _run(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{words}: {done.stdout[-1000:]} {done.stderr[-1000:]}"
        return done.stdout

    def _begin(self, name, *words):
        with open(self.folder / f"{name}.txt", "a") as out:
            self.daemons[name] = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, env=os.environ)

    def _settings(self, fsid, mon):
        data = "\n".join(f"{key} = {self.folder}/{name}" for key, name in
                         [("mon_data", "mon-data"), ("osd_data", "osd-data"), ("rgw_data", "rgw-data"),
                          ("run_dir", "run"), ("admin_socket", "$name.asok")])
        for name in ("mon-data", "osd-data", "rgw-data", "run"):
            (self.folder / name).mkdir()
        return f"""[global]
fsid = {fsid}
mon_host = v2:{mon}
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
{data}
log_file = {self.folder}/$name.log
pid_file =
osd_objectstore = memstore
memstore_device_bytes = 1073741824
osd_class_load_list = *
osd_class_default_list = *
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
[client.rgw]
ms_mon_client_mode = crc
rgw_frontends = beast endpoint=127.0.0.1:{self.port}
rgw_enable_usage_log = false
"""
