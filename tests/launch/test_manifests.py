# SPDX-License-Identifier: Apache-2.0
"""What `tw up` writes for Kubernetes and SkyPilot is valid by their schemas, and planted errors are found.

The files of tests/golden/launch are what launch_test finds that `tw up` writes today.
"""

import copy
import json
import os
import pathlib
import subprocess

import pytest
import validate
import yaml

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/launch"
MANIFESTS = sorted(GOLDEN.glob("k8s/*.json"))
TASKS = sorted(GOLDEN.glob("skypilot/*.txt"))


def set_at(document, place, value):
    *path, last = place
    for key in path:
        document = document[key]
    document[last] = value


def planted(document, place, value):
    changed = copy.deepcopy(document)
    set_at(changed, place, value)
    return changed


def test_there_are_files_of_both_engines():
    assert len(MANIFESTS) >= 10 and len(TASKS) >= 3


@pytest.mark.parametrize("path", MANIFESTS + TASKS, ids=lambda path: path.name)
def test_a_file_is_valid(path):
    assert validate.errors_of(path) == []


POD = ("spec", "template", "spec")
BAD_MANIFESTS = {
    "a field's name mistyped": ((*POD, "terminationGracePeriodSecond"), 25),
    "a field that 1.20 has not": (("spec", "completionMode"), "Indexed"),
    "the failure policy, which 1.20 has not": (("spec", "podFailurePolicy"), {"rules": []}),
    "a number as text": (("spec", "backoffLimit"), "1000"),
    "a key of a volume in the wrong place": ((*POD, "volumes", 1, "secretName"), "x"),
    "a mode as text": ((*POD, "volumes", 1, "secret", "defaultMode"), "0600"),
    "a toleration's value as a truth value": ((*POD, "tolerations", 0, "value"), True),
    "an argument that is a number": ((*POD, "containers", 0, "args", 0), 7000),
    "no name of the container": ((*POD, "containers", 0), {"image": "x"}),
}


@pytest.mark.parametrize("place, value", BAD_MANIFESTS.values(), ids=BAD_MANIFESTS.keys())
def test_a_planted_error_of_a_job_is_found(place, value):
    job = json.loads((GOLDEN / "k8s/choices.json").read_text())
    assert validate.kubernetes_errors(planted(job, place, value))


def test_errors_inside_of_a_list_and_unknown_kinds_are_found():
    run = json.loads((GOLDEN / "k8s/run.json").read_text())
    assert validate.kubernetes_errors(planted(run, ("items", 1, "spec", "publishNotReadyAddress"), True))
    assert validate.kubernetes_errors(planted(run, ("items", 1, "kind"), "Services"))


BAD_TASKS = {
    "a key of the task mistyped": (("secret",), {"TW_TOKEN": None}),
    "a key of the resources mistyped": (("resources", "port"), [7000]),
    "an exit code that there is not": (("resources", "job_recovery", "recover_on_exit_codes"), [750]),
    "a key of the recovery mistyped": (("resources", "job_recovery", "recover_on_exit_code"), [75]),
    "a key of an alternative mistyped": (("resources", "ordered", 1, "spot"), True),
    "a cloud that there is not": (("resources", "ordered", 0, "infra"), "awz/us-east-1"),
    "a truth value as text": (("resources", "ordered", 0, "use_spot"), "yes"),
    "a free machine": (("resources", "max_hourly_cost"), 0),
    "a name that is a number": (("name",), 3),
}


@pytest.mark.parametrize("place, value", BAD_TASKS.values(), ids=BAD_TASKS.keys())
def test_a_planted_error_of_a_task_is_found(place, value):
    task = yaml.safe_load((GOLDEN / "skypilot/choices.txt").read_text())
    assert validate.skypilot_errors(planted(task, place, value))


