# SPDX-License-Identifier: Apache-2.0
"""Judges a recorded history. Pure: history in, anomalies out.

Two judges look at each key, because neither sees all: the search of linear.py, which needs only the
clients' replies, and the comparison with etcd's own history. The second also judges watches, fences
and what a list says about all keys at once.

    lost-write         an acknowledged write is not in etcd's history, or is there as something else
    phantom            a write that certainly failed took effect, or a reply has what was never there
    stale-read         a consistent read is older than what was acknowledged before it began
    not-linearizable   no order of one key's requests explains their replies
    watch-gap          a watch left out an event
    watch-duplicate    a watch delivered an event twice
    watch-order        a watch went back to an earlier revision
    initial-state      the initial events of a watch are not the state at the revision of their bookmark
    watch-wrong        a watch delivered what was never there, or ADDED for what was there before
    old-term           a write of a term took effect, or was acknowledged, after a later term began
    witness            etcd's history is incomplete; no verdict
"""
import bisect
import collections
import dataclasses
import math

import linear

PREFIX = "/registry/configmaps/default/"


@dataclasses.dataclass
class Anomaly:
    kind: str
    text: str

    def __str__(self):
        return f"{self.kind}: {self.text}"


class Etcd:
    """etcd's history: for each key its states, in order of revisions."""

    def __init__(self, events):
        self.events = sorted(events, key=lambda e: (e["rev"], e["key"]))
        self.of = collections.defaultdict(list)
        for event in self.events:
            self.of[event["key"]].append(event)
        self.revisions = {key: [e["rev"] for e in events] for key, events in self.of.items()}
        self.last = self.events[-1]["rev"] if self.events else 0
        self.by_value = {e["value"]: e for e in self.events
                         if e["key"].startswith(PREFIX) and e["type"] == "PUT"}

    def at(self, key, revision):
        """The event that made the key's state at a revision; None = there was none yet."""
        n = bisect.bisect_right(self.revisions.get(key, ()), revision)
        return self.of[key][n - 1] if n else None

    def after(self, key, revision):
        """The revision of the first event after that one; infinite = none."""
        revisions = self.revisions.get(key, ())
        n = bisect.bisect_right(revisions, revision)
        return revisions[n] if n < len(revisions) else math.inf

    def absent_from(self, key, revision):
        """Whether the key was absent at that revision or at some later one."""
        event = self.at(key, revision)
        if event is None or event["type"] == "DELETE":
            return True
        n = bisect.bisect_right(self.revisions.get(key, ()), revision)
        return any(e["type"] == "DELETE" for e in self.of[key][n:])


def check_witness(etcd):
    """Each key's versions have no hole: then the witness missed nothing of it but, at most, whole
    lives; those show in the writes."""
    for key, events in etcd.of.items():
        version = 0
        for event in events:
            if event["type"] == "DELETE":
                version = 0
                continue
            if event["version"] not in (version + 1, 1):
                yield Anomaly("witness", f"{key}: version {event['version']} at {event['rev']} "
                              f"after version {version}")
            version = event["version"]


def where(op):
    return f"[{op['client']} through {op['instance']}, {op['t0'] / 1e9:.3f} to {op['t1'] / 1e9:.3f} s]"


# ---- writes ----

def check_writes(history, etcd):
    for op in history.op:
        if op["op"] in ("get", "delete") or op["value"] is None:
            continue
        event = etcd.by_value.get(op["value"])
        what = f"{op['op']} of {op['key']} to {op['value']} {where(op)}"
        if op["outcome"] == "ok":
            if event is None or event["key"] != PREFIX + op["key"]:
                yield Anomaly("lost-write", f"{what} was acknowledged at {op['rv']}, and is not in etcd")
            elif event["rev"] != op["rv"]:
                yield Anomaly("lost-write", f"{what} was acknowledged at {op['rv']}, is at {event['rev']}")
            elif op["base"] is not None:
                yield from check_base(op, event, etcd, what)
        elif op["outcome"] == "fail" and event is not None:
            yield Anomaly("phantom", f"{what} was refused with {op['code']} {op['cause']}, and is in "
                          f"etcd at {event['rev']}")


