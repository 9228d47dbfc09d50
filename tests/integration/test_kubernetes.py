# SPDX-License-Identifier: Apache-2.0
"""The manifests for Kubernetes, without a cluster: against its schemas, the image, the daemon and the code."""

import json
import pathlib
import re
import subprocess

import pytest
from braid_build import BRAIDD, IS_BUILT, REPOSITORY, ran

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: run scripts/setup")
kubernetes_validate = pytest.importorskip(
    "kubernetes_validate", reason="kubernetes-validate is not installed: run scripts/setup"
)

FOLDER = REPOSITORY / "packaging" / "kubernetes"
CONTAINER = REPOSITORY / "packaging" / "container"
PARTS = ("base", "monitoring", "trainer")
# The oldest one with all fields that are used, and a recent one.
VERSIONS = ("1.27", "1.34")
# Kinds whose schema is no part of Kubernetes.
OF_AN_OPERATOR = ("PodMonitor", "PrometheusRule")


def documents(path: pathlib.Path) -> list[dict]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def manifests() -> list[dict]:
    """All that is applied but for what kustomize makes of files."""
    found = []
    for part in PARTS:
        for name in kustomization(part)["resources"]:
            found += documents(FOLDER / part / name)
    return found


def kustomization(part: str) -> dict:
    (one,) = documents(FOLDER / part / "kustomization.yaml")
    return one


def the(kind: str) -> dict:
    (one,) = [one for one in manifests() if one["kind"] == kind]
    return one


def daemon_pod() -> dict:
    return the("DaemonSet")["spec"]["template"]["spec"]


def trainer_pod() -> dict:
    return the("Job")["spec"]["template"]["spec"]


def environment_of(container: dict) -> dict[str, str]:
    """Values by name; where one comes from the pod, the path of the field."""
    return {one["name"]: one.get("value") or one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}


def containerfile() -> list[tuple[str, str]]:
    """The steps of the last stage."""
    shown = subprocess.run([CONTAINER / "run-steps", "--show"], capture_output=True, text=True, check=True).stdout
    *_, last = json.loads(shown).values()
    return [(name, rest) for _, name, rest in last["steps"]]


def step(name: str) -> str:
    (rest,) = [rest for one, rest in containerfile() if one == name]
    return rest


def breaches(document: dict, version: str) -> str | None:
    """What Kubernetes would refuse of it, an unknown field above all."""
    if document["kind"] in OF_AN_OPERATOR:
        return None
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_all_fields(version):
    found = manifests()
    kinds = {one["kind"] for one in found}
    assert kinds == {"Namespace", "PriorityClass", "DaemonSet", "PodMonitor", "Service", "Job"}
    for one in found:
        assert breaches(one, version) is None, f"{one['kind']}: {breaches(one, version)}"


def configuration() -> dict:
    (one,) = documents(FOLDER / "base" / "braidd.yaml")
    return one


@pytest.mark.skipif(not IS_BUILT, reason="braidd is not built (BRAID_BUILD)")
def test_braidd_takes_its_configuration():
    pod = daemon_pod()
    given = {"NODE_NAME": "node-a", "NODE_ADDRESS": "192.0.2.1"}
    assert environment_of(pod["containers"][0]).keys() == given.keys()
    arguments = [re.sub(r"\$\((\w+)\)", lambda match: given[match[1]], one) for one in pod["containers"][0]["args"]]
    arguments[0] = arguments[0].replace("/etc/braid", str(FOLDER / "base"))
    done = ran([BRAIDD, "--check-config", *arguments])
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([BRAIDD, "--print-config", *arguments], capture_output=True, text=True, check=True).stdout
    effective = yaml.safe_load(printed)
    assert effective["node"]["name"] == "node-a"
    assert effective["node"]["address"] == effective["metrics"]["address"] == "192.0.2.1"
    for section, keys in configuration().items():
        assert effective[section].items() >= keys.items()


def test_what_it_is_told_fits_what_is_mounted():
    pod = daemon_pod()
    mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    settings = configuration()
    for path in (settings["client"]["socket"], settings["control"]["cluster_key_file"]):
        assert str(pathlib.Path(path).parent) in mounts
    assert settings["node"]["state_directory"] in mounts and "/etc/braid" in mounts
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in [*pod["containers"], *pod["initContainers"]]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
    # What the daemon writes to is made its own before.
    (prepare,) = pod["initContainers"]
    for path in (str(pathlib.Path(settings["client"]["socket"]).parent), settings["node"]["state_directory"]):
        assert not mounts[path].get("readOnly") and path in re.search(r"^chown .*$", prepare["command"][2], re.M)[0]
    assert settings["control"]["cluster_key_file"] in prepare["command"][2]
    assert volumes["socket"]["hostPath"]["path"] == str(pathlib.Path(settings["client"]["socket"]).parent)


