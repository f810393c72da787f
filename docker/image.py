#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a container image as an OCI archive: `tw` of a wheel, a shell, and CA certificates.

usage: docker/image.py WHEEL dist/tradewind-oci.tar

It needs neither a container engine nor a registry (oci.py). busybox, glibc and the certificates are those of
this machine (packages-image.txt), and usr/share/doc/SOURCES says where their sources are.
"""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from oci import Layer, write_image

# What tw is linked with, and what glibc loads to resolve names of hosts.
LIBRARIES = (
    "libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2".split()
)
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
BUSYBOX = Path("/bin/busybox")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What the image holds of Debian. The libraries inside tw have permissive licences, which come with the wheel.
LICENCES = {"busybox-static": "GPL-2.0-only", "libc6": "LGPL-2.1-or-later", "ca-certificates": "MPL-2.0"}
LICENCE_TEXTS = "GPL-2 LGPL-2.1 MPL-2.0".split()
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def fail(words):
    sys.exit(f"image: {words}")


def source_of(package):
    """A line: what it is, its version and licence, and where its source is."""
    shown = ["dpkg-query", "-W", "-f", "${Version} ${source:Package}/${source:Version}", package]
    version, source = subprocess.check_output(shown, text=True).split()
    return f"{package} {version} {LICENCES[package]} https://snapshot.debian.org/package/{source}/\n"


def layer_of(wheel):
    layer = Layer()
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            if name.endswith(".data/data/bin/tw"):
                layer.file("usr/local/bin/tw", packed.read(name), 0o755)
            elif re.search(r"\.dist-info/(LICENSE|licenses/.+|sboms/.+)$", name):
                layer.file(f"usr/share/doc/tradewind/{os.path.basename(name)}", packed.read(name))
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    layer.file("bin/busybox", BUSYBOX.read_bytes(), 0o755)
    for applet in sorted(set(applets) - {"busybox"}):
        layer.link(f"bin/{applet}", "busybox")
    layer.file(str(LOADER).lstrip("/"), LOADER.read_bytes(), 0o755)
    for library in LIBRARIES:
        layer.file(f"lib/x86_64-linux-gnu/{library}", (LOADER.resolve().parent / library).read_bytes(), 0o755)
    layer.file(str(CERTIFICATES).lstrip("/"), CERTIFICATES.read_bytes())
    texts = [f"usr/share/doc/{package}/copyright" for package in LICENCES]
    texts += [f"usr/share/common-licenses/{name}" for name in LICENCE_TEXTS]
    for text in texts:
        layer.file(text, Path("/", text).read_bytes())
    layer.file("usr/share/doc/SOURCES", "".join(map(source_of, LICENCES)).encode())
    for path, text in TEXTS.items():
        layer.file(path, text.encode())
    layer.folder("root", 0o700)
    layer.folder("tmp", 0o1777)
    return layer.bytes()


def main(wheel, archive):
    found = re.fullmatch(r"tradewind-([^-]+)-py3-none-manylinux_\d+_\d+_x86_64\.whl", Path(wheel).name)
    if not found:
        fail(f"{wheel} is no wheel of tradewind for x86-64 Linux: make wheel")
    for needed in (BUSYBOX, LOADER, CERTIFICATES):
        if not needed.exists():
            fail(f"{needed} is missing: apt-get install busybox-static ca-certificates")
    labels = {"org.opencontainers.image.title": "tradewind", "org.opencontainers.image.version": found[1]}
    labels["org.opencontainers.image.licenses"] = " AND ".join(["Apache-2.0", *LICENCES.values()])
    config = {"Env": ["PATH=/usr/local/bin:/bin"], "Cmd": ["tw", "--help"], "Labels": labels}
    write_image(archive, layer_of(wheel), config, f"tradewind:{found[1]}", "docker/image.py")
    print(f"{archive}: {Path(archive).stat().st_size / 1e6:.1f} MB, tradewind {found[1]}")


if len(sys.argv) != 3:
    fail("usage: docker/image.py WHEEL dist/tradewind-oci.tar")
main(*sys.argv[1:])
