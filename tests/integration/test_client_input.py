# SPDX-License-Identifier: Apache-2.0
"""Unusual and hostile requests. Each is either understood correctly or refused, never partly
ignored, and its cost is bounded."""
import base64
import http.client
import json
import urllib.parse

import pytest
from holdfastd import Cluster
from memory_server import MemoryServer

WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(name="api", scope="module")
def _api():
    with Cluster(with_witness=False) as cluster:
        api = cluster.instance("a").wait_ready()
        yield api
        assert api.alive() and "runtime error" not in api.log_text() and "Sanitizer" not in api.log_text()


def workspace(name, **meta):
    return {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": name, **meta}}


@pytest.mark.parametrize("options,code", [({"dryRun": "All"}, 400), ({"dryRun": {"a": 1}}, 400), ({"dryRun": ["Some"]}, 422),
                                          ({"dryRun": [1]}, 400), ({"preconditions": []}, 400), ({"preconditions": {"uid": 5}}, 400),
                                          ({"preconditions": {"resourceVersion": 5}}, 400), ({"kind": "Workspace"}, 400),
                                          ({"kind": 5}, 400)], ids=json.dumps)
def test_invalid_delete_options_delete_nothing(api, options, code):
    api.request("POST", WORKSPACES, workspace("kept"))
    assert api.request("DELETE", f"{WORKSPACES}/kept", options)[0] == code
    assert api.get(f"{WORKSPACES}/kept")[0] == 200


@pytest.mark.parametrize("body", [b'{"metadata":{"name":"u","uid":"x","uid":"y"}}', b'{"metadata":{"name":"u"},"data":{"a":"1","a":"2"}}'], ids=ascii)
def test_duplicate_fields_are_refused_if_the_client_asks_for_it(api, body):
    assert api.request("POST", f"{CONFIGMAPS}?fieldValidation=Strict", body)[0] == 400
    assert api.get(f"{CONFIGMAPS}/u")[0] == 404


@pytest.mark.parametrize("body", [b'{"metadata":{"name":"u"},"data":{"a":"\xff\xfe"}}',
                                  b'{"metadata":{"name":"u"},"x":' + b"[" * 1000 + b"]" * 1000 + b"}", b"[" * 1000000,
                                  b'{"a":' * 100000])
def test_bodies_that_are_no_objects_are_refused(api, body):
    assert api.request("POST", CONFIGMAPS, body)[0] == 400
    assert api.get(f"{CONFIGMAPS}/u")[0] == 404


def test_a_client_may_shorten_the_deadline(api):
    assert api.request("POST", CONFIGMAPS, {"metadata": {"name": "late"}})[0] == 201
    for method in ("GET", "DELETE"):
        # 503: the deadline had passed before anything was sent to the store
        assert api.request(method, f"{CONFIGMAPS}?timeout=1ns")[0] in (503, 504)
        assert api.get(f"{CONFIGMAPS}/late")[0] == 200
        assert api.request(method, f"{CONFIGMAPS}?timeout=soon")[0] == 400
    assert api.get("/version?timeout=soon")[0] == 400
    assert api.get(f"{CONFIGMAPS}/late?timeout=0s")[0] == 200
    assert api.request("DELETE", f"{CONFIGMAPS}?timeout=1m&timeoutSeconds=20")[0] == 200
    assert api.get(f"{CONFIGMAPS}/late")[0] == 404


def test_the_query_has_one_interpretation(api):
    api.request("POST", WORKSPACES, workspace("one"))
    api.request("POST", WORKSPACES, workspace("two"))
    for query in ("watch=yes", "watch=1&watch=0", "watch=true&watch=false"):
        code, text = api.get(f"{WORKSPACES}?{query}&timeoutSeconds=1")
        assert code == 200 and json.loads(text.splitlines()[0])["type"] == "ADDED", text
    for query in ("watch=0&watch=1", "watch=False"):
        assert json.loads(api.get(f"{WORKSPACES}?{query}&timeoutSeconds=1")[1])["kind"] == "WorkspaceList"
    items = json.loads(api.get(f"{WORKSPACES}?fieldSelector=metadata.name%3Done&fieldSelector=")[1])["items"]
    assert [i["metadata"]["name"] for i in items] == ["one"]


@pytest.mark.parametrize("path", [CONFIGMAPS + "/%ff", CONFIGMAPS + "/\xff", CONFIGMAPS + "?labelSelector=%ff", CONFIGMAPS + "?limit=%c3",
                                  "/api/v1/namespaces/%ff/configmaps"], ids=ascii)
def test_invalid_utf_8_is_not_echoed(api, path):
    host, port = api.url.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=api.context(), timeout=20)
    connection._validate_path = lambda url: None
    connection._encode_request = lambda request: request.encode("latin-1")
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 400 and (text == "Bad Request" or json.loads(text)["code"] == 400), (answer.status, text)
    connection.close()


