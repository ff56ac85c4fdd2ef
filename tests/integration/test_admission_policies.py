# SPDX-License-Identifier: Apache-2.0
"""Admission policies: what they refuse, warn about and change, on every instance, with the messages of kube-apiserver."""
import json

import pytest
from holdfastd import Cluster, wait_until
from memory_server import MemoryServer
from test_custom_resources import ask, define, definition

API = "/apis/admissionregistration.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
PLURALS = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
           "MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings"}


def make(server, kind, name, expect=201, **spec):
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return ask(server, "POST", f"{API}/{PLURALS[kind]}", body, expect=expect)


def policy(server, name, *validations, rules=(RULE,), **spec):
    """Makes a ValidatingAdmissionPolicy. A validation is an expression (text) or a whole object."""
    return make(server, "ValidatingAdmissionPolicy", name, matchConstraints={"resourceRules": list(rules), **spec.pop("constraints", {})},
                validations=[{"expression": v} if isinstance(v, str) else v for v in validations], **spec)


def bind(server, name, actions=("Deny",), **spec):
    return make(server, "ValidatingAdmissionPolicyBinding", name, policyName=name, validationActions=list(actions), **spec)


def mutation(server, name, *mutations, rules=(RULE,), **spec):
    """Makes a MutatingAdmissionPolicy. A mutation is a pair: the patchType and the expression."""
    key = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
    spec = {"reinvocationPolicy": "Never", **spec}
    make(server, "MutatingAdmissionPolicy", name, matchConstraints={"resourceRules": list(rules)},
         mutations=[{"patchType": t, key[t]: {"expression": e}} for t, e in mutations], **spec)
    make(server, "MutatingAdmissionPolicyBinding", name, policyName=name)


