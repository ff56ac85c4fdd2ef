# SPDX-License-Identifier: Apache-2.0
"""Changes that were made while no instance led. The next leader acts on each of them once, and
no other process does, as the witness sees in etcd.

Two instances contend, with a controller that keeps a copy of each ConfigMap labelled as a source
(tests/lib/holdfastd_mirror.c). A third one, which contends for another Lease, serves the API all
the time: through it the test creates, edits and deletes objects.
"""
import signal
import threading

import pytest

from holdfastd import BUILD, LEASE, wait_until

MIRROR = BUILD / "tests" / "holdfastd-mirror"
PATH = "/api/v1/namespaces/default/configmaps"
KEYS = "/registry/configmaps/default/"


class World:
    def __init__(self, cluster):
        self.cluster = cluster
        self.witness = cluster.witness
        self.api = cluster.instance("api", "--leader-elect-resource-name=bystander").wait_ready()
        self.contenders = {name: self.start(name) for name in ("a", "b")}
        self.witness.wait_holder(lambda h: h, "one to lead")
        self.mark = 0

    def start(self, name):
        return self.cluster.instance(name, binary=MIRROR).wait_ready()

    def replace(self, name):
        """Ends the contender if it still runs, and starts another one under its name."""
        self.contenders[name].end()
        self.cluster.started.remove(self.contenders[name])
        self.contenders[name] = self.start(name)

    def leader(self):
        return wait_until("a leader", lambda: self.witness.holder() or None).split("_")[1]

    def standby(self):
        return "b" if self.leader() == "a" else "a"

    # Changes by users. Each returns when the server has acknowledged it.
    def write(self, name, value, verb="POST"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"mirror": "source"}}, "data": {"v": value}}
        code, text = self.api.request(verb, PATH if verb == "POST" else f"{PATH}/{name}", body)
        assert code in (200, 201), text

    def edit(self, name, value):
        self.write(name, value, "PUT")

    def delete(self, name):
        code, text = self.api.request("DELETE", f"{PATH}/{name}")
        assert code == 200, text

    def set_up(self, *names):
        """Creates sources, and waits until the leader has created their copies."""
        mark = self.witness.mark()
        for name in names:
            self.write(name, "1")
        for name in names:
            self.witness.wait_for(f"the copy of {name}", lambda e, n=name: e["key"] == f"{KEYS}copy-of-{n}", mark)

    def change_everything(self, tag):
        """While no instance leads: adds one source, edits one, deletes one, creates and deletes
        one, and deletes a copy."""
        self.write(f"{tag}-made", "1")
        self.edit(f"{tag}-edited", "2")
        self.edit(f"{tag}-edited", "3")
        self.delete(f"{tag}-deleted")
        self.write(f"{tag}-brief", "1")
        self.delete(f"{tag}-brief")
        self.delete(f"copy-of-{tag}-robbed")

    def copies(self, tag, after):
        """The events on copies with this tag since a revision: {name: [events]}."""
        found = {}
        for event in self.witness.seen():
            if event["rev"] > after and event["key"].startswith(f"{KEYS}copy-of-{tag}-"):
                found.setdefault(event["key"][len(f"{KEYS}copy-of-{tag}-"):], []).append(event)
        return found

    def expect_acted_upon(self, tag, began, taken):
        """Asserts that the leader of the acquiring write `taken` has acted on each change once,
        and that nothing happened before it."""
        def done():
            seen = self.copies(tag, taken["rev"])
            return all(name in seen for name in ("made", "edited", "deleted", "robbed"))
        wait_until(f"all changes of {tag} to be acted upon", done)
        # When a later change has been handled, the queue cannot contain an earlier one a second
        # time.
        self.write(f"{tag}-last", "1")
        wait_until("a later change to be acted upon", lambda: "last" in self.copies(tag, taken["rev"]))
        before = {name: [e for e in events if e["rev"] < taken["rev"]] for name, events in self.copies(tag, began).items()}
        assert {name: [e["type"] for e in events] for name, events in before.items() if events} == {"robbed": ["DELETE"]}  # by the user
        acted = self.copies(tag, taken["rev"])
        assert {name: [e["type"] for e in events] for name, events in acted.items()} == {
            "made": ["PUT"], "edited": ["PUT"], "deleted": ["DELETE"], "robbed": ["PUT"], "last": ["PUT"]}
        assert acted["edited"][0]["object"]["data"]["v"] == "3"
        # Each copy names the term that wrote it. It must be the current term of the Lease.
        for events in acted.values():
            for event in events:
                if event["type"] == "PUT":
                    assert event["object"]["data"]["term"] == str(taken["rev"])


