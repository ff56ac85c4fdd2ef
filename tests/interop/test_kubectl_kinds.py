# SPDX-License-Identifier: Apache-2.0
"""kubectl with secrets, service accounts, RBAC, events, and priority, runtime and API services: its typed commands (which send protobuf),
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
    assert table[0] == ["NAME", "AGE"] and table[1][0] == "builder"
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


def test_priority_classes_are_created_and_listed(pair, kubectl, ns):
    """`kubectl create priorityclass` sends protobuf. The two system classes exist from the start."""
    kubectl("create", "priorityclass", f"{ns}-high", "--value=1000", "--description=important", "--preemption-policy=Never")
    kubectl("create", "priorityclass", f"{ns}-default", "--value=-5", "--global-default=true")
    table = rows(kubectl("get", "pc", at=pair.b))
    assert table[0][:4] == ["NAME", "VALUE", "GLOBAL-DEFAULT", "AGE"]
    found = {row[0]: row[1:3] for row in table[1:]}
    assert found["system-cluster-critical"] == ["2000000000", "false"] and found["system-node-critical"] == ["2000001000", "false"]
    assert found[f"{ns}-high"] == ["1000", "false"] and found[f"{ns}-default"] == ["-5", "true"]
    said = kubectl("create", "priorityclass", f"{ns}-second", "--value=1", "--global-default=true", check=False)
    assert said.returncode and f"PriorityClass {ns}-default is already marked as default" in said.stderr
    made = as_json(kubectl, "pc", f"{ns}-high")
    assert (made["value"], made["preemptionPolicy"], made["description"], made["metadata"]["generation"]) == (1000, "Never", "important", 1)
    assert "important" in kubectl("describe", "pc", f"{ns}-high").stdout
    said = kubectl("delete", "pc", "system-node-critical", check=False)
    assert said.returncode and "this is a system priority class and cannot be deleted" in said.stderr
    kubectl("delete", "pc", f"{ns}-high", f"{ns}-default")


def test_runtime_classes_are_created_and_listed(pair, kubectl, ns):
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"{ns}-kata"}, "handler": "kata",
            "overhead": {"podFixed": {"memory": "120Mi", "cpu": "250m"}},
            "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}]}}
    kubectl("apply", "-f", "-", stdin=json.dumps(body))
    table = rows(kubectl("get", "runtimeclasses", at=pair.b))
    assert table[0] == ["NAME", "HANDLER", "AGE"] and [f"{ns}-kata", "kata"] in [row[:2] for row in table]
    said = kubectl("apply", "-f", "-", stdin=json.dumps({**body, "handler": "other"}), check=False)
    assert said.returncode and 'handler: Invalid value: "other": field is immutable' in said.stderr
    assert as_json(kubectl, "runtimeclass", f"{ns}-kata")["scheduling"] == body["scheduling"]
    kubectl("delete", "runtimeclass", f"{ns}-kata")


OLD_EVENT = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "involvedObject": {"kind": "ConfigMap", "name": "a", "apiVersion": "v1"},
             "message": " it happened ", "reason": "Tested", "type": "Normal", "source": {"component": "tester", "host": "h"}, "count": 3,
             "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z"}
NEW_EVENT = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"}, "regarding": {"kind": "Secret", "name": "b", "apiVersion": "v1"},
             "note": "again", "reason": "Retested", "type": "Warning", "action": "Testing", "eventTime": "2026-01-02T03:04:05.000001Z",
             "reportingController": "example.com/tester", "reportingInstance": "tester-1"}


def event(body, ns):
    reference = "involvedObject" if "involvedObject" in body else "regarding"
    return {**body, "metadata": {**body["metadata"], "namespace": ns}, reference: {**body[reference], "namespace": ns}}


def test_both_versions_of_events_are_the_same_objects(pair, kubectl, ns):
    kubectl("create", "-f", "-", stdin=json.dumps(event(OLD_EVENT, ns)))
    kubectl("create", "-f", "-", stdin=json.dumps(event(NEW_EVENT, ns)))
    new = as_json(kubectl, "events.events.k8s.io", "old", "-n", ns, at=pair.b)
    assert new["apiVersion"] == "events.k8s.io/v1" and new["regarding"]["name"] == "a" and new["note"] == " it happened "
    assert new["deprecatedCount"] == 3 and new["deprecatedSource"] == OLD_EVENT["source"] and "involvedObject" not in new
    old = as_json(kubectl, "events.v1.", "new", "-n", ns, at=pair.b)
    assert old["apiVersion"] == "v1" and old["involvedObject"]["name"] == "b" and old["reportingComponent"] == "example.com/tester"
    assert old["metadata"]["uid"] == as_json(kubectl, "events.events.k8s.io", "new", "-n", ns)["metadata"]["uid"]
    for resource in ("events.v1.", "events.events.k8s.io"):
        table = rows(kubectl("get", resource, "-n", ns, "-o", "wide"))
        assert table[0] == "LAST SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST SEEN COUNT NAME".split()
        by_name = {row[-1]: row for row in table[1:]}
        assert by_name["old"][1:] == [by_name["old"][1], "Tested", "configmap/a", "tester,", "h", "it", "happened", by_name["old"][8], "3", "old"]
        assert by_name["new"][2:4] == ["Retested", "secret/b"] and by_name["new"][-2:] == ["1", "new"]
    said = kubectl("get", "events.events.k8s.io", "-n", ns, "--field-selector", "regarding.kind=Secret", "-o", "name").stdout
    assert said.split() == ["event.events.k8s.io/new"]
    kubectl("label", "events.events.k8s.io", "old", "-n", ns, "a=b")
    assert as_json(kubectl, "events.v1.", "old", "-n", ns, at=pair.b)["metadata"]["labels"] == {"a": "b"}
    said = kubectl("patch", "events.events.k8s.io", "new", "-n", ns, "--type=merge", "-p", '{"note":"other"}', check=False)
    assert said.returncode and 'message: Invalid value: "other": field is immutable' in said.stderr
    kubectl("delete", "events.events.k8s.io", "old", "-n", ns)
    assert kubectl("get", "events.v1.", "-n", ns, "-o", "name").stdout.split() == ["event/new"]


def test_a_watch_of_one_version_shows_writes_of_the_other(pair, kubectl, ns):
    path = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    kubectl("create", "-f", "-", stdin=json.dumps(event(OLD_EVENT, ns)))
    found = json.loads(kubectl("get", "--raw", f"{path}?limit=1").stdout)
    assert found["kind"] == "EventList" and found["items"][0]["note"] == " it happened "
    watch = kubectl("get", "--raw", f"{path}?watch=1&timeoutSeconds=1&resourceVersion=0", at=pair.b).stdout.splitlines()
    seen = [json.loads(line) for line in watch]
    assert [(e["type"], e["object"]["apiVersion"], e["object"]["regarding"]["name"]) for e in seen] == [("ADDED", "events.k8s.io/v1", "a")]
    kubectl("delete", "events", "--all", "-n", ns)
    version = found["metadata"]["resourceVersion"]
    watch = kubectl("get", "--raw", f"{path}?watch=1&timeoutSeconds=1&resourceVersion={version}").stdout.splitlines()
    assert [(json.loads(line)["type"], "note" in json.loads(line)["object"]) for line in watch] == [("DELETED", True)]


def test_api_services_stand_for_the_group_versions(pair, kubectl, ns):
    table = rows(kubectl("get", "apiservices", at=pair.b))
    assert table[0] == ["NAME", "SERVICE", "AVAILABLE", "AGE"]
    found = {row[0]: row[1:3] for row in table[1:]}
    served = {line for line in kubectl("api-versions").stdout.split() if line != "apiregistration.k8s.io/v1"}
    assert {"v1." if line == "v1" else ".".join(reversed(line.split("/"))) for line in served} == set(found)
    assert set(map(tuple, found.values())) == {("Local", "True")}
    kubectl("delete", "apiservice", "v1.scheduling.k8s.io")
    kubectl("wait", "--for=condition=Available", "--timeout=20s", "apiservice/v1.scheduling.k8s.io", check=False)
    again = {row[0] for row in rows(kubectl("get", "apiservices"))}
    assert "v1.scheduling.k8s.io" in again


def test_the_group_of_a_missing_service_is_unavailable(pair, kubectl, ns):
    group = f"{ns}.example.com"
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1beta1.{group}"},
            "spec": {"group": group, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 10, "insecureSkipTLSVerify": True,
                     "service": {"name": "metrics", "namespace": ns}}}
    assert pair.a.request("GET", f"/apis/{group}/v1beta1")[0] == 404
    kubectl("apply", "-f", "-", stdin=json.dumps(body))
    kubectl("wait", "--for=condition=Available=False", "--timeout=20s", f"apiservice/v1beta1.{group}")
    made = as_json(kubectl, "apiservice", f"v1beta1.{group}", at=pair.b)
    condition = made["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "ServiceNotFound") and made["spec"]["service"]["port"] == 443
    assert condition["message"] == f'service/metrics in "{ns}" is not present'
    shown = kubectl("get", "apiservice", f"v1beta1.{group}").stdout
    assert f"{ns}/metrics" in shown and "False (ServiceNotFound)" in shown
    for path in (f"/apis/{group}/v1beta1", f"/apis/{group}/v1beta1/nodes", f"/apis/{group}/v1beta1/namespaces/{ns}/pods/x"):
        code, status = pair.a.request("GET", path)
        assert code == 503, (path, status)
    kubectl("delete", "apiservice", f"v1beta1.{group}")


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_cascade_becomes_a_propagation_policy(pair, kubectl, ns, cascade):
    """The propagation policy becomes the finalizer for the garbage collector. Before kubectl
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