def configmap(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def refused(server, body, path=CONFIGMAPS):
    """Tries a create without storing anything. Returns the Status of the refusal, or None if it would be accepted."""
    code, text = server.request("POST", path + "?dryRun=All", body, timeout=60)
    assert code > 0, text
    return json.loads(text) if code >= 400 else None


def wait_refused(server, body, path=CONFIGMAPS):
    return wait_until("a refusal", lambda: refused(server, body, path))


@pytest.fixture(scope="module", name="servers")
def _servers():
    """Two instances on one store, for all tests: each has a label of its own for the objects that its policies select."""
    with Cluster() as cluster:
        yield [cluster.instance(n, "--runtime-config=api/workloads=true").wait_ready() for n in ("a", "b")]


def selects(label):
    return {"objectSelector": {"matchLabels": {"test": label}}}


def test_a_policy_refuses_on_all_instances_until_it_is_gone(servers):
    a, b = servers
    policy(a, "small", {"expression": "object.data.size() < 2", "message": "too many keys"}, {"expression": "!('x' in object.data)",
           "messageExpression": "'x is ' + object.data.x", "reason": "Forbidden"}, constraints=selects("small"))
    bad = configmap("bad", {"a": "1", "b": "2"}, labels={"test": "small"})
    assert refused(a, bad) is None  # the policy has no binding yet
    bind(a, "small")
    for server in servers:
        status = wait_refused(server, bad)
    why = "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too many keys"
    assert status["message"] == f'configmaps "bad" is forbidden: {why}'
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"] == {"name": "bad", "kind": "configmaps", "causes": [{"message": why}]}
    status = refused(b, configmap("bad", {"x": "7"}, labels={"test": "small"}))
    assert status["message"].endswith("denied request: x is 7") and (status["code"], status["reason"]) == (403, "Forbidden")
    assert refused(b, configmap("bad", {"a": "1", "b": "2"})) is None and refused(b, configmap("good", {"a": "1"}, labels={"test": "small"})) is None
    found = a.kubectl("get", "validatingadmissionpolicies,validatingadmissionpolicybindings").stdout
    assert "VALIDATIONS   PARAMKIND" in found and "POLICYNAME" in found and "<unset>" in found
    ask(a, "DELETE", f"{API}/validatingadmissionpolicybindings/small", expect=200)
    for server in servers:
        wait_until("the policy to be gone", lambda s=server: refused(s, bad) is None)


def test_a_message_that_is_too_long_is_cut(servers):
    a, _ = servers
    long = "[" + "'0123456789', " * 2000 + "'']"  # 28000 bytes
    cases = {"long-message": {"expression": "false", "message": "m" * 20000}, "long-expression": f"object.metadata.name in {long}",
             "long-failure": f"{long}[99999] == ''"}
    for name, validation in cases.items():
        policy(a, name, validation, constraints=selects(name))
        bind(a, name)
    denied = {}
    for name in cases:
        denied[name] = wait_refused(a, configmap("x", labels={"test": name}))
        assert (denied[name]["code"], denied[name]["reason"]) == (422, "Invalid")
        assert denied[name]["message"].startswith(f"configmaps \"x\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: ")
        assert len(denied[name]["message"].encode()) <= 16 << 10
    assert "request: mmm" in denied["long-message"]["message"] and denied["long-message"]["message"].endswith("mmm...")
    assert "request: failed expression: object.metadata.name in ['0" in denied["long-expression"]["message"]
    assert denied["long-expression"]["message"].endswith("...")
    assert denied["long-failure"]["message"].endswith("...' resulted in error: index out of bounds: 99999")
    policy(a, "warned-long", cases["long-message"], constraints=selects("warned-long"))
    bind(a, "warned-long", ("Warn",))
    body = json.dumps(configmap("x", labels={"test": "warned-long"}))
    assert ": mmm" in wait_until("a warning", lambda: a.kubectl("create", "--dry-run=server", "-f", "-", stdin=body).stderr)


def test_a_mutation_with_a_long_expression_is_refused_with_its_failure(servers):
    a, _ = servers
    long = "[" + "'0123456789', " * 2000 + "'']"
    mutation(a, "long-mutation", ("ApplyConfiguration", "Object{data: {'a': " + long + "[99999]}}"), rules=[{**RULE, "resourceNames": ["long-mutation"]}],
             matchConditions=[{"name": "it", "expression": "object.metadata.name == 'long-mutation'"}])
    status = wait_refused(a, configmap("long-mutation"))
    assert (status["code"], status["message"][:75]) == (403, "policy 'long-mutation' with binding 'long-mutation' denied request: express")
    assert status["message"].endswith("...' resulted in error: index out of bounds: 99999")


def test_reviews_are_not_for_policies_but_requests_for_tokens_are(servers):
    a, _ = servers
    rules = [{"apiGroups": ["authentication.k8s.io", "authorization.k8s.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
             {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}]
    tokens = "/api/v1/namespaces/default/serviceaccounts/default/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    policy(a, "noreviews", "false", rules=rules)
    bind(a, "noreviews")
    wait_until("noreviews", lambda: "'noreviews'" in a.request("POST", tokens, request)[1])
    mutation(a, "badreviews", ("JSONPatch", '[JSONPatch{op: "remove", path: "/none"}]'), rules=rules)
    wait_until("badreviews", lambda: "'badreviews'" in a.request("POST", tokens, request)[1])
    access = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    for group, path, kind, spec in (("authentication", "selfsubjectreviews", "SelfSubjectReview", None),
                                    ("authentication", "tokenreviews", "TokenReview", {"token": "none"}),
                                    ("authorization", "namespaces/default/localsubjectaccessreviews", "LocalSubjectAccessReview", {"user": "u", **access}),
                                    ("authorization", "selfsubjectaccessreviews", "SelfSubjectAccessReview", access),
                                    ("authorization", "selfsubjectrulesreviews", "SelfSubjectRulesReview", {"namespace": "default"}),
                                    ("authorization", "subjectaccessreviews", "SubjectAccessReview", {"user": "u", **access})):
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, **({"spec": spec} if spec else {})}
        ask(a, "POST", f"/apis/{group}.k8s.io/v1/{path}", body, expect=201)
    for kind, name in (("validating", "noreviews"), ("mutating", "badreviews")):
        ask(a, "DELETE", f"{API}/{kind}admissionpolicybindings/{name}", expect=200)


def test_failures_warn_and_are_audited(servers):
    a, _ = servers
    policy(a, "warned", "object.metadata.name.startsWith('ok-')", constraints=selects("warned"))
    bind(a, "warned", ("Warn", "Audit"))
    body = configmap("bad", labels={"test": "warned"})

    def warning():
        out = a.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
        return out.stderr
    text = wait_until("a warning", warning)
    assert text.strip() == ("Warning: Validation failed for ValidatingAdmissionPolicy 'warned' with binding 'warned': "
                            "failed expression: object.metadata.name.startsWith('ok-')")


def test_expressions_see_the_request_its_namespace_and_rights(servers):
    a, b = servers
    ask(a, "PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"stage": "test"}}}, expect=200, content_type="application/merge-patch+json")
    policy(a, "seen",
           {"expression": "variables.ok", "message": "variables"},
           {"expression": "namespaceObject.metadata.labels.stage == 'test'", "message": "namespace"},
           {"expression": "authorizer.group('').resource('secrets').namespace('default').check('list').allowed()", "message": "rights"},
           {"expression": "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('list').allowed()", "message": "account"},
           {"expression": "authorizer.requestResource.check('create').allowed()", "message": "resource"},
           {"expression": "request.options.kind == 'CreateOptions' && request.dryRun", "message": "options"},
           {"expression": "object.data.a == 'b'", "message": "data"},
           constraints=selects("seen"), variables=[{"name": "name", "expression": "object.metadata.name"},
                                                   {"name": "ok", "expression": "variables.name == 'seen' && request.operation == 'CREATE'"}],
           matchConditions=[{"name": "not-skipped", "expression": "!object.metadata.name.startsWith('skip')"}])
    bind(a, "seen")
    body = configmap("seen", {"a": "c"}, labels={"test": "seen"})
    assert wait_refused(b, body)["message"].endswith("denied request: data")
    assert refused(b, configmap("skipped", labels={"test": "seen"})) is None
    status = refused(b, configmap("seen", labels={"test": "seen"}))
    assert status["message"].endswith("expression 'object.data.a == 'b'' resulted in error: no such key: data") or \
        status["message"].endswith("expression 'object.data.a == 'b'' resulted in error: no such key: a")


def test_params_are_objects_of_any_kind(servers):
    a, b = servers
    define(servers, definition(plural="limits", kind="Limit", group="policies.example.com"))
    limits = "/apis/policies.example.com/v1/namespaces/default/limits"
    policy(a, "limited", {"expression": "object.data.size() <= params.spec.size", "messageExpression": "'more than ' + string(params.spec.size)"},
           paramKind={"apiVersion": "policies.example.com/v1", "kind": "Limit"}, constraints=selects("limited"))
    bind(a, "limited", paramRef={"name": "one", "parameterNotFoundAction": "Deny"})
    body = configmap("x", {"a": "", "b": "", "c": ""}, labels={"test": "limited"})
    status = wait_refused(b, body)
    assert status["message"].endswith("'limited' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
    ask(a, "POST", limits, {"apiVersion": "policies.example.com/v1", "kind": "Limit", "metadata": {"name": "one", "labels": {"use": "yes"}}, "spec": {"size": 2}}, expect=201)
    for server in servers:
        wait_until("the limit to count", lambda s=server: (refused(s, body) or {"message": ""})["message"].endswith("denied request: more than 2"))
    ask(a, "PATCH", f"{limits}/one", {"spec": {"size": 3}}, expect=200, content_type="application/merge-patch+json")
    for server in servers:
        wait_until("the new limit to count", lambda s=server: refused(s, body) is None)
    found = ask(a, "GET", f"{API}/validatingadmissionpolicybindings/limited", expect=200)
    found["spec"]["paramRef"] = {"selector": {"matchLabels": {"use": "yes"}}, "parameterNotFoundAction": "Allow"}
    ask(a, "PUT", f"{API}/validatingadmissionpolicybindings/limited", found, expect=200)
    ask(a, "POST", limits, {"apiVersion": "policies.example.com/v1", "kind": "Limit", "metadata": {"name": "two", "labels": {"use": "yes"}}, "spec": {"size": 1}}, expect=201)
    for server in servers:
        assert wait_refused(server, body)["message"].endswith("denied request: more than 1")


def test_a_binding_that_selects_too_many_params_has_failed(servers):
    a, _ = servers
    for i in range(100):
        ask(a, "POST", CONFIGMAPS, configmap(f"many-{i}", labels={"use": "many"}), expect=201)
    policy(a, "many", "!has(object.data)", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, constraints=selects("many"), failurePolicy="Ignore")
    bind(a, "many", paramRef={"selector": {"matchLabels": {"use": "many"}}, "parameterNotFoundAction": "Deny"})
    wait_refused(a, configmap("x", {"a": ""}, labels={"test": "many"}))
    good = configmap("x", labels={"test": "many"})
    assert refused(a, good) is None
    ask(a, "POST", CONFIGMAPS, configmap("many-more", labels={"use": "many"}), expect=201)
    status = wait_refused(a, good)
    assert status["message"].endswith("'many' denied request: failed to configure binding: paramRef selects more than 100 objects")
    ask(a, "DELETE", f"{CONFIGMAPS}?labelSelector=use%3Dmany", expect=200)


def test_params_that_a_webhook_cannot_convert_are_a_failure(servers):
    a, _ = servers
    versions = [{"name": v, "served": True, "storage": v == "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for v in ("v1", "v2")]
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"}}
    define([a], {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bounds.policies.example.com"},
               "spec": {"group": "policies.example.com", "scope": "Namespaced", "names": {"plural": "bounds", "kind": "Bound"}, "versions": versions,
                        "conversion": {"strategy": "Webhook", "webhook": webhook}}})
    wait_until("the kind", lambda: a.request("POST", "/apis/policies.example.com/v1/namespaces/default/bounds", {
        "apiVersion": "policies.example.com/v1", "kind": "Bound", "metadata": {"name": "one"}, "size": 0})[0] == 201)
    for version in ("v1", "v2"):
        policy(a, f"bound-{version}", "object.data.size() <= params.size", paramKind={"apiVersion": f"policies.example.com/{version}", "kind": "Bound"},
               constraints=selects(f"bound-{version}"))
        bind(a, f"bound-{version}", paramRef={"name": "one", "parameterNotFoundAction": "Deny"})
    texts = [wait_refused(a, configmap("large", {"a": "1"}, labels={"test": f"bound-{v}"}))["message"] for v in ("v1", "v2")]
    assert texts[0].endswith("denied request: failed expression: object.data.size() <= params.size")
    assert ("denied request: failed to configure binding: failed to convert the params to policies.example.com/v2: conversion webhook for "
            "policies.example.com/v1, Kind=Bound failed: Post ") in texts[1]


def test_who_writes_a_policy_must_be_able_to_read_its_params(servers):
    a, _ = servers
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"verbs": ["create"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}]
    ask(a, "POST", f"{rbac}/clusterroles", {"metadata": {"name": "policy-writer"}, "rules": rules}, expect=201)
    ask(a, "POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": "policy-writer"},
        "subjects": [{"kind": "User", "name": "paula", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "policy-writer"}}, expect=201)

    def write(kind, **spec):
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "of-paula"}, "spec": spec}
        code, text = a.request("POST", f"{API}/{PLURALS[kind]}?dryRun=All", body, headers={"Impersonate-User": "paula", "Impersonate-Group": "writers"})
        return code, json.loads(text).get("message")

    def write_policy(**spec):
        return write("ValidatingAdmissionPolicy", matchConstraints={"resourceRules": [RULE]}, validations=[{"expression": "true"}], **spec)
    wait_until("the right to write policies", lambda: write_policy()[0] == 201)
    paula = "&{paula  [writers system:authenticated] map[]}"
    assert write_policy(paramKind={"apiVersion": "v1", "kind": "Secret"}) == (422, (
        'ValidatingAdmissionPolicy.admissionregistration.k8s.io "of-paula" is invalid: spec.paramKind: Forbidden: user ' + paula + ' must have "get" '
        'permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)'))
    ref = {"name": "a", "namespace": "default", "parameterNotFoundAction": "Deny"}
    policy(a, "secret-params", "true", paramKind={"apiVersion": "v1", "kind": "Secret"}, constraints=selects("none"))
    invalid = 'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "of-paula" is invalid: spec.paramRef: Forbidden: '
    for name, text in (("secret-params", f'user {paula} does not have "get" permission on the object referenced by paramRef'),
                       ("no-such", f'unable to get policy no-such to determine minimum required permissions and user {paula} does not have "get" '
                                   'permission for all groups, versions and resources')):
        assert write("ValidatingAdmissionPolicyBinding", policyName=name, validationActions=["Deny"], paramRef=ref) == (422, invalid + text)
    role = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]}]
    ask(a, "POST", f"{rbac}/namespaces/default/roles", {"metadata": {"name": "paula"}, "rules": role}, expect=201)
    ask(a, "POST", f"{rbac}/namespaces/default/rolebindings", {"metadata": {"name": "paula"},
        "subjects": [{"kind": "User", "name": "paula", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "paula"}}, expect=201)
    wait_until("the right to read the secret", lambda: write("ValidatingAdmissionPolicyBinding", policyName="secret-params", validationActions=["Deny"],
                                                             paramRef=ref)[0] == 201)
    ref["name"] = "b"
    assert write("ValidatingAdmissionPolicyBinding", policyName="secret-params", validationActions=["Deny"], paramRef=ref)[0] == 422


def test_an_unknown_kind_of_params_is_a_failure_of_the_policy(servers):
    a, _ = servers
    policy(a, "unknown", "true", paramKind={"apiVersion": "example.com/v9", "kind": "Nothing"}, constraints=selects("unknown"))
    bind(a, "unknown")
    status = wait_refused(a, configmap("x", labels={"test": "unknown"}))
    assert status["message"] == ("configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'unknown' denied request: failed to configure policy: failed to find "
                                 "resource referenced by paramKind: 'example.com/v9, Kind=Nothing'")


def test_a_policy_that_costs_much_ends_at_its_limit(servers):
    a, _ = servers
    many = "[0,1,2,3,4,5,6,7,8,9]"
    policy(a, "costly", f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, {many}.all(f, {many}.all(g, a + b + c + d + e + f + g >= 0)))))))",
           constraints=selects("costly"))
    bind(a, "costly")
    status = wait_refused(a, configmap("x", labels={"test": "costly"}))
    assert status["message"].endswith("resulted in error: operation cancelled: actual cost limit exceeded")


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_a_long_text_is_searched_to_its_end(servers, failure):
    """The search is cheap as Kubernetes counts, but more work than a thread that serves connections may do at once."""
    a, b = servers
    name = "searched-" + failure.lower()
    policy(a, name, "!object.data.exists(k, object.data[k].matches('BEGIN RSA PRIVATE KEY'))", constraints=selects(name), failurePolicy=failure)
    bind(a, name)
    secret = "BEGIN RSA PRIVATE KEY"
    wait_refused(b, configmap("x", {"k": secret}, labels={"test": name}))
    for n in (60_000, 1_040_000):
        assert refused(b, configmap("x", {"k": n * "x"}, labels={"test": name})) is None
        status = refused(b, configmap("x", {"k": n * "x" + secret}, labels={"test": name}))
        assert status and "denied request: failed expression" in status["message"]


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_a_repetition_is_searched_in_a_long_text(servers, failure):
    """The search takes some 17 steps of work for each byte, because many matches could begin at each place."""
    a, b = servers
    name = "repetition-" + failure.lower()
    policy(a, name, "!object.data.exists(k, object.data[k].matches('[0-9a-f]{128}'))", constraints=selects(name), failurePolicy=failure)
    bind(a, name)
    secret = 128 * "f"
    wait_refused(b, configmap("x", {"k": secret}, labels={"test": name}))
    text = 8000 * (secret[1:] + "g")
    assert refused(b, configmap("x", {"k": text}, labels={"test": name})) is None
    status = refused(b, configmap("x", {"k": text + secret}, labels={"test": name}))
    assert status and "denied request: failed expression" in status["message"]


