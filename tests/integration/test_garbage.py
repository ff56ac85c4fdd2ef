# SPDX-License-Identifier: Apache-2.0
"""Garbage collection: background, foreground and orphan deletion, cycles, invalid owners, and
deletions while no instance leads."""
import json
import signal

import pytest

from holdfastd import leaderless, wait_until

MAPS = "/api/v1/namespaces/default/configmaps"
SEEN = "/registry/configmaps/default/"


@pytest.fixture
def server(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    return a


def reference(owner, **more):
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **more}


def create(server, path, name, owners=(), kind="ConfigMap", version="v1", **metadata):
    metadata = {"name": name, **metadata, **({"ownerReferences": list(owners)} if owners else {})}
    code, text = server.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": metadata})
    assert code == 201, text
    return json.loads(text)


def delete(server, path, policy):
    code, text = server.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
    assert code == 200, text


def update(server, path, change):
    """Reads, changes and writes the object until there is no conflict."""
    while True:
        code, text = server.get(path)
        assert code == 200, text
        found = json.loads(text)
        change(found)
        code, text = server.request("PUT", path, found)
        if code != 409:
            assert code == 200, text
            return json.loads(text)


def gone(cluster, *names, prefix=SEEN, after=0):
    """Waits until the objects are deleted. Returns the revisions of the deletions, in the order of the names."""
    return [cluster.witness.wait_for(f"the end of {n}", lambda e, n=n: e["type"] == "DELETE" and e["key"] == prefix + n, after)["rev"]
            for n in names]


def names(server, path=MAPS):
    """The names of the objects, without the ConfigMap that every namespace has."""
    return {item["metadata"]["name"] for item in json.loads(server.get(path)[1])["items"]} - {"kube-root-ca.crt"}


def test_background_deletion_deletes_dependents(cluster, server):
    """Dependents are deleted after their owner, and then their own dependents. A dependent with
    another owner stays and loses the reference to the deleted one."""
    owner, other = create(server, MAPS, "owner"), create(server, MAPS, "other")
    child = create(server, MAPS, "child", [reference(owner)])
    create(server, MAPS, "grandchild", [reference(child)])
    create(server, MAPS, "shared", [reference(owner), reference(other)])
    delete(server, MAPS + "/owner", "Background")
    revisions = gone(cluster, "owner", "child", "grandchild")
    assert revisions == sorted(revisions)
    kept = wait_until("the dead owner to be forgotten", lambda: [
        e for e in cluster.witness.seen() if e["key"] == SEEN + "shared" and len(e["object"]["metadata"].get("ownerReferences", [])) == 1])
    assert kept[0]["object"]["metadata"]["ownerReferences"] == [reference(other)]
    assert names(server) >= {"other", "shared"}
    # No owner was in another namespace, so there is no Event about that, not even for children of a
    # deleted owner.
    assert not [e for e in cluster.witness.seen() if e["key"].startswith("/registry/events/") and e["object"].get("reason") == "OwnerRefInvalidNamespace"]


def test_foreground_deletion_deletes_dependents_first(cluster, server):
    """The owner is deleted after the dependents that block it, and only those, also across
    kinds."""
    owner = create(server, MAPS, "owner")
    blocks = create(server, "/apis/coordination.k8s.io/v1/namespaces/default/leases", "blocks", [reference(owner, blockOwnerDeletion=True)],
                    kind="Lease", version="coordination.k8s.io/v1")
    create(server, MAPS, "grandchild", [reference(blocks, blockOwnerDeletion=True)])
    held = create(server, MAPS, "held", [reference(owner)], finalizers=["test/holds"])
    delete(server, MAPS + "/owner", "Foreground")
    grandchild, owner_gone = gone(cluster, "grandchild", "owner")
    [blocks_gone] = gone(cluster, "blocks", prefix="/registry/leases/default/")
    assert grandchild < blocks_gone < owner_gone
    found = json.loads(server.get(MAPS + "/held")[1])
    assert found["metadata"]["uid"] == held["metadata"]["uid"] and "deletionTimestamp" in found["metadata"]
    update(server, MAPS + "/held", lambda o: o["metadata"].update(finalizers=[]))
    gone(cluster, "held")


