# SPDX-License-Identifier: Apache-2.0
"""Hand-over, take-over and pause with two instances, as the witness sees them in etcd."""
import signal

from holdfastd import LEASE, WRITER, phase, wait_until, workspace


def two(cluster, *flags, **kwargs):
    a = cluster.instance("a", *flags, **kwargs).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b = cluster.instance("b", *flags, **kwargs).wait_ready()
    return a, b


def ready_workspace(cluster, instance, name):
    mark = cluster.witness.mark()
    code, body = instance.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace(name))
    assert code == 201, body
    cluster.witness.wait_for(f"workspace {name} to be Ready", lambda e: e["key"].endswith(f"/workspaces/{name}") and phase(e) == "Ready", mark)
    cluster.witness.wait_for(f"its namespace", lambda e: e["key"] == f"/registry/namespaces/ws-{name}", mark)


def test_one_leader_runs_the_controllers(cluster):
    """PN03: Only the leader may write."""
    a, b = two(cluster)
    assert a.leader()["state"] == "leading" and b.leader()["state"] == "following"
    assert a.leader()["term"] > 0 and a.leader()["mayAct"] and not b.leader()["mayAct"]
    ready_workspace(cluster, b, "one")
    phases = [phase(e) for e in cluster.witness.seen() if e["key"].endswith("/workspaces/one")]
    assert phases == [None, "Scheduling", "Initializing", "Ready"]


def test_sigterm_hands_over(cluster):
    """PN08, PN09, PN10, CR10: The release comes after the last write of the old leader, whose writer
    asks no gate and goes on for some writes after its end was requested."""
    a, b = two(cluster, binary=WRITER, env={"WRITER_GATE_OFF": "1"})
    written = lambda e, name: e["key"].endswith("/test-writer") and f"_{name}_" in e["object"]["data"]["identity"]
    cluster.witness.wait_for("a's writer", lambda e: written(e, "a"))
    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    release = cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert a.wait() == 0
    assert taken["rev"] > release["rev"]
    cluster.witness.wait_for("b's writer", lambda e: written(e, "b"), mark)
    ready_workspace(cluster, b, "after-hand-over")
    assert [e["rev"] for e in cluster.witness.seen() if e["rev"] > release["rev"] and written(e, "a")] == []
    assert "writer: refused" not in a.log_text()  # it did not even try


def test_sigkill_is_taken_over_at_expiry(cluster):
    """ET02: A leader that dies is followed by another."""
    a, b = two(cluster)
    ready_workspace(cluster, b, "before")
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    # A take-over within the recorded duration (4 s) after the last renewal would mean two leaders.
    assert taken["t"] - last["t"] > 3.9e9
    assert taken["object"]["spec"]["leaseTransitions"] == last["object"]["spec"]["leaseTransitions"] + 1
    ready_workspace(cluster, b, "after-take-over")


def test_sigstop_then_sigcont_writes_nothing_of_the_old_term(cluster):
    """A14: A write that was paused across the end of its term is not committed."""
    # The writer makes some more writes after its end was requested. The stop grace is ample, so
    # that a slow machine does not make it count as stuck.
    timing = ["--leader-elect-lease-duration=7s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
              "--leader-elect-stop-grace=4s"]
    a, b = two(cluster, *timing, binary=WRITER, env={"WRITER_GATE_OFF": "1"}, fast=False)
    cluster.witness.wait_for("a's writer", lambda e: e["key"].endswith("/configmaps/default/test-writer"))
    old = a.leader()
    mark = cluster.witness.mark()
    a.pause()
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    # Wait for two lease durations, measured by the writes of the new leader instead of a sleep.
    cluster.witness.wait_for("two lease durations", lambda e: e["t"] - taken["t"] > 14e9, mark)
    a.send(signal.SIGCONT)
    wait_until("the old leader's writer to be refused", lambda: "writer: refused: stale leader term" in a.log_text())
    wait_until("the old leader to follow", lambda: a.leader()["state"] == "following")
    late = [e for e in cluster.witness.seen() if e["rev"] > taken["rev"] and e["key"].endswith("/test-writer")
            and e["object"]["data"]["term"] == str(old["term"])]
    assert late == []
    assert a.alive() and a.get("/livez")[0] == 200
    # The process continues and can lead again.
    mark = cluster.witness.mark()
    b.send(signal.SIGTERM)
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead again", mark)
    assert b.wait() == 0
    wait_until("a to lead", lambda: a.leader()["state"] == "leading")
    assert a.leader()["term"] > old["term"]
    ready_workspace(cluster, a, "after-pause")
