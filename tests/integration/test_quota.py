# SPDX-License-Identifier: Apache-2.0
"""ResourceQuotas and LimitRanges on two instances: the kinds, who may do what, what creates are
refused, that racing creates never exceed a limit, and that the status is right soon after each
change, also when an instance dies."""
import concurrent.futures
import http.client
import itertools
import json
import signal
import threading
import urllib.parse

import pytest
from holdfastd import Cluster, wait_until

NUMBERS = itertools.count(1)


class Pair:
    def __init__(self, cluster):
        self.cluster = cluster
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text('root,root,1,"system:masters"\nadam,adam,2\nedith,edith,3\nvera,vera,4\n')
        # The controller that adds a ConfigMap to every namespace is off: that ConfigMap would count too.
        self.flags = (f"--token-auth-file={tokens}", "--runtime-config=api/workloads=true", "--controllers=*,-root-ca-publisher")
        self.a, self.b = (cluster.instance(name, *self.flags) for name in "ab")
        self.both = [self.a.wait_ready(), self.b.wait_ready()]

    def ask(self, method, path, body=None, at=None, user=None):
        """Sends a request. Returns (code, body)."""
        headers = {"Authorization": f"Bearer {user}"} if user else None
        code, text = (at or self.a).request(method, path, body, headers=headers, client_certificate=not user)
        return code, json.loads(text) if text.startswith("{") else text

    def do(self, method, path, body=None, at=None):
        code, answer = self.ask(method, path, body, at)
        assert code < 300, (method, path, code, answer)
        return answer


@pytest.fixture(scope="module")
def pair():
    with Cluster(with_witness=False) as cluster:
        yield Pair(cluster)


@pytest.fixture
def ns(pair):
    name = f"quota-{next(NUMBERS)}"
    pair.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait_until("both know the namespace", lambda: all(pair.ask("GET", f"/api/v1/namespaces/{name}", at=at)[0] == 200 for at in pair.both))
    return name


def path(ns, plural, name=""):
    return f"/api/v1/namespaces/{ns}/{plural}{'/' if name else ''}{name}"


def config_map(name):
    return {"metadata": {"name": name}}


