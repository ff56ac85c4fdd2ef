# SPDX-License-Identifier: Apache-2.0
"""holdfastd --storage=memory: a server for the tests of other projects' controllers. It stores nothing outside its process except the kubeconfig."""
import base64
import json
import signal
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest
from holdfastd import FAST, HOLDFASTD, Process, wait_until


class Server(Process):
    def __init__(self, directory, *flags):
        self.kubeconfig = directory / "admin.kubeconfig"
        self.work = directory / "work"
        self.work.mkdir()
        args = [HOLDFASTD, "--storage=memory", f"--write-kubeconfig={self.kubeconfig}", "--secure-port=0", *FAST, *flags]
        super().__init__(args, directory / "holdfastd.log", stdout=subprocess.DEVNULL, cwd=self.work)

    def request(self, method, path, body=None):
        config = json.loads(self.kubeconfig.read_text())
        context = ssl.create_default_context(cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
        user = config["users"][0]["user"]
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        request = urllib.request.Request(config["clusters"][0]["cluster"]["server"] + path, method=method,
                                         data=json.dumps(body).encode() if body else None, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=context, timeout=10) as response:
            return response.read().decode()

    def is_ready(self):
        assert self.alive(), self.log_text()
        if not self.kubeconfig.exists():
            return False
        try:
            return self.request("GET", "/readyz") == "ok"
        except urllib.error.URLError:
            return False


@pytest.fixture(name="server")
def _server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.end()


def test_it_serves_leads_and_leaves_only_the_kubeconfig(server, tmp_path):
    wait_until("it is ready", server.is_ready)
    assert server.kubeconfig.stat().st_mode & 0o777 == 0o600
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
    server.request("POST", "/api/v1/namespaces/default/configmaps", configmap)
    before = server.kubeconfig.read_text()
    server.send(signal.SIGHUP)
    # After a reload the certificates in the kubeconfig are still valid.
    assert json.loads(server.request("GET", "/api/v1/namespaces/default/configmaps/one"))["data"] == {"a": "b"}
    wait_until("it leads", lambda: json.loads(server.request("GET", "/debug/leader"))["state"] == "leading")
    assert server.kubeconfig.read_text() == before
    server.send(signal.SIGTERM)
    assert server.wait() == 0, server.log_text()
    assert not list(server.work.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"admin.kubeconfig", "holdfastd.log", "work"}


def test_its_ca_signs_for_clients(server, tmp_path):
    wait_until("it is ready", server.is_ready)
    csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    key, pair = tmp_path / "key.pem", tmp_path / "pair.pem"
    request = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                              "-subj", "/O=dev/CN=ada"], check=True, timeout=30, capture_output=True).stdout
    for name in ("before", "after"):  # a reload
        body = json.loads(server.request("POST", csrs, {
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64.b64encode(request).decode(), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}))
        body["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
        server.request("PUT", f"{csrs}/{name}/approval", body)
        issued = wait_until("a certificate", lambda path=f"{csrs}/{name}": json.loads(server.request("GET", path))["status"].get("certificate"))
        pair.write_bytes(key.read_bytes() + base64.b64decode(issued))
        config = json.loads(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        context = ssl.create_default_context(cadata=base64.b64decode(config["certificate-authority-data"]).decode())
        context.load_cert_chain(pair)
        asked = urllib.request.Request(config["server"] + "/apis/authentication.k8s.io/v1/selfsubjectreviews", method="POST",
                                       data=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
                                       headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, context=context, timeout=10) as response:
            user = json.load(response)["status"]["userInfo"]
        assert user["username"] == "ada" and "dev" in user["groups"], user
        server.send(signal.SIGHUP)


@pytest.mark.parametrize("flags, words", [
    ([], "needs --write-kubeconfig"), (["--write-kubeconfig=k", "--store=x.db"], "--store exclude"),
    (["--write-kubeconfig=k", "--data-dir=x"], "--data-dir exclude"), (["--write-kubeconfig=k", "--etcd-servers=http://127.0.0.1:1"], "exclude")])
def test_flags_that_have_no_effect_are_refused(tmp_path, flags, words):
    done = subprocess.run([HOLDFASTD, "--storage=memory", *flags], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert words in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_another_storage_is_refused(tmp_path):
    done = subprocess.run([HOLDFASTD, "--storage=paper"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert '--storage: "paper" is unknown' in done.stderr, done.stderr
