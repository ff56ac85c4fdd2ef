# SPDX-License-Identifier: Apache-2.0
"""lists.py [OBJECTS] [LISTS]: what large lists do to others. While LISTS full lists (40) of OBJECTS ConfigMaps of 1 KiB (100,000) are
read at the same time: the times of a small GET beside those at rest, the terms that were lost, the memory before and at the peak.
Then 10,000 watches over 100 connections: the resident bytes of each, the time from a write to the last watch that has its event, and the
server's CPU for one event of one watch, beside a bare request (GET /version).

It fails if the 99th percentile of the small GET exceeds 100 ms, a term was lost, a watch takes more than 4 KiB, an event needs more than 60 ms
(99th percentile), or 512 MiB more are used at the peak. The load, the measuring client and the server share the machine, so the figures
contain what they take from each other, and the times hold on a quiet one; the figure at rest of the same run is beside each."""
import http.client
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

TOKENS = "load-token,load,load,system:masters\ngood-token,good,good,system:masters\n"


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Getter(threading.Thread):
    """Gets one small object again and again, every 5 ms, over one connection."""

    def __init__(self, instance):
        super().__init__()
        self.instance, self.times, self.codes, self.ending = instance, [], set(), False

    def run(self):
        url = urllib.parse.urlsplit(self.instance.url)
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=self.instance.context(False), timeout=60)
        while not self.ending:
            begin = time.monotonic()
            connection.request("GET", "/api/v1/namespaces/default", headers={"authorization": "Bearer good-token"})
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                print("small GET:", response.status, body.decode())
            self.times.append((time.monotonic() - begin) * 1000)
            self.codes.add(response.status)
            time.sleep(0.005)
        connection.close()

    def end(self):
        self.ending = True
        self.join()
        return self.times, self.codes


def measure(instance, work):
    getter = Getter(instance)
    getter.start()
    result = work()
    times, codes = getter.end()
    assert codes == {200}, codes
    return times, result


def full_lists(instance, n):
    """Reads n full lists at the same time, over four connections. Returns the seconds and the bytes."""
    begin = time.monotonic()
    out = subprocess.run(["h2load", "-n", str(n), "-c", "4", "-m", str(n // 4), "-w", "24", "-W", "24", "-H", "authorization: Bearer load-token",
                          instance.url + "/api/v1/configmaps"], capture_output=True, text=True, check=True).stdout
    took = time.monotonic() - begin
    good = int(re.search(r"(\d+) 2xx", out).group(1))
    assert good == n, out
    return took, int(re.search(r"\((\d+)\) data", out).group(1))


def lists(cluster, instance, n_objects, n_lists):
    leader = instance.leader()
    before = resident_mib(instance.pid)
    rest, _ = measure(instance, lambda: time.sleep(5))
    peak = [before]

    def load():
        done = threading.Event()

        def watch_memory():
            while not done.wait(0.05):
                peak[0] = max(peak[0], resident_mib(instance.pid))
        watcher = threading.Thread(target=watch_memory)
        watcher.start()
        result = full_lists(instance, n_lists)
        done.set()
        watcher.join()
        return result
    busy, (took, n_bytes) = measure(instance, load)
    after = instance.leader()
    lost = sum(a.get("term") != b.get("term") for a, b in zip(leader.get("electors", [leader]), after.get("electors", [after])))
    print(f"{n_lists} full lists of {n_objects} ConfigMaps at the same time: {took:.1f} s, {n_bytes / took / 2**20:.0f} MiB/s; "
          f"small GET p50 {statistics.median(busy):.1f} ms, p99 {percentile(busy, 0.99):.1f} ms, longest {max(busy):.1f} ms; "
          f"at rest p50 {statistics.median(rest):.1f}, p99 {percentile(rest, 0.99):.1f}, longest {max(rest):.1f}; terms lost: {lost}; "
          f"resident {before:.0f} MiB before, {peak[0]:.0f} at the peak")
    return percentile(busy, 0.99), lost, peak[0] - before


def bare_request_us(instance, n=1000):
    """The server's CPU for GET /version over one connection."""
    url = urllib.parse.urlsplit(instance.url)
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=instance.context(False), timeout=60)
    before = holdfastd.cpu_ns(instance.pid)
    for _ in range(n):
        connection.request("GET", "/version")
        connection.getresponse().read()
    connection.close()
    return (holdfastd.cpu_ns(instance.pid) - before) / 1000 / n


