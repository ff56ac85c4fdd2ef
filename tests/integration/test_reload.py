# SPDX-License-Identifier: Apache-2.0
"""SIGHUP at any time, and what a reload must not disturb."""
import fcntl
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from holdfastd import Cluster, wait_until


class Manager:
    """The service manager's end of the notify socket. Like systemd it reads all the time: the kernel keeps few unread
    messages, and then sd_notify blocks."""

    def __init__(self, directory):
        self.path = str(directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.received = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            self.received += self.socket.recv(4096).decode().splitlines()

    def lines(self):
        return list(self.received)


@pytest.fixture(name="cluster")
def _cluster():
    with Cluster(with_witness=False) as cluster:
        yield cluster


def test_sighup_during_the_start_reports_no_readiness(cluster):
    manager = Manager(cluster.directory)
    cluster.etcd.send(signal.SIGSTOP)
    a = cluster.instance("a", env={"NOTIFY_SOCKET": manager.path})
    wait_until("it waits for etcd", lambda: any("waiting for etcd" in line for line in manager.lines()))
    for _ in range(5):
        a.send(signal.SIGHUP)
    # The main loop extends the timeout every ten seconds. Another extension shows that it has handled the signals.
    n = len([line for line in manager.lines() if line.startswith("EXTEND_TIMEOUT_USEC")])
    wait_until("the main loop turned", lambda: len([x for x in manager.lines() if x.startswith("EXTEND_TIMEOUT_USEC")]) > n)
    assert "READY=1" not in manager.lines()
    cluster.etcd.send(signal.SIGCONT)
    a.wait_ready()
    wait_until("the reload is made up for", lambda: "tokens reloaded" in a.log_text())
    assert manager.lines().index("READY=1") < manager.lines().index("RELOADING=1")


def test_sighup_with_broken_files_or_during_a_stop_is_harmless(cluster):
    manager = Manager(cluster.directory)
    tokens = cluster.directory / "tokens.csv"
    tokens.write_text("good,someone,1,\"system:masters\"\n")
    a = cluster.instance("a", f"--token-auth-file={tokens}", "--shutdown-delay-duration=2s", env={"NOTIFY_SOCKET": manager.path}).wait_ready()
    bearer = {"Authorization": "Bearer good"}
    assert a.get("/api/v1/namespaces", headers=bearer, client_certificate=False)[0] == 200
    tokens.write_text("\"bad,\n")
    a.send(signal.SIGHUP)
    wait_until("the broken file is named", lambda: "tokens.csv" in a.log_text())
    assert a.get("/api/v1/namespaces", headers=bearer, client_certificate=False)[0] == 200
    tokens.write_text("new,someone,1,\"system:masters\"\n")
    a.send(signal.SIGHUP)
    wait_until("the reload", lambda: "tokens reloaded" in a.log_text())
    assert a.get("/api/v1/namespaces", headers=bearer, client_certificate=False)[0] == 401
    a.send(signal.SIGTERM)
    wait_until("it says that it stops", lambda: "STOPPING=1" in manager.lines())
    for _ in range(5):
        a.send(signal.SIGHUP)
    assert a.wait() == 0
    assert "READY=1" not in manager.lines()[manager.lines().index("STOPPING=1"):]


class HeldLock:
    """The lock of the certificate directory, held by this process as another instance would
    while it makes certificates."""

    def __init__(self, cluster):
        self.file = open(cluster.directory / "pki" / ".lock", "r+", encoding="ascii")
        fcntl.lockf(self.file, fcntl.LOCK_EX)

    def let_go(self):
        self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_go()


def milestones(manager):
    return [line for line in manager.lines() if line in ("READY=1", "RELOADING=1", "STOPPING=1")]


def test_an_instance_without_an_election_feeds_the_watchdog(cluster):
    manager = Manager(cluster.directory)
    cluster.instance("a").wait_ready()
    cluster.instance("b", "--leader-elect=false", env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"}).wait_ready()
    wait_until("READY=1", lambda: "READY=1" in manager.lines())
    fed = manager.lines().count("WATCHDOG=1")
    wait_until("the watchdog to be fed twice", lambda: manager.lines().count("WATCHDOG=1") >= fed + 2)


def test_a_waiting_reload_delays_nothing(cluster):
    """While another process holds the lock, the watchdog is notified. The reload completes when
    the lock is free."""
    manager = Manager(cluster.directory)
    a = cluster.instance("a", env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "4000000"}).wait_ready()
    wait_until("the first feeding", lambda: "WATCHDOG=1" in manager.lines())
    with HeldLock(cluster) as lock:
        a.send(signal.SIGHUP)
        wait_until("the reload to begin", lambda: "RELOADING=1" in manager.lines())
        fed = manager.lines().count("WATCHDOG=1")
        # Any number of requests meanwhile causes only one more reload.
        for _ in range(3):
            a.send(signal.SIGHUP)
        wait_until("the watchdog to be fed twice", lambda: manager.lines().count("WATCHDOG=1") >= fed + 2)
        # The reload still waits: it has neither ended nor given up.
        assert milestones(manager) == ["READY=1", "RELOADING=1"]
        assert "reload" not in a.log_text() and a.get("/readyz")[0] == 200
        lock.let_go()
    both = ["READY=1", "RELOADING=1", "READY=1", "RELOADING=1", "READY=1"]
    wait_until("both reloads to end", lambda: milestones(manager) == both)
    assert a.log_text().count("certificates reloaded") == a.log_text().count("tokens reloaded") == 2
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    assert milestones(manager) == [*both, "STOPPING=1"]


def test_a_stop_does_not_wait_for_a_reload(cluster):
    manager = Manager(cluster.directory)
    a = cluster.instance("a", env={"NOTIFY_SOCKET": manager.path}).wait_ready()
    with HeldLock(cluster):
        a.send(signal.SIGHUP)
        wait_until("the reload to begin", lambda: "RELOADING=1" in manager.lines())
        a.send(signal.SIGTERM)
        assert a.wait() == 0
    # The reload ended because of the stop, not because the 30 s of the lock were over.
    assert "the server stops" in a.log_text() and "is held by another process" not in a.log_text()
    assert milestones(manager) == ["READY=1", "RELOADING=1", "STOPPING=1"]


def test_keys_and_kubeconfig_are_private(cluster):
    """With any umask, only the owner can read keys and the kubeconfig."""
    old = os.umask(0)
    try:
        a = cluster.instance("a").wait_ready()
    finally:
        os.umask(old)
    for path in [a.kubeconfig, *(cluster.directory / "pki").glob("*.key")]:
        assert path.stat().st_mode & 0o77 == 0, path
    for path in [a.data, cluster.directory / "pki"]:
        assert path.stat().st_mode & 0o77 == 0, path


def test_foreign_client_certificates_are_unauthorized(cluster, tmp_path):
    """Certificates of another CA, expired ones, and server certificates get a 401 after a
    completed handshake. None of them counts as anonymous."""
    import subprocess
    a = cluster.instance("a").wait_ready()
    pki = cluster.directory / "pki"

    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "other.key", "-out",
            tmp_path / "other.crt", "-subj", "/O=system:masters/CN=evil")
    usage = tmp_path / "server.ext"
    usage.write_text("extendedKeyUsage=serverAuth\n")
    for name, extra in (("expired", ["-days", "-1"]), ("server", ["-days", "1", "-extfile", usage])):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / f"{name}.key", "-out",
                tmp_path / f"{name}.csr", "-subj", "/O=system:masters/CN=evil")
        openssl("x509", "-req", "-in", tmp_path / f"{name}.csr", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial",
                "-CAserial", tmp_path / "serial", "-out", tmp_path / f"{name}.crt", *extra)
    host, port = a.url.removeprefix("https://").split(":")
    for name in ("other", "expired", "server"):
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host) as tls:
            for path in ("/api/v1/namespaces", "/healthz"):
                tls.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert tls.recv(65536).startswith(b"HTTP/1.1 401 "), (name, path)
                tls.settimeout(5)


