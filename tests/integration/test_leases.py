# SPDX-License-Identifier: Apache-2.0
"""Several Leases in one process, each with its own group of controllers; hand-over to a named
instance; labels and Events of the Lease."""
import json
import signal

import pytest
from holdfastd import BUILD, LEASE, Process, wait_until

GROUPS = BUILD / "tests" / "contender-groups"


class Groups(Process):
    """A program that embeds the library, with a Lease and a group of controllers for each name."""

    def __init__(self, cluster, server, identity, *names):
        self.lines_path = cluster.directory / f"{identity}.out"
        with open(self.lines_path, "wb") as out:
            super().__init__([GROUPS, server.kubeconfig, identity, *names], cluster.directory / f"{identity}.log", stdout=out)
        cluster.add(self)

    def lines(self, name):
        return [line for line in self.lines_path.read_text().splitlines() if line.startswith(name + " ")]

    def wait_line(self, text, after=0):
        """Waits for a line about the Lease. Returns how many lines there are about it."""
        name = text.split()[0]
        wait_until(f"{text!r}", lambda: any(text in line for line in self.lines(name)[after:]))
        return len(self.lines(name))


def writes(witness, name, after=0):
    return [e for e in witness.seen()[after:] if e["key"] == f"/registry/configmaps/default/{name}"]


def holder_of(name):
    return lambda e: e["key"] == f"/registry/leases/default/{name}" and e["type"] == "PUT" and e["object"]["spec"].get("holderIdentity")


@pytest.fixture
def server(cluster):
    return cluster.instance("server").wait_ready()


def lease_of(server, name):
    code, body = server.get(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}")
    assert code == 200, body
    return json.loads(body)


