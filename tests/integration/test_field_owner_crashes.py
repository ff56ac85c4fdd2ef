# SPDX-License-Identifier: Apache-2.0
"""Owners of fields on two instances that are killed again and again: managers apply, replace and patch the same objects and objects of their
own through both. What each of them wrote tells which owners the object must have. HOLDFAST_SEED repeats a run; HOLDFAST_ROUNDS makes it longer.

Each write of a manager changes its field `ID-0` to a new token, so the value of that field says which of its writes an object has seen last, also
when the response was lost. `shared` is taken by force, and has the token of its one owner. `common` has the same value in all applies that
have it, so it stays until the last of its owners leaves it out."""
import http.client
import itertools
import json
import os
import random
import signal
import threading
import urllib.parse

from holdfastd import ON_SQLITE, Cluster, wait_until
from test_custom_resources import define, definition

ROUNDS = int(os.environ.get("HOLDFAST_ROUNDS", 4))
SPACE = "/api/v1/namespaces/default"
VALUES = {"type": "object", "properties": {"values": {"type": "object", "additionalProperties": {"type": "string"}}}}
TEXT = {"type": "string"}
ITEMS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
         "items": {"type": "object", "x-kubernetes-map-type": "atomic", "required": ["name"], "properties": {"name": TEXT, "value": TEXT}}}
