#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py OUT.tar NAME ENTRY FILE...: a container image of programs and their libraries (ldd), from nothing.

It is what the test bed runs, where no base image can be pulled; docker/Dockerfile makes the one for users.
The archive is of the kind that `docker save` writes. ENTRY is a list as JSON; with [] it has the tools that
`tw up --on k8s` needs. A FILE may be SOURCE=PATH, its place in the image.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile

# What `tw up --on k8s` asks of a container beside tw itself, and where names of hosts are looked up.
TOOLS = ["/bin/sh", "/bin/ls", "/usr/bin/tail"]
TEXTS = {"etc/nsswitch.conf": "hosts: files dns\n", "etc/passwd": "root:x:0:0:root:/:/bin/sh\n"}


def libraries(program):
    """Paths of the shared libraries of a program, none for a static one."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return re.findall(r"(?:=> )?(/\S+) \(0x", done.stdout) if done.returncode == 0 else []


def contents(files):
    """Place in the image -> file here."""
    places = {}
    for file in files:
        source, _, place = file.partition("=")
        places[place or source] = source
    for source in list(places.values()):
        places.update({library: library for library in libraries(source)})
    return places


def layer_of(places):
    """The bytes of a tar, the same for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("tmp", "var", "var/lib", "var/lib/tradewind"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for place, text in TEXTS.items():
            entry = tarfile.TarInfo(place)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
        for place, source in sorted(places.items()):
            entry = tarfile.TarInfo(place.lstrip("/"))
            entry.size, entry.mode = os.path.getsize(source), 0o755
            with open(source, "rb") as file:
                tar.addfile(entry, file)
    return buffer.getvalue()


def main():
    out, name, entry, *files = sys.argv[1:]
    entry = json.loads(entry)
    layer = layer_of(contents(files + ([] if entry else TOOLS)))
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin"], "Entrypoint": entry},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
    )
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}])
    with tarfile.open(out, "w") as tar:
        for path, data in (
            ("config.json", config.encode()),
            ("layer.tar", layer),
            ("manifest.json", manifest.encode()),
        ):
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
