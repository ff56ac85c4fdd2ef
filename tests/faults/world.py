# SPDX-License-Identifier: Apache-2.0
"""Three etcd members, three instances, and what is between them.

Each instance reaches each member through a link of its own, and each member is reached by the other
members through one link (links.py), so that any of these can hang in one direction or be cut. All
processes are started by one thread, because they end with the thread that started them.
"""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

from holdfastd import WRITER, EtcdMember, Instance, free_ports, wait_until
from witness import Witness

HERE = pathlib.Path(__file__).resolve().parent
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


class World:
    def __init__(self, cluster, binary=WRITER):
        self.cluster, self.binary, self.n = cluster, binary, 3
        self.urls = [None] * 3          # where each instance serves; None = nowhere
        self.ended = []                 # (name, status, end of the log) of each instance that ended unasked
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
                self.ended.append((NAMES[i], instance.child.returncode, instance.log_text()[-600:]))
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
    """Something other than an instance that ends with the cluster."""

    def __init__(self, end, log):
        self.end, self.log_path = end, pathlib.Path(log)

    def log_text(self):
        return ""
