# SPDX-License-Identifier: Apache-2.0
"""size.py [N]: how holdfastd grows with its objects: N ConfigMaps of 1 KiB (default 100,000), measured at N/4, N/2 and N. They are written
straight into the store, as holdfastd stores them (size-load.c). The store is etcd, or a file with HOLDFAST_TEST_STORE=sqlite.

At each size an instance is started: the time until it is ready, and its CPU, beside a bare read of everything from the same etcd with the
same client (size-load read); its memory per object, beside the bytes of the stored object; the server's CPU per page of 500 (the first, a
continued one, and one continued after a change), beside a bare request (GET /version); and a list of one namespace, all pages and in one
response.

It fails beyond the aims: 10 s until a million objects are served again (fewer: in proportion, and two bare reads are always allowed), 2 GB
for a million, 0.6 KB for an object beside its own bytes.

CPU is the kernel's accounting of the process, so that what else the machine does weighs little. A million objects need about 5 GB on disk,
and 8 GB of memory, of which etcd takes the most."""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

LOAD = holdfastd.BUILD / "tests" / "bench" / "size-load"
MILLION = 1000000
NAMESPACES = 8
READ_PAGE = 50000
REQUESTS = 100


def cpu_ms(pid):
    return holdfastd.cpu_ns(pid) / 1e6


