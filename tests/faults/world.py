# SPDX-License-Identifier: Apache-2.0
"""Three etcd members, three instances, what is between them, and a witness.

Each instance reaches each member through a link of its own, and each member is reached by the other
members through one link (links.py), so that any of these can hang in one direction or be cut. The
witness reads each member directly. All processes are started by one thread, because they end with
the thread that started them.
"""
import base64
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import urllib.request

from history import WRITER_LEASE, value_of
from holdfastd import WRITER, EtcdMember, Instance, free_ports, wait_until

HERE = pathlib.Path(__file__).resolve().parent
TERMS, PREFIX = "/registry.holdfast/terms/", "/registry/configmaps/default/"
NAMES = "abc"


class Links:
    """links.py, and its commands."""

    def __init__(self, targets):
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, HERE / "links.py", *map(str, targets)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.ports = json.loads(self.child.stdout.readline())

    def ask(self, **command):
        print(json.dumps(command), file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline())

    def end(self):
        self.child.kill()
        self.child.wait()


class Member(EtcdMember):
    """An etcd member whose peers reach it through a link. Of a flag given twice the last counts."""

    def __init__(self, directory, name, client, peer, link, cluster):
        self.client_port = client
        super().__init__(directory, name, client, peer, cluster, flags=(
            f"--initial-advertise-peer-urls=http://127.0.0.1:{link}", "--snapshot-count=2000"))

    def post(self, path, body, timeout=3):
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.loads(response.read())

    def status(self):
        """None when it does not answer."""
        try:
            return self.post("/v3/maintenance/status", {}, timeout=1)
        except (OSError, http.client.HTTPException, ValueError):
            return None


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Witness:
    """Every event of ConfigMaps in default and of term records, from each member by a watch of its
    own, so that no member that stands still hides anything."""

    def __init__(self, members):
        self.members = members
        self.mutex = threading.Lock()
        self.events = {}  # (revision, key): the event
        self.start = self.revision()
        self.reached = [self.start] * len(members)
        self.errors = []
        self.stop = threading.Event()
        self.streams = [None] * len(members)
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(len(members))]
        for thread in self.threads:
            thread.start()

    def revision(self):
        """etcd's newest revision, by a consistent read."""
        for member in self.members:
            try:
                reply = member.post("/v3/kv/range", {"key": b64("x")})
                return int(reply["header"]["revision"])
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                continue
        return 0

    def progress(self):
        with self.mutex:
            return max(self.reached)

    def run(self, i):
        while not self.stop.is_set():
            try:
                self.follow(i)
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                pass
            self.stop.wait(0.2)

    def follow(self, i):
        connection = http.client.HTTPConnection("127.0.0.1", self.members[i].client_port, timeout=6)
        self.streams[i] = connection
        create = {"key": b64("/registry"), "range_end": b64("/registry0"),
                  "start_revision": self.reached[i] + 1}
        try:
            connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
            response = connection.getresponse()
            while not self.stop.is_set() and (line := response.readline()):
                self.take(i, json.loads(line)["result"])
        finally:
            connection.close()

    def take(self, i, result):
        if int(result.get("compact_revision", 0)):
            with self.mutex:  # the others have it, or the check of the versions says so
                self.reached[i] = max(self.reached[i], int(result["compact_revision"]) - 1)
            raise OSError("compacted")
        events = [self.event(e) for e in result.get("events", [])]
        with self.mutex:
            for event in events:
                if event["key"].startswith((PREFIX, TERMS)):
                    self.events.setdefault((event["rev"], event["key"]), event)
                self.reached[i] = max(self.reached[i], event["rev"])

    @staticmethod
    def event(raw):
        kv = raw["kv"]
        key = base64.b64decode(kv["key"]).decode()
        event = {"t": time.monotonic_ns(), "rev": int(kv["mod_revision"]), "key": key, "type": raw.get("type", "PUT"),
                 "version": int(kv.get("version", 0)), "value": None, "term": 0, "lease": None}
        if key.startswith(PREFIX) and event["type"] == "PUT":
            data = json.loads(base64.b64decode(kv["value"])).get("data") or {}
            event["value"] = value_of(key[len(PREFIX):], event["rev"], data)
            event["term"] = int(data.get("term", 0))
            event["lease"] = data.get("lease", WRITER_LEASE)
        return event

    def finish(self, revision):
        """Waits until it has everything up to that revision."""
        wait_until("the witness", lambda: self.progress() >= revision, limit=60)
        self.stop.set()
        for thread in self.threads:
            thread.join(10)
        with self.mutex:
            return [self.events[k] for k in sorted(self.events)]


