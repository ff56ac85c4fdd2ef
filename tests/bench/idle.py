# SPDX-License-Identifier: Apache-2.0
"""idle.py: what an idle instance costs (resident memory, CPU per second over a minute), how fast it is ready, and the server's CPU
per Lease GET and PUT with 64 in flight, beside a bare loopback request (GET /version) of the same run."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import harness  # noqa: E402

LOAD = harness.BUILD / "tests" / "lease-load"


def cpu_ms(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def precise_cpu_ms(pid):
    """Nanosecond accounting of all threads, where the kernel has it."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


def resident_kib(pid, field="VmRSS"):
    return int(re.search(field + r":\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def load(instance, verb, n):
    out = subprocess.run([LOAD, instance.kubeconfig, verb, "64", str(n), str(instance.pid)], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr + out.stdout
    return json.loads(out.stdout)


def bare(instance, n):
    before = cpu_ms(instance.pid)
    subprocess.run(["h2load", "-n", str(n), "-c", "1", "-m", "64", instance.url + "/version"], check=True, capture_output=True)
    return (cpu_ms(instance.pid) - before) * 1000 / n


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with harness.Cluster(with_witness=False) as cluster:
        times = []
        for i in range(5):
            before = time.monotonic()
            instance = cluster.instance(f"i{i}", fast=False)
            while "ready: " not in instance.said():
                assert instance.alive(), instance.said()
                time.sleep(0.001)
            times.append((time.monotonic() - before) * 1000)
            if i < 4:
                instance.send(15)
                instance.wait()
        instance.wait_ready()
        print(f"ready: {times[0]:.0f} ms on an empty store with no certificates; then {', '.join(f'{t:.0f}' for t in times[1:])} ms")
        time.sleep(5)
        begin, before = time.monotonic(), precise_cpu_ms(instance.pid)
        time.sleep(seconds)
        used = (precise_cpu_ms(instance.pid) - before) / (time.monotonic() - begin)
        print(f"idle: {resident_kib(instance.pid) / 1024:.1f} MB resident ({resident_kib(instance.pid, 'RssAnon') / 1024:.1f} MB anonymous), "
              f"{used:.2f} ms CPU per second")
        if shutil.which("h2load"):
            print(f"bare loopback request (GET /version, 64 in flight): {bare(instance, 50000):.1f} us CPU")
        for verb in ("get", "put"):
            load(instance, verb, 2000)
            result = load(instance, verb, 30000)
            print(f"Lease {verb.upper()}, 64 in flight: {result['cpu_us_per_request']:.1f} us CPU, {result['requests'] / result['seconds']:.0f}/s")
        instance.send(15)
        instance.wait()


if __name__ == "__main__":
    main()
