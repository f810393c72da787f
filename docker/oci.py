# SPDX-License-Identifier: Apache-2.0
"""Container images as OCI archives, made without a container engine.

An image is one tar of files and three JSON texts about it (https://github.com/opencontainers/image-spec).
The same files give the same bytes.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import time
from pathlib import Path

STAMP = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
KIND = "application/vnd.oci.image."


class Layer:
    """A tar of files whose owners and times say nothing about this machine."""

    def __init__(self):
        self._bytes = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._bytes, mode="w", format=tarfile.GNU_FORMAT)
        self._folders = set()

    def folder(self, path, mode=0o755):
        if path in ("", ".") or path in self._folders:
            return
        self.folder(os.path.dirname(path))
        self._folders.add(path)
        self._add(path, tarfile.DIRTYPE, mode)

    def file(self, path, content, mode=0o644):
        self.folder(os.path.dirname(path))
        self._add(path, tarfile.REGTYPE, mode, content)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def _add(self, path, kind, mode, content=b"", target=""):
        member = tarfile.TarInfo(path)
        member.type, member.mode, member.size, member.mtime, member.linkname = (
            kind,
            mode,
            len(content),
            STAMP,
            target,
        )
        self._tar.addfile(member, io.BytesIO(content))

    def bytes(self):
        self._tar.close()
        return self._bytes.getvalue()


def as_json(value):
    return json.dumps(value, sort_keys=True).encode()


class _Blobs:
    """Contents by their digests."""

    def __init__(self):
        self.contents = {}

    def add(self, content, media_type):
        """The descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.contents[digest] = content
        return {"mediaType": KIND + media_type, "digest": f"sha256:{digest}", "size": len(content)}


def write_image(archive, layer, config, name, made_by):
    """The archive of an image of one layer. config: "Cmd" and others of the specification; name: NAME:TAG."""
    blobs = _Blobs()
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(STAMP))
    about = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": made_by}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": KIND + "manifest.v1+json",
        "config": blobs.add(as_json(about), "config.v1+json"),
        "layers": [blobs.add(gzip.compress(layer, mtime=0), "layer.v1.tar+gzip")],
    }
    image = blobs.add(as_json(manifest), "manifest.v1+json")
    # containerd puts words of its own before the name of the specification.
    image["annotations"] = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
    whole = Layer()
    whole.file("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    whole.file("index.json", as_json({"schemaVersion": 2, "manifests": [image]}))
    for digest, content in blobs.contents.items():
        whole.file(f"blobs/sha256/{digest}", content)
    unfinished = Path(f"{archive}.new")
    unfinished.write_bytes(whole.bytes())
    unfinished.rename(archive)
