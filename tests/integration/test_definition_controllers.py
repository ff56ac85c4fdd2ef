# SPDX-License-Identifier: Apache-2.0
"""The controllers of CustomResourceDefinitions: accepted names, the conditions, and what happens to objects when their definition, their
namespace or their owner goes. Two instances, and a leader that is killed in between."""
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


def test_names_in_conflict_wait_until_they_are_free(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    first = f"widgets.{GROUP}"
    second = f"gadgets.{GROUP}"
    establish(a, definition("widgets", "Widget", short=["w"]))
    found = get(b, f"{DEFINITIONS}/{first}")["status"]
    assert found["acceptedNames"] == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["w"]}
    assert [(c["type"], c["status"]) for c in found["conditions"]] == [("NamesAccepted", "True"), ("Established", "True")]

    # Another one wants names of the first. In another group that would be no conflict.
    make(b, DEFINITIONS, definition("gadgets", "Widget", short=["w", "g"]))
    establish(b, definition("widgets", "Widget", group="other.example.com", short=["w"]))
    wait_for(a, second, "NamesAccepted", "False", "ListKindConflict")
    wait_for(a, second, "Established", "False", "NotAccepted")
    assert condition(b, second, "NamesAccepted")["message"] == '"WidgetList" is already in use'
    assert get(a, f"{DEFINITIONS}/{second}")["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}

    # The short name is given up, and then the definition goes. The leader dies in between.
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

    # One that was never established has no objects either.
    establish(a, definition("twos", "Two"))
    make(a, DEFINITIONS, {**definition("threes", "Two"), "metadata": {"name": f"threes.{GROUP}", "finalizers": ["example.com/hold"]}})
    wait_for(a, f"threes.{GROUP}", "NamesAccepted", "False", "ListKindConflict")
    assert a.request("DELETE", f"{DEFINITIONS}/threes.{GROUP}")[0] == 200
    wait_for(a, f"threes.{GROUP}", "Terminating", "False", "NeverEstablished")
