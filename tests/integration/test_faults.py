# SPDX-License-Identifier: Apache-2.0
"""Faults of the Lease API (refusals, hangs, lost replies) and of etcd (stopped, restarted,
hung). The leader stops in time, the process continues, and leads again."""
import json
import signal
import subprocess

import pytest
from fault_proxy import FaultProxy
from holdfastd import BUILD, LEASE, ON_SQLITE, WRITER, Process, phase, store_flag, wait_until, workspace

CONTENDER = BUILD / "tests" / "contender"
FAST = ["--lease", "4s", "--renew", "2s", "--retry", "300ms"]


class Contender(Process):
    """A program that embeds the library and contends over REST through the proxy."""

    def __init__(self, cluster, proxy, identity, *flags):
        config = proxy.kubeconfig(cluster.directory / f"{identity}.kubeconfig")
        self.lines_path = cluster.directory / f"{identity}.out"
        with open(self.lines_path, "wb") as out:
            super().__init__([CONTENDER, config, "faults", identity, *FAST, *flags], cluster.directory / f"{identity}.log", stdout=out)
        cluster.add(self)

    def lines(self):
        return self.lines_path.read_text().splitlines()

    def wait_line(self, text, after=0):
        wait_until(f"a line with {text!r}", lambda: any(text in line for line in self.lines()[after:]))
        return len(self.lines())


@pytest.fixture
def contended(cluster):
    server = cluster.instance("server").wait_ready()
    proxy = FaultProxy(server)
    yield cluster, server, proxy, Contender(cluster, proxy, "contender-one")
    proxy.end()


@pytest.mark.parametrize("mode", [(403, "Forbidden"), (429, "TooManyRequests"), "hang", "drop-reply"], ids=str)
def test_faults_of_the_lease_api_end_only_the_term(contended, mode):
    cluster, server, proxy, contender = contended
    at = contender.wait_line("state leading")
    proxy.set(mode)
    at = contender.wait_line("state following", at)
    # When the witness sees this object, it has seen everything that was written before.
    assert server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "so-far"}})[0] == 201
    cluster.witness.wait_for("so-far", lambda e: e["key"].endswith("/configmaps/default/so-far"))
    last = [e for e in cluster.witness.seen() if e["key"].endswith("/configmaps/default/faults")][-1]
    proxy.set("pass")
    contender.wait_line("state leading", at)
    assert contender.alive()
    term = lambda e: int(e["object"]["data"]["term"])  # noqa: E731
    cluster.witness.wait_for("its writes again", lambda e: e["key"].endswith("/configmaps/default/faults") and term(e) > term(last))
    # Writes never resume under the number of an old term. One write may have been on its way when the term ended.
    later = [term(e) for e in cluster.witness.seen() if e["key"].endswith("/configmaps/default/faults") and e["rev"] > last["rev"]]
    assert later == sorted(later) and later.count(term(last)) <= 1, later
    contender.send(signal.SIGTERM)
    assert contender.wait() == 0


def test_a_missing_echo_of_the_fence_ends_the_term(contended):
    _cluster, _server, proxy, contender = contended
    at = contender.wait_line("state leading")
    proxy.only = "/configmaps"
    proxy.set("no-echo")
    contender.wait_line("state following", at)
    assert contender.alive()


def test_sigstop_over_rest_writes_nothing_of_the_old_term(contended):
    cluster, _server, proxy, one = contended
    at = one.wait_line("state leading")
    two = Contender(cluster, proxy, "contender-two")
    mark = cluster.witness.mark()
    one.send(signal.SIGSTOP)
    taken = cluster.witness.wait_for("the other to lead", lambda e: e["key"] == "/registry/leases/default/faults" and e["type"] == "PUT"
                                     and e["object"]["spec"]["holderIdentity"] == "contender-two", mark)
    cluster.witness.wait_for("two lease durations", lambda e: e["t"] - taken["t"] > 8e9, mark)
    one.send(signal.SIGCONT)
    at = one.wait_line("state following", at)
    two.send(signal.SIGTERM)
    assert two.wait() == 0
    one.wait_line("state leading", at)
    late = [e for e in cluster.witness.seen()[mark:] if e["rev"] > taken["rev"] and e["key"].endswith("/configmaps/default/faults")
            and int(e["object"]["data"]["term"]) < taken["rev"]]
    assert late == []


