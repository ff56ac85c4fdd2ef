# SPDX-License-Identifier: Apache-2.0
"""Nine anomalies, each planted into a recorded history. Pure: a history in, a changed copy out, and
what the checker must call it. They show that the checker would have seen them had they happened.

Each plant is given a dice and chooses a place in the history. None = the history has no such place.
"""
from checker import PREFIX, Etcd


def acknowledged(history, *kinds):
    return [op for op in history.op if op["outcome"] == "ok" and op["op"] in kinds]


def lost_write(history, dice):
    """A write was acknowledged, but nobody has it, not even etcd."""
    writes = [op for op in acknowledged(history, "update", "patch", "create") if not op["term"]]
    if not writes:
        return None
    value = dice.choice(writes)["value"]
    history.etcd = [e for e in history.etcd if e["value"] != value]
    history.op = [op for op in history.op if op["seen"] != value]
    history.listing = [r for r in history.listing
                       if value not in (item[1] for item in r["items"].values())]
    history.watch = []
    return "lost-write"


def stale_read(history, dice):
    """A read that begins after a write was acknowledged has the version before that."""
    etcd = Etcd(history.etcd)
    writes = {}
    for op in acknowledged(history, "update", "patch"):
        writes.setdefault(op["key"], []).append(op)
    reads = acknowledged(history, "get")
    dice.shuffle(reads)
    for read in reads:
        for write in writes.get(read["key"], []):
            before = etcd.at(PREFIX + read["key"], write["rv"] - 1)
            if read["rv"] == write["rv"] and write["t1"] < read["t0"] and before["type"] == "PUT":
                read["seen"], read["rv"] = before["value"], before["rev"]
                return "stale-read"
    return None


def places(history, span):
    """Where `span` events of a watch follow each other."""
    found = []
    for chain in history.watch:
        steps = chain["steps"]
        for i in range(len(steps) - span):
            if all(s[0] == "event" for s in steps[i:i + span]):
                found.append((steps, i))
    return found


def watch_gap(history, dice):
    """A watch leaves out an event, and goes on."""
    found = places(history, 2)
    if not found:
        return None
    steps, i = dice.choice(found)
    del steps[i]
    return "watch-gap"


def watch_duplicate(history, dice):
    """A watch delivers an event again."""
    found = places(history, 1)
    if not found:
        return None
    steps, i = dice.choice(found)
    steps.insert(i + 1 + dice.randrange(min(5, len(steps) - i)), list(steps[i]))
    return "watch-duplicate"


def watch_reorder(history, dice):
    """A watch delivers two events in the wrong order."""
    found = places(history, 2)
    if not found:
        return None
    steps, i = dice.choice(found)
    steps[i], steps[i + 1] = steps[i + 1], steps[i]
    return "watch-order"


def initial_places(history):
    """Where a watch has initial events."""
    return [(w["steps"], i) for w in history.watch for i, s in enumerate(w["steps"])
            if s[0] == "initial" and s[2]]


def initial_lost(history, dice):
    """The initial events of a watch leave out an object, or have it as it was before."""
    etcd = Etcd(history.etcd)
    found = initial_places(history)
    if not found:
        return None
    steps, i = dice.choice(found)
    j = dice.randrange(len(steps[i][2]))
    _, name, rv, _ = steps[i][2][j]
    before = etcd.at(PREFIX + name, rv - 1)
    if before and before["type"] == "PUT" and dice.random() < 0.5:
        steps[i][2][j][2:] = [before["rev"], before["value"]]
    else:
        del steps[i][2][j]
    return "initial-state"


def initial_gap(history, dice):
    """The first event after the bookmark of the initial events is missing."""
    found = [(steps, i) for steps, i in initial_places(history)
             if [s[0] for s in steps[i + 1:i + 3]] == ["event", "event"]]
    if not found:
        return None
    steps, i = dice.choice(found)
    del steps[i + 1]
    return "watch-gap"


def old_term(history, dice):
    """A write under a fence takes effect although another contender took the Lease before it."""
    terms = sorted(e["rev"] for e in history.etcd if e["key"].startswith("/registry.holdfast/terms/")
                   and e["type"] == "PUT")
    writes = [e for e in history.etcd if e["term"]]
    dice.shuffle(writes)
    for event in writes:
        older = [t for t in terms if t < event["term"]]
        if older:
            for op in history.op:
                if op["value"] == event["value"]:
                    op["term"] = older[-1]
            event["term"] = older[-1]
            return "old-term"
    return None


def two_winners(history, dice):
    """Two updates that name the same version both succeed."""
    writes = {}
    for op in acknowledged(history, "update", "patch", "create"):
        writes[op["key"], op["value"]] = op
    second = [op for op in acknowledged(history, "update")
              if op["base"] and (first := writes.get((op["key"], op["base"]))) and first["base"]]
    if not second:
        return None
    op = dice.choice(second)
    op["base"] = writes[op["key"], op["base"]]["base"]
    return "not-linearizable"


PLANTS = (lost_write, stale_read, watch_gap, watch_duplicate, watch_reorder, initial_lost, initial_gap,
          old_term, two_winners)
