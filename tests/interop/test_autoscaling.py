# SPDX-License-Identifier: Apache-2.0
"""HorizontalPodAutoscalers in both versions: they are stored as v2, and fields that v1 lacks are in annotations, as in kube-apiserver."""
import json

import old_kubectl
import pytest
from memory_server import MemoryServer

V1, V2 = (f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2"))
ALPHA = "autoscaling.alpha.kubernetes.io/"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        yield server


def scaler(name, **spec):
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5, **spec}}


def made(api, path, body):
    reply = api.ask("POST", path, body)
    assert reply.code == 201, reply.text
    return reply.json


def got(api, path):
    reply = api.ask("GET", path)
    assert reply.code == 200, reply.text
    return reply.json


def test_discovery(api):
    group = next(g for g in got(api, "/apis")["groups"] if g["name"] == "autoscaling")
    assert [v["version"] for v in group["versions"]] == ["v2", "v1"] and group["preferredVersion"]["version"] == "v2"
    for version in ("v1", "v2"):
        resources = {r["name"]: r for r in got(api, f"/apis/autoscaling/{version}")["resources"]}
        assert set(resources) == {"horizontalpodautoscalers", "horizontalpodautoscalers/status"}
        assert resources["horizontalpodautoscalers"]["storageVersionHash"] == "qwQve8ut294="
        assert resources["horizontalpodautoscalers"]["shortNames"] == ["hpa"]


def test_the_cpu_is_a_field_in_v1_and_a_metric_in_v2(api):
    first = made(api, V1, scaler("cpu", targetCPUUtilizationPercentage=60))
    assert (first["apiVersion"], first["spec"]["targetCPUUtilizationPercentage"], first["spec"]["minReplicas"]) == ("autoscaling/v1", 60, 1)
    assert "annotations" not in first["metadata"]
    assert got(api, f"{V2}/cpu")["spec"]["metrics"] == [CPU]
    # Without metrics, the default in v1 is a CPU target of 80 %.
    assert made(api, V1, scaler("nothing"))["spec"]["targetCPUUtilizationPercentage"] == 80
    listed = {item["metadata"]["name"]: item for item in got(api, V1)["items"]}
    assert listed["cpu"]["spec"]["targetCPUUtilizationPercentage"] == 60 and "metrics" not in listed["cpu"]["spec"]
    patched = api.ask("PATCH", f"{V1}/cpu", {"spec": {"targetCPUUtilizationPercentage": 70}}, content_type="application/merge-patch+json")
    assert patched.code == 200 and got(api, f"{V2}/cpu")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70


METRICS = [
    {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"}, "metric": {"name": "hits"},
                                  "target": {"type": "Value", "value": "10k"}}},
    {"type": "Pods", "pods": {"metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 30}}},
    {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
]
BEHAVIOR = {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]},
            "scaleDown": {"stabilizationWindowSeconds": 300, "selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}


def test_what_v1_does_not_know_is_kept(api):
    """A v2 object that is read and written as v1 stays the same."""
    made(api, V2, scaler("rich", metrics=[METRICS[0], CPU] + METRICS[1:], behavior=BEHAVIOR, minReplicas=2))
    status = {"currentReplicas": 3, "desiredReplicas": 4, "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r", "message": "m"}],
              "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 55, "averageValue": "250m"}}}]}
    reply = api.ask("PATCH", f"{V2}/rich/status", {"status": status}, content_type="application/merge-patch+json")
    assert reply.code == 200, reply.text
    before = got(api, f"{V2}/rich")
    shown = got(api, f"{V1}/rich")
    notes = shown["metadata"]["annotations"]
    assert shown["spec"] == {**scaler("rich")["spec"], "minReplicas": 2, "targetCPUUtilizationPercentage": 60}
    assert shown["status"] == {"currentReplicas": 3, "desiredReplicas": 4, "currentCPUUtilizationPercentage": 55}
    assert json.loads(notes[ALPHA + "metrics"]) == [
        {"type": "Object", "object": {"target": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"}, "metricName": "hits", "targetValue": "10k"}},
        {"type": "Pods", "pods": {"metricName": "packets", "targetAverageValue": "1k", "selector": {"matchLabels": {"a": "b"}}}},
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "100Mi"}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "targetAverageUtilization": 30, "container": "c"}},
        {"type": "External", "external": {"metricName": "queue", "targetAverageValue": "30"}}]
    assert json.loads(notes[ALPHA + "current-metrics"]) == [
        {"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 55, "currentAverageValue": "250m"}}]
    assert json.loads(notes[ALPHA + "behavior"])["ScaleUp"] == {"StabilizationWindowSeconds": 0, "SelectPolicy": "Max", "Policies": [{"Type": "Pods", "Value": 4, "PeriodSeconds": 60}]}
    assert json.loads(notes[ALPHA + "conditions"]) == status["conditions"]
    shown["metadata"]["labels"] = {"x": "y"}
    reply = api.ask("PUT", f"{V1}/rich", shown)
    assert reply.code == 200, reply.text
    after = got(api, f"{V2}/rich")
    assert after["spec"]["metrics"] == METRICS + [CPU]  # the CPU comes last, as in Kubernetes
    assert after["spec"]["behavior"] == BEHAVIOR and after["status"] == before["status"]
    assert "annotations" not in after["metadata"] and after["metadata"]["labels"] == {"x": "y"}


def test_malformed_annotations_are_ignored(api):
    for i, text in enumerate(("", "7", "[7]", "{", '[{"type":7}]', '[{"type":"Pods","pods":{"metricName":7}}]', '[{"type":"Pods","pods":[]}]')):
        body = scaler(f"bad-{i}", targetCPUUtilizationPercentage=50)
        body["metadata"]["annotations"] = {ALPHA + name: text for name in ("metrics", "behavior", "current-metrics", "conditions")}
        made(api, V1, body)
        stored = got(api, f"{V2}/bad-{i}")
        assert "annotations" not in stored["metadata"] and "behavior" not in stored["spec"], text
        assert stored["spec"]["metrics"][-1]["resource"]["name"] == "cpu", text


def test_versions_share_the_owners_of_fields(api):
    """A field that a manager has set in v1 conflicts with an apply in v2."""
    path = f"{V1}/owned?fieldManager=old"
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", **scaler("owned", targetCPUUtilizationPercentage=60)}
    assert api.ask("PATCH", path, body, content_type="application/apply-patch+yaml").code == 201
    other = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **scaler("owned", metrics=METRICS[2:3])}
    refused = api.ask("PATCH", f"{V2}/owned?fieldManager=new", other, content_type="application/apply-patch+yaml")
    assert refused.code == 409 and 'conflict with "old": .spec.metrics' in refused.json["message"], refused.text


def test_kubectl_autoscales(api):
    assert api.kubectl("create", "deployment", "web", "--image=nginx").returncode == 0
    said = api.kubectl("autoscale", "deployment", "web", "--max=4", "--cpu-percent=75")
    assert said.returncode == 0, said.stderr
    lines = [line.split() for line in api.kubectl("get", "hpa", "web").stdout.splitlines()]
    assert lines[0] == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert lines[1][:-1] == ["web", "Deployment/web", "cpu:", "<unknown>/75%", "1", "4", "0"]
    lines = [line.split("  ") for line in api.kubectl("get", "hpa", "rich").stdout.splitlines()]
    assert "<unknown>/10k, <unknown>/1k + 4 more..." in [cell.strip() for cell in lines[1]], lines
    assert "cpu" in api.kubectl("describe", "hpa.v1.autoscaling", "web").stdout or not old_kubectl.is_current()