def memory_mb(pid, field):
    return int(re.search(field + r":\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def big_etcd(directory):
    client, peer = holdfastd.free_ports(2)
    member = holdfastd.EtcdMember(directory, "m0", client, peer, f"m0=http://127.0.0.1:{peer}",
                                  ["--quota-backend-bytes=8589934592", "--snapshot-count=10000"])
    holdfastd.wait_until("etcd to answer", lambda: holdfastd.Etcd.healthy(member))
    return member


def size_load(etcd, *args):
    done = subprocess.run([LOAD, etcd.url, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def start(cluster, name):
    """A started instance, and the seconds until it said that it was ready."""
    before = time.monotonic()
    log = cluster.directory / f"{name}.log"
    said = log.read_text().count("ready: ") if log.exists() else 0
    instance = cluster.instance(name, fast=False)
    while instance.log_text().count("ready: ") == said:
        assert instance.alive(), instance.log_text()[-3000:]
        time.sleep(0.005)
    return instance, time.monotonic() - before


def stop(instance):
    instance.end()


class Connection:
    """One connection to the instance, which stays open."""

    def __init__(self, instance):
        host, port = instance.url.removeprefix("https://").split(":")
        self.http = http.client.HTTPSConnection(host, int(port), context=instance.context(), timeout=120)

    def get(self, path):
        self.http.request("GET", path)
        response = self.http.getresponse()
        body = response.read()
        assert response.status == 200, (path, response.status, body[:300])
        return body


def cpu_per_request_us(instance, connection, path, n=REQUESTS):
    connection.get(path)
    before = cpu_ms(instance.pid)
    for _ in range(n):
        connection.get(path)
    return (cpu_ms(instance.pid) - before) * 1000 / n


def continue_of(body):
    return re.search(rb'"continue":"([^"]*)"', body[:2000])


def pages(instance, connection):
    """The CPU in us for a first page, a page in the middle, and one whose revision is no longer the
    newest."""
    first = cpu_per_request_us(instance, connection, "/api/v1/configmaps?limit=500")
    token = continue_of(connection.get("/api/v1/configmaps?limit=2000")).group(1).decode()
    path = f"/api/v1/configmaps?limit=500&continue={token}"
    middle = cpu_per_request_us(instance, connection, path)
    name = f"passing-{time.time_ns()}"
    code, text = instance.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    assert code == 201, text
    time.sleep(0.2)
    past = cpu_per_request_us(instance, connection, path)
    assert name.encode() not in connection.get(path)
    return first, middle, past


def walk(instance, connection):
    """Seconds, and the server's CPU per page in us, for all pages of one namespace."""
    before, cpu, n, path = time.monotonic(), cpu_ms(instance.pid), 0, "/api/v1/namespaces/size-0/configmaps?limit=500"
    token = ""
    while True:
        found = continue_of(connection.get(path + token))
        n += 1
        if not found:
            return time.monotonic() - before, (cpu_ms(instance.pid) - cpu) * 1000 / n
        token = f"&continue={found.group(1).decode()}"


def etcd_cpu_ms(cluster):
    """0 over a file: the instance does the work itself."""
    return 0.0 if holdfastd.ON_SQLITE else cpu_ms(cluster.etcd.pid)


def measure(cluster, n, empty_mb):
    etcd_cpu = etcd_cpu_ms(cluster)
    bare = size_load(cluster.etcd, "read", READ_PAGE)
    etcd_bare = etcd_cpu_ms(cluster) - etcd_cpu
    etcd_cpu = etcd_cpu_ms(cluster)
    instance, ready = start(cluster, "i")
    fill_cpu, etcd_fill = cpu_ms(instance.pid), etcd_cpu_ms(cluster) - etcd_cpu
    own = bare["bytes"] / bare["keys"]
    resident = memory_mb(instance.pid, "RssAnon")
    per_object, memory_mb_at_most = (resident - empty_mb) * 1024 * 1024 / n, memory_mb(instance.pid, "VmHWM")
    print(f"{n:,} objects of {own:.0f} bytes: ready after {ready:.1f} s, {ready / bare['seconds']:.1f} times a bare read "
          f"({bare['seconds']:.1f} s); CPU {fill_cpu / 1000:.2f} s, etcd's {etcd_fill / 1000:.2f} s (bare read {etcd_bare / 1000:.2f} s)")
    print(f"  resident {memory_mb(instance.pid, 'VmRSS'):.0f} MB, at most {memory_mb_at_most:.0f} MB; per object "
          f"{per_object:.0f} bytes, {per_object - own:.0f} beside its own", flush=True)
    connection = Connection(instance)
    version = cpu_per_request_us(instance, connection, "/version", 1000)
    first, middle, past = pages(instance, connection)
    print(f"  CPU per page of 500: first {first:.0f} us, continued {middle:.0f} us, continued after a change {past:.0f} us; bare request {version:.0f} us")
    seconds, per_page = walk(instance, connection)
    print(f"  all pages of a namespace of {n // NAMESPACES:,}: {seconds:.2f} s, {per_page:.0f} us of CPU per page", flush=True)
    before, cpu = time.monotonic(), cpu_ms(instance.pid)
    n_bytes = len(connection.get("/api/v1/namespaces/size-0/configmaps"))
    print(f"  the same in one response: {time.monotonic() - before:.2f} s, {n_bytes / 1e6:.0f} MB, CPU {cpu_ms(instance.pid) - cpu:.0f} ms; "
          f"resident {memory_mb(instance.pid, 'VmRSS'):.0f} MB", flush=True)
    stop(instance)
    return [text for bad, text in (
        (ready > max(10 * n / MILLION, 2 * bare["seconds"], 2), f"{n:,} objects: ready after {ready:.1f} s"),
        (memory_mb_at_most > max(2000 * n / MILLION, 200), f"{n:,} objects: {memory_mb_at_most:.0f} MB"),
        (per_object - own > 600, f"{n:,} objects: {per_object - own:.0f} bytes for each beside its own")) if bad]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile if holdfastd.ON_SQLITE else big_etcd) as cluster:
        instance, ready = start(cluster, "i")
        stop(instance)
        instance, ready = start(cluster, "i")
        empty_mb = memory_mb(instance.pid, "RssAnon")
        print(f"without objects: ready after {ready * 1000:.0f} ms, {empty_mb:.1f} MB of its own", flush=True)
        stop(instance)
        written, failed = 0, []
        for size in (n // 4, n // 2, n):
            loaded = size_load(cluster.etcd, "write", written, size - written, NAMESPACES)
            print(f"{size - written:,} objects written in {loaded['seconds']:.1f} s", flush=True)
            written = size
            failed += measure(cluster, size, empty_mb)
    print("bounds:", "; ".join(failed) or "kept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
