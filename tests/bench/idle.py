# SPDX-License-Identifier: Apache-2.0
"""idle.py [SECONDS]: how fast an instance is ready; what it costs when idle (resident memory, CPU per second over a minute), beside
what its libraries alone cost in a program that does nothing else (library-floor.c); and the server's CPU per Lease GET and PUT with 64 in
flight, beside a bare loopback request (GET /version) of the same run.

CPU is the kernel's accounting of the process, so that other load of the machine matters little; several runs, and their median."""
import json
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

LOAD = holdfastd.BUILD / "tests" / "lease-load"
FLOOR = holdfastd.BUILD / "tests" / "bench" / "library-floor"


def precise_cpu_ms(pid):
    return holdfastd.cpu_ns(pid) / 1e6


def resident_kib(pid, field="VmRSS"):
    return int(re.search(field + r":\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def load(instance, verb, n):
    out = subprocess.run([LOAD, instance.kubeconfig, verb, "64", str(n), str(instance.pid)], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr + out.stdout
    return json.loads(out.stdout)


def bare(instance, n):
    """CPU per GET /version, which the same server serves from memory over the same loopback."""
    before = precise_cpu_ms(instance.pid)
    subprocess.run(["h2load", "-n", str(n), "-c", "1", "-m", "64", instance.url + "/version"], check=True, capture_output=True)
    return (precise_cpu_ms(instance.pid) - before) * 1000 / n


def start(cluster, name):
    """Starts an instance. Returns it and the time in ms until it reported that it was ready."""
    log = cluster.directory / f"{name}.log"
    said = log.read_text().count("ready: ") if log.exists() else 0
    before = time.monotonic()
    instance = cluster.instance(name, fast=False)
    while instance.log_text().count("ready: ") == said:
        assert instance.alive(), instance.log_text()
        time.sleep(0.001)
    return instance, (time.monotonic() - before) * 1000


def readiness(n=5):
    """Start times with an empty store and no certificates, and with a store and a directory that
    were used before."""
    empty, filled = [], []
    for _ in range(n):
        with holdfastd.Cluster(with_witness=False) as cluster:
            for times in (empty, filled):
                instance, took = start(cluster, "i")
                times.append(took)
                instance.send(signal.SIGTERM)
                instance.wait()
    return empty, filled


def spread(values, digits=0):
    return f"median {statistics.median(values):.{digits}f} ({', '.join(f'{v:.{digits}f}' for v in sorted(values))})"


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    empty, filled = readiness()
    print(f"ready in ms: {spread(empty)} on an empty store, making its certificates; {spread(filled)} afterwards")
    with holdfastd.Cluster(with_witness=False) as cluster:
        instance, _ = start(cluster, "i")
        time.sleep(5)
        begin, before = time.monotonic(), precise_cpu_ms(instance.pid)
        time.sleep(seconds)
        used = (precise_cpu_ms(instance.pid) - before) / (time.monotonic() - begin)
        resident = {field: resident_kib(instance.pid, field) / 1024 for field in ("VmRSS", "RssAnon", "RssFile")}
        print(f"idle, leading, no client, for {seconds} s: {resident['VmRSS']:.1f} MB resident ({resident['RssAnon']:.1f} MB its own, "
              f"{resident['RssFile']:.1f} MB of its files, which processes share), {used:.2f} ms CPU per second")
        loaded, ready = (int(kib) / 1024 for kib in subprocess.run([FLOOR], capture_output=True, text=True, check=True).stdout.split())
        print(f"the libraries alone: {loaded:.1f} MB resident when they are loaded, {ready:.1f} MB when they are initialized")
        baseline = None
        if shutil.which("h2load"):
            baseline = statistics.median(bare(instance, 50000) for _ in range(3))
            print(f"bare loopback request (GET /version, 64 in flight): {baseline:.1f} us CPU")
        for verb in ("get", "put"):
            load(instance, verb, 2000)
            results = [load(instance, verb, 20000) for _ in range(5)]
            cpu = [r["cpu_us_per_request"] for r in results]
            rate = statistics.median(r["requests"] / r["seconds"] for r in results)
            print(f"Lease {verb.upper()}, 64 in flight, us of the server's CPU: {spread(cpu, 1)}"
                  + (f", {statistics.median(cpu) / baseline:.1f} bare requests" if baseline else "") + f"; {rate:.0f}/s")
        instance.send(signal.SIGTERM)
        instance.wait()


if __name__ == "__main__":
    main()
