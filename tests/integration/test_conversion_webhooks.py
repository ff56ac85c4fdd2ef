# SPDX-License-Identifier: Apache-2.0
"""Custom resources whose versions a webhook converts: every verb in both versions, watches, failures, a webhook that hangs, and the move of
objects to a new storage version. v1 has spec.host as "name:port", v2 has spec.name and spec.port."""
import base64
import copy
import http.client
import json
import signal
import threading

import pytest

from holdfastd import wait_until
from memory_server import MemoryServer
from webhook import Webhook

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def path(version, name="", plural="gates", suffix=""):
    return f"/apis/example.com/{version}/namespaces/default/{plural}{'/' + name if name else ''}{suffix}"


def gate(version, name="a", host="x", port=1, **more):
    spec = {"host": f"{host}:{port}"} if version == "v1" else {"name": host, "port": port}
    return {"apiVersion": f"example.com/{version}", "kind": "Gate", "metadata": {"name": name, **more}, "spec": {**spec, "replicas": 1}}


def convert_spec(spec, version):
    spec = dict(spec)
    if version == "v2" and "host" in spec:
        spec["name"], port = spec.pop("host").split(":")
        spec["port"] = int(port)
    elif version == "v1" and "name" in spec:
        spec["host"] = f"{spec.pop('name')}:{spec.pop('port')}"
    return spec


def convert(body):
    request = body["request"]
    version = request["desiredAPIVersion"]
    objects = copy.deepcopy(request["objects"])
    for each in objects:
        assert each["apiVersion"] != version
        each["apiVersion"] = version
        each["spec"] = convert_spec(each["spec"], version.split("/")[1])
    return {"apiVersion": body["apiVersion"], "kind": body["kind"],
            "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}}


def schema(**properties):
    integer, string = {"type": "integer"}, {"type": "string"}
    kinds = {"integer": integer, "string": string}
    spec = {name: kinds[kind] for name, kind in properties.items()}
    return {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {**spec, "replicas": integer}},
        "status": {"type": "object", "properties": {"replicas": integer, "note": string}}}}}


def definition(client, storage="v1", plural="gates", kind="Gate"):
    more = {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}
    versions = [{"name": "v1", "served": True, "storage": storage == "v1", "schema": schema(host="string"), **more,
                 "additionalPrinterColumns": [{"name": "Host", "type": "string", "jsonPath": ".spec.host"}]},
                {"name": "v2", "served": True, "storage": storage == "v2", "schema": schema(name="string", port="integer"), **more,
                 "additionalPrinterColumns": [{"name": "Port", "type": "integer", "jsonPath": ".spec.port"}]}]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions,
                     "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}}}


class Hooks:
    """The webhook, and how it behaves."""

    def __init__(self, directory):
        self.change = lambda answer: answer
        self.reviews = []
        self.patch = []
        self.code = 200
        self.hang = False
        self.hook = Webhook(directory, self.answer, "hook.default.svc")

    def answer(self, called, body):
        if called.startswith("/admit"):
            self.reviews.append(body["request"])
            response = {"uid": body["request"]["uid"], "allowed": True}
            if "/mutate" in called:
                response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(self.patch).encode()).decode()}
            return 200, {**body, "request": None, "response": response}
        if self.hang:
            self.hook.release.wait(60)
        return self.code, self.change(convert(body)) if self.code == 200 else "out of order\n"

    @property
    def client(self):
        return {"url": f"{self.hook.url}/convert", "caBundle": self.hook.bundle}

    def reset(self):
        self.change, self.code, self.hang = (lambda answer: answer), 200, False


def define(server, body):
    assert server.ask("POST", DEFINITIONS, body).code == 201
    name = body["spec"]["names"]["plural"]
    for version in ("v1", "v2"):
        wait_until(f"{name} in {version}", lambda v=version: server.ask("GET", path(v, plural=name)).code == 200)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    hooks = Hooks(tmp_path_factory.mktemp("hook"))
    server = MemoryServer(f"--webhook-service-resolver=default/hook=127.0.0.1:{hooks.hook.port}")
    try:
        define(server, definition(hooks.client))
        yield server, hooks
    finally:
        hooks.hook.close()
        server.end()


@pytest.fixture
def server(both):
    server, hooks = both
    yield server
    hooks.reset()
    server.ask("DELETE", path("v1"))


@pytest.fixture
def hooks(both):
    return both[1]


def good(reply, code=200):
    assert reply.code == code, reply.text
    return reply.json


def test_a_hung_webhook_holds_nobody_else(server, hooks):
    """This test must come first. No response has shown yet that the webhook speaks HTTP/1.1, where a connection carries one request at a time."""
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    hooks.hang = True
    before = len(hooks.hook.calls)
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(server.ask("GET", path("v2", "a") + "?timeout=20s"))) for _ in range(90)]
    for thread in threads:
        thread.start()
    wait_until("the calls to hang", lambda: len(hooks.hook.calls) - before >= 64)
    # Requests above the limit are refused at once; the others are served.
    wait_until("the others to be refused", lambda: len(replies) == 90 - 64)
    assert {reply.code for reply in replies} == {429}
    good(server.ask("GET", path("v1", "a")))
    good(server.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}}), 201)
    reply = server.ask("PATCH", path("v1", "a") + "?timeout=1s", {"spec": {"host": "x:5"}}, content_type=MERGE)
    assert reply.code == 200
    hooks.hang = False
    hooks.hook.release.set()
    for thread in threads:
        thread.join()
    assert sorted(reply.code for reply in replies) == 64 * [200] + 26 * [429]
    hooks.hook.release.clear()
    good(server.ask("DELETE", "/api/v1/namespaces/default/configmaps/c"))


