# SPDX-License-Identifier: Apache-2.0
"""What clients read before they read objects: the version, the list of paths, discovery, OpenAPI. As kube-apiserver 1.36 serves it."""
import gzip

import pytest
from memory_server import MemoryServer


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        yield server


def test_version_is_that_of_the_kubernetes_whose_behaviours_are_served(api):
    for path in ("/version", "/version/"):
        reply = api.ask("GET", path)
        assert reply.code == 200, path
        assert (reply.json["major"], reply.json["minor"]) == ("1", "36")
        assert reply.json["gitVersion"].startswith("v1.36.0+holdfast-")
        assert (reply.json["emulationMajor"], reply.json["emulationMinor"]) == ("1", "36")
    assert api.ask("GET", "/version/x").code == 404


def test_the_root_lists_the_paths(api):
    reply = api.ask("GET", "/")
    assert reply.code == 200 and reply.headers["content-type"] == "application/json"
    paths = reply.json["paths"]
    assert paths == sorted(paths) and len(paths) == len(set(paths))
    for path in ("/api", "/api/v1", "/apis", "/apis/coordination.k8s.io/v1", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz",
                 "/version"):
        assert path in paths
    for path in paths:
        assert api.ask("GET", path).code == 200, path
    assert api.ask("POST", "/", {}).code == 405
    assert api.ask("GET", "//").code == 400


def test_openapi_v3_is_json_only(api):
    protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
    for path in ("/openapi/v3", "/openapi/v3/api/v1"):
        assert api.ask("GET", path).headers["content-type"] == "application/json"
        assert api.ask("GET", path, accept="*/*").code == 200
        assert api.ask("GET", path, accept=protobuf + ", application/json;q=0.9").code == 200
        assert api.ask("GET", path, accept="application/com.github.proto-openapi.spec.v3@v1.0+protobuf").code == 406
        refused = api.ask("GET", path, accept=protobuf)
        assert refused.code == 406, path
        assert refused.json["message"] == "only the following media types are accepted: application/json"


