# SPDX-License-Identifier: Apache-2.0
"""definitions.py [N [DIRECTORY...]]: what custom resources cost.

For each store an instance with 0, 100 and N (500) definitions, each with a schema of 50 properties: how long a restart takes until every
kind is served, in time and in CPU, and the resident memory then. Then the server's CPU per request for objects of a custom kind, beside
ConfigMaps of the same content in the same run. Then what a schema of 500 properties costs. A DIRECTORY has definitions of other projects
(see tests/interop/other_projects.py); then the resident memory with all of them after a restart."""
import http.client
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from idle import precise_cpu_ms, resident_kib  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(i, n_properties=50):
    fields = {f"field{n}": {"type": "string", "description": f"What the field {n} of the kind {i} is for, in a sentence."}
              for n in range(n_properties - 5)}
    spec = {"type": "object", "properties": {**fields, "size": {"type": "integer", "minimum": 0},
                                             "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things{i}.g{i % 20}.example.com"},
            "spec": {"group": f"g{i % 20}.example.com", "scope": "Namespaced", "names": {"plural": f"things{i}", "kind": f"Thing{i}"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}}


class Connection:
    """One connection to an instance, so that what is measured is requests and not handshakes."""

    def __init__(self, instance):
        self.connection = http.client.HTTPSConnection(urllib.parse.urlsplit(instance.url).netloc, context=instance.context(), timeout=60)

    def ask(self, method, path, body=None, expect=(200, 201)):
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read()
        assert response.status in expect, text
        return json.loads(text) if response.status in (200, 201) else None


def define(instance, bodies):
    connection = Connection(instance)
    for body in bodies:
        connection.ask("POST", DEFINITIONS, body)

    def all_established():
        items = connection.ask("GET", DEFINITIONS)["items"]
        return sum(any(c["type"] == "Established" and c["status"] == "True" for c in i.get("status", {}).get("conditions") or [])
                   for i in items) >= len(bodies)
    holdfastd.wait_until("the definitions to be established", all_established, limit=300, every=0.5)


def paths(bodies):
    return [f"/apis/{b['spec']['group']}/{v['name']}/{b['spec']['names']['plural']}?limit=1"
            for b in bodies for v in b["spec"]["versions"] if v["served"]]


def restart(cluster, instance, bodies):
    """A new instance after the end of this one. Returns it, and the seconds and the CPU in ms until it has answered a list of each kind."""
    instance.send(signal.SIGTERM)
    instance.wait()
    (cluster.directory / "one.log").unlink()
    begin = time.monotonic()
    new = cluster.instance("one", fast=False)
    while "ready: " not in new.log_text():
        assert new.alive(), new.log_text()
        time.sleep(0.001)
    ready = time.monotonic() - begin
    cpu = precise_cpu_ms(new.pid)
    connection = Connection(new)
    for path in paths(bodies):  # each must be there at once: readiness says so
        connection.ask("GET", path)
    return new, ready, cpu


def settled_mib(instance):
    """The resident memory, once what only the start needed has been given back."""
    time.sleep(12)
    return resident_kib(instance.pid) / 1024


def growth(store, counts):
    with holdfastd.Cluster(with_witness=False, etcd=store) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        done = 0
        for n in counts:
            define(instance, [definition(i) for i in range(done, n)]) if n > done else None
            done = n
            results = []
            for _ in range(3):
                instance, ready, cpu = restart(cluster, instance, [definition(i) for i in range(n)])
                results.append((ready, cpu))
            ready, cpu = (statistics.median(r[i] for r in results) for i in range(2))
            resident = settled_mib(instance)
            print(f"{store.__name__}: {n} definitions: ready after {ready * 1000:.0f} ms, {cpu:.0f} ms of CPU; resident {resident:.1f} MiB", flush=True)


def wide(n=40):
    """What a schema of 500 properties costs: the resident memory with n of them, less that without any."""
    def body(i):
        return definition(i, 500)
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        instance, _, _ = restart(cluster, instance, [])
        without = settled_mib(instance)
        define(instance, [body(i) for i in range(n)])
        instance, _, _ = restart(cluster, instance, [body(i) for i in range(n)])
        resident = settled_mib(instance)
        print(f"{n} definitions of 500 properties, {len(json.dumps(body(0))) / 1024:.0f} KiB of JSON each: resident {resident:.1f} MiB, "
              f"{without:.1f} without: {(resident - without) * 1024 / n:.0f} KiB each", flush=True)


def object_of(kind, i):
    values = {f"field{n}": f"the value {n} of {i}" for n in range(10)}
    meta = {"name": f"o{i}", "labels": {"tenth": str(i % 10)}}
    if kind == "custom":
        return {"apiVersion": "g0.example.com/v1", "kind": "Thing0", "metadata": meta, "spec": values}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": values}


PATHS = {"custom": "/apis/g0.example.com/v1/namespaces/default/things0", "built-in": "/api/v1/namespaces/default/configmaps"}


def measure(instance, kind, first, n):
    """CPU in us per request, of each verb."""
    connection, path, result = Connection(instance), PATHS[kind], {}

    def per_request(verb, count, request):
        before = precise_cpu_ms(instance.pid)
        for i in range(count):
            request(i)
        result[verb] = (precise_cpu_ms(instance.pid) - before) * 1000 / count
    per_request("create", n, lambda i: connection.ask("POST", path, object_of(kind, first + i)))
    live = [connection.ask("GET", f"{path}/o{first + i}") for i in range(n)]
    per_request("get", n, lambda i: connection.ask("GET", f"{path}/o{first + i}"))
    for i, body in enumerate(live):
        body["spec" if kind == "custom" else "data"]["field0"] = f"another value of {i}"
    per_request("update", n, lambda i: connection.ask("PUT", f"{path}/o{first + i}", live[i]))
    per_request("list 500", 20, lambda i: connection.ask("GET", f"{path}?limit=500"))
    return result


def speed(n=500, rounds=5):
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        define(instance, [definition(0)])
        holdfastd.wait_until("the kind to be served", lambda: instance.get(PATHS["custom"])[0] == 200)
        results = {"custom": [], "built-in": []}
        for r in range(rounds):
            for kind, found in results.items():
                found.append(measure(instance, kind, r * n, n))
        for verb in results["custom"][0]:
            custom, built_in = (statistics.median(m[verb] for m in results[kind]) for kind in ("custom", "built-in"))
            print(f"{verb}: {custom:.0f} us of CPU, a ConfigMap {built_in:.0f} us: ratio {custom / built_in:.2f}", flush=True)


RULES = ["self.min <= self.max", "self.name.size() > 0", "self.names.all(n, n != self.name)", "self.name.startsWith('v')",
         "!has(self.other) || self.other != self.name", "self.names.exists(n, n.startsWith('n'))", "self.max - self.min < 1000",
         "self.name.matches('^[a-z0-9]+$')", "self.names.size() <= 10", "self.min in [1, 2, 3]"]


def rules(n=500, rounds=7):
    """What ten rules add to a create, as a dry run."""
    fields = {"min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string", "maxLength": 50},
              "other": {"type": "string", "maxLength": 50}, "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 50}}}

    def body(i, texts):
        new = definition(i)
        spec = {"type": "object", "properties": fields, **({"x-kubernetes-validations": [{"rule": t} for t in texts]} if texts else {})}
        new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
        return new
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        define(instance, [body(0, []), body(1, RULES)])
        connection, results = Connection(instance), ([], [])
        for _ in range(rounds):
            for i, found in enumerate(results):
                path = f"/apis/g{i}.example.com/v1/namespaces/default/things{i}"
                holdfastd.wait_until("the kind to be served", lambda p=path: instance.get(p)[0] == 200)
                new = {"apiVersion": f"g{i}.example.com/v1", "kind": f"Thing{i}", "metadata": {"name": "x"},
                       "spec": {"min": 1, "max": 5, "name": "v1", "names": [f"n{k}" for k in range(5)]}}
                before = precise_cpu_ms(instance.pid)
                for _ in range(n):
                    connection.ask("POST", path + "?dryRun=All", new)
                found.append((precise_cpu_ms(instance.pid) - before) * 1000 / n)
        without, with_rules = (statistics.median(r) for r in results)
        print(f"a create as a dry run: {without:.0f} us of CPU; with ten rules {with_rules:.0f} us: {with_rules - without:.0f} us more", flush=True)


def others(directories):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
    from other_projects import documents
    bodies = {d["metadata"]["name"]: d for directory in directories for _, d in documents(directory)
              if d["apiVersion"] == "apiextensions.k8s.io/v1" and d["kind"] == "CustomResourceDefinition" and "versions" in d["spec"]}
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        empty = settled_mib(instance)
        define(instance, list(bodies.values()))
        instance, ready, cpu = restart(cluster, instance, list(bodies.values()))
        print(f"{len(bodies)} definitions of {len(directories)} projects: ready after {ready * 1000:.0f} ms, {cpu:.0f} ms of CPU; "
              f"resident {settled_mib(instance):.1f} MiB (a new instance without any: {empty:.1f} MiB)")
        explain = subprocess.run(["kubectl", f"--kubeconfig={instance.kubeconfig}", "explain", paths(bodies.values())[0].split("/")[-1].split("?")[0]],
                                 capture_output=True, text=True, check=False)
        assert explain.returncode == 0, explain.stderr


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    speed()
    wide()
    rules()
    for store in (holdfastd.SqliteFile, holdfastd.Etcd):
        growth(store, (0, 100, n))
    if sys.argv[2:]:
        others(sys.argv[2:])


if __name__ == "__main__":
    main()
