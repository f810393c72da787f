# SPDX-License-Identifier: Apache-2.0
"""The wheel as users get it (make wheel) works on each system, also beside peers that GCC built."""

import http.server
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from conftest import BUILT, ROOT, parameters_of, settings
from systems import LEAST_PYTHONS, System

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy serves this machine's pages
pythons = set()  # versions with which tw ran


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_tw_runs_in_an_environment_that_is_not_activated(installed):
    version = re.search(r"VERSION (\S+) LANGUAGES", (ROOT / "CMakeLists.txt").read_text())[1]
    assert version in installed.output(installed.tw, "--version")
    assert "usd" in installed.output(installed.tw, "plan", "plan.yaml").lower()
    version = "import sys; print('{}.{}'.format(*sys.version_info))"
    pythons.add(installed.output(installed.python, "-c", version).strip())


def test_the_package_finds_its_library_and_leaves_pytorch_alone(installed):
    code = (
        "import sys, tradewind, tradewind.engine.abi as abi",
        "abi.library()",
        "print(abi.library_path(), 'torch' in sys.modules)",
    )
    path, loaded = installed.output(installed.python, "-c", "\n".join(code)).split()
    assert path.startswith(installed.python.rsplit("/bin/")[0]) and loaded == "False"


def train(installed, folder, *options):
    """Event logs lie in a folder of this name; by them the third peer is killed in round 10."""
    run = [installed.tw, "run", "--peers", "3", "--wait-for", "3", "--out", installed.work / folder]
    return installed.output(*run, "--kill", "3@10", *options, *settings(), "--", *installed.loop)


@pytest.mark.parametrize("protection", [[], ["--insecure"]], ids=["TLS", "insecure"])
def test_peers_train_one_is_killed_and_the_others_end_alike(installed, protection):
    out = train(installed, "-".join(["logs", *protection]), *protection)
    done = parameters_of(out)
    assert len(done) == 2 and len(set(done)) == 1, out


def board(address):
    """What the page is told; it is asked until it is there, for 20 s at most."""
    limit = time.monotonic() + 20
    while True:
        try:
            with DIRECT.open(f"http://{address}/board.json", timeout=20) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            assert time.monotonic() < limit, f"no page at {address}"
            time.sleep(0.1)


def test_the_page_shows_the_run(installed):
    address = f"127.0.0.1:{free_port()}"
    train(installed, "shown")
    watch = installed.start(installed.tw, "watch", installed.work / "shown", "--listen", address)
    try:
        shown = board(address)
        assert len(shown["peers"]) == 3, shown
    finally:
        watch.send_signal(signal.SIGINT)
        told = watch.communicate(timeout=20)
    assert watch.returncode == 0, told


def test_peers_of_this_wheel_and_of_gcc_end_alike(installed, tmp_path):
    if not BUILT.is_file() or not (ROOT / "build/python").is_dir():
        pytest.skip("build/ has no tw and no package (make python)")
    run = installed.work / "mixed"
    subprocess.run([BUILT, "init", run], check=True, capture_output=True)
    ours = shutil.copy(ROOT / "tests/wheels/bare.py", tmp_path)
    port = free_port()
    first = subprocess.Popen(
        [BUILT, "run", "--run", run, "--listen", f"127.0.0.1:{port}", "--wait-for", "2", *settings(),
         "--", "/usr/bin/python3", ours],
        env={"PYTHONPATH": str(ROOT / "build/python"), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        second = installed.output(
            installed.tw, "run", "--run", run, "--join", f"127.0.0.1:{port}", *settings(),
            "--", installed.python, installed.work / "bare.py",
        )  # fmt: skip
        assert parameters_of(second) == parameters_of(first.communicate(timeout=60)[0]) != []
    finally:
        first.kill()


@pytest.fixture
def https_server(installed):
    """Its address. Nobody but SSL_CERT_FILE vouches for it."""
    key, certificate = installed.work / "key.pem", installed.work / "cert.pem"
    subject = ("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1")
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate)
    subprocess.run([*make, *subject], check=True, capture_output=True)
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()


def asks(installed, server, *words):
    """Whether tw, started by these words, believes the server, which has nothing."""
    index = [installed.tw, "data", "index", f"{server}/none.tar", "-o", installed.work / "none.twi"]
    code, _, err = installed.run(*words, *index)
    return code == 1 and "answered with 404" in err


def test_servers_are_checked_against_the_certificates_that_the_user_names(installed, https_server):
    assert asks(installed, https_server, "env", f"SSL_CERT_FILE={installed.work}/cert.pem")


@pytest.mark.parametrize("installed", [System()], indirect=True, ids=str)
@pytest.mark.parametrize(
    "file",
    ["ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/ca-bundle.pem", "ssl/cert.pem"],
)
def test_certificates_are_found_where_other_systems_keep_them(installed, https_server, file):
    """Debian and Ubuntu; RHEL and Amazon; SUSE; Arch."""
    enter = """
        unset SSL_CERT_FILE; mount -t tmpfs none /etc
        mkdir -p "$(dirname "$1")"; cp "$0" "$1"; exec "${@:2}" """
    words = ("unshare", "--mount", "bash", "-ec", enter, installed.work / "cert.pem", f"/etc/{file}")
    assert asks(installed, https_server, *words)


def test_without_pytorch_the_error_names_it(installed):
    code = "import tradewind, sys; sys.modules['torch'] = None; tradewind.join"
    assert "tradewind.join needs PyTorch" in installed.run(installed.python, "-c", code)[2]


def test_no_version_of_python_is_left_out(request):
    if not request.config.option.keyword:
        assert LEAST_PYTHONS <= pythons, sorted(pythons)
