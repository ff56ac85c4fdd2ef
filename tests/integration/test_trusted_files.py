# SPDX-License-Identifier: Apache-2.0
"""Directories, keys and tokens that other users could replace: refused at the start and at a reload."""
import os
import shutil
import signal
import subprocess

import pytest
from holdfastd import HOLDFASTD, Cluster, Process, wait_until

STRANGER = 54321
ETCD = "--etcd-servers=http://127.0.0.1:1"


def run(directory, *flags):
    """Runs the server, which must refuse a file and exit before it connects to the store."""
    return subprocess.run([HOLDFASTD, ETCD, "--secure-port=0", f"--data-dir={directory}", *flags], capture_output=True, text=True, timeout=30, check=False)


def refused(done, fault, command):
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and len(lines) == 1, done
    assert fault in lines[0] and lines[0].endswith(f": {command}"), lines[0]


@pytest.fixture(name="pki", scope="module")
def _pki(tmp_path_factory):
    """The certificates that an instance has made."""
    with Cluster(with_witness=False) as cluster:
        cluster.instance("a").wait_ready()
        copy = tmp_path_factory.mktemp("made") / "pki"
        shutil.copytree(cluster.directory / "pki", copy)
    return copy


def test_a_planted_ca_in_an_open_directory(pki, tmp_path):
    """The attack: anyone who writes to the data directory first can put a CA there, and so become an administrator."""
    data = tmp_path / "data"
    data.mkdir()
    shutil.copytree(pki, data / "pki")
    data.chmod(0o777)
    refused(run(data), "can be written by other users (mode 0777)", f"chmod go-w {data}")
    data.chmod(0o1777)
    refused(run(data), "can be written by other users (mode 1777)", f"chmod go-w {data}")
    data.chmod(0o700)
    (data / "pki").chmod(0o770)
    refused(run(data), "can be written by other users (mode 0770)", f"chmod go-w {data / 'pki'}")
    (data / "pki").chmod(0o700)
    (data / "pki" / "ca.crt").chmod(0o666)
    refused(run(data), "can be written by other users (mode 0666)", f"chmod go-w {data / 'pki' / 'ca.crt'}")
    (data / "pki" / "ca.crt").chmod(0o644)
    tmp_path.chmod(0o777)
    refused(run(data), "can be written by other users (mode 0777)", f"chmod go-w {tmp_path}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_files_of_another_user(pki, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(pki, data / "pki")
    for path in (data, data / "pki", data / "pki" / "ca.key", data / "pki" / "server.crt"):
        os.chown(path, STRANGER, 0)
        refused(run(data), f"{path} belongs to user {STRANGER}", f"chown 0 {path}")
        os.chown(path, 0, 0)


@pytest.mark.parametrize("flag", ["--token-auth-file", "--client-ca-file", "--etcd-cafile"])
def test_files_of_flags(pki, tmp_path, flag):
    """The rule holds through a symbolic link too: the target decides."""
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    target = there / "file"
    target.write_text((pki / "ca.crt").read_text())
    link = tmp_path / "link"
    link.symlink_to("there/file")
    target.chmod(0o662)
    refused(run(tmp_path / "data", f"{flag}={link}"), "can be written by other users (mode 0662)", f"chmod go-w {target}")
    target.chmod(0o644)
    there.chmod(0o775)
    refused(run(tmp_path / "data", f"{flag}={link}"), "can be written by other users (mode 0775)", f"chmod go-w {there}")


def test_manifests_that_others_may_write(tmp_path):
    """The leader applies the manifests with all rights, so no other user may write them."""
    manifests = tmp_path / "manifests"
    manifests.mkdir(mode=0o755)
    manifest = manifests / "10-a.yaml"
    manifest.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    flag = f"--bootstrap-manifests={manifests}"
    for path, mode in ((manifest, 0o666), (manifests, 0o1777)):
        path.chmod(mode)
        done = run(tmp_path / "data", flag)
        assert done.returncode == 2 and done.stderr.endswith(f": chmod go-w {path}\n") and len(done.stderr.splitlines()) == 1, done
        path.chmod(0o755)


def test_a_reload_refuses_too():
    with Cluster(with_witness=False) as cluster:
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text("good,someone,1,\"system:masters\"\n")
        a = cluster.instance("a", f"--token-auth-file={tokens}").wait_ready()
        tokens.write_text("good,someone,1,\"system:masters\"\nplanted,someone,1,\"system:masters\"\n")
        tokens.chmod(0o666)
        (cluster.directory / "pki").chmod(0o777)
        a.send(signal.SIGHUP)
        wait_until("the token file to be refused", lambda: f"chmod go-w {tokens}; keeping the previous tokens" in a.log_text())
        assert f"chmod go-w {cluster.directory / 'pki'}; keeping the previous certificates" in a.log_text()

        def status(token):
            return a.get("/api/v1/secrets", headers={"Authorization": f"Bearer {token}"}, client_certificate=False)[0]
        assert (status("good"), status("planted")) == (200, 401)


def test_a_kubeconfig_that_others_could_replace(tmp_path):
    """Anyone who replaces the kubeconfig chooses the server that the administrator talks to, and the programs that kubectl runs."""
    there = tmp_path / "there"
    there.mkdir()
    flags = ["--storage=memory", "--secure-port=0", f"--write-kubeconfig={there / 'kubeconfig'}"]
    for path, mode in ((there, 0o777), (there, 0o775), (tmp_path, 0o777)):
        path.chmod(mode)
        for check in ([], ["--check"]):
            done = subprocess.run([HOLDFASTD, *check, *flags], capture_output=True, text=True, timeout=30, check=False)
            refused(done, f"flag --write-kubeconfig: {path} can be written by other users (mode {mode:04o})", f"chmod go-w {path}")
        path.chmod(0o755)
    assert not (there / "kubeconfig").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_kubeconfig_keeps_its_owner():
    """Root gave the file to the administrator. A reload and a restart write it again and must keep the owner."""
    with Cluster(with_witness=False) as cluster:
        a = cluster.instance("a").wait_ready()
        os.chown(a.kubeconfig, STRANGER, STRANGER + 1)

        def owner():
            found = a.kubeconfig.stat()
            return found.st_uid, found.st_gid, found.st_mode & 0o777
        with open(a.kubeconfig, "rb") as before:  # an open file keeps its inode from being used again
            a.send(signal.SIGHUP)
            wait_until("it to be written", lambda: a.kubeconfig.stat().st_ino != os.fstat(before.fileno()).st_ino)
        assert owner() == (STRANGER, STRANGER + 1, 0o600)
        with open(a.kubeconfig, "rb") as before:
            a.end()
            with Process(a.args, cluster.directory / "again.log"):
                wait_until("it to be written", lambda: a.kubeconfig.stat().st_ino != os.fstat(before.fileno()).st_ino)
        assert owner() == (STRANGER, STRANGER + 1, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_kubeconfig_that_was_planted_is_not_given_away(tmp_path):
    """In a directory such as /tmp anybody can create the file before the server does."""
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o1777)
    path = there / "kubeconfig"
    path.write_text("planted")
    os.chown(path, STRANGER, STRANGER)
    with Process([HOLDFASTD, "--storage=memory", "--secure-port=0", f"--write-kubeconfig={path}"], tmp_path / "log"):
        wait_until("it to be written", lambda: "planted" not in path.read_text())
        assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (0, 0, 0o600)
