# SPDX-License-Identifier: Apache-2.0
"""What lists and watches say about kinds and columns: items of a list of a built-in kind have no kind and apiVersion of their own, and
only the first event of a watch as a Table has the columns."""
import http.client
import json

import pytest
from memory_server import MemoryServer

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
STREAM = "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
N = 40  # more objects than fit into a list that is made in one piece
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        for i in range(N):
            assert server.ask("POST", CONFIGMAPS, {"metadata": {"name": f"c{i:02}", "labels": {"n": str(i % 10)}}, "data": {"kind": "x"}}).code == 201
        assert server.ask("POST", "/api/v1/namespaces/default/events", {
            "metadata": {"name": "e"}, "involvedObject": {"kind": "ConfigMap", "name": "c00", "namespace": "default"}, "reason": "r"}).code == 201
        assert server.kubectl("create", "-f", "-", stdin=json.dumps(DEFINITION)).returncode == 0
        assert server.kubectl("wait", "--for=condition=established", "crd/widgets.example.com").returncode == 0
        assert server.ask("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}).code == 201
        yield server


def items(api, path, **headers):
    reply = api.ask("GET", path, **headers)
    assert reply.code == 200, reply.text
    return reply.json["items"]


@pytest.mark.parametrize("path, n", [
    (CONFIGMAPS, N + 1), (CONFIGMAPS + "?limit=3", 3), (CONFIGMAPS + "?limit=35", 35), (CONFIGMAPS + "?labelSelector=n%3D1", 4), (CONFIGMAPS + "?pretty=1", N + 1),
    (CONFIGMAPS + "?fieldSelector=metadata.name%3Dc01", 1), (CONFIGMAPS + "?resourceVersion=0", N + 1), ("/api/v1/namespaces/default/events", 1),
    ("/apis/events.k8s.io/v1/namespaces/default/events", 1), ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", 1)])
def test_items_of_built_in_kinds_have_no_kind(api, path, n):
    found = items(api, path)
    assert len(found) == n
    for item in found:
        assert next(iter(item)) == "metadata" and "kind" not in item and "apiVersion" not in item
        assert item["metadata"]["resourceVersion"]


def test_single_objects_and_custom_resources_keep_their_kind(api):
    assert [(o["kind"], o["apiVersion"]) for o in items(api, WIDGETS)] == [("Widget", "example.com/v1")]
    one = api.ask("GET", CONFIGMAPS + "/c00").json
    assert (one["kind"], one["apiVersion"], one["data"]) == ("ConfigMap", "v1", {"kind": "x"})
    assert {o["kind"] for o in items(api, CONFIGMAPS, accept=PARTIAL)} == {"PartialObjectMetadata"}
    rows = api.ask("GET", CONFIGMAPS + "?includeObject=Object", accept=TABLE).json["rows"]
    assert {row["object"]["kind"] for row in rows} == {"ConfigMap"}


def test_a_deletecollection_answers_with_items_without_kind(api):
    path = "/api/v1/namespaces/default/secrets"
    assert api.ask("POST", path, {"metadata": {"name": "s"}}).code == 201
    gone = api.ask("DELETE", path).json
    assert gone["kind"] == "SecretList" and all("kind" not in item for item in gone["items"])


def test_kubectl_and_its_templates_show_the_kind(api):
    for output in ("json", "yaml"):
        shown = api.kubectl("get", "cm", "c00", "c01", "-o", output).stdout
        assert shown.count("ConfigMap") == 2
    assert api.kubectl("get", "cm", "-l", "n=1", "-o", "jsonpath={.items[*].kind}").stdout == " ".join(["ConfigMap"] * 4)


def events(api, path, n, accept=None):
    """Opens a watch. Returns its first n events."""
    connection = http.client.HTTPSConnection(api.address, timeout=30, context=api.context)
    try:
        connection.request("GET", path + ("&" if "?" in path else "?") + "watch=1", headers={"accept": accept} if accept else {})
        response = connection.getresponse()
        assert response.status == 200
        return [json.loads(response.readline()) for _ in range(n)]
    finally:
        connection.close()


def test_events_of_watches_have_the_kind(api):
    for path, n in ((CONFIGMAPS, N + 1), (CONFIGMAPS + STREAM, N + 2)):
        assert {e["object"]["kind"] for e in events(api, path, n)} == {"ConfigMap"}


@pytest.mark.parametrize("path, n", [(CONFIGMAPS, N + 1), (CONFIGMAPS + STREAM, N + 2), (WIDGETS, 1), (WIDGETS + STREAM, 2)])
def test_only_the_first_event_of_a_table_has_columns(api, path, n):
    for _ in range(2):  # the second time with cached chunks
        found = events(api, path, n, TABLE)
        columns = [e["object"]["columnDefinitions"] for e in found]
        assert columns[0] and columns[0][0]["name"] == "Name" and columns[1:] == [None] * (n - 1)
        assert all(len(e["object"]["rows"][0]["cells"]) == len(columns[0]) for e in found)
        if "allowWatchBookmarks" in path:
            last = found[-1]["object"]["rows"][0]["object"]
            assert found[-1]["type"] == "BOOKMARK" and last["kind"] == "PartialObjectMetadata"
            assert last["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_bookmark_that_comes_first_has_the_columns(api):
    path = CONFIGMAPS + STREAM + "&labelSelector=none"
    for include, kind in (("", "PartialObjectMetadata"), ("&includeObject=None", "PartialObjectMetadata"), ("&includeObject=Object", "ConfigMap")):
        found = events(api, path + include, 1, TABLE)
        assert found[0]["type"] == "BOOKMARK" and found[0]["object"]["columnDefinitions"]
        row = found[0]["object"]["rows"][0]
        assert row["object"]["kind"] == kind and row["cells"] == ["", 0, "<unknown>"]


def test_live_events_after_the_first_have_no_columns(api):
    revision = api.ask("GET", CONFIGMAPS + "/c00").json["metadata"]["resourceVersion"]
    found = events(api, f"{CONFIGMAPS}?labelSelector=n&resourceVersion={revision}", N - 1, TABLE)
    assert found[0]["object"]["columnDefinitions"]
    assert [e["object"]["columnDefinitions"] for e in found[1:]] == [None] * (N - 2)
