# SPDX-License-Identifier: Apache-2.0
"""Server-side apply over HTTP and by kubectl: objects are created and merged, fields have owners, conflicts are named."""
import json

import pytest

APPLY = {"Content-Type": "application/apply-patch+yaml"}


def config_map(name, ns, data, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns, **metadata}, "data": data}


def apply(at, ns, data, query="fieldManager=m1", name="one", headers=APPLY, **metadata):
    code, body = at.request("PATCH", f"/api/v1/namespaces/{ns}/configmaps/{name}?{query}", config_map(name, ns, data, **metadata), headers=headers)
    return code, json.loads(body)


def owners(object):
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in object["metadata"].get("managedFields", [])}


def test_an_apply_creates_and_then_changes(pair, ns):
    code, created = apply(pair.a, ns, {"a": "1", "b": "1"}, labels={"l": "1"})
    assert code == 201 and created["data"] == {"a": "1", "b": "1"} and created["metadata"]["uid"], created
    entry, = created["metadata"]["managedFields"]
    assert entry.pop("time") >= created["metadata"]["creationTimestamp"]
    assert entry == {"manager": "m1", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}}
    code, changed = apply(pair.b, ns, {"a": "2"}, labels={"l": "1"})
    assert code == 200 and changed["data"] == {"a": "2"}, changed
    assert owners(changed) == {("m1", "Apply"): {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}}


def test_a_repeated_apply_changes_nothing(pair, ns):
    first = apply(pair.a, ns, {"a": "1"})[1]
    code, again = apply(pair.a, ns, {"a": "1"})
    assert code == 200 and again == first


def test_empty_maps_and_lists_are_owned_but_not_stored(pair, ns):
    code, first = apply(pair.a, ns, {}, labels={})
    assert code == 201 and "data" not in first and "labels" not in first["metadata"], first
    assert owners(first) == {("m1", "Apply"): {"f:data": {}, "f:metadata": {"f:labels": {}}}}
    assert apply(pair.a, ns, {}, labels={}) == (200, first)
    code, status = apply(pair.a, ns, {"a": "1"}, "fieldManager=m2")
    assert code == 409 and status["details"]["causes"][0]["field"] == ".data", status
    assert apply(pair.a, ns, {"a": "1"}, "fieldManager=m2&force=true")[1]["data"] == {"a": "1"}
    code, created = pair.a.request("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {
        "metadata": {"name": "bare", "labels": {}, "annotations": {}, "ownerReferences": [], "finalizers": []}, "secrets": [], "imagePullSecrets": []})
    account = json.loads(created)
    assert code == 201 and not {"labels", "annotations", "ownerReferences", "finalizers"} & account["metadata"].keys(), account
    assert not {"secrets", "imagePullSecrets"} & account.keys()


