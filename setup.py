# SPDX-License-Identifier: Apache-2.0
"""Builds libtradewind.so and tw with CMake, and packs them into the package: one wheel for every Python.

TRADEWIND_LIBRARY names a library that is built already, and tw is beside it or left out; TRADEWIND_BUILD
names another build folder than build/. TRADEWIND_WHEEL names the folder in which tools/wheel/pack.sh laid
what a wheel for other machines holds beside them: licenses/ and sbom.json.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
TARGETS = ["tradewind", "tw"]
LIBRARY = "libtradewind.so"
PROGRAM = "tw"
STAGED = os.environ.get("TRADEWIND_WHEEL")


def version():
    """That of the CMake project."""
    return re.search(
        r"project\(\s*tradewind\s+VERSION\s+([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()
    ).group(1)


def built_library():
    """libtradewind.so, built now unless TRADEWIND_LIBRARY names one."""
    named = os.environ.get("TRADEWIND_LIBRARY")
    if named:
        return Path(named)
    folder = Path(os.environ.get("TRADEWIND_BUILD", ROOT / "build"))
    if not (folder / "CMakeCache.txt").exists():
        # Whose compiler it is nobody knows: a warning must not end the installation, wherever it runs.
        options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF"]
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), *options], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", *TARGETS], check=True)
    return next(folder.rglob(LIBRARY))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        package = Path(self.build_lib) / "tradewind"
        package.mkdir(parents=True, exist_ok=True)
        library = built_library()
        shutil.copy2(library, package / LIBRARY)
        program = library.with_name(PROGRAM)
        if program.is_file():  # becomes bin/tw of the environment; only now is it known to be there
            self.distribution.data_files = [("bin", [os.path.relpath(program, ROOT)])]


class WheelForEveryPython(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]

    def egg2dist(self, egginfo_path, distinfo_path):
        super().egg2dist(egginfo_path, distinfo_path)
        if STAGED:
            shutil.copytree(Path(STAGED) / "licenses", Path(distinfo_path) / "licenses")
            (Path(distinfo_path) / "sboms").mkdir()
            shutil.copy2(Path(STAGED) / "sbom.json", Path(distinfo_path) / "sboms/tradewind.cdx.json")


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    version=version(),
    package_dir={"": "python"},
    packages=find_packages("python"),
    package_data={"": ["*"]},
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelForEveryPython},
    distclass=WithLibrary,
)
