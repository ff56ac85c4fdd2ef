# SPDX-License-Identifier: Apache-2.0
"""Deletion of namespaces (emptied, with conditions that say what remains, finalized, resumed by
the next leader), and expiry of Events."""
import json
import signal
import threading

import pytest

from holdfastd import leaderless, wait_until

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def server(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    return a


def make(server, name):
    assert server.request("POST", NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})[0] == 201


def fill(server, ns, name, **metadata):
    return server.request("POST", f"{NAMESPACES}/{ns}/configmaps",
                          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}})


def lease(server, ns, name, **metadata):
    return server.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                          {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **metadata}})


def is_namespace(name, kind):
    return lambda e: e["type"] == kind and e["key"] == f"/registry/namespaces/{name}"


def conditions(event):
    return {c["type"]: c for c in event.get("object", {}).get("status", {}).get("conditions", [])}


def release(server, path):
    found = json.loads(server.get(path)[1])
    found["metadata"]["finalizers"] = []
    assert server.request("PUT", path, found)[0] == 200


def given(ns):
    """The keys of what controllers add to every namespace."""
    return {f"/registry/serviceaccounts/{ns}/default", f"/registry/configmaps/{ns}/kube-root-ca.crt"}


def contents(cluster, ns):
    """The keys of the namespace in etcd, as the witness sees them."""
    there = set()
    for e in cluster.witness.seen():
        if f"/{ns}/" in e["key"]:
            (there.add if e["type"] == "PUT" else there.discard)(e["key"])
    return there


def test_contents_are_deleted_before_the_namespace(cluster, server):
    make(server, "full")
    for i in range(30):
        assert fill(server, "full", f"c{i}")[0] == 201
    assert lease(server, "full", "l")[0] == 201
    assert server.request("DELETE", f"{NAMESPACES}/full")[0] == 200
    end = cluster.witness.wait_for("its end", is_namespace("full", "DELETE"))
    assert contents(cluster, "full") == set()
    assert all(e["rev"] < end["rev"] for e in cluster.witness.seen() if "/full/" in e["key"])
    assert server.get(f"{NAMESPACES}/full")[0] == 404
    make(server, "full")  # the name can be used again
    assert fill(server, "full", "again")[0] == 201


def test_conditions_say_what_remains(cluster, server):
    make(server, "held")
    assert fill(server, "held", "free")[0] == 201
    assert fill(server, "held", "one", finalizers=["test/holds"])[0] == 201
    assert lease(server, "held", "two", finalizers=["test/holds", "test/holds-too"])[0] == 201
    assert server.request("DELETE", f"{NAMESPACES}/held")[0] == 200
    said = conditions(cluster.witness.wait_for("the condition", lambda e: conditions(e).get("NamespaceFinalizersRemaining", {}).get("status")
                                               == "True"))
    assert said["NamespaceContentRemaining"]["reason"] == "SomeResourcesRemain"
    assert said["NamespaceContentRemaining"]["message"] == ("Some resources are remaining: configmaps. has 1 resource instances, "
                                                            "leases.coordination.k8s.io has 1 resource instances")
    assert said["NamespaceDeletionContentFailure"]["status"] == "False"
    held = cluster.witness.wait_for("both named", lambda e: "test/holds in 2 resource instances, test/holds-too in 1 resource instances"
                                    in conditions(e).get("NamespaceFinalizersRemaining", {}).get("message", ""))
    assert held["object"]["status"]["phase"] == "Terminating" and held["object"]["spec"]["finalizers"] == ["kubernetes"]
    code, text = fill(server, "held", "late")
    assert code == 403 and "because it is being terminated" in text
    release(server, f"{NAMESPACES}/held/configmaps/one")
    cluster.witness.wait_for("one kind less", lambda e: conditions(e).get("NamespaceContentRemaining", {}).get("message")
                             == "Some resources are remaining: leases.coordination.k8s.io has 1 resource instances")
    release(server, "/apis/coordination.k8s.io/v1/namespaces/held/leases/two")
    cluster.witness.wait_for("its end", is_namespace("held", "DELETE"))