def test_a_dependent_that_stops_blocking_frees_its_owner(cluster, server):
    owner = create(server, MAPS, "owner")
    create(server, MAPS, "held", [reference(owner, blockOwnerDeletion=True)], finalizers=["test/holds"])
    delete(server, MAPS + "/owner", "Foreground")
    cluster.witness.wait_for("the dependent's mark", lambda e: e["key"] == SEEN + "held" and "deletionTimestamp" in e["object"]["metadata"])
    assert "owner" in names(server)
    update(server, MAPS + "/held", lambda o: o["metadata"]["ownerReferences"][0].update(blockOwnerDeletion=False))
    gone(cluster, "owner")
    assert "held" in names(server)


def test_a_reference_with_only_the_uid_right_does_not_block(cluster, server):
    """A dependent in another or in no namespace, or with another kind in its reference, cannot
    have that owner. The owner does not wait for it."""
    def blocking(owner, **more):
        return [{**reference(owner, blockOwnerDeletion=True), **more}]
    owners = {n: create(server, MAPS, n) for n in ("of-none", "of-another", "of-a-kind")}
    create(server, "/api/v1/namespaces", "none", blocking(owners["of-none"]), kind="Namespace")
    create(server, "/api/v1/namespaces/kube-public/configmaps", "another", blocking(owners["of-another"]), finalizers=["test/holds"])
    create(server, MAPS, "unheard", blocking(owners["of-a-kind"], kind="Unheard"))
    for name in owners:
        delete(server, f"{MAPS}/{name}", "Foreground")
    gone(cluster, *owners)
    assert "unheard" in names(server) and server.get("/api/v1/namespaces/none")[0] == 200


def test_of_two_references_with_one_uid_the_right_one_counts(cluster, server):
    """Two references have the same uid, but only one names the right owner. That one counts, and it stays."""
    owner, mark = create(server, MAPS, "owner"), create(server, MAPS, "mark")
    create(server, MAPS, "child", [reference(owner), {**reference(owner), "name": "wrong"}])
    create(server, MAPS, "last", [{**reference(mark), "name": "wrong"}])
    gone(cluster, "last")
    delete(server, MAPS + "/owner", "Background")
    gone(cluster, "owner", "child")


def test_orphan_deletion_keeps_dependents(cluster, server):
    owner, other = create(server, MAPS, "owner"), create(server, MAPS, "other")
    for i in range(20):
        create(server, MAPS, f"child{i}", [reference(owner), *([reference(other)] if i % 2 else [])])
    delete(server, MAPS + "/owner", "Orphan")
    gone(cluster, "owner")
    for item in json.loads(server.get(MAPS)[1])["items"]:
        owners = item["metadata"].get("ownerReferences", [])
        name = item["metadata"]["name"]
        assert owners == ([reference(other)] if name.startswith("child") and int(name[5:]) % 2 else []), item
    assert len(names(server)) == 21
    assert not [e for e in cluster.witness.seen() if e["type"] == "DELETE" and e["key"].startswith(SEEN + "child")]


def test_a_cycle_of_owners_is_deleted(cluster, server):
    a = create(server, MAPS, "a")
    b = create(server, MAPS, "b", [reference(a, blockOwnerDeletion=True)])
    c = create(server, MAPS, "c", [reference(b, blockOwnerDeletion=True)])
    update(server, MAPS + "/a", lambda o: o["metadata"].update(ownerReferences=[reference(c, blockOwnerDeletion=True)]))
    assert names(server) == {"a", "b", "c"}
    delete(server, MAPS + "/a", "Foreground")
    gone(cluster, "a", "b", "c")


