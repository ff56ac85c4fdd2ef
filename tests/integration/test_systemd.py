# SPDX-License-Identifier: Apache-2.0
"""The shipped units under a real systemd: ready, status, watchdog, release after a crash, reload, socket activation.

The units run unchanged; drop-ins only shorten WatchdogSec= and RestartSec= for a test that is about them.
"""
import ctypes
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import ssl
import subprocess
import time

import pytest
from holdfastd import BUILD, FAST, HOLDFASTD, LEASE, LIMIT, ROOT, Instance, free_ports, wait_until
from systemd_namespace import UNIT_DIR, Systemd, why_not

SERVICE = BUILD / "server" / "systemd" / "holdfastd@.service"
SOCKET = BUILD / "server" / "systemd" / "holdfastd@.socket"
if not SERVICE.exists():
    pytest.skip("this build has no libsystemd", allow_module_level=True)
pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
PROGRAM = re.search(r"^ExecStart=(\S+)", SERVICE.read_text(), re.M).group(1)
# The lease outlasts every wait of these tests, so no take-over is caused by an expiry.
LONG = ["--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=1s"]


class Unit(Instance):
    """One instance as a unit: the test sends requests to its socket, and starts and stops it
    through systemctl."""

    # pylint: disable=super-init-not-called
    def __init__(self, host, name):
        self.host, self.name, self.unit = host, name, f"holdfastd@{name}.service"

    @property
    def directory(self):
        return self.host.systemd.resolve(f"/var/lib/holdfast/{self.name}")

    @property
    def pki(self):
        return self.host.systemd.resolve("/var/lib/holdfast-shared/pki")

    @property
    def kubeconfig(self):
        return self.directory / "admin.kubeconfig"

    def start(self, check=True):
        return self.host.systemd.systemctl("start", self.unit, check=check)

    def stop(self):
        self.host.systemd.systemctl("stop", self.unit)

    def show(self, prop):
        return self.host.systemd.show(self.unit, prop)

    def kill(self, number):
        self.host.systemd.systemctl("kill", "--kill-whom=main", f"--signal={number}", self.unit)

    def niceness(self, prefix):
        """The nice values of the threads whose names begin like this."""
        stats = [(task / "stat").read_text() for task in self.tasks()]
        return {int(stat.rpartition(")")[2].split()[16]) for stat in stats if f"({prefix}" in stat}

    def slices(self, prefix):
        """How many milliseconds such threads may run while others wait. Empty: the kernel does not tell, or threads have no slices of their own there."""
        if tuple(int(n) for n in os.uname().release.split(".")[:2]) < (6, 12):
            return set()
        texts = [(task / "sched").read_text() for task in self.tasks() if (task / "sched").exists()]
        return {float(found[1]) / 1e6 for text in texts if text.startswith(prefix) and (found := re.search(r"se\.slice *: *(\d+)", text))}

    def tasks(self):
        return pathlib.Path(f"/proc/{self.host_pid()}/task").iterdir()

    def host_pid(self):
        """The process id of the main process in the namespace of the test."""
        inside = self.show("MainPID")
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            if re.search(rf"^NSpid:.*\t{inside}$", text, re.M) and re.search(r"^Name:\tholdfastd$", text, re.M) and self.host.systemd.holds(status.parent):
                return int(status.parent.name)
        raise AssertionError(f"no process {inside} inside")

    def wait_status(self, pattern):
        return wait_until(f"the status of {self.name} to be like {pattern!r}", lambda: re.fullmatch(pattern, self.show("StatusText")))

    def wait_active_again(self, restarts):
        wait_until(f"{self.name} to be started again", lambda: (self.show("NRestarts"), self.show("ActiveState")) == (str(restarts), "active"))

    def log_text(self):
        return self.host.systemd.journal(self.unit)

    def entries(self, *matches):
        """The journal entries of the main process, oldest first. Without matches: all entries of
        the unit."""
        out = self.host.systemd.run("journalctl", "--no-pager", "--output=json", f"--unit={self.unit}",
                                    *matches, check=False)
        return [json.loads(line) for line in out.splitlines()]

    def invocation(self):
        return {p: self.show(p) for p in ("MainPID", "NRestarts", "InvocationID", "ActiveState")}


