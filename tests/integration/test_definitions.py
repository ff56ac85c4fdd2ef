# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions as objects: how clients create, read, change and delete them."""
import json
import pathlib
import shutil

import old_kubectl
import pytest

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "crontabs.stable.example.com"
KEY = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{NAME}"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "cronSpec": {"type": "string", "pattern": "^.+$", "default": "* * * * *"},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10.5},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "jobs": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string", "enum": ["a", "b"]},
                    "deep": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}},
            },
        },
    },
}


def definition(**spec):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
            "spec": {"group": "stable.example.com", "scope": "Namespaced",
                     "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
                     **spec}}


@pytest.fixture
def server(cluster):
    return cluster.instance("a").wait_ready()


def make(server, **spec):
    code, text = server.request("POST", PATH, definition(**spec))
    assert code == 201, text
    return json.loads(text)


def read(server):
    code, text = server.get(f"{PATH}/{NAME}")
    assert code == 200, text
    return json.loads(text)


def test_a_definition_is_kept_as_it_was_sent(cluster, server):
    """The schema is stored whole; names, conversion and the storage version are filled in."""
    make(server)
    for found in (read(server), json.loads(server.get(PATH)[1])["items"][0]):
        assert found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == SCHEMA
        assert found["spec"]["names"] == {"plural": "crontabs", "singular": "crontab", "kind": "CronTab",
                                          "listKind": "CronTabList", "shortNames": ["ct"]}
        assert found["spec"]["conversion"] == {"strategy": "None"}
        assert found["status"]["storedVersions"] == ["v1"]
        assert found["metadata"]["generation"] == 1
    stored = cluster.witness.wait_for("the definition", lambda e: e["key"] == KEY)["object"]
    assert stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == SCHEMA


def test_what_breaks_the_rules_is_refused(server):
    code, text = server.request("POST", PATH, definition(scope="World", names={"plural": "crontabs", "kind": "Cron Tab"}))
    assert code == 422
    status = json.loads(text)
    assert status["reason"] == "Invalid"
    assert [c["field"] for c in status["details"]["causes"]] == ["spec.scope", "spec.names.singular", "spec.names.kind", "spec.names.listKind"]
    assert status["details"]["causes"][0]["message"] == 'Unsupported value: "World": supported values: "Cluster", "Namespaced"'
    assert server.get(f"{PATH}/{NAME}")[0] == 404

    # Below the schema of a list's elements, Kubernetes drops unknown fields without a word.
    sent = definition()
    sent["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object", "properties": {"a": {"type": "string", "unknown": 1}, "b": {"type": "array", "items": {"type": "string", "other": 1}}}}
    code, text = server.request("POST", f"{PATH}?fieldValidation=Strict", sent)
    assert code == 400
    assert 'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.unknown"' in json.loads(text)["message"]
    assert "other" not in json.loads(text)["message"]


def change(server, path, edit):
    """Reads, edits and writes the definition, and repeats this after a conflict. Returns (code, body)."""
    while True:
        found = read(server)
        edit(found)
        code, text = server.request("PUT", path, found)
        if code != 409:
            return code, json.loads(text)


def test_the_status_has_a_path_of_its_own(server):
    make(server)

    def establish(found):
        others = [c for c in found["status"]["conditions"] or [] if c["type"] != "Established"]
        found["status"]["conditions"] = [*others, {"type": "Established", "status": "True"}, {"type": "Mine", "status": "True"}]
        found["spec"]["scope"] = "Cluster"

    def widen(found):
        found["spec"]["scope"] = "Cluster"
        del found["status"]

    def name(found):
        found["spec"]["names"]["shortNames"] = ["ct", "cron"]
        found["status"] = {}

    code, found = change(server, f"{PATH}/{NAME}/status", establish)
    assert code == 200, found
    assert found["spec"]["scope"] == "Namespaced" and "Mine" in [c["type"] for c in found["status"]["conditions"]]

    # From now on the scope is fixed, and a write of the spec does not touch the status.
    code, refused = change(server, f"{PATH}/{NAME}", widen)
    assert code == 422
    assert refused["details"]["causes"] == [{"reason": "FieldValueInvalid", "field": "spec.scope",
                                             "message": 'Invalid value: "Cluster": field is immutable'}]
    code, found = change(server, f"{PATH}/{NAME}", name)
    assert code == 200, found
    assert found["metadata"]["generation"] == 2
    assert "Mine" in [c["type"] for c in found["status"]["conditions"]]
    assert found["status"]["storedVersions"] == ["v1"]


def test_a_definition_goes_when_its_finalizer_goes(cluster, server):
    """The deletion begins with the condition Terminating, which clients wait for."""
    make(server)
    code, text = server.request("DELETE", f"{PATH}/{NAME}")
    assert code == 200, text
    marked = cluster.witness.wait_for("the mark", lambda e: e["key"] == KEY and "deletionTimestamp" in e.get("object", {}).get("metadata", {}))["object"]
    assert marked["metadata"]["finalizers"] == [FINALIZER]
    terminating = [c for c in marked["status"]["conditions"] if c["type"] == "Terminating"]
    assert terminating[0]["status"] == "True" and terminating[0]["reason"] == "InstanceDeletionPending"
    server.request("PATCH", f"{PATH}/{NAME}", {"metadata": {"finalizers": None}}, headers={"Content-Type": "application/merge-patch+json"})
    cluster.witness.wait_for("the end", lambda e: e["key"] == KEY and e["type"] == "DELETE")


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl on PATH")
def test_kubectl_works_with_definitions(cluster, server):
    file = pathlib.Path(cluster.directory) / "crd.json"
    file.write_text(json.dumps(definition()))
    assert "created" in server.kubectl("apply", "-f", file).stdout
    assert "unchanged" in server.kubectl("apply", "-f", file).stdout
    assert NAME in server.kubectl("get", "crd").stdout
    assert server.kubectl("get", "crds", "-o", "name").stdout.split() == [f"customresourcedefinition.apiextensions.k8s.io/{NAME}"]
    server.kubectl("patch", "crd", NAME, "-p", '{"spec":{"names":{"categories":["all"]}}}')
    assert server.kubectl("get", "crd", NAME, "-o", "jsonpath={.metadata.generation} {.spec.names.categories}").stdout == '2 ["all"]'
    assert "serverside-applied" in server.kubectl("apply", "--server-side", "--force-conflicts", "-f", file).stdout
    explained = server.kubectl("explain", "crd.spec.versions.schema.openAPIV3Schema.properties").stdout
    assert "JSONSchemaProps" in explained or not old_kubectl.is_current()
    wide = server.kubectl("get", "--raw", PATH).stdout
    assert json.loads(wide)["items"][0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == SCHEMA
