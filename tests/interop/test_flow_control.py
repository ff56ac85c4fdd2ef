# SPDX-License-Identifier: Apache-2.0
"""Priority and fairness: the objects that every server has, how the server restores them, what users may write, and the headers that name them."""
import http.client

import pytest
from holdfastd import wait_until
from kube_protobuf import decode_answer, pruned
from memory_server import MemoryServer

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = GROUP + "/flowschemas", GROUP + "/prioritylevelconfigurations"
AUTO = "apf.kubernetes.io/autoupdate-spec"
SCHEMA_NAMES = ["catch-all", "exempt", "global-default", "holdfast-leases", "kube-controller-manager", "kube-scheduler", "kube-system-service-accounts", "probes",
                "service-accounts", "system-leader-election", "system-node-high", "system-nodes"]
LEVEL_NAMES = ["catch-all", "exempt", "global-default", "holdfast-leases", "leader-election", "node-high", "system", "workload-high", "workload-low"]


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        wait_until("the objects that every server has", lambda: names(server, SCHEMAS) == SCHEMA_NAMES and names(server, LEVELS) == LEVEL_NAMES)
        yield server


def names(api, path):
    return [item["metadata"]["name"] for item in api.ask("GET", path).json["items"]]


def get(api, path):
    reply = api.ask("GET", path)
    assert reply.code == 200, reply.text
    return reply.json


def patch(api, path, body):
    return api.ask("PATCH", path, body, content_type="application/merge-patch+json")


def schema(name, level="global-default", **spec):
    rule = {"subjects": [{"kind": "User", "user": {"name": "joe"}}], "resourceRules": [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["default"]}]}
    return {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}, "rules": [rule], **spec}}


def level(name, **limited):
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}, **limited}}}


def condition(api, name):
    found = get(api, f"{SCHEMAS}/{name}").get("status", {}).get("conditions", [])
    return {key: found[0][key] for key in ("type", "status", "reason", "message")} if found else None


def test_kubectl_shows_the_objects(api):
    wait_until("the conditions", lambda: all(condition(api, name) for name in SCHEMA_NAMES))
    lines = [line.split() for line in api.kubectl("get", "flowschemas").stdout.splitlines()]
    assert lines[0] == ["NAME", "PRIORITYLEVEL", "MATCHINGPRECEDENCE", "DISTINGUISHERMETHOD", "AGE", "MISSINGPL"]
    rows = {line[0]: line[1:4] + line[5:] for line in lines[1:]}
    assert rows["exempt"] == ["exempt", "1", "<none>", "False"]
    assert rows["service-accounts"] == ["workload-low", "9000", "ByUser", "False"]
    assert rows["kube-scheduler"] == ["workload-high", "800", "ByNamespace", "False"]
    lines = [line.split() for line in api.kubectl("get", "prioritylevelconfigurations").stdout.splitlines()]
    assert lines[0] == ["NAME", "TYPE", "NOMINALCONCURRENCYSHARES", "QUEUES", "HANDSIZE", "QUEUELENGTHLIMIT", "AGE"]
    rows = {line[0]: line[1:6] for line in lines[1:]}
    assert rows == {"catch-all": ["Limited", "5", "<none>", "<none>", "<none>"], "exempt": ["Exempt"] + ["<none>"] * 4,
                    "global-default": ["Limited", "20", "128", "6", "50"],
                    "holdfast-leases": ["Limited", "10", "128", "6", "50"], "leader-election": ["Limited", "10", "16", "4", "50"],
                    "node-high": ["Limited", "40", "64", "6", "50"], "system": ["Limited", "30", "64", "6", "50"],
                    "workload-high": ["Limited", "40", "128", "6", "50"], "workload-low": ["Limited", "100", "128", "6", "50"]}
    said = api.kubectl("describe", "flowschema", "system-leader-election")
    assert said.returncode == 0 and "leader-election" in said.stdout, said.stderr


