# SPDX-License-Identifier: Apache-2.0
"""large_writes.py [SECONDS]: what small requests cost while large patches are computed. A client renews a Lease and reads a small object, one
request after the other: first alone, then while four clients send merge patches of 200,000 keys (dry runs, 2.6 MB each). It prints a
bound for p99 during the patches and does not check it: twice p99 at rest plus one step of the pool on each of its threads, that is the
processor time of one patch, which is measured in the same run. Both need a machine without other load."""
import concurrent.futures
import http.client
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PATCH = json.dumps({"data": {f"k{i}": "" for i in range(200000)}}, separators=(",", ":")).encode()


def connect(api):
    host, port = api.url.removeprefix("https://").split(":")
    return http.client.HTTPSConnection(host, int(port), context=api.context(), timeout=60)


def send(connection, method, path, body=None, kind="application/json"):
    connection.request(method, path, body, {"Content-Type": kind} if body else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def small_requests(api, seconds):
    """Milliseconds of each GET and each PUT."""
    connection, spent = connect(api), {"GET": [], "PUT": []}
    lease = json.loads(send(connection, "GET", LEASE + "/l")[1])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for method, path in (("GET", MAPS + "/small"), ("PUT", LEASE + "/l")):
            began = time.monotonic()
            code, body = send(connection, method, path, json.dumps(lease) if method == "PUT" else None)
            spent[method].append((time.monotonic() - began) * 1000)
            assert code == 200, body
            if method == "PUT":
                lease = json.loads(body)
    return spent


def patch_until(api, stop):
    connection, n = connect(api), 0
    while not stop.is_set():
        code, body = send(connection, "PATCH", MAPS + "/large?dryRun=All", PATCH, "application/merge-patch+json")
        assert code == 200, body[:300]
        n += 1
    return n


def cpu_ms(pid):
    return holdfastd.cpu_ns(pid) / 1e6


def p(values, q):
    return statistics.quantiles(values, n=100)[q - 1]


def main(seconds):
    with holdfastd.Cluster(with_witness=False, prefix="holdfast-bench-") as cluster:
        api = cluster.instance("a").wait_ready()
        connection = connect(api)
        for path, body in ((MAPS, {"metadata": {"name": "small"}}), (MAPS, {"metadata": {"name": "large"}, "data": {"a": "b"}}),
                           (LEASE, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})):
            assert send(connection, "POST", path, json.dumps(body))[0] == 201
        rest = small_requests(api, seconds)
        stop, before = threading.Event(), cpu_ms(api.pid)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(patch_until, api, stop) for _ in range(4)]
            during = small_requests(api, seconds)
            stop.set()
        n = sum(r.result() for r in runs)
        one = (cpu_ms(api.pid) - before) / n
        print(f"{n} patches of 200,000 keys, {one:.0f} ms of CPU each")
        for method in ("GET", "PUT"):
            bound = 2 * p(rest[method], 99) + one
            print(f"{method}: at rest p50 {p(rest[method], 50):.2f}, p99 {p(rest[method], 99):.2f} ms; during the patches p50 "
                  f"{p(during[method], 50):.2f}, p99 {p(during[method], 99):.2f} ms of {len(during[method])}; bound of p99 {bound:.0f} ms")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20)
