# SPDX-License-Identifier: Apache-2.0
"""holdfastd under the name kube-apiserver, with the flags that envtest of controller-runtime passes: over etcd, and over a file of its own."""
import http.client
import json
import os
import ssl
import subprocess

import pytest

from holdfastd import HOLDFASTD, Etcd, Process, free_ports, wait_until
from tls_etcd import make_ca

MAPS = "/api/v1/namespaces/default/configmaps"
WITHOUT_MEANING = ["--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"]


def make_admin(directory):
    """Like envtest: a CA for clients, and the certificate of an administrator; a key for tokens of accounts."""
    make_ca(directory, "client-ca")
    key, request = directory / "admin.key", directory / "admin.csr"
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=system:masters/CN=admin", "-keyout", key, "-out", request],
                   check=True, capture_output=True)
    (directory / "admin.ext").write_text("extendedKeyUsage=clientAuth\n")
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", directory / "client-ca.crt", "-CAkey", directory / "client-ca.key", "-CAcreateserial", "-days", "2",
                    "-extfile", directory / "admin.ext", "-out", directory / "admin.crt"], check=True, capture_output=True)
    subprocess.run(["openssl", "genrsa", "-out", directory / "sa.key", "2048"], check=True, capture_output=True)


class KubeApiserver(Process):
    def __init__(self, directory, *flags):
        program, self.port = directory / "assets" / "kube-apiserver", free_ports(1)[0]
        if not program.exists():
            program.parent.mkdir()
            program.symlink_to(HOLDFASTD.resolve())
            make_admin(directory)
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.load_cert_chain(directory / "admin.crt", directory / "admin.key")
        certificates = directory / "certificates"
        certificates.mkdir(exist_ok=True)
        super().__init__([program, *WITHOUT_MEANING, "--disable-admission-plugins=ServiceAccount", f"--cert-dir={certificates}", "--authorization-mode=RBAC",
                          "--bind-address=127.0.0.1", f"--secure-port={self.port}", f"--client-ca-file={directory / 'client-ca.crt'}",
                          f"--service-account-issuer=https://127.0.0.1:{self.port}/", f"--service-account-key-file={directory / 'sa.key'}",
                          f"--service-account-signing-key-file={directory / 'sa.key'}", *flags], directory / "log", stdout=subprocess.DEVNULL)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def is_healthy(self):
        assert self.alive(), self.log_text()
        try:
            return self.ask("GET", "/healthz")[0] == 200 and self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False


@pytest.mark.parametrize("store", ["etcd", "its own"])
def test_it_serves_with_the_flags_of_envtest(tmp_path, store):
    with Etcd(tmp_path) as etcd:
        flags = [f"--etcd-servers={etcd.url}"] if store == "etcd" else []
        with KubeApiserver(tmp_path, *flags) as server:
            wait_until("the server to be healthy", server.is_healthy)
            assert server.ask("POST", MAPS, {"metadata": {"name": "kept"}})[0] == 201
            assert server.ask("GET", "/apis/apps/v1")[0] == 200  # workloads are served as data
            ignored = [line for line in server.log_text().splitlines() if all(flag.split("=")[0] in line for flag in WITHOUT_MEANING)]
            assert len(ignored) == 1
        with KubeApiserver(tmp_path, *flags) as server:
            wait_until("the server to be healthy", server.is_healthy)
            assert server.ask("GET", f"{MAPS}/kept")[0] == 200
        keys = subprocess.run(["etcdctl", f"--endpoints={etcd.url}", "get", "--prefix", "--keys-only", "/"], env={**os.environ, "ETCDCTL_API": "3"},
                              check=True, capture_output=True, text=True).stdout
        assert ("configmaps/default/kept" in keys) == (store == "etcd")


def test_a_flag_that_would_restrict_clients_is_refused(tmp_path):
    with KubeApiserver(tmp_path, "--anonymous-auth=false") as server:
        wait_until("its end", lambda: not server.alive())
        assert "anonymous-auth" in server.log_text()
