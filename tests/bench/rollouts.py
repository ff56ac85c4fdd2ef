#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a pair of instances under a leader that knows both addresses.

    HOLDFAST_BUILD=$PWD/build tests/bench/rollouts.py [N]        # as root; default 100

In each rollout both instances are restarted, one after the other. Each is away until the leader has
outlived the validity that it had before. Every third rollout uses SIGKILL. Fails if a term ends."""
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from holdfastd import Cluster  # noqa: E402
from rollout import Leader, Pair  # noqa: E402


def main(n):
    with Cluster() as cluster:
        pair = Pair(cluster)
        leader = Leader(cluster, pair.kubeconfig("both.kubeconfig"), "pair", "one").wait_leading()
        first, begun = leader.wait_write(), time.monotonic()
        for i in range(n):
            pair.rollout(leader, signal.SIGKILL if i % 3 == 2 else signal.SIGTERM)
            leader.assert_first_term()
            if (i + 1) % 10 == 0:
                print(f"{i + 1} rollouts, {time.monotonic() - begun:.0f} s, term {leader.wait_write()['term']}", flush=True)
        last = leader.wait_write()
        assert last["term"] == first["term"]
        print(f"{n} rollouts, {2 * n} restarts, {last['count']} writes in term {last['term']}, 0 terms lost")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
