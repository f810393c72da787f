#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast samples of shards come over 20 ms and 1 Gbit/s (as root), in turns with others.

    /usr/bin/python3 bench/data.py --repeats 5

nginx serves tars on one host of a tw-wan bed; the other host reads them. With fields of 100 kB that need no
decoding: build/bench/bench_data against curl, which reads the same ranges over as many connections. With
JPEGs: bench_data with one decoder against tarfile and PIL, which stream whole tars as webdataset does.
Needs nginx, curl and python3-pil. Medians; CPU seconds are of the whole process that reads.
"""

import argparse
import contextlib
import io
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TW, WAN, READER = ROOT / "build/tw", ROOT / "build/tw-wan", ROOT / "build/bench/bench_data"
PORT, AT_ONCE, FIELD, SIDE, BLOCK = 8080, 16, 100_000, 500, 8
TOPOLOGY = "sites: [{name: a, nic: 1gbit}, {name: b, nic: 1gbit}]\nlinks: [{rtt: 20ms}]\n"


def npy(content):
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(content)},), }}".encode()
    head += b" " * (117 - len(head)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


def jpeg(draw):
    from PIL import Image
    small = Image.frombytes("RGB", (SIDE // 4, SIDE // 4), draw.randbytes(3 * (SIDE // 4) ** 2))
    out = io.BytesIO()
    small.resize((SIDE, SIDE), Image.BILINEAR).save(out, "JPEG", quality=85)
    return out.getvalue()


def write_shards(folder, samples, shards=4):
    draw = random.Random(1)
    for field, make in (("npy", lambda: npy(draw.randbytes(FIELD))), ("jpg", lambda: jpeg(draw))):
        for shard in range(shards):
            with tarfile.open(folder / f"{field}-{shard}.tar", "w") as tar:
                for i in range(samples // shards):
                    for name, content in ((field, make()), ("cls", b"1")):
                        member = tarfile.TarInfo(f"{shard}-{i:05}.{name}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))


@contextlib.contextmanager
def bed(folder):
    """The testbed, with nginx on host a."""
    (folder / "topology.yaml").write_text(TOPOLOGY)
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; daemon off; user root;\nevents {{}}\n"
        f"http {{ access_log off; keepalive_requests 100000; "
        f"server {{ listen {PORT}; root {folder}; }} }}\n")
    wan = [str(WAN), str(folder / "topology.yaml")]
    subprocess.run([*wan, "up"], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([*wan, "exec", "a", "nginx", "-c", f"{folder}/nginx.conf"])
    try:
        yield wan
    finally:
        subprocess.run([*wan, "down"], stdout=subprocess.DEVNULL)
        server.wait()


def on_reader(wan, *words):
    done = subprocess.run([*wan, "exec", "b", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{words}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def write_indexes(wan, folder):
    end = time.monotonic() + 20
    while not (folder / "jpg.twi").exists():
        for field in ("npy", "jpg"):
            url = f"http://a:{PORT}/{field}-{{0..3}}.tar"
            words = [*wan, "exec", "b", str(TW), "data", "index", url, "-o", str(folder / f"{field}.twi")]
            done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode and time.monotonic() > end:
            raise SystemExit(done.stderr)


def read_ours(wan, folder, field, samples, *more):
    return json.loads(on_reader(wan, READER, folder / f"{field}.twi", "--inputs", field, "--targets", "cls",
                                "--samples", samples, "--batch", BLOCK, *more))


def write_curl_list(folder, samples):
    """Blocks of samples in a row, each one range."""
    lines = []
    for path in sorted(folder.glob("npy-*.tar")):
        with tarfile.open(path) as tar:
            members = [member for member in tar.getmembers() if member.name.endswith(".npy")]
        for first, last in zip(members[::BLOCK], members[BLOCK - 1::BLOCK]):
            until = last.offset_data + last.size - 1
            lines.append(f'url = "http://a:{PORT}/{path.name}"\nrange = {first.offset_data}-{until}\n'
                         'output = "/dev/null"\n')
    random.Random(2).shuffle(lines)
    (folder / "curl.txt").write_text("next\n".join(lines[:samples // BLOCK]))


def read_with_curl(wan, folder, samples):
    began = time.monotonic()
    on_reader(wan, "curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max", AT_ONCE,
              "-K", folder / "curl.txt")
    return {"samples_per_s": samples / (time.monotonic() - began)}


def stream_tars(samples):
    """Runs on the reader's host: whole tars in a row, decoded to 224 x 224 float32."""
    from PIL import Image
    began, read = time.monotonic(), 0
    for shard in range(4):
        with urllib.request.urlopen(f"http://a:{PORT}/jpg-{shard}.tar") as answer:
            with tarfile.open(fileobj=answer, mode="r|") as tar:
                for member in tar:
                    if not member.name.endswith(".jpg") or read == samples:
                        continue
                    picture = Image.open(tar.extractfile(member))
                    picture.draft("RGB", (224, 224))
                    picture.resize((224, 224), Image.BILINEAR).tobytes()
                    read += 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"samples_per_s": read / (time.monotonic() - began),
                      "cpu_s_per_1000": 1000 * (used.ru_utime + used.ru_stime) / read}))


def measure(wan, folder, options):
    kinds = {
        "curl, ranges": lambda: read_with_curl(wan, folder, options.samples),
        "tw, npy": lambda: read_ours(wan, folder, "npy", options.samples),
        "tw, npy, 100 ms a batch": lambda: read_ours(wan, folder, "npy", 800, "--compute-ms", 100),
        "tarfile and PIL": lambda: json.loads(
            on_reader(wan, sys.executable, __file__, "--stream", options.samples)),
        "tw, jpg": lambda: read_ours(wan, folder, "jpg", options.samples, "--image", 224),
    }
    found = {kind: [] for kind in kinds}
    for repeat in range(options.repeats):
        for kind, read in kinds.items():
            found[kind].append(read())
            print(f"{repeat + 1}/{options.repeats} {kind}: {found[kind][-1]}", file=sys.stderr)
    return {kind: {key: round(statistics.median(one[key] for one in all_), 4) for key in all_[0]}
            for kind, all_ in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stream:
        return stream_tars(options.stream)
    if os.geteuid() != 0:
        raise SystemExit("the testbed needs root")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shards(folder, options.samples)
        with bed(folder) as wan:
            write_indexes(wan, folder)
            write_curl_list(folder, options.samples)
            result = measure(wan, folder, options)
    for kind, medians in result.items():
        print(f"{kind}: {medians}")
    rates = {kind: medians["samples_per_s"] for kind, medians in result.items()}
    print(f"tw of curl: {rates['tw, npy'] / rates['curl, ranges']:.3f}")


if __name__ == "__main__":
    main()
