# SPDX-License-Identifier: Apache-2.0
"""Graceful termination of the real server, in both modes, as a client sees it before, during and
after each signal."""
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest
from holdfastd import LEASE, WRITER, Instance, free_ports, wait_until
from term_records import stored_lease

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
START = ["MuxAndDiscoveryComplete", "HasBeenReady"]
ORDER = {
    False: ["ShutdownInitiated", "AfterShutdownDelayDuration", "PreShutdownHooksStopped", "NotAcceptingNewRequest",
            "HTTPServerStoppedListening", "InFlightRequestsDrained"],
    True: ["ShutdownInitiated", "AfterShutdownDelayDuration", "PreShutdownHooksStopped", "NotAcceptingNewRequest",
           "InFlightRequestsDrained", "HTTPServerStoppedListening"],
}


def signals(instance):
    names = set(START + ORDER[False])
    return [w for line in instance.log_text().splitlines() if "lifecycle" in line for w in re.findall(r"\w+", line) if w in names]


def signalled(instance, name):
    wait_until(f"{instance.name} to signal {name}", lambda: name in signals(instance))


def configmap(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}}


class Reused:
    """One HTTP/1.1 connection that a client keeps using."""

    def __init__(self, instance):
        where = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(where.hostname, where.port, timeout=20, context=instance.context())
        self.connection.connect()

    def get(self, path):
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers


class SlowPost:
    """A POST whose head and half of whose body were sent. It is under way until finish()."""

    def __init__(self, instance, name):
        where = urllib.parse.urlsplit(instance.url)
        self.body = json.dumps(configmap(name)).encode()
        self.socket = instance.context().wrap_socket(socket.create_connection((where.hostname, where.port), timeout=20),
                                                     server_hostname=where.hostname)
        self.socket.sendall(f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body[:20])

    def finish(self):
        self.socket.sendall(self.body[20:])
        answer = http.client.HTTPResponse(self.socket, method="POST")
        answer.begin()
        answer.read()
        return answer.status


class Curl:
    """A curl process, for HTTP/2: a watch, or an upload whose body the test writes to a pipe."""

    def __init__(self, cluster, instance, version, path, *more, upload=False):
        self.out = cluster.directory / f"curl-{len(cluster.started)}.out"
        pki = cluster.directory / "pki"
        args = ["curl", "-sSN", version, "--cacert", pki / "ca.crt", "--cert", pki / "admin.crt", "--key", pki / "admin.key",
                "-w", "\n%{http_code} %{http_version}", *more, instance.url + path]
        self.file = open(self.out, "wb")
        self.child = subprocess.Popen([str(a) for a in args], stdin=subprocess.PIPE if upload else subprocess.DEVNULL, stdout=self.file,
                                      stderr=subprocess.STDOUT)
        cluster.add(self)

    @property
    def log_path(self):
        return self.out

    def log_text(self):
        return self.out.read_text()

    def feed(self, data, last=False):
        self.child.stdin.write(data)
        self.child.stdin.flush()
        if last:
            self.child.stdin.close()

    def wait(self):
        """Returns (exit status of curl, HTTP status, HTTP version)."""
        code = self.child.wait(timeout=30)
        return code, *self.log_text().split("\n")[-1].split()

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        if self.child.stdin and not self.child.stdin.closed:
            try:
                self.child.stdin.close()
            except BrokenPipeError:
                pass
        self.child.wait()
        self.file.close()


def upload(cluster, instance, version, name):
    curl = Curl(cluster, instance, version, CONFIGMAPS, "-X", "POST", "-T", "-", "-H", "Content-Type: application/json", upload=True)
    curl.rest = json.dumps(configmap(name)).encode()
    curl.feed(curl.rest[:20])
    return curl


def watch(cluster, instance, version):
    return Curl(cluster, instance, version, CONFIGMAPS + "?watch=1")


def refused(instance):
    where = urllib.parse.urlsplit(instance.url)
    try:
        socket.create_connection((where.hostname, where.port), timeout=5).close()
        return False
    except ConnectionRefusedError:
        return True


