# SPDX-License-Identifier: Apache-2.0
"""Failures of etcd: members that die, TLS, a full disk, compaction. No acknowledged write may be
lost."""
import http.client
import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

from holdfastd import Cluster, EtcdCluster, EtcdMember, free_ports, wait_until
from tls_etcd import tls_etcd

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def configmap(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def names_at(instance):
    code, body = instance.get(CONFIGMAPS, timeout=60)
    assert code == 200, body
    return {item["metadata"]["name"] for item in json.loads(body)["items"]}


def etcdctl(url, *args, flags=()):
    done = subprocess.run(["etcdctl", f"--endpoints={url}", *flags, *args], env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Storm:
    """Clients that create one ConfigMap after the other and record which writes were
    acknowledged."""

    def __init__(self, instance, name, n_threads=4):
        self.url, self.context = urllib.parse.urlsplit(instance.url), instance.context()
        self.acknowledged, self.refused, self.over = [], [], threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(f"{name}-{t}",), daemon=True) for t in range(n_threads)]
        for t in self.threads:
            t.start()

    def _run(self, name):
        connection, count = None, 0
        while not self.over.is_set():
            count += 1
            one = f"{name}-{count}"
            try:
                connection = connection or http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=60, context=self.context)
                connection.request("POST", CONFIGMAPS, json.dumps(configmap(one, count=str(count))), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status == 201:
                    self.acknowledged.append(one)
                    self.over.wait(0.005)  # leaves the processors to the servers
                    continue
                self.refused.append((one, answer.status, text))
            except (OSError, http.client.HTTPException) as error:
                self.refused.append((one, 0, repr(error)))
                connection = None
            self.over.wait(0.1)

    def goes_on(self, n=10):
        had = len(self.acknowledged)
        wait_until("more acknowledged writes", lambda: len(self.acknowledged) >= had + n)

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join(60)
            assert not t.is_alive()
        return self.acknowledged


def leads(*instances):
    return [i for i in instances if i.leader()["state"] == "leading"]


def test_service_continues_while_a_majority_of_etcd_lives():
    with Cluster(with_witness=False, etcd=EtcdCluster) as cluster:
        a = cluster.instance("a").wait_ready()
        b = cluster.instance("b").wait_ready()
        pids = [a.pid, b.pid]
        wait_until("a leader", lambda: leads(a, b))
        storms = [Storm(a, "a"), Storm(b, "b")]
        # First the member in use dies (both instances begin with the first one), then the member
        # that leads. Each time both instances recover quickly.
        for victim in (lambda: cluster.etcd.members[0], lambda: wait_until("etcd's leader", cluster.etcd.leader)):
            for storm in storms:
                storm.goes_on()
            member = victim()
            member.send(signal.SIGKILL)
            member.wait()
            for storm in storms:
                storm.goes_on(50)
            wait_until("a leader", lambda: len(leads(a, b)) == 1)
            member.restart()
            wait_until("etcd to be whole", lambda m=member: etcd_responds(m))

        # Two of three members are dead, so there is no quorum. The leader stops leading, and
        # requests get a response in bounded time.
        leader = wait_until("a leader", lambda: leads(a, b))[0]
        for member in cluster.etcd.members[:2]:
            member.send(signal.SIGKILL)
            member.wait()
        wait_until("the leader to stop leading", lambda: not leads(a, b))
        answers = []

        def ask(method, path, body=None):
            begun = time.monotonic()
            code, text = leader.request(method, path, body, timeout=100)
            answers.append((method, code, text, time.monotonic() - begun))

        asking = [threading.Thread(target=ask, args=args) for args in (("GET", CONFIGMAPS), ("GET", CONFIGMAPS + "/nothing"),
                                                                      ("POST", CONFIGMAPS, configmap("in-vain")))]
        for t in asking:
            t.start()
        for t in asking:
            t.join()
        for method, code, text, took in answers:
            assert code in (503, 504) and took < 70, answers
            assert json.loads(text)["kind"] == "Status", answers
        assert a.get("/livez")[0] == 200 and b.get("/livez")[0] == 200
        for member in cluster.etcd.members[:2]:
            member.restart()
        for storm in storms:
            storm.goes_on()
        wait_until("a leader again", lambda: len(leads(a, b)) == 1)
        acknowledged = {name for storm in storms for name in storm.end()}
        assert acknowledged - names_at(a) == set() and acknowledged - names_at(b) == set()
        assert [a.pid, b.pid] == pids and a.alive() and b.alive()
        stored = set(etcdctl(cluster.etcd.url, "get", "/registry/configmaps/default/", "--prefix", "--keys-only").split())
        assert {f"/registry/configmaps/default/{name}" for name in acknowledged} - stored == set()


def etcd_responds(member):
    done = subprocess.run(["etcdctl", f"--endpoints={member.url}", "--command-timeout=2s", "endpoint", "health"],
                          env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=False)
    return done.returncode == 0


def test_killing_etcd_loses_no_acknowledged_write(cluster):
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    storm = Storm(b, "s", 8)
    storm.goes_on(200)
    b.send(signal.SIGKILL)
    b.wait()
    wait_until("the clients to notice", lambda: len(storm.refused) >= 8)
    acknowledged = set(storm.end())
    present = names_at(a)
    assert acknowledged - present == set()
    # A write that was not acknowledged may exist or not. Nothing else may exist, but what every namespace has.
    assert present - acknowledged - {"kube-root-ca.crt"} <= {name for name, _, _ in storm.refused}


# ---- TLS ----

def test_etcd_is_used_over_tls_with_client_certificates():
    """ET08: etcd asks for client certificates."""
    with Cluster(with_witness=False, etcd=tls_etcd) as cluster:
        at = cluster.directory
        mine = [f"--etcd-certfile={at / 'client.crt'}", f"--etcd-keyfile={at / 'client.key'}"]
        a = cluster.instance("a", f"--etcd-cafile={at / 'etcd-ca.crt'}", *mine)
        wrong = cluster.instance("wrong", f"--etcd-cafile={at / 'other-ca.crt'}", *mine)
        anonymous = cluster.instance("anonymous", f"--etcd-cafile={at / 'etcd-ca.crt'}")
        missing = cluster.instance("missing", f"--etcd-cafile={at / 'no-such.crt'}", *mine)
        a.wait_ready()
        wait_until("a to lead", lambda: leads(a))
        assert a.request("POST", CONFIGMAPS, configmap("over-tls"))[0] == 201 and "over-tls" in names_at(a)
        assert missing.wait() == 2 and "flag --etcd-cafile: " in missing.log_text() and "no-such.crt" in missing.log_text()
        # They wait as for an unreachable etcd, and log the reason.
        wait_until("a clear line", lambda: any("waiting for etcd" in line and "certificate" in line for line in wrong.log_text().splitlines()))
        wait_until("a clear line", lambda: any("waiting for etcd" in line for line in anonymous.log_text().splitlines()))
        for instance in (wrong, anonymous):
            instance.send(signal.SIGTERM)
            assert instance.wait() == 0


# ---- a full store ----

def small_etcd(directory):
    client, peer = free_ports(2)
    return EtcdMember(directory, "small", client, peer, f"small=http://127.0.0.1:{peer}", ["--quota-backend-bytes=8388608"])


def test_a_full_store_is_reported_and_recovered():
    with Cluster(with_witness=False, etcd=small_etcd) as cluster:
        a = cluster.instance("a").wait_ready()
        wait_until("a to lead", lambda: leads(a))
        term = a.leader()["term"]
        assert a.request("POST", CONFIGMAPS, configmap("victim", k="v"))[0] == 201
        body = configmap("big", k="x" * 700_000)
        code, text = a.request("POST", CONFIGMAPS, body)
        for _ in range(40):
            if code >= 300:
                break
            body["data"]["k"] = body["data"]["k"][1:]
            code, text = a.request("PUT", CONFIGMAPS + "/big", body)
        status = json.loads(text)
        assert code >= 500 and status["kind"] == "Status" and "space" in status["message"], (code, text)
        wait_until("a to stop leading", lambda: not leads(a))
        assert a.get(CONFIGMAPS + "/victim")[0] == 200 and "victim" in names_at(a) and a.get("/livez")[0] == 200
        # Deletes, which free space, still succeed.
        assert a.request("DELETE", CONFIGMAPS + "/victim")[0] == 200
        revision = json.loads(etcdctl(cluster.etcd.url, "endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
        etcdctl(cluster.etcd.url, "compact", str(revision))
        etcdctl(cluster.etcd.url, "defrag")
        etcdctl(cluster.etcd.url, "alarm", "disarm")
        wait_until("a to lead again", lambda: leads(a))
        assert a.leader()["term"] > term and a.alive()
        assert a.request("POST", CONFIGMAPS, configmap("after"))[0] == 201


# ---- compaction ----

class Watch(threading.Thread):
    """An API watch that records its events."""

    def __init__(self, instance, query):
        super().__init__(daemon=True)
        where = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=60, context=instance.context())
        self.connection.request("GET", f"{CONFIGMAPS}?watch=1&{query}")
        self.answer = self.connection.getresponse()
        self.events, self.over = [], False
        self.start()

    def run(self):
        try:
            for line in self.answer:
                self.events.append(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.over = True

    def saw(self, name):
        return any(e["object"]["metadata"].get("name") == name for e in self.events)


def test_open_watches_survive_a_compaction(cluster):
    """ET06: Watches go on past a compaction."""
    a = cluster.instance("a").wait_ready()
    b = cluster.instance("b").wait_ready()
    code, text = a.request("POST", CONFIGMAPS, configmap("first"))
    assert code == 201
    old = json.loads(text)["metadata"]["resourceVersion"]
    watches = [Watch(i, f"resourceVersion={old}") for i in (a, b)]
    b.send(signal.SIGSTOP)  # its watch of etcd falls behind the compaction
    for i in range(30):
        assert a.request("POST", CONFIGMAPS, configmap(f"c{i}", k="x" * 50_000))[0] == 201
    revision = json.loads(etcdctl(cluster.etcd.url, "endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
    etcdctl(cluster.etcd.url, "compact", str(revision))
    b.send(signal.SIGCONT)
    assert a.request("POST", CONFIGMAPS, configmap("last"))[0] == 201
    wait_until("a's watch to go on", lambda: watches[0].saw("last"))
    assert not watches[0].over and {f"c{i}" for i in range(30)} <= {e["object"]["metadata"]["name"] for e in watches[0].events}
    # b's watch either continues without a gap or ends with 410, never with a silent gap.
    wait_until("b's watch", lambda: watches[1].saw("last") or watches[1].over)
    if watches[1].saw("last"):
        assert {f"c{i}" for i in range(30)} <= {e["object"]["metadata"]["name"] for e in watches[1].events}
    else:
        assert watches[1].events[-1]["object"]["code"] == 410
    assert names_at(a) == names_at(b) and "last" in names_at(b)
    # A new instance has no history: a watch from before its start gets 410, one from now on works.
    c = cluster.instance("c").wait_ready()
    late = Watch(c, f"resourceVersion={old}")
    wait_until("the answer", lambda: late.over or late.events)
    gone = late.events[0]["object"] if late.answer.status == 200 else late.events[0]
    assert gone.get("code") == 410 and gone["reason"] == "Expired", (old, late.answer.status, late.events[:3])
    now = json.loads(c.get(CONFIGMAPS)[1])["metadata"]["resourceVersion"]
    fresh = Watch(c, f"resourceVersion={now}")
    assert b.request("POST", CONFIGMAPS, configmap("newest"))[0] == 201
    wait_until("the newest", lambda: fresh.saw("newest"))
    wait_until("a leader", lambda: len(leads(a, b, c)) == 1)


def test_a_compacted_revision_cannot_be_listed(cluster):
    a = cluster.instance("a").wait_ready()
    code, text = a.request("POST", CONFIGMAPS, configmap("one"))
    old = json.loads(text)["metadata"]["resourceVersion"]
    for i in range(5):
        assert a.request("POST", CONFIGMAPS, configmap(f"n{i}"))[0] == 201
    code, text = a.get(f"{CONFIGMAPS}?limit=2")
    token = json.loads(text)["metadata"]["continue"]
    revision = json.loads(etcdctl(cluster.etcd.url, "endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
    assert a.request("POST", CONFIGMAPS, configmap("more"))[0] == 201
    etcdctl(cluster.etcd.url, "compact", str(revision + 1))
    a.send(signal.SIGTERM)  # its memory still knows these revisions
    assert a.wait() == 0
    a = cluster.instance("a").wait_ready()
    code, text = a.get(f"{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=Exact")
    assert code == 410, text
    code, text = a.get(f"{CONFIGMAPS}?limit=2&continue={token}")
    assert code == 410 and json.loads(text)["reason"] == "Expired", text


