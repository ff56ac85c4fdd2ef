# SPDX-License-Identifier: Apache-2.0
"""Other programs at the Lease of holdfastd: a contender in Python with the algorithm of
client-go, one that overwrites the Lease, one that deletes it, one that edits its labels.

kubernetes.leaderelection of python3-kubernetes locks an annotation of a ConfigMap and not a
Lease, so this contender uses CoordinationV1Api.
"""
import datetime
import json
import signal
import threading
import time

import pytest
from holdfastd import LEASE, WRITER, wait_until, workspace

client = pytest.importorskip("kubernetes.client", reason="python3-kubernetes is not installed")
config = pytest.importorskip("kubernetes.config")

NAME, NAMESPACE = "holdfast-controllers", "kube-system"


def api(instance):
    return client.CoordinationV1Api(config.new_client_from_config(str(instance.kubeconfig)))


def now():
    # MicroTime needs six digits; Python omits them when they are zeros.
    at = datetime.datetime.now(datetime.timezone.utc)
    return at if at.microsecond else at + datetime.timedelta(microseconds=1)


def micro(at):
    return at if at is None or at.microsecond else at + datetime.timedelta(microseconds=1)


class Contender(threading.Thread):
    """The algorithm: get, observe with the local clock, wait for the recorded duration, replace
    with the resourceVersion. `acting` is true while it leads."""

    def __init__(self, instance, identity="python_1", duration=4, renew=2.0, retry=0.3):
        super().__init__(daemon=True)
        self.api, self.identity, self.duration, self.renew, self.retry = api(instance), identity, duration, renew, retry
        self.observed, self.observed_at = None, 0.0
        self.valid_until = 0.0
        self.spans = []  # [from, to] of each time when it acted, in monotonic ns, the clock of the witness
        self.stopping = threading.Event()
        self.release = True

    def leading(self):
        return time.monotonic() < self.valid_until

    def step(self):
        sent = time.monotonic()
        lease = self.api.read_namespaced_lease(NAME, NAMESPACE, _request_timeout=1)
        record = (lease.spec.holder_identity, lease.spec.renew_time, lease.spec.acquire_time, lease.spec.lease_transitions)
        if record != self.observed:
            self.observed, self.observed_at = record, sent
        mine = lease.spec.holder_identity == self.identity
        if not mine and lease.spec.holder_identity and time.monotonic() < self.observed_at + lease.spec.lease_duration_seconds:
            self.valid_until = 0.0
            return
        if not mine:
            lease.spec.acquire_time = now()
            lease.spec.lease_transitions = (lease.spec.lease_transitions or 0) + 1
        lease.spec.acquire_time = micro(lease.spec.acquire_time)
        lease.spec.holder_identity, lease.spec.lease_duration_seconds, lease.spec.renew_time = self.identity, self.duration, now()
        sent = time.monotonic()
        try:
            self.api.replace_namespaced_lease(NAME, NAMESPACE, lease, _request_timeout=1)
        except client.ApiException as error:
            if error.status != 409:
                raise
            return
        if not self.leading():
            self.spans.append([time.monotonic_ns(), 0])
        self.valid_until = sent + self.renew

    def run(self):
        while not self.stopping.wait(self.retry):
            try:
                self.step()
            except Exception:  # pylint: disable=broad-except  # no server responds: its knowledge of the Lease only gets older
                pass
            if self.spans:
                self.spans[-1][1] = int(max(self.spans[-1][1], self.valid_until * 1e9))

    def stop(self):
        """Stops acting, then releases: an empty holder with a duration of one second."""
        self.stopping.set()
        self.join()
        was_leading = self.leading()
        if self.spans:
            self.spans[-1][1] = min(self.spans[-1][1], time.monotonic_ns())
        self.valid_until = 0.0
        if not was_leading or not self.release:
            return
        lease = self.api.read_namespaced_lease(NAME, NAMESPACE)
        if lease.spec.holder_identity == self.identity:
            lease.spec.holder_identity, lease.spec.lease_duration_seconds = "", 1
            lease.spec.acquire_time = lease.spec.renew_time = now()
            self.api.replace_namespaced_lease(NAME, NAMESPACE, lease)


