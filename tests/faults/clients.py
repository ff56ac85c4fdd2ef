# SPDX-License-Identifier: Apache-2.0
"""The clients of a run, each a thread: those here read and write, others are watchers (watchers.py) and
contenders for a Lease (contenders.py). What they ask and the replies that they get are recorded; they
judge nothing.

A write is certainly not done when the connection was refused, or with a 4xx or a 503 (those say so,
see docs/semantics.md). With every other reply than success its outcome is unknown.
"""
import http.client
import json
import random
import ssl
import threading
import time

from history import History, value_of

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
KEYS = [f"k{i}" for i in range(5)]
FENCED = "fenced"
LEASE = "default/faults"
TIMEOUT = 6
PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "strategic": "application/strategic-merge-patch+json"}


class Recorder:
    """The history, while many write it."""

    def __init__(self, seed):
        self.history = History(seed)
        self.mutex = threading.Lock()

    def add(self, kind, record):
        with self.mutex:
            getattr(self.history, kind).append(record)


class Api:
    """A kept connection to one instance, wherever it serves now."""

    def __init__(self, urls, index, context):
        self.urls, self.index, self.context = urls, index, context
        self.connection = self.url = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def connect(self, timeout):
        url = self.urls[self.index]
        if self.connection and self.url == url:
            return True
        self.close()
        if not url:
            return False
        self.url = url
        host, port = url.removeprefix("https://").split(":")
        connection = http.client.HTTPSConnection(host, int(port), context=self.context,
                                                 timeout=timeout)
        try:
            connection.connect()
        except (OSError, ssl.SSLError):
            connection.close()
            return False
        self.connection = connection
        return True

    def ask(self, method, path, body=None, kind="application/json", headers=None, give_up=False):
        """Returns (code, object). Code 0: no reply; -1: the request was not sent. give_up: closes
        the connection without waiting for the reply."""
        if not self.connect(TIMEOUT):
            return -1, {}
        try:
            text = json.dumps(body) if body is not None else None
            self.connection.request(method, path, text, {"Content-Type": kind, **(headers or {})})
            if give_up:
                self.close()
                return 0, {}
            response = self.connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            return 0, {}

    def watch(self, path):
        """Yields (code, None), and then the events."""
        if not self.connect(TIMEOUT):
            return
        try:
            self.connection.sock.settimeout(TIMEOUT)
            self.connection.request("GET", path)
            response = self.connection.getresponse()
            yield response.status, None
            while response.status == 200 and (line := response.readline()):
                if not line.endswith(b"\n"):
                    break
                yield 0, json.loads(line)
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            self.close()


def outcome_of(code):
    if code in (200, 201):
        return "ok"
    return "fail" if code == -1 or 400 <= code < 500 or code == 503 else "unknown"


def cause_of(reply):
    causes = (reply.get("details") or {}).get("causes") or []
    return causes[0].get("reason", "") if causes else reply.get("reason", "")


def seen(item):
    """[rv, value] of a ConfigMap."""
    meta = item["metadata"]
    rv = int(meta["resourceVersion"])
    return [rv, value_of(meta["name"], rv, item.get("data") or {})]


