#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py OUT.tar NAME ENTRY FILE...: a container image of programs and their libraries (ldd), from nothing.

It is what the test bed runs, where no base image can be pulled; docker/Dockerfile makes the one for users.
ENTRY is a list as JSON; with [] it has the tools that `tw up --on k8s` needs. A FILE may be SOURCE=PATH, its
place in the image.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docker"))
from oci import Layer, write_image  # noqa: E402

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
    layer = Layer()
    layer.folder("tmp", 0o1777)
    layer.folder("var/lib/tradewind")
    for place, text in TEXTS.items():
        layer.file(place, text.encode())
    for place, source in sorted(places.items()):
        layer.file(place.lstrip("/"), Path(source).read_bytes(), 0o755)
    return layer.bytes()


def main():
    out, name, entry, *files = sys.argv[1:]
    entry = json.loads(entry)
    layer = layer_of(contents(files + ([] if entry else TOOLS)))
    write_image(out, layer, {"Env": ["PATH=/usr/bin:/bin"], "Entrypoint": entry}, name, "image.py")


if __name__ == "__main__":
    main()
