# SPDX-License-Identifier: Apache-2.0
"""What the rows of the kinds beside the core group say: updates without a resourceVersion, generations and columns, as in kube-apiserver 1.36."""
import pytest
from memory_server import MemoryServer

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"
APPS, BATCH = "/apis/apps/v1/namespaces/default/", "/apis/batch/v1/namespaces/default/"
NETWORKING, STORAGE = "/apis/networking.k8s.io/v1/", "/apis/storage.k8s.io/v1/"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
HPA = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
CLASS_MARK = "{}.kubernetes.io/is-default-class"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}


def named(name, annotations=None, **more):
    return {"metadata": {"name": name, **({"annotations": annotations} if annotations else {})}, **more}


ATTACHMENT = {"attacher": "csi.example", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
# Kubernetes shows each address of a load balancer once, in order.
BALANCERS = [{"ip": "10.0.0.2"}, {"hostname": "b.example"}, {"ip": "10.0.0.1"}, {"ip": "10.0.0.2", "hostname": "a.example"}, {"ports": []}]
OBJECTS = [
    (BUDGETS, named("one", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}})),
    (STORAGE + "csidrivers", named("csi.example", spec={"tokenRequests": [{"audience": "one"}, {"audience": "two"}]})),
    (STORAGE + "csidrivers", named("plain.example", spec={})),
    (STORAGE + "csinodes", named("n", spec={"drivers": [{"name": "csi.example", "nodeID": "n"}]})),
    (STORAGE + "namespaces/default/csistoragecapacities", named("none", storageClassName="fast")),
    (STORAGE + "namespaces/default/csistoragecapacities", named("some", storageClassName="fast", capacity="1Gi")),
    (STORAGE + "volumeattachments", named("a", spec=ATTACHMENT)),
    (STORAGE + "storageclasses", named("fast", provisioner="csi.example")),
    (STORAGE + "storageclasses", named("usual", {CLASS_MARK.format("storageclass"): "true"}, provisioner="csi.example")),
    (STORAGE + "storageclasses", named("old", {CLASS_MARK.format("storageclass.beta"): "true"}, provisioner="csi.example")),
    (STORAGE + "volumeattributesclasses", named("silver", driverName="csi.example", parameters={"a": "b"})),
    (NETWORKING + "ingressclasses", named("usual", {CLASS_MARK.format("ingressclass"): "true"}, spec={"controller": "a.example/b"})),
    (NETWORKING + "ingressclasses", named("other", {CLASS_MARK.format("ingressclass"): "false"}, spec={"controller": "a.example/b"})),
    (NETWORKING + "ipaddresses", named("10.0.0.9", spec={"parentRef": {"resource": "services", "namespace": "default", "name": "s"}})),
    (NETWORKING + "ipaddresses", named("10.0.0.8", spec={"parentRef": {"resource": "Gateways", "group": "example.com", "name": "Shared"}})),
    (NETWORKING + "servicecidrs", named("s", spec={"cidrs": ["10.9.0.0/24"]})),
    ("/api/v1/namespaces/default/services", named("balanced", spec={"type": "LoadBalancer", "ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]})),
    (NETWORKING + "namespaces/default/ingresses", named("many", spec={"rules": [{"host": f"{c}.example"} for c in "abcde"]})),
    (APPS + "deployments", named("d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})),
    (APPS + "controllerrevisions", named("r", revision=3, data={})),
    (HPA.format("v2"), named("h", spec={"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}})),
    (BATCH + "cronjobs", named("c", spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {
        "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}})),
    (SLICES, named("s", addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}], ports=[{"name": "web"}, {"port": 80}])),
]


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        for path, body in OBJECTS:
            reply = server.ask("POST", path, body)
            assert reply.code == 201, (path, reply.text)
        for path in (NETWORKING + "namespaces/default/ingresses/many", "/api/v1/namespaces/default/services/balanced"):
            reply = server.ask("PATCH", path + "/status", {"status": {"loadBalancer": {"ingress": BALANCERS}}}, content_type=MERGE)
            assert reply.code == 200, (path, reply.text)
        yield server


@pytest.mark.parametrize("path", [BUDGETS + "/one", STORAGE + "csidrivers/csi.example", STORAGE + "csinodes/n",
                                  STORAGE + "namespaces/default/csistoragecapacities/some", STORAGE + "volumeattachments/a"])
def test_an_update_needs_a_version(api, path):
    body = api.ask("GET", path).json
    version = body["metadata"].pop("resourceVersion")
    for sub in ["", "/status"] if "volumeattachments" in path or "poddisruptionbudgets" in path else [""]:
        reply = api.ask("PUT", path + sub, body)
        assert (reply.code, reply.json["reason"]) == (422, "Invalid"), reply.text
        assert reply.json["message"].endswith("is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    body["metadata"].update(resourceVersion=version, labels={"a": "b"})
    assert api.ask("PUT", path, body).code == 200


@pytest.mark.parametrize("path", [STORAGE + "storageclasses/fast", STORAGE + "volumeattributesclasses/silver", NETWORKING + "ipaddresses/10.0.0.9"])
def test_an_update_of_others_needs_no_version(api, path):
    body = api.ask("GET", path).json
    del body["metadata"]["resourceVersion"]
    assert api.ask("PUT", path, body).code == 200


@pytest.mark.parametrize("path, status", [(STORAGE + "volumeattachments/a", {"attachmentMetadata": {"a": "b"}}), (NETWORKING + "servicecidrs/s", {
    "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]})])
def test_a_write_of_a_status_leaves_the_metadata(api, path, status):
    before = api.ask("GET", path).json
    reply = api.ask("PATCH", path + "/status", {"metadata": {"labels": {"of": "status"}, "finalizers": ["a/b"]}, "status": status}, content_type=MERGE)
    assert reply.code == 200 and reply.json["status"] == {**before["status"], **status}, reply.text
    assert {k: v for k, v in reply.json["metadata"].items() if k not in ("resourceVersion", "managedFields")} == {
        k: v for k, v in before["metadata"].items() if k not in ("resourceVersion", "managedFields")}


def patched(api, path, **body):
    reply = api.ask("PATCH", path, body, content_type=MERGE)
    assert reply.code == 200, reply.text
    return reply.json["metadata"].get("generation")


def test_the_generation_of_a_driver_counts_changes(api):
    path = STORAGE + "csidrivers/plain.example"
    assert "generation" not in api.ask("GET", path).json["metadata"]
    assert patched(api, path, metadata={"labels": {"c": "d"}}) is None
    assert patched(api, path, spec={"requiresRepublish": True}) == 1
    assert patched(api, path, spec={"requiresRepublish": False}) == 2


def test_annotations_of_deployments_and_labels_of_slices_count(api):
    deployment, endpoints = APPS + "deployments/d", SLICES + "/s"
    assert [api.ask("GET", path).json["metadata"]["generation"] for path in (deployment, endpoints)] == [1, 1]
    assert patched(api, deployment, metadata={"labels": {"c": "d"}}) == 1
    assert patched(api, deployment, metadata={"annotations": {"c": "d"}}) == 2
    assert patched(api, deployment + "/status", metadata={"annotations": {"e": "f"}}) == 2
    assert patched(api, endpoints, metadata={"annotations": {"c": "d"}}) == 1
    assert patched(api, endpoints, metadata={"labels": {"c": "d"}}) == 2


@pytest.mark.parametrize("path, types, cells", [
    (HPA.format("v1"), {"MinPods": "string", "MaxPods": "string", "Replicas": "string"}, {"h": {"MinPods": "1", "MaxPods": 3, "Replicas": 0}}),
    (HPA.format("v2"), {"MinPods": "string", "MaxPods": "string", "Replicas": "string"}, {"h": {"MinPods": "1", "MaxPods": 3, "Replicas": 0}}),
    (APPS + "deployments", {"Up-to-date": "string", "Available": "string"}, {"d": {"Up-to-date": 0, "Available": 0}}),
    (APPS + "controllerrevisions", {"Revision": "string"}, {"r": {"Revision": 3}}),
    (BATCH + "cronjobs", {"Suspend": "boolean"}, {"c": {"Suspend": "False"}}),
    (STORAGE + "csidrivers", {"AttachRequired": "boolean", "PodInfoOnMount": "boolean", "StorageCapacity": "boolean", "RequiresRepublish": "boolean"},
     {"csi.example": {"AttachRequired": True, "TokenRequests": "one,two"}, "plain.example": {"TokenRequests": "<unset>"}}),
    (STORAGE + "namespaces/default/csistoragecapacities", {"Capacity": "string"}, {"none": {"Capacity": "<unset>"}, "some": {"Capacity": "1Gi"}}),
    (STORAGE + "volumeattachments", {"Attached": "boolean"}, {"a": {"Attached": False}}),
    (STORAGE + "storageclasses", {"AllowVolumeExpansion": "string"}, {"fast": {}, "old (default)": {}, "usual (default)": {"AllowVolumeExpansion": False}}),
    (NETWORKING + "ingressclasses", {}, {"other": {}, "usual (default)": {}}),
    (NETWORKING + "ipaddresses", {"ParentRef": "string"}, {"10.0.0.9": {"ParentRef": "services/default/s"},
                                                                  "10.0.0.8": {"ParentRef": "gateways.example.com/Shared"}}),
    ("/api/v1/namespaces/default/services", {}, {"balanced": {"External-IP": "10.0.0.1,10.0.0.2,b.example,192.0.2.1"}}),
    (NETWORKING + "namespaces/default/ingresses", {}, {"many": {"Hosts": "a.example,b.example,c.example + 2 more...",
                                                                            "Address": "10.0.0.1,10.0.0.2,b.example"}}),
    (SLICES, {}, {"s": {"Ports": "web,80", "Endpoints": "10.0.0.1"}}),
])
def test_columns(api, path, types, cells):
    table = api.ask("GET", path, accept=TABLE).json
    columns = {column["name"]: column for column in table["columnDefinitions"]}
    assert {name: columns[name]["type"] for name in types} == types
    rows = {row["cells"][0]: dict(zip(columns, row["cells"])) for row in table["rows"]}
    assert {name: {key: rows[name][key] for key in wanted} for name, wanted in cells.items()} == cells
    assert ("Age" in columns) == (not path.endswith(("ipaddresses", "csistoragecapacities")))
    assert columns["Name"]["format"] == "name" and columns.get("Attacher", {"format": "name"})["format"] == "name"
