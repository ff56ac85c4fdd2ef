# SPDX-License-Identifier: Apache-2.0
"""Admission webhooks: a real HTTPS server is asked about writes, and its answers and failures count as with kube-apiserver."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from holdfastd import HOLDFASTD, Cluster, wait_until
from memory_server import MemoryServer
from webhook_server import WebhookServer, make_certificate, patch

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["configmaps"]}


@pytest.fixture(scope="module")
def server():
    with MemoryServer("--max-mutating-requests-inflight=64", "--runtime-config=api/workloads=true") as it:
        yield it


@pytest.fixture(scope="module")
def hooks():
    with tempfile.TemporaryDirectory() as directory, WebhookServer(pathlib.Path(directory)) as it:
        it.answers["/allow"] = lambda _: {}
        yield it


def config_map(name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or None}}


class Configured:
    """A configuration with one webhook, in force within the `with` block. It selects objects with the label on=NAME, unless the test sets another selector."""

    def __init__(self, server, hooks, name, client, mutating=False, hook=None, **more):
        self.server, self.hooks, self.name = server, hooks, name
        self.path = CONFIGURATIONS + ("mutating" if mutating else "validating") + "webhookconfigurations"
        webhook = {"name": f"{name}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": client, "rules": [RULE],
                   "objectSelector": {"matchLabels": {"on": name}}, **more}
        # A last webhook, with objects of its own, shows when the configuration is in force.
        probe = {**webhook, "name": f"probe.{name}.example.com", "clientConfig": hooks.client("/probe"), "failurePolicy": "Fail", "namespaceSelector": {},
                 "objectSelector": {"matchLabels": {"probe": name}}, "rules": [RULE], "matchConditions": None}
        self.body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": ("Mutating" if mutating else "Validating") + "WebhookConfiguration",
                     "metadata": {"name": name}, "webhooks": [webhook, probe]}

    def in_force(self, server=None):
        self.hooks.answers["/probe"] = lambda _: {"allowed": False}
        return (server or self.server).ask("POST", MAPS + "?dryRun=All", config_map("probe", probe=self.name)).code == 400

    def __enter__(self):
        reply = self.server.ask("POST", self.path, self.body)
        assert reply.code == 201, reply.text
        wait_until(f"{self.name} to be in force", self.in_force)
        return reply.json

    def __exit__(self, *_):
        assert self.server.ask("DELETE", f"{self.path}/{self.name}").code == 200
        wait_until(f"{self.name} not to be in force", lambda: not self.in_force())


def message(reply):
    return reply.json["message"]


def test_many_calls_of_one_webhook_at_once(hooks):
    """Each call needs a connection of its own, because the webhook speaks HTTP/1.1 and no call ends before all have arrived."""
    everybody = threading.Barrier(24)

    def wait_for_the_others(_):
        everybody.wait(30)
        return {}

    hooks.answers["/together"] = wait_for_the_others
    with MemoryServer() as server, Configured(server, hooks, "together", hooks.client("/together"), timeoutSeconds=30), \
            concurrent.futures.ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(lambda i: server.ask("POST", MAPS, config_map(f"together-{i}", on="together")), range(24)))
    assert {reply.code for reply in replies} == {201}


def test_what_a_webhook_is_asked(server, hooks):
    # Kubernetes' client normalizes the path of a URL.
    with Configured(server, hooks, "asked", {**hooks.client("/"), "url": hooks.url("//x/..//./allow/")}):
        assert server.ask("POST", MAPS + "?fieldManager=me", config_map("asked", on="asked")).code == 201
        asked = hooks.calls("/allow")[-1]
        assert asked["operation"] == "CREATE" and asked["name"] == "asked" and asked["namespace"] == "default" and asked["dryRun"] is False
        assert asked["kind"] == asked["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert asked["resource"] == asked["requestResource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert asked["object"]["kind"] == "ConfigMap" and asked["object"]["metadata"]["name"] == "asked" and asked["oldObject"] is None
        assert asked["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
        assert "system:masters" in asked["userInfo"]["groups"]
        merge = {"content_type": "application/merge-patch+json"}
        changed = server.ask("PATCH", MAPS + "/asked", {"data": {"a": "b"}}, **merge)
        asked = hooks.calls("/allow")[-1]
        assert asked["operation"] == "UPDATE" and asked["options"]["kind"] == "UpdateOptions"
        assert asked["object"]["data"] == {"a": "b"} and "data" not in asked["oldObject"] and asked["oldObject"]["metadata"]["resourceVersion"]
        assert server.ask("DELETE", MAPS + "/asked?propagationPolicy=Background").code == 200
        asked = hooks.calls("/allow")[-1]
        assert asked["operation"] == "DELETE" and asked["object"] is None
        assert asked["oldObject"]["metadata"]["resourceVersion"] == changed.json["metadata"]["resourceVersion"]
        assert asked["options"]["propagationPolicy"] == "Background"
        before = len(hooks.reviews)
        assert server.ask("POST", MAPS, config_map("other", on="other")).code == 201  # the objectSelector does not select it
        assert len(hooks.reviews) == before
        assert server.ask("DELETE", MAPS + "/other").code == 200


def test_a_denied_request_changes_nothing(server, hooks):
    hooks.answers["/deny"] = lambda _: {"allowed": False, "status": {"message": "not today", "reason": "Forbidden", "code": 403},
                                        "warnings": ["think twice"], "auditAnnotations": {"why": "test"}}
    with Configured(server, hooks, "deny", hooks.client("/deny")):
        reply = server.ask("POST", MAPS, config_map("denied", on="deny"))
        assert reply.code == 403 and reply.json["reason"] == "Forbidden"
        assert message(reply) == 'admission webhook "deny.example.com" denied the request: not today'
        assert reply.warnings == ['299 - "think twice"']
        assert server.ask("GET", MAPS + "/denied").code == 404
        hooks.answers["/deny"] = lambda _: {"allowed": False}
        reply = server.ask("POST", MAPS, config_map("denied", on="deny"))
        assert reply.code == 400 and message(reply) == 'admission webhook "deny.example.com" denied the request without explanation'
        # A refusal is sent as one, even if the webhook's Status says Success and 200.
        hooks.answers["/deny"] = lambda _: {"allowed": False, "status": {"status": "Success", "code": 200, "message": "fine"}}
        reply = server.ask("POST", MAPS, config_map("denied", on="deny"))
        assert reply.code == 400 and reply.json["status"] == "Failure"
        assert 'rejection_code="400"' in server.ask("GET", "/metrics").text


def test_mutating_webhooks_change_what_is_stored(server, hooks):
    hooks.answers["/label"] = lambda _: patch({"op": "add", "path": "/metadata/labels/added", "value": "yes"},
                                              {"op": "add", "path": "/metadata/uid", "value": "mine"},
                                              {"op": "add", "path": "/metadata/deletionTimestamp", "value": "2020-01-01T00:00:00Z"},
                                              {"op": "add", "path": "/metadata/generation", "value": 7},
                                              {"op": "add", "path": "/unknown", "value": 1})
    with Configured(server, hooks, "label", hooks.client("/label"), mutating=True):
        reply = server.ask("POST", MAPS, config_map("labelled", on="label"))
        assert reply.code == 201 and reply.json["metadata"]["labels"] == {"on": "label", "added": "yes"}
        assert reply.json["metadata"]["uid"] != "mine" and "unknown" not in reply.json
        assert not {"deletionTimestamp", "generation"} & reply.json["metadata"].keys()
        assert server.ask("GET", MAPS + "/labelled").json == reply.json
        reply = server.ask("DELETE", MAPS + "/labelled")
        assert reply.code == 500 and message(reply) == ('Internal error occurred: admission webhook "label.example.com" attempted to modify the object, '
                                                        'which is not supported for this operation')
        hooks.answers["/label"] = lambda _: patch({"op": "replace", "path": "/data", "value": "text"})
        assert server.ask("POST", MAPS, config_map("spoiled", on="label")).code == 500
        hooks.answers["/label"] = lambda _: patch({"op": "add", "path": "/data", "value": {"bad key": "x"}})
        assert server.ask("POST", MAPS, config_map("spoiled", on="label")).code == 422  # the changed object is validated like a client's
        hooks.answers["/label"] = lambda _: {}
        assert server.ask("DELETE", MAPS + "/labelled").code == 200


def test_a_changed_label_of_a_pod_becomes_a_term_of_its_selectors(server, hooks):
    """The labels that admission leaves count, not those that the client has sent."""
    pods, rule = "/api/v1/namespaces/default/pods", {**RULE, "resources": ["configmaps", "pods"]}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert server.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account).code in (201, 409)
    hooks.answers["/version"] = lambda _: patch({"op": "replace", "path": "/metadata/labels/version", "value": "v2"})
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["version", "on"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "versioned", "labels": {"on": "version", "version": "v1"}},
           "spec": {"containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": [spread]}}
    with Configured(server, hooks, "version", hooks.client("/version"), mutating=True, rules=[rule]):
        reply = server.ask("POST", pods, pod)
    assert reply.code == 201, reply.text
    assert reply.json["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [
        {"key": "version", "operator": "In", "values": ["v2"]}, {"key": "on", "operator": "In", "values": ["version"]}]
    # An update leaves the selector alone.
    reply.json["metadata"]["labels"]["version"] = "v3"
    updated = server.ask("PUT", f"{pods}/versioned", reply.json)
    assert updated.code == 200 and updated.json["spec"] == reply.json["spec"], updated.text


def test_the_writer_of_a_changed_part_owns_its_fields(server, hooks):
    """A webhook changes an object whose status is written. The client still owns the fields of the status."""
    group = {"group": "owned.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                               n: {"type": "object", "x-kubernetes-preserve-unknown-fields": True} for n in ("spec", "status")}}}}]}
    definitions, widgets = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/owned.example.com/v1/namespaces/default/widgets"
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.owned.example.com"}, "spec": group}
    assert server.ask("POST", definitions, definition).code == 201
    widget = {"apiVersion": "owned.example.com/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"on": "part"}}, "spec": {"a": 1}}
    wait_until("the widgets to be served", lambda: server.ask("POST", widgets + "?fieldManager=creator", widget).code == 201)
    hooks.answers["/part"] = lambda _: patch({"op": "add", "path": "/metadata/labels/added", "value": "yes"})
    rule = {"apiGroups": ["owned.example.com"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["widgets/status"]}
    with Configured(server, hooks, "part", hooks.client("/part"), mutating=True, rules=[rule]):
        before = len(hooks.calls("/part"))
        reply = server.ask("PATCH", widgets + "/w/status?fieldManager=reporter", {"status": {"ready": True}}, content_type="application/merge-patch+json")
        assert reply.code == 200 and len(hooks.calls("/part")) > before and "added" not in reply.json["metadata"]["labels"]
        owners = {(m["manager"], m.get("subresource")): m["fieldsV1"] for m in reply.json["metadata"]["managedFields"]}
        assert owners.keys() == {("creator", None), ("reporter", "status")}
        assert owners["reporter", "status"] == {"f:status": {".": {}, "f:ready": {}}}
    assert server.ask("DELETE", f"{definitions}/widgets.owned.example.com").code == 200


def test_a_webhook_is_called_again_if_others_change_the_object(server, hooks):
    hooks.answers["/first"] = lambda r: {}
    hooks.answers["/second"] = lambda r: patch({"op": "add", "path": "/data", "value": {"by": "second"}}) if r["object"] and "data" not in r["object"] else {}
    with Configured(server, hooks, "a-first", hooks.client("/first"), mutating=True, objectSelector={"matchLabels": {"on": "again"}},
                    reinvocationPolicy="IfNeeded"), \
            Configured(server, hooks, "b-second", hooks.client("/second"), mutating=True, objectSelector={"matchLabels": {"on": "again"}}):
        assert server.ask("POST", MAPS, config_map("again", on="again")).code == 201
        assert ["data" in r["object"] for r in hooks.calls("/first")] == [False, True]
        assert len(hooks.calls("/second")) == 1
        assert server.ask("DELETE", MAPS + "/again").code == 200


LIES = [(lambda r: json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "other", "allowed": True}}).encode(),
         "received invalid webhook response: expected response.uid="),
        (lambda r: b"{}", "received invalid webhook response: webhook response was absent"),
        (lambda r: b"<html>", "failed to call webhook: "),
        (lambda r: {"allowed": "yes"}, "failed to call webhook: json: cannot unmarshal"),
        (lambda r: (404, b"not found"), "failed to call webhook: the server could not find the requested resource"),
        (lambda r: (409, b"again"), "failed to call webhook: the server reported a conflict"),
        (lambda r: (500, b"boom"), 'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding'),
        (lambda r: patch({"op": "remove", "path": "/data"}), "received invalid webhook response: validating webhook may not return response.patch")]


def test_malformed_answers_are_failures(server, hooks):
    with Configured(server, hooks, "liar", hooks.client("/lie")):
        for answer, expected in LIES:
            hooks.answers["/lie"] = answer
            reply = server.ask("POST", MAPS, config_map("lied-to", on="liar"))
            assert reply.code == 500 and reply.json["reason"] == "InternalError"
            assert message(reply).startswith(f'Internal error occurred: failed calling webhook "liar.example.com": {expected}')
    with Configured(server, hooks, "ignored", hooks.client("/lie"), failurePolicy="Ignore"):
        assert server.ask("POST", MAPS, config_map("lied-to", on="ignored")).code == 201
        assert server.ask("DELETE", MAPS + "/lied-to").code == 200
        assert 'fail_open_count{name="ignored.example.com"' in server.ask("GET", "/metrics").text


def test_an_untrusted_or_missing_webhook_is_a_failure(server, hooks):
    other, _ = make_certificate(hooks.directory, "other")
    with Configured(server, hooks, "untrusted", hooks.client("/allow", certificate=other)):
        reply = server.ask("POST", MAPS, config_map("a", on="untrusted"))
        assert reply.code == 500 and f'failed to call webhook: Post "{hooks.url("/allow")}?timeout=10s": ' in message(reply)
        assert "x509" in message(reply)
    with Configured(server, hooks, "absent", {**hooks.client("/allow"), "url": "https://127.0.0.1:1/x"}):
        reply = server.ask("POST", MAPS, config_map("a", on="absent"))
        assert reply.code == 500 and "connection refused" in message(reply)


def test_a_dry_run_reaches_only_webhooks_without_side_effects(server, hooks):
    with Configured(server, hooks, "dry", hooks.client("/allow"), sideEffects="NoneOnDryRun"):
        assert server.ask("POST", MAPS + "?dryRun=All", config_map("dry", on="dry")).code == 201
        assert hooks.calls("/allow")[-1]["dryRun"] is True and hooks.calls("/allow")[-1]["options"]["dryRun"] == ["All"]


def test_selectors_of_namespaces_and_collections(server, hooks):
    hooks.answers["/deny"] = lambda _: {"allowed": False, "status": {"message": "no"}}
    for name, label in (("guarded", "on"), ("free", "off")):
        assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {"guard": label}}}).code == 201
    with Configured(server, hooks, "guard", hooks.client("/deny"), objectSelector={}, namespaceSelector={"matchLabels": {"guard": "on"}}, rules=[RULE]):
        for name in ("a", "b"):
            assert server.ask("POST", "/api/v1/namespaces/free/configmaps", config_map(name)).code == 201
        assert server.ask("POST", "/api/v1/namespaces/guarded/configmaps", config_map("a")).code == 400
    with Configured(server, hooks, "keep", hooks.client("/deny"), objectSelector={}, namespaceSelector={"matchLabels": {"guard": "off"}},
                    rules=[{**RULE, "operations": ["DELETE"]}]):
        reply = server.ask("DELETE", "/api/v1/namespaces/free/configmaps")
        assert reply.code == 400 and message(reply) == 'admission webhook "keep.example.com" denied the request: no'
        assert len(server.ask("GET", "/api/v1/namespaces/free/configmaps").json["items"]) >= 2
    assert server.ask("DELETE", "/api/v1/namespaces/free/configmaps").code == 200


def test_the_deletes_of_a_collection_may_wait_for_webhooks(server, hooks):
    hooks.answers["/deletes"] = lambda _: {}
    with Configured(server, hooks, "deletes", hooks.client("/deletes"), timeoutSeconds=30):
        assert server.ask("POST", MAPS, config_map("deleted", on="deletes")).code == 201
        assert server.ask("DELETE", MAPS + "?labelSelector=on%3Ddeletes&timeoutSeconds=5").code == 200
        # The client's timeout does not shorten the webhook's: the call has the limit of each write.
        assert [q for path, q in hooks.queries if path == "/deletes"] == ["timeout=30s"] * 2


def test_match_conditions_choose_requests(server, hooks):
    hooks.answers["/deny"] = lambda _: {"allowed": False}
    condition = {"name": "by-name", "expression": "object.metadata.name.startsWith('bad') && request.operation == 'CREATE'"}
    with Configured(server, hooks, "conditions", hooks.client("/deny"), matchConditions=[condition]):
        assert server.ask("POST", MAPS, config_map("bad-one", on="conditions")).code == 400
        assert server.ask("POST", MAPS, config_map("good-one", on="conditions")).code == 201
        assert server.ask("DELETE", MAPS + "/good-one").code == 200
    failing = {"name": "failing", "expression": "object.data.missing == 'x'"}
    with Configured(server, hooks, "failing", hooks.client("/deny"), matchConditions=[failing]):
        reply = server.ask("POST", MAPS, config_map("a", on="failing"))
        assert reply.code == 403 and "no such key" in message(reply)


@pytest.mark.parametrize("mutating", [False, True])
@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_a_match_condition_searches_a_long_text_to_its_end(server, hooks, mutating, failure):
    """The search is cheap as Kubernetes counts, but more work than a thread that serves connections may do at once."""
    hooks.answers["/deny"] = lambda _: {"allowed": False}
    condition = {"name": "secret", "expression": "object.data.k.matches('BEGIN RSA PRIVATE KEY')"}
    with Configured(server, hooks, "searched", hooks.client("/deny"), mutating, matchConditions=[condition], failurePolicy=failure):
        for text, code in (("", 201), ("BEGIN RSA PRIVATE KEY", 400)):
            body = config_map("searched", on="searched") | {"data": {"k": 60_000 * "x" + text}}
            assert server.ask("POST", MAPS + "?dryRun=All", body).code == code


def test_configurations_are_never_guarded_by_webhooks(server, hooks):
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    hooks.answers["/deny"] = lambda _: {"allowed": False}
    with Configured(server, hooks, "everything", hooks.client("/deny"), objectSelector={}, namespaceSelector={}, rules=[everything]):
        assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "never"}}).code == 400


def test_no_webhook_costs_a_leader_its_lease(server, hooks):
    leases = {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    hooks.answers["/no-lease"] = lambda _: {"allowed": False}

    def lease():
        return server.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/holdfast-controllers").json["spec"]
    with Configured(server, hooks, "leases", hooks.client("/no-lease"), objectSelector={}, rules=[leases]):
        reply = server.ask("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "a"}})
        assert reply.code == 400  # the webhook is asked about Leases of clients
        before = seen = lease()
        for _ in range(2):
            wait_until("another renewal", lambda: lease()["renewTime"] != seen["renewTime"])
            seen = lease()
        assert seen["acquireTime"] == before["acquireTime"]
        assert {r["name"] for r in hooks.calls("/no-lease")} == {"a"}


def test_others_are_unharmed_while_a_webhook_hangs(server, hooks):
    """Requests that wait for one webhook hold at most a quarter of the places of writing requests. Further ones get a 429."""
    hooks.answers["/hang"] = lambda _: {}
    codes = []

    def create(i):
        reply = server.ask("POST", MAPS, config_map(f"hung-{i}", on="hang"))
        codes.append((reply.code, reply.headers.get("retry-after"), message(reply)))
    with Configured(server, hooks, "hang", hooks.client("/hang"), timeoutSeconds=3):
        threads = [threading.Thread(target=create, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        wait_until("the webhook to be full", lambda: len(hooks.calls("/hang")) == 16)
        for i in range(5):
            assert server.ask("POST", MAPS, config_map(f"unharmed-{i}")).code == 201
        for thread in threads:
            thread.join()
    # On a busy machine a thread may start so late that a place is free again.
    assert {code for code, _, _ in codes} == {429, 500} and sum(code == 500 for code, _, _ in codes) >= 16
    assert all(after == "1" for code, after, _ in codes if code == 429)
    timed_out = f'Internal error occurred: failed calling webhook "hang.example.com": failed to call webhook: Post "{hooks.url("/hang")}?timeout=3s": '
    assert all(text.startswith(timed_out) and "context deadline exceeded" in text for code, _, text in codes if code == 500)


def test_a_client_that_leaves_frees_its_place(server, hooks):
    release = threading.Event()
    hooks.answers["/leave"] = lambda r: release.wait(60) and {} if r["name"].startswith("gone") else {}
    with Configured(server, hooks, "leave", hooks.client("/leave"), timeoutSeconds=30):
        gone = []
        for i in range(16):
            connection = http.client.HTTPSConnection(server.address, timeout=30, context=server.context)
            connection.request("POST", MAPS, json.dumps(config_map(f"gone-{i}", on="leave")), {"content-type": "application/json"})
            gone.append(connection)
        wait_until("the webhook to be full", lambda: len(hooks.calls("/leave")) == 16)
        assert server.ask("POST", MAPS, config_map("stays", on="leave")).code == 429
        for connection in gone:
            connection.close()
        wait_until("a place", lambda: server.ask("POST", MAPS, config_map("stays", on="leave")).code == 201, limit=15)
        release.set()
        assert server.ask("DELETE", MAPS + "/stays").code == 200
        assert not [m for m in server.ask("GET", MAPS).json["items"] if m["metadata"]["name"].startswith("gone")]


def test_nothing_is_written_for_a_client_that_has_left(server, hooks):
    """When the client leaves, the call of the webhook fails. failurePolicy Ignore must not let the write through."""
    release = threading.Event()
    hooks.answers["/left"] = lambda _: release.wait(60) and {}
    with Configured(server, hooks, "left", hooks.client("/left"), timeoutSeconds=30, failurePolicy="Ignore"):
        connection = http.client.HTTPSConnection(server.address, timeout=30, context=server.context)
        connection.request("POST", MAPS, json.dumps(config_map("left", on="left")), {"content-type": "application/json"})
        wait_until("the call", lambda: hooks.calls("/left"))
        connection.close()
        wait_until("the end of the call", lambda: 'fail_open_count{name="left.example.com"' in server.ask("GET", "/metrics").text, limit=15)
        for i in range(3):
            assert server.ask("POST", MAPS, config_map(f"later-{i}")).code == 201
        assert server.ask("GET", MAPS + "/left").code == 404
        release.set()


def test_reviews_and_tokens_pass_admission(server, hooks):
    reviews = {"apiGroups": ["authorization.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["subjectaccessreviews"]}
    tokens = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}
    answers = [{"allowed": False, "status": {"message": "no reviews"}}, {"warnings": ["seen"]}]
    hooks.answers["/unstored"] = lambda _: answers[0]
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
              "spec": {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    asks = [("/apis/authorization.k8s.io/v1/subjectaccessreviews", review), ("/api/v1/namespaces/default/serviceaccounts/default/token", token)]
    with Configured(server, hooks, "unstored", hooks.client("/unstored"), rules=[reviews, tokens], objectSelector={}):
        for path, body in asks:
            reply = server.ask("POST", path, body)
            assert reply.code == 400 and message(reply) == 'admission webhook "unstored.example.com" denied the request: no reviews'
        asked = hooks.calls("/unstored")
        assert asked[0]["resource"]["resource"] == "subjectaccessreviews" and asked[0]["object"]["spec"] == review["spec"]
        assert asked[1]["resource"]["resource"] == "serviceaccounts" and asked[1]["subResource"] == "token" and asked[1]["name"] == "default"
        assert asked[1]["kind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
        del answers[0]
        for path, body in asks:
            reply = server.ask("POST", path, body)
            assert reply.code == 201 and reply.json["status"] and reply.warnings == ['299 - "seen"']


def test_a_change_counts_on_the_other_instance(cluster, hooks):
    service = {"service": {"namespace": "system", "name": "hook", "path": "/elsewhere"}, "caBundle": hooks.client("/")["caBundle"]}
    flag = f"--webhook-service-resolver=system/hook=127.0.0.1:{hooks.port}"
    one, other = (cluster.instance(name, flag) for name in ("one", "other"))
    for instance in (one, other):
        instance.wait_ready()
    hooks.answers["/elsewhere"] = lambda _: {"allowed": False, "status": {"message": "seen"}}
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "both"},
            "webhooks": [{"name": "both.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": service, "rules": [RULE]}]}
    code, text = one.request("POST", CONFIGURATIONS + "validatingwebhookconfigurations", body)
    assert code == 201, text

    def refused(instance):
        return instance.request("POST", MAPS + "?dryRun=All", config_map("probe"))[0] == 400
    wait_until("the webhook on both instances", lambda: refused(one) and refused(other))
    assert other.request("DELETE", CONFIGURATIONS + "validatingwebhookconfigurations/both")[0] == 200
    wait_until("no webhook on both instances", lambda: not refused(one) and not refused(other))


def test_a_stored_address_without_https_is_a_failure_of_the_webhook(hooks):
    """No client can write one, but a store may have been restored from another server. The failurePolicy decides."""
    def etcdctl(*args, value=None):
        return subprocess.run(["etcdctl", f"--endpoints={cluster.etcd.url}", *args], input=value, capture_output=True, timeout=60, check=True,
                              env={**os.environ, "ETCDCTL_API": "3"}).stdout

    with Cluster(with_witness=False) as cluster:
        server = cluster.instance("a").wait_ready()
        hooks.answers["/deny"] = lambda _: {"allowed": False}
        for name, policy in (("closed", "Fail"), ("open", "Ignore")):
            webhook = {"name": f"{name}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": hooks.client("/deny"),
                       "rules": [RULE], "failurePolicy": policy, "objectSelector": {"matchLabels": {"on": name}}}
            code, text = server.request("POST", CONFIGURATIONS + "validatingwebhookconfigurations", {"metadata": {"name": name}, "webhooks": [webhook]})
            assert code == 201, text

        def create(on):
            return server.request("POST", MAPS + "?dryRun=All", config_map("a", on=on))
        wait_until("both webhooks to be in force", lambda: create("closed")[0] == create("open")[0] == 400)
        for name in ("closed", "open"):
            key = f"/registry/validatingwebhookconfigurations/{name}"
            stored = etcdctl("get", "--print-value-only", key)[:-1]
            assert b'"https://' in stored
            etcdctl("put", key, value=stored.replace(b'"https://', b'"http://'))
        wait_until("the failure to be ignored", lambda: create("open")[0] == 201)

        def refusal():
            code, text = create("closed")
            return code == 500 and json.loads(text)["message"]
        wait_until("the failure to count", refusal)
        assert refusal() == ('Internal error occurred: failed calling webhook "closed.example.com": could not get REST client: '
                             'the URL is not one of https')


def test_a_plugin_in_c_changes_and_refuses_objects(tmp_path):
    tmp_path.chmod(0o700)
    plugin = tmp_path / "admission.so"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", ROOT / "examples" / "admission.c", f"-I{ROOT}/base/include",
                    "-I/usr/include/cjson", "-lcjson", "-o", plugin], check=True)
    with MemoryServer(f"--admission-plugin={plugin}") as server:
        reply = server.ask("POST", MAPS, config_map("a"))
        assert reply.code == 403 and message(reply) == 'admission plug-in "owner" denied the request: the label "owner" is missing'
        reply = server.ask("POST", MAPS, config_map("a", owner="nobody"))
        assert reply.code == 201 and reply.json["metadata"]["annotations"] == {"example.com/seen": "holdfast-admin"}
        assert reply.warnings == ['299 - "nobody owns a"']
        assert server.ask("DELETE", MAPS + "/a").code == 200
    plugin.chmod(0o777)
    refused = subprocess.run([HOLDFASTD, "--storage=memory", "--secure-port=0", f"--write-kubeconfig={tmp_path}/kubeconfig", f"--admission-plugin={plugin}"],
                             capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2 and "--admission-plugin" in refused.stderr


NAMED_PLUGIN = """
#include <holdfast/admission.h>
#include <stdio.h>
static void warn(void *ctx, const struct hf_admission_request *request, struct hf_admission_response *response) {
    (void)ctx, (void)request;
    (void)snprintf(response->warning, sizeof response->warning, "%s", NAME);
}
const struct hf_admission *hf_admission_open(void);
const struct hf_admission *hf_admission_open(void) {
    static const struct hf_admission plugin = {.size = sizeof plugin, .name = NAME, .validate = warn};
    return &plugin;
}
"""


SIZED_PLUGIN = """
#include <holdfast/admission.h>
static struct { struct hf_admission known; void *later; } plugin;
static void allow(void *ctx, const struct hf_admission_request *request, struct hf_admission_response *response) { (void)ctx, (void)request, (void)response; }
const struct hf_admission *hf_admission_open(void);
const struct hf_admission *hf_admission_open(void) {
    plugin.known = (struct hf_admission){.size = SIZE, .name = "sized", .validate = allow};
    plugin.later = LATER;
    return &plugin.known;
}
"""


@pytest.mark.parametrize("size, later, fault", [("sizeof plugin", "0", None), ("sizeof plugin.known", "&plugin", None),
                                                ("sizeof plugin", "&plugin", "sets a member that this library does not know"),
                                                ("sizeof plugin.known - 1", "0", "the member size of struct hf_admission is"),
                                                ("0", "0", "the member size of struct hf_admission is 0")])
def test_a_plugin_in_c_of_another_release_is_loaded_if_all_of_it_is_known(tmp_path, size, later, fault):
    tmp_path.chmod(0o700)
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text(SIZED_PLUGIN)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, f"-DSIZE=({size})", f"-DLATER={later}", f"-I{ROOT}/base/include",
                    "-o", plugin], check=True)
    if not fault:
        with MemoryServer(f"--admission-plugin={plugin}") as server:
            assert server.ask("POST", MAPS, config_map("a")).code == 201
        return
    refused = subprocess.run([HOLDFASTD, "--storage=memory", "--secure-port=0", f"--write-kubeconfig={tmp_path}/kubeconfig", f"--admission-plugin={plugin}"],
                             capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2 and "--admission-plugin" in refused.stderr and fault in refused.stderr


def test_each_of_two_plugins_in_c_is_asked(tmp_path):
    tmp_path.chmod(0o700)
    source = tmp_path / "plugin.c"
    source.write_text(NAMED_PLUGIN)
    plugins = [tmp_path / f"{name}.so" for name in ("one", "two")]
    for plugin in plugins:
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, f'-DNAME="{plugin.stem}"', f"-I{ROOT}/base/include", "-o", plugin],
                       check=True)
    with MemoryServer(f"--admission-plugin={plugins[0]},{plugins[1]}") as server:
        reply = server.ask("POST", MAPS, config_map("a"))
        assert reply.code == 201 and reply.warnings == ['299 - "one"', '299 - "two"']
