# SPDX-License-Identifier: Apache-2.0
"""A client with several servers: a leader keeps its term while each of them is restarted.

tests/bench/rollouts.py does the same a hundred times."""
import signal

import pytest
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
