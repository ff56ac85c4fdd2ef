# SPDX-License-Identifier: Apache-2.0
"""electors.py [N [SECONDS]]: N electors (default 1,000) in one process, which lead for SECONDS (default 30) under as many Leases of a
real holdfastd: its CPU, memory, threads and sockets, the server's CPU, and CPU per renewal beside a bare PUT by the same client at the
same rate in the same run."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

PROGRAM = holdfastd.BUILD / "tests" / "bench" / "many-electors"


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    with holdfastd.Cluster(with_witness=False) as cluster:
        instance = cluster.instance("i", fast=False).wait_ready()
        out = subprocess.run([PROGRAM, instance.kubeconfig, str(n), str(seconds), str(instance.pid), str(cluster.etcd.pid)], capture_output=True, text=True, check=False)
        assert out.returncode == 0, out.stderr + out.stdout
        instance.send(15)
        instance.wait()
    sys.stderr.write(out.stderr)
    r = json.loads(out.stdout)
    lead, bare, before, leading = r["lead"], r["bare"], r["before"], r["leading"]
    print(f"{n} electors: all lead after {r['acquire']['seconds']:.2f} s; released after {r['release']['seconds']:.2f} s, by {r['release']['calls']} calls; "
          f"terms lost {r['losses']}, watches begun {r['watches']}")
    print(f"resident {leading['rss_kib'] / 1024:.1f} MB, {(leading['anon_kib'] - before['anon_kib']) / n:.2f} KiB per elector over the "
          f"{before['rss_kib'] / 1024:.1f} MB before; {leading['threads']} threads, {leading['sockets']} sockets; {r['after']['rss_kib'] / 1024:.1f} MB after")
    print(f"leading: {lead['updates'] / lead['seconds']:.0f} renewals/s of {lead['calls'] / lead['seconds']:.0f} calls/s; CPU per second: "
          f"{lead['own_cpu'] / lead['seconds'] * 1e3:.1f} ms of the electors, {lead['server_cpu'] / lead['seconds'] * 1e3:.1f} ms of the server")
    release = r["release"]
    cpu = {who: release[f"{who}_cpu"] for who in ("own", "server", "store")}
    print(f"CPU of the release, per Lease: {cpu['own'] / n * 1e6:.0f} us of the electors, {cpu['server'] / n * 1e6:.0f} us of the server, "
          f"{cpu['store'] / n * 1e6:.0f} us of etcd; in all {sum(cpu.values()):.2f} s")
    for who, field in (("electors", "own_cpu"), ("server", "server_cpu")):
        renewal, put = lead[field] / lead["updates"] * 1e6, bare[field] / bare["updates"] * 1e6
        print(f"CPU of the {who} per renewal {renewal:.0f} us, per bare PUT {put:.0f} us: {renewal / put:.2f}")
    print(f"bare PUTs: {bare['updates'] / bare['seconds']:.0f}/s, failed {r['failed']}")


if __name__ == "__main__":
    main()
