# SPDX-License-Identifier: Apache-2.0
"""Tokens of service accounts on two instances: issued on one, accepted on both, and refused as soon as the objects that they depend on are deleted."""
import base64
import itertools
import json
import os
import subprocess
import threading
import time
import urllib.request

import pytest
from holdfastd import ON_SQLITE, Cluster, wait_until

ISSUER = "https://kubernetes.default.svc"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(*args, stdin=None):
    return subprocess.run(["openssl", *map(str, args)], input=stdin, capture_output=True, check=True).stdout


class Signer:
    """A key, and tokens that openssl signs with it."""

    def __init__(self, directory, name, *genpkey):
        self.key, self.public = directory / f"{name}.key", directory / f"{name}.pub"
        openssl("genpkey", *genpkey, "-out", self.key)
        self.key.chmod(0o600)
        openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)

    def sign(self, claims, **header):
        """Signs a token with RS256. Its header has no kid."""
        text = ".".join(encode(json.dumps(part).encode()) for part in ({"alg": "RS256", **header}, claims))
        return text + "." + encode(openssl("dgst", "-sha256", "-sign", self.key, stdin=text.encode()))


class Pair:
    """Two instances. Both have flags with keys, because they must sign with the same key."""

    def __init__(self, cluster):
        self.directory = cluster.directory
        self.etcd = cluster.etcd
        rsa = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        self.signer, self.old = (Signer(self.directory, name, *rsa) for name in ("signer", "old"))
        self.stranger = Signer(self.directory, "stranger", *rsa)
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text("maker,maker,1\nnobody,nobody,2\n")
        flags = [f"--service-account-signing-key-file={self.signer.key}", f"--service-account-key-file={self.old.public}",
                 f"--service-account-issuer={ISSUER}", "--service-account-issuer=https://old.example", f"--token-auth-file={tokens}"]
        self.both = [cluster.instance(name, *flags) for name in "ab"]
        for instance in self.both:
            instance.wait_ready()
        self.a, self.b = self.both

    def etcdctl(self, *args):
        return subprocess.run(["etcdctl", f"--endpoints={self.etcd.url}", *args], env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, check=True).stdout

    def admin(self, method, path, body=None, code=None, at=None):
        got, text = (at or self.a).request(method, path, body)
        assert code is None and got < 300 or got == code, (method, path, got, text)
        return json.loads(text)

    def account(self, ns, name):
        return self.admin("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": name}})

    def token(self, ns, name, code=201, at=None, **spec):
        """Sends a TokenRequest. Returns the response."""
        return self.admin("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token", {"spec": spec}, code, at)

    def review(self, token, at=None, **spec):
        return self.admin("POST", REVIEWS, {"spec": {"token": token, **spec}}, at=at)["status"]


def ask(at, token, path="/apis/authentication.k8s.io/v1/selfsubjectreviews", method="POST", body="{}"):
    got, text = at.request(method, path, body.encode() if body else None, headers={"Authorization": f"Bearer {token}"}, client_certificate=False)
    return got, json.loads(text) if text.startswith("{") else text


def claims_of(token):
    return json.loads(decode(token.split(".")[1]))


@pytest.fixture(scope="module")
def pair():
    with Cluster() as cluster:
        yield Pair(cluster)


NUMBERS = itertools.count(1)


@pytest.fixture
def ns(pair):
    name = f"tokens-{next(NUMBERS)}"
    pair.admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    pair.admin("DELETE", f"/api/v1/namespaces/{name}")


def everywhere(pair, what, condition):
    for at in pair.both:
        wait_until(f"{what} on {at.name}", lambda: condition(at))  # pylint: disable=cell-var-from-loop


