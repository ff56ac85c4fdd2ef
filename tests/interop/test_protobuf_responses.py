# SPDX-License-Identifier: Apache-2.0
"""Responses in protobuf, the default of client-go: each says the same as the JSON of the same object, encoded as by kube-apiserver."""
import gzip
import json

import pytest
from kube_protobuf import decode_answer, decode_frames, pruned
from memory_server import MemoryServer

PROTOBUF = "application/vnd.kubernetes.protobuf"
BOTH = f"{PROTOBUF},application/json"
PARTIAL = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = ";as=Table;g=meta.k8s.io;v=v1"
NS = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COORDINATION = "/apis/coordination.k8s.io"
WS = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
CONFIGMAPS = NS + "/configmaps"
META = {"name": "p", "labels": {"b": "2", "a": "1"}, "annotations": {"x/y": "\u00fc\n"}, "finalizers": ["x.example/y"]}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
RULES = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}]
KINDS = [
    (CONFIGMAPS, {"data": {"z": "1", "a": "", "m": "\u00fc"}, "binaryData": {"y": "AAH/", "x": ""}, "immutable": False}),
    (NS + "/secrets", {"data": {"k": "aGVsbG8="}, "stringData": {"j": "v"}, "type": "x.example/y"}),
    (NS + "/serviceaccounts", {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "i"}], "automountServiceAccountToken": False}),
    ("/api/v1/namespaces", {}),
    (NS + "/events", {"involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "x"}, "count": 3, "eventTime": "1969-12-31T23:59:59.999999Z",
                      "firstTimestamp": "2026-01-02T03:04:05Z", "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.000001Z"}, "type": "Normal",
                      "reportingComponent": "c", "reportingInstance": "i", "action": "a", "reason": "r"}),
    (COORDINATION + "/v1/namespaces/default/leases", {"spec": {"holderIdentity": "", "leaseDurationSeconds": 300, "leaseTransitions": 0,
                                                               "renewTime": "2026-01-02T03:04:05.123456Z"}}),
    (COORDINATION + "/v1beta1/namespaces/default/leasecandidates", {"spec": {"leaseName": "l", "binaryVersion": "1.2.3", "emulationVersion": "1.2.0",
                                                                             "strategy": "OldestEmulationVersion"}}),
    (RBAC + "/namespaces/default/roles", {"rules": RULES}),
    (RBAC + "/clusterroles", {"rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"b": "1", "a": "2"}}]}}),
    (RBAC + "/namespaces/default/rolebindings", {"roleRef": ROLE_REF, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}]}),
    (RBAC + "/clusterrolebindings", {"roleRef": ROLE_REF, "subjects": [{"kind": "User", "name": "u"}]}),
]


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "controller": False}  # an existing object: the garbage collector deletes dependents without an owner
        owner["uid"] = server.ask("GET", NS).json["metadata"]["uid"]
        for path, more in KINDS:
            reply = server.ask("POST", path, {"metadata": {**META, "ownerReferences": [owner]}, **more}, accept=BOTH)
            assert reply.code == 201 and reply.headers["content-type"] == PROTOBUF, reply.bytes
            assert decode_answer(reply.bytes)["metadata"]["name"] == "p"
        yield server


def protobuf(reply, code=200):
    assert reply.code == code and reply.headers["content-type"] == PROTOBUF, reply.bytes
    return decode_answer(reply.bytes)


def of_list(document):
    """Removes from a JSON list what differs in protobuf: items have no type there, and the revision changes, which the continue token contains."""
    document["metadata"].pop("resourceVersion")
    document["metadata"]["continue"] = bool(document["metadata"].get("continue"))
    for item in document.get("items", []):
        item.pop("kind", None)
        item.pop("apiVersion", None)
    return pruned(document)


def same_list(api, path, **headers):
    return of_list(protobuf(api.ask("GET", path, accept=BOTH, **headers))) == of_list(api.ask("GET", path).json)


@pytest.mark.parametrize("path", [path for path, more in KINDS])
def test_each_kind_says_the_same_as_its_json(api, path):
    plain = api.ask("GET", path + "/p").json
    assert pruned(protobuf(api.ask("GET", path + "/p", accept=PROTOBUF))) == pruned(plain)
    assert same_list(api, path)
    partial = protobuf(api.ask("GET", path + "/p", accept=PROTOBUF + PARTIAL))
    assert pruned(partial) == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": pruned(plain["metadata"])}
    partials = protobuf(api.ask("GET", path, accept=PROTOBUF + PARTIALS))
    assert partials["kind"] == "PartialObjectMetadataList" and pruned(plain["metadata"]) in [pruned(item["metadata"]) for item in partials["items"]]


