# SPDX-License-Identifier: Apache-2.0
"""The example of docs/embedding.md, built against the installed library as a user would do it,
and run with holdfastd as an ordinary API server."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import holdfastd
from holdfastd import BUILD, ROOT, VERSION, Process, wait_until

LEASE = "/registry/leases/default/{}"
CONFIGMAP = "/registry/configmaps/default/{}"


def sanitizers():
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", BUILD], check=True, capture_output=True, text=True).stdout)
    value = next(o["value"] for o in options if o["name"] == "b_sanitize")
    return [] if value == "none" else [f"-fsanitize={value}"]


class Installed:
    """`meson install` into a separate directory, and the output of pkg-config for it."""

    def __init__(self, directory):
        self.directory = directory
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", directory], check=True,
                       stdout=subprocess.DEVNULL)
        self.pc = next(directory.rglob("libholdfast.pc"))
        self.shared_object = next(p for p in directory.rglob("libholdfast.so*") if not p.is_symlink())
        self.env = {**os.environ, "PKG_CONFIG_PATH": str(self.pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(directory)}
        # tools/test looks for sanitizer reports at this path.
        self.run_env = {**os.environ, "LD_LIBRARY_PATH": str(self.shared_object.parent)}

    def pkg_config(self, *args):
        # pkg-config also prepends the sysroot to system paths, which are not inside it.
        said = subprocess.run(["pkg-config", *args], env=self.env, check=True, capture_output=True, text=True).stdout.split()
        return [a.replace(f"{self.directory}/usr/include", "/usr/include") for a in said]

    def build(self, source, program, compiler="gcc", flags=()):
        done = subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Werror",
                               "-g", *sanitizers(), *flags, str(source), *self.pkg_config("--cflags", "--libs", "libholdfast"), "-lcurl", "-o",
                               str(program)], env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return program


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def embed(installed):
    return installed.build(ROOT / "examples" / "embed.c", installed.directory / "embed")


class Embed(Process):
    """One process of the example."""

    def __init__(self, cluster, installed, program, name, identity, kubeconfig):
        self.output = cluster.directory / f"{identity}.out"
        with open(self.output, "wb") as out:
            super().__init__([program, name, identity, kubeconfig], cluster.directory / f"{identity}.log", env=installed.run_env, stdout=out)
        cluster.add(self)

    def lines(self):
        return self.output.read_text().splitlines()

    def state(self):
        """The state that its event loop printed last: (state, holder, may act)."""
        said = [m for m in (re.match(r"(\w+) holder=(\S*) term=\d+ may_act=(\d)", line) for line in self.lines()) if m]
        return (said[-1][1], said[-1][2], said[-1][3] == "1") if said else None

    def leads(self):
        wait_until(f"{self.args[2]} to lead", lambda: self.state() and self.state()[0] == "leading")


def two(cluster, installed, embed, name="counter"):
    server = cluster.instance("server").wait_ready()
    a = Embed(cluster, installed, embed, name, "a-1", server.kubeconfig)
    a.leads()
    cluster.witness.wait_for("a's count", lambda e: e["key"] == CONFIGMAP.format(name))
    b = Embed(cluster, installed, embed, name, "b-1", server.kubeconfig)
    wait_until("b to follow", lambda: b.state() == ("following", "a-1", False))
    return server, a, b


def holder(event, name="counter"):
    if event["key"] != LEASE.format(name) or event["type"] != "PUT":
        return None
    return event["object"]["spec"].get("holderIdentity") or ""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_example_builds_against_the_installed_library(installed, tmp_path, compiler):
    if shutil.which(compiler) is None or (compiler == "clang" and sanitizers()):
        pytest.skip(f"no {compiler}, or it has other sanitizers than the library")
    program = installed.build(ROOT / "examples" / "embed.c", tmp_path / "embed", compiler)
    needed = re.findall(r"NEEDED\s+(\S+)", subprocess.run(["objdump", "-p", program], check=True, capture_output=True, text=True).stdout)
    assert [n for n in needed if "holdfast" in n] == [f"libholdfast.so.{VERSION.rpartition('.')[0]}"]
    done = subprocess.run([program], env=installed.run_env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("usage: ")
    done = subprocess.run([program, "n", "i", tmp_path / "none"], env=installed.run_env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and str(tmp_path / "none") in done.stderr


def test_the_installation_is_complete_and_public(installed):
    """Headers, library and pkg-config file are complete and contain nothing private."""
    include = next(installed.directory.rglob("include/holdfast"))
    ours = {h.name for h in ROOT.glob("*/include/holdfast/*.h")}
    assert {h.name for h in include.iterdir()} == ours
    for header in include.iterdir():
        for line in header.read_text().splitlines():
            assert not re.match(r'\s*#\s*include\s+"', line), f"{header.name}: {line}"
    said = installed.pc.read_text()
    assert "Requires" not in said.replace("Requires.private", "") and "curl" not in said.split("Libs:")[1].split("\n")[0]


def test_sigterm_hands_over(cluster, installed, embed):
    server, a, b = two(cluster, installed, embed)
    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    released = cluster.witness.wait_for("the release", lambda e: holder(e) == "", mark)
    taken = cluster.witness.wait_for("b to take the Lease", lambda e: holder(e) == "b-1", mark)
    assert a.wait() == 0 and taken["rev"] > released["rev"]
    b.leads()
    first = cluster.witness.wait_for("b's count", lambda e: e["key"] == CONFIGMAP.format("counter")
                                     and int(e["object"]["data"]["term"]) == taken["rev"], mark)
    between = [e for e in cluster.witness.seen() if e["key"] == CONFIGMAP.format("counter") and released["rev"] < e["rev"] < first["rev"]]
    assert between == []
    mark = cluster.witness.mark()
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    cluster.witness.wait_for("b's release", lambda e: holder(e) == "", mark)


def test_sigkill_is_taken_over_at_expiry(cluster, installed, embed):
    server, a, b = two(cluster, installed, embed)
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    a.wait()
    taken = cluster.witness.wait_for("b to take the Lease", lambda e: holder(e) == "b-1", mark)
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE.format("counter") and e["rev"] < taken["rev"]][-1]
    assert taken["t"] - last["t"] > 5.9e9  # the standby waits for the recorded duration; an earlier take-over would mean two leaders
    b.leads()


def test_a_stopped_leader_continues_as_a_follower(cluster, installed, embed):
    """The leader is stopped for longer than the lease duration. After SIGCONT it writes nothing
    of the old term, continues as a follower, and can lead again."""
    server, a, b = two(cluster, installed, embed)
    mark = cluster.witness.mark()
    a.send(signal.SIGSTOP)
    taken = cluster.witness.wait_for("b to take the Lease", lambda e: holder(e) == "b-1", mark)
    b.leads()
    a.send(signal.SIGCONT)
    wait_until("a to follow", lambda: a.state() == ("following", "b-1", False))
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    mark = cluster.witness.mark()
    a.leads()
    cluster.witness.wait_for("a to count again", lambda e: e["key"] == CONFIGMAP.format("counter") and int(e["object"]["data"]["term"]) > taken["rev"],
                             mark)
    late = [e for e in cluster.witness.seen() if e["rev"] > taken["rev"] and e["key"] == CONFIGMAP.format("counter")
            and int(e["object"]["data"]["term"]) < taken["rev"]]
    assert late == []
    a.send(signal.SIGTERM)
    assert a.wait() == 0


def test_health_and_metrics_work_without_the_http_server(cluster, installed, embed):
    server, a, b = two(cluster, installed, embed)
    for process, leads in ((a, 1), (b, 0)):
        process.send(signal.SIGUSR1)
        wait_until("the metrics", lambda p=process: any(line.startswith("holdfast_leader_term{") for line in p.lines()))
        assert "check leaderElection ok" in process.lines()
        wait_until("its mastership", lambda p=process, n=leads: f'leader_election_master_status{{name="default/counter"}} {n}' in p.lines()
                   or f'leader_election_master_status{{name="counter"}} {n}' in p.lines())
    assert a.alive() and b.alive()


def test_it_logs_only_to_the_callback(cluster, installed, embed):
    """All output of the library comes through on_log, which marks each line."""
    server, a, b = two(cluster, installed, embed)
    for process in (a, b):
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        lines = process.log_text().splitlines()
        assert lines and all(re.match(r"<\d>\w+: ", line) for line in lines), lines


def test_the_example_with_a_reconciler_copies_while_it_leads(cluster, installed, tmp_path):
    program = installed.build(ROOT / "examples" / "reconciler.c", tmp_path / "reconciler")
    server = cluster.instance("server").wait_ready()
    path = "/api/v1/namespaces/default/configmaps"

    def original(name):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"copy": "yes"}}}

    def read(path):
        return json.loads(server.get(path)[1])
    assert server.request("POST", path, original("early"))[0] == 201
    process = cluster.add(Process([program, "r-1", server.kubeconfig], cluster.directory / "reconciler.log", env=installed.run_env))
    wait_until("a copy of what was there", lambda: server.get(f"{path}/early-copy")[0] == 200)
    assert server.request("POST", path, original("late"))[0] == 201
    wait_until("a copy of what came later", lambda: server.get(f"{path}/late-copy")[0] == 200)
    owner = read(f"{path}/late-copy")["metadata"]["ownerReferences"][0]
    late = read(f"{path}/late")
    assert (owner["uid"], owner["controller"]) == (late["metadata"]["uid"], True)

    # Additions by another writer stay, its other changes are repaired, and equal objects are not written.
    changed = read(f"{path}/late-copy")
    changed["data"] = {"of": "broken", "more": "kept"}
    assert server.request("PUT", f"{path}/late-copy", changed)[0] == 200
    late["data"] = {"a": "b"}
    assert server.request("PUT", f"{path}/late", late)[0] == 200
    wait_until("the repair", lambda: read(f"{path}/late-copy")["data"] == {"of": "late", "more": "kept"})
    events = wait_until("an Event", lambda: [e for e in read("/api/v1/namespaces/default/events")["items"]
                                             if e["involvedObject"]["name"] == "late"])
    assert [(e["reason"], e["involvedObject"]["uid"], e["reportingInstance"]) for e in events] == [("Copied", late["metadata"]["uid"], "r-1")]

    # A foreign object with the name of a copy is left alone while the original is created and deleted.
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken-copy"}, "data": {"mine": "yes"}}
    assert server.request("POST", path, foreign)[0] == 201
    foreign = read(f"{path}/taken-copy")
    assert server.request("POST", path, original("taken"))[0] == 201
    wait_until("an Event about the name", lambda: [e for e in read("/api/v1/namespaces/default/events")["items"]
                                                   if e["involvedObject"]["name"] == "taken" and e["reason"] == "NotCopied"])
    for name in ("taken", "late"):  # without the label the ConfigMap is not an original any more
        bare = read(f"{path}/{name}")
        del bare["metadata"]["labels"]
        assert server.request("PUT", f"{path}/{name}", bare)[0] == 200
    wait_until("the copy of what has lost its label to be deleted", lambda: server.get(f"{path}/late-copy")[0] == 404)
    assert server.get(f"{path}/late")[0] == 200

    assert server.request("DELETE", f"{path}/early")[0] == 200
    wait_until("the copy to be deleted", lambda: server.get(f"{path}/early-copy")[0] == 404)
    assert read(f"{path}/taken-copy") == foreign
    process.send(signal.SIGTERM)
    assert process.wait() == 0, process.log_text()
