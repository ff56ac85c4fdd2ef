# SPDX-License-Identifier: Apache-2.0
"""Real programs for integration tests: a private etcd, instances of holdfastd, the witness.

All of them work in a private directory, on free ports, and are ended by their process ids when
their `with` block ends. Tests wait for conditions, with a generous limit; nothing here asserts how
long something took.
"""
import base64
import fcntl
import json
import os
import pathlib
import re
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
BUILD = pathlib.Path(os.environ.get("HOLDFAST_BUILD", ROOT / "build")).absolute()
HOLDFASTD = BUILD / "server" / "holdfastd"
WRITER = BUILD / "tests" / "holdfastd-writer"
WITNESS = BUILD / "tests" / "witness"
LEASE = "/registry/leases/kube-system/holdfast-controllers"
# Short enough for a test, long enough for a busy machine. The defaults are 15 s, 10 s and 2 s.
FAST = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms", "--leader-elect-stop-grace=900ms"]
LIMIT = 60
# The manifests that holdfastd applies by itself, in that order.
MANIFESTS = ROOT / "server" / "manifests"
BUILT_IN = [json.loads(f.read_text()) for f in sorted(MANIFESTS.glob("phase-*/*.json"))]


def manifest_key(manifest):
    """The key of the manifest's object in etcd."""
    meta = manifest["metadata"]
    group = "tenancy.holdfast.dev/" if manifest["kind"] == "Workspace" else ""
    namespace = [meta["namespace"]] if "namespace" in meta else []
    kind = manifest["kind"].lower()
    plural = kind + ("es" if kind.endswith("s") else "s")
    return "/".join(["/registry", f"{group}{plural}", *namespace, meta["name"]])


def free_ports(n):
    """Ports that are free now.

    They lie below those that the kernel gives to connections, so a restarted etcd finds its own.
    """
    ports = []
    while len(ports) < n:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def wait_until(what, condition, limit=LIMIT, every=0.02):
    """Returns the first true value of condition(). Fails with the name of what it waited for."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(every)


def is_stopped(pid):
    """True when all threads of the process are stopped. The signal reaches them one by one."""
    states = [stat.read_text().rpartition(") ")[2][0] for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return bool(states) and all(state == "T" for state in states)


def is_free(path, limit=0.5):
    """True when nobody holds the lock on this file, at least for a moment within the limit."""
    end = time.monotonic() + limit
    with open(path, "ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() > end:
                    return False
            time.sleep(0.002)


def cpu_ns(pid):
    """The processor time of the process as the kernel accounts it, with that of threads that have
    ended."""
    return time.clock_gettime_ns((~pid << 3) | 2)  # as clock_getcpuclockid makes it


class Process:
    """A child process that is always ended and reaped.

    It has a session of its own, because a Ctrl-C is for the test runner alone, and dies with the
    thread that started it (pdeathsig).
    """

    def __init__(self, args, log, env=None, **kwargs):
        self.args = [str(a) for a in args]
        self.log_path = pathlib.Path(log)
        self.log = open(log, "ab")
        self.child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.args],
                                      stderr=self.log, env=env, start_new_session=True, **kwargs)

    @property
    def pid(self):
        return self.child.pid

    def send(self, number):
        os.kill(self.pid, number)

    def alive(self):
        return self.child.poll() is None

    def send_again(self, number):
        """After a first stop signal: sends more until the process ends. Those that come within a
        second of the first one belong to it."""
        def has_ended():
            if self.alive():
                self.send(number)
            return not self.alive()
        wait_until("it to end at once", has_ended, limit=20)

    def wait(self, limit=LIMIT):
        return self.child.wait(timeout=limit)

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def end(self):
        if self.alive():
            self.send(signal.SIGCONT)
            self.send(signal.SIGKILL)
        self.child.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class EtcdEnded(Exception):
    pass


class Etcd(Process):
    """A private etcd. restart() keeps its data."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        for last in (False, False, True):
            self.client, self.peer = free_ports(2)
            self.url = f"http://127.0.0.1:{self.client}"
            try:
                self.start()
                return
            except EtcdEnded:  # another process took a port before etcd did
                if last:
                    raise
                shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def start(self):
        peer = f"http://127.0.0.1:{self.peer}"
        super().__init__(
            ["etcd", "--name=test", f"--data-dir={self.directory / 'etcd'}",
             f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
             f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
             f"--initial-cluster=test={peer}", "--logger=zap", "--log-level=error"],
            self.directory / "etcd.log", stdout=subprocess.DEVNULL)
        try:
            wait_until("etcd to answer", self.healthy)
        except BaseException:
            self.end()
            raise

    def healthy(self):
        if not self.alive():
            raise EtcdEnded(self.log_text())
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=2) as response:
                return b"true" in response.read()
        except OSError:
            return False

    def restart(self):
        self.end()
        self.start()


