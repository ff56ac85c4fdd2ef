# SPDX-License-Identifier: Apache-2.0
"""What every namespace has: the ServiceAccount `default` and the ConfigMap kube-root-ca.crt. And the response to certificate requests by a
server without the key of its CA."""
import base64
import json
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

from holdfastd import wait_until

NAMESPACES = "/api/v1/namespaces"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
DESCRIPTION = "kubernetes.io/description"


def account(ns):
    return f"{NAMESPACES}/{ns}/serviceaccounts/default"


def root_ca(ns):
    return f"{NAMESPACES}/{ns}/configmaps/kube-root-ca.crt"


def get(a, path):
    code, text = a.get(path)
    return json.loads(text) if code == 200 else None


def make_namespace(a, name):
    assert a.request("POST", NAMESPACES, {"metadata": {"name": name}})[0] == 201


def test_every_namespace_has_an_account_and_the_ca(cluster):
    a = cluster.instance("a").wait_ready()
    ca = (a.pki / "ca.crt").read_text()
    make_namespace(a, "n")
    for ns in ("default", "kube-system", "kube-public", "kube-node-lease", "n"):
        wait_until(f"the contents of {ns}", lambda ns=ns: get(a, account(ns)) and get(a, root_ca(ns)))
        found = get(a, root_ca(ns))
        assert found["data"] == {"ca.crt": ca} and found["metadata"]["annotations"][DESCRIPTION].startswith("Contains a CA bundle"), found

    # A program can verify the server with this CA.
    context = ssl.create_default_context(cadata=found["data"]["ca.crt"])
    with urllib.request.urlopen(a.url + "/version", context=context, timeout=10) as response:
        assert response.status == 200

    # Both are restored after a change or a deletion. Labels that others set stay, and so do other changes of the account.
    for data in ({}, {"ca.crt": "other"}, {"ca.crt": ca, "more": "x"}):
        assert a.request("PUT", root_ca("n"), {"metadata": {"name": "kube-root-ca.crt", "labels": {"mine": "x"}}, "data": data})[0] == 200
        wait_until("the CA to be restored", lambda: get(a, root_ca("n"))["data"] == {"ca.crt": ca})
        restored = get(a, root_ca("n"))["metadata"]
        assert restored["labels"] == {"mine": "x"} and DESCRIPTION in restored["annotations"]
    uid = get(a, root_ca("n"))["metadata"]["uid"]
    assert a.request("PUT", root_ca("n"), {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "fixed"}, "immutable": True})[0] == 200
    wait_until("an immutable one to be replaced", lambda: (get(a, root_ca("n")) or {}).get("data") == {"ca.crt": ca})
    assert get(a, root_ca("n"))["metadata"]["uid"] != uid
    for path in (account("n"), root_ca("n")):
        uid = get(a, path)["metadata"]["uid"]
        assert a.request("DELETE", path)[0] == 200
        wait_until(f"{path} to be there again", lambda path=path, uid=uid: (get(a, path) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid)
    assert a.request("PUT", account("n"), {"metadata": {"name": "default", "labels": {"mine": "x"}}, "automountServiceAccountToken": False})[0] == 200
    cluster.witness.wait_for("the account as it was written",
                             lambda e: e["key"] == "/registry/serviceaccounts/n/default" and "mine" in e.get("value", ""))
    mark = cluster.witness.mark()

    # Nothing is created in a namespace that is being deleted: each of its objects is deleted only once.
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    assert a.request("POST", f"{NAMESPACES}/n/configmaps", held)[0] == 201
    assert a.request("DELETE", f"{NAMESPACES}/n")[0] == 200
    wait_until("nothing but the held object to be left", lambda: not get(a, account("n")) and not get(a, root_ca("n")))
    assert a.request("PATCH", f"{NAMESPACES}/n/configmaps/held", {"metadata": {"finalizers": None}},
                     headers={"Content-Type": "application/merge-patch+json"})[0] == 200
    wait_until("the namespace to be gone", lambda: a.get(f"{NAMESPACES}/n")[0] == 404)
    for kind, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
        events = [e["type"] for e in cluster.witness.seen()[mark:] if e["key"] == f"/registry/{kind}/n/{name}"]
        assert events[-1] == "DELETE" and events.count("DELETE") == 1, (kind, events)
    make_namespace(a, "n")
    wait_until("the contents of its successor", lambda: get(a, account("n")) and get(a, root_ca("n")))
    assert "labels" not in get(a, account("n"))["metadata"]
    assert "is forbidden" not in a.log_text(), a.log_text()

    # Namespaces that were created without a leader get both objects, and a new CA is published after a restart.
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    b = cluster.instance("b", "--leader-elect=false").wait_ready()
    make_namespace(b, "unled")
    assert b.request("DELETE", account("n"))[0] == 200
    assert get(b, account("unled")) is None
    b.send(signal.SIGTERM)
    assert b.wait() == 0

    # Flags name the certificates: clients have another CA, and the server does not have its key.
    made = cluster.directory / "own"
    made.mkdir(mode=0o700)
    run = {"check": True, "timeout": 30, "capture_output": True}
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", made / "ca.key", "-out",
                    made / "ca.crt", "-subj", "/CN=own-ca", "-days", "30"], **run)
    for name, subject, extensions in (("tls", "/CN=server", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
                                      ("client", "/O=system:masters/CN=root", "extendedKeyUsage=clientAuth")):
        (made / "ext").write_text(extensions)
        request = subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", made / f"{name}.key",
                                  "-subj", subject], **run).stdout
        subprocess.run(["openssl", "x509", "-req", "-CA", made / "ca.crt", "-CAkey", made / "ca.key", "-CAcreateserial", "-days", "30",
                        "-extfile", made / "ext", "-out", made / f"{name}.crt"], input=request, **run)
    # A file of certificates may have a key, too, which is not published.
    for name in ("tls", "ca"):
        (made / f"{name}.pem").write_text("a note\n" + (made / f"{name}.crt").read_text() + (made / f"{name}.key").read_text())
    c = cluster.instance("c", f"--tls-cert-file={made / 'tls.pem'}", f"--tls-private-key-file={made / 'tls.pem'}",
                         f"--client-ca-file={made / 'ca.pem'}")
    context = ssl.create_default_context(cafile=str(made / "ca.crt"))
    context.load_cert_chain(made / "client.crt", made / "client.key")

    def ask(method, path, body=None):
        asked = urllib.request.Request(c.url + path, method=method, data=body and json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, context=context, timeout=10) as response:
                text = response.read()
                return json.loads(text) if text.startswith(b"{") else text
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0
    wait_until("c to be ready", lambda: ask("GET", "/readyz") == b"ok" if c.kubeconfig.exists() else False)
    for ns in ("default", "n", "unled"):
        wait_until(f"the other CA in {ns}", lambda ns=ns: (ask("GET", root_ca(ns)) != 404 and ask("GET", account(ns)) != 404 and
                                                           ask("GET", root_ca(ns))["data"]["ca.crt"] == (made / "ca.crt").read_text()))
    request = subprocess.run(["openssl", "req", "-new", "-key", made / "client.key", "-subj", "/CN=x"], **run).stdout
    for name in ("one", "two"):
        found = ask("POST", CSRS, {"metadata": {"name": name}, "spec": {"request": base64.b64encode(request).decode(), "usages": ["client auth"],
                                                                       "signerName": "kubernetes.io/kube-apiserver-client"}})
        ask("PUT", f"{CSRS}/{name}/approval", {**found, "status": {"conditions": [{"type": "Approved", "status": "True"}]}})
    wait_until("the log to say why", lambda: "certificate requests of kubernetes.io/kube-apiserver-client are left alone" in c.log_text())
    assert list(ask("GET", f"{CSRS}/one")["status"]) == ["conditions"]
    assert c.log_text().count("are left alone") == 1
