# SPDX-License-Identifier: Apache-2.0
"""Systems, Pythons and versions of PyTorch on which the wheel has to work; each is made once, in a cache."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tradewind/systems"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
MIRROR = "http://deb.debian.org/debian"


class CannotBeHad(Exception):
    """This machine lacks what the system is made of."""


@dataclass(frozen=True)
class System:
    """debian: a suite of Debian in a folder of its own; empty: this machine. python: a version; empty: the
    system's. torch: a version on PyPI; "system": that of the system's packages; empty: none.
    """

    debian: str = ""
    python: str = ""
    torch: str = ""

    def __str__(self):
        python = f"Python {self.python}" if self.python else "its Python"
        torch = {"": "no PyTorch", "system": "its PyTorch"}.get(self.torch, f"PyTorch {self.torch}")
        return f"{self.debian or 'here'}, {python}, {torch}"

    @property
    def root(self):
        return CACHE / self.debian if self.debian else None

    def command(self, *command, work):
        """The command as one of this system, in the folder `work`, which has the same name there."""
        if not self.debian:
            return command
        entering = """
            set -e; mkdir -p "$0$1"
            mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; mount --bind "$1" "$0$1"
            exec chroot "$0" env -C "$PWD" "${@:2}" """
        return ("unshare", "--mount", "bash", "-c", entering, str(self.root), str(work), *command)

    def find_python(self):
        if self.debian or not self.python:
            return "/usr/bin/python3"
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{self.python}.*/bin/python3"))
        found = [shutil.which(f"python{self.python}", path="/usr/bin:/usr/local/bin"), *map(str, pyenv)]
        if not any(found):
            raise CannotBeHad(f"this machine has no python{self.python}")
        return next(filter(None, found))

    def make(self):
        """Nothing, the second time. CannotBeHad."""
        CACHE.mkdir(parents=True, exist_ok=True)
        if self.debian and not (self.root / "complete").exists():
            shutil.rmtree(self.root, ignore_errors=True)
            options = ("--variant=minbase", f"--include={PACKAGES}")
            call("debootstrap", *options, self.debian, str(self.root), MIRROR)
            shutil.copy("/etc/resolv.conf", self.root / "etc")
            # A proxy between here and PyPI may have an authority of its own.
            shutil.copy("/etc/ssl/certs/ca-certificates.crt", self.root / "etc/ssl/certs")
            (self.root / "complete").touch()
        if self.debian and self.torch == "system" and not (self.root / "complete-torch").exists():
            install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "python3-torch")
            call(*self.command("env", "DEBIAN_FRONTEND=noninteractive", *install, work=CACHE))
            (self.root / "complete-torch").touch()
        if self.packages and not self.seen_from_here(self.packages / "complete").exists():
            pip = (self.find_python(), "-m", "pip", "install", "-q", "--no-cache-dir")
            wanted = ("--target", str(self.packages), f"torch=={self.torch}", "numpy<2")
            call(*self.command("env", "TMPDIR=/var/tmp", *pip, *wanted, work=CACHE))
            self.seen_from_here(self.packages / "complete").touch()

    def download(self, torch):
        """The folder, as the system sees it, that pip filled with a version of PyTorch. CannotBeHad."""
        folder = Path("/opt") / f"wheels-torch-{torch}"
        if not self.seen_from_here(folder / "complete").exists():
            pip = (self.find_python(), "-m", "pip", "download", "-q", "--no-cache-dir", "--dest", str(folder))
            call(*self.command("env", "TMPDIR=/var/tmp", *pip, f"torch=={torch}", work=CACHE))
            self.seen_from_here(folder / "complete").touch()
        return folder

    @property
    def packages(self):
        """Where PyTorch of PyPI is, as the system sees it; a virtual environment can be told of it."""
        if not self.torch[:1].isdigit():
            return None
        return (Path("/opt") if self.debian else CACHE) / f"torch-{self.torch}"

    def seen_from_here(self, path):
        return self.root / path.relative_to("/") if self.debian else path


def arm_python():
    """The words that start Python of Debian 12 for Arm, under an emulator. CannotBeHad."""
    root = CACHE / "bookworm-arm64"
    CACHE.mkdir(parents=True, exist_ok=True)
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        options = ("--foreign", "--arch=arm64", "--variant=minbase", "--include=python3.11")
        call("debootstrap", *options, "bookworm", str(root), MIRROR)
        for package in (root / "var/cache/apt/archives").glob("*.deb"):
            call("dpkg-deb", "--extract", str(package), str(root))
        (root / "complete").touch()
    return "qemu-aarch64-static", "-L", str(root), str(root / "usr/bin/python3.11")


def call(*command):
    try:
        found = subprocess.run(command, capture_output=True, text=True, cwd=CACHE)
    except FileNotFoundError as error:
        raise CannotBeHad(f"{error.filename} is missing (tests/wheels/packages.txt)") from None
    if found.returncode != 0:
        raise CannotBeHad(f"{command[0]} failed: {(found.stdout + found.stderr).strip()[-300:]}")


SYSTEMS = [
    System("bullseye", torch="1.11.0"),  # glibc 2.31, Python 3.9, the oldest PyTorch that works
    System("bullseye"),
    System(torch="system"),
    System(),
    System(python="3.8"),
    System(python="3.10"),
    System(python="3.11", torch="2.15.0"),
    System(python="3.12"),
    System(python="3.13"),
    System("trixie", torch="system"),
    System("trixie"),
    System("sid"),  # the newest glibc
]
# Those of Debian, and where pyenv is, the others, too.
LEAST_PYTHONS = {"3.9", "3.11", "3.13"}
if (Path.home() / ".pyenv").is_dir():
    LEAST_PYTHONS |= {system.python for system in SYSTEMS if system.python}
