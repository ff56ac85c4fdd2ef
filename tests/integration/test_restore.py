# SPDX-License-Identifier: Apache-2.0
"""A real snapshot of etcd is restored under two running instances, as docs/operating.md
describes."""
import base64
import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import urllib.parse

import pytest

from holdfastd import HOLDFASTD, WRITER, wait_until, workspace
from term_records import check_term_records

WRITTEN = "/registry/configmaps/default/test-writer"


def etcdctl(etcd, *args, url=None):
    done = subprocess.run(["etcdctl", f"--endpoints={url or etcd.url}", *[str(a) for a in args]], env={**os.environ, "ETCDCTL_API": "3"},
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def revision(etcd):
    return json.loads(etcdctl(etcd, "get", "/", "-w", "json"))["header"]["revision"]


def restore(etcd, snapshot, meanwhile=lambda: None):
    """Stops etcd, restores its data from the snapshot, and starts it at the same address. The
    instances keep running."""
    etcd.end()
    shutil.rmtree(etcd.directory / "etcd")
    peer = f"http://127.0.0.1:{etcd.peer}"
    etcdctl(etcd, "snapshot", "restore", snapshot, f"--data-dir={etcd.directory / 'etcd'}", "--name=test", f"--initial-cluster=test={peer}",
            f"--initial-advertise-peer-urls={peer}")
    meanwhile()
    etcd.start()


def fill(etcd, until):
    """Writes unrelated keys until etcd has passed a revision."""
    done = subprocess.run(["sh", "-c", f'for i in $(seq {until - revision(etcd) + 1}); do etcdctl --endpoints={etcd.url} put /filler "$i" || exit 1; done'],
                          env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0 and revision(etcd) > until


def stamped(cluster, snapshot):
    out = cluster.directory / "stamped.db"
    subprocess.run([HOLDFASTD, "store", "restore", "--etcd", snapshot, out], check=True, capture_output=True, timeout=60)
    return out


def history(etcd, key, since, until):
    """The puts of a key after a revision, as (revision, object), read from etcd."""
    child = subprocess.Popen(["etcdctl", f"--endpoints={etcd.url}", "watch", "--prefix", "/", f"--rev={since + 1}", "-w", "json"],
                             env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(60, child.kill)
    guard.start()
    found, at = [], since
    try:
        while at < until:
            line = child.stdout.readline()
            assert line, f"the history ended at {at}, before {until}"
            for event in json.loads(line).get("Events", []):
                at = max(at, event["kv"]["mod_revision"])
                if base64.b64decode(event["kv"]["key"]).decode() == key and event.get("type", 0) == 0:
                    found.append((event["kv"]["mod_revision"], json.loads(base64.b64decode(event["kv"]["value"]))))
    finally:
        guard.cancel()
        child.kill()
        child.wait()
        child.stdout.close()
    return found


class Watch(threading.Thread):
    """One watch of an instance until it ends. `events` has what the watch delivered."""

    def __init__(self, instance, path):
        super().__init__(daemon=True)
        url = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=instance.context(), timeout=90)
        self.connection.request("GET", path)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.events = []
        self.start()

    def run(self):
        for line in self.answer:
            self.events.append(json.loads(line))

    def end_code(self):
        self.join(60)
        assert not self.is_alive(), "the watch goes on"
        return self.events[-1]["object"].get("code") if self.events and self.events[-1]["type"] == "ERROR" else None


def configmap(name):
    return {"metadata": {"name": name}, "data": {"k": name}}


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def names_at(instance, query=""):
    code, text = instance.get(CONFIGMAPS + query)
    return {it["metadata"]["name"] for it in json.loads(text)["items"]} if code == 200 else None


def leader_of(*instances):
    for it in instances:
        if it.leader()["state"] == "leading":
            return it
    return None


def two(cluster, **env):
    a, b = [cluster.instance(name, binary=WRITER, env=env) for name in "ab"]
    a.wait_ready()
    b.wait_ready()
    return a, b


def term_of(instance):
    return instance.leader()["term"]


@pytest.mark.parametrize("ahead", [False, True], ids=["revisions-go-back", "revisions-are-reissued"])
def test_running_instances_notice_a_restore(cluster, ahead):
    """The term ends, watches get 410, caches are filled again, no write of the old term commits,
    and an instance leads again, all without a restart."""
    a, b = two(cluster)
    leader = wait_until("a leader", lambda: leader_of(a, b))
    pids = [a.pid, b.pid]
    old_term = term_of(leader)
    assert a.request("POST", CONFIGMAPS, configmap("kept"))[0] == 201
    cluster.witness.wait_for("a write of the term", lambda e: e["key"] == WRITTEN and e["object"]["data"]["term"] == str(old_term))
    etcdctl(cluster.etcd, "snapshot", "save", cluster.directory / "backup.db")
    at_snapshot = revision(cluster.etcd)
    assert b.request("POST", CONFIGMAPS, configmap("lost"))[0] == 201
    watches = [Watch(it, CONFIGMAPS + "?watch=1&timeoutSeconds=600") for it in (a, b)]
    wait_until("the watches to see what is there", lambda: all("lost" in str(w.events) for w in watches))
    snapshot = stamped(cluster, cluster.directory / "backup.db")

    def run_ahead():
        """Makes the restored etcd pass all revisions that the instances have seen."""
        if not ahead:
            return
        etcd = cluster.etcd
        client, etcd.client, url = etcd.client, etcd.client + 1, etcd.url
        etcd.url = f"http://127.0.0.1:{etcd.client}"
        etcd.start()
        fill(etcd, known + 50)
        etcd.end()
        etcd.client, etcd.url = client, url

    cluster.witness.end()
    known = revision(cluster.etcd)
    restore(cluster.etcd, snapshot, run_ahead)
    assert [w.end_code() for w in watches] == [410, 410]
    fresh = wait_until("a leader of a new term", lambda: next((it for it in (a, b) if it.leader()["state"] == "leading"
                                                              and it.leader()["term"] != old_term), None))
    new_term = term_of(fresh)
    assert fresh.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace("after"))[0] == 201
    for it in (a, b):
        wait_until("what was restored, and nothing else", lambda it=it: names_at(it, "?resourceVersion=0") == names_at(it)
                   and "kept" in names_at(it) and "lost" not in names_at(it))
        assert "holdfast_store_history_replaced_total 1" in it.get("/metrics")[1]
    wait_until("the new term to write", lambda: fresh.get(f"{CONFIGMAPS}/test-writer")[1].find(f'"term":"{new_term}"') > 0)
    writes = history(cluster.etcd, WRITTEN, at_snapshot, revision(cluster.etcd))
    assert writes and all(written["data"]["term"] != str(old_term) for _, written in writes)
    check_term_records(cluster.etcd)
    assert [it.pid for it in (a, b) if it.alive()] == pids


def test_a_client_of_the_lost_history_lists_again(cluster):
    """A client resumes a watch at an instance that was started after the restore, from a
    revision that etcd has not reached. It gets 410 at once instead of silence."""
    instance = cluster.instance("a")
    instance.wait_ready()
    watch = Watch(instance, f"{CONFIGMAPS}?watch=1&timeoutSeconds=600&resourceVersion={revision(cluster.etcd) + 1000000}")
    assert watch.end_code() == 410


def test_a_reissued_term_does_not_let_old_writes_through(cluster):
    """Without a new epoch, the revision of the running term is issued again for the record of
    another process. The value in the fence distinguishes the two."""
    a, b = two(cluster, WRITER_GATE_OFF="1")
    first = wait_until("a leader", lambda: leader_of(a, b))
    second = b if first is a else a
    etcdctl(cluster.etcd, "snapshot", "save", cluster.directory / "backup.db")
    at_snapshot = revision(cluster.etcd)
    second_identity = second.identity()
    mark = cluster.witness.mark()
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    wait_until("the other to lead", lambda: leader_of(second))
    term = term_of(second)
    cluster.witness.wait_for("a write of its term", lambda e: e["key"] == WRITTEN and e["object"]["data"]["term"] == str(term), mark)
    cluster.witness.end()
    second.send(signal.SIGSTOP)  # with its gate off it continues to write after SIGCONT
    known = revision(cluster.etcd) + 50

    def reissue():
        etcd = cluster.etcd
        client, etcd.client, url = etcd.client, etcd.client + 1, etcd.url
        etcd.url = f"http://127.0.0.1:{etcd.client}"
        etcd.start()
        record = "/registry.holdfast/terms/kube-system/holdfast-controllers"
        value = etcdctl(etcd, "get", record, "--print-value-only").rstrip("\n")
        assert second_identity not in value and revision(etcd) < term
        for _ in range(term - 1 - revision(etcd)):
            etcdctl(etcd, "put", "/filler", "x")
        etcdctl(etcd, "put", record, value)
        assert revision(etcd) == term
        fill(etcd, known + 50)  # beyond all revisions that the instances have seen
        etcd.end()
        etcd.client, etcd.url = client, url

    restore(cluster.etcd, cluster.directory / "backup.db", reissue)
    second.send(signal.SIGCONT)
    wait_until("a write of the old term to be refused", lambda: "writer: refused: stale leader term" in second.log_text())
    # The instance has not noticed the restore yet. It notices the epoch, even if that is written
    # late.
    etcdctl(cluster.etcd, "put", "/registry.holdfast/epoch", "late")
    wait_until("it to lead again, in a new term", lambda: leader_of(second) and term_of(second) != term)
    wait_until("the new term to write", lambda: f'"term":"{term_of(second)}"' in second.get(f"{CONFIGMAPS}/test-writer")[1])
    writes = history(cluster.etcd, WRITTEN, at_snapshot, revision(cluster.etcd))
    assert writes and all(written["data"]["term"] != str(term) for _, written in writes)
    assert second.alive()