@pytest.mark.parametrize("retry_after", [False, True], ids=["refuse", "retry-after"])
def test_graceful_termination_follows_its_order(cluster, retry_after):
    """HK01, HK02, HK03, HK04."""
    # The writer keeps writing through the API during the pre-shutdown hook, for longer than the
    # shutdown delay.
    flags = ["--shutdown-delay-duration=1500ms"] + (["--shutdown-send-retry-after"] if retry_after else [])
    a = cluster.instance("a", *flags, binary=WRITER, env={"WRITER_LINGER_MS": "3000", "WRITER_PAUSE_MS": "50"}).wait_ready()
    cluster.witness.wait_for("the writer", lambda e: e["key"].endswith("/configmaps/default/test-writer"))
    watches = [watch(cluster, a, "--http2"), watch(cluster, a, "--http1.1")]
    for w in watches:
        wait_until("the watch to show an object", lambda w=w: "test-writer" in w.log_text())
    uploads = [upload(cluster, a, "--http2", "up-h2"), upload(cluster, a, "--http1.1", "up-h1")]
    slow = SlowPost(a, "slow")
    reused, late = Reused(a), Reused(a)
    assert reused.get("/readyz")[0] == 200 and late.get(CONFIGMAPS)[0] == 200

    a.send(signal.SIGTERM)
    signalled(a, "ShutdownInitiated")
    code, body, _ = reused.get("/readyz")
    assert code == 500 and "[-]shutdown failed: reason withheld" in body
    assert reused.get("/livez")[0] == 200 and a.get("/healthz")[0] == 200
    assert reused.get(CONFIGMAPS)[0] == 200 and a.get(CONFIGMAPS)[0] == 200
    signalled(a, "AfterShutdownDelayDuration")
    mark = cluster.witness.mark()
    assert reused.get(CONFIGMAPS)[0] == 200 and a.get(CONFIGMAPS)[0] == 200
    assert a.request("POST", CONFIGMAPS, configmap("while-hooks-run"))[0] == 201
    cluster.witness.wait_for("the hook's own write", lambda e: e["key"].endswith("/default/test-writer"), mark)
    assert "PreShutdownHooksStopped" not in signals(a)

    signalled(a, "NotAcceptingNewRequest")
    if retry_after:
        for code, body, headers in (late.get(CONFIGMAPS), Reused(a).get(CONFIGMAPS)):
            assert code == 429 and headers["Retry-After"] == "5" and headers["Connection"] == "close"
            assert body == "The apiserver is shutting down, please try again later.\n"
        assert Reused(a).get("/livez")[0] == 200 and Reused(a).get("/readyz")[0] == 500
    else:
        signalled(a, "HTTPServerStoppedListening")
        wait_until("new connections to be refused", lambda: refused(a))
    # Requests under way are completed. Only then is the server drained.
    assert "InFlightRequestsDrained" not in signals(a) and a.alive()
    assert slow.finish() == 201
    for u in uploads:
        u.feed(u.rest[20:], last=True)
    assert [u.wait() for u in uploads] == [(0, "201", "2"), (0, "201", "1.1")]
    # A watch ends cleanly, not by a broken connection.
    assert [w.wait() for w in watches] == [(0, "200", "2"), (0, "200", "1.1")]
    assert a.wait() == 0
    assert refused(a)
    assert signals(a) == START + ORDER[retry_after]
    assert {e["key"].rsplit("/", 1)[1] for e in cluster.witness.seen()} >= {"slow", "up-h1", "up-h2", "while-hooks-run"}
    # The leader wrote nothing after its release.
    release = cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    assert [e for e in cluster.witness.seen() if e["rev"] > release["rev"] and e["key"].endswith("/test-writer")] == []


def test_termination_without_delay_and_clients_is_quick(cluster):
    a = cluster.instance("a").wait_ready()
    idle = Reused(a)
    assert idle.get("/livez")[0] == 200
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    seen = signals(a)
    assert sorted(seen) == sorted(START + ORDER[False]) and seen[-3:] == ORDER[False][-3:]
    with pytest.raises((ConnectionError, http.client.HTTPException, ssl.SSLError)):
        idle.get("/livez")


def test_a_clean_stop_logs_no_warning(cluster):
    instance = cluster.instance("quiet").wait_ready()
    wait_until("it to lead", lambda: instance.leader()["state"] == "leading")
    instance.send(signal.SIGTERM)
    assert instance.wait() == 0, instance.log_text()
    after = instance.log_text().partition("SIGTERM")[2]
    assert not re.search(r"Z [WE] ", after), after


