# SPDX-License-Identifier: Apache-2.0
"""What roles and bindings grant, on two instances: each right is granted or taken on one of them and tried on both."""
import base64
import itertools
import json
import os
import pathlib
import subprocess
import threading
import urllib.request

import pytest
from holdfastd import Cluster, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
USERS = ["edith", "stella", "watcher", "reader", "granter", "actor", "robot"]


class Pair:
    def __init__(self, cluster):
        self.cluster = cluster
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text('root,root,1,"system:masters"\n' + "".join(f"{user},{user},uid-{user},\"people,{user}s\"\n" for user in USERS))
        self.both = [cluster.instance(name, f"--token-auth-file={tokens}") for name in "ab"]
        for instance in self.both:
            instance.wait_ready()
        self.a, self.b = self.both

    def admin(self, method, path, body=None, code=None, at=None):
        got, text = (at or self.a).request(method, path, body)
        assert code is None and got < 300 or got == code, (method, path, got, text)
        return json.loads(text)


def ask(at, user, method, path, body=None, **headers):
    """Sends a request with the user's token. Returns (code, parsed body)."""
    got, text = at.request(method, path, body, headers={"Authorization": f"Bearer {user}", **headers}, client_certificate=False)
    return got, json.loads(text) if text.startswith("{") else text


@pytest.fixture(scope="module")
def pair():
    with Cluster() as cluster:
        yield Pair(cluster)


NUMBERS = itertools.count(1)


@pytest.fixture
def ns(pair):
    name = f"rbac-{next(NUMBERS)}"
    pair.admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    pair.admin("DELETE", f"/api/v1/namespaces/{name}")


def rule(verbs, resources, groups=("",), names=()):
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources), **({"resourceNames": list(names)} if names else {})}


def role(name, *rules):
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name, role_name, *subjects, kind="Role"):
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name},
            "subjects": list(subjects)}


def user(name):
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def everywhere(pair, what, condition):
    for at in pair.both:
        wait_until(f"{what} on {at.name}", lambda: condition(at))  # pylint: disable=cell-var-from-loop


def test_a_binding_grants_and_its_end_revokes(pair, ns):
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for at in pair.both:
        code, status = ask(at, "reader", "GET", path)
        assert code == 403 and status["message"] == f'configmaps is forbidden: User "reader" cannot list resource "configmaps" in API group "" in the namespace "{ns}"'
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("b", "r", user("reader")))
    everywhere(pair, "the denial names the missing role",
               lambda at: ask(at, "reader", "GET", path)[1]["message"].endswith(': RBAC: role.rbac.authorization.k8s.io "r" not found'))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("r", rule(["list"], ["configmaps"])))
    everywhere(pair, "the right", lambda at: ask(at, "reader", "GET", path)[0] == 200)
    for at in pair.both:
        assert ask(at, "reader", "GET", "/api/v1/configmaps")[0] == 403
        assert ask(at, "reader", "GET", "/api/v1/namespaces/default/configmaps")[0] == 403
        assert ask(at, "reader", "POST", path, {"metadata": {"name": "x"}})[0] == 403
        assert ask(at, "stella", "GET", path)[0] == 403
    pair.admin("PATCH", f"{RBAC}/namespaces/{ns}/roles/r", code=415)
    pair.admin("DELETE", f"{RBAC}/namespaces/{ns}/rolebindings/b", at=pair.b)
    everywhere(pair, "the end of the right", lambda at: ask(at, "reader", "GET", path)[0] == 403)


