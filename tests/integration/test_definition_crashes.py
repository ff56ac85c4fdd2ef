# SPDX-License-Identifier: Apache-2.0
"""Definitions that change, and go, under load, on two instances of which one is killed again and again. What etcd has is the truth: no
watch misses a change, none shows one in a version that is gone, and no object outlives its definition. HOLDFAST_SEED repeats a run;
HOLDFAST_ROUNDS makes it longer."""
import http.client
import json
import os
import random
import signal
import threading
import urllib.parse

from holdfastd import wait_until
from test_custom_resources import DEFINITIONS, GADGETS, ask, define, definition, gadget, update_definition, version

NAME = "gadgets.example.com"
KEYS = "/registry/example.com/gadgets/"
ROUNDS = int(os.environ.get("HOLDFAST_ROUNDS", 2))


class Reflector(threading.Thread):
    """Follows the gadgets of one version as client-go does: lists, watches, resumes an ended watch at its last revision, and lists again after a 410."""

    def __init__(self, server_of, path):
        super().__init__(daemon=True)
        self.server_of, self.path = server_of, path
        self.events, self.lists = [], []  # (type, revision, object); (revision, objects by name, after which event)
        self.last, self.wrong, self.stopping = None, [], False
        self.connection = None

    def run(self):
        while not self.stopping:
            try:
                if self.last is None:
                    self.list()
                else:
                    self.watch()
            except (OSError, http.client.HTTPException, ValueError, AssertionError):
                threading.Event().wait(0.05)  # the instance does not run

    def open(self, query):
        server = self.server_of()
        self.connection = http.client.HTTPSConnection(urllib.parse.urlsplit(server.url).netloc, context=server.context(), timeout=20)
        self.connection.request("GET", self.path + query)
        return self.connection.getresponse()

    def list(self):
        response = self.open("")
        found = json.loads(response.read())
        if response.status != 200:
            threading.Event().wait(0.05)
            return
        self.last = int(found["metadata"]["resourceVersion"])
        self.lists.append((self.last, {i["metadata"]["name"]: int(i["metadata"]["resourceVersion"]) for i in found["items"]}, len(self.events)))

    def watch(self):
        response = self.open(f"?watch=1&allowWatchBookmarks=true&resourceVersion={self.last}")
        if response.status == 410:
            self.last = None
        if response.status != 200:
            response.read()
            threading.Event().wait(0.05)
            return
        for line in response:
            if not line.endswith(b"\n"):
                return  # the kill has cut the line off
            event = json.loads(line)
            if event["type"] == "ERROR":
                self.last = None if event["object"].get("code") == 410 else self.last
                return
            self.last = int(event["object"]["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK":
                self.events.append((event["type"], self.last, event["object"]["metadata"]["name"]))
            if event["object"]["apiVersion"] != "example.com/" + self.path.split("/")[3]:
                self.wrong.append(event)

    def stop(self):
        self.stopping = True


class Writer(threading.Thread):
    """Creates, changes and deletes gadgets on one instance until it is stopped. Goes on after failures."""

    def __init__(self, server_of, name, seed):
        super().__init__(daemon=True)
        self.server_of, self.rng, self.prefix, self.stopping, self.n = server_of, random.Random(seed), name, False, 0

    def run(self):
        while not self.stopping:
            name = f"{self.prefix}-{self.rng.randrange(8)}"
            verb = self.rng.choice(("POST", "PATCH", "PATCH", "DELETE"))
            body = gadget(name) if verb == "POST" else {"spec": {"size": self.rng.randrange(1, 1000)}} if verb == "PATCH" else None
            try:
                code, _ = self.server_of().request(verb, GADGETS if verb == "POST" else f"{GADGETS}/{name}", body,
                                                   {"Content-Type": "application/merge-patch+json"} if verb == "PATCH" else None, timeout=10)
            except (OSError, ValueError):  # the instance has not written its kubeconfig yet
                continue
            self.n += code in (200, 201)

    def stop(self):
        self.stopping = True
        self.join()


class Pair:
    """Two instances; kill() kills one and starts it again."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.now = {n: cluster.instance(n).wait_ready() for n in ("a", "b")}

    def server(self, name):
        return lambda: self.now[name]

    def all(self):
        return list(self.now.values())

    def kill(self, name):
        self.now[name].send(signal.SIGKILL)
        self.now[name].wait()
        self.now[name] = self.cluster.instance(name).wait_ready()


def changes(cluster):
    """Returns the changes of gadgets in etcd, in order: (revision, whether it exists afterwards, name)."""
    return [(e["rev"], e["type"] == "PUT", e["key"].rpartition("/")[2]) for e in cluster.witness.seen() if e["key"].startswith(KEYS)]


def check_reflector(reflector, truth):
    """Checks that the events between two lists are those of etcd, each once and in order, and that a list is the state at its revision."""
    assert not reflector.wrong and reflector.lists
    ends = [start for _, _, start in reflector.lists[1:]] + [len(reflector.events)]
    for (revision, objects, start), end in zip(reflector.lists, ends):
        state = {}
        for rev, there, name in truth:
            if rev <= revision:
                state.pop(name, None)
                if there:
                    state[name] = rev
        assert objects == state
        got = [(rev, kind != "DELETED", name) for kind, rev, name in reflector.events[start:end]]
        last = got[-1][0] if got else 0
        assert got == [c for c in truth if revision < c[0] <= last]


def serve_second(pair, served):
    update_definition(pair.now["a"], NAME, lambda spec: spec["versions"][1].update(served=served))
    for server in pair.all():
        wait_until(f"v2 to be served: {served}", lambda s=server: s.get(GADGETS.replace("v1", "v2"))[0] == (200 if served else 404))


def write(server, name):
    """Creates or changes a gadget. Returns its revision."""
    code, text = server.request("POST", GADGETS, gadget(name))
    if code == 409:
        code, text = server.request("PATCH", f"{GADGETS}/{name}", {"spec": {"size": 7}}, {"Content-Type": "application/merge-patch+json"})
    assert code in (200, 201), text
    return int(json.loads(text)["metadata"]["resourceVersion"])


def changed(pair, change):
    for server in pair.all():
        try:
            update_definition(server, NAME, change)
            return True
        except (AssertionError, OSError, ValueError):  # this instance has been killed
            continue
    return False


def test_no_watch_misses_a_change_or_shows_a_version_that_is_gone(cluster):
    seed = int(os.environ.get("HOLDFAST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    print(f"seed {seed}")
    pair = Pair(cluster)
    define(pair.all(), definition(versions=[version("v1"), version("v2", storage=False)]))
    reflectors = {(n, v): Reflector(pair.server(n), GADGETS.replace("v1", v)) for n in ("a", "b") for v in ("v1", "v2")}
    writers = [Writer(pair.server(n), n, seed + i) for i, n in enumerate(("a", "b"))]
    for thread in [*reflectors.values(), *writers]:
        thread.start()
    for i in range(ROUNDS):
        before = sum(w.n for w in writers)
        wait_until("some writes", lambda b=before: sum(w.n for w in writers) > b + 20)
        if i % 2:
            serve_second(pair, False)
            first = write(pair.now["b"], f"gone-{i}")
            pair.kill(rng.choice("ab"))
            last = write(pair.now["a"], f"gone-{i}")
            for name in ("a", "b"):
                wait_until("v1 to show it", lambda n=name, e=last: (reflectors[n, "v1"].last or 0) >= e)
                shown = [e for e in reflectors[name, "v2"].events if e[1] >= first]
                assert not shown, (first, last, shown)
            serve_second(pair, True)
        else:
            def change(spec, i=i):
                spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][f"extra{i}"] = {"type": "string"}
            # An instance ends with the thread that started it, so only this thread restarts instances; the update gets another thread.
            update = threading.Thread(target=wait_until, args=("the change", lambda c=change: changed(pair, c)))
            update.start()
            pair.kill(rng.choice("ab"))
            update.join()
    for writer in writers:
        writer.stop()
    last = write(pair.now["a"], "last")
    cluster.witness.wait_for("the last write", lambda e: e["rev"] >= last)
    for (name, v), reflector in reflectors.items():
        wait_until(f"{v} of {name} to see the last write", lambda r=reflector: r.last and r.last >= last)
        reflector.stop()
    truth = changes(cluster)
    assert sum(w.n for w in writers) > 20 * ROUNDS
    for reflector in reflectors.values():
        check_reflector(reflector, truth)


def test_no_object_outlives_its_definition(cluster):
    seed = int(os.environ.get("HOLDFAST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    print(f"seed {seed}")
    pair = Pair(cluster)
    for i in range(ROUNDS):
        mark = cluster.witness.mark()
        define(pair.all(), definition())
        writers = [Writer(pair.server(n), f"{n}{k}", seed + 4 * i + k) for k, n in enumerate(("a", "b", "a", "b"))]
        for writer in writers:
            writer.start()
        wait_until("some writes", lambda w=writers: sum(x.n for x in w) > 40)
        ask(pair.now[rng.choice("ab")], "DELETE", f"{DEFINITIONS}/{NAME}", expect=200)
        if i % 2:
            pair.kill(rng.choice("ab"))
        end = cluster.witness.wait_for("the definition to be gone", lambda e: e["type"] == "DELETE" and e["key"].endswith(f"/{NAME}"), mark)
        for server in pair.all():
            wait_until("the kind to be gone", lambda s=server: s.get(GADGETS)[0] == 404)
        for writer in writers:
            writer.stop()
        now = {}
        for rev, there, name in changes(cluster):
            now[name] = (rev, there)
        assert not [n for n, (_, there) in now.items() if there], (end["rev"], now)
