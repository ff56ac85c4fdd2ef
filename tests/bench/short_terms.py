# SPDX-License-Identifier: Apache-2.0
"""short_terms.py [MINUTES [KILLS]]: Leases of one second: lease duration 1 s, renew deadline 600 ms, retry period 150 ms.

Two instances contend while both processors are busy: a program that only computes for each of them, and a client that reads and writes
an object all the time. For MINUTES (default 2) no term may be lost; the longest pause between two renewals is printed. Then, still under
load, the leader is killed KILLS times (default 5), as by a power cut, and the time from its last renewal to the take-over is printed, as
the witness saw both. At the end, without load, what such a Lease costs beside one of 15 s: CPU of the leader, and writes to etcd."""
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from take_over import last_renewal  # noqa: E402

SHORT = ("--leader-elect-lease-duration=1s", "--leader-elect-renew-deadline=600ms", "--leader-elect-retry-period=150ms")
LONG = ()  # the defaults: 15 s, 10 s, 2 s
COST_SECONDS = 20


def cpu_ms(pid):
    return holdfastd.cpu_ns(pid) / 1e6


class Load:
    """Two programs that only compute, and a client."""

    def __init__(self, instance):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        self.instance, self.ending, self.n, self.errors = instance, False, 0, 0
        self.thread = threading.Thread(target=self.requests)
        self.thread.start()

    def requests(self):
        path = "/api/v1/namespaces/default/configmaps"
        while not self.ending:
            body = {"metadata": {"name": f"load-{self.n % 20}"}, "data": {"n": str(self.n)}}
            try:
                if self.instance.request("PUT", f"{path}/load-{self.n % 20}", body)[0] == 404:
                    self.instance.request("POST", path, body)
                self.n += 1
            except OSError:
                self.errors += 1
                time.sleep(0.1)

    def end(self):
        self.ending = True
        self.thread.join()
        for process in self.busy:
            process.kill()
            process.wait()


def renewals(events):
    return [e for e in events if e["key"] == holdfastd.LEASE and e["type"] == "PUT"]


def hold(witness, minutes):
    """Returns the terms that were lost, the renewals, and the longest pause between two, in ms."""
    mark, end = witness.mark(), time.monotonic() + minutes * 60
    while time.monotonic() < end:
        time.sleep(min(10, max(0, end - time.monotonic())))
    seen = renewals(witness.seen()[mark:])
    terms = {e["object"]["spec"]["leaseTransitions"] for e in seen}
    pauses = [(b["t"] - a["t"]) / 1e6 for a, b in zip(seen, seen[1:])]
    return len(terms) - 1, len(seen), max(pauses)


def kill(cluster, witness, instances, flags):
    """Returns the ms from the leader's last renewal to the take-over."""
    old = witness.holder().split("_")[1]
    new = "b" if old == "a" else "a"
    mark = witness.mark()
    witness.wait_holder(lambda h: f"_{old}_" in h, "a renewal", mark)
    instances[old].send(signal.SIGKILL)
    instances[old].wait()
    renewal = last_renewal(witness)
    taken = witness.wait_holder(lambda h: f"_{new}_" in h, "the take-over", mark)
    cluster.started.remove(instances[old])
    instances[old].end()
    instances[old] = cluster.instance(old, *flags, fast=False).wait_ready()
    return (taken["t"] - renewal["t"]) / 1e6


def cost(flags):
    """Returns the leader's CPU in ms and the writes of its Lease, a second."""
    with holdfastd.Cluster() as cluster:
        instance = cluster.instance("a", *flags, fast=False).wait_ready()
        cluster.witness.wait_holder(lambda h: h != "")
        time.sleep(2)
        mark, before = cluster.witness.mark(), cpu_ms(instance.pid)
        time.sleep(COST_SECONDS)
        used = (cpu_ms(instance.pid) - before) / COST_SECONDS
        written = len(renewals(cluster.witness.seen()[mark:])) / COST_SECONDS
        instance.send(signal.SIGTERM)
        instance.wait()
    return used, written


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with holdfastd.Cluster() as cluster:
        witness = cluster.witness
        instances = {"a": cluster.instance("a", *SHORT, fast=False).wait_ready()}
        witness.wait_holder(lambda h: h != "")
        instances["b"] = cluster.instance("b", *SHORT, fast=False).wait_ready()
        load = Load(instances["b"])
        lost, n, pause = hold(witness, minutes)
        print(f"{minutes:g} minutes under load: {lost} terms lost; {n} renewals, longest pause {pause:.0f} ms; "
              f"{load.n} writes of the client, {load.errors} failed", flush=True)
        times = []
        for _ in range(kills):
            times.append(kill(cluster, witness, instances, SHORT))
        load.end()
        for instance in instances.values():
            instance.send(signal.SIGTERM)
            instance.wait()
    if times:
        print(f"take-over after the last renewal of a killed leader: {', '.join(f'{t:.0f}' for t in times)} ms")
    (short_cpu, short_writes), (long_cpu, long_writes) = cost(SHORT), cost(LONG)
    print(f"a Lease of 1 s: {short_cpu:.2f} ms of CPU and {short_writes:.2f} writes a second; of 15 s: {long_cpu:.2f} ms and {long_writes:.2f} writes")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
