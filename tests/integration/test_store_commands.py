# SPDX-License-Identifier: Apache-2.0
"""`holdfastd store ...` over real files of SQLite and a real etcd, with instances before and after."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest
from holdfastd import HOLDFASTD, Etcd, Instance, fill_configmaps, wait_until, workspace
from tls_etcd import tls_etcd

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LISTS = [CONFIGMAPS, "/api/v1/namespaces", "/api/v1/namespaces/default/secrets", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces",
         "/apis/rbac.authorization.k8s.io/v1/clusterroles"]
# Keys of the store's own, which a copy replaces or leaves out.
OWN = {f"/registry.holdfast/{name}" for name in ("epoch", "compact", "progress", "copying")}


def store(*args, limit=120, **kwargs):
    return subprocess.run([HOLDFASTD, "store", *[str(a) for a in args]], capture_output=True, text=True, timeout=limit, check=False, **kwargs)


def succeeds(*args):
    done = store(*args)
    assert done.returncode == 0, done.stderr
    return done


def fails(*args, status=1, words=()):
    done = store(*args)
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    assert done.returncode == status, done
    for word in words:
        assert str(word) in last, done.stderr
    return done


class File:
    """A file of SQLite as a store, for Instance."""

    def __init__(self, path):
        self.path = path
        self.url = f"sqlite:{path}"

    def values(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            rows = db.execute("SELECT key, value FROM versions v WHERE value IS NOT NULL AND id = (SELECT max(id) FROM versions WHERE key = v.key) ORDER BY id")
            return {key: bytes(value) for key, value in rows}

    def revisions(self):
        """Of the last write of each key, deleted ones too."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return dict(db.execute("SELECT key, max(id) / 16 FROM versions GROUP BY key"))


@pytest.fixture(name="etcd")
def _etcd(tmp_path):
    with Etcd(tmp_path) as it:
        yield it


def etcdctl(etcd, *args):
    return subprocess.run(["etcdctl", f"--endpoints={etcd.url}", *getattr(etcd, "etcdctl_flags", []), *args], env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True,
                          timeout=60, check=True).stdout


def etcd_kvs(etcd):
    return json.loads(etcdctl(etcd, "get", "--prefix", "/", "-w", "json")).get("kvs", [])


def etcd_values(etcd):
    return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv["value"]) for kv in etcd_kvs(etcd)}


def etcd_revisions(etcd):
    return {base64.b64decode(kv["key"]).decode(): kv["mod_revision"] for kv in etcd_kvs(etcd)}


def expect_same_order(source, target):
    """Compares the revisions of the keys. What was written later in the source is not earlier in the target; many writes of the source may be one there."""
    both = sorted((source[key], target[key]) for key in copied(target) if key in source)
    assert [t for _, t in both] == sorted(t for _, t in both), both
    assert len({t for _, t in both}) > 1  # else there is no order


def copied(values):
    return {key: value for key, value in values.items() if key not in OWN}


def serve(tmp_path, backend, name, **kwargs):
    return Instance(backend, tmp_path, name, **kwargs)


def stop(instance):
    instance.send(signal.SIGTERM)
    assert instance.wait() == 0, instance.log_text()


def objects(instance):
    """Returns the objects that clients see, without the metadata that depends on the store."""
    found = {}
    for path in LISTS:
        code, text = instance.get(path)
        assert code == 200, text
        for item in json.loads(text)["items"]:
            del item["metadata"]["resourceVersion"]
            found[path, item["metadata"]["name"]] = item
    return found


def fill(instance):
    for i in range(40):
        assert instance.request("POST", CONFIGMAPS, {"metadata": {"name": f"c{i}"}, "data": {"k": "ü" * i}})[0] == 201
    assert instance.request("DELETE", f"{CONFIGMAPS}/c7")[0] == 200
    assert instance.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "data": {"k": "AAEC"}})[0] == 201
    assert instance.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace("w"))[0] == 201
    wait_until("the workspace", lambda: '"Ready"' in instance.get("/apis/tenancy.holdfast.dev/v1alpha1/workspaces/w")[1])


def filled_file(tmp_path, name="a.db"):
    """Fills a file through an instance and stops that. Returns the file and the objects that clients saw."""
    file = File(tmp_path / name)
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        fill(instance)
        seen = objects(instance)
        stop(instance)
    return file, seen


# ---- copy ----