SPEC = {"type": "object", "properties": {**VALUES["properties"], "items": ITEMS}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": VALUES}}
NOTES = "/apis/example.com/v1/namespaces/default/notes"


class Place:
    """Where in an object managers have their fields: a map of texts, or a list of items with names and values."""

    def __init__(self, collection, name, kind, where, part=""):
        self.path, self.where, self.part = f"{collection}/{name}{'/' if part else ''}{part}", where, part
        self.base = {"apiVersion": "example.com/v1" if kind == "Note" else "v1", "kind": kind, "metadata": {"name": name}}

    def __str__(self):
        return self.path

    def put(self, object, fields):
        """A copy of the object that has these fields in this place."""
        *parents, last = self.where
        object = json.loads(json.dumps(object))
        if not fields:
            object.pop(self.where[0], None)
            return object
        inner = object
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = [{"name": k, "value": v} for k, v in sorted(fields.items())] if last == "items" else fields
        return object

    def values(self, object):
        for step in self.where:
            object = object.get(step, {})
        return {item["name"]: item["value"] for item in object} if isinstance(object, list) else object

    def owned(self, entry):
        """The names of the fields that an entry of managedFields has in this place."""
        fields = entry["fieldsV1"]
        for step in self.where:
            fields = fields.get(f"f:{step}", {})
        return {json.loads(f[2:])["name"] if f.startswith("k:") else f[2:] for f in fields if f != "."}


SHARED = [Place(f"{SPACE}/configmaps", "shared-0", "ConfigMap", ["data"]), Place(f"{SPACE}/configmaps", "shared-1", "ConfigMap", ["data"]),
          Place(NOTES, "listed", "Note", ["spec", "items"]), Place(NOTES, "shared", "Note", ["spec", "values"]),
          Place(NOTES, "shared", "Note", ["status", "values"], "status")]


def absent_paths(fields, value, path=""):
    """What an entry of managedFields names and the object does not have."""
    for step, inner in fields.items():
        if step == ".":
            continue
        if step.startswith("k:"):
            keys = json.loads(step[2:])
            found = [item for item in value if all(item.get(k) == v for k, v in keys.items())] if isinstance(value, list) else []
        elif step.startswith("v:"):
            found = [item for item in value if item == json.loads(step[2:])] if isinstance(value, list) else []
        else:
            found = [value[step[2:]]] if isinstance(value, dict) and step[2:] in value else []
        if len(found) != 1:
            yield path + step
        else:
            yield from absent_paths(inner, found[0], f"{path}{step}.")


def entries(object):
    """{(manager, operation, part): entry}; none of them twice, empty, or with a field that is absent."""
    found = {}
    for entry in object["metadata"].get("managedFields", []):
        key = (entry["manager"], entry["operation"], entry.get("subresource", ""))
        assert key not in found, f"{key} has two entries"
        assert entry["fieldsV1"] and entry["time"] and entry["apiVersion"] == object["apiVersion"], entry
        absent = list(absent_paths(entry["fieldsV1"], object))
        assert not absent, f"{key} owns what is absent: {absent}"
        found[key] = entry
    return found


def check_owners(place, object):
    """Each field has exactly the owners that its name and its value tell. Returns the entries."""
    found = entries(object)
    owners = {}
    for key, entry in found.items():
        for field in place.owned(entry):
            owners.setdefault(field, []).append(key)
    for field, value in place.values(object).items():
        if field == "common":
            assert owners.get(field) and all(operation == "Apply" for _, operation, _ in owners[field]), (field, owners.get(field))
            continue
        by = Manager.by_id[value.split(":")[0] if field == "shared" else field.split("-")[0]]
        assert owners.get(field) == [by.key(place)], f"{field}={value} has the owners {owners.get(field)}"
    return found


class Manager(threading.Thread):
    """One manager: a client that sends one request after another, to either instance. Whatever fails is left, and the next write decides."""
    by_id = {}

    def __init__(self, pair, id, manager, operation, seed):
        super().__init__(daemon=True)
        self.pair, self.id, self.manager, self.operation = pair, id, manager, operation
        self.rng, self.numbers, self.connections = random.Random(f"{seed} {id}"), itertools.count(1), {}
        own = Place(f"{SPACE}/configmaps", f"only-{id}", "ConfigMap", ["data"])
        self.places = SHARED + [own] if operation == "Apply" else SHARED
        # Of each place: what the last acknowledged write and those after it with no response wanted to have there.
        self.wanted = {place: [] for place in self.places}
        self.seen, self.lost, self.failed, self.stopping = [], 0, None, False
        Manager.by_id[id] = self

    def key(self, place):
        return (self.manager, self.operation, place.part)

    def run(self):
        try:
            while not self.stopping:
                (self.apply if self.operation == "Apply" else self.update)(self.rng.choice(self.places))
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error
            raise

    def stop(self):
        self.stopping = True
        self.join()

    def send(self, method, path, body=None, kind="application/json"):
        """(code, object); the code is 0 when there was no response."""
        name = self.rng.choice("ab")
        server = self.pair.now[name]
        try:
            if self.connections.get(name, (None, None))[0] is not server:
                self.connections[name] = (server, http.client.HTTPSConnection(urllib.parse.urlsplit(server.url).netloc, context=server.context(), timeout=20))
            connection = self.connections[name][1]
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind, "User-Agent": f"{self.manager}/1"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):  # the instance is away, or its kubeconfig
            self.connections.pop(name, (None, None))
            threading.Event().wait(0.01)
            return 0, None

    def write(self, place, fields, method, query, body, kind):
        """Sends a write that wants to have these fields, and checks the response."""
        self.wanted[place].append(fields)
        code, object = self.send(method, place.path + query, body, kind)
        if code in (200, 201):
            del self.wanted[place][:-1]
            self.check(place, object, [fields])
            self.seen.append((place, int(object["metadata"]["resourceVersion"]), object))
        elif code == 0:
            self.lost += 1
        else:
            assert code in (404, 409, 429, 503), object
            if code in (404, 409):
                self.wanted[place].pop()  # refused: nothing was written
        return code

    def check(self, place, object, wanted):
        """The object has the fields of one of these writes, and their owner is this manager."""
        entry = check_owners(place, object).get(self.key(place))
        values = place.values(object)
        mine = {f: v for f, v in values.items() if f.startswith(f"{self.id}-")}
        own = [{f: v for f, v in fields.items() if f.startswith(f"{self.id}-")} for fields in wanted]
        assert mine in own, f"{place}: {self.id} has {mine}, and wrote {own}"
        fields = wanted[own.index(mine)]
        expected = set(mine) | ({"shared"} if values.get("shared", "").startswith(f"{self.id}:") else set())
        if self.operation == "Apply" and "common" in fields:
            expected.add("common")
        assert (place.owned(entry) if entry else set()) == expected, f"{place}: {self.id} owns {entry}, not {expected}"

    def some_fields(self, chance_of_shared=0.3):
        token = f"{self.id}:{next(self.numbers)}"
        fields = {f"{self.id}-{i}": token for i in range(4) if i == 0 or self.rng.random() < 0.5}
        if self.rng.random() < chance_of_shared:
            fields["shared"] = token
        return fields

    def apply(self, place, fields=None):
        if fields is None:
            fields = self.some_fields()
            if self.rng.random() < 0.5:
                fields["common"] = "same"
        force = "&force=true" if "shared" in fields and self.rng.random() < 0.8 else ""
        return self.write(place, fields, "PATCH", f"?fieldManager={self.manager}{force}", place.put(place.base, fields), "application/apply-patch+yaml")

    def update(self, place):
        fields = self.some_fields()
        if self.rng.random() < 0.5 and place.where[-1] != "items":
            patch = {f"{self.id}-{i}": None for i in range(4)} | fields
            return self.write(place, fields, "PATCH", "", place.put({}, patch), "application/merge-patch+json")
        code, object = self.send("GET", place.path)
        if code != 200:
            return code
        others = {f: v for f, v in place.values(object).items() if not f.startswith(f"{self.id}-")}
        if self.rng.random() < 0.5:
            del object["metadata"]["managedFields"]  # the server keeps what a client leaves out
        return self.write(place, fields, "PUT", "", place.put(object, others | fields), "application/json")


