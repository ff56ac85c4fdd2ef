# SPDX-License-Identifier: Apache-2.0
"""A mistake of the user gives one clear line that names its cause, and the documented exit
status."""
import os
import signal
import socket
import subprocess

import pytest
from holdfastd import HOLDFASTD, free_ports, store_flag, wait_until

ETCD = "--etcd-servers=http://127.0.0.1:1"


def run(*flags, limit=90, env=None):
    return subprocess.run([HOLDFASTD, *flags], capture_output=True, text=True, timeout=limit, check=False, env=env)


def one_line(done, status, *words):
    lines = [line for line in done.stderr.splitlines() if line.startswith("holdfastd")]
    assert done.returncode == status, done
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], lines[0]


@pytest.mark.parametrize("flags,words", [
    (["--no-such-flag"], ["--no-such-flag"]),
    ([ETCD, "--v=1", "--v=2"], ["--v", "twice"]),
    ([ETCD, "--secure-port=70000"], ["--secure-port", "70000"]),
    ([ETCD, "--secure-port"], ["--secure-port"]),
    ([ETCD, "--store=x.db"], ["--store", "--etcd-servers"]),
    (["--etcd-servers=ftp://x"], ["--etcd-servers", "ftp://x"]),
    ([ETCD, "--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=9s", "--leader-elect-retry-period=2s"], ["10s", "9s"]),
    ([ETCD, "--leader-elect-lease-duration=1500ms"], ["lease"]),
    ([ETCD, "--leader-elect-retry-period=soon"], ["--leader-elect-retry-period", "soon"]),
    ([ETCD, "--shutdown-delay-duration=-1s"], ["--shutdown-delay-duration"]),
    (["dance"], ["dance"]),
], ids=lambda v: " ".join(v)[:60])
def test_bad_flags_are_named(flags, words, tmp_path):
    one_line(run(*flags, *([f"--data-dir={tmp_path}"] if flags and flags[0].startswith("--etcd") else [])), 2, *words)


def test_an_unknown_controller_is_named(tmp_path):
    done = run(ETCD, f"--data-dir={tmp_path}", "--secure-port=0", "--controllers=*,-dancer")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert all(n in done.stderr for n in ("dancer", "workspace-initializer", "namespace-lifecycle", "garbage-collector", "event-expiry"))


def test_an_unreadable_certificate_is_named(tmp_path):
    one_line(run(ETCD, f"--data-dir={tmp_path}", "--tls-cert-file=/nowhere/cert", "--tls-private-key-file=/nowhere/key"), 1, "/nowhere/cert")


def test_an_invalid_certificate_is_named(tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    one_line(run(ETCD, f"--data-dir={tmp_path / 'd'}", "--secure-port=0", f"--tls-cert-file={bad}", f"--tls-private-key-file={bad}"), 1, "cert")


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one_line(run(ETCD, f"--data-dir={tmp_path}", f"--secure-port={port}"), 1, str(port))


def test_a_read_only_data_directory_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    one_line(run(ETCD, f"--data-dir={file}/data", "--secure-port=0"), 1, str(file))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a full disk")
def test_a_full_disk_is_reported(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", tmp_path], check=True)
    try:
        (tmp_path / "fill").write_bytes(b"x" * 12288)
        done = run(ETCD, f"--data-dir={tmp_path}/d", "--secure-port=0")
        one_line(done, 1, str(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_store_that_cannot_be_opened_is_named(tmp_path):
    done = run("--store=/proc/no/store.db", f"--data-dir={tmp_path}", "--secure-port=0")
    one_line(done, 1, "/proc/no/store.db")


def test_an_unreachable_etcd_is_reported_and_given_up(tmp_path):
    """HK07."""
    port, = free_ports(1)
    done = run(f"--etcd-servers=http://127.0.0.1:{port}", f"--data-dir={tmp_path}", "--secure-port=0", limit=120)
    one_line(done, 1, "--etcd-servers", str(port))


def test_sigterm_ends_the_wait_for_etcd(tmp_path):
    port, = free_ports(1)
    with subprocess.Popen([HOLDFASTD, f"--etcd-servers=http://127.0.0.1:{port}", f"--data-dir={tmp_path}", "--secure-port=0"],
                          stderr=subprocess.PIPE) as child:
        wait_until("holdfastd to serve", (tmp_path / "admin.kubeconfig").exists)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=30) == 0


def test_a_data_directory_is_used_by_one_instance_only(cluster):
    a = cluster.instance("a").wait_ready()
    done = run(store_flag(cluster.etcd.url), f"--data-dir={a.data}", "--instance=a", "--secure-port=0")
    one_line(done, 1, str(a.data), str(a.pid))
    assert a.alive() and a.get("/readyz")[0] == 200
    # Another instance name does not help: the data directory is the same.
    done = run(store_flag(cluster.etcd.url), f"--data-dir={a.data}", "--instance=z", "--secure-port=0")
    one_line(done, 1, str(a.data))


def test_a_second_sigterm_exits_at_once(cluster):
    a = cluster.instance("a", "--shutdown-delay-duration=50s").wait_ready()
    a.send(signal.SIGTERM)
    wait_until("the shutdown", lambda: "ShutdownInitiated" in a.log_text())
    a.send(signal.SIGTERM)
    assert a.wait() == 1


def test_help_and_version_are_printed():
    assert "--etcd-servers" in run("--help").stdout
    assert run("version").stdout.startswith("holdfastd ")
