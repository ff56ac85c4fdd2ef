# SPDX-License-Identifier: Apache-2.0
"""curl as a client, with both versions of HTTP: each kind of wrong request gets its status, and
none ends the server."""
import json
import random
import subprocess

import pytest

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Reply:
    def __init__(self, head, body):
        lines = head.replace("\r", "").strip().splitlines()
        self.version, self.code = lines[0].split()[0], int(lines[0].split()[1])
        self.headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        self.body = body

    def status(self):
        """The Status object of the body, whose code must equal the HTTP status."""
        status = json.loads(self.body)
        assert status["kind"] == "Status" and status["code"] == self.code and status["status"] == "Failure", self.body
        return status


@pytest.fixture(params=["--http1.1", "--http2"])
def curl(request, pair, tmp_path):
    pki = pair.cluster.directory / "pki"

    def run(*args, path, at=None):
        command = ["curl", "-sS", "-m", "30", request.param, "--cacert", pki / "ca.crt", "--cert", pki / "admin.crt", "--key", pki / "admin.key", "-D",
                   tmp_path / "head", "-o", tmp_path / "body", "-H", "Expect:", "-A", "test", *args, (at or pair.a).url + path]
        (tmp_path / "body").write_bytes(b"")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        reply = Reply((tmp_path / "head").read_text(), (tmp_path / "body").read_text())
        assert reply.version == run.version
        return reply
    run.version = {"--http1.1": "HTTP/1.1", "--http2": "HTTP/2"}[request.param]
    return run


def sends(method, body):
    return ["-X", method, "-H", "Content-Type: application/json", "--data-binary", body if isinstance(body, str) else json.dumps(body)]


def config_map(name, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}}


def test_objects_are_read_as_json_and_pretty_printed(curl, pair):
    for at in (pair.a, pair.b):
        reply = curl(path="/api/v1/namespaces/default", at=at)
        assert reply.code == 200 and reply.headers["content-type"] == "application/json" and reply.headers["cache-control"] == "no-cache, private"
        assert json.loads(reply.body)["metadata"]["name"] == "default" and "\n" not in reply.body.strip()
        pretty = curl(path="/api/v1/namespaces/default?pretty=true", at=at)
        assert json.loads(pretty.body) == json.loads(reply.body) and pretty.body.count("\n") > 5
        assert "\n" in curl("-A", "curl/7.88.1", path="/api/v1/namespaces/default", at=at).body
        assert "\n" not in curl("-A", "curl/7.88.1", path="/api/v1/namespaces/default?pretty=false", at=at).body.strip()
        zipped = curl("-H", "Accept-Encoding: gzip", path="/api/v1/namespaces", at=at)
        assert zipped.code == 200 and json.loads(zipped.body)["kind"] == "NamespaceList"


def test_unknown_paths_and_methods_are_refused(curl):
    for path in ("/apis/no.such.group/v1", "/api/v1/nothings", "/api/v2", "/apis/coordination.k8s.io/v9/leases", "/api/v1/namespaces/default/status/x"):
        reply = curl(path=path)
        assert reply.code == 404, path
        assert reply.status()["reason"] == "NotFound", path
    assert curl(path="/no/such/path").code == 404
    for method, path in (("PATCH", CONFIGMAPS), ("DELETE", "/api/v1/namespaces"), ("PUT", CONFIGMAPS), ("POST", CONFIGMAPS + "/x"), ("TRACE", CONFIGMAPS),
                         ("POST", "/api/v1/configmaps")):
        reply = curl("-X", method, path=path)
        assert reply.code == 405, (method, path, reply.body)
        status = reply.status()
        assert status["reason"] == "MethodNotAllowed" and status["message"] == "the server does not allow this method on the requested resource"
    assert curl("-H", "Accept: text/html", path=CONFIGMAPS).status()["reason"] == "NotAcceptable"
    assert curl("-X", "POST", "-H", "Content-Type: text/plain", "--data-binary", "x", path=CONFIGMAPS).status()["reason"] == "UnsupportedMediaType"


def test_a_body_that_is_not_utf_8_is_refused(curl, tmp_path):
    """One object that is not UTF-8 would break the whole list for a client that decodes it."""
    (tmp_path / "body.json").write_bytes(b'{"metadata":{"name":"x"},"data":{"k":"\xe0\x80"}}')
    reply = curl("-X", "POST", "-H", "Content-Type: application/json", "--data-binary", f"@{tmp_path / 'body.json'}", path=CONFIGMAPS)
    assert reply.code == 400 and "UTF-8" in reply.status()["message"]


