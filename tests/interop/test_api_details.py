# SPDX-License-Identifier: Apache-2.0
"""Details of the API that have no file of their own."""
import json

import pytest
from clients_of_resources import DEFINITION
from holdfastd import wait_until
from memory_server import MemoryServer

MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = ("/apis/authentication.k8s.io/v1/selfsubjectreviews", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        yield server


def test_reviews_are_no_tables(api):
    for path in REVIEWS:
        body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}} if "access" in path else {}
        refused = api.ask("POST", path, body, accept=TABLE)
        assert (refused.code, refused.json["reason"]) == (406, "NotAcceptable")
        assert api.ask("POST", path, body, accept=f"{TABLE},application/json").json["kind"].startswith("SelfSubject")


def test_cbor_is_no_body(api):
    for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/x")):
        refused = api.ask(method, path, b"\xa0", content_type="application/cbor")
        assert (refused.code, refused.json["reason"]) == (415, "UnsupportedMediaType")


def test_each_level_of_validation_has_its_words(api):
    body = '{"metadata":{"name":"x","labels":{"a":"1","a":"2"}},"data":{"k":"v"},"more":1}'
    path = f"{MAPS}?dryRun=All&fieldValidation="
    for level in ("", "Warn"):
        reply = api.ask("POST", path + level, body)
        assert reply.code == 201 and "more" not in reply.json and reply.json["metadata"]["labels"] == {"a": "2"}
        assert "resourceVersion" not in reply.json["metadata"]
        assert sorted(reply.warnings) == ['299 - "duplicate field \\"metadata.labels.a\\""', '299 - "unknown field \\"more\\""']
    ignored = api.ask("POST", path + "Ignore", body)
    assert ignored.code == 201 and not ignored.warnings and "more" not in ignored.json
    refused = api.ask("POST", path + "Strict", body)
    assert refused.code == 400 and refused.json["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.labels.a", unknown field "more"')


STRICT = [
    # Kubernetes decodes built-in kinds in one pass, so both kinds of mistakes have the order of the body. Of what is unknown it reads nothing more.
    ("core/configmaps", '{"more":{"x":1,"x":2},"metadata":{"name":"x","lables":{}},"data":{"a":"1","a":"2"},"data":{"a":"3"}}',
     'unknown field "more", unknown field "metadata.lables", duplicate field "data.a", duplicate field "data"'),
    # Custom resources are decoded without a type first: the mistakes that this finds come before the unknown fields.
    ("custom", '{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"x","lables":{}},"more":{"x":1,"x":2},"spec":{"replicas":1,"replicas":2}}',
     'duplicate field "more.x", duplicate field "spec.replicas", unknown field "metadata.lables"'),
]


@pytest.mark.parametrize("where, body, mistakes", STRICT, ids=[row[0] for row in STRICT])
def test_strict_decoding_names_mistakes_in_the_order_of_kubernetes(api, where, body, mistakes):
    if where == "custom":
        assert api.ask("POST", DEFINITIONS, DEFINITION).code == 201
        wait_until("the kind", lambda: api.ask("GET", GADGETS).code == 200)
    refused = api.ask("POST", (GADGETS if where == "custom" else MAPS) + "?dryRun=All&fieldValidation=Strict", body)
    if where == "custom":
        assert api.ask("DELETE", f"{DEFINITIONS}/gadgets.example.com").code == 200
        wait_until("its end", lambda: api.ask("GET", f"{DEFINITIONS}/gadgets.example.com").code == 404)
    assert refused.code == 400 and refused.json["message"].split("strict decoding error: ")[1] == mistakes


def test_an_object_that_the_store_cannot_hold_is_413(api):
    large = {"metadata": {"name": "large"}, "spec": {"text": "x" * 1_600_000}}
    refused = api.ask("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", large)
    assert (refused.code, refused.json["reason"], refused.json["message"]) == (413, "RequestEntityTooLarge", "etcdserver: request is too large")


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_values_are_nested_1000_deep_at_most(api, content_type):
    def create(depth):
        body = f'{{"metadata":{{"generateName":"deep-"}},"spec":{{"value":{"[" * depth}{"]" * depth}}}}}'
        return api.ask("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces?dryRun=All", body, content_type=content_type)
    assert create(998).code == 201  # the object and its spec are two more
    refused = create(999)
    assert (refused.code, refused.json["reason"]) == (400, "BadRequest")


def groups(api):
    reply = api.ask("GET", "/apis", accept=AGGREGATED)
    return {item["metadata"]["name"]: item for item in reply.json["items"]}, reply.headers["etag"]


def test_a_custom_kind_comes_and_goes_in_all_documents(api):
    before, etag = groups(api)
    assert "example.com" not in before
    assert api.ask("POST", DEFINITIONS, DEFINITION).code == 201
    wait_until("the group", lambda: "example.com" in groups(api)[0])
    found, changed = groups(api)
    version = found["example.com"]["versions"][0]
    assert changed != etag and api.ask("GET", "/apis", accept=AGGREGATED, if_none_match=etag).code == 200
    assert [resource["resource"] for resource in version["resources"]] == ["gadgets"]
    assert {sub["subresource"] for sub in version["resources"][0]["subresources"]} == {"status", "scale"}
    wait_until("its schemas", lambda: "apis/example.com/v1" in api.ask("GET", "/openapi/v3").json["paths"])
    wait_until("its schema", lambda: "com.example.v1.Gadget" in api.ask("GET", "/openapi/v2").json["definitions"])
    for event_form, kind in ((METADATA, "PartialObjectMetadata"), (TABLE, "Table")):
        name = kind.lower()
        assert api.ask("POST", GADGETS, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"replicas": 1}}).code == 201
        reply = api.ask("GET", f"{GADGETS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                        accept=event_form)
        events = [json.loads(line) for line in reply.text.splitlines()]
        assert [event["type"] for event in events[:-1]].count("ADDED") >= 1 and events[-1]["type"] == "BOOKMARK"
        assert {event["object"]["kind"] for event in events} == {kind} and '"spec"' not in reply.text
    assert api.ask("DELETE", f"{DEFINITIONS}/gadgets.example.com").code == 200
    wait_until("its end", lambda: groups(api) == (before, etag))
    wait_until("the end of its schemas", lambda: "apis/example.com/v1" not in api.ask("GET", "/openapi/v3").json["paths"])
    assert api.ask("GET", GADGETS).code == 404
