# SPDX-License-Identifier: Apache-2.0
"""Documents that clients read before objects: the version, the list of paths, discovery, OpenAPI. They are as kube-apiserver 1.36 serves them."""
import gzip

import openapi_message
import pytest
from memory_server import MemoryServer
from openapi_message import media_type


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
    for path in ("/api", "/api/v1", "/apis", "/apis/coordination.k8s.io/v1", "/healthz", "/livez", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3",
                 "/readyz", "/version"):
        assert path in paths
    for path in paths:
        assert api.ask("GET", path).code == 200, path
    assert api.ask("POST", "/", {}).code == 405
    assert api.ask("GET", "//").code == 400


def test_the_client_chooses_the_form_of_openapi(api):
    """The format is chosen as in kube-apiserver: by quality values, JSON for wildcards. Both media types of protobuf give the newer one."""
    for path, version in (("/openapi/v3/api/v1", 3), ("/openapi/v2", 2)):
        new, old, json_ = media_type(version), media_type(version, older=True), "application/json"
        for accept, expected in ((None, json_), ("*/*", json_), ("application/*", json_), (json_, json_), (new, new), (old, new),
                                 (f"{json_}, {new}", json_), (f"{new}, {json_}", new), (f"{json_};q=0.5, {old}", new), (f"{new};q=0.4, {json_};q=0.9", json_),
                                 (f"text/html, {new}", new), (f"{media_type(5 - version)}, {json_}", json_), ("*/*", json_)):
            reply = api.ask("GET", path, accept=accept)
            assert (reply.code, reply.headers["content-type"]) == (200, expected), accept
            assert reply.headers["vary"].startswith("Accept,")
        for accept in ("text/html", "application/yaml", media_type(5 - version), "application/com.github.proto-openapi.spec.v3+protobuf"):
            refused = api.ask("GET", path, accept=accept)
            assert (refused.code, refused.bytes, refused.headers["vary"]) == (406, b"", "Accept"), accept
    # The index is always JSON.
    for accept in (media_type(3), "text/html", None):
        reply = api.ask("GET", "/openapi/v3", accept=accept)
        assert (reply.code, reply.headers["content-type"]) == (200, "application/json")


def test_both_forms_of_openapi_are_one_document(api):
    v2 = api.ask("GET", "/openapi/v2")
    assert openapi_message.decode(openapi_message.V2, api.ask("GET", "/openapi/v2", accept=media_type(2)).bytes) == v2.json
    paths = api.ask("GET", "/openapi/v3").json["paths"]
    assert len(paths) > 10
    for document in paths.values():
        form = api.ask("GET", document["serverRelativeURL"])
        message = api.ask("GET", document["serverRelativeURL"], accept=media_type(3))
        assert (message.code, message.headers["content-type"]) == (200, media_type(3))
        assert message.headers["etag"] == form.headers["etag"] and message.headers["cache-control"] == form.headers["cache-control"]
        assert "immutable" in message.headers["cache-control"]
        assert openapi_message.decode(openapi_message.V3, message.bytes) == form.json