METADATA = {"metadata.selfLink": 1, "metadata.generation": "1", "metadata.ownerReferences.0.controller": "yes",
            "metadata.ownerReferences.0.blockOwnerDeletion": 1, "metadata.managedFields": {}, "metadata.managedFields.0": "x",
            "metadata.managedFields.0.time": "now"}
TYPES = {
    CONFIGMAPS: {**METADATA, "immutable": "yes", "binaryData.a": "!!", "binaryData": []},
    "/api/v1/namespaces/default/secrets": {"immutable": 1, "data.a": "!!"},
    "/api/v1/namespaces/default/serviceaccounts": {"secrets.0.name": 1, "imagePullSecrets.0.name": {}},
    "/api/v1/namespaces/default/events": {"involvedObject.name": 1, "reason": {}, "source": "x", "source.host": 1, "firstTimestamp": "x",
                                          "lastTimestamp": 5, "eventTime": "2026-11-21T00:00:00Z", "count": 1.5, "type": [],
                                          "series": [], "series.count": 1 << 31, "series.lastObservedTime": "x", "related.uid": 1},
    "/api/v1/namespaces/default/resourcequotas": {"spec.hard": [], "spec.hard.pods": "1x", "spec.hard.secrets": {}, "spec.scopes": "x"},
    "/api/v1/namespaces/default/podtemplates": {"template.spec.containers.0.ports.0.containerPort": "80", "template.spec.hostNetwork": "yes",
                                                "template.spec.volumes.0.emptyDir.sizeLimit": "1x", "template.spec.nodeSelector": []},
    "/api/v1/namespaces/default/limitranges": {"spec.limits": {}, "spec.limits.0.max.cpu": True},
    WORKSPACES: {"spec.initializers": {}, "spec.initializers.0": 1},
}


def nest(keys, value):
    return value if not keys else [nest(keys[1:], value)] if keys[0] == "0" else {keys[0]: nest(keys[1:], value)}


@pytest.mark.parametrize("path,field", [(path, field) for path, fields in TYPES.items() for field in fields])
def test_values_of_a_wrong_type_are_refused(api, path, field):
    """A typed client decodes a list as a whole or not at all, so one stored object like this
    would hide all others of its kind."""
    body = nest(field.split("."), TYPES[path][field])
    for reference in body.get("metadata", {}).get("ownerReferences", []):
        reference.update(apiVersion="v1", kind="ConfigMap", name="x", uid="u")
    body.setdefault("metadata", {})["name"] = "odd"
    code, text = api.request("POST", path, {**workspace("odd"), **body} if path == WORKSPACES else body)
    assert code == 400 and "cannot be handled as a" in json.loads(text)["message"], text
    assert api.get(f"{path}/odd")[0] == 404


def test_values_of_the_right_type_are_accepted(api):
    event = {"metadata": {"name": "good"}, "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "x"}, "count": 3,
             "firstTimestamp": "2026-11-21T00:00:00Z", "lastTimestamp": "2026-11-21T01:00:00.123+01:00", "source": {},
             "eventTime": "2026-11-21T00:00:00.000000Z", "series": None, "related": None, "type": "Normal",
             "action": "Tested", "reason": "Tested", "reportingComponent": "example.com/tester", "reportingInstance": "tester-1"}
    configmap = {"metadata": {"name": "good", "ownerReferences": None, "generation": 4}, "binaryData": {"a": "eA==", "b": ""},
                 "immutable": False}
    assert api.request("POST", "/api/v1/namespaces/default/events", event)[0] == 201
    assert api.request("POST", CONFIGMAPS, configmap)[0] == 201
    large = {"metadata": {"name": "large"}, "binaryData": {"a": base64.b64encode(b"x" * 1000000).decode()}}
    assert api.request("POST", CONFIGMAPS, large)[0] == 201
    large = {"metadata": {"name": "larger"}, "binaryData": {"a": base64.b64encode(b"x" * (1 << 20)).decode(), "b": "eA=="}}
    assert api.request("POST", CONFIGMAPS, large)[0] == 422