NAMES = ("edited", "deleted", "robbed")


@pytest.fixture
def world(cluster):
    return World(cluster)


def test_changes_during_hand_overs_are_handled_once(world):
    """LK01, A16: The standby is frozen, so a planned stop leaves no leader. The next leader
    handles the changes made meanwhile."""
    for n in range(3):
        tag = f"hand-over-{n}"
        world.set_up(*(f"{tag}-{name}" for name in NAMES))
        old, new = world.leader(), world.standby()
        mark = world.witness.mark()
        world.contenders[new].pause()
        world.contenders[old].send(signal.SIGTERM)
        released = world.witness.wait_holder(lambda h: h == "", "the release", mark)
        assert world.contenders[old].wait() == 0
        world.change_everything(tag)
        assert world.witness.holder() == ""
        mark = world.witness.mark()
        world.contenders[new].send(signal.SIGCONT)
        taken = world.witness.wait_holder(lambda h, n=new: f"_{n}_" in h, "the standby to lead", mark)
        world.expect_acted_upon(tag, released["rev"], taken)
        world.replace(old)


def test_changes_during_take_overs_are_handled_once(world):
    """LK01, A15: The leader dies or freezes. The next leader handles the changes made until the
    Lease expires. The old leader's queue writes nothing."""
    for n, end in enumerate((signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL)):
        tag = f"take-over-{n}"
        world.set_up(*(f"{tag}-{name}" for name in NAMES))
        old, new = world.leader(), world.standby()
        if end == signal.SIGSTOP:
            world.contenders[old].pause()
        else:
            world.contenders[old].send(end)
        last = world.witness.seen()[-1]
        mark = world.witness.mark()
        world.change_everything(tag)
        taken = world.witness.wait_holder(lambda h, n=new: f"_{n}_" in h, "the standby to lead", mark)
        if end == signal.SIGSTOP:  # it wakes with all these changes in its queue, and its client rejects every write
            world.contenders[old].send(signal.SIGCONT)
            wait_until("the old leader to follow", lambda: world.contenders[old].leader()["state"] == "following")
        world.expect_acted_upon(tag, last["rev"], taken)
        world.replace(old)


def test_changes_that_race_hand_overs_are_handled_once(world):
    """LK01: Objects are created while the leadership moves back and forth. Each is handled once,
    in the term that was in force."""
    made, stop = [], threading.Event()

    def create():
        while not stop.is_set():
            name = f"race-{len(made)}"
            world.write(name, "1")
            made.append(name)

    thread = threading.Thread(target=create)
    thread.start()
    try:
        n_gaps = 0
        for _ in range(6):
            old, new = world.leader(), world.standby()
            mark, n = world.witness.mark(), len(made)
            wait_until("some creations", lambda n=n: len(made) >= n + 5)
            world.contenders[old].send(signal.SIGTERM)
            world.witness.wait_holder(lambda h, n=new: f"_{n}_" in h, "the standby to lead", mark)
            assert world.contenders[old].wait() == 0
            n_gaps += 1
            world.replace(old)
    finally:
        stop.set()
        thread.join()
    wait_until("all to be acted upon", lambda: len(world.copies("race", 0)) == len(made))
    terms = [0] + [e["rev"] for e in terms_of(world.witness)]
    for name, events in world.copies("race", 0).items():
        assert [e["type"] for e in events] == ["PUT"], name
        event = events[0]
        assert int(event["object"]["data"]["term"]) == max(t for t in terms if t < event["rev"]), name
    assert n_gaps == 6 and len(terms) >= 7


def terms_of(witness):
    """The acquiring writes: the writes that gave the Lease a new holder."""
    holder, found = "", []
    for event in witness.seen():
        if event["key"] == LEASE and event["type"] == "PUT":
            now = event["object"]["spec"].get("holderIdentity") or ""
            if now and now != holder:
                found.append(event)
            holder = now
    return found
