# SPDX-License-Identifier: Apache-2.0
"""--encryption-provider-config: what is stored, the rotation of keys, and values that no key decrypts."""
import base64
import json
import os
import signal
import subprocess
import urllib.request

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from holdfastd import HOLDFASTD, LIMIT, Cluster, Etcd, SqliteFile, wait_until

MARK = "opensesame-0123456789"
ENCODED = base64.b64encode(MARK.encode()).decode()
KEYS = {name: bytes([i]) * 32 for i, name in enumerate(("key1", "key2", "key3"))}
SECRETS = "/api/v1/namespaces/default/secrets"


def provider(name):
    if name == "identity":
        return {"identity": {}}
    return {"aesgcm": {"keys": [{"name": name, "secret": base64.b64encode(KEYS[name]).decode()}]}}


def configuration(*names, resources=("secrets",)):
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
            "resources": [{"resources": list(resources), "providers": [provider(name) for name in names]}]}


def secret(name):
    return {"metadata": {"name": name, "annotations": {"note": MARK}}, "stringData": {"password": MARK}}


class Keys:
    """An instance and its encryption configuration file."""

    def __init__(self, cluster, name, *keys, resources=("secrets",), **kwargs):
        self.path = cluster.directory / f"{name}.keys"
        self.resources = resources
        self.write(*keys)
        self.instance = cluster.instance(name, f"--encryption-provider-config={self.path}", **kwargs)

    def write(self, *keys):
        self.path.write_text(json.dumps(configuration(*keys, resources=self.resources)))

    def set(self, *keys):
        done = "keys of the store reloaded"
        n = self.instance.log_text().count(done)
        self.write(*keys)
        self.instance.send(signal.SIGHUP)
        wait_until("the reload", lambda: self.instance.log_text().count(done) > n)


def etcdctl(cluster, *args, stdin=None):
    return subprocess.run(["etcdctl", f"--endpoints={cluster.etcd.url}", *args], input=stdin, capture_output=True, timeout=LIMIT, check=True,
                          env={**os.environ, "ETCDCTL_API": "3"}).stdout


def stored_bytes(cluster):
    """Returns all stored bytes, without old versions in etcd."""
    if isinstance(cluster.etcd, Etcd):
        return etcdctl(cluster, "get", "--prefix", "/registry")
    files = [cluster.etcd.path, cluster.etcd.path.with_name(cluster.etcd.path.name + "-wal")]
    return b"".join(f.read_bytes() for f in files if f.exists())


def stored_value(cluster, name):
    return etcdctl(cluster, "get", "--print-value-only", f"/registry/secrets/default/{name}")[:-1]


def put(cluster, key, value):
    body = json.dumps({"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}).encode()
    with urllib.request.urlopen(cluster.etcd.url + "/v3/kv/put", data=body, timeout=LIMIT) as response:
        assert response.status == 200


def password(instance, name):
    code, body = instance.get(f"{SECRETS}/{name}")
    assert code == 200, body
    return base64.b64decode(json.loads(body)["data"]["password"]).decode()


def rewrite(instance):
    """Rewrites all secrets, as the documentation says, after the key that encrypts has changed."""
    listed = instance.kubectl("get", "secrets", "--all-namespaces", "-o", "json").stdout
    instance.kubectl("replace", "-f", "-", stdin=listed)


def revision(instance, name):
    return json.loads(instance.get(f"{SECRETS}/{name}")[1])["metadata"]["resourceVersion"]


def expect_refused(instance, path, why, method="GET", body=None):
    code, text = instance.request(method, path, body)
    status = json.loads(text)
    assert (code, status["reason"]) == (500, "InternalError"), text
    assert status["message"].startswith("Internal error occurred: unable to transform key \"/registry/secrets/default/"), text
    assert status["message"].endswith(why), text


@pytest.mark.parametrize("store", [Etcd, SqliteFile])
def test_secrets_are_encrypted_through_a_rotation_until_the_end(store):
    with Cluster(with_witness=False, etcd=store) as cluster:
        a, b = Keys(cluster, "a", "key1", "identity"), Keys(cluster, "b", "key1", "identity")
        for keys in (a, b):
            keys.instance.wait_ready()
        assert a.instance.request("POST", SECRETS, secret("one"))[0] == 201
        assert a.instance.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}, "data": {"mark": "plain-" + MARK[::-1]}})[0] == 201
        assert password(b.instance, "one") == MARK
        stored = stored_bytes(cluster)
        assert b"k8s:enc:aesgcm:v1:key1:" in stored
        assert MARK[::-1].encode() in stored  # shows that the search below would find the text
        assert MARK.encode() not in stored and ENCODED.encode() not in stored
        if store is Etcd:
            check_kubernetes_format(cluster)
            check_a_moved_value(cluster, a.instance)
        unchanged = revision(a.instance, "one")
        rewrite(a.instance)
        assert revision(a.instance, "one") == unchanged

        # The rotation: every instance can decrypt with the new key before one encrypts with it.
        for step in (("key1", "key2", "identity"), ("key2", "key1", "identity")):
            for keys in (a, b):
                keys.set(*step)
                assert password(keys.instance, "one") == MARK
        rewrite(b.instance)
        assert revision(b.instance, "one") != unchanged
        for keys in (a, b):
            keys.set("key2")
            assert password(keys.instance, "one") == MARK
        if store is Etcd:
            assert b":key1:" not in stored_bytes(cluster)

        check_missing_keys(cluster, a, b)

        # Encryption is turned off.
        for keys in (a, b):
            keys.set("identity", "key2")
        rewrite(a.instance)
        plain = cluster.instance("plain", "--leader-elect=false").wait_ready()
        assert password(plain, "one") == MARK
        assert ENCODED.encode() in stored_bytes(cluster)


