#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skypilot_schema.py [OUT]: SkyPilot's own schema of a task, without the parts that `tw up` does not write.

Run by a Python that has SkyPilot: `make test-integrations` compares its answer with
skypilot_task.schema.json. SkyPilot validates the task and its resources in two steps; here it is one schema.
"""

import json
import os
import sys

# Keys of the task with large schemas of their own that `tw up` does not write.
NOT_WRITTEN = {"config", "volume_mounts", "service", "pool", "managed_secrets"}
NOT_WRITTEN_RESOURCES = {
    "autostop",
    "volumes",
    "accelerator_args",
    "_docker_login_config",
    "_cluster_config_overrides",
}


def plain(node):
    """SkyPilot's own keyword case_insensitive_enum as a pattern that any validator knows."""
    if isinstance(node, list):
        return [plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: plain(value) for key, value in node.items() if key not in ("description", "$schema")}
    if "case_insensitive_enum" in kept:
        kept["pattern"] = "^(?i:" + "|".join(kept.pop("case_insensitive_enum")) + ")$"
    return kept


def without(schema, keys):
    schema["properties"] = {key: value for key, value in schema["properties"].items() if key not in keys}
    return schema


def schema_of_installed():
    # The client lets unknown keys of job_recovery pass; the server, once it has its plugins, refuses them.
    os.environ["IS_SKYPILOT_SERVER"] = "true"
    import sky  # only where the integrations are installed
    from sky.server import plugins
    from sky.utils import schemas

    plugins.plugins_loaded = lambda: True
    task = without(plain(schemas.get_task_schema()), NOT_WRITTEN)
    resources = without(plain(schemas.get_resources_schema()), NOT_WRITTEN_RESOURCES)
    for several in ("any_of", "ordered"):
        without(resources["properties"][several]["items"], NOT_WRITTEN_RESOURCES)
    task["properties"]["resources"] = resources
    return {
        "$comment": f"SkyPilot {sky.__version__}, commit {sky.__commit__}, sky/utils/schemas.py; "
        "taken 2026-11-23 by tests/launch/skypilot_schema.py",
        **task,
    }


def main():
    text = json.dumps(schema_of_installed(), indent=1) + "\n"
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
