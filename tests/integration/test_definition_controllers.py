# SPDX-License-Identifier: Apache-2.0
"""The controllers of CustomResourceDefinitions: accepted names, the conditions, and what happens to objects when their definition, their
namespace or their owner is deleted. There are two instances, and the leader is killed in between."""
import json
import signal

from holdfastd import wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "stable.example.com"
MERGE = {"Content-Type": "application/merge-patch+json"}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural, kind, group=GROUP, short=(), singular=None, scope="Namespaced", served=True):
    names = {"plural": plural, "kind": kind, "shortNames": list(short)}
    if singular:
        names["singular"] = singular
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": names,
                     "versions": [{"name": "v1", "served": served, "storage": True, "schema": {"openAPIV3Schema": ANY}}]}}


def get(a, path):
    code, text = a.get(path)
    return json.loads(text) if code == 200 else None


def make(a, path, body):
    code, text = a.request("POST", path, body)
    assert code == 201, text
    return json.loads(text)


def patch(a, path, body):
    code, text = a.request("PATCH", path, body, headers=MERGE)
    assert code == 200, text


def condition(a, name, kind):
    found = get(a, f"{DEFINITIONS}/{name}")
    return next((c for c in (found or {}).get("status", {}).get("conditions") or [] if c["type"] == kind), None)


def has(a, name, kind, status, reason):
    found = condition(a, name, kind)
    return found and (found["status"], found["reason"]) == (status, reason)


def wait_for(a, name, kind, status, reason):
    wait_until(f"{name}: {kind}={status} ({reason})", lambda: has(a, name, kind, status, reason))


def establish(a, body):
    make(a, DEFINITIONS, body)
    wait_for(a, body["metadata"]["name"], "Established", "True", "InitialNamesAccepted")


def await_deletions(cluster, mark, prefix, n):
    """Returns the keys with this prefix that were deleted since the mark, once there are n: the witness may learn of them later than a client."""
    def keys():
        return [e["key"] for e in cluster.witness.seen()[mark:] if e["type"] == "DELETE" and e["key"].startswith(prefix)]
    wait_until(f"{n} deletions", lambda: len(keys()) >= n)
    return keys()


