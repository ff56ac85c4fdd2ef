# SPDX-License-Identifier: Apache-2.0
"""etcd members that are frozen (SIGSTOP): their connections stay open, and nothing comes from them."""
import http.client
import json
import re
import signal
import socket
import threading
import urllib.parse

from holdfastd import Cluster, EtcdCluster, free_ports, wait_until, workspace

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
LAG = ("holdfast_store_watch_lag_revisions", "holdfast_store_watch_lag_seconds")


def configmap(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def metric(instance, name):
    code, text = instance.get("/metrics")
    assert code == 200, text
    found = re.search(rf"^{name} (\S+)$", text, re.M)
    return float(found[1]) if found else 0


def create(instance, name):
    """Creates a ConfigMap. An answer may be lost while an endpoint is given up."""
    return instance.request("POST", CONFIGMAPS, configmap(name), timeout=30)[0] in (201, 409)


def freeze(*members):
    for member in members:
        member.send(signal.SIGSTOP)


def go_on(*members):
    for member in members:
        member.send(signal.SIGCONT)


class Watch(threading.Thread):
    """A watch of the ConfigMaps, which collects the events."""

    def __init__(self, instance):
        super().__init__(daemon=True)
        where = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=300, context=instance.context())
        self.connection.request("GET", f"{CONFIGMAPS}?watch=1")
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.events = []
        self.start()

    def run(self):
        try:
            for line in self.answer:
                self.events.append(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def names(self):
        return {e["object"]["metadata"].get("name") for e in self.events}

    def errors(self):
        return [e for e in self.events if e["type"] == "ERROR"]


class WatchFreezer:
    """A proxy of one etcd member. It can freeze only those connections that carry a watch."""

    def __init__(self, member):
        self.target = urllib.parse.urlsplit(member.url)
        self.melted = threading.Event()
        self.melted.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection((self.target.hostname, self.target.port))
            except OSError:
                return
            watching = threading.Event()
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, sink, watching), daemon=True).start()

    def _forward(self, source, sink, watching):
        try:
            while data := source.recv(65536):
                if b"/registry.\x12\x0a/registry0" in data:  # the watched range, in protobuf; no other request contains it
                    watching.set()
                if watching.is_set():
                    self.melted.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self):
        self.melted.set()
        self.listener.close()


def is_ready(instance, name):
    code, text = instance.get(f"{WORKSPACES}/{name}")
    return code == 200 and json.loads(text).get("status", {}).get("phase") == "Ready"


def test_the_member_with_the_watch_freezes():
    """The leader notices by the replies of other members, and watches there.

    On a busy machine it may notice earlier, by a ping without an answer, and then no reopening is counted. What counts is that the
    watch has moved and delivers; `store-watch-lag` tests what the replies alone lead to.
    """
    with Cluster(with_witness=False, etcd=EtcdCluster) as cluster:
        urls = cluster.etcd.url.split(",")
        members = cluster.etcd.members
        leader = cluster.instance("a", fast=False).wait_ready()
        wait_until("a to lead", lambda: leader.leader()["state"] == "leading")
        term = leader.leader()["term"]
        other = cluster.instance("b", fast=False, etcd_url=",".join(reversed(urls))).wait_ready()
        watch = Watch(leader)
        assert metric(leader, "holdfast_store_watch_reopened_total") == 0
        # Requests and the watch begin with the first member. It freezes for a moment, so that the leader's requests turn to another
        # one; then it goes on, which leaves the watch where it was; then it freezes for good.
        freeze(members[0])
        wait_until("requests on another member", lambda: create(leader, "moved") and "failed, trying" in leader.log_text())
        go_on(members[0])
        wait_until("the watch to be alive", lambda: "moved" in watch.names())
        assert create(leader, "alive")
        wait_until("the watch to be alive", lambda: "alive" in watch.names())
        freeze(members[0])
        names = {f"c{i}" for i in range(50)}
        for name in sorted(names):
            wait_until(name, lambda n=name: create(other, n))
        assert other.request("POST", WORKSPACES, workspace("team"))[0] == 201
        wait_until("the leader's watch to deliver", lambda: names <= watch.names())
        wait_until("the workspace to be ready", lambda: is_ready(other, "team"))
        assert not watch.errors()
        assert "failed, watching on" in leader.log_text()
        wait_until("the lag to end", lambda: all(metric(leader, name) == 0 for name in LAG))
        wait_until("the leader to be ready", lambda: leader.get("/readyz")[0] == 200)
        assert "[+]store-watch ok" in leader.get("/readyz?verbose")[1]
        assert leader.leader()["state"] == "leading" and leader.leader()["term"] == term
        # The watch stays at that member: it is not opened again and again.
        reopened = metric(leader, "holdfast_store_watch_reopened_total")
        for i in range(200):
            assert create(other, f"d{i}")
        wait_until("the leader's watch to deliver", lambda: "d199" in watch.names())
        assert metric(leader, "holdfast_store_watch_reopened_total") == reopened
        assert metric(other, "holdfast_store_watch_reopened_total") == 0
        go_on(members[0])