def test_objects_move_to_etcd_and_back(tmp_path, etcd):
    file, before = filled_file(tmp_path)
    done = succeeds("copy", "--from", file.url, "--to", f"etcd:{etcd.url}")
    assert "copied" in done.stderr.splitlines()[-1]
    assert copied(etcd_values(etcd)) == copied(file.values())
    expect_same_order(file.revisions(), etcd_revisions(etcd))
    assert "/registry.holdfast/copying" not in etcd_values(etcd)
    with serve(tmp_path, etcd, "second") as instance:
        instance.wait_ready()
        assert objects(instance) == before
        assert instance.request("POST", CONFIGMAPS, {"metadata": {"name": "later"}})[0] == 201
        moved = objects(instance)
        stop(instance)
    back = File(tmp_path / "back.db")
    succeeds("copy", "--from", f"etcd:{etcd.url}", "--to", back.url)
    assert copied(back.values()) == copied(etcd_values(etcd))
    expect_same_order(etcd_revisions(etcd), back.revisions())
    with serve(tmp_path, back, "third") as instance:
        instance.wait_ready()
        assert objects(instance) == moved


def test_objects_move_over_tls_to_etcd_and_back(tmp_path):
    """The etcd requires a client certificate. The flags are those of the server."""
    file, _ = filled_file(tmp_path)
    etcd = tls_etcd(tmp_path)
    try:
        ca, pair = [f"--etcd-cafile={tmp_path / 'etcd-ca.crt'}"], [f"--etcd-certfile={tmp_path / 'client.crt'}", f"--etcd-keyfile={tmp_path / 'client.key'}"]
        etcd.etcdctl_flags = [f"--cacert={tmp_path / 'etcd-ca.crt'}", f"--cert={tmp_path / 'client.crt'}", f"--key={tmp_path / 'client.key'}"]
        wait_until("etcd to answer", lambda: is_healthy(etcd))
        there = ["copy", "--from", file.url, "--to", f"etcd:{etcd.url}"]
        fails(*there, *pair, f"--etcd-cafile={tmp_path / 'other-ca.crt'}", words=["the target", "certificate"])
        fails(*there, *ca, words=["the target"])
        assert etcd_values(etcd) == {}
        succeeds(*there, *ca, *pair)
        assert copied(etcd_values(etcd)) == copied(file.values())
        back = File(tmp_path / "back.db")
        succeeds("copy", "--from", f"etcd:{etcd.url}", "--to", back.url, *ca, *pair)
        assert copied(back.values()) == copied(file.values())
    finally:
        etcd.end()


def is_healthy(etcd):
    try:
        return etcdctl(etcd, "endpoint", "health") is not None
    except subprocess.CalledProcessError:
        return False


def test_a_target_that_is_not_empty_is_refused(tmp_path, etcd):
    source, _ = filled_file(tmp_path)
    target = File(tmp_path / "b.db")
    succeeds("copy", "--from", source.url, "--to", target.url)
    before = target.values()
    fails("copy", "--from", source.url, "--to", target.url, words=["not empty", "/registry"])
    assert target.values() == before
    etcdctl(etcd, "put", "/registry/configmaps/default/theirs", "{}")
    fails("copy", "--from", source.url, "--to", f"etcd:{etcd.url}", words=["not empty", "/registry/configmaps/default/theirs"])
    assert etcd_values(etcd) == {"/registry/configmaps/default/theirs": b"{}"}


def test_a_source_in_use_is_refused(tmp_path, etcd):
    file = File(tmp_path / "a.db")
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        fails("copy", "--from", file.url, "--to", f"etcd:{etcd.url}", words=[file.path, instance.pid])
    assert etcd_values(etcd) == {}


@contextlib.contextmanager
def begun_copy(etcd, target):
    """Starts a copy of 6000 objects, and waits until some have arrived."""
    fill_configmaps(etcd, 6000, 100)
    with subprocess.Popen([HOLDFASTD, "store", "copy", "--from", f"etcd:{etcd.url}", "--to", target.url], stderr=subprocess.PIPE, text=True) as child:
        for line in child.stderr:
            if " of 6000 keys" in line and not line.startswith("holdfastd store copy: 0 "):
                break
        yield child