def test_clients_that_never_read_do_not_delay_the_shutdown(cluster):
    a = cluster.instance("a").wait_ready()
    where = urllib.parse.urlsplit(a.url)
    sockets = []
    for protocol in ("http/1.1", "h2"):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((where.hostname, where.port))
        context = a.context()
        context.set_alpn_protocols([protocol])
        s = context.wrap_socket(raw, server_hostname=where.hostname)
        if protocol == "http/1.1":
            s.sendall(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        else:
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        sockets.append(s)
    half = socket.create_connection((where.hostname, where.port))  # connects and sends nothing
    for i in range(40):
        body = {**configmap(f"big-{i}"), "data": {"k": "x" * 100000}}
        assert a.request("POST", CONFIGMAPS, body)[0] == 201
    a.send(signal.SIGTERM)
    assert a.wait(20) == 0
    for s in (*sockets, half):
        s.close()


def test_a_second_sigterm_exits_at_once(cluster):
    a = cluster.instance("a", "--shutdown-delay-duration=30s").wait_ready()
    a.send(signal.SIGTERM)
    signalled(a, "ShutdownInitiated")
    a.send_again(signal.SIGTERM)
    assert a.wait(10) == 1
    assert "second stop signal" in a.log_text()


def test_sigterm_while_waiting_for_etcd_starts_nothing(cluster):
    (port,) = free_ports(1)
    nobody = cluster.instance("nobody", etcd_url=f"http://127.0.0.1:{port}")
    first = cluster.instance("first").wait_ready()
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    before = cluster.witness.mark()
    cluster.etcd.send(signal.SIGSTOP)
    hung = cluster.instance("hung")
    for instance in (nobody, hung):
        signalled(instance, "MuxAndDiscoveryComplete")
        instance.send(signal.SIGTERM)
    assert nobody.wait(20) == 0 and hung.wait(20) == 0
    cluster.etcd.send(signal.SIGCONT)
    wait_until("etcd", cluster.etcd.healthy)
    assert "HasBeenReady" not in signals(nobody) + signals(hung)
    assert [e["key"] for e in cluster.witness.seen()[before:]] == []


def test_the_server_is_ready_only_when_the_store_responds(cluster):
    """HK06: While the store hangs, the server serves but is not ready. Then it becomes ready."""
    cluster.etcd.send(signal.SIGSTOP)
    a = cluster.instance("a")
    wait_until("a to serve", lambda: a.kubeconfig.exists() and a.get("/version")[0] == 200)
    wait_until("a to say what it waits for", lambda: "waiting for etcd" in a.log_text())
    assert a.get("/readyz")[0] == 500 and "HasBeenReady" not in signals(a)
    cluster.etcd.send(signal.SIGCONT)
    a.wait_ready()
    assert signals(a)[:2] == START


def holder_in_store(cluster):
    """Returns the holder of the Lease, read from the store itself."""
    return stored_lease(cluster.etcd, LEASE)["spec"].get("holderIdentity", "")


def stop_at_start(cluster, name, moment, delay=0):
    """Starts an instance and sends SIGTERM when moment(instance) is true, at least `delay` seconds
    after the start. It must exit with 0."""
    instance = Instance(cluster.etcd, cluster.directory, name)
    cluster.add(instance)
    threading.Event().wait(delay)
    wait_until(f"the moment to stop {name}", lambda: moment(instance), every=0.001)
    instance.send(signal.SIGTERM)
    assert instance.wait(30) == 0, instance.log_text()


def test_sigterm_at_any_moment_of_the_start_ends_cleanly(cluster):
    """A12: In many starts, SIGTERM comes a little later each time. Every process exits with 0,
    and none is left as the leader."""
    def one(i):
        # Before it blocks its signals, SIGTERM kills the process. From its first log line on it
        # exits by itself.
        stop_at_start(cluster, f"s{i}", lambda instance: instance.log_text() != "", 0.03 * i)

    first = cluster.instance("first").wait_ready()
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    failures = []
    threading.excepthook = lambda args: failures.append(args.exc_value)
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    threading.excepthook = threading.__excepthook__
    assert failures == []
    assert holder_in_store(cluster) == ""
    # Around the acquire of the Lease: when it contends, and as soon as it holds it.
    for name, moment in (("contends", lambda instance: "contending as" in instance.log_text()),
                         ("leads", lambda instance: "_leads_" in cluster.witness.holder())):
        stop_at_start(cluster, name, moment)
        assert holder_in_store(cluster) == "", name


def test_sigterm_ends_the_process_while_etcd_hangs(cluster):
    """A leader whose store hangs cannot release, and starting processes wait for the store. All
    of them exit."""
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    starting = []
    for i in range(8):
        starting.append(cluster.instance(f"s{i}"))
        wait_until("its first message", starting[-1].log_text, every=0.001)  # so each instance is further in its start than the next
    wait_until("the last to serve", lambda: "MuxAndDiscoveryComplete" in signals(starting[-1]), every=0.001)
    cluster.etcd.send(signal.SIGSTOP)
    for instance in (a, *starting):
        instance.send(signal.SIGTERM)
    codes = [instance.wait(40) for instance in (a, *starting)]
    cluster.etcd.send(signal.SIGCONT)
    assert codes == [0] * 9
    b = cluster.instance("b").wait_ready()
    cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead")
    assert b.alive()
