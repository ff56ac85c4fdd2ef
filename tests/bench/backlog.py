# SPDX-License-Identifier: Apache-2.0
"""backlog.py [N]: how fast a new leader handles the work that came while no instance led
(default 10000 objects for each controller).

An instance that does not contend accepts the load; then one that contends is started. The
witness measures the time from the write that acquires the Lease to the last write of the work.
The output also has the cost in the store (writes as the witness counts them, reads by a metric
of the leader), and the time per write in bare writes (300 bytes, one after the other) of the
same run.
"""
import collections
import http.client
import json
import pathlib
import re
import signal
import statistics
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from hand_over import bare_writes  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
NAMESPACES = "/api/v1/namespaces"
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"


def send(server, requests, n_threads=8):
    """Sends all (method, path, body) on eight connections; each must succeed. Returns the
    responses in order."""
    answers, failed = [None] * len(requests), []

    def line(first):
        where = urllib.parse.urlsplit(server.url)
        connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=60, context=server.context())
        for i in range(first, len(requests), n_threads):
            method, path, body = requests[i]
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answers[i] = json.loads(answer.read())
            if answer.status not in (200, 201):
                failed.append((method, path, answers[i]))
                return

    threads = [threading.Thread(target=line, args=(i,)) for i in range(n_threads)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed[0]
    return answers


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def workspaces(server, n):
    send(server, [("POST", WORKSPACES, holdfastd.workspace(f"w{i}")) for i in range(n)])
    return lambda e: holdfastd.phase(e) == "Ready"


def ended_workspaces(server, n):
    """Deletes the workspaces that the previous step made Ready."""
    send(server, [("DELETE", f"{WORKSPACES}/w{i}", None) for i in range(n)])
    return lambda e: e["type"] == "DELETE" and "/workspaces/" in e["key"]


def garbage(server, n):
    """Dependents of n / 100 deleted owners."""
    owners = send(server, [("POST", MAPS, config_map(f"o{i}")) for i in range(n // 100)])
    send(server, [("POST", MAPS, config_map(f"d{i}", ownerReferences=[
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{i // 100}", "uid": owners[i // 100]["metadata"]["uid"]}])) for i in range(n)])
    send(server, [("DELETE", f"{MAPS}/o{i}", None) for i in range(n // 100)])
    return lambda e: e["type"] == "DELETE" and "/configmaps/default/d" in e["key"]


def namespaces(server, n):
    """Namespaces that are being deleted, each with one object."""
    send(server, [("POST", NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{i}"}}) for i in range(n)])
    send(server, [("POST", f"{NAMESPACES}/n{i}/configmaps", config_map("c")) for i in range(n)])
    send(server, [("DELETE", f"{NAMESPACES}/n{i}", None) for i in range(n)])
    return lambda e: e["type"] == "DELETE" and e["key"].startswith("/registry/namespaces/n")


def events(server, n):
    """Events that are older than the time to live of one second."""
    send(server, [("POST", EVENTS, {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{i}"}, "involvedObject": {"kind": "X"}})
                  for i in range(n)])
    time.sleep(2.1)
    return lambda e: e["type"] == "DELETE" and e["key"].startswith("/registry/events/default/")


def identity_leases(server, n):
    """Identity Leases of instances that have ended. Each lasts one second, which a new leader
    waits for first."""
    send(server, [("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": f"gone-{i}", "labels": {"apiserver.kubernetes.io/identity": "holdfastd"}},
        "spec": {"holderIdentity": f"gone-{i}", "leaseDurationSeconds": 1}}) for i in range(n)])
    return lambda e: e["type"] == "DELETE" and "/leases/kube-system/gone-" in e["key"]


def store_reads(server):
    reads = collections.Counter()
    for operation, value in re.findall(r'^etcd_request_duration_seconds_count\{operation="([a-z]+)".*\} (\d+)', server.get("/metrics")[1], re.M):
        reads[operation] += int(value)
    return reads


def one_round(cluster, serving, name, fill, n):
    witness, bare = cluster.witness, bare_writes(cluster, 200)
    is_last = fill(serving, n)
    mark = witness.mark()
    leader = cluster.instance("leader", "--event-ttl=1s").wait_ready()
    taken = witness.wait_holder(lambda h: "_leader_" in h, "the leader", mark, limit=60)
    holdfastd.wait_until("the work to be done", lambda: sum(map(is_last, witness.seen()[mark:])) >= n, limit=600, every=1)
    ended = [e for e in witness.seen()[mark:] if is_last(e)]
    wrote = [e for e in witness.seen()[mark:] if taken["rev"] < e["rev"] <= ended[-1]["rev"]]
    reads = store_reads(leader)
    seconds = (ended[-1]["t"] - taken["t"]) / 1e9
    leader.send(signal.SIGTERM)
    leader.wait()
    cluster.started.remove(leader)
    leader.end()
    print(f"{name}: {len(ended)} objects in {seconds:.2f} s, {len(ended) / seconds:.0f}/s; {len(wrote)} writes, {seconds / len(wrote) * 1e6:.0f} us each, "
          f"{seconds / len(wrote) * 1e9 / (statistics.median(bare) * 1e6):.2f} bare writes; questions to etcd: "
          + ", ".join(f"{k} {v}" for k, v in sorted(reads.items())), flush=True)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    with holdfastd.Cluster() as cluster:
        serving = holdfastd.leaderless(cluster)
        for name, fill in (("workspaces to Ready", workspaces), ("workspaces to their end", ended_workspaces), ("garbage", garbage),
                           ("namespaces to their end", namespaces), ("events to their end", events),
                           ("identity Leases to their end", identity_leases)):
            one_round(cluster, serving, name, fill, n)


if __name__ == "__main__":
    main()