@pytest.mark.parametrize("body", ["", "not json", "[]", "5", "null", '{"a":', '{"kind":"ConfigMap"', '"x"', '{"metadata":5}', '{"metadata":{"name":5}}',
                                  '{"metadata":{"name":"x","labels":[]}}', '{"metadata":{"name":"x"},"data":[]}', '{"metadata":{"name":"x"},"data":{"a":{}}}',
                                  '{"metadata":{"name":"x\\u0000y"}}', '{"apiVersion":"v2","metadata":{"name":"x"}}', '{"kind":"Secret","metadata":{"name":"x"}}'],
                         ids=lambda b: b[:30] or "nothing")
def test_invalid_bodies_are_refused(curl, body):
    reply = curl(*sends("POST", body), path=CONFIGMAPS)
    assert reply.code in ((400, 422) if "u0000" in body else (400,)), reply.body
    assert reply.status()["reason"] in ("BadRequest", "Invalid")


def test_mismatched_names_are_refused(curl, pair):
    name = "curl-name"
    try:
        assert curl(*sends("POST", config_map(name)), path=CONFIGMAPS).code == 201
        other = curl(*sends("PUT", config_map("other")), path=f"{CONFIGMAPS}/{name}")
        assert other.code == 400 and "does not match the name on the URL" in other.status()["message"]
        ns = curl(*sends("PUT", config_map(name, namespace="kube-system")), path=f"{CONFIGMAPS}/{name}")
        assert ns.code == 400
        assert ns.status()["message"] == "the namespace of the provided object does not match the namespace sent on the request"
        assert curl(*sends("POST", config_map("y", namespace="kube-system")), path=CONFIGMAPS).code == 400
        rv = curl(*sends("POST", config_map("y", resourceVersion="5")), path=CONFIGMAPS)
        assert rv.code == 400 and rv.status()["message"] == "resourceVersion should not be set on objects to be created"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "holdfast-controllers"}, "spec": {"holderIdentity": "x"}}
        blind = curl(*sends("PUT", lease), path="/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/holdfast-controllers")
        assert blind.code == 422 and "metadata.resourceVersion" in blind.body and "must be specified for an update" in blind.body
    finally:
        pair.a.request("DELETE", f"{CONFIGMAPS}/{name}")


def test_too_large_and_too_deep_bodies_are_refused(curl, pair, tmp_path):
    (tmp_path / "large").write_text(json.dumps({**config_map("large"), "data": {"k": "x" * (4 << 20)}}))
    if curl.version == "HTTP/1.1":  # over HTTP/2 curl 7.88 discards a response that arrives before it has sent the whole body
        reply = curl("-X", "POST", "-H", "Content-Type: application/json", "--data-binary", f"@{tmp_path / 'large'}", path=CONFIGMAPS)
        assert reply.code == 413 and reply.status()["message"].startswith("Request entity too large: limit is ")
    for deep in ("[" * 100000, '{"metadata":{"name":"deep"},"data":' + '{"a":' * 50000 + "1" + "}" * 50000 + "}"):
        (tmp_path / "deep").write_text(deep)
        reply = curl("-X", "POST", "-H", "Content-Type: application/json", "--data-binary", f"@{tmp_path / 'deep'}", path=CONFIGMAPS)
        assert reply.code == 400 and reply.status()["reason"] == "BadRequest"
    for at in (pair.a, pair.b):
        assert at.get("/livez")[0] == 200


def test_an_update_that_reorders_keys_writes_nothing(curl, pair, tmp_path):
    """An update that only reorders many keys is compared quickly and writes nothing."""
    keys = [f"k{i:05d}" for i in range(60000)]
    body = {**config_map("many"), "immutable": True, "data": {k: "" for k in keys}}
    try:
        (tmp_path / "many").write_text(json.dumps(body))
        made = curl("-X", "POST", "-H", "Content-Type: application/json", "--data-binary", f"@{tmp_path / 'many'}", path=CONFIGMAPS)
        assert made.code == 201
        body["data"] = {k: "" for k in reversed(keys)}
        (tmp_path / "many").write_text(json.dumps(body))
        again = curl("-X", "PUT", "-H", "Content-Type: application/json", "--data-binary", f"@{tmp_path / 'many'}", path=CONFIGMAPS + "/many")
        assert again.code == 200
        assert json.loads(again.body)["metadata"]["resourceVersion"] == json.loads(made.body)["metadata"]["resourceVersion"]
    finally:
        pair.a.request("DELETE", f"{CONFIGMAPS}/many")


