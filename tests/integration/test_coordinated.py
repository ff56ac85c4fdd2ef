# SPDX-License-Identifier: Apache-2.0
"""Coordinated election (KEP-4355) with holdfastd: two contenders are candidates, and the test is
the coordinator."""
import datetime
import json
import signal

import pytest

from holdfastd import BUILD, Process, wait_until

CONTENDER = BUILD / "tests" / "contender"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
WRITTEN = "/registry/configmaps/default/coordinated"


def now(ahead=0.0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=ahead)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Candidate(Process):
    def __init__(self, cluster, server, name, version):
        self.name = name
        super().__init__([CONTENDER, server.kubeconfig, "coordinated", name, "--lease", "4s", "--renew", "2s", "--retry", "500ms",
                          "--coordinated", version], cluster.directory / f"{name}.log",
                         stdout=open(cluster.directory / f"{name}.out", "wb"))
        cluster.add(self)


class Coordinator:
    """The coordinator, which kube-apiserver contains, and which the test plays here."""

    def __init__(self, server):
        self.server = server

    def read(self, path):
        code, text = self.server.get(path)
        return json.loads(text) if code == 200 else None

    def change(self, path, spec):
        """Reads, changes and writes the object, and repeats this after a conflict."""
        def attempt():
            it = self.read(path)
            it["spec"].update(spec)
            code, text = self.server.request("PUT", path, it)
            assert code in (200, 409) or (code == 0 and self.server.alive()), (text, self.server.log_text()[-2000:])
            return code == 200
        wait_until(f"a replace of {path}", attempt)

    def elect(self):
        """Pings all candidates, waits for their responses, and names the one with the oldest
        version."""
        names = [c["metadata"]["name"] for c in self.read(CANDIDATES)["items"]]
        pinged = now()
        for name in names:
            self.change(f"{CANDIDATES}/{name}", {"pingTime": pinged})
        for name in names:
            wait_until(f"the answer of {name}", lambda name=name: self.read(f"{CANDIDATES}/{name}")["spec"]["renewTime"] > pinged)
        return min(self.read(CANDIDATES)["items"], key=lambda c: [int(n) for n in c["spec"]["emulationVersion"].split(".")])["metadata"]["name"]

    def name(self, holder):
        spec = {"holderIdentity": holder, "strategy": "OldestEmulationVersion", "leaseDurationSeconds": 4, "renewTime": now()}
        if self.read(f"{LEASES}/coordinated") is None:
            body = {"metadata": {"name": "coordinated"}, "spec": spec}
            assert self.server.request("POST", LEASES, body)[0] == 201
        else:
            self.change(f"{LEASES}/coordinated", {**spec, "preferredHolder": None})


@pytest.fixture
def coordinated(cluster):
    server = cluster.instance("server").wait_ready()
    candidates = [Candidate(cluster, server, "newer", "1.10.0"), Candidate(cluster, server, "older", "1.9.3")]
    coordinator = Coordinator(server)
    wait_until("both candidates", lambda: len(coordinator.read(CANDIDATES)["items"]) == 2)
    return cluster, coordinator, candidates


def by(identity):
    return lambda e: e["key"] == WRITTEN and e["type"] == "PUT" and e["object"]["data"]["identity"] == identity


def test_a_coordinator_chooses_the_leader(coordinated):
    """CG09, CG10, CG26, CG27: No candidate acquires the Lease by itself. The named candidate
    leads. A leader that is no longer preferred releases."""
    cluster, coordinator, (newer, older) = coordinated
    spec = coordinator.read(f"{CANDIDATES}/older")["spec"]
    assert (spec["leaseName"], spec["binaryVersion"], spec["emulationVersion"], spec["strategy"]) == (
        "coordinated", "1.9.3", "1.9.3", "OldestEmulationVersion")
    assert coordinator.elect() == "older"
    assert coordinator.read(f"{LEASES}/coordinated") is None, "no candidate has created the Lease"
    coordinator.name("older")
    cluster.witness.wait_for("the older to write", by("older"))
    lease = coordinator.read(f"{LEASES}/coordinated")
    assert lease["spec"]["holderIdentity"] == "older" and lease["spec"]["strategy"] == "OldestEmulationVersion"

    def renewed(event, since=lease["spec"]["renewTime"]):
        return event["key"].endswith("/leases/default/coordinated") and event["object"]["spec"]["renewTime"] > since
    cluster.witness.wait_for("a renewal", renewed)
    # Another candidate is preferred: the holder drains, releases, and does not lead again by
    # itself.
    mark = cluster.witness.mark()
    coordinator.change(f"{LEASES}/coordinated", {"preferredHolder": "newer"})
    released = cluster.witness.wait_for("the release", lambda e: e["key"].endswith("/leases/default/coordinated")
                                        and e["object"]["spec"]["holderIdentity"] == "", mark)
    mark = cluster.witness.mark()
    coordinator.name("newer")
    cluster.witness.wait_for("the newer to write", by("newer"), mark)
    writers = [(e["rev"], e["object"]["data"]["identity"]) for e in cluster.witness.seen() if e["key"] == WRITTEN and e["type"] == "PUT"]
    assert all(rev < released["rev"] for rev, writer in writers if writer == "older")
    assert all(rev > released["rev"] for rev, writer in writers if writer == "newer")
    assert coordinator.read(f"{LEASES}/coordinated")["metadata"]["resourceVersion"]
    # The holder dies: no candidate takes the expired Lease until one is named.
    mark = cluster.witness.mark()
    newer.send(signal.SIGKILL)
    newer.end()
    last = [e for e in cluster.witness.seen() if e["key"].endswith("/leases/default/coordinated")][-1]
    assert last["object"]["spec"]["holderIdentity"] == "newer"
    coordinator.name("older")
    taken = cluster.witness.wait_for("the older to write again", by("older"), mark)
    acquired = [e for e in cluster.witness.seen()[mark:] if e["key"].endswith("/leases/default/coordinated")]
    assert acquired[0]["object"]["spec"]["holderIdentity"] == "older" and acquired[0]["rev"] < taken["rev"]
    older.send(signal.SIGTERM)
    assert older.wait() == 0
    assert coordinator.read(f"{LEASES}/coordinated")["spec"]["holderIdentity"] == ""


def test_kubectl_shows_lease_candidates(coordinated):
    """kubectl finds both versions of the group, and shows candidates."""
    _, coordinator, _ = coordinated
    kinds = coordinator.server.kubectl("api-resources", "--api-group=coordination.k8s.io", "-o", "name").stdout.split()
    assert sorted(kinds) == ["leasecandidates.coordination.k8s.io", "leases.coordination.k8s.io"]
    lines = coordinator.server.kubectl("get", "leasecandidates", "-n", "default").stdout.splitlines()
    assert lines[0].split() == ["NAME", "LEASENAME", "BINARYVERSION", "EMULATIONVERSION", "STRATEGY", "AGE"]
    assert sorted(line.split()[0] for line in lines[1:]) == ["newer", "older"]