def test_a_token_is_that_of_its_account_on_all_instances(pair, ns):
    account = pair.account(ns, "sa")
    made = pair.token(ns, "sa", expirationSeconds=1200)
    assert (made["kind"], made["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert made["metadata"]["name"] == "sa" and made["metadata"]["namespace"] == ns
    assert made["spec"] == {"audiences": [ISSUER, "https://old.example"], "expirationSeconds": 1200}
    token = made["status"]["token"]
    claims = claims_of(token)
    assert json.loads(decode(token.split(".")[0])).keys() == {"alg", "kid"}
    assert claims["exp"] - claims["iat"] == 1200 and claims["nbf"] == claims["iat"]
    assert time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(claims["exp"])) == made["status"]["expirationTimestamp"]
    assert claims["iss"] == ISSUER and claims["sub"] == f"system:serviceaccount:{ns}:sa"
    assert claims["kubernetes.io"] == {"namespace": ns, "serviceaccount": {"name": "sa", "uid": account["metadata"]["uid"]}}
    user = {"username": f"system:serviceaccount:{ns}:sa", "uid": account["metadata"]["uid"],
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ns}", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}}
    everywhere(pair, "the user", lambda at: ask(at, token)[0] == 201)
    for at in pair.both:
        assert ask(at, token)[1]["status"]["userInfo"] == user
        code, status = ask(at, token, "/api/v1/configmaps", "GET", None)
        assert code == 403 and f'User "system:serviceaccount:{ns}:sa" cannot list' in status["message"]
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "view"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": ns}]})
    everywhere(pair, "the right", lambda at: ask(at, token, f"/api/v1/namespaces/{ns}/configmaps", "GET", None)[0] == 200)
    # An account with a long name works too.
    long = "x" * 253
    pair.account(ns, long)
    assert ask(pair.a, pair.token(ns, long)["status"]["token"])[1]["status"]["userInfo"]["username"].endswith(long)


def test_requests_for_tokens_are_checked(pair, ns):
    path = f"/api/v1/namespaces/{ns}/serviceaccounts/sa/token"
    assert pair.token(ns, "sa", code=404)["message"] == 'serviceaccounts "sa" not found'
    pair.account(ns, "sa")
    for seconds, why in ((599, "less than 10 minutes"), (2**32 + 1, "larger than 2^32 seconds"), (-1, "less than 10 minutes")):
        refused = pair.token(ns, "sa", code=422, expirationSeconds=seconds)
        assert refused["message"] == ('TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                                      f"Invalid value: {seconds}: may not specify a duration {why}")
    made = pair.token(ns, "sa", expirationSeconds=2**32)
    assert ask(pair.a, made["status"]["token"])[0] == 201
    assert claims_of(pair.token(ns, "sa")["status"]["token"])["exp"] - time.time() > 3500
    assert pair.token(ns, "sa", code=422, audiences=["x" * 9000])["details"]["causes"][0]["field"] == "spec.audiences"
    pair.admin("POST", path, {"metadata": {"name": "other"}, "spec": {}}, 422)
    pair.admin("POST", path, {"metadata": {"namespace": "other"}, "spec": {}}, 400)
    pair.admin("POST", path, {"kind": "Pod", "apiVersion": "v1"}, 400)
    pair.admin("POST", path, {"spec": {"expirationSeconds": "600"}}, 400)
    pair.admin("GET", path, code=405)
    pair.admin("PUT", path, {}, 405)
    pair.admin("POST", "/api/v1/namespaces/default/configmaps/x/token", {}, 404)
    # Only the right to create serviceaccounts/token counts.
    for user in ("maker", "nobody"):
        assert ask(pair.a, user, path)[0] == 403
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", {"metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["sa"], "verbs": ["create"]}]})
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "maker"}]})
    everywhere(pair, "the right", lambda at: ask(at, "maker", path, body='{"spec":{}}')[0] == 201)
    assert ask(pair.a, "nobody", path)[0] == 403
    yaml = pair.a.request("POST", path, b"spec:\n  audiences: [vault]\n", headers={"Content-Type": "application/yaml"})
    assert yaml[0] == 201, yaml
    assert json.loads(yaml[1])["spec"]["audiences"] == ["vault"]


def test_a_token_ends_with_its_account(pair, ns):
    pair.account(ns, "sa")
    token = pair.token(ns, "sa")["status"]["token"]
    everywhere(pair, "the token", lambda at: ask(at, token)[0] == 201)
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/sa", at=pair.b)
    everywhere(pair, "the end", lambda at: ask(at, token)[0] == 401)
    assert pair.review(token) == {"user": {}, "error": '[invalid bearer token, serviceaccounts "sa" not found]'}
    again = pair.account(ns, "sa")
    everywhere(pair, "the other account", lambda at: "does not match claim" in pair.review(token, at)["error"])
    for at in pair.both:
        assert ask(at, token)[0] == 401
    assert again["metadata"]["uid"] in pair.review(token)["error"]