class World:
    def __init__(self, cluster, binary=WRITER):
        self.cluster, self.binary, self.n = cluster, binary, 3
        self.urls = [None] * 3          # where each instance serves; None = nowhere
        self.ended = []                 # (name, status): an instance that ended unasked
        self.down = set()               # instances that are meant to be down
        ports = free_ports(6)
        self.clients, self.peers = ports[:3], ports[3:]
        self.links = Links([*self.clients * 3, *self.peers])
        cluster.add(Ender(self.links.end, cluster.directory / "links.log"))
        through = self.links.ports[9:]
        peers = ",".join(f"m{i}=http://127.0.0.1:{through[i]}" for i in range(3))
        self.members = [cluster.add(Member(cluster.directory, f"m{i}", self.clients[i],
                                           self.peers[i], through[i], peers)) for i in range(3)]
        wait_until("etcd to have a leader", lambda: self.leader() is not None)
        wait_until("all members", lambda: all(m.status() for m in self.members))
        self.witness = Witness(self.members)
        self.instances = [None] * 3
        for i in range(3):
            self.start(i)
            wait_until(f"{NAMES[i]} to serve", lambda i=i: (self.keep(), self.urls[i])[1])
        for instance in self.instances:
            instance.wait_ready()

    def leader(self):
        """The index of etcd's leader as its members see it, or None."""
        for i, member in enumerate(self.members):
            status = member.status()
            if status and status.get("leader") == status["header"]["member_id"]:
                return i
        return None

    def link(self, instance, member):
        return instance * 3 + member

    def peer_link(self, member):
        return 9 + member

    def watched(self, instance):
        """The member that an instance's watch probably hangs on: its oldest connection's."""
        ages = [age for _, age in self.links.ask(stat=True)[instance * 3:instance * 3 + 3]]
        return ages.index(max(ages))

    def start(self, i):
        old = self.instances[i]
        if old:
            self.cluster.started.remove(old)
            old.end()
        ports = [self.links.ports[self.link(i, m)] for m in (i, (i + 1) % 3, (i + 2) % 3)]
        url = ",".join(f"http://127.0.0.1:{port}" for port in ports)
        self.instances[i] = self.cluster.add(
            Instance(None, self.cluster.directory, NAMES[i], binary=self.binary, etcd_url=url,
                     env={"WRITER_PAUSE_MS": "100"}))
        self.down.discard(i)

    def keep(self):
        """What a service manager does: starts again what ended. Learns where instances serve."""
        for i, instance in enumerate(self.instances):
            if instance is None or i in self.down:
                continue
            if not instance.alive():
                self.ended.append((NAMES[i], instance.child.returncode, instance.said()[-600:]))
                self.urls[i] = None
                self.start(i)
            elif self.urls[i] is None and instance.kubeconfig.exists():
                try:
                    self.urls[i] = instance.url
                except (ValueError, KeyError):
                    pass  # it is being written

    def ready(self):
        self.keep()
        return all(url and instance.get("/readyz", timeout=3)[0] == 200
                   for url, instance in zip(self.urls, self.instances))

    def heal(self):
        for i in range(3):
            self.links.ask(link=self.peer_link(i), hang=[])
            for m in range(3):
                self.links.ask(link=self.link(i, m), hang=[])
        for member in self.members:
            if not member.alive():
                member.restart()
            os.kill(member.pid, signal.SIGCONT)
        for i, instance in enumerate(self.instances):
            if i in self.down:
                self.start(i)
            elif instance.alive():
                os.kill(instance.pid, signal.SIGCONT)


class Ender:
    """Something else that ends with the cluster."""

    def __init__(self, end, log):
        self.end, self.log_path = end, pathlib.Path(log)

    def said(self):
        return ""


