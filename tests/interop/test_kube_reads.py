# SPDX-License-Identifier: Apache-2.0
"""Compressed responses: like kube-apiserver, holdfastd compresses bodies of 128 KiB or more for clients that accept gzip."""
import gzip
import json
import random

import pytest
from holdfastd import wait_until
from memory_server import MemoryServer

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {"metadata": {"name": "reads.example.com"}, "spec": {
    "group": "example.com", "scope": "Cluster", "names": {"plural": "reads", "kind": "Read"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
LARGE = 128 << 10


@pytest.fixture(scope="module", name="api")
def _api():
    numbers = random.Random(7)
    with MemoryServer() as server:
        for name, size in (("small", LARGE - 2000), ("large", LARGE + 2000)):
            assert server.ask("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"k": "v" * size}}).code == 201
        for i in range(300):
            text = "".join(numbers.choices("abcdefghijklmnop", k=2000))
            assert server.ask("POST", CONFIGMAPS, {"metadata": {"name": f"c{i:03}", "labels": {"n": str(i % 3)}}, "data": {"k": text}}).code == 201
        yield server


def plain_and_packed(api, path, **headers):
    """Gets the path without and with gzip. Both responses must say the same."""
    plain = api.ask("GET", path, **headers)
    packed = api.ask("GET", path, accept_encoding="gzip", **headers)
    assert plain.code == packed.code == 200 and "content-encoding" not in plain.headers
    if "content-encoding" not in packed.headers:
        return plain, None
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
    assert packed.headers["content-type"] == "application/json"
    assert len(packed.bytes) < len(plain.bytes)
    first, second = json.loads(plain.bytes), json.loads(gzip.decompress(packed.bytes))
    for document in (first, second):
        if document["kind"].endswith("List"):
            del document["metadata"]["resourceVersion"]
            token = document["metadata"].pop("continue", None)  # names that version, too
            assert (token is not None) == ("limit=" in path)
    if first["kind"] != "Table":  # ages may differ
        assert first == second
    return plain, packed


@pytest.mark.parametrize("path", [
    CONFIGMAPS + "/large", CONFIGMAPS, CONFIGMAPS + "?limit=200", CONFIGMAPS + "?labelSelector=n%3D1", CONFIGMAPS + "?pretty=true",
    CONFIGMAPS + "?fieldSelector=metadata.name%3Dlarge", CONFIGMAPS + "/large?pretty=1"])
def test_large_answers_are_compressed(api, path):
    assert plain_and_packed(api, path)[1]


def test_large_tables_are_compressed(api):
    assert plain_and_packed(api, CONFIGMAPS + "?includeObject=Object", accept="application/json;as=Table;g=meta.k8s.io;v=v1")[1]


@pytest.mark.parametrize("path", [CONFIGMAPS + "/small", CONFIGMAPS + "?limit=50&labelSelector=n", CONFIGMAPS + "?limit=1", "/apis", "/api/v1/namespaces"])
def test_small_answers_are_not(api, path):
    assert plain_and_packed(api, path)[1] is None


def test_only_clients_that_accept_gzip_get_it(api):
    for accepted in (None, "identity", "deflate, br", "gzipped", "gzip;q=0"):
        assert "content-encoding" not in api.ask("GET", CONFIGMAPS, accept_encoding=accepted).headers, accepted
    for accepted in ("gzip", "deflate, gzip", "br,gzip , identity"):
        assert api.ask("GET", CONFIGMAPS, accept_encoding=accepted).headers["content-encoding"] == "gzip", accepted


def test_watches_are_not_compressed(api):
    watch = api.ask("GET", CONFIGMAPS + "?watch=1&timeoutSeconds=1", accept_encoding="gzip")
    assert "content-encoding" not in watch.headers and len(watch.text.splitlines()) >= 302


# As in kube-apiserver, which has a route for each method and none for HEAD, also in most of discovery. What is not a route takes every method that reads.
@pytest.mark.parametrize("path, code", [
    (CONFIGMAPS, 405), (CONFIGMAPS + "/large", 405), (CONFIGMAPS + "?watch=1", 405), (CONFIGMAPS + "/none", 405), ("/api/v1/namespaces/default/status", 405),
    ("/api/v1/nothings", 404), ("/api", 405), ("/apis", 200), ("/apis/coordination.k8s.io", 200), ("/api/v1", 405), ("/apis/coordination.k8s.io/v1", 405), ("/version", 405),
    ("/apis/coordination.k8s.io/v1/", 405), ("/apis/coordination.k8s.io/v9", 404), ("/apis/none.example.com", 404), ("/apis/none.example.com/v1", 404),
    ("/", 200), ("/livez", 200), ("/metrics", 200), ("/openapi/v2", 200), ("/openapi/v3", 200)])
def test_the_api_has_no_head(api, path, code):
    head = api.ask("HEAD", path, accept_encoding="gzip")
    assert (head.code, head.bytes, head.headers.get("allow")) == (code, b"", None)


def test_the_documents_of_a_custom_group_have_a_head(api):
    assert api.ask("POST", DEFINITIONS, DEFINITION).code == 201
    wait_until("the group", lambda: api.ask("GET", "/apis/example.com/v1").code == 200)
    for path in ("/apis/example.com", "/apis/example.com/", "/apis/example.com/v1", "/apis/example.com/v1/", "/apis/example.com/v1/reads"):
        head, get = api.ask("HEAD", path), api.ask("GET", path)
        assert (head.code, head.bytes, head.headers["content-type"]) == (200, b"", get.headers["content-type"]), path
        assert head.headers.get("content-length", str(len(get.bytes))) == str(len(get.bytes))
    assert api.ask("HEAD", "/apis/example.com/v1", accept="text/plain").code == 406
    assert api.ask("HEAD", "/apis/example.com/v2").code == 404
