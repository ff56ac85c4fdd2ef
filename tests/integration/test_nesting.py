# SPDX-License-Identifier: Apache-2.0
"""Values that are nested as deep as a body may be (HF__JSON_DEPTH_MAX in base/json.h) go through every path of the server: no thread's stack is too small
for them. In a sanitizer build an overflow is reported; in the others the server would die."""
import base64
import json
import pathlib
import sys
import tempfile

import pytest

from holdfastd import wait_until
from memory_server import MemoryServer
from webhook_server import WebhookServer

MAX = 1000
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEEPS = "/apis/example.com/v1/namespaces/default/deeps"
PAIRS = "/apis/example.com/v2/namespaces/default/pairs"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
MERGE, STRATEGIC, PATCH = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"
APPLY, YAML, PROTOBUF = "application/apply-patch+yaml", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE, METADATA = "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
INITIAL = "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
VALUE = "SOME TEXT"

# The webhook and the test parse such values with Python, whose limit is about 1,000.
sys.setrecursionlimit(20000)


def nested(n, inner='"bottom"'):
    """n containers, arrays and objects by turns, around a text."""
    begin = "".join('{"a":' if i % 2 == 0 else "[" for i in range(n))
    return begin + inner + "".join("}" if i % 2 == 0 else "]" for i in reversed(range(n)))


def text_of(body, value):
    """The JSON of a body in which VALUE stands for a value that is too deep for some parsers."""
    return json.dumps(body).replace(json.dumps(VALUE), value)


def deep(name, value, version=None):
    return text_of({"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": name, "resourceVersion": version}, "spec": {"value": VALUE}}, value)


def version_of(reply):
    return reply.json["metadata"]["resourceVersion"]


def definition(plural, kind, versions, **more):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions, **more}}