def two(cluster):
    a = cluster.instance("a", binary=WRITER).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b = cluster.instance("b", binary=WRITER).wait_ready()
    return a, b


def writes(cluster, mark=0):
    return [e for e in cluster.witness.seen()[mark:] if e["key"].endswith("/configmaps/default/test-writer") and e["type"] == "PUT"]


def test_two_leaders_never_act_at_once(cluster):
    """Both instances and the contender take turns. No write of a term of holdfastd falls into a
    time when the contender acted."""
    a, b = two(cluster)
    third = cluster.instance("c", "--leader-elect=false").wait_ready()  # serves, but does not contend
    contender = Contender(third)
    contender.start()
    try:
        mark = cluster.witness.mark()
        wait_until("the writer to write", lambda: writes(cluster, mark))
        for it in (a, b):  # with both stopped, the contender takes over when the recorded duration has passed
            it.send(signal.SIGSTOP)
        last = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]
        taken = cluster.witness.wait_holder(lambda h: h == contender.identity, "the contender to lead", mark)
        assert taken["t"] - last["t"] > 3.9e9
        cluster.witness.wait_for("the contender to renew", lambda e: e["key"] == LEASE and e["rev"] > taken["rev"], mark)
        for it in (a, b):
            it.send(signal.SIGCONT)
        for it in (a, b):
            wait_until("our instances to follow", lambda it=it: it.leader()["state"] == "following" and it.leader()["holder"] == contender.identity)
        wait_until("the contender to act for a while", lambda: contender.leading() and time.monotonic_ns() - contender.spans[-1][0] > 4e9)
        mark = cluster.witness.mark()
        contender.stop()
        release = cluster.witness.wait_holder(lambda h: h == "", "its release", mark)
        back = cluster.witness.wait_holder(lambda h: "_a_" in h or "_b_" in h, "one of ours", mark)
        # The take-over comes at once, without waiting for the one second that the release records.
        assert back["t"] - release["t"] < 0.9e9
        assert back["object"]["spec"]["leaseTransitions"] == release["object"]["spec"]["leaseTransitions"] + 1
        wait_until("the new leader's writer", lambda: writes(cluster, mark))
    finally:
        contender.stopping.set()
        contender.join()
        for it in (a, b):
            it.send(signal.SIGCONT)
    assert contender.spans
    for start, end in contender.spans:
        assert [w for w in writes(cluster) if start < w["t"] < end] == []
    assert a.get("/livez")[0] == 200 and b.get("/livez")[0] == 200


def test_the_contender_takes_over_from_stopped_instances(cluster):
    """Both instances stop cleanly. Their release has an empty holder and one second, and the
    contender leads through another server."""
    a, b = two(cluster)
    third = cluster.instance("c", "--leader-elect=false").wait_ready()
    contender = Contender(third, retry=0.1)
    mark = cluster.witness.mark()
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    a.send(signal.SIGTERM)
    release = cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    assert release["object"]["spec"]["leaseDurationSeconds"] == 1
    assert a.wait() == 0
    contender.start()
    try:
        cluster.witness.wait_holder(lambda h: h == contender.identity, "the contender to lead", mark)
        assert contender.spans or wait_until("it to know", lambda: contender.spans)
    finally:
        contender.stop()


def replaced(instance, change):
    """Reads, changes and replaces the Lease, and repeats that after a conflict with a renewal."""
    it = api(instance)

    def attempt():
        lease = it.read_namespaced_lease(NAME, NAMESPACE)
        lease.spec.acquire_time, lease.spec.renew_time = micro(lease.spec.acquire_time), micro(lease.spec.renew_time)
        change(lease)
        try:
            return it.replace_namespaced_lease(NAME, NAMESPACE, lease)
        except client.ApiException as error:
            assert error.status == 409, error
            return None
    return wait_until("a replace without conflict", attempt)


