# SPDX-License-Identifier: Apache-2.0
"""The library as a client of an ordinary API server: in a cluster, with a token that is
replaced, and with several kubeconfig files."""
import base64
import json
import os
import signal
import subprocess
import urllib.parse

import pytest
from fault_proxy import FaultProxy
from holdfastd import BUILD, Process, wait_until

CONTENDER = BUILD / "tests" / "contender"
PROBE = BUILD / "tests" / "rest-probe"
LEASE = "/registry/leases/default/{}"
CONFIGMAP = "/registry/configmaps/default/{}"
QUICK = ["--lease", "4s", "--renew", "2s", "--retry", "500ms"]


class Contender(Process):
    def __init__(self, cluster, where, name, identity, env=None, timing=None):
        self.output = cluster.directory / f"{identity}.out"
        with open(self.output, "wb") as out:
            super().__init__([CONTENDER, where, name, identity, *(timing or QUICK)], cluster.directory / f"{identity}.log", stdout=out,
                             env={**os.environ, **(env or {})})
        cluster.add(self)

    def wait_line(self, text):
        def said():
            assert self.alive() or text in self.output.read_text(), self.log_text()
            return text in self.output.read_text()
        wait_until(f"{self.args[3]} to say {text}", said)


class Pod:
    """What the kubelet provides to a pod: a directory and two environment variables."""

    def __init__(self, cluster, server, token):
        self.directory = cluster.directory / "serviceaccount"
        self.directory.mkdir()
        (self.directory / "ca.crt").write_bytes((cluster.directory / "pki" / "ca.crt").read_bytes())
        (self.directory / "namespace").write_text("default")
        self.set_token(token)
        url = urllib.parse.urlparse(server.url)
        self.env = {"KUBERNETES_SERVICE_HOST": url.hostname, "KUBERNETES_SERVICE_PORT": str(url.port)}

    def set_token(self, token):
        """Replaces the token atomically, as the kubelet does."""
        (self.directory / "token.new").write_text(token + "\n")
        (self.directory / "token.new").rename(self.directory / "token")


@pytest.fixture(name="pod")
def _pod(cluster):
    """A server with a token file, and a pod with one of its tokens."""
    tokens = cluster.directory / "tokens.csv"
    tokens.write_text('first,robot,1,"system:masters"\n')
    server = cluster.instance("server", f"--token-auth-file={tokens}").wait_ready()
    pod = Pod(cluster, server, "first")

    def only(token):
        """Makes the token the only valid one."""
        tokens.write_text(f'{token},robot,1,"system:masters"\n')
        n = server.log_text().count("tokens reloaded")
        server.send(signal.SIGHUP)
        wait_until("the tokens to be read", lambda: server.log_text().count("tokens reloaded") > n)
    pod.only = only
    return pod


def writes(cluster, name, mark):
    return [e for e in cluster.witness.seen()[mark:] if e["key"] == CONFIGMAP.format(name) and e["type"] == "PUT"]


def test_a_replaced_token_does_not_end_the_term(cluster, pod):
    """The token of a leader and a standby is replaced, and the old one becomes invalid at once.
    The term continues, and the standby can still take over."""
    a = Contender(cluster, pod.directory, "podded", "pod-a", pod.env)
    a.wait_line("namespace default")
    a.wait_line("state leading")
    b = Contender(cluster, pod.directory, "podded", "pod-b", pod.env)
    b.wait_line("state following holder pod-a")
    first = cluster.witness.wait_for("a write", lambda e: e["key"] == CONFIGMAP.format("podded"))["object"]["data"]
    for token in ("second", "third"):
        pod.set_token(token)
        pod.only(token)
        mark = cluster.witness.mark()
        wait_until("writes after that", lambda m=mark: len(writes(cluster, "podded", m)) > 20)
        renewed = cluster.witness.wait_for("a renewal", lambda e: e["key"] == LEASE.format("podded"), mark)
        assert renewed["object"]["spec"]["holderIdentity"] == "pod-a" and a.alive()
        assert {e["object"]["data"]["term"] for e in writes(cluster, "podded", mark)} == {first["term"]}
    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    b.wait_line("state leading")
    last = cluster.witness.wait_for("b to write", lambda e: e["key"] == CONFIGMAP.format("podded")
                                    and e["object"]["data"]["identity"] == "pod-b", mark)
    assert int(last["object"]["data"]["term"]) > int(first["term"])
    b.send(signal.SIGTERM)
    assert b.wait() == 0


