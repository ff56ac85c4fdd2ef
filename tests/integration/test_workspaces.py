# SPDX-License-Identifier: Apache-2.0
"""Initializers of other programs, and the deletion of workspaces with their contents, even if
leaders die meanwhile."""
import json
import signal

import pytest

from holdfastd import leaderless, phase, workspace

WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
KEY = "/registry/tenancy.holdfast.dev/workspaces/"


@pytest.fixture
def server(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    return a


def make(server, name, **spec):
    code, text = server.request("POST", WORKSPACES, {**workspace(name), **({"spec": spec} if spec else {})})
    assert code == 201, text
    return json.loads(text)


def wait_phase(cluster, name, wanted, after=0):
    return cluster.witness.wait_for(f"{name} to be {wanted}", lambda e: e["key"] == KEY + name and phase(e) == wanted, after)["object"]


def wait_gone(cluster, *keys, after=0):
    return [cluster.witness.wait_for(f"the end of {k}", lambda e, k=k: e["type"] == "DELETE" and e["key"] == k, after)["rev"] for k in keys]


def register(server, name, cm):
    """Registers an initializer with a ConfigMap."""
    assert server.request("POST", "/api/v1/namespaces/kube-system/configmaps",
                          {"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": cm, "labels": {"tenancy.holdfast.dev/initializer": name}}})[0] == 201


def done_with(server, name, initializer):
    """Removes the initializer from the list, as the program behind it does."""
    while True:
        found = json.loads(server.get(f"{WORKSPACES}/{name}")[1])
        found["status"]["initializers"].remove(initializer)
        code, text = server.request("PUT", f"{WORKSPACES}/{name}/status", found)
        if code != 409:
            assert code == 200, text
            return


def test_all_initializers_are_waited_for(cluster, server):
    """Initializers of the workspace and registered ones are on the list once, and each is waited
    for. An initializer that is registered later is not."""
    make(server, "before")
    wait_phase(cluster, "before", "Ready")
    register(server, "quota.test", "quota")
    register(server, "network.test", "network")
    make(server, "one", initializers=["own.test", "quota.test"])
    first = wait_phase(cluster, "one", "Initializing")
    assert first["status"]["initializers"] == ["system:namespace", "own.test", "quota.test", "network.test"]
    cluster.witness.wait_for("its namespace", lambda e: e["key"] == "/registry/namespaces/ws-one")
    cluster.witness.wait_for("ours to be done", lambda e: e["key"] == KEY + "one" and phase(e) == "Initializing"
                             and e["object"]["status"]["initializers"] == ["own.test", "quota.test", "network.test"])
    register(server, "late.test", "late")
    for initializer in ("quota.test", "own.test", "network.test"):
        assert json.loads(server.get(f"{WORKSPACES}/one")[1])["status"]["phase"] == "Initializing"
        done_with(server, "one", initializer)
    ready = wait_phase(cluster, "one", "Ready")
    assert not ready["status"].get("initializers")

    # Without the registration, the next workspace does not wait for it.
    for cm in ("quota", "network", "late"):
        assert server.request("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{cm}")[0] == 200
    make(server, "after")
    wait_phase(cluster, "after", "Ready")
    phases = [phase(e) for e in cluster.witness.seen() if e["key"] == KEY + "after"]
    assert phases == [None, "Scheduling", "Initializing", "Ready"]


def test_a_deletion_deletes_namespace_and_contents(cluster, server):
    made = make(server, "one")
    wait_phase(cluster, "one", "Ready")
    ns = json.loads(server.get("/api/v1/namespaces/ws-one")[1])
    assert ns["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    for i in range(5):
        assert server.request("POST", "/api/v1/namespaces/ws-one/configmaps",
                              {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}})[0] == 201
    assert server.request("DELETE", f"{WORKSPACES}/one")[0] == 200
    revisions = wait_gone(cluster, "/registry/configmaps/ws-one/c4", "/registry/namespaces/ws-one", KEY + "one")
    assert revisions == sorted(revisions)

    # A workspace of the same name is another incarnation with another namespace.
    mark = cluster.witness.mark()
    make(server, "one")
    wait_phase(cluster, "one", "Ready", mark)
    assert json.loads(server.get("/api/v1/namespaces/ws-one")[1])["metadata"]["uid"] != ns["metadata"]["uid"]


def test_a_workspace_can_be_deleted_before_it_is_ready(cluster, server):
    make(server, "one", initializers=["never.test"])
    wait_phase(cluster, "one", "Initializing")
    assert server.request("DELETE", f"{WORKSPACES}/one")[0] == 200
    wait_gone(cluster, KEY + "one")
    assert server.get("/api/v1/namespaces/ws-one")[0] == 404


def test_a_namespace_that_existed_before_outlives_the_workspace(cluster, server):
    assert server.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ws-one"}})[0] == 201
    make(server, "one")
    wait_phase(cluster, "one", "Ready")
    assert server.request("DELETE", f"{WORKSPACES}/one")[0] == 200
    wait_gone(cluster, KEY + "one")
    assert server.get("/api/v1/namespaces/ws-one")[0] == 200


def test_an_orphaned_namespace_is_kept(cluster, server):
    make(server, "one")
    wait_phase(cluster, "one", "Ready")
    assert server.request("DELETE", f"{WORKSPACES}/one", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})[0] == 200
    wait_gone(cluster, KEY + "one")
    ns = json.loads(server.get("/api/v1/namespaces/ws-one")[1])
    assert "ownerReferences" not in ns["metadata"] and ns["status"]["phase"] == "Active"


def test_a_deletion_is_resumed_by_the_next_leader(cluster):
    """LK01: The workspace is deleted while no instance leads. Then leaders are killed when
    workspace and namespace have been marked."""
    witness = cluster.witness
    serving = leaderless(cluster)
    a = cluster.instance("a").wait_ready()
    make(serving, "one")
    wait_phase(cluster, "one", "Ready")
    assert serving.request("POST", "/api/v1/namespaces/ws-one/configmaps",
                           {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": ["test/holds"]}})[0] == 201
    a.send(signal.SIGKILL)
    a.wait()
    assert serving.request("DELETE", f"{WORKSPACES}/one")[0] == 200
    make(serving, "two")
    b = cluster.instance("b").wait_ready()
    witness.wait_for("the namespace's mark", lambda e: e["key"] == "/registry/namespaces/ws-one" and e["type"] == "PUT"
                     and "deletionTimestamp" in e["object"]["metadata"])
    b.send(signal.SIGKILL)
    b.wait()
    found = json.loads(serving.get("/api/v1/namespaces/ws-one/configmaps/c")[1])
    found["metadata"]["finalizers"] = []
    assert serving.request("PUT", "/api/v1/namespaces/ws-one/configmaps/c", found)[0] == 200
    assert serving.get(f"{WORKSPACES}/one")[0] == 200
    cluster.instance("c").wait_ready()
    wait_phase(cluster, "two", "Ready")
    wait_gone(cluster, "/registry/namespaces/ws-one", KEY + "one")
