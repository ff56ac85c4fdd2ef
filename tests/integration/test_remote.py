# SPDX-License-Identifier: Apache-2.0
"""The library as a client of an ordinary API server: inside a cluster, with a token that is replaced, by kubeconfigs of several files."""
import json
import os
import signal
import urllib.parse

import pytest
from fault_proxy import FaultProxy
from harness import BUILD, Process, wait_until

CONTENDER = BUILD / "tests" / "contender"
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
            assert self.alive() or text in self.output.read_text(), self.said()
            return text in self.output.read_text()
        wait_until(f"{self.args[3]} to say {text}", said)


class Pod:
    """What the kubelet gives to a pod: a directory and two variables."""

    def __init__(self, cluster, server, token):
        self.directory = cluster.directory / "serviceaccount"
        self.directory.mkdir()
        (self.directory / "ca.crt").write_bytes((cluster.directory / "pki" / "ca.crt").read_bytes())
        (self.directory / "namespace").write_text("default")
        self.set_token(token)
        url = urllib.parse.urlparse(server.url)
        self.env = {"KUBERNETES_SERVICE_HOST": url.hostname, "KUBERNETES_SERVICE_PORT": str(url.port)}

    def set_token(self, token):
        """In one step, as the kubelet does."""
        (self.directory / "token.new").write_text(token + "\n")
        (self.directory / "token.new").rename(self.directory / "token")


@pytest.fixture(name="pod")
def _pod(cluster):
    """A server that knows tokens, and a pod with one of them."""
    tokens = cluster.directory / "tokens.csv"
    tokens.write_text('first,robot,1,"system:masters"\n')
    server = cluster.instance("server", f"--token-auth-file={tokens}").wait_ready()
    pod = Pod(cluster, server, "first")

    def only(token):
        """From now on the server knows this token alone."""
        tokens.write_text(f'{token},robot,1,"system:masters"\n')
        n = server.said().count("tokens reloaded")
        server.send(signal.SIGHUP)
        wait_until("the tokens to be read", lambda: server.said().count("tokens reloaded") > n)
    pod.only = only
    return pod


def writes(cluster, name, mark):
    return [e for e in cluster.witness.seen()[mark:] if e["key"] == CONFIGMAP.format(name) and e["type"] == "PUT"]


def test_in_a_cluster_with_a_token_that_is_replaced(cluster, pod):
    """The token is replaced under a leader and a standby, and the old one ends at once: the term goes on, the standby still takes over."""
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


def test_a_token_that_ended_ends_the_term_not_the_process(cluster, pod):
    """The server no longer knows the token and there is no other: the gate shuts in time; with a new one it leads again."""
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


def test_outside_a_cluster_it_says_so(cluster):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_SERVICE")}
    directory = cluster.directory / "account"
    directory.mkdir()
    a = cluster.add(Process([CONTENDER, directory, "x", "y"], cluster.directory / "a.log", env=env))
    assert a.wait() == 1 and "KUBERNETES_SERVICE_HOST" in a.said()
    env |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    b = cluster.add(Process([CONTENDER, directory, "x", "y"], cluster.directory / "b.log", env=env))
    assert b.wait() == 1 and str(directory / "ca.crt") in b.said()


def test_several_kubeconfigs_are_one(cluster):
    """The context in one file, the cluster in the next, the user's certificate by file beside a third."""
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
    """503, 429 and 401, with and without Retry-After, for a renewal each: the elector comes again within the renew deadline."""
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
