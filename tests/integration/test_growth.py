# SPDX-License-Identifier: Apache-2.0
"""Nothing is quadratic. Each input is doubled, and the processor time that the server takes for it must not grow by more than
2.5 times per doubling at the large end. (Linear is 2, sorting 2.2, quadratic 4.)

The time is the kernel's accounting of the server, so other processes on the machine hardly matter. Each size is measured
several times, and the least counts, because whatever else the machine does can only add to it. A small input costs next to nothing beside the request itself; so only the last two doublings
are judged, by their mean.
"""
import http.client
import json
import math
import selectors
import urllib.parse

import pytest
from holdfastd import Cluster, cpu_ns, leaderless, wait_until

LIMIT = 2.5
DOUBLINGS = 4
REPEATS, MOST_REPEATS = 3, 12
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def quiet_cpu_ns(pid):
    """Waits until the server has finished its work after the responses, that is until it uses less than 1 ms of CPU in 20 ms. Returns its CPU time."""
    seen = [-math.inf]

    def quiet():
        seen.append(cpu_ns(pid))
        return seen[-1] - seen[-2] < 1e6

    wait_until("the server to be quiet", quiet, every=0.02)
    return seen[-1]


class Client:
    """A keep-alive connection with the admin's certificate."""

    def __init__(self, server):
        self.server, self.pid = server, server.pid
        self.context = server.context()
        self.where = urllib.parse.urlsplit(server.url)
        self.connection = None

    def connect(self):
        connection = http.client.HTTPSConnection(self.where.hostname, self.where.port, context=self.context, timeout=120)
        connection.connect()
        return connection

    def ask(self, method, path, body=None, kind="application/json", headers=None, codes=(200, 201)):
        if self.connection is None:
            self.connection = self.connect()
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        self.connection.request(method, path, text, {"Content-Type": kind, **(headers or {})})
        response = self.connection.getresponse()
        text = response.read()
        assert response.status in codes, (response.status, text[:300])
        return text

    def put(self, path, body):
        """Creates or replaces the object."""
        collection, name = path.rsplit("/", 1)
        body = {**body, "metadata": {**body.get("metadata", {}), "name": name}}
        if b'"code":404' in self.ask("PUT", path, body, codes=(200, 201, 404)):
            self.ask("POST", collection, body)


def growth(costs):
    """Returns the factor by which the cost grows per doubling: the mean of the last two doublings."""
    return math.sqrt(costs[-1] / costs[-3])


def least_cost(sample):
    """The least cost that sample() returns. It repeats until the least two agree, so that none of them is of a moment in which a neighbour
    had the caches."""
    costs = []
    while len(costs) < REPEATS or (len(costs) < MOST_REPEATS and costs[1] > costs[0] * 1.1):
        costs = sorted([*costs, sample()])
    return costs[0]


def measure(client, sizes, prepare, act, times=1):
    """Returns the least cost of act(size), in ms, for each size."""
    least = []
    for size in sizes:
        prepared = prepare(size)

        def sample(size=size, prepared=prepared):
            before = quiet_cpu_ns(client.pid)
            for _ in range(times):
                act(size, prepared)
            return (quiet_cpu_ns(client.pid) - before) / 1e6
        sample()  # the first call fills caches and does not count
        least.append(least_cost(sample))
    return least


def doubled(largest):
    return [largest >> i for i in range(DOUBLINGS, -1, -1)]


@pytest.fixture(scope="module", name="client")
def _client():
    with Cluster(with_witness=False) as cluster:
        yield Client(leaderless(cluster))


def nothing(_size):
    return None


def judge(name, sizes, once):
    """Checks the growth of the costs that once() measures. It measures again if they grow too much, because other processes use the processor's caches too."""
    costs = once()
    for _ in range(2):
        if growth(costs) > LIMIT:
            costs = [min(pair) for pair in zip(costs, once())]
    print(f"\n{name}: " + ", ".join(f"{n}: {c:.2f} ms" for n, c in zip(sizes, costs)) + f"; per doubling {growth(costs):.2f}")
    assert growth(costs) <= LIMIT, f"{name}: {growth(costs):.2f} times per doubling: {dict(zip(sizes, costs))}"


