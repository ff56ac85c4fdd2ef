# SPDX-License-Identifier: Apache-2.0
"""The controllers of holdfastd: identity Leases and their collector, and the workspace
initializer. Nothing else may write."""
import http.client
import json
import signal
import threading
import urllib.parse

from holdfastd import BUILT_IN, LEASE, manifest_key, phase, wait_until, workspace

LEASES = "/registry/leases/kube-system/"
TERM = "/registry.holdfast/terms/kube-system/holdfast-controllers"
LEASE_EVENTS = "/registry/events/kube-system/holdfast-controllers.leader-"
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"


def identity_lease(event, instance):
    return (event["key"].startswith(LEASES) and event["key"] != LEASE and event["type"] == "PUT"
            and event["object"]["metadata"].get("annotations", {}).get("holdfast.dev/instance") == instance)


def wait_identity_lease(cluster, instance, after=0):
    return cluster.witness.wait_for(f"{instance}'s identity Lease", lambda e: identity_lease(e, instance), after)["key"]


def test_a_foreign_change_of_an_identity_lease_does_not_last(cluster):
    """The instance keeps what others add, but not what they change of its own: clients would follow a foreign address."""
    a = cluster.instance("a").wait_ready()
    key = wait_identity_lease(cluster, "a")
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{key.rsplit('/', 1)[1]}"
    before = json.loads(a.get(path)[1])
    mark = cluster.witness.mark()
    code, text = a.request("PATCH", path, {
        "metadata": {"labels": None, "annotations": {"holdfast.dev/endpoint": "https://10.1.2.3:6443", "holdfast.dev/ca": "sha256:00", "holdfast.dev/host": None,
                                                     "example.com/note": "kept"}},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 7}}, headers={"Content-Type": "application/merge-patch+json"})
    assert code == 200, text

    def mended(event):
        after = event["object"] if identity_lease(event, "a") else {"spec": {}}
        return after["spec"].get("holderIdentity") == before["spec"]["holderIdentity"]

    event = cluster.witness.wait_for("the Lease to be as it was", mended, mark + 1)
    after = event["object"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["annotations"] == {**before["metadata"]["annotations"], "example.com/note": "kept"}
    assert {name: value for name, value in after["spec"].items() if name != "renewTime"} == {
        name: value for name, value in before["spec"].items() if name != "renewTime"}


def test_identity_leases_follow_their_instances(cluster):
    """CR05: An identity Lease is created, renewed, and deleted by a clean stop. After a crash it
    is collected. The Lease of a living instance is never collected, not even after a hand-over."""
    witness = cluster.witness
    a = cluster.instance("a").wait_ready()
    witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    others = {name: cluster.instance(name) for name in ("b", "crashes", "sleeps", "restarts")}
    keys = {name: wait_identity_lease(cluster, name) for name in ("a", *others)}
    assert len(set(keys.values())) == 5
    lease = next(e for e in witness.seen() if e["key"] == keys["b"])["object"]
    assert lease["spec"]["leaseDurationSeconds"] == 40 and lease["spec"]["holderIdentity"] == others["b"].wait_ready().identity()
    assert lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"]

    # A restarted process is another incarnation: it has another Lease, and the old one is deleted.
    others["restarts"].wait_ready().send(signal.SIGTERM)
    assert others["restarts"].wait() == 0
    witness.wait_for("its deletion", lambda e: e["key"] == keys["restarts"] and e["type"] == "DELETE")
    mark = witness.mark()
    cluster.instance("restarts").wait_ready()
    assert wait_identity_lease(cluster, "restarts", mark) != keys["restarts"]

    # One instance is killed and one is stopped. The leadership changes meanwhile, so the new leader
    # starts to count anew.
    for name in ("crashes", "sleeps"):
        others[name].wait_ready()
    others["crashes"].send(signal.SIGKILL)
    others["sleeps"].pause()
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    taken = witness.wait_holder(lambda h: h and "_a_" not in h, "another to lead", mark)
    gone = [witness.wait_for(f"{name}'s Lease to be collected", lambda e, k=keys[name]: e["key"] == k and e["type"] == "DELETE", mark)
            for name in ("crashes", "sleeps")]
    for event in gone:
        assert event["t"] - taken["t"] >= 39.9e9

    mark = witness.mark()
    others["sleeps"].send(signal.SIGCONT)
    wait_identity_lease(cluster, "sleeps", mark)
    # Only the Leases of instances that ended or were stopped have been deleted.
    deleted = {e["key"] for e in witness.seen() if e["type"] == "DELETE" and e["key"].startswith(LEASES)}
    assert deleted == {keys[name] for name in ("a", "restarts", "crashes", "sleeps")}
    renewals = [e for e in witness.seen() if e["key"] == keys["b"]]
    assert len(renewals) >= 4


def post_many(instance, names, outcomes):
    """Creates the workspaces one after the other on one connection, and continues at the next
    instance when this one ends."""
    where = urllib.parse.urlsplit(instance.url)
    connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=30, context=instance.context())
    while names:
        try:
            connection.request("POST", WORKSPACES, json.dumps(workspace(names[0])), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            outcomes.append((names[0], answer.status))
        except (OSError, http.client.HTTPException) as error:
            outcomes.append((names[0], repr(error)))
            return
        names.pop(0)


def test_500_workspaces_become_ready_during_hand_overs(cluster):
    n, n_threads = 500, 8
    witness = cluster.witness
    a = cluster.instance("a").wait_ready()
    witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b, c = (cluster.instance(name) for name in "bc")
    c.wait_ready()
    b.wait_ready()
    # One workspace finds its namespace already there.
    assert c.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ws-w0"}})[0] == 201
    outcomes = []
    threads = [threading.Thread(target=post_many, args=(c, [f"w{i}" for i in range(t, n, n_threads)], outcomes)) for t in range(n_threads)]
    for t in threads:
        t.start()
    wait_until("a hundred workspaces", lambda: len(outcomes) >= 100)
    a.send(signal.SIGTERM)
    wait_until("two hundred workspaces", lambda: len(outcomes) >= 200)
    leader = b if witness.wait_holder(lambda h: h and "_a_" not in h, "another to lead", 0)["object"]["spec"]["holderIdentity"] == b.identity() else c
    b.send(signal.SIGKILL if leader is b else signal.SIGTERM)  # if b leads, this second change of leaders is a crash
    for t in threads:
        t.join()
    assert sorted(outcomes) == sorted((f"w{i}", 201) for i in range(n))

    def phases():
        seen = {}
        for event in witness.seen():
            # not the workspace `default`, which the bootstrap creates
            if event["key"].startswith("/registry/tenancy.holdfast.dev/workspaces/w"):
                seen.setdefault(event["key"].rsplit("/", 1)[1], []).append(phase(event))
        return seen

    wait_until("all to be Ready", lambda: sum(p[-1] == "Ready" for p in phases().values()) == n, every=0.3)
    wrong = {name: p for name, p in phases().items() if p != [None, "Scheduling", "Initializing", "Ready"]}
    assert wrong == {}
    assert {e["key"] for e in witness.seen()} >= {f"/registry/namespaces/ws-w{i}" for i in range(n)}
    assert a.wait() == 0


def test_disabled_controllers_write_nothing(cluster):
    witness = cluster.witness
    a = cluster.instance("a", "--controllers=*,-workspace-initializer").wait_ready()
    wait_identity_lease(cluster, "a")
    assert a.request("POST", WORKSPACES, workspace("untouched"))[0] == 201
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    assert [phase(e) for e in witness.seen() if e["key"].endswith("/untouched")] == [None]

    # Without controllers an instance contends, leads, and writes nothing but the Lease, its term
    # record, Events, and the four namespaces.
    mark = witness.mark()
    b = cluster.instance("b", "--controllers=-identity-lease").wait_ready()
    witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    for _ in range(4):
        at = witness.mark()
        witness.wait_holder(lambda h: "_b_" in h, "a renewal", at)
    assert b.leader()["state"] == "leading"
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    assert {e["key"] for e in witness.seen()[mark:] if not e["key"].startswith(LEASE_EVENTS)} == {LEASE, TERM}
    namespaces = {e["key"] for e in witness.seen() if e["key"].startswith("/registry/namespaces/")}
    assert namespaces == {f"/registry/namespaces/{n}" for n in ("kube-system", "kube-public", "kube-node-lease", "default")}


def test_nothing_outside_the_registered_set_writes(cluster):
    """Checks all keys of etcd, not only those of the API."""
    everything = cluster.add(type(cluster.witness)(cluster.etcd, cluster.directory, prefix=""))
    b = cluster.instance("b", "--controllers=-identity-lease").wait_ready()
    everything.wait_holder(lambda h: "_b_" in h, "b to lead")
    assert b.request("POST", WORKSPACES, workspace("untouched"))[0] == 201
    at = everything.mark()
    for _ in range(4):
        at = everything.mark()
        everything.wait_holder(lambda h: "_b_" in h, "a renewal", at)
    bootstrapped = {"/registry/configmaps/kube-system/holdfast-bootstrap", *(manifest_key(m) for m in BUILT_IN)}
    compactor = {"/registry.holdfast/compact"}  # the server's, not a controller's
    assert {e["key"] for e in everything.seen() if not e["key"].startswith(LEASE_EVENTS)} - compactor == bootstrapped | {
        LEASE, TERM, "/registry/tenancy.holdfast.dev/workspaces/untouched"} | {
        f"/registry/namespaces/{n}" for n in ("kube-system", "kube-public", "kube-node-lease", "default")}
