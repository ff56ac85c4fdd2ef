# SPDX-License-Identifier: Apache-2.0
"""Profiles of AppArmor of pods and templates: the field, the older annotations, and what a new pod gets from them. The words are those of kube-apiserver 1.36's source."""
import itertools

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)
MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PREFIX = "container.apparmor.security.beta.kubernetes.io/"
DEFAULT, UNCONFINED = {"type": "RuntimeDefault"}, {"type": "Unconfined"}
LOCAL = {"type": "Localhost", "localhostProfile": "p/q"}
CONTEXT = "spec.containers[0].securityContext.appArmorProfile"


@pytest.fixture(scope="module")
def server():
    with MemoryServer("--runtime-config=api/workloads=true") as it:
        yield it


def context(profile):
    return {} if profile is None else {"securityContext": {"appArmorProfile": profile}}


def pod(annotations=None, own=None, of_pod=None, **spec):
    """own, of_pod: the profiles of the container c and of the pod."""
    containers = [{"name": "c", "image": "i", **context(own)}, {"name": "d", "image": "i"}]
    return {"metadata": {"name": f"n{next(NUMBERS)}", "annotations": {PREFIX + name: value for name, value in (annotations or {}).items()}},
            "spec": {"containers": containers, **context(of_pod), **spec}}


def made(server, body):
    reply = server.ask("POST", PODS, body)
    assert reply.code == 201, reply.text
    return reply.json


def profiles(item):
    return {c["name"]: c.get("securityContext", {}).get("appArmorProfile")
            for c in item["spec"].get("initContainers", []) + item["spec"]["containers"]}


def causes(reply):
    assert reply.code == 422, reply.text
    return [(cause["field"], cause["message"]) for cause in reply.json["details"]["causes"]]


@pytest.mark.parametrize("annotation, profile", [
    ("runtime/default", DEFAULT), ("unconfined", UNCONFINED), ("localhost/p/q", LOCAL), ("", None), ("localhost/", None), ("localhost/ p", None),
    ("localhost/" + "p" * 4095, {"type": "Localhost", "localhostProfile": "p" * 4095}), ("localhost/" + "p" * 4096, None)])
def test_a_container_gets_the_profile_of_its_annotation(server, annotation, profile):
    item = made(server, pod({"c": annotation}))
    assert profiles(item) == {"c": profile, "d": None} and item["metadata"]["annotations"] == {PREFIX + "c": annotation}


def test_init_containers_and_containers_with_a_context_get_theirs(server):
    body = pod({"c": "unconfined", "i": "runtime/default"}, initContainers=[{"name": "i", "image": "i"}])
    body["spec"]["containers"][0]["securityContext"] = {"runAsUser": 5}
    item = made(server, body)
    assert profiles(item) == {"c": UNCONFINED, "d": None, "i": DEFAULT} and item["spec"]["containers"][0]["securityContext"]["runAsUser"] == 5


def test_what_the_pod_says_already_is_not_repeated(server):
    assert profiles(made(server, pod({"c": "localhost/p/q"}, of_pod=LOCAL))) == {"c": None, "d": None}
    assert profiles(made(server, pod({"c": "unconfined", "d": "runtime/default"}, of_pod=DEFAULT))) == {"c": UNCONFINED, "d": None}
    assert profiles(made(server, pod({"c": "localhost/x"}, of_pod=LOCAL)))["c"] == {"type": "Localhost", "localhostProfile": "x"}
    assert profiles(made(server, pod({"c": "unconfined"}, own=UNCONFINED, of_pod=DEFAULT)))["c"] == UNCONFINED


def test_a_field_makes_no_annotation(server):
    assert "annotations" not in made(server, pod(own=LOCAL, of_pod=DEFAULT))["metadata"]


def test_pods_of_windows_and_templates_keep_their_annotations(server):
    assert profiles(made(server, pod({"c": "unconfined"}, os={"name": "windows"})))["c"] is None
    body = pod({"c": "unconfined"})
    reply = server.ask("POST", TEMPLATES, {"metadata": {"name": "t"}, "template": body})
    assert reply.code == 201 and "securityContext" not in reply.json["template"]["spec"]["containers"][0]


MATCH_TYPE = "Forbidden: apparmor type in annotation and field must match"


