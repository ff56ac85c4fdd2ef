# SPDX-License-Identifier: Apache-2.0
"""OpenAPI of custom kinds: which parts of a schema v2 has, as in Kubernetes, and which it leaves out. Both versions, as JSON and as protobuf."""
import openapi_message
import pytest
from memory_server import MemoryServer, wait_until
from openapi_message import media_type

KEEP = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
SPEC = {"type": "object", "required": ["size", "maybe"], "properties": {
    "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9},
    "mode": {"type": "string", "enum": ["a", "b"], "pattern": "^[ab]$", "default": "a", "description": "How."},
    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "maybe": {"type": "object", "nullable": True, "properties": {"a": {"type": "string"}}},
    "whole": {"type": "object", **EMBEDDED, "properties": {"extra": {"type": "string"}, "kind": {"type": "string", "enum": ["X"]}}},
    "wholes": {"type": "array", "items": {"type": "object", **EMBEDDED, **KEEP}},
    "any": {"type": "object", **KEEP, "properties": {"a": {"type": "string"}}},
    "items": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
    "byName": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 5}},
    "either": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}}}


def definition(plural, kind, schema):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + ".v2.example"}, "spec": {
        "group": "v2.example", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


@pytest.fixture(scope="module", name="server")
def _server():
    with MemoryServer() as server:
        for body in (definition("things", "Thing", {"type": "object", "description": "A thing.", "properties": {"spec": SPEC}}),
                     definition("blobs", "Blob", {"type": "object", "description": "A blob.", **KEEP, "properties": {"spec": SPEC}})):
            answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
            assert answer.code == 201, answer.text
        wanted = {"example.v2.v1.Thing", "example.v2.v1.Blob"}
        wait_until("both definitions", lambda: wanted <= server.ask("GET", "/openapi/v2").json["definitions"].keys())
        yield server


@pytest.fixture(scope="module", name="definitions")
def _definitions(server):
    return server.ask("GET", "/openapi/v2").json["definitions"]


def test_validations_are_published(definitions):
    thing = definitions["example.v2.v1.Thing"]
    assert (thing["type"], thing["description"]) == ("object", "A thing.")
    assert thing["properties"]["metadata"]["$ref"] == "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    fields = thing["properties"]["spec"]["properties"]
    for name in "size", "mode", "items", "byName":
        assert fields[name] == SPEC["properties"][name]


def test_what_v2_cannot_say_is_left_out(definitions):
    spec = definitions["example.v2.v1.Thing"]["properties"]["spec"]
    assert spec["required"] == ["size"]
    assert spec["properties"]["port"] == {"x-kubernetes-int-or-string": True}
    assert spec["properties"]["maybe"] == {}
    assert spec["properties"]["any"] == KEEP
    assert spec["properties"]["either"] == {k: v for k, v in SPEC["properties"]["either"].items() if k != "oneOf"}


def test_embedded_resources_have_a_kind_and_metadata(server, definitions):
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    paths = server.ask("GET", "/openapi/v3").json["paths"]
    v3 = server.ask("GET", paths["apis/v2.example/v1"]["serverRelativeURL"]).json["components"]["schemas"]["example.v2.v1.Thing"]
    for schema, reference in ((definitions["example.v2.v1.Thing"], {"$ref": f"#/definitions/{meta}"}),
                              (v3, {"allOf": [{"$ref": f"#/components/schemas/{meta}"}]})):
        fields = schema["properties"]["spec"]["properties"]
        whole = fields["whole"]["properties"]
        assert whole["apiVersion"]["description"].startswith("apiVersion defines the versioned schema") and whole["apiVersion"]["type"] == "string"
        assert whole["kind"]["description"].startswith("kind is a string value representing the type of this object.") and "enum" not in whole["kind"]
        assert whole["metadata"].items() >= reference.items() and whole["metadata"]["description"].startswith("Standard object's metadata. More info: ")
        assert whole["extra"] == {"type": "string"} and fields["whole"]["required"] == ["kind", "apiVersion"]
        assert schema["properties"]["kind"]["description"].startswith("Kind is a string value representing the REST resource")
    assert "properties" not in definitions["example.v2.v1.Thing"]["properties"]["spec"]["properties"]["wholes"]["items"]
    assert "metadata" in v3["properties"]["spec"]["properties"]["wholes"]["items"]["properties"]


def test_a_kind_is_explained_in_kubernetes_words(server):
    for what, words in (("things", ["A thing.", "APIVersion defines"]), ("things.metadata", ["Standard object's metadata", "CreationTimestamp is a timestamp"]),
                        ("things.spec", ["How."]), ("cm.metadata.labels", ["Map of string keys and values"]), ("role.metadata", ["Standard object's metadata."])):
        said = server.kubectl("explain", what).stdout
        assert all(word in said for word in words), said


def test_a_kind_with_unknown_fields_names_none(definitions):
    assert definitions["example.v2.v1.Blob"] == {
        "type": "object", "x-kubernetes-group-version-kind": [{"group": "v2.example", "kind": "Blob", "version": "v1"}]}


ODD = {"type": "object", "description": "Odd \u2028 \"things\".", "externalDocs": {"url": "https://x.example", "description": "d"},
       "required": ["a"], "properties": {
           "a": {"type": "string", "maxLength": 300, "minLength": 0, "pattern": "^\\d$", "enum": ["", "a\u0085b", "\u007f"]},
           "b": {"type": "number", "minimum": -0.5, "maximum": 1e300, "exclusiveMinimum": True, "multipleOf": 0.25, "example": [1, {"a": None}]},
           "c": {"type": "array", "items": {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}, "uniqueItems": False,
                 "maxItems": 9223372036854775807},
           "d": {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}, "minProperties": 1, "title": "t"},
           "x-kubernetes-e": {"type": "boolean", "default": True, "not": {"enum": [False]}, "anyOf": [{}, {"enum": [True]}]},
           "f": {"type": "string", "default": "x"}, "g": {"type": "integer", "default": 2}, "h": {"type": "object", "default": {}},
           "$ref": {"x-kubernetes-int-or-string": True},
           "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True,
                     "x-kubernetes-validations": [{"rule": "self.kind != ''", "message": "named: \u2029"}]}}}


