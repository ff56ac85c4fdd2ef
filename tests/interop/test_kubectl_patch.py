# SPDX-License-Identifier: Apache-2.0
"""kubectl changes objects: three kinds of patches, label, annotate, edit, apply, and the
messages of refusals."""
import json
import os

import pytest


def config_map(name, ns, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns, **metadata}, "data": data or {"k": "v"}}


def get(kubectl, *args, **kwargs):
    return json.loads(kubectl("get", *args, "-o", "json", **kwargs).stdout)


def refused(done):
    assert done.returncode != 0, done.stdout
    return done.stderr.strip()


def test_all_kinds_of_patches_work(pair, kubectl, ns):
    kubectl("create", "-f", "-", stdin=json.dumps(config_map("one", ns, {"a": "1", "b": "2"})))
    done = kubectl("patch", "cm", "one", "-n", ns, "-p", '{"data":{"a":null,"c":"3"}}')
    assert done.stdout == "configmap/one patched\n"
    assert get(kubectl, "cm", "one", "-n", ns, at=pair.b)["data"] == {"b": "2", "c": "3"}
    kubectl("patch", "cm", "one", "-n", ns, "--type=merge", "-p", '{"data":{"b":"x"}}', at=pair.b)
    kubectl("patch", "cm", "one", "-n", ns, "--type=json", "-p", '[{"op":"test","path":"/data/b","value":"x"},{"op":"move","from":"/data/b","path":"/data/d"}]')
    assert get(kubectl, "cm", "one", "-n", ns)["data"] == {"c": "3", "d": "x"}
    assert kubectl("patch", "cm", "one", "-n", ns, "-p", '{"data":{"c":"3"}}').stdout == "configmap/one patched (no change)\n"
    said = refused(kubectl("patch", "cm", "one", "-n", ns, "--type=json", "-p", '[{"op":"remove","path":"/data/none"}]', check=False))
    assert "the server rejected our request due to an error in our request" in said or said == "The request is invalid"
    said = refused(kubectl("patch", "cm", "none", "-n", ns, "-p", "{}", check=False))
    assert said == 'Error from server (NotFound): configmaps "none" not found'
    # kubectl has no Go type for workspaces, so it sends merge patches.
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": ns}}))
    said = refused(kubectl("patch", "ws", ns, "--type=strategic", "-p", "{}", check=False))
    assert "(UnsupportedMediaType)" in said or "strategic" in said
    kubectl("patch", "ws", ns, "--type=merge", "-p", '{"spec":{"a":1}}')
    assert get(kubectl, "ws", ns)["spec"] == {"a": 1}
    kubectl("delete", "ws", ns, "--wait=false")


def test_lists_are_merged_by_key(pair, kubectl, ns):
    kubectl("create", "serviceaccount", "sa", "-n", ns)
    for name in ("one", "two"):
        kubectl("patch", "sa", "sa", "-n", ns, "-p", json.dumps({"secrets": [{"name": name}]}))
    assert {s["name"] for s in get(kubectl, "sa", "sa", "-n", ns, at=pair.b)["secrets"]} == {"one", "two"}
    kubectl("patch", "sa", "sa", "-n", ns, "-p", json.dumps({"secrets": [{"$patch": "delete", "name": "one"}]}))
    assert [s["name"] for s in get(kubectl, "sa", "sa", "-n", ns)["secrets"]] == ["two"]


def test_label_and_annotate_work(pair, kubectl, ns):
    kubectl("create", "-f", "-", stdin=json.dumps(config_map("one", ns)))
    assert kubectl("label", "cm", "one", "-n", ns, "a=b", "c=d").stdout == "configmap/one labeled\n"
    assert "already has a value" in refused(kubectl("label", "cm", "one", "-n", ns, "a=x", check=False))
    kubectl("label", "cm", "one", "-n", ns, "a=x", "c-", "--overwrite", at=pair.b)
    assert kubectl("annotate", "cm", "one", "-n", ns, "example.com/why=because it's so").stdout == "configmap/one annotated\n"
    metadata = get(kubectl, "cm", "one", "-n", ns)["metadata"]
    assert metadata["labels"] == {"a": "x"} and metadata["annotations"] == {"example.com/why": "because it's so"}
    kubectl("label", "cm", "--all", "-n", ns, "every=one")
    kubectl("label", "namespace", ns, "team=red")
    assert get(kubectl, "ns", ns)["metadata"]["labels"]["team"] == "red"


