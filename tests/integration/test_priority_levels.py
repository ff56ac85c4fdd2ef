# SPDX-License-Identifier: Apache-2.0
"""Priority levels limit what runs: a level with one seat, a greedy user and a meek one, a client that leaves, and
another configuration while requests wait.

A request that runs for a while is a list that asks for a revision of the future: the server waits 3 s for it.
"""
import http.client
import re
import signal
import threading

import pytest

from holdfastd import wait_until
from memory_server import MemoryServer

SLOW = "/api/v1/namespaces/default/configmaps?resourceVersion=999999999"
QUICK = "/api/v1/namespaces/default/configmaps/none"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
DUMPS = "/debug/api_priority_and_fairness"
# With handSize 1 each user has one queue; with more queues a greedy user would get more turns. No two of the users here share a queue.
QUEUE = {"type": "Queue", "queuing": {"queues": 512, "handSize": 1, "queueLengthLimit": 50}}


def level(shares, response):
    return {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "team"},
            "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0,
                                                    "limitResponse": response}}}


def put_level(server, shares, response):
    server.must("PUT", f"{LEVELS}/team", level(shares, response))


class Server(MemoryServer):
    def must(self, method, path, body=None):
        reply = self.ask(method, path, body)
        assert reply.code in (200, 201), reply.text
        return reply

    def ask_as(self, user, path):
        return self.ask("GET", path, impersonate_user=user, impersonate_group="team")

    def metric(self, name, level_name="team"):
        found = re.search(rf'^apiserver_flowcontrol_{name}{{[^}}]*priority_level="{level_name}"[^}}]*}} (\S+)$', self.ask("GET", "/metrics").text, re.M)
        return float(found.group(1)) if found else 0

    def row(self):
        """Returns the row of the level in dump_priority_levels, by the names of the columns: waiting, executing and so on."""
        lines = self.ask("GET", f"{DUMPS}/dump_priority_levels").text.splitlines()
        names = [name.strip() for name in lines[0].split(",")]
        return next(dict(zip(names, (cell.strip() for cell in line.split(",")))) for line in lines if line.startswith("team,"))


@pytest.fixture(name="server")
def _server():
    # 20 seats: a share of 1 among the others' 255 is one seat.
    with Server("--max-requests-inflight=10", "--max-mutating-requests-inflight=10") as server:
        everybody = {"kind": "Group", "group": {"name": "team"}}
        server.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "team"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}]})
        server.must("POST", LEVELS, level(1, QUEUE))
        server.must("POST", SCHEMAS, {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "team"},
            "spec": {"priorityLevelConfiguration": {"name": "team"}, "matchingPrecedence": 50, "distinguisherMethod": {"type": "ByUser"},
                     "rules": [{"subjects": [everybody],
                                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}]}]}})
        wait_until("the level", lambda: server.metric("nominal_limit_seats") == 1)
        wait_until("the right and the schema", lambda: server.ask_as("meek", QUICK).code == 404 and server.metric("dispatched_requests_total") > 0)
        yield server


class Waiting:
    """A request on a connection of its own, whose client may leave."""

    def __init__(self, server, user, path):
        self.connection = http.client.HTTPSConnection(server.address, timeout=60, context=server.context)
        self.connection.request("GET", path, headers={"impersonate-user": user, "impersonate-group": "team"})

    def leave(self):
        self.connection.close()


def test_a_meek_user_passes_a_greedy_one(server):
    greedy = [Waiting(server, "greedy", SLOW) for _ in range(40)]
    wait_until("the level to be full", lambda: server.row()["ExecutingRequests"] == "1" and server.row()["WaitingRequests"] == "39")
    dispatched = server.metric("dispatched_requests_total")
    reply = server.ask_as("meek", QUICK)
    assert reply.code == 404, reply.text
    # Only one or two requests of the greedy user have run meanwhile. With one queue for all users, 39 would have.
    assert server.metric("dispatched_requests_total") - dispatched <= 3
    assert server.metric("current_executing_seats") <= 1

    # Exempt requests (the administrator's) and those of other levels do not wait.
    assert server.ask("GET", "/api/v1/namespaces/default").code == 200
    details = server.ask("GET", f"{DUMPS}/dump_requests?includeRequestDetails=1").text
    assert re.search(r"^team, +team, +\d+, +0, +greedy, .*, +greedy, +list, +/api/v1/namespaces/default/configmaps, +default,", details, re.M), details
    assert re.search(r"^team, +\d+, +[1-9]", server.ask("GET", f"{DUMPS}/dump_queues").text, re.M)

    # Clients that leave give up their places in the queue and their seats.
    for one in greedy:
        one.leave()
    wait_until("the queues to be empty", lambda: server.row()["WaitingRequests"] == "0")
    assert int(server.row()["CancelledRequests"]) > 0
    assert server.ask_as("greedy", QUICK).code == 404
    wait_until("the seat to be free", lambda: server.metric("current_executing_seats") == 0)


def test_the_configuration_changes_while_requests_wait(server):
    slow = [Waiting(server, "one", SLOW) for _ in range(6)]
    wait_until("the level to be full", lambda: server.row()["WaitingRequests"] == "5")
    # The level becomes Reject: waiting requests keep waiting, new ones are refused.
    put_level(server, 1, {"type": "Reject"})

    def refused():
        reply = server.ask_as("other", QUICK)
        return reply if reply.code == 429 else None

    reply = wait_until("a refusal", refused)
    assert reply.text == "Too many requests, please try again later.\n"
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.headers["x-kubernetes-pf-prioritylevel-uid"]
    assert server.metric("rejected_requests_total") >= 1
    assert int(server.row()["WaitingRequests"]) >= 3
    # With more seats all of them run at once.
    put_level(server, 200, QUEUE)
    wait_until("the waiting to run", lambda: server.row()["WaitingRequests"] == "0")
    for one in slow:
        assert one.connection.getresponse().status == 504
        one.leave()
    wait_until("the level to be idle", lambda: server.row()["IsIdle"] == "true")


def test_a_wait_ends(server):
    slow = [Waiting(server, "one", SLOW) for _ in range(3)]
    wait_until("the level to be full", lambda: server.row()["WaitingRequests"] == "2")
    # A request waits for at most a quarter of its time limit.
    reply = server.ask_as("one", QUICK + "?timeout=400ms")
    assert reply.code == 429 and reply.text == "Too many requests, please try again later.\n", reply.text
    assert server.row()["TimedoutRequests"] == "1"
    for one in slow:
        one.leave()


def test_a_shutdown_ends_the_waits(server):
    """Every client has an answer, and the last ones do not wait for their turns, of 3 s each."""
    slow = [Waiting(server, "one", SLOW) for _ in range(5)]
    wait_until("the level to be full", lambda: server.row()["WaitingRequests"] == "4")
    server.send(signal.SIGTERM)
    codes = sorted(one.connection.getresponse().status for one in slow)
    assert codes[0] == codes[2] == 429 and codes[-1] == 504, codes
    assert server.wait() == 0
    for one in slow:
        one.leave()


def test_many_users_take_turns(server):
    """The requests of eight users at a time: none is refused, and every one is served."""
    codes = []

    def work(user):
        for _ in range(25):
            codes.append(server.ask_as(user, QUICK).code)

    threads = [threading.Thread(target=work, args=[f"user-{i}"]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [404] * 200
    assert server.row()["RejectedRequests"] == "0"
