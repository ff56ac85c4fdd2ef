# SPDX-License-Identifier: Apache-2.0
"""Large writes: patches as large as a request may be, while small requests are answered. Nothing
here is timed: small requests have a timeout, and they are counted while the large ones run."""
import concurrent.futures
import http.client
import json
import ssl

import pytest
from holdfastd import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TYPES = ["merge", "strategic-merge"]
LIMIT = 3 << 20


@pytest.fixture(name="api", scope="module")
def _api():
    with Cluster(with_witness=False) as cluster:
        api = cluster.instance("a").wait_ready()
        yield api
        assert api.alive() and "runtime error" not in api.log_text() and "Sanitizer" not in api.log_text()


def create(api, path, name, **more):
    code, text = api.request("POST", path, {"metadata": {"name": name}, **more})
    assert code == 201, text
    return json.loads(text)


def patch(api, name, body, kind="merge", query=""):
    data = json.dumps(body, separators=(",", ":")).encode()
    assert len(data) < LIMIT
    return api.request("PATCH", f"{MAPS}/{name}{query}", data, headers={"Content-Type": f"application/{kind}-patch+json"}, timeout=60)


def keys(n, prefix="k"):
    return {"data": {f"{prefix}{i}": "" for i in range(n)}}


def renew(api, lease):
    """One renewal of a Lease and one small GET; both must be answered."""
    code, text = api.request("PUT", f"{LEASES}/{lease['metadata']['name']}", lease, timeout=20)
    assert code == 200, text
    code, found = api.get(f"{MAPS}/small", timeout=20)
    assert code == 200, found
    return json.loads(text)


@pytest.mark.parametrize("kind", TYPES)
def test_20000_keys_are_merged(api, kind):
    name = f"many-{kind}"
    create(api, MAPS, name, data={"a": "b"})
    for prefix in ("k", "l"):  # the first patch meets a small object, the second a large one
        code, text = patch(api, name, keys(20000, prefix), kind)
        assert code == 200, text[:300]
    assert len(json.loads(api.get(f"{MAPS}/{name}")[1])["data"]) == 40001
    code, text = patch(api, name, {"data": {f"k{i}": None for i in range(20000)}}, kind)
    assert code == 200 and len(json.loads(text)["data"]) == 20001, text[:300]


@pytest.mark.parametrize("kind", TYPES)
def test_small_requests_are_answered_meanwhile(api, kind):
    """200,000 keys, in several requests at once. The result is larger than etcd takes, so all but
    the dry runs are refused, by the store."""
    name = f"meanwhile-{kind}"
    create(api, MAPS, name, data={"a": "b"})
    if api.get(f"{MAPS}/small")[0] == 404:
        create(api, MAPS, "small")
    lease = create(api, LEASES, name, spec={"holderIdentity": "me"})
    body, answered = keys(200000), 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(patch, api, name, body, kind, "?dryRun=All" if i % 2 else "") for i in range(12)]
        while not all(r.done() for r in runs):
            lease = renew(api, lease)
            answered += 1
    for i, run in enumerate(runs):
        code, text = run.result()
        assert code == (200 if i % 2 else 413), text[:300]
        if i % 2:
            assert len(json.loads(text)["data"]) == 200001
    assert answered >= len(runs), f"{answered} small requests were answered while {len(runs)} large ones ran"


def test_lists_of_any_length_are_merged(api):
    create(api, MAPS, "lists")
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": f"u{i}"} for i in range(5000)]
    code, text = patch(api, "lists", {"metadata": {"ownerReferences": owners}}, "strategic-merge", "?dryRun=All")
    assert code == 200, text[:300]
    assert len(json.loads(text)["metadata"]["ownerReferences"]) == 5000
    deep = {"a": {"b": {"c": [{"d": 1}] * 10}}}
    code, text = patch(api, "lists", {"metadata": {"ownerReferences": [{"uid": deep}] * 20000}}, "strategic-merge", "?dryRun=All")
    assert code in (400, 422), text[:300]


def test_operations_on_large_values_are_bounded(api):
    create(api, MAPS, "operations", data={f"k{i}": "" for i in range(40000)})
    steps = [{"op": "move", "from": f"/data/k{i}", "path": f"/data/m{i}"} for i in range(10000)]
    code, text = patch(api, "operations", steps, "json")
    assert code == 200, text[:300]
    assert len(json.loads(text)["data"]) == 40000
    code, text = patch(api, "operations", steps + steps[:1], "json")
    assert code == 413 and "maximum operations in a JSON patch is 10000" in text, text[:300]
    # Each move puts all members at another depth, so the server measures them again.
    steps = [{"op": "add", "path": "/x", "value": {"y": {}}}] + [
        {"op": "move", "from": a, "path": b} for _ in range(4000) for a, b in (("/data", "/x/y/z"), ("/x/y/z", "/data"))]
    code, text = patch(api, "operations", steps, "json")
    assert code == 413 and "maximum steps of a patch" in text, text[:300]


def test_clients_that_leave_leave_no_work(api):
    """Each client sends a large patch and leaves. The server then answers as before."""
    create(api, MAPS, "left", data={"a": "b"})
    body = json.dumps(keys(100000)).encode()
    host, port = api.url.removeprefix("https://").split(":")
    for _ in range(30):
        connection = http.client.HTTPSConnection(host, int(port), context=api.context(), timeout=20)
        try:
            connection.request("PATCH", f"{MAPS}/left?dryRun=All", body, {"Content-Type": "application/merge-patch+json"})
        except (OSError, ssl.SSLError):
            pass
        connection.close()
    code, text = patch(api, "left", keys(1000), "merge")
    assert code == 200, text[:300]


@pytest.mark.parametrize("body,code,reason", [
    (b'{"data":{"a":"1","b":2}}', 422, "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
    (b"{", 400, "syntax error at offset"),
    (b"[]", 400, "cannot unmarshal array into Go value of type map[string]interface {}")], ids=ascii)
def test_refusals_name_the_reason(api, body, code, reason):
    assert api.get(f"{MAPS}/small")[0] == 200 or create(api, MAPS, "small")
    got, text = api.request("PATCH", f"{MAPS}/small", body, headers={"Content-Type": "application/merge-patch+json"})
    assert got == code and reason in json.loads(text)["message"], text
