# SPDX-License-Identifier: Apache-2.0
"""kubectl explains kinds, and validates objects, by the OpenAPI documents that the server makes from its schemas."""
import json

import pytest

KINDS = ["configmaps", "events", "namespaces", "secrets", "serviceaccounts", "leases", "leasecandidates", "clusterrolebindings", "clusterroles",
         "rolebindings", "roles", "workspaces", "limitranges", "podtemplates", "resourcequotas", "priorityclasses", "runtimeclasses", "apiservices",
         "flowschemas", "prioritylevelconfigurations", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
         "certificatesigningrequests", "customresourcedefinitions", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
         "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "events --api-version=events.k8s.io/v1",
         "selfsubjectreviews", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews",
         "selfsubjectrulesreviews", "componentstatuses"]


def as_json(body):
    return json.loads(body) if isinstance(body, (str, bytes)) else body


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_explained(pair, kubectl, kind):
    said = kubectl("explain", *kind.split(), "--recursive").stdout
    assert "apiVersion\t<string>" in said and "metadata\t<Object" in said, said
    assert "ownerReferences" in said and "uid\t<string>" in said, said


def test_fields_are_explained_in_depth(pair, kubectl):
    assert "How long others wait after renewTime" in kubectl("explain", "lease.spec.leaseDurationSeconds").stdout
    assert "Requirements, all of which must be met." in kubectl("explain", "clusterrole.aggregationRule.clusterRoleSelectors").stdout
    done = kubectl("explain", "configmap.nothing", check=False)
    assert done.returncode != 0 and 'field "nothing" does not exist' in done.stderr, done.stderr


def test_the_documents_are_complete(pair):
    """Each reference has its definition, in v2 and in the documents of v3, and each kind can be found by its group, version and kind."""
    def references(value):
        if isinstance(value, dict):
            yield from (value[k] for k in value if k == "$ref" and isinstance(value[k], str))
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from references(item)

    def kinds(definitions):
        return {(k["group"], k["version"], k["kind"]) for d in definitions.values() for k in d.get("x-kubernetes-group-version-kind", [])}

    code, v2 = pair.a.request("GET", "/openapi/v2")
    assert code == 200
    v2 = as_json(v2)
    assert {r.removeprefix("#/definitions/") for r in references(v2)} <= set(v2["definitions"])
    lists = {(group, version, kind) for group, version, kind in kinds(v2["definitions"]) if kind.endswith("List")}
    others = {("authentication.k8s.io", "v1", "TokenRequest"), ("", "v1", "Status"), ("", "v1", "DeleteOptions"), ("", "v1", "WatchEvent")}
    reviews = {kind for kind in KINDS if kind.endswith("reviews")}
    assert others <= kinds(v2["definitions"]) and len(lists) == len(KINDS) - len(reviews)
    assert len(kinds(v2["definitions"]) - others - lists) == len(KINDS)
    found = set()
    for document in as_json(pair.a.request("GET", "/openapi/v3")[1])["paths"].values():
        code, v3 = pair.a.request("GET", document["serverRelativeURL"])
        assert code == 200
        v3 = as_json(v3)
        assert {r.removeprefix("#/components/schemas/") for r in references(v3)} <= set(v3["components"]["schemas"])
        found |= kinds(v3["components"]["schemas"])
    assert found == kinds(v2["definitions"])
