# SPDX-License-Identifier: Apache-2.0
"""The Python Kubernetes client as a user: typed objects, conflicts, watches that resume,
compacted history."""
import json
import subprocess
import time

import pytest

from holdfastd import wait_until

client = pytest.importorskip("kubernetes.client", reason="python3-kubernetes is not installed")
config = pytest.importorskip("kubernetes.config")
watch = pytest.importorskip("kubernetes.watch")

WORKSPACES = ("tenancy.holdfast.dev", "v1alpha1", "workspaces")


def api_client(instance):
    return config.new_client_from_config(str(instance.kubeconfig))


@pytest.fixture
def core(pair):
    return client.CoreV1Api(api_client(pair.a)), client.CoreV1Api(api_client(pair.b))


@pytest.fixture
def coordination(pair):
    return client.CoordinationV1Api(api_client(pair.a)), client.CoordinationV1Api(api_client(pair.b))


GIVEN = "kube-root-ca.crt"  # the ConfigMap that every namespace has


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def reason(call, *args, **kwargs):
    with pytest.raises(client.ApiException) as caught:
        call(*args, **kwargs)
    status = json.loads(caught.value.body)
    assert status["kind"] == "Status" and status["code"] == caught.value.status
    return caught.value.status, status["reason"], status["message"]


def test_configmaps_are_typed_and_versioned(core, ns):
    a, b = core
    made = a.create_namespaced_config_map(ns, config_map("one", k="v"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo and made.data == {"k": "v"}
    read = b.read_namespaced_config_map("one", ns)
    assert read.metadata.resource_version == made.metadata.resource_version
    read.data["k"] = "w"
    changed = b.replace_namespaced_config_map("one", ns, read)
    assert changed.metadata.resource_version != made.metadata.resource_version
    assert reason(a.replace_namespaced_config_map, "one", ns, made) == (
        409, "Conflict", 'Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to the latest '
        'version and try again')
    assert reason(a.create_namespaced_config_map, ns, config_map("one"))[:2] == (409, "AlreadyExists")
    assert [o.metadata.name for o in a.list_namespaced_config_map(ns).items] == [GIVEN, "one"]
    assert [o.data["k"] for o in b.list_config_map_for_all_namespaces(field_selector="metadata.name=one").items] == ["w"]
    gone = a.delete_namespaced_config_map("one", ns)
    assert gone.status == "Success"
    assert reason(b.read_namespaced_config_map, "one", ns) == (404, "NotFound", 'configmaps "one" not found')
    wrong_uid = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="not-this"))
    a.create_namespaced_config_map(ns, config_map("two"))
    assert reason(b.delete_namespaced_config_map, "two", ns, body=wrong_uid)[:2] == (409, "Conflict")


def test_namespaces_are_created_and_deleted(core, ns):
    a, b = core
    a.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=f"{ns}-py", labels={"by": "py"})))
    assert [o.metadata.name for o in b.list_namespace(label_selector="by=py").items] == [f"{ns}-py"]
    assert b.read_namespace(f"{ns}-py").status.phase == "Active"
    a.create_namespaced_config_map(f"{ns}-py", config_map("one"))
    # The finalizer of the namespace holds it, so nothing can be created in it any more.
    b.delete_namespace(f"{ns}-py")
    try:
        terminating = a.read_namespace(f"{ns}-py")
        assert terminating.status.phase == "Terminating" and terminating.metadata.deletion_timestamp
    except client.ApiException as error:  # here and below: a controller may have deleted it already
        assert error.status == 404
    code, why, message = reason(b.create_namespaced_config_map, f"{ns}-py", config_map("two"))
    assert code == 404 or (code, why) == (403, "Forbidden") and "because it is being terminated" in message
    a.delete_collection_namespaced_config_map(f"{ns}-py")
    try:
        a.replace_namespace_finalize(f"{ns}-py", client.V1Namespace(metadata=client.V1ObjectMeta(name=f"{ns}-py"), spec=client.V1NamespaceSpec()))
    except client.ApiException as error:
        assert error.status == 404
    assert reason(b.read_namespace, f"{ns}-py")[0] == 404


