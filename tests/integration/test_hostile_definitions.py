# SPDX-License-Identifier: Apache-2.0
"""Definitions that are made to be expensive. Each may cost at most RATIO times as much as an honest one of the same size in the same run, by
the kernel's accounting of the server's CPU. tests/bench/hostile_definitions.py prints the figures."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from definitions import Connection  # noqa: E402
from hostile_definitions import HOSTILE, cost, honest  # noqa: E402

REFUSED = ("2,000 levels", "repeats", "pattern of", "not of not", "macros", "doubles its type", "parentheses", "without an end", "chain", "200 patterns",
           "nested list", "1,000 rules")
RATIO = 30  # the largest measured ratio is 6


def test_hostile_definitions_cost_what_honest_ones_do(cluster):
    sys.setrecursionlimit(100000)
    server = cluster.instance("one").wait_ready()
    connection = Connection(server)
    cost(server, connection, honest(1000))
    for name, body in HOSTILE.items():
        status, size, cpu, n_answer = cost(server, connection, body, rounds=2)
        fair = cost(server, connection, honest(size), rounds=2)[2]
        assert status == (201 if not any(word in name for word in REFUSED) else 400 if "2,000 levels" in name or name == "not of not" else 422), name
        assert status == 201 or n_answer < 20000, name
        assert cpu < RATIO * fair, (name, cpu, fair)
    assert server.alive()
