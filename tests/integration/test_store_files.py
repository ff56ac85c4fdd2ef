# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be the store is refused at the start: one line that names it, exit status 1, and the file is not changed."""
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest
from holdfastd import HOLDFASTD, Cluster, SqliteFile, wait_until

PAGE = 4096


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The file of an instance that was stopped."""
    copy = tmp_path_factory.mktemp("store") / "good.db"
    with Cluster(with_witness=False, etcd=SqliteFile) as cluster:
        instance = cluster.instance("a").wait_ready()
        for i in range(40):
            body = {"metadata": {"name": f"a{i}"}, "data": {"value": "v" * 3000}}
            assert instance.request("POST", "/api/v1/namespaces/default/configmaps", body)[0] == 201
        instance.send(signal.SIGTERM)
        assert instance.wait() == 0
        shutil.copy(cluster.etcd.path, copy)
    return copy


def start(store, directory):
    return [HOLDFASTD, f"--store={store}", f"--data-dir={directory / 'data'}", "--secure-port=0"]


def expect_refused(store, directory, reason, prefix=(), flags=()):
    done = subprocess.run([*prefix, *start(store, directory), *flags], capture_output=True, text=True, timeout=60, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("holdfastd")]
    assert done.returncode == 2 and len(lines) == 1, done
    assert lines[0].startswith(f"holdfastd: flag --store: {store} ") and reason in lines[0], lines[0]


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def sql(path, text):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(text)


def make_other(path):
    path.unlink()
    sql(path, "CREATE TABLE theirs(x)")


NOISE = bytes((i * 7919 >> 4) % 251 for i in range(PAGE))


@pytest.mark.parametrize("damage,reason", [
    pytest.param(lambda p: overwrite(p, 0, NOISE), "is not a database of SQLite", id="a header of noise"),
    pytest.param(lambda p: overwrite(p, 16, NOISE[:84]), "is not a database of SQLite", id="noise behind the first words"),
    pytest.param(lambda p: overwrite(p, 200, bytes(PAGE - 200)), "is damaged", id="no schema"),
    pytest.param(lambda p: os.truncate(p, p.stat().st_size // 2 // PAGE * PAGE), "is damaged", id="half of the pages"),
    pytest.param(lambda p: os.truncate(p, 3 * PAGE + 100), "is damaged", id="ends within a page"),
    pytest.param(lambda p: os.truncate(p, 50), "is damaged", id="ends within the header"),
    pytest.param(lambda p: sql(p, "PRAGMA user_version=99"), "written by a later version of holdfastd", id="a later version"),
    pytest.param(make_other, "a database of another program", id="another program's"),
])
def test_a_damaged_or_foreign_file_is_refused_and_kept(good, tmp_path, damage, reason):
    store = tmp_path / "store.db"
    shutil.copy(good, store)
    damage(store)
    before = store.read_bytes()
    expect_refused(store, tmp_path, reason)
    assert store.read_bytes() == before


def test_a_directory_in_place_of_the_file_is_refused(tmp_path):
    store = tmp_path / "store.db"
    store.mkdir()
    expect_refused(store, tmp_path, "cannot be opened")


@pytest.mark.parametrize("what", ["a pipe", "a device"])
def test_what_is_no_regular_file_is_refused(tmp_path, what):
    """Status 2, because it never becomes a file by itself."""
    if what == "a pipe":
        os.mkfifo(tmp_path / "store.db")
    expect_refused(tmp_path / "store.db" if what == "a pipe" else "/dev/null", tmp_path, "not a regular file")


def test_a_file_that_may_only_be_read_is_refused(good, tmp_path):
    """Its mode forbids writes, which the root user would ignore: here it has lost that capability."""
    store = tmp_path / "store.db"
    shutil.copy(good, store)
    store.chmod(0o400)
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    before = store.read_bytes()
    for flags in ([], ["--check"]):
        expect_refused(store, tmp_path, "cannot be written: Permission denied", prefix, flags)
    assert store.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a read-only disk")
@pytest.mark.parametrize("exists", [True, False])
def test_a_read_only_disk_is_named(good, tmp_path, exists):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        if exists:
            shutil.copy(good, disk / "store.db")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        expect_refused(disk / "store.db", tmp_path, "cannot be")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_damage_behind_the_first_page_ends_the_start(good, tmp_path):
    """It is found when the objects are read. Nothing is served, and neither time nor a restart would help."""
    store = tmp_path / "store.db"
    shutil.copy(good, store)
    for page in range(4, store.stat().st_size // PAGE):
        overwrite(store, page * PAGE, NOISE)
    done = subprocess.run(start(store, tmp_path), capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if f"{store} is damaged" in line]
    assert len(lines) >= 1 and "store restore" in lines[-1] and "malformed" in lines[-1], done.stderr
