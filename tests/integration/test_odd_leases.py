# SPDX-License-Identifier: Apache-2.0
"""A Lease with unusual content, written by another program, can be acquired and kept."""
import json

import pytest
from holdfastd import BUILD, Cluster, Process, wait_until

CONTENDER = BUILD / "tests" / "contender"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LAST = 2 ** 31 - 1
FAR = "9999-12-31T23:59:59.999999Z"


@pytest.fixture(scope="module")
def module_cluster():
    with Cluster(with_witness=False) as it:
        yield it


@pytest.fixture(scope="module")
def server(module_cluster):
    return module_cluster.instance("server").wait_ready()


def lease_of(name, spec, annotations):
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": spec}


def dead(**more):
    return {"holderIdentity": "dead", "leaseDurationSeconds": 1, "acquireTime": "2020-01-01T00:00:00.000000Z",
            "renewTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 3, **more}


ODD = {
    "last-transition": (dead(leaseTransitions=LAST), {}),
    "cut-in-a-character": (dead(holderIdentity="\u00e9" * 200), {}),
    "cut-in-a-wide-character": (dead(holderIdentity="x" + "\U0001f600" * 200), {}),
    "control-characters": (dead(holderIdentity="a\nb\x01\x7f\t\"\\"), {}),
    "huge-holder": (dead(holderIdentity="h" * 200000), {}),
    "far-times": (dead(renewTime=FAR, acquireTime=FAR), {}),
    "old-times": (dead(renewTime="0001-01-01T00:00:00.000000Z", acquireTime="0001-01-01T00:00:00.000000Z"), {}),
    "odd-annotations": (dead(), {"holdfast.dev/successor": "s" * 9000, "holdfast.dev/transitions": "[{\"at\":1}", "holdfast.dev/hand-over-to": "\u00e9" * 300}),
    "empty": ({}, {}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_unusual_lease_is_acquired(module_cluster, server, name):
    spec, annotations = ODD[name]
    code, body = server.request("POST", LEASES, lease_of(name, spec, annotations))
    assert code == 201, body
    contender = module_cluster.add(Process([CONTENDER, server.kubeconfig, name, f"taker-{name}", "--lease", "4s", "--renew", "2s", "--retry", "500ms"],
                                           module_cluster.directory / f"{name}.log"))

    def taken():
        assert contender.alive(), contender.log_text()
        lease = json.loads(server.get(f"{LEASES}/{name}")[1])
        return lease["spec"].get("holderIdentity") == f"taker-{name}" and lease
    try:
        first = wait_until("the Lease to be taken", taken, 15)
        wait_until("a renewal", lambda: taken()["spec"]["renewTime"] != first["spec"]["renewTime"], 10)
        assert 0 <= first["spec"]["leaseTransitions"] <= LAST
    finally:
        contender.end()
        print(contender.log_text()[-1500:])
