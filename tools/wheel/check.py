#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges a wheel before anybody gets it: size, tag, and what its programs ask of the system that runs them.

usage: tools/wheel/check.py dist/tradewind-...-manylinux_2_28_MACHINE.whl; needs readelf and auditwheel
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MOST_BYTES = 12_000_000
NEWEST_GLIBC = (2, 28)
SYSTEM = re.compile(r"(libc|libm|libpthread|libdl)\.so\.\d|ld-linux-[a-z0-9-]+\.so\.\d")
PROGRAMS = ("tradewind/libtradewind.so", ".data/data/bin/tw")
SOURCES = Path(__file__).resolve().parents[2] / "python"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def dynamic_symbols(path):
    """(name, version, is defined) of each."""
    for line in readelf("--dyn-syms", path).splitlines():
        columns = line.split()  # number, value, size, type, binding, visibility, section, name@version
        if len(columns) >= 8 and columns[0].endswith(":") and columns[0] != "Num:":
            name, _, version = columns[7].partition("@")
            yield name, version.lstrip("@"), columns[6] != "UND"


def wrongs_of_program(name, path):
    symbols = list(dynamic_symbols(path))
    versions = {
        tuple(map(int, version[6:].split("."))) for _, version, _ in symbols if version.startswith("GLIBC_")
    }
    newest = max(versions)
    print(f"{name}: {path.stat().st_size / 1e6:.1f} MB, glibc {'.'.join(map(str, newest))} or newer")
    if newest > NEWEST_GLIBC:
        yield f"{name} needs a symbol of glibc {newest}"
    for needed in re.findall(r"\(NEEDED\).*\[(\S+)\]", readelf("-d", path)):
        if not SYSTEM.fullmatch(needed):
            yield f"{name} needs {needed}, which systems may lack"
    if name.endswith(".so"):
        for symbol, _, defined in symbols:
            if defined and not symbol.startswith("tw_"):
                yield f"{name} exports {symbol}, which may meet another copy of it"


def wrongs_by_auditwheel(wheel):
    done = subprocess.run(["auditwheel", "show", wheel], capture_output=True, text=True)
    shown = done.stdout + done.stderr
    verdict = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_\w+"', " ".join(shown.split()))
    print(f"auditwheel: {verdict[0] if verdict else shown}")
    if verdict is None or (int(verdict[1]), int(verdict[2])) > NEWEST_GLIBC:
        yield f"auditwheel refuses the tag: {shown}"


def missing_modules(names):
    """What the package has here and not in the wheel."""
    files = (path for path in (SOURCES / "tradewind").rglob("*") if path.is_file())
    return {str(path.relative_to(SOURCES)) for path in files if "__pycache__" not in path.parts} - set(names)


def wrongs(wheel):
    machine = wheel.name.rsplit("manylinux_2_28_", 1)[-1][: -len(".whl")]
    if not re.fullmatch(r"tradewind-[0-9.]+-py3-none-manylinux_2_28_(x86_64|aarch64)\.whl", wheel.name):
        yield f"{wheel.name} is no name of a wheel for Linux with glibc 2.28"
    if wheel.stat().st_size > MOST_BYTES:
        yield f"{wheel.stat().st_size} bytes are more than {MOST_BYTES}"
    with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory() as folder:
        names = packed.namelist()
        print(f"{wheel.name}: {wheel.stat().st_size} bytes, {len(names)} files")
        for module in sorted(missing_modules(names)):
            yield f"{module} is missing"
        for program in PROGRAMS:
            inside = [name for name in names if name.endswith(program)]
            if len(inside) != 1:
                yield f"{program} is missing"
                continue
            path = Path(packed.extract(inside[0], folder))
            if (
                f"Machine: {'Advanced Micro Devices X86-64' if machine == 'x86_64' else 'AArch64'}"
                not in re.sub(r" +", " ", readelf("-h", path))
            ):
                yield f"{program} is not for {machine}"
            yield from wrongs_of_program(program.rsplit("/")[-1], path)
        yield from wrongs_by_auditwheel(wheel)
        licences = [name for name in names if "/licenses/" in name]
        if len(licences) < 16 or not any("/sboms/" in name for name in names):
            yield f"licences or the list of contents are missing: {licences}"


def main():
    found = list(wrongs(Path(sys.argv[1])))
    for wrong in found:
        print(f"wheel: {wrong}", file=sys.stderr)
    return 1 if found else 0


sys.exit(main())