def version(name, spec, storage=True, **more):
    return {"name": name, "served": True, "storage": storage, **more,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": ANY}}}}


def establish(server, body, path):
    reply = server.ask("POST", DEFINITIONS, body)
    assert reply.code == 201, reply.text
    wait_until("the kind", lambda: server.ask("GET", path).code == 200)


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as directory:
        policy = pathlib.Path(directory) / "policy"
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}))
        with MemoryServer("--runtime-config=api/workloads=true", f"--audit-policy-file={policy}", f"--audit-log-path={directory}/audit") as it:
            spec = {**ANY, "properties": {"preset": {"type": "string", "default": "yes"}, "replicas": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": "self.preset == 'yes'"}]}
            establish(it, definition("deeps", "Deep", [version("v1", spec, subresources={"status": {}})]), DEEPS)
            yield it
            assert it.ask("GET", "/readyz").code == 200


@pytest.fixture(scope="module")
def hooks():
    with tempfile.TemporaryDirectory() as directory, WebhookServer(pathlib.Path(directory)) as it:
        yield it


def reads_have(server, path, name, value):
    """Whether all forms of reading work with the object, and those that show all of it have the value."""
    item = server.ask("GET", f"{path}/{name}")
    assert item.code == 200 and value in item.text
    everything = server.ask("GET", path)
    assert everything.code == 200 and value in everything.text
    events = server.ask("GET", path + INITIAL).text
    assert value in events and '"BOOKMARK"' in events
    for form in (TABLE, METADATA):
        assert server.ask("GET", f"{path}/{name}", accept=form).code == 200
        assert '"BOOKMARK"' in server.ask("GET", path + INITIAL, accept=form).text
    assert server.ask("GET", f"{path}?fieldSelector=metadata.name%3D{name}").code == 200


@pytest.mark.parametrize("content_type", ["application/json", YAML])
def test_the_deepest_object_is_created_read_changed_and_deleted(server, content_type):
    value, other = nested(MAX - 2), nested(MAX - 2, '"other"')
    created = server.ask("POST", DEEPS, deep("a", value), content_type=content_type)
    assert created.code == 201 and value in created.text and '"preset":"yes"' in created.text and '"managedFields"' in created.text
    reads_have(server, DEEPS, "a", value)
    changed = server.ask("PUT", f"{DEEPS}/a?fieldManager=other", deep("a", other, version=version_of(created)), content_type=content_type)
    assert changed.code == 200 and other in changed.text
    reads_have(server, DEEPS, "a", other)
    status = text_of({"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": "a", "resourceVersion": version_of(changed)},
                      "status": {"value": VALUE}}, value)
    shown = server.ask("PUT", f"{DEEPS}/a/status", status, content_type=content_type)
    assert shown.code == 200 and value in shown.text and other in shown.text
    assert server.ask("DELETE", f"{DEEPS}/a").code == 200


@pytest.mark.parametrize("content_type", ["application/json", YAML])
@pytest.mark.parametrize("n", [MAX - 1, MAX, 5 * MAX])
def test_a_deeper_object_is_refused(server, content_type, n):
    refused = server.ask("POST", DEEPS, deep("b", nested(n)), content_type=content_type)
    assert refused.code == 400 and refused.json["reason"] == "BadRequest"
    assert server.ask("GET", f"{DEEPS}/b").code == 404


def test_what_strict_decoding_refuses_may_be_deep(server):
    twice = nested(MAX - 2) + ',"more":1,"more":2'
    refused = server.ask("POST", f"{DEEPS}?fieldValidation=Strict", deep("c", twice))
    assert refused.code == 400 and 'duplicate field "spec.more"' in refused.json["message"]
    lowest = nested(MAX - 3, '{"x":1,"x":2}')
    refused = server.ask("POST", f"{DEEPS}?fieldValidation=Strict", deep("c", lowest))
    assert refused.code == 400 and 'duplicate field "spec.value.a[0].a[0]' in refused.json["message"]
    warned = server.ask("POST", DEEPS, deep("c", lowest))
    assert warned.code == 201 and len(warned.warnings) == 1
    assert server.ask("DELETE", f"{DEEPS}/c").code == 200


def test_patches_may_be_deep(server):
    value, other = nested(MAX - 2), nested(MAX - 2, '"other"')
    assert server.ask("POST", DEEPS, deep("d", '"flat"')).code == 201
    patched = server.ask("PATCH", f"{DEEPS}/d", text_of({"spec": {"value": VALUE}}, value), content_type=MERGE)
    assert patched.code == 200 and value in patched.text
    patched = server.ask("PATCH", f"{DEEPS}/d", text_of({"spec": {"value": VALUE}}, other), content_type=MERGE)
    assert patched.code == 200 and other in patched.text
    path = "/spec/value" + "".join("/a" if i % 2 == 0 else "/0" for i in range(MAX - 2))
    operations = [{"op": "test", "path": path, "value": "other"}, {"op": "replace", "path": path, "value": "third"}, {"op": "copy", "from": path, "path": "/spec/x"}]
    patched = server.ask("PATCH", f"{DEEPS}/d", operations, content_type=PATCH)
    assert patched.code == 200, patched.text[:500]
    assert nested(MAX - 2, '"third"') in patched.text
    for operation in ("copy", "move"):  # it would be one level deeper than the deepest
        refused = server.ask("PATCH", f"{DEEPS}/d", [{"op": "add", "path": "/spec/y", "value": {}}, {"op": operation, "from": "/spec/value", "path": "/spec/y/z"}],
                             content_type=PATCH)
        assert refused.code in (400, 413, 422), refused.text
    for value in ({}, {"too": "deep"}, []):
        refused = server.ask("PATCH", f"{DEEPS}/d", [{"op": "replace", "path": path, "value": value}], content_type=PATCH)
        assert refused.code in (400, 413, 422), refused.text
    added = server.ask("PATCH", f"{DEEPS}/d", text_of([{"op": "replace", "path": "/spec/value", "value": VALUE}], nested(MAX - 2)), content_type=PATCH)
    assert added.code == 200
    assert server.ask("DELETE", f"{DEEPS}/d").code == 200


def test_configurations_may_be_deep(server):
    value, other = nested(MAX - 2), nested(MAX - 2, '"other"')
    applied = server.ask("PATCH", f"{DEEPS}/e?fieldManager=one", deep("e", value), content_type=APPLY)
    assert applied.code == 201 and value in applied.text
    again = server.ask("PATCH", f"{DEEPS}/e?fieldManager=one", deep("e", value), content_type=APPLY)
    assert again.code == 200 and again.json["metadata"]["resourceVersion"] == applied.json["metadata"]["resourceVersion"]
    refused = server.ask("PATCH", f"{DEEPS}/e?fieldManager=two", deep("e", other), content_type=APPLY)
    assert refused.code == 409
    forced = server.ask("PATCH", f"{DEEPS}/e?fieldManager=two&force=true", deep("e", other), content_type=APPLY)
    assert forced.code == 200 and other in forced.text
    less = server.ask("PATCH", f"{DEEPS}/e?fieldManager=two", deep("e", '{"b":1}'), content_type=APPLY)
    assert less.code == 200 and other not in less.text
    assert server.ask("DELETE", f"{DEEPS}/e").code == 200


def test_a_built_in_kind_may_be_deep(server):
    def revision(value):
        return text_of({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "deep"}, "revision": 1, "data": {"value": VALUE}}, value)
    value, other = nested(MAX - 2), nested(MAX - 2, '"other"')
    assert server.ask("POST", REVISIONS, revision(value)).code == 201
    reads_have(server, REVISIONS, "deep", value)
    in_protobuf = server.ask("GET", f"{REVISIONS}/deep", accept=PROTOBUF)
    assert in_protobuf.code == 200 and value.encode() in in_protobuf.bytes
    assert server.ask("PUT", f"{REVISIONS}/deep", in_protobuf.bytes, content_type=PROTOBUF).code == 200
    for content_type in (STRATEGIC, MERGE):
        patched = server.ask("PATCH", f"{REVISIONS}/deep?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, content_type=content_type)
        assert patched.code == 200 and value in patched.text
        patched = server.ask("PATCH", f"{REVISIONS}/deep?dryRun=All", text_of({"data": {"value": VALUE}}, value), content_type=content_type)
        assert patched.code == 200 and value in patched.text
        refused = server.ask("PATCH", f"{REVISIONS}/deep?dryRun=All", text_of({"data": {"value": VALUE}}, other), content_type=content_type)
        assert refused.code == 422 and "field is immutable" in refused.text
    assert server.ask("PATCH", f"{REVISIONS}/deep?fieldManager=x&force=true", revision(value), content_type=APPLY).code == 200
    assert server.ask("DELETE", f"{REVISIONS}/deep").code == 200


def test_policies_and_webhooks_get_the_deepest_object(server, hooks):
    rule = {"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["deeps"]}
    hooks.answers["/mutate"] = lambda _: {"patchType": "JSONPatch", "patch": base64.b64encode(
        text_of([{"op": "add", "path": "/spec/added", "value": VALUE}], nested(MAX - 2)).encode()).decode()}
    hooks.answers["/validate"] = lambda _: {}
    client = {"name": "x.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule]}
    policy = {"matchConstraints": {"resourceRules": [rule]},
              "variables": [{"name": "value", "expression": "object.spec.value"}],
              "validations": [{"expression": "has(object.spec.value) && variables.value == object.spec.value && (oldObject == null || oldObject.spec == oldObject.spec)"}]}
    change = {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/spec/policy", value: "p"}]'}},
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"policy": "yes"}}}'}}]}
    made = [("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", {"webhooks": [{**client, "clientConfig": hooks.client("/mutate")}]}),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", {"webhooks": [{**client, "clientConfig": hooks.client("/validate")}]}),
            ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", {"spec": policy}),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", {"spec": {"policyName": "deep", "validationActions": ["Deny", "Audit"]}}),
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", {"spec": change}),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", {"spec": {"policyName": "deep"}})]
    for plural, kind, more in made:
        reply = server.ask("POST", f"{ADMISSION}/{plural}", {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "deep"}, **more})
        assert reply.code == 201, reply.text
    value = nested(MAX - 2)

    def in_force():
        text = server.ask("POST", DEEPS + "?dryRun=All", deep("probe", '"flat"')).text
        return '"added"' in text and '"policy":"p"' in text and '"policy":"yes"' in text and any(path == "/validate" for path, _ in hooks.reviews)
    wait_until("all of them to be in force", in_force)
    created = server.ask("POST", DEEPS, deep("f", value))
    assert created.code == 201, created.text[:600]
    assert created.text.count(value) == 2 and '"policy":"p"' in created.text
    assert server.ask("PATCH", f"{DEEPS}/f", text_of({"spec": {"value": VALUE}}, nested(MAX - 2, '"other"')), content_type=MERGE).code == 200
    hooks.answers["/mutate"] = lambda _: {"patchType": "JSONPatch", "patch": base64.b64encode(
        text_of([{"op": "add", "path": "/spec/added/x", "value": VALUE}], nested(MAX - 2)).encode()).decode()}
    refused = server.ask("PATCH", f"{DEEPS}/f", {"spec": {"replicas": 3}}, content_type=MERGE)
    assert refused.code == 500, refused.text[:600]
    for plural, _, _ in made:
        assert server.ask("DELETE", f"{ADMISSION}/{plural}/deep").code == 200
    wait_until("none to be in force", lambda: '"added"' not in server.ask("POST", DEEPS + "?dryRun=All", deep("probe", '"flat"')).text)
    assert server.ask("DELETE", f"{DEEPS}/f").code == 200


