# SPDX-License-Identifier: Apache-2.0
"""The example examples/notices.c: a kind of the embedder's own and its controller, on a real server."""
import json
import re
import signal

import pytest
from holdfastd import ROOT, Process, wait_until
from test_embedding import Installed

NOTICES = "/apis/example.com/v1/namespaces/default/notices"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/registry/leases/default/notices"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/notices.example.com"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    installed = Installed(tmp_path_factory.mktemp("installed"))
    return installed, installed.build(ROOT / "examples" / "notices.c", installed.directory / "notices", flags=["-Wl,--no-as-needed", "-lcjson"])


def notice(name, text, **spec):
    return {"apiVersion": "example.com/v1", "kind": "Notice", "metadata": {"name": name}, "spec": {"text": text, **spec}}


class World:
    """A server, and instances of the example."""

    def __init__(self, cluster, program, *flags):
        self.cluster, self.flags = cluster, flags
        self.installed, self.program = program
        self.server = cluster.instance("server").wait_ready()

    def start(self, identity):
        return self.cluster.add(Process([self.program, identity, *self.flags, self.server.kubeconfig], self.cluster.directory / f"{identity}.log",
                                        env=self.installed.run_env))

    def holder(self):
        return self.cluster.witness.holder(LEASE)

    def ask(self, method, path, body=None, expect=200):
        code, text = self.server.request(method, path, body)
        assert code == expect, text
        return json.loads(text)

    def copies(self, name):
        """The texts of the copies of a Notice, by their numbers."""
        items = self.ask("GET", CONFIGMAPS + "?labelSelector=notice%3Dcopy")["items"]
        return {int(i["metadata"]["name"].rpartition("-")[2]): i["data"]["text"] for i in items if i["metadata"]["name"].rpartition("-")[0] == name}

    def ready(self, name):
        """Returns (status.copies, status of the condition Ready, its reason) if the status is of the current generation, or None."""
        found = self.ask("GET", f"{NOTICES}/{name}")
        condition = next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == "Ready"), {})
        if condition.get("observedGeneration") != found["metadata"]["generation"]:
            return None
        return found["status"].get("copies"), condition["status"], condition["reason"]

    def change(self, name, **spec):
        code, text = self.server.request("PATCH", f"{NOTICES}/{name}", {"spec": spec}, {"Content-Type": "application/merge-patch+json"})
        assert code == 200, text

    def wait_copies(self, name, texts):
        wait_until(f"{name} to have the copies {texts}", lambda: self.copies(name) == dict(enumerate(texts))
                   and self.ready(name) == (len(texts), "True", "Copied"))

    def wait_archived(self, name):
        wait_until(f"{name} to be gone", lambda: self.server.get(f"{NOTICES}/{name}")[0] == 404)
        wait_until(f"the copies of {name} to be gone", lambda: not self.copies(name))
        return self.ask("GET", f"{CONFIGMAPS}/archive")["data"][name]


@pytest.mark.parametrize("flags", [(), ("--unfenced",)], ids=["fenced", "unfenced"])
def test_a_kind_has_copies_a_status_and_a_finalizer(cluster, program, flags):
    world = World(cluster, program, *flags)
    one = world.start("one-1")
    wait_until("the kind to be served", lambda: world.server.get(NOTICES)[0] == 200)
    world.ask("POST", NOTICES, notice("n", "hello \"you\"", copies=3), expect=201)
    world.wait_copies("n", ["hello \"you\""] * 3)
    owner = world.ask("GET", f"{CONFIGMAPS}/n-2")["metadata"]["ownerReferences"]
    live = world.ask("GET", f"{NOTICES}/n")
    assert [(o["uid"], o["kind"], o["controller"]) for o in owner] == [(live["metadata"]["uid"], "Notice", True)]
    assert live["metadata"]["finalizers"] == ["example.com/archive"]
    assert re.search(r"^n +3 +True$", world.server.kubectl("get", "notices").stdout, re.M)

    # A change of the Notice and a change of a copy are both followed.
    world.change("n", text="bye", copies=2)
    world.wait_copies("n", ["bye"] * 2)
    world.ask("DELETE", f"{CONFIGMAPS}/n-1")
    world.wait_copies("n", ["bye"] * 2)

    # An object of another owner is left alone, and the status says so.
    foreign = world.ask("POST", CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x-0"}}, expect=201)
    world.ask("POST", NOTICES, notice("x", "mine"), expect=201)
    wait_until("the refusal", lambda: world.ready("x") == (None, "False", "NotCopied"))
    assert world.ask("GET", f"{CONFIGMAPS}/x-0") == foreign
    world.ask("DELETE", f"{CONFIGMAPS}/x-0")
    world.wait_copies("x", ["mine"])

    world.ask("DELETE", f"{NOTICES}/n")
    assert world.wait_archived("n") == "bye"
    events = world.ask("GET", "/api/v1/namespaces/default/events")["items"]
    assert {(e["involvedObject"]["name"], e["reason"], e["type"]) for e in events if e["involvedObject"]["kind"] == "Notice"} >= {
        ("n", "Archived", "Normal"), ("x", "NotCopied", "Warning")}
    one.send(signal.SIGTERM)
    assert one.wait() == 0, one.log_text()
    wait_until("the release", lambda: world.holder() == "")


def test_a_second_instance_finishes_what_a_killed_leader_began(cluster, program):
    world = World(cluster, program)
    one = world.start("one-1")
    wait_until("the kind to be served", lambda: world.server.get(NOTICES)[0] == 200)
    two = world.start("two-1")
    for i in range(10):
        world.ask("POST", NOTICES, notice(f"n{i}", f"text {i}", copies=3), expect=201)
        if i == 5:
            # Without its finalizer the Notice would be deleted at once and never archived.
            wait_until("the finalizer of n0", lambda: world.ask("GET", f"{NOTICES}/n0")["metadata"].get("finalizers"))
            world.ask("DELETE", f"{NOTICES}/n0")
            one.send(signal.SIGKILL)
    assert world.holder() == "one-1"
    taken = cluster.witness.wait_for("two to lead", lambda e: e["key"] == LEASE and e["object"]["spec"].get("holderIdentity") == "two-1")
    for i in range(1, 10):
        world.wait_copies(f"n{i}", [f"text {i}"] * 3)
        world.ask("DELETE", f"{NOTICES}/n{i}")
    assert [world.wait_archived(f"n{i}") for i in range(10)] == [f"text {i}" for i in range(10)]

    # Each Notice was deleted after its text had been archived. Between the two terms only the test wrote.
    events = cluster.witness.seen()
    archived, gone = {}, {}
    for event in events:
        if event["key"] == "/registry/configmaps/default/archive":
            for name in event["object"]["data"]:
                archived.setdefault(name, event["rev"])
        elif event["type"] == "DELETE" and "/notices/default/" in event["key"]:
            gone[event["key"].rpartition("/")[2]] = event["rev"]
    assert len(gone) == 10 and all(archived[name] < gone[name] for name in gone)
    assert taken["rev"] < max(archived.values())
    assert world.ask("GET", DEFINITION)["status"]["storedVersions"] == ["v1"]
    two.send(signal.SIGTERM)
    assert two.wait() == 0, two.log_text()
