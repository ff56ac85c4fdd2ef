# SPDX-License-Identifier: Apache-2.0
"""ComponentStatuses are not stored, and can only be read."""
import pytest
from memory_server import MemoryServer

PATH = "/api/v1/componentstatuses"
ETCD = {"metadata": {"name": "etcd-0"}, "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        yield server


def test_it_says_whether_the_store_works(api):
    listed = api.ask("GET", PATH)
    assert listed.json == {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": [ETCD]}
    assert listed.warnings == ['299 - "v1 ComponentStatus is deprecated in v1.19+"']
    assert api.ask("GET", PATH + "/etcd-0").json == {"kind": "ComponentStatus", "apiVersion": "v1", **ETCD}
    missing = api.ask("GET", PATH + "/none")
    assert missing.code == 404 and missing.json["message"] == 'componentstatuses "none" not found'
    for selector, n in (("labelSelector=a%3Db", 0), ("labelSelector=!a", 1), ("fieldSelector=metadata.name%3Detcd-0", 1), ("fieldSelector=metadata.name%3Dx", 0)):
        assert len(api.ask("GET", f"{PATH}?{selector}").json["items"]) == n
    partial = api.ask("GET", PATH, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").json
    assert [o["metadata"]["name"] for o in partial["items"]] == ["etcd-0"]
    packed = api.ask("GET", PATH, accept="application/vnd.kubernetes.protobuf")
    assert packed.code == 200 and packed.bytes.startswith(b"k8s\0") and b"etcd-0" in packed.bytes


def test_it_cannot_be_written_or_watched(api):
    for method, path, body in (("POST", PATH, ETCD), ("PUT", PATH + "/etcd-0", ETCD), ("DELETE", PATH + "/etcd-0", None), ("DELETE", PATH, None),
                               ("GET", PATH + "?watch=1", None)):
        assert api.ask(method, path, body).code == 405
    assert api.ask("GET", PATH, impersonate_user="stranger").code == 403


def test_kubectl_shows_it(api):
    lines = [line.split() for line in api.kubectl("get", "cs").stdout.splitlines()]
    assert lines == [["NAME", "STATUS", "MESSAGE", "ERROR"], ["etcd-0", "Healthy", "ok"]]
    assert "etcd-0" in api.kubectl("get", "componentstatuses", "etcd-0", "-o", "yaml").stdout
    assert "Healthy" in api.kubectl("describe", "cs").stdout
    assert "conditions" in api.kubectl("explain", "cs").stdout