def test_nothing_is_agreed_on_without_a_quorum():
    """One member goes on without the others, with an old state. The server does not serve that state."""
    with Cluster(with_witness=False, etcd=EtcdCluster) as cluster:
        first, *others = cluster.etcd.members
        server = cluster.instance("a", fast=False).wait_ready()
        wait_until("a to lead", lambda: server.leader()["state"] == "leading")
        known = server.leader()
        fence = {"Holdfast-Fence": f"kube-system/holdfast-controllers;{known['term']};{known['identity']}"}
        nothing = f"{CONFIGMAPS}?labelSelector=is%3Dnowhere&resourceVersion=0"
        assert server.request("DELETE", nothing, headers=fence)[0] == 200
        watch = Watch(server)
        freeze(first)
        names = {f"c{i}" for i in range(20)}
        for name in sorted(names):
            wait_until(name, lambda n=name: create(server, n))
        freeze(*others)
        go_on(first)
        answers = []
        asking = [threading.Thread(target=lambda: answers.append(server.request("DELETE", nothing, headers=fence, timeout=100)))
                  for _ in range(8)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        for code, text in answers:
            # 503: on a busy machine the deadline passed before the transaction was sent
            assert (code, json.loads(text)["reason"]) in ((504, "Timeout"), (503, "ServiceUnavailable")), answers
        go_on(*others)
        wait_until("the server to be ready", lambda: server.get("/readyz")[0] == 200)
        wait_until("an answer", lambda: server.request("DELETE", nothing, headers=fence)[0] in (200, 409))
        assert names <= watch.names() and not watch.errors()
        assert metric(server, "holdfast_store_history_replaced_total") == 0
        assert "the store was replaced" not in server.log_text()
        wait_until("new objects", lambda: create(server, "after"))
        wait_until("the watch to go on", lambda: "after" in watch.names())
        assert not watch.errors()


def test_a_cache_that_stays_behind_is_not_ready():
    """Only the watch hangs, and there is no other member to watch on."""
    with Cluster(with_witness=False) as cluster:
        freezer = WatchFreezer(cluster.etcd)
        try:
            server = cluster.instance("a", fast=False, etcd_url=freezer.url).wait_ready()
            wait_until("a to lead", lambda: server.leader()["state"] == "leading")
            assert "[+]store-watch ok" in server.get("/readyz?verbose")[1]
            freezer.melted.clear()
            assert create(server, "unseen")
            wait_until("the lag", lambda: all(metric(server, name) >= 1 for name in LAG))
            wait_until("the check to fail", lambda: server.get("/readyz")[0] == 500)
            assert server.get("/readyz/store-watch")[0] == 500 and server.get("/readyz/etcd")[0] == 200
            assert re.search(r"store-watch failed: the cache has been behind etcd for \d+ s, now by \d+ revisions", server.log_text())
            # Reads do not depend on the watch, and a restart would not help.
            assert server.get(f"{CONFIGMAPS}/unseen")[0] == 200 and server.get("/livez")[0] == 200
            freezer.melted.set()
            wait_until("the server to be ready", lambda: server.get("/readyz")[0] == 200)
            wait_until("no lag", lambda: all(metric(server, name) == 0 for name in LAG))
        finally:
            freezer.end()


def test_the_reason_before_the_first_reply_of_etcd():
    """The reason is "has not answered yet". It must not be a time without replies, counted from the start of the machine."""
    with Cluster(with_witness=False) as cluster:
        server = cluster.instance("a", etcd_url=f"http://127.0.0.1:{free_ports(1)[0]}")
        wait_until("the check to fail", lambda: server.kubeconfig.exists() and server.get("/readyz")[0] == 500)
        wait_until("the reason", lambda: "check etcd failed: etcd has not answered yet" in server.log_text(), limit=10)
        server.send(signal.SIGTERM)
        assert server.wait() == 0
