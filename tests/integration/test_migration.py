# SPDX-License-Identifier: Apache-2.0
"""A running fleet moves from one Lease to another, process by process: old-only, then both, then
new-only.

Each process is a program that embeds the library (tests/lib/contender.c). The leader writes one
ConfigMap all the time. The witness observes etcd.
"""
import json
import signal
import subprocess

import pytest

from holdfastd import BUILD, LEASE, WRITER, Cluster, Process, store_flag, wait_until

CONTENDER = BUILD / "tests" / "contender"
OLD, NEW = "/registry/leases/default/old-lock", "/registry/leases/default/new-lock"
WRITTEN = "/registry/configmaps/default/shared"


class Member(Process):
    """One process of the fleet. `knows` are the Leases that it must hold to lead."""

    def __init__(self, cluster, server, identity, generation):
        self.identity = identity
        self.knows = {"old": [OLD], "both": [OLD, NEW], "new": [NEW]}[generation]
        name = "old-lock" if generation == "old" else "new-lock"
        more = ["--migrate-from", "old-lock"] if generation == "both" else []
        super().__init__([CONTENDER, server.kubeconfig, name, identity, "--writes", "shared", "--lease", "4s", "--renew", "2s", "--retry",
                          "500ms", *more], cluster.directory / f"{identity}.log", stdout=open(cluster.directory / f"{identity}.out", "wb"))
        self.out = cluster.directory / f"{identity}.out"
        cluster.add(self)
        wait_until(f"{identity} to contend", lambda: self.out.stat().st_size > 0)


@pytest.fixture
def fleet():
    with Cluster() as cluster:
        yield cluster, cluster.instance("server").wait_ready()


def by(identity):
    return lambda e: e["key"] == WRITTEN and e["type"] == "PUT" and e["object"]["data"]["identity"] == identity


def replaced(cluster, server, members, generation, how):
    """Replaces each member by one of the next version, the leader last. The next version leads
    before the old member is missed."""
    fresh = []
    for i, old in enumerate(members):
        fresh.append(Member(cluster, server, f"{generation}-{i}", generation))
        mark = cluster.witness.mark()
        old.send(how)
        if how == signal.SIGTERM:
            assert old.wait() == 0, old.log_text()
        else:
            old.end()
        cluster.witness.wait_for("somebody to write", lambda e: e["key"] == WRITTEN and e["object"]["data"]["identity"] != old.identity, mark)
    return fresh


def check(cluster, members):
    """Asserts that each writer held all its Leases at the revision of its write, and that terms
    only grow and never recur."""
    knows = {m.identity: m.knows for m in members}
    holders, terms, order = {OLD: "", NEW: ""}, {}, []
    for event in cluster.witness.seen():
        if event["key"] in holders:
            holders[event["key"]] = event["object"]["spec"].get("holderIdentity", "") if event["type"] == "PUT" else ""
        if event["key"] != WRITTEN:
            continue
        writer, term = event["object"]["data"]["identity"], int(event["object"]["data"]["term"])
        assert [holders[lease] for lease in knows[writer]] == [writer] * len(knows[writer]), (event, holders)
        if not order or order[-1] != (writer, term):
            order.append((writer, term))
            assert (writer, term) not in terms, f"the term {term} of {writer} recurred"
            terms[(writer, term)] = event["rev"]
    numbers = [term for _, term in order]
    assert numbers == sorted(numbers), order
    return order


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_rolling_migration_never_has_two_leaders(fleet, how):
    """CG39-CG49 with real processes: every version of the fleet leads at some time, never two
    processes at the same time."""
    cluster, server = fleet
    old = [Member(cluster, server, f"old-{i}", "old") for i in range(2)]
    cluster.witness.wait_for("the old fleet to write", by("old-0"))
    both = replaced(cluster, server, old, "both", how)
    cluster.witness.wait_for("a member that knows both to write", lambda e: by("both-0")(e) or by("both-1")(e))
    new = replaced(cluster, server, both, "new", how)
    mark = cluster.witness.mark()
    cluster.witness.wait_for("the new fleet to write", lambda e: by("new-0")(e) or by("new-1")(e), mark)
    order = check(cluster, [*old, *both, *new])
    assert [name.split("-")[0] for name, _ in order][0] == "old" and order[-1][0].startswith("new")
    assert any(name.startswith("both") for name, _ in order)
    # No process uses the old Lease any more, so it can be deleted.
    mark = cluster.witness.mark()
    assert server.request("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/old-lock")[0] == 200
    cluster.witness.wait_for("the leader to go on", lambda e: e["key"] == WRITTEN, mark)
    assert check(cluster, [*old, *both, *new]) == order