def quota(pair, ns, hard, name="q", **spec):
    """Creates a quota, and waits until both instances enforce it."""
    pair.do("POST", path(ns, "resourcequotas"), {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    wait_status(pair, ns, name, lambda status: status.get("hard") == hard)


def wait_status(pair, ns, name, condition):
    def right():
        return all(condition(pair.do("GET", path(ns, "resourcequotas", name), at=at).get("status", {})) for at in pair.both)
    wait_until(f"the status of {name}", right)


def wait_used(pair, ns, used, name="q"):
    wait_status(pair, ns, name, lambda status: status.get("used") == used)


def count(pair, ns, plural="configmaps", at=None):
    return len(pair.do("GET", path(ns, plural), at=at)["items"])


def test_kubectl_creates_shows_and_describes_quotas(pair, ns):
    kubectl = pair.a.kubectl
    assert kubectl("create", "quota", "q", "-n", ns, "--hard=configmaps=1000,count/leases.coordination.k8s.io=2,limits.cpu=500m,cpu=0.5").stdout == \
        "resourcequota/q created\n"
    kubectl("create", "configmap", "one", "-n", ns)
    wait_used(pair, ns, {"configmaps": "1", "count/leases.coordination.k8s.io": "0", "limits.cpu": "0", "cpu": "0"})
    lines = kubectl("get", "quota", "-n", ns).stdout.splitlines()
    assert lines[0].split() == ["NAME", "REQUEST", "LIMIT", "AGE"]
    assert "configmaps: 1/1k, count/leases.coordination.k8s.io: 0/2, cpu: 0/500m" in lines[1] and "limits.cpu: 0/500m" in lines[1]
    described = [line.split() for line in kubectl("describe", "quota", "q", "-n", ns).stdout.splitlines()]
    assert ["configmaps", "1", "1k"] in described and ["limits.cpu", "0", "500m"] in described
    assert "exceeded" not in kubectl("create", "configmap", "two", "-n", ns, "--dry-run=server").stdout
    wait_used(pair, ns, {"configmaps": "1", "count/leases.coordination.k8s.io": "0", "limits.cpu": "0", "cpu": "0"})
    assert kubectl("explain", "quota.spec").returncode == 0


def test_a_quota_that_breaks_rules_is_refused(pair, ns):
    def causes(plural, spec):
        code, status = pair.ask("POST", path(ns, plural), {"metadata": {"name": "bad"}, "spec": spec})
        assert code == 422, status
        return [(c["field"], c["message"]) for c in status["details"]["causes"]]

    assert causes("resourcequotas", {"hard": {"serviceaccounts": "1", "pods": "1500m", "secrets": "-1"}}) == [
        ("spec.hard[serviceaccounts]", 'Invalid value: "serviceaccounts": must be a standard resource type or fully qualified'),
        ("spec.hard[serviceaccounts]", 'Invalid value: "serviceaccounts": must be a standard resource for quota'),
        ("spec.hard[pods]", 'Invalid value: "1500m": must be an integer'),
        ("spec.hard[secrets]", 'Invalid value: "-1": must be greater than or equal to 0')]
    assert causes("resourcequotas", {"hard": {"secrets": "1"}, "scopes": ["BestEffort", "NotBestEffort", "X"]}) == [
        ("spec.scopes", 'Invalid value: ["BestEffort","NotBestEffort","X"]: unsupported scope'),
        ("spec.scopes", 'Invalid value: ["BestEffort","NotBestEffort","X"]: unsupported scope applied to resource'),
        ("spec.scopes", 'Invalid value: ["BestEffort","NotBestEffort","X"]: unsupported scope applied to resource'),
        ("spec.scopes", 'Invalid value: ["BestEffort","NotBestEffort","X"]: conflicting scopes')]
    requirement = {"operator": "In", "scopeName": "Terminating"}
    assert [field.split(".")[-1] for field, _ in causes("resourcequotas", {"scopeSelector": {"matchExpressions": [requirement]}})] == ["operator", "values"]
    code, status = pair.ask("POST", path(ns, "resourcequotas"), {"metadata": {"name": "bad"}, "spec": {"hard": {"pods": "1x"}}})
    assert code == 400 and "quantities must match the regular expression" in status["message"]
    made = pair.do("POST", path(ns, "resourcequotas"), {"metadata": {"name": "numbers"}, "spec": {"hard": {"pods": 2000, "memory": "1024Mi"}}})
    assert made["spec"]["hard"] == {"pods": "2k", "memory": "1Gi"} and not made.get("status", {}).get("used")
    code, status = pair.ask("PUT", path(ns, "resourcequotas", "numbers"), {"metadata": {"name": "numbers"}, "spec": {"scopes": ["BestEffort"]}})
    assert code == 422 and status["message"].endswith('spec.scopes: Invalid value: ["BestEffort"]: field is immutable')


def test_limit_ranges_are_kept(pair, ns):
    limits = [{"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "100m"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": 0.5}}]
    made = pair.do("POST", path(ns, "limitranges"), {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    assert made["spec"]["limits"][0]["defaultRequest"] == {"cpu": "500m", "memory": "1Gi"}
    lines = pair.b.kubectl("get", "limits", "-n", ns).stdout.splitlines()
    assert lines[0].split() == ["NAME", "CREATED", "AT"] and lines[1].split() == ["l", made["metadata"]["creationTimestamp"]]
    described = [line.split() for line in pair.b.kubectl("describe", "limits", "l", "-n", ns).stdout.splitlines()]
    assert ["Container", "cpu", "100m", "2", "500m", "1", "-"] in described
    wrong = [{"type": "Pod", "default": {"cpu": "1"}}, {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
             {"type": "PersistentVolumeClaim"}, {"type": "Thing", "maxLimitRequestRatio": {"cpu": "0.5"}}]
    code, status = pair.ask("POST", path(ns, "limitranges"), {"metadata": {"name": "bad"}, "spec": {"limits": wrong}})
    assert code == 422 and [(c["field"], c["message"]) for c in status["details"]["causes"]] == [
        ("spec.limits[0].default", "Forbidden: may not be specified when `type` is 'Pod'"),
        ("spec.limits[1].type", 'Duplicate value: "Pod"'),
        ("spec.limits[1].min[cpu]", 'Invalid value: "2": min value 2 is greater than max value 1'),
        ("spec.limits[2].limits", "Required value: either minimum or maximum storage value is required, but neither was provided"),
        ("spec.limits[3].type", 'Invalid value: "Thing": must be a standard limit type or fully qualified'),
        ("spec.limits[3].maxLimitRequestRatio[cpu]", 'Invalid value: "500m": ratio 500m is less than 1')]


def test_a_create_beyond_the_limit_is_forbidden_and_a_delete_makes_room(pair, ns):
    quota(pair, ns, {"configmaps": "3", "count/secrets": "1"})
    for i in range(3):
        pair.do("POST", path(ns, "configmaps"), config_map(f"c{i}"), at=pair.both[i % 2])
    message = 'configmaps "c3" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3'
    for at in pair.both:
        code, status = pair.ask("POST", path(ns, "configmaps"), config_map("c3"), at=at)
        assert (code, status["reason"], status["message"], status["details"]) == (403, "Forbidden", message, {"name": "c3", "kind": "configmaps"})
    code, status = pair.ask("POST", path(ns, "configmaps") + "?dryRun=All", config_map("c3"))
    assert code == 403
    done = pair.b.kubectl("create", "configmap", "c3", "-n", ns, check=False)
    assert done.stderr.strip() in ("error: failed to create configmap: " + message, "Error from server (Forbidden): " + message)  # new and old kubectl
    # An apply that creates an object is counted too.
    code, text = pair.a.request("PATCH", path(ns, "configmaps", "c3") + "?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c3"}},
                                headers={"Content-Type": "application/apply-patch+yaml"})
    assert code == 403 and "exceeded quota: q" in text
    # Updates, and objects of other kinds, are not counted.
    pair.do("PUT", path(ns, "configmaps", "c0"), {"metadata": {"name": "c0"}, "data": {"a": "b"}})
    pair.do("POST", path(ns, "serviceaccounts"), config_map("s"))
    pair.do("POST", path(ns, "secrets"), config_map("s"))
    pair.do("DELETE", path(ns, "configmaps", "c0"))
    wait_used(pair, ns, {"configmaps": "2", "count/secrets": "1"})
    pair.do("POST", path(ns, "configmaps"), config_map("c3"), at=pair.b)
    # The limits are lowered; objects that exceed them stay.
    pair.a.kubectl("patch", "quota", "q", "-n", ns, "-p", '{"spec":{"hard":{"configmaps":"1","count/secrets":null}}}')
    wait_status(pair, ns, "q", lambda status: status == {"hard": {"configmaps": "1"}, "used": {"configmaps": "3"}})
    pair.do("POST", path(ns, "secrets"), config_map("s2"))
    pair.do("DELETE", path(ns, "resourcequotas", "q"))
    wait_until("b has no quota", lambda: pair.ask("POST", path(ns, "configmaps"), config_map("free"), at=pair.b)[0] == 201)


def test_several_quotas_count_one_create(pair, ns):
    quota(pair, ns, {"configmaps": "5", "resourcequotas": "2"}, "wide")
    quota(pair, ns, {"count/configmaps": "1"}, "narrow")
    quota_of_pods = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "0"}, "scopes": ["Terminating"]}}
    code, status = pair.ask("POST", path(ns, "resourcequotas"), quota_of_pods)
    assert code == 403 and status["message"].endswith("exceeded quota: wide, requested: resourcequotas=1, used: resourcequotas=2, limited: resourcequotas=2")
    assert pair.ask("POST", path(ns, "resourcequotas"), {"metadata": {"name": "wide"}})[0] in (403, 409)
    pair.do("POST", path(ns, "configmaps"), config_map("one"))
    assert pair.do("GET", path(ns, "resourcequotas", "wide"))["status"]["used"] == {"configmaps": "1", "resourcequotas": "2"}
    assert pair.do("GET", path(ns, "resourcequotas", "narrow"))["status"]["used"] == {"count/configmaps": "1"}
    code, status = pair.ask("POST", path(ns, "configmaps"), config_map("two"), at=pair.b)
    assert code == 403 and "exceeded quota: narrow, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1" in status["message"]
    wait_used(pair, ns, {"configmaps": "1", "resourcequotas": "2"}, "wide")


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {
        "requests": {"cpu": "400m", "memory": "64Mi"}, "limits": {"cpu": "1"}}}], **spec}}


