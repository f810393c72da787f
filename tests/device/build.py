# SPDX-License-Identifier: Apache-2.0
"""build.py FOLDER: builds the simulated device there, by torch's own extension builder."""

import sys
from pathlib import Path

from torch.utils.cpp_extension import load

HERE = Path(__file__).parent

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    sources = [str(HERE / f"{name}.cc") for name in ("timeline", "memory", "kernels", "device")]
    flags = ["-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers"]
    load("tradewind_sim", sources, extra_cflags=flags, build_directory=str(folder), is_python_module=False)