def test_pods_go_first(cluster):
    """A pod that has not ended may still use the other objects."""
    a = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()
    make(a, "n")
    assert fill(a, "n", "used")[0] == 201
    pod = {"metadata": {"name": "p", "finalizers": ["test/holds"]}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert a.request("POST", f"{NAMESPACES}/n/pods", pod)[0] == 201
    assert a.request("DELETE", f"{NAMESPACES}/n")[0] == 200
    said = conditions(cluster.witness.wait_for("the condition", lambda e: conditions(e).get("NamespaceContentRemaining", {}).get("status")
                                               == "True"))
    assert said["NamespaceContentRemaining"]["message"] == "Some resources are remaining: pods. has 1 resource instances"
    assert said["NamespaceDeletionContentFailure"]["status"] == "False"
    assert "deletionTimestamp" in json.loads(a.get(f"{NAMESPACES}/n/pods/p")[1])["metadata"]
    assert a.get(f"{NAMESPACES}/n/configmaps/used")[0] == 200 and given("n") <= contents(cluster, "n")
    release(a, f"{NAMESPACES}/n/pods/p")
    cluster.witness.wait_for("its end", is_namespace("n", "DELETE"))
    gone = {e["key"]: e["rev"] for e in cluster.witness.seen() if e["type"] == "DELETE"}
    assert gone["/registry/pods/n/p"] < gone["/registry/configmaps/n/used"]


def test_no_creation_survives_the_deletion(cluster, server):
    """Eight clients create objects while the namespace is deleted. Each creation is either
    refused or deleted with the namespace."""
    for n in range(5):
        ns, answers = f"race{n}", []
        make(server, ns)

        def create(k, ns=ns, answers=answers):
            for i in range(100000):
                code, _ = fill(server, ns, f"c{k}-{i}")
                answers.append(code)
                if code != 201:
                    return

        threads = [threading.Thread(target=create, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        wait_until("some creations", lambda answers=answers: len(answers) >= 20)
        assert server.request("DELETE", f"{NAMESPACES}/{ns}")[0] == 200
        for t in threads:
            t.join()
        assert set(answers) <= {201, 403, 404}
        cluster.witness.wait_for("its end", is_namespace(ns, "DELETE"))
        wait_until("nothing to be left", lambda ns=ns: not contents(cluster, ns))
        created = [e for e in cluster.witness.seen() if f"/{ns}/c" in e["key"] and e["type"] == "PUT" and "deletionTimestamp" not in
                   e["object"]["metadata"]]
        assert len(created) == answers.count(201)


def test_a_deletion_is_resumed_by_the_next_leader(cluster):
    """LK01: The namespace is marked while no instance leads, and half emptied by a leader that
    is killed. The next leader continues."""
    witness = cluster.witness
    serving = leaderless(cluster)
    for ns in ("marked", "freed"):
        make(serving, ns)
        assert fill(serving, ns, "c", **({"finalizers": ["test/holds"]} if ns == "freed" else {}))[0] == 201
        assert serving.request("DELETE", f"{NAMESPACES}/{ns}")[0] == 200
    assert contents(cluster, "marked") == {"/registry/configmaps/marked/c"}
    a = cluster.instance("a").wait_ready()
    witness.wait_for("the end of one", is_namespace("marked", "DELETE"))
    witness.wait_for("the condition of the other", lambda e: e["key"].endswith("/freed") and conditions(e))
    a.send(signal.SIGKILL)
    a.wait()
    release(serving, f"{NAMESPACES}/freed/configmaps/c")
    assert serving.get(f"{NAMESPACES}/freed")[0] == 200
    cluster.instance("b").wait_ready()
    witness.wait_for("the end of the other", is_namespace("freed", "DELETE"))


def test_contents_are_deleted_if_another_client_finalizes(cluster):
    """Another client finalizes the namespace while the leader is stopped. Its contents are
    deleted all the same."""
    serving = leaderless(cluster)
    a = cluster.instance("a", fast=False).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    gone = [f"gone{i}" for i in range(20)] + ["kube-gone"]
    for ns in gone:
        make(serving, ns)
        assert fill(serving, ns, "c")[0] == 201
        assert lease(serving, ns, "l")[0] == 201
    a.pause()
    for ns in gone:
        found = json.loads(serving.request("DELETE", f"{NAMESPACES}/{ns}")[1])
        found["spec"]["finalizers"] = []
        assert serving.request("PUT", f"{NAMESPACES}/{ns}/finalize", found)[0] == 200
    a.send(signal.SIGCONT)
    for ns in gone:
        cluster.witness.wait_for(f"the end of {ns}", is_namespace(ns, "DELETE"))
        wait_until(f"nothing to be left of {ns}", lambda ns=ns: not contents(cluster, ns))


def test_a_recreated_namespace_keeps_its_contents(cluster):
    """Another client finalizes the namespace and creates it again. The leader, which knows only
    the old one, deletes nothing of the new one."""
    serving = leaderless(cluster)
    a = cluster.instance("a", fast=False).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    again = [f"again{i}" for i in range(60)]
    for ns in again:
        make(serving, ns)
        assert fill(serving, ns, "held", finalizers=["test/holds"])[0] == 201
        assert serving.request("DELETE", f"{NAMESPACES}/{ns}")[0] == 200
    for ns in again:
        cluster.witness.wait_for("its condition", lambda e, ns=ns: e["key"].endswith(f"/{ns}") and conditions(e))
    a.pause()
    for ns in again:
        found = json.loads(serving.get(f"{NAMESPACES}/{ns}")[1])
        found["spec"]["finalizers"] = []
        assert serving.request("PUT", f"{NAMESPACES}/{ns}/finalize", found)[0] == 200
        release(serving, f"{NAMESPACES}/{ns}/configmaps/held")
        make(serving, ns)
        assert fill(serving, ns, "new")[0] == 201
    make(serving, "mark")
    assert serving.request("DELETE", f"{NAMESPACES}/mark")[0] == 200
    a.send(signal.SIGCONT)
    cluster.witness.wait_for("the leader to go on", is_namespace("mark", "DELETE"))
    for ns in again:  # beside the objects that every namespace gets
        assert contents(cluster, ns) - given(ns) == {f"/registry/configmaps/{ns}/new"}


def event(name, **more):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": {"kind": "X"}, **more}


def test_events_expire_after_their_time_to_live(cluster):
    """Events are deleted after their time to live, even if they have times in the future, or
    were created while no instance led."""
    path, key = "/api/v1/namespaces/default/events", "/registry/events/default/"
    witness = cluster.witness
    serving = leaderless(cluster)
    a = cluster.instance("a", "--event-ttl=4s").wait_ready()
    witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    assert serving.request("POST", path, event("old"))[0] == 201
    first = witness.wait_for("the first", lambda e: e["key"] == key + "old")
    assert serving.request("POST", path, event("of-the-future", lastTimestamp="2999-01-01T00:00:00Z"))[0] == 201
    end = witness.wait_for("the end of the first", lambda e: e["key"] == key + "old" and e["type"] == "DELETE")
    assert end["t"] - first["t"] >= 2.9e9  # creationTimestamp has whole seconds
    witness.wait_for("a time in the future not to count", lambda e: e["key"] == key + "of-the-future" and e["type"] == "DELETE")
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    assert serving.request("POST", path, event("leaderless"))[0] == 201
    cluster.instance("b", "--event-ttl=1s").wait_ready()
    witness.wait_for("the end of what came without a leader", lambda e: e["key"] == key + "leaderless" and e["type"] == "DELETE")
