#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubernetes_schema.py SWAGGER.json OUT: what Kubernetes says of the objects that `tw up --on k8s` writes.

SWAGGER.json is api/openapi-spec/swagger.json of the source, as tests/engines/kubernetes/source.sh fetches it.
The definitions that Job, Service, ConfigMap and Secret need are kept without their descriptions. Fields that
they do not know are refused, as the API server refuses them.
"""

import json
import sys

ROOTS = [
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Secret",
    "io.k8s.api.core.v1.Service",
]
# The status is the cluster's to write.
LEFT_OUT = {"status", "managedFields"}
PREFIX = "#/definitions/"
ANY_OF_TWO = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["integer", "string"]},
}


def definition(name, of_swagger):
    if name in ANY_OF_TWO:
        return ANY_OF_TWO[name]
    schema = {
        key: value for key, value in of_swagger.items() if not key.startswith("x-") and key != "description"
    }
    if "properties" in schema:
        schema["properties"] = {
            key: bare(value) for key, value in schema["properties"].items() if key not in LEFT_OUT
        }
        schema["additionalProperties"] = False
    return schema


def bare(schema):
    """A property's schema, without descriptions and hints for kubectl."""
    kept = {
        key: value for key, value in schema.items() if key != "description" and not key.startswith("x-")
    }
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = bare(kept[key])
    return kept


def references(schema):
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(PREFIX)
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def extract(swagger):
    kept, wanted = {}, list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name in kept:
            continue
        kept[name] = definition(name, swagger["definitions"][name])
        wanted.extend(references(kept[name]))
    return dict(sorted(kept.items()))


def main():
    source, out = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        swagger = json.load(file)
    schema = {
        "$comment": "Kubernetes 1.20.2, api/openapi-spec/swagger.json of Debian's source package kubernetes "
        "1.20.5+really1.20.2-1.1+deb12u1; taken 2026-11-23 by tests/launch/kubernetes_schema.py",
        "definitions": extract(swagger),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(schema, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
