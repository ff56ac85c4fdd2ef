# SPDX-License-Identifier: Apache-2.0
"""kubectl with secrets, service accounts and RBAC: its typed commands (which send protobuf),
tables, and messages."""
import base64
import json

import pytest


def rows(done):
    return [line.split() for line in done.stdout.splitlines()]


def as_json(kubectl, *args, **kwargs):
    return json.loads(kubectl("get", *args, "-o", "json", **kwargs).stdout)


def test_secrets_are_created_listed_and_deleted(pair, kubectl, ns, tmp_path):
    (tmp_path / "blob").write_bytes(bytes(range(256)))
    kubectl("create", "secret", "generic", "one", "-n", ns, "--from-literal=user=me", f"--from-file={tmp_path / 'blob'}")
    made = as_json(kubectl, "secret", "one", "-n", ns, at=pair.b)
    assert made["type"] == "Opaque" and base64.b64decode(made["data"]["user"]) == b"me"
    assert base64.b64decode(made["data"]["blob"]) == bytes(range(256))
    table = rows(kubectl("get", "secrets", "-n", ns))
    assert table[0] == ["NAME", "TYPE", "DATA", "AGE"] and table[1][:3] == ["one", "Opaque", "2"]
    text = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two", "namespace": ns}, "stringData": {"a": "b"}, "type": "kubernetes.io/basic-auth"}
    said = kubectl("create", "-f", "-", stdin=json.dumps(text), check=False)
    assert said.returncode and "data[username]: Required value" in said.stderr
    kubectl("create", "-f", "-", stdin=json.dumps({**text, "type": ""}))
    assert as_json(kubectl, "secret", "two", "-n", ns)["data"] == {"a": base64.b64encode(b"b").decode()}
    assert kubectl("get", "secrets", "-n", ns, "--field-selector", "type=Opaque", "-o", "name").stdout.split() == ["secret/one", "secret/two"]
    assert "user:" in kubectl("describe", "secret", "one", "-n", ns).stdout
    assert kubectl("delete", "secret", "one", "two", "-n", ns).stdout.count("deleted") == 2


def test_service_accounts_are_created_and_listed(pair, kubectl, ns):
    kubectl("create", "serviceaccount", "builder", "-n", ns)
    table = rows(kubectl("get", "sa", "-n", ns, at=pair.b))
    assert table[0] == ["NAME", "SECRETS", "AGE"] and table[1][:2] == ["builder", "0"]
    kubectl("delete", "sa", "builder", "-n", ns)


def test_roles_and_bindings_are_created_and_described(pair, kubectl, ns):
    kubectl("create", "role", "reader", "-n", ns, "--verb=get,list", "--resource=configmaps,leases.coordination.k8s.io")
    kubectl("create", "clusterrole", f"{ns}:all", "--verb=*", "--resource=configmaps")
    kubectl("create", "clusterrole", f"{ns}:urls", "--verb=get", "--non-resource-url=/healthz,/logs/*")
    kubectl("create", "rolebinding", "b", "-n", ns, "--role=reader", "--user=alice", "--user=bob", "--serviceaccount=other:builder")
    kubectl("create", "clusterrolebinding", f"{ns}:b", f"--clusterrole={ns}:all", "--group=admins")
    rules = as_json(kubectl, "role", "reader", "-n", ns, at=pair.b)["rules"]
    assert {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]} in rules
    table = rows(kubectl("get", "roles", "-n", ns))
    assert table[0] == ["NAME", "CREATED", "AT"] and table[1][0] == "reader" and table[1][1].endswith("Z")
    assert rows(kubectl("get", "rolebindings", "-n", ns))[0] == ["NAME", "ROLE", "AGE"]
    wide = kubectl("get", "rolebindings", "-n", ns, "-o", "wide", at=pair.b).stdout
    assert wide.split("\n")[0].split() == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
    assert "Role/reader" in wide and "alice, bob" in wide and "other/builder" in wide
    bound = as_json(kubectl, "clusterrolebinding", f"{ns}:b")
    assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{ns}:all"}
    assert bound["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "admins"}]
    assert "configmaps" in kubectl("describe", "clusterrole", f"{ns}:all").stdout
    assert "alice" in kubectl("describe", "rolebinding", "b", "-n", ns).stdout
    bound["roleRef"]["name"] = "other"
    said = kubectl("replace", "-f", "-", stdin=json.dumps(bound), check=False)
    assert said.returncode and "cannot change roleRef" in said.stderr
    kubectl("delete", "clusterrole", f"{ns}:all", f"{ns}:urls")
    kubectl("delete", "clusterrolebinding", f"{ns}:b")
    kubectl("delete", "role,rolebinding", "--all", "-n", ns)
    assert kubectl("get", "role,rolebinding", "-n", ns, "-o", "name").stdout == ""


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_cascade_becomes_a_propagation_policy(pair, kubectl, ns, cascade):
    """The policy becomes the finalizer that the garbage collector looks for. Before kubectl
    1.20, --cascade is true or false."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": ns, "finalizers": ["holdfast.dev/test"]}}
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    kubectl("delete", "cm", "one", "-n", ns, f"--cascade={cascade}", "--wait=false")
    held = as_json(kubectl, "cm", "one", "-n", ns, at=pair.b)["metadata"]
    assert held["deletionTimestamp"]
    policy = {"background": set(), "foreground": {"foregroundDeletion"}, "orphan": {"orphan"}}[cascade]
    assert set(held["finalizers"]) - {"holdfast.dev/test"} <= policy
    assert pair.a.request("PUT", f"/api/v1/namespaces/{ns}/configmaps/one", {**body, "metadata": {"name": "one"}})[0] == 200
    code, _ = pair.b.get(f"/api/v1/namespaces/{ns}/configmaps/one")
    assert code == 404
