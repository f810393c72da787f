# SPDX-License-Identifier: Apache-2.0
"""src/bind/tradewind*.h against tradewind/engine/abi.py: every structure, constant and prototype."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, needs_engine
from tradewind.engine import abi

HEADERS = [ROOT / "src/bind" / name for name in ("tradewind.h", "tradewind_data.h", "tradewind_checkpoint.h")]

SCALARS = {
    "int": ctypes.c_int,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "void": None,
}
# Pointers to what Python only passes on.
OPAQUE = ("void", "tw_peer", "tw_memory", "tw_data", "tw_checkpoint", "float")


def header() -> str:
    """The headers without comments and preprocessor."""
    text = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in HEADERS), flags=re.S)
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def ctype(declared):
    """The ctypes of a C type. A text that the library gives away is an address, for tw_free."""
    base = declared.replace("const ", "").replace(" ", "")
    if base in SCALARS:
        return SCALARS[base]
    if base == "char*":
        return ctypes.c_void_p if "const" not in declared else ctypes.c_char_p
    kind, stars = base.rstrip("*"), base.count("*")
    if kind in OPAQUE:
        inner = ctypes.c_void_p
        return inner if stars == 1 else ctypes.POINTER(inner)
    pointed = SCALARS.get(kind) or getattr(abi, kind)
    return ctypes.POINTER(pointed)


def type_and_name(text):
    declared, name = re.fullmatch(r"(.*?[\s*])(\w+)", text.strip(), re.S).groups()
    return " ".join(declared.split()), name


def structs():
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", header(), re.S):
        yield name, [one for field in body.split(";") if field.strip() for one in each(field.strip())]


def each(field):
    """`float a, b` is two fields."""
    if "(*" in field:
        return [field]
    first, *others = re.split(r",\s*", field)
    return [first, *(f"{type_and_name(first)[0]} {other}" for other in others)]


def callback(field):
    result, name, arguments = re.fullmatch(r"(\w+) \(\*(\w+)\)\((.*)\)", field, re.S).groups()
    types = [type_and_name(argument)[0] for argument in arguments.split(",")]
    return name, ctype(result), [ctypes.c_void_p if t == "const float*" else ctype(t) for t in types]


@pytest.mark.parametrize("name,fields", list(structs()), ids=[name for name, _ in structs()])
def test_structures_are_those_of_the_header(name, fields):
    mine = list(getattr(abi, name)._fields_)
    assert len(mine) == len(fields)
    for (my_name, my_type), field in zip(mine, fields):
        if "(*" in field:
            their_name, result, arguments = callback(field)
            assert my_type._restype_ is result and list(my_type._argtypes_) == arguments, field
        else:
            declared, their_name = type_and_name(field)
            assert my_type is ctype(declared), field
        assert my_name == their_name


def test_every_structure_is_bound():
    assert {name for name, _ in structs()} == {
        name for name in vars(abi) if re.fullmatch(r"tw_[a-z]+", name)
    }


def test_constants_are_those_of_the_header():
    theirs = {}
    for body in re.findall(r"enum \w+ \{(.*?)\}", header(), re.S):
        theirs.update((name, int(value)) for name, value in re.findall(r"(TW_\w+) = (-?\d+)", body))
    theirs["TW_ABI"] = int(re.search(r"#define TW_ABI (\d+)", HEADERS[0].read_text()).group(1))
    assert theirs == {name: value for name, value in vars(abi).items() if name.startswith("TW_")}


def test_prototypes_are_those_of_the_header():
    theirs = {}
    for result, name, arguments in re.findall(r"TW_API (.*?)(\w+)\(([^()]*)\);", header(), re.S):
        types = [] if arguments.strip() == "void" else [type_and_name(a)[0] for a in arguments.split(",")]
        theirs[name] = (ctype(result.strip()), [ctype(t) for t in types])
    assert theirs == abi.PROTOTYPES


@needs_engine
def test_the_library_shows_nothing_else():
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(abi.library_path())], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in symbols.stdout.splitlines()}
    assert names == set(abi.PROTOTYPES)


def test_a_missing_library_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setattr(abi, "_loaded", [])
    monkeypatch.setenv("TRADEWIND_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(abi.TradewindError, match="make python"):
        abi.library()
    monkeypatch.delenv("TRADEWIND_LIBRARY")
    monkeypatch.setattr(abi, "__file__", str(tmp_path / "engine" / "abi.py"))
    with pytest.raises(abi.TradewindError, match="make python"):
        abi.library()


def test_what_is_no_such_library_says_so(monkeypatch, tmp_path):
    other = Path(tmp_path / "libtradewind.so")
    other.write_bytes(b"no library")
    monkeypatch.setattr(abi, "_loaded", [])
    monkeypatch.setenv("TRADEWIND_LIBRARY", str(other))
    with pytest.raises(abi.TradewindError, match="make python"):
        abi.library()
