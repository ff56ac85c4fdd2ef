# SPDX-License-Identifier: Apache-2.0
"""Two instances on one etcd under load while the leader changes all the time.

The load creates and deletes workspaces, namespaces, contents, finalizers and owner references. The
leader is changed by planned hand-overs (SIGTERM, restart) and by SIGKILL; half of the kills are
followed by `holdfastd release`, as the service manager runs it, half are left to the expiry.

At the end everything is Ready or deleted. Nothing was done twice or forgotten, and nothing was
deleted without a reason. All of this is checked in the history that the witness recorded in etcd.
The instances are the test variant of holdfastd, whose writer puts its term into each write.

The full storm, 100 hand-overs and 20 kills (three to four minutes):

    STORM_HAND_OVERS=100 STORM_KILLS=20 /usr/bin/python3 -m pytest -q -s tests/integration/test_storm.py

STORM_SEED repeats a storm's choices (not its timing); the seed is printed.
"""
import collections
import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time
import urllib.parse

from holdfastd import FAST, HOLDFASTD, LEASE, WRITER, phase, store_flag, wait_until

HAND_OVERS = int(os.environ.get("STORM_HAND_OVERS", "12"))
KILLS = int(os.environ.get("STORM_KILLS", "4"))
SEED = int(os.environ.get("STORM_SEED", str(random.randrange(1 << 30))))
TERM = "/registry.holdfast/terms/kube-system/holdfast-controllers"
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
WORKSPACE_KEY = "/registry/tenancy.holdfast.dev/workspaces/"
NAMESPACE_KEY = "/registry/namespaces/"
HOLDS, INITIALIZER = "storm.test/holds", "storm.test"


# ---- the load ----

class Client:
    """One connection to any instance that responds. It repeats a request until there is a
    response. The response may then reflect the lost attempt: 409 for a creation, 404 for a
    deletion."""

    def __init__(self, instances, stop):
        self.instances, self.stop, self.connection, self.turn = instances, stop, None, random.random() < 0.5

    def connect(self):
        self.turn = not self.turn
        instance = self.instances["ab"[self.turn]]
        where = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=10, context=instance.context())

    def __call__(self, method, path, body=None):
        return wait_until(f"a response to {method} {path}", lambda: self.attempt(method, path, body), limit=60, every=0.01)

    def attempt(self, method, path, body):
        """Returns the response, or None if the request must be repeated."""
        try:
            if not self.connection:
                self.connect()
            self.connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status < 500 and answer.status != 429:
                return answer.status, json.loads(text)
        except (OSError, http.client.HTTPException, ValueError):
            pass
        if self.connection:
            self.connection.close()
        self.connection = None
        return None


def reference(owner, blocks):
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks}


def options(uid, policy):
    return {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy, "preconditions": {"uid": uid}}


