# SPDX-License-Identifier: Apache-2.0
"""Every user tries every request: a user with `edit` in one namespace, a service account with `view` there, a stranger and an anonymous user try each verb of each
resource and subresource that discovery lists, in that namespace, in another one and in none. The result must be what the roles say; the test reads and
interprets them itself."""
import concurrent.futures
import http.client
import json

import pytest
from holdfastd import wait_until
from memory_server import MemoryServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOME, AWAY = "mine", "default"
AUTHENTICATED, ANONYMOUS = "system:authenticated", "system:unauthenticated"
USERS = {"edith": [AUTHENTICATED],
         f"system:serviceaccount:{HOME}:viewer": [AUTHENTICATED, "system:serviceaccounts", f"system:serviceaccounts:{HOME}"],
         "stranger": [AUTHENTICATED],
         "system:anonymous": [ANONYMOUS]}
METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
PATHS = ["/", "/api", "/apis", "/apis/apps/v1", "/healthz", "/livez", "/readyz", "/version", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/debug/leader",
         "/openid/v1/jwks", "/nothing"]


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}}).code == 201
        for name, subject in (("edit", {"kind": "User", "name": "edith"}), ("view", {"kind": "ServiceAccount", "name": "viewer", "namespace": HOME})):
            made = server.ask("POST", f"{RBAC}/namespaces/{HOME}/rolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}})
            assert made.code == 201, made.text
        wait_until("the aggregated roles", lambda: all(server.ask("GET", f"{RBAC}/clusterroles/{name}").json.get("rules") for name in ("edit", "view", "admin")))
        wait_until("the right", lambda: server.ask("GET", f"/api/v1/namespaces/{HOME}/secrets", **{"Impersonate-User": "edith"}).code == 200)
        yield server


class Roles:
    """What the stored roles and bindings grant, by an implementation of the test's own."""

    def __init__(self, api):
        self.roles = {role["metadata"]["name"]: role.get("rules") or [] for role in api.ask("GET", f"{RBAC}/clusterroles").json["items"]}
        self.bindings = [("", b) for b in api.ask("GET", f"{RBAC}/clusterrolebindings").json["items"]]
        self.bindings += [(b["metadata"]["namespace"], b) for b in api.ask("GET", f"{RBAC}/rolebindings").json["items"]]

    def rules_of(self, user, groups, namespace):
        for where, binding in self.bindings:
            if where and where != namespace:
                continue
            for s in binding.get("subjects") or []:
                name = f"system:serviceaccount:{s.get('namespace')}:{s['name']}" if s["kind"] == "ServiceAccount" else s["name"]
                if name in (groups if s["kind"] == "Group" else [user]):
                    yield from self.roles[binding["roleRef"]["name"]]

    def allows(self, user, groups, verb, group, resource, namespace):
        def matches(rule):
            return ({verb, "*"} & set(rule["verbs"]) and {group, "*"} & set(rule.get("apiGroups") or []) and not rule.get("resourceNames")
                    and {resource, "*", "*/" + resource.partition("/")[2]} & set(rule.get("resources") or []))
        return any(matches(rule) for rule in self.rules_of(user, groups, namespace))

    def allows_path(self, user, groups, path):
        def matches(rule):
            return {"get", "*"} & set(rule["verbs"]) and any(url in (path, "*") or (url.endswith("*") and path.startswith(url[:-1]))
                                                             for url in rule.get("nonResourceURLs") or [])
        return any(matches(rule) for rule in self.rules_of(user, groups, ""))


class Client:
    """One connection for all requests."""

    def __init__(self, api):
        self.connection = http.client.HTTPSConnection(api.address, timeout=60, context=api.context)

    def ask(self, user, groups, method, path):
        headers = [("Impersonate-User", user)] + [("Impersonate-Group", group) for group in groups]
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None
        self.connection.putrequest(method, path)
        for name, value in headers:
            self.connection.putheader(name, value)
        if body:
            self.connection.putheader("Content-Type", "application/merge-patch+json" if method == "PATCH" else "application/json")
            self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders(body)
        response = self.connection.getresponse()
        return response.status, response.read()


def calls(base, resource, namespace):
    """Yields (verb, path) for each verb of a resource."""
    name, _, part = resource["name"].partition("/")
    collection = f"{base}{f'/namespaces/{namespace}' if namespace else ''}/{name}"
    for verb in resource["verbs"]:
        if part:
            path = f"{collection}/none/{part}"
        elif verb == "watch":
            path = f"{collection}?watch=1&resourceVersion=x"  # refused at once if it is allowed
        else:
            path = collection if verb in ("list", "create", "deletecollection") else f"{collection}/none"
        if namespace or not resource["namespaced"] or verb in ("list", "watch"):
            yield verb, path


def attempts(base, resource):
    """Yields each try of a resource: (user, groups, verb, path, the namespace whose roles count)."""
    for namespace in (HOME, AWAY, "") if resource["namespaced"] else ("",):
        for verb, path in calls(base, resource, namespace):
            where = "none" if resource["name"].split("/")[0] == "namespaces" and verb not in ("list", "create", "watch") else namespace
            for user, groups in USERS.items():
                if (namespace == AWAY or ANONYMOUS in groups) and verb not in ("get", "create", "deletecollection"):
                    continue  # left out to save time
                yield user, groups, verb, path, where


def try_resource(api, roles, base, resource):
    """Tries all requests on a resource. Returns (the number of requests, the number of granted ones)."""
    client, tried, granted = Client(api), 0, 0
    group = base.split("/")[2] if base.startswith("/apis/") else ""
    for user, groups, verb, path, where in attempts(base, resource):
        allowed = roles.allows(user, groups, verb, group, resource["name"], where)
        code, body = client.ask(user, groups, METHODS[verb], path)
        refused = code == 403 and b" cannot " in body
        assert refused != allowed, (user, verb, path, code, body[:300])
        assert not refused or f'"{user}" cannot {verb} resource'.encode() in body.replace(b'\\"', b'"'), (verb, path, body)
        tried, granted = tried + 1, granted + allowed
    client.connection.close()
    return tried, granted


def test_each_gets_what_the_roles_say_and_no_more(api):
    roles = Roles(api)
    versions = ["/api/v1", *(f"/apis/{v['groupVersion']}" for g in api.ask("GET", "/apis").json["groups"] for v in g["versions"])]
    resources = [(base, resource) for base in versions for resource in api.ask("GET", base).json["resources"]]
    assert {"flowschemas/status", "prioritylevelconfigurations", "horizontalpodautoscalers", "serviceaccounts/token", "pods/eviction", "deployments/scale",
            "certificatesigningrequests/approval", "selfsubjectreviews"} <= {resource["name"] for _, resource in resources}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda each: try_resource(api, roles, *each), resources))
    tried, granted = (sum(column) for column in zip(*counts))
    assert tried > 2000 and 200 < granted < tried / 2, (tried, granted)