def test_policies_end_with_the_time_of_the_request(servers):
    a, _ = servers
    many = "[0,1,2,3,4,5,6,7,8,9]"
    costly = f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, a + b + c + d + e + object.data.size() >= 0)))))"
    policy(a, "long", *[f"object.metadata.name != 'probe' && {costly}"] * 9, constraints=selects("long"))
    for i in range(60):
        make(a, "ValidatingAdmissionPolicyBinding", f"long-{i}", policyName="long", validationActions=["Deny"])
    wait_refused(a, configmap("probe", labels={"test": "long"}))
    code, text = a.request("POST", CONFIGMAPS + "?timeout=1s&dryRun=All", configmap("x", labels={"test": "long"}))
    assert code == 504 and json.loads(text)["reason"] == "Timeout"


def test_mistakes_in_policies_are_refused(servers):
    a, _ = servers
    status = make(a, "ValidatingAdmissionPolicy", "bad", expect=422, matchConstraints={"resourceRules": [RULE]},
                  validations=[{"expression": "object.x =="}, {"expression": "request.nothing == 1"}, {"expression": "'a'"}],
                  matchConditions=[{"name": "x", "expression": "variables.a"}], variables=[{"name": "for", "expression": "1"}])
    causes = {c["field"]: c["message"] for c in status["details"]["causes"]}
    assert causes["spec.validations[0].expression"].startswith('Invalid value: "object.x ==": compilation failed: ERROR: <input>:1:12: Syntax error: ')
    assert causes["spec.validations[1].expression"] == ('Invalid value: "request.nothing == 1": compilation failed: ERROR: <input>:1:8: undefined field \'nothing\'\n'
                                                        ' | request.nothing == 1\n | .......^')
    assert causes["spec.validations[2].expression"] == 'Invalid value: "\'a\'": must evaluate to bool but got string'
    assert "undeclared reference to 'variables'" in causes["spec.matchConditions[0].expression"]
    assert causes["spec.variables[0].name"] == 'Invalid value: "for": must be a valid CEL identifier'
    status = make(a, "ValidatingAdmissionPolicyBinding", "bad", expect=422, policyName="x", validationActions=["Deny", "Warn", "Shout"],
                  paramRef={"name": "a", "selector": {}})
    causes = {(c["field"], c["reason"]) for c in status["details"]["causes"]}
    assert {("spec.validationActions[2]", "FieldValueNotSupported"), ("spec.validationActions", "FieldValueInvalid"),
            ("spec.paramRef.name", "FieldValueForbidden"), ("spec.paramRef.parameterNotFoundAction", "FieldValueRequired")} <= causes
    status = make(a, "MutatingAdmissionPolicy", "bad", expect=422, matchConstraints={"resourceRules": [{**RULE, "operations": ["DELETE"]}]},
                  mutations=[{"patchType": "JSONPatch", "jsonPatch": {"expression": "Object{}"}}])
    causes = {c["field"]: c["message"] for c in status["details"]["causes"]}
    assert causes["spec.mutations[0].jsonPatch.expression"] == 'Invalid value: "Object{}": must evaluate to list(JSONPatch) but got Object'
    assert "spec.reinvocationPolicy" in causes and "spec.matchConstraints.resourceRules.operations" in causes


