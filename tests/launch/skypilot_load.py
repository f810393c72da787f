#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skypilot_load.py TASK.yaml...: what SkyPilot itself makes of task files, as JSON. Offline.

It runs in a home folder of its own: SkyPilot keeps a catalog of prices there, which it would download, and
takes one that a person put there as it is. Clouds count as enabled; nothing is asked of them.
"""

import json
import os
import pathlib
import sys
import tempfile

HOME = tempfile.mkdtemp()
os.environ.update(
    HOME=HOME, SKYPILOT_DISABLE_USAGE_COLLECTION="1", SKYPILOT_RUNTIME_DIR=HOME, IS_SKYPILOT_SERVER="true"
)

HEAD = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone"
)
CATALOGS = {
    "aws/vms.csv": ["g4dn.xlarge,T4,1.0,4.0,16.0,T4,0.526,0.158,us-east-1,us-east-1a"],
    "gcp/vms.csv": [
        "n1-standard-8,,,8.0,30.0,,0.38,0.08,us-central1,us-central1-a",
        ",T4,1.0,,,T4,0.35,0.11,us-central1,us-central1-a",
    ],
    "azure/vms.csv": ["Standard_NC4as_T4_v3,T4,1.0,4.0,28.0,T4,0.526,0.13,eastus,"],
    "lambda/vms.csv": ["gpu_1x_a10,A10,1.0,30.0,200.0,A10,0.75,,us-west-1"],
}


def write_catalogs():
    from sky.skylet import constants

    folder = pathlib.Path(HOME) / ".sky/catalogs" / constants.CATALOG_SCHEMA_VERSION
    for name, rows in CATALOGS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = (
            HEAD.removesuffix(",AvailabilityZone") if rows[0].count(",") == 8 else HEAD
        )  # Lambda has no zones
        path.write_text("\n".join([head, *rows]) + "\n")
    gpus = folder / "common/accelerators.csv"
    gpus.parent.mkdir()
    gpus.write_text("AcceleratorName,Clouds\nT4,\"[]\"\nA10,\"[]\"\n")


def described(resources):
    return {
        "cloud": str(resources.cloud).lower(),
        "region": resources.region,
        "zone": resources.zone,
        "instance_type": resources.instance_type,
        "use_spot": resources.use_spot,
        "accelerators": resources.accelerators,
        "job_recovery": resources.job_recovery,
        "usd_per_h": resources.get_cost(3600),
    }


def load(path):
    import sky
    import yaml

    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    secrets = [(name, "secret") for name in config["secrets"]]
    task = sky.Task.from_yaml_config(config, secrets_overrides=secrets)
    choices = [described(resources) for resources in task.resources]
    with sky.Dag() as dag:
        dag.add(task)
    dag.resolve_and_validate_volumes()
    sky.Optimizer.optimize(dag, quiet=True)
    return {
        "name": task.name,
        "num_nodes": task.num_nodes,
        "choices": choices,
        "secrets": list(task.secrets),
        "run": task.run,
        "setup": task.setup,
        "chosen": described(task.best_resources),
    }


def main():
    write_catalogs()
    import sky
    from sky import check
    from sky.server import plugins

    plugins.plugins_loaded = (
        lambda: True
    )  # as on the server, which then refuses unknown keys of job_recovery
    clouds = [sky.clouds.AWS(), sky.clouds.GCP(), sky.clouds.Azure(), sky.clouds.Lambda()]
    check.get_cached_enabled_clouds_or_refresh = lambda *_, **__: clouds
    print(json.dumps([load(path) for path in sys.argv[1:]]))


if __name__ == "__main__":
    main()