def test_an_overwritten_holder_ends_the_term(cluster):
    """holderIdentity is overwritten: the term ends at once, holdfastd waits for the recorded
    duration of the new holder, and leads again."""
    a, b = two(cluster)
    old = a.leader()
    mark = cluster.witness.mark()

    def steal(lease):
        lease.spec.holder_identity, lease.spec.lease_duration_seconds = "thief", 3
        lease.spec.renew_time = now()
    stolen = replaced(b, steal)
    theft = cluster.witness.wait_holder(lambda h: h == "thief", "the theft", mark)
    # The fence rejects every write of the old term from then on, and the end of the term is
    # reported.
    wait_until("a to follow", lambda: a.leader()["state"] == "following")
    # A renewal by a may have come between the mark and the theft.
    stolen_at = cluster.witness.seen().index(theft)
    back = cluster.witness.wait_holder(lambda h: "_a_" in h or "_b_" in h, "one of ours", stolen_at)
    assert back["t"] - theft["t"] > 2.9e9
    assert back["object"]["spec"]["leaseTransitions"] == stolen.spec.lease_transitions + 1
    wait_until("the new term's writes", lambda: [w for w in writes(cluster, mark) if w["rev"] > back["rev"]])
    after = [w for w in writes(cluster, mark) if w["rev"] > theft["rev"]]
    assert [w for w in after if w["object"]["data"]["term"] == str(old["term"])] == []
    assert all(w["rev"] > back["rev"] for w in after)
    assert a.get("/livez")[0] == 200


def test_a_deleted_lease_ends_the_term(cluster):
    a, b = two(cluster)
    old = a.leader()
    mark = cluster.witness.mark()
    api(b).delete_namespaced_lease(NAME, NAMESPACE)
    gone = cluster.witness.wait_for("the deletion", lambda e: e["key"] == LEASE and e["type"] == "DELETE", mark)
    cluster.witness.wait_holder(lambda h: "_a_" in h or "_b_" in h, "one of ours", mark)
    wait_until("the new term's writes", lambda: [w for w in writes(cluster, mark) if w["object"]["data"]["term"] != str(old["term"])])
    assert [w for w in writes(cluster, mark) if w["rev"] > gone["rev"] and w["object"]["data"]["term"] == str(old["term"])] == []


def test_edited_labels_do_not_end_the_term(cluster):
    """The leader continues in the same term. The added labels survive its renewals and a
    hand-over."""
    a, b = two(cluster)
    old = a.leader()
    mark = cluster.witness.mark()
    before = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]["object"]

    def edit(lease):
        lease.metadata.labels = {"team": "storage"}
        lease.metadata.annotations = {"example.org/why": "because"}
    edited = replaced(b, edit)

    def renewal(e):
        return e["key"] == LEASE and e["rev"] > int(edited.metadata.resource_version) and e["type"] == "PUT"
    renewed = cluster.witness.wait_for("a renewal after the edit", renewal, mark)["object"]
    assert renewed["metadata"]["labels"] == {"team": "storage"} and renewed["metadata"]["annotations"] == {"example.org/why": "because"}
    assert renewed["spec"]["acquireTime"] == before["spec"]["acquireTime"] and renewed["spec"]["holderIdentity"] == before["spec"]["holderIdentity"]
    assert a.leader()["state"] == "leading" and a.leader()["term"] == old["term"]
    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)["object"]
    assert taken["metadata"]["labels"] == {"team": "storage"} and taken["metadata"]["annotations"]["example.org/why"] == "because"
    assert a.wait() == 0


def test_a_lease_survives_the_round_trip(cluster):
    """The Python client reads the Lease and writes it back unchanged while no instance renews
    it. The stored bytes do not change."""
    a = cluster.instance("a").wait_ready()
    third = cluster.instance("c", "--leader-elect=false").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]
    written = replaced(third, lambda lease: None)
    assert int(written.metadata.resource_version) == last["rev"]
    # Another client stores fields that the election does not use. Holdfast keeps them when it acquires the Lease.
    code, body = third.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}")
    assert code == 200
    body = json.loads(body)
    body["metadata"].setdefault("annotations", {})["example.com/note"] = "kept"
    body["spec"]["preferredHolder"], body["spec"]["strategy"] = "somebody", "example.com/mine"
    assert third.request("PUT", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}", body)[0] == 200
    mark = cluster.witness.mark()
    b = cluster.instance("b").wait_ready()
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert taken["object"]["metadata"]["annotations"]["example.com/note"] == "kept"
    assert taken["object"]["spec"]["preferredHolder"] == "somebody" and taken["object"]["spec"]["strategy"] == "example.com/mine"
    assert b.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace("w"))[0] == 201
