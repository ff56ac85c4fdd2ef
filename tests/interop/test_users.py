# SPDX-License-Identifier: Apache-2.0
"""Who is authorized: tokens with and without system:masters, anonymous users, certificates of
the server's CA and of another one."""
import json
import subprocess

import pytest
from holdfastd import wait_until


def kubeconfig(pair, path, user, server=None):
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "it",
              "clusters": [{"name": "it", "cluster": {"server": server or pair.a.url,
                                                      "certificate-authority": str(pair.cluster.directory / "pki" / "ca.crt")}}],
              "users": [{"name": "it", "user": user}], "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}
    path.write_text(json.dumps(config))
    return path


def as_user(pair, kubectl, tmp_path, user, *args, at=None):
    config = kubeconfig(pair, tmp_path / "config", user, at and at.url)
    command = [kubectl.binary, f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}", *args]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_a_token_of_an_admin_is_accepted(pair, kubectl, tmp_path):
    for at in (pair.a, pair.b):
        done = as_user(pair, kubectl, tmp_path, {"token": "alice-token"}, "get", "ns", "default", "-o", "name", at=at)
        assert done.stdout == "namespace/default\n", done.stderr


def test_a_token_without_rights_is_forbidden(pair, kubectl, tmp_path):
    """Without a binding, a user may use discovery and nothing else."""
    bob = {"Authorization": "Bearer bob-token"}
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    asked = [
        ("GET", leases, 'leases.coordination.k8s.io is forbidden: User "bob" cannot list resource "leases" in API group '
                        '"coordination.k8s.io" in the namespace "kube-system"'),
        ("GET", leases + "/x", 'leases.coordination.k8s.io "x" is forbidden: User "bob" cannot get resource "leases" in API group '
                               '"coordination.k8s.io" in the namespace "kube-system"'),
        ("GET", "/api/v1/configmaps", 'configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" at the cluster scope'),
        ("DELETE", "/api/v1/namespaces/default", 'User "bob" cannot delete resource "namespaces" in API group ""'),
        ("POST", "/api/v1/namespaces/default/configmaps", 'User "bob" cannot create resource "configmaps" in API group "" in the namespace "default"'),
        ("GET", "/metrics", 'User "bob" cannot get path "/metrics"'),
    ]
    for at in (pair.a, pair.b):
        for method, path, message in asked:
            code, body = at.request(method, path, {} if method == "POST" else None, headers=bob, client_certificate=False)
            assert code == 403 and message in json.loads(body)["message"], (path, code, body)
        assert at.request("GET", "/apis", headers=bob, client_certificate=False)[0] == 200
        done = as_user(pair, kubectl, tmp_path, {"token": "bob-token"}, "get", "leases", "-n", "kube-system", at=at)
        assert done.returncode == 1 and 'User "bob" cannot list resource "leases"' in done.stderr, done.stderr


def test_impersonation_is_applied(pair, kubectl, tmp_path):
    """The server must apply --as. A server that ignored it would act with the rights of the admin."""
    for at in (pair.a, pair.b):
        done = as_user(pair, kubectl, tmp_path, {"token": "alice-token"}, "delete", "ns", "default", "--as=joe", "--as-group=dev", at=at)
        assert done.returncode == 1 and "deleted" not in done.stdout, done.stdout + done.stderr
        joe = {"Authorization": "Bearer alice-token", "Impersonate-User": "joe"}
        configmaps = "/api/v1/namespaces/default/configmaps"
        for headers, code, message in [
                (joe, 403, 'User "joe" cannot list resource "configmaps"'),
                ({**joe, "Impersonate-Group": "system:masters"}, 200, ""),
                ({"Authorization": "Bearer alice-token", "Impersonate-Group": "system:masters"}, 400, "name no user"),
                ({**joe, "Impersonate-Group": "system:masters", "Impersonate-Extra-Scopes": "x"}, 200, ""),
                ({**joe, "Impersonate-Group": "system:masters", "Impersonate-Uid": "1"}, 200, ""),
                ({**joe, "Impersonate-Extra-": "x"}, 400, "extra values"),
                ({"Authorization": "Bearer bob-token", "Impersonate-User": "joe"}, 403,
                 'configmaps is forbidden: User "bob" cannot impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "default"'),
                ({"Impersonate-User": "joe", "Impersonate-Group": "system:masters"}, 403, 'User "system:anonymous" cannot impersonate')]:
            got, body = at.request("GET", configmaps, headers=headers, client_certificate=False)
            assert got == code and message in json.loads(body).get("message", ""), (headers, got, body)


def test_a_wrong_token_is_refused(pair, kubectl, tmp_path):
    done = as_user(pair, kubectl, tmp_path, {"token": "nobody-token"}, "get", "ns")
    assert done.returncode == 1
    assert "You must be logged in to the server" in done.stderr


def test_anonymous_users_reach_only_health_and_version(pair):
    for at in (pair.a, pair.b):
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert at.get(path, client_certificate=False)[0] == 200, path
        for path in ("/api/v1/namespaces", "/apis/coordination.k8s.io/v1/leases", "/debug/leader", "/metrics"):
            code, body = at.get(path, client_certificate=False)
            assert code in (401, 403), (path, code)
            status = json.loads(body)
            assert status["kind"] == "Status" and status["code"] == code and status["reason"] in ("Unauthorized", "Forbidden")
        assert 'User \\"system:anonymous\\" cannot list resource \\"namespaces\\"' in at.get("/api/v1/namespaces", client_certificate=False)[1]


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], capture_output=True, check=True, timeout=60)


@pytest.fixture
def stranger(tmp_path):
    """A client certificate with the same name and group, signed by another CA."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "k.pem", "-out", tmp_path / "c.pem",
            "-subj", "/O=system:masters/CN=admin", "-days", "2")
    return tmp_path


def test_a_certificate_of_another_ca_is_refused(pair, kubectl, stranger, tmp_path):
    """Whatever the certificate claims, either the handshake fails or the response is 401."""
    user = {"client-certificate": str(stranger / "c.pem"), "client-key": str(stranger / "k.pem")}
    done = as_user(pair, kubectl, tmp_path, user, "get", "ns")
    assert done.returncode == 1 and "default" not in done.stdout
    assert "You must be logged in to the server" in done.stderr or "certificate" in done.stderr, done.stderr
    for at in (pair.a, pair.b):
        code = subprocess.run(["curl", "-s", "-o", stranger / "body", "-w", "%{http_code}", "--cacert", pair.cluster.directory / "pki" / "ca.crt", "--cert",
                               stranger / "c.pem", "--key", stranger / "k.pem", at.url + "/api/v1/namespaces"], capture_output=True, text=True,
                              check=False, timeout=60).stdout
        assert code == "401", code
        assert json.loads((stranger / "body").read_text())["reason"] == "Unauthorized"


def test_tokens_are_not_logged(pair):
    """Tokens never reach the log."""
    pair.a.get("/api/v1/namespaces", client_certificate=False, headers={"Authorization": "Bearer alice-token"})
    wait_until("the log to be written", pair.a.log_text)
    assert "alice-token" not in pair.a.log_text() and "bob-token" not in pair.a.log_text()