def test_losing_either_lease_ends_the_term(fleet):
    cluster, server = fleet
    member = Member(cluster, server, "both-0", "both")
    cluster.witness.wait_for("it to write", by("both-0"))
    for name in ("old-lock", "new-lock"):
        mark = cluster.witness.mark()
        path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"

        def stolen():
            code, text = server.get(path)
            assert code == 200
            lease = json.loads(text)
            lease["spec"].update(holderIdentity="thief", leaseDurationSeconds=1)
            return server.request("PUT", path, lease)[0] == 200
        wait_until("a replace without conflict", stolen)
        theft = cluster.witness.wait_for("the theft", lambda e: e["key"] in (OLD, NEW) and e["object"]["spec"]["holderIdentity"] == "thief", mark)
        cluster.witness.wait_for("it to lead again", lambda e: by("both-0")(e) and e["rev"] > theft["rev"], mark)
    order = check(cluster, [member])
    assert len(order) == 3
    member.send(signal.SIGTERM)
    assert member.wait() == 0
    for key in (OLD, NEW):
        wait_until(f"{key} to be released", lambda key=key: cluster.witness.holder(key) == "")


def test_holdfastd_moves_to_another_lease(cluster):
    """Two instances of holdfastd use the default Lease. Each is replaced by one that migrates to
    another name, and then by one that knows only the new name."""
    names, old_key, new_key = ["--leader-elect-resource-name=moved"], LEASE, "/registry/leases/kube-system/moved"
    both = [*names, "--leader-elect-migrate-from=holdfast-controllers"]
    written = "/registry/configmaps/default/test-writer"

    def start(name, flags):
        return cluster.instance(name, *flags, binary=WRITER).wait_ready()

    def leads(name):
        return lambda e: e["key"] == written and f"_{name}_" in e["object"]["data"]["identity"]
    running = {"a1": start("a1", [])}
    cluster.witness.wait_for("a1 to write", leads("a1"))
    for old, new, flags in (("a1", "b2", both), ("b2", "c3", names)):
        running[new] = start(new, flags)
        mark = cluster.witness.mark()
        running[old].send(signal.SIGTERM)
        assert running[old].wait() == 0
        cluster.witness.wait_for(f"{new} to write", leads(new), mark)
    holders = {old_key: "", new_key: ""}
    must = {"a1": [old_key], "b2": [old_key, new_key], "c3": [new_key]}
    for event in cluster.witness.seen():
        if event["key"] in holders:
            holders[event["key"]] = event["object"]["spec"].get("holderIdentity", "")
        if event["key"] == written:
            writer = event["object"]["data"]["identity"]
            name = next(n for n in must if f"_{n}_" in writer)
            assert all(holders[key] == writer for key in must[name]), (event, holders)
    assert running["c3"].kubectl("get", "lease", "holdfast-controllers", "-n", "kube-system", "-o", "jsonpath={.spec.holderIdentity}").stdout == ""


def test_release_after_a_crash_frees_both_leases(cluster):
    """After a crash during a migration, both Leases of the dead instance are released, no other
    Lease is, and the standby leads at once."""
    old_key, new_key = LEASE, "/registry/leases/kube-system/moved"
    flags = ["--leader-elect-resource-name=moved", "--leader-elect-migrate-from=holdfast-controllers"]
    instance = cluster.instance("d", *flags, binary=WRITER).wait_ready()
    for key in (old_key, new_key):
        wait_until("both to be held", lambda key=key: "_d_" in (cluster.witness.holder(key) or ""))
    release = [instance.args[0], "release", store_flag(cluster.etcd.url), f"--data-dir={instance.data}", "--instance=d"]
    assert subprocess.run(release, capture_output=True, check=False).returncode == 1, "it lives"
    identity = cluster.witness.holder(old_key)
    instance.send(signal.SIGKILL)
    instance.wait()
    done = subprocess.run(release, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert done.stdout.count(f" of {identity}, term ") == 2, done
    for key in (old_key, new_key):
        wait_until("both to be free", lambda key=key: cluster.witness.holder(key) == "")
    again = subprocess.run(release, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, ""), again
