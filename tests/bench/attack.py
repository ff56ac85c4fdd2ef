#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attack.py [--seconds N] [--rounds N] [NAME]...: how a good client is served during an attack.

Each attack has an instance of its own with the default of 1,024 descriptors, on one etcd. A good client reads
and patches a Lease and reads a ConfigMap over one connection, and opens a new one every 20 requests: at rest, then during the attack,
several times in turn, because other load of the machine comes and goes. The attacker is another process, which begins anew each time. A
figure is the median of the rounds. For each attack there is a row of a table: the good client's p50 and p99 at rest and under the attack,
the ratio of the p99, its refusals (a reply other than 2xx, none within 10 s, or no connection), and the server's resident memory before,
at the most, and some seconds after the attacker has gone.

It fails if the good client was refused once, or if its p99 under an attack is more than twice that at rest.

An attacker on another machine would take no time of the server's processors. Here all processes share them, so the attackers compute as
little as they can, and run only while nobody else wants to. Strangers have no credentials.
Users, and the good client, have certificates and all rights, but not by system:masters: requests of that group need no seats.
"""
import argparse
import collections
import http.client
import json
import math
import pathlib
import re
import resource
import signal
import ssl
import statistics
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
N_HUGE = 100000  # for those of the 106 MB list
STOP = 5  # seconds that a SIGTERM may take beside unfinished POSTs
RATIO = 2  # how many times its p99 at rest the good client may need under an attack


# ---- the good client ----

class Good(threading.Thread):
    """A hundred requests a second: GET of a Lease, GET of a ConfigMap, PATCH of the Lease in turn; 20 of them over each connection."""

    def __init__(self, instance, seconds):
        super().__init__(daemon=True)
        self.instance, self.context = instance, ssl.create_default_context(cafile=instance.pki / "ca.crt")
        self.context.load_cert_chain(instance.pki / "good.crt", instance.pki / "good.key")
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
            time.sleep(max(0.0, 0.01 - (time.monotonic() - begun)))

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


class Round:
    """The good client at rest, and then during the attack."""

    def __init__(self, cluster, instance, name, seconds):
        self.before = resident_mb(instance.pid)
        self.rest, _ = measure(instance, seconds)
        command = [sys.executable, ATTACKERS, name, instance.url, cluster.directory / "pki"]
        attacker = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, text=True)
        assert attacker.stdout.readline() == "ready\n"
        self.under, self.peak = measure(instance, seconds)
        assert attacker.poll() is None, "the attacker has ended"
        attacker.kill()
        attacker.wait()
        settle(instance)
        self.after = resident_mb(instance.pid)

    def quantile(self, q):
        return self.rest.quantile(q), self.under.quantile(q)


def settle(instance):
    """Waits until the server has little to do, as at rest, and has had the time to give memory back (12 s); 40 s at most."""
    end_at = time.monotonic() + 40
    time.sleep(12)
    while time.monotonic() < end_at:
        before = holdfastd.cpu_ns(instance.pid)
        time.sleep(1)
        if holdfastd.cpu_ns(instance.pid) - before < 50_000_000:
            return


def attack(cluster, name, args):
    """Prints the row of an attack. Returns what is wrong."""
    instance = start(cluster, f"i-{name.replace('_', '-')}")
    time.sleep(1)
    rounds = [Round(cluster, instance, name, args.seconds) for _ in range(args.rounds)]
    end(cluster, instance)
    p50, q50 = (statistics.median(side) for side in zip(*(r.quantile(0.5) for r in rounds)))
    p99, q99 = (statistics.median(side) for side in zip(*(r.quantile(0.99) for r in rounds)))
    refused = collections.Counter()
    for r in rounds:
        refused.update(r.rest.refused)
        refused.update(r.under.refused)
    text = ", ".join(f"{why} {n}" for why, n in sorted(refused.items())) or "none"
    print(f"| {ATTACKS[name]} | {p50:.1f}, {q50:.1f} ms | {p99:.1f}, {q99:.1f} ms | {q99 / p99:.1f} | {text} of {sum(len(r.under.times) for r in rounds)} | "
          f"{rounds[0].before:.0f}, {max(r.peak for r in rounds):.0f}, {rounds[-1].after:.0f} MB |", flush=True)
    wrong = [f"{name}: refused: {text}"] if refused else []
    return wrong + ([f"{name}: p99 is {q99 / p99:.1f} times that at rest, more than {RATIO}"] if q99 > RATIO * p99 else [])


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
    attacker = Attacker(instance.url, cluster.directory / "pki")
    for _ in range(3):
        sock = attacker.connect()
        sock.sendall(b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
        attacker.kept.append(sock)
    time.sleep(0.5)
    took = end(cluster, instance)
    print(f"SIGTERM with three unfinished anonymous POSTs: {took:.1f} s", flush=True)
    return [f"stop: {took:.1f} s"] if took > STOP else []


def write_certificate(pki, name):
    """Writes name.crt and name.key, of a user of the group users, signed by the server's CA."""
    key, crt = pki / f"{name}.key", pki / f"{name}.crt"
    request = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-subj",
                              f"/O=users/CN={name}"], check=True, capture_output=True).stdout
    subprocess.run(["openssl", "x509", "-req", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-set_serial", "1", "-days", "1", "-out", crt],
                   input=request, check=True, capture_output=True)


def give_rights(instance):
    """Makes the users, and gives them all rights."""
    for name in ("good", "user"):
        write_certificate(instance.pki, name)
    group = "rbac.authorization.k8s.io"
    code, text = instance.request("POST", f"/apis/{group}/v1/clusterrolebindings", {
        "metadata": {"name": "users"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "users"}]})
    assert code == 201, text


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
    parser.add_argument("names", nargs="*", default=[*ATTACKS, "stop"])
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    names, wrong = args.names, []
    if not set(names) <= {*ATTACKS, "stop"}:
        parser.error(f"the names are: {' '.join(ATTACKS)} stop")
    with holdfastd.Cluster(with_witness=False) as cluster:
        first = start(cluster, "first")
        give_rights(first)
        fill(first)
        end(cluster, first)
        if "chains" in names:
            write_chain(cluster.directory / "pki" / "chain.pem")
        print("| attack | p50 at rest, then | p99 at rest, then | times | refused | resident before, at most, afterwards |\n|---|---|---|---|---|---|", flush=True)
        for name in names:
            if name == "slow_readers":
                holdfastd.fill_configmaps(cluster.etcd, N_HUGE, 860, namespace="huge")
            wrong += stop_under_posts(cluster) if name == "stop" else attack(cluster, name, args)
    print("bounds:", "; ".join(wrong) or "kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