class Client(threading.Thread):
    writes = True  # it stops when all is to be quiet

    def __init__(self, run, name, index, seed):
        super().__init__(daemon=True, name=name)
        self.run_of, self.name, self.index = run, name, index
        self.dice = random.Random(f"{seed}/{name}")
        self.api = Api(run.urls, index, run.context)
        self.count, self.error = 0, None
        self.known = {}  # key: [rv, value] as it saw it last

    def run(self):
        try:
            while not self.run_of.stop.is_set():
                if self.writes and self.run_of.quiet.is_set():
                    self.run_of.stop.wait(0.2)
                else:
                    self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
            raise
        finally:
            self.api.close()

    def record(self, op, key, t0, code, reply, value=None, base=None, term=0):
        """One request for one key. Returns its outcome."""
        outcome = outcome_of(code)
        record = {"op": op, "key": key, "client": self.name, "instance": self.index, "t0": t0,
                  "t1": time.monotonic_ns(), "outcome": outcome, "code": code, "value": value,
                  "base": base, "rv": 0, "seen": None, "cause": "", "term": term,
                  "lease": LEASE if term else None}
        if op == "get" and code == 404:
            record["outcome"] = outcome = "ok"
        elif outcome == "ok" and op == "get":
            record["rv"], record["seen"] = seen(reply)
        elif outcome == "ok" and op != "delete":
            record["rv"] = seen(reply)[0]
            if seen(reply)[1] != value:  # the checker finds this value nowhere
                record["value"] = f"{value}, but the reply says {seen(reply)[1]}"
        elif outcome != "ok":
            record["cause"] = cause_of(reply)
        self.run_of.recorder.add("op", record)
        return outcome

    def new_value(self):
        self.count += 1
        return f"{self.name}-{self.count}"

    def step(self):
        """One request, as the dice say."""
        key = self.dice.choice(KEYS)
        work = self.dice.choices(
            (self.get, self.fresh, self.list, self.pages, self.update, self.replace, self.patch,
             self.create, self.delete), (20, 3, 7, 3, 22, 8, 14, 8, 8))[0]
        good = work(key)
        self.run_of.stop.wait(self.dice.uniform(0.0, 0.08) if good else 0.1)

    def body(self, key, value, **metadata):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key, **metadata},
                "data": {"v": value}}

    def give_up(self):
        return self.dice.random() < 0.01

    def get(self, key):
        t0 = time.monotonic_ns()
        code, reply = self.api.ask("GET", f"{CONFIGMAPS}/{key}")
        outcome = self.record("get", key, t0, code, reply)
        if outcome == "ok":
            self.known[key] = seen(reply) if code == 200 else None
        return outcome == "ok"

    def fresh(self, key):
        """A read that a cache may answer, but with nothing older than a version that the client
        knows."""
        least = self.known[key][0] if self.known.get(key) else 0
        t0 = time.monotonic_ns()
        code, reply = self.api.ask("GET", f"{CONFIGMAPS}/{key}?resourceVersion={least}")
        if code not in (200, 404):
            return False
        rv, value = seen(reply) if code == 200 else (0, None)
        self.run_of.recorder.add("fresh", {
            "key": key, "client": self.name, "instance": self.index, "t0": t0,
            "t1": time.monotonic_ns(), "least": least, "rv": rv, "seen": value})
        return True

    def list(self, _key):
        t0 = time.monotonic_ns()
        code, reply = self.api.ask("GET", CONFIGMAPS)
        if code != 200:
            return False
        self.listed(t0, time.monotonic_ns(), reply, reply["items"])
        return True

    def pages(self, _key):
        """A list in pages of two, which is consistent as of its first page."""
        t0, t1, items, token, first = time.monotonic_ns(), 0, [], "", None
        while first is None or token:
            code, reply = self.api.ask("GET", f"{CONFIGMAPS}?limit=2&continue={token}")
            if code != 200:
                return code == 410
            first, t1 = first or reply, t1 or time.monotonic_ns()
            if reply["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]:
                items = []  # which the checker finds wrong
            items += reply["items"]
            token = reply["metadata"].get("continue", "")
            self.run_of.stop.wait(self.dice.uniform(0, 0.05))
        self.listed(t0, t1, first, items)
        return True

    def listed(self, t0, t1, reply, found):
        items = {i["metadata"]["name"]: seen(i) for i in found}
        for key in KEYS:
            self.known[key] = items.get(key)
        self.run_of.recorder.add("listing", {
            "client": self.name, "instance": self.index, "t0": t0, "t1": t1,
            "rv": int(reply["metadata"]["resourceVersion"]), "items": items, "outcome": "ok"})

    def write(self, op, key, method, path, body, value, base=None, kind="application/json"):
        t0 = time.monotonic_ns()
        code, reply = self.api.ask(method, path, body, kind, give_up=self.give_up())
        if code == 201 and op == "update":
            op = "create"
        outcome = self.record(op, key, t0, code, reply, value, base)
        if outcome == "ok" and op != "delete":
            self.known[key] = seen(reply)
        return outcome == "ok" or code in (404, 409, 422)

    def create(self, key):
        value = self.new_value()
        return self.write("create", key, "POST", CONFIGMAPS, self.body(key, value), value)

    def update(self, key):
        """Replaces the version that it saw, most often just now, and no other."""
        if self.dice.random() < 0.7 and not self.get(key):
            return False
        if not self.known.get(key):
            return self.create(key)
        rv, base = self.known[key]
        value = self.new_value()
        body = self.body(key, value, resourceVersion=str(rv))
        return self.write("update", key, "PUT", f"{CONFIGMAPS}/{key}", body, value, base)

    def replace(self, key):
        """Replaces whatever is there."""
        value = self.new_value()
        return self.write("update", key, "PUT", f"{CONFIGMAPS}/{key}", self.body(key, value), value)

    def patch(self, key):
        kind, base, value = self.dice.choice(list(PATCHES)), None, self.new_value()
        body = {"data": {"v": value}}
        if kind == "json":
            body = [{"op": "replace", "path": "/data/v", "value": value}]
            if self.known.get(key):
                base = self.known[key][1]
                body.insert(0, {"op": "test", "path": "/data/v", "value": base})
        return self.write("patch", key, "PATCH", f"{CONFIGMAPS}/{key}", body, value, base,
                          PATCHES[kind])

    def delete(self, key):
        body, base = None, None
        if self.known.get(key) and self.dice.random() < 0.5:
            rv, base = self.known[key]
            body = {"apiVersion": "v1", "kind": "DeleteOptions",
                    "preconditions": {"resourceVersion": str(rv)}}
        return self.write("delete", key, "DELETE", f"{CONFIGMAPS}/{key}", body, None, base)