def fill_configmaps(etcd, n, size, prefix="/registry", namespace="default", name="filled"):
    """Puts n ConfigMaps with `size` bytes of data into etcd, in the form in which holdfastd stores them."""
    def put(i):
        meta = {"name": f"{name}-{i:07}", "namespace": namespace, "uid": f"00000000-0000-4000-8000-{i:012}",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"tenth": str(i % 10)}}
        value = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"value": "v" * size}}, separators=(",", ":"))
        key = f"{prefix}/configmaps/{namespace}/{meta['name']}"
        return {"requestPut": {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value.encode()).decode()}}
    batch = max(1, min(128, (1 << 20) // (size + 512)))
    for at in range(0, n, batch):
        body = json.dumps({"success": [put(i) for i in range(at, min(n, at + batch))]}).encode()
        with urllib.request.urlopen(etcd.url + "/v3/kv/txn", data=body, timeout=LIMIT) as response:
            assert json.load(response)["succeeded"]


class SqliteFile:
    """A file of SQLite as the store of all instances of a test. The first instance creates it."""

    def __init__(self, directory):
        self.path = pathlib.Path(directory) / "store.db"
        self.url = f"sqlite:{self.path}"
        self.log_path = self.path

    def log_text(self):
        return ""

    def end(self):
        pass

    def __getattr__(self, name):
        """Called for a member that only an Etcd has, such as stop(): skips the test that uses
        it."""
        import pytest
        pytest.skip(f"needs etcd, for its {name}")


# HOLDFAST_TEST_STORE=sqlite runs the tests over a file of SQLite instead of a private etcd.
ON_SQLITE = os.environ.get("HOLDFAST_TEST_STORE") == "sqlite"


def store_flag(url):
    """The flag of holdfastd for a store: the URLs of etcd, or sqlite:FILE."""
    return f"--store={url[7:]}" if url.startswith("sqlite:") else f"--etcd-servers={url}"


class EtcdCluster:
    """Etcd members, three by default. Each can be killed, stopped, and restarted with its data."""

    def __init__(self, directory, n=3, flags=()):
        ports = free_ports(2 * n)
        peers = ",".join(f"m{i}=http://127.0.0.1:{ports[2 * i + 1]}" for i in range(n))
        self.members = [EtcdMember(directory, f"m{i}", ports[2 * i], ports[2 * i + 1], peers, flags)
                        for i in range(n)]
        self.url = ",".join(m.url for m in self.members)
        try:
            wait_until("etcd to have a leader", self.leader)
        except BaseException:
            self.end()
            raise

    def leader(self):
        """The member that leads, or None."""
        for member in self.members:
            if not member.alive():
                continue
            done = subprocess.run(
                ["etcdctl", f"--endpoints={member.url}", "--command-timeout=2s", "endpoint",
                 "status", "-w", "json"],
                env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=False)
            if done.returncode != 0 or not done.stdout.strip():
                continue
            status = json.loads(done.stdout)[0]["Status"]
            if status and status["leader"] and status["leader"] == status["header"]["member_id"]:
                return member
        return None

    def end(self):
        for member in self.members:
            member.end()

    @property
    def log_path(self):
        return self.members[0].log_path

    def log_text(self):
        return "\n".join(m.log_text()[-2000:] for m in self.members)


class EtcdMember(Process):
    """One etcd member with flags of the caller. restart() keeps its data."""

    def __init__(self, directory, name, client, peer, peers, flags=(), scheme="http"):
        self.url = f"{scheme}://127.0.0.1:{client}"
        peer_url = f"http://127.0.0.1:{peer}"
        self.args = ["etcd", f"--name={name}", f"--data-dir={pathlib.Path(directory) / name}",
                     f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
                     f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
                     f"--initial-cluster={peers}", "--logger=zap", "--log-level=error", *flags]
        self.path = pathlib.Path(directory) / f"{name}.log"
        self.start()

    def start(self):
        super().__init__(self.args, self.path, stdout=subprocess.DEVNULL)

    def restart(self):
        self.end()
        self.start()


class Witness(Process):
    """A process that sees every change under a prefix of the store, in order.

    events is a list of dicts: t in monotonic ns, rev, type, key, value, and object for a value that
    is JSON.
    """

    def __init__(self, etcd, directory, prefix="/registry"):
        self.events = []
        self.changed = threading.Condition()
        # A benchmark clears it while it measures: this process then reads nothing, and takes no
        # processor time from what is measured. The times are the witness's own.
        self.awake = threading.Event()
        self.awake.set()
        super().__init__([WITNESS, etcd.url, prefix], pathlib.Path(directory) / "witness.log",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.ready = json.loads(self.child.stdout.readline())["ready"]
        except BaseException:
            self.end()
            raise
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.child.stdout:
            self.awake.wait()
            event = json.loads(line)
            if event.get("value", "").startswith("{"):
                event["object"] = json.loads(event["value"])
            with self.changed:
                self.events.append(event)
                self.changed.notify_all()

    def seen(self):
        with self.changed:
            return list(self.events)

    def mark(self):
        """How many events there are now. Later ones are seen()[mark:]."""
        with self.changed:
            return len(self.events)

    def wait_for(self, what, condition, after=0, limit=LIMIT):
        """The first event after mark `after` for which condition(event) holds."""
        end = time.monotonic() + limit
        index = after
        with self.changed:
            while True:
                while index < len(self.events):
                    if condition(self.events[index]):
                        return self.events[index]
                    index += 1
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"the witness waited {limit} s for {what}")
                self.changed.wait(left)

    def holder(self, lease=LEASE):
        """The holderIdentity that was written last. None = there is no such Lease."""
        for event in reversed(self.seen()):
            if event["key"] == lease:
                if event["type"] == "DELETE":
                    return None
                return event["object"]["spec"].get("holderIdentity", "")
        return None

    def wait_holder(self, condition, what="a holder", after=0, limit=LIMIT):
        return self.wait_for(what, lambda e: e["key"] == LEASE and e["type"] == "PUT"
                             and condition(e["object"]["spec"].get("holderIdentity") or ""),
                             after, limit)


class Instance(Process):
    """One holdfastd, or a program based on it. The instances of a test share --cert-dir."""

    def __init__(self, etcd, directory, name, flags=(), binary=None, env=None, fast=True,
                 etcd_url=None, port=0):
        self.name = name
        self.directory = pathlib.Path(directory)
        self.data = self.directory / name
        self.kubeconfig = self.data / "admin.kubeconfig"
        if self.kubeconfig.exists():
            self.kubeconfig.unlink()
        self.etcd_url = etcd_url or etcd.url
        args = [binary or HOLDFASTD, store_flag(self.etcd_url), f"--data-dir={self.data}",
                f"--instance={name}", f"--secure-port={port}", f"--cert-dir={self.directory / 'pki'}",
                "--v=2"]
        self.runtime = self.data / "run"
        super().__init__([*args, *(FAST if fast else ()), *flags], self.directory / f"{name}.log",
                         stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    def wait_ready(self, limit=LIMIT):
        # An instance that never leads is not ready before another one has bootstrapped the store.
        # In tests without another one, ready means that it serves.
        hooks = ("bootstrap-phase-0", "poststarthook/bootstrap-phase-0",
                 "poststarthook/bootstrap-phase-1")
        leave_out = "?" + "&".join(f"exclude={hook}" for hook in hooks)
        path = "/readyz" + (leave_out if "--leader-elect=false" in self.args else "")

        def ready():
            assert self.alive(), self.log_text()
            return self.kubeconfig.exists() and self.get(path)[0] == 200
        wait_until(f"{self.name} to be ready", ready, limit)
        return self

    def pause(self):
        """SIGSTOP. Over SQLite never in the middle of a commit: a process that is stopped there keeps the file locked for
        all, as docs/operating.md says, and nobody can take over."""
        def is_paused():
            self.send(signal.SIGSTOP)
            wait_until(f"{self.name} to be stopped", lambda: is_stopped(self.pid), every=0.001)
            if not self.etcd_url.startswith("sqlite:") or is_free(self.etcd_url[7:] + "-notify"):
                return True
            self.send(signal.SIGCONT)
            return False
        wait_until(f"{self.name} to be stopped between two commits", is_paused)

    def identity(self):
        """Its identity, as it reports it."""
        return self.leader()["identity"]

    def leader(self):
        code, body = self.get("/debug/leader")
        assert code == 200, (code, body)
        return json.loads(body)

    def config(self):
        return json.loads(self.kubeconfig.read_text())

    @property
    def url(self):
        return self.config()["clusters"][0]["cluster"]["server"]

    @property
    def pki(self):
        return self.directory / "pki"

    def context(self, client_certificate=True):
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        if client_certificate:
            context.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        return context

    def request(self, method, path, body=None, headers=None, client_certificate=True, timeout=10):
        """(status, text). The status is 0 when there was no response."""
        headers = dict(headers or {})
        if body is not None:
            headers = {"Content-Type": "application/json", **headers}
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        request = urllib.request.Request(self.url + path, method=method, headers=headers, data=data)
        try:
            with urllib.request.urlopen(request, timeout=timeout,
                                        context=self.context(client_certificate)) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def kubectl(self, *args, stdin=None, check=True, binary="kubectl", limit=LIMIT):
        done = subprocess.run(
            [binary, f"--kubeconfig={self.kubeconfig}",
             f"--cache-dir={self.directory / 'kube-cache'}", *args],
            input=stdin, capture_output=True, text=True, timeout=limit, check=False)
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done


class Cluster:
    """A directory with an etcd, a witness and any number of instances."""

    def __init__(self, with_witness=True, prefix="holdfast-test-", etcd=None):
        """etcd: a function that makes the store in a directory. None = one private etcd, or a file of SQLite."""
        self.temporary = tempfile.TemporaryDirectory(prefix=prefix)
        self.directory = pathlib.Path(self.temporary.name)
        self.started = []
        try:
            self.etcd = self.add((etcd or (SqliteFile if ON_SQLITE else Etcd))(self.directory))
            self.witness = self.add(Witness(self.etcd, self.directory)) if with_witness else None
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def add(self, process):
        self.started.append(process)
        return process

    def instance(self, name, *flags, **kwargs):
        return self.add(Instance(self.etcd, self.directory, name, flags, **kwargs))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in reversed(self.started):
            process.end()
        if kind is not None and issubclass(kind, Exception):
            for process in self.started:
                print(f"---- {process.log_path.name}\n{process.log_text()[-6000:]}")
        self.temporary.cleanup()


def leaderless(cluster, *flags):
    """An instance that serves and never contends.

    A leader has bootstrapped its store, and is gone.
    """
    first = cluster.instance("first").wait_ready()
    serving = cluster.instance("serving", "--leader-elect=false", *flags).wait_ready()
    first.send(signal.SIGTERM)
    assert first.wait() == 0, first.log_text()
    return serving


def workspace(name):
    return {"apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace",
            "metadata": {"name": name}}


def phase(event):
    return event.get("object", {}).get("status", {}).get("phase")