def test_patches_are_sent_in_both_forms(core, ns):
    a, b = core
    a.create_namespaced_config_map(ns, config_map("one", a="1", b="2"))
    assert b.patch_namespaced_config_map("one", ns, {"data": {"a": None, "c": "3"}}).data == {"b": "2", "c": "3"}
    patched = a.patch_namespaced_config_map("one", ns, [{"op": "replace", "path": "/data/b", "value": "x"}])
    assert patched.data == {"b": "x", "c": "3"}
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"d": "4"}}
    assert reason(b.patch_namespaced_config_map, "one", ns, stale)[:2] == (409, "Conflict")
    assert reason(b.patch_namespaced_config_map, "none", ns, {})[:2] == (404, "NotFound")
    a.patch_namespace_status(ns, {"status": {"conditions": [{"type": "Patched", "status": "True"}]}})
    assert [c.type for c in b.read_namespace(ns).status.conditions] == ["Patched"]


def test_deletecollection_and_status_work(core, ns):
    a, b = core
    for i in range(30):
        a.create_namespaced_config_map(ns, {"metadata": {"name": f"n{i}", "labels": {"parity": str(i % 2)}}})
    gone = b.delete_collection_namespaced_config_map(ns, label_selector="parity=1", propagation_policy="Background")
    assert gone.kind == "ConfigMapList"
    assert sorted(o.metadata.name for o in a.list_namespaced_config_map(ns).items) == sorted([GIVEN, *(f"n{i}" for i in range(0, 30, 2))])
    status = a.read_namespace_status(ns)
    status.status.conditions = [client.V1NamespaceCondition(type="Tested", status="True")]
    status.metadata.labels["also"] = "by-this-way"  # a status write changes metadata too, as in Kubernetes for built-in kinds
    status.spec.finalizers = ["not.example/by-this-way"]
    written = b.replace_namespace_status(ns, status)
    assert written.status.conditions[0].type == "Tested" and written.metadata.labels["also"] == "by-this-way"
    assert written.spec.finalizers == ["kubernetes"]
    assert a.read_namespace(ns).status.phase == "Active"


def test_leases_round_trip(coordination, ns):
    a, b = coordination
    now = client.V1MicroTime if hasattr(client, "V1MicroTime") else None
    assert now is None  # this client uses a datetime for MicroTime, and omits trailing zeros
    spec = client.V1LeaseSpec(holder_identity="py", lease_duration_seconds=15, lease_transitions=0)
    lease = a.create_namespaced_lease(ns, client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec))
    assert lease.spec.lease_transitions == 0 and lease.spec.holder_identity == "py"
    bad = client.V1Lease(metadata=client.V1ObjectMeta(name="bad"), spec=client.V1LeaseSpec(lease_duration_seconds=0))
    code, why, text = reason(b.create_namespaced_lease, ns, bad)
    assert (code, why) == (422, "Invalid") and text.endswith("spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")
    lease.metadata.resource_version = None
    assert reason(b.replace_namespaced_lease, "l", ns, lease)[:2] == (422, "Invalid")
    held = a.read_namespaced_lease("holdfast-controllers", "kube-system")
    assert held.spec.acquire_time.tzinfo and held.spec.renew_time >= held.spec.acquire_time


def test_events_are_created(core, ns):
    a, b = core
    event = client.CoreV1Event(metadata=client.V1ObjectMeta(name="e"), reason="Tested", message="it happened", type="Normal", count=1,
                               involved_object=client.V1ObjectReference(kind="ConfigMap", name="one", namespace=ns))
    a.create_namespaced_event(ns, event)
    assert [e.reason for e in b.list_namespaced_event(ns).items] == ["Tested"]
    b.delete_namespaced_event("e", ns)


