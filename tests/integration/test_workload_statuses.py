# SPDX-License-Identifier: Apache-2.0
"""The statuses that controllers of others write: for what they are refused, and what the server adds. The words are those of
kube-apiserver 1.36's source; tests/unit/test-workload-status.c has the rules one by one."""
import itertools

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)
MERGE = "application/merge-patch+json"
CORE, APPS, BATCH = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
LABELS = {"app": "a"}
CONTAINER = {"name": "c", "image": "i"}
NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"


@pytest.fixture(scope="module")
def server():
    with MemoryServer("--runtime-config=api/workloads=true") as it:
        yield it


def made(server, path, spec, **metadata):
    body = {"metadata": {"name": f"n{next(NUMBERS)}", **metadata}, "spec": spec}
    reply = server.ask("POST", path, body)
    assert reply.code == 201, reply.text
    return f"{path}/{body['metadata']['name']}", reply.json


def write(server, path, status, **more):
    return server.ask("PATCH", path + "/status", {"status": status, **more}, content_type=MERGE)


def causes(reply):
    assert reply.code == 422, reply.text
    return [(cause["field"], cause["message"]) for cause in reply.json["details"]["causes"]]


def template(**spec):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **spec}}


WORKLOAD = {"selector": {"matchLabels": LABELS}, "template": template()}
JOB = {"template": template(restartPolicy="Never")}


@pytest.mark.parametrize("path, spec, status, field, why", [
    (APPS + "/deployments", WORKLOAD, {"replicas": 1, "readyReplicas": 2}, "status.readyReplicas",
     "Invalid value: 2: cannot be greater than status.replicas"),
    (APPS + "/replicasets", WORKLOAD, {"observedGeneration": -1}, "status.observedGeneration", NEGATIVE),
    (APPS + "/statefulsets", {**WORKLOAD, "serviceName": "s"}, {"replicas": 1, "currentReplicas": 2}, "status.currentReplicas",
     "Invalid value: 2: cannot be greater than status.replicas"),
    (APPS + "/daemonsets", WORKLOAD, {"numberReady": -1}, "status.numberReady", NEGATIVE),
    (CORE + "/replicationcontrollers", {"selector": LABELS, "template": template()}, {"observedGeneration": -1}, "status.observedGeneration", NEGATIVE),
    (BATCH + "/jobs", JOB, {"active": -1}, "status.active", NEGATIVE),
    (CORE + "/services", {"ports": [{"port": 80}]}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}, "status.loadBalancer.ingress",
     "Forbidden: may only be used when `spec.type` is 'LoadBalancer'"),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
     {"loadBalancer": {"ingress": [{"ip": "1.2.3"}]}}, "status.loadBalancer.ingress[0].ip",
     'Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"minAvailable": 1}, {"expectedPods": -1}, "status.expectedPods", NEGATIVE),
    ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 2},
     {"currentReplicas": -1}, "status.currentReplicas", NEGATIVE),
    ("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 2},
     {"desiredReplicas": -1}, "status.desiredReplicas", NEGATIVE),
    (CORE + "/persistentvolumeclaims", {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}, {"capacity": {"storage": "-1"}},
     "status.capacity[storage]", "Invalid value: -1: must be a valid resource quantity"),
    ("/apis/storage.k8s.io/v1/volumeattachments", {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
     {"attached": False, "attachError": {"errorCode": -1}}, "status.attachError.errorCode",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"),
    (CORE + "/pods", {"containers": [CONTAINER]}, {"qosClass": "Guaranteed"}, "status.qosClass",
     'Invalid value: "Guaranteed": field is immutable')])
def test_a_status_is_refused(server, path, spec, status, field, why):
    path, _ = made(server, path, spec)
    assert causes(write(server, path, status)) == [(field, why)]


