# SPDX-License-Identifier: Apache-2.0
"""The service accounts of new pods, which kube-apiserver's plug-in of admission ServiceAccount assigns: names, token volumes, pull
secrets, and its refusals."""
import itertools
import json

import pytest
from holdfastd import Cluster

NUMBERS = itertools.count(1)
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


class Server:
    def __init__(self, cluster):
        self.a = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()

    def ask(self, method, path, body=None, content_type="application/json"):
        code, text = self.a.request(method, path, body, headers={"Content-Type": content_type})
        return code, json.loads(text)

    def do(self, method, path, body=None):
        code, answer = self.ask(method, path, body)
        assert code < 300, (method, path, code, answer)
        return answer

    def account(self, ns, name, **members):
        return self.do("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": name, **members.pop("metadata", {})}, **members})

    def pod(self, ns, name, **spec):
        return self.do("POST", pods(ns), pod(name, **spec))["spec"]

    def refusal(self, ns, body):
        code, status = self.ask("POST", pods(ns), body)
        assert (code, status["reason"]) == (403, "Forbidden"), status
        prefix = f'pods "{body["metadata"]["name"]}" is forbidden: '
        assert status["message"].startswith(prefix), status
        return status["message"][len(prefix):]


@pytest.fixture(scope="module")
def server():
    with Cluster(with_witness=False) as cluster:
        yield Server(cluster)


@pytest.fixture
def ns(server):
    name = f"accounts-{next(NUMBERS)}"
    server.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def pods(ns):
    return f"/api/v1/namespaces/{ns}/pods"


def pod(name, **spec):
    return {"metadata": {"name": name, **spec.pop("metadata", {})}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec}}


