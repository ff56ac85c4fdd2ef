# SPDX-License-Identifier: Apache-2.0
"""The example examples/shards.c: work divided over processes by Leases, on a real server."""
import re
import signal
import subprocess

import pytest
from holdfastd import ROOT, Process, wait_until
from test_embedding import Installed

N_SHARDS = 8
LEASES, CONFIGMAPS = "/registry/leases/default/jobs-", "/registry/configmaps/default/jobs-"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    installed = Installed(tmp_path_factory.mktemp("installed"))
    return installed, installed.build(ROOT / "examples" / "shards.c", installed.directory / "shards")


def lease_of(event):
    """Returns the number of the shard whose Lease was written, and the new holder."""
    number = event["key"].removeprefix(LEASES)
    if not number.isdigit():
        return None, None
    return int(number), event["object"]["spec"].get("holderIdentity") or "" if event["type"] == "PUT" else ""


def holders(cluster):
    """Returns the holder of each shard, read from etcd."""
    now = {}
    for event in cluster.witness.seen():
        number, holder = lease_of(event)
        if number is not None:
            now[number] = holder
    return now


def taken(cluster, mark):
    """Returns the shards that were acquired since the mark: their numbers and new holders, in order."""
    now, result = {}, []
    for index, event in enumerate(cluster.witness.seen()):
        number, holder = lease_of(event)
        if number is None:
            continue
        if holder and holder != now.get(number) and index >= mark and holder != now.get(("last", number)):
            result.append((number, holder))
        now[number] = holder
        if holder:
            now[("last", number)] = holder
    return result


def assert_fenced(cluster):
    """Checks that each write of a shard was committed while its writer held the Lease of the shard, and that a term has one writer."""
    now, writers, n = {}, {}, 0
    for event in sorted(cluster.witness.seen(), key=lambda e: e["rev"]):
        number, holder = lease_of(event)
        if number is not None:
            now[number] = holder
        elif event["key"].startswith(CONFIGMAPS) and event["type"] == "PUT":
            number, data = int(event["key"].removeprefix(CONFIGMAPS)), event["object"]["data"]
            assert data["by"] == now[number], event
            assert writers.setdefault((number, data["term"]), data["by"]) == data["by"]
            n += 1
    assert n > N_SHARDS


def is_divided(cluster, *identities):
    now = list(holders(cluster).values())
    counts = [now.count(i) for i in identities]
    return sum(counts) == N_SHARDS and max(counts) - min(counts) <= 1


def contender(cluster, shards, identity, server):
    installed, program = shards
    return cluster.add(Process([program, "jobs", identity, server.kubeconfig], cluster.directory / f"{identity}.log", env=installed.run_env))


def test_shards_are_divided_and_follow_the_processes(cluster, shards):
    server = cluster.instance("server").wait_ready()
    a, b, c = (contender(cluster, shards, i, server) for i in "abc")
    wait_until("the shards to be divided", lambda: is_divided(cluster, *"abc"))
    for number in range(N_SHARDS):
        cluster.witness.wait_for(f"a write of shard {number}", lambda e, n=number: e["key"] == f"{CONFIGMAPS}{n}")

    # A crash moves only the shards of the dead process.
    before, mark = holders(cluster), cluster.witness.mark()
    c.send(signal.SIGKILL)
    c.wait()
    wait_until("the others to have its shards", lambda: is_divided(cluster, *"ab"))
    assert sorted(n for n, _ in taken(cluster, mark)) == sorted(n for n, holder in before.items() if holder == "c")

    # A new process gets its share by hand-overs: each of its shards was released with this process as the successor.
    before, mark = holders(cluster), cluster.witness.mark()
    d = contender(cluster, shards, "d", server)
    wait_until("d to have its share", lambda: is_divided(cluster, *"abd"))
    moved = taken(cluster, mark)
    assert len(moved) == N_SHARDS // 3 and {holder for _, holder in moved} == {"d"}
    events = cluster.witness.seen()[mark:]
    for number, _ in moved:
        writes = [e for e in events if e["key"] == f"{LEASES}{number}"]
        at = next(i for i, e in enumerate(writes) if lease_of(e)[1] == "d")
        assert lease_of(writes[at - 1])[1] == ""
        assert writes[at - 1]["object"]["metadata"]["annotations"]["holdfast.dev/successor"] == "d"

    # A stop gives its shards to the others, and nothing else moves.
    before, mark = holders(cluster), cluster.witness.mark()
    a.send(signal.SIGTERM)
    assert a.wait() == 0, a.log_text()
    wait_until("the others to have its shards", lambda: is_divided(cluster, *"bd"))
    assert sorted(n for n, _ in taken(cluster, mark)) == sorted(n for n, holder in before.items() if holder == "a")
    assert_fenced(cluster)
    for process in (b, d):
        process.send(signal.SIGTERM)
        assert process.wait() == 0, process.log_text()
    assert_fenced(cluster)


def test_a_paused_holder_writes_nothing_late(cluster, shards):
    server = cluster.instance("server").wait_ready()
    a, b = (contender(cluster, shards, i, server) for i in "ab")
    wait_until("the shards to be divided", lambda: is_divided(cluster, *"ab"))
    a.send(signal.SIGSTOP)
    wait_until("b to have all", lambda: is_divided(cluster, "b"))
    a.send(signal.SIGCONT)
    wait_until("a to have its share again", lambda: is_divided(cluster, *"ab"))
    for number in (n for n, holder in holders(cluster).items() if holder == "a"):
        cluster.witness.wait_for(f"a's write of shard {number}", lambda e, n=number: e["key"] == f"{CONFIGMAPS}{n}" and e["object"]["data"]["by"] == "a",
                                 cluster.witness.mark())
    assert_fenced(cluster)
    for process in (a, b):
        process.send(signal.SIGTERM)
        assert process.wait() == 0, process.log_text()


def test_the_documentation_shows_the_example(shards):
    """Every line of the code in docs/embedding.md is in the example, which the other tests build and run."""
    section = (ROOT / "docs" / "embedding.md").read_text().split("## Sharded work")[1].split("\n## ")[0]
    code = [" ".join(line.split()) for line in re.findall(r"^    (.*\S)", section, re.M)]
    example = " ".join((ROOT / "examples" / "shards.c").read_text().split())
    assert len(code) > 5 and [line for line in code if line not in example] == []


def test_mistakes_are_named(shards, tmp_path):
    installed, program = shards
    config = tmp_path / "config"
    config.write_text('{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],'
                      '"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}')
    done = subprocess.run([program, "x" * 64, "a", config], env=installed.run_env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the name must have 1 to 63 bytes" in done.stderr
