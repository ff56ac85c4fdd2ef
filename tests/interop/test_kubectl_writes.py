# SPDX-License-Identifier: Apache-2.0
"""kubectl creates, replaces and deletes objects, with the messages of refusals."""
import json

DOCUMENTS = """
apiVersion: v1
kind: Namespace
metadata: {name: NS-x}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  namespace: NS
  labels: {tier: front}
data:
  text: |
    line "one"
    line two \u2603
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: mine, namespace: NS}
spec: {holderIdentity: me, leaseDurationSeconds: 15, acquireTime: "2026-01-02T03:04:05.000006Z"}
---
apiVersion: v1
kind: Event
metadata: {name: happened, namespace: NS}
involvedObject: {kind: ConfigMap, name: one, namespace: NS}
reason: Tested
message: it happened
type: Normal
count: 1
firstTimestamp: "2026-01-02T03:04:05Z"
lastTimestamp: "2026-01-02T03:04:05Z"
---
apiVersion: tenancy.holdfast.dev/v1alpha1
kind: Workspace
metadata: {name: NS-team}
"""
ALL = ["namespace/{0}-x", "configmap/one", "lease.coordination.k8s.io/mine", "event/happened", "workspace.tenancy.holdfast.dev/{0}-team"]
STALE = "the object has been modified; please apply your changes to the latest version and try again"


def config_map(name, ns, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns, **metadata}, "data": {"k": "v"}}


def refused(done):
    assert done.returncode != 0, done.stdout
    return done.stderr.strip()


def test_documents_of_every_kind_are_created(pair, kubectl, ns):
    text = DOCUMENTS.replace("NS", ns)
    names = [n.format(ns) for n in ALL]
    assert kubectl("create", "-f", "-", stdin=text).stdout.splitlines() == [f"{n} created" for n in names]
    lease = json.loads(kubectl("get", "lease", "mine", "-n", ns, "-o", "json", at=pair.b).stdout)
    assert lease["spec"] == {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-01-02T03:04:05.000006Z"}
    text_of_one = json.loads(kubectl("get", "cm", "one", "-n", ns, "-o", "json", at=pair.b).stdout)["data"]["text"]
    assert text_of_one == 'line "one"\nline two \u2603\n'
    event = kubectl("get", "events", "-n", ns, at=pair.b).stdout
    assert "Tested" in event and "configmap/one" in event and "it happened" in event
    again = refused(kubectl("create", "-f", "-", stdin=text, check=False))
    assert again.count("already exists") == len(names)
    assert f'Error from server (AlreadyExists): error when creating "STDIN": configmaps "one" already exists' in again
    gone = kubectl("delete", "-f", "-", stdin=text, at=pair.b).stdout
    assert gone.count("deleted") == len(names)
    assert 'leases.coordination.k8s.io "mine" not found' in refused(kubectl("get", "lease", "mine", "-n", ns, check=False))


def test_objects_are_created_from_files_and_json(pair, kubectl, ns, tmp_path):
    assert kubectl("create", "namespace", f"{ns}-gen").stdout == f"namespace/{ns}-gen created\n"
    (tmp_path / "blob").write_bytes(bytes(range(256)))
    (tmp_path / "text").write_text("text\n")
    kubectl("create", "configmap", "files", "-n", ns, f"--from-file={tmp_path / 'blob'}", f"--from-file={tmp_path / 'text'}", "--from-literal=a=b")
    made = json.loads(kubectl("get", "cm", "files", "-n", ns, "-o", "json").stdout)
    assert made["data"] == {"text": "text\n", "a": "b"} and list(made["binaryData"]) == ["blob"]
    wanted = {"apiVersion": "v1", "kind": "List", "items": [config_map("j1", ns), config_map("j2", ns)]}
    assert kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(wanted)).stdout.split() == ["configmap/j1", "configmap/j2"]
    # generateName: the server chooses the name.
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-", "namespace": ns}}
    name = kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(body)).stdout.strip()
    assert name.startswith("configmap/gen-") and len(name) == len("configmap/gen-") + 5
    assert kubectl("delete", "cm", "j1", "j2", "-n", ns).stdout.count("deleted") == 2
    kubectl("delete", "namespace", f"{ns}-gen")


def test_replace_detects_conflicts(pair, kubectl, ns):
    kubectl("create", "-f", "-", stdin=json.dumps(config_map("one", ns)))
    old = json.loads(kubectl("get", "cm", "one", "-n", ns, "-o", "json").stdout)
    new = {**old, "data": {"k": "new"}}
    assert kubectl("replace", "-f", "-", stdin=json.dumps(new), at=pair.b).stdout == "configmap/one replaced\n"
    stale = refused(kubectl("replace", "-f", "-", stdin=json.dumps(old), check=False))
    assert stale == f'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "one": {STALE}'
    assert kubectl("get", "cm", "one", "-n", ns, "-o", "jsonpath={.data.k}").stdout == "new"
    kubectl("replace", "-f", "-", stdin=json.dumps(config_map("one", ns)))
    assert kubectl("get", "cm", "one", "-n", ns, "-o", "jsonpath={.data.k}", at=pair.b).stdout == "v"
    kubectl("replace", "--force", "-f", "-", stdin=json.dumps(config_map("one", ns)))
    again = json.loads(kubectl("get", "cm", "one", "-n", ns, "-o", "json").stdout)
    assert again["metadata"]["uid"] != old["metadata"]["uid"]
    missing = refused(kubectl("replace", "-f", "-", stdin=json.dumps(config_map("none", ns)), check=False))
    assert missing == 'Error from server (NotFound): error when replacing "STDIN": configmaps "none" not found'