def test_an_object_that_owns_itself_is_deleted(cluster, server):
    own = create(server, MAPS, "own")
    update(server, MAPS + "/own", lambda o: o["metadata"].update(ownerReferences=[reference(own, blockOwnerDeletion=True)]))
    delete(server, MAPS + "/own", "Foreground")
    gone(cluster, "own")


def test_impossible_owners_count_as_absent(cluster, server):
    """Owners that are absent, have another uid, are in another namespace, have an unknown kind,
    or are namespaced while the dependent is cluster-scoped."""
    elsewhere = create(server, "/api/v1/namespaces/kube-public/configmaps", "elsewhere")
    here = create(server, MAPS, "here")
    create(server, MAPS, "of-nobody", [{**reference(here), "name": "nobody", "uid": "11111111-1111-4111-8111-111111111111"}])
    create(server, MAPS, "of-another-uid", [{**reference(here), "uid": "22222222-2222-4222-8222-222222222222"}])
    create(server, MAPS, "of-elsewhere", [reference(elsewhere)])
    create(server, MAPS, "of-unknown-kind", [{**reference(here), "kind": "Unheard", "apiVersion": "nowhere.test/v1"}])
    create(server, "/api/v1/namespaces", "of-here", [reference(here)], kind="Namespace")
    gone(cluster, "of-nobody", "of-another-uid", "of-elsewhere")
    said = cluster.witness.wait_for("the event", lambda e: e["key"].startswith("/registry/events/default/of-elsewhere."))["object"]
    assert said["reason"] == "OwnerRefInvalidNamespace" and said["involvedObject"]["name"] == "of-elsewhere"
    cluster.witness.wait_for("the other event", lambda e: e["key"].startswith("/registry/events/default/of-here."))
    assert names(server) >= {"here", "of-unknown-kind"}

    # A wrong reference that finds no owner must not affect objects whose reference is right.
    public = "/api/v1/namespaces/kube-public/configmaps"
    create(server, public, "of-another-name", [{**reference(elsewhere), "name": "wrong"}])
    create(server, public, "rightly", [reference(elsewhere)])
    gone(cluster, "of-another-name", prefix="/registry/configmaps/kube-public/")
    create(server, public, "rightly-too", [reference(elsewhere)])
    create(server, public, "last", [{**reference(here), "name": "nobody", "uid": "11111111-1111-4111-8111-111111111111"}])
    gone(cluster, "last", prefix="/registry/configmaps/kube-public/")
    assert names(server, public) >= {"elsewhere", "rightly", "rightly-too"}
    assert server.get("/api/v1/namespaces/of-here")[0] == 200


def test_garbage_made_without_a_leader_is_collected(cluster):
    """LK01: The next leader handles owners that were deleted or marked, and children that were
    created, while no instance led."""
    witness = cluster.witness
    serving = leaderless(cluster)
    a = cluster.instance("a").wait_ready()
    witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    owners = {n: create(serving, MAPS, n) for n in ("background", "foreground", "orphan")}
    children = {n: create(serving, MAPS, f"{n}-child", [reference(o, blockOwnerDeletion=True)]) for n, o in owners.items()}
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    mark = witness.mark()
    for n in owners:
        delete(serving, f"{MAPS}/{n}", n.capitalize())
    create(serving, MAPS, "late-child", [reference(owners["background"])])
    late = create(serving, MAPS, "late-orphan", [reference(owners["orphan"])])
    assert names(serving) == {"foreground", "orphan", "late-child", "late-orphan", *(f"{n}-child" for n in owners)}
    cluster.instance("b").wait_ready()
    gone(cluster, "background-child", "late-child", "foreground-child", "foreground", "orphan", after=mark)
    assert names(serving) == {"orphan-child", "late-orphan"}
    for name, uid in (("orphan-child", children["orphan"]), ("late-orphan", late)):
        found = json.loads(serving.get(f"{MAPS}/{name}")[1])["metadata"]
        assert found["uid"] == uid["metadata"]["uid"] and "ownerReferences" not in found