def test_objects_are_changed_by_both_kinds_of_patches(servers):
    a, b = servers
    mutation(a, "changed", ("ApplyConfiguration", "Object{metadata: Object.metadata{labels: Object.metadata.labels{made: 'yes'}}, data: {'b': object.data.a + '!'}}"),
             ("JSONPatch", "[JSONPatch{op: 'test', path: '/data/b', value: '1!'}, JSONPatch{op: 'add', path: '/metadata/annotations', value: {'x.y/z': '1'}}, "
                           "JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), value: object.data.b}]"),
             matchConditions=[{"name": "marked", "expression": "object.metadata.?labels.test.orValue('') == 'changed'"}])
    body = configmap("changed", {"a": "1"}, labels={"test": "changed"})

    def changed(server):
        made = ask(server, "POST", CONFIGMAPS + "?dryRun=All", body, expect=201)
        return made if "b" in made["data"] else None
    for server in servers:
        made = wait_until("the change", lambda s=server: changed(s))
        assert made["data"] == {"a": "1", "b": "1!"} and made["metadata"]["labels"] == {"test": "changed", "made": "yes"}
        assert made["metadata"]["annotations"] == {"x.y/z": "1", "a/b": "1!"}
    made = ask(b, "POST", CONFIGMAPS + "?dryRun=All", configmap("changed", {"a": "2"}, labels={"test": "changed"}), expect=201)
    assert "annotations" not in made["metadata"]  # the `test` operation of the JSON patch fails