def test_a_webhook_converts_the_deepest_object(server, hooks):
    """A ConversionReview has the objects in three containers of its own, which do not count."""
    deeper = []  # what the webhook adds to the objects

    def convert(request):
        objects = [{**each, "apiVersion": request["desiredAPIVersion"], **({"spec": {"value": VALUE}} if deeper else {})} for each in request["objects"]]
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                  "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}}
        return json.dumps(review, separators=(",", ":")).replace(json.dumps(VALUE), (deeper or [""])[0]).encode()
    hooks.answers["/convert"] = convert
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": hooks.client("/convert")}}
    establish(server, definition("pairs", "Pair", [version("v1", ANY), version("v2", ANY, storage=False)], conversion=conversion), PAIRS)
    pair = {"apiVersion": "example.com/v2", "kind": "Pair", "metadata": {"name": "a"}, "spec": {"value": VALUE}}
    value = nested(MAX - 2)
    created = server.ask("POST", PAIRS, text_of(pair, value))
    assert created.code == 201, created.text[:600]
    reads_have(server, PAIRS, "a", value)
    deeper.append(nested(MAX - 1))
    refused = server.ask("GET", f"{PAIRS}/a")
    assert refused.code == 500 and "the response is not JSON" in refused.json["message"], refused.text[:600]
    deeper.clear()
    assert server.ask("DELETE", f"{PAIRS}/a").code == 200 and server.ask("DELETE", f"{DEFINITIONS}/pairs.example.com").code == 200