def test_what_pods_use_is_limited_and_free_when_they_have_ended(pair, ns):
    quota(pair, ns, {"cpu": "1", "limits.cpu": "2", "pods": "5"})
    for name in "xy":
        pair.do("POST", path(ns, "pods"), pod(name), at=pair.b)
    code, answer = pair.ask("POST", path(ns, "pods"), pod("z"))
    assert code == 403 and answer["message"] == ('pods "z" is forbidden: exceeded quota: q, requested: cpu=400m,limits.cpu=1, '
                                                 'used: cpu=800m,limits.cpu=2, limited: cpu=1,limits.cpu=2')
    code, answer = pair.ask("POST", path(ns, "pods"), {"metadata": {"name": "z"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert code == 403 and answer["message"] == 'pods "z" is forbidden: failed quota: q: must specify cpu for: c; limits.cpu for: c'
    ended = pair.do("GET", path(ns, "pods", "x"))
    ended["status"]["phase"] = "Succeeded"
    pair.do("PUT", path(ns, "pods", "x") + "/status", ended)
    wait_used(pair, ns, {"cpu": "400m", "limits.cpu": "1", "pods": "1"})
    pair.do("POST", path(ns, "pods"), pod("z"))


def test_scopes_select_the_pods_of_a_quota(pair, ns):
    quota(pair, ns, {"pods": "1"}, name="ending", scopes=["Terminating"])
    quota(pair, ns, {"pods": "1"}, name="best", scopeSelector={"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]})
    pair.do("POST", path(ns, "pods"), pod("x", activeDeadlineSeconds=60))
    pair.do("POST", path(ns, "pods"), pod("y"))
    wait_used(pair, ns, {"pods": "1"}, name="ending")
    wait_used(pair, ns, {"pods": "0"}, name="best")
    # An update that brings the pod into the scope counts like a create.
    code, answer = pair.ask("PUT", path(ns, "pods", "y"), {**pair.do("GET", path(ns, "pods", "y")), "spec": {
        **pair.do("GET", path(ns, "pods", "y"))["spec"], "activeDeadlineSeconds": 5}}, at=pair.b)
    assert code == 403 and answer["message"] == ('pods "y" is forbidden: exceeded quota: ending, requested: pods=1, used: pods=1, '
                                                 'limited: pods=1')


def test_updates_that_use_more_are_charged(pair, ns):
    quota(pair, ns, {"requests.storage": "5Gi", "gold.storageclass.storage.k8s.io/requests.storage": "5Gi", "services.nodeports": "1"})
    claim = pair.do("POST", path(ns, "persistentvolumeclaims"), {"metadata": {"name": "x"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "gold", "resources": {"requests": {"storage": "3Gi"}}}})
    used = {"requests.storage": "3Gi", "gold.storageclass.storage.k8s.io/requests.storage": "3Gi", "services.nodeports": "0"}
    wait_used(pair, ns, used)
    # Only a claim that is bound may grow, and only if its class allows it.
    pair.ask("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "gold"}, "provisioner": "p.example", "allowVolumeExpansion": True})
    claim = pair.do("PUT", path(ns, "persistentvolumeclaims", "x") + "/status", {**claim, "status": {"phase": "Bound"}})
    claim["spec"]["resources"]["requests"]["storage"] = "6Gi"
    code, answer = pair.ask("PUT", path(ns, "persistentvolumeclaims", "x"), claim, at=pair.b)
    assert code == 403 and "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=3Gi,requests.storage=3Gi" in answer["message"]
    pair.do("POST", path(ns, "services"), {"metadata": {"name": "x"}, "spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}})
    service = pair.do("GET", path(ns, "services", "x"))
    service["spec"]["type"] = "NodePort"
    code, answer = pair.ask("PUT", path(ns, "services", "x"), service)
    assert code == 403 and answer["message"] == ('services "x" is forbidden: exceeded quota: q, requested: services.nodeports=2, '
                                                 'used: services.nodeports=0, limited: services.nodeports=1')


def bare_pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_limit_ranges_set_defaults_and_refuse_what_is_out_of_bounds(pair, ns):
    limits = [{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "200m"},
               "maxLimitRequestRatio": {"cpu": "4"}}, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]
    pair.do("POST", path(ns, "limitranges"), {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    wait_until("both know the LimitRange", lambda: all("spec" in pair.do("GET", path(ns, "limitranges", "l"), at=at) for at in pair.both))
    made = pair.do("POST", path(ns, "pods"), bare_pod("x"), at=pair.b)
    assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "200m"}, "limits": {"cpu": "500m"}}
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container c; cpu limit for container c"}
    assert made["status"]["qosClass"] == "Burstable"

    def refused(plural, body):
        code, answer = pair.ask("POST", path(ns, plural), body)
        assert code == 403, answer
        return answer["message"]
    sized = pod("y")
    sized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}}
    assert refused("pods", sized) == ('pods "y" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, '
                                      "maximum cpu usage per Container is 1, but limit is 2, "
                                      "cpu max limit to request ratio per Container is 4, but provided ratio is 40.000000]")
    claim = {"metadata": {"name": "y"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}}
    assert refused("persistentvolumeclaims", claim) == (
        'persistentvolumeclaims "y" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi')


def test_pods_get_the_priority_of_their_class(pair, ns):
    made = pair.do("POST", path(ns, "pods"), bare_pod("x"))["spec"]
    assert (made["priority"], made["preemptionPolicy"], made.get("priorityClassName")) == (0, "PreemptLowerPriority", None)
    made = pair.do("POST", path(ns, "pods"), bare_pod("y", priorityClassName="system-node-critical"))["spec"]
    assert made["priority"] == 2000001000
    code, answer = pair.ask("POST", path(ns, "pods"), bare_pod("z", priorityClassName=f"of-{ns}"))
    assert code == 403 and answer["message"] == f'pods "z" is forbidden: no PriorityClass with name of-{ns} was found'
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    pair.do("POST", classes, {"metadata": {"name": f"of-{ns}"}, "value": 7, "preemptionPolicy": "Never"}, at=pair.b)
    made = pair.do("POST", path(ns, "pods"), bare_pod("z", priorityClassName=f"of-{ns}"))  # this instance waits until its cache has the class
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (7, "Never")
    code, answer = pair.ask("POST", path(ns, "pods"), bare_pod("w", priorityClassName=f"of-{ns}", priority=8))
    assert code == 403 and answer["message"] == ('pods "w" is forbidden: the integer value of priority (8) must not be provided in pod spec; '
                                                 "priority admission controller computed 7 from the given PriorityClass name")
    # An update that leaves the priority out keeps it.
    del made["spec"]["priority"]
    assert pair.do("PUT", path(ns, "pods", "z"), made)["spec"]["priority"] == 7


def test_the_default_roles_read_quotas(pair, ns):
    for user, role in (("adam", "admin"), ("edith", "edit"), ("vera", "view")):
        pair.do("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings", {
            "metadata": {"name": user}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
    pair.do("POST", path(ns, "resourcequotas"), {"metadata": {"name": "q"}})
    for user in ("adam", "edith", "vera"):
        for plural in ("resourcequotas", "limitranges"):
            wait_until(f"{user} reads {plural}", lambda user=user, plural=plural: pair.ask("GET", path(ns, plural), user=user)[0] == 200)
            assert pair.ask("POST", path(ns, plural), {"metadata": {"name": "x"}}, user=user)[0] == 403
        assert pair.ask("GET", path(ns, "resourcequotas", "q/status"), user=user)[0] == 200
        assert pair.ask("PUT", path(ns, "resourcequotas", "q/status"), {"metadata": {"name": "q"}}, user=user)[0] == 403


def create_many(pair, ns, n, before=lambda i: None):
    """Creates n ConfigMaps, half on each instance, at the same time. Returns the codes; 0 = the
    instance did not respond."""
    addresses = [urllib.parse.urlsplit(at.url) for at in pair.both]
    contexts = [at.context() for at in pair.both]
    of_thread = threading.local()

    def create(i):
        before(i)
        name = f"connection{i % 2}"
        if not hasattr(of_thread, name):
            address = addresses[i % 2]
            setattr(of_thread, name, http.client.HTTPSConnection(address.hostname, address.port, timeout=10, context=contexts[i % 2]))
        connection = getattr(of_thread, name)
        try:
            connection.request("POST", path(ns, "configmaps"), json.dumps(config_map(f"c{i}")), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            connection.close()
            return 0

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(create, range(n)))


def test_racing_creates_fill_the_limit_and_never_exceed_it(pair, ns):
    quota(pair, ns, {"configmaps": "50"})
    codes = create_many(pair, ns, 200)
    assert sorted(codes) == [201] * 50 + [403] * 150
    assert count(pair, ns) == 50
    wait_used(pair, ns, {"configmaps": "50"})


def test_the_death_of_an_instance_leaves_no_wrong_count(pair, ns):
    """The leader dies, with creates under way on both instances."""
    quota(pair, ns, {"configmaps": "40"})
    leads = pair.a.leader()["state"] == "leading"
    victim, other = (pair.a, pair.b) if leads else (pair.b, pair.a)
    codes = create_many(pair, ns, 80, lambda i: victim.send(signal.SIGKILL) if i == 30 else None)
    victim.wait()
    pair.a = other
    pair.b = pair.cluster.instance("c", *pair.flags).wait_ready()
    pair.both[:] = [pair.a, pair.b]
    n = count(pair, ns)
    assert codes.count(201) <= n <= 40 and 0 in codes
    wait_used(pair, ns, {"configmaps": str(n)})
    # The new leader repairs a wrong status, even one that a client wrote.
    wrong = pair.do("GET", path(ns, "resourcequotas", "q"))
    wrong["status"]["used"] = {"configmaps": "39"} if n != 39 else {"configmaps": "12"}
    del wrong["metadata"]["resourceVersion"]
    pair.do("PUT", path(ns, "resourcequotas", "q/status"), wrong)
    wait_used(pair, ns, {"configmaps": str(n)})
    codes = [pair.ask("POST", path(ns, "configmaps"), config_map(f"last-{i}"), at=pair.both[i % 2])[0] for i in range(42 - n)]
    assert codes == [201] * (40 - n) + [403] * 2
    assert count(pair, ns) == 40
