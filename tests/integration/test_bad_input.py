# SPDX-License-Identifier: Apache-2.0
"""A mistake of the user gives one clear line that names its cause, and the documented exit
status."""
import os
import shutil
import signal
import socket
import subprocess

import pytest
from holdfastd import HOLDFASTD, Process, free_ports, store_flag, wait_until

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
    one_line(run(ETCD, f"--data-dir={tmp_path}", "--tls-cert-file=/nowhere/cert", "--tls-private-key-file=/nowhere/key"), 2, "--tls-cert-file",
             "/nowhere/cert")


@pytest.fixture(name="pki", scope="module")
def _pki(tmp_path_factory):
    """The certificates that an instance has made for itself, and the key of another pair."""
    made = tmp_path_factory.mktemp("made")
    with Process([HOLDFASTD, f"--data-dir={made}", "--secure-port=0"], made / "log") as process:
        wait_until("the certificates", (made / "admin.kubeconfig").exists)
        process.send(signal.SIGTERM)
        assert process.wait() == 0
    return made / "pki"


def good(pki, flag):
    """A file that the flag accepts."""
    return pki / {"--tls-cert-file": "server.crt", "--tls-private-key-file": "server.key", "--etcd-certfile": "admin.crt",
                  "--etcd-keyfile": "admin.key"}.get(flag, "ca.crt")


PAIR = {"--tls-cert-file": "--tls-private-key-file", "--tls-private-key-file": "--tls-cert-file", "--etcd-certfile": "--etcd-keyfile",
        "--etcd-keyfile": "--etcd-certfile"}


@pytest.mark.parametrize("flag", ["--tls-cert-file", "--tls-private-key-file", "--client-ca-file", "--etcd-cafile", "--etcd-certfile",
                                  "--etcd-keyfile", "--token-auth-file"])