class Traced:
    """One thread of a process, stopped by ptrace while the other threads continue."""

    ATTACH, DETACH = 16, 17

    def __init__(self, pid, name):
        tasks = pathlib.Path(f"/proc/{pid}/task")
        self.tid, = [int(t.name) for t in tasks.iterdir() if (t / "comm").read_text().strip() == name]
        self.libc = ctypes.CDLL(None, use_errno=True)
        assert self.libc.ptrace(self.ATTACH, self.tid, None, None) == 0, os.strerror(ctypes.get_errno())
        self.is_over = False
        assert wait_until("it to stop", lambda: self.look()), "it has ended"

    def look(self):
        """Reaps the stopped thread as its tracer."""
        tid, status = os.waitpid(self.tid, os.WNOHANG | 0x40000000)  # __WALL
        self.is_over = self.is_over or (tid != 0 and not os.WIFSTOPPED(status))
        return tid != 0

    def ended(self):
        self.look()
        return self.is_over

    def let_go(self):
        if not self.is_over:
            self.libc.ptrace(self.DETACH, self.tid, None, None)


class Host:
    def __init__(self, cluster, systemd):
        self.cluster, self.systemd, self.witness = cluster, systemd, cluster.witness
        for unit in (SERVICE, SOCKET):
            systemd.write(f"{UNIT_DIR}/{unit.name}", unit.read_text())
        self.flags(LONG)
        self.ports = dict(zip("ab", free_ports(2)))
        for name, port in self.ports.items():
            systemd.write(f"/etc/holdfast/holdfastd-{name}.env", f"HOLDFASTD_INSTANCE_FLAGS=--secure-port={port}\n")
        systemd.systemctl("daemon-reload")
        self.a, self.b = Unit(self, "a"), Unit(self, "b")

    def flags(self, timing):
        self.systemd.write("/etc/holdfast/holdfastd.env", f"HOLDFASTD_FLAGS=--etcd-servers={self.cluster.etcd.url} --v=2 {' '.join(timing)}\n")

    def drop_in(self, text, unit=""):
        self.systemd.write(f"{UNIT_DIR}/holdfastd@.service.d/test.conf", f"[Unit]\n{unit}\n[Service]\n{text}\n")
        self.systemd.systemctl("daemon-reload")

    def start_leader_and_follower(self):
        self.a.start()
        self.a.wait_status(r"leading kube-system/holdfast-controllers, term \d+")
        self.b.start()
        self.b.wait_status(r"following \S+_a_\S+")
        return self.a, self.b

    def holders(self, mark):
        """The holders of the Lease since the mark, in the order of revisions, without
        repetitions."""
        names = [e["object"]["spec"].get("holderIdentity") or "" for e in self.witness.seen()[mark:] if e["key"] == LEASE and e["type"] == "PUT"]
        short = [(re.findall(r"_([ab])_", n) or [n])[0] for n in names]
        return [n for i, n in enumerate(short) if i == 0 or short[i - 1] != n]

    def wait_holder(self, name, mark):
        self.witness.wait_holder(lambda h: f"_{name}_" in h, f"{name} to lead", mark)


@pytest.fixture
def host(cluster):
    with Systemd(HOLDFASTD, os.path.dirname(PROGRAM)) as systemd:
        yield Host(cluster, systemd)
        print(systemd.journal())  # pytest prints this only for a failed test


def release_by_hand(host, unit):
    """Runs the ExecStopPost= command of the unit as root, outside the unit."""
    flags = host.systemd.file("/etc/holdfast/holdfastd.env").read_text().partition("=")[2]
    return subprocess.run(
        ["nsenter", f"--target={host.systemd.pid}", "--mount", "--pid", "--", PROGRAM, "release", f"--instance={unit.name}",
         f"--data-dir=/var/lib/holdfast/{unit.name}", "--shared-dir=/var/lib/holdfast-shared", f"--runtime-dir=/run/holdfast-{unit.name}", *shlex.split(flags)],
        capture_output=True, text=True, check=False, timeout=LIMIT)


