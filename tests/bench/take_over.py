# SPDX-License-Identifier: Apache-2.0
"""take_over.py [N]: how long after a killed leader's Lease has expired the standby leads (default 5 kills, Leases of 4 s).

The witness, a separate process that watches etcd, times the acquire. The expiry is reported in two
ways: as the witness saw it (the arrival of the last renewal plus the duration that it recorded),
and as the standby observed it, which is what the standby must wait for (from /debug/leader). Before
each kill both instances run and have seen a renewal. Between the kills bare writes (300 bytes) are
measured: one after the other, and single ones that are due every two seconds, because a take-over
also meets an idle etcd on an idle machine.
"""
import pathlib
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from hand_over import bare_writes  # noqa: E402


def last_renewal(witness):
    return [e for e in witness.seen() if e["key"] == holdfastd.LEASE][-1]


def one_kill(cluster, witness, instances):
    """Kills the leader. Returns the time in ms from the expiry to the take-over, by the expiry
    of the witness and by that of the standby."""
    old = witness.holder().split("_")[1]
    new = "b" if old == "a" else "a"
    mark = witness.mark()
    witness.wait_holder(lambda h: f"_{old}_" in h, "a renewal that both see", mark)
    instances[old].send(signal.SIGKILL)
    instances[old].wait()
    renewal = last_renewal(witness)
    ahead = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    expiry = instances[new].leader()["freeAtBootSeconds"] - ahead
    taken = witness.wait_holder(lambda h: f"_{new}_" in h, "the take-over", mark)
    cluster.started.remove(instances[old])
    instances[old].end()
    instances[old] = cluster.instance(old).wait_ready()
    return (taken["t"] - renewal["t"]) / 1e6 - renewal["object"]["spec"]["leaseDurationSeconds"] * 1e3, taken["t"] / 1e6 - expiry * 1e3


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    gaps, own, bare, single = [], [], [], []
    with holdfastd.Cluster() as cluster:
        witness = cluster.witness
        instances = {"a": cluster.instance("a").wait_ready()}
        witness.wait_holder(lambda h: h != "")
        instances["b"] = cluster.instance("b").wait_ready()
        for _ in range(n):
            bare += bare_writes(cluster, 50)
            single += bare_writes(cluster, 5, 2000)
            seen, observed = one_kill(cluster, witness, instances)
            gaps.append(seen)
            own.append(observed)
        for instance in instances.values():
            instance.send(signal.SIGTERM)
            instance.wait()
    print(f"bare etcd write: p50 {statistics.median(bare):.3f} ms one after the other, {statistics.median(single):.3f} ms (max {max(single):.3f}) "
          "due two seconds apart")
    for by, values in (("witness", gaps), ("standby", own)):
        print(f"take-over after expiry as the {by} saw it, {n} kills: p50 {statistics.median(values):.3f} ms, max {max(values):.3f} ms "
              f"({', '.join(f'{value:.3f}' for value in values)}); in single bare writes (p50): {statistics.median(values) / statistics.median(single):.2f}")


if __name__ == "__main__":
    main()