def test_a_copy_that_was_killed_is_not_served_and_can_be_repeated(tmp_path, etcd):
    target = File(tmp_path / "b.db")
    with begun_copy(etcd, target) as child:
        child.kill()
    assert child.returncode == -signal.SIGKILL
    n = len(target.values())
    assert 0 < n < 6000
    with serve(tmp_path, target, "second") as instance:
        assert instance.wait() == 1
        assert "not completed" in instance.log_text()
    fails("copy", "--from", f"etcd:{etcd.url}", "--to", target.url, words=["not empty"])
    fails("copy", "--from", target.url, "--to", f"sqlite:{tmp_path / 'c.db'}", words=["not completed"])
    fails("copy", "--from", f"etcd:{etcd.url}", "--to", f"sqlite:{tmp_path / 'c.db'}", "--etcd-prefix=/other", words=["no key below /other"])
    assert not list(tmp_path.glob("c.db*"))  # the target is not created for a source that cannot be copied
    for path in tmp_path.glob("b.db*"):
        path.unlink()
    succeeds("copy", "--from", f"etcd:{etcd.url}", "--to", target.url)
    assert copied(target.values()) == etcd_values(etcd)


def test_an_instance_stops_when_a_copy_begins(tmp_path, etcd):
    """The instance started just before the copy wrote its mark, so neither has noticed the other."""
    with serve(tmp_path, etcd, "first") as instance:
        instance.wait_ready()
        etcdctl(etcd, "put", "/registry.holdfast/copying", "x")
        assert instance.wait() == 1
        assert "holdfastd store copy writes to the store" in instance.log_text()


def test_an_etcd_that_dies_leaves_an_incomplete_target(tmp_path, etcd):
    target = File(tmp_path / "b.db")
    with begun_copy(etcd, target) as child:
        etcd.send(signal.SIGKILL)
        last = child.stderr.read().splitlines()[-1]
        assert child.wait(120) == 1
    assert "source" in last and "incomplete" in last and str(target.path) in last


# ---- backup and restore ----


def files(tmp_path, beginning):
    return sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(beginning))


