# SPDX-License-Identifier: Apache-2.0
"""kubectl reads objects: get in each output format, watch, describe, discovery, paging."""
import json
import re
import subprocess

from holdfastd import wait_until


def made(pair, ns, *names, **labels):
    for name in names:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": name}}
        code, text = pair.a.request("POST", f"/api/v1/namespaces/{ns}/configmaps", body)
        assert code == 201, text


def rows(done):
    return [line.split() for line in done.stdout.splitlines()]


def test_get_supports_each_output_format(pair, kubectl, ns):
    made(pair, ns, "one", "two", tier="front")
    made(pair, ns, "three", tier="back")
    for at in (pair.a, pair.b):
        table = rows(kubectl("get", "configmaps", "-n", ns, at=at))
        assert table[0] == ["NAME", "DATA", "AGE"]
        assert [r[:2] for r in table[1:]] == [["kube-root-ca.crt", "1"], ["one", "1"], ["three", "1"], ["two", "1"]]
        assert rows(kubectl("get", "cm", "-n", ns, "-o", "wide", at=at))[0] == ["NAME", "DATA", "AGE"]
        assert kubectl("get", "cm", "-n", ns, "-o", "name", at=at).stdout.split() == [
            "configmap/kube-root-ca.crt", "configmap/one", "configmap/three", "configmap/two"]
        assert kubectl("get", "cm", "-n", ns, "-l", "tier=front", "-o", "name", at=at).stdout.split() == ["configmap/one", "configmap/two"]
        assert kubectl("get", "cm", "-n", ns, "-l", "tier,tier notin (front)", "-o", "name", at=at).stdout.split() == ["configmap/three"]
        assert kubectl("get", "cm", "-n", ns, "--field-selector", "metadata.name=two", "-o", "name", at=at).stdout.split() == ["configmap/two"]
        every = rows(kubectl("get", "cm", "-A", at=at))
        assert every[0] == ["NAMESPACE", "NAME", "DATA", "AGE"] and [ns, "three", "1"] in [r[:3] for r in every]
        as_json = json.loads(kubectl("get", "cm", "-n", ns, "-o", "json", at=at).stdout)
        assert as_json["kind"] == "List" and [o["kind"] for o in as_json["items"]] == ["ConfigMap"] * 4
        one = json.loads(kubectl("get", "cm", "one", "-n", ns, "-o", "json", at=at).stdout)
        assert one["data"] == {"k": "one"} and one["apiVersion"] == "v1" and one["metadata"]["uid"]
        assert "k: one" in kubectl("get", "cm", "one", "-n", ns, "-o", "yaml", at=at).stdout
        assert kubectl("get", "cm", "one", "-n", ns, "-o", "jsonpath={.data.k}", at=at).stdout == "one"
        assert rows(kubectl("get", "cm", "-n", ns, "--no-headers", "-o", "custom-columns=N:.metadata.name", at=at)) == [
            ["kube-root-ca.crt"], ["one"], ["three"], ["two"]]
        labels = rows(kubectl("get", "cm", "-n", ns, "--show-labels", at=at))
        assert labels[0][-1] == "LABELS" and labels[2][-1] == "tier=front"
        both = kubectl("get", "cm/one", "cm/two", "-n", ns, "-o", "name", at=at).stdout.split()
        assert both == ["configmap/one", "configmap/two"]
    assert "No resources found in" in kubectl("get", "events", "-n", ns).stderr


def test_every_kind_has_a_table(pair, kubectl):
    assert rows(kubectl("get", "ns"))[0] == ["NAME", "STATUS", "AGE"]
    assert rows(kubectl("get", "leases", "-n", "kube-system"))[0] == ["NAME", "HOLDER", "AGE"]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "seen"}}))
    wait_until("the workspace to be Ready", lambda: ["seen", "Ready"] in [r[:2] for r in rows(kubectl("get", "ws"))])
    assert rows(kubectl("get", "workspaces"))[0] == ["NAME", "PHASE", "AGE"]
    kubectl("delete", "ws", "seen")