def test_the_unit_verifies_and_is_hardened(host):
    done = host.systemd.run("sh", "-c", f"systemd-analyze --man=no verify {UNIT_DIR}/holdfastd@.service 2>&1 && "
                            f"systemd-analyze --man=no verify {UNIT_DIR}/holdfastd@.socket 2>&1")
    assert "holdfast" not in done, done
    report = json.loads(host.systemd.run("systemd-analyze", "security", "--offline=yes", "--json=short", f"{UNIT_DIR}/{SERVICE.name}"))
    assert report
    text = host.systemd.run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"{UNIT_DIR}/{SERVICE.name}")
    assert float(re.search(r"Overall exposure level.*: ([\d.]+)", text).group(1)) <= 1.5, text


def test_readiness_status_stop_and_hand_over_work(host):
    a, b = host.start_leader_and_follower()
    for unit in (a, b):
        assert unit.show("ActiveState") == "active"  # systemctl start returns when the unit is ready
        assert unit.get("/readyz")[0] == 200
        assert host.systemd.show(unit.unit, "NRestarts") == "0"
        # A bug that takes memory or threads without end ends this service, and nothing else on the host.
        assert (unit.show("MemoryMax"), unit.show("TasksMax")) == (str(4 << 30), "1024")
        # The filter of system calls lets the threads for large requests give way to the others.
        assert unit.niceness("hfd-work-") == {15} and unit.niceness("hfd-http") == {0}
        assert unit.slices("hfd-work-") in (set(), {0.1})
    mark = host.witness.mark()
    a.stop()
    assert (a.show("Result"), a.show("ActiveState"), a.show("ExecMainStatus")) == ("success", "inactive", "0")
    host.wait_holder("b", mark)
    b.wait_status(r"leading kube-system/holdfast-controllers, term \d+")
    holders = host.holders(mark)
    assert holders[-2:] == ["", "b"], holders
    # ExecStopPost= had nothing to do: it printed nothing and succeeded.
    assert "holdfastd release" not in a.log_text() and "released the Lease" not in a.log_text()
    assert not host.systemd.file("/run/holdfast-a").exists()
    # The unit starts again with its data, as a follower.
    a.start()
    a.wait_status(r"following \S+_b_\S+")


def test_two_units_work_without_any_flag_but_a_port(host):
    """Without etcd two instances share a file and a CA. One leads, the kubeconfig of each is valid for both, and a crash frees the Lease."""
    host.systemd.write("/etc/holdfast/holdfastd.env", f"HOLDFASTD_FLAGS=--v=2 {' '.join(LONG)}\n")
    a, b = host.start_leader_and_follower()
    authorities = {json.loads(host.systemd.file(f"/var/lib/holdfast/{unit.name}/admin.kubeconfig").read_text())["clusters"][0]["cluster"]
                   ["certificate-authority-data"] for unit in (a, b)}
    assert len(authorities) == 1
    assert a.get("/readyz")[0] == b.get("/readyz")[0] == 200
    term, dead = a.leader()["term"], a.identity()
    a.kill("SIGKILL")
    led = b.wait_status(r"leading kube-system/holdfast-controllers, term (\d+)")
    assert int(led.group(1)) > term
    a.wait_active_again(1)
    a.wait_status(r"following \S+_b_\S+")
    assert f"released the Lease kube-system/holdfast-controllers of {dead}" in a.log_text()
    for unit in (a, b):
        unit.stop()
        assert unit.show("Result") == "success"