def test_certificates_are_renewed_while_it_runs(cluster):
    """Certificates are renewed 30 days before they expire. The test makes one for which that is some seconds after the start."""
    a = cluster.instance("a").wait_ready()
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    pki = cluster.directory / "pki"
    until = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + 30 * 24 * 3600 + 8))
    work = cluster.directory / "ca"
    work.mkdir()
    (work / "index").write_text("")
    (work / "serial").write_text("1000\n")
    shown = subprocess.run(["openssl", "x509", "-in", pki / "server.crt", "-noout", "-ext", "subjectAltName"], check=True, capture_output=True, text=True)
    names = shown.stdout.splitlines()[-1].replace("IP Address", "IP").replace(" ", "")
    for name, extensions in (("server", f"subjectAltName={names}\nextendedKeyUsage=serverAuth"), ("admin", "extendedKeyUsage=clientAuth")):
        (work / "conf").write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={work}/index\nserial={work}/serial\nnew_certs_dir={work}\ndefault_md=sha256\npolicy=p\nunique_subject=no\n"
            f"[p]\norganizationName=optional\ncommonName=optional\n[e]\n{extensions}\n")
        subprocess.run(["openssl", "req", "-new", "-key", pki / f"{name}.key", "-subj", "/O=system:masters/CN=holdfast-admin", "-out", work / "csr"],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "ca", "-batch", "-notext", "-config", work / "conf", "-extensions", "e", "-cert", pki / "ca.crt", "-keyfile", pki / "ca.key",
                        "-enddate", until, "-in", work / "csr", "-out", pki / f"{name}.crt"], check=True, capture_output=True)
    before = [(pki / name).read_text() for name in ("server.crt", "admin.crt")]
    a = cluster.instance("a").wait_ready()
    assert [(pki / name).read_text() for name in ("server.crt", "admin.crt")] == before, "they were renewed at the start already"
    served, kubeconfig = ssl.get_server_certificate(("127.0.0.1", int(a.url.rpartition(":")[2]))), a.kubeconfig.read_text()
    wait_until("it renews them", lambda: "certificates reloaded" in a.log_text())
    wait_until("it writes the kubeconfig", lambda: a.kubeconfig.read_text() != kubeconfig)
    assert not set(before) & {(pki / name).read_text() for name in ("server.crt", "admin.crt")}
    assert ssl.get_server_certificate(("127.0.0.1", int(a.url.rpartition(":")[2]))) != served
    assert a.get("/readyz")[0] == 200
    expiry = re.findall(r'holdfast_certificate_expiry_seconds{certificate="([a-zA-Z ]+)"} (\S+)', a.get("/metrics")[1])
    assert {name for name, _ in expiry} == {"serving", "client CA", "admin"}
    assert all(float(at) > time.time() + 300 * 24 * 3600 for _, at in expiry)


def test_a_given_certificate_that_expires_soon_is_warned_of(cluster, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "k", "-out", tmp_path / "c"], check=True, capture_output=True)
    a = cluster.instance("a", f"--tls-cert-file={tmp_path / 'c'}", f"--tls-private-key-file={tmp_path / 'k'}")
    wait_until("it warns", lambda: "the serving certificate expires at " in a.log_text())