def check_base(op, event, etcd, what):
    before = etcd.at(event["key"], event["rev"] - 1)
    if before is None or before["type"] == "DELETE" or before["value"] != op["base"]:
        found = "nothing" if before is None or before["type"] == "DELETE" else before["value"]
        yield Anomaly("not-linearizable", f"{what} named {op['base']}, but it replaced {found}")


# ---- reads ----

class Floors:
    """The newest revision that was acknowledged or seen before a time, over all keys: etcd has one
    order of all writes, so a consistent read that begins later is not older."""

    def __init__(self, history):
        known = [(r["t1"], r["rv"]) for r in history.op + history.listing + history.take
                 if r["outcome"] == "ok" and r["rv"]]
        self.times, self.floors, newest = [], [], 0
        for t, rv in sorted(known):
            newest = max(newest, rv)
            self.times.append(t)
            self.floors.append(newest)

    def at(self, t):
        n = bisect.bisect_left(self.times, t)
        return self.floors[n - 1] if n else 0


def check_reads(history, etcd):
    floors = Floors(history)
    for op in history.op:
        if op["op"] != "get" or op["outcome"] != "ok":
            continue
        key, floor = PREFIX + op["key"], floors.at(op["t0"])
        what = f"get of {op['key']} {where(op)}"
        if op["seen"] is None:
            if not etcd.absent_from(key, floor):
                yield Anomaly("stale-read", f"{what} found nothing, {floor} was known before")
            continue
        event = etcd.by_value.get(op["seen"])
        if event is None or event["key"] != key or event["rev"] != op["rv"]:
            yield Anomaly("phantom", f"{what} saw {op['seen']} at {op['rv']}, which is not in etcd")
        elif etcd.after(key, op["rv"]) <= floor:
            yield Anomaly("stale-read", f"{what} saw {op['seen']} of {op['rv']}, replaced at "
                          f"{etcd.after(key, op['rv'])}; {floor} was known before")
    yield from check_fresh(history, etcd)
    yield from check_lists(history, etcd, floors)


def check_fresh(history, etcd):
    """What a cache replied was true at the version that the client named, or at a later one."""
    for read in history.fresh:
        key, what = PREFIX + read["key"], f"get of {read['key']} not older than {read['least']}"
        if read["seen"] is None:
            if not etcd.absent_from(key, read["least"]):
                yield Anomaly("stale-read", f"{what} found nothing {where(read)}")
            continue
        event = etcd.by_value.get(read["seen"])
        if event is None or event["key"] != key or event["rev"] != read["rv"]:
            yield Anomaly("phantom", f"{what} saw {read['seen']} at {read['rv']}, not in etcd")
        elif etcd.after(key, read["rv"]) <= read["least"]:
            yield Anomaly("stale-read", f"{what} saw {read['rv']} {where(read)}")


def check_lists(history, etcd, floors):
    keys = [key for key in etcd.of if key.startswith(PREFIX)]
    for record in history.listing:
        what = f"list at {record['rv']} {where(record)}"
        if record["rv"] < floors.at(record["t0"]):
            yield Anomaly("stale-read", f"{what}: {floors.at(record['t0'])} was known before")
        yield from check_items(record["items"], record["rv"], etcd, keys, what)


def check_items(items, revision, etcd, keys, what, kind="stale-read"):
    """A list at a revision has exactly what etcd had then."""
    for key in keys:
        event = etcd.at(key, revision)
        wanted = [event["rev"], event["value"]] if event and event["type"] == "PUT" else None
        found = items.get(key[len(PREFIX):])
        if found != wanted:
            yield Anomaly(kind, f"{what} has {found} for {key}, etcd had {wanted}")