def deep_schema(n, inner):
    """A schema in n others, each the property `a` of the next."""
    for _ in range(n):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


SCHEMA_DEPTH = (MAX - 8) // 2
SCHEMAS = {
    "properties": deep_schema(SCHEMA_DEPTH, {"type": "string", "default": "deep", "maxLength": 10}),
    "rules": deep_schema(SCHEMA_DEPTH - 2, {"type": "string", "default": "deep", "x-kubernetes-validations": [{"rule": "self.size() < 10"}]}),
}
COMBINED = {"allOf": ("allOf", list), "anyOf": ("anyOf", list), "oneOf": ("oneOf", list), "not": ("not", lambda each: each[0])}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_deep_schema_is_compiled_and_its_objects_checked(server, name):
    plural, kind = name, name.capitalize()[:-1]
    establish(server, definition(plural, kind, [version("v1", SCHEMAS[name])]), f"/apis/example.com/v1/{plural}")
    path, levels = f"/apis/example.com/v1/namespaces/default/{plural}", SCHEMA_DEPTH - (name == "rules") * 2

    def item(inner, n=levels):
        value = inner
        for _ in range(n):
            value = {"a": value}
        return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "x"}, "spec": value}
    for content_type in ("application/json", YAML):
        refused = server.ask("POST", path, item("too long a text"), content_type=content_type)
        assert refused.code == 422, refused.text[:600]
    refused = server.ask("POST", path, item(1))
    assert refused.code == 422 and "must be of type string" in refused.text
    defaulted = server.ask("POST", path, item({}, levels - 1))
    assert defaulted.code == 201 and '"a":"deep"' in defaulted.text
    assert server.ask("PATCH", f"{path}/x?fieldManager=x", item("short"), content_type=APPLY).code in (200, 409)
    assert server.ask("PATCH", f"{path}/x?fieldManager=x&force=true", item("short"), content_type=APPLY).code == 200
    pruned = server.ask("PATCH", f"{path}/x?fieldValidation=Warn", item({"a": "brief", "b": 1}, levels - 1), content_type=MERGE)
    assert pruned.code == 200 and pruned.warnings and '"b"' not in pruned.text
    document = server.ask("GET", DEFINITIONS + f"/{plural}.example.com")
    assert document.code == 200 and document.text.count('"properties"') > levels
    in_protobuf = server.ask("GET", DEFINITIONS + f"/{plural}.example.com", accept=PROTOBUF)
    assert in_protobuf.code == 200
    again = server.ask("PUT", DEFINITIONS + f"/{plural}.example.com", in_protobuf.bytes, content_type=PROTOBUF)
    assert again.code == 200, again.text[:600]
    for openapi in ("/openapi/v3/apis/example.com/v1", "/openapi/v2"):
        wait_until("the schema", lambda: f'"{kind}"' in server.ask("GET", openapi).text)
    assert server.ask("GET", "/openapi/v3/apis/example.com/v1", accept="application/com.github.proto-openapi.spec.v3.v1.0+protobuf").code == 200
    assert server.ask("GET", "/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf").code == 200
    assert server.ask("DELETE", DEFINITIONS + f"/{plural}.example.com").code == 200
    wait_until("its end", lambda: server.ask("GET", DEFINITIONS + f"/{plural}.example.com").code == 404)