def check_kubernetes_format(cluster):
    """Another implementation decrypts the value, with its key in etcd as the additional data."""
    value, prefix = stored_value(cluster, "one"), b"k8s:enc:aesgcm:v1:key1:"
    assert value.startswith(prefix)
    sealed = value[len(prefix):]
    plain = AESGCM(KEYS["key1"]).decrypt(sealed[:12], sealed[12:], b"/registry/secrets/default/one")
    assert json.loads(plain)["data"]["password"] == ENCODED


def check_a_moved_value(cluster, instance):
    put(cluster, "/registry/secrets/default/moved", stored_value(cluster, "one"))
    expect_refused(instance, f"{SECRETS}/moved", "cipher: message authentication failed")
    expect_refused(instance, SECRETS, "cipher: message authentication failed")
    assert password(instance, "one") == MARK
    etcdctl(cluster, "del", "/registry/secrets/default/moved")
    assert instance.get(f"{SECRETS}/moved")[0] == 404
    assert instance.get(SECRETS)[0] == 200


def check_missing_keys(cluster, a, b):
    """An instance without the key refuses requests for secrets and serves all others. So does one that starts without the key."""
    b.set("key3", "identity")
    why = "no matching prefix found"
    started = cluster.instance("started", "--leader-elect=false").wait_ready()
    for instance, reason in ((b.instance, why), (started, "identity transformer tried to read encrypted data")):
        expect_refused(instance, f"{SECRETS}/one", reason)
        expect_refused(instance, SECRETS, reason)
        expect_refused(instance, "/api/v1/secrets?limit=1", reason)
        expect_refused(instance, f"{SECRETS}?watch=1&timeoutSeconds=1", reason)
        expect_refused(instance, SECRETS, reason, "POST", secret("one"))
        expect_refused(instance, f"{SECRETS}/one", reason, "DELETE")
        assert instance.get("/api/v1/namespaces/default/configmaps/m")[0] == 200
        assert instance.get("/readyz")[0] == 200
    assert password(a.instance, "one") == MARK
    started.send(signal.SIGTERM)
    assert started.wait() == 0
    # A file with a mistake is ignored until it is corrected.
    b.path.write_text("{}")
    b.instance.send(signal.SIGHUP)
    wait_until("the fault", lambda: "keeping the previous keys of the store" in b.instance.log_text())
    b.set("key2")
    assert password(b.instance, "one") == MARK