def test_a_pod_of_a_new_namespace_gets_the_default_account_and_its_token(server, ns):
    # The pod is created at once, while the controller still creates the account.
    spec = server.pod(ns, "a", initContainers=[{"name": "i", "image": "busybox:1"}])
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    volume = spec["volumes"][0]
    assert len(spec["volumes"]) == 1 and volume["name"].startswith("kube-api-access-") and len(volume["name"]) == 21
    assert volume["projected"] == {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    for containers in ("containers", "initContainers"):
        assert spec[containers][0]["volumeMounts"] == [mount], containers
    assert "imagePullSecrets" not in spec
    managed = server.do("GET", f"{pods(ns)}/a")["metadata"]["managedFields"]
    assert "kube-api-access" not in json.dumps(managed), "the client owns what it has written only"


def test_a_pod_or_an_account_can_do_without_the_token(server, ns):
    server.account(ns, "without", automountServiceAccountToken=False)
    assert "volumes" not in server.pod(ns, "a", serviceAccountName="without")
    assert "volumes" not in server.pod(ns, "b", automountServiceAccountToken=False)
    assert "volumes" in server.pod(ns, "c", serviceAccountName="without", automountServiceAccountToken=True)


def test_existing_mounts_and_volumes_are_kept(server, ns):
    mine = {"name": "mine", "emptyDir": {}}
    mounted = {"name": "c", "image": "busybox:1", "volumeMounts": [{"name": "mine", "mountPath": MOUNT_PATH}]}
    spec = server.pod(ns, "a", volumes=[mine], containers=[mounted])
    assert spec["volumes"] == [mine] and spec["containers"][0]["volumeMounts"] == mounted["volumeMounts"]
    spec = server.pod(ns, "b", volumes=[mine], containers=[mounted, {"name": "d", "image": "busybox:1"}])
    assert [v["name"] for v in spec["volumes"]][0] == "mine" and len(spec["volumes"]) == 2
    assert len(spec["containers"][0]["volumeMounts"]) == 1
    assert spec["containers"][1]["volumeMounts"][0]["name"] == spec["volumes"][1]["name"]
    own = {"name": "kube-api-access-own", "emptyDir": {}}
    spec = server.pod(ns, "c", volumes=[own])
    assert spec["volumes"] == [own] and spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-own"


def test_a_pod_gets_the_pull_secrets_of_its_account(server, ns):
    server.account(ns, "puller", imagePullSecrets=[{"name": "one"}, {"name": "two"}])
    assert server.pod(ns, "a", serviceAccountName="puller")["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert server.pod(ns, "b", serviceAccountName="puller", imagePullSecrets=[{"name": "x"}])["imagePullSecrets"] == [{"name": "x"}]


def test_a_pod_of_a_missing_account_is_refused(server, ns):
    why = server.refusal(ns, pod("a", serviceAccountName="nobody"))
    assert why == f'error looking up service account {ns}/nobody: serviceaccount "nobody" not found'
    assert server.ask("GET", f"{pods(ns)}/a")[0] == 404
    assert server.refusal(ns, pod("a", serviceAccountName="n" * 300)).startswith("error looking up service account")
    code, status = server.ask("PATCH", f"{pods(ns)}/applied?fieldManager=m", {"apiVersion": "v1", "kind": "Pod", **pod("applied", serviceAccountName="nobody")},
                              "application/apply-patch+yaml")
    assert code == 403 and "nobody" in status["message"], status


def test_mirror_pods_have_no_account_and_no_secrets(server, ns):
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    spec = server.pod(ns, "plain", metadata=mirror, nodeName="n")
    assert "serviceAccountName" not in spec and "volumes" not in spec
    assert server.refusal(ns, pod("a", metadata=mirror, serviceAccountName="default")) == "a mirror pod may not reference service accounts"
    secret = {"name": "v", "secret": {"secretName": "s"}}
    projected = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
    variable = {"name": "c", "image": "busybox:1", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    for members in ({"volumes": [secret]}, {"volumes": [projected]}, {"imagePullSecrets": [{"name": "s"}]}, {"containers": [variable]}):
        assert server.refusal(ns, pod("a", metadata=mirror, **members)) == "a mirror pod may not reference secrets"
    token = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    assert server.refusal(ns, pod("a", metadata=mirror, volumes=[token])) == "a mirror pod may not use ServiceAccountToken volume projections"


def test_an_account_may_limit_its_pods_to_its_secrets(server, ns):
    server.account(ns, "limited", metadata={"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
                   secrets=[{"name": "mine"}], imagePullSecrets=[{"name": "pull"}])

    def variable(secret):
        return {"name": "E", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}

    def container(**members):
        return {"name": "c", "image": "busybox:1", **members}

    def volume(secret):
        return {"name": "v", "secret": {"secretName": secret}}

    tail = "is not allowed because service account limited does not reference that secret"
    for name, (why, members) in enumerate([
            ('volume with secret.secretName="other" ' + tail, {"volumes": [volume("other")]}),
            ('container c with envVar E referencing secret.secretName="other" ' + tail, {"containers": [container(env=[variable("other")])]}),
            ('container c with envFrom referencing secret.secretName="other" ' + tail,
             {"containers": [container(envFrom=[{"secretRef": {"name": "other"}}])]}),
            ('init container i with envVar E referencing secret.secretName="other" ' + tail,
             {"initContainers": [container(env=[variable("other")]) | {"name": "i"}]}),
            ('imagePullSecrets[1].name="other" is not allowed because service account limited does not reference that imagePullSecret',
             {"imagePullSecrets": [{"name": "pull"}, {"name": "other"}]})]):
        assert server.refusal(ns, pod(f"p{name}", serviceAccountName="limited", **members)) == why
    server.pod(ns, "a", serviceAccountName="limited", volumes=[volume("mine")], containers=[container(env=[variable("mine")])])
    for members, who in (({"env": [variable("other")]}, "envVar E"), ({"envFrom": [{"secretRef": {"name": "other"}}]}, "envFrom")):
        code, status = server.ask("PATCH", f"{pods(ns)}/a/ephemeralcontainers", {"spec": {"ephemeralContainers": [container(**members) | {"name": "d"}]}},
                                  "application/strategic-merge-patch+json")
        assert code == 403, status
        assert status["message"] == f'pods "a" is forbidden: ephemeral container d with {who} referencing secret.secretName="other" {tail}'
    code, status = server.ask("PATCH", f"{pods(ns)}/a/ephemeralcontainers",
                              {"spec": {"ephemeralContainers": [container(env=[variable("mine")]) | {"name": "d"}]}}, "application/strategic-merge-patch+json")
    assert code == 200, status