def test_objects_are_created_and_read_in_both_versions(server, hooks):
    made = good(server.ask("POST", path("v2"), gate("v2", port=7)), 201)
    assert made["apiVersion"] == "example.com/v2" and made["spec"] == {"name": "x", "port": 7, "replicas": 1}
    assert good(server.ask("GET", path("v1", "a")))["spec"] == {"host": "x:7", "replicas": 1}
    assert good(server.ask("GET", path("v2", "a"))) == made
    assert good(server.ask("POST", path("v1"), gate("v1", "b", port=8)), 201)["spec"]["host"] == "x:8"
    found = good(server.ask("GET", path("v2")))
    assert found["kind"] == "GateList" and found["apiVersion"] == "example.com/v2"
    assert [each["spec"]["port"] for each in found["items"]] == [7, 8]
    # one call for the whole list
    sent = [body["request"] for _, body in hooks.hook.calls if len(body["request"]["objects"]) == 2]
    assert sent and all(each["desiredAPIVersion"] == "example.com/v2" for each in sent)
    assert hooks.hook.calls[0][0] == "/convert?timeout=30s"
    for query in ("?limit=1", "?limit=1&resourceVersion=0"):  # the whole list may be too large for one response
        page = good(server.ask("GET", path("v2") + query))
        assert [each["metadata"]["name"] for each in page["items"]] == ["a"] and page["metadata"]["continue"]
    table = good(server.ask("GET", path("v2"), accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
    assert [row["cells"] for row in table["rows"]] == [["a", 7], ["b", 8]]
    table = good(server.ask("GET", path("v2", "a"), accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
    assert [row["cells"] for row in table["rows"]] == [["a", 7]]


def test_a_collection_is_deleted_in_both_versions(server, hooks):
    """No delete needs the webhook. Without it the objects could be shown only as they are stored, so the response has none."""
    for version, kind in (("v2", "Status"), ("v1", "GateList")):
        for name in ("a", "b"):
            good(server.ask("POST", path("v1"), gate("v1", name, port=7)), 201)
        calls = len(hooks.hook.calls)
        found = good(server.ask("DELETE", path(version)))
        assert found["kind"] == kind and found.get("status", "Success") == "Success"
        assert [each["apiVersion"] for each in found.get("items", [])] == (["example.com/v1"] * 2 if kind == "GateList" else [])
        assert len(hooks.hook.calls) == calls and not good(server.ask("GET", path("v1")))["items"]


def test_a_collection_is_marked_without_the_webhook(server, hooks):
    """A finalizer keeps the objects. Nobody reads the response of a single delete, so none is converted, and each is marked."""
    for name in ("a", "b"):
        good(server.ask("POST", path("v1"), gate("v1", name, finalizers=["example.com/f"])), 201)
    calls = len(hooks.hook.calls)
    hooks.code = 500
    for _ in range(2):  # the second time nothing changes
        assert good(server.ask("DELETE", path("v2")))["kind"] == "Status"
    assert len(hooks.hook.calls) == calls
    for name in ("a", "b"):
        assert good(server.ask("GET", path("v1", name)))["metadata"]["deletionTimestamp"]
        good(server.ask("PATCH", path("v1", name), {"metadata": {"finalizers": None}}, content_type=MERGE))


def test_a_long_list_is_converted_in_batches(server, hooks):
    connection = http.client.HTTPSConnection(server.address, timeout=30, context=server.context)
    for i in range(120):
        connection.request("POST", path("v1"), json.dumps(gate("v1", f"n-{i:03}", port=i)), {"content-type": "application/json"})
        response = connection.getresponse()
        assert (response.read() and response.status) == 201
    connection.close()
    assert [each["spec"]["port"] for each in good(server.ask("GET", path("v2")))["items"]] == list(range(120))
    with Watch(server, path("v2") + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan") as watch:
        events = [watch.next() for _ in range(121)]
        assert [each["object"]["spec"]["port"] for each in events[:120]] == list(range(120))
        assert events[120]["type"] == "BOOKMARK"
        assert events[120]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_objects_are_changed_in_both_versions(server):
    good(server.ask("POST", path("v1"), gate("v1", port=1, labels={"l": "1"})), 201)
    found = good(server.ask("GET", path("v2", "a")))
    found["spec"]["port"] = 2
    found = good(server.ask("PUT", path("v2", "a"), found))
    assert found["spec"]["port"] == 2 and found["metadata"]["generation"] == 2
    assert good(server.ask("PATCH", path("v2", "a"), {"spec": {"port": 3}}, content_type=MERGE))["spec"] == {"name": "x", "port": 3, "replicas": 1}
    assert good(server.ask("GET", path("v1", "a")))["spec"]["host"] == "x:3"
    revision = good(server.ask("GET", path("v1", "a")))["metadata"]["resourceVersion"]
    unchanged = good(server.ask("PATCH", path("v2", "a"), {"spec": {"port": 3}}, content_type=MERGE))
    assert unchanged["metadata"]["resourceVersion"] == revision and unchanged["apiVersion"] == "example.com/v2"
    applied = good(server.ask("PATCH", path("v2", "a") + "?fieldManager=me&force=true", gate("v2", port=4), content_type=APPLY))
    assert applied["spec"]["port"] == 4
    created = good(server.ask("PATCH", path("v2", "c") + "?fieldManager=me", gate("v2", "c", port=5), content_type=APPLY), 201)
    assert created["spec"] == {"name": "x", "port": 5, "replicas": 1}
    tried = gate("v2", port=6, resourceVersion=applied["metadata"]["resourceVersion"])
    assert good(server.ask("PUT", path("v2", "a") + "?dryRun=All", tried))["spec"]["port"] == 6
    assert good(server.ask("GET", path("v2", "a")))["spec"]["port"] == 4
    stale = gate("v2", port=9, resourceVersion="1")
    assert server.ask("PUT", path("v2", "a"), stale).code == 409


def test_subresources_are_written_in_both_versions(server):
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    found = good(server.ask("PATCH", path("v2", "a", suffix="/status"), {"status": {"note": "n", "replicas": 1}}, content_type=MERGE))
    assert found["apiVersion"] == "example.com/v2" and found["status"] == {"note": "n", "replicas": 1}
    assert good(server.ask("GET", path("v1", "a")))["status"]["note"] == "n"
    scale = good(server.ask("PATCH", path("v2", "a", suffix="/scale"), {"spec": {"replicas": 4}}, content_type=MERGE))
    assert scale["kind"] == "Scale" and scale["spec"]["replicas"] == 4
    assert good(server.ask("GET", path("v1", "a")))["spec"] == {"host": "x:1", "replicas": 4}


def test_objects_are_deleted_in_both_versions(server):
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    assert good(server.ask("DELETE", path("v2", "a")))["status"] == "Success"
    good(server.ask("POST", path("v2"), gate("v2", finalizers=["example.com/f"])), 201)
    marked = good(server.ask("DELETE", path("v2", "a")))
    assert marked["metadata"]["deletionTimestamp"] and marked["spec"]["name"] == "x"
    last = good(server.ask("PATCH", path("v2", "a"), {"metadata": {"finalizers": None}}, content_type=MERGE))
    assert last["apiVersion"] == "example.com/v2"
    assert server.ask("GET", path("v1", "a")).code == 404
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    good(server.ask("DELETE", path("v2")))
    assert server.ask("GET", path("v1", "a")).code == 404


class Watch:
    def __init__(self, server, where):
        self.connection = http.client.HTTPSConnection(server.address, timeout=30, context=server.context)
        self.connection.request("GET", where)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def next(self):
        line = self.response.readline()
        return json.loads(line) if line else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def test_a_watch_gets_its_version_in_order(server):
    revision = good(server.ask("GET", path("v1")))["metadata"]["resourceVersion"]
    with Watch(server, path("v2") + f"?watch=1&resourceVersion={revision}") as two, \
            Watch(server, path("v1") + f"?watch=1&resourceVersion={revision}") as one:
        good(server.ask("POST", path("v1"), gate("v1", port=0)), 201)
        for i in range(1, 10):
            good(server.ask("PATCH", path("v1", "a"), {"spec": {"host": f"x:{i}"}}, content_type=MERGE))
        good(server.ask("DELETE", path("v1", "a")))
        events = [two.next() for _ in range(11)]
        assert [each["type"] for each in events] == ["ADDED"] + 9 * ["MODIFIED"] + ["DELETED"]
        assert [each["object"]["spec"]["port"] for each in events] == [*range(10), 9]
        assert [one.next()["object"]["spec"]["host"] for _ in range(10)] == [f"x:{i}" for i in range(10)]
    good(server.ask("POST", path("v1"), gate("v1", "b", port=5)), 201)
    with Watch(server, path("v2") + "?watch=1") as watch:
        assert watch.next()["object"]["spec"]["port"] == 5
        good(server.ask("PATCH", path("v1", "b"), {"spec": {"host": "y:6"}}, content_type=MERGE))
        assert watch.next()["object"]["spec"] == {"name": "y", "port": 6, "replicas": 1}


def test_many_watches_share_a_conversion(server, hooks):
    good(server.ask("POST", path("v1"), gate("v1", port=0)), 201)
    before = len(hooks.hook.calls)
    watches = [Watch(server, path("v2") + "?watch=1") for _ in range(80)]
    try:
        for watch in watches:
            assert watch.next()["object"]["spec"]["port"] == 0
        assert len(hooks.hook.calls) == before + 1
        for i in range(1, 6):
            good(server.ask("PATCH", path("v1", "a"), {"spec": {"host": f"x:{i}"}}, content_type=MERGE))
            for watch in watches:
                assert watch.next()["object"]["spec"]["port"] == i
            assert len(hooks.hook.calls) == before + 1 + i
        # The first call fails. All watches that wait for it end; none calls again.
        hooks.code = 500
        good(server.ask("PATCH", path("v1", "a"), {"spec": {"host": "x:9"}}, content_type=MERGE))
        for watch in watches:
            event = watch.next()
            assert event["type"] == "ERROR" and event["object"]["message"].startswith("conversion webhook for example.com/v1, Kind=Gate failed: ")
    finally:
        hooks.code = 200
        for watch in watches:
            watch.connection.close()


# ---- failures ----

def failing(server, *requests):
    return [(reply.code, reply.json["message"], reply.json.get("reason")) for reply in (server.ask(*each) for each in requests)]


PREFIX = "conversion webhook for example.com/v1, Kind=Gate "


def test_a_failure_is_told_to_each_client(server, hooks):
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    hooks.code = 500
    why = PREFIX + 'failed: an error on the server ("out of order") has prevented the request from succeeding'
    for each in failing(server, ("GET", path("v2", "a")), ("GET", path("v2"))):
        assert each == (500, why, None)
    reply = server.ask("PATCH", path("v2", "a"), {"spec": {"port": 3}}, content_type=MERGE)
    assert (reply.code, reply.json["message"]) == (500, why)
    reply = server.ask("POST", path("v2"), gate("v2", "b"))
    assert (reply.code, reply.json["message"]) == (500, why.replace("com/v1", "com/v2"))
    # reads in the stored version, metadata and deletes need no webhook
    good(server.ask("GET", path("v1", "a")))
    good(server.ask("GET", path("v2"), accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"))
    good(server.ask("DELETE", path("v2", "a")))
    assert server.ask("GET", path("v1", "b")).code == 404
    metrics = server.ask("GET", "/metrics").text
    for labels in ('failure_type="",result="success"', 'failure_type="conversion_webhook_call_failure",result="failure"'):
        assert f"apiserver_conversion_webhook_request_total{{{labels}}}" in metrics


def lie(**response):
    def change(answer):
        answer["response"].update(response)
        return answer
    return change


def spoil(member, value):
    def change(answer):
        at = answer["response"]["convertedObjects"][0]
        *path_to, last = member.split(".")
        for key in path_to:
            at = at[key]
        at[last] = value
        return answer
    return change


def test_a_lying_webhook_is_found_out(server, hooks):
    uid = good(server.ask("POST", path("v1"), gate("v1")), 201)["metadata"]["uid"]
    cases = [
        (lambda answer: {**answer, "kind": "X"}, "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, "
                                                 "got apiextensions.k8s.io/v1, Kind=X"),
        (lambda answer: {**answer, "response": None}, "failed: no response provided"),
        (lie(result={"status": "Failed", "message": "no way"}), "failed: no way"),
        (lie(result={"status": "Failed"}), "failed: response.result.status was 'Failed', not 'Success'"),
        (lie(convertedObjects=[]), "returned 0 objects, expected 1"),
        (spoil("apiVersion", "example.com/v3"), "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, "
                                                "received example.com/v3)"),
        (spoil("kind", "Wall"), "returned invalid object at index 0: invalid kind (expected Gate, received Wall)"),
        (spoil("metadata.name", "b"), "returned invalid object: must have the same name: a != b"),
        (spoil("metadata.namespace", "b"), "returned invalid object: must have the same namespace: default != b"),
        (spoil("metadata.uid", "b"), f"returned invalid object: must have the same UID: {uid} != b"),
        (spoil("metadata.labels", {"a": 1}), "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object"),
    ]
    for hooks.change, why in cases:
        assert failing(server, ("GET", path("v2", "a"))) == [(500, PREFIX + why, None)]
    hooks.change = lie(uid="1")
    message = failing(server, ("GET", path("v2", "a")))[0][1]
    assert message.startswith(PREFIX + 'failed: expected response.uid="') and message.endswith('", got "1"')
    # The webhook may change labels and annotations. Other metadata stays as in the original, and unknown fields are dropped.
    def more(answer):
        spoil("metadata.labels", {"new": "1"})(answer)
        spoil("metadata.finalizers", ["x/y"])(answer)
        return spoil("spec.unknown", 1)(answer)
    hooks.change = more
    found = good(server.ask("GET", path("v2", "a")))
    assert found["metadata"]["labels"] == {"new": "1"} and "finalizers" not in found["metadata"] and "unknown" not in found["spec"]


def test_a_failing_conversion_ends_a_watch(server, hooks):
    good(server.ask("POST", path("v1"), gate("v1")), 201)
    with Watch(server, path("v2") + "?watch=1") as watch:
        assert watch.next()["type"] == "ADDED"
        hooks.code = 500
        good(server.ask("PATCH", path("v1", "a"), {"spec": {"host": "x:2"}}, content_type=MERGE))
        error = watch.next()
        assert error["type"] == "ERROR" and error["object"]["code"] == 500 and error["object"]["message"].startswith(PREFIX + "failed: ")
        assert watch.next() is None


def test_a_webhook_that_is_not_there_is_named(server, hooks):
    define_more = definition({"url": "https://127.0.0.1:1/convert", "caBundle": hooks.hook.bundle}, plural="walls", kind="Wall")
    define(server, define_more)
    wall = {**gate("v1"), "kind": "Wall"}
    good(server.ask("POST", path("v1", plural="walls"), wall), 201)
    assert failing(server, ("GET", path("v2", "a", "walls"))) == [
        (500, 'conversion webhook for example.com/v1, Kind=Wall failed: Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: '
              'connect: connection refused', None)]
    assert server.ask("DELETE", f"{DEFINITIONS}/walls.example.com").code == 200


def test_a_service_is_found_by_the_flag(server, hooks):
    service = {"service": {"namespace": "default", "name": "hook", "path": "/convert"}, "caBundle": hooks.hook.bundle}
    define(server, definition(service, plural="doors", kind="Door"))
    good(server.ask("POST", path("v1", plural="doors"), {**gate("v1", port=3), "kind": "Door"}), 201)
    assert good(server.ask("GET", path("v2", "a", "doors")))["spec"]["port"] == 3
    assert server.ask("DELETE", f"{DEFINITIONS}/doors.example.com").code == 200


def test_watches_that_end_do_not_wait_for_a_hung_webhook(server, hooks):
    for i in range(18):  # an object for each watch, because an object that several watch is converted only once
        good(server.ask("POST", path("v1"), gate("v1", f"a{i}")), 201)
    good(server.ask("GET", path("v2", "a1")))  # before the first reply, only a few connections are made

    def watch_of(i, more=""):
        return Watch(server, path("v2") + f"?watch=1&fieldSelector=metadata.name%3Da{i}{more}")
    hooks.hang = True
    before, watches = len(hooks.hook.calls), []
    try:
        for i in range(16):
            watches.append(watch_of(i))
        wait_until("the calls to hang", lambda: len(hooks.hook.calls) == before + 16)
        for i in range(8):  # half of them wait for a turn, and half for the call of another watch
            watches.append(watch_of(16 if i % 2 else 0, "&timeoutSeconds=1"))
        last = watch_of(17)
        watches.append(last)
        for watch in watches[16:24]:
            assert watch.next() is None
        hooks.hang = False
        hooks.hook.release.set()
        # This watch gets its turn after all earlier ones, except those that have ended.
        assert last.next()["type"] == "ADDED"
        assert len(hooks.hook.calls) == before + 17
    finally:
        hooks.hang = False
        hooks.hook.release.set()
        for watch in watches:
            watch.connection.close()
        hooks.hook.release.clear()


def test_a_server_stops_while_a_webhook_hangs(tmp_path):
    hooks = Hooks(tmp_path / "hook")
    server = MemoryServer()
    try:
        define(server, definition(hooks.client))
        good(server.ask("POST", path("v1"), gate("v1")), 201)
        with Watch(server, path("v2") + "?watch=1") as watch:
            assert watch.next()["type"] == "ADDED"
            hooks.hang = True
            before = len(hooks.hook.calls)
            replies = []
            thread = threading.Thread(target=lambda: replies.append(server.ask("GET", path("v2", "a") + "?timeout=2s")))
            thread.start()
            good(server.ask("PATCH", path("v1", "a"), {"spec": {"host": "x:2"}}, content_type=MERGE))
            wait_until("a request and the watch to hang", lambda: len(hooks.hook.calls) == before + 2)
            server.child.send_signal(signal.SIGTERM)
            # The request ends at its own time limit and the watch at once. The hanging calls do not delay the stop.
            assert server.child.wait(30) == 0, server.log_text()
            thread.join()
            assert replies[0].code == 500 and replies[0].json["message"].endswith('?timeout=30s": context deadline exceeded')
            assert watch.next() is None
    finally:
        hooks.hook.close()
        server.end()


# ---- admission ----

def test_admission_sees_the_version_of_the_request(server, hooks):
    hook = {"name": "gates.example.com", "clientConfig": {"url": f"{hooks.hook.url}/admit", "caBundle": hooks.hook.bundle},
            "rules": [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["gates"]}],
            "matchPolicy": "Exact", "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    where = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    good(server.ask("POST", where, {"metadata": {"name": "gates"}, "webhooks": [hook]}), 201)

    def is_asked():
        good(server.ask("POST", path("v2") + "?dryRun=All", gate("v2", "try")), 201)
        return hooks.reviews
    wait_until("the webhook to be asked", is_asked)
    good(server.ask("POST", path("v1"), gate("v1", port=5, finalizers=["example.com/f"])), 201)
    hooks.reviews.clear()
    good(server.ask("PATCH", path("v2", "a"), {"spec": {"port": 6}}, content_type=MERGE))
    marked = good(server.ask("DELETE", path("v2", "a")))
    assert marked["metadata"]["deletionTimestamp"] and marked["spec"]["port"] == 6
    assert good(server.ask("GET", path("v1", "a")))["spec"]["host"] == "x:6"
    good(server.ask("PATCH", path("v1", "a"), {"metadata": {"finalizers": None}}, content_type=MERGE))
    update, delete = hooks.reviews
    assert (update["operation"], update["object"]["spec"]["port"], update["oldObject"]["spec"]["port"]) == ("UPDATE", 6, 5)
    assert (delete["operation"], delete["oldObject"]["apiVersion"], delete["oldObject"]["spec"]["port"]) == ("DELETE", "example.com/v2", 6)
    good(server.ask("DELETE", f"{where}/gates"))


def configured(server, hooks, plural, name, version, where):
    """Registers an admission webhook. Its rules name one version of gates; its matchConditions hold for all gates in v1."""
    hook = {"name": f"{name}.example.com", "clientConfig": {"url": f"{hooks.hook.url}/admit/{where}", "caBundle": hooks.hook.bundle},
            "rules": [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": [version], "resources": ["gates"]}],
            "matchConditions": [{"name": "a", "expression": "object == null || object.apiVersion == 'example.com/v1'"},
                                {"name": "b", "expression": "oldObject == null || has(oldObject.spec.host)"}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    base = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    good(server.ask("POST", base, {"metadata": {"name": name}, "webhooks": [hook]}), 201)
    return f"{base}/{name}"


def test_webhooks_get_the_version_that_their_rules_name(server, hooks):
    """matchPolicy Equivalent, the default: objects are converted for the webhook, and its changes back."""
    made = [configured(server, hooks, "validatingwebhookconfigurations", "see", "v1", "validate"),
            configured(server, hooks, "mutatingwebhookconfigurations", "change", "v1", "mutate")]
    hooks.patch = [{"op": "replace", "path": "/spec/host", "value": "changed:7"}]

    def is_asked():
        hooks.reviews.clear()
        reply = server.ask("POST", path("v2") + "?dryRun=All", gate("v2", "try"))
        return reply.code == 201 and len(hooks.reviews) == 2
    try:
        wait_until("both webhooks to be asked", is_asked)
        hooks.reviews.clear()
        made_gate = good(server.ask("POST", path("v2"), gate("v2", port=5)), 201)
        assert made_gate["spec"] == {"name": "changed", "port": 7, "replicas": 1}
        mutated, seen = hooks.reviews
        assert mutated["kind"] == {"group": "example.com", "version": "v1", "kind": "Gate"} and mutated["requestKind"]["version"] == "v2"
        assert mutated["object"]["spec"]["host"] == "x:5" and seen["object"]["spec"]["host"] == "changed:7"
        assert "resourceVersion" not in seen["object"]["metadata"] and seen["object"]["metadata"]["uid"] == made_gate["metadata"]["uid"]
        hooks.reviews.clear()
        hooks.patch[0]["value"] = "again:8"
        good(server.ask("PATCH", path("v2", "a"), {"spec": {"port": 6}}, content_type=MERGE))
        mutated, seen = hooks.reviews
        assert [r["oldObject"]["spec"]["host"] for r in hooks.reviews] == ["changed:7", "changed:7"]
        assert (mutated["object"]["spec"]["host"], seen["object"]["spec"]["host"]) == ("changed:6", "again:8")
        assert good(server.ask("GET", path("v2", "a")))["spec"]["port"] == 8
        hooks.reviews.clear()
        hooks.patch = []
        good(server.ask("DELETE", path("v2", "a")))
        assert [r["oldObject"]["spec"]["host"] for r in hooks.reviews] == ["again:8", "again:8"]
        hooks.code = 500
        failed = server.ask("POST", path("v2"), gate("v2", "b"))
        assert failed.code == 500 and failed.json["reason"] == "InternalError"
        assert failed.json["message"].startswith("Internal error occurred: conversion webhook for example.com/v2, Kind=Gate failed: ")
    finally:
        hooks.code = 200
        for each in made:
            good(server.ask("DELETE", each))


def test_policies_get_the_version_that_their_rules_name(server, hooks):
    base = "/apis/admissionregistration.k8s.io/v1"
    rules = {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gates"]}]}
    policies = {
        "validatingadmissionpolic": {"matchConstraints": rules, "validations": [
            {"expression": "object.spec.host != 'bad:2'", "messageExpression": "'refused ' + object.spec.host + ' of ' + request.kind.version"}]},
        "mutatingadmissionpolic": {"matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'replace', path: '/spec/host', value: object.spec.host.replace('ugly', 'bad')}]"}}]}}
    made = []
    try:
        for plural, spec in policies.items():
            good(server.ask("POST", f"{base}/{plural}ies", {"metadata": {"name": "gates"}, "spec": spec}), 201)
            binding = {"policyName": "gates"} | ({"validationActions": ["Deny"]} if plural.startswith("v") else {})
            good(server.ask("POST", f"{base}/{plural}ybindings", {"metadata": {"name": "gates"}, "spec": binding}), 201)
            made += [f"{base}/{plural}ybindings/gates", f"{base}/{plural}ies/gates"]
        wait_until("the policies to count",
                   lambda: server.ask("POST", path("v2") + "?dryRun=All", gate("v2", "try", "ugly", 2)).code == 422)
        refused = server.ask("POST", path("v2"), gate("v2", "c", "ugly", 2))
        assert refused.json["message"] == ("gates.example.com \"c\" is forbidden: ValidatingAdmissionPolicy 'gates' with binding 'gates' denied request: "
                                           "refused bad:2 of v1")
        assert good(server.ask("POST", path("v2"), gate("v2", "c", "ugly", 3)), 201)["spec"]["name"] == "bad"
        hooks.code = 500
        failed = server.ask("POST", path("v2"), gate("v2", "d"))
        assert failed.code == 500 and failed.json["message"].startswith(
            "Internal error occurred: failed to convert object: conversion webhook for example.com/v2, Kind=Gate failed: ")
        hooks.code = 200
        good(server.ask("DELETE", f"{base}/mutatingadmissionpolicybindings/gates"))
        made.remove(f"{base}/mutatingadmissionpolicybindings/gates")
        wait_until("the binding to be gone",
                   lambda: server.ask("POST", path("v2") + "?dryRun=All", gate("v2", "try", "ugly", 2)).code == 201)
        hooks.code = 500
        failed = server.ask("POST", path("v2"), gate("v2", "d"))
        assert failed.code == 422 and ("denied request: failed to configure binding: failed to convert object version: conversion webhook for "
                                       "example.com/v2, Kind=Gate failed: ") in failed.json["message"], failed.text
    finally:
        hooks.code = 200
        for each in made:
            good(server.ask("DELETE", each))


def test_a_changed_object_that_is_not_converted_is_refused(server, hooks):
    """A policy changes an object so that the webhook does not convert it again, and then would change it once more."""
    base = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
    rules = {"resourceRules": [{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gates"]}]}
    expressions = ("[JSONPatch{op: 'replace', path: '/spec/host', value: object.spec.host.replace('ugly', 'poison')}]",
                   "[JSONPatch{op: 'replace', path: '/spec/host', value: object.spec.host + '0'}]")

    def refuse_poison(answer):
        if any(each["spec"].get("host", "").startswith("poison") for each in answer["response"]["convertedObjects"]):
            answer["response"]["result"] = {"status": "Failed", "message": "it is poisoned"}
        return answer
    made = []
    try:
        spec = {"matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": e}} for e in expressions]}
        for plural, spec in (("ies", spec), ("ybindings", {"policyName": "poison"})):
            good(server.ask("POST", base + plural, {"metadata": {"name": "poison"}, "spec": spec}), 201)
            made.insert(0, f"{base}{plural}/poison")
        wait_until("the policy to count", lambda: server.ask("POST", path("v2") + "?dryRun=All", gate("v2", "try")).json["spec"]["port"] == 10)
        hooks.change = refuse_poison
        refused = server.ask("POST", path("v2"), gate("v2", "p", "ugly"))
        assert refused.code == 500 and refused.json["message"].endswith("it is poisoned"), refused.text
    finally:
        hooks.reset()
        for each in made:
            good(server.ask("DELETE", each))


def test_params_get_the_version_that_the_policy_names(server, hooks):
    base = "/apis/admissionregistration.k8s.io/v1"
    rules = {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
             "objectSelector": {"matchLabels": {"params": "gates"}}}
    kind = {"apiVersion": "example.com/v2", "kind": "Gate"}
    one, many = ({"parameterNotFoundAction": "Deny", "namespace": "default", **ref}
                 for ref in ({"name": "p0"}, {"selector": {"matchLabels": {"use": "params"}}}))
    policies = {
        "validatingadmissionpolic": (many, {"validations": [{"expression": "int(object.data.port) <= params.spec.port"}]}),
        "mutatingadmissionpolic": (one, {"reinvocationPolicy": "Never", "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data/name', value: params.spec.name}]"}}]})}
    configmaps, made, asked = "/api/v1/namespaces/default/configmaps?dryRun=All", [], []

    def configmap(port):
        return server.ask("POST", configmaps, {"metadata": {"name": "c", "labels": {"params": "gates"}}, "data": {"port": str(port)}})

    def name_with(port):
        reply = configmap(port)
        return reply.code == 201 and reply.json["data"].get("name")

    def change(answer):
        asked.append(len(answer["response"]["convertedObjects"]))
        return answer
    try:
        for i, port in enumerate((5, 6, 7)):
            good(server.ask("POST", path("v1"), gate("v1", f"p{i}", f"host{i}", port, labels={"use": "params"})), 201)
        for plural, (ref, spec) in policies.items():
            good(server.ask("POST", f"{base}/{plural}ies", {"metadata": {"name": "params"},
                                                            "spec": {"paramKind": kind, "matchConstraints": rules, **spec}}), 201)
            binding = {"policyName": "params", "paramRef": ref} | ({"validationActions": ["Deny"]} if plural.startswith("v") else {})
            good(server.ask("POST", f"{base}/{plural}ybindings", {"metadata": {"name": "params"}, "spec": binding}), 201)
            made += [f"{base}/{plural}ybindings/params", f"{base}/{plural}ies/params"]
        wait_until("the validating policy to count", lambda: configmap(6).code == 422)
        wait_until("the mutating policy to count", lambda: name_with(5) == "host0")
        # one call converts all changed objects; the unchanged ones are not converted again
        for name in ("p0", "p2"):
            good(server.ask("PATCH", path("v1", name), {"spec": {"host": "other:9"}}, content_type=MERGE))
        hooks.change = change
        wait_until("the changed params to count", lambda: name_with(6) == "other")
        assert sorted(asked) == [1, 1] and configmap(7).code == 422 and len(asked) == 2
        good(server.ask("PATCH", path("v1", "p1"), {"spec": {"host": "other:3"}}, content_type=MERGE))
        hooks.code = 500
        wait_until("the changed param to count", lambda: configmap(5).code != 201)
        failed = configmap(5)
        assert failed.code == 422 and failed.json["message"].endswith(
            "ValidatingAdmissionPolicy 'params' with binding 'params' denied request: failed to configure binding: failed to convert the params to "
            "example.com/v2: " + PREFIX + 'failed: an error on the server ("out of order") has prevented the request from succeeding'), failed.text
        hooks.code = 200
        assert configmap(5).code == 422
        good(configmap(3), 201)
    finally:
        hooks.code = 200
        for each in made:
            good(server.ask("DELETE", each))


def test_params_are_converted_for_scales_and_tokens(server, hooks):
    base, accounts = "/apis/admissionregistration.k8s.io/v1", "/api/v1/namespaces/default/serviceaccounts"
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts/token"]},
             {"operations": ["UPDATE"], "apiGroups": ["example.com"], "apiVersions": ["v1", "v2"], "resources": ["gates/scale"]}]
    ref = {"parameterNotFoundAction": "Deny", "namespace": "default", "name": "scaled"}
    spec = {"paramKind": {"apiVersion": "example.com/v2", "kind": "Gate"}, "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "params.spec.port != 5", "message": "port is five"}]}

    def scale():
        return server.ask("PATCH", path("v1", "scaled", suffix="/scale"), {"spec": {"replicas": 3}}, content_type=MERGE)

    def token():
        return server.ask("POST", f"{accounts}/scaler/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    good(server.ask("POST", accounts, {"metadata": {"name": "scaler"}}), 201)
    good(server.ask("POST", path("v1"), gate("v1", "scaled", "host", 5)), 201)
    good(server.ask("POST", f"{base}/validatingadmissionpolicies", {"metadata": {"name": "scales"}, "spec": spec}), 201)
    try:
        good(server.ask("POST", f"{base}/validatingadmissionpolicybindings",
                        {"metadata": {"name": "scales"}, "spec": {"policyName": "scales", "paramRef": ref, "validationActions": ["Deny"]}}), 201)
        wait_until("the policy to count", lambda: token().code != 201)
        for refused in (token(), scale()):
            assert refused.code == 422 and refused.json["message"].endswith("denied request: port is five"), refused.text
        good(server.ask("PATCH", path("v1", "scaled"), {"spec": {"host": "host:6"}}, content_type=MERGE))
        wait_until("the changed params to count", lambda: token().code == 201)
        good(scale())
    finally:
        for each in ("ybindings", "ies"):
            server.ask("DELETE", f"{base}/validatingadmissionpolic{each}/scales")


# ---- storage versions ----

def test_objects_move_to_a_new_storage_version(server, hooks):
    good(server.ask("POST", path("v1"), gate("v1", port=5, finalizers=["example.com/f"])), 201)
    good(server.ask("POST", path("v1"), gate("v1", "b", port=6)), 201)
    found = good(server.ask("GET", f"{DEFINITIONS}/gates.example.com"))
    for version in found["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    good(server.ask("PUT", f"{DEFINITIONS}/gates.example.com", found))

    def is_moved():
        # Objects stored in v1 are still served in v1 without the webhook. New objects are stored in v2.
        before = len(hooks.hook.calls)
        return server.ask("GET", path("v1", "b")).code == 200 and server.ask("GET", path("v2", "b")).code == 200 and \
            good(server.ask("GET", f"{DEFINITIONS}/gates.example.com"))["status"]["storedVersions"] == ["v1", "v2"] and \
            len(hooks.hook.calls) == before + 1
    wait_until("the definition to have changed", is_moved)
    hooks.code = 500
    good(server.ask("GET", path("v1", "a")))
    assert server.ask("GET", path("v2", "a")).code == 500
    # A delete marks the object and keeps it in its stored version.
    hooks.code = 200
    marked = good(server.ask("DELETE", path("v2", "a")))
    assert marked["metadata"]["deletionTimestamp"] and marked["spec"] == {"name": "x", "port": 5, "replicas": 1}
    good(server.ask("PATCH", path("v1", "a"), {"metadata": {"finalizers": None}}, content_type=MERGE))
    # An update without a change still writes the object in the new storage version.
    before = good(server.ask("GET", path("v2", "b")))
    after = good(server.ask("PUT", path("v2", "b"), before))
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"] and after["spec"] == before["spec"]
    again = good(server.ask("PUT", path("v1", "b"), good(server.ask("GET", path("v1", "b")))))
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    hooks.code = 500
    assert good(server.ask("GET", path("v2", "b")))["spec"]["port"] == 6
    assert server.ask("GET", path("v1", "b")).code == 500
    hooks.code = 200
