# SPDX-License-Identifier: Apache-2.0
"""The disk of the store's file is full: writes fail with a reason, reads go on, the health checks report it, nothing is lost, and all works
again when there is room."""
import json
import os
import pathlib
import subprocess

import pytest
from holdfastd import BUILD, Cluster, SqliteFile, wait_until

SUFFIXES = ("", "-wal", "-shm", "-notify")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class ShimDisk:
    """A disk that tests/lib/crash_shim.h simulates: the length of a file says how much room the store's files have."""

    def __init__(self, directory):
        self.store = pathlib.Path(directory) / "store.db"
        self.room = pathlib.Path(directory) / "room"
        self.room.touch()
        self.free()

    def env(self):
        return {"LD_PRELOAD": str(BUILD / "tests" / "crash-shim.so"), "CRASH_SHIM_FILE": str(self.store), "CRASH_SHIM_ROOM": str(self.room),
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def leave(self, n):
        """The disk has n bytes left."""
        files = [pathlib.Path(f"{self.store}{suffix}") for suffix in SUFFIXES]
        os.truncate(self.room, n + sum(f.stat().st_size for f in files if f.exists()))

    def free(self):
        os.truncate(self.room, 1 << 40)

    def end(self):
        pass


class TmpfsDisk:
    """A real file system for the store only. Another file fills the rest of it."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory) / "disk"
        self.directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.directory], check=True)
        self.store = self.directory / "store.db"
        self.other = self.directory / "other"

    def env(self):
        return {}

    def leave(self, n):
        info = os.statvfs(self.directory)
        with open(self.other, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, info.f_bavail * info.f_frsize - n)

    def free(self):
        self.other.unlink()

    def end(self):
        subprocess.run(["umount", self.directory], check=True)


@pytest.fixture(params=[ShimDisk, pytest.param(TmpfsDisk, marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a disk"))])
def cluster(request):
    disks = []

    def make(directory):
        disks.append(request.param(directory))
        return SqliteFile(disks[0].store.parent)
    try:
        with Cluster(with_witness=False, etcd=make) as cluster:
            cluster.disk = disks[0]
            yield cluster
            for process in cluster.started:
                process.end()
            cluster.disk.end()
            disks.clear()
    finally:
        for disk in disks:
            disk.end()


def create(instance, name, size=8000):
    return instance.request("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"value": name + "v" * size}})


def fill(instance, acknowledged):
    """Creates objects until the store refuses one. Returns the Status."""
    for i in range(len(acknowledged), 1000):
        code, text = create(instance, f"filled-{i}")
        if code != 201:
            assert code == 503, (code, text)
            return json.loads(text)
        acknowledged.add(f"filled-{i}")
    raise AssertionError("the disk is never full")


def check_all(instance, acknowledged):
    """Checks that each acknowledged object exists unchanged. For each failed write, one more object may exist."""
    code, text = instance.get(CONFIGMAPS)
    assert code == 200, text
    found = {o["metadata"]["name"]: o["data"]["value"] for o in json.loads(text)["items"] if o["metadata"]["name"].startswith("filled-")}
    assert acknowledged <= found.keys(), acknowledged - found.keys()
    assert all(value == name + "v" * 8000 for name, value in found.items())


def test_a_full_disk_is_reported_and_survived(cluster):
    disk, acknowledged = cluster.disk, set()
    instances = [cluster.instance(name, env=disk.env()).wait_ready() for name in ("a", "b")]
    a, b = instances
    disk.leave(1000000)  # more than what the two instances still write themselves when they start at the same time
    status = fill(a, acknowledged)
    assert len(acknowledged) > 0
    assert status["kind"] == "Status" and status["reason"] == "ServiceUnavailable" and "full" in status["message"], status
    for instance in instances:
        # A small write may still find room after a large one failed. The check then passes for a moment.
        wait_until(f"{instance.name} to lack room", lambda i=instance: "no room" in i.get("/readyz/store-room")[1])
        wait_until(f"{instance.name} to be not ready", lambda i=instance: i.get("/readyz")[0] == 500)
        assert instance.get("/livez")[0] == 200
        check_all(instance, acknowledged)
    wait_until("the reason in the log", lambda: "check store-room failed" in a.log_text())
    disk.free()
    for instance in instances:
        instance.wait_ready()
    assert create(b, "after")[0] == 201
    check_all(a, acknowledged)
    for instance in instances:
        instance.end()
    again = cluster.instance("again", env=disk.env()).wait_ready()
    check_all(again, acknowledged)
    assert again.get(f"{CONFIGMAPS}/after")[0] == 200
    # A second time the same happens.
    disk.leave(20000)
    assert "full" in fill(again, acknowledged)["message"]
    disk.free()
    again.wait_ready()
    check_all(again, acknowledged)


def test_an_instance_starts_when_there_is_room(cluster):
    disk = cluster.disk
    disk.leave(6000)
    first = cluster.instance("first", env=disk.env())
    assert first.wait() == 1
    lines = [line for line in first.log_text().splitlines() if line.startswith("holdfastd")]
    assert len(lines) == 1 and str(disk.store) in lines[0], first.log_text()
    disk.free()
    cluster.instance("second", env=disk.env()).wait_ready()