def test_writes_answer_in_protobuf(api):
    path = CONFIGMAPS + "/written"
    assert protobuf(api.ask("POST", CONFIGMAPS, {"metadata": {"name": "written"}}, accept=BOTH), 201)["kind"] == "ConfigMap"
    assert protobuf(api.ask("PUT", path, {"metadata": {"name": "written"}, "data": {"a": "b"}}, accept=BOTH))["data"] == {"a": "b"}
    merge = "application/merge-patch+json"
    assert protobuf(api.ask("PATCH", path, {"data": {"c": "d"}}, accept=BOTH, content_type=merge))["data"] == {"a": "b", "c": "d"}
    assert protobuf(api.ask("DELETE", path, accept=BOTH))["status"] == "Success"
    warned = api.ask("POST", CONFIGMAPS + "?dryRun=All", {"metadata": {"name": "w"}, "x": 1}, accept=BOTH)
    assert protobuf(warned, 201) and warned.warnings


def test_reviews_answer_in_protobuf(api):
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    review = protobuf(api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, accept=BOTH), 201)
    assert review["status"]["allowed"] is True and review["spec"]["resourceAttributes"]["resource"] == "pods"
    assert protobuf(api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, accept=BOTH), 201)["status"]["userInfo"]["username"]


def test_failures_are_a_status_in_protobuf(api):
    for method, path, body, code in (("GET", CONFIGMAPS + "/none", None, 404), ("POST", CONFIGMAPS, {"metadata": META}, 409), ("GET", "/api/v1/none", None, 404),
                                     ("POST", CONFIGMAPS, {"metadata": {"name": "A", "labels": {"?": ""}}}, 422), ("POST", CONFIGMAPS, "{", 400),
                                     ("GET", CONFIGMAPS + "?limit=x", None, 400), ("GET", CONFIGMAPS + "?watch=1&sendInitialEvents=1", None, 422)):
        plain = api.ask(method, path, body)
        assert plain.code == code and plain.headers["content-type"] == "application/json"
        assert pruned(protobuf(api.ask(method, path, body, accept=BOTH), code)) == pruned(plain.json)
    anonymous = api.ask("GET", CONFIGMAPS, accept=BOTH, impersonate_user="nobody")
    assert protobuf(anonymous, 403)["reason"] == "Forbidden"
    # If the Accept header lists only forms of metadata, an error is sent as JSON.
    assert api.ask("GET", CONFIGMAPS + "/none", accept=PROTOBUF + PARTIAL).json["reason"] == "NotFound"


def test_what_has_no_protobuf_is_json_or_refused(api):
    assert api.ask("POST", WS, {"metadata": {"name": "p"}}).code == 201
    for path in (WS, WS + "/p"):
        assert api.ask("GET", path, accept=BOTH).headers["content-type"] == "application/json"
        refused = protobuf(api.ask("GET", path, accept=PROTOBUF), 406)
        assert refused["message"] == "only the following media types are accepted: application/json"
    assert protobuf(api.ask("GET", WS + "/p", accept=PROTOBUF + PARTIAL))["metadata"]["name"] == "p"
    assert protobuf(api.ask("GET", WS, accept=PROTOBUF + PARTIALS))["items"][-1]["metadata"]["name"] == "p"
    assert api.ask("GET", CONFIGMAPS, accept=PROTOBUF + TABLE).json["reason"] == "NotAcceptable"
    assert api.ask("GET", CONFIGMAPS, accept=f"{PROTOBUF}{TABLE},application/json{TABLE}").json["kind"] == "Table"
    refused = api.ask("GET", CONFIGMAPS, accept="application/cbor")
    assert refused.code == 406 and refused.json["message"] == f"only the following media types are accepted: application/json, {PROTOBUF}"


def test_quality_values_count(api):
    for accept, type_ in ((f"{PROTOBUF};q=0.5,application/json", "application/json"), (f"application/json;q=0.5,{PROTOBUF}", PROTOBUF),
                          (f"{PROTOBUF}, */*", PROTOBUF), ("*/*", "application/json"), (f"application/json,{PROTOBUF}", "application/json")):
        assert api.ask("GET", CONFIGMAPS + "/p", accept=accept).headers["content-type"] == type_