def test_a_job_ends_once(server):
    path, _ = made(server, BATCH + "/jobs", JOB)
    started = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1}
    assert write(server, path, started).code == 200
    done = {"active": 0, "ready": 0, "succeeded": 1, "completionTime": "2026-01-01T00:00:01+00:00",
            "conditions": [{"type": t, "status": "True"} for t in ("SuccessCriteriaMet", "Complete")]}
    assert causes(write(server, path, {**done, "conditions": done["conditions"][1:]})) == [
        ("status.conditions", "Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition")]
    assert write(server, path, done).code == 200
    assert causes(write(server, path, {"completionTime": "2026-01-01T00:00:02Z"})) == [
        ("status.completionTime", 'Invalid value: "2026-01-01T00:00:02Z": field is immutable')]
    assert write(server, path, {"completionTime": "2026-01-01T00:00:01Z"}).code == 200


def test_a_generated_selector_is_not_contradicted(server):
    def create(spec, labels):
        return server.ask("POST", BATCH + "/jobs", {"metadata": {"name": f"n{next(NUMBERS)}"}, "spec": {
            **spec, "template": {**JOB["template"], "metadata": {"labels": labels}}}})

    reply = create({}, {"z": "y", "job-name": "x"})
    name = reply.json["details"]["name"]
    (field, why), = causes(reply)
    assert field == "spec.template.metadata.labels[job-name]"
    assert why.startswith('Invalid value: {"batch.kubernetes.io/controller-uid":"') and why.endswith(f"must be '{name}'")
    causes_of_selector = causes(create({"selector": {"matchLabels": {"app": "x"}}}, {"app": "x"}))
    assert [(field, why.rpartition(": ")[2]) for field, why in causes_of_selector] == [("spec.selector", "`selector` not auto-generated")]
    assert create({"selector": {"matchLabels": {}}}, {"app": "x"}).code == 201
    # Own labels are kept beside the generated ones, and manual selectors are as they are sent.
    assert create({}, {"app": "x"}).json["spec"]["template"]["metadata"]["labels"]["app"] == "x"
    assert create({"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}}, {"app": "x", "job-name": "x"}).code == 201


def test_the_server_adds_what_a_status_implies(server):
    path, _ = made(server, CORE + "/services", {"ports": [{"port": 80}], "type": "LoadBalancer"})
    reply = write(server, path, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a.b"}, {"ip": "::1", "ipMode": "Proxy"}]}})
    assert reply.json["status"]["loadBalancer"]["ingress"] == [
        {"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.b"}, {"ip": "::1", "ipMode": "Proxy"}]
    reply = write(server, path, {"loadBalancer": {"ingress": [{"ip": "", "hostname": "a.b"}]}})
    assert reply.code == 200 and "ipMode" not in reply.json["status"]["loadBalancer"]["ingress"][0]
    # What is no LoadBalancer any more has no addresses of one, and its status can be written.
    assert server.ask("PATCH", path, {"spec": {"type": "ClusterIP"}}, content_type=MERGE).json["status"] == {"loadBalancer": {}}
    assert write(server, path, {"conditions": []}).code == 200
    path, _ = made(server, CORE + "/pods", {"containers": [CONTAINER]})
    assert write(server, path, {"qosClass": "", "phase": "Running"}).json["status"]["qosClass"] == "BestEffort"
    status = write(server, path, {"podIP": "10.0.0.1"}).json["status"]
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.1", [{"ip": "10.0.0.1"}])
    status = write(server, path, {"podIP": None, "podIPs": [{"ip": "::1"}, {"ip": "10.0.0.2"}]}).json["status"]
    assert (status["podIP"], status["podIPs"]) == ("::1", [{"ip": "::1"}, {"ip": "10.0.0.2"}])


def test_a_wrong_status_that_is_kept_does_not_prevent_other_changes(server):
    """Only the rules of a status that changes are checked, so that annotations can be written beside an old one."""
    path, _ = made(server, APPS + "/deployments", WORKLOAD)
    assert write(server, path, {"replicas": 1, "readyReplicas": 1, "collisionCount": 1}).code == 200
    reply = write(server, path, {}, metadata={"annotations": {"a": "b"}})
    assert reply.code == 200 and reply.json["metadata"]["annotations"]["a"] == "b"
    assert causes(write(server, path, {"collisionCount": 0})) == [("status.collisionCount", "Invalid value: 0: cannot be decremented")]
    assert causes(write(server, path, {"replicas": 0})) == [
        ("status.readyReplicas", "Invalid value: 1: cannot be greater than status.replicas")]