def references(value):
    """Returns the definitions that a part of a document refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[1]
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        yield from references(item)


META = "io.k8s.apimachinery.pkg.apis.meta.v1."
CONFIG_MAP = "io.k8s.api.core.v1.ConfigMap"
# What each operation of kube-apiserver takes and returns: {(path, method): (the body, whether it is required, the types that 200, 201 and 202 return)}.
BODIES = {("", "get"): (None, None, {"200": CONFIG_MAP + "List"}),
          ("", "post"): (CONFIG_MAP, True, {"200": CONFIG_MAP, "201": CONFIG_MAP, "202": CONFIG_MAP}),
          ("", "delete"): (META + "DeleteOptions", None, {"200": META + "Status"}),
          ("/{name}", "get"): (None, None, {"200": CONFIG_MAP}),
          ("/{name}", "put"): (CONFIG_MAP, True, {"200": CONFIG_MAP, "201": CONFIG_MAP}),
          ("/{name}", "patch"): (META + "Patch", True, {"200": CONFIG_MAP, "201": CONFIG_MAP}),
          ("/{name}", "delete"): (META + "DeleteOptions", None, {"200": META + "Status", "202": META + "Status"})}
JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"


def test_operations_have_bodies_and_responses(api):
    v2, v3 = api.ask("GET", "/openapi/v2").json["paths"], api.ask("GET", "/openapi/v3/api/v1").json["paths"]
    for (path, method), (body, required, returned) in BODIES.items():
        path = "/api/v1/namespaces/{namespace}/configmaps" + path
        operation = v3[path][method]
        sent = operation.get("requestBody", {})
        assert (set(references(sent)), sent.get("required")) == ({body} - {None}, required), (path, method)
        responses = dict(operation["responses"])
        assert responses.pop("401") == {"description": "Unauthorized"}
        assert {code: set(references({k: v for k, v in r["content"].items() if "watch" not in k})) for code, r in responses.items()} == {
            code: {name} for code, name in returned.items()}
        assert [r["description"] for r in responses.values()] == ["OK", "Created", "Accepted"][:len(responses)] or method == "delete"
        if body and method != "patch":
            assert list(sent["content"]) == [JSON, "application/yaml", PROTOBUF]
        operation = v2[path][method]
        sent = [parameter for parameter in operation["parameters"] if parameter["in"] == "body"] if "parameters" in operation else []
        assert [(set(references(parameter)), parameter.get("required")) for parameter in sent] == ([({body}, required)] if body else [])
        assert {code: set(references(r)) for code, r in operation["responses"].items()} == {**{code: {n} for code, n in returned.items()}, "401": set()}
        assert operation["produces"] == [JSON, PROTOBUF] and (not body or operation["consumes"])
    listed = v3["/api/v1/namespaces/{namespace}/configmaps"]["get"]["responses"]["200"]["content"]
    assert set(references(listed[JSON + ";stream=watch"])) == {META + "WatchEvent"} and PROTOBUF + ";stream=watch" in listed


def test_objects_of_all_namespaces_have_a_path(api):
    for document in (api.ask("GET", "/openapi/v2").json, api.ask("GET", "/openapi/v3/api/v1").json):
        everywhere, one = document["paths"]["/api/v1/configmaps"], document["paths"]["/api/v1/namespaces/{namespace}/configmaps"]
        assert set(everywhere) == {"get"}
        assert {k: v for k, v in everywhere["get"].items() if k != "operationId"} == {k: v for k, v in one["get"].items() if k != "operationId"}
        assert set(document["paths"]["/api/v1/namespaces"]) == {"get", "post"}  # Namespaces are cluster-scoped, so there is one path only


def test_the_server_does_what_the_operations_say(api):
    """Each content type of a body is read, and each type of a response is sent."""
    paths = api.ask("GET", "/openapi/v3/api/v1").json["paths"]
    where = "/api/v1/namespaces/{namespace}/configmaps"
    for sent in paths[where]["post"]["requestBody"]["content"]:
        assert api.ask("POST", where.replace("{namespace}", "default"), b"\0", content_type=sent).code == 400, sent
    for sent in paths[where + "/{name}"]["patch"]["requestBody"]["content"]:
        assert api.ask("PATCH", where.replace("{namespace}", "default") + "/x", b"\0", content_type=sent).code in (400, 404), sent
    for accepted in paths[where]["get"]["responses"]["200"]["content"]:
        query = "?watch=1&timeoutSeconds=1" if "watch" in accepted else ""
        assert api.ask("GET", where.replace("{namespace}", "default") + query, accept=accepted).code == 200, accepted


def test_the_parameters_are_those_of_the_operation(api):
    paths = api.ask("GET", "/openapi/v3/api/v1").json["paths"]
    where = "/api/v1/namespaces/{namespace}/configmaps"

    def names(path, method):
        return {parameter["name"] for parameter in paths[path][method].get("parameters", [])}

    many = {"continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds"}
    deletes = {"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}
    writes = {"dryRun", "fieldManager", "fieldValidation"}
    assert names(where, "get") == many | {"watch", "allowWatchBookmarks"}
    assert names(where, "post") == names(where + "/{name}", "put") == writes
    assert names(where, "delete") == many | deletes and names(where + "/{name}", "delete") == deletes
    assert names(where + "/{name}", "patch") == writes | {"force"} and names(where + "/{name}", "get") == set()


def test_openapi_v2_has_all_kinds(api):
    reply = api.ask("GET", "/openapi/v2")
    assert reply.code == 200 and reply.headers["content-type"] == "application/json"
    assert reply.json["swagger"] == "2.0"
    kinds = {(k["group"], k["version"], k["kind"]) for d in reply.json["definitions"].values()
             for k in d.get("x-kubernetes-group-version-kind", [])}
    assert ("", "v1", "ConfigMap") in kinds and ("coordination.k8s.io", "v1", "Lease") in kinds
    patch = reply.json["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "ConfigMap", "version": "v1"}
    assert "dryRun" in [parameter["name"] for parameter in patch["parameters"]]


EXPECTED_IDS = {
    ("get", "/api/v1/configmaps"): "listCoreV1ConfigMapForAllNamespaces",
    ("get", "/api/v1/namespaces/{namespace}/configmaps"): "listCoreV1NamespacedConfigMap",
    ("delete", "/api/v1/namespaces/{namespace}/configmaps"): "deleteCoreV1CollectionNamespacedConfigMap",
    ("get", "/api/v1/namespaces/{namespace}/configmaps/{name}"): "readCoreV1NamespacedConfigMap",
    ("put", "/api/v1/namespaces/{name}/finalize"): "replaceCoreV1NamespaceFinalize",
    ("post", "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"): "createCoreV1NamespacedServiceAccountToken",
    ("patch", "/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval"): "patchCertificatesV1CertificateSigningRequestApproval",
    ("delete", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"): "deleteFlowcontrolApiserverV1CollectionFlowSchema",
    ("put", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces/{name}/status"): "replaceTenancyHoldfastDevV1alpha1WorkspaceStatus",
    ("post", "/apis/authorization.k8s.io/v1/subjectaccessreviews"): "createAuthorizationV1SubjectAccessReview",
}


def operations(document, path):
    """Returns the operations of a path, each with its kind."""
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


def test_operations_have_the_ids_of_kubernetes(api):
    ids = {(method, path): operation["operationId"] for path, each in api.ask("GET", "/openapi/v2").json["paths"].items()
           for method, operation in each.items() if method != "parameters"}
    assert {key: ids[key] for key in EXPECTED_IDS} == EXPECTED_IDS
    assert len(ids) == len(set(ids.values()))


def test_openapi_is_kept_by_its_etag_and_compressed(api):
    etags = []
    for path, accept in (("/openapi/v3", None), ("/openapi/v3/api/v1", None), ("/openapi/v3/api/v1", media_type(3)), ("/openapi/v2", None),
                         ("/openapi/v2", media_type(2))):
        first = api.ask("GET", path, accept=accept)
        assert first.code == 200 and "content-encoding" not in first.headers
        etags.append(first.headers["etag"])
        packed = api.ask("GET", path, accept=accept, accept_encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.bytes) == first.bytes
        assert packed.headers["etag"] == first.headers["etag"] and "Accept-Encoding" in packed.headers["vary"]
        again = api.ask("GET", path, accept=accept)
        assert (again.code, again.bytes) == (200, first.bytes)
        again = api.ask("GET", path, accept=accept, if_none_match=first.headers["etag"])
        assert (again.code, again.bytes) == (304, b"")
        head = api.ask("HEAD", path, accept=accept)
        assert (head.code, head.bytes, head.headers["etag"]) == (200, b"", first.headers["etag"])
    # As in kube-apiserver, all formats of a document have the same ETag, and Vary names Accept.
    assert len(set(etags)) == 3 and etags[1] == etags[2] and etags[3] == etags[4]
    # The URL in the index contains the hash of the document, so caches may keep it. A URL with another hash redirects to that one.
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


# storageVersionHash values of a kube-apiserver: the beginning of the SHA-256 of group/version/kind.
HASHES = {"/api/v1": {"configmaps": "qFsyl6wFWjQ=", "namespaces": "Q3oi5N2YM8M=", "secrets": "S6u1pOWzb84=", "serviceaccounts": "pbx9ZvyFpBE=",
                      "events": "r2yiGXH7wu8=", "limitranges": "EBKMFVe6cwo=", "podtemplates": "LIXB2x4IFpk=", "resourcequotas": "8uhSgffRX6w="},
          "/apis/certificates.k8s.io/v1": {"certificatesigningrequests": "95fRKMXA+00="},
          "/apis/coordination.k8s.io/v1": {"leases": "gqkMMb/YqFM="},
          "/apis/scheduling.k8s.io/v1": {"priorityclasses": "1QwjyaZjj3Y="},
          "/apis/node.k8s.io/v1": {"runtimeclasses": "WQTu1GL3T2Q="},
          "/apis/apiregistration.k8s.io/v1": {"apiservices": "InPBPD7+PqM="},
          "/apis/events.k8s.io/v1": {"events": "r2yiGXH7wu8="},  # both versions are stored as v1
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
    # The groups are in kube-apiserver's order.
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
                other = expected[name]  # the kind of a subresource may belong to another group
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
    # An ETag does not match other documents or other formats of this one: these are sent whole.
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
