# SPDX-License-Identifier: Apache-2.0
"""Bootstrap, as the witness sees it in etcd.

Every step is done exactly once, whichever process dies and however many start at once. Upgrades
and mixed versions work. Changes by users stay. A failing step is reported, and another instance
gets the chance to lead. An instance is ready once any version has completed phase 0.
"""
import json
import pathlib
import signal
import socket
import subprocess

import pytest
from holdfastd import BUILT_IN, HOLDFASTD, MANIFESTS, VERSION, WRITER, manifest_key, store_flag, wait_until

LEDGER = "/registry/configmaps/kube-system/holdfast-bootstrap"
LEDGER_PATH = "/api/v1/namespaces/kube-system/configmaps/holdfast-bootstrap"
CONFIGMAPS = "/registry/configmaps/default/"
WORKSPACE = "/registry/tenancy.holdfast.dev/workspaces/default"
N_ZERO = len(list(MANIFESTS.glob("phase-0/*.json")))


def step_of(manifest):
    group = manifest["apiVersion"].rpartition("/")[0]
    meta = manifest["metadata"]
    return f"{manifest['kind']}{'.' if group else ''}{group}/{meta.get('namespace', '')}{'/' if 'namespace' in meta else ''}{meta['name']}"


BUILT_IN_STEPS = {step_of(m) for m in BUILT_IN if m["kind"] != "Workspace"}


def configmap(name, value, ns="default"):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {ns}\ndata:\n  value: {json.dumps(value)}\n"


def manifests(cluster, name, **values):
    """Creates a directory with one manifest file for each ConfigMap."""
    directory = cluster.directory / name
    directory.mkdir(exist_ok=True)
    (directory / "all.yaml").write_text("---\n".join(configmap(n, v) for n, v in values.items()))
    return directory


def instance(cluster, name, *flags, version=None, pause=None, phase_0=None, env=None):
    env = {"WRITER_OFF": "1", **(env or {})}
    for variable, value in (("BOOTSTRAP_VERSION", version), ("BOOTSTRAP_PAUSE", pause), ("BOOTSTRAP_PHASE_0", phase_0)):
        if value is not None:
            env[variable] = str(value)
    return cluster.instance(name, *flags, binary=WRITER, env=env)


def records(event):
    """The records of the ledger by step, and the completed phases."""
    data = event["object"]["data"]
    steps = {r["step"]: r for r in map(json.loads, data["steps"].splitlines())}
    return steps, {k for k in data if k.endswith(".completed")}


def ledgers(cluster):
    return [e for e in cluster.witness.seen() if e["key"] == LEDGER and e["type"] == "PUT"]


def puts(cluster, key):
    return [e for e in cluster.witness.seen() if e["key"] == key and e["type"] == "PUT"]


def wait_complete(cluster, version, phase="phase-1", after=0):
    cluster.witness.wait_for(f"{phase} to be complete by {version}", lambda e: e["key"] == LEDGER and
                             e["object"]["data"].get(f"{phase}.completed", "").startswith(version + " "), after)


def assert_each_once(cluster, names):
    """Each object was written once. Each write of the ledger added a record that no later write
    changed, or several, of objects that were created together, or the end of a phase."""
    witness = cluster.witness
    wait_complete(cluster, VERSION)
    for key in [*(CONFIGMAPS + n for n in names), *(manifest_key(m) for m in BUILT_IN if m["kind"] != "Workspace" and "aggregationRule" not in m)]:
        assert len(puts(cluster, key)) == 1, key
    assert len([e for e in puts(cluster, WORKSPACE) if not e["object"].get("status", {}).get("phase")]) == 1
    assert not [e for e in witness.seen() if e["key"].startswith(CONFIGMAPS) and e["type"] == "DELETE"]
    before_steps, before_complete = {}, set()
    for event in ledgers(cluster):
        steps, complete = records(event)
        assert {k: steps.get(k) for k in before_steps} == before_steps  # no earlier record has changed
        assert before_complete <= complete
        assert len(steps) + len(complete) > len(before_steps) + len(before_complete)
        assert len(steps) <= len(before_steps) + 1 or not before_steps.keys() & BUILT_IN_STEPS
        before_steps, before_complete = steps, complete
    assert sorted(before_steps) == sorted([*(f"ConfigMap/default/{n}" for n in names), *(step_of(m) for m in BUILT_IN)])
    assert {r["outcome"] for r in before_steps.values()} == {"created"}
    assert before_complete == {"phase-0.completed", "phase-1.completed"}


