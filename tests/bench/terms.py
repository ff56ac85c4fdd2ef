# SPDX-License-Identifier: Apache-2.0
"""terms.py [N]: runs N terms (default 10,000) in one process against a real holdfastd, and
measures what they leave behind in memory, handlers, threads and descriptors.

Fails if the memory of the last tenth is more than 5 % above that of the second, or if there are
not one handler during the terms and none afterwards.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402

PROGRAM = holdfastd.BUILD / "tests" / "bench" / "terms"


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    with holdfastd.Cluster(with_witness=False) as cluster:
        instance = cluster.instance("i", fast=False).wait_ready()
        out = subprocess.run([PROGRAM, instance.kubeconfig, str(n)], capture_output=True, text=True, check=False)
        assert out.returncode == 0, out.stderr + out.stdout
        instance.send(15)
        instance.wait()
    r = json.loads(out.stdout)
    rss = r["rss_kib"]
    print(f"{n} terms in {r['seconds']:.1f} s, {r['seconds'] / n * 1e3:.2f} ms each; resident after each tenth, KiB: {', '.join(map(str, rss))}")
    print(f"handlers at most {r['most_handlers']}, after the stop {r['stopped']['handlers']}; threads {r['last']['threads']}, then "
          f"{r['stopped']['threads']}; descriptors {r['last']['descriptors']}, then {r['stopped']['descriptors']}")
    assert rss[-1] <= rss[1] * 1.05, "memory grows with the terms"
    assert r["most_handlers"] == 1 and r["stopped"]["handlers"] == 0


if __name__ == "__main__":
    main()