def test_discovery(api):
    resources = {resource["name"]: resource for resource in get(api, GROUP)["resources"]}
    assert set(resources) == {"flowschemas", "flowschemas/status", "prioritylevelconfigurations", "prioritylevelconfigurations/status"}
    assert resources["flowschemas"]["storageVersionHash"] == "GJVAJZSZBIw="
    assert resources["prioritylevelconfigurations"]["storageVersionHash"] == "Kir5PVfvNeI="
    assert not resources["flowschemas"]["namespaced"] and "shortNames" not in resources["flowschemas"]


def test_what_the_server_keeps(api):
    """Mandatory objects are restored. The suggested ones belong to the user once the annotation says so. Unknown objects that carry the server's annotation are deleted."""
    for path in (f"{SCHEMAS}/catch-all", f"{LEVELS}/system"):
        uid = get(api, path)["metadata"]["uid"]
        assert api.ask("DELETE", path).code == 200
        wait_until("it to be made again", lambda: api.ask("GET", path).json.get("metadata", {}).get("uid") not in (None, uid))
    path = f"{LEVELS}/workload-low"
    changed = {"spec": {"limited": {"nominalConcurrencyShares": 77}}}
    shares = lambda: get(api, path)["spec"]["limited"]["nominalConcurrencyShares"]  # noqa: E731
    assert patch(api, path, changed).code == 200
    wait_until("the suggestion to be restored", lambda: shares() == 100)
    assert patch(api, path, {"metadata": {"annotations": {AUTO: "false"}}, **changed}).code == 200
    assert api.ask("POST", SCHEMAS, {**schema("left-over"), "metadata": {"name": "left-over", "annotations": {AUTO: "true"}}}).code == 201
    wait_until("the left-over to be deleted", lambda: "left-over" not in names(api, SCHEMAS))
    assert shares() == 77
    assert patch(api, path, {"metadata": {"annotations": {AUTO: "true"}}}).code == 200
    wait_until("the suggestion to be restored", lambda: shares() == 100)
    assert patch(api, f"{LEVELS}/exempt", {"spec": {"exempt": {"lendablePercent": 50}}}).code == 200
    refused = patch(api, f"{SCHEMAS}/exempt", {"spec": {"matchingPrecedence": 2}})
    assert refused.code == 422 and "spec of 'exempt' must equal the fixed value" in refused.json["message"]
    refused = patch(api, f"{LEVELS}/catch-all", {"spec": {"limited": {"nominalConcurrencyShares": 6}}})
    assert refused.code == 422 and "spec of 'catch-all' must equal the fixed value" in refused.json["message"]
    assert get(api, f"{LEVELS}/exempt")["spec"]["exempt"]["lendablePercent"] == 50


