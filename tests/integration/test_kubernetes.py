# SPDX-License-Identifier: Apache-2.0
"""The manifests for Kubernetes, without a cluster: against its schemas, the image, the daemon and the code."""

import json
import pathlib
import re
import shutil
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
# Which part each of them patches.
ON_GPUS = {"gpu": "base", "trainer-gpu": "trainer"}
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


def merged(base, patch):
    """As a strategic merge of Kubernetes does it with what is used here: lists go by their key."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in patch.items()}}
    if isinstance(base, list) and isinstance(patch, list) and all(isinstance(one, dict) for one in base + patch):
        (key,) = [key for key in ("mountPath", "name", "key") if all(key in one for one in base + patch)][:1]
        in_patch = {one[key]: one for one in patch}
        kept = [merged(one, in_patch.pop(one[key], {})) for one in base]
        return kept + list(in_patch.values())
    return patch


def on_gpus(part: str) -> dict:
    """What is applied in place of the DaemonSet, or of the Job."""
    made = kustomization(part)
    assert made["resources"] == [f"../{ON_GPUS[part]}"]
    (change,) = made["patches"]
    (patch,) = documents(FOLDER / part / change["path"])
    named = the(patch["kind"])
    assert patch["metadata"]["name"] == named["metadata"]["name"]
    assert patch["metadata"]["namespace"] == kustomization(ON_GPUS[part])["namespace"]
    return merged(named, patch)


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
    for one in [*found, *map(on_gpus, ON_GPUS)]:
        assert breaches(one, version) is None, f"{one['kind']}: {breaches(one, version)}"


def in_one_order(value):
    if isinstance(value, dict):
        return {key: in_one_order(one) for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sorted(map(in_one_order, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
@pytest.mark.parametrize("part", [*PARTS, *ON_GPUS])
def test_kustomize_makes_of_it_what_the_other_tests_look_at(part):
    done = ran(["kubectl", "kustomize", str(FOLDER / part)])
    assert done.returncode == 0, done.stderr
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    expected = [on_gpus(part)] if part in ON_GPUS else documents(FOLDER / part / kustomization(part)["resources"][-1])
    for one in expected:
        assert made[one["kind"]]["metadata"]["namespace"] == "braid"
        assert in_one_order(made[one["kind"]]["spec"]) == in_one_order(one["spec"])


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
    assert done.returncode != 2, done.stderr  # 1: this machine is no node of it
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
    assert endpoint["port"] in ports
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


def test_the_daemon_sees_all_gpus_and_claims_none():
    pod = on_gpus("gpu")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    plain = daemon_pod()
    given = environment_of(container)
    # NVIDIA's library and its files of devices, and nothing for computing.
    assert given["NVIDIA_VISIBLE_DEVICES"] == "all" and given["NVIDIA_DRIVER_CAPABILITIES"] == "utility"
    assert given.items() >= environment_of(plain["containers"][0]).items()
    assert container["resources"] == plain["containers"][0]["resources"]
    assert container["securityContext"] == plain["containers"][0]["securityContext"]
    assert pod["runtimeClassName"] == "nvidia" and pod["hostPID"] is True and not pod.get("hostIPC")


def test_trainers_on_gpus_have_a_rank_on_each_and_shared_memory():
    job = on_gpus("trainer-gpu")["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == container["resources"]["requests"]["nvidia.com/gpu"]
    assert not any(pod.get(name) for name in ("hostIPC", "hostPID", "hostNetwork"))
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    (shared,) = [volume for volume in pod["volumes"] if volume["name"] == mounts["/dev/shm"]]
    assert shared["emptyDir"]["medium"] == "Memory"
    program, *options, script = container["command"]
    assert program == "torchrun" and script == trainer_pod()["containers"][0]["command"][-1]
    used = set(re.findall(r"\$\((\w+)\)", " ".join(options)))
    assert used == {"RANK", "MASTER_ADDR", "MASTER_PORT"} and used <= environment_of(container).keys()
    assert f"--nnodes={job['completions']}" in options and "--nproc-per-node=gpu" in options


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
    own = ran([FOLDER / "prometheus-rule", "--documents", "https://wiki.example.org/braid"])
    runbooks = [one["annotations"]["runbook_url"] for group in yaml.safe_load(own.stdout)["spec"]["groups"]
                for one in group["rules"] if "alert" in one]  # fmt: skip
    assert runbooks and all(one.startswith("https://wiki.example.org/braid/watching.md#") for one in runbooks)
    assert ran([FOLDER / "prometheus-rule", "--documents", "nowhere"]).returncode == 2
    assert rule["metadata"]["namespace"] == the("Namespace")["metadata"]["name"]
    # They look for this label, which the operator would set otherwise.
    assert any('job="braid"' in one["expr"] for group in rules["groups"] for one in group["rules"])
    (endpoint,) = the("PodMonitor")["spec"]["podMetricsEndpoints"]
    assert {"targetLabel": "job", "replacement": "braid", "action": "replace"} in endpoint["relabelings"]