def test_unknown_fields_cause_a_warning(curl, pair):
    """fieldValidation=Warn, the default, returns a Warning header for each unknown field."""
    try:
        reply = curl(*sends("POST", {**config_map("warned", labls={}), "dataa": {}}), path=CONFIGMAPS)
        assert reply.code == 201 and reply.headers["warning"] in (r'299 - "unknown field \"dataa\""', r'299 - "unknown field \"metadata.labls\""')
        assert curl(*sends("POST", config_map("x")), path=CONFIGMAPS + "?fieldValidation=Sometimes").code == 422
    finally:
        pair.a.request("DELETE", f"{CONFIGMAPS}/warned")


SEEDS = [config_map("fuzzed"), {**config_map("fuzzed", labels={"a": "b"}, finalizers=["example.org/x"]), "data": {"k": "v"}, "binaryData": {"b": "AAE="}},
         {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "fuzzed"}, "spec": {
             "holderIdentity": "x", "leaseDurationSeconds": 5, "leaseTransitions": 1, "acquireTime": "2026-01-02T03:04:05.000006Z"}},
         {"apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "fuzzed-"}, "involvedObject": {"kind": "Pod"}, "lastTimestamp": None},
         {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}]
PATHS = [CONFIGMAPS, CONFIGMAPS + "/fuzzed", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "/api/v1/namespaces/default/events",
         "/apis/coordination.k8s.io/v1/namespaces/default/leases/fuzzed", "/api/v1/namespaces/fuzzed", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces/x",
         "/openapi/v3/apis/coordination.k8s.io/v1", "/readyz/ping", "/debug/leader", "/apis"]
QUERIES = ["", "?limit=1", "?labelSelector=a%3Db,c+notin+(d)", "?fieldSelector=metadata.name%3Dfuzzed", "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
           "?resourceVersion=1&resourceVersionMatch=Exact", "?dryRun=All", "?fieldValidation=Strict", "?pretty=1"]


def mutated(rng, text):
    data = bytearray(text.encode() if isinstance(text, str) else text)
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at:at + rng.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = data[at:at + rng.randrange(1, 40)]
        elif kind == 3:
            data[at:at] = rng.choice((b'"', b"{", b"[", b"\\u0000", b"\\ud800", b"null", b"-1e999", b"%", b"%00", b"/", b"..", b"\xff", b"9" * 30, b"\0"))
        else:
            del data[at:]
    return bytes(data)


def test_mutated_requests_do_no_harm(pair):
    """Four thousand wrong requests, each over a TLS connection of its own. Each gets a response or a closed
    connection, and both servers keep running."""
    import socket
    import ssl
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}")
    host, port = pair.a.url[len("https://"):].rsplit(":", 1)
    context = pair.a.context()
    codes, sock, received = {}, None, b""
    for _ in range(4000):
        body = mutated(rng, json.dumps(rng.choice(SEEDS))) if rng.random() < 0.7 else b""
        path = rng.choice(PATHS) + rng.choice(QUERIES)
        target = mutated(rng, path).replace(b"\n", b"").replace(b"\r", b"") if rng.random() < 0.4 else path.encode()
        method = rng.choice((b"GET", b"POST", b"PUT", b"DELETE", b"GET", b"HEAD", b"PATCH"))
        head = (method + b" " + target + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + str(len(body)).encode() + b"\r\n")
        odd = rng.random() < 0.05
        if odd:
            head = mutated(rng, head)
        try:
            if sock is None:
                plain = socket.create_connection((host, int(port)), timeout=20)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock = context.wrap_socket(plain, server_hostname=host)
            # The server closes the connection after its response. If the head promises more than is
            # sent, there is no response.
            sock.settimeout(0.05 if odd else 20)
            sock.sendall(head + b"Connection: close\r\n\r\n" + body)
            received = b""
            while chunk := sock.recv(65536):
                received += chunk
        except (ssl.SSLError, ConnectionError):
            pass
        except TimeoutError:
            assert odd, (seed, head, body)
        finally:
            if sock is not None:
                sock.close()
                sock = None
        code = int(received[9:12]) if received.startswith(b"HTTP/1.1 ") else 0
        codes[code] = codes.get(code, 0) + 1
        assert code not in (500, 502), (seed, head, body, received[:500])
        assert pair.a.alive() and pair.b.alive(), (seed, head, body)
    print(codes)
    assert codes.get(400, 0) > 100 and codes.get(200, 0) > 100
    for it in (pair.a, pair.b):
        assert it.get("/livez")[0] == 200
        assert "Sanitizer" not in it.log_text() and "runtime error" not in it.log_text()
