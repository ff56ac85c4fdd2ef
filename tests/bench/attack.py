#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attack.py [--seconds N] [--connections N] [NAME]...: how a good client is served during an attack.

Each attack has an instance of its own with the default of 1,024 descriptors, on one etcd. A good client, with the admin's certificate,
reads and patches a Lease and reads a ConfigMap over one connection, and opens a new one every second: at rest, then during the attack.
The attacker is another process. For each attack one line: the good client's p50 and p99 at rest and under the attack with their ratio,
its refusals (a reply other than 2xx, none within 10 s, or no connection), and the server's resident memory before, at the most, and
five seconds after the attacker has gone.

All processes share the processors, so an attacker takes time from the server just by computing. The attackers compute as little as
they can. Strangers have no credentials; users have the admin's certificate.
"""
import argparse
import http.client
import json
import math
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from attackers import ATTACKS, BIG, PATIENCE, Attacker  # noqa: E402
from expensive_chain import write_chain  # noqa: E402

ATTACKERS = pathlib.Path(__file__).with_name("attackers.py")

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
N_BIG = 1000  # objects of 1 KiB that readers ask for


# ---- the good client ----

class Good(threading.Thread):
    """Twenty requests a second: GET of a Lease, GET of a ConfigMap, PATCH of the Lease in turn; every second over a new connection."""

    def __init__(self, instance, seconds):
        super().__init__(daemon=True)
        self.instance, self.context = instance, instance.context()
        self.where = urllib.parse.urlsplit(instance.url)
        self.end, self.times, self.refused, self.connection = time.monotonic() + seconds, [], {}, None

    def run(self):
        count = 0
        while time.monotonic() < self.end:
            if count % 20 == 0 and self.connection:
                self.connection.close()
                self.connection = None
            count += 1
            begun = time.monotonic()
            self.count(self.once(*self.ask(count)))
            self.times.append((time.monotonic() - begun) * 1000)
            time.sleep(max(0.0, 0.05 - (time.monotonic() - begun)))

    @staticmethod
    def ask(count):
        lease = json.dumps({"spec": {"holderIdentity": str(count)}})
        return (("GET", f"{LEASES}/good", None), ("GET", f"{BIG}/c1", None), ("PATCH", f"{LEASES}/good", lease))[count % 3]

    def once(self, method, path, body):
        """Sends one request. Returns None, or why it was refused."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.where.hostname, self.where.port, context=self.context, timeout=PATIENCE)
            self.connection.request(method, path, body, {"Content-Type": "application/merge-patch+json"})
            response = self.connection.getresponse()
            response.read()
            return None if response.status in (200, 201) else str(response.status)
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            return type(error).__name__

    def count(self, why):
        if why:
            self.refused[why] = self.refused.get(why, 0) + 1

    def quantile(self, q):
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * q))] if ordered else math.inf


def resident_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


# ---- the bench ----

def start(cluster, name):
    """Starts an instance with the soft limit of descriptors that a process has by default."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        return cluster.instance(name, fast=False).wait_ready()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def measure(instance, seconds):
    good = Good(instance, seconds)
    good.start()
    peak = 0
    while good.is_alive():
        peak = max(peak, resident_mb(instance.pid))
        time.sleep(0.1)
    return good, peak


def attack(cluster, name, args):
    instance = start(cluster, f"i-{name.replace('_', '-')}")
    time.sleep(1)
    before = resident_mb(instance.pid)
    rest, _ = measure(instance, args.seconds)
    command = [sys.executable, ATTACKERS, name, instance.url, cluster.directory / "pki", str(args.connections)]
    attacker = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, text=True)
    attacker.stdout.readline()
    under, peak = measure(instance, args.seconds)
    attacker.kill()
    attacker.wait()
    time.sleep(5)
    after = resident_mb(instance.pid)
    p50, p99, q50, q99 = rest.quantile(0.5), rest.quantile(0.99), under.quantile(0.5), under.quantile(0.99)
    refused = ", ".join(f"{why} {n}" for why, n in sorted(under.refused.items())) or "none"
    print(f"{name:10} p50 {p50:6.1f} -> {q50:8.1f} ms (x{q50 / p50:.1f})   p99 {p99:6.1f} -> {q99:8.1f} ms (x{q99 / p99:.1f})   "
          f"{len(under.times)} requests, refused: {refused}   resident {before:.0f}, {peak:.0f}, {after:.0f} MB", flush=True)
    end(cluster, instance)


def end(cluster, instance):
    """Ends the instance by SIGTERM. Returns how long that took, at most PATIENCE * 10 seconds."""
    begun = time.monotonic()
    instance.send(signal.SIGTERM)
    try:
        instance.wait(PATIENCE * 10)
    except subprocess.TimeoutExpired:
        pass
    cluster.started.remove(instance)
    instance.end()
    return time.monotonic() - begun


def stop_under_posts(cluster):
    """Sends SIGTERM while three strangers do not finish their POSTs."""
    instance = start(cluster, "i-stop")
    attacker = Attacker(instance.url, cluster.directory / "pki", 3)
    for _ in range(3):
        sock = attacker.connect()
        sock.sendall(b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
        attacker.kept.append(sock)
    time.sleep(0.5)
    print(f"stop       SIGTERM with three unfinished anonymous POSTs: {end(cluster, instance):.1f} s", flush=True)


def fill(instance):
    instance.request("POST", "/api/v1/namespaces", {"metadata": {"name": "attack"}})
    where = urllib.parse.urlsplit(instance.url)
    connection = http.client.HTTPSConnection(where.hostname, where.port, context=instance.context(), timeout=60)
    for i in range(N_BIG):
        connection.request("POST", BIG, json.dumps({"metadata": {"name": f"c{i}"}, "data": {"a": "b" * 800}}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 201, response.read()
        response.read()
    code, text = instance.request("POST", LEASES, {"metadata": {"name": "good"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 10}})
    assert code == 201, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=1200)
    args = parser.parse_args()
    with holdfastd.Cluster(with_witness=False) as cluster:
        first = start(cluster, "first")
        fill(first)
        end(cluster, first)
        if "chains" in args.names or not args.names:
            write_chain(cluster.directory / "pki" / "chain.pem")
        for name in args.names or ATTACKS:
            if name != "stop":
                attack(cluster, name, args)
        if "stop" in args.names or not args.names:
            stop_under_posts(cluster)


if __name__ == "__main__":
    main()