class Faults:
    """Carries out a schedule. tick() is called again and again, by the thread that started all."""

    def __init__(self, world, faults, begin, record):
        self.world, self.begin, self.record = world, begin, record
        self.todo = [(f.at, i, lambda f=f: self.inject(f)) for i, f in enumerate(faults)]
        self.todo.sort(key=lambda t: t[:2])
        self.counts = {}
        self.serial = len(self.todo)

    def tick(self):
        """Does what is due; returns whether anything is left."""
        now = time.monotonic() - self.begin
        while self.todo and self.todo[0][0] <= now:
            self.todo.pop(0)[2]()
        self.world.keep()
        return bool(self.todo)

    def later(self, fault, action):
        self.serial += 1
        self.todo.append((fault.at + fault.lasts, self.serial, action))
        self.todo.sort(key=lambda t: t[:2])

    def inject(self, fault):
        did = getattr(self, fault.kind.replace("-", "_"))(fault)
        self.counts[fault.kind] = self.counts.get(fault.kind, 0) + (did is not False)
        self.record({"t": time.monotonic_ns(), "kind": fault.kind, "target": fault.target,
                     "other": fault.other, "lasts": fault.lasts, "did": did is not False})

    # ---- members ----

    def stop_member(self, i, fault):
        member = self.world.members[i]
        if not member.alive():
            return False
        member.send(signal.SIGSTOP)
        pid = member.pid
        self.later(fault, lambda: member.alive() and member.pid == pid and member.send(signal.SIGCONT))
        return True

    def kill_member(self, i, fault):
        member = self.world.members[i]
        if not member.alive():
            return False
        member.send(signal.SIGKILL)
        member.child.wait()
        self.later(fault, lambda: member.alive() or member.restart())
        return True

    def member_stop(self, fault):
        return self.stop_member(fault.target, fault)

    def watched_stop(self, fault):
        return self.stop_member(self.world.watched(fault.target), fault)

    def leader_stop(self, fault):
        i = self.world.leader()
        return self.stop_member(fault.other if i is None else i, fault)

    def two_stop(self, fault):
        return self.stop_member(fault.target, fault) | self.stop_member((fault.target + 1) % 3, fault)

    def member_kill(self, fault):
        return self.kill_member(fault.target, fault)

    def leader_kill(self, fault):
        i = self.world.leader()
        return self.kill_member(fault.other if i is None else i, fault)

    def compact(self, _fault):
        return self.maintain("/v3/kv/compaction", {"revision": str(self.world.witness.progress())})

    def defrag(self, fault):
        return self.maintain("/v3/maintenance/defragment", {}, fault.target)

    def maintain(self, path, body, first=0):
        """By the first member that takes it, beside everything else."""
        members = [self.world.members[(first + i) % 3] for i in range(3)]

        def run():
            for member in members:
                try:
                    member.post(path, body)
                    return
                except (OSError, http.client.HTTPException, ValueError):
                    continue
        threading.Thread(target=run, daemon=True).start()

    # ---- links ----

    def hang(self, links, fault):
        for link in links:
            self.world.links.ask(link=link, hang=fault.directions)

        def end():
            for link in links:
                if fault.cut:
                    self.world.links.ask(link=link, cut=True)
                self.world.links.ask(link=link, hang=[])
        self.later(fault, end)

    def link_hang(self, fault):
        self.hang([self.world.link(fault.target, fault.other)], fault)

    def links_hang(self, fault):
        self.hang([self.world.link(fault.target, m) for m in range(3)], fault)

    def watched_hang(self, fault):
        self.hang([self.world.link(fault.target, self.world.watched(fault.target))], fault)

    def peer_hang(self, fault):
        self.hang([self.world.peer_link(fault.target)], fault)

    def link_cut(self, fault):
        for m in range(3):
            self.world.links.ask(link=self.world.link(fault.target, m), cut=True)

    def peer_cut(self, fault):
        self.world.links.ask(link=self.world.peer_link(fault.target), cut=True)

    # ---- instances ----

    def instance_pause(self, fault):
        instance = self.world.instances[fault.target]
        if fault.target in self.world.down or not instance.alive():
            return False
        instance.send(signal.SIGSTOP)
        self.later(fault, lambda: instance.alive() and instance.send(signal.SIGCONT))
        return True

    def end_instance(self, fault, number):
        i, world = fault.target, self.world
        instance = world.instances[i]
        if i in world.down or not instance.alive():
            return False
        world.down.add(i)
        world.urls[i] = None
        instance.send(number)
        if number != signal.SIGTERM:
            instance.send(signal.SIGCONT)
        self.later(fault, lambda: self.begin_instance(fault, instance))
        return True

    def begin_instance(self, fault, instance):
        """A stop in good order may take its time: looks again later."""
        if instance.alive() and instance.child.poll() is None:
            self.serial += 1
            self.todo.append((time.monotonic() - self.begin + 0.2, self.serial,
                              lambda: self.begin_instance(fault, instance)))
            self.todo.sort(key=lambda t: t[:2])
            return
        if fault.target in self.world.down:
            self.world.start(fault.target)

    def instance_kill(self, fault):
        return self.end_instance(fault, signal.SIGKILL)

    def instance_term(self, fault):
        return self.end_instance(fault, signal.SIGTERM)