def test_workspaces_are_custom_objects(pair):
    a, b = (client.CustomObjectsApi(api_client(i)) for i in (pair.a, pair.b))
    body = {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "py"}}
    a.create_cluster_custom_object(*WORKSPACES, body)
    stream = watch.Watch().stream(b.list_cluster_custom_object, *WORKSPACES, timeout_seconds=30)
    for event in stream:
        if event["object"]["metadata"]["name"] == "py" and event["object"].get("status", {}).get("phase") == "Ready":
            break
    else:
        pytest.fail("the workspace never got Ready")
    assert "py" in [w["metadata"]["name"] for w in b.list_cluster_custom_object(*WORKSPACES)["items"]]
    b.delete_cluster_custom_object(*WORKSPACES, "py")

    def is_gone():  # the controllers delete the namespace first, then the Workspace
        try:
            a.get_cluster_custom_object(*WORKSPACES, "py")
        except client.ApiException as error:
            return error.status == 404
        return False
    wait_until("the workspace to be gone", is_gone)


def test_pages_may_come_from_different_instances(core, ns):
    a, b = core
    for i in range(25):
        a.create_namespaced_config_map(ns, config_map(f"n{i:02d}"))
    names, token, pages = [], None, 0
    while pages == 0 or token:
        # Each page comes from the other instance: a continue token is valid at any instance.
        page = (a, b)[pages % 2].list_namespaced_config_map(ns, limit=10, _continue=token)
        names += [o.metadata.name for o in page.items]
        token, pages = page.metadata._continue, pages + 1
    assert pages == 3 and names == [GIVEN, *(f"n{i:02d}" for i in range(25))]


def test_a_watch_resumes_without_gaps(core, ns):
    """A watch resumes from the resourceVersion of a list or of any event, at either instance,
    without duplicate or missing events."""
    a, b = core
    start = a.list_namespaced_config_map(ns).metadata.resource_version
    for i in range(5):
        a.create_namespaced_config_map(ns, config_map(f"n{i}"))
    a.delete_namespaced_config_map("n0", ns)
    first = watch.Watch()
    seen = []
    for event in first.stream(b.list_namespaced_config_map, ns, resource_version=start, timeout_seconds=30):
        seen.append(event)
        if len(seen) == 3:
            break
    rest = []
    for event in watch.Watch().stream(a.list_namespaced_config_map, ns, resource_version=seen[-1]["object"].metadata.resource_version,
                                      timeout_seconds=30):
        rest.append(event)
        if event["type"] == "DELETED":
            break
    seen = [(e["type"], e["object"].metadata.name) for e in seen + rest]
    assert seen == [("ADDED", f"n{i}") for i in range(5)] + [("DELETED", "n0")]


def test_a_watch_ends_at_its_timeout(core, ns):
    """With timeout_seconds=1 the stream ends cleanly, and not earlier."""
    began = time.monotonic()
    events = watch.Watch().stream(core[0].list_namespaced_config_map, ns, timeout_seconds=1)
    assert [e["object"].metadata.name for e in events] == [GIVEN]
    assert time.monotonic() - began >= 0.9


def test_a_watch_from_a_compacted_version_is_gone(pair, core, ns):
    a, b = core
    ancient = a.create_namespaced_config_map(ns, config_map("one", k="0")).metadata.resource_version
    for i in range(20):
        last = a.replace_namespaced_config_map("one", ns, config_map("one", k=str(i))).metadata.resource_version
    subprocess.run(["etcdctl", f"--endpoints={pair.cluster.etcd.url}", "compact", last], env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"}, check=True,
                   capture_output=True, timeout=60)
    # a and b still have in memory what etcd has compacted; a new instance does not.
    late = client.CoreV1Api(api_client(pair.cluster.instance("c").wait_ready()))
    with pytest.raises(client.ApiException) as caught:
        list(watch.Watch().stream(late.list_namespaced_config_map, ns, resource_version=ancient, timeout_seconds=5))
    assert caught.value.status == 410, caught.value
    assert reason(late.list_namespaced_config_map, ns, resource_version=ancient, resource_version_match="Exact")[:2] == (410, "Expired")
    assert a.list_namespaced_config_map(ns, resource_version=ancient, resource_version_match="Exact").items[1].data == {"k": "0"}
    events = watch.Watch().stream(b.list_namespaced_config_map, ns, resource_version=last, timeout_seconds=1)
    assert list(events) == []
    assert a.read_namespaced_config_map("one", ns).data == {"k": "19"} and int(ancient) < int(last)
