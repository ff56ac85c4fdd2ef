# SPDX-License-Identifier: Apache-2.0
"""The checker: a clean history passes, each planted anomaly is found under its name, and small
histories made by hand are judged as they must be. recorded.jsonl.gz is the history of a run of 20 s with
faults, from `run.py --seed 7 --duration 20s --save FILE`."""
import itertools
import math
import pathlib
import random

import checker
import history
import linear
import planted
import pytest
import schedule
from linear import Step

RECORDED = pathlib.Path(__file__).with_name("recorded.jsonl.gz")
PLACES = 12  # where each anomaly is planted, one after the other


@pytest.fixture(scope="module", name="recorded")
def _recorded():
    return history.load(RECORDED)


def test_a_clean_history_passes(recorded):
    assert checker.check(recorded) == []
    assert checker.check(recorded, with_etcd=False) == []
    assert len(recorded.op) > 500 and len(recorded.fault) > 5
    assert any(op["outcome"] == "unknown" for op in recorded.op)


@pytest.mark.parametrize("plant", planted.PLANTS, ids=lambda p: p.__name__)
def test_a_planted_anomaly_is_found(recorded, plant):
    for place in range(PLACES):
        changed = recorded.copy()
        kind = plant(changed, random.Random(place))
        found = checker.check(changed)
        assert kind in {a.kind for a in found}, (place, kind, [str(a) for a in found[:3]])


@pytest.mark.parametrize("plant", (planted.stale_read, planted.two_winners), ids=lambda p: p.__name__)
def test_the_search_finds_it_without_etcd(recorded, plant):
    for place in range(PLACES):
        changed = recorded.copy()
        plant(changed, random.Random(place))
        found = checker.check(changed, with_etcd=False)
        assert {a.kind for a in found} == {"not-linearizable"}, place


def test_a_refused_write_that_took_effect_is_found(recorded):
    changed = recorded.copy()
    op = next(op for op in changed.op if op["outcome"] == "ok" and op["op"] == "update")
    op.update(outcome="fail", code=409, cause="Conflict", rv=0)
    assert "phantom" in {a.kind for a in checker.check(changed)}


def test_a_read_that_is_older_than_asked_is_found(recorded):
    changed = recorded.copy()
    read = next(r for r in changed.fresh if r["seen"])
    etcd = checker.Etcd(changed.etcd)
    read["least"] = etcd.revisions[checker.PREFIX + read["key"]][-1]
    assert "stale-read" in {a.kind for a in checker.check(changed)}


def test_a_list_without_an_object_is_found(recorded):
    changed = recorded.copy()
    next(r for r in changed.listing if r["items"])["items"].popitem()
    assert "stale-read" in {a.kind for a in checker.check(changed)}


@pytest.mark.parametrize("least", ("", "later"))
def test_initial_events_that_are_older_than_asked_are_found(recorded, least):
    changed = recorded.copy()
    step = next(s for w in changed.watch for s in w["steps"] if s[0] == "initial")
    step[3] = str(step[1] + 1) if least else ""
    step[4] = max(op["t1"] for op in changed.op) + 1
    assert "stale-read" in {a.kind for a in checker.check(changed)}


def test_an_object_twice_among_initial_events_is_found(recorded):
    changed = recorded.copy()
    step = next(s for w in changed.watch for s in w["steps"] if s[0] == "initial" and s[2])
    step[2].append(list(step[2][0]))
    assert "initial-state" in {a.kind for a in checker.check(changed)}


def test_a_sweep_of_an_old_term_is_found(recorded):
    changed = recorded.copy()
    sweep = next(s for s in changed.sweep if s["outcome"] == "ok")
    changed.take.append({"client": "x", "instance": 0, "lease": sweep["lease"], "holder": "x", "t0": 0,
                         "t1": sweep["t0"] - 1, "outcome": "ok", "rv": sweep["term"] + 1, "code": 200})
    assert "old-term" in {a.kind for a in checker.check(changed)}


# ---- the search ----

CREATE = Step(0, 1, "create", "a", None, 1)


