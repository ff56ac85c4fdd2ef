# SPDX-License-Identifier: Apache-2.0
"""Tokens of an OpenID Connect issuer: an issuer whose keys change, wrong tokens, and an issuer that does not run when the
server starts."""
import base64
import json
import ssl
import subprocess
import time

import pytest

from holdfastd import wait_until
from memory_server import MemoryServer
from webhook import Webhook

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN_REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    def __init__(self, directory, name, ec=False):
        self.file, self.id, self.ec = directory / name, name, ec
        kind = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"] if ec else ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        subprocess.run(["openssl", "genpkey", *kind, "-out", self.file], check=True, capture_output=True)
        der = subprocess.run(["openssl", "pkey", "-in", self.file, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        if ec:
            self.jwk = {"kty": "EC", "crv": "P-256", "kid": name, "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        else:
            shown = subprocess.run(["openssl", "rsa", "-in", self.file, "-modulus", "-noout"], check=True, capture_output=True, text=True).stdout
            self.jwk = {"kty": "RSA", "use": "sig", "kid": name, "n": b64(bytes.fromhex(shown.strip().split("=")[1])), "e": "AQAB"}

    def sign(self, data):
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.file], input=data, check=True, capture_output=True).stdout
        if not self.ec:
            return signature
        numbers, at = b"", 2
        for _ in range(2):
            numbers += signature[at + 2:at + 2 + signature[at + 1]].lstrip(b"\0").rjust(32, b"\0")
            at += 2 + signature[at + 1]
        return numbers

    def token(self, claims, **header):
        header = {"alg": "ES256" if self.ec else "RS256", "kid": self.id, **header}
        text = ".".join(b64(json.dumps(each).encode()) for each in (header, claims))
        return f"{text}.{b64(self.sign(text.encode()))}"


class Issuer:
    def __init__(self, directory, *keys):
        self.keys = list(keys)
        self.works = True
        self.path = "/keys"
        self.hook = Webhook(directory, self.answer)
        self.url = self.hook.url

    def answer(self, path, _):
        if not self.works:
            return 503, "not now"
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "jwks_uri": f"{self.url}{self.path}"}
        if path != self.path:
            return 404, "not here"
        return 200, {"keys": [key.jwk for key in self.keys]}

    def claims(self, **more):
        return {"iss": self.url, "aud": "holdfast", "sub": "jane", "exp": int(time.time()) + 300, "groups": ["dev"], **more}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("oidc")
    first, second, strange = Key(directory, "first"), Key(directory, "second", ec=True), Key(directory, "strange")
    issuer = Issuer(directory / "issuer", first)
    issuer.works = False  # an issuer that does not answer does not stop the start
    (directory / "ca.crt").write_text(issuer.hook.ca)
    server = MemoryServer(f"--oidc-issuer-url={issuer.url}", "--oidc-client-id=holdfast", f"--oidc-ca-file={directory / 'ca.crt'}",
                          "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:", "--oidc-signing-algs=RS256,ES256")
    server.with_cert = server.context
    server.context = ssl.create_default_context(cadata=base64.b64decode(
        json.loads(server.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
    yield server, issuer, first, second, strange
    issuer.hook.close()
    server.end()


def review(server, token):
    return server.ask("POST", REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, authorization=f"Bearer {token}")


def token_error(server, token):
    server.context, bare = server.with_cert, server.context
    reply = server.ask("POST", TOKEN_REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    server.context = bare
    assert reply.code == 201, reply.text
    return reply.json["status"]


def test_an_issuer_that_was_not_there_is_asked_again(made):
    server, issuer, first, _, _ = made
    assert server.ask("GET", "/readyz").code == 200
    wait_until("the first attempt", lambda: issuer.hook.calls)
    wait_until("a refusal", lambda: review(server, first.token(issuer.claims())).code == 401)
    issuer.works = True
    wait_until("the token to be accepted", lambda: review(server, first.token(issuer.claims())).code == 201)
    assert [path for path, _ in issuer.hook.calls[-2:]] == ["/.well-known/openid-configuration", "/keys"]


def test_a_token_names_user_and_groups(made):
    server, issuer, first, _, _ = made
    token = first.token(issuer.claims())
    user = review(server, token).json["status"]["userInfo"]
    assert user["username"] == f"{issuer.url}#jane"
    assert user["groups"] == ["oidc:dev", "system:authenticated"]
    # the user has no rights yet
    assert server.ask("GET", "/api/v1/namespaces", authorization=f"Bearer {token}").code == 403
    reviewed = token_error(server, token)
    assert reviewed["authenticated"] and reviewed["user"]["username"] == f"{issuer.url}#jane"
    assert reviewed["audiences"] == ["https://kubernetes.default.svc"]


def test_wrong_tokens_are_refused(made):
    server, issuer, first, _, strange = made
    forged = Key.token(strange, issuer.claims(), kid="first")
    for token, why in [
            (first.token(issuer.claims(exp=int(time.time()) - 1)), "oidc: verify token: oidc: token is expired"),
            (first.token(issuer.claims(aud="other")), "oidc: verify token: oidc: expected audience"),
            (first.token(issuer.claims(nbf=int(time.time()) + 400)), "oidc: verify token: oidc: current time before the nbf"),
            (first.token(issuer.claims(sub=7)), 'oidc: parse username claims "sub"'),
            (first.token(issuer.claims(groups=7)), 'oidc: parse groups claim "groups"'),
            (forged, "oidc: verify token: failed to verify signature"),
            (first.token(issuer.claims(iss="https://other.example")), None)]:
        assert review(server, token).code == 401
        error = token_error(server, token)["error"]
        assert error.startswith(f"[invalid bearer token, {why}") if why else error == "[invalid bearer token]"
    for broken in ("", "a.b", "a.b.c", first.token(issuer.claims())[:-8] + "AAAAAAAA", first.token(issuer.claims(), alg="none")):
        assert review(server, broken or "x").code == 401


def test_a_new_key_is_fetched_when_a_token_names_it(made):
    server, issuer, first, second, strange = made
    issuer.keys.append(second)
    token = second.token(issuer.claims(sub="joe"))
    wait_until("the new key to be known", lambda: review(server, token).code == 201)
    assert review(server, token).json["status"]["userInfo"]["username"] == f"{issuer.url}#joe"
    assert review(server, first.token(issuer.claims())).code == 201
    # the server asks for unknown keys at a bounded rate only
    before = len(issuer.hook.calls)
    began = time.monotonic()
    codes = {review(server, strange.token(issuer.claims())).code for _ in range(40)}
    assert codes <= {401, 503} and len(issuer.hook.calls) - before <= 2 + (time.monotonic() - began) / 2
    issuer.keys.remove(first)


def test_keys_that_have_moved_are_found(made):
    server, issuer, _, second, strange = made
    issuer.path, issuer.keys = "/moved", [second, strange]
    wait_until("the moved keys to be known", lambda: review(server, strange.token(issuer.claims(sub="ann"))).code == 201)
    assert review(server, second.token(issuer.claims())).code == 201