def test_a_change_that_fails_is_refused(servers):
    a, _ = servers
    mutation(a, "failing", ("ApplyConfiguration", "Object{data: Object.wrong{a: 'b'}}"),
             matchConditions=[{"name": "marked", "expression": "object.metadata.?labels.test.orValue('') == 'failing'"}])
    status = wait_refused(a, configmap("x", labels={"test": "failing"}))
    why = ("policy 'failing' with binding 'failing' denied request: type mismatch: unexpected type name \"Object.wrong\", expected \"Object.data\", "
           "which matches field name path from root Object type")
    assert status["message"] == why and status["code"] == 403 and status["reason"] == "Invalid"


def test_a_patch_that_leaves_no_object_is_refused(servers):
    """Also for a body of a subresource, and if a later mutation would change the result."""
    a, b = servers
    mutation(a, "no-object", ("JSONPatch", "[JSONPatch{op: 'replace', path: '', value: 3}]"),
             ("ApplyConfiguration", "Object{metadata: Object.metadata{annotations: {'a': 'b'}}}"),
             rules=[RULE, {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}],
             matchConditions=[{"name": "marked", "expression": "object.metadata.name == 'no-object'"}])
    why = "policy 'no-object' with binding 'no-object' denied request: JSON Patch: the result is not an object"
    for server in servers:
        assert wait_refused(server, configmap("no-object"))["message"] == why
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    ask(a, "POST", deployments, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "no-object"},
                                 "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}, expect=201)
    code, text = b.request("PATCH", f"{deployments}/no-object/scale", {"spec": {"replicas": 2}}, headers={"Content-Type": "application/merge-patch+json"})
    assert code == 403 and json.loads(text)["message"].endswith(why), text