def test_both_forms_are_one_document(server):
    group = "odd.example"
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "odds." + group}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": "odds", "kind": "Odd", "listKind": "Odds"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
             "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ODD, "status": {"type": "object"}}}}}]}}
    answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    assert answer.code == 201, answer.text
    wait_until("the document", lambda: f"apis/{group}/v1" in server.ask("GET", "/openapi/v3").json["paths"])
    url = server.ask("GET", "/openapi/v3").json["paths"][f"apis/{group}/v1"]["serverRelativeURL"]
    message = openapi_message.decode(openapi_message.V3, server.ask("GET", "/openapi/v3/apis/odd.example/v1", accept=media_type(3)).bytes)
    form = server.ask("GET", url).json
    assert message == form
    spec = form["components"]["schemas"]["example.odd.v1.Odd"]["properties"]["spec"]
    assert spec["properties"]["b"]["maximum"] == 1e300 and spec["properties"]["a"]["enum"] == ODD["properties"]["a"]["enum"]
    names = form["components"]["schemas"]
    assert names["example.odd.v1.Odds"]["properties"]["items"]["items"] == {"allOf": [{"$ref": "#/components/schemas/example.odd.v1.Odd"}]}
    patch = form["paths"][f"/apis/{group}/v1/namespaces/{{namespace}}/odds/{{name}}"]["patch"]["requestBody"]["content"]
    assert set(patch) == {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
    assert "io.k8s.api.autoscaling.v1.Scale" in names
    v2 = server.ask("GET", "/openapi/v2").json
    assert openapi_message.decode(openapi_message.V2, server.ask("GET", "/openapi/v2", accept=media_type(2)).bytes) == v2
    assert {"example.odd.v1.Odd", "example.odd.v1.Odds"} <= set(v2["definitions"])