def test_an_invalid_token_ends_only_the_term(cluster, pod):
    """The token becomes invalid and there is no other one: the gate shuts in time. With a new
    token the process leads again."""
    a = Contender(cluster, pod.directory, "podded", "pod-a", pod.env)
    a.wait_line("state leading")
    pod.only("other")
    a.wait_line("state following")
    mark = cluster.witness.mark()
    pod.set_token("other")
    cluster.witness.wait_for("it to lead again", lambda e: e["key"] == CONFIGMAP.format("podded"), mark)
    assert a.alive()
    a.send(signal.SIGTERM)
    assert a.wait() == 0


def test_outside_a_cluster_there_is_a_clear_error(cluster):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_SERVICE")}
    directory = cluster.directory / "account"
    directory.mkdir()
    a = cluster.add(Process([CONTENDER, directory, "x", "y"], cluster.directory / "a.log", env=env))
    assert a.wait() == 1 and "KUBERNETES_SERVICE_HOST" in a.log_text()
    env |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    b = cluster.add(Process([CONTENDER, directory, "x", "y"], cluster.directory / "b.log", env=env))
    assert b.wait() == 1 and str(directory / "ca.crt") in b.log_text()


def test_several_kubeconfigs_are_merged(cluster):
    """The context is in one file, the cluster in the next, and the user with a certificate file
    in a third."""
    server = cluster.instance("server").wait_ready()
    whole = server.config()
    parts = cluster.directory / "parts"
    (parts / "user").mkdir(parents=True)
    for name in ("admin.crt", "admin.key"):
        (parts / "user" / name).write_bytes((cluster.directory / "pki" / name).read_bytes())
    user = {"name": whole["users"][0]["name"], "user": {"client-certificate": "admin.crt", "client-key": "admin.key"}}
    (parts / "1").write_text(json.dumps({"current-context": whole["current-context"], "contexts": whole["contexts"]}))
    (parts / "2").write_text(json.dumps({"current-context": "other", "clusters": whole["clusters"]}))
    (parts / "user" / "3").write_text(json.dumps({"users": [user]}))
    env = {"KUBECONFIG": f"{parts}/1:{parts}/gone:{parts}/2:{parts}/user/3"}
    a = Contender(cluster, "", "merged", "merged-a", env)
    a.wait_line("state leading")
    a.send(signal.SIGTERM)
    assert a.wait() == 0


def test_short_refusals_do_not_end_the_term(cluster):
    """Renewals get 503, 429 and 401, with and without Retry-After. The elector retries within
    the renew deadline."""
    server = cluster.instance("server").wait_ready()
    proxy = FaultProxy(server, only="/leases/refused")
    try:
        config = proxy.kubeconfig(cluster.directory / "proxy.kubeconfig")
        a = Contender(cluster, config, "refused", "refused-a", timing=["--lease", "30s", "--renew", "20s", "--retry", "300ms"])
        a.wait_line("state leading")
        first = cluster.witness.wait_for("a write", lambda e: e["key"] == CONFIGMAP.format("refused"))["object"]["data"]
        for mode in ((503, "ServiceUnavailable", 1), (429, "TooManyRequests", 1), (429, "TooManyRequests"), (401, "Unauthorized"), "drop-reply"):
            proxy.set(mode)
            wait_until(f"{mode} to be met", lambda m=mode: proxy.counts.get(str(m), 0) > 0)
            proxy.set("pass")
            mark = cluster.witness.mark()
            cluster.witness.wait_for(f"a renewal after {mode}", lambda e: e["key"] == LEASE.format("refused"), mark)
        after = cluster.witness.wait_for("a write after all", lambda e: e["key"] == CONFIGMAP.format("refused"), cluster.witness.mark())
        assert after["object"]["data"]["term"] == first["term"] and "state" not in a.output.read_text().split("state leading")[1]
        a.send(signal.SIGTERM)
        assert a.wait() == 0
    finally:
        proxy.end()


