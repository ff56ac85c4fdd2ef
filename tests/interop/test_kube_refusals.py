# SPDX-License-Identifier: Apache-2.0
"""Refusals: code, reason and message, as kube-apiserver 1.36 sends them. Where Holdfast's differ on purpose, docs/compatibility.md says why."""
import re

import pytest
from memory_server import MemoryServer

CM = "/api/v1/namespaces/default/configmaps"
NS = "/api/v1/namespaces"
SECRETS = "/api/v1/namespaces/default/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
WS = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        for path, body in ((CM, {"metadata": {"name": "a"}, "data": {"k": "v"}}), (LEASES, {"metadata": {"name": "l"}, "spec": {}}),
                           (CM, {"metadata": {"name": "held", "finalizers": ["x.example/y"]}})):
            assert server.ask("POST", path, body).code == 201
        assert server.ask("DELETE", CM + "/held").code == 200
        yield server


def named(name="a", **more):
    return {"metadata": {"name": name, **more}}


UID = "00000000-0000-4000-8000-000000000000"
# <uid> and <rv> are those of the object. Text between << and >> is not compared: it is an internal message of Go.
REFUSALS = [
    # ---- names ----
    ("GET", CM + "/x", None, {}, 404, "NotFound", 'configmaps "x" not found'),
    ("GET", LEASES + "/x", None, {}, 404, "NotFound", 'leases.coordination.k8s.io "x" not found'),
    ("POST", CM, named(), {}, 409, "AlreadyExists", 'configmaps "a" already exists'),
    ("POST", LEASES, named("l"), {}, 409, "AlreadyExists", 'leases.coordination.k8s.io "l" already exists'),
    ("POST", "/api/v1/namespaces/none/configmaps", named(), {}, 404, "NotFound", 'namespaces "none" not found'),
    ("POST", CM, {}, {}, 422, "Invalid", 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
    ("POST", CM, named("A"), {}, 422, "Invalid",
     'ConfigMap "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '
     "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
    ("POST", CM, named(namespace="other"), {}, 400, "BadRequest",
     "the namespace of the provided object does not match the namespace sent on the request"),
    ("PUT", CM + "/a", named("b"), {}, 400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
    ("PUT", CM + "/a", {}, {}, 400, "BadRequest", "the name of the object (a based on URL) was undeterminable: name must be provided"),
    ("PATCH", CM + "/a", named("b"), {"content_type": MERGE}, 400, "BadRequest",
     "the name of the object (b) does not match the name on the URL (a)"),
    ("PATCH", CM + "/a", {"metadata": {"namespace": "b"}}, {"content_type": MERGE}, 400, "BadRequest",
     "the namespace of the provided object does not match the namespace sent on the request"),
    ("PATCH", CM + "/x", {}, {"content_type": MERGE}, 404, "NotFound", 'configmaps "x" not found'),
    ("DELETE", NS + "/default", None, {}, 403, "Forbidden", 'namespaces "default" is forbidden: this namespace may not be deleted'),
    ("POST", CM, {"metadata": {"name": "n", "generateName": "A"}}, {}, 422, "Invalid",
     'ConfigMap "n" is invalid: metadata.generateName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '
     "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
    ("POST", CM, {"metadata": {"generateName": "x" * 254}}, {}, 422, "Invalid",
     f'ConfigMap "<<{"x" * 58}.....>>" is invalid: metadata.generateName: Invalid value: "{"x" * 250}<<...>>": must be no more than 253 characters'),
    # ---- preconditions ----
    ("PUT", CM + "/a", named(resourceVersion="1"), {}, 409, "Conflict",
     'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again'),
    ("PATCH", CM + "/a", {"metadata": {"resourceVersion": "1"}}, {"content_type": MERGE}, 409, "Conflict",
     'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again'),
    ("PUT", CM + "/a", named(uid=UID), {}, 409, "Conflict",
     'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, '
     f"AdditionalErrorMsg: Precondition failed: UID in precondition: {UID}, UID in object meta: <uid>"),
    ("PATCH", CM + "/a", {"metadata": {"uid": UID}}, {"content_type": MERGE}, 422, "Invalid",
     f'ConfigMap "a" is invalid: metadata.uid: Invalid value: "{UID}": field is immutable'),
    ("PUT", CM + "/x", named("x", uid=UID), {}, 409, "Conflict",
     'Operation cannot be fulfilled on configmaps "x": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/x, ResourceVersion: 0, '
     f"AdditionalErrorMsg: Precondition failed: UID in precondition: {UID}, UID in object meta: "),
    ("PATCH", CM + "/x", {"metadata": {"uid": UID}}, {"content_type": MERGE}, 404, "NotFound", 'configmaps "x" not found'),
    ("PATCH", CM + "/x?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **named("x", uid=UID)}, {"content_type": APPLY}, 409, "Conflict",
     f'Operation cannot be fulfilled on configmaps "x": uid mismatch: the provided object specified uid {UID}, and no existing object was found'),
    ("DELETE", CM + "/a", {"preconditions": {"uid": UID}}, {}, 409, "Conflict",
     f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition ({UID}) does not match the UID in record (<uid>). '
     "The object might have been deleted and then recreated"),
    ("DELETE", CM + "/a", {"preconditions": {"resourceVersion": "1"}}, {}, 409, "Conflict",
     'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (<rv>). '
     "The object might have been modified"),
    ("DELETE", LEASES + "/l", {"preconditions": {"resourceVersion": "1"}}, {}, 409, "Conflict",
     'Operation cannot be fulfilled on Lease.coordination.k8s.io "l": the ResourceVersion in the precondition (1) does not match the ResourceVersion in '
     "record (<rv>). The object might have been modified"),
    ("PUT", LEASES + "/l", named("l"), {}, 422, "Invalid",
     'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'),
    ("POST", CM, named("n", resourceVersion="7"), {}, 400, "BadRequest", "resourceVersion should not be set on objects to be created"),
    # ---- metadata ----
    ("PUT", CM + "/a", named(deletionTimestamp="2026-01-02T03:04:05Z"), {}, 422, "Invalid",
     'ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable'),
    ("PUT", CM + "/held", named("held", finalizers=["x.example/y", "new.example/b", "new.example/a"]), {}, 422, "Invalid",
     'ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers '
     '[]string{"new.example/a", "new.example/b"}'),
    ("POST", CM, named("n", finalizers=["short"]), {}, 422, "Invalid",
     'ConfigMap "n" is invalid: metadata.finalizers[0]: Invalid value: "short": name is neither a standard finalizer name nor is it fully qualified'),
    ("POST", CM, named("n", ownerReferences=[{"kind": "K", "name": "x", "uid": "u"}]), {}, 422, "Invalid",
     'ConfigMap "n" is invalid: metadata.ownerReferences[0].apiVersion: Required value: must not be empty'),
    ("POST", CM, named("n", ownerReferences=[{"apiVersion": "v1", "kind": "K", "name": n, "uid": n, "controller": True} for n in "xy"]), {}, 422, "Invalid",
     'ConfigMap "n" is invalid: metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"K","name":"x","uid":"x","controller":true},'
     '{"apiVersion":"v1","kind":"K","name":"y","uid":"y","controller":true}]: Only one reference can have Controller set to true. '
     'Found "true" in references for x and y'),
    ("POST", CM, named("n", labels={"a": "-"}), {}, 422, "Invalid",
     'ConfigMap "n" is invalid: metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, \'-\', '
     "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
     "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
    ("POST", CM, named("n", labels={"a": "b" * 64}), {}, 422, "Invalid",
     f'ConfigMap "n" is invalid: metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes'),
    # ---- bodies ----
    ("POST", CM, "", {"content_type": "application/json"}, 400, "BadRequest",
     "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
    ("POST", CM, "[]", {"content_type": "application/json"}, 400, "BadRequest",
     "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go "
     'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)'),
    ("POST", CM, '{"x"}', {"content_type": "application/json"}, 400, "BadRequest",
     "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: <<invalid character '}' after "
     'object key>> ({"x"})'),
    ("POST", LEASES, {"apiVersion": "coordination.k8s.io/v1beta1", **named("n")}, {}, 400, "BadRequest",
     "the API version in the data (coordination.k8s.io/v1beta1) does not match the expected API version (coordination.k8s.io/v1)"),
    ("POST", LEASES, {"metadata": {"name": "n"}, "spec": {"leaseDurationSeconds": 0}}, {}, 422, "Invalid",
     'Lease.coordination.k8s.io "n" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'),
    ("POST", SECRETS, {**named("n"), "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}}, {}, 422, "Invalid",
     'Secret "n" is invalid: data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
     "<<invalid character 'x' looking for beginning of value>>"),
    ("POST", SECRETS, {**named("n"), "type": "kubernetes.io/dockercfg", "data": {".dockercfg": "W10="}}, {}, 422, "Invalid",
     'Secret "n" is invalid: data[.dockercfg]: Invalid value: "<secret contents redacted>": <<json: cannot unmarshal array>>'),
    # ---- media types ----
    ("POST", CM, "x", {"content_type": "text/plain"}, 415, "UnsupportedMediaType",
     f"the body of the request was in an unknown format - accepted media types include: {TYPES}"),
    ("POST", WS, "x", {"content_type": "text/plain"}, 415, "UnsupportedMediaType",
     "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"),
    ("PATCH", CM + "/a", {}, {"content_type": "application/json"}, 415, "UnsupportedMediaType",
     "the body of the request was in an unknown format - accepted media types include: "
     "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"),
    ("PATCH", WS + "/x", {}, {"content_type": STRATEGIC}, 415, "UnsupportedMediaType",
     "the body of the request was in an unknown format - accepted media types include: "
     "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"),
    ("GET", CM, None, {"accept": "text/html"}, 406, "NotAcceptable", "only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf"),
    # ---- patches; Holdfast adds the reason to the message of the 422 ----
    ("PATCH", CM + "/a", [{"op": "test", "path": "/data/k", "value": "w"}], {"content_type": JSON_PATCH}, 422, "Invalid",
     "the server rejected our request due to an error in our request: testing value /data/k failed: test failed"),
    ("PATCH", CM + "/a", [{"op": "remove", "path": "/data/x"}], {"content_type": JSON_PATCH}, 422, "Invalid",
     "the server rejected our request due to an error in our request: error in remove for path: '/data/x': Unable to remove nonexistent key: "
     "x: missing value"),
    ("PATCH", CM + "/a", {}, {"content_type": JSON_PATCH}, 400, "BadRequest",
     "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
    ("PATCH", CM + "/a", [], {"content_type": MERGE}, 400, "BadRequest",
     "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("PATCH", CM + "/a", [], {"content_type": STRATEGIC}, 400, "BadRequest",
     "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    # ---- queries ----
    ("GET", CM + "?fieldSelector=spec.x%3Da", None, {}, 400, "BadRequest",
     '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ("GET", NS + "?fieldSelector=spec.x%3Da", None, {}, 400, "BadRequest", "field label not supported: spec.x"),
    ("GET", "/api/v1/events?fieldSelector=spec.x%3Da", None, {}, 400, "BadRequest", "field label not supported: spec.x"),
    ("GET", LEASES + "?fieldSelector=spec.x%3Da", None, {}, 400, "BadRequest",
     '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ("GET", WS + "?fieldSelector=spec.x%3Da", None, {}, 400, "BadRequest", "field label not supported: spec.x"),
    ("GET", CM + "?fieldSelector=metadata.name", None, {}, 400, "BadRequest", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
    ("GET", CM + "?labelSelector=a+in+(", None, {}, 400, "BadRequest", "unable to parse requirement: <<found '', expected: ',', ')' or identifier>>"),
    ("GET", CM + "?limit=x", None, {}, 400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),
    ("GET", CM + "?continue=x", None, {}, 400, "BadRequest", "invalid continue token: continue key is not valid<<: illegal base64 data at input byte 0>>"),
    ("GET", CM + "?continue=x&resourceVersion=5", None, {}, 400, "BadRequest", "specifying resource version is not allowed when using continue"),
    ("GET", CM + "?resourceVersion=99999999", None, {}, 504, "Timeout", "Timeout: Too large resource version: 99999999, current: <<5>>"),
    ("GET", CM + "/a?resourceVersion=99999999", None, {}, 504, "Timeout", "Timeout: Too large resource version: 99999999, current: <<5>>"),
    # ---- paths and methods ----
    ("GET", "/apis/none.example/v1/x", None, {}, 404, "NotFound", "the server could not find the requested resource"),
    ("POST", CM + "/a", {}, {}, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("GET", "/api/v1/configmaps/x", None, {}, 404, "NotFound", "the server could not find the requested resource"),
    ("PUT", "/api/v1/configmaps/x", {}, {}, 404, "NotFound", "the server could not find the requested resource"),
    ("POST", "/api/v1/configmaps", {}, {}, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", {}, {}, 404, "NotFound", "the server could not find the requested resource"),
    ("DELETE", "/api/v1/configmaps", None, {}, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ("DELETE", NS, None, {}, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
]


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: re.sub(r"[^A-Za-z0-9]+", "-", f"{row[0]} {row[1].split('/v1/')[-1]} {row[6]}")[:90])
def test_refusal(api, row):
    method, path, body, headers, code, reason, message = row
    reply = api.ask(method, path, body, **headers)
    status = reply.json
    assert (reply.code, status["code"], status["reason"], status["status"]) == (code, code, reason, "Failure"), reply.text
    if "<uid>" in message or "<rv>" in message:
        meta = api.ask("GET", path.partition("?")[0]).json["metadata"]
        message = message.replace("<uid>", meta["uid"]).replace("<rv>", meta["resourceVersion"])
    pattern = ".*".join(re.escape(part) for part in re.split(r"<<.*?>>", message))
    assert re.fullmatch(pattern, status["message"], re.DOTALL), f"\nsent:     {status['message']}\nexpected: {message}"