def test_openapi_v2_is_json_and_protobuf(api):
    reply = api.ask("GET", "/openapi/v2")
    assert reply.code == 200 and reply.headers["content-type"] == "application/json"
    assert reply.json["swagger"] == "2.0"
    kinds = {(k["group"], k["version"], k["kind"]) for d in reply.json["definitions"].values()
             for k in d.get("x-kubernetes-group-version-kind", [])}
    assert ("", "v1", "ConfigMap") in kinds and ("coordination.k8s.io", "v1", "Lease") in kinds
    patch = reply.json["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "ConfigMap", "version": "v1"}
    assert "dryRun" in [parameter["name"] for parameter in patch["parameters"]]
    protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    for accept in (protobuf, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", protobuf + ", application/json"):
        reply = api.ask("GET", "/openapi/v2", accept=accept)
        assert reply.code == 200 and reply.headers["content-type"] == protobuf and reply.bytes[:5] == b"\x0a\x032.0", accept
    # Extensions are a name and, in a message of its own, the YAML of their value.
    for extension in (b"x-kubernetes-list-type\x12\x06\x12\x04map\n", b"x-kubernetes-list-map-keys\x12\x09\x12\x07- name\n",
                      b"x-kubernetes-map-type\x12\x09\x12\x07atomic\n", b"x-kubernetes-patch-merge-key\x12\x07\x12\x05name\n"):
        assert extension in reply.bytes, extension
    assert api.ask("GET", "/openapi/v2", accept="application/json, " + protobuf).headers["content-type"] == "application/json"
    assert api.ask("GET", "/openapi/v2", accept="text/html").code == 406


def operations(document, path):
    """The operations of a path, each with the kind of its body."""
    return {method: operation["x-kubernetes-group-version-kind"]["kind"] for method, operation in document["paths"][path].items() if method != "parameters"}


def test_openapi_has_the_paths_of_subresources(api):
    namespaced = "/api/v1/namespaces/{namespace}"
    for document in (api.ask("GET", "/openapi/v2").json, api.ask("GET", "/openapi/v3/api/v1").json):
        status = f"{namespaced}/resourcequotas/{{name}}/status"
        assert operations(document, status) == {method: "ResourceQuota" for method in ("get", "put", "patch")}
        assert {"namespace", "name"} == {parameter["name"] for parameter in document["paths"][status]["parameters"]}
        assert "dryRun" in [parameter["name"] for parameter in document["paths"][status]["put"]["parameters"]]
        assert operations(document, f"{namespaced}/serviceaccounts/{{name}}/token") == {"post": "TokenRequest"}
        assert operations(document, "/api/v1/namespaces/{name}/finalize") == {"put": "Namespace"}
        ids = [operation["operationId"] for path in document["paths"].values() for method, operation in path.items() if method != "parameters"]
        assert len(ids) == len(set(ids))


def test_openapi_is_kept_by_its_etag_and_compressed(api):
    protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    etags = set()
    for path, accept in (("/openapi/v3", None), ("/openapi/v3/api/v1", None), ("/openapi/v2", None), ("/openapi/v2", protobuf)):
        first = api.ask("GET", path, accept=accept)
        assert first.code == 200 and "content-encoding" not in first.headers
        etags.add(first.headers["etag"])
        packed = api.ask("GET", path, accept=accept, accept_encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.bytes) == first.bytes
        assert packed.headers["etag"] == first.headers["etag"] and "Accept-Encoding" in packed.headers["vary"]
        again = api.ask("GET", path, accept=accept)
        assert (again.code, again.bytes) == (200, first.bytes)
        again = api.ask("GET", path, accept=accept, if_none_match=first.headers["etag"])
        assert (again.code, again.bytes) == (304, b"")
        head = api.ask("HEAD", path, accept=accept)
        assert (head.code, head.bytes, head.headers["etag"]) == (200, b"", first.headers["etag"])
    assert len(etags) == 4
    # A document may be kept under the URL in the index, which has its hash. Another hash leads there.
    url = api.ask("GET", "/openapi/v3").json["paths"]["api/v1"]["serverRelativeURL"]
    kept = api.ask("GET", url)
    assert url == "/openapi/v3/api/v1?hash=" + kept.headers["etag"].strip('"')
    assert kept.code == 200 and kept.headers["cache-control"].startswith("public, immutable")
    assert "immutable" not in api.ask("GET", "/openapi/v3/api/v1").headers["cache-control"]
    moved = api.ask("GET", "/openapi/v3/api/v1?x=y&hash=0123")
    assert (moved.code, moved.headers["location"], moved.bytes) == (301, url, b"")
    assert api.ask("GET", "/openapi/v3/api/v1/").code == 200
    assert api.ask("GET", "/openapi/v3/apis/example.com/v1").code == 404
    assert api.ask("POST", "/openapi/v2", {}).code == 405


# From a kube-apiserver: the beginning of the SHA-256 of group/version/kind.
HASHES = {"/api/v1": {"configmaps": "qFsyl6wFWjQ=", "namespaces": "Q3oi5N2YM8M=", "secrets": "S6u1pOWzb84=", "serviceaccounts": "pbx9ZvyFpBE=",
                      "events": "r2yiGXH7wu8=", "limitranges": "EBKMFVe6cwo=", "podtemplates": "LIXB2x4IFpk=", "resourcequotas": "8uhSgffRX6w="},
          "/apis/certificates.k8s.io/v1": {"certificatesigningrequests": "95fRKMXA+00="},
          "/apis/coordination.k8s.io/v1": {"leases": "gqkMMb/YqFM="},
          "/apis/scheduling.k8s.io/v1": {"priorityclasses": "1QwjyaZjj3Y="},
          "/apis/node.k8s.io/v1": {"runtimeclasses": "WQTu1GL3T2Q="},
          "/apis/apiregistration.k8s.io/v1": {"apiservices": "InPBPD7+PqM="},
          "/apis/events.k8s.io/v1": {"events": "r2yiGXH7wu8="},  # they are stored as v1
          "/apis/rbac.authorization.k8s.io/v1": {"roles": "7FuwZcIIItM=", "clusterroles": "bYE5ZWDrJ44=", "rolebindings": "eGsCzGH6b1g=",
                                                 "clusterrolebindings": "48tpQ8gZHFc="}}


def test_resources_have_the_names_and_storage_hashes_of_kubernetes(api):
    for path, hashes in HASHES.items():
        resources = {resource["name"]: resource for resource in api.ask("GET", path).json["resources"]}
        assert {name: resources[name]["storageVersionHash"] for name in hashes} == hashes
        assert all("storageVersionHash" not in resource for name, resource in resources.items() if "/" in name)
    core = {resource["name"]: resource for resource in api.ask("GET", "/api/v1").json["resources"]}
    short = {"configmaps": ["cm"], "events": ["ev"], "limitranges": ["limits"], "namespaces": ["ns"], "resourcequotas": ["quota"], "secrets": None,
             "serviceaccounts": ["sa"]}
    assert {name: core[name].get("shortNames") for name in short} == short
    assert core["configmaps"]["singularName"] == "configmap"
    services = api.ask("GET", "/apis/apiregistration.k8s.io/v1").json["resources"][0]
    assert services["categories"] == ["api-extensions"] and services["singularName"] == "apiservice"
    assert api.ask("GET", "/apis/scheduling.k8s.io/v1").json["resources"][0]["shortNames"] == ["pc"]


def aggregated(version):
    return f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_says_what_the_documents_say(api, version):
    reply = api.ask("GET", "/apis", accept=aggregated(version) + ",application/json")
    assert reply.code == 200 and reply.headers["content-type"] == aggregated(version)
    assert reply.headers["vary"] == "Accept" and reply.headers["cache-control"] == "public"
    document = reply.json
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", f"apidiscovery.k8s.io/{version}")
    groups = api.ask("GET", "/apis").json["groups"]
    assert [item["metadata"]["name"] for item in document["items"]] == [group["name"] for group in groups]
    # In kube-apiserver's order.
    assert [group["name"] for group in groups] == [
        "apiregistration.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
        "coordination.k8s.io", "node.k8s.io", "flowcontrol.apiserver.k8s.io", "tenancy.holdfast.dev"]
    core = api.ask("GET", "/api", accept=aggregated(version)).json["items"]
    assert len(core) == 1 and "name" not in core[0]["metadata"]
    for item, prefix in [(core[0], "/api"), *((item, "/apis/" + item["metadata"]["name"]) for item in document["items"])]:
        for one in item["versions"]:
            assert one["freshness"] == "Current"
            expected = {r["name"]: r for r in api.ask("GET", f"{prefix}/{one['version']}").json["resources"]}
            found = {}
            for resource in one["resources"]:
                found[resource["resource"]] = resource
                found.update({f"{resource['resource']}/{sub['subresource']}": sub for sub in resource.get("subresources", [])})
            assert set(found) == set(expected)
            for name, resource in found.items():
                assert resource["verbs"] == expected[name]["verbs"]
                other = expected[name]  # the kind of a subresource may be one of another group
                assert resource["responseKind"] == {"group": other.get("group", ""), "version": other.get("version", ""), "kind": other["kind"]}
                if "/" not in name:
                    assert resource["scope"] == ("Namespaced" if expected[name]["namespaced"] else "Cluster")
                    assert resource["singularResource"] == expected[name]["singularName"]
                    assert resource.get("shortNames") == expected[name].get("shortNames")
                    assert resource.get("categories") == expected[name].get("categories")


def test_aggregated_discovery_is_cached_by_its_etag(api):
    first = api.ask("GET", "/apis", accept=aggregated("v2"))
    assert first.headers["etag"].strip('"') and first.headers["etag"][0] == first.headers["etag"][-1] == '"'
    assert api.ask("GET", "/api", accept=aggregated("v2")).headers["etag"] != first.headers["etag"]
    again = api.ask("GET", "/apis", accept=aggregated("v2"), if_none_match=first.headers["etag"])
    assert (again.code, again.bytes, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert api.ask("GET", "/apis", accept=aggregated("v2"), if_none_match='"other"').code == 200
    # Other documents, and other forms of this one, are sent whole.
    for accept in ("application/json", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json"):
        plain = api.ask("GET", "/apis", accept=accept, if_none_match=first.headers["etag"])
        assert plain.code == 200 and plain.json["kind"] == "APIGroupList"
    assert api.ask("GET", "/apis/coordination.k8s.io", accept=aggregated("v2") + ",application/json").json["kind"] == "APIGroup"
    assert api.ask("GET", "/apis", accept="text/html").code == 406


def test_kubectl_lists_the_resources_from_aggregated_discovery(api):
    done = api.kubectl("api-resources", "--no-headers")
    assert done.returncode == 0, done.stderr
    names = {line.split()[0] for line in done.stdout.splitlines()}
    assert {"configmaps", "leases", "workspaces", "clusterroles"} <= names
    assert "1.36" in api.kubectl("version").stdout