def release(one):
    """Does what ExecStopPost= does after a crash."""
    done = subprocess.run([HOLDFASTD, "release", store_flag(one.etcd_url), f"--data-dir={one.data}", f"--instance={one.name}"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_leader_killed_at_any_point_is_continued(cluster):
    """The leader is killed before and after each write of each step; its successor continues
    there."""
    zero, one = manifests(cluster, "zero", a="1", b="2"), manifests(cluster, "one", c="3", d="4", e="5")
    points = []
    for phase, n in (("phase-0", N_ZERO + 2), ("phase-1", 4)):
        points += [f"{phase}/begun/0"]
        for i in range(n):
            points += [f"{phase}/applied/{i}", f"{phase}/recorded/{i + 1}"]
        points += [f"{phase}/complete/{n}"]
    for point in points:
        a = instance(cluster, "a", f"--bootstrap-manifests={one}", phase_0=zero, pause=point)
        wait_until(f"a pause at {point}", lambda a=a, point=point: f"paused at {point}\n" in a.log_text())
        a.send(signal.SIGKILL)
        a.wait()
        release(a)
    instance(cluster, "a", f"--bootstrap-manifests={one}", phase_0=zero).wait_ready()
    assert_each_once(cluster, "abcde")


def test_a_leader_killed_while_it_creates_objects_together_is_continued(cluster):
    """The first leader leaves some of the objects of phase 0, the second one a few more."""
    keys = {manifest_key(m) for m in BUILT_IN}
    for n in (1, N_ZERO // 2):
        a = instance(cluster, "a")
        wait_until(f"{n} objects", lambda n=n: len({e["key"] for e in cluster.witness.seen()} & keys) >= n)
        a.send(signal.SIGKILL)
        a.wait()
        release(a)
    instance(cluster, "a").wait_ready()
    assert_each_once(cluster, "")


def test_five_instances_that_start_at_once_bootstrap_once(cluster):
    zero, one = manifests(cluster, "zero", a="1", b="2"), manifests(cluster, "one", c="3", d="4", e="5")
    five = [instance(cluster, name, f"--bootstrap-manifests={one}", phase_0=zero) for name in "vwxyz"]
    for one_of_them in five:
        one_of_them.wait_ready()
    assert_each_once(cluster, "abcde")
    assert all(i.alive() for i in five)
    for one_of_them in five:
        assert 'holdfast_bootstrap_complete{phase="phase-0"} 1' in one_of_them.get("/metrics")[1]


def test_standbys_continue_after_the_lease_expired(cluster):
    """The leader is killed when it has written objects and not recorded them. If b is the next
    leader, it is killed after a few more steps."""
    zero, one = manifests(cluster, "zero", a="1", b="2"), manifests(cluster, "one", c="3", d="4", e="5")
    flags = [f"--bootstrap-manifests={one}"]
    a = instance(cluster, "a", *flags, phase_0=zero, pause="phase-0/applied/0")
    wait_until("a's pause", lambda: "paused at" in a.log_text())
    b = instance(cluster, "b", *flags, phase_0=zero, pause=f"phase-0/recorded/{N_ZERO}")
    c = instance(cluster, "c", *flags, phase_0=zero)
    wait_until("b and c to follow", lambda: all(i.kubeconfig.exists() and i.get("/debug/leader")[0] == 200 and i.leader()["holder"]
                                                for i in (b, c)))
    assert [i.get("/readyz")[0] for i in (b, c)] == [500, 500]
    a.send(signal.SIGKILL)
    # b or c leads. If it is b, it pauses at a later step and is killed too.
    wait_until("b's pause, or the end", lambda: "paused at" in b.log_text() or
               any(len(records(e)[1]) == 2 for e in ledgers(cluster)[-1:]))
    if "paused at" in b.log_text():
        b.send(signal.SIGKILL)
    c.wait_ready()
    assert_each_once(cluster, "abcde")


@pytest.mark.parametrize("settled", [0, N_ZERO])
def test_a_stopped_leader_records_nothing_when_it_continues(cluster, settled):
    """The leader is stopped between an object, or all objects of phase 0, and the record. Another instance completes the
    bootstrap. After SIGCONT, gate and fence prevent the late record."""
    zero, go = manifests(cluster, "zero", a="1", b="2"), cluster.directory / "go"
    a = instance(cluster, "a", phase_0=zero, pause=f"phase-0/applied/{settled}", env={"BOOTSTRAP_GO": str(go)})
    wait_until("a's pause", lambda: "paused at" in a.log_text())
    a.pause()
    b = instance(cluster, "b", phase_0=zero).wait_ready()
    wait_complete(cluster, VERSION)
    go.touch()
    a.send(signal.SIGCONT)
    a.wait_ready()
    assert b.alive()
    assert_each_once(cluster, "ab")


def edit(one, name, value):
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    changed = json.loads(one.get(path)[1])
    changed["data"]["value"] = value
    assert one.request("PUT", path, changed)[0] == 200


def values(cluster):
    """The stored values, by name of the ConfigMap. Without the one that every namespace has."""
    now = {}
    for event in cluster.witness.seen():
        if event["key"].startswith(CONFIGMAPS) and event["key"] != CONFIGMAPS + "kube-root-ca.crt":
            now[event["key"].rsplit("/", 1)[1]] = event["object"]["data"]["value"] if event["type"] == "PUT" else None
    return now


def stop(one):
    one.send(signal.SIGTERM)
    assert one.wait() == 0


def outcomes(cluster):
    """The recorded outcomes of the steps that a test added."""
    return {k.rsplit("/", 1)[1]: r["outcome"] for k, r in records(ledgers(cluster)[-1])[0].items() if k.startswith("ConfigMap/")}


def wait_leads(cluster, name, after):
    """Waits until the instance leads and its controllers run, which means that its bootstrap is
    done."""
    cluster.witness.wait_holder(lambda h: f"_{name}_" in h, f"{name} to lead", after)
    return after


def test_upgrades_beside_older_versions_keep_edits(cluster):
    one = manifests(cluster, "one", a="1", b="1", c="1", d="1")
    two = manifests(cluster, "two", a="1", b="2", c="2", d="2", e="2")
    old = instance(cluster, "old", f"--bootstrap-manifests={one}", version="1.0.0").wait_ready()
    wait_complete(cluster, "1.0.0")
    edit(old, "b", "mine")
    assert old.request("DELETE", "/api/v1/namespaces/default/configmaps/c")[0] == 200
    # The new version is ready while the old one leads, because any completed phase 0 is enough.
    new = instance(cluster, "new", f"--bootstrap-manifests={two}", version="1.1.0").wait_ready()
    assert values(cluster) == {"a": "1", "b": "mine", "c": None, "d": "1"}
    stop(old)
    wait_complete(cluster, "1.1.0")
    assert values(cluster) == {"a": "1", "b": "mine", "c": None, "d": "2", "e": "2"}
    assert outcomes(cluster) == {"a": "created", "b": "kept", "c": "deleted", "d": "updated", "e": "created"}
    # The old version again: it becomes ready under the new leader, leads after it, and writes
    # nothing.
    n_ledgers = len(ledgers(cluster))
    old = instance(cluster, "old", f"--bootstrap-manifests={one}", version="1.0.0").wait_ready()
    mark = cluster.witness.mark()
    stop(new)
    wait_leads(cluster, "old", mark)
    wait_until("the controllers of old", lambda: old.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", {
        "apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "probe"}})[0] in (201, 409))
    cluster.witness.wait_for("the controllers of old", lambda e: e["key"].endswith("/workspaces/probe") and
                             e["object"].get("status", {}).get("phase") == "Ready", mark)
    assert len(ledgers(cluster)) == n_ledgers
    assert values(cluster) == {"a": "1", "b": "mine", "c": None, "d": "2", "e": "2"}


def test_an_edit_between_a_write_and_its_record_is_kept(cluster):
    """The leader is killed when it has replaced an object and not recorded it. Then a user edits
    the object. The next version keeps the edit."""
    one, two, three = (manifests(cluster, f"v{n}", a=str(n)) for n in (1, 2, 3))
    stop(instance(cluster, "a", f"--bootstrap-manifests={one}", version="1.0.0").wait_ready())
    a = instance(cluster, "a", f"--bootstrap-manifests={two}", version="2.0.0", pause="phase-1/applied/1")
    wait_until("a pause", lambda: "paused at phase-1/applied/1\n" in a.log_text())
    wait_until("the witness to see the object replaced", lambda: values(cluster)["a"] == "2")
    edit(a, "a", "mine")
    a.send(signal.SIGKILL)
    a.wait()
    release(a)
    a = instance(cluster, "a", f"--bootstrap-manifests={two}", version="2.0.0").wait_ready()
    wait_complete(cluster, "2.0.0")
    assert (values(cluster)["a"], outcomes(cluster)["a"]) == ("mine", "updated")
    stop(a)
    instance(cluster, "a", f"--bootstrap-manifests={three}", version="3.0.0").wait_ready()
    wait_complete(cluster, "3.0.0")
    assert (values(cluster)["a"], outcomes(cluster)["a"]) == ("mine", "kept")


def test_existing_objects_are_kept(cluster):
    a = instance(cluster, "a").wait_ready()
    assert a.request("POST", "/api/v1/namespaces/default/configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"value": "mine"}})[0] == 201
    stop(a)
    instance(cluster, "a", f"--bootstrap-manifests={manifests(cluster, 'one', a='1', b='1')}").wait_ready()
    cluster.witness.wait_for("b's record", lambda e: e["key"] == LEDGER and "default/b" in e["object"]["data"]["steps"])
    assert values(cluster) == {"a": "mine", "b": "1"}
    assert outcomes(cluster)["a"] == "found"


# ---- mistakes ----

BAD = [
    ("a.yaml", "a: [\n", "a.yaml: document 1, line "),
    ("a.yaml", configmap("a", "1") + "---\n- 1\n", "a.yaml: document 2, line 8: it is not an object"),
    ("a.yaml", "apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n",
     'a.yaml: document 1, line 1: field kind: there is no kind "Nonsense" in "v1"'),
    ("a.yml", "apiVersion: apps/v1\nkind: Deployment\n", 'field kind: there is no kind "Deployment" in "apps/v1"'),
    ("a.json", '{"apiVersion": "v1",\n "kind": }', "a.json: document 1, line 2: this is not JSON"),
    ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default}\n", "field metadata.name: it is missing"),
    ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "field metadata.namespace: a ConfigMap needs one"),
    ("a.yaml", configmap("a", "1") + "---\n" + configmap("a", "2"),
     "a.yaml: document 2, line 8: field metadata.name: ConfigMap/default/a is already in "),
    ("a.yaml", "apiVersion: tenancy.holdfast.dev/v1alpha1\nkind: Workspace\nmetadata: {name: default}\n",
     "Workspace.tenancy.holdfast.dev/default is already in phase-1/10-default-workspace.json"),
]


def refused(tmp_path, directories):
    done = subprocess.run([HOLDFASTD, "--etcd-servers=http://127.0.0.1:1", f"--data-dir={tmp_path / 'data'}",
                           f"--bootstrap-manifests={directories}"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done


@pytest.mark.parametrize("name,text,said", BAD)
def test_a_mistake_in_a_manifest_is_a_mistake_in_the_command_line(tmp_path, name, text, said):
    """holdfastd prints one line that names the mistake, exits with status 2, and has done
    nothing."""
    directory = tmp_path / "manifests"
    directory.mkdir()
    (directory / name).write_text(text)
    done = refused(tmp_path, directory)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("holdfastd: flag --bootstrap-manifests: ")
    assert said in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_missing_directory_is_refused(tmp_path):
    done = refused(tmp_path, f"{tmp_path},{tmp_path / 'none'}")
    assert f"{tmp_path / 'none'}: cannot read the directory: No such file or directory" in done.stderr


# ---- steps that fail ----

class Notified:
    """The service manager's end of sd_notify; records the STATUS= messages."""

    def __init__(self, directory):
        self.path = str(pathlib.Path(directory) / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.said = []

    def statuses(self):
        while True:
            try:
                self.said += self.socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return [line[7:] for line in self.said if line.startswith("STATUS=")]

    def extended(self):
        self.statuses()
        return [line for line in self.said if line.startswith("EXTEND_TIMEOUT_USEC=")]


def test_a_failing_step_is_reported_and_the_lease_released(cluster):
    """While a step of phase 0 fails, no instance is ready, not even one that does not contend.
    Log, status, health and metrics name the manifest. When the cause is removed, the bootstrap
    completes."""
    zero = cluster.directory / "zero"
    zero.mkdir()
    (zero / "x.yaml").write_text(configmap("a", "1") + "---\n" + configmap("b", "1", ns="nowhere"))
    notified = Notified(cluster.directory)
    a = instance(cluster, "a", phase_0=zero, env={"NOTIFY_SOCKET": notified.path})
    what = f"{zero}/x.yaml: document 2, line 8 (ConfigMap/nowhere/b): namespaces \"nowhere\" not found"
    wait_until("the status line", lambda: any(what in s for s in notified.statuses()))
    b = instance(cluster, "b", phase_0=zero)
    c = instance(cluster, "c", "--leader-elect=false", phase_0=zero)
    wait_until("a to say why it is not ready", lambda: what in a.get("/readyz/bootstrap-phase-0")[1])
    code, text = a.get("/readyz?verbose")
    assert code == 500 and "[-]bootstrap-phase-0 failed" in text and "[-]poststarthook/bootstrap-phase-0 failed" in text
    assert what in a.get("/healthz/bootstrap")[1]
    assert a.get("/livez/ping")[0] == 200
    metrics = a.get("/metrics")[1]
    assert 'holdfast_bootstrap_failing{phase="phase-0"} 1' in metrics and 'holdfast_bootstrap_complete{phase="phase-0"} 0' in metrics
    events = [e for e in cluster.witness.seen() if e["key"].startswith("/registry/events/kube-system/holdfast-bootstrap.")]
    assert events[0]["object"]["reason"] == "BootstrapFailed" and what in events[0]["object"]["message"]
    assert f"phase-0 fails, try 1: {what}" in a.log_text()
    assert notified.extended()  # it is still starting, so it extends the timeout
    # Another instance gets the chance to lead.
    cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead")
    wait_until("b to fail too", lambda: what in b.log_text())
    assert 'holdfast_bootstrap_gave_way_total{phase="phase-0"} 1' in a.get("/metrics")[1]
    assert [i.get("/readyz")[0] for i in (a, b, c)] == [500, 500, 500]
    assert not puts(cluster, WORKSPACE)  # neither phase 1 nor the controllers have started
    pids = [i.pid for i in (a, b, c)]
    assert b.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}})[0] == 201
    for one in (a, b, c):
        wait_until("it to be ready", lambda one=one: one.get("/readyz")[0] == 200)
        wait_until("health", lambda one=one: one.get("/healthz")[0] == 200)
    assert [i.pid for i in (a, b, c)] == pids and all(i.alive() for i in (a, b, c))
    assert len(puts(cluster, CONFIGMAPS + "a")) == len(puts(cluster, "/registry/configmaps/nowhere/b")) == 1


def test_a_failing_phase_1_does_not_prevent_readiness(cluster):
    """The message names file, document and field of the refused manifest, even if its name is
    long. The controllers continue, because the cluster has completed the phases once before."""
    one = cluster.directory / "one"
    one.mkdir()
    a = instance(cluster, "a", f"--bootstrap-manifests={one}", version="1.0.0").wait_ready()
    wait_complete(cluster, "1.0.0")
    stop(a)
    name = "a" * 200
    (one / "bad.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{'a b': c}}\n")
    a = instance(cluster, "a", f"--bootstrap-manifests={one}", version="1.1.0").wait_ready()
    text = wait_until("health to name it", lambda: a.get("/healthz/bootstrap")[0] == 500 and a.get("/healthz/bootstrap")[1])
    assert "phase-1 fails at ConfigMap/default/aaa" in text and "bad.yaml: document 1, line 1" in text and "data[a b]" in text
    assert a.get("/readyz")[0] == 200 and a.get("/livez")[0] == 200
    assert a.request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", {
        "apiVersion": "tenancy.holdfast.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "w"}})[0] == 201
    cluster.witness.wait_for("the controllers to work", lambda e: e["key"].endswith("/workspaces/w") and
                             e["object"].get("status", {}).get("phase") == "Ready")


def test_a_broken_ledger_is_reported_and_left_alone(cluster):
    """A ledger that cannot be parsed is reported and not repaired. Ready instances stay ready,
    and further instances become ready."""
    a = instance(cluster, "a").wait_ready()
    wait_complete(cluster, VERSION)
    broken = json.loads(a.get(LEDGER_PATH)[1])
    broken["data"]["steps"] = "mine\n"
    assert a.request("PUT", LEDGER_PATH, broken)[0] == 200
    b = instance(cluster, "b").wait_ready()
    mark = cluster.witness.mark()
    stop(a)
    wait_leads(cluster, "b", mark)
    text = wait_until("health to name it", lambda: b.get("/healthz/bootstrap")[0] == 500 and b.get("/healthz/bootstrap")[1])
    assert "ledger kube-system/holdfast-bootstrap: data.steps, line 1: the record is not JSON" in text
    # Without a ledger every step is done again, and existing objects stay.
    mark = cluster.witness.mark()
    assert b.request("DELETE", LEDGER_PATH)[0] == 200
    cluster.witness.wait_for("a new ledger", lambda e: e["key"] == LEDGER and e["type"] == "PUT" and "phase-1.completed" in
                             e["object"]["data"], mark)
    wait_until("health", lambda: b.get("/healthz")[0] == 200)
    assert len([e for e in puts(cluster, WORKSPACE) if not e["object"].get("status", {}).get("phase")]) == 1
