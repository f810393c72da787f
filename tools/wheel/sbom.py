#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the wheel for a machine holds beside our own code, as CycloneDX.

usage: tools/wheel/sbom.py x86_64|aarch64
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
NOT_INSIDE = {"googletest", "benchmark"}


def component(name, version, digest):
    """A line of packages-wheel.txt."""
    name, _, architecture = name.partition(":")
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:deb/debian/{name}@{version}?arch={architecture or 'source'}&distro=bookworm",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def components(machine):
    lines = (ROOT / "packages-wheel.txt").read_text().splitlines()
    for name, version, digest in (line.split() for line in lines if line and not line.startswith("#")):
        if name.partition(":")[2] in ("", "all", DEBIAN[machine]) and name not in NOT_INSIDE:
            yield component(name, version, digest)
    zig = re.search(r"^zig_version=(\S+)", (ROOT / "tools/wheel/libraries.sh").read_text(), re.M)[1]
    for name in ("libcxx", "libcxxabi", "libunwind", "compiler-rt"):
        yield {
            "type": "library",
            "name": name,
            "version": f"of ziglang {zig}",
            "purl": f"pkg:pypi/ziglang@{zig}#{name}",
        }
    yield {
        "type": "data",
        "name": "Optical Recognition of Handwritten Digits",
        "licenses": [{"license": {"id": "CC-BY-4.0"}}],
    }
    for folder in sorted((ROOT / "web/vendor").iterdir()):
        yield {"type": "library", "name": folder.name}


def main():
    version = re.search(
        r"project\(\s*tradewind\s+VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()
    )[1]
    ours = {
        "type": "library",
        "name": "tradewind",
        "version": version,
        "purl": f"pkg:pypi/tradewind@{version}",
    }
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": ours},
        "components": list(components(sys.argv[1])),
    }
    print(json.dumps(document, indent=1))


main()