def test_a_crash_of_the_leader_frees_the_lease_at_once(host):
    a, b = host.start_leader_and_follower()
    term, dead = a.leader()["term"], a.identity()
    mark = host.witness.mark()
    a.kill("SIGKILL")
    # There was a release in between, so the standby did not wait for the expiry, which would take
    # 60 s.
    host.wait_holder("b", mark)
    holders = host.holders(mark)
    assert holders[-2:] == ["", "b"] and holders[:-2] in ([], ["a"]), holders
    led = b.wait_status(r"leading kube-system/holdfast-controllers, term (\d+)")
    assert int(led.group(1)) > term
    a.wait_active_again(1)
    a.wait_status(r"following \S+_b_\S+")
    assert f"released the Lease kube-system/holdfast-controllers of {dead}" in a.log_text()
    assert a.identity() != dead
    assert b.show("NRestarts") == "0"


def test_a_crash_of_a_follower_changes_nothing(host):
    a, b = host.start_leader_and_follower()
    before, term = a.invocation(), a.leader()["term"]
    mark = host.witness.mark()
    b.kill("SIGKILL")
    b.wait_active_again(1)
    b.wait_status(r"following \S+_a_\S+")
    assert host.holders(mark) in ([], ["a"])
    assert a.leader()["term"] == term and a.invocation() == before


def test_a_crash_without_etcd_releases_nothing_and_restarts(host):
    """Without etcd nothing can be released. The command reports that, ends soon, and does not
    prevent a restart."""
    a = host.a
    a.start()
    a.wait_status(r"leading .*")
    host.cluster.etcd.end()
    a.kill("SIGKILL")
    a.wait_status(rf"waiting for etcd at {re.escape(host.cluster.etcd.url)}")
    assert "cannot free the Lease kube-system/holdfast-controllers" in a.log_text()
    host.cluster.etcd.start()
    a.wait_active_again(1)
    # The Lease of the dead instance counts as foreign, and expires.
    a.wait_status(r"following \S+_a_\S+")


def test_a_stop_without_etcd_ends(host):
    host.flags(FAST)
    a = host.a
    a.start()
    a.wait_status(r"leading .*")
    host.cluster.etcd.send(signal.SIGSTOP)
    a.stop()
    assert a.show("ActiveState") in ("inactive", "failed") and a.show("ExecMainStatus") == "0"
    host.cluster.etcd.send(signal.SIGCONT)


@pytest.mark.parametrize("how", ["ended", "hung"])
def test_a_long_etcd_outage_does_not_trigger_the_watchdog(host, how):
    host.flags(FAST)
    host.drop_in("WatchdogSec=4s")
    a, b = host.start_leader_and_follower()
    before = a.invocation(), b.invocation()
    term = a.leader()["term"]
    host.cluster.etcd.end() if how == "ended" else host.cluster.etcd.send(signal.SIGSTOP)
    wait_until("the leader to stop leading", lambda: a.leader()["state"] == "following")
    a.wait_status(r"following .*")
    # The watchdog is notified every 2 s; three notifications without etcd take longer than
    # WatchdogSec=.
    for _ in range(3):
        fed = a.show("WatchdogTimestampMonotonic")
        wait_until("the watchdog to be fed", lambda: a.show("WatchdogTimestampMonotonic") != fed)  # pylint: disable=cell-var-from-loop
    host.cluster.etcd.start() if how == "ended" else host.cluster.etcd.send(signal.SIGCONT)
    wait_until("one to lead again", lambda: [u for u in (a, b) if u.leader()["state"] == "leading" and u.leader()["term"] > term])
    assert (a.invocation(), b.invocation()) == before
    assert before[0]["NRestarts"] == before[1]["NRestarts"] == "0"


def killed_by_watchdog(host, a, b, mark):
    host.wait_holder("b", mark)
    assert host.holders(mark)[-2:] == ["", "b"]
    a.wait_active_again(1)
    assert re.search(r"[Ww]atchdog timeout", a.log_text())
    assert b.show("NRestarts") == "0"


