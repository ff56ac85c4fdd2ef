# SPDX-License-Identifier: Apache-2.0
"""hand_over.py [N]: the gap of N planned hand-overs (default 200), in bare etcd writes of the same run.

The gap is from the revision of the release to the first write of the new term's controllers, both as received by the witness, a separate
process that watches etcd. Bare writes (one put after the other, 300 bytes) are measured between the hand-overs.
"""
import pathlib
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402


def bare_writes(cluster, n, pause_ms=0):
    """Durations in ms of n writes of 300 bytes, one after the other, each after a pause."""
    out = subprocess.run([holdfastd.WITNESS, cluster.etcd.url, "/bare", "--bare-writes", str(n), str(pause_ms)], capture_output=True, check=True, text=True)
    return [int(line) / 1e6 for line in out.stdout.split()]


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p / 100))]


def in_a_row(values, k):
    """Durations of k writes one after the other, because slow moments of the disk hit such a
    sequence as they hit a hand-over."""
    return [sum(values[i:i + k]) for i in range(0, len(values) - k + 1, k)]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    env = {"WRITER_PAUSE_MS": "1000"}
    gaps, acquired, bare = [], [], []
    with holdfastd.Cluster() as cluster:
        witness = cluster.witness
        start = lambda name: cluster.instance(name, binary=holdfastd.WRITER, env=env, fast=False).wait_ready()
        instances = {"a": start("a")}
        witness.wait_holder(lambda h: h != "")
        instances["b"] = start("b")
        for i in range(n):
            if i % 4 == 0:
                bare += bare_writes(cluster, 20)
            old = witness.holder().split("_")[1]
            new = "b" if old == "a" else "a"
            mark = witness.mark()
            # This process must not run during the measurement: it reads the events after the old
            # leader has ended.
            witness.awake.clear()
            instances[old].send(signal.SIGTERM)
            assert instances[old].wait() == 0, instances[old].log_text()
            witness.awake.set()
            released = witness.wait_holder(lambda h: h == "", "the release", mark)
            taken = witness.wait_holder(lambda h: f"_{new}_" in h, "the next leader", mark)
            first = witness.wait_for("its first write", lambda e: e["rev"] > taken["rev"] and e["key"].endswith("/test-writer")
                                     and f"_{new}_" in e["object"]["data"]["identity"], mark)
            cluster.started.remove(instances[old])
            instances[old].end()
            acquired.append((taken["t"] - released["t"]) / 1e6)
            gaps.append((first["t"] - released["t"]) / 1e6)
            instances[old] = start(old)
            if sys.stderr.isatty():
                print(f"\r{i + 1}/{n}", end="", file=sys.stderr)
        for instance in instances.values():
            instance.send(signal.SIGTERM)
            instance.wait()
    median = statistics.median(bare)
    print(f"\nbare etcd write: p50 {median:.3f} ms, p99 {percentile(bare, 99):.3f} ms ({len(bare)} writes)")
    two, five = in_a_row(bare, 2), in_a_row(bare, 5)
    print(f"two bare writes in a row, which a hand-over has in it: p50 {percentile(two, 50):.3f} ms, p99 {percentile(two, 99):.3f} ms")
    print(f"five bare writes in a row, the bound: p50 {percentile(five, 50):.3f} ms, p99 {percentile(five, 99):.3f} ms, max {max(five):.3f} ms")
    print(f"release to acquire, {n} hand-overs: p50 {percentile(acquired, 50):.3f} ms, p99 {percentile(acquired, 99):.3f} ms")
    print(f"release to first write: p50 {percentile(gaps, 50):.3f} ms, p99 {percentile(gaps, 99):.3f} ms, max {max(gaps):.3f} ms")
    print(f"of five bare writes in a row: p50 {percentile(gaps, 50) / percentile(five, 50):.2f}, p99 {percentile(gaps, 99) / percentile(five, 99):.2f}")
    print(f"in single bare writes (p50): p50 {percentile(gaps, 50) / median:.2f}, p99 {percentile(gaps, 99) / median:.2f}; "
          f"p99 in p99s: {percentile(gaps, 99) / percentile(bare, 99):.2f}")


if __name__ == "__main__":
    main()
