# SPDX-License-Identifier: Apache-2.0
"""A client with several servers: a leader keeps its term while each of them is restarted.

tests/bench/rollouts.py does the same a hundred times."""
import signal

import pytest
from holdfastd import free_ports, wait_until
from rollout import Leader, Pair


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGKILL))
def test_a_leader_keeps_its_term_while_each_server_is_restarted(cluster, number):
    pair = Pair(cluster)
    leader = Leader(cluster, pair.kubeconfig("both.kubeconfig"), "pair", "one").wait_leading()
    term = leader.wait_write()["term"]
    pair.rollout(leader, number)
    assert leader.wait_write()["term"] == term
    leader.assert_first_term()
    leader.send(signal.SIGTERM)
    assert leader.wait() == 0


def test_a_standby_takes_over_through_the_server_that_is_left(cluster):
    """Both programs name the same server first. It is stopped, then the leader."""
    pair = Pair(cluster)
    kubeconfig = pair.kubeconfig("both.kubeconfig")
    leader = Leader(cluster, kubeconfig, "pair", "one").wait_leading()
    standby = Leader(cluster, kubeconfig, "pair", "two")
    leader.wait_write()
    pair.instances[0].send(signal.SIGKILL)
    pair.instances[0].wait()
    leader.outlive_its_validity()
    leader.assert_first_term()
    leader.send(signal.SIGTERM)
    assert leader.wait() == 0
    standby.wait_leading()
    standby.wait_write()
    standby.assert_first_term()


class Addresses(Pair):
    """Two instances on the two addresses of localhost, with one port: clients know them by one name."""

    def __init__(self, cluster):
        (self.port,) = free_ports(1)
        super().__init__(cluster)

    def _start(self, i):
        return self.cluster.instance("ab"[i], f"--bind-address={('127.0.0.1', '::1')[i]}", port=self.port)

    def name(self):
        return self.kubeconfig("name.kubeconfig", [f"https://localhost:{self.port}"])


def wait_for_renewals(cluster, n):
    """Waits until the Lease was written n times since this call, by the first leader in its first term."""
    mark = cluster.witness.mark()

    def written():
        leases = [e["object"]["spec"] for e in cluster.witness.seen()[mark:] if e["key"] == "/registry/leases/default/pair"]
        assert all((lease["holderIdentity"], lease["leaseTransitions"]) == ("one", 0) for lease in leases), leases
        return len(leases) >= n
    wait_until("renewals", written, every=0.1)


@pytest.mark.parametrize("by_name", (False, True), ids=("by a list", "by a name"))
def test_a_leader_keeps_its_term_while_a_server_is_stopped_by_a_signal(cluster, by_name):
    """The kernel still accepts connections for the server that is stopped. The leader renews each second and may act for 6 s, so it
    must have gone to the other server when it has renewed seven times."""
    pair = Addresses(cluster) if by_name else Pair(cluster)
    kubeconfig = pair.name() if by_name else pair.kubeconfig("both.kubeconfig")
    leader = Leader(cluster, kubeconfig, "pair", "one", timing=("--lease", "10s", "--renew", "6s", "--retry", "1s")).wait_leading()
    leader.wait_write()
    for instance in pair.instances:
        instance.pause()
        wait_for_renewals(cluster, 7)
        instance.send(signal.SIGCONT)
    leader.assert_first_term()
    leader.send(signal.SIGTERM)
    assert leader.wait() == 0