def test_a_truncated_refusal_is_valid_json(api):
    for n in range(2, 6):  # texts are truncated at a fixed length, which falls inside a character for some of these
        name = "a" * n + "\N{GRINNING FACE}" * 400
        for code, text in (api.request("POST", CONFIGMAPS, {"metadata": {"name": name}}),
                           api.request("PUT", CONFIGMAPS + "/x", {"metadata": {"name": name}}),
                           api.get(f"{CONFIGMAPS}?limit={urllib.parse.quote(name)}")):
            assert code in (400, 422) and json.loads(text)["code"] == code, text


def field(number, data):
    """Encodes a field of a protobuf message."""
    size, rest = b"", len(data)
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return bytes([number << 3 | 2]) + size + bytes([rest]) + data


def test_the_json_of_a_protobuf_body_has_a_limit(api):
    """A control character is one byte in protobuf and six in JSON."""
    for n, code in ((100000, 201), (900000, 413)):
        configmap = field(1, field(1, b"p")) + field(2, field(1, b"k") + field(2, b"\1" * n))
        body = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, configmap)
        answer = api.request("POST", f"{CONFIGMAPS}?dryRun=All", body, {"Content-Type": "application/vnd.kubernetes.protobuf"})
        assert answer[0] == code, answer
        assert code == 201 or json.loads(answer[1])["message"] == "Request entity too large: limit is 3145728"


def number(field_number, value):
    """Encodes a field of a protobuf message that is a small whole number."""
    return bytes([field_number << 3, value])


def test_unknown_fields_of_a_number_or_text_are_ignored():
    """A later version of Kubernetes may have more fields in an IntOrString than its type, its number and its text."""
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        for unknown in (b"", number(4, 5), field(5, b"more")):
            port = number(3, 80) + field(4, number(1, 1) + field(3, b"web") + unknown)
            service = field(1, field(1, b"s")) + field(2, field(1, port))
            body = b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Service")) + field(2, service)
            reply = server.ask("POST", "/api/v1/namespaces/default/services?dryRun=All", body, content_type="application/vnd.kubernetes.protobuf")
            assert reply.code == 201 and reply.json["spec"]["ports"][0]["targetPort"] == "web", reply.text


def test_a_future_revision_is_no_internal_error(api):
    for query in ("resourceVersion=99999999&resourceVersionMatch=Exact", "resourceVersion=99999999&limit=1"):
        code, text = api.get(f"{WORKSPACES}?{query}")
        assert code == 504 and "Too large resource version" in text, text


def test_huge_requests_are_handled_quickly(api):
    """Each of these requests once took minutes or overflowed the stack of a worker."""
    many = [f"a{i}" for i in range(60000)]
    fin = {"metadata": {"name": "fin", "finalizers": [f"x.io/{name}" for name in many[:40000]]}}
    assert api.request("POST", CONFIGMAPS, fin)[0] == 201
    assert api.request("DELETE", f"{CONFIGMAPS}/fin")[0] == 200
    fin["metadata"]["finalizers"].reverse()  # the object is being deleted, so each finalizer is looked up in the stored list
    assert api.request("PUT", f"{CONFIGMAPS}/fin", fin)[0] == 200
    fin["metadata"]["finalizers"] = [f"x.io/{name}" for name in many[1:]]
    code, text = api.request("PUT", f"{CONFIGMAPS}/fin", fin)
    assert code == 422 and "no new finalizers can be added" in text, text[:300]
    assert api.request("PUT", f"{CONFIGMAPS}/fin", {"metadata": {"name": "fin"}})[0] == 200
    data = {str(i): "" for i in range(40000)}
    assert api.request("POST", CONFIGMAPS, {"metadata": {"name": "big"}, "immutable": True, "data": data})[0] == 201
    turned = dict(reversed(list(data.items())))
    assert api.request("PUT", f"{CONFIGMAPS}/big", {"metadata": {"name": "big"}, "immutable": True, "data": turned})[0] == 200
    assert api.request("POST", CONFIGMAPS, {"metadata": {"name": "lab", "labels": {"_" + m: "!" for m in many[:40000]}}})[0] == 422
    assert api.request("DELETE", f"{CONFIGMAPS}/big")[0] == 200


