# SPDX-License-Identifier: Apache-2.0
"""stores.py [ROUNDS] [REQUESTS]: the same instance over a file of SQLite and over etcd, in turns: Lease PUTs per second with 64 in flight,
the CPU of the server for each, and beside them the updates per second of a table with one commit for each row (row-per-commit.c), and of
single commits of SQLite with a wait for the disk each. How long a PUT takes while old versions are removed is measured by bench-store.c; how
large the file becomes is asserted by tests/unit/test-store-sqlite.c.

Each figure is the median of the rounds; the rates are to be compared within one run, because they depend on the disk."""
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from idle import load, precise_cpu_ms, resident_kib, spread, start  # noqa: E402

ROW_PER_COMMIT = holdfastd.BUILD / "tests" / "bench" / "row-per-commit"


def row_per_commit():
    with tempfile.TemporaryDirectory(dir=holdfastd.BUILD) as directory:
        done = subprocess.run([ROW_PER_COMMIT, f"{directory}/rows.db", "2"], capture_output=True, text=True, check=True)
        return float(done.stdout)


def bare_commits(n=300):
    """Commits of one row per second by one connection: what the disk allows."""
    with tempfile.TemporaryDirectory(dir=holdfastd.BUILD) as directory:
        db = sqlite3.connect(f"{directory}/bare.db", isolation_level=None)
        db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, value BLOB)")
        before = time.monotonic()
        for _ in range(n):
            db.execute("INSERT INTO t(value) VALUES(?)", (b"v" * 400,))
        took = time.monotonic() - before
        db.close()
        return n / took


def idle(instance, seconds=10):
    time.sleep(5)
    begin, before = time.monotonic(), precise_cpu_ms(instance.pid)
    time.sleep(seconds)
    used = (precise_cpu_ms(instance.pid) - before) / (time.monotonic() - begin)
    return f"{resident_kib(instance.pid) / 1024:.1f} MB resident, {used:.2f} ms CPU per second"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    requests = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.Etcd) as on_etcd, holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as on_file:
        instances = {"SQLite": start(on_file, "i")[0], "etcd": start(on_etcd, "i")[0]}
        for name, instance in instances.items():
            print(f"idle over {name}: {idle(instance)}")
            load(instance, "put", 2000)
        results = {name: [] for name in instances}
        rows, commits = [], []
        for _ in range(rounds):
            for name, instance in instances.items():
                results[name].append(load(instance, "put", requests))
            rows.append(row_per_commit())
            commits.append(bare_commits())
        rates = {name: [r["requests"] / r["seconds"] for r in done] for name, done in results.items()}
        for name, done in results.items():
            print(f"Lease PUT over {name}, 64 in flight: {spread(rates[name])} per second; "
                  f"{spread([r['cpu_us_per_request'] for r in done], 1)} us of the server's CPU")
        print(f"one commit per row, 64 at once: {spread(rows)} per second; the instance over SQLite does "
              f"{statistics.median(rates['SQLite']) / statistics.median(rows):.1f} times as many")
        print(f"bare commits of SQLite, one after the other: {spread(commits)} per second")
        for instance in instances.values():
            instance.send(signal.SIGTERM)
            instance.wait()


if __name__ == "__main__":
    main()