class Pair:
    """Two instances that can be killed and started again, on a new port."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.now = {n: cluster.instance(n) for n in "ab"}
        for server in self.now.values():
            server.wait_ready()

    def kill(self, names):
        for name in names:
            self.now[name].send(signal.SIGKILL)
        for name in names:
            self.now[name].wait()
            self.now[name] = self.cluster.instance(name)
        for name in names:
            self.now[name].wait_ready()


def get(server, place):
    code, text = server.get(place.path)
    assert code == 200, text
    return json.loads(text)


def check_history(managers):
    """Between two responses with the same token of a manager, what it owns has not changed: no entry was lost and came back."""
    by_place = {}
    for manager in managers:
        for place, version, object in manager.seen:
            by_place.setdefault(place, {})[version] = object
    compared = 0
    for place, objects in by_place.items():
        ordered = [objects[version] for version in sorted(objects)]
        for before, after in itertools.pairwise(ordered):
            for manager in managers:
                token = f"{manager.id}-0"
                if place in manager.wanted and place.values(before).get(token) == place.values(after).get(token):
                    of = [{f for f in place.owned(entries(o).get(manager.key(place), {"fieldsV1": {}})) if f != "shared"} for o in (before, after)]
                    assert of[0] == of[1], f"{place}: {manager.id} owned {of[0]}, then {of[1]}"
                    compared += 1
    assert compared > 100


def take_away(pair, managers):
    """What managers applied goes when they apply without it, unless another one applies it too."""
    for place in SHARED:
        for i, manager in enumerate(m for m in managers if m.operation == "Apply"):
            wait_until("the apply", lambda m=manager, p=place: m.apply(p, {}) == 200)
            object = get(pair.now["ab"[i % 2]], place)
            assert manager.key(place) not in check_owners(place, object)
            assert not [f for f in place.values(object) if f.startswith(f"{manager.id}-")]
        left = get(pair.now["a"], place)
        assert not [f for f in place.values(left) if f == "common"]
        assert {operation for _, operation, part in entries(left) if part == place.part} <= {"Update"}


def test_two_instances_kill_9_in_between_no_managed_fields_lost():
    seed = int(os.environ.get("HOLDFAST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    print(f"seed {seed}")
    with Cluster(with_witness=False) as cluster:
        pair = Pair(cluster)
        define(list(pair.now.values()), definition("notes", "Note", versions=[{
            "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, "subresources": {"status": {}}}]))
        for place in SHARED:
            if not place.part:
                # Owners are recorded from the first field that has one.
                made = {**place.base, "metadata": {**place.base["metadata"], "labels": {"made": "yes"}}}
                code, text = pair.now["a"].request("POST", place.path.rpartition("/")[0] + "?fieldManager=maker", made)
                assert code == 201, text
        # A name that both applies and updates has an entry for each.
        managers = [Manager(pair, id, name, operation, seed) for id, name, operation in (
            ("one", "one", "Apply"), ("two", "two", "Apply"), ("three", "three", "Apply"), ("four", "both", "Apply"),
            ("five", "both", "Update"), ("six", "six", "Update"))]
        for manager in managers:
            manager.start()
        for i in range(ROUNDS):
            before = {m: len(m.seen) for m in managers}
            wait_until("each to write", lambda b=before: any(m.failed for m in managers) or all(len(m.seen) > n + 6 for m, n in b.items()))
            if any(m.failed for m in managers):
                break
            pair.kill("ab" if i % 3 == 2 else rng.choice("ab"))
        for manager in managers:
            manager.stop()
        assert not [m.failed for m in managers if m.failed]
        print(f"{sum(len(m.seen) for m in managers)} writes acknowledged, {sum(m.lost for m in managers)} lost")
        assert sum(m.lost for m in managers) > 0
        for manager in managers:
            for place in manager.places:
                objects = [get(server, place) for server in pair.now.values()] if manager.wanted[place] else []
                for object in objects:
                    manager.check(place, object, manager.wanted[place])
                assert all(o == objects[0] for o in objects)
        check_history(managers)
        take_away(pair, managers)
