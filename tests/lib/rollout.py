# SPDX-License-Identifier: Apache-2.0
"""Two instances that are restarted in turn, and programs that lead through both of them."""
import json
import signal

from holdfastd import BUILD, Process, free_ports, wait_until

CONTENDER = BUILD / "tests" / "contender"
EXTENSION = "holdfast.dev/servers"


class Pair:
    """Two instances with fixed ports, so that a restarted one has its old address."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.ports = free_ports(2)
        self.instances = [self._start(i) for i in range(2)]
        for instance in self.instances:
            instance.wait_ready()

    def _start(self, i):
        return self.cluster.instance("ab"[i], port=self.ports[i])

    def restart(self, i, number=signal.SIGTERM, while_away=lambda: None):
        """Ends an instance and starts it again. Returns when it serves."""
        self.instances[i].send(number)
        code = self.instances[i].wait()
        assert number == signal.SIGKILL or code == 0, self.instances[i].log_text()
        while_away()
        self.cluster.started.remove(self.instances[i])
        self.instances[i] = self._start(i)
        self.instances[i].wait_ready()

    def rollout(self, leader, number=signal.SIGTERM):
        """Restarts both. Each stays away for longer than the leader's validity."""
        for i in range(2):
            self.restart(i, number, leader.outlive_its_validity)

    def kubeconfig(self, name, servers=None):
        """Both addresses; the first is the one that clients without the extension use."""
        config = self.instances[0].config()
        first, *others = servers or [instance.url for instance in self.instances]
        config["clusters"][0]["cluster"]["server"] = first
        config["clusters"][0]["cluster"]["extensions"] = [{"name": EXTENSION, "extension": {"servers": others}}]
        path = self.cluster.directory / name
        path.write_text(json.dumps(config))
        return path


class Leader(Process):
    """A program that embeds the library, contends for a Lease and writes a ConfigMap."""

    def __init__(self, cluster, kubeconfig, name, identity, timing=("--lease", "4s", "--renew", "2s", "--retry", "500ms")):
        self.name, self.cluster = name, cluster
        self.output = cluster.directory / f"{identity}.out"
        with open(self.output, "wb") as out:
            super().__init__([CONTENDER, kubeconfig, name, identity, *timing], cluster.directory / f"{identity}.log", stdout=out)
        cluster.add(self)

    def states(self):
        return [line.split()[1] for line in self.output.read_text().splitlines()]

    def wait_leading(self):
        wait_until(f"{self.name} to be led", lambda: "leading" in self.states())
        return self

    def wait_write(self):
        """Waits for a write that begins after this call."""
        key = f"/registry/configmaps/default/{self.name}"
        mark = self.cluster.witness.mark()
        return self.cluster.witness.wait_for("a write of the leader", lambda e: e["key"] == key, mark)["object"]["data"]

    def outlive_its_validity(self):
        """Waits for more writes than the leader could make without renewing its Lease: it makes one
        in 20 ms, and may act for 2 s."""
        key, term = f"/registry/configmaps/default/{self.name}", self.wait_write()["term"]
        mark = self.cluster.witness.mark()

        def written():
            events = [e["object"]["data"] for e in self.cluster.witness.seen()[mark:] if e["key"] == key]
            assert all(data["term"] == term for data in events), events[-1]
            return len(events) >= 110
        wait_until("110 writes", written, every=0.1)

    def assert_first_term(self):
        states = self.states()
        assert states.count("leading") == 1 and states[-1] == "leading", self.output.read_text() + self.log_text()