def test_the_watchdog_ends_a_hung_process_and_frees_its_lease(host):
    host.drop_in("WatchdogSec=4s")
    a, b = host.start_leader_and_follower()
    mark = host.witness.mark()
    a.kill("SIGSTOP")
    killed_by_watchdog(host, a, b, mark)


@pytest.mark.parametrize("loop", ["hf-elector", "hfd-etcd", "hfd-http-0", "hfd-http"])
def test_one_hung_loop_is_enough_for_the_watchdog(host, loop):
    host.drop_in("WatchdogSec=4s")
    a, b = host.start_leader_and_follower()
    for _ in range(300):  # a busy loop makes many more iterations than idle ones
        assert a.get("/livez")[0] == 200
    thread = Traced(a.host_pid(), loop)
    mark = host.witness.mark()
    try:
        wait_until("the watchdog to end it", thread.ended)
    finally:
        thread.let_go()
    killed_by_watchdog(host, a, b, mark)


def test_timeouts_are_extended_during_start_and_stop(host):
    """Start and stop take longer than the unit allows, and systemd waits because the server
    extends the timeout."""
    host.flags([*LONG, "--shutdown-delay-duration=4s"])
    host.drop_in("TimeoutStartSec=2s\nTimeoutStopSec=2s")
    a = host.a
    host.cluster.etcd.end()
    host.systemd.systemctl("start", "--no-block", a.unit)
    a.wait_status(rf"waiting for etcd at {re.escape(host.cluster.etcd.url)}")
    begin = int(a.show("ExecMainStartTimestampMonotonic"))
    wait_until("more than the timeout to pass", lambda: time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6 > begin + 3e6)
    assert a.show("ActiveState") == "activating"
    host.cluster.etcd.start()
    a.wait_status(r"leading kube-system/holdfast-controllers, term \d+")
    assert (a.show("ActiveState"), a.show("NRestarts")) == ("active", "0")
    a.stop()
    assert (a.show("Result"), a.show("ActiveState"), a.show("ExecMainStatus")) == ("success", "inactive", "0")


def test_log_lines_are_journal_entries_with_fields(host):
    a, b = host.start_leader_and_follower()
    term = str(a.leader()["term"])
    lease = "kube-system/holdfast-controllers"
    leading = wait_until("the line about the term", lambda: a.entries(f"HOLDFAST_TERM={term}", "HOLDFAST_COMPONENT=elector"))[0]
    assert f"leading, term {term} " in leading["MESSAGE"] and leading["MESSAGE"].startswith("elector: ")
    assert {name: leading[name] for name in ("PRIORITY", "SYSLOG_IDENTIFIER", "HOLDFAST_INSTANCE", "HOLDFAST_LEASE")} == {
        "PRIORITY": "5", "SYSLOG_IDENTIFIER": "holdfastd", "HOLDFAST_INSTANCE": "a", "HOLDFAST_LEASE": lease}
    assert leading["_TRANSPORT"] == "journal" and leading["_SYSTEMD_UNIT"] == a.unit
    assert "CODE_FILE" not in leading
    # A line of another component has the term of the process too. A line of a follower has none.
    assert wait_until("the end of the bootstrap", lambda: a.entries(f"HOLDFAST_TERM={term}", "HOLDFAST_COMPONENT=bootstrap"))
    ready = [e for e in b.entries() if e["MESSAGE"].startswith("holdfastd: ready")]
    assert len(ready) == 1 and ready[0]["HOLDFAST_INSTANCE"] == "b" and "HOLDFAST_TERM" not in ready[0]
    # No line was also written to stderr.
    for unit in (a, b):
        assert [e["MESSAGE"] for e in unit.entries(f"_SYSTEMD_UNIT={unit.unit}") if e["_TRANSPORT"] == "stdout"] == []
    # The last lines of the term still have it, later lines do not.
    a.stop()
    drained = a.entries(f"HOLDFAST_TERM={term}")
    assert any("draining the controllers of the term" in e["MESSAGE"] for e in drained)
    last = [e for e in a.entries() if e["MESSAGE"] == "lifecycle: InFlightRequestsDrained"]
    assert len(last) == 1 and "HOLDFAST_TERM" not in last[0] and last[0]["HOLDFAST_LEASE"] == lease


