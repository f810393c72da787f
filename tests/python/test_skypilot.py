# SPDX-License-Identifier: Apache-2.0
"""What `tw up` writes for SkyPilot and newer Kubernetes, by SkyPilot itself and the schemas of each version.

SkyPilot's loader takes the tasks, and its optimizer chooses machines as a dry run does, offline.
No cloud is asked: that a machine starts is not tested here. SkyPilot has an interpreter of its own
(TRADEWIND_SKYPILOT_PYTHON, set by tools/test_integrations.sh).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]
TESTS = Path(__file__).resolve().parents[1]
TASKS = sorted(TESTS.glob("golden/launch/skypilot/*.txt"))
SKYPILOT_PYTHON = os.environ.get("TRADEWIND_SKYPILOT_PYTHON", sys.executable)


def run(script, *words):
    done = subprocess.run(
        [SKYPILOT_PYTHON, str(TESTS / "launch" / script), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def loaded():
    tasks = json.loads(run("skypilot_load.py", *TASKS).splitlines()[-1])
    return {path.stem: task for path, task in zip(TASKS, tasks)}


def test_skypilot_loads_each_task_as_one_node_that_comes_back_on_75(loaded):
    assert set(loaded) == {"anchor", "choices", "lambda", "program"}
    for name, task in loaded.items():
        assert task["num_nodes"] == 1
        assert task["secrets"] == ["TW_TOKEN"] + ["HF_TOKEN"] * (name == "program")
        assert all(choice["job_recovery"]["recover_on_exit_codes"] == [75] for choice in task["choices"])


def test_skypilot_takes_the_planners_first_choice_though_another_is_cheaper(loaded):
    choices = loaded["choices"]["choices"]
    assert [choice["cloud"] for choice in choices] == ["aws", "gcp", "azure"]
    assert min(choice["usd_per_h"] for choice in choices) < choices[0]["usd_per_h"]
    assert loaded["choices"]["chosen"] == choices[0]
    assert all(choice["use_spot"] and choice["accelerators"] == {"T4": 1} for choice in choices)
    assert not loaded["anchor"]["chosen"]["use_spot"]


def test_skypilot_refuses_what_it_does_not_know(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(TASKS[0].read_text().replace("recover_on_exit_codes", "recover_on_exit_code"))
    with pytest.raises(AssertionError, match="recover_on_exit_code"):
        run("skypilot_load.py", wrong)


def test_the_transcription_is_skypilots_own_schema():
    kept = json.loads((TESTS / "launch/skypilot_task.schema.json").read_text())
    own = json.loads(run("skypilot_schema.py"))
    assert own == kept, "tests/launch/skypilot_schema.py writes it anew"


@pytest.mark.parametrize("version", ["1.25", "1.31", "1.37"])
def test_kubernetes_of_each_version_takes_what_is_written(version):
    import kubernetes_validate

    for path in sorted(TESTS.glob("golden/launch/k8s/*.json")):
        document = json.loads(path.read_text())
        for item in document["items"] if document["kind"] == "List" else [document]:
            kubernetes_validate.validate(item, version, strict=True)


def test_the_failure_policy_is_one_of_newer_kubernetes_alone():
    import kubernetes_validate

    job = json.loads((TESTS / "golden/launch/k8s-1.31/choices.json").read_text())
    kubernetes_validate.validate(job, "1.31", strict=True)
    job["spec"]["podFailurePolicy"]["rules"][0]["action"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.31", strict=True)


def test_a_record_of_the_queue_has_the_fields_that_tw_status_reads():
    """src/launch/engines/skypilot_test.cc reads records of this form."""
    record = json.loads(
        run_code(
            "from sky.schemas.api.responses import ManagedJobRecord as R; import json; "
            "print(json.dumps(R(job_id=1, job_name='run-p1', status='RECOVERING', recovery_count=2, "
            "infra='AWS (us-east-1a)').model_dump(mode='json')))"
        )
    )
    read = ("job_id", "job_name", "status", "infra", "recovery_count", "failure_reason")
    assert [record[key] for key in read] == [1, "run-p1", "RECOVERING", "AWS (us-east-1a)", 2, None]


def run_code(code):
    done = subprocess.run([SKYPILOT_PYTHON, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]