def test_a_token_ends_with_its_secret(pair, ns):
    pair.account(ns, "sa")
    ref = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    assert pair.token(ns, "sa", code=404, boundObjectRef=ref)["message"] == 'secrets "s" not found'
    uid = pair.admin("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}})["metadata"]["uid"]
    wrong = pair.token(ns, "sa", code=409, boundObjectRef={**ref, "uid": "other"})
    assert wrong["message"].startswith('Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (other) does not match')
    assert pair.token(ns, "sa", code=400, boundObjectRef={**ref, "kind": "Lamp"})["message"] == "cannot bind token to object of type /v1, Kind=Lamp"
    token = pair.token(ns, "sa", boundObjectRef={**ref, "uid": uid})["status"]["token"]
    assert claims_of(token)["kubernetes.io"]["secret"] == {"name": "s", "uid": uid}
    everywhere(pair, "the token", lambda at: ask(at, token)[0] == 201)
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/secrets/s")
    everywhere(pair, "the end", lambda at: ask(at, token)[0] == 401)
    assert pair.review(token)["error"] == "[invalid bearer token, service account token has been invalidated]"
    pair.admin("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}})
    everywhere(pair, "the other Secret", lambda at: "secret UID" in pair.review(token, at)["error"])


TOKEN_SECRET = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


def token_secret(pair, ns, name, account, code=None, **annotations):
    body = {"metadata": {"name": name, "annotations": {NAME: account, **annotations} if account else {}}, "type": TOKEN_SECRET}
    return pair.admin("POST", f"/api/v1/namespaces/{ns}/secrets", body, code)


def filled(pair, ns, name):
    """Waits until the controller has filled the Secret. Returns its token and its uid."""
    path = f"/api/v1/namespaces/{ns}/secrets/{name}"
    wait_until(f"a token in {name}", lambda: "token" in pair.admin("GET", path).get("data", {}))
    return base64.b64decode(pair.admin("GET", path)["data"]["token"]).decode()


def gone(pair, path):
    wait_until(f"the end of {path}", lambda: pair.a.get(path)[0] == 404)


def test_a_secret_gets_a_token_that_lives_as_long_as_it(pair, ns):
    uid = pair.account(ns, "sa")["metadata"]["uid"]
    refused = token_secret(pair, ns, "s", None, 422)
    assert refused["message"] == f'Secret "s" is invalid: metadata.annotations[{NAME}]: Required value'
    token_secret(pair, ns, "s", "sa")
    token = filled(pair, ns, "s")
    secret = pair.admin("GET", f"/api/v1/namespaces/{ns}/secrets/s")
    assert secret["metadata"]["annotations"] == {NAME: "sa", UID: uid}
    assert base64.b64decode(secret["data"]["namespace"]).decode() == ns
    root = pair.admin("GET", f"/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt")["data"]["ca.crt"]
    assert base64.b64decode(secret["data"]["ca.crt"]).decode() == root
    prefix = "kubernetes.io/serviceaccount/"
    claims = claims_of(token)
    assert claims.pop("jti") and claims == {"iss": "kubernetes/serviceaccount", "sub": f"system:serviceaccount:{ns}:sa", f"{prefix}namespace": ns,
                                f"{prefix}secret.name": "s", f"{prefix}service-account.name": "sa", f"{prefix}service-account.uid": uid}
    everywhere(pair, "the token", lambda at: ask(at, token)[0] == 201)
    for at in pair.both:
        assert ask(at, token)[1]["status"]["userInfo"] == {
            "username": f"system:serviceaccount:{ns}:sa", "uid": uid,
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ns}", "system:authenticated"]}
    assert pair.review(token)["audiences"] == [ISSUER, "https://old.example"]
    assert pair.review(token, audiences=["elsewhere"]).get("authenticated") is not True
    # A valid signature is not enough: the Secret must contain this very token.
    forged = pair.signer.sign(claims_of(token))
    assert ask(pair.a, forged)[0] == 401
    assert pair.review(forged)["error"] == "[invalid bearer token, Token does not match server's copy]"
    assert ask(pair.a, pair.stranger.sign(claims_of(token)))[0] == 401
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/secrets/s", at=pair.b)
    everywhere(pair, "the end", lambda at: ask(at, token)[0] == 401)
    assert pair.review(token)["error"] == "[invalid bearer token, Token has been invalidated]"
    # A new Secret of that name gets another token.
    token_secret(pair, ns, "s", "sa")
    again = filled(pair, ns, "s")
    everywhere(pair, "the new token", lambda at: ask(at, again)[0] == 201)
    assert again != token and ask(pair.a, token)[0] == 401


def test_the_log_says_what_an_immutable_secret_lacks(pair, ns):
    pair.account(ns, "sa")
    for name, data, lacks in (("empty", {}, "token ca.crt namespace uid"), ("full", {"token": "dA=="}, "ca.crt namespace uid")):
        pair.admin("POST", f"/api/v1/namespaces/{ns}/secrets", {
            "metadata": {"name": name, "annotations": {NAME: "sa"}}, "type": TOKEN_SECRET, "immutable": True, "data": data}, 201)
        line = f"the server refuses the update of the Secret {ns}/{name}, which lacks: {lacks}"
        wait_until(line, lambda line=line: any(line in instance.log_text() for instance in pair.both))


def test_secrets_with_tokens_die_with_their_account(pair, ns):
    uid = pair.account(ns, "sa")["metadata"]["uid"]
    pair.account(ns, "other")
    secrets = f"/api/v1/namespaces/{ns}/secrets"
    for name, account, more in (("a", "sa", {}), ("b", "sa", {UID: uid}), ("c", "other", {})):
        token_secret(pair, ns, name, account, **more)
    tokens = {name: filled(pair, ns, name) for name in "abc"}
    # Secrets for an account that does not exist, or that has another uid.
    token_secret(pair, ns, "d", "none")
    token_secret(pair, ns, "e", "sa", **{UID: "another"})
    gone(pair, f"{secrets}/d")
    gone(pair, f"{secrets}/e")
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/sa", at=pair.b)
    for name in "ab":
        gone(pair, f"{secrets}/{name}")
        everywhere(pair, f"the end of {name}", lambda at: ask(at, tokens[name])[0] == 401)  # pylint: disable=cell-var-from-loop
    pair.account(ns, "sa")
    assert ask(pair.a, tokens["a"])[0] == 401 and ask(pair.a, tokens["c"])[0] == 201
    # A token that is removed from its Secret becomes invalid, and the Secret gets another one.
    pair.admin("PUT", f"{secrets}/c", {"metadata": {"name": "c", "annotations": {NAME: "other"}}, "type": TOKEN_SECRET})
    everywhere(pair, "the end of the old token", lambda at: ask(at, tokens["c"])[0] == 401)
    assert filled(pair, ns, "c")


@pytest.mark.skipif(ON_SQLITE, reason="writes to etcd")
def test_a_stored_secret_of_an_odd_namespace_ends_no_server(pair):
    """No request can name this namespace, but another program may have written to the store."""
    odd = "n" * 70
    secret = {"kind": "Secret", "apiVersion": "v1", "type": TOKEN_SECRET, "metadata": {
        "name": "s", "namespace": odd, "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {NAME: "none"}}}
    key = f"/registry/secrets/{odd}/s"
    pair.etcdctl("put", key, json.dumps(secret))
    wait_until("the end of the Secret, whose account does not exist", lambda: not pair.etcdctl("get", key))
    assert all(instance.alive() for instance in pair.both)


def test_tokens_of_openssl_pass_only_if_everything_is_right(pair, ns):
    pair.account(ns, "sa")
    good = claims_of(pair.token(ns, "sa")["status"]["token"])
    now = int(time.time())
    assert ask(pair.a, pair.signer.sign(good))[0] == 201
    assert ask(pair.a, pair.old.sign({**good, "iss": "https://old.example"}))[0] == 201
    assert ask(pair.a, pair.signer.sign({**good, "exp": now + 600, "aud": ["x", ISSUER]}))[0] == 201
    for token, why in ((pair.stranger.sign(good), ""), (pair.signer.sign({**good, "iss": "https://other"}), ""),
                       (pair.signer.sign(good, alg="none"), ""), (pair.signer.sign(good, kid="other"), ""),
                       (pair.signer.sign({**good, "exp": now - 1}), ", service account token has expired"),
                       (pair.signer.sign({**good, "nbf": now + 600}), ", service account token is not valid yet"),
                       (pair.signer.sign({**good, "aud": ["x"]}), ', token audiences ["x"] is invalid for the target audiences'),
                       (pair.signer.sign({**good, "sub": "system:serviceaccount:kube-system:sa"}), ", service account token claims could not"),
                       ("a.b.c", ""), ("..", ""), (pair.signer.sign(good)[:-2], "")):
        assert ask(pair.a, token)[0] == 401, token
        status = pair.review(token)
        assert status["error"].startswith("[invalid bearer token" + (why or "]")), status


def test_token_reviews_check_audiences(pair, ns):
    pair.account(ns, "sa")
    own, vault = (pair.token(ns, "sa", audiences=a)["status"]["token"] for a in ([], ["vault", "x"]))
    status = pair.review(own)
    assert status["authenticated"] and status["audiences"] == [ISSUER, "https://old.example"]
    assert status["user"]["username"] == f"system:serviceaccount:{ns}:sa"
    status = pair.review(vault, audiences=["y", "vault"])
    assert status["authenticated"] and status["audiences"] == ["vault"]
    assert ask(pair.a, vault)[0] == 401
    for token, audiences in ((vault, []), (own, ["vault"]), ("maker", ["vault"])):
        status = pair.review(token, audiences=audiences)
        assert "authenticated" not in status and "audiences" not in status and status["user"] == {}
    status = pair.review("maker")
    assert status["authenticated"] and status["audiences"] == [ISSUER, "https://old.example"]
    pair.admin("POST", REVIEWS, {"spec": {"token": own, "audiences": [str(i) for i in range(257)]}}, 422)


def test_watches_end_with_what_their_token_depends_on(pair, ns):
    for name in ("kept", "deleted", "bound", "held"):
        pair.account(ns, name)
    pair.admin("POST", f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}})
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "view"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": f"system:serviceaccounts:{ns}", "apiGroup": "rbac.authorization.k8s.io"}]})
    tokens = {name: pair.token(ns, name)["status"]["token"] for name in ("kept", "deleted")}
    tokens["bound"] = pair.token(ns, "bound", boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})["status"]["token"]
    token_secret(pair, ns, "h", "held")
    tokens["held"] = filled(pair, ns, "h")
    expires = time.time() + 4
    tokens["expired"] = pair.signer.sign({**claims_of(tokens["kept"]), "exp": int(expires)})
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for name in ("kept", "deleted", "bound", "held"):
        everywhere(pair, f"the right of {name}", lambda at: ask(at, tokens[name], path, "GET", None)[0] == 200)  # pylint: disable=cell-var-from-loop
    ended, opened = {}, {(name, at.name): threading.Event() for name in tokens for at in pair.both}

    def watch(name, at):
        request = urllib.request.Request(f"{at.url}{path}?watch=true", headers={"Authorization": f"Bearer {tokens[name]}"})
        with urllib.request.urlopen(request, context=at.context(False), timeout=60) as response:
            opened[name, at.name].set()
            for _ in response:
                pass
        ended[name, at.name] = time.time()

    def wait_end(name):
        wait_until(f"the watches of {name} to end", lambda: len([1 for who, _ in ended if who == name]) == 2)
    for name in tokens:
        for at in pair.both:
            threading.Thread(target=watch, args=(name, at), daemon=True).start()
    for event in opened.values():
        assert event.wait(60)
    wait_end("expired")
    assert all(at >= int(expires) for at in ended.values())
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/deleted")
    wait_end("deleted")
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/secrets/s", at=pair.b)
    wait_end("bound")
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/secrets/h")
    wait_end("held")
    assert not [1 for who, _ in ended if who == "kept"]
    for name in ("expired", "deleted", "bound", "held"):
        everywhere(pair, f"the refusal of {name}", lambda at: ask(at, tokens[name], path, "GET", None)[0] == 401)  # pylint: disable=cell-var-from-loop
    pair.admin("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/kept")
    wait_end("kept")


def test_others_can_verify_tokens(pair, ns):
    """A client verifies tokens with openssl and the documents that service accounts may read."""
    pair.account(ns, "sa")
    token = pair.token(ns, "sa")["status"]["token"]
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        assert ask(pair.a, "nobody", path, "GET", None)[0] == 403
        assert ask(pair.a, token, path, "GET", None)[0] == 200
    everywhere(pair, "the token", lambda at: ask(at, token)[0] == 201)
    for at in pair.both:
        code, document = ask(at, token, "/.well-known/openid-configuration", "GET", None)
        assert code == 200 and document == {
            "issuer": ISSUER, "jwks_uri": f"{at.url}/openid/v1/jwks", "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}
        keys = ask(at, token, "/openid/v1/jwks", "GET", None)[1]["keys"]
        assert len(keys) == 2 and all(key["kty"] == "RSA" and key["use"] == "sig" and key["e"] == "AQAB" for key in keys)
        kid = json.loads(decode(token.split(".")[0]))["kid"]
        modulus = openssl("rsa", "-in", pair.signer.key, "-noout", "-modulus").decode().strip().split("=")[1]
        assert next(int.from_bytes(decode(key["n"]), "big") for key in keys if key["kid"] == kid) == int(modulus, 16)
    text, _, signature = token.rpartition(".")
    (pair.directory / "signature").write_bytes(decode(signature))
    assert b"OK" in openssl("dgst", "-sha256", "-verify", pair.signer.public, "-signature", pair.directory / "signature", stdin=text.encode())


def has_create_token():
    """kubectl has the command since 1.24; Debian's is older."""
    done = subprocess.run(["kubectl", "create", "token", "--help"], capture_output=True, text=True, check=False)
    return "--audience" in done.stdout


@pytest.mark.skipif(not has_create_token(), reason="this kubectl has no `create token`")
def test_kubectl_creates_tokens(pair, ns):
    pair.account(ns, "sa")
    token = pair.a.kubectl("create", "token", "sa", "-n", ns, "--duration=20m", "--audience=vault").stdout.strip()
    assert claims_of(token)["aud"] == ["vault"]
    token = pair.a.kubectl("create", "token", "sa", "-n", ns).stdout.strip()
    assert ask(pair.b, token)[0] == 201 or wait_until("the token", lambda: ask(pair.b, token)[0] == 201)
    who = subprocess.run(["kubectl", f"--server={pair.a.url}", f"--certificate-authority={pair.a.pki / 'ca.crt'}", f"--token={token}", "--kubeconfig=/dev/null",
                          "auth", "whoami", "-o", "json"], capture_output=True, text=True, check=False)
    assert who.returncode == 0 and json.loads(who.stdout)["status"]["userInfo"]["username"] == f"system:serviceaccount:{ns}:sa", who


def test_discovery_and_openapi_have_the_subresource(pair):
    found = {r["name"]: r for r in json.loads(pair.a.get("/api/v1")[1])["resources"]}["serviceaccounts/token"]
    assert found == {"name": "serviceaccounts/token", "singularName": "", "namespaced": True, "group": "authentication.k8s.io",
                     "version": "v1", "kind": "TokenRequest", "verbs": ["create"]}
    document = json.loads(pair.a.get("/openapi/v3/api/v1")[1])
    assert "post" in document["paths"]["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"]
    assert "io.k8s.api.authentication.v1.TokenRequest" in document["components"]["schemas"]


def test_the_generated_key_is_kept_and_keys_can_be_changed(pair):
    """Two instances with one certificate directory share the key. After a SIGHUP a new key signs; tokens of the old key stay valid while a flag names it."""
    with Cluster(with_witness=False) as cluster:
        one, two = (cluster.instance(name) for name in ("one", "two"))
        for at in (one, two):
            at.wait_ready()
        assert (one.pki / "sa.key").stat().st_mode & 0o777 == 0o600
        assert one.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "sa"}})[0] == 201
        code, text = one.request("POST", "/api/v1/namespaces/default/serviceaccounts/sa/token", {"spec": {}})
        token = json.loads(text)["status"]["token"]
        assert code == 201 and json.loads(decode(token.split(".")[0]))["alg"] == "ES256"
        for at in (one, two):
            wait_until("the token", lambda: ask(at, token)[0] == 201)  # pylint: disable=cell-var-from-loop
        public = openssl("pkey", "-in", one.pki / "sa.key", "-pubout")
        assert json.loads(one.get("/openid/v1/jwks")[1])["keys"][0]["crv"] == "P-256"
        key, kept = cluster.directory / "new.key", cluster.directory / "kept.pub"
        key.write_bytes((one.pki / "sa.key").read_bytes())
        key.chmod(0o600)
        kept.write_bytes(public)
        kept.chmod(0o600)
        three = cluster.instance("three", f"--service-account-signing-key-file={key}", f"--service-account-key-file={kept}").wait_ready()
        assert ask(three, token)[0] == 201
        key.write_bytes(pair.signer.key.read_bytes())
        three.send(1)
        made = wait_until("the new key", lambda: [t for t in [json.loads(three.request(
            "POST", "/api/v1/namespaces/default/serviceaccounts/sa/token", {"spec": {}})[1])["status"]["token"]]
            if json.loads(decode(t.split(".")[0]))["alg"] == "RS256"])[0]
        assert ask(three, made)[0] == 201 and ask(three, token)[0] == 201 and ask(one, made)[0] == 401
        kept.write_bytes(pair.old.public.read_bytes())
        three.send(1)
        wait_until("the end of the old key", lambda: ask(three, token)[0] == 401)
        key.chmod(0o602)
        bad = cluster.instance("bad", f"--service-account-signing-key-file={key}")
        assert bad.wait() == 2 and "flag --service-account-signing-key-file" in bad.log_text()
