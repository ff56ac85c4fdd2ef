# SPDX-License-Identifier: Apache-2.0
"""--etcd-compaction-interval: how long etcd, or a file of SQLite, keeps old versions."""
import json
import os
import sqlite3
import subprocess

import pytest
from holdfastd import Cluster, Etcd, SqliteFile, wait_until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
KEY = "/registry/configmaps/default/c"


def old_version_is_there(store, revision):
    """Whether the store still has the version of the ConfigMap that was written at the revision."""
    if isinstance(store, SqliteFile):
        with sqlite3.connect(f"file:{store.path}?mode=ro", uri=True) as database:
            # A revision has room for 16 rows.
            return database.execute("SELECT count(*) FROM versions WHERE key = ? AND id / 16 = ?", (KEY, revision)).fetchone()[0] == 1
    done = subprocess.run(["etcdctl", f"--endpoints={store.url}", "get", KEY, f"--rev={revision}"], env={**os.environ, "ETCDCTL_API": "3"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "compacted" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.parametrize("store", [Etcd, SqliteFile])
@pytest.mark.parametrize("interval, is_kept", [("1s", False), ("0", True)])
def test_old_versions_are_kept_for_the_interval(store, interval, is_kept):
    with Cluster(with_witness=False, etcd=store) as cluster:
        a = cluster.instance("a", f"--etcd-compaction-interval={interval}").wait_ready()
        code, text = a.request("POST", CONFIGMAPS, {"metadata": {"name": "c"}})
        assert code == 201
        revision = int(json.loads(text)["metadata"]["resourceVersion"])
        assert old_version_is_there(cluster.etcd, revision)
        writes = 0

        def write():
            nonlocal writes
            writes += 1
            assert a.request("PUT", f"{CONFIGMAPS}/c", {"metadata": {"name": "c"}, "data": {"n": str(writes)}})[0] == 200
        if not is_kept:
            wait_until("the old version to be compacted", lambda: write() or not old_version_is_there(cluster.etcd, revision), every=0.2)
            return
        # A second instance with an interval compacts the store. This shows that the version above was kept on purpose.
        for _ in range(10):
            write()
        assert old_version_is_there(cluster.etcd, revision)
        cluster.instance("b", "--etcd-compaction-interval=1s", "--leader-elect=false").wait_ready()
        wait_until("the old version to be compacted", lambda: write() or not old_version_is_there(cluster.etcd, revision), every=0.2)


@pytest.mark.parametrize("store", [Etcd, SqliteFile])
def test_an_expired_list_goes_on_with_the_token_of_the_refusal(store):
    with Cluster(with_witness=False, etcd=store) as cluster:
        a = cluster.instance("a", "--etcd-compaction-interval=1s").wait_ready()
        for i in range(5):
            assert a.request("POST", CONFIGMAPS, {"metadata": {"name": f"c{i}"}})[0] == 201
        first = json.loads(a.get(f"{CONFIGMAPS}?limit=2")[1])
        assert [item["metadata"]["name"] for item in first["items"]] == ["c0", "c1"]
        assert a.request("DELETE", f"{CONFIGMAPS}/c3")[0] == 200
        # a remembers the state of the first page. b starts only now, so it must ask the store.
        b = cluster.instance("b", "--etcd-compaction-interval=1s").wait_ready()
        writes = 0

        def refusal():
            nonlocal writes
            writes += 1
            assert a.request("PUT", f"{CONFIGMAPS}/c0", {"metadata": {"name": "c0"}, "data": {"n": str(writes)}})[0] == 200
            code, text = b.get(f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
            assert code in (200, 410), text
            return json.loads(text) if code == 410 else None
        status = wait_until("the state of the first page to be compacted", refusal, every=0.2)
        assert (status["reason"], status["message"].partition(". ")[0]) == (
            "Expired", "The provided continue parameter is too old to display a consistent list result")
        code, text = b.get(f"{CONFIGMAPS}?limit=2&continue={status['metadata']['continue']}")
        rest = json.loads(text)
        assert code == 200 and [item["metadata"]["name"] for item in rest["items"]] == ["c2", "c4"]
        assert int(rest["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