def edit(server, name, change, ns="default"):
    """Edits the Lease as another client would, and repeats that after a conflict."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{name}"

    def done():
        lease = json.loads(server.get(path)[1])
        change(lease)
        code, body = server.request("PUT", path, lease)
        assert code in (200, 409), body
        return code == 200
    wait_until(f"the edit of {name}", done)


def ask_hand_over(server, name, identity, ns="default"):
    edit(server, name, lambda lease: lease["metadata"].setdefault("annotations", {}).update({"holdfast.dev/hand-over-to": identity}), ns)


def test_the_loss_of_one_lease_does_not_affect_another(cluster, server):
    """ET04, CR11: The configured labels are on the Lease and survive edits by other clients."""
    witness = cluster.witness
    one = Groups(cluster, server, "one", "red", "redder")
    at = one.wait_line("red leading")
    one.wait_line("redder leading")
    for name in ("red", "redder"):
        witness.wait_for(f"writes of {name}", lambda e, name=name: e["key"] == f"/registry/configmaps/default/{name}")
    lease = lease_of(server, "red")
    assert lease["metadata"]["labels"] == {"group": "shown"}
    redder = int(writes(witness, "redder")[-1]["object"]["data"]["term"])
    lines = one.lines("redder")
    # Another client overwrites the holder of red.
    mark = witness.mark()
    edit(server, "red", lambda lease: (lease["spec"].update(holderIdentity="thief", leaseDurationSeconds=2),
                                       lease["metadata"]["labels"].update(group="other", theirs="1")))
    stolen = witness.wait_for("the theft", lambda e: holder_of("red")(e) == "thief", mark)
    at = one.wait_line("red following", at)
    again = witness.wait_for("red's writes again", lambda e: e["key"].endswith("/configmaps/default/red") and e["rev"] > stolen["rev"], mark)
    one.wait_line("red leading", at)
    assert int(again["object"]["data"]["term"]) > stolen["rev"]
    assert lease_of(server, "red")["metadata"]["labels"] == {"group": "shown", "theirs": "1"}
    # Meanwhile redder kept its leader and its term, its writes continued, and no change was
    # reported for it.
    witness.wait_for("redder's writes to go on", lambda e: e["key"].endswith("/configmaps/default/redder") and e["rev"] > again["rev"])
    of_redder = writes(witness, "redder")
    counts = [int(e["object"]["data"]["count"]) for e in of_redder]
    assert {int(e["object"]["data"]["term"]) for e in of_redder} == {redder}
    assert counts == list(range(counts[0], counts[0] + len(counts)))
    assert one.lines("redder") == lines
    one.send(signal.SIGTERM)
    assert one.wait() == 0
    assert [lease_of(server, name)["spec"]["holderIdentity"] for name in ("red", "redder")] == ["", ""]


def test_two_leases_can_have_different_leaders(cluster, server):
    """ET11: Each Lease of a process has its own campaign, renewals and release."""
    witness = cluster.witness
    one = Groups(cluster, server, "one", "red", "redder")
    one.wait_line("red leading")
    one.wait_line("redder leading")
    two = Groups(cluster, server, "two", "red", "redder")
    two.wait_line("red following")
    two.wait_line("redder following")
    ask_hand_over(server, "redder", "two")
    two.wait_line("redder leading")
    mark = witness.mark()
    for name, identity in (("red", "one"), ("redder", "two")):
        witness.wait_for(f"{identity} to write {name}", lambda e, name=name, identity=identity:
                         e["key"] == f"/registry/configmaps/default/{name}" and e["object"]["data"]["identity"] == identity, mark)
    assert "holdfast.dev/hand-over-to" not in lease_of(server, "redder")["metadata"].get("annotations", {})
    red = int(writes(witness, "red")[-1]["object"]["data"]["term"])
    # The leader of redder crashes: the other process takes redder over, and keeps its term of red.
    two.send(signal.SIGKILL)
    witness.wait_for("redder's writes by the other", lambda e: e["key"] == "/registry/configmaps/default/redder"
                     and e["object"]["data"]["identity"] == "one", witness.mark())
    assert {int(e["object"]["data"]["term"]) for e in writes(witness, "red")} == {red}
    one.send(signal.SIGTERM)
    assert one.wait() == 0


def test_an_annotation_names_the_next_leader(cluster):
    """CG30: the Events on the Lease."""
    witness = cluster.witness
    a = cluster.instance("a").wait_ready()
    witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b, c = cluster.instance("b").wait_ready(), cluster.instance("c").wait_ready()
    mark, term = witness.mark(), a.leader()["term"]
    a.kubectl("annotate", "lease", "-n", "kube-system", "holdfast-controllers", f"holdfast.dev/hand-over-to={c.identity()}")
    released = witness.wait_holder(lambda h: h == "", "the release", mark)
    assert released["object"]["metadata"]["annotations"]["holdfast.dev/successor"] == c.identity()
    taken = witness.wait_holder(lambda h: h != "", "the successor", mark + witness.seen()[mark:].index(released))
    assert taken["object"]["spec"]["holderIdentity"] == c.identity()
    assert not {"holdfast.dev/successor", "holdfast.dev/hand-over-to"} & set(taken["object"]["metadata"]["annotations"])
    wait_until("c to lead", lambda: c.leader()["state"] == "leading" and c.leader()["term"] > term)
    assert a.leader()["state"] == b.leader()["state"] == "following" and a.alive()

    def messages():
        items = json.loads(a.kubectl("get", "events", "-n", "kube-system", "-o", "json").stdout)["items"]
        return {e["message"] for e in items if e["reason"] == "LeaderElection" and e["involvedObject"]["name"] == "holdfast-controllers"}
    want = {f"{a.identity()} became leader", f"{a.identity()} stopped leading", f"{c.identity()} became leader"}
    wait_until("the Events", lambda: messages() == want)
    assert f"{c.identity()} became leader" in a.kubectl("describe", "lease", "-n", "kube-system", "holdfast-controllers").stdout
    # If the named instance does not exist, another one leads.
    mark = witness.mark()
    ask_hand_over(a, "holdfast-controllers", "nobody-by-that-name", "kube-system")
    released = witness.wait_holder(lambda h: h == "", "the release", mark)
    witness.wait_holder(lambda h: h != "" and h != c.identity(), "somebody else", mark + witness.seen()[mark:].index(released))
    assert LEASE == released["key"] and all(i.alive() for i in (a, b, c))