def watches(cluster, instance, n, n_connections, n_events=30):
    """Many watches of one object, which changes n_events times, five times a second."""
    path = "/api/v1/namespaces/default/configmaps"
    code, text = instance.request("POST", path, {"metadata": {"name": "stamped"}})
    assert code == 201, text
    bare = bare_request_us(instance)
    before = resident_mib(instance.pid)
    pki = cluster.directory / "pki"
    load = subprocess.Popen([holdfastd.BUILD / "tests" / "bench" / "watch-load", f"{instance.url}{path}?watch=true&fieldSelector=metadata.name%3Dstamped",
                             pki / "ca.crt", pki / "admin.crt", pki / "admin.key", str(n), str(n_connections)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert load.stdout.readline() == "open\n"
    time.sleep(1)
    open_kib = (resident_mib(instance.pid) - before) * 1024 / n
    longest = 0
    cpu = holdfastd.cpu_ns(instance.pid)
    for _ in range(n_events):
        begin = time.monotonic()
        body = {"metadata": {"name": "stamped"}, "data": {"stamp": str(time.monotonic_ns())}}
        code, text = instance.request("PUT", f"{path}/stamped", body)
        assert code == 200, text
        longest = max(longest, (time.monotonic() - begin) * 1000)
        time.sleep(0.2)
    time.sleep(3)
    cpu_us = (holdfastd.cpu_ns(instance.pid) - cpu) / 1000 / n / n_events
    busy_kib = (resident_mib(instance.pid) - before) * 1024 / n
    load.stdin.close()
    result = json.loads(load.stdout.readline())
    load.wait()
    print(f"{n} watches over {n_connections} connections: {open_kib:.1f} KiB each when open, {busy_kib:.1f} after {n_events} events; "
          f"from the write to each watch: p50 {result['p50']} ms, p99 {result['p99']}, longest {result['max']} ({result['events']} events; the longest write itself {longest:.1f} ms); "
          f"CPU of an event for each watch: {cpu_us:.2f} us, the client's {result['cpu'] * 1000 / n / n_events:.2f}, a bare request {bare:.1f}; "
          f"the last watch of each event: {' '.join(f'{ms:.0f}' for ms in result['last'])} ms")
    assert result["events"] >= n * (n_events - 1), result
    return busy_kib, result["p99"]


def main():
    n_objects = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    n_lists = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with holdfastd.Cluster(with_witness=False) as cluster:
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text(TOKENS)
        tokens.chmod(0o600)
        holdfastd.fill_configmaps(cluster.etcd, n_objects, 1024)
        instance = cluster.instance("a", f"--token-auth-file={tokens}", fast=False).wait_ready()
        p99, lost, grown = lists(cluster, instance, n_objects, n_lists)
        kib, event_p99 = watches(cluster, instance, 10000, 100)
        instance.send(signal.SIGTERM)
        instance.wait()
    failed = [text for bad, text in ((p99 > 100, f"small GET p99 {p99:.0f} ms > 100 ms"), (lost, f"{lost} terms lost"),
                                     (kib > 4, f"{kib:.1f} KiB for a watch"), (event_p99 > 60, f"{event_p99:.0f} ms for an event"),
                                     (grown > 512, f"{grown:.0f} MiB more at the peak")) if bad]
    print("bounds:", "; ".join(failed) or "kept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
