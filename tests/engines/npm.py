# SPDX-License-Identifier: Apache-2.0
"""Programs of npm that tests use, each installed once into a cache."""

import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("TW_ENGINES_CACHE", Path.home() / ".cache/tradewind-engines")) / "npm"


def npm_package(package, limit_s=300):
    """The folder of "NAME@VERSION"; None where it cannot be installed."""
    folder = CACHE / "node_modules" / package.rsplit("@", 1)[0]
    if not folder.exists() and shutil.which("npm"):
        CACHE.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--silent", "--prefix", str(CACHE), package]
        try:
            subprocess.run(words, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            shutil.rmtree(folder, ignore_errors=True)
    return folder if folder.exists() else None
