# SPDX-License-Identifier: Apache-2.0
"""Consistency through two instances.

A read is never older than what was acknowledged before it was sent, through either instance,
even while etcd is stopped or restarted and the caches are behind. A watch delivers every change
once and in order. Term records always match their Leases.
"""
import http.client
import json
import random
import signal
import socket
import threading

import pytest
from holdfastd import Cluster, wait_until
from term_records import check_term_records, check_terms_in_history

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"


class Api:
    """One kept-alive connection to one instance. Returns (status, object); the status is 0 when
    there was no response."""

    def __init__(self, instance):
        self.host, self.port = instance.url.removeprefix("https://").split(":")
        self.context = instance.context()
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=30)
            self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                    {"Content-Type": "application/json", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else {}
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            return 0, {}


class Register:
    """One object with a number that only grows. A read that begins now must return at least
    `floor`."""

    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()
        self.floor = -1

    def raise_to(self, value):
        with self.lock:
            self.floor = max(self.floor, value)


class Storm:
    def __init__(self, instances, n_registers=4, n_readers=4):
        self.instances = instances
        self.registers = [Register(f"r{i}") for i in range(n_registers)]
        self.stop = threading.Event()
        self.failures = []
        self.reads = self.writes = self.unknown = 0
        self.given_up = 0  # writes for which the server did not wait any longer
        self.threads = [threading.Thread(target=self.guard, args=(self.write, r)) for r in self.registers]
        self.threads += [threading.Thread(target=self.guard, args=(self.read, i)) for i in range(n_readers)]

    def guard(self, work, argument):
        try:
            work(argument)
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(repr(error))
            self.stop.set()

    def write(self, register):
        apis = [Api(i) for i in self.instances]
        value = 0
        while not self.stop.is_set():
            value += 1
            # Without a resourceVersion the server retries conflicts itself, and that is tested too.
            code, reply = random.choice(apis).ask(
                "PUT", f"{WORKSPACES}/{register.name}", {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata":
                                                         {"name": register.name, "annotations": {"value": str(value)}}})
            if code == 404:
                code, reply = random.choice(apis).ask(
                    "POST", WORKSPACES, {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata":
                                         {"name": register.name, "annotations": {"value": str(value)}}})
            if code in (200, 201):
                assert reply["metadata"]["annotations"]["value"] == str(value), reply
                register.raise_to(value)
                self.writes += 1
            else:
                assert code in (0, 409, 429, 500, 503, 504), (code, reply)
                self.unknown += 1
                self.given_up += code >= 500
                self.stop.wait(0.01)

    def see(self, register, floor, item, how):
        value = int(item["metadata"]["annotations"]["value"]) if item else -1
        if value < floor:
            self.failures.append(f"{register.name}: {how} saw {value}, {floor} was acknowledged or seen before it was asked")
            self.stop.set()
        register.raise_to(value)

    def read(self, index):
        apis = [Api(i) for i in self.instances]
        while not self.stop.is_set():
            api = random.choice(apis)
            if (index + self.reads) % 2:
                register = random.choice(self.registers)
                floor = register.floor
                code, reply = api.ask("GET", f"{WORKSPACES}/{register.name}")
                if code in (200, 404):
                    self.see(register, floor, reply if code == 200 else None, "get")
            else:
                floors = [r.floor for r in self.registers]
                code, reply = api.ask("GET", WORKSPACES)
                items = {i["metadata"]["name"]: i for i in reply.get("items", [])}
                for register, floor in zip(self.registers, floors) if code == 200 else ():
                    self.see(register, floor, items.get(register.name), "list")
                if code == 200:
                    newest = max((int(i["metadata"]["resourceVersion"]) for i in items.values()), default=0)
                    if newest > int(reply["metadata"]["resourceVersion"]):
                        self.failures.append(f"a list at {reply['metadata']['resourceVersion']} holds an object of {newest}")
            self.reads += 1

    def run(self, during):
        for thread in self.threads:
            thread.start()
        try:
            during()
        finally:
            self.stop.set()
            for thread in self.threads:
                thread.join()
        assert not self.failures, self.failures[:5]


class Watcher(threading.Thread):
    """Keeps a watch open as a client does, and resumes it where it ended. Records events that
    are lost, duplicated or out of order."""

    def __init__(self, instances, path):
        super().__init__(daemon=True)
        self.instances, self.path = instances, path
        self.events, self.failures = [], []
        self.revision, self.known = None, {}
        self.stopped = threading.Event()
        self.lists = 0

    def list(self, api):
        code, reply = api.ask("GET", self.path)
        if code == 200:
            self.lists += 1
            self.revision = int(reply["metadata"]["resourceVersion"])
            self.known = {i["metadata"]["name"]: int(i["metadata"]["resourceVersion"]) for i in reply["items"]}

    def take(self, event):
        meta = event["object"].get("metadata", {})
        if event["type"] == "ERROR":
            self.revision = None
            return
        revision = int(meta["resourceVersion"])
        if event["type"] == "BOOKMARK":
            self.revision = max(self.revision, revision)
            return
        if revision <= self.revision:
            self.failures.append(f"{event['type']} of {meta['name']} at {revision} after {self.revision}")
        if (event["type"] == "ADDED") != (meta["name"] not in self.known):
            self.failures.append(f"{event['type']} of {meta['name']} at {revision}, known at {self.known.get(meta['name'])}")
        self.known.pop(meta["name"], None)
        if event["type"] != "DELETED":
            self.known[meta["name"]] = revision
        self.revision = revision
        self.events.append((revision, event["type"], meta["name"]))

    def run(self):
        while not self.stopped.is_set():
            api = Api(random.choice(self.instances))
            if self.revision is None:
                self.list(api)
                continue
            try:
                connection = http.client.HTTPSConnection(api.host, int(api.port), context=api.context, timeout=5)
                connection.request("GET", f"{self.path}?watch=1&resourceVersion={self.revision}&timeoutSeconds=1")
                answer = connection.getresponse()
                if answer.status == 410:
                    self.revision = None
                while answer.status == 200 and (line := answer.readline()):
                    self.take(json.loads(line))
                connection.close()
            except (OSError, http.client.HTTPException, ValueError):
                pass


class Cable:
    """A TCP proxy between an instance and etcd that can cut its connections at any time."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()
        self.sockets = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            with self.lock:
                self.sockets |= {near, far}
            for source, sink in (near, far), (far, near):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    def copy(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        self.drop({source, sink})

    def drop(self, sockets):
        with self.lock:
            self.sockets -= sockets
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.drop(set(self.sockets))


@pytest.fixture(name="pair")
def _pair():
    with Cluster() as cluster:
        a = cluster.instance("a").wait_ready()
        b = cluster.instance("b").wait_ready()
        yield cluster, a, b


def test_reads_are_linearizable(pair):
    """A20: A process that does not lead serves complete state."""
    cluster, a, b = pair
    storm = Storm([a, b])
    storm.run(lambda: wait_until("enough reads and writes", lambda: storm.failures or (storm.reads > 1500 and storm.writes > 500)))
    check_term_records(cluster.etcd)


def test_reads_are_linearizable_during_etcd_outages(pair):
    cluster, a, b = pair
    storm = Storm([a, b])

    def faults():
        for _ in range(2):
            before = storm.writes
            wait_until("writes go on", lambda: storm.failures or storm.writes > before + 100)
            given_up = storm.given_up
            cluster.etcd.send(signal.SIGSTOP)
            wait_until("a write that the server gives up", lambda: storm.failures or storm.given_up > given_up)
            cluster.etcd.send(signal.SIGCONT)
            before = storm.writes
            wait_until("writes go on", lambda: storm.failures or storm.writes > before + 100)
            cluster.etcd.restart()
        before = storm.writes
        wait_until("writes go on", lambda: storm.failures or storm.writes > before + 100)

    storm.run(faults)
    assert storm.unknown > 0
    check_term_records(cluster.etcd)


def test_watches_deliver_every_change_once():
    with Cluster() as cluster:
        cable = Cable(cluster.etcd.client)
        a = cluster.instance("a").wait_ready()
        b = cluster.instance("b", etcd_url=cable.url).wait_ready()
        watches_deliver_every_change_once(cluster, a, b, cable)


def watches_deliver_every_change_once(cluster, a, b, cable):
    watchers = [Watcher([a, b], WORKSPACES) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    wait_until("the watchers have listed", lambda: all(w.lists for w in watchers))
    mark = cluster.witness.mark()
    start = max(w.revision for w in watchers)
    storm = Storm([a, b], n_readers=1)

    def churn():
        api = Api(a)
        for i in range(60):
            api.ask("POST", WORKSPACES, {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": f"w{i}"}})
            api.ask("DELETE", f"{WORKSPACES}/w{i - 3}")
            if i % 10 == 5:
                cable.cut()

    storm.run(churn)
    prefix = "/registry/tenancy.holdfast.dev/workspaces/"
    # The controllers write for another moment. Each watcher must reach the last event that the
    # witness saw.
    def quiet():
        last = [e["rev"] for e in cluster.witness.seen()[mark:] if e["key"].startswith(prefix)][-1]
        return all(w.revision is not None and w.revision >= last for w in watchers)
    wait_until("the watchers have seen all", quiet)
    for watcher in watchers:
        watcher.stopped.set()
    for watcher in watchers:
        watcher.join()
    seen = cluster.witness.seen()[mark:]
    for watcher in watchers:
        assert not watcher.failures, watcher.failures[:5]
        last = watcher.events[-1][0]
        wanted = [(e["rev"], e["key"][len(prefix):]) for e in seen if e["key"].startswith(prefix) and start < e["rev"] <= last]
        if watcher.lists == 1:
            assert [(r, n) for r, _, n in watcher.events if r > start] == wanted
    assert any(w.lists == 1 for w in watchers)


def test_term_records_follow_their_leases(pair):
    """Many clients create, acquire, release, edit and delete Leases at the same time, with and
    without finalizers, through both instances."""
    cluster, a, b = pair
    mark_all = cluster.witness
    failures = []

    def lease(name, holder, acquired, version=None, finalizers=None):
        meta = {"name": name, "namespace": "default"}
        if version:
            meta["resourceVersion"] = version
        if finalizers is not None:
            meta["finalizers"] = finalizers
        spec = {"leaseDurationSeconds": 10}
        if holder is not None:
            spec["holderIdentity"] = holder
        if acquired:
            spec["acquireTime"] = acquired
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}

    def work(seed):
        dice = random.Random(seed)
        apis = [Api(a), Api(b)]
        holders = [None, "", "x", "y", "a\nb", "a b", "żółw ☃", "q" * 200]
        for i in range(120):
            api, name = dice.choice(apis), f"l{dice.randrange(4)}"
            wanted = lease(name, dice.choice(holders), dice.choice([None, f"2026-01-01T00:00:{i % 60:02}.000000Z"]),
                           finalizers=dice.choice([None, None, ["example.com/f"]]))
            code, found = api.ask("GET", f"{LEASES}/{name}")
            if code == 404:
                code, _ = api.ask(*dice.choice([("POST", LEASES), ("PUT", f"{LEASES}/{name}")]), wanted)
            elif dice.random() < 0.2:
                code, _ = api.ask("DELETE", f"{LEASES}/{name}")
            else:
                wanted["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
                code, _ = api.ask("PUT", f"{LEASES}/{name}", wanted)
            if code not in (200, 201, 404, 409, 422):
                failures.append(code)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        check_term_records(cluster.etcd)
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]
    terms = check_term_records(cluster.etcd)
    wait_until("the witness has seen all", lambda: mark_all.seen()[-1]["rev"] >= max(terms.values()))
    check_terms_in_history(cluster.witness.seen(), terms)
