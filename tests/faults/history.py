# SPDX-License-Identifier: Apache-2.0
"""What happened in a run: the record that the clients, the watchers and the witness write, and that
the checker reads. It is saved as JSON lines, packed if the file's name ends with .gz.

Times are monotonic nanoseconds of one clock. `rv` is a resourceVersion as a number, 0 = unknown.

op     one request for one key. op: create, update, patch, delete, get. outcome: "ok", "fail" (certainly
       not done), "unknown". value: what it writes, unique among all writes of the run. base: the value
       that must be there for it to succeed (None = any). rv: of the result. seen: of a get, the value
       (None = 404). code: of the response, 0 = none. cause: of a refusal. term, lease: of its fence.
listing all keys at once: rv, items {name: [rv, value]}; always consistent and "ok". Of a list in pages
       the end is that of its first page.
fresh  a get that may be from a cache: seen, rv, and least, the version that it must not be older than.
take   a Lease was taken: lease, outcome, rv (which is the term), holder.
sweep  a fenced deletecollection that matches nothing: lease, term, outcome.
watch  a chain of watches without a gap between them: name (of the one object, None = all), steps, each
       one of ["list", rv, {name: [rv, value]}], ["open", instance, rv], ["event", type, name, rv,
       value, time], ["bookmark", rv], ["initial", rv of the bookmark, [[type, name, rv, value]], the
       revision that was asked for as text, t0] (all the initial events of a watch that begins there).
etcd   an event from etcd itself: t, rev, key, version, type (PUT, DELETE), value, term, lease.
fault  what was done to whom, and when.
"""
import dataclasses
import gzip
import json

KINDS = ("op", "listing", "fresh", "take", "sweep", "watch", "etcd", "fault")


def open_file(path, mode):
    return (gzip.open if str(path).endswith(".gz") else open)(path, mode, encoding="utf-8")


@dataclasses.dataclass
class History:
    seed: int = 0
    op: list = dataclasses.field(default_factory=list)
    listing: list = dataclasses.field(default_factory=list)
    fresh: list = dataclasses.field(default_factory=list)
    take: list = dataclasses.field(default_factory=list)
    sweep: list = dataclasses.field(default_factory=list)
    watch: list = dataclasses.field(default_factory=list)
    etcd: list = dataclasses.field(default_factory=list)
    fault: list = dataclasses.field(default_factory=list)

    def save(self, path):
        with open_file(path, "wt") as out:
            print(json.dumps({"seed": self.seed}), file=out)
            for kind in KINDS:
                for record in getattr(self, kind):
                    print(json.dumps([kind, record], separators=(",", ":")), file=out)

    def copy(self):
        """One that can be changed without changing this one."""
        return parse(json.dumps([kind, record]) for kind in KINDS for record in getattr(self, kind))


def parse(lines, seed=0):
    history = History(seed)
    for line in lines:
        kind, record = json.loads(line)
        getattr(history, kind).append(record)
    return history


def load(path):
    with open_file(path, "rt") as lines:
        return parse(lines, json.loads(next(lines))["seed"])


WRITER_LEASE = "kube-system/holdfast-controllers"


def value_of(name, rv, data):
    """The value of a ConfigMap's data. The controller test-writer writes no value, but its term and a
    count, which begins again with each term's thread: the version makes it the only one."""
    if name == "test-writer":
        return f"writer {data['term']} {data['count']} {rv}"
    return data.get("v")