def test_ports_are_those_of_the_configuration():
    ports = {one["name"]: one["containerPort"] for one in daemon_pod()["containers"][0]["ports"]}
    settings = configuration()
    assert ports == {"control": settings["control"]["port"], "metrics": settings["metrics"]["port"]}
    (endpoint,) = the("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in ports and endpoint["honorLabels"] is True
    assert step("EXPOSE").split() == [str(port) for port in ports.values()]


def test_one_user_everywhere():
    uid, gid = step("USER").split(":")
    (made,) = [rest for name, rest in containerfile() if name == "RUN" and "useradd" in rest]
    assert f"groupadd --gid {gid} {configuration()['client']['group']}" in made and f"useradd --uid {uid} " in made
    pod = daemon_pod()
    context = pod["containers"][0]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(uid), int(gid))
    assert set(re.findall(r"chown (\S+)", pod["initContainers"][0]["command"][2])) == {f"{uid}:{gid}"}
    assert trainer_pod()["securityContext"]["supplementalGroups"] == [int(gid)]
    assert environment_of(trainer_pod()["containers"][0])["BRAID_DAEMON_UID"] == uid
    assert trainer_pod()["securityContext"]["runAsUser"] not in (0, int(uid))


def test_nobody_has_more_rights_than_he_needs():
    for pod, added in ((daemon_pod(), ["CHOWN"]), (trainer_pod(), [])):
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not pod.get("hostPID") and not pod.get("hostIPC")
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
            assert context["capabilities"]["drop"] == ["ALL"] and not context.get("privileged")
            is_first = container["name"] == "prepare"
            assert context["capabilities"].get("add", []) == (added if is_first else [])
            assert "memory" in container["resources"]["limits"]
    assert daemon_pod()["containers"][0]["securityContext"]["runAsNonRoot"] is True


def test_the_trainer_meets_the_daemon():
    pod, settings = trainer_pod(), configuration()
    (container,) = pod["containers"]
    given = environment_of(container)
    assert given["BRAID_SOCKET"] == settings["client"]["socket"]
    (mount,) = [one for one in container["volumeMounts"] if given["BRAID_SOCKET"].startswith(one["mountPath"] + "/")]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    (shared,) = [one for one in daemon_pod()["volumes"] if one["name"] == "socket"]
    assert volume["hostPath"]["path"] == shared["hostPath"]["path"] == mount["mountPath"] and mount["readOnly"]
    job, service = the("Job"), the("Service")
    assert given["MASTER_ADDR"] == f"{job['metadata']['name']}-0.{service['metadata']['name']}"
    assert pod["subdomain"] == service["metadata"]["name"] and service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= job["spec"]["template"]["metadata"]["labels"].items()
    assert int(given["WORLD_SIZE"]) == job["spec"]["completions"] == job["spec"]["parallelism"]
    # The daemon says itself where it is: at the node's address.
    (daemon,) = daemon_pod()["containers"]
    assert "BRAID_MASTER_ADDR" not in given
    assert "--set=node.address=$(NODE_ADDRESS)" in daemon["args"]


def test_variables_are_known_to_the_code():
    code = ""
    for path in [*(REPOSITORY / "python" / "braid").rglob("*.py"), *(REPOSITORY / "client" / "src").glob("*.cpp")]:
        code += path.read_text(encoding="utf-8")
    for container in [*trainer_pod()["containers"], *daemon_pod()["containers"]]:
        for name in environment_of(container):
            assert not name.startswith("BRAID_") or f'"{name}"' in code, name
    assert '"STATE_DIRECTORY"' in (REPOSITORY / "daemon" / "daemon_options.cpp").read_text(encoding="utf-8")
    assert step("ENV").startswith("STATE_DIRECTORY=")


def test_the_alerts_are_those_of_prometheus():
    printed = subprocess.run([FOLDER / "prometheus-rule"], capture_output=True, text=True, check=True).stdout
    (rule,) = yaml.safe_load_all(printed)
    (rules,) = documents(REPOSITORY / "packaging" / "prometheus" / "braid.rules.yml")
    assert rule["spec"] == rules and len(rules["groups"]) > 1
    assert rule["metadata"]["namespace"] == the("Namespace")["metadata"]["name"]
    # They look for this label, which the operator would set otherwise.
    assert any('job="braid"' in one["expr"] for group in rules["groups"] for one in group["rules"])
    (endpoint,) = the("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert {"targetLabel": "job", "replacement": "braid", "action": "replace"} in endpoint["relabelings"]


def test_the_image_has_the_version_of_the_project():
    version = re.search(r"project\(braid VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
    assert f'image.version="{version}"' in step("LABEL")
    images = [container["image"] for pod in (daemon_pod(), trainer_pod())
              for container in [*pod["containers"], *pod.get("initContainers", [])]]  # fmt: skip
    assert {image.split(":")[1] for image in images} == {version}