def test_dangling_schemas_are_marked(api):
    made = api.ask("POST", SCHEMAS, schema("mine", "mine"))
    assert made.code == 201 and made.json["spec"]["matchingPrecedence"] == 1000 and made.json["metadata"]["generation"] == 1, made.text
    says = 'This FlowSchema references the PriorityLevelConfiguration object named "mine" '
    wait_until("the condition", lambda: condition(api, "mine") == {
        "type": "Dangling", "status": "True", "reason": "NotFound", "message": says + "but there is no such object"})
    made = api.ask("POST", LEVELS, level("mine"))
    assert made.code == 201 and made.json["spec"]["limited"] == {
        "nominalConcurrencyShares": 30, "lendablePercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}}
    wait_until("the condition", lambda: condition(api, "mine") == {
        "type": "Dangling", "status": "False", "reason": "Found", "message": says + "and it exists"})
    assert get(api, f"{SCHEMAS}/mine")["metadata"]["generation"] == 1
    assert api.ask("DELETE", f"{LEVELS}/mine").code == 200
    wait_until("the condition", lambda: condition(api, "mine")["status"] == "True")
    assert api.ask("DELETE", f"{SCHEMAS}/mine").code == 200


def uids(reply):
    return [reply.headers.get(f"x-kubernetes-pf-{name}-uid") for name in ("flowschema", "prioritylevel")]


def test_responses_name_the_schema_and_the_level(api):
    def of(schema_name, level_name):
        return [get(api, f"{path}/{name}")["metadata"]["uid"] for path, name in ((SCHEMAS, schema_name), (LEVELS, level_name))]

    configmaps = "/api/v1/namespaces/default/configmaps"
    joe = {"Impersonate-User": "joe"}
    assert uids(api.ask("GET", configmaps)) == of("exempt", "exempt")
    assert uids(api.ask("GET", configmaps + "/nothing")) == of("exempt", "exempt")
    refused = api.ask("GET", configmaps, **joe)
    assert refused.code == 403 and uids(refused) == of("global-default", "global-default")
    assert uids(api.ask("GET", "/readyz", **joe)) == of("probes", "exempt")
    assert api.ask("POST", LEVELS, level("mine")).code == 201
    assert api.ask("POST", SCHEMAS, schema("mine", "mine", matchingPrecedence=5)).code == 201
    wait_until("the schema to match", lambda: uids(api.ask("GET", configmaps + "/x", **joe)) == of("mine", "mine"))
    assert uids(api.ask("GET", configmaps, **joe)) == of("global-default", "global-default")  # the request is a list, and the rule matches only get
    assert api.ask("DELETE", f"{SCHEMAS}/mine").code == 200
    wait_until("the schema to match no more", lambda: uids(api.ask("GET", configmaps + "/x", **joe)) == of("global-default", "global-default"))
    assert api.ask("DELETE", f"{LEVELS}/mine").code == 200


def test_a_connection_follows_changes_of_schemas_and_users(api):
    """A connection remembers the schema of its last request. It forgets it when the schemas change, and does not use it for another user."""
    connection = http.client.HTTPSConnection(api.address, timeout=30, context=api.context)
    path = "/api/v1/namespaces/default/configmaps/"

    def ask(name, user=None):
        connection.request("GET", path + name, headers={"Impersonate-User": user} if user else {})
        reply = connection.getresponse()
        reply.read()
        return uids(reply)

    def follows(expected):
        return all(ask(name, user) == uids(api.ask("GET", path + name, **({"Impersonate-User": user} if user else {})))
                   for name, user in (("a", "joe"), ("b", "joe"), ("c", "ann"), ("d", None), ("e", "joe"))) and ask("f", "joe")[0] == expected

    default = get(api, f"{SCHEMAS}/global-default")["metadata"]["uid"]
    assert follows(default)
    made = api.ask("POST", SCHEMAS, schema("mine", matchingPrecedence=5))
    assert made.code == 201
    wait_until("the schema to match", lambda: follows(made.json["metadata"]["uid"]))
    assert api.ask("DELETE", f"{SCHEMAS}/mine").code == 200
    wait_until("the schema to match no more", lambda: follows(default))
    connection.close()


def causes(api, path, body):
    reply = api.ask("POST", path, body)
    assert reply.code == 422, reply.text
    return [(cause["field"], cause["message"]) for cause in reply.json["details"]["causes"]]


def test_schemas_are_validated_in_the_words_of_kubernetes(api):
    spec = schema("bad", "Bad_Name", matchingPrecedence=10001, distinguisherMethod={"type": "ByTime"})
    found = causes(api, SCHEMAS, spec)
    assert found[0] == ("spec.matchingPrecedence", "Invalid value: 10001: must not be greater than 10000")
    assert found[1] == ("spec.distinguisherMethod.type", 'Unsupported value: {"Type":"ByTime"}: supported values: "ByNamespace", "ByUser"')
    assert found[2][0] == "spec.priorityLevelConfiguration.name" and found[2][1].startswith('Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain')
    assert causes(api, SCHEMAS, schema("bad", "", matchingPrecedence=1)) == [
        ("spec.matchingPrecedence", "Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"),
        ("spec.priorityLevelConfiguration.name", "Required value: must reference a priority level")]
    assert causes(api, SCHEMAS, schema("bad", matchingPrecedence=-1, rules=[{"subjects": []}])) == [
        ("spec.matchingPrecedence", "Invalid value: -1: must be a positive value"),
        ("spec.rules[0].subjects", "Required value: subjects must contain at least one value"),
        ("spec.rules[0]", "Required value: at least one of resourceRules and nonResourceRules has to be non-empty")]
    subjects = [{"kind": "User", "group": {"name": "g"}}, {"kind": "Group", "group": {"name": ""}},
                {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": ""}}, {"kind": "Robot"}]
    rule = {"subjects": subjects, "nonResourceRules": [{"verbs": ["get", "*"], "nonResourceURLs": ["x", "/a//b", "/a*", "/a/*", "/"]}]}
    at = "spec.rules[0]."
    assert causes(api, SCHEMAS, schema("bad", rules=[rule])) == [
        (at + "subjects[0].user", "Required value: user is required when subject kind is 'User'"),
        (at + "subjects[0].group", "Forbidden: group is forbidden when subject kind is not 'Group'"),
        (at + "subjects[1].group.name", "Required value"),
        (at + "subjects[2].serviceAccount.namespace", "Required value: must specify namespace for service account"),
        (at + "subjects[3].kind", 'Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"'),
        (at + "nonResourceRules[0].verbs", 'Invalid value: ["get","*"]: if \'*\' is present, must not specify other verbs'),
        (at + "nonResourceRules[0].nonResourceURLs[0]", 'Invalid value: "x": must start with slash'),
        (at + "nonResourceRules[0].nonResourceURLs[1]", 'Invalid value: "/a//b": must not contain double slash'),
        (at + "nonResourceRules[0].nonResourceURLs[2]", 'Invalid value: "/a*": wildcard can only do suffix matching')]
    rule = {"subjects": [{"kind": "User", "user": {"name": "*"}}],
            "resourceRules": [{"verbs": ["get", "fly"], "apiGroups": ["*", ""], "resources": [], "namespaces": ["A"]},
                              {"verbs": [], "apiGroups": ["*"], "resources": ["*"]}]}
    found = causes(api, SCHEMAS, schema("bad", rules=[rule]))
    assert found[:3] == [
        (at + "resourceRules[0].verbs", 'Unsupported value: ["get","fly"]: supported values: "create", "delete", "deletecollection", "get", "list", '
                                        '"patch", "proxy", "update", "watch"'),
        (at + "resourceRules[0].apiGroups", 'Invalid value: ["*",""]: if \'*\' is present, must not specify other api groups'),
        (at + "resourceRules[0].resources", "Required value: resource rules must supply at least one resource")]
    assert found[3][0] == at + "resourceRules[0].namespaces[0]"
    assert found[3][1].startswith("Invalid value: \"A\": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label")
    assert found[4:] == [
        (at + "resourceRules[1].verbs", "Required value: verbs must contain at least one value"),
        (at + "resourceRules[1].namespaces", "Required value: resource rules that are not cluster scoped must supply at least one namespace")]


def test_levels_are_validated_in_the_words_of_kubernetes(api):
    queuing = "spec.limited.limitResponse.queuing"
    for body, expected in [
            ({"spec": {"type": "Exempt"}}, [("spec.type", "Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'")]),
            ({"spec": {"type": "Some"}}, [("spec.type", 'Unsupported value: "Some": supported values: "Exempt", "Limited"')]),
            ({"spec": {"type": "Limited"}}, [("spec.limited", "Required value: must not be empty when type is Limited")]),
            ({"spec": {"type": "Limited", "exempt": {}, "limited": {"nominalConcurrencyShares": -1, "lendablePercent": 101, "borrowingLimitPercent": -1,
                                                                    "limitResponse": {"type": "Reject", "queuing": {}}}}},
             [("spec.exempt", "Forbidden: must be nil if the type is Limited"),
              ("spec.limited.nominalConcurrencyShares", "Invalid value: -1: must be a non-negative integer"),
              (queuing, "Forbidden: must be nil if limited.limitResponse.type is not Limited"),
              ("spec.limited.lendablePercent", "Invalid value: 101: must be between 0 and 100, inclusive"),
              ("spec.limited.borrowingLimitPercent", "Invalid value: -1: if specified, must be a non-negative integer")]),
            ({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}},
             [(queuing, "Required value: must not be empty if limited.limitResponse.type is Limited")]),
            ({"spec": {"type": "Limited", "limited": {}}},
             [("spec.limited.limitResponse.type", 'Unsupported value: "": supported values: "Queue", "Reject"')]),
            (level("bad", limitResponse={"type": "Queue", "queuing": {"queues": 4, "handSize": 5, "queueLengthLimit": -1}}),
             [(queuing + ".queueLengthLimit", "Invalid value: -1: must be positive"),
              (queuing + ".handSize", "Invalid value: 5: should not be greater than queues (4)")]),
            (level("bad", limitResponse={"type": "Queue", "queuing": {"queues": 10000001, "handSize": -1}}),
             [(queuing + ".queues", "Invalid value: 10000001: must not be greater than 10000000"),
              (queuing + ".handSize", "Invalid value: -1: must be positive")]),
            (level("bad", limitResponse={"type": "Queue", "queuing": {"queues": 512, "handSize": 8}}),
             [(queuing + ".handSize", "Invalid value: 8: required entropy bits of deckSize 512 and handSize 8 should not be greater than 60")])]:
        assert causes(api, LEVELS, {"metadata": {"name": "bad"}, **body}) == expected
    old = {**level("bad"), "metadata": {"name": "bad", "annotations": {"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": "true"}}}
    assert causes(api, LEVELS, old) == [("metadata.annotations", "Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' "
                                                                 "is forbidden")]


def test_protobuf_says_the_same(api):
    wait_until("the conditions", lambda: all(condition(api, name) for name in SCHEMA_NAMES))
    for path, of in ((SCHEMAS, SCHEMA_NAMES), (LEVELS, LEVEL_NAMES)):
        for name in of:
            reply = api.ask("GET", f"{path}/{name}", accept="application/vnd.kubernetes.protobuf")
            assert reply.code == 200 and reply.bytes[:4] == b"k8s\0", name
            said, wanted = decode_answer(reply.bytes), get(api, f"{path}/{name}")
            for part in ("spec", "status"):
                assert pruned(said[part]) == pruned(wanted.get(part, {})), (name, part)


def test_status_is_a_subresource_of_its_own(api):
    """A write of .../status leaves the spec and the metadata alone."""
    assert api.ask("POST", LEVELS, level("mine")).code == 201
    path = f"{LEVELS}/mine"
    body = {"metadata": {"labels": {"a": "b"}}, "spec": {"limited": {"nominalConcurrencyShares": 1}}, "status": {"conditions": [{"type": "T", "status": "True"}]}}
    reply = patch(api, path + "/status", body)
    assert reply.code == 200 and "labels" not in reply.json["metadata"] and reply.json["spec"]["limited"]["nominalConcurrencyShares"] == 30
    assert [c["type"] for c in reply.json["status"]["conditions"]] == ["T"]
    reply = patch(api, path + "/status", {"status": {"conditions": [{"status": "True"}, {"type": "T"}, {"type": "T"}]}})
    assert reply.code == 422 and [(c["field"], c["message"]) for c in reply.json["details"]["causes"]] == [
        ("status.conditions[0].type", "Required value"), ("status.conditions[2].type", 'Duplicate value: "T"')]
    assert api.ask("DELETE", path).code == 200