@pytest.mark.parametrize("body, wanted", [
    (pod(own={"type": ""}), [(CONTEXT + ".type", "Required value: type is required when appArmorProfile is set")]),
    (pod(own={"type": "X"}), [(CONTEXT + ".type", 'Unsupported value: "X": supported values: "Localhost", "RuntimeDefault", "Unconfined"')]),
    (pod(own={"type": "Localhost"}), [(CONTEXT + ".localhostProfile", "Required value: must be set when AppArmor type is Localhost")]),
    (pod(own={**LOCAL, "localhostProfile": ""}), [(CONTEXT + ".localhostProfile", "Required value: must be set when AppArmor type is Localhost")]),
    (pod(own={**LOCAL, "localhostProfile": "a "}), [(CONTEXT + ".localhostProfile", 'Invalid value: "a ": must not be padded with whitespace')]),
    (pod(own={**LOCAL, "localhostProfile": "a" * 4096}), [(CONTEXT + ".localhostProfile", "Too long: may not be more than 4095 bytes")]),
    (pod(own={**UNCONFINED, "localhostProfile": "a"}), [
        (CONTEXT + ".localhostProfile", 'Invalid value: "a": can only be set when AppArmor type is Localhost')]),
    (pod(of_pod={"type": "X"}), [
        ("spec.securityContext.appArmorProfile.type", 'Unsupported value: "X": supported values: "Localhost", "RuntimeDefault", "Unconfined"')]),
    (pod({"x": "unconfined"}), [(f"metadata.annotations[{PREFIX}x]", 'Invalid value: "x": container not found')]),
    (pod({"c": "no/profile"}), [(f"metadata.annotations[{PREFIX}c]", 'Invalid value: "no/profile": invalid AppArmor profile name: "no/profile"')]),
    (pod({"c": "unconfined"}, own=DEFAULT), [(CONTEXT + ".type", MATCH_TYPE)]),
    (pod({"c": "runtime/default"}, own=LOCAL), [(CONTEXT + ".type", MATCH_TYPE)]),
    (pod({"c": "localhost/x"}, own=LOCAL), [(CONTEXT + ".localhostProfile", "Forbidden: apparmor profile in annotation and field must match")]),
    (pod({"c": "localhost/"}, own={"type": "Localhost"}), [
        (CONTEXT + ".localhostProfile", "Required value: must be set when AppArmor type is Localhost"),
        (CONTEXT + ".localhostProfile", "Forbidden: apparmor profile in annotation and field must match")]),
    (pod({"c": ""}, of_pod=DEFAULT), [(CONTEXT + ".type", MATCH_TYPE)])])
def test_a_pod_is_refused(server, body, wanted):
    assert causes(server.ask("POST", PODS, body)) == wanted


@pytest.mark.parametrize("body, wanted", [
    (pod({"x": "y"}, own={"type": "X"}), [
        (f"annotations[{PREFIX}x]", 'Invalid value: "x": container not found'),
        (f"annotations[{PREFIX}x]", 'Invalid value: "y": invalid AppArmor profile name: "y"'),
        (CONTEXT + ".type", 'Unsupported value: "X": supported values: "Localhost", "RuntimeDefault", "Unconfined"')]),
    (pod({"c": "unconfined", "d": "localhost/x"}, own=DEFAULT, of_pod=LOCAL, ephemeralContainers=[{"name": "e", "image": "i"}]), [
        (CONTEXT + ".type", MATCH_TYPE),
        ("spec.containers[1].securityContext.appArmorProfile.localhostProfile", "Forbidden: apparmor profile in annotation and field must match"),
        ("spec.ephemeralContainers", "Forbidden: ephemeral containers not allowed in pod template")])])
def test_a_template_is_refused(server, body, wanted):
    assert causes(server.ask("POST", TEMPLATES, {"metadata": {"name": "t2"}, "template": body})) == [
        (f"template.{field}", why) for field, why in wanted]
    labelled = {**body, "metadata": {**body["metadata"], "labels": {"a": "b"}}}
    made = server.ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": labelled}})
    assert causes(made) == [(f"spec.template.{field}", why) for field, why in wanted]


@pytest.mark.parametrize("change, why", [
    ({"c": "runtime/default"}, "may not remove or update AppArmor annotations"), ({"c": None}, "may not remove or update AppArmor annotations"),
    ({"d": "unconfined"}, "may not add AppArmor annotations")])
def test_the_annotations_of_a_pod_stay(server, change, why):
    path = f"{PODS}/{made(server, pod({'c': 'unconfined'}))['metadata']['name']}"
    body = {"metadata": {"annotations": {PREFIX + name: value for name, value in change.items()}}}
    (name, _), = change.items()
    assert causes(server.ask("PATCH", path, body, content_type=MERGE)) == [(f"metadata.annotations[{PREFIX}{name}]", f"Forbidden: {why}")]
    assert server.ask("PATCH", path, {"metadata": {"annotations": {"other": "x"}}}, content_type=MERGE).code == 200
