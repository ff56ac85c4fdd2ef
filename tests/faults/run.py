#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--seed N] [--duration 30m] [--save FILE] | --check FILE | --schedule: a run under faults.

Three etcd members and three instances of holdfastd; clients that create, read, update, patch, delete,
list and watch a few ConfigMaps (also with initial events), and write under the fence of a Lease that
they take from each other; and the faults of schedule.py. At the end everything is mended, and all must work again: each instance
is ready, each watcher has seen the newest write. Then checker.py judges the history.

The seed is printed; it repeats the schedule and what the clients ask, not what it meets. A history
with an anomaly is saved, and --check judges it again. Exit status 1: there was an anomaly.
"""
import argparse
import collections
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

# pylint: disable=wrong-import-position
import checker
import history as history_module
import schedule
from clients import CONFIGMAPS, KEYS, Api, Client, Recorder
from contenders import Contender, Sweeper
from holdfastd import Cluster, wait_until
from injector import Faults
from watchers import ListWatcher, Watcher
from world import Ender, World

PER_INSTANCE = 3  # clients
SETTLE = 120      # seconds for everything to work again


class Run:
    """The clients of a run, and what they share."""

    def __init__(self, world, seed):
        self.world, self.urls, self.seed = world, world.urls, seed
        self.context = world.instances[0].context()
        self.recorder = Recorder(seed)
        self.quiet, self.stop = threading.Event(), threading.Event()
        self.clients, self.watchers, self.contenders = [], [], []
        for i in range(world.n):
            self.clients += [Client(self, f"c{i}{j}", i, seed) for j in range(PER_INSTANCE)]
            self.watchers += [Watcher(self, f"w{i}", i, seed),
                              Watcher(self, f"n{i}", i, seed, key=KEYS[i])]
            contender = Contender(self, f"f{i}", i, seed)
            self.contenders += [contender, Sweeper(self, f"s{i}", i, seed, contender)]
        self.watchers += [Watcher(self, f"r{j}", 0, seed, roams=True) for j in range(2)]
        self.watchers += [ListWatcher(self, f"i{i}", i, seed, roams=i == 2) for i in range(world.n)]

    def threads(self):
        return [*self.clients, *self.contenders, *self.watchers]

    def errors(self):
        return [f"{t.name}: {t.error!r}" for t in self.threads() if t.error]

    def mark(self):
        """Writes each key once more, after which all is quiet. Returns the revision of the last
        write."""
        api, newest = Api(self.urls, 0, self.context), 0

        def write(key):
            client = self.clients[0]
            value = client.new_value()
            t0 = time.monotonic_ns()
            code, reply = api.ask("PUT", f"{CONFIGMAPS}/{key}", client.body(key, value))
            op = "update"
            if code == 404:
                client.record(op, key, t0, code, reply, value)
                value, op, t0 = client.new_value(), "create", time.monotonic_ns()
                code, reply = api.ask("POST", CONFIGMAPS, client.body(key, value))
            client.record("create" if code == 201 else op, key, t0, code, reply, value)
            return int(reply["metadata"]["resourceVersion"]) if code in (200, 201) else 0
        for key in KEYS:
            newest = wait_until(f"a write of {key}", lambda k=key: write(k), limit=SETTLE)
        return newest


def settle(run, world):
    """Ends all faults, and yields what does not work again in time: each is a problem."""
    world.heal()
    newest = 0
    try:
        wait_until("all instances to be ready", world.ready, limit=SETTLE, every=0.2)
        newest = run.mark()
    except AssertionError as error:
        yield str(error)
    for watcher in run.watchers if newest else ():
        try:
            wait_until(f"watcher {watcher.name} to see {newest}", lambda w=watcher: seen_all(w, newest),
                       limit=SETTLE, every=0.2)
        except AssertionError as error:
            yield f"{error}; it saw {watcher.newest}"


def seen_all(watcher, newest):
    """Whether the watcher has seen the last write. A watcher of one name gets only the last write
    of that name, which is one of the newest len(KEYS), or a bookmark."""
    if watcher.key:
        return watcher.newest >= newest - len(KEYS) - 1
    return watcher.newest >= newest


def troubles(run, world):
    """What went wrong besides what clients were told."""
    yield from run.errors()
    for name, status, log in world.ended:
        if status != 0:
            yield f"{name} ended by itself with {status}:\n{log}"
    for instance in world.instances:
        for line in instance.log_text().splitlines():
            if "the store was replaced" in line:  # nobody replaced it
                yield line


def drive(seed, duration, say=print):
    """A run. Returns its history, its problems, and a summary."""
    begun = time.monotonic()
    with Cluster(with_witness=False, prefix="holdfast-faults-",
                 etcd=lambda d: Ender(lambda: None, d / "none.log")) as cluster:
        world = World(cluster)
        say(f"started after {time.monotonic() - begun:.0f} s")
        run = Run(world, seed)
        for thread in run.threads():
            thread.start()
        begin = time.monotonic()
        faults = Faults(world, schedule.make(seed, duration), begin,
                        lambda record: run.recorder.add("fault", record))
        while not run.errors() and (faults.tick() or time.monotonic() < begin + duration):
            time.sleep(0.05)
        run.quiet.set()
        problems = list(settle(run, world))
        run.stop.set()
        for thread in run.threads():
            thread.join(30)
        problems += troubles(run, world)
        run.recorder.history.etcd = world.witness.finish(world.witness.revision())
        if problems:
            keep_logs(cluster, seed)
        return run.recorder.history, problems, summary(run.recorder.history, faults.counts)


def keep_logs(cluster, seed):
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"faults-{seed}-logs-"))
    for log in cluster.directory.glob("*.log"):
        (directory / log.name).write_bytes(log.read_bytes())
    print(f"the logs are in {directory}")


def summary(history, faults):
    ops = collections.Counter(f"{op['op']} {op['outcome']}" for op in history.op)
    n_events = sum(s[0] == "event" for w in history.watch for s in w["steps"])
    n_lists = sum(s[0] == "list" for w in history.watch for s in w["steps"])
    n_initial = sum(s[0] == "initial" for w in history.watch for s in w["steps"])
    n_stale = sum(op["cause"] == "StaleLeaderTerm" for op in history.op)
    text = [f"{len(history.op)} requests, {len(history.listing)} lists, {len(history.take)} take-overs, "
            f"{n_stale} stale writes refused, {len(history.sweep)} sweeps; "
            f"{n_events} events in {n_lists} watches after lists and {n_initial} with initial events; "
            f"{len(history.etcd)} revisions of etcd",
            ", ".join(f"{k} {n}" for k, n in sorted(ops.items())),
            lags(history),
            f"{sum(faults.values())} faults: " + ", ".join(f"{k} {n}" for k, n in sorted(faults.items()))]
    return "\n".join(text)


def lags(history):
    """How long after an instance acknowledged a write its own watch delivered it, in ms: the 99th
    percentile and the greatest. This is not judged, but it shows a watch that stands still while all
    else goes on."""
    text = []
    for i in range(3):
        arrived = {s[3]: s[5] for w in history.watch if w["client"] == f"w{i}"
                   for s in reversed(w["steps"]) if s[0] == "event"}
        late = sorted(max(0, arrived[op["rv"]] - op["t1"]) / 1e6 for op in history.op
                      if op["instance"] == i and op["outcome"] == "ok" and op["value"]
                      and op["rv"] in arrived)
        if late:
            text.append(f"{late[len(late) * 99 // 100]:.0f} {late[-1]:.0f}")
    return "from a write's reply to its event by the same instance, p99 and greatest, ms: " + ", ".join(text)


def judge(history, problems, path, say=print):
    """Prints what is wrong, and saves the history if anything is. Returns whether all is well."""
    begun = time.monotonic()
    found = checker.check(history)
    say(f"judged in {time.monotonic() - begun:.1f} s")
    for line in [*problems, *found]:
        say(f"ANOMALY seed {history.seed}: {line}")
    if found or problems or path:
        path = path or pathlib.Path(tempfile.gettempdir()) / f"faults-{history.seed}.jsonl"
        history.save(path)
        say(f"the history is in {path}")
    return not found and not problems


def seconds(text):
    n, unit = re.fullmatch(r"(\d+)([smh]?)", text).groups()
    return int(n) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--duration", type=seconds, default=seconds("30m"))
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--schedule", action="store_true")
    args = parser.parse_args()
    if args.check:
        return 0 if judge(history_module.load(args.check), [], args.check) else 1
    print(f"seed {args.seed}, {args.duration} s", flush=True)
    if args.schedule:
        print("\n".join(map(str, schedule.make(args.seed, args.duration))))
        return 0
    history, problems, text = drive(args.seed, args.duration, lambda t: print(t, flush=True))
    print(text)
    return 0 if judge(history, problems, args.save) else 1


if __name__ == "__main__":
    sys.exit(main())
