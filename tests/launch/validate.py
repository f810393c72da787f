#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate.py FILE...: what the schemas of Kubernetes 1.20 (*.json) and SkyPilot (others) say of files that
`tw up` wrote. Prints each error with its place; exit code 1 if there is any."""

import json
import pathlib
import sys

import jsonschema
import yaml

HERE = pathlib.Path(__file__).parent
KUBERNETES = json.loads((HERE / "kubernetes-1.20.schema.json").read_text())
SKYPILOT = json.loads((HERE / "skypilot_task.schema.json").read_text())
DEFINITIONS = {
    ("batch/v1", "Job"): "io.k8s.api.batch.v1.Job",
    ("v1", "Secret"): "io.k8s.api.core.v1.Secret",
    ("v1", "ConfigMap"): "io.k8s.api.core.v1.ConfigMap",
    ("v1", "Service"): "io.k8s.api.core.v1.Service",
}


def told(errors):
    return ["/".join(map(str, error.absolute_path)) + ": " + error.message for error in errors]


def kubernetes_errors(document):
    """Errors of a manifest, or of each in a List."""
    if document.get("kind") == "List":
        return [error for item in document["items"] for error in kubernetes_errors(item)]
    name = DEFINITIONS.get((document.get("apiVersion"), document.get("kind")))
    if name is None:
        return [f"no definition of {document.get('apiVersion')} {document.get('kind')}"]
    schema = {"$ref": f"#/definitions/{name}", "definitions": KUBERNETES["definitions"]}
    return told(jsonschema.Draft4Validator(schema).iter_errors(document))


def skypilot_errors(document):
    return told(jsonschema.Draft7Validator(SKYPILOT).iter_errors(document))


def errors_of(path):
    text = path.read_text()
    if path.suffix == ".json":
        return kubernetes_errors(json.loads(text))
    return skypilot_errors(yaml.safe_load(text))


def main():
    found = [f"{path}: {error}" for path in map(pathlib.Path, sys.argv[1:]) for error in errors_of(path)]
    print("\n".join(found) or f"{len(sys.argv) - 1} files are valid")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
