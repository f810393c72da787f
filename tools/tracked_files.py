# SPDX-License-Identifier: Apache-2.0
"""The files that checks judge: those that git tracks, not what a command wrote into the tree."""
import subprocess
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=None)
def _tracked(root):
    """None: root is not the top of a git repository, so all its files count."""
    git = ["git", "-C", str(root)]
    try:
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True)
        if top.returncode != 0 or Path(top.stdout.strip()) != Path(root).resolve():
            return None
        listed = subprocess.run([*git, "ls-files", "-z"], capture_output=True, check=True).stdout
    except OSError:  # no git
        return None
    return frozenset(name for name in listed.decode(errors="surrogateescape").split("\0") if name)


def is_judged(root, path):
    tracked = _tracked(root)
    return tracked is None or path.relative_to(root).as_posix() in tracked