def test_conflicts_are_refused_and_forced(pair, ns):
    assert apply(pair.a, ns, {"a": "1", "b": "1"})[0] == 201
    code, status = apply(pair.b, ns, {"a": "2", "c": "1"}, "fieldManager=m2")
    assert code == 409 and status["reason"] == "Conflict"
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "m1": .data.a'
    assert status["details"]["causes"] == [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.a"}]
    code, forced = apply(pair.b, ns, {"a": "2", "c": "1"}, "fieldManager=m2&force=true")
    assert code == 200 and forced["data"] == {"a": "2", "b": "1", "c": "1"}
    assert owners(forced) == {("m1", "Apply"): {"f:data": {"f:b": {}}}, ("m2", "Apply"): {"f:data": {"f:a": {}, "f:c": {}}}}


def test_other_writes_take_fields_over(pair, ns):
    assert apply(pair.a, ns, {"a": "1", "b": "1"})[0] == 201
    path = f"/api/v1/namespaces/{ns}/configmaps/one"
    code, body = pair.b.request("PATCH", path, {"data": {"a": "2"}}, headers={"Content-Type": "application/merge-patch+json", "User-Agent": "tool/1.2 (linux)"})
    assert code == 200
    assert owners(json.loads(body)) == {("m1", "Apply"): {"f:data": {"f:b": {}}}, ("tool", "Update"): {"f:data": {"f:a": {}}}}
    code, status = apply(pair.a, ns, {"a": "1", "b": "1"})
    assert code == 409 and status["message"] == 'Apply failed with 1 conflict: conflict with "tool" using v1: .data.a'
    code, body = pair.a.request("PATCH", path, {"metadata": {"managedFields": [{}]}}, headers={"Content-Type": "application/merge-patch+json"})
    assert code == 200 and "managedFields" not in json.loads(body)["metadata"]


def test_an_object_without_owners_gets_one_who_is_not_known(pair, ns):
    code, body = pair.a.request("POST", f"/api/v1/namespaces/{ns}/configmaps?fieldManager=m0", config_map("one", ns, {"a": "1"}))
    assert code == 201 and owners(json.loads(body)) == {("m0", "Update"): {"f:data": {".": {}, "f:a": {}}}}
    code, body = pair.a.request("PATCH", f"/api/v1/namespaces/{ns}/configmaps/one", {"metadata": {"managedFields": [{}]}},
                                headers={"Content-Type": "application/merge-patch+json"})
    assert code == 200 and owners(json.loads(body)) == {}
    code, status = apply(pair.a, ns, {"a": "2"})
    assert code == 409 and 'conflict with "before-first-apply" using v1: .data.a' in status["message"]
    code, shared = apply(pair.a, ns, {"a": "1"})
    assert code == 200 and owners(shared)[("m1", "Apply")] == {"f:data": {"f:a": {}}}


@pytest.mark.parametrize("query, message", [
    ("", 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'),
    ("fieldManager=a%07", "invalid character U+0007 (at position 1)"),
    ("fieldManager=" + 129 * "m", "fieldManager: Too long: may not be more than 128 bytes"),
])
def test_options_that_are_refused(pair, ns, query, message):
    code, status = apply(pair.a, ns, {"a": "1"}, query)
    assert code == 422 and message in status["message"], status
    code, status = apply(pair.a, ns, {}, "force=true", headers={"Content-Type": "application/merge-patch+json"})
    assert code == 422 and "force: Forbidden: may not be specified for non-apply patch" in status["message"], status


def test_configurations_that_are_refused(pair, ns):
    path = f"/api/v1/namespaces/{ns}/configmaps/one?fieldManager=m1"
    code, body = pair.a.request("PATCH", path, {"data": {"a": "1"}}, headers=APPLY)
    assert code == 400 and "invalid object type" in json.loads(body)["message"]
    code, status = apply(pair.a, ns, {"a": "1"}, managedFields=[{"manager": "x"}])
    assert code == 400 and status["message"] == "metadata.managedFields must be nil"
    code, status = apply(pair.a, ns, {"a": "1"}, name="two", uid="x")
    assert code == 409, status


def test_a_status_has_owners_of_its_own(pair, ns):
    path = f"/api/v1/namespaces/{ns}/status?fieldManager=m2"
    code, body = pair.a.request("PATCH", f"/api/v1/namespaces/{ns}?fieldManager=m1", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns, "labels": {"l": "1"}}}, headers=APPLY)
    assert code == 200, body
    status = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns, "labels": {"l": "2"}}, "status": {"conditions": [
        {"type": "Known", "status": "True", "reason": "Test", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    code, body = pair.a.request("PATCH", path, status, headers=APPLY)
    object = json.loads(body)
    assert code == 200 and object["metadata"]["labels"]["l"] == "1", body
    entry, = [e for e in object["metadata"]["managedFields"] if e["manager"] == "m2"]
    assert entry["subresource"] == "status" and 'k:{"type":"Known"}' in entry["fieldsV1"]["f:status"]["f:conditions"]
    # A controller that applies the status of an object that is gone ignores a 404.
    gone = {**status, "metadata": {"name": "gone-" + ns, "uid": "x"}}
    assert pair.a.request("PATCH", f"/api/v1/namespaces/gone-{ns}/status?fieldManager=m2", gone, headers=APPLY)[0] == 404


def test_kubectl_applies_at_the_server(pair, kubectl, ns):
    text = json.dumps(config_map("one", ns, {"a": "1"}))
    assert kubectl("apply", "--server-side", "-f", "-", stdin=text).stdout == "configmap/one serverside-applied\n"
    assert kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=text).returncode == 0
    other = json.dumps(config_map("one", ns, {"a": "2"}))
    said = kubectl("apply", "--server-side", "--field-manager=third", "-f", "-", stdin=other, check=False)
    assert said.returncode != 0 and "Apply failed with 2 conflicts" in said.stderr, said.stderr
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=other).returncode == 0


def test_kubectl_goes_on_at_the_server_after_an_apply_of_its_own(pair, kubectl, ns):
    assert kubectl("apply", "-f", "-", stdin=json.dumps(config_map("one", ns, {"a": "1"}))).returncode == 0
    done = kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(config_map("one", ns, {"a": "2"})))
    assert "serverside-applied" in done.stdout
    code, body = pair.a.request("GET", f"/api/v1/namespaces/{ns}/configmaps/one")
    assert json.loads(body)["data"] == {"a": "2"}


def test_the_python_client_applies(pair, ns):
    kubernetes = pytest.importorskip("kubernetes", reason="python3-kubernetes is not installed")
    from kubernetes import config, dynamic  # pylint: disable=import-outside-toplevel

    maps = [dynamic.DynamicClient(config.new_client_from_config(str(at.kubeconfig))).resources.get(api_version="v1", kind="ConfigMap")
            for at in (pair.a, pair.b)]

    def applied(at, data, manager, **query):
        return at.patch(body=json.dumps(config_map("one", ns, data)), namespace=ns, name="one", content_type=APPLY["Content-Type"],
                        field_manager=manager, **query).to_dict()
    assert applied(maps[0], {"a": "1", "b": "1"}, "m1")["data"] == {"a": "1", "b": "1"}
    with pytest.raises(kubernetes.client.ApiException) as conflict:
        applied(maps[1], {"a": "2"}, "m2")
    assert conflict.value.status == 409 and '.data.a' in str(conflict.value.body)
    changed = applied(maps[1], {"a": "2"}, "m2", query_params=[("force", "true")])
    assert changed["data"] == {"a": "2", "b": "1"}
    assert owners(changed) == {("m1", "Apply"): {"f:data": {"f:b": {}}}, ("m2", "Apply"): {"f:data": {"f:a": {}}}}
    assert applied(maps[0], {}, "m1").get("data") == {"a": "2"}