def test_each_reaches_only_the_paths_of_the_roles(api):
    roles, client = Roles(api), Client(api)
    for path in PATHS:
        for user, groups in USERS.items():
            code, body = client.ask(user, groups, "GET", path)
            allowed = roles.allows_path(user, groups, path)
            assert (code == 403) != allowed, (user, path, code, body[:300])
    refused = json.loads(client.ask("stranger", [AUTHENTICATED], "GET", "/metrics")[1])
    assert refused["message"] == 'forbidden: User "stranger" cannot get path "/metrics"'


def test_who_monitors_reads_metrics_and_health_only(api):
    user = {"impersonate_user": "probe", "impersonate_group": "system:monitoring"}
    for path in ("/metrics", "/metrics/slis", "/healthz", "/livez/ping", "/readyz"):
        assert api.ask("GET", path, **user).code == 200
    for path in ("/api/v1/namespaces", "/debug/leader", "/api/v1/nodes"):
        assert api.ask("GET", path, **user).code == 403


def test_a_service_account_reviews_tokens_once_it_may(api):
    user = {"impersonate_user": "system:serviceaccount:default:checker"}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert api.ask("POST", path, review, **user).code == 403
    made = api.kubectl("create", "clusterrolebinding", "checker", "--clusterrole=system:auth-delegator", "--serviceaccount=default:checker")
    assert made.returncode == 0, made.stderr
    wait_until("the right", lambda: api.ask("POST", path, review, **user).code == 201)