def test_each_job_has_the_fields_that_its_life_depends_on():
    for path in MANIFESTS:
        job = json.loads(path.read_text())
        if job["kind"] != "Job":
            continue
        pod = job["spec"]["template"]["spec"]
        arguments = pod["containers"][0]["args"]
        assert arguments.count("--grace") == 1, path
        grace = int(arguments[arguments.index("--grace") + 1].removesuffix("s"))
        assert (
            pod["restartPolicy"] == "Never"
        ), f"{path}: OnFailure starts it again on a node that drains"
        counts = [job["spec"][key] for key in ("parallelism", "completions", "backoffLimit")]
        assert counts == [1, 1, 1000], path
        assert 0 < grace < pod["terminationGracePeriodSeconds"], path


def test_the_script_of_a_machine_hands_tw_its_files_and_keeps_the_token_to_itself(tmp_path):
    task = yaml.safe_load((GOLDEN / "skypilot/anchor.txt").read_text())
    tw = tmp_path / "bin/tw"
    tw.parent.mkdir()
    tw.write_text(
        "#!/bin/sh\ncd ~/tradewind/mnist\n"
        "echo $$ ${TW_TOKEN-unset} $(stat -c %a token) $(cat token) $(cat run.yaml) -- $*\n"
    )
    tw.chmod(0o755)
    (tmp_path / "sky_workdir").mkdir()
    (tmp_path / "script").write_text(task["run"])
    variables = {"HOME": str(tmp_path), "PATH": f"{tw.parent}:{os.environ['PATH']}", "TW_TOKEN": "word"}
    done = subprocess.run(
        ["sh", "-c", "echo $$; . ./script"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    shell, told = done.stdout.splitlines()
    run = tmp_path / "tradewind/mnist"
    assert told.startswith(
        f"{shell} unset 600 word training: {{seed: 7}} -- run {run}/run.yaml --token @{run}/token --out"
        f" {run}/out --listen "
    )
    assert told.endswith(" -- python3 train.py")


def test_the_words_of_a_users_program_reach_it_unchanged(tmp_path):
    nasty = "it's $HOME $(id)\n"
    task = yaml.safe_load((GOLDEN / "skypilot/program.txt").read_text())
    tw = tmp_path / "bin/tw"
    tw.parent.mkdir()
    tw.write_text("#!/bin/sh\npwd\nfor word; do printf '%s\\0' \"$word\"; done\n")
    tw.chmod(0o755)
    (tmp_path / "sky_workdir").mkdir()
    done = subprocess.run(
        ["bash", "-c", task["run"]],
        env={"HOME": str(tmp_path), "PATH": f"{tw.parent}:{os.environ['PATH']}", "TW_TOKEN": "word"},
        capture_output=True,
        text=True,
        check=True,
    )
    folder, _, words = done.stdout.partition("\n")
    run = tmp_path / "tradewind/mnist"
    assert folder == str(tmp_path / "sky_workdir")
    assert words.split("\0")[:5] == ["run", f"{run}/run.yaml", "--token", f"@{run}/token", "--out"]
    assert words.split("\0")[-6:] == ["--", "python3", "train.py", "--name", nasty, ""]
    pod = json.loads((GOLDEN / "k8s/program.json").read_text())["spec"]["template"]["spec"]
    told = [word.replace("$$", "$") for word in pod["containers"][0]["args"]]  # as the kubelet does
    assert told[-5:] == ["--", "python3", "train.py", "--name", nasty]
    script = pod["containers"][0]["command"][2].replace("$$", "$")
    assert subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True).stderr == ""


def test_ports_name_their_protocol_without_which_server_side_apply_of_1_20_refuses_them():
    job = json.loads((GOLDEN / "k8s/choices.json").read_text())
    service = json.loads((GOLDEN / "k8s/run.json").read_text())["items"][1]
    ports = job["spec"]["template"]["spec"]["containers"][0]["ports"] + service["spec"]["ports"]
    assert [port["protocol"] for port in ports] == ["TCP", "TCP"]