@pytest.mark.parametrize("fence", ["", "x", "kube-system/x;01;me", "kube-system/x;99999999999999999999;me", " ;1;x", "kube-system/x;1;"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_an_invalid_fence_is_refused(api, method, fence):
    api.request("POST", WORKSPACES, workspace("fenced"))
    path = WORKSPACES if method == "POST" else f"{WORKSPACES}/fenced"
    body = workspace("fresh" if method == "POST" else "fenced", labels={"written": "yes"})
    assert api.request(method, path, None if method == "DELETE" else body, {"Holdfast-Fence": fence})[0] == 400
    assert "written" not in api.get(f"{WORKSPACES}/fenced")[1]
    assert api.get(f"{WORKSPACES}/fenced")[0] == 200 and api.get(f"{WORKSPACES}/fresh")[0] == 404


def test_a_stale_fence_stops_every_kind_of_write(api):
    """Even a write that changes nothing is refused, so that a deposed leader notices."""
    api.request("POST", CONFIGMAPS, {"metadata": {"name": "stale"}})
    now = json.loads(api.get(f"{CONFIGMAPS}/stale")[1])
    api.request("POST", CONFIGMAPS, {"metadata": {"name": "held", "finalizers": ["example.com/f"]}})
    api.request("DELETE", f"{CONFIGMAPS}/held")
    held = json.loads(api.get(f"{CONFIGMAPS}/held")[1])
    del held["metadata"]["finalizers"]
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    writes = [("POST", WORKSPACES, workspace("fresh")), ("PUT", f"{CONFIGMAPS}/stale", now), ("PUT", f"{CONFIGMAPS}/stale", {"metadata": {"name": "stale"}}),
              ("DELETE", f"{CONFIGMAPS}/stale", None), ("DELETE", f"{CONFIGMAPS}/held", None), ("PUT", f"{CONFIGMAPS}/held", held),
              ("PUT", f"{lease}/l", {"metadata": {"name": "l"}})]
    for fence in ("kube-system/none;1;me", "kube-system/holdfast-controllers;1;me"):
        for method, path, body in writes:
            code, text = api.request(method, path, body, {"Holdfast-Fence": fence})
            assert code == 409 and "StaleLeaderTerm" in text, (method, path, code, text)
    assert json.loads(api.get(f"{CONFIGMAPS}/stale")[1])["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    assert api.get(f"{WORKSPACES}/fresh")[0] == 404 and api.get(f"{CONFIGMAPS}/held")[0] == 200


def test_a_watch_may_begin_with_more_than_its_queue_holds(api):
    for i in range(24):
        assert api.request("POST", CONFIGMAPS, {"metadata": {"name": f"b{i}"}, "data": {"x": "y" * 250000}})[0] == 201
    host, port = api.url.removeprefix("https://").split(":")
    for query in ("", "&resourceVersion=0"):
        connection = http.client.HTTPSConnection(host, int(port), context=api.context(), timeout=60)
        connection.request("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=60{query}")
        for _ in range(3):  # the test has not read yet: the first piece is in the response queue
            assert api.request("POST", CONFIGMAPS, {"metadata": {"generateName": "later-"}})[0] == 201
        missing = {f"b{i}" for i in range(24)} | {json.loads(api.get(f"{CONFIGMAPS}?limit=200")[1])["items"][-1]["metadata"]["name"]}
        answer = connection.getresponse()
        while missing:
            line = answer.readline()
            assert line, f"the watch was cut, without {missing}"
            missing.discard(json.loads(line)["object"]["metadata"]["name"])
        connection.close()


@pytest.mark.parametrize("path", ["//api/v1/namespaces", "/api//v1/namespaces", "/%61pi/v1/namespaces", "/healthz/../api/v1/namespaces",
                                  "/healthz/%2e%2e/api/v1/namespaces", "/healthz%2f..%2fapi/v1/namespaces", "/API/v1/namespaces", "/livezx",
                                  "/metrics", "/metrics/", "/debug/leader", "/debug/leader/", "/openapi/v2", "/api", "/api/v1/namespaces/%00",
                                  "/healthz/" + "a" * 50000, "/" + "a" * 100000, "https://x/api/v1/namespaces"])
def test_anonymous_requests_cannot_bypass_authorization(api, path):
    host, port = api.url.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=api.context(client_certificate=False), timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status in (400, 403, 404, 431), (answer.status, answer.read()[:200])
    connection.close()
