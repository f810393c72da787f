# SPDX-License-Identifier: Apache-2.0
"""The DNS of the test bed: the names that a cluster's own DNS gives to the pods of headless Services.

Debian has no CoreDNS. It knows A records of Endpoints alone, asked for anew every half second.
"""

import json
import socket
import struct
import threading
import time

A, AAAA, NO_SUCH_NAME = 1, 28, 3


def records_of(endpoints):
    """Name -> addresses, of what `kubectl get endpoints -o json` prints."""
    records = {}
    for item in endpoints["items"]:
        service = f"{item['metadata']['name']}.{item['metadata']['namespace']}.svc.cluster.local"
        for subset in item.get("subsets") or []:
            for address in subset.get("addresses") or []:
                names = [service] + ([f"{address['hostname']}.{service}"] if "hostname" in address else [])
                for name in names:
                    records.setdefault(name, []).append(address["ip"])
    return records


def question_of(packet):
    """Name, type, and the bytes of the question."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    (kind,) = struct.unpack(">H", packet[at + 1 : at + 3])
    return ".".join(labels).lower(), kind, packet[12 : at + 5]


def answer(packet, records):
    name, kind, question = question_of(packet)
    addresses = records.get(name, []) if kind == A else []
    code = 0 if name in records else NO_SUCH_NAME
    head = packet[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(addresses), 0, 0)
    body = b"".join(struct.pack(">HHHIH", 0xC00C, A, 1, 1, 4) + socket.inet_aton(ip) for ip in addresses)
    return head + question + body


class Names(threading.Thread):
    def __init__(self, address, kubectl):
        super().__init__(daemon=True)
        self.kubectl, self.records, self.ended = kubectl, {}, False
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.socket.settimeout(0.5)

    def run(self):
        looked = 0
        while not self.ended:
            if time.monotonic() - looked > 0.5:
                looked = time.monotonic()
                endpoints = self.kubectl("get", "endpoints", "-A", "-o", "json", check=False)
                self.records = records_of(json.loads(endpoints)) if endpoints else self.records
            try:
                packet, asker = self.socket.recvfrom(512)
                self.socket.sendto(answer(packet, self.records), asker)
            except (socket.timeout, IndexError, struct.error, UnicodeDecodeError):
                pass
