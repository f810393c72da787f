# SPDX-License-Identifier: Apache-2.0
"""speedscope, in a browser without a window, opens what `tw report --trace` writes of a real run."""
import functools
import http.server
import json
import os
import re
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
from launched import TOY, TW, missing

SPEEDSCOPE = "1.25.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tradewind-engines"
ABSENT = missing("chromium", "npm").replace("needs root", "")
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)

SETTINGS = ("--set", "training.target_batch_size=64", "--set", "training.rounds=6")


def speedscope():
    """The folder of the program, from npm the first time."""
    folder = CACHE / f"speedscope-{SPEEDSCOPE}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["npm", "pack", "--silent", f"speedscope@{SPEEDSCOPE}"], cwd=CACHE, text=True,
                                capture_output=True, timeout=120)
        if packed.returncode != 0:
            pytest.skip(f"npm pack speedscope@{SPEEDSCOPE}: {packed.stderr.strip()[-200:]}")
        with tarfile.open(CACHE / packed.stdout.split()[-1]) as archive:
            archive.extractall(folder.with_suffix(".new"))
        folder.with_suffix(".new").rename(folder)
    return folder / "package/dist/release"


@pytest.fixture
def trace(tmp_path):
    toy = ["--", TOY, "--batch", "16", "--work-ms", "10"]
    for words in (["run", "--peers", "2", "--out", "out", "--insecure", *SETTINGS, *toy],
                  ["report", "out", "--trace", "run.json"]):
        done = subprocess.run([TW, *words], cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "run.json"


class Site(http.server.SimpleHTTPRequestHandler):
    """speedscope's files and the trace."""

    def __init__(self, *words, trace, **options):
        self.trace = trace
        super().__init__(*words, **options)

    def translate_path(self, path):
        return str(self.trace) if path.startswith("/run.json") else super().translate_path(path)

    def log_message(self, *words):
        pass


def words_of(url):
    """What a person reads on the page."""
    page = subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                           "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
                           "--virtual-time-budget=20000", "--dump-dom", url],
                          capture_output=True, text=True, timeout=200).stdout
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", body))


def test_speedscope_names_each_peer(trace):
    handler = functools.partial(Site, trace=trace, directory=str(speedscope()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        words = words_of(f"{root}/index.html#profileURL={root}/run.json")
        server.shutdown()
    assert "run.json - speedscope" in words and "went wrong" not in words, words
    assert re.search(r"peer 1 \(pid 1\)", words) and re.search(r"peer 2 \(pid 2\)", words), words


def test_each_event_has_what_the_format_asks_for(trace):
    """Trace Event Format: keys of each kind, arrows that lie in phases, phases one after the other."""
    events = json.loads(trace.read_text())["traceEvents"]
    keys = {"X": {"ts", "dur"}, "s": {"ts", "id"}, "f": {"ts", "id"}, "i": {"ts", "s"}, "M": {"args"}}
    for event in events:
        assert keys[event["ph"]] | {"name", "pid", "tid"} <= set(event), event
    phases = {}
    for event in (event for event in events if event["ph"] == "X"):
        phases.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert set(phases) == {1, 2}
    for lane in phases.values():
        lane.sort()
        assert all(before[1] <= after[0] + 1 for before, after in zip(lane, lane[1:])), lane
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins and set(begins) == set(ends)
    for event in [*begins.values(), *ends.values()]:
        assert any(begin <= event["ts"] <= end for begin, end in phases[event["pid"]]), event
    assert all(begins[number]["pid"] != ends[number]["pid"] for number in begins)