def test_discovery_lists_every_resource(pair, kubectl):
    table = rows(kubectl("api-resources", "--no-headers", at=pair.b))
    found = {r[0]: r[1:] for r in reversed(table)}  # reversed: of two rows with one name the first one counts
    version = ["v1"] if kubectl.version > (1, 19) else []
    assert found["configmaps"] == ["cm", *version, "true", "ConfigMap"]
    assert found["namespaces"] == ["ns", *version, "false", "Namespace"]
    assert found["events"] == ["ev", *version, "true", "Event"]
    assert ["events", "ev", "events.k8s.io/v1", "true", "Event"] in table
    assert found["priorityclasses"] == ["pc", "scheduling.k8s.io/v1", "false", "PriorityClass"]
    assert found["runtimeclasses"] == ["node.k8s.io/v1", "false", "RuntimeClass"]
    assert found["apiservices"] == ["apiregistration.k8s.io/v1", "false", "APIService"]
    assert kubectl("api-resources", "--no-headers", "-o", "name", "--api-group=apiregistration.k8s.io").stdout == "apiservices.apiregistration.k8s.io\n"
    assert found["leases"] == ["coordination.k8s.io/v1", "true", "Lease"]
    assert found["workspaces"] == ["ws", "tenancy.holdfast.dev/v1alpha1", "false", "Workspace"]
    # Each short name and each singular name means the resource that discovery lists.
    for short, plural in (("cm", "configmap"), ("ns", "namespace"), ("ev", "event"), ("ws", "workspace"), ("lease", "lease"), ("pc", "priorityclass"),
                          ("runtimeclass", "runtimeclass"), ("apiservice", "apiservice")):
        kubectl("get", short, "-A")
        kubectl("get", plural, "-A")
    assert kubectl("api-versions").stdout.split() == [
        "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1", "coordination.k8s.io/v1", "coordination.k8s.io/v1beta1",
        "events.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1", "node.k8s.io/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "tenancy.holdfast.dev/v1alpha1", "v1"]
    assert "holdfast" in kubectl("version").stdout
    assert json.loads(kubectl("get", "--raw", "/version").stdout)["major"] == "1"
    assert kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert "ConfigMap" in kubectl("explain", "configmaps").stdout
    assert 'doesn\'t have a resource type "nothing"' in kubectl("get", "nothing", check=False).stderr
    # cluster-info lists services, which this server does not have. That gives a clear error, and no hang.
    assert "services" in kubectl("cluster-info", check=False).stderr


def test_describe_works(pair, kubectl, ns):
    made(pair, ns, "one", tier="front")
    text = kubectl("describe", "configmap", "one", "-n", ns, at=pair.b).stdout
    assert "tier=front" in text and "k:" in text
    assert "Holder Identity:" in kubectl("describe", "lease", "holdfast-controllers", "-n", "kube-system").stdout
    assert "Active" in kubectl("describe", "namespace", ns).stdout
    assert 'configmaps "none" not found' in kubectl("describe", "configmap", "none", "-n", ns, check=False).stderr


def test_lists_are_read_in_pages(pair, kubectl, ns):
    names = [f"n{i:03d}" for i in range(100)]
    made(pair, ns, *names)
    for at in (pair.a, pair.b):
        done = kubectl("get", "cm", "-n", ns, "--chunk-size=10", "-o", "name", "-v=6", at=at)
        assert done.stdout.split() == [f"configmap/{n}" for n in ("kube-root-ca.crt", *names)]
        assert done.stderr.count("limit=10") >= 10
        assert len(rows(kubectl("get", "cm", "-n", ns, "--chunk-size=10", at=at))) == 102
        assert len(rows(kubectl("get", "cm", "-n", ns, "--chunk-size=0", at=at))) == 102
    kubectl("delete", "cm", "--all", "-n", ns)
    assert kubectl("get", "cm", "-n", ns, "-o", "name").stdout in ("", "configmap/kube-root-ca.crt\n")  # a controller may have restored this one already


def watch(kubectl, at, directory, *args):
    command = [kubectl.binary, f"--kubeconfig={at.kubeconfig}", f"--cache-dir={directory / 'kube-cache'}", "get", *args]
    return subprocess.Popen(command, stdout=open(directory / "watch.out", "wb"), stderr=subprocess.STDOUT)


def test_a_watch_shows_changes_through_the_other_instance(pair, kubectl, ns, tmp_path):
    """A watch at b shows changes made at a (added, modified, deleted), as a table and as
    objects."""
    made(pair, ns, "old")
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for form in ("table", "json"):
        child = watch(kubectl, pair.b, tmp_path, "cm", "-n", ns, "-w", *(["-o", "json"] if form == "json" else []))
        try:
            def seen():
                lines = (tmp_path / "watch.out").read_text().splitlines()
                return "\n".join(line for line in lines if "kube-root-ca.crt" not in line)  # every namespace has it
            wait_until("the first object", lambda: ('"old"' if form == "json" else "old ") in seen())
            made(pair, ns, "new")
            wait_until("the added object", lambda: "new" in seen())
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"k": "1", "l": "2", "m": "3", "changed": "4"}}
            assert pair.a.request("PUT", f"{path}/new", body)[0] == 200
            wait_until("the modified object", lambda: ("changed" if form == "json" else "new 4") in re.sub(" +", " ", seen()))
            before = len(seen())
            assert pair.a.request("DELETE", f"{path}/new")[0] == 200
            wait_until("the deleted object", lambda: len(seen()) > before)
            if form == "table":
                lines = [line.split()[:2] for line in seen().splitlines()]
                assert lines == [["NAME", "DATA"], ["old", "1"], ["new", "1"], ["new", "4"], ["new", "4"]]
            assert child.poll() is None
        finally:
            child.kill()
            child.wait()
