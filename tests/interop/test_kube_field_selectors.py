# SPDX-License-Identifier: Apache-2.0
"""The fields that selectors may name: those of kube-apiserver 1.36, their values where a field is absent, and the refusals of other fields."""
import pytest
from memory_server import MemoryServer

NAMESPACED = "/api/v1/namespaces/default/"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
WS = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
META = "application/merge-patch+json"
CONTAINERS = [{"name": "c", "image": "i"}]


def named(name, **more):
    return {"metadata": {"name": name}, **more}


def template(**spec):
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS, **spec}}


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        for path, body in (
                ("/api/v1/nodes", named("open")), ("/api/v1/nodes", named("closed", spec={"unschedulable": True})),
                (CLASSES, named("fast", spec={"controller": "a.example/b"})), (CLASSES, named("slow", spec={"controller": "a.example/b"})),
                (NAMESPACED + "serviceaccounts", named("robot")),
                (NAMESPACED + "pods", named("plain", spec={"containers": CONTAINERS})),
                (NAMESPACED + "pods", named("bound", spec={"containers": CONTAINERS, "nodeName": "open", "hostNetwork": True, "restartPolicy": "Never",
                                                           "schedulerName": "other", "serviceAccountName": "robot"})),
                (NAMESPACED + "services", named("one", spec={"ports": [{"port": 1}]})),
                (NAMESPACED + "services", named("none", spec={"clusterIP": "None", "ports": [{"port": 1}]})),
                (NAMESPACED + "services", named("away", spec={"type": "ExternalName", "externalName": "a.example"})),
                (NAMESPACED + "replicationcontrollers", named("idle", spec={"selector": {"a": "b"}, "template": template()})),
                (NAMESPACED + "replicationcontrollers", named("busy", spec={"selector": {"a": "b"}, "template": template()})),
                (JOBS, named("new", spec={"template": template(restartPolicy="Never")})),
                (JOBS, named("old", spec={"template": template(restartPolicy="Never")}))):
            answer = server.ask("POST", path, body)
            assert answer.code == 201, answer
        for path, status in ((NAMESPACED + "pods/bound", {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}),
                             (NAMESPACED + "pods/plain", {"nominatedNodeName": "closed"}),
                             (NAMESPACED + "replicationcontrollers/busy", {"replicas": 3}), (JOBS + "/old", {"succeeded": 2})):
            answer = server.ask("PATCH", path + "/status", {"status": status}, content_type=META)
            assert answer.code == 200, answer
        yield server


def test_a_node_is_created_with_its_status(api):
    """A kubelet registers its node with a status. Creates of other kinds drop the status."""
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    answer = api.ask("POST", "/api/v1/nodes?dryRun=All", named("ready", status=status))
    assert answer.code == 201 and answer.json["status"]["conditions"][0]["status"] == "True", answer.text
    answer = api.ask("POST", JOBS + "?dryRun=All", named("done", spec={"template": template(restartPolicy="Never")}, status={"succeeded": 1}))
    assert answer.code == 201 and "succeeded" not in answer.json.get("status", {}), answer.text


def names(api, path, selector):
    answer = api.ask("GET", f"{path}?fieldSelector={selector.replace('=', '%3D')}")
    assert answer.code == 200, answer
    return [i["metadata"]["name"] for i in answer.json["items"]]


@pytest.mark.parametrize("path,selector,wanted", [
    ("/api/v1/nodes", "spec.unschedulable=false", ["open"]),
    ("/api/v1/nodes", "spec.unschedulable=true", ["closed"]),
    ("/api/v1/nodes", "spec.unschedulable!=true", ["open"]),
    (NAMESPACED + "pods", "spec.nodeName=open", ["bound"]),
    (NAMESPACED + "pods", "spec.nodeName=", ["plain"]),
    (NAMESPACED + "pods", "spec.host=open", ["bound"]),
    (NAMESPACED + "pods", "spec.restartPolicy=Always", ["plain"]),
    (NAMESPACED + "pods", "spec.schedulerName=default-scheduler", ["plain"]),
    (NAMESPACED + "pods", "spec.serviceAccountName=robot", ["bound"]),
    (NAMESPACED + "pods", "spec.hostNetwork=false", ["plain"]),
    (NAMESPACED + "pods", "spec.hostNetwork=true", ["bound"]),
    (NAMESPACED + "pods", "status.phase=Running", ["bound"]),
    (NAMESPACED + "pods", "status.phase!=Running,metadata.namespace=default", ["plain"]),
    (NAMESPACED + "pods", "status.podIP=10.0.0.1", ["bound"]),
    (NAMESPACED + "pods", "status.podIPs=10.0.0.1", []),
    (NAMESPACED + "pods", "status.nominatedNodeName=closed", ["plain"]),
    (NAMESPACED + "services", "spec.clusterIP=None,metadata.name!=kubernetes", ["none"]),
    (NAMESPACED + "services", "spec.type=ExternalName", ["away"]),
    (NAMESPACED + "replicationcontrollers", "status.replicas=0", ["idle"]),
    (NAMESPACED + "replicationcontrollers", "status.replicas=3", ["busy"]),
    (JOBS, "status.successful=0", ["new"]),
    (JOBS, "status.successful=2", ["old"]),
    (CLASSES, "metadata.namespace=", ["fast", "slow"]),
    (CLASSES, "metadata.namespace!=default,metadata.name=slow", ["slow"]),
    (CLASSES, "metadata.namespace=default", []),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "metadata.namespace=default", []),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "metadata.namespace=default", [])])
def test_selects(api, path, selector, wanted):
    assert names(api, path, selector) == wanted


@pytest.mark.parametrize("path,message", [
    (NAMESPACED + "pods", "field label not supported: spec.x"),
    ("/api/v1/nodes", "field label not supported: spec.x"),
    (NAMESPACED + "services", "field label not supported: spec.x"),
    (JOBS, 'field label "spec.x" not supported for Job'),
    (SETS, '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"')])
def test_refuses(api, path, message):
    answer = api.ask("GET", path + "?fieldSelector=spec.x%3Da")
    assert (answer.code, answer.json["message"]) == (400, message)


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/namespaces", "/apis/certificates.k8s.io/v1/certificatesigningrequests", WS])
def test_the_namespace_is_no_field_of_these_kinds(api, path):
    answer = api.ask("GET", path + "?fieldSelector=metadata.namespace%3Da")
    assert (answer.code, answer.json["message"]) == (400, "field label not supported: metadata.namespace")