def test_objects_are_deleted_by_name_and_selector(pair, kubectl, ns):
    for name in ("a", "b", "c", "d"):
        tier = "front" if name in "ab" else "back"
        kubectl("create", "-f", "-", stdin=json.dumps(config_map(name, ns, labels={"tier": tier})))
    assert kubectl("delete", "cm", "-l", "tier=front", "-n", ns).stdout.count("deleted") == 2
    assert kubectl("delete", "cm", "c", "-n", ns, "--wait=false").stdout == 'configmap "c" deleted\n'
    assert 'configmap "d" deleted' in kubectl("delete", "configmaps", "--all", "-n", ns, at=pair.b).stdout
    assert refused(kubectl("delete", "cm", "a", "-n", ns, check=False)) == 'Error from server (NotFound): configmaps "a" not found'
    assert kubectl("delete", "cm", "a", "-n", ns, "--ignore-not-found").stdout == ""


def test_messages_are_those_of_kube_apiserver(pair, kubectl, ns):
    """The messages equal those of kube-apiserver to the letter."""
    def said(body):
        return refused(kubectl("create", "-f", "-", stdin=json.dumps(body), check=False))
    assert refused(kubectl("get", "cm", "x", "-n", ns, check=False)) == 'Error from server (NotFound): configmaps "x" not found'
    assert refused(kubectl("get", "lease", "x", "-n", ns, check=False)) == 'Error from server (NotFound): leases.coordination.k8s.io "x" not found'
    assert refused(kubectl("get", "ws", "x", check=False)) == 'Error from server (NotFound): workspaces.tenancy.holdfast.dev "x" not found'
    assert refused(kubectl("create", "ns", "default", check=False)).endswith('namespaces "default" already exists')
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": ns}}
    assert said({**lease, "spec": {"leaseDurationSeconds": 0}}) == \
        'The Lease "l" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'
    both = said({**lease, "spec": {"leaseDurationSeconds": -1, "leaseTransitions": -1}})
    assert "must be greater than 0" in both and "must be greater than or equal to 0" in both
    assert said({**lease, "metadata": {"name": "Bad_Name", "namespace": ns}}).startswith(
        'The Lease "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of')
    assert said(config_map("one", "no-such-namespace")) == \
        'Error from server (NotFound): error when creating "STDIN": namespaces "no-such-namespace" not found'
    assert "BadRequest" in said({**lease, "spec": {"renewTime": "yesterday"}})
    assert "BadRequest" in said({**lease, "spec": {"holderIdentity": 5}})


def test_unknown_fields_are_refused(pair, kubectl, ns):
    """From 1.25 on kubectl requests strict validation by the server. An older kubectl validates
    by the schema of the server."""
    body = {**config_map("one", ns), "dataa": {}}
    done = kubectl("create", "-f", "-", stdin=json.dumps(body), check=False)
    if kubectl.version >= (1, 25):
        assert refused(done) == ('Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a '
                                 'ConfigMap: strict decoding error: unknown field "dataa"')
        warned = kubectl("create", "--validate=warn", "-f", "-", stdin=json.dumps(body))
        assert 'Warning: unknown field "dataa"' in warned.stderr
        kubectl("delete", "cm", "one", "-n", ns)
        nested = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": ns, "labls": {}}, "spec": {"hodler": "x"}}
        said = refused(kubectl("create", "-f", "-", stdin=json.dumps(nested), check=False))
        assert 'unknown field "metadata.labls"' in said and 'unknown field "spec.hodler"' in said
        kubectl("create", "--validate=ignore", "-f", "-", stdin=json.dumps(body))
    else:
        assert 'ValidationError(ConfigMap): unknown field "dataa" in io.k8s.api.core.v1.ConfigMap' in refused(done)
        nested = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": ns, "labls": {}}, "spec": {"hodler": "x"}}
        said = refused(kubectl("create", "-f", "-", stdin=json.dumps(nested), check=False))
        assert 'unknown field "labls"' in said and 'unknown field "hodler"' in said
        kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(body))


def test_large_objects_are_stored_up_to_the_limit(pair, kubectl, ns, tmp_path):
    value = ("0123456789abcdef" * 64 + "\n") * 900
    body = {**config_map("large", ns), "data": {"k": value}}
    kubectl("create", "-f", "-", stdin=json.dumps(body))
    assert json.loads(kubectl("get", "cm", "large", "-n", ns, "-o", "json", at=pair.b).stdout)["data"]["k"] == value
    far_too_large = {**config_map("larger", ns), "data": {"k": "x" * (4 << 20)}}
    said = refused(kubectl("create", "-f", "-", stdin=json.dumps(far_too_large), check=False))
    assert "(RequestEntityTooLarge)" in said and "Request entity too large: limit is " in said
    too_large = {**config_map("larger", ns), "data": {"k": "x" * (1 << 20) + "y"}}
    assert "Too long: may not be more than 1048576 bytes" in refused(kubectl("create", "-f", "-", stdin=json.dumps(too_large), check=False))


def test_a_write_is_seen_at_once_through_the_other_instance(pair, ns):
    """An object created at one instance is at once read and listed at the other, a hundred
    times. An object deleted at one is at once gone at the other."""
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for i in range(100):
        writer, reader = (pair.a, pair.b) if i % 2 else (pair.b, pair.a)
        name = f"n{i}"
        code, body = writer.request("POST", path, config_map(name, ns))
        assert code == 201, body
        code, body = reader.get(f"{path}/{name}")
        assert code == 200, (i, body)
        code, listed = reader.get(path)
        assert name in [o["metadata"]["name"] for o in json.loads(listed)["items"]], i
        assert reader.request("DELETE", f"{path}/{name}")[0] == 200
        assert writer.get(f"{path}/{name}")[0] == 404, i