@pytest.mark.parametrize("fault", ["missing", "empty", "text", "broken", "directory"])
def test_an_unusable_file_is_named_with_its_flag(pki, tmp_path, flag, fault):
    """The exit status is 2: a restart does not help."""
    bad = tmp_path / "bad.pem"
    if fault == "directory":
        bad.mkdir()
    elif fault != "missing":
        kind = "PRIVATE KEY" if flag.endswith(("key-file", "keyfile")) else "CERTIFICATE"
        bad.write_text({"empty": "", "text": "no PEM\n", "broken": f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n"}[fault])
    flags = [f"{flag}={bad}"]
    if flag in PAIR:
        flags.append(f"{PAIR[flag]}={good(pki, PAIR[flag])}")
    if flag == "--token-auth-file" and fault == "empty":
        pytest.skip("no tokens")
    one_line(run(ETCD, f"--data-dir={tmp_path / 'd'}", "--secure-port=0", *flags), 2, f"flag {flag}: ", str(bad))


@pytest.mark.parametrize("cert", ["--tls-cert-file", "--etcd-certfile"])
def test_a_key_of_another_certificate_is_named_with_both_flags(pki, tmp_path, cert):
    key = pki / "ca.key"
    one_line(run(ETCD, f"--data-dir={tmp_path / 'd'}", "--secure-port=0", f"{cert}={good(pki, cert)}", f"{PAIR[cert]}={key}"), 2,
             cert, str(good(pki, cert)), PAIR[cert], str(key))


def test_a_damaged_generated_certificate_is_named(pki, tmp_path):
    shutil.copytree(pki, tmp_path / "pki")
    (tmp_path / "pki" / "ca.crt").write_text("no PEM")
    one_line(run(ETCD, f"--data-dir={tmp_path}", "--secure-port=0"), 2, "--cert-dir", str(tmp_path / "pki" / "ca.crt"))


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "nowhere" / "kubeconfig"
    one_line(run(ETCD, f"--data-dir={tmp_path}", "--secure-port=0", f"--write-kubeconfig={path}"), 2, "flag --write-kubeconfig: ", str(path))


def test_parents_of_the_data_directory_are_made(tmp_path):
    for directory, cwd in ((tmp_path / "a" / "b" / "data", None), ("c/d/data", tmp_path)):
        with Process([HOLDFASTD, f"--data-dir={directory}", "--secure-port=0"], tmp_path / "log", cwd=cwd) as process:
            made = tmp_path / directory
            wait_until("it to serve", lambda: (made / "admin.kubeconfig").exists() or not process.alive())
            assert process.alive(), process.log_text()
            assert [d.stat().st_mode & 0o777 for d in (made, made.parent)] == [0o700, 0o700]
            process.send(signal.SIGTERM)
            assert process.wait() == 0


def test_parents_that_others_may_write_are_not_used(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    one_line(run(ETCD, f"--data-dir={open_to_all}/b/data", "--secure-port=0"), 2, "--data-dir", f"chmod go-w {open_to_all}")
    assert not list(open_to_all.iterdir())


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one_line(run(ETCD, f"--data-dir={tmp_path}", f"--secure-port={port}"), 1, str(port))


def test_a_read_only_data_directory_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    one_line(run(ETCD, f"--data-dir={file}/data", "--secure-port=0"), 2, "--data-dir", str(file))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a full disk")
def test_a_full_disk_is_reported(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=32", "tmpfs", tmp_path], check=True)
    try:
        (tmp_path / "fill").write_bytes(b"x" * 12288)
        done = run(ETCD, f"--data-dir={tmp_path}/d", "--secure-port=0")
        one_line(done, 1, str(tmp_path))
        # A full disk may have room again later, so the status is 1. First there is no room for the pages of the store, then none for its file.
        other = tmp_path.parent / "elsewhere"
        one_line(run(f"--store={tmp_path}/store.db", f"--data-dir={other}", "--secure-port=0"), 1, str(tmp_path))
        for n in range(64):
            try:
                (tmp_path / f"inode-{n}").write_text("")
            except OSError:
                break
        one_line(run(f"--store={tmp_path}/other.db", f"--data-dir={other}", "--secure-port=0"), 1, str(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_store_that_cannot_be_opened_is_named(tmp_path):
    done = run("--store=/proc/no/store.db", f"--data-dir={tmp_path}", "--secure-port=0")
    one_line(done, 2, "--store", "/proc/no/store.db")


def test_an_unreachable_etcd_is_reported_and_given_up(tmp_path):
    """HK07: A store that does not respond in time ends the start."""
    port, = free_ports(1)
    done = run(f"--etcd-servers=http://127.0.0.1:{port}", f"--data-dir={tmp_path}", "--secure-port=0", limit=120)
    one_line(done, 1, "--etcd-servers", str(port))
    assert done.stderr.count("did not respond within 60 s") == 1, done.stderr


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
    # An instance with another name is refused too: the data directory is the same.
    done = run(store_flag(cluster.etcd.url), f"--data-dir={a.data}", "--instance=z", "--secure-port=0")
    one_line(done, 1, str(a.data))


def test_a_second_sigterm_exits_at_once(cluster):
    a = cluster.instance("a", "--shutdown-delay-duration=50s").wait_ready()
    a.send(signal.SIGTERM)
    wait_until("the shutdown", lambda: "ShutdownInitiated" in a.log_text())
    a.send_again(signal.SIGTERM)
    assert a.wait() == 1
    assert "second stop signal: exiting at once" in a.log_text()


def test_a_release_in_a_wrong_directory_says_so(tmp_path):
    done = run("release", f"--data-dir={tmp_path}", "--instance=a")
    one_line(done, 1, str(tmp_path / "run" / "a.lock"), "--data-dir", "--instance")
    assert not list(tmp_path.iterdir())


def test_after_a_mistake_the_release_of_the_unit_does_not_repeat_it(tmp_path):
    """systemd's variables tell the command of ExecStopPost= how the server ended."""
    ended = {**os.environ, "SERVICE_RESULT": "exit-code", "EXIT_CODE": "exited", "EXIT_STATUS": "2"}
    done = run("release", "--nonsense", env=ended)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    done = run("release", f"--data-dir={tmp_path}", "--instance=a", env=ended)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    one_line(run("release", "--nonsense", env={**ended, "EXIT_STATUS": "1"}), 2, "--nonsense")
    one_line(run("release", "--storage=memory", f"--write-kubeconfig={tmp_path / 'k'}"), 2, "--storage=memory", "no Lease to release")


def test_help_and_version_are_printed():
    assert "--etcd-servers" in run("--help").stdout
    assert run("version").stdout.startswith("holdfastd ")