def test_names_in_conflict_wait_until_they_are_free(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    first = f"widgets.{GROUP}"
    second = f"gadgets.{GROUP}"
    establish(a, definition("widgets", "Widget", short=["w"]))
    found = get(b, f"{DEFINITIONS}/{first}")["status"]
    assert found["acceptedNames"] == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["w"]}
    assert [(c["type"], c["status"]) for c in found["conditions"]] == [("NamesAccepted", "True"), ("Established", "True")]

    # Another definition claims names of the first. In another group that would not be a conflict.
    make(b, DEFINITIONS, definition("gadgets", "Widget", short=["w", "g"]))
    establish(b, definition("widgets", "Widget", group="other.example.com", short=["w"]))
    wait_for(a, second, "NamesAccepted", "False", "ListKindConflict")
    wait_for(a, second, "Established", "False", "NotAccepted")
    assert condition(b, second, "NamesAccepted")["message"] == '"WidgetList" is already in use'
    assert get(a, f"{DEFINITIONS}/{second}")["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}

    # The second definition gives the short name up, and then the first is deleted. The leader is killed in between.
    patch(b, f"{DEFINITIONS}/{second}", {"spec": {"names": {"kind": "Gadget", "listKind": "GadgetList", "singular": "gadget"}}})
    wait_for(a, second, "NamesAccepted", "False", "ShortNamesConflict")
    assert condition(a, second, "NamesAccepted")["message"] == '"w" is already in use'
    leader, other = (a, b) if cluster.witness.holder().find("_a_") >= 0 else (b, a)
    leader.send(signal.SIGKILL)
    leader.wait()
    assert other.request("DELETE", f"{DEFINITIONS}/{first}")[0] == 200
    wait_for(other, second, "NamesAccepted", "True", "NoConflicts")
    wait_for(other, second, "Established", "True", "InitialNamesAccepted")
    wait_until("the first to be gone", lambda: get(other, f"{DEFINITIONS}/{first}") is None)
    assert get(other, f"{DEFINITIONS}/{second}")["status"]["acceptedNames"]["shortNames"] == ["w", "g"]


def test_groups_of_the_community_need_an_approval(cluster):
    a = cluster.instance("a").wait_ready()
    body = definition("trees", "Tree", group="x.k8s.io")
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    establish(a, body)
    name = body["metadata"]["name"]
    kind = "KubernetesAPIApprovalPolicyConformant"
    wait_for(a, name, kind, "False", "UnapprovedAnnotation")
    patch(a, f"{DEFINITIONS}/{name}", {"metadata": {"annotations": {"api-approved.kubernetes.io": "https://example.com/pull/1"}}})
    wait_for(a, name, kind, "True", "ApprovedAnnotation")
    assert condition(a, name, kind)["message"] == "approved in https://example.com/pull/1"


def test_a_definition_without_objects_goes_at_once(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.instance("b").wait_ready()
    make(a, DEFINITIONS, {**definition("ones", "One"), "metadata": {"name": f"ones.{GROUP}", "finalizers": ["example.com/hold"]}})
    wait_for(a, f"ones.{GROUP}", "Established", "True", "InitialNamesAccepted")
    code, text = a.request("DELETE", f"{DEFINITIONS}/ones.{GROUP}")
    assert code == 200
    found = json.loads(text)
    assert found["metadata"]["finalizers"] == ["example.com/hold", "customresourcecleanup.apiextensions.k8s.io"]
    assert found["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    wait_for(a, f"ones.{GROUP}", "Terminating", "False", "InstanceDeletionCompleted")
    assert get(a, f"{DEFINITIONS}/ones.{GROUP}")["metadata"]["finalizers"] == ["example.com/hold"]
    patch(a, f"{DEFINITIONS}/ones.{GROUP}", {"metadata": {"finalizers": None}})
    assert get(a, f"{DEFINITIONS}/ones.{GROUP}") is None

    # A definition that was never established has no objects either.
    establish(a, definition("twos", "Two"))
    make(a, DEFINITIONS, {**definition("threes", "Two"), "metadata": {"name": f"threes.{GROUP}", "finalizers": ["example.com/hold"]}})
    wait_for(a, f"threes.{GROUP}", "NamesAccepted", "False", "ListKindConflict")
    assert a.request("DELETE", f"{DEFINITIONS}/threes.{GROUP}")[0] == 200
    wait_for(a, f"threes.{GROUP}", "Terminating", "False", "NeverEstablished")


def test_each_version_has_an_api_service(cluster):
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    both = definition("widgets", "Widget")
    both["spec"]["versions"].append({**both["spec"]["versions"][0], "name": "v2", "storage": False})
    establish(a, both)
    establish(b, definition("gadgets", "Gadget"))

    def available(name):
        found = get(b, f"{services}/{name}.{GROUP}")
        conditions = (found or {}).get("status", {}).get("conditions") or []
        return found and [(c["type"], c["status"], c["reason"]) for c in conditions] == [("Available", "True", "Local")]
    for version in ("v1", "v2"):
        wait_until(f"{version} to have an APIService", lambda v=version: available(v))
    found = get(a, f"{services}/v2.{GROUP}")
    assert found["spec"] == {"group": GROUP, "version": "v2", "groupPriorityMinimum": 1000, "versionPriority": 100}
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert a.request("DELETE", f"{services}/v2.{GROUP}")[0] == 200
    wait_until("it to be restored", lambda: available("v2") and get(b, f"{services}/v2.{GROUP}")["metadata"]["uid"] != found["metadata"]["uid"])

    # A version that is not served any more has no objects.
    both["spec"]["versions"][1]["served"] = False
    patch(a, f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"versions": both["spec"]["versions"]}})
    wait_until("the one of v2 to be gone", lambda: get(a, f"{services}/v2.{GROUP}") is None)
    # Another definition still serves v1. The leader is killed before that one is deleted, too.
    assert a.request("DELETE", f"{DEFINITIONS}/widgets.{GROUP}")[0] == 200
    wait_until("widgets to be gone", lambda: get(a, f"{DEFINITIONS}/widgets.{GROUP}") is None)
    assert available("v1")
    leader, other = (a, b) if cluster.witness.holder().find("_a_") >= 0 else (b, a)
    leader.send(signal.SIGKILL)
    leader.wait()
    assert other.request("DELETE", f"{DEFINITIONS}/gadgets.{GROUP}")[0] == 200
    wait_until("the one of v1 to be gone", lambda: get(other, f"{services}/v1.{GROUP}") is None)
    assert get(other, f"{services}/v1.rbac.authorization.k8s.io")


def path(plural, ns="default", name="", group=GROUP):
    return f"/apis/{group}/v1" + (f"/namespaces/{ns}" if ns else "") + f"/{plural}" + (f"/{name}" if name else "")


def make_object(a, plural, kind, name, ns="default", owner=None, **metadata):
    """Creates an object. owner: (apiVersion, kind, object), or None."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, **metadata}}
    if owner:
        body["metadata"]["ownerReferences"] = [reference(*owner)]
    return make(a, path(plural, ns), body)


def reference(api_version, kind, owner, **more):
    return {"apiVersion": api_version, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **more}


def wait_gone(a, where):
    wait_until(f"{where} to be gone", lambda: a.get(where)[0] == 404)


def kill_leader(cluster, a, b):
    leader, other = (a, b) if "_a_" in cluster.witness.holder() else (b, a)
    leader.send(signal.SIGKILL)
    leader.wait()
    return other


def test_objects_go_with_their_definition(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    name = f"widgets.{GROUP}"
    establish(a, definition("widgets", "Widget"))
    wait_until("b to serve them", lambda: b.get(path("widgets"))[0] == 200)
    make(a, "/api/v1/namespaces", {"metadata": {"name": "n"}})
    for ns in ("default", "n"):
        for i in range(3):
            make_object(a if i else b, "widgets", "Widget", f"w{i}", ns)
        make_object(a, "widgets", "Widget", "held", ns, finalizers=["example.com/hold"])
    assert a.request("DELETE", f"{DEFINITIONS}/{name}")[0] == 200
    wait_until("the held objects to be what remains", lambda: [o["metadata"]["name"] for o in get(a, path("widgets", None))["items"]] == ["held"] * 2)
    wait_for(a, name, "Terminating", "True", "InstanceDeletionInProgress")
    assert all(o["metadata"]["deletionTimestamp"] for o in get(a, path("widgets", None))["items"])

    other = kill_leader(cluster, a, b)
    patch(other, path("widgets", "n", "held"), {"metadata": {"finalizers": None}})
    wait_gone(other, path("widgets", "n", "held"))
    assert get(other, f"{DEFINITIONS}/{name}")
    patch(other, path("widgets", "default", "held"), {"metadata": {"finalizers": None}})
    wait_gone(other, f"{DEFINITIONS}/{name}")
    wait_gone(other, path("widgets"))
    key = f"/registry/{GROUP}/widgets/"
    deleted = await_deletions(cluster, 0, key, 8)
    assert len(deleted) == len(set(deleted)) == 8, deleted

    # A later definition of the same name begins without objects.
    establish(other, definition("widgets", "Widget"))
    wait_until("the new kind to be served", lambda: other.get(path("widgets"))[0] == 200)
    assert get(other, path("widgets", None))["items"] == []


def test_objects_of_a_version_that_is_not_served_go_too(cluster):
    a = cluster.instance("a").wait_ready()
    name = f"widgets.{GROUP}"
    establish(a, definition("widgets", "Widget", scope="Cluster"))
    wait_until("them to be served", lambda: a.get(path("widgets", None))[0] == 200)
    for i in range(3):
        make_object(a, "widgets", "Widget", f"w{i}", None)
    versions = get(a, f"{DEFINITIONS}/{name}")["spec"]["versions"]
    patch(a, f"{DEFINITIONS}/{name}", {"spec": {"versions": [{**versions[0], "served": False}]}})
    wait_gone(a, path("widgets", None))
    mark = cluster.witness.mark()
    assert a.request("DELETE", f"{DEFINITIONS}/{name}")[0] == 200
    wait_gone(a, f"{DEFINITIONS}/{name}")
    deleted = await_deletions(cluster, mark, f"/registry/{GROUP}/widgets/", 3)
    assert len(deleted) == 3, deleted


def test_owners_of_custom_kinds(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    version = f"{GROUP}/v1"
    # A dependent is kept while the kind of its owner is not known.
    unknown = {"metadata": {"name": "o", "uid": "00000000-0000-0000-0000-000000000000"}}
    make(a, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "early", "ownerReferences": [reference(version, "Widget", unknown)]}})
    make(a, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "other", "ownerReferences": [reference(version, "Other", unknown)]}})
    establish(a, definition("widgets", "Widget"))
    wait_until("b to serve the kind", lambda: get(b, path("widgets")))
    owner = make_object(a, "widgets", "Widget", "owner")
    kept = make_object(a, "widgets", "Widget", "kept")
    for i in range(5):
        make_object(b, "widgets", "Widget", f"part{i}", owner=(version, "Widget", owner))
        make(b, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"c{i}", "ownerReferences": [reference(version, "Widget", owner)]}})
        make(b, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"k{i}", "ownerReferences": [reference(version, "Widget", kept)]}})
    # A dependent that was created before the kind, and whose owner does not exist, is collected now.
    wait_gone(a, "/api/v1/namespaces/default/configmaps/early")
    assert a.request("DELETE", path("widgets", name="owner"))[0] == 200
    for i in range(5):
        wait_gone(a, path("widgets", name=f"part{i}"))
        wait_gone(a, f"/api/v1/namespaces/default/configmaps/c{i}")

    # Deletion in the foreground, which another leader completes.
    front = make_object(b, "widgets", "Widget", "front")
    make_object(b, "widgets", "Widget", "held", finalizers=["example.com/hold"],
                ownerReferences=[reference(version, "Widget", front, blockOwnerDeletion=True)])
    code, text = b.request("DELETE", path("widgets", name="front"), {"propagationPolicy": "Foreground"})
    assert code == 200, text
    wait_until("the dependent to be marked", lambda: "deletionTimestamp" in get(b, path("widgets", name="held"))["metadata"])
    other = kill_leader(cluster, a, b)
    assert get(other, path("widgets", name="front"))
    patch(other, path("widgets", name="held"), {"metadata": {"finalizers": None}})
    wait_gone(other, path("widgets", name="held"))
    wait_gone(other, path("widgets", name="front"))

    # Orphans stay, and so do dependents that have other owners.
    orphan = make_object(other, "widgets", "Widget", "parent")
    make(other, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "orphan", "ownerReferences": [reference(version, "Widget", orphan)]}})
    code, text = other.request("DELETE", path("widgets", name="parent"), {"propagationPolicy": "Orphan"})
    assert code == 200, text
    wait_gone(other, path("widgets", name="parent"))
    assert "ownerReferences" not in get(other, "/api/v1/namespaces/default/configmaps/orphan")["metadata"]
    for i in range(5):
        assert get(other, f"/api/v1/namespaces/default/configmaps/k{i}")
    assert get(other, "/api/v1/namespaces/default/configmaps/other")


def test_a_namespace_waits_for_custom_objects(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    for ns in ("n", "m"):
        make(a, "/api/v1/namespaces", {"metadata": {"name": ns}})
    establish(a, definition("widgets", "Widget"))
    # No controller may know the kind yet: it was established just now.
    make_object(a, "widgets", "Widget", "held", "n", finalizers=["example.com/hold"])
    assert a.request("DELETE", "/api/v1/namespaces/n")[0] == 200
    make_object(a, "widgets", "Widget", "free", "m")
    assert b.request("DELETE", "/api/v1/namespaces/m")[0] == 200
    wait_gone(a, "/api/v1/namespaces/m")
    wait_until("the object to be marked", lambda: "deletionTimestamp" in get(a, path("widgets", "n", "held"))["metadata"])

    def says_what_remains():
        return [c["message"] for c in get(a, "/api/v1/namespaces/n")["status"].get("conditions", []) if c["type"] == "NamespaceContentRemaining"]

    wait_until("the condition", lambda: says_what_remains() == [f"Some resources are remaining: widgets.{GROUP} has 1 resource instances"])
    other = kill_leader(cluster, a, b)
    patch(other, path("widgets", "n", "held"), {"metadata": {"finalizers": None}})
    wait_gone(other, "/api/v1/namespaces/n")
    assert get(other, path("widgets", None))["items"] == []


def test_quotas_count_custom_objects(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    counted = f"count/widgets.{GROUP}"
    quota = "/api/v1/namespaces/default/resourcequotas/q"
    make(a, "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {counted: "2"}}})
    wait_until("the quota to be recounted", lambda: get(a, quota).get("status", {}).get("hard") == {counted: "2"})
    establish(a, definition("widgets", "Widget"))
    wait_until("the kind to be counted", lambda: get(a, quota)["status"].get("used") == {counted: "0"})
    wait_until("b to serve them", lambda: b.get(path("widgets"))[0] == 200)
    make_object(a, "widgets", "Widget", "w0")
    make_object(b, "widgets", "Widget", "w1")
    code, text = b.request("POST", path("widgets"), {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w2"}})
    assert code == 403 and f"exceeded quota: q, requested: {counted}=1, used: {counted}=2, limited: {counted}=2" in text, text
    assert a.request("DELETE", path("widgets", name="w0"))[0] == 200
    wait_until("the object to be free", lambda: get(a, quota)["status"]["used"] == {counted: "1"})
    other = kill_leader(cluster, a, b)
    make_object(other, "widgets", "Widget", "w2")
    assert other.request("DELETE", path("widgets", name="w1"))[0] == 200
    wait_until("the new leader to count", lambda: get(other, quota)["status"]["used"] == {counted: "1"})
    assert other.request("DELETE", f"{DEFINITIONS}/widgets.{GROUP}")[0] == 200
    wait_until("the kind not to be counted any more", lambda: not get(other, quota)["status"].get("used"))
