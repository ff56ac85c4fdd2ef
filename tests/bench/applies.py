# SPDX-License-Identifier: Apache-2.0
"""applies.py [CONFIGMAPS] [ROUNDS]: server-side applies per second, and the CPU of the server for each, with 64 in flight: ConfigMaps of
five keys are created by apply, then each round changes a key of each by apply and by PUT, in turns, and applies once more what is there
already. Prints the medians of the rounds, over etcd and over a file of SQLite."""
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from idle import start  # noqa: E402

LOAD = holdfastd.BUILD / "tests" / "bench" / "apply-load"


def load(instance, mode, n, number):
    done = subprocess.run([LOAD, instance.kubeconfig, mode, "64", str(n), str(number), str(instance.pid)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    for name, store in (("etcd", holdfastd.Etcd), ("SQLite", holdfastd.SqliteFile)):
        with holdfastd.Cluster(with_witness=False, etcd=store) as cluster:
            instance = start(cluster, "i")[0]
            results = {"create": [load(instance, "create", n, 0)], "apply": [], "put": [], "same": []}
            for i in range(rounds):
                results["apply"].append(load(instance, "apply", n, 2 * i + 1))
                results["same"].append(load(instance, "same", n, 2 * i + 1))
                results["put"].append(load(instance, "put", n, 2 * i + 2))
        for mode, found in results.items():
            rate = statistics.median(result["requests"] / result["seconds"] for result in found)
            cpu = statistics.median(result["cpu_us_per_request"] for result in found)
            print(f"{name}, {mode}: {rate:,.0f}/s, {cpu:.0f} us of CPU each")


if __name__ == "__main__":
    main()