def test_policies_run_again_after_later_changes(servers):
    a, b = servers
    marked = [{"name": "marked", "expression": "object.metadata.?labels.test.orValue('') == 'again'"}]
    mutation(a, "again-1", ("ApplyConfiguration", "Object{data: {'count': string(object.data.size())}}"), matchConditions=marked, reinvocationPolicy="IfNeeded")
    mutation(a, "again-2", ("ApplyConfiguration", "Object{data: {'more': 'x'}}"), matchConditions=marked)

    def made():
        data = ask(b, "POST", CONFIGMAPS + "?dryRun=All", configmap("x", {"a": "1"}, labels={"test": "again"}), expect=201)["data"]
        return data if {"count", "more"} <= set(data) else None
    assert wait_until("both changes", made) == {"a": "1", "more": "x", "count": "3"}


def test_custom_resources_are_changed_and_checked(servers):
    a, b = servers
    define(servers, definition(plural="widgets", kind="Widget", group="policies.example.com"))
    widgets = "/apis/policies.example.com/v1/namespaces/default/widgets"
    rule = {"apiGroups": ["policies.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}
    mutation(a, "widgets", ("ApplyConfiguration", "Object{spec: Object.spec{color: 'blue'}}"), rules=[{**rule, "operations": ["CREATE"]}])
    policy(a, "widgets", {"expression": "request.operation != 'DELETE' || oldObject.spec.size > 5", "message": "it stays"},
           {"expression": "object == null || object.spec.size < 9"}, rules=[rule])
    bind(a, "widgets")
    body = {"apiVersion": "policies.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    assert wait_refused(b, {**body, "spec": {"size": 9}}, widgets)["code"] == 422
    made = wait_until("the color", lambda: (m := ask(b, "POST", widgets + "?dryRun=All", body, expect=201))["spec"]["color"] == "blue" and m)
    assert made["spec"] == {"size": 3, "color": "blue"}
    ask(b, "POST", widgets, body, expect=201)
    assert ask(a, "DELETE", f"{widgets}/w", expect=422)["message"].endswith("denied request: it stays")
    ask(b, "PATCH", f"{widgets}/w", {"spec": {"size": 6}}, expect=200, content_type="application/merge-patch+json")
    ask(a, "DELETE", f"{widgets}/w", expect=200)


def test_types_are_checked_against_the_kinds_that_match(servers):
    a, b = servers
    define(servers, definition(plural="gears", kind="Gear", group="policies.example.com"))
    rules = [{**RULE, "resources": ["configmaps", "secrets"]}, {**RULE, "apiGroups": ["policies.example.com"], "resources": ["gears"]}]
    policy(a, "typed", "object.spec.size > 1", {"expression": "object.metadata.labels.size() > 0", "messageExpression": "object.kind + string(object.metadata.generation)"},
           "object.kind == 'Gear' || object.data.size() > 0", rules=rules, matchConditions=[{"name": "never", "expression": "false"}])

    def checked():
        status = ask(b, "GET", f"{API}/validatingadmissionpolicies/typed", expect=200).get("status", {})
        return status if status.get("observedGeneration") == 1 else None
    warnings = wait_until("the check of types", checked)["typeChecking"]["expressionWarnings"]
    assert [w["fieldRef"] for w in warnings] == ["spec.validations[0].expression", "spec.validations[2].expression"]
    assert warnings[0]["warning"] == "\n".join(f"/v1, Kind={kind}: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.size > 1\n | ......^\n"
                                               for kind in ("ConfigMap", "Secret"))
    assert warnings[1]["warning"].startswith("policies.example.com/v1, Kind=Gear: ERROR: <input>:1:32: undefined field 'data'")
    found = ask(a, "GET", f"{API}/validatingadmissionpolicies/typed", expect=200)
    found["spec"]["validations"] = [{"expression": "has(object.metadata.name)"}]
    ask(a, "PUT", f"{API}/validatingadmissionpolicies/typed", found, expect=200)
    status = wait_until("the second check", lambda: (s := ask(b, "GET", f"{API}/validatingadmissionpolicies/typed", expect=200)["status"])["observedGeneration"] == 2 and s)
    assert status["typeChecking"] == {}


def test_failures_and_annotations_are_in_the_audit_log(tmp_path):
    (tmp_path / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Metadata, resources: [{resources: [configmaps]}]}\n")
    log = tmp_path / "audit.log"
    with MemoryServer(f"--audit-policy-file={tmp_path / 'policy.yaml'}", f"--audit-log-path={log}") as server:
        assert "[+]informer-sync ok" in server.ask("GET", "/readyz?verbose").text  # so writes are not refused because the configuration is missing

        def post(kind, spec):
            body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "audited"}, "spec": spec}
            posted = server.ask("POST", f"{API}/{PLURALS[kind]}", body)
            assert posted.code == 201, posted.text
        post("ValidatingAdmissionPolicy", {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}, {"expression": "'ok' in object.data"}],
                                           "auditAnnotations": [{"key": "who", "valueExpression": "'name is ' + object.metadata.name"},
                                                                {"key": "none", "valueExpression": "null"}]})
        post("ValidatingAdmissionPolicyBinding", {"policyName": "audited", "validationActions": ["Audit"]})

        def annotations():
            posted = server.ask("POST", CONFIGMAPS + "?dryRun=All", configmap("seen", {"a": ""}))
            assert posted.code == 201, posted.text
            events = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")] if log.exists() else []
            return next((e["annotations"] for e in events if "audited/who" in e.get("annotations", {})), None)
        found = wait_until("the annotations", annotations)
        assert found["audited/who"] == "name is seen" and "audited/none" not in found
        assert json.loads(found["validation.policy.admission.k8s.io/validation_failure"]) == [
            {"message": "failed expression: 'ok' in object.data", "policy": "audited", "binding": "audited", "expressionIndex": 1, "validationActions": ["Audit"]}]