def test_edit_works(pair, kubectl, ns, tmp_path, monkeypatch):
    kubectl("create", "-f", "-", stdin=json.dumps(config_map("one", ns)))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/k: v/k: edited/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setitem(os.environ, "KUBE_EDITOR", str(editor))
    assert kubectl("edit", "cm", "one", "-n", ns).stdout == "configmap/one edited\n"
    assert get(kubectl, "cm", "one", "-n", ns, at=pair.b)["data"] == {"k": "edited"}
    assert "no changes made" in kubectl("edit", "cm", "one", "-n", ns).stderr + kubectl("edit", "cm", "one", "-n", ns).stdout


APPLIED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS, labels: {a: "1", b: "2"}}
data: {k: v, l: w}
---
apiVersion: v1
kind: Secret
metadata: {name: one, namespace: NS}
data: {p: dw==}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: one, namespace: NS}
secrets: [{name: one}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: one, namespace: NS}
spec: {holderIdentity: me}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one, namespace: NS}
rules: [{verbs: [get], apiGroups: [""], resources: [configmaps]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: one, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
subjects: [{kind: ServiceAccount, name: one, namespace: NS}]
---
apiVersion: tenancy.holdfast.dev/v1alpha1
kind: Workspace
metadata: {name: NS-applied}
spec: {a: 1, b: 2}
"""


def apply(kubectl, text, **kwargs):
    done = kubectl("apply", "-f", "-", stdin=text, **kwargs)
    assert "warning" not in done.stderr.lower(), done.stderr
    return [line.split()[-1] for line in done.stdout.splitlines()]


def test_apply_creates_and_changes_objects(pair, kubectl, ns):
    """Objects of each kind are created, unchanged, then changed. Changes by other clients are
    kept, and fields that are removed from the manifest are removed."""
    text = APPLIED.replace("NS", ns)
    assert apply(kubectl, text) == ["created"] * 7
    assert apply(kubectl, text, at=pair.b) == ["unchanged"] * 7
    kubectl("patch", "cm", "one", "-n", ns, "-p", '{"data":{"others":"x"}}')
    kubectl("patch", "sa", "one", "-n", ns, "-p", '{"secrets":[{"name":"others"}]}')
    changed = (text.replace('b: "2"', 'c: "3"').replace("{k: v, l: w}", "{k: x}").replace("p: dw==", "p: eA==").replace("[{name: one}]", "[{name: new}]")
               .replace("{holderIdentity: me}", "{holderIdentity: you}").replace("verbs: [get]", "verbs: [get, list]").replace("{a: 1, b: 2}", "{a: 2}")
               .replace("subjects: [{kind: ServiceAccount, name: one", "subjects: [{kind: ServiceAccount, name: two"))
    assert apply(kubectl, changed) == ["configured"] * 7
    cm = get(kubectl, "cm", "one", "-n", ns, at=pair.b)
    assert cm["data"] == {"k": "x", "others": "x"} and cm["metadata"]["labels"] == {"a": "1", "c": "3"}
    assert {s["name"] for s in get(kubectl, "sa", "one", "-n", ns)["secrets"]} == {"new", "others"}
    assert get(kubectl, "lease", "one", "-n", ns)["spec"] == {"holderIdentity": "you"}
    assert get(kubectl, "role", "one", "-n", ns)["rules"][0]["verbs"] == ["get", "list"]
    assert [s["name"] for s in get(kubectl, "rolebinding", "one", "-n", ns)["subjects"]] == ["two"]
    assert get(kubectl, "ws", f"{ns}-applied")["spec"] == {"a": 2}
    assert get(kubectl, "secret", "one", "-n", ns)["data"] == {"p": "eA=="}
    kubectl("delete", "ws", f"{ns}-applied", "--wait=false")


def test_an_apply_dry_run_changes_nothing(pair, kubectl, ns):
    text = json.dumps(config_map("one", ns))
    assert apply(kubectl, text) == ["created"]
    other = json.dumps(config_map("one", ns, {"k": "w"}))
    done = kubectl("apply", "--dry-run=server", "-f", "-", stdin=other)
    assert done.stdout == "configmap/one configured (server dry run)\n"
    assert get(kubectl, "cm", "one", "-n", ns)["data"] == {"k": "v"}


@pytest.mark.parametrize("type", ["application/json", "application/yaml", "text/plain", ""])
def test_unsupported_patch_types_are_refused(pair, ns, type):
    path = f"/api/v1/namespaces/{ns}/configmaps"
    assert pair.a.request("POST", path, config_map("one", ns))[0] == 201
    code, body = pair.a.request("PATCH", f"{path}/one", {"data": {"k": "x"}}, headers={"Content-Type": type})
    assert code == 415 and json.loads(body)["reason"] == "UnsupportedMediaType"