def test_log_lines_go_to_stderr_without_the_journal_socket(host):
    """The unit cannot reach the socket for entries, but its stderr is connected to the journal."""
    host.drop_in("InaccessiblePaths=/run/systemd/journal/socket")
    a = host.a
    a.start()
    a.wait_status(r"leading .*")
    ready = wait_until("the line", lambda: [e for e in a.entries() if e["MESSAGE"].startswith("holdfastd: ready")])
    assert [(e["_TRANSPORT"], e["PRIORITY"]) for e in ready] == [("stdout", "5")]
    assert all("HOLDFAST_INSTANCE" not in e for e in a.entries())


def test_systemctl_reload_reads_certificates_and_tokens(host):
    a, _ = host.start_leader_and_follower()
    before = a.invocation()
    served = ssl.get_server_certificate(("127.0.0.1", host.ports["a"]))
    for name in ("server.crt", "server.key"):
        (a.pki / name).unlink()  # a new key and certificate are made
    host.systemd.systemctl("reload", a.unit)
    wait_until("the reload", lambda: "tokens reloaded" in a.log_text())
    assert ssl.get_server_certificate(("127.0.0.1", host.ports["a"])) != served
    wait_until("it to be active", lambda: a.show("SubState") == "running")
    assert a.get("/readyz")[0] == 200 and a.invocation() == before


def test_flags_may_have_spaces_and_credentials_are_readable(host):
    """Quotes in HOLDFASTD_FLAGS= keep spaces. A file that only root can read reaches the service
    as a credential."""
    host.systemd.write("/etc/holdfast/tokens", "the-token,someone,1,\"system:masters\"\n")
    host.systemd.file("/etc/holdfast/tokens").chmod(0o600)
    host.drop_in("LoadCredential=tokens:/etc/holdfast/tokens")
    host.systemd.write("/etc/holdfast/holdfastd-a.env", f"HOLDFASTD_INSTANCE_FLAGS=--secure-port={host.ports['a']} "
                       '--token-auth-file=/run/credentials/holdfastd@a.service/tokens "--etcd-prefix=/a registry"\n')
    host.a.start()
    path = "/api/v1/namespaces"
    assert host.a.get(path, headers={"Authorization": "Bearer the-token"}, client_certificate=False)[0] == 200
    assert host.a.get(path, headers={"Authorization": "Bearer another"}, client_certificate=False)[0] == 401


def test_a_mistake_in_the_flags_is_reported_once_and_not_retried(host):
    host.flags([*LONG, "--nonsense"])
    host.a.start(check=False)
    assert (host.a.show("ActiveState"), host.a.show("NRestarts"), host.a.show("ExecMainStatus")) == ("failed", "0", "2")
    assert host.a.log_text().count("unknown flag --nonsense") == 1


def test_an_unusable_file_is_not_retried(host):
    host.flags([*LONG, "--tls-cert-file=/nowhere/cert", "--tls-private-key-file=/nowhere/key"])
    host.a.start(check=False)
    assert (host.a.show("ActiveState"), host.a.show("NRestarts"), host.a.show("ExecMainStatus")) == ("failed", "0", "2")
    assert host.a.log_text().count("/nowhere/cert") == 1