# ---- linearizability ----

def steps_of(history, effects=None):
    """The steps of each key for linear.py. effects: what etcd says about writes, {value: revision};
    it settles the unknown ones."""
    steps = collections.defaultdict(list)
    for op in history.op:
        step = step_of(op, effects)
        if step:
            steps[op["key"]].append(step)
    for record in history.listing:
        for key in list(steps):
            of, value = record["items"].get(key, (0, None))
            steps[key].append(linear.Step(record["t0"], record["t1"], "list", value, None,
                                          record["rv"], of, where(record)))
    return steps


def step_of(op, effects):
    make = lambda kind, value=None, base=None, rv=0, end=op["t1"]: linear.Step(
        op["t0"], end, kind, value, base, rv, 0, where(op))
    kind = "update" if op["op"] == "patch" else op["op"]
    if op["outcome"] == "ok":
        if kind == "get":
            return make("read", op["seen"], None, op["rv"])
        return make(kind, op["value"], op["base"], op["rv"])
    if op["outcome"] == "fail":
        if kind == "get" or op["cause"] == "StaleLeaderTerm":
            return None
        if op["code"] == 404:
            return make("read")
        if op["code"] == 409 and kind == "create":
            return make("some")
        if op["code"] in (409, 422) and op["base"] is not None:
            return make("not", base=op["base"])
        return None
    if kind == "get":
        return None
    if effects is not None and kind != "delete":
        return make(kind, op["value"], op["base"], effects[op["value"]], math.inf) \
            if op["value"] in effects else None
    return make(kind, op["value"], op["base"], 0, math.inf)


def check_linear(history, etcd=None):
    effects = {value: e["rev"] for value, e in etcd.by_value.items()} if etcd else None
    for key, steps in steps_of(history, effects).items():
        verdict = linear.check(steps)
        if not verdict.good:
            yield Anomaly("not-linearizable", f"{key}: {verdict.text}")


# ---- watches ----

def check_watches(history, etcd):
    keys = [key for key in etcd.of if key.startswith(PREFIX)]
    floors = Floors(history)
    for chain in history.watch:
        wanted_keys = [PREFIX + chain["name"]] if chain["name"] else keys
        part = None
        for step in [*chain["steps"], ["list", None, None]]:
            if step[0] not in ("list", "initial"):
                if part:
                    part.take(step)
                continue
            if part:
                yield from part.judge(etcd, wanted_keys)
            if step[0] == "initial":
                yield from check_initial(chain, step, etcd, keys, floors)
                part = Part(chain, step[1], [name for _, name, _, _ in step[2]])
            elif step[1] is not None:
                what = f"watch {chain['client']}: list at {step[1]}"
                yield from check_items(step[2], step[1], etcd, wanted_keys, what)
                part = Part(chain, step[1], step[2])


def check_initial(chain, step, etcd, keys, floors):
    """The initial events are one ADDED for each object that etcd had at the bookmark's revision, which
    is not before the one that the client asked for, or, if it named none, before what was known when
    it asked."""
    _, revision, events, least, t0 = step
    what = f"watch {chain['client']}: initial events up to {revision}"
    items = {}
    for kind, name, rv, value in events:
        if kind != "ADDED" or name in items:
            yield Anomaly("initial-state", f"{what} have {kind} of {name} at {rv}")
        items[name] = [rv, value]
    floor = int(least) if least else floors.at(t0)
    if revision < floor:
        yield Anomaly("stale-read", f"{what}: not older than {floor} was asked for")
    yield from check_items(items, revision, etcd, keys, what, "initial-state")


