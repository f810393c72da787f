# SPDX-License-Identifier: Apache-2.0
"""Shards in Azure Blob Storage: Azurite, Microsoft's emulator, checks the signature of each URL.
"""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
from ceph_bed import free_port
from machine import PROGRAM, soon, wait_until
from npm import npm_package
from web_shards_test import train_ten_rounds, write_digits, write_shard

AZURITE = "azurite@3.37.0"
ACCOUNT, KEY = "devstoreaccount1", base64.b64encode(b"a key of the tests, 32 bytes ...").decode()
VERSION = "2021-08-06"

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="no node (packages-engines.txt)")


def shared_access(permissions):
    """A signature for the account, as docs of "Create an account SAS" say; one hour."""
    fields = {"sp": permissions, "ss": "b", "srt": "co", "st": "", "se": soon(3600), "sip": "",
              "spr": "https,http", "sv": VERSION, "ses": ""}
    text = "".join(f"{value}\n" for value in [ACCOUNT, *fields.values()])
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    given = {key: value for key, value in fields.items() if value}
    return urllib.parse.urlencode({**given, "sig": base64.b64encode(digest).decode()})


@pytest.fixture
def endpoint(tmp_path):
    folder = npm_package(AZURITE)
    if folder is None:
        pytest.skip(f"npm is missing, or {AZURITE} cannot be installed")
    port = free_port()
    words = ["node", folder / "dist/src/blob/main.js", "--blobPort", port, "--location", tmp_path / "azurite"]
    with open(tmp_path / "azurite.txt", "w") as out:
        server = subprocess.Popen([*map(str, words), "--skipApiVersionCheck"], stdout=out, stderr=out,
                                  env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"})
    try:
        printed = (tmp_path / "azurite.txt").read_text
        wait_until(lambda: "successfully listens" in printed(), f"Azurite: {printed()}")
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        server.kill()
        server.wait()


def put(url, content, headers=None):
    mark = "&" if "?" in url else "?"
    headers = {"x-ms-version": VERSION, "Content-Type": "application/octet-stream", **(headers or {})}
    request = urllib.request.Request(f"{url}{mark}{shared_access('rwc')}", content, headers, method="PUT")
    assert urllib.request.urlopen(request, timeout=30).status == 201


def tw(folder, endpoint, token, *words):
    env = {**os.environ, "AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_SAS_TOKEN": token}
    words = [PROGRAM, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, cwd=folder, env=env)


def test_shards_in_azurite(endpoint, tmp_path):
    write_shard(tmp_path / "a b.tar")
    put(f"{endpoint}/data?restype=container", b"")
    content = (tmp_path / "a b.tar").read_bytes()
    put(f"{endpoint}/data/set/a%20b.tar", content, {"x-ms-blob-type": "BlockBlob"})
    url = f"az://{ACCOUNT}/data/set/a b.tar"
    done = tw(tmp_path, endpoint, shared_access("r"), "data", "index", url, "-o", "az.twi")
    assert done.returncode == 0, done.stderr
    verified = tw(tmp_path, endpoint, shared_access("r"), "data", "verify", "az.twi")
    assert verified.returncode == 0, verified.stderr
    refused = tw(tmp_path, endpoint, shared_access("w"), "data", "verify", "az.twi")
    assert refused.returncode == 1
    assert "answered with 403 AuthorizationPermissionMismatch (as a SAS token" in refused.stderr
    assert "sig=" not in refused.stderr


def test_a_run_reads_from_azurite(endpoint, tmp_path):
    write_digits(tmp_path)
    put(f"{endpoint}/data?restype=container", b"")
    content = (tmp_path / "train-0.tar").read_bytes()
    put(f"{endpoint}/data/train-0.tar", content, {"x-ms-blob-type": "BlockBlob"})
    env = {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_SAS_TOKEN": shared_access("r")}
    printed = train_ten_rounds(tmp_path, f"az://{ACCOUNT}/data/train-0.tar", env)
    assert "sig=" not in printed