def test_policies_see_the_scale_that_is_applied_and_no_empty_data():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        scale = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}
        for spec in ({"rules": [scale], "said": ["object.kind == 'Scale' && object.spec.replicas <= 5 && oldObject.kind == 'Scale'"]},
                     {"rules": [RULE], "said": ["!has(object.data)"]}):
            name = "p" + str(len(spec["said"][0]))
            body = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": spec["rules"]}, "validations": [{"expression": e} for e in spec["said"]]}
            for kind, content in (("ValidatingAdmissionPolicy", body), ("ValidatingAdmissionPolicyBinding", {"policyName": name, "validationActions": ["Deny"]})):
                made = server.ask("POST", f"{API}/{PLURALS[kind]}", {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                                                                    "metadata": {"name": name}, "spec": content})
                assert made.code == 201, made.text
        full = {"metadata": {"name": "full"}, "data": {"a": "b"}}
        wait_until("the policies", lambda: server.ask("POST", CONFIGMAPS + "?dryRun=All", full).code == 422)
        empty = server.ask("POST", CONFIGMAPS, {"metadata": {"name": "empty"}, "data": {}, "binaryData": {}})
        assert empty.code == 201 and not {"data", "binaryData"} & empty.json.keys()
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        made = server.ask("POST", deployments, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
        assert made.code == 201, made.text
        for replicas, code in ((6, 422), (4, 200), (-1, 422)):
            done = server.ask("PATCH", f"{deployments}/d/scale?fieldManager=m&force=true", content_type="application/apply-patch+yaml",
                              body={"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}})
            assert done.code == code, done.text
        assert server.ask("GET", f"{deployments}/d").json["spec"]["replicas"] == 4
        # A conflict with another field manager is reported before a policy refuses the Scale.
        for query, code in (("fieldManager=other", 409), ("fieldManager=other&force=true", 422)):
            done = server.ask("PATCH", f"{deployments}/d/scale?{query}", content_type="application/apply-patch+yaml",
                              body={"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 6}})
            assert done.code == code, done.text
        assert server.ask("GET", f"{deployments}/d").json["spec"]["replicas"] == 4
        missing = server.ask("PATCH", f"{deployments}/none/scale?fieldManager=m", content_type="application/apply-patch+yaml",
                             body={"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 1}})
        assert missing.code == 404 and missing.json["message"] == 'deployments.apps "none" not found'
