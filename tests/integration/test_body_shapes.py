# SPDX-License-Identifier: Apache-2.0
"""Bodies in which a value has another shape than its schema says: an array where an object belongs, a null in a list, a text for
a number. Whatever the verb, the kind of patch and the subresource, the server refuses such a body or ignores the value. It never
responds with a 500, and it keeps running."""
import base64
import copy
import http.client
import json
import subprocess

import pytest
from holdfastd import Cluster, wait_until

SHAPES = ([1], None, {"a": [1]}, "x", [None], {}, [[{}]], [{"a": 1}, "x"], {"$patch": "replace"}, "", 7, -1, True)
N_OF_PARTS = 4  # so many of them are tried with the subresources too
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shapes.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "shapes", "kind": "Shape"}, "versions": [{
        "name": "v1", "served": True, "storage": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-validations": [{"rule": "!has(self.low) || self.low <= self.replicas"}], "properties": {
                "replicas": {"type": "integer", "default": 1}, "low": {"type": "integer"},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}}]}}
POD = {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}],
                       "volumeMounts": [{"name": "v", "mountPath": "/v"}], "resources": {"requests": {"cpu": "1"}}}],
       "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "k", "operator": "Exists"}]}
META = {"name": "x", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]}
REQUEST = base64.b64encode(subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null",
                                           "-subj", "/CN=x"], capture_output=True, check=True).stdout).decode()
# The collection, the subresources, and a valid object.
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 1, "dryRun": ["All"],
           "preconditions": {"uid": "u", "resourceVersion": "1"}, "propagationPolicy": "Orphan"}
KINDS = {
    "configmap": ("/api/v1/namespaces/shapes/configmaps", (), {"data": {"a": "b"}}),
    "pod": ("/api/v1/namespaces/shapes/pods", ("status", "ephemeralcontainers", "binding", "eviction", "resize"), {"spec": POD}),
    "service": ("/api/v1/namespaces/shapes/services", ("status",), {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    "account": ("/api/v1/namespaces/shapes/serviceaccounts", ("token",), {"secrets": [{"name": "s"}]}),
    "quota": ("/api/v1/namespaces/shapes/resourcequotas", ("status",), {"spec": {"hard": {"pods": "1k"}}}),
    "namespace": ("/api/v1/namespaces", ("status", "finalize"), {"spec": {"finalizers": ["kubernetes"]}}),
    "node": ("/api/v1/nodes", ("status",), {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "1"}}}),
    "event": ("/api/v1/namespaces/shapes/events", (), {"involvedObject": {"namespace": "shapes", "name": "x"}, "count": 1}),
    "deployment": ("/apis/apps/v1/namespaces/shapes/deployments", ("status", "scale"),
                   {"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                             "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}}),
    "role": ("/apis/rbac.authorization.k8s.io/v1/namespaces/shapes/roles", (), {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "lease": ("/apis/coordination.k8s.io/v1/namespaces/shapes/leases", (), {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5}}),
    "policy": ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", ("status",),
               {"spec": {"failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [
                   {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]},
                         "validations": [{"expression": "true"}]}}),
    "definition": ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ("status",), None),
    "request": ("/apis/certificates.k8s.io/v1/certificatesigningrequests", ("status", "approval"),
                {"spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["digital signature"]}}),
    "custom": ("/apis/example.com/v1/namespaces/shapes/shapes", ("status", "scale"),
               {"spec": {"replicas": 1, "parts": [{"name": "a"}], "free": {"a": [{"b": 1}]}}, "status": {"replicas": 1}}),
    "review": ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    "tokenreview": ("/apis/authentication.k8s.io/v1/tokenreviews", None, {"spec": {"token": "t", "audiences": ["a"]}}),
}


class Client:
    def __init__(self, instance):
        self.instance = instance
        self.connection = None

    def send(self, method, path, body, content_type="application/json", headers=None):
        """Returns the status and the text of the response."""
        for attempt in range(2):
            if self.connection is None:
                host, port = self.instance.url.removeprefix("https://").rsplit(":", 1)
                self.connection = http.client.HTTPSConnection(host, int(port), context=self.instance.context(True), timeout=30)
            try:
                self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": content_type, **(headers or {})})
                response = self.connection.getresponse()
                return response.status, response.read().decode()
            except (OSError, http.client.HTTPException) as error:
                # The server may have closed an idle connection. If it has ended, the second attempt fails.
                self.connection.close()
                self.connection = None
                assert attempt == 0 and self.instance.alive(), f"{error!r}: {method} {path} {content_type} {body}"
        return None


@pytest.fixture(name="api", scope="module")
def _api():
    with Cluster(with_witness=False) as cluster:
        api = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()
        assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shapes"}})[0] == 201
        assert api.request("POST", KINDS["definition"][0], DEFINITION)[0] == 201
        wait_until("the custom kind is served", lambda: api.get(KINDS["custom"][0])[0] == 200)
        yield api
        assert api.alive() and "runtime error" not in api.log_text() and "Sanitizer" not in api.log_text()


def places(value, path=()):
    """Yields the path of each value in an object, that of the object itself first."""
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


def replaced(value, path, shape):
    if not path:
        return shape
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], shape)
    return value


def variants(value):
    """Yields each body that has another value in one place, the place, and the number of the value."""
    for path in places(value):
        for number, shape in enumerate(SHAPES):
            yield number, path, replaced(value, path, shape)


def expect(sent, what):
    status, text = sent
    # As kube-apiserver does, an apply responds with 500 if it has a field that the kind does not have.
    assert 200 <= status < 500 or "failed to create typed patch object" in text, f"{what}: {status} {text[:300]}"


def operations(old, new):
    """The operations of a JSON patch that bring the new values of members; without members, the new value in their place."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [{"op": "replace", "path": f"/{key}", "value": value} for key, value in new.items() if key in old and old[key] != value]
    return new


def try_writes(client, target, what, valid, body):
    expect(client.send("PUT", target, body), f"PUT {target} {what} {body}")
    for content_type in PATCHES:
        patch = operations(valid, body) if content_type == PATCHES[0] else body
        expect(client.send("PATCH", target, patch, content_type), f"{content_type} {target} {what} {patch}")


@pytest.mark.parametrize("kind", KINDS)
def test_no_shape_of_a_body_ends_the_server(api, kind):
    collection, subresources, content = KINDS[kind]
    client = Client(api)
    valid = DEFINITION if content is None else {"metadata": META, **content}
    if kind == "custom":
        valid = {"apiVersion": "example.com/v1", "kind": "Shape", **valid}
    target = f"{collection}/{valid['metadata']['name']}"
    if content is not None:
        status, text = client.send("POST", collection, valid)
        assert status == 201, text
    for number, place, body in variants(valid):
        expect(client.send("POST", f"{collection}?dryRun=All", body), f"POST {place} {body}")
        if subresources is None:
            continue
        try_writes(client, f"{target}?dryRun=All&fieldManager=m", place, valid, body)
        for part in subresources if number < N_OF_PARTS else ():
            try_writes(client, f"{target}/{part}?dryRun=All&fieldManager=m", place, valid, body)
    for _, place, options in variants(OPTIONS) if subresources is not None else ():
        expect(client.send("DELETE", f"{target}?dryRun=All", options), f"DELETE {place} {options}")
        expect(client.send("DELETE", f"{collection}?dryRun=All&labelSelector=none", options), f"DELETE collection {place} {options}")
    assert api.alive()
