# SPDX-License-Identifier: Apache-2.0
"""Other programs at the Lease of holdfastd: kubernetes.leaderelection, the election of the
Python client, as a contender, and kubectl, which overwrites and deletes the Lease."""
import json
import signal
import sys

import pytest
from holdfastd import LEASE, ROOT, WRITER, Process, wait_until

pytest.importorskip("kubernetes.leaderelection.leaderelection", reason="this python3-kubernetes has no leader election")

WRITTEN = "/registry/configmaps/default/test-writer"


class PythonElector(Process):
    def __init__(self, cluster, instance, identity):
        self.identity, self.out = identity, cluster.directory / f"{identity}.out"
        with open(self.out, "wb") as out:
            super().__init__([sys.executable, ROOT / "tests" / "lib" / "python_elector.py", instance.kubeconfig, "kube-system",
                              "holdfast-controllers", identity, "4", "3", "1"], cluster.directory / f"{identity}.log", stdout=out)
        cluster.add(self)

    def says(self, word):
        wait_until(f"{self.identity} to say {word}", lambda: word in self.out.read_text().split())


def check(cluster):
    """Asserts that each writer of holdfastd held the Lease at the revision of its write."""
    holder, n = "", 0
    for event in cluster.witness.seen():
        if event["key"] == LEASE:
            holder = event["object"]["spec"].get("holderIdentity", "") if event["type"] == "PUT" else ""
        elif event["key"] == WRITTEN and event["type"] == "PUT":
            n += 1
            assert event["object"]["data"]["identity"] == holder, (event["rev"], holder)
    assert n > 0


def held_by(identity):
    return lambda holder: holder == identity


def test_holdfastd_and_the_python_client_take_turns(cluster):
    """The contender waits while holdfastd leads, leads after a release, makes holdfastd wait, and is
    succeeded when it stops renewing."""
    a = cluster.instance("a", binary=WRITER).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    server = cluster.instance("server", "--leader-elect=false").wait_ready()
    python = PythonElector(cluster, server, "python-1")
    mark = cluster.witness.mark()
    for _ in range(4):  # it reads the Lease once a second, so it misses some renewals
        mark = cluster.witness.wait_for("a renewal", lambda e: e["key"] == LEASE, mark) and cluster.witness.mark()
    assert python.out.read_text() == ""
    a.send(signal.SIGTERM)
    cluster.witness.wait_holder(held_by("python-1"), "the Python election to lead", mark)
    python.says("started")
    assert a.wait() == 0
    b = cluster.instance("b", binary=WRITER).wait_ready()
    mark = cluster.witness.mark()
    cluster.witness.wait_for("a renewal of its", lambda e: e["key"] == LEASE and e["object"]["spec"]["holderIdentity"] == "python-1", mark)
    wait_until("b to follow it", lambda: b.leader()["state"] == "following" and b.leader()["holder"] == "python-1")
    python.end()
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE][-1]
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert taken["t"] - last["t"] > 3.9e9, "the recorded duration was waited out"
    cluster.witness.wait_for("b to write", lambda e: e["key"] == WRITTEN and "_b_" in e["object"]["data"]["identity"], mark)
    check(cluster)


def test_kubectl_may_overwrite_or_delete_the_lease(cluster):
    """kubectl patch overwrites the holder: nothing is written until holdfastd leads again.
    kubectl deletes the Lease: a new term begins, and the process continues."""
    a = cluster.instance("a", binary=WRITER).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    wait_until("a to write", lambda: any(e["key"] == WRITTEN for e in cluster.witness.seen()))
    mark = cluster.witness.mark()
    patch = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 2}}

    def stolen():
        return a.kubectl("patch", "lease", "holdfast-controllers", "-n", "kube-system", "--type=merge", "-p", json.dumps(patch),
                         check=False).returncode == 0
    try:
        wait_until("kubectl to steal the Lease", stolen)
    except FileNotFoundError:
        pytest.skip("no kubectl on PATH")
    theft = cluster.witness.wait_holder(held_by("thief"), "the theft", mark)
    back = cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead again", mark)
    cluster.witness.wait_for("a new term's write", lambda e: e["key"] == WRITTEN and e["rev"] > back["rev"], mark)
    between = [e for e in cluster.witness.seen()[mark:] if e["key"] == WRITTEN and theft["rev"] < e["rev"] < back["rev"]]
    assert between == []
    # kubectl deletes the Lease: a new term begins, and the process and its other work continue.
    mark = cluster.witness.mark()
    a.kubectl("delete", "lease", "holdfast-controllers", "-n", "kube-system")
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead after the deletion", mark)
    assert a.alive() and a.get("/livez")[0] == 200
    check(cluster)
