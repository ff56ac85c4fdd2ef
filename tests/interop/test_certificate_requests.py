# SPDX-License-Identifier: Apache-2.0
"""CertificateSigningRequests: openssl makes the requests, kubectl approves them, and the certificates log in. Refusals have the words of
kube-apiserver 1.36."""
import base64
import hashlib
import json
import ssl
import subprocess
import urllib.request

import pytest
from holdfastd import wait_until

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ALICE = {"Authorization": "Bearer alice-token"}
BOB = {"Authorization": "Bearer bob-token"}


@pytest.fixture(scope="module")
def made(pair):
    """Returns a function: made(subject) returns (path of the key, PEM of the request). All requests have the same key."""
    directory = pair.cluster.directory
    key = directory / "requests.key"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True, timeout=30)

    def make(subject, *extra):
        return key, subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", subject, *extra], check=True, timeout=30,
                                   capture_output=True).stdout
    return make


def csr(name, pem, signer=CLIENT, usages=("client auth",), **spec):
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **spec}}


def ask(at, method, path, body=None, headers=ALICE):
    code, text = at.request(method, path, body, headers=headers, client_certificate=False)
    return code, json.loads(text)


def create(at, body, headers=ALICE):
    code, made = ask(at, "POST", CSRS, body, headers)
    assert code == 201, made
    return made


def issued(at, name):
    """Waits for the signer. Returns the status with its result."""
    found = {}

    def answered():
        found.update(ask(at, "GET", f"{CSRS}/{name}")[1])
        return "certificate" in found["status"] or any(c["type"] == "Failed" for c in found["status"].get("conditions", []))
    wait_until(f"an answer to {name}", answered)
    return found["status"]


def openssl_text(pem, *args):
    return subprocess.run(["openssl", "x509", "-noout", *args], input=pem, check=True, capture_output=True, timeout=30).stdout.decode()


