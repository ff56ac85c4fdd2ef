# SPDX-License-Identifier: Apache-2.0
"""What writes change, and the formats of their bodies, as in kube-apiserver 1.36."""
import itertools

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        yield server


@pytest.fixture(name="namespace")
def _namespace(api):
    """A new Namespace, as it was created."""
    made = api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"n{next(NUMBERS)}", "labels": {"a": "1"}}})
    assert made.code == 201
    return made.json


@pytest.fixture(name="path")
def _path(namespace):
    return "/api/v1/namespaces/" + namespace["metadata"]["name"]


def changed(namespace):
    """Returns a copy of the Namespace with a change in each of its parts."""
    meta = {**namespace["metadata"], "labels": {**namespace["metadata"]["labels"], "a": "2"}, "annotations": {"b": "3"}, "finalizers": ["c.example/d"]}
    return {**namespace, "metadata": meta, "spec": {"finalizers": ["kubernetes", "e.example/f"]},
            "status": {**namespace["status"], "conditions": [{"type": "G", "status": "True"}]}}


# ---- subresources: those of Namespaces write the metadata too, but not the other part of the object ----

def test_status_of_a_namespace_keeps_the_spec_and_writes_the_metadata(api, namespace, path):
    body = changed(namespace)
    after = api.ask("PUT", path + "/status", body).json
    assert after["spec"] == namespace["spec"]
    assert after["status"] == body["status"]
    assert {key: after["metadata"][key] for key in ("labels", "annotations", "finalizers")} == {
        key: body["metadata"][key] for key in ("labels", "annotations", "finalizers")}
    assert {key: after["metadata"][key] for key in ("uid", "creationTimestamp")} == {key: namespace["metadata"][key] for key in ("uid", "creationTimestamp")}
    assert api.ask("GET", path).json == after


def test_finalize_of_a_namespace_keeps_the_status_and_writes_the_metadata(api, namespace, path):
    body = changed(namespace)
    after = api.ask("PUT", path + "/finalize", body).json
    assert after["spec"] == body["spec"]
    assert after["status"] == namespace["status"]
    assert (after["metadata"]["annotations"], after["metadata"]["finalizers"]) == ({"b": "3"}, ["c.example/d"])


@pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch"])
def test_a_patch_of_status_writes_what_it_names(api, namespace, path, kind):
    patch = {"metadata": {"annotations": {"b": "3"}}, "spec": {"finalizers": ["e.example/f"]}, "status": {"conditions": [{"type": "G", "status": "True"}]}}
    after = api.ask("PATCH", path + "/status", patch, content_type=f"application/{kind}+json").json
    assert after["metadata"]["annotations"] == {"b": "3"} and after["metadata"]["labels"]["a"] == "1"
    assert after["spec"] == namespace["spec"]
    assert after["status"]["conditions"] == [{"type": "G", "status": "True"}] and after["status"]["phase"] == "Active"


def test_the_namespace_itself_keeps_status_and_finalizers(api, namespace, path):
    after = api.ask("PUT", path, changed(namespace)).json
    assert (after["spec"], after["status"]) == (namespace["spec"], namespace["status"])
    assert after["metadata"]["labels"]["a"] == "2"


def test_the_phase_of_a_namespace_says_whether_it_is_deleted(api, namespace, path):
    refused = api.ask("PUT", path + "/status", {**namespace, "status": {"phase": "Terminating"}})
    assert (refused.code, refused.json["message"]) == (
        422, f'Namespace "{namespace["metadata"]["name"]}" is invalid: status.Phase: Invalid value: "Terminating": '
             "may only be 'Active' if `deletionTimestamp` is empty")


def test_status_of_a_workspace_writes_the_status_only(api):
    """A Workspace follows the rules of custom resources."""
    path = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces/w1"
    made = api.ask("POST", path.rpartition("/")[0], {"metadata": {"name": "w1"}}).json
    made["metadata"]["labels"] = {"a": "1"}
    after = api.ask("PATCH", path + "/status", {"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}, "status": {"note": "y"}},
                    content_type="application/merge-patch+json").json
    assert "labels" not in after["metadata"] and "x" not in after.get("spec", {})
    assert after["status"]["note"] == "y"


# ---- bodies in YAML ----

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
YAML = {"content_type": "application/yaml"}


def test_objects_are_created_and_replaced_from_yaml(api):
    made = api.ask("POST", CONFIGMAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y1\n  labels: &l {a: b}\n  annotations: *l\ndata:\n  x: |\n    1\n    2\n"
                   "immutable: no\n", **YAML)
    assert made.code == 201, made.text
    assert made.json["metadata"]["annotations"] == made.json["metadata"]["labels"] == {"a": "b"}
    assert (made.json["data"], made.json["immutable"]) == ({"x": "1\n2\n"}, False)
    put = api.ask("PUT", CONFIGMAPS + "/y1", "metadata: {name: y1}\ndata: {x: 'yes'}\n", content_type="application/yaml; charset=utf-8")
    assert put.code == 200 and put.json["data"] == {"x": "yes"}
    # JSON is YAML, too.
    assert api.ask("PUT", CONFIGMAPS + "/y1", {"metadata": {"name": "y1"}}, **YAML).code == 200
    kept = api.ask("DELETE", CONFIGMAPS + "/y1", "dryRun: [All]\n", **YAML)
    assert kept.code == 200 and api.ask("GET", CONFIGMAPS + "/y1").code == 200
    gone = api.ask("DELETE", CONFIGMAPS + "/y1", "preconditions:\n  uid: other\n", **YAML)
    assert gone.code == 409
    assert api.ask("DELETE", CONFIGMAPS + "/y1", "propagationPolicy: Background\n", **YAML).code == 200


def test_wrong_types_in_yaml_are_found(api):
    """YAML 1.1 reads some plain scalars (`yes`) as other types than text."""
    refused = api.ask("POST", CONFIGMAPS, "metadata: {name: y2}\ndata: {x: yes}\n", **YAML)
    assert refused.code == 400 and "ConfigMap in version \"v1\" cannot be handled as a ConfigMap" in refused.json["message"]


def test_yaml_that_cannot_be_read_is_refused(api):
    refused = api.ask("POST", CONFIGMAPS, "x: 1\na: b: c\n", **YAML)
    assert (refused.code, refused.json["message"]) == (
        400, "the object provided is unrecognized (must be of type ConfigMap): yaml: line 2: mapping values are not allowed in this context "
             "(783a20310a613a20623a20630a)")
    refused = api.ask("DELETE", CONFIGMAPS + "/y3", "a: b: c\n", **YAML)
    assert (refused.code, refused.json["message"]) == (400, "yaml: mapping values are not allowed in this context")
    levels = ["a: &a0 [lol, lol, lol, lol]"] + [f"b{i}: &a{i} [{','.join([f'*a{i - 1}'] * 12)}]" for i in range(1, 9)]
    refused = api.ask("POST", CONFIGMAPS, "\n".join(levels), **YAML)
    assert (refused.code, refused.json["reason"]) == (413, "RequestEntityTooLarge")
    assert api.ask("POST", CONFIGMAPS, "[" * 5000, **YAML).code == 400
    assert api.ask("POST", CONFIGMAPS, "", **YAML).code == 400
    # Patches are JSON only, as in Kubernetes.
    assert api.ask("PATCH", CONFIGMAPS + "/y3", "data: {a: b}\n", **YAML).code == 415
    for content_type in ("application/yamlx", "application/jsonx", "text/yaml"):
        assert api.ask("POST", CONFIGMAPS, "metadata: {name: y4}\n", content_type=content_type).code == 415