class Part:
    """A watch from one list, or from its initial events, to the next."""

    def __init__(self, chain, begin, items):
        self.what, self.begin, self.last = f"watch {chain['client']} from {begin}", begin, begin
        self.known, self.seen, self.events, self.anomalies = set(items), set(), [], []

    def bad(self, kind, text):
        self.anomalies.append(Anomaly(kind, f"{self.what}: {text}"))

    def take(self, step):
        if step[0] == "bookmark":
            if step[1] < self.last:
                self.bad("watch-order", f"a bookmark of {step[1]} after {self.last}")
            self.last = max(self.last, step[1])
        elif step[0] == "event":
            self.event(*step[1:5])

    def event(self, kind, name, rv, value):
        said = f"{kind} of {name} at {rv}"
        if (rv, name) in self.seen:
            self.bad("watch-duplicate", f"{said} twice")
            return
        if rv <= self.begin:
            self.bad("watch-duplicate", f"{said}, which the list had")
        elif rv <= self.last:
            self.bad("watch-order", f"{said} after {self.last}")
        if (kind == "ADDED") != (name not in self.known):
            self.bad("watch-wrong", f"{said}, which was {'' if name in self.known else 'not '}there")
        (self.known.discard if kind == "DELETED" else self.known.add)(name)
        self.seen.add((rv, name))
        self.last = max(self.last, rv)
        self.events.append((rv, name, value, kind))

    def judge(self, etcd, keys):
        yield from self.anomalies
        wanted = {}
        for key in keys:
            revisions = etcd.revisions.get(key, [])
            for i in range(bisect.bisect_right(revisions, self.begin),
                           bisect.bisect_right(revisions, self.last)):
                wanted[revisions[i], key[len(PREFIX):]] = etcd.of[key][i]
        for rv, name in sorted(wanted.keys() - self.seen):
            yield Anomaly("watch-gap", f"{self.what}: {name} at {rv} is missing, it got to {self.last}")
        for rv, name, value, kind in self.events:
            event = wanted.get((rv, name))
            good = event and (event["type"] == "DELETE") == (kind == "DELETED")
            if not good or (kind != "DELETED" and value != event["value"]):
                yield Anomaly("watch-wrong", f"{self.what}: {kind} of {name} at {rv} with {value}, "
                              f"etcd has {event}")


# ---- fences ----

def check_fences(history, etcd):
    terms = collections.defaultdict(list)
    for event in etcd.events:
        if event["key"].startswith("/registry.holdfast/terms/"):
            terms[event["key"].split("/terms/")[1]].append(
                (event["rev"], event["rev"] if event["type"] == "PUT" else 0))
    for event in etcd.events:
        if event.get("term") and event["type"] == "PUT":
            of = terms[event["lease"]]
            n = bisect.bisect_right(of, (event["rev"], math.inf))
            now = of[n - 1][1] if n else 0
            if now != event["term"]:
                yield Anomaly("old-term", f"{event['key']} at {event['rev']} was written by term "
                              f"{event['term']} of {event['lease']}, the term was {now}")
    yield from check_acknowledged_terms(history)


def check_acknowledged_terms(history):
    """No request of a term is acknowledged that was sent after a later term had been
    acknowledged."""
    taken = collections.defaultdict(list)
    for take in history.take:
        if take["outcome"] == "ok":
            taken[take["lease"]].append((take["t1"], take["rv"]))
    for times in taken.values():
        times.sort()
    for op in history.op + history.sweep:
        if op["outcome"] != "ok" or not op.get("term"):
            continue
        later = [rv for t, rv in taken[op["lease"]] if t < op["t0"] and rv > op["term"]]
        if later:
            yield Anomaly("old-term", f"{op['op']} of {op['key']} by term {op['term']} was acknowledged "
                          f"after term {max(later)} began {where(op)}")


def check(history, with_etcd=True):
    """All anomalies. Without etcd's history: only those that the clients' replies show."""
    if not with_etcd:
        return list(check_linear(history))
    etcd = Etcd(history.etcd)
    found = list(check_witness(etcd))
    for judge in (check_writes, check_reads, check_linear, check_watches, check_fences):
        found.extend(judge(history, etcd))
    return found
