# SPDX-License-Identifier: Apache-2.0
"""Users, groups and sysctls of pods and templates, and a negative grace period. The words are those of kube-apiserver 1.36's source."""
import itertools

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
RANGE = "must be between 0 and 2147483647, inclusive"
FORM = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"


@pytest.fixture(scope="module")
def server():
    with MemoryServer("--runtime-config=api/workloads=true") as it:
        yield it


def spec(context=None, own=None, **members):
    return {"containers": [{"name": "c", "image": "i", "securityContext": own or {}}], "securityContext": context or {}, **members}


def create(server, body):
    return server.ask("POST", PODS, {"metadata": {"name": f"n{next(NUMBERS)}"}, "spec": body})


def causes(reply):
    assert reply.code == 422, reply.text
    return [(cause["field"], cause["message"]) for cause in reply.json["details"]["causes"]]


def test_users_and_groups_are_in_the_range_of_the_kernel(server):
    context = {"fsGroup": -1, "runAsUser": 2147483648, "runAsGroup": -2, "supplementalGroups": [0, -3, 2147483647]}
    assert causes(create(server, spec(context, {"runAsUser": -4, "runAsGroup": 2147483648}))) == [
        ("spec.containers[0].securityContext.runAsUser", f"Invalid value: -4: {RANGE}"),
        ("spec.containers[0].securityContext.runAsGroup", f"Invalid value: 2147483648: {RANGE}"),
        ("spec.securityContext.fsGroup", f"Invalid value: -1: {RANGE}"),
        ("spec.securityContext.runAsUser", f"Invalid value: 2147483648: {RANGE}"),
        ("spec.securityContext.runAsGroup", f"Invalid value: -2: {RANGE}"),
        ("spec.securityContext.supplementalGroups[1]", f"Invalid value: -3: {RANGE}")]
    good = {"fsGroup": 0, "runAsUser": 2147483647, "runAsGroup": 0, "supplementalGroups": [0, 2147483647]}
    assert create(server, spec(good, {"runAsUser": 0, "runAsGroup": 2147483647})).code == 201


@pytest.mark.parametrize("name", ["foo-", "bar..", "-a", "a.", "a._b", "a/-b", "a//b", ".a", "A", "a b", "_", "a-.b", "a" * 254])
def test_a_sysctl_has_the_form_of_a_parameter(server, name):
    reply = create(server, spec({"sysctls": [{"name": "kernel.shmmax", "value": "1"}, {"name": name, "value": "1"}]}))
    (field, message), = causes(reply)
    assert field == "spec.securityContext.sysctls[1].name"
    assert message.startswith("Invalid value: ") and message.endswith(FORM)


def test_sysctls_are_named_once(server):
    names = ["a", "net/ipv4/conf.all_x", "0-_1.b", "a" * 253]
    assert create(server, spec({"sysctls": [{"name": name, "value": ""} for name in names]})).code == 201
    assert causes(create(server, spec({"sysctls": [{"name": name, "value": ""} for name in ["a", "b", "", "a"]]}))) == [
        ("spec.securityContext.sysctls[2].name", "Required value"), ("spec.securityContext.sysctls[3].name", 'Duplicate value: "a"')]


def test_templates_have_the_same_rules(server):
    body = {"metadata": {"name": "t"}, "template": {"spec": spec({"sysctls": [{"name": "x.", "value": ""}]}, {"runAsUser": -1})}}
    assert causes(server.ask("POST", TEMPLATES, body)) == [
        ("template.spec.containers[0].securityContext.runAsUser", f"Invalid value: -1: {RANGE}"),
        ("template.spec.securityContext.sysctls[0].name", f'Invalid value: "x.": {FORM}')]


def test_a_negative_grace_period_of_a_pod_is_a_second(server):
    reply = create(server, spec(terminationGracePeriodSeconds=-1))
    assert reply.code == 201 and reply.json["spec"]["terminationGracePeriodSeconds"] == 1
    assert create(server, spec(terminationGracePeriodSeconds=0)).json["spec"]["terminationGracePeriodSeconds"] == 0
    # an update that repeats what the create said changes nothing
    again = {**reply.json, "spec": {**reply.json["spec"], "terminationGracePeriodSeconds": -1}}
    updated = server.ask("PUT", f"{PODS}/{reply.json['metadata']['name']}", again)
    assert updated.code == 200 and updated.json["metadata"]["resourceVersion"] == reply.json["metadata"]["resourceVersion"]
    template = {"metadata": {"name": "grace"}, "template": {"spec": spec(terminationGracePeriodSeconds=-1)}}
    assert server.ask("POST", TEMPLATES, template).json["template"]["spec"]["terminationGracePeriodSeconds"] == -1