@pytest.mark.parametrize("why", ["the disk is full", "the port is taken"])
def test_a_unit_comes_back_by_itself_after_many_failed_starts(host, why):
    """Each start fails at once, but not with status 2: the cause may go away by itself, so systemd must go on with restarts.

    For the test all times of the unit are a hundredth of what they are, so that their ratios stay."""
    private = "/var/lib/private/holdfast/b"
    pause, interval = (int(re.search(rf"^{name}=(\d+)s$", SERVICE.read_text(), re.M)[1]) for name in ("RestartSec", "StartLimitIntervalSec"))
    host.drop_in(f"RestartSec={10 * pause}ms", unit=f"StartLimitIntervalSec={10 * interval}ms")
    if why == "the disk is full":
        host.systemd.run("install", "-d", "-m", "0700", "/var/lib/private", "/var/lib/private/holdfast", private)
        host.systemd.run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", private)
        host.systemd.run("dd", "if=/dev/zero", f"of={private}/others", "bs=4k", check=False)
    else:
        host.systemd.write("/etc/holdfast/holdfastd-b.env", f"HOLDFASTD_INSTANCE_FLAGS=--secure-port={host.ports['a']}\n")
        host.a.start()
    host.systemd.systemctl("start", "--no-block", host.b.unit)
    wait_until("many starts", lambda: int(host.b.show("NRestarts")) > 65, limit=2 * LIMIT)
    assert ("No space left on device" if why == "the disk is full" else "is taken by another process") in host.b.log_text()
    if why == "the disk is full":
        host.systemd.file(f"{private}/others").unlink()
    else:
        host.a.stop()
    wait_until("it to be active", lambda: host.b.show("ActiveState") == "active")


