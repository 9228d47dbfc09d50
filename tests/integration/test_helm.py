# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, as Helm's own library renders it: the same objects as kustomize's, and what its values change."""

import json
import os
import re
import sys

import pytest
from braid_build import REPOSITORY, ran
from test_kubernetes import VERSIONS, breaches, documents, in_one_order, on_gpus, the

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: run scripts/setup")

LIBRARY = REPOSITORY / "build" / "helm"
CHART = REPOSITORY / "packaging" / "helm" / "braid"

pytestmark = pytest.mark.skipif(
    not (LIBRARY / "complete").exists(), reason="there is no build/helm: run scripts/setup --helm"
)
EVERYTHING = {"monitoring": {"podMonitor": True, "alerts": True, "dashboards": True}}


# In a process of its own: the library brings Go's threads and signal handlers.
ASK = """
import json, sys
import helm_python as helm
asked = json.load(sys.stdin)
try:
    with helm.Chart.load(asked["chart"]) as chart:
        chart.validate_schema(chart.merge_values(asked["values"]))  # as Helm does first
        if asked["package"]:
            chart = helm.Chart.load(chart.save(asked["package"]))
        texts = chart.render(asked["values"], name="train", namespace=asked["namespace"])
    print(json.dumps({"texts": texts, "lint": helm.lint(asked["chart"])}))
except helm.HelmError as error:
    print(json.dumps({"error": str(error)}))
"""