def watch(api, path, accept, revision=""):
    """Watches until the time limit. Returns the events."""
    reply = api.ask("GET", f"{path}?watch=1&timeoutSeconds=1&allowWatchBookmarks=1{revision}", accept=accept)
    assert reply.code == 200 and reply.headers["content-type"] == PROTOBUF + ";stream=watch"
    return list(decode_frames(reply.bytes))


@pytest.fixture(scope="module", name="many")
def _many(api):
    """Fills a namespace with more ConfigMaps than a list body keeps between its two passes."""
    path = "/api/v1/namespaces/many/configmaps"
    assert api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "many"}}).code == 201
    for i in range(80):
        body = {"metadata": {"name": f"c{i:02}", "labels": {"n": str(i % 3)}}, "data": {"k": f"{i}" * 8000}}
        assert api.ask("POST", path, body).code == 201
    return path


def test_watches_send_events_in_protobuf(api, many):
    send = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    for suffix, kind in (("", "ConfigMap"), (PARTIAL, "PartialObjectMetadata")):
        events = [event for event in watch(api, many, PROTOBUF + suffix, send) if event[1]["metadata"].get("name") != "kube-root-ca.crt"]
        assert [type_ for type_, _ in events[:80]] == ["ADDED"] * 80 and all(object_["kind"] == kind for _, object_ in events)
        assert [object_["metadata"]["name"] for _, object_ in events[:80]] == [f"c{i:02}" for i in range(80)]
        assert events[80][0] == "BOOKMARK" and events[80][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    listed = {item["metadata"]["name"]: item for item in api.ask("GET", many).json["items"]}
    for _, object_ in watch(api, many, PROTOBUF, send)[:80]:
        assert pruned(object_) == pruned({"kind": "ConfigMap", "apiVersion": "v1", **listed[object_["metadata"]["name"]]})


def test_live_events_and_errors_of_watches_are_protobuf(api):
    before = api.ask("GET", CONFIGMAPS).json["metadata"]["resourceVersion"]
    assert api.ask("POST", CONFIGMAPS, {"metadata": {"name": "live"}}).code == 201
    assert api.ask("DELETE", CONFIGMAPS + "/live").code == 200
    for suffix in ("", PARTIAL):
        events = watch(api, CONFIGMAPS, PROTOBUF + suffix, f"&resourceVersion={before}")
        assert [(type_, object_["metadata"]["name"]) for type_, object_ in events[:2]] == [("ADDED", "live"), ("DELETED", "live")]
    type_, status = watch(api, CONFIGMAPS, PROTOBUF, "&resourceVersion=99999999")[-1]
    assert (type_, status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
    same = api.ask("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={before}").text.splitlines()
    for (type_, object_), line in zip(watch(api, CONFIGMAPS, PROTOBUF, f"&resourceVersion={before}"), same):
        assert pruned({"type": type_, "object": object_}) == pruned(json.loads(line))


@pytest.mark.parametrize("query", ["", "?limit=60", "?limit=20", "?limit=2", "?labelSelector=n%3D1", "?labelSelector=n%3Dnone", "?fieldSelector=metadata.name%3Dc07"])
def test_lists_of_any_size_are_whole(api, many, query):
    assert same_list(api, many + query)
    packed = api.ask("GET", many + query, accept=BOTH, accept_encoding="gzip")
    assert packed.headers["content-type"] == PROTOBUF
    plain = gzip.decompress(packed.bytes) if "content-encoding" in packed.headers else packed.bytes
    assert ("content-encoding" in packed.headers) == (len(plain) >= 128 << 10)
    assert of_list(decode_answer(plain)) == of_list(api.ask("GET", many + query).json)


def test_a_large_object_is_whole(api):
    assert protobuf(api.ask("POST", CONFIGMAPS, {"metadata": {"name": "large"}, "data": {"k": "v" * 200000}}, accept=BOTH), 201)["data"]["k"] == "v" * 200000
    packed = api.ask("GET", CONFIGMAPS + "/large", accept=BOTH, accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert decode_answer(gzip.decompress(packed.bytes))["data"]["k"] == "v" * 200000