def test_a_loop_of_starts_without_pauses_ends(host):
    """Status 2 is not retried, but the connection that waits at the socket starts the service again at once, each time."""
    host.systemd.write(f"{UNIT_DIR}/holdfastd@a.socket.d/test.conf", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{host.ports['a']}\n")
    host.flags([*LONG, "--nonsense"])
    host.systemd.systemctl("daemon-reload")
    host.systemd.systemctl("start", "holdfastd@a.socket")
    with socket.create_connection(("127.0.0.1", host.ports["a"])):
        wait_until("the socket to be given up", lambda: host.systemd.show("holdfastd@a.socket", "ActiveState") == "failed")
    limit = int(host.a.show("StartLimitBurst"))
    assert 1 < host.a.log_text().count("unknown flag --nonsense") <= 2 * limit  # `holdfastd release` of ExecStopPost= says it, too
    # The words of the documentation: correct the cause, reset, start.
    host.flags(LONG)
    host.systemd.systemctl("reset-failed", "holdfastd@a.socket", host.a.unit)
    host.systemd.systemctl("start", "holdfastd@a.socket", host.a.unit)
    assert host.a.get("/readyz")[0] == 200


def test_release_refuses_a_living_instance(host):
    a, b = host.start_leader_and_follower()
    before, term = a.invocation(), a.leader()["term"]
    mark = host.witness.mark()
    refused = release_by_hand(host, a)
    assert refused.returncode == 1 and "running" in refused.stderr, refused
    # A hung process is not dead, so its Lease is kept.
    a.kill("SIGSTOP")
    assert release_by_hand(host, a).returncode == 1
    a.kill("SIGCONT")
    # A second start of the same instance, as from a unit with another name, is refused and does not
    # disturb the first one.
    # It runs as the unit's user, because root does not trust that user's files.
    as_user = ("setpriv --reuid=$(stat -L -c %u /run/holdfast-a) --clear-groups --inh-caps=+dac_override,+dac_read_search "
               "--ambient-caps=+dac_override,+dac_read_search")
    second = host.systemd.run("sh", "-c", f"{as_user} {PROGRAM} --instance=a --data-dir=/var/lib/holdfast/a --runtime-dir=/run/holdfast-a "
                              f"--secure-port=0 --etcd-servers={host.cluster.etcd.url} 2>&1; echo status $?")
    assert second.endswith("status 1") and "running" in second, second
    assert host.holders(mark) in ([], ["a"])
    assert a.leader()["term"] == term and a.invocation() == before and b.show("NRestarts") == "0"


def test_release_does_not_touch_the_lease_of_another_incarnation(host):
    """The other instance has acquired the Lease of the dead one before ExecStopPost= runs."""
    a, b = host.start_leader_and_follower()
    host.drop_in("RestartSec=1h")
    remembered = host.systemd.resolve("/run/holdfast-a") / "a.lock"
    text = remembered.read_text()
    assert '"lease"' in text
    mark = host.witness.mark()
    a.kill("SIGKILL")
    host.wait_holder("b", mark)
    wait_until("a's stop to be over", lambda: a.show("SubState") == "auto-restart")
    b.wait_status(r"leading .*")
    mark, term = host.witness.mark(), b.leader()["term"]
    remembered.write_text(text)  # restores the run file as if the first release had not run
    done = release_by_hand(host, a)
    assert done.returncode == 0 and "left alone" in done.stdout, done
    assert host.holders(mark) in ([], ["b"]) and b.leader()["term"] == term
    a.stop()


def test_a_connection_to_the_socket_starts_the_service(host):
    """The socket survives the service. A new connection starts the service again and gets a
    response."""
    a = host.a
    host.systemd.write(f"{UNIT_DIR}/holdfastd@a.socket.d/test.conf", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{host.ports['a']}\n")
    host.systemd.systemctl("daemon-reload")
    host.systemd.systemctl("start", "holdfastd@a.socket")
    assert a.show("ActiveState") == "inactive"
    a.start()
    assert a.url == f"https://127.0.0.1:{host.ports['a']}"
    assert a.get("/readyz")[0] == 200
    for _ in range(2):
        a.stop()
        assert a.get("/readyz", timeout=LIMIT)[0] in (200, 500)  # this connection has started the service
        wait_until("it to be active", lambda: a.show("ActiveState") == "active")
        assert a.get("/readyz")[0] == 200
    assert a.show("Result") == "success"
    assert host.systemd.show("holdfastd@a.socket", "Result") == "success"


def enter(systemd):
    """Returns a prefix that runs a command inside the namespaces of that systemd."""
    return f"nsenter --target={systemd.pid} --mount --pid --uts --ipc --cgroup --"


def run_recipe(recipe, programs, *hosts):
    done = subprocess.run(["sh", "-euc", recipe], stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}, capture_output=True, text=True,
                          check=False, timeout=LIMIT)
    assert done.returncode == 0, (done, *[each.journal() for each in hosts])
    assert "BEGIN" not in done.stdout + done.stderr
    return done.stdout


def test_the_second_host_gets_the_ca_by_the_commands_of_the_documentation(host, tmp_path):
    """One kubeconfig is valid for both hosts. Each host has its own systemd; the script `ssh` plays the network between them."""
    recipe = subprocess.run([ROOT / "tests" / "lib" / "doc-commands", ROOT / "docs" / "operating.md", "Two hosts with the shipped units"],
                            capture_output=True, text=True, check=True).stdout
    with Systemd(HOLDFASTD, os.path.dirname(PROGRAM)) as systemd:
        two = Host(host.cluster, systemd)
        for name, text in (("systemd-run", f'exec {enter(host.systemd)} systemd-run "$@"'), ("ssh", f'test "$1" = two\nshift\nexec {enter(systemd)} "$@"')):
            (tmp_path / name).write_text(f"#!/bin/sh\nset -e\n{text}\n")
            (tmp_path / name).chmod(0o755)
        for each in (host.systemd, systemd):
            each.systemctl("start", "dbus.service")
        run_recipe(recipe, tmp_path, host.systemd, systemd)
        systemd.write("/etc/holdfast/holdfastd-b.env", f"HOLDFASTD_INSTANCE_FLAGS=--secure-port={host.ports['b']}\n")
        host.a.start()
        two.b.start()
        for name in ("ca.crt", "ca.key"):
            assert (host.a.pki / name).read_text() == (two.b.pki / name).read_text()
        wait_until("the second host to be in the kubeconfig", lambda: f":{host.ports['b']}" in host.a.kubeconfig.read_text())
        assert two.b.get("/readyz")[0] == 200
        # The recipe may be repeated while the units run, but without `pki init`, because the CA exists.
        again = "".join(line for line in recipe.splitlines(True) if "pki init" not in line)
        assert "the CA is already in" in run_recipe(again, tmp_path, host.systemd, systemd)