# ---- query ----

QUERIES = {
    "ampersands": lambda n: "&" * n,
    "empty-names": lambda n: "exclude&" * (n // 8),
    "repeated-name": lambda n: "exclude=etcd&" * (n // 13),
    "other-names": lambda n: "".join(f"a{i:06}=b&" for i in range(n // 10)),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("path", ["/livez", CONFIGMAPS])
def test_query(client, path, query):
    sizes = doubled(56000)

    def once():
        return measure(client, sizes, QUERIES[query], lambda _n, text: client.ask("GET", f"{path}?{text}", codes=(200, 400)), times=5)

    judge(f"{path} with a query of bytes: {query}", sizes, once)


def test_headers(client):
    sizes = doubled(240)

    def once():
        return measure(client, sizes, lambda n: {f"x-header-{i}": "v" * 100 for i in range(n)},
                       lambda _n, headers: client.ask("GET", "/version", headers=headers), times=200)

    judge("headers", sizes, once)


# ---- one object ----

def keys(n, value="v", begin=0):
    return {f"key-{i:06}": value for i in range(begin, begin + n)}


def owner(i, name="o"):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"00000000-0000-0000-0000-{i:012}"}


def steps(n):
    """The fields of a manager, with n forms of one step: each has other white space."""
    forms = ("".join(" \t\n"[i // 3 ** digit % 3] for digit in range(8)) for i in range(n))
    fields = {f'k:{{"a":1{form}}}': {f"f:{i}": {}} for i, form in enumerate(forms)}
    return {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:x": fields}}


OBJECTS = {
    "data": (CONFIGMAPS, 16000, lambda n: {"data": keys(n)}),
    "labels": (CONFIGMAPS, 8000, lambda n: {"metadata": {"labels": keys(n)}}),
    "annotations": (CONFIGMAPS, 8000, lambda n: {"metadata": {"annotations": keys(n)}}),
    "finalizers": (CONFIGMAPS, 960, lambda n: {"metadata": {"finalizers": [f"example.com/f{i}" for i in range(n)]}}),
    "owners": (CONFIGMAPS, 4000, lambda n: {"metadata": {"ownerReferences": [owner(i) for i in range(n)]}}),
    "value": (CONFIGMAPS, 800000, lambda n: {"data": {"a": "\n\\" * (n // 4)}}),
    "unknown-list": (CONFIGMAPS, 32000, lambda n: {"unknown": list(range(n))}),
    "equal-steps": (CONFIGMAPS, 4000, lambda n: {"metadata": {"managedFields": [steps(n)]}}),
    "secrets": (ACCOUNTS, 8000, lambda n: {"secrets": [{"name": f"s{i}"} for i in range(n)]}),
}


# A create drops managedFields before it reads them.
OBJECT_WRITES = [(verb, part) for part in OBJECTS for verb in ("create", "update") if (verb, part) != ("create", "equal-steps")]


@pytest.mark.parametrize("verb, part", OBJECT_WRITES)
def test_object(client, verb, part):
    path, largest, make = OBJECTS[part]
    sizes, count = doubled(largest), iter(range(1000))

    def act(_n, body):
        meta = {**body.get("metadata", {}), "name": f"{verb}-{part}"}
        if verb == "create":
            client.ask("POST", path + "?dryRun=All", {**body, "metadata": meta})
        else:
            meta["annotations"] = {**meta.get("annotations", {}), "n": str(next(count))}
            client.ask("PUT", f"{path}/{verb}-{part}", {**body, "metadata": meta})

    def prepare(n):
        if verb == "update":
            client.put(f"{path}/{verb}-{part}", make(n))
        return make(n)

    def once():
        return measure(client, sizes, prepare, act)

    judge(f"{verb} of an object with so many {part}", sizes, once)


# ---- patches ----

MERGE, STRATEGIC, JSON = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"
PATCHES = {
    # the path, the largest size, the object, the patch, its kind
    "merge-same-keys": (CONFIGMAPS, 16000, lambda n: {"data": keys(n)}, lambda n: {"data": keys(n, "w")}, MERGE),
    "merge-new-keys": (CONFIGMAPS, 16000, lambda n: {"data": {"a": "b"}}, lambda n: {"data": keys(n)}, MERGE),
    "merge-removed-keys": (CONFIGMAPS, 16000, lambda n: {"data": keys(n)}, lambda n: {"data": keys(n, None)}, MERGE),
    "strategic-same-keys": (CONFIGMAPS, 16000, lambda n: {"data": keys(n)}, lambda n: {"data": keys(n, "w")}, STRATEGIC),
    "strategic-new-keys": (CONFIGMAPS, 16000, lambda n: {"data": {"a": "b"}}, lambda n: {"data": keys(n)}, STRATEGIC),
    "strategic-list": (ACCOUNTS, 800, lambda n: {"secrets": [{"name": f"s{i}"} for i in range(n)]},
                       lambda n: {"secrets": [{"name": f"s{i}", "namespace": "x"} for i in reversed(range(n))]}, STRATEGIC),
    "strategic-set": (CONFIGMAPS, 480, lambda n: {"metadata": {"finalizers": [f"example.com/f{i}" for i in range(n)]}},
                      lambda n: {"metadata": {"finalizers": [f"example.com/g{i}" for i in range(n)]}}, STRATEGIC),
    "strategic-set-of-objects": (CONFIGMAPS, 800, lambda n: {"metadata": {"finalizers": ["example.com/a"]}},
                                 lambda n: {"metadata": {"finalizers": [{"a": [{"b": "c" * 90}] * 20, "n": i} for i in range(n)]}}, STRATEGIC),
    "strategic-owners": (CONFIGMAPS, 800, lambda n: {"metadata": {"ownerReferences": [owner(i) for i in range(n)]}},
                         lambda n: {"metadata": {"ownerReferences": [owner(i, "p") for i in range(n)]}}, STRATEGIC),
    "strategic-deleted": (ACCOUNTS, 800, lambda n: {"secrets": [{"name": f"s{i}"} for i in range(n)]},
                          lambda n: {"secrets": [{"name": f"s{i}", "$patch": "delete"} for i in range(n)]}, STRATEGIC),
    "json-operations": (CONFIGMAPS, 9600, lambda n: {"data": {"a": "b"}},
                        lambda n: [{"op": "replace", "path": "/data/a", "value": str(i)} for i in range(n)], JSON),
    "json-tests-of-keys": (CONFIGMAPS, 4800, lambda n: {"data": keys(n)},
                           lambda n: [{"op": "test", "path": f"/data/{k}", "value": "v"} for k in keys(n)], JSON),
    "json-new-keys": (CONFIGMAPS, 4800, lambda n: {"data": {"a": "b"}},
                      lambda n: [{"op": "add", "path": f"/data/{k}", "value": "v"} for k in keys(n)], JSON),
    "json-list": (ACCOUNTS, 4800, lambda n: {"secrets": [{"name": "a"}]},
                  lambda n: [{"op": "add", "path": "/secrets/-", "value": {"name": f"s{i}"}} for i in range(n)], JSON),
}


@pytest.mark.parametrize("patch", PATCHES)
def test_patch(client, patch):
    path, largest, make, make_patch, kind = PATCHES[patch]
    sizes = doubled(largest)

    def prepare(n):
        client.put(f"{path}/patch-{patch}", make(n))
        return json.dumps(make_patch(n))

    codes = (400, 413, 422) if patch == "strategic-set-of-objects" else (200,)  # a finalizer is a string

    def once():
        return measure(client, sizes, prepare, lambda _n, text: client.ask("PATCH", f"{path}/patch-{patch}?dryRun=All", text, kind, codes=codes))

    judge(f"patch {patch}", sizes, once)


def test_mistakes_that_repeat(client):
    """Some mistakes are deep, so the lines that report them are long; another one is repeated. Both grow."""
    sizes = doubled(64000)

    def prepare(n):
        client.put(f"{CONFIGMAPS}/mistakes", {"data": {"a": "b"}})
        deep, twice = n // 200, ",".join(f'"d{i:02}":1,"d{i:02}":1' for i in range(17))
        return "{" + f'"{"k" * 120}":{{' * deep + twice + "}" * deep + ',"x":1' * n + "}"

    def once():
        return measure(client, sizes, prepare, lambda _n, text: client.ask("PATCH", f"{CONFIGMAPS}/mistakes?dryRun=All&fieldValidation=Strict", text, MERGE, codes=(422,)))

    judge("a patch with so many mistakes", sizes, once)


# ---- roles ----

def test_rules_of_a_granted_role(client):
    """A user with so many rules grants as many: each granted right must be one of those that the user has."""
    sizes, roles = doubled(6400), "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    client.ask("POST", roles.replace("roles", "rolebindings"), {
        "metadata": {"name": "granter"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "granter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "granter"}]})

    def prepare(n):
        rules = [{"apiGroups": [f"g{i}"], "resources": [f"r{i}"], "verbs": ["get"]} for i in range(n)]
        create = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}
        client.put(f"{roles}/granter", {"rules": [create, *rules]})
        granted = {"metadata": {"name": "granted"}, "rules": rules}
        wait_until("the role to count", lambda: b'"code":403' not in grant(n, granted, (201, 403)))
        return granted

    def grant(_n, granted, codes=(201,)):
        return client.ask("POST", f"{roles}?dryRun=All", granted, headers={"Impersonate-User": "granter"}, codes=codes)

    judge("rules of a granted role", sizes, lambda: measure(client, sizes, prepare, grant))


def test_rights_that_a_user_lacks(client):
    """The rights that are missing are collected for the message. They differ in their resources and verbs, and have a long group in common."""
    sizes, roles = doubled(190), "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    client.put(f"{roles}/creator", {"rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}]})
    client.ask("POST", roles.replace("roles", "rolebindings"), {
        "metadata": {"name": "creator"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "creator"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "creator"}]})

    def prepare(n):
        rule = {"apiGroups": ["g" * 1000 * n], "resources": [f"r{i}" for i in range(n)], "verbs": [f"v{i}" for i in range(25)]}
        granted = {"metadata": {"name": "granted"}, "rules": [rule]}
        wait_until("the binding to count", lambda: b"attempting to grant" in grant(n, granted))
        return granted

    def grant(_n, granted):
        return client.ask("POST", f"{roles}?dryRun=All", granted, headers={"Impersonate-User": "creator"}, codes=(403,))

    judge("rights that a user lacks", sizes, lambda: measure(client, sizes, prepare, grant))


# ---- many objects ----

class Objects:
    """A namespace to which one client adds more and more objects."""

    def __init__(self, client, name):
        self.client, self.path, self.n = client, f"/api/v1/namespaces/{name}/configmaps", 0
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def grow(self, n):
        for i in range(self.n, n):
            self.client.ask("POST", self.path, {"metadata": {"name": f"c{i:06}", "labels": {"app": f"a{i % 100}"}}, "data": {"a": "b" * 100}})
        self.n = max(self.n, n)
        return self


LISTS = {
    "all": ("", {}),
    "table": ("", TABLE),
    "selected": ("?labelSelector=app%3Da7", {}),
    "not-older-than-0": ("?resourceVersion=0", {}),
}


def pages(client, path, limit):
    token = ""
    while True:
        reply = json.loads(client.ask("GET", f"{path}?limit={limit}&continue={urllib.parse.quote(token)}"))
        token = reply["metadata"].get("continue", "")
        if not token:
            return


def test_lists_and_pages(client):
    """All lists share the sets of objects, because the creates take longest. Each size has a set of its own, so that a list whose cost seems to grow
    too much can be measured again: the larger lists do not fit into a processor's cache, which others use too."""
    sizes = doubled(6400)
    paths = {n: Objects(client, f"growth-lists-{n}").grow(n).path for n in sizes}
    acts = {name: (3, lambda n, _p, q=query, h=headers: client.ask("GET", paths[n] + q, headers=h)) for name, (query, headers) in LISTS.items()}
    acts["pages-of-100"] = (1, lambda n, _p: pages(client, paths[n], 100))
    acts["pages-of-a-tenth"] = (1, lambda n, _p: pages(client, paths[n], n // 10))
    failed = []
    for name, (times, act) in acts.items():
        def cost(times=times, act=act):
            return measure(client, sizes, nothing, act, times=times)
        try:
            judge(f"{name} of so many objects", sizes, cost)
        except AssertionError as error:
            failed.append(str(error).split("\n", maxsplit=1)[0])
    # A page has a fixed size, so it must not cost more when there are more objects.
    pages_of_10 = growth(measure(client, sizes, nothing, lambda n, _p: client.ask("GET", paths[n] + "?limit=10"), times=20))
    if pages_of_10 > 1.5:
        failed.append(f"a page of 10 costs {pages_of_10:.2f} times as much per doubling of all objects")
    assert failed == []


def test_values_in_a_selector(client):
    objects, sizes = Objects(client, "growth-selector").grow(500), doubled(6400)

    def once():
        return measure(client, sizes, lambda n: urllib.parse.quote("app in (" + ",".join(f"z{i}" for i in range(n)) + ")", safe=",()"),
                       lambda _n, text: client.ask("GET", f"{objects.path}?labelSelector={text}"), times=2)

    judge("values in a selector", sizes, once)


def test_requirements_of_a_selector(client):
    objects, sizes = Objects(client, "growth-requirements").grow(1000), doubled(64)

    def once():
        return measure(client, sizes, lambda n: ",".join(f"!z{i}" for i in range(n)),
                       lambda _n, text: client.ask("GET", f"{objects.path}?labelSelector={text}"), times=3)

    judge("requirements of a selector", sizes, once)


def test_deleted_collections(client):
    objects, sizes = Objects(client, "growth-deleted"), doubled(1600)

    def sample(n):
        objects.n = 0
        objects.grow(n)
        before = quiet_cpu_ns(client.pid)
        client.ask("DELETE", objects.path)
        return (quiet_cpu_ns(client.pid) - before) / 1e6

    judge("objects in a deleted collection", sizes, lambda: [least_cost(lambda n=n: sample(n)) for n in sizes])


# ---- watches ----

class Watches:
    """More and more watches of one object, each over its own connection. One loop reads them all."""

    def __init__(self, client, path):
        self.client, self.path, self.connections = client, path, []
        self.selector = selectors.DefaultSelector()

    def grow(self, n):
        while len(self.connections) < n:
            connection = self.client.connect()
            connection.request("GET", f"{self.path}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dwatched")
            self.connections.append(connection)
            connection.sock.setblocking(False)
            self.selector.register(connection.sock, selectors.EVENT_READ)
        self.drain()
        return self

    def drain(self):
        """Reads until no data has arrived for a moment."""
        n = 0
        while ready := self.selector.select(0.3):
            for key, _ in ready:
                try:
                    n += len(key.fileobj.recv(65536))
                except (BlockingIOError, OSError):
                    pass
        return n

    def end(self):
        for connection in self.connections:
            connection.close()
        self.selector.close()


def test_watches(client):
    """Measures the cost of one event for all watches, and of opening as many further watches."""
    sizes = doubled(512)
    client.put(f"{CONFIGMAPS}/watched", {"data": {"n": "0"}})
    count = iter(range(1, 10000))

    def once():
        watches = Watches(client, CONFIGMAPS)

        def act(n, _prepared):
            client.ask("PUT", f"{CONFIGMAPS}/watched", {"metadata": {"name": "watched"}, "data": {"n": str(next(count))}})
            assert watches.drain() > n * 100

        try:
            return measure(client, sizes, watches.grow, act)
        finally:
            watches.end()
            quiet_cpu_ns(client.pid)  # the server ends the watches

    judge("an event for so many watches", sizes, once)


def test_events_for_a_watch_that_selects(client):
    """Other objects change: the server tests each event for each watch, and delivers none."""
    sizes = doubled(512)
    count = iter(range(1, 10000))
    client.put(f"{CONFIGMAPS}/other", {"data": {"n": "0"}})

    def act(_n, _prepared):
        client.ask("PUT", f"{CONFIGMAPS}/other", {"metadata": {"name": "other"}, "data": {"n": str(next(count))}})

    def once():
        watches = Watches(client, CONFIGMAPS)
        try:
            return measure(client, sizes, watches.grow, act, times=20)
        finally:
            watches.end()
            quiet_cpu_ns(client.pid)

    judge("an event that so many watches do not want", sizes, once)
