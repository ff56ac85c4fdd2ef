# SPDX-License-Identifier: Apache-2.0
"""Objects that another program has stored, in which a value has another shape than the schema says. Reads and writes of them get a
response, whichever it is, and the server keeps running."""
import base64
import json
import urllib.request

import pytest
from holdfastd import Cluster, wait_until
from test_body_shapes import DEFINITION, KINDS, META, N_OF_PARTS, PATCHES, Client, variants

LIMIT = 60
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
STORED = [kind for kind, (_, subresources, content) in KINDS.items() if subresources is not None and content is not None]


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def ask_etcd(etcd, path, body):
    with urllib.request.urlopen(etcd.url + path, data=json.dumps(body).encode(), timeout=LIMIT) as response:
        return json.load(response)


def stored(etcd):
    """All keys of objects and their values."""
    found = ask_etcd(etcd, "/v3/kv/range", {"key": encoded("/registry/"), "range_end": encoded("/registry0")})
    return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv["value"]).decode() for kv in found.get("kvs", [])}


def store_objects(etcd, prefix, objects):
    for at in range(0, len(objects), 100):
        puts = [{"requestPut": {"key": encoded(f"{prefix}o-{at + i}"), "value": encoded(json.dumps(o))}} for i, o in enumerate(objects[at:at + 100])]
        assert ask_etcd(etcd, "/v3/kv/txn", {"success": puts})["succeeded"]


@pytest.fixture(name="cluster")
def _cluster():
    with Cluster(with_witness=False) as cluster:
        api = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()
        assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shapes"}})[0] == 201
        assert api.request("POST", KINDS["definition"][0], DEFINITION)[0] == 201
        wait_until("the custom kind is served", lambda: api.get(KINDS["custom"][0])[0] == 200)
        yield cluster, api
        assert api.alive() and "runtime error" not in api.log_text() and "Sanitizer" not in api.log_text()


@pytest.mark.parametrize("kind", STORED)
def test_no_shape_of_a_stored_object_ends_the_server(cluster, kind):
    collection, subresources, content = KINDS[kind]
    cluster, api = cluster
    valid = {"metadata": META, **content}
    if kind == "custom":
        valid = {"apiVersion": "example.com/v1", "kind": "Shape", **valid}
    before = stored(cluster.etcd)
    status, text = api.request("POST", collection, valid)
    assert status == 201, text
    key, value = next((k, v) for k, v in stored(cluster.etcd).items() if k not in before and k.endswith("/x"))
    # Not managedFields, because they are long, and deep values in a few shapes only.
    found = [(place, body) for number, place, body in variants(json.loads(value))
             if place and place[:2] != ("metadata", "managedFields") and (number < N_OF_PARTS or len(place) < 3)]
    objects = [body for _, body in found]
    for i, stored_object in enumerate(objects):
        if isinstance(stored_object.get("metadata"), dict) and stored_object["metadata"].get("name") == "x":
            stored_object["metadata"] = {**stored_object["metadata"], "name": f"o-{i}"}
    store_objects(cluster.etcd, key[:-1], objects)
    client = Client(api)
    for path in (collection, f"{collection}?labelSelector=a%3Db&fieldSelector=metadata.name%3Do-1", f"{collection}?limit=50"):
        client.send("GET", path, None)
        client.send("GET", path, None, headers=TABLE)
    for i in range(len(objects)):
        name = f"{collection}/o-{i}"
        named = {**valid, "metadata": {**META, "name": f"o-{i}", "labels": {"new": "label"}}}
        client.send("GET", name, None, headers=TABLE)
        writes = [("PUT", "", named, "application/json"), ("PATCH", "", [{"op": "add", "path": "/metadata/generateName", "value": "g"}], PATCHES[0]),
                  ("PATCH", "", {"metadata": {"annotations": {"new": "value"}}}, PATCHES[1]),
                  ("PATCH", "", {"metadata": {"ownerReferences": [{"uid": "u", "name": "other"}]}}, PATCHES[2]), ("PATCH", "&fieldManager=m", named, PATCHES[3])]
        for j, target in enumerate((name, *(f"{name}/{part}" for part in subresources))):
            # Each write of an object with another shape near its top; of the many with one deep inside, one write in turn.
            for method, query, body, content_type in writes if len(found[i][0]) < 3 else [writes[(i + j) % len(writes)]]:
                client.send(method, f"{target}?dryRun=All{query}", body, content_type)
        if "binding" in subresources:
            bound = {"metadata": {"name": f"o-{i}", "labels": {"new": "label"}, "annotations": {"new": "value"}}, "target": {"kind": "Node", "name": "n"}}
            client.send("POST", f"{name}/binding?dryRun=All", bound)
            client.send("POST", f"{name}/eviction?dryRun=All", {"metadata": {"name": f"o-{i}"}})
        client.send("DELETE", f"{name}?dryRun=All", {})
    client.send("DELETE", f"{collection}?dryRun=All", {})
    assert api.alive()
    # The controllers and the garbage collector have seen the objects too.
    client.send("DELETE", collection, {})
    wait_until("the server responds", lambda: client.send("GET", collection, None)[0] != 0)
