# SPDX-License-Identifier: Apache-2.0
"""The image of make image, unpacked and entered as a container engine does it, apart from this machine."""

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "dist/tradewind-oci.tar"


@pytest.fixture(scope="module")
def archive():
    if not ARCHIVE.is_file():
        pytest.skip("dist/tradewind-oci.tar is missing (make image)")
    with tarfile.open(ARCHIVE) as opened:
        yield opened


@pytest.fixture(scope="module")
def root(archive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    manifest = blob(archive, json.load(archive.extractfile("index.json"))["manifests"][0])
    for layer in json.loads(manifest)["layers"]:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(archive, layer)))) as files:
            files.extractall(folder)
    (folder / "work").mkdir()
    for path in ("examples/plan.yaml", "tests/scenarios/kills.yaml"):
        shutil.copy2(ROOT / path, folder / "work")
    return folder


def blob(archive, descriptor):
    return archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()


def run(root, *command):
    """In the image, as its root, without the environment of this machine."""
    enter = ["/usr/bin/unshare", "--user", "--map-root-user", "--root", str(root), "--wd", "/work", *command]
    environment = {"PATH": "/usr/local/bin:/bin"}
    found = subprocess.run(enter, env=environment, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_tw_runs(root):
    assert run(root, "tw", "--version").startswith("tw ")
    assert "$" in run(root, "tw", "plan", "plan.yaml")
    assert re.search("failed +none", run(root, "tw", "sim", "kills.yaml", "--seeds", "1..1"))


def test_what_tw_up_needs_to_collect_logs_is_there(root):
    script = "ls | grep kills; echo a | tail -c 2; uname -n >/dev/null; mkdir -p a/b"
    assert run(root, "sh", "-c", script) == "kills.yaml\na\n"


def test_certificates_and_licences_are_there(root):
    assert "BEGIN CERTIFICATE" in (root / "etc/ssl/certs/ca-certificates.crt").read_text()
    documents = root / "usr/share/doc"
    assert len(list((documents / "tradewind").iterdir())) >= 18
    for name in ("LICENSE", "tradewind.cdx.json", "digits.txt"):
        assert (documents / "tradewind" / name).is_file(), name
    sources = (documents / "SOURCES").read_text()
    for name, source in (("libc6", "glibc"), ("busybox-static", "busybox")):
        assert (documents / name / "copyright").is_file()
        assert f"https://snapshot.debian.org/package/{source}/" in sources
    assert (root / "usr/share/common-licenses/GPL-2").is_file()


def test_the_index_names_the_image_and_its_licences(archive):
    (image,) = json.load(archive.extractfile("index.json"))["manifests"]
    version = re.search(r"VERSION (\S+) LANGUAGES", (ROOT / "CMakeLists.txt").read_text())[1]
    assert set(image["annotations"].values()) == {f"tradewind:{version}"}
    config = json.loads(blob(archive, json.loads(blob(archive, image))["config"]))
    assert "GPL-2.0-only" in config["config"]["Labels"]["org.opencontainers.image.licenses"]


def test_a_container_engine_takes_it(archive, tmp_path):
    if not shutil.which("buildah"):
        pytest.skip("no buildah")
    policy = tmp_path / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    places = ["--storage-driver", "vfs", "--root", tmp_path / "store", "--runroot", tmp_path / "run"]
    pulled = ["buildah", *places, "pull", "--quiet", "--signature-policy", policy, f"oci-archive:{ARCHIVE}"]
    subprocess.run(pulled, check=True, timeout=100)
