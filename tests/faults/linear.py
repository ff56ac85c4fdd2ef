# SPDX-License-Identifier: Apache-2.0
"""Is the history of one key linearizable? A search after Wing and Gong, with Lowe's memory of what
was tried. Pure.

The object is a register that may be absent. Each write has a value of its own, so a read names the
write that it saw. A step is (begin, end, kind, value, base, rv):
    create  there was nothing                                    -> value
    update  there was something, and it was base if that is set  -> value
    delete  there was something, and it was base if that is set  -> nothing
    read    it was value (None = nothing); rv is the value's
    list    it was value, at the revision rv of the whole store
    some    there was something (a creation was refused)
    not     it was not base (a write that names a version was refused)

A step with an unknown outcome has no end: it may take effect at any later time or never. Order by
resourceVersions is evidence: they grow with each write of the key, and a list at rv has exactly the
writes up to rv.

A read that suits the state can be taken at once, because it changes nothing and its turn does not
come again. The search branches over writes and lists only. A configuration that was tried is not
tried again: (the first step that is not taken, those beyond it that are, the unknown ones that took
effect, the state).
"""
import bisect
import dataclasses
import math
import sys

LIMIT = 300_000  # configurations; more are no verdict


@dataclasses.dataclass(frozen=True)
class Step:
    begin: int
    end: float
    kind: str
    value: str = None
    base: str = None
    rv: int = 0
    of: int = 0      # of a list: the rv of the value itself
    where: str = ""  # for people


@dataclasses.dataclass
class Verdict:
    good: bool
    text: str = ""
    tried: int = 0


START = (None, 0, 0)  # the value, its rv (0 = not known), the newest rv that is known


def apply(state, step):
    """The state after the step, or None if the step does not suit the state."""
    value, rv, floor = state
    kind = step.kind
    if kind in ("read", "list"):
        if value != step.value:
            return None
        of, newest = (step.of, step.rv) if kind == "list" else (step.rv, max(step.rv, floor))
        if newest < floor:
            return None
        if value is None:
            return (value, rv, newest)
        if rv:
            return (value, rv, newest) if rv == of else None
        return (value, of, newest) if of > floor else None
    if kind == "some":
        return state if value is not None else None
    if kind == "not":
        return state if value != step.base else None
    if (value is None) != (kind == "create") or (step.base is not None and step.base != value):
        return None
    if step.rv and step.rv <= floor:
        return None
    return (step.value if kind != "delete" else None, step.rv, max(step.rv, floor))


class Search:
    def __init__(self, steps):
        self.sure = sorted((s for s in steps if s.end != math.inf), key=lambda s: s.begin)
        self.unsure = sorted((s for s in steps if s.end == math.inf), key=lambda s: s.begin)
        self.unsure_begins = [s.begin for s in self.unsure]
        self.by_value = {}
        for i, step in enumerate(self.unsure):
            if step.value is not None:
                self.by_value.setdefault(step.value, []).append(i)

    def open(self, first, taken):
        """The sure steps that may be next: no other one had ended before they began."""
        found, end, i = [], math.inf, first
        while i < len(self.sure) and self.sure[i].begin <= end:
            if i not in taken:
                end = min(end, self.sure[i].end)
                found.append(i)
            i += 1
        return [j for j in found if self.sure[j].begin <= end], end

    def advance(self, first, taken, i):
        taken = taken | {i}
        while first in taken:
            taken = taken - {first}
            first += 1
        return first, taken

    def greedy(self, configuration):
        """Takes all reads that suit the state."""
        first, taken, used, state = configuration
        again = True
        while again:
            again = False
            for i in self.open(first, taken)[0]:
                step = self.sure[i]
                if step.kind in ("read", "some", "not") and (after := apply(state, step)):
                    first, taken = self.advance(first, taken, i)
                    state, again = after, True
        return first, taken, used, state

    def wanted(self, may, used, end):
        """Unknown steps that may take effect now, those that an open step needs last, because the
        last is tried first."""
        until = bisect.bisect_right(self.unsure_begins, end)
        names = {name for i in may for name in (self.sure[i].value, self.sure[i].base) if name}
        first = {i for name in names for i in self.by_value.get(name, ()) if i < until}
        rest = [i for i in range(until) if i not in first and i not in used]
        return rest + [i for i in sorted(first, reverse=True) if i not in used]

    def next(self, configuration):
        """What may come next, the most promising last."""
        first, taken, used, state = configuration
        may, end = self.open(first, taken)
        found = []
        for rank, i in enumerate(self.wanted(may, used, end)):
            if after := apply(state, self.unsure[i]):
                order = (self.unsure[i].rv or math.inf, math.inf, -rank)
                found.append((order, (first, taken, used | {i}, after)))
        for i in may:
            if after := apply(state, self.sure[i]):
                order = (self.sure[i].rv or sys.maxsize, self.sure[i].end, i)
                found.append((order, (*self.advance(first, taken, i), used, after)))
        return [c for _, c in sorted(found, key=lambda f: f[0], reverse=True)]

    def run(self, limit=LIMIT):
        tried, furthest = set(), None
        todo = [(0, frozenset(), frozenset(), START)]
        while todo:
            configuration = self.greedy(todo.pop())
            if configuration in tried:
                continue
            tried.add(configuration)
            first, taken = configuration[0], configuration[1]
            if first == len(self.sure):
                return Verdict(True, tried=len(tried))
            if furthest is None or first + len(taken) > furthest[0] + len(furthest[1]):
                furthest = configuration
            if len(tried) > limit:
                return Verdict(False, f"no verdict after {limit} configurations; "
                               + self.explain(furthest), len(tried))
            todo.extend(self.next(configuration))
        return Verdict(False, self.explain(furthest), len(tried))

    def explain(self, configuration):
        first, taken, _, state = configuration
        may, _ = self.open(first, taken)
        return (f"after {first + len(taken)} of {len(self.sure)} steps the value is {state[0]} "
                f"(rv {state[1]}, newest {state[2]}), and none of these suits: "
                + "; ".join(f"{s.kind} {s.value} base {s.base} rv {s.rv} {s.where}"
                            for s in (self.sure[i] for i in may)))


def check(steps, limit=LIMIT):
    return Search(steps).run(limit)