@pytest.mark.skipif(ON_SQLITE, reason="ends etcd")
def test_leading_resumes_after_a_restart_of_etcd(cluster):
    a = cluster.instance("a", binary=WRITER).wait_ready()
    cluster.witness.wait_for("the writer", lambda e: e["key"].endswith("/test-writer"))
    term, pid = a.leader()["term"], a.pid
    cluster.etcd.end()
    wait_until("the leader to stop leading", lambda: a.leader()["state"] == "following")
    assert not a.leader()["mayAct"]
    assert a.get("/livez")[0] == 200 and a.get("/readyz")[0] in (200, 500) and a.get("/version")[0] == 200
    cluster.etcd.start()
    wait_until("it to lead again", lambda: a.leader()["state"] == "leading")
    assert a.leader()["term"] > term and a.pid == pid and a.alive()
    code, body = a.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace("after"))
    assert code == 201, body
    wait_until("a workspace to be Ready", lambda: '"phase":"Ready"' in a.get("/apis/tenancy.holdfast.dev/v1alpha1/workspaces/after")[1])


def test_a_hung_etcd_ends_the_term_and_not_the_process(cluster):
    a = cluster.instance("a").wait_ready()
    wait_until("it to lead", lambda: a.leader()["state"] == "leading")
    b = cluster.instance("b").wait_ready()
    term = a.leader()["term"]
    assert b.get("/healthz")[0] == 200
    cluster.etcd.send(signal.SIGSTOP)
    wait_until("the leader to stop leading", lambda: a.leader()["state"] == "following")
    # A standby that could not take over reports it, and is not restarted because of it.
    wait_until("the standby to say so", lambda: "[-]leaderElection-lock failed" in b.get("/healthz?verbose")[1])
    assert a.get("/livez")[0] == b.get("/livez")[0] == 200
    cluster.etcd.send(signal.SIGCONT)
    wait_until("it to reach the Lease again", lambda: "[+]leaderElection-lock ok" in b.get("/healthz?verbose")[1])
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    wait_until("it to lead again", lambda: a.leader()["state"] == "leading")
    assert a.leader()["term"] > term and a.alive()


def test_a_stop_ends_while_etcd_hangs(cluster):
    a = cluster.instance("a").wait_ready()
    wait_until("it to lead", lambda: a.leader()["state"] == "leading")
    cluster.etcd.send(signal.SIGSTOP)
    a.send(signal.SIGTERM)
    a.wait()
    cluster.etcd.send(signal.SIGCONT)


LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/holdfast-controllers"


def overwrite_holder(instance):
    """Writes another holder into the Lease. Returns the record that it wrote."""
    def overwrite():
        lease = json.loads(instance.get(LEASE_PATH)[1])
        lease["spec"]["holderIdentity"] = "a-thief"
        code, body = instance.request("PUT", LEASE_PATH, lease)
        assert code in (200, 409), body  # 409: a renewal came first
        return lease["spec"] if code == 200 else None
    return wait_until("the Lease to be overwritten", overwrite)


def test_a_deleted_or_overwritten_lease_ends_the_term(cluster):
    """PN04, PN06, PN07: The Lease is led again, in a later term, and what the old term's controller
    still sends is refused. Its writer asks no gate and goes on after the end of its term."""
    timing = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"]
    a = cluster.instance("a", *timing, binary=WRITER, env={"WRITER_GATE_OFF": "1"}, fast=False).wait_ready()
    for change in ("delete", "overwrite"):
        wait_until("it to lead", lambda: a.leader()["state"] == "leading")
        old = a.leader()["term"]
        written = lambda e, term: e["key"].endswith("/test-writer") and e["object"]["data"]["term"] == str(term)
        cluster.witness.wait_for("the writer", lambda e: written(e, old))
        n_refusals = a.log_text().count("writer: refused")
        mark = cluster.witness.mark()
        if change == "delete":
            before = {"leaseTransitions": 0, "acquireTime": json.loads(a.get(LEASE_PATH)[1])["spec"]["acquireTime"]}
            assert a.request("DELETE", LEASE_PATH)[0] == 200
            changed = cluster.witness.wait_for("the deletion", lambda e: e["key"] == LEASE and e["type"] == "DELETE", mark)
        else:
            before = overwrite_holder(a)
            changed = cluster.witness.wait_holder(lambda h: h == "a-thief", "the thief", mark)
        again = cluster.witness.wait_holder(lambda h: "_a_" in h, "a to hold again", cluster.witness.seen().index(changed))
        assert again["object"]["spec"]["leaseTransitions"] > before["leaseTransitions"]
        assert again["object"]["spec"]["acquireTime"] > before["acquireTime"]
        wait_until("a new term", lambda: a.leader()["state"] == "leading" and a.leader()["term"] > old)
        new = a.leader()["term"]
        cluster.witness.wait_for("the new term's writer", lambda e: written(e, new), mark)
        assert a.log_text().count("writer: refused") > n_refusals
        assert [e["rev"] for e in cluster.witness.seen() if e["rev"] > changed["rev"] and written(e, old)] == []