def probe(kubeconfig, verb, resource, ns="", name="", **options):
    """Returns (hf_error, HTTP status, reason, fence echoed) and the further lines."""
    words = [w for k, v in options.items() for w in (f"--{k}", v if isinstance(v, str) else json.dumps(v))]
    done = subprocess.run([PROBE, kubeconfig, verb, resource, ns, name, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line[0].isdigit() or line[0] == "-")
    error, code, reason, echoed = lines[at].split()
    return (int(error), int(code), reason, echoed == "1"), lines[:at] + lines[at + 1:]


def configmap(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


CONFLICT, EXISTS, NOT_FOUND, INVALID, UNAUTHORIZED, FORBIDDEN, GONE, TIMEOUT, STALE_TERM = 1, 2, 3, 4, 5, 6, 7, 10, 12


def test_errors_of_a_real_server_are_mapped(cluster):
    """Each error of the contract, as holdfastd sends it and the client maps it."""
    server = cluster.instance("server").wait_ready()
    config = server.kubeconfig
    done, text = probe(config, "create", "v1/configmaps", "default", body=configmap("one"))
    assert done == (0, 0, "-", False)
    one = json.loads(text[0])
    assert probe(config, "get", "v1/configmaps", "default", "one")[0][0] == 0
    newer = json.loads(probe(config, "update", "v1/configmaps", "default", "one", body={**one, "data": {"a": "b"}})[1][0])
    assert newer["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]
    subprocess.run(["etcdctl", f"--endpoints={cluster.etcd.url}", "compact", newer["metadata"]["resourceVersion"]], check=True,
                   env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.DEVNULL)
    server.send(signal.SIGTERM)  # its memory still knows the compacted revisions
    assert server.wait() == 0
    server = cluster.instance("server").wait_ready()
    config = server.kubeconfig
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "x\0"}).encode()  # of a list that began before the writes above
    continued = base64.urlsafe_b64encode(token).decode().rstrip("=")
    for expected, call in (
            ((EXISTS, 409, "AlreadyExists"), ("create", "v1/configmaps", "default", "", {"body": configmap("one")})),
            ((CONFLICT, 409, "Conflict"), ("update", "v1/configmaps", "default", "one", {"body": {**one, "data": {"c": "d"}}})),
            ((NOT_FOUND, 404, "NotFound"), ("get", "v1/configmaps", "default", "none", {})),
            ((NOT_FOUND, 404, "NotFound"), ("delete", "v1/configmaps", "default", "none", {})),
            ((INVALID, 400, "BadRequest"), ("get", "v1/configmaps", "default", "..", {})),  # not the collection above it
            ((NOT_FOUND, 404, "NotFound"), ("list", "none.example/v1/things", "", "", {})),
            ((INVALID, 422, "Invalid"), ("create", "v1/configmaps", "default", "", {"body": configmap("Not A Name")})),
            ((INVALID, 400, "BadRequest"), ("create", "v1/configmaps", "default", "", {"body": "{"})),
            ((INVALID, 400, "BadRequest"), ("list", "v1/configmaps", "default", "", {"query": "labelSelector=a%20in%20("})),
            ((GONE, 410, "Expired"), ("list", "v1/configmaps", "default", "", {"query": f"limit=1&continue={continued}"})),
            ((TIMEOUT, 504, "Timeout"), ("list", "v1/configmaps", "default", "",
                                         {"query": "resourceVersion=900000000&resourceVersionMatch=NotOlderThan"})),
            ((STALE_TERM, 409, "Conflict"), ("create", "v1/configmaps", "default", "", {"body": configmap("two"), "fence": "default/nobody;7;me"}))):
        verb, resource, ns, name, options = call
        said, words = probe(config, verb, resource, ns, name, **options)
        assert said[:3] == expected, (call, said, words)
        assert words and words[0], call
    assert probe(config, "get", "v1/configmaps", "default", "two")[0][0] == NOT_FOUND  # the fence had rejected the write


def owners(applied):
    """Which keys of its data each manager owns."""
    return {entry["manager"]: sorted(key[2:] for key in entry["fieldsV1"].get("f:data", {}) if key != ".")
            for entry in applied["metadata"]["managedFields"]}


def test_the_library_applies(cluster):
    """Server-side apply by the client: it creates the object and then changes what is the manager's. What another manager
    owns is a conflict, unless the request forces it."""
    config = cluster.instance("server").wait_ready().kubeconfig

    def apply(manager, data, query=""):
        said, text = probe(config, "apply", "v1/configmaps", "default", "shared", query=f"fieldManager={manager}{query}",
                           body={**configmap("shared"), "data": data})
        return said[0], json.loads(text[0]) if said[0] == 0 else (said, text)
    error, made = apply("one", {"a": "1", "b": "1"})
    assert (error, made["data"], owners(made)) == (0, {"a": "1", "b": "1"}, {"one": ["a", "b"]})
    error, same = apply("one", {"a": "1", "b": "1"})
    assert error == 0 and same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    error, (said, text) = apply("two", {"b": "2", "c": "2"})
    assert said[:3] == (CONFLICT, 409, "Conflict") and '"one"' in text[0] and ".data.b" in text[0]
    error, shared = apply("two", {"b": "2", "c": "2"}, "&force=true")
    assert (error, shared["data"], owners(shared)) == (0, {"a": "1", "b": "2", "c": "2"}, {"one": ["a"], "two": ["b", "c"]})
    error, less = apply("two", {"c": "2"})
    assert (error, less["data"], owners(less)) == (0, {"a": "1", "c": "2"}, {"one": ["a"], "two": ["c"]})
    assert json.loads(probe(config, "get", "v1/configmaps", "default", "shared")[1][0])["data"] == less["data"]
    body = {**configmap("shared"), "data": {}}
    said, text = probe(config, "apply", "v1/configmaps", "default", "shared", body=body)
    assert said[:3] == (INVALID, 422, "Invalid") and "fieldManager" in text[0]
    said, text = probe(config, "apply", "v1/configmaps", "default", "shared", query="fieldManager=one&force=true", body=body,
                       fence="default/nobody;7;me")
    assert said[:3] == (STALE_TERM, 409, "Conflict")


def test_the_library_patches(cluster):
    """Each other kind of patch reaches the server as what it is."""
    config = cluster.instance("server").wait_ready().kubeconfig
    assert probe(config, "create", "v1/configmaps", "default", body={**configmap("one"), "data": {"a": "1", "b": "1"}})[0][0] == 0
    for kind, body, expected in (("merge", {"data": {"a": None, "c": "2"}}, {"b": "1", "c": "2"}),
                                 ("strategic", {"data": {"$patch": "replace", "d": "3"}}, {"d": "3"}),
                                 ("json", [{"op": "test", "path": "/data/d", "value": "3"}, {"op": "move", "from": "/data/d", "path": "/data/e"}],
                                  {"e": "3"})):
        said, text = probe(config, kind, "v1/configmaps", "default", "one", body=body)
        assert said[0] == 0 and json.loads(text[0])["data"] == expected, (kind, said, text)
    assert probe(config, "merge", "v1/configmaps", "default", "none", body={})[0][:2] == (NOT_FOUND, 404)


def test_unknown_users_are_unauthorized(cluster):
    server = cluster.instance("server").wait_ready()
    whole = server.config()
    stranger = cluster.directory / "stranger.kubeconfig"
    for user, errors in (({"token": "wrong"}, {(UNAUTHORIZED, 401)}), ({}, {(UNAUTHORIZED, 401), (FORBIDDEN, 403)})):
        stranger.write_text(json.dumps({**whole, "users": [{"name": whole["users"][0]["name"], "user": user}]}))
        said, words = probe(stranger, "list", "v1/configmaps", "default")
        assert said[:2] in errors, (said, words)
    # The CA did not sign the certificate of the server, so nothing is sent to it.
    cluster_entry = {**whole["clusters"][0]["cluster"], "certificate-authority": "/etc/ssl/certs/none.pem"}
    cluster_entry.pop("certificate-authority-data", None)
    stranger.write_text(json.dumps({**whole, "clusters": [{"name": whole["clusters"][0]["name"], "cluster": cluster_entry}]}))
    done = subprocess.run([PROBE, stranger, "list", "v1/configmaps", "", ""], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "/etc/ssl/certs/none.pem" in done.stderr


def test_a_watch_of_a_real_server_delivers_events(cluster):
    """A watch delivers events in order, from the given revision on. A watch from a compacted
    revision ends with 410."""
    server = cluster.instance("server").wait_ready()
    first = json.loads(probe(server.kubeconfig, "create", "v1/configmaps", "default", body=configmap("one"))[1][0])
    second = json.loads(probe(server.kubeconfig, "update", "v1/configmaps", "default", "one", body={**first, "data": {"a": "b"}})[1][0])
    log = cluster.directory / "watch.out"
    with open(log, "wb") as out:
        watch = cluster.add(Process([PROBE, server.kubeconfig, "watch", "v1/configmaps", "default", "one", "--from",
                                     first["metadata"]["resourceVersion"]], cluster.directory / "watch.log", stdout=out))
    wait_until("the second event", lambda: f"MODIFIED {second['metadata']['resourceVersion']}" in log.read_text())
    probe(server.kubeconfig, "delete", "v1/configmaps", "default", "one")
    wait_until("the last event", lambda: "DELETED" in log.read_text())
    assert [line.split()[0] for line in log.read_text().splitlines() if not line.startswith("BOOKMARK")] == ["MODIFIED", "DELETED"]
    # The end of the stream is no error: the client watches again.
    server.send(signal.SIGTERM)
    assert watch.wait() == 0
    end = log.read_text().splitlines()
    assert any(line.startswith("0 0 ") for line in end), end