def test_a_copy_of_the_store_is_read_with_the_same_keys():
    with Cluster(with_witness=False, etcd=SqliteFile) as cluster:
        a = Keys(cluster, "a", "key1")
        a.instance.wait_ready()
        assert a.instance.request("POST", SECRETS, secret("one"))[0] == 201
        a.instance.send(signal.SIGTERM)
        assert a.instance.wait() == 0
        copy = cluster.directory / "copy.db"
        subprocess.run([HOLDFASTD, "store", "copy", f"--from={cluster.etcd.url}", f"--to=sqlite:{copy}"], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
        assert ENCODED.encode() not in copy.read_bytes()
        # A leader without the key serves, but deletes no namespace before it knows what is in it.
        b = Keys(cluster, "b", "key3", etcd_url=f"sqlite:{copy}")
        b.instance.wait_ready()
        expect_refused(b.instance, f"{SECRETS}/one", "no matching prefix found")
        assert b.instance.request("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})[0] == 201
        assert b.instance.request("DELETE", "/api/v1/namespaces/short")[0] == 200
        b.set("key1")
        assert password(b.instance, "one") == MARK
        wait_until("the namespace to be deleted", lambda: b.instance.get("/api/v1/namespaces/short")[0] == 404)


def test_custom_resources_are_encrypted():
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"password": {"type": "string"}}}}}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "safes.example.com"},
                  "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "safes", "kind": "Safe"},
                           "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}
    safe = {"apiVersion": "example.com/v1", "kind": "Safe", "metadata": {"name": "one"}, "spec": {"password": MARK}}
    safes = "/apis/example.com/v1/namespaces/default/safes"
    with Cluster(with_witness=False, etcd=SqliteFile) as cluster:
        a, b = (Keys(cluster, name, "key1", resources=("safes.example.com",)) for name in ("a", "b"))
        for keys in (a, b):
            keys.instance.wait_ready()
        assert a.instance.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
        for keys in (a, b):
            wait_until("the kind to be served", lambda k=keys: k.instance.get(safes)[0] == 200)
        assert a.instance.request("POST", safes, safe)[0] == 201

        def password_of(instance):
            code, text = instance.get(f"{safes}/one")
            assert code == 200, text
            return json.loads(text)["spec"]["password"]
        wait_until("the other instance to have the object", lambda: password_of(b.instance) == MARK)
        stored = stored_bytes(cluster)
        assert b"k8s:enc:aesgcm:v1:key1:" in stored and b"safes.example.com" in stored
        assert MARK.encode() not in stored

        # Without the key the object does not count as deleted. With the key it can be read again.
        b.set("key2")
        for path, method in ((safes, "GET"), (f"{safes}/one", "GET"), (f"{safes}/one", "DELETE")):
            code, text = b.instance.request(method, path)
            assert code == 500 and "unable to transform key \\\"/registry/example.com/safes/default/one" in text, text
        b.set("key2", "key1")
        assert password_of(b.instance) == MARK
        # An update that changes nothing encrypts it with the new key.
        assert b.instance.request("PUT", f"{safes}/one", json.loads(b.instance.get(f"{safes}/one")[1]))[0] == 200
        assert b"k8s:enc:aesgcm:v1:key2:" in stored_bytes(cluster)


def test_faults_of_the_file_are_one_line(tmp_path):
    path = tmp_path / "keys"
    short = configuration("key1")
    short["resources"][0]["providers"][0]["aesgcm"]["keys"][0]["secret"] = "AAAA"
    twice = configuration("key1")
    twice["resources"][0]["providers"][0]["aesgcm"]["keys"] *= 2
    kms = configuration("key1")
    kms["resources"][0]["providers"] = [{"secretbox": {"keys": []}}]
    faults = {json.dumps(short): "secret is not of the expected length, got 3", json.dumps(twice): "the name \"key1\" is given twice",
              json.dumps(kms): "secretbox is not supported", "a: [": "cannot use",
              json.dumps(configuration("key1", resources=["leases.coordination.k8s.io"])): "Leases cannot be encrypted"}
    for mode in ("--check", "--v=1"):
        for text, message in faults.items():
            path.write_text(text)
            run = [HOLDFASTD, "--storage=memory", "--secure-port=0", f"--write-kubeconfig={tmp_path}/k", f"--encryption-provider-config={path}", mode]
            done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, check=False)
            assert done.returncode == 2 and message in done.stderr, done
            assert "flag --encryption-provider-config: " in done.stderr and len(done.stderr.splitlines()) == 1, done
    path.unlink()
    done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2 and "No such file or directory" in done.stderr
    path.write_text(json.dumps(configuration("key1")))
    path.chmod(0o666)
    done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2 and "can be written by other users" in done.stderr