def helm(values: dict | None = None, namespace: str = "braid", package: str = "") -> dict:
    """What Helm's library answers; `package`: of the chart's archive, which it makes in this folder first."""
    asked = json.dumps({"chart": str(CHART), "values": values or {}, "namespace": namespace, "package": package})
    done = ran([sys.executable, "-c", ASK], input=asked, env={**os.environ, "PYTHONPATH": str(LIBRARY)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rendered(values: dict | None = None, namespace: str = "braid") -> dict[tuple[str, str], dict]:
    """What is applied, by kind and name."""
    texts = helm(values, namespace)["texts"]
    found = [one for path, text in texts.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
    assert len({(one["kind"], one["metadata"]["name"]) for one in found}) == len(found)
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def daemon_set(values: dict | None = None) -> dict:
    return rendered(values)["DaemonSet", "braidd"]


def pod(values: dict | None = None) -> dict:
    return daemon_set(values)["spec"]["template"]["spec"]


def with_pull_policy(spec: dict) -> dict:
    """As the manifest has it: that is the default for an image with a version."""
    text = json.loads(json.dumps(spec))
    inside = text["template"]["spec"]
    for container in [*inside["containers"], *inside["initContainers"]]:
        container["imagePullPolicy"] = "IfNotPresent"
    return text


def test_helm_finds_nothing_to_say():
    said = helm()["lint"]
    assert said["errors"] == [] and said["total_charts_linted"] == 1
    assert [one["error"] for one in said["messages"]] == ["icon is recommended"]


def test_it_makes_what_kustomize_makes():
    made = rendered(EVERYTHING)
    kinds = sorted(kind for kind, _ in made)
    assert kinds == ["ConfigMap"] * 4 + ["DaemonSet", "PodMonitor", "PriorityClass", "PrometheusRule"]
    spec = made["DaemonSet", "braidd"]["spec"]
    assert in_one_order(spec) == in_one_order(with_pull_policy(the("DaemonSet")["spec"]))
    priority, own = the("PriorityClass"), made["PriorityClass", "braid-node"]
    assert {**own, "metadata": None} == {**priority, "metadata": None}
    (configuration,) = documents(REPOSITORY / "packaging" / "kubernetes" / "base" / "braidd.yaml")
    assert yaml.safe_load(made["ConfigMap", "braidd"]["data"]["braidd.yaml"]) == configuration
    assert made["PodMonitor", "braidd"]["spec"] == the("PodMonitor")["spec"]
    (rules,) = documents(REPOSITORY / "packaging" / "prometheus" / "braid.rules.yml")
    assert made["PrometheusRule", "braid"]["spec"] == rules
    for kind, name in made:
        labels = made[kind, name]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "braidd" and labels["app.kubernetes.io/managed-by"] == "Helm"
        assert kind == "PriorityClass" or made[kind, name]["metadata"]["namespace"] == "braid"
    assert not [kind for kind, _ in rendered() if kind in ("PodMonitor", "PrometheusRule")]


def test_an_archive_of_it_has_the_rules_and_dashboards_that_it_links_to(tmp_path):
    assert helm(EVERYTHING, package=str(tmp_path))["texts"] == helm(EVERYTHING)["texts"]
    assert [path.suffix for path in tmp_path.iterdir()] == [".tgz"]


def test_on_gpus_it_makes_what_kustomize_makes_there():
    spec = daemon_set({"gpu": {"watch": True}})["spec"]
    assert in_one_order(spec) == in_one_order(with_pull_policy(on_gpus("gpu")["spec"]))
    both = pod({"gpu": {"watch": True}, "nodeSelector": {"pool": "train"}})
    assert both["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "train"}


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_all_fields(version):
    values = {**EVERYTHING, "gpu": {"watch": True}, "affinity": {"nodeAffinity": {}}, "podAnnotations": {"a": "b"},
              "imagePullSecrets": [{"name": "registry"}]}  # fmt: skip
    for one in rendered(values).values():
        assert breaches(one, version) is None, f"{one['kind']}: {breaches(one, version)}"


def test_dashboards_are_those_of_grafana():
    made = rendered(EVERYTHING)
    for name in ("fleet", "node", "job"):
        one = made["ConfigMap", f"braid-dashboard-{name}"]
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        text = (REPOSITORY / "packaging" / "grafana" / f"{name}.json").read_text(encoding="utf-8")
        assert json.loads(one["data"][f"braid-{name}.json"]) == json.loads(text)


def test_alerts_lead_to_the_documents_that_are_given():
    given = {"alerts": True, "documents": "https://wiki.example.org/braid/", "labels": {"release": "p"}}
    rule = rendered({"monitoring": given})["PrometheusRule", "braid"]
    found = [one["annotations"]["runbook_url"] for group in rule["spec"]["groups"]
             for one in group["rules"] if "alert" in one]  # fmt: skip
    assert len(found) > 20 and all(one.startswith("https://wiki.example.org/braid/watching.md#") for one in found)
    assert rule["metadata"]["labels"]["release"] == "p"


def test_values_change_the_pod():
    values = {
        "image": {"repository": "registry.example.org/braid", "tag": "1.2.3", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}], "nodeSelector": {"pool": "train"}, "tolerations": [],
        "resources": {"limits": {"memory": "40Gi"}}, "podAnnotations": {"a": "b"},
        "affinity": {"nodeAffinity": {}}, "priorityClass": {"create": False, "name": "important"},
    }  # fmt: skip
    made = rendered(values, namespace="training")
    assert all(one["metadata"]["namespace"] == "training" for one in made.values())
    assert not [kind for kind, _ in made if kind == "PriorityClass"]
    template = made["DaemonSet", "braidd"]["spec"]["template"]
    inside = template["spec"]
    for container in [*inside["containers"], *inside["initContainers"]]:
        assert container["image"] == "registry.example.org/braid:1.2.3" and container["imagePullPolicy"] == "Always"
    assert inside["imagePullSecrets"] == [{"name": "registry"}] and inside["nodeSelector"] == {"pool": "train"}
    assert "tolerations" not in inside and inside["affinity"] == {"nodeAffinity": {}}
    assert inside["containers"][0]["resources"]["limits"] == {"memory": "40Gi"}
    assert inside["containers"][0]["resources"]["requests"]["cpu"] == "2"  # values are merged
    assert inside["priorityClassName"] == "important" and template["metadata"]["annotations"] == {"a": "b"}


def test_the_configuration_is_merged_and_the_pod_follows_it():
    values = {
        "clusterKey": {"secret": "own-key", "file": "secret.txt"},
        "configuration": {
            "control": {"port": 7500, "cluster_key_file": "/keys/braid.key"}, "metrics": {"port": 9500},
            "client": {"socket": "/run/own/braidd.sock"}, "node": {"state_directory": "/srv/braid"},
            "collective": {"result_memory_max": 34359738368}, "transport": {"rails": ["eth1", "eth2"]},
        },
    }  # fmt: skip
    made = rendered(values)
    told = yaml.safe_load(made["ConfigMap", "braidd"]["data"]["braidd.yaml"])
    assert told == {**values["configuration"], "client": {"socket": "/run/own/braidd.sock", "group": "braid"}}
    assert "34359738368" in made["ConfigMap", "braidd"]["data"]["braidd.yaml"]
    inside = made["DaemonSet", "braidd"]["spec"]["template"]["spec"]
    (daemon,), (prepare,) = inside["containers"], inside["initContainers"]
    assert {one["name"]: one["containerPort"] for one in daemon["ports"]} == {"control": 7500, "metrics": 9500}
    volumes = {one["name"]: one for one in inside["volumes"]}
    assert volumes["socket"]["hostPath"]["path"] == "/run/own" and volumes["state"]["hostPath"]["path"] == "/srv/braid"
    assert volumes["given"]["secret"]["secretName"] == "own-key"
    for container in (daemon, prepare):
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert (mounts["socket"], mounts["state"], mounts["key"]) == ("/run/own", "/srv/braid", "/keys")
    script = prepare["command"][2]
    assert "chown 7410:7410 /run/own /srv/braid" in script
    assert "cp /run/secrets/given/secret.txt /keys/braid.key" in script
    assert not re.search(r"/run/braid|/var/lib/braid|cluster\.key", script)


@pytest.mark.parametrize("values, named", [
    ({"tolerationz": []}, "tolerationz"),
    ({"monitoring": {"documents": "wiki"}}, "documents"),
    ({"monitoring": {"serviceMonitor": True}}, "serviceMonitor"),
    ({"configuration": {"metrics": {"port": 0}}}, "port"),
    ({"configuration": {"client": {"socket": "braidd.sock"}}}, "socket"),
    ({"gpu": {"watch": "yes"}}, "watch"),
])
def test_a_wrong_value_is_named(values, named):
    answer = helm(values)
    assert named in answer.get("error", ""), answer.keys()
