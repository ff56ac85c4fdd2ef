# SPDX-License-Identifier: Apache-2.0
"""What the OpenAPI documents cost: they are made when a client asks, and kept compressed."""
import http.client
import json
import pathlib
import re
import urllib.parse

from holdfastd import Cluster, SqliteFile, wait_until

N, N_GROUPS, N_FIELDS = 100, 20, 50
LIMIT_KIB = 5 << 10
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V2, V3 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"


def definition(i):
    fields = {f"field{n}": {"type": "string", "description": f"What the field {n} of the kind {i} is for, in a sentence."} for n in range(N_FIELDS)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things{i}.g{i % N_GROUPS}.example.com"},
            "spec": {"group": f"g{i % N_GROUPS}.example.com", "scope": "Namespaced", "names": {"plural": f"things{i}", "kind": f"Thing{i}"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}}


class Client:
    def __init__(self, instance):
        self.connection = http.client.HTTPSConnection(urllib.parse.urlsplit(instance.url).netloc, context=instance.context(), timeout=60)

    def ask(self, method, path, body=None, **headers):
        sent = {"content-type": "application/json", "accept-encoding": "gzip"}  # the server need not unpack what it keeps
        self.connection.request(method, path, json.dumps(body) if body else None, {**sent, **headers})
        response = self.connection.getresponse()
        data = response.read()
        assert response.status in (200, 201), data
        return response, data


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def is_established(item):
    return any(c["type"] == "Established" and c["status"] == "True" for c in item.get("status", {}).get("conditions") or [])


def restarted(cluster, instance):
    """A new instance: what the creation of the definitions has left in its memory is not counted."""
    instance.end()
    client = Client(cluster.instance("two").wait_ready())
    for i in range(N):  # each kind is served
        client.ask("GET", f"/apis/g{i % N_GROUPS}.example.com/v1/things{i}")
    return client, cluster.started[-1]


def test_all_documents_with_100_definitions_take_5_mib_resident():
    with Cluster(with_witness=False, etcd=SqliteFile) as cluster:
        first = cluster.instance("one").wait_ready()
        client = Client(first)
        for i in range(N):
            client.ask("POST", DEFINITIONS, definition(i))
        wait_until("the definitions to be established", lambda: all(
            map(is_established, json.loads(client.ask("GET", DEFINITIONS, **{"accept-encoding": "identity"})[1])["items"])))
        client, instance = restarted(cluster, first)
        before = resident_kib(instance.pid)
        index = json.loads(client.ask("GET", "/openapi/v3", **{"accept-encoding": "identity"})[1])
        assert sum("example.com" in path for path in index["paths"]) == N_GROUPS
        for path in index["paths"]:
            for form in ("application/json", V3):
                client.ask("GET", f"/openapi/v3/{path}", accept=form)
        for form in ("application/json", V2):
            response, data = client.ask("GET", "/openapi/v2", accept=form)
            assert response.headers["content-encoding"] == "gzip" and len(data) > 20000
        wait_until("the memory to be given back", lambda: resident_kib(instance.pid) - before <= LIMIT_KIB)