@pytest.mark.parametrize("name", COMBINED)
def test_deep_combinations_of_schemas_are_compiled_and_checked(server, name):
    key, wrap = COMBINED[name]
    inner = {"maxLength": 3}
    for _ in range((MAX - 20) // (1 if name == "not" else 2)):
        inner = {key: wrap([inner])}
    plural, kind = f"{name.lower()}s", f"{name.capitalize()}s"
    establish(server, definition(plural, kind, [version("v1", {"type": "object", "properties": {"text": {"type": "string", **inner}}})]), f"/apis/example.com/v1/{plural}")
    path = f"/apis/example.com/v1/namespaces/default/{plural}"
    codes = [server.ask("POST", path, {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": text}, "spec": {"text": text}}).code
             for text in ("abc", "abcd")]
    assert codes == ([201, 422] if name != "not" or (MAX - 20) % 2 == 0 else [422, 201])
    assert server.ask("GET", "/openapi/v3/apis/example.com/v1").code == 200
    assert server.ask("GET", DEFINITIONS, accept=PROTOBUF).code == 200
    assert server.ask("DELETE", DEFINITIONS + f"/{plural}.example.com").code == 200


def test_other_bodies_may_be_deep(server):
    body = text_of({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"x": VALUE}}, nested(MAX - 2))
    assert server.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).code in (201, 400, 422)
    assert server.ask("DELETE", f"{DEEPS}/none", text_of({"x": VALUE}, nested(MAX - 1))).code == 404
    assert server.ask("POST", "/api/v1/namespaces/default/configmaps", text_of({"metadata": {"name": "x"}, "data": {"a": VALUE}}, nested(MAX - 2))).code == 400
