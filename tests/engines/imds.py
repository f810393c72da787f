#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metadata service of a cloud machine, by the documented protocols, for tests of notices.

    imds.py aws|gcp|azure [--listen 169.254.169.254:80] [--first SECONDS] [--log FILE]

Listens where clouds do, inside a network namespace. Commands come on stdin, a line each:

    PATH JSON      the document there (aws: spot/instance-action; gcp: preempted; azure: events)
    PATH           there is none any more
    refuse         AWS: no token that was given holds any longer

--first: how long the first answer of Azure's Scheduled Events takes. --log: a line of JSON for each request.

Sources: docs.aws.amazon.com AWSEC2 UserGuide (configuring-instance-metadata-service,
spot-instance-termination-notices, rebalance-recommendations), docs.cloud.google.com compute/docs/metadata
(querying-metadata, getting-live-migration-notice), MicrosoftDocs azure-compute-docs
linux/scheduled-events.md.
"""

import argparse
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Service:
    """What the machine's cloud says now. Any thread."""

    def __init__(self, options):
        self.options = options
        self.changed = threading.Condition()
        self.documents = {}
        self.versions = {}
        self.tokens = {}  # token: when it ends
        self.began = None  # when Azure's service was asked first

    def obey(self, line):
        path, _, document = line.strip().partition(" ")
        with self.changed:
            if path == "refuse":
                self.tokens.clear()
            elif document:
                self.documents[path] = document
            else:
                self.documents.pop(path, None)
            self.versions[path] = self.versions.get(path, 0) + 1
            self.changed.notify_all()


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None

    def log_message(self, *_):
        pass

    def answer(self, status, body="", **headers):
        note(self.service.options.log, self, status)
        content = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            pass  # whoever hung here has gone

    def do_GET(self):
        getattr(self, "get_" + self.service.options.cloud)(urlsplit(self.path))

    def do_PUT(self):
        self.body()
        if self.service.options.cloud != "aws" or self.path != "/latest/api/token":
            return self.answer(404)
        lasts = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if not lasts.isdigit() or not 1 <= int(lasts) <= 21600:
            return self.answer(400)
        if self.headers.get("X-Forwarded-For"):
            return self.answer(403)
        token = f"AQAEA{time.monotonic_ns()}=="
        self.service.tokens[token] = time.monotonic() + int(lasts)
        self.answer(200, token, X_aws_ec2_metadata_token_ttl_seconds=lasts)

    def do_POST(self):
        asked = self.body()
        path = urlsplit(self.path)
        if not self.is_azure(path, "/metadata/scheduledevents"):
            return
        try:
            started = {request["EventId"] for request in json.loads(asked)["StartRequests"]}
        except (ValueError, KeyError, TypeError):
            return self.answer(400)
        with self.service.changed:
            events = json.loads(self.service.documents.get("events", "[]"))
            for event in events:
                if event["EventId"] in started:
                    event.update(EventStatus="Started", NotBefore="")
            self.service.documents["events"] = json.dumps(events)
        self.answer(200)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()

    def get_aws(self, path):
        ends = self.service.tokens.get(self.headers.get("X-aws-ec2-metadata-token"), 0)
        if ends < time.monotonic():
            return self.answer(401)
        name = path.path.removeprefix("/latest/meta-data/")
        document = self.service.documents.get(name)
        if document is None and name == "events/maintenance/scheduled":
            document = "[]"
        self.answer(404) if document is None else self.answer(200, document, Content_Type="application/json")

    def get_gcp(self, path):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.answer(403)
        if self.headers.get("Host") not in ("metadata.google.internal", "metadata", "169.254.169.254"):
            return self.answer(404)
        name = path.path.removeprefix("/computeMetadata/v1/instance/")
        usual = {"preempted": "FALSE", "maintenance-event": "NONE"}
        if name not in usual:
            return self.answer(404)
        query = {key: values[-1] for key, values in parse_qs(path.query).items()}
        service = self.service
        with service.changed:
            if query.get("wait_for_change") == "true":
                known = query.get("last_etag", etag(service, name))
                limit = float(query.get("timeout_sec", 3600))
                service.changed.wait_for(lambda: etag(service, name) != known, limit)
            value, tag = service.documents.get(name, usual[name]), etag(service, name)
        self.answer(200, value, Metadata_Flavor="Google", ETag=tag, Content_Type="application/text")

    def get_azure(self, path):
        if path.path == "/metadata/instance/compute/name":
            if self.is_azure(path, path.path):
                self.answer(200, "vm1")
            return
        if not self.is_azure(path, "/metadata/scheduledevents"):
            return
        service = self.service
        with service.changed:
            service.began = service.began or time.monotonic()
            service.changed.wait_for(
                lambda: time.monotonic() >= service.began + service.options.first,
                max(0.0, service.began + service.options.first - time.monotonic()),
            )
            events = json.loads(service.documents.get("events", "[]"))
            incarnation = service.versions.get("events", 1)
        document = json.dumps({"DocumentIncarnation": incarnation, "Events": events})
        self.answer(200, document, Content_Type="application/json")

    def is_azure(self, path, name):
        """Whether the request is one for this; else it is answered."""
        if self.service.options.cloud != "azure" or path.path != name:
            self.answer(404)
        elif self.headers.get("Metadata") != "true" or "api-version" not in parse_qs(path.query):
            self.answer(400)
        else:
            return True
        return False


def etag(service, name):
    return f"{service.versions.get(name, 0):016x}"


WRITING = threading.Lock()


def note(log, request, status):
    if log is None:
        return
    line = {"method": request.command, "path": request.path, "status": status}
    with WRITING, open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser(description="The metadata service of a cloud machine.")
    parser.add_argument("cloud", choices=("aws", "gcp", "azure"))
    parser.add_argument("--listen", default="169.254.169.254:80")
    parser.add_argument("--first", type=float, default=0.0)
    parser.add_argument("--log")
    options = parser.parse_args()
    Answers.service = Service(options)
    host, port = options.listen.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        Answers.service.obey(line)
        print("done", flush=True)


if __name__ == "__main__":
    main()