def allow(at, name, user, rules):
    """Creates a ClusterRole with the rules, and binds it to the user."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    assert ask(at, "POST", f"{RBAC}/clusterroles", {**kind, "kind": "ClusterRole", "rules": rules})[0] == 201
    assert ask(at, "POST", f"{RBAC}/clusterrolebindings",
               {**kind, "kind": "ClusterRoleBinding", "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})[0] == 201


def test_an_approved_request_gets_a_certificate_that_logs_in(pair, kubectl, made, tmp_path):
    key, pem = made("/O=dev/O=qa/CN=carol", "-addext", "subjectAltName=DNS:carol.example,email:carol@example.com")
    create(pair.b, csr("carol", pem, usages=("client auth", "digital signature"), expirationSeconds=3600))
    row = kubectl("get", "csr", "carol", "--no-headers").stdout.split()
    assert row[0] == "carol" and row[2:] == [CLIENT, "alice", "60m", "Pending"], row
    assert kubectl("certificate", "approve", "carol").stdout == "certificatesigningrequest.certificates.k8s.io/carol approved\n"
    status = issued(pair.b, "carol")
    assert kubectl("get", "csr", "carol", "--no-headers").stdout.split()[-1] == "Approved,Issued"
    certificate = base64.b64decode(status["certificate"])
    approved, = status["conditions"]
    assert approved["type"] == "Approved" and approved["status"] == "True" and approved["reason"] == "KubectlApprove", approved
    assert approved["lastUpdateTime"] and approved["lastTransitionTime"]
    text = openssl_text(certificate, "-subject", "-ext", "subjectAltName,keyUsage,extendedKeyUsage,basicConstraints")
    assert "O = dev, O = qa, CN = carol" in text and "DNS:carol.example, email:carol@example.com" in text, text
    assert "Digital Signature\n" in text and "TLS Web Client Authentication\n" in text and "CA:FALSE" in text, text
    seconds = subprocess.run(["openssl", "x509", "-noout", "-checkend", "3601"], input=certificate, capture_output=True, timeout=30, check=False)
    assert seconds.returncode == 1, "it is valid for longer than asked for"
    assert subprocess.run(["openssl", "x509", "-noout", "-checkend", "3000"], input=certificate, capture_output=True, timeout=30,
                          check=False).returncode == 0

    (tmp_path / "carol.crt").write_bytes(certificate)
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "it",
              "clusters": [{"name": "it", "cluster": {"server": pair.b.url, "certificate-authority": str(pair.cluster.directory / "pki" / "ca.crt")}}],
              "users": [{"name": "it", "user": {"client-certificate": str(tmp_path / "carol.crt"), "client-key": str(key)}}],
              "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}
    (tmp_path / "config").write_text(json.dumps(config))
    done = subprocess.run([kubectl.binary, f"--kubeconfig={tmp_path / 'config'}", "get", "leases"], capture_output=True, text=True, timeout=60, check=False)
    assert 'User "carol" cannot list resource "leases"' in done.stderr, done.stderr
    context = ssl.create_default_context(cafile=str(pair.cluster.directory / "pki" / "ca.crt"))
    context.load_cert_chain(tmp_path / "carol.crt", key)
    review = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    request = urllib.request.Request(pair.b.url + "/apis/authentication.k8s.io/v1/selfsubjectreviews", data=review,
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10, context=context) as response:
        user = json.load(response)["status"]["userInfo"]
    assert user["username"] == "carol" and user["groups"] == ["dev", "qa", "system:authenticated"], user
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode())).hexdigest()
    assert user["extra"] == {"authentication.kubernetes.io/credential-id": [f"X509SHA256={fingerprint}"]}, user
    assert kubectl("delete", "csr", "carol").stdout.startswith("certificatesigningrequest.certificates.k8s.io \"carol\" deleted")


def test_a_denied_request_gets_none(pair, made):
    _, pem = made("/CN=dora")
    create(pair.a, csr("dora", pem))
    assert pair.b.kubectl("certificate", "deny", "dora").stdout == "certificatesigningrequest.certificates.k8s.io/dora denied\n"
    found = ask(pair.a, "GET", f"{CSRS}/dora")[1]
    assert [c["type"] for c in found["status"]["conditions"]] == ["Denied"] and "certificate" not in found["status"]
    code, refused = ask(pair.a, "PUT", f"{CSRS}/dora/approval", {**found, "status": {"conditions": found["status"]["conditions"] + [
        {"type": "Approved", "status": "True"}]}})
    assert code == 422 and refused["message"] == (
        'CertificateSigningRequest.certificates.k8s.io "dora" is invalid: status.conditions: Invalid value: "Approved": '
        'Approved and Denied conditions are mutually exclusive'), refused
    code, refused = ask(pair.a, "PUT", f"{CSRS}/dora/approval", {**found, "status": {"conditions": []}})
    assert code == 422 and refused["message"] == (
        'CertificateSigningRequest.certificates.k8s.io "dora" is invalid: status.conditions: Forbidden: '
        'updates may not remove a condition of type "Denied"'), refused
    code, refused = ask(pair.a, "PUT", f"{CSRS}/dora/approval", {**found, "status": {"conditions": [{"type": "Denied", "status": "False"}]}})
    assert code == 422 and 'status.conditions[0].status: Unsupported value: "False": supported values: "True"' in refused["message"], refused


def test_the_server_says_who_asks_and_the_request_cannot_be_changed(pair, made):
    _, pem = made("/CN=erin")
    lies = {"username": "root", "uid": "0", "groups": ["system:masters"], "extra": {"x": ["y"]}}
    allow(pair.a, "csr-creator", "bob", [{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["*"]}])
    wait_until("bob's right", lambda: ask(pair.a, "GET", CSRS, headers=BOB)[0] == 200)
    found = create(pair.a, {**csr("erin", pem, **lies), "status": {"conditions": [{"type": "Approved", "status": "True"}]}}, BOB)
    assert found["status"] == {} and found["spec"]["username"] == "bob" and found["spec"]["uid"] == "2", found
    assert found["spec"]["groups"] == ["system:authenticated"] and "extra" not in found["spec"], found
    masked = create(pair.a, csr("masked", pem), {**ALICE, "Impersonate-User": "frank", "Impersonate-Group": "system:masters",
                                                "Impersonate-Uid": "7", "Impersonate-Extra-Scopes": "a"})
    assert masked["spec"]["username"] == "frank" and masked["spec"]["uid"] == "7" and masked["spec"]["extra"] == {"scopes": ["a"]}, masked
    code, after = ask(pair.a, "PUT", f"{CSRS}/erin", {**found, "spec": {**found["spec"], "username": "root", "signerName": "a.b/c", "usages": ["any"]},
                                                     "status": {"conditions": [{"type": "Approved", "status": "True"}]},
                                                     "metadata": {**found["metadata"], "labels": {"a": "b"}}}, BOB)
    assert code == 200 and after["spec"] == found["spec"] and after["status"] == {} and after["metadata"]["labels"] == {"a": "b"}, after
    code, after = pair.a.request("PATCH", f"{CSRS}/erin", {"spec": {"expirationSeconds": 700}}, headers={
        **BOB, "Content-Type": "application/merge-patch+json"}, client_certificate=False)
    assert code == 200 and json.loads(after)["spec"] == found["spec"], after
    names = [i["metadata"]["name"] for i in ask(pair.a, "GET", f"{CSRS}?fieldSelector=spec.signerName%3Da.b/c")[1]["items"]]
    assert names == []
    assert "erin" in [i["metadata"]["name"] for i in ask(pair.a, "GET", f"{CSRS}?fieldSelector=spec.signerName%3D{CLIENT}")[1]["items"]]


def test_approving_and_signing_need_rights_on_the_signer(pair, made):
    _, pem = made("/CN=gina")
    allow(pair.a, "csr-writer", "bob", [{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/approval",
                                                                                         "certificatesigningrequests/status"], "verbs": ["*"]}])
    found = create(pair.a, csr("gina", pem, signer="example.com/gina"))
    approval = {**found, "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Yes", "message": "ok"}]}}
    wait_until("bob's right", lambda: ask(pair.a, "GET", f"{CSRS}/gina/approval", headers=BOB)[0] == 200)
    code, refused = ask(pair.a, "PUT", f"{CSRS}/gina/approval", approval, BOB)
    assert code == 403 and refused["message"] == (
        'certificatesigningrequests.certificates.k8s.io "gina" is forbidden: user not permitted to approve requests with signerName '
        '"example.com/gina"'), refused
    allow(pair.a, "csr-approver", "bob", [{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["example.com/*"],
                                          "verbs": ["approve"]}])
    wait_until("bob may approve", lambda: ask(pair.a, "PUT", f"{CSRS}/gina/approval", approval, BOB)[0] == 200)
    found = ask(pair.a, "GET", f"{CSRS}/gina")[1]
    ca = (pair.cluster.directory / "pki" / "ca.crt").read_bytes()
    signed = {**found, "status": {**found["status"], "certificate": base64.b64encode(ca).decode()}}
    code, refused = ask(pair.a, "PUT", f"{CSRS}/gina/status", signed, BOB)
    assert code == 403 and refused["message"] == (
        'certificatesigningrequests.certificates.k8s.io "gina" is forbidden: user not permitted to sign requests with signerName '
        '"example.com/gina"'), refused
    allow(pair.a, "csr-signer", "bob", [{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["example.com/gina"],
                                        "verbs": ["sign"]}])
    wait_until("bob may sign", lambda: ask(pair.a, "PUT", f"{CSRS}/gina/status", {**signed, "status": {
        **signed["status"], "certificate": base64.b64encode(ca).decode()}}, BOB)[0] == 200)
    found = ask(pair.a, "GET", f"{CSRS}/gina")[1]
    prefix = 'CertificateSigningRequest.certificates.k8s.io "gina" is invalid: '
    for status, message in [
            ({**found["status"], "certificate": base64.b64encode(ca + ca).decode()},
             "status.certificate: Forbidden: updates may not modify existing certificate content"),
            ({"certificate": found["status"]["certificate"], "conditions": []},
             'status.conditions: Forbidden: updates may not remove a condition of type "Approved"')]:
        code, refused = ask(pair.a, "PUT", f"{CSRS}/gina/status", {**found, "status": status})
        assert code == 422 and refused["message"] == prefix + message, refused
    # a signer that leaves the reason of the approval out does not remove it
    code, after = ask(pair.a, "PUT", f"{CSRS}/gina/status", {**found, "status": {
        **found["status"], "conditions": [{"type": "Approved", "status": "True"}, {"type": "Ready", "status": "False"}]}})
    assert code == 200 and [c.get("reason") for c in after["status"]["conditions"]] == ["Yes", None], after
    other = create(pair.a, csr("other", pem, signer="example.com/gina"))
    code, refused = ask(pair.a, "PUT", f"{CSRS}/other/status", {**other, "status": {"conditions": [{"type": "Approved", "status": "True"}]}})
    assert code == 422 and 'status.conditions: Forbidden: updates may not add a condition of type "Approved"' in refused["message"], refused
    code, refused = ask(pair.a, "PUT", f"{CSRS}/other/status", {**other, "status": {"certificate": base64.b64encode(b"no").decode()}})
    assert code == 422 and ('status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
                            in refused["message"]), refused


def test_bad_requests_are_refused(pair, made):
    _, pem = made("/CN=henry")
    _, masters = made("/O=dev/O=system:masters/CN=henry")
    lines = pem.decode().splitlines()
    body = bytearray(base64.b64decode("".join(lines[1:-1])))
    body[-1] ^= 1
    forged = ("\n".join([lines[0], base64.b64encode(bytes(body)).decode(), lines[-1]]) + "\n").encode()
    prefix = 'CertificateSigningRequest.certificates.k8s.io "bad" is invalid: '

    def quoted(data):
        return '"' + base64.b64encode(data).decode()[:250]
    for asked, code, messages in [
            (csr("bad", b"none"), 422, [f"{prefix}spec.request: Invalid value: {quoted(b'none')}\": PEM block type must be CERTIFICATE REQUEST"]),
            (csr("bad", pem.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE")), 422, ["PEM block type must be CERTIFICATE REQUEST"]),
            (csr("bad", forged), 422, [prefix + "spec.request: Invalid value: ", "x509: ECDSA verification failure"]),
            (csr("bad", pem, usages=()), 422, [prefix + "spec.usages: Required value"]),
            (csr("bad", pem, usages=("any", "sign all", "any")), 422, [
                prefix + '[spec.usages[1]: Unsupported value: "sign all": supported values: "any", "cert sign", "client auth", "code signing", ',
                'spec.usages[2]: Duplicate value: "any"]']),
            (csr("bad", pem, signer=""), 422, [prefix + "spec.signerName: Required value"]),
            (csr("bad", pem, signer="kubernetes.io/legacy-unknown"), 422, ["the legacy signerName is not allowed via this API version"]),
            (csr("bad", pem, signer="ca"), 422, [prefix + 'spec.signerName: Invalid value: "ca": must be a fully qualified domain and path of the '
                                                'form \'example.com/signer-name\'']),
            (csr("bad", pem, signer="com/x"), 422, ['"com": should be a domain with at least two segments separated by dots']),
            (csr("bad", pem, signer="A.b/x"), 422, ['spec.signerName: Invalid value: "A.b": validating label "A": a lowercase RFC 1123 label must']),
            (csr("bad", pem, expirationSeconds=599), 422, [
                prefix + "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"]),
            (csr("bad", masters), 403, ['certificatesigningrequests.certificates.k8s.io "bad" is forbidden: use of '
                                        'kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed'])]:
        got, refused = ask(pair.a, "POST", CSRS, asked)
        assert got == code and all(m in refused["message"] for m in messages), (got, refused["message"], messages)
    create(pair.a, csr("other-masters", masters, signer="example.com/x"))  # the rule against system:masters is only for the built-in signers


def test_the_signer_answers_what_it_never_signs(pair, made):
    _, pem = made("/CN=ivan")
    for name, usages, why in [("serves", ("client auth", "server auth"), "invalid usage for client certificate: server auth"),
                              ("signs", ("digital signature",), "missing required usage for client certificate: client auth")]:
        create(pair.a, csr(name, pem, usages=usages))
        pair.a.kubectl("certificate", "approve", name)
        status = issued(pair.a, name)
        failed = [c for c in status["conditions"] if c["type"] == "Failed"][0]
        assert failed["reason"] == "SignerValidationFailure" and failed["message"] == why and failed["status"] == "True", failed
        assert failed["lastUpdateTime"] and failed["lastTransitionTime"] and "certificate" not in status, status
    assert pair.a.kubectl("get", "csr", "signs", "--no-headers").stdout.split()[-1] == "Approved,Failed"


def test_clients_find_the_resource(pair):
    listed = {r["name"]: r for r in ask(pair.a, "GET", "/apis/certificates.k8s.io/v1")[1]["resources"]}
    assert list(listed) == [f"certificatesigningrequests{s}" for s in ("", "/approval", "/status")]
    assert listed["certificatesigningrequests"]["shortNames"] == ["csr"] and not listed["certificatesigningrequests"]["namespaced"]
    assert listed["certificatesigningrequests/approval"]["verbs"] == ["get", "patch", "update"]
    described = pair.a.kubectl("explain", "csr.spec").stdout
    assert "signerName" in described and "expirationSeconds" in described