def test_a_stuck_controller_fails_livez_and_ends_the_process_without_release(cluster):
    a = cluster.instance("a", binary=WRITER, env={"WRITER_IGNORES_TOKENS": "1"}).wait_ready()
    cluster.witness.wait_for("the writer", lambda e: e["key"].endswith("/test-writer"))
    identity = a.identity()
    mark = cluster.witness.mark()
    cluster.etcd.send(signal.SIGSTOP)
    code_and_body = wait_until("livez to name it", lambda: (lambda r: r if r[0] == 500 else None)(a.get("/livez?verbose")))
    assert "leaderElection" in code_and_body[1]
    assert "test-writer" in a.log_text()
    cluster.etcd.send(signal.SIGCONT)
    assert a.wait() == 70
    # The Lease was not released: it still names the dead process.
    lease = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]
    assert lease["object"]["spec"]["holderIdentity"] == identity
    acquired = {e["object"]["spec"]["acquireTime"] for e in cluster.witness.seen()[mark:] if e["key"] == LEASE and e["type"] == "PUT"}
    assert len(acquired) <= 1


def test_sigterm_with_a_stuck_controller_ends_without_release(cluster):
    a = cluster.instance("a", binary=WRITER, env={"WRITER_IGNORES_TOKENS": "1"}).wait_ready()
    cluster.witness.wait_for("the writer", lambda e: e["key"].endswith("/test-writer"))
    identity = a.identity()
    a.send(signal.SIGTERM)
    assert a.wait() == 70
    assert "test-writer" in a.log_text()
    assert cluster.witness.holder() == identity


def test_only_the_lease_of_a_dead_instance_is_released(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h)
    b = cluster.instance("b").wait_ready()
    release = lambda instance: subprocess.run(
        [instance.args[0], "release", store_flag(cluster.etcd.url), f"--data-dir={instance.data}", f"--instance={instance.name}"],
        capture_output=True, text=True, check=False)
    # A process that is alive, even if stopped, keeps its Lease: release refuses and changes
    # nothing.
    refused = release(a)
    assert refused.returncode == 1 and str(a.pid) in refused.stderr, refused
    a.send(signal.SIGSTOP)
    assert release(a).returncode == 1
    a.send(signal.SIGCONT)
    # A dead follower held no Lease.
    b.send(signal.SIGKILL)
    b.wait()
    assert release(b).returncode == 0
    assert "_a_" in cluster.witness.holder()
    # A dead leader: its Lease is freed at once, long before it expires.
    c = cluster.instance("c").wait_ready()
    wait_until("a to lead on", lambda: a.leader()["state"] == "leading")
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    a.wait()
    done = release(a)
    assert done.returncode == 0 and "released" in done.stdout, done
    cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    cluster.witness.wait_holder(lambda h: "_c_" in h, "c to lead", mark)
    # The Lease of another incarnation is left alone.
    assert release(a).returncode == 0
    assert "_c_" in cluster.witness.holder()
    wait_until("c to lead", lambda: c.leader()["state"] == "leading")


def test_a_workspace_created_without_a_leader_becomes_ready(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h)
    b = cluster.instance("b").wait_ready()
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    a.wait()
    code, body = b.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace("orphan"))
    assert code == 201, body
    ready = cluster.witness.wait_for("it to be Ready", lambda e: e["key"].endswith("/workspaces/orphan") and phase(e) == "Ready", mark)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert ready["rev"] > taken["rev"]