@pytest.mark.parametrize("steps, good", [
    ([CREATE, Step(2, 3, "read", "a", None, 1)], True),
    ([CREATE, Step(2, 3, "read")], False),                                   # lost
    ([CREATE, Step(0, 3, "read")], True),                                    # at the same time
    ([CREATE, Step(2, 5, "update", "b", None, 2), Step(3, 4, "read", "a", None, 1),
      Step(6, 7, "read", "b", None, 2)], True),
    ([CREATE, Step(2, 3, "update", "b", None, 2), Step(4, 5, "read", "a", None, 1)], False),
    ([CREATE, Step(2, math.inf, "update", "b"), Step(4, 5, "read", "a", None, 1),
      Step(8, 9, "read", "b", None, 2)], True),                              # much later
    ([CREATE, Step(2, math.inf, "update", "b"), Step(4, 5, "read", "b", None, 2),
      Step(8, 9, "read", "a", None, 1)], False),                             # and back
    ([CREATE, Step(2, math.inf, "delete"), Step(4, 5, "create", "b", None, 5)], True),
    ([CREATE, Step(4, 5, "create", "b", None, 5)], False),
    ([CREATE, Step(2, 3, "update", "b", "a", 2), Step(2, 3, "update", "c", "a", 3)], False),
    ([CREATE, Step(2, 3, "update", "b", "a", 2), Step(2, 4, "not", base="a")], True),
    ([CREATE, Step(2, 3, "not", base="a")], False),                          # refused for nothing
    ([CREATE, Step(2, math.inf, "update", "b", "a"), Step(3, 4, "not", base="a")], True),
    ([CREATE, Step(2, 3, "some")], True),
    ([Step(2, 3, "some")], False),
    ([CREATE, Step(2, 6, "update", "b", None, 9), Step(3, 4, "list", "a", None, 8, 1)], True),
    ([CREATE, Step(2, 6, "update", "b", None, 7), Step(3, 7, "list", "a", None, 8, 1)], False),
    ([CREATE, Step(2, 9, "update", "b", None, 5), Step(2, 9, "update", "c", None, 4),
      Step(10, 11, "read", "c", None, 4)], False),                           # the order of versions
])
def test_small_histories(steps, good):
    assert linear.check(steps).good is good


def by_force(steps):
    """Tries every order of every choice of the unknown steps."""
    sure = [s for s in steps if s.end != math.inf]
    unsure = [s for s in steps if s.end == math.inf]
    for n in range(len(unsure) + 1):
        for chosen in itertools.combinations(unsure, n):
            for order in itertools.permutations([*sure, *chosen]):
                if in_time(order) and suits(order):
                    return True
    return False


def in_time(order):
    return not any(later.end < earlier.begin for i, earlier in enumerate(order)
                   for later in order[i + 1:])


def suits(order):
    state = linear.START
    for step in order:
        state = linear.apply(state, step)
        if state is None:
            return False
    return True


def random_steps(dice):
    steps, values = [], [None, "a", "b", "c"]
    for i in range(dice.randrange(2, 7)):
        begin = dice.randrange(12)
        end = math.inf if dice.random() < 0.25 else begin + dice.randrange(1, 6)
        kind = dice.choice(("create", "update", "delete", "read", "some", "not"))
        value = "abcdef"[i] if kind in ("create", "update") else None
        if kind == "read":
            end, value = begin + 3, dice.choice(values)
        if kind in ("some", "not"):
            end = begin + 3
        base = dice.choice(values) if kind in ("update", "delete") else None
        rv = ord(value) if kind == "read" and value else 0
        if kind in ("create", "update") and end != math.inf:
            rv = ord(value)
        if kind == "not":
            base = dice.choice("abc")
        steps.append(Step(begin, end, kind, value, base, rv))
    return steps


def test_the_search_agrees_with_brute_force():
    dice, good = random.Random(1), 0
    for _ in range(1500):
        steps = random_steps(dice)
        wanted = by_force(steps)
        assert linear.check(steps).good == wanted, steps
        good += wanted
    assert 100 < good < 1400


# ---- the schedule ----

def test_a_seed_is_a_schedule():
    assert schedule.make(5, 300) == schedule.make(5, 300) != schedule.make(6, 300)
    kinds = {f.kind for f in schedule.make(5, 1800)}
    assert kinds == set(schedule.KINDS)