def test_a_watch_ends_when_its_right_is_revoked(pair, ns):
    path = f"/api/v1/namespaces/{ns}/configmaps"
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("w", rule(["watch"], ["configmaps"]), rule(["watch"], ["secrets"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("w", "w", user("watcher")))
    kept = f"/api/v1/namespaces/{ns}/secrets"
    ended = {}

    def watch(at, what, query=""):
        request = urllib.request.Request(f"{at.url}{what}?watch=true{query}", headers={"Authorization": "Bearer watcher"})
        with urllib.request.urlopen(request, context=at.context(False), timeout=60) as response:
            opened[at.name, what, query].set()
            for _ in response:
                pass
        ended[at.name, what, query] = True
    everywhere(pair, "the right", lambda at: ask(at, "watcher", "GET", f"{path}?watch=true&timeoutSeconds=1&resourceVersion=0")[0] == 200)
    wanted = [(at, what, query) for at in pair.both
              for what, query in ((path, ""), (path, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), (kept, ""))]
    opened = {(at.name, what, query): threading.Event() for at, what, query in wanted}
    for at, what, query in wanted:
        threading.Thread(target=watch, args=(at, what, query), daemon=True).start()
    for event in opened.values():
        assert event.wait(60)
    pair.admin("PUT", f"{RBAC}/namespaces/{ns}/roles/w", role("w", rule(["watch"], ["secrets"])))
    wait_until("the watches of configmaps to end", lambda: len([1 for _, what, _ in ended if what == path]) == 4)
    assert not [1 for _, what, _ in ended if what == kept]
    pair.admin("DELETE", f"{RBAC}/namespaces/{ns}/rolebindings/w")
    wait_until("the other watches to end", lambda: len(ended) == 6)
    for at in pair.both:
        assert ask(at, "watcher", "GET", f"{path}?watch=true")[0] == 403


def test_a_watch_as_another_ends_with_the_right_to_impersonate(pair, ns):
    """Each part of the impersonation is taken away on one instance, while a watch runs on each of them."""
    path = f"/api/v1/namespaces/{ns}/configmaps"
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("w", rule(["watch"], ["configmaps"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("w", "w", user(f"{ns}-joe")))
    whole = [rule(["impersonate"], ["users"], names=[f"{ns}-joe"]), rule(["impersonate"], ["groups"], names=["one", "system:masters"]),
             rule(["impersonate"], ["uids"], groups=["authentication.k8s.io"]), rule(["impersonate"], ["userextras/k"], groups=["authentication.k8s.io"])]
    pair.admin("POST", f"{RBAC}/clusterroles", role(f"{ns}-act", *whole))
    pair.admin("POST", f"{RBAC}/clusterrolebindings", binding(f"{ns}-act", f"{ns}-act", user("actor"), kind="ClusterRole"))
    parts = {"Impersonate-User": f"{ns}-joe", "Impersonate-Group": "one", "Impersonate-Uid": "u", "Impersonate-Extra-k": "v"}
    masters = {**parts, "Impersonate-Group": "system:masters"}  # a watch of an administrator cannot lose its own right
    ended = []

    def watch(at, headers, opened):
        request = urllib.request.Request(f"{at.url}{path}?watch=true", headers={"Authorization": "Bearer actor", **headers})
        with urllib.request.urlopen(request, context=at.context(False), timeout=60) as response:
            opened.set()
            for _ in response:
                pass
            ended.append(at.name)

    def start(headers):
        for at in pair.both:
            opened = threading.Event()
            threading.Thread(target=watch, args=(at, headers, opened), daemon=True).start()
            assert opened.wait(30)

    for i, headers in enumerate((parts, parts, parts, parts, masters)):
        pair.admin("PUT", f"{RBAC}/clusterroles/{ns}-act", role(f"{ns}-act", *whole))
        everywhere(pair, "the right", lambda at, headers=headers: ask(at, "actor", "GET", f"{path}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dnone", **headers)[0] == 200)
        ended.clear()
        start(headers)
        missing = i if i < 4 else 1
        pair.admin("PUT", f"{RBAC}/clusterroles/{ns}-act", role(f"{ns}-act", *whole[:missing], *whole[missing + 1:]))
        wait_until("the watches to end", lambda: len(ended) == 2)
        everywhere(pair, "the refusal", lambda at, headers=headers: ask(at, "actor", "GET", f"{path}?watch=true", **headers)[0] == 403)
    pair.admin("DELETE", f"{RBAC}/clusterrolebindings/{ns}-act")
    pair.admin("DELETE", f"{RBAC}/clusterroles/{ns}-act")


def test_a_stored_request_that_can_never_be_signed_fails(pair, tmp_path):
    """No client can create one, but an earlier version or another server may have stored it."""
    csrs, key = "/apis/certificates.k8s.io/v1/certificatesigningrequests", "/registry/certificatesigningrequests/"

    def etcdctl(*args, value=None):
        return subprocess.run(["etcdctl", f"--endpoints={pair.cluster.etcd.url}", *args], input=value, capture_output=True, timeout=60, check=True,
                              env={**os.environ, "ETCDCTL_API": "3"}).stdout

    def request(subject):
        made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "key",
                               "-subj", subject], capture_output=True, timeout=60, check=True)
        return base64.b64encode(made.stdout).decode()

    spec = {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "request": request("/CN=x")}
    pair.admin("POST", csrs, {"metadata": {"name": "good"}, "spec": spec})
    odd = {"two-names": (request("/CN=a/CN=b"), "x509: the subject has more than one common name"),
           "no-request": (base64.b64encode(b"none").decode(), "PEM block type must be CERTIFICATE REQUEST"),
           "nobase64": ("%%%", "spec.request is not base64")}
    for name, (text, _) in odd.items():
        stored = json.loads(etcdctl("get", "--print-value-only", f"{key}good"))
        stored["metadata"].update(name=name, uid=f"00000000-0000-4000-8000-{len(name):012}")
        stored["spec"]["request"] = text
        stored["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "lastUpdateTime": stored["metadata"]["creationTimestamp"]}]}
        etcdctl("put", f"{key}{name}", value=json.dumps(stored).encode())
    for name, (_, why) in odd.items():
        wait_until("the failure", lambda name=name: len(pair.admin("GET", f"{csrs}/{name}")["status"]["conditions"]) == 2)
        failed = pair.admin("GET", f"{csrs}/{name}")["status"]["conditions"][1]
        assert (failed["type"], failed["status"], failed["reason"], failed["message"]) == ("Failed", "True", "SignerValidationFailure", why), failed


def test_names_and_service_accounts_and_groups_are_compared(pair, ns):
    path = f"/api/v1/namespaces/{ns}/secrets"
    pair.admin("POST", path, {"metadata": {"name": "one"}})
    pair.admin("POST", path, {"metadata": {"name": "two"}})
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("one", rule(["get", "list", "watch"], ["secrets"], names=["one"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings",
               binding("one", "one", {"kind": "Group", "name": "readers"}, {"kind": "ServiceAccount", "name": "sa"}))
    everywhere(pair, "the right", lambda at: ask(at, "reader", "GET", f"{path}/one")[0] == 200)
    account = {"Impersonate-User": f"system:serviceaccount:{ns}:sa"}
    for at in pair.both:
        assert ask(at, "reader", "GET", f"{path}/two")[0] == 403
        assert ask(at, "reader", "GET", path)[0] == 403
        assert ask(at, "reader", "GET", f"{path}?fieldSelector=metadata.name%3Done")[0] == 200
        assert ask(at, "reader", "GET", f"{path}?fieldSelector=metadata.name%3Dtwo")[0] == 403
        # A comma after a backslash is part of a value, so this names no object.
        for query in (f"{path}?fieldSelector=type!%3Da%5C,metadata.name%3Done", f"{path}?watch=1&fieldSelector=type!%3Da%5C,metadata.name%3Done"):
            assert ask(at, "reader", "GET", query)[0] == 403
        assert ask(at, "root", "GET", f"{path}/one", **account)[0] == 200
        assert ask(at, "root", "GET", f"{path}/two", **account)[0] == 403
        assert ask(at, "root", "GET", f"{path}/one", **{"Impersonate-User": "system:serviceaccount:default:sa"})[0] == 403


def test_an_apply_that_creates_needs_the_right_to_create(pair, ns):
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}

    def apply(at):
        return ask(at, "reader", "PATCH", f"{maps}/a?fieldManager=m", config, **{"Content-Type": "application/apply-patch+yaml"})

    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("patches", rule(["patch"], ["configmaps"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("patches", "patches", user("reader")))
    everywhere(pair, "a patch is allowed", lambda at: "cannot patch" not in str(apply(at)[1]))
    code, body = apply(pair.a)
    assert code == 403, body
    assert body["message"] == (f'configmaps "a" is forbidden: User "reader" cannot create resource "configmaps" in API group "" in the namespace "{ns}"')
    pair.admin("POST", maps, config)
    assert apply(pair.b)[0] == 200
    pair.admin("DELETE", f"{maps}/a")
    pair.admin("PUT", f"{RBAC}/namespaces/{ns}/roles/patches", role("patches", rule(["patch", "create"], ["configmaps"])))
    everywhere(pair, "an apply creates or patches", lambda at: apply(at)[0] in (200, 201))


def test_an_update_that_creates_needs_the_right_to_create(pair, ns):
    """A PUT creates Leases, roles and a few other kinds, as in Kubernetes."""
    leases, roles = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", f"{RBAC}/namespaces/{ns}/roles"
    updates = [rule(["get", "update"], ["leases"], groups=["coordination.k8s.io"]), rule(["get", "update"], ["roles"], groups=["rbac.authorization.k8s.io"])]
    pair.admin("POST", roles, role("updates", *updates))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("updates", "updates", user("reader")))
    everywhere(pair, "the right", lambda at: ask(at, "reader", "GET", f"{leases}/a")[0] == 404)
    for path, resource, group in ((leases, "leases", "coordination.k8s.io"), (roles, "roles", "rbac.authorization.k8s.io")):
        for at in pair.both:
            code, status = ask(at, "reader", "PUT", f"{path}/a", {"metadata": {"name": "a"}})
            assert (code, status["message"]) == (403, f'{resource}.{group} "a" is forbidden: User "reader" cannot create resource "{resource}" in API group '
                                                 f'"{group}" in the namespace "{ns}"')
            assert ask(at, "reader", "GET", f"{path}/a")[0] == 404
    pair.admin("PUT", f"{roles}/updates", role("updates", *({**it, "verbs": ["*"]} for it in updates)))
    for path, body in ((leases, {"spec": {}}), (roles, {"rules": []})):
        everywhere(pair, "a PUT creates", lambda at: ask(at, "reader", "PUT", f"{path}/on-{at.name}", {"metadata": {"name": f"on-{at.name}"}, **body})[0] in (200, 201))


def test_the_modes_are_those_of_the_flag(pair, tmp_path):
    for modes, text in (("Node", '"Node"'), ("RBAC,RBAC", '"RBAC,RBAC"'), ("", "needs a value"), ("RBAC,", '"RBAC,"')):
        done = subprocess.run([pair.a.args[0], f"--authorization-mode={modes}", f"--data-dir={tmp_path}", "--check"], capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
        assert "flag --authorization-mode" in done.stderr and text in done.stderr, done.stderr
    tokens = pair.cluster.directory / "tokens.csv"
    with pair.cluster.instance("open", "--authorization-mode=AlwaysAllow,RBAC", f"--token-auth-file={tokens}", "--leader-elect=false") as at:
        at.wait_ready()
        assert ask(at, "stella", "GET", "/api/v1/secrets")[0] == 200
        assert at.request("GET", "/api/v1/secrets", client_certificate=False)[0] == 403
    pair.cluster.started.remove(at)


def test_roles_that_only_others_use_are_there(pair):
    """The users and roles of a scheduler, of a kube-controller-manager and of nodes, which do not run here."""
    system, last = f"{RBAC}/namespaces/kube-system", "system::extension-apiserver-authentication-reader"
    wait_until("the last one", lambda: pair.a.get(f"{system}/rolebindings/{last}")[0] == 200)
    roles = {r["metadata"]["name"]: r["rules"] for r in pair.admin("GET", f"{RBAC}/clusterroles")["items"]}
    assert roles["system:node-bootstrapper"] == [rule(["create", "get", "list", "watch"], ["certificatesigningrequests"], groups=["certificates.k8s.io"])]
    assert {"system:node", "system:node-proxier", "system:kube-scheduler", "system:volume-scheduler", "system:kube-controller-manager",
            "system:kube-dns", "system:kubelet-api-admin", "system:node-problem-detector", "system:persistent-volume-provisioner"} <= set(roles)
    bound = {b["metadata"]["name"]: b for b in pair.admin("GET", f"{RBAC}/clusterrolebindings")["items"]}
    assert [s["name"] for s in bound["system:volume-scheduler"]["subjects"]] == ["system:kube-scheduler"]
    assert not bound["system:node"].get("subjects")
    review = {"spec": {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"}}}
    for name, allowed in (("system:kube-scheduler", True), ("system:kube-proxy", False)):
        review["spec"]["user"] = name
        answer = pair.admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer["status"]["allowed"] is allowed, answer
    # Every object is what the file says.
    for file in (pathlib.Path(__file__).parents[2] / "server/manifests/roles").glob("*.json"):
        for wanted in json.loads(file.read_text())["items"]:
            ns = wanted["metadata"].get("namespace")
            plural = wanted["kind"].lower() + "s"
            found = pair.admin("GET", f"{RBAC}/{f'namespaces/{ns}/' if ns else ''}{plural}/{wanted['metadata']['name']}")
            assert all(found.get(key) == wanted.get(key) for key in ("rules", "subjects", "roleRef")), found


def test_the_default_roles_are_kept_up_to_date(pair):
    """Each term reconciles the default roles, so the test changes the leader."""
    roles, edit = f"{RBAC}/clusterroles", f"{RBAC}/clusterroles/system:aggregate-to-edit"
    wait_until("the rules of admin", lambda: "rolebindings" in json.dumps(pair.admin("GET", f"{roles}/admin").get("rules")))
    whole = pair.admin("GET", edit)
    admin = pair.admin("GET", f"{roles}/admin")
    assert all(r in admin["rules"] for r in whole["rules"])
    extra = rule(["get"], ["extras"], groups=["example.com"])
    pair.admin("PUT", edit, {**whole, "rules": [whole["rules"][0], extra], "metadata": {**whole["metadata"], "resourceVersion": ""}})
    kept = pair.admin("GET", f"{roles}/system:aggregate-to-view")
    kept["metadata"]["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    pair.admin("PUT", f"{roles}/system:aggregate-to-view", {**kept, "rules": kept["rules"][:1]})
    pair.admin("DELETE", f"{RBAC}/clusterrolebindings/system:discovery")
    pair.admin("DELETE", f"{RBAC}/clusterroles/system:node-bootstrapper")
    leading = [at for at in pair.both if at.leader()["state"] == "leading"]
    assert len(leading) == 1, [at.leader() for at in pair.both]
    leading[0].send(15)
    assert leading[0].wait() == 0
    other = next(at for at in pair.both if at is not leading[0])
    wait_until("the rules to return", lambda: all(r in pair.admin("GET", edit, at=other)["rules"] for r in [*whole["rules"], extra]))
    wait_until("the binding to return", lambda: other.get(f"{RBAC}/clusterrolebindings/system:discovery")[0] == 200)
    wait_until("the role to return", lambda: other.get(f"{RBAC}/clusterroles/system:node-bootstrapper")[0] == 200)
    assert pair.admin("GET", f"{roles}/system:aggregate-to-view", at=other)["rules"] == kept["rules"][:1]
    pair.admin("PUT", f"{roles}/system:aggregate-to-view", {**kept, "metadata": {**kept["metadata"], "resourceVersion": ""}}, at=other)
    again = pair.cluster.instance(leading[0].name, *[a for a in leading[0].args if a.startswith("--token-auth-file")]).wait_ready()
    pair.both[pair.both.index(leading[0])] = again
    pair.a, pair.b = pair.both
    wait_until("the extra rule in edit", lambda: extra in pair.admin("GET", f"{roles}/edit")["rules"])


def test_an_aggregated_role_follows_the_roles_it_selects(pair, ns):
    roles = f"{RBAC}/clusterroles"
    pair.admin("POST", roles, {"metadata": {"name": f"{ns}-sum"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {ns: "yes"}}]},
                               "rules": [rule(["get"], ["nonsense"])]})
    part = {"metadata": {"name": f"{ns}-part", "labels": {ns: "yes"}}, "rules": [rule(["list"], ["configmaps"])]}
    pair.admin("POST", roles, part, at=pair.b)
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("sum", f"{ns}-sum", user("reader"), kind="ClusterRole"))
    path = f"/api/v1/namespaces/{ns}/configmaps"
    everywhere(pair, "the right", lambda at: ask(at, "reader", "GET", path)[0] == 200)
    assert pair.admin("GET", f"{roles}/{ns}-sum")["rules"] == part["rules"]
    pair.admin("PUT", f"{roles}/{ns}-part", {"metadata": {"name": f"{ns}-part"}, "rules": part["rules"]})
    everywhere(pair, "the end of the right", lambda at: ask(at, "reader", "GET", path)[0] == 403)


def test_edit_in_one_namespace_is_right_for_every_kind_of_the_discovery(pair, ns):
    """Each verb of each kind, by a user with edit, a service account with view, and a stranger: in the namespace, in another one, everywhere."""
    bindings = f"{RBAC}/namespaces/{ns}/rolebindings"
    pair.admin("POST", bindings, binding("edit", "edit", user("edith"), kind="ClusterRole"))
    pair.admin("POST", bindings, binding("view", "view", {"kind": "ServiceAccount", "name": "viewer", "namespace": ns}, kind="ClusterRole"))
    everywhere(pair, "the right", lambda at: ask(at, "edith", "GET", f"/api/v1/namespaces/{ns}/secrets")[0] == 200)
    edited = {"configmaps", "events", "secrets", "serviceaccounts", "leases"}
    viewed = {"configmaps", "events", "limitranges", "resourcequotas", "serviceaccounts"}
    account = {"Impersonate-User": f"system:serviceaccount:{ns}:viewer"}
    tried = 0
    groups = ["/api/v1", *(f"/apis/{v['groupVersion']}" for g in pair.admin("GET", "/apis")["groups"] for v in g["versions"])]
    for base in groups:
        for resource in pair.admin("GET", base)["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"]:
                continue
            # As in Kubernetes, the default roles name the events of v1 only.
            may_edit = resource["name"] in edited and base != "/apis/events.k8s.io/v1"
            may_view = resource["name"] in viewed and base != "/apis/events.k8s.io/v1"
            for where, home in ((f"/namespaces/{ns}", True), ("/namespaces/default", False), ("", False)):
                if where and not resource["namespaced"]:
                    continue
                path = f"{base}{where}/{resource['name']}"
                calls = [("GET", path, "read"), ("GET", f"{path}/none", "read"), ("GET", f"{path}?watch=1&timeoutSeconds=1", "read")]
                if where or not resource["namespaced"]:
                    calls += [("POST", path, "write"), ("PUT", f"{path}/none", "write"), ("DELETE", f"{path}/none", "write"), ("DELETE", path, "write")]
                for method, target, kind in calls:
                    if method == "DELETE" and target == path and home:
                        continue  # the request would delete objects that the test needs
                    edits = may_edit or (kind == "read" and may_view)
                    for who, allowed in (("edith", home and edits), ("stella", False)):
                        code, answer = ask(pair.both[tried % 2], who, method, target, {} if method in ("POST", "PUT") else None)
                        assert (code != 403) == allowed, (who, method, target, code, answer)
                        tried += 1
                    code, answer = ask(pair.both[tried % 2], "root", method, target, {} if method in ("POST", "PUT") else None, **account)
                    assert (code != 403) == (home and kind == "read" and may_view), ("viewer", method, target, code, answer)
    assert tried > 100
    for at in pair.both:
        assert ask(at, "edith", "GET", f"/api/v1/namespaces/{ns}")[0] == 200
        assert ask(at, "edith", "GET", "/api/v1/namespaces/default")[0] == 403


def test_nobody_grants_more_than_they_hold(pair, ns):
    """The messages are those of kube-apiserver."""
    roles, bindings = f"{RBAC}/namespaces/{ns}/roles", f"{RBAC}/namespaces/{ns}/rolebindings"
    pair.admin("POST", roles, role("writer", rule(["create", "update", "delete", "get"], ["roles", "rolebindings"], groups=["rbac.authorization.k8s.io"]),
                                   rule(["get", "list"], ["configmaps"])))
    pair.admin("POST", bindings, binding("writer", "writer", user("granter")))
    everywhere(pair, "the right", lambda at: ask(at, "granter", "GET", f"{roles}/writer")[0] == 200)
    told = 'user "granter" (groups=["people" "granters" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
    for at in pair.both:
        name = f"r-{at.name}"
        assert ask(at, "granter", "POST", roles, role(name, rule(["get"], ["configmaps"])))[0] == 201
        code, status = ask(at, "granter", "PUT", f"{roles}/{name}", role(name, rule(["get", "watch", "delete"], ["configmaps"]), rule(["get"], ["secrets"])))
        assert (code, status["reason"]) == (403, "Forbidden") and status["message"] == (
            f'roles.rbac.authorization.k8s.io "{name}" is forbidden: {told}'
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["watch" "delete"]}\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'), status
        everywhere(pair, "the role", lambda at, n=name: ask(at, "granter", "GET", f"{roles}/{n}")[0] == 200)
        wait_until("a binding to the role", lambda at=at, n=name: ask(at, "granter", "POST", bindings, binding(n, n, user("x")))[0] in (201, 409))
        code, status = ask(at, "granter", "POST", bindings, binding("more", "cluster-admin", user("granter"), kind="ClusterRole"))
        assert code == 403 and status["message"].startswith(f'rolebindings.rbac.authorization.k8s.io "more" is forbidden: {told}{{APIGroups:["*"]'), status
        code, status = ask(at, "granter", "POST", bindings, binding("more", "none", user("granter"), kind="ClusterRole"))
        assert code == 404 and status["message"] == 'clusterroles.rbac.authorization.k8s.io "none" not found', status
    code, status = ask(pair.a, "granter", "PATCH", f"{roles}/writer", {})
    assert code == 403, status
    everywhere(pair, "the denial", lambda at: ask(at, "granter", "POST", roles, role("s", rule(["get"], ["secrets"])))[0] == 403)
    pair.admin("POST", roles, role("verbs", rule(["escalate"], ["roles"], groups=["rbac.authorization.k8s.io"]),
                                   rule(["bind"], ["clusterroles"], groups=["rbac.authorization.k8s.io"], names=["view"])))
    pair.admin("POST", bindings, binding("verbs", "verbs", user("granter")))
    for at in pair.both:
        wait_until("escalate", lambda at=at: ask(at, "granter", "POST", roles, role(f"esc-{at.name}", rule(["get"], ["secrets"])))[0] == 201)
        assert ask(at, "granter", "POST", bindings, binding(f"bind-{at.name}", "view", user("x"), kind="ClusterRole"))[0] == 201
        assert ask(at, "granter", "POST", bindings, binding(f"bind2-{at.name}", "edit", user("x"), kind="ClusterRole"))[0] == 403


def test_a_refusal_with_long_names_is_a_refusal(pair, ns):
    """The rights and the roles that are missing may need more room than a message has. Then the message is cut."""
    roles, bindings = f"{RBAC}/namespaces/{ns}/roles", f"{RBAC}/namespaces/{ns}/rolebindings"
    pair.admin("POST", roles, role("writer", rule(["create"], ["roles", "rolebindings"], groups=["rbac.authorization.k8s.io"])))
    pair.admin("POST", bindings, binding("writer", "writer", user("granter")))
    for i in range(15):
        pair.admin("POST", bindings, binding(f"b{i}", f"{i:x}" + "n" * 252, user("granter")))
    many = role("many", rule(["get"], [f"{i}" + "r" * 200 for i in range(150)]))

    def refusal(at):
        code, status = ask(at, "granter", "POST", roles, many)
        assert code == 403, status
        return status["message"]

    everywhere(pair, "a refusal that names the roles", lambda at: refusal(at).count("not found") == 15)
    for at in pair.both:
        assert "\n...; resolution errors: [[role." in refusal(at) and refusal(at).endswith("n\" not found]]")
    pair.admin("POST", bindings, binding("longer", "n" * 7000, user("granter")))
    everywhere(pair, "the name of no role to be cut", lambda at: refusal(at).endswith("n...]"))
    code, status = ask(pair.a, "granter", "POST", bindings, binding("longest", "n" * 40000, user("x")))
    assert code == 404 and status["message"].endswith('nn..." not found'), status


def test_an_aggregation_needs_all_rights(pair, ns):
    pair.admin("POST", f"{RBAC}/clusterroles", role(ns, rule(["*"], ["clusterroles", "clusterrolebindings"], groups=["rbac.authorization.k8s.io"])))
    grants = role(f"{ns}-2", rule(["create"], ["clusterroles"], groups=["rbac.authorization.k8s.io"]))
    pair.admin("POST", f"{RBAC}/clusterroles", grants)
    pair.admin("POST", f"{RBAC}/clusterrolebindings", binding(ns, f"{ns}-2", user("granter"), kind="ClusterRole"))
    body = {"metadata": {"name": f"{ns}-3"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    everywhere(pair, "the right", lambda at: ask(at, "granter", "POST", f"{RBAC}/clusterroles", {"metadata": {"name": f"{ns}-0"}})[0] in (201, 409))
    for at in pair.both:
        code, status = ask(at, "granter", "POST", f"{RBAC}/clusterroles", body)
        assert code == 403 and status["message"].endswith("is forbidden: must have cluster-admin privileges to use the aggregationRule"), status
    for name in (ns, f"{ns}-2"):
        pair.admin("DELETE", f"{RBAC}/clusterroles/{name}")
    pair.admin("DELETE", f"{RBAC}/clusterrolebindings/{ns}")


def review(at, who, group, plural, spec=None, ns="", **headers):
    path = f"/apis/{group}.k8s.io/v1/{f'namespaces/{ns}/' if ns else ''}{plural}"
    return ask(at, who, "POST", path, {} if spec is None else {"spec": spec}, **headers)


def test_reviews_answer_and_store_nothing(pair, ns):
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("r", rule(["list"], ["configmaps"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("b", "r", user("reader")))
    listing = {"namespace": ns, "verb": "list", "resource": "configmaps"}
    reason = f'RBAC: allowed by RoleBinding "b/{ns}" of Role "r" to User "reader"'
    everywhere(pair, "the right",
               lambda at: review(at, "reader", "authorization", "selfsubjectaccessreviews", {"resourceAttributes": listing})[1]["status"]["allowed"])
    for at in pair.both:
        code, answer = review(at, "reader", "authorization", "selfsubjectaccessreviews", {"resourceAttributes": listing})
        assert code == 201 and answer == {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
                                          "spec": {"resourceAttributes": listing}, "status": {"allowed": True, "reason": reason}}
        code, answer = review(at, "reader", "authorization", "selfsubjectaccessreviews", {"resourceAttributes": {**listing, "namespace": "default"}})
        assert (code, answer["status"]) == (201, {"allowed": False})
        for verb, allowed in (("get", True), ("put", False)):
            code, answer = review(at, "reader", "authorization", "selfsubjectaccessreviews", {"nonResourceAttributes": {"path": "/apis", "verb": verb}})
            assert (code, answer["status"]["allowed"]) == (201, allowed)
        code, answer = review(at, "root", "authorization", "subjectaccessreviews", {"resourceAttributes": listing, "user": "reader"})
        assert (code, answer["status"]) == (201, {"allowed": True, "reason": reason})
        assert review(at, "reader", "authorization", "subjectaccessreviews", {"resourceAttributes": listing, "user": "reader"})[0] == 403
        code, answer = review(at, "root", "authorization", "localsubjectaccessreviews", {"resourceAttributes": listing, "user": "x", "groups": ["readers"]}, ns)
        assert (code, answer["status"]) == (201, {"allowed": False})
        code, answer = review(at, "root", "authorization", "localsubjectaccessreviews", {"resourceAttributes": listing, "user": "x"}, "default")
        assert code == 400 and answer["message"] == "spec.resourceAttributes.namespace must match namespace: default"
        for spec, message in (({}, "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"),
                              ({"resourceAttributes": listing, "nonResourceAttributes": {"path": "/", "verb": "get"}},
                               'spec.nonResourceAttributes: Invalid value: authorization.NonResourceAttributes{Path:"/", Verb:"get"}: '
                               "cannot be specified in combination with resourceAttributes")):
            code, answer = review(at, "reader", "authorization", "selfsubjectaccessreviews", spec)
            assert (code, answer["message"]) == (422, f'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: {message}')
        code, answer = review(at, "root", "authorization", "subjectaccessreviews", {"resourceAttributes": listing})
        assert code == 422 and answer["message"].endswith('spec.user: Invalid value: "": at least one of user or group must be specified')
        code, answer = review(at, "reader", "authorization", "selfsubjectrulesreviews", {"namespace": ns})
        assert code == 201 and not answer["status"]["incomplete"], answer
        assert {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]} in answer["status"]["resourceRules"]
        assert any("/apis/*" in r["nonResourceURLs"] for r in answer["status"]["nonResourceRules"])
        assert review(at, "reader", "authorization", "selfsubjectrulesreviews", {})[0] == 400
        code, answer = review(at, "reader", "authentication", "selfsubjectreviews")
        assert (code, answer["status"]) == (201, {"userInfo": {"username": "reader", "uid": "uid-reader", "groups": ["people", "readers", "system:authenticated"]}})
        code, answer = review(at, "root", "authentication", "tokenreviews", {"token": "stella"})
        assert (code, answer["status"]) == (201, {"authenticated": True, "audiences": ["https://kubernetes.default.svc"], "user": {"username": "stella", "uid": "uid-stella",
                                                                                  "groups": ["people", "stellas", "system:authenticated"]}})
        code, answer = review(at, "root", "authentication", "tokenreviews", {"token": "unknown"})
        assert (code, answer["status"]) == (201, {"user": {}, "error": "[invalid bearer token]"})
        assert review(at, "reader", "authentication", "tokenreviews", {"token": "stella"})[0] == 403
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        for method, target in (("GET", path), ("GET", f"{path}/x"), ("DELETE", path), ("PUT", f"{path}/x"), ("POST", f"{path}/x")):
            expected = 404 if target.endswith("/x") else 405  # a review has no name
            assert ask(at, "root", method, target, {} if method in ("PUT", "POST") else None)[0] == expected, (method, target)
        assert ask(at, "root", "POST", path, b"[]")[0] == 400
        assert ask(at, "root", "POST", path, {"kind": "TokenReview", "spec": {}})[0] == 400
        assert ask(at, "root", "POST", path, {"spec": {"resourceAttributes": {"verb": 1}}})[0] == 400


def test_kubectl_says_what_a_user_may_do(pair, ns, tmp_path):
    def kubectl(at, who, *args):
        config = tmp_path / f"{who}-{at.name}"
        config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {"token": who}}],
                                      "clusters": [{"name": "c", "cluster": {"server": at.url, "certificate-authority": str(at.pki / "ca.crt")}}],
                                      "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return subprocess.run(["kubectl", f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}", *args], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert kubectl(pair.a, "root", "create", "role", "r", "--verb=get,list", "--resource=configmaps", "-n", ns).returncode == 0
    assert kubectl(pair.a, "root", "create", "rolebinding", "b", "--role=r", "--user=reader", "-n", ns).returncode == 0
    for at in pair.both:
        wait_until("the right", lambda at=at: kubectl(at, "reader", "auth", "can-i", "list", "cm", "-n", ns).stdout == "yes\n")
        assert kubectl(at, "reader", "auth", "can-i", "delete", "cm", "-n", ns).stdout.startswith("no")
        assert kubectl(at, "root", "auth", "can-i", "*", "*").stdout.endswith("yes\n")
        assert kubectl(at, "reader", "auth", "can-i", "get", "/apis").stdout.endswith("yes\n")
        listed = kubectl(at, "reader", "auth", "can-i", "--list", "-n", ns)
        assert listed.returncode == 0 and "configmaps" in listed.stdout and "[get list]" in listed.stdout and "[/apis/*]" in listed.stdout, listed
        assert kubectl(at, "reader", "get", "cm", "-n", ns).returncode == 0
        refused = kubectl(at, "reader", "get", "cm", "-A")
        assert refused.returncode == 1 and 'cannot list resource "configmaps" in API group "" at the cluster scope' in refused.stderr
    names = kubectl(pair.a, "root", "api-resources", "--verbs=create", "-o", "name").stdout
    assert "selfsubjectaccessreviews.authorization.k8s.io" in names and "tokenreviews.authentication.k8s.io" in names


def test_finer_verbs_allow_an_impersonation_for_some_requests(pair, ns):
    """actor may list as edith, as a service account, and as a node, which then is in the group of nodes."""
    identity, path = "authentication.k8s.io", f"/api/v1/namespaces/{ns}/configmaps"
    on = [f"impersonate-on:{mode}:{verb}" for mode in ("user-info", "serviceaccount", "arbitrary-node") for verb in ("list", "create")]
    pair.admin("POST", f"{RBAC}/clusterroles", role(ns, rule(["impersonate:user-info"], ["users"], groups=[identity], names=["edith"]),
                                                    rule(["impersonate:serviceaccount"], ["serviceaccounts"], groups=[identity]),
                                                    rule(["impersonate:arbitrary-node"], ["nodes"], groups=[identity], names=["n1"]),
                                                    rule(on, ["configmaps"]), rule(on, ["selfsubjectreviews"], groups=[identity])))
    pair.admin("POST", f"{RBAC}/clusterrolebindings", binding(ns, ns, user("actor"), kind="ClusterRole"))
    pair.admin("POST", f"{RBAC}/clusterroles", role(f"{ns}-read", rule(["list", "get"], ["configmaps"])))
    pair.admin("POST", f"{RBAC}/clusterrolebindings", binding(f"{ns}-read", f"{ns}-read", {**user("system:authenticated"), "kind": "Group"}, kind="ClusterRole"))

    def groups(at, name):
        code, answer = review(at, "actor", "authentication", "selfsubjectreviews", **{"Impersonate-User": name})
        return answer["status"]["userInfo"]["groups"] if code == 201 else answer["message"]
    account = f"system:serviceaccount:{ns}:x"
    everywhere(pair, "the right", lambda at: groups(at, "edith") == ["system:authenticated"])
    for at in pair.both:
        assert groups(at, "system:node:n1") == ["system:nodes", "system:authenticated"]
        assert groups(at, account) == ["system:serviceaccounts", f"system:serviceaccounts:{ns}", "system:authenticated"]
        assert groups(at, "system:node:n2") == (f'nodes.{identity} "n2" is forbidden: User "actor" cannot impersonate:arbitrary-node resource "nodes" in API group '
                                                f'"{identity}" at the cluster scope')
        everywhere(pair, "the role", lambda at: ask(at, "actor", "GET", path, **{"Impersonate-User": "edith"})[0] == 200)
        assert ask(at, "actor", "GET", f"{path}/a", **{"Impersonate-User": "edith"})[0] == 403  # get, and not list
    for name in (ns, f"{ns}-read"):  # other tests have the same actor
        pair.admin("DELETE", f"{RBAC}/clusterrolebindings/{name}")


def test_impersonation_needs_a_right_to_each_part(pair, ns):
    """actor may be edith, a service account, one group, one uid and one extra value."""
    identity = "authentication.k8s.io"
    pair.admin("POST", f"{RBAC}/clusterroles", role(ns, rule(["impersonate"], ["users"], names=["edith"]), rule(["impersonate"], ["groups"], names=["devs"]),
                                                    rule(["impersonate"], ["uids"], groups=[identity], names=["7"]),
                                                    rule(["impersonate"], ["userextras/example.com/scope"], groups=[identity], names=["one"])))
    pair.admin("POST", f"{RBAC}/clusterrolebindings", binding(ns, ns, user("actor"), kind="ClusterRole"))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/roles", role("sa", rule(["impersonate"], ["serviceaccounts"])))
    pair.admin("POST", f"{RBAC}/namespaces/{ns}/rolebindings", binding("sa", "sa", user("actor")))

    def who(at, **headers):
        code, answer = review(at, "actor", "authentication", "selfsubjectreviews", **headers)
        return answer["status"]["userInfo"] if code == 201 else answer["message"]
    edith = {"Impersonate-User": "edith"}
    everywhere(pair, "the right", lambda at: who(at, **edith) == {"username": "edith", "groups": ["system:authenticated"]})
    whole = {**edith, "Impersonate-Group": "devs", "Impersonate-Uid": "7", "Impersonate-Extra-Example.com%2fScope": "one"}
    account = f"system:serviceaccount:{ns}:x"
    everywhere(pair, "the right to the account", lambda at: isinstance(who(at, **{"Impersonate-User": account}), dict))
    for at in pair.both:
        assert who(at, **whole) == {"username": "edith", "uid": "7", "groups": ["devs", "system:authenticated"], "extra": {"example.com/scope": ["one"]}}
        assert who(at, **{"Impersonate-User": account}) == {
            "username": account, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ns}", "system:authenticated"]}
        cannot = 'is forbidden: User "actor" cannot impersonate resource'
        # The finer verbs are tried first, and the message is about them. They are not for an account with more than its name.
        finer = (f'selfsubjectreviews.{identity} is forbidden: User "actor" cannot impersonate-on:user-info:create resource "selfsubjectreviews" '
                 f'in API group "{identity}" at the cluster scope')
        as_account = {"Impersonate-User": account}
        for change, message in (({"Impersonate-User": "stella"}, finer), ({"Impersonate-Group": "ops"}, finer), ({"Impersonate-Group": "system:masters"}, finer),
                                ({"Impersonate-Group": "system:authenticated"}, finer), ({"Impersonate-Uid": "8"}, finer),
                                ({"Impersonate-Extra-Example.com%2fScope": "two"}, finer),
                                ({**as_account, "Impersonate-Group": "devs,ops"}, f'groups "devs,ops" {cannot} "groups" in API group "" at the cluster scope'),
                                ({**as_account, "Impersonate-Group": "system:serviceaccounts"},
                                 f'groups "system:serviceaccounts" {cannot} "groups" in API group "" at the cluster scope'),
                                ({**as_account, "Impersonate-Uid": "8"}, f'uids.{identity} "8" {cannot} "uids" in API group "{identity}" at the cluster scope'),
                                ({**as_account, "Impersonate-Extra-Example.com%2fScope": "two"},
                                 f'userextras.{identity} "two" {cannot} "userextras/example.com/scope" in API group "{identity}" at the cluster scope'),
                                ({"Impersonate-User": "system:serviceaccount:default:x", "Impersonate-Group": ""},
                                 f'serviceaccounts "x" {cannot} "serviceaccounts" in API group "" in the namespace "default"')):
            assert who(at, **{**whole, **change}) == message
        # The right to create such a review comes with system:authenticated, which must not be added.
        assert review(at, "root", "authentication", "selfsubjectreviews", **edith, **{"Impersonate-Group": "system:unauthenticated"})[0] == 403