def test_a_backup_of_a_file_in_use_is_restored_and_served(tmp_path):
    file = File(tmp_path / "a.db")
    backup, restored = tmp_path / "backup.db", File(tmp_path / "restored.db")
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        fill(instance)
        before = objects(instance)
        writing = threading.Event()
        written = []

        def write():
            """Pairs of objects, the second one after the first one was acknowledged."""
            while not writing.is_set():
                for kind in ("one", "two"):
                    name = f"{kind}-{len(written)}"
                    assert instance.request("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"k": "v" * 2000}})[0] == 201
                written.append(len(written))
        writer = threading.Thread(target=write)
        writer.start()
        wait_until("writes", lambda: len(written) > 20)
        at = len(written)
        succeeds("backup", file.path, backup)
        wait_until("more writes", lambda: len(written) > at + 20)
        writing.set()
        writer.join()
        last = int(json.loads(instance.get(CONFIGMAPS)[1])["metadata"]["resourceVersion"])
        succeeds("backup", file.path, tmp_path / "later.db")
        stop(instance)
    assert files(tmp_path, "backup.db") == ["backup.db"]
    assert backup.stat().st_mode & 0o777 == 0o600
    fails("backup", file.path, backup, words=["exists", backup])
    fails("restore", backup, file.path, words=["exists", file.path])
    succeeds("restore", backup, restored.path)
    with serve(tmp_path, restored, "second") as instance:
        instance.wait_ready()
        after = objects(instance)
        assert {key: value for key, value in after.items() if not key[1].startswith(("one-", "two-"))} == before
        n = [sum(key[1].startswith(kind) for key in after) for kind in ("one-", "two-")]
        assert at <= n[1] <= n[0] <= n[1] + 1, n
        # A client with a revision of the lost history is detected and has to list again.
        listed = json.loads(instance.get(CONFIGMAPS)[1])
        assert int(listed["metadata"]["resourceVersion"]) > last
        assert '"code":410' in instance.get(f"{CONFIGMAPS}?watch=1&timeoutSeconds=5&resourceVersion={last}")[1]
        assert instance.request("POST", CONFIGMAPS, {"metadata": {"name": "later"}})[0] == 201
        stop(instance)
    assert succeeds("check", restored.path).stdout.count("\n") == 1


def test_a_client_of_the_lost_history_lists_again(tmp_path):
    """The instance starts again on a restored file in the place of the lost one."""
    file = File(tmp_path / "a.db")
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        succeeds("backup", file.path, tmp_path / "backup.db")
        assert instance.request("POST", CONFIGMAPS, {"metadata": {"name": "lost"}})[0] == 201
        seen = json.loads(instance.get(CONFIGMAPS)[1])["metadata"]["resourceVersion"]
        stop(instance)
    for path in tmp_path.glob("a.db*"):
        path.unlink()
    succeeds("restore", tmp_path / "backup.db", file.path)
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        assert '"code":410' in instance.get(f"{CONFIGMAPS}?watch=1&timeoutSeconds=5&resourceVersion={seen}")[1]
        assert instance.get(f"{CONFIGMAPS}/lost")[0] == 404


@pytest.mark.parametrize("location", ["etcd:http://me:secret@127.0.0.1:1", "http://me:secret@127.0.0.1:1", "sqlite:http://me:secret@127.0.0.1:1",
                                      "etcd:http://127.0.0.1:1,,http://me:secret@127.0.0.1:1", "etcd:http://me:1,secret@127.0.0.1:1",
                                      "etcd:http://me:secret,1@127.0.0.1:1"])
def test_a_password_in_a_location_is_not_repeated(tmp_path, location):
    for store in (["copy", "--from", location, "--to", f"sqlite:{tmp_path}/new.db"], ["compact", location]):
        done = subprocess.run([HOLDFASTD, "store", *store], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0 and "***@127.0.0.1" in done.stderr and "secret" not in done.stdout + done.stderr, done


def test_a_damaged_file_is_refused_and_named(tmp_path):
    file, _ = filled_file(tmp_path)
    succeeds("backup", file.path, tmp_path / "good.db")
    for name, damage in (("short", lambda f: f.truncate(8192)), ("text", lambda f: f.write(b"this is no database"))):
        bad = tmp_path / f"{name}.db"
        shutil.copy(tmp_path / "good.db", bad)
        with open(bad, "r+b") as f:
            damage(f)
        done = fails("check", bad, words=["store restore", bad])
        assert done.stdout.strip()
        fails("restore", bad, tmp_path / "new.db", words=["damaged", bad])
        fails("backup", bad, tmp_path / "new.db", words=[bad])
        with serve(tmp_path, File(bad), "second") as instance:
            assert instance.wait() == 2
            line = instance.log_text().splitlines()[-1]
            assert all(word in line for word in (str(bad), "holdfastd store check", "holdfastd store restore")), line
        (tmp_path / "second.log").unlink()
    assert files(tmp_path, "new.db") == []
    fails("check", tmp_path / "missing.db", words=["missing.db"])


def test_a_snapshot_of_etcd_gets_a_new_epoch(tmp_path, etcd):
    etcdctl(etcd, "put", "/x.holdfast/epoch", "before")
    etcdctl(etcd, "snapshot", "save", str(tmp_path / "backup.db"))
    out = tmp_path / "stamped.db"
    succeeds("restore", "--etcd", "--etcd-prefix=/x", tmp_path / "backup.db", out)
    assert out.stat().st_mode & 0o777 == 0o600
    fails("restore", "--etcd", tmp_path / "backup.db", out, words=["exists", out])
    etcd.end()
    shutil.rmtree(tmp_path / "etcd")
    etcdctl(etcd, "snapshot", "restore", str(out), f"--data-dir={tmp_path / 'etcd'}", "--name=test",
            f"--initial-cluster=test=http://127.0.0.1:{etcd.peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{etcd.peer}")
    etcd.start()
    kv, = json.loads(etcdctl(etcd, "get", "/x.holdfast/epoch", "-w", "json"))["kvs"]
    assert kv["version"] == 2 and base64.b64decode(kv["value"]) != b"before"


def test_a_prefix_that_a_backup_does_not_have_is_refused(tmp_path, etcd):
    """With a wrong prefix the epoch would be written elsewhere, and instances that serve that prefix would find nothing."""
    file, _ = filled_file(tmp_path)
    out = tmp_path / "out.db"
    succeeds("backup", file.path, tmp_path / "backup.db")
    done = fails("restore", "--etcd-prefix=/registri", tmp_path / "backup.db", out, words=["backup.db", "--etcd-prefix=/registri", "/registry"])
    assert done.stderr.count("\n") == 1
    etcdctl(etcd, "put", "/x.holdfast/epoch", "before")
    etcdctl(etcd, "put", "/b/x/configmaps/default/a", "{}")
    etcdctl(etcd, "put", "/b/x.holdfast/terms/kube-system/a", "{}")
    etcdctl(etcd, "snapshot", "save", str(tmp_path / "snapshot.db"))
    done = fails("restore", "--etcd", tmp_path / "snapshot.db", out, words=["snapshot.db", "--etcd-prefix=/registry", "/x", "/b/x"])
    assert done.stderr.count("\n") == 1
    assert files(tmp_path, "out.db") == []
    succeeds("restore", "--etcd", "--etcd-prefix=/b/x", tmp_path / "snapshot.db", out)


def test_a_snapshot_that_is_none_is_named(tmp_path):
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"x" * 5000)
    fails("restore", "--etcd", bad, tmp_path / "out.db", words=["etcdctl", "restore"])
    fails("restore", "--etcd", tmp_path / "missing.db", tmp_path / "out.db", words=["missing.db"])
    assert files(tmp_path, "out.db") == []


def test_a_signal_ends_the_restore_and_leaves_nothing(tmp_path, etcd):
    etcdctl(etcd, "snapshot", "save", str(tmp_path / "backup.db"))
    programs, work = tmp_path / "programs", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    hanging = programs / "etcdctl"
    hanging.write_text(f"#!/bin/sh\ncase $* in *put*) echo $$ > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; exec sleep 1000;; esac\n"
                       f"exec {shutil.which('etcdctl')} \"$@\"\n")
    hanging.chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(work), "ETCDCTL_ENDPOINTS": "http://127.0.0.1:1"}
    with subprocess.Popen([HOLDFASTD, "store", "restore", "--etcd", tmp_path / "backup.db", tmp_path / "out.db"], env=env, stderr=subprocess.PIPE,
                          text=True) as child:
        wait_until("the epoch to be written", (tmp_path / "pid").exists)
        private, = [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cwd") if str(work) in cwd(path) and name(path) == "etcd"]
        child.send_signal(signal.SIGTERM)
        assert "signal" in child.stderr.read()
        assert child.wait(60) == 1
    assert list(work.iterdir()) == [] and files(tmp_path, "out.db") == []
    for pid in (private, int((tmp_path / "pid").read_text())):
        assert not pathlib.Path(f"/proc/{pid}").exists()


def cwd(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def name(path):
    return (path.parent / "comm").read_text().strip()


# ---- compact ----


def test_a_file_is_compacted_and_served(tmp_path):
    file = File(tmp_path / "a.db")
    with serve(tmp_path, file, "first") as instance:
        instance.wait_ready()
        fill(instance)
        for i in range(200):
            assert instance.request("PUT", f"{CONFIGMAPS}/c1", {"metadata": {"name": "c1"}, "data": {"k": str(i) * 5000}})[0] == 200
        fails("compact", file.path, words=[file.path, instance.pid])
        before = objects(instance)
        stop(instance)
    size = file.path.stat().st_size
    assert "versions removed" in succeeds("compact", file.path).stdout
    assert file.path.stat().st_size < size / 2
    assert succeeds("check", file.path).stdout.count("\n") == 1
    with serve(tmp_path, file, "second") as instance:
        instance.wait_ready()
        assert objects(instance) == before


def test_etcd_is_compacted(tmp_path, etcd):
    for i in range(5):
        etcdctl(etcd, "put", "/registry/a", str(i))
    assert "compacted" in succeeds("compact", f"etcd:{etcd.url}").stdout
    with pytest.raises(subprocess.CalledProcessError):
        etcdctl(etcd, "get", "/registry/a", "--rev=3")
    assert "compacted" in succeeds("compact", f"etcd:{etcd.url}").stdout


@pytest.mark.parametrize("args,words", [
    ([], ["copy", "check"]),
    (["dance"], ["dance"]),
    (["copy"], ["--from"]),
    (["copy", "--from=sqlite:a"], ["--to"]),
    (["copy", "--from=a", "--to=sqlite:b"], ["--from", "sqlite:FILE"]),
    (["copy", "--from=sqlite:a", "--to=etcd:"], ["--to", "sqlite:FILE"]),
    (["copy", "--from=sqlite:a", "--to=etcd:http://x,,http://y"], ["http://x,,http://y"]),
    (["copy", "--from=sqlite:a", "--to=etcd:http://x,http://y/path"], ["http://y/path"]),
    (["copy", "--from=etcd:ftp://x", "--to=sqlite:b"], ["ftp://x", "http://"]),
    (["compact", "etcd:http://me:secret@x"], ["***@x", "nothing more"]),
    (["copy", "--from=sqlite:a", "--to=sqlite:b", "--data-dir=c"], ["--data-dir"]),
    (["copy", "a", "--from=sqlite:a", "--to=sqlite:b"], ["\"a\""]),
], ids=lambda v: " ".join(v)[:60])
def test_mistakes_on_the_command_line_are_named(args, words):
    done = fails(*args, status=2, words=words)
    assert len(done.stderr.splitlines()) == 1