class Load(threading.Thread):
    """Creates and deletes objects under a few names, so that each name is reused often."""

    def __init__(self, number, instances, stop, asked):
        super().__init__(daemon=True)
        self.number, self.stop, self.asked, self.error = number, stop, asked, None
        self.random, self.call = random.Random(SEED * 100 + number), Client(instances, stop)
        self.done = collections.Counter()

    def run(self):
        try:
            while not self.stop.is_set():
                self.random.choice([self.workspace, self.workspace, self.fill, self.fill, self.namespace, self.family, self.drop, self.drop])()
        except BaseException as error:  # the test reports it
            self.error = error

    def name(self, kind):
        return f"{kind}{self.number}-{self.random.randrange(6)}"

    def count(self, what, code):
        self.done[f"{what} {code}"] += 1

    def create(self, path, kind, name, version="v1", spec=None, **metadata):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, **({"spec": spec} if spec else {})}
        code, answer = self.call("POST", path, body)
        self.count(f"create {kind}", code)
        return answer if code == 201 else None

    def delete(self, path, policy="Background"):
        """Deletes the present object by uid. Records the uid in `asked` first, so that no
        deletion is seen before it is known."""
        code, found = self.call("GET", path)
        if code == 200:
            self.asked.add(found["metadata"]["uid"])
            code, _ = self.call("DELETE", path, options(found["metadata"]["uid"], policy))
            self.count(f"delete {found['kind']}", code)

    def workspace(self):
        spec = {"initializers": [INITIALIZER]} if self.random.random() < 0.3 else None
        made = self.create(WORKSPACES, "Workspace", self.name("w"), "tenancy.holdfast.dev/v1alpha1", spec)
        if made and self.random.random() < 0.5:  # an object outside the workspace that the workspace owns
            self.create("/api/v1/namespaces/default/configmaps", "ConfigMap", f"of-{made['metadata']['uid'][:13]}",
                        ownerReferences=[reference(made, self.random.random() < 0.5)])

    def contents(self, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        owner = self.create(path, "ConfigMap", f"c{self.random.randrange(10 ** 9)}",
                            **({"finalizers": [HOLDS]} if self.random.random() < 0.2 else {}))
        if owner:
            for i in range(self.random.randrange(4)):
                self.create(path, "ConfigMap", f"{owner['metadata']['name']}-{i}", ownerReferences=[reference(owner, i % 2 == 0)])
            if self.random.random() < 0.4:
                self.delete(f"{path}/{owner['metadata']['name']}", self.random.choice(["Background", "Foreground", "Orphan"]))

    def fill(self):
        self.contents("ws-" + self.name("w"))

    def namespace(self):
        name = self.name("n")
        self.create("/api/v1/namespaces", "Namespace", name)
        self.contents(name)

    def family(self):
        """Creates three generations of owners and a cycle in a namespace that stays."""
        path, name = "/api/v1/namespaces/default/configmaps", f"f{self.number}-{self.random.randrange(10 ** 9)}"
        first = self.create(path, "ConfigMap", name)
        second = first and self.create(path, "ConfigMap", name + "-2", ownerReferences=[reference(first, True)])
        third = second and self.create(path, "ConfigMap", name + "-3", ownerReferences=[reference(second, True), reference(first, False)])
        if third and self.random.random() < 0.3:
            first["metadata"]["ownerReferences"] = [reference(third, True)]
            self.call("PUT", f"{path}/{name}", first)
        if third:
            self.delete(f"{path}/{name}", self.random.choice(["Background", "Foreground"]))

    def drop(self):
        if self.random.random() < 0.6:
            self.delete(f"{WORKSPACES}/{self.name('w')}", self.random.choice(["Background", "Foreground"]))
        else:
            self.delete(f"/api/v1/namespaces/{self.name('n')}")


class Others(threading.Thread):
    """The programs that finalizers and initializers wait for. They watch for objects to handle,
    and handle each after a while."""

    def __init__(self, witness, instances, stop):
        super().__init__(daemon=True)
        self.witness, self.stop, self.error, self.call = witness, stop, None, Client(instances, stop)

    def run(self):
        at = 0
        try:
            while not self.stop.is_set():
                events = self.witness.seen()[at:]
                at += len(events)
                for e in events:
                    self.look_at(e)
                self.stop.wait(0.05)
        except BaseException as error:
            self.error = error

    def look_at(self, e):
        parts = e["key"].split("/")
        metadata = e.get("object", {}).get("metadata", {})
        if e["key"].startswith("/registry/configmaps/") and HOLDS in metadata.get("finalizers", []) and "deletionTimestamp" in metadata:
            self.settle(f"/api/v1/namespaces/{parts[3]}/configmaps/{parts[4]}", "", lambda o: take_out(o["metadata"], "finalizers", HOLDS))
        elif e["key"].startswith(WORKSPACE_KEY) and INITIALIZER in e.get("object", {}).get("status", {}).get("initializers", []):
            self.settle(f"{WORKSPACES}/{parts[4]}", "/status", lambda o: take_out(o.get("status", {}), "initializers", INITIALIZER))

    def settle(self, path, subresource, change):
        code = 409
        while code == 409:
            code, found = self.call("GET", path)
            if code != 200 or not change(found):
                return
            code, _ = self.call("PUT", path + subresource, found)


def take_out(where, key, value):
    if value not in where.get(key, []):
        return False
    where[key].remove(value)
    return True


# ---- the storm ----

class Storm:
    def __init__(self, cluster):
        self.cluster, self.witness, self.random = cluster, cluster.witness, random.Random(SEED)
        self.instances = {"a": self.start("a")}
        self.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
        self.instances["b"] = self.start("b")
        self.stop, self.asked = threading.Event(), set()

    def start(self, name):
        return self.cluster.instance(name, binary=WRITER).wait_ready()

    def restart(self, name):
        old = self.instances[name]
        self.cluster.started.remove(old)
        old.end()
        self.instances[name] = self.start(name)

    def change(self, kill):
        """Ends the leader, waits until the other instance leads, and starts the first one again."""
        leader = wait_until("a holder", self.witness.holder)
        name, mark = leader.split("_")[1], self.witness.mark()
        instance = self.instances[name]
        instance.send(signal.SIGKILL if kill else signal.SIGTERM)
        code = instance.wait()
        assert kill or code == 0, instance.log_text()[-3000:]
        if kill and self.random.random() < 0.5:
            done = subprocess.run([HOLDFASTD, "release", store_flag(self.cluster.etcd.url), f"--data-dir={instance.data}",
                                   f"--instance={name}", *FAST], capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 0, done.stderr
        self.witness.wait_holder(lambda h: h not in ("", leader), "the next leader", mark)
        self.restart(name)

    def rage(self):
        loads = [Load(i, self.instances, self.stop, self.asked) for i in range(4)]
        others, others_stop = None, threading.Event()
        others = Others(self.witness, self.instances, others_stop)
        for t in (*loads, others):
            t.start()
        changes = [False] * HAND_OVERS + [True] * KILLS
        self.random.shuffle(changes)
        for kill in changes:
            mark = self.witness.mark()
            self.change(kill)
            wait_until("the new leader to have met some load", lambda m=mark: self.witness.mark() - m > 60)
            assert not [t.error for t in (*loads, others) if t.error]
        self.stop.set()
        for t in loads:
            t.join()
        assert not [t.error for t in (*loads, others) if t.error]
        self.calm()
        others_stop.set()
        others.join()
        return sum((load.done for load in loads), collections.Counter())

    def calm(self):
        """Waits until every workspace is Ready, no deletion is pending, and no object has lost
        its owners."""
        wait_until("calm", lambda: not History(self.witness.seen()).unfinished(), limit=120, every=0.5)


# ---- checks of the history ----

class Life:
    """One incarnation of an object, from its creation to its deletion."""

    def __init__(self, key, e):
        self.key, self.uid, self.states, self.end = key, e["object"]["metadata"]["uid"], [e], None

    def last(self):
        return self.states[-1]["object"]

    def marked(self):
        """The revision at which its deletion was requested; None = never."""
        return next((e["rev"] for e in self.states if "deletionTimestamp" in e["object"]["metadata"]), None)

    def owners(self):
        return {r["uid"] for r in self.last()["metadata"].get("ownerReferences", [])}


class History:
    def __init__(self, events):
        self.lives, current, self.twice = [], {}, []
        for e in events:
            if not e["key"].startswith("/registry/") or "/leases/" in e["key"]:
                continue
            life = current.get(e["key"])
            if e["type"] == "DELETE":
                if life:
                    life.end = e["rev"]
                current.pop(e["key"], None)
            elif not life:
                current[e["key"]] = life = Life(e["key"], e)
                self.lives.append(life)
            else:
                life.states.append(e)
                if e["object"]["metadata"]["uid"] != life.uid:
                    self.twice.append(e["key"])
        self.by_uid = {life.uid: life for life in self.lives}
        self.namespaces = collections.defaultdict(list)
        for life in self.lives:
            if life.key.startswith(NAMESPACE_KEY):
                self.namespaces[life.key[len(NAMESPACE_KEY):]].append(life)

    def of(self, prefix):
        return [life for life in self.lives if life.key.startswith(prefix)]

    def owners_ended(self, life, before):
        """Whether every owner was deleted, or marked for foreground deletion, before that
        revision."""
        ends = [self.by_uid[u] for u in life.owners() if u in self.by_uid]
        return bool(ends) and all((o.end and o.end < before) or (o.marked() and o.marked() < before) for o in ends)

    def unfinished(self):
        out = []
        for life in self.lives:
            if life.end:
                continue
            if "deletionTimestamp" in life.last()["metadata"]:
                out.append((life.key, "marked"))
            elif life.key.startswith(WORKSPACE_KEY) and life.last().get("status", {}).get("phase") != "Ready":
                out.append((life.key, "not Ready"))
            elif life.owners() and all(u in self.by_uid and self.by_uid[u].end for u in life.owners()):
                out.append((life.key, "without its owners"))
        return out


def check_nothing_twice(history):
    assert history.twice == []
    assert len(history.by_uid) == len(history.lives), "a uid occurred twice"
    of_workspace = collections.Counter()
    for life in history.of(NAMESPACE_KEY + "ws-"):
        of_workspace.update(life.owners())
    assert [u for u, n in of_workspace.items() if n != 1] == [], "a workspace got two namespaces"
    for life in history.of(WORKSPACE_KEY):
        entered = [p for p, _ in itertools.groupby(phase(e) for e in life.states)]
        assert entered == [None, "Scheduling", "Initializing", "Ready"][:len(entered)], (life.key, entered)
        if entered[-1] == "Ready":
            assert of_workspace[life.uid] == 1, life.key


def check_nothing_forgotten(history):
    assert history.unfinished() == []
    for life in history.of(WORKSPACE_KEY):
        ours = [ns for ns in history.namespaces["ws-" + life.key[len(WORKSPACE_KEY):]] if life.uid in ns.owners()]
        for ns in ours:
            assert bool(ns.end) == bool(life.end), (life.key, "its namespace")
            assert not life.end or ns.end < life.end, (life.key, "was deleted before its namespace")
    for name, lives in history.namespaces.items():
        for ns in (ns for ns in lives if ns.end):
            inside = [life for life in history.lives if life.key.split("/")[3] == name and len(life.key.split("/")) == 5
                      and ns.states[0]["rev"] < life.states[0]["rev"] < ns.end]
            assert [life.key for life in inside if not life.end or life.end > ns.end] == [], f"left in {name}"


def check_nothing_without_a_reason(history, asked):
    """Asserts that every deletion was requested, or its namespace was deleted, or its owners
    were."""
    wrong = {}
    for life in history.lives:
        at = life.marked() or life.end
        if not at or life.uid in asked or "/events/" in life.key:
            continue
        ns = [n for n in history.namespaces[life.key.split("/")[3]] if n.marked() and n.marked() < at and (not n.end or n.end > at)]
        if not ns and not history.owners_ended(life, at):
            wrong[life.key] = [e["object"]["metadata"] for e in life.states] + [life.end] + [
                (o.key, o.marked(), o.end) for o in map(history.by_uid.get, life.owners()) if o]
    assert wrong == {}


def check_terms(events):
    """Asserts that no write of a term follows the acquiring write of the next one."""
    term, writes, terms = 0, 0, set()
    for e in events:
        if e["key"] == TERM and e["type"] == "PUT":
            term = e["rev"]
        elif e["key"] == "/registry/configmaps/default/test-writer" and e["type"] == "PUT":
            said = int(e["object"]["data"]["term"])
            assert said == term, (said, term, e["rev"])
            writes += 1
            terms.add(said)
    return writes, terms


def test_nothing_is_lost_or_done_twice_during_a_storm(cluster):
    """LK01: workspaces, namespaces and garbage under hand-overs and kills."""
    print(f"STORM_SEED={SEED}")
    begun = time.monotonic()
    storm = Storm(cluster)
    done = storm.rage()
    events = cluster.witness.seen()
    history = History(events)
    check_nothing_twice(history)
    check_nothing_forgotten(history)
    check_nothing_without_a_reason(history, storm.asked)
    writes, terms = check_terms(events)
    holders = [e["object"]["spec"].get("holderIdentity") for e in events if e["key"] == LEASE and e["type"] == "PUT"]
    n_changes = len({h for h in holders if h}) - 1
    assert n_changes >= HAND_OVERS + KILLS
    ended = [life for life in history.lives if life.end]
    assert len([w for w in history.of(WORKSPACE_KEY) if w.end]) > HAND_OVERS
    print(f"{HAND_OVERS} hand-overs and {KILLS} kills in {time.monotonic() - begun:.0f} s: {len(events)} revisions, {len(history.lives)} objects, "
          f"{len(ended)} of them ended; {len(history.of(WORKSPACE_KEY))} workspaces, {len(history.of(NAMESPACE_KEY))} namespaces; "
          f"{writes} writes of {len(terms)} terms, each in its own")
    print(", ".join(f"{what}: {n}" for what, n in sorted(done.items())))
