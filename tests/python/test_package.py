# SPDX-License-Identifier: Apache-2.0
"""Types, import time, and the wheel in a virtual environment."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from conftest import ROOT, needs_engine, python_path


def test_types_are_right(tmp_path):
    pytest.importorskip("mypy")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import tradewind
print(sorted(set(tradewind.__all__) - set(dir(tradewind))), tradewind.SettingError.__name__)
try:
    tradewind.join
except ImportError as error:
    print(error)
"""


def test_the_package_is_imported_without_torch_until_that_is_needed():
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == [
        "[] SettingError",
        "tradewind.join needs PyTorch 1.11 or newer, which is not installed: pip install torch",
    ]


@pytest.mark.parametrize(("version", "works"), [("1.7.1", False), ("1.10.2+cu113", False), ("1.11.0", True)])
def test_an_old_torch_is_refused_by_its_version(monkeypatch, version, works):
    import tradewind

    monkeypatch.delitem(vars(tradewind), "data", raising=False)
    monkeypatch.setattr("torch.__version__", version)
    if works:
        assert tradewind.data
        return
    text = f"tradewind.data needs PyTorch 1.11 or newer; {version} is installed: pip install --upgrade torch"
    with pytest.raises(ImportError, match=f"^{re.escape(text)}$"):
        assert tradewind.data


@pytest.mark.parametrize("module", ["tradewind", "tradewind.demo"])
def test_its_programs_say_that_torch_is_missing(module):
    run = f"runpy.run_module({module!r}, run_name='__main__')"
    code = f"import runpy, sys; sys.modules['torch'] = None; {run}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert "needs PyTorch 1.11 or newer, which is not installed: pip install torch\n" in found.stderr


def test_all_names_of_the_package_are_there():
    import tradewind

    assert all(hasattr(tradewind, name) for name in tradewind.__all__)
    with pytest.raises(AttributeError, match="no attribute 'joyn'"):
        tradewind.joyn


def test_no_module_is_long():
    for path in (ROOT / "python/tradewind").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 500, path


def imports():
    """(module, module that it imports), by their paths in the package, also for type checkers alone."""
    package = ROOT / "python/tradewind"
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                for name in [alias.name for alias in node.names]:
                    found = (folder / f"{name}.py", folder / name / "__init__.py", folder.with_suffix(".py"))
                    there = next((one for one in found if one.is_file()), folder / "__init__.py")
                    yield path.relative_to(package), there.relative_to(package)


def circle(arrows):
    """A path that ends where it begins; empty: there is none."""
    after = {}
    for begin, end in arrows:
        after.setdefault(begin, set()).add(end)
    done = set()

    def walk(node, way):
        if node in way:
            return [*way[way.index(node) :], node]
        found = []
        if node not in done:
            found = next(filter(None, (walk(one, [*way, node]) for one in after.get(node, ()))), [])
            done.add(node)
        return found

    return next(filter(None, (walk(node, []) for node in list(after))), [])


def test_imports_have_no_circle_among_modules_nor_rooms():
    assert circle([(1, 2), (2, 3), (3, 1)]) == [1, 2, 3, 1] and not circle([(1, 2), (1, 3), (2, 3)])
    arrows = list(imports())
    assert not circle(arrows), " -> ".join(map(str, circle(arrows)))
    rooms = {(begin.parts[0], end.parts[0]) for begin, end in arrows}
    rooms = [(begin, end) for begin, end in rooms if begin != end]
    assert not circle(rooms), " -> ".join(circle(rooms))


def test_import_loads_nothing_beside_torch_and_the_standard_library():
    code = (
        "import sys, torch; before = set(sys.modules); import tradewind; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    environment = {**os.environ, "PYTHONPATH": python_path()}
    loaded = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert loaded.stdout.split() == ["tradewind"], loaded.stdout + loaded.stderr


@needs_engine
@pytest.mark.timeout(300)
def test_a_wheel_installs_offline_in_a_virtual_environment(tmp_path):
    pytest.importorskip("wheel")
    pytest.importorskip("ensurepip")
    from tradewind.engine import abi

    environment = {**os.environ, "TRADEWIND_LIBRARY": str(abi.library_path())}
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / "venv")], check=True
    )
    # A virtual environment of one of ours sees Debian's packages, but not ours.
    (beside,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (beside / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [str(tmp_path / "venv/bin/pip"), "-q", "--disable-pip-version-check"]
    options = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run(
        [*pip, "wheel", *options, "-w", str(tmp_path), str(ROOT)], env=environment, check=True, cwd=tmp_path
    )
    (wheel,) = tmp_path.glob("tradewind-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "-py3-none-" in wheel.name and "tradewind/libtradewind.so" in names
    has_program = any(name.endswith(".data/data/bin/tw") for name in names)
    assert has_program == abi.library_path().with_name("tw").is_file()
    subprocess.run([*pip, "install", "--ignore-installed", *options, str(wheel)], check=True, cwd=tmp_path)
    environment.pop("TRADEWIND_LIBRARY")
    environment.pop("PYTHONPATH", None)
    code = (
        "import tradewind; from tradewind.engine import abi; print(abi.library().tw_version().decode(),"
        " abi.library_path())"
    )
    found = subprocess.run(
        [str(tmp_path / "venv/bin/python"), "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert str(tmp_path) in found.stdout, found.stderr
