# SPDX-License-Identifier: Apache-2.0
"""The paths that change a part of a pod: .../ephemeralcontainers, .../resize and .../binding. Rules and texts were compared with those of
kube-apiserver 1.36.3."""
import itertools
import json

import old_kubectl
import pytest
from holdfastd import Cluster, wait_until

NUMBERS = itertools.count(1)
STRATEGIC, MERGE, APPLY = ("application/strategic-merge-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")


class Server:
    def __init__(self, cluster):
        self.a = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()

    def ask(self, method, path, body=None, content_type="application/json", **kwargs):
        code, text = self.a.request(method, path, body, headers={"Content-Type": content_type}, **kwargs)
        return code, json.loads(text) if text.startswith("{") else text

    def do(self, method, path, body=None, content_type="application/json"):
        code, answer = self.ask(method, path, body, content_type)
        assert code < 300, (method, path, code, answer)
        return answer

    def causes(self, path, body, content_type=STRATEGIC, method="PATCH"):
        """Returns the causes of a write that is refused with 422."""
        code, answer = self.ask(method, path, body, content_type)
        assert code == 422, (code, answer)
        return [(cause["field"], cause["message"].split("\n")[0]) for cause in answer["details"]["causes"]]


@pytest.fixture(scope="module")
def server():
    with Cluster(with_witness=False) as cluster:
        yield Server(cluster)


@pytest.fixture
def ns(server):
    name = f"parts-{next(NUMBERS)}"
    server.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def pods(ns, name="", sub=""):
    return f"/api/v1/namespaces/{ns}/pods" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec}}


def debugger(name="d", **members):
    return {"spec": {"ephemeralContainers": [{"name": name, "image": "x:1", **members}]}}


def resources(name="c", **of):
    return {"spec": {"containers": [{"name": name, "resources": of}]}}


# ---- ephemeral containers ----

def test_discovery_lists_the_paths(server):
    listed = {r["name"]: (r["kind"], r["verbs"]) for r in server.do("GET", "/api/v1")["resources"]}
    for name in ("pods/ephemeralcontainers", "pods/resize"):
        assert listed[name] == ("Pod", ["get", "patch", "update"])


def test_an_ephemeral_container_is_added_and_nothing_else_changes(server, ns):
    made = server.do("POST", pods(ns), pod("a"))
    path = pods(ns, "a", "ephemeralcontainers")
    assert server.do("GET", path) == made
    patch = {**debugger(targetContainerName="c", tty=True), "metadata": {"labels": {"x": "y"}}, "status": {"phase": "Running"}}
    patch["spec"]["nodeName"] = "n"
    patch["spec"]["containers"] = [{"name": "c", "image": "other"}]
    got = server.do("PATCH", path + "?fieldManager=m", patch, STRATEGIC)
    (added,) = got["spec"].pop("ephemeralContainers")
    assert added == {"name": "d", "image": "x:1", "targetContainerName": "c", "tty": True, "imagePullPolicy": "IfNotPresent", "resources": {},
                     "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    assert got["spec"] == made["spec"] and "labels" not in got["metadata"] and got["status"]["phase"] == "Pending"
    assert got["metadata"]["generation"] == 2
    (entry,) = [m for m in got["metadata"]["managedFields"] if m["manager"] == "m"]
    assert entry["subresource"] == "ephemeralcontainers" and list(entry["fieldsV1"]) == ["f:spec"]
    assert list(entry["fieldsV1"]["f:spec"]) == ["f:ephemeralContainers"]
    got = server.do("GET", pods(ns, "a"))
    got["spec"]["ephemeralContainers"].append({"name": "e", "image": "y:1"})
    got["spec"]["hostname"] = "h"
    put = server.do("PUT", path, got)
    assert [c["name"] for c in put["spec"]["ephemeralContainers"]] == ["d", "e"] and "hostname" not in put["spec"]


def test_a_zero_that_a_typed_client_leaves_out_is_no_change(server, ns):
    """Go's clients drop false, "" and 0 where the field is no pointer."""
    empty = {"env": [{"name": "A", "value": ""}], "tty": False}

    def drop(container):
        del container["env"][0]["value"], container["tty"]

    made = server.do("POST", pods(ns), pod("a", hostIPC=False, containers=[{"name": "c", "image": "busybox:1", **empty}]))
    drop(made["spec"]["containers"][0])
    del made["spec"]["hostIPC"]
    made["metadata"]["labels"] = {"x": "y"}
    made = server.do("PUT", pods(ns, "a"), made)
    server.do("PATCH", pods(ns, "a"), {"spec": {"containers": [{"name": "c", **empty}]}}, STRATEGIC)
    assert server.do("GET", pods(ns, "a"))["metadata"]["generation"] == 1
    made["metadata"].pop("resourceVersion")
    made["spec"]["containers"][0]["image"] = "busybox:2"
    server.do("PUT", pods(ns, "a"), made)
    path = pods(ns, "a", "ephemeralcontainers")
    got = server.do("PATCH", path, debugger(**empty), STRATEGIC)
    drop(got["spec"]["ephemeralContainers"][0])
    got["spec"]["ephemeralContainers"].append({"name": "e", "image": "y:1"})
    assert len(server.do("PUT", path, got)["spec"]["ephemeralContainers"]) == 2


def test_existing_ephemeral_containers_stay_as_they_are(server, ns):
    server.do("POST", pods(ns), pod("a"))
    path = pods(ns, "a", "ephemeralcontainers")
    server.do("PATCH", path, debugger(), STRATEGIC)
    field = "spec.ephemeralContainers"
    assert server.causes(path, debugger(image="x:2")) == [(field, 'Forbidden: existing ephemeral containers "d" may not be changed')]
    assert server.causes(path, debugger("e"), MERGE) == [(field, 'Forbidden: existing ephemeral containers "d" may not be removed')]
    got = server.do("GET", pods(ns, "a"))
    del got["spec"]["ephemeralContainers"]
    ((field, why),) = server.causes(pods(ns, "a"), got, "application/json", "PUT")
    assert field == "spec" and why.startswith("Forbidden: pod updates may not change fields other than ")
    code, status = server.ask("PUT", path, {**got, "metadata": {"name": "a", "resourceVersion": "1"}})
    assert code == 409, status


@pytest.mark.parametrize("member, value", [
    ("ports", [{"containerPort": 80}]), ("resources", {"limits": {"cpu": "1"}}), ("lifecycle", {}), ("livenessProbe", {"exec": {"command": ["a"]}}),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]), ("restartPolicy", "Always")])
def test_an_ephemeral_container_may_not_have_it(server, member, value):
    server.ask("POST", pods("default"), pod("allow"))
    causes = server.causes(pods("default", "allow", "ephemeralcontainers"), debugger(**{member: value}))
    assert causes == [(f"spec.ephemeralContainers[0].{member}", "Forbidden: cannot be set for an Ephemeral Container")]


def test_names_of_ephemeral_containers(server, ns):
    server.do("POST", pods(ns), pod("a", volumes=[{"name": "v", "emptyDir": {}}]))
    path, of = pods(ns, "a", "ephemeralcontainers"), "spec.ephemeralContainers[0]."
    assert server.causes(path, debugger("c")) == [(of + "name", 'Duplicate value: "c"')]
    assert server.causes(path, debugger(targetContainerName="z")) == [(of + "targetContainerName", 'Not found: "z"')]
    assert server.causes(path, debugger(image=None)) == [(of + "image", "Required value")]
    assert server.causes(path, debugger(image=" x")) == [(of + "image", 'Invalid value: " x": must not have leading or trailing whitespace')]
    assert server.causes(path, debugger(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "s"}])) == [
        (of + "volumeMounts[0].subPath", "Forbidden: cannot be set for an Ephemeral Container")]
    both = {"spec": {"ephemeralContainers": [{"name": "d", "image": "x"}, {"name": "d", "image": "y"}]}}
    assert server.causes(path, both, MERGE) == [("spec.ephemeralContainers[1].name", 'Duplicate value: "d"')]


def test_pods_and_templates_are_not_created_with_ephemeral_containers(server, ns):
    assert server.causes(pods(ns), pod("a", **debugger()["spec"]), "application/json", "POST") == [
        ("spec.ephemeralContainers", "Forbidden: cannot be set on create")]
    assert server.ask("GET", pods(ns, "a", "ephemeralcontainers"))[0] == 404
    assert server.ask("PATCH", pods(ns, "a", "ephemeralcontainers"), {}, STRATEGIC)[0] == 404
    assert server.ask("DELETE", pods(ns, "a", "ephemeralcontainers"))[0] == 405


def test_an_apply_owns_only_its_ephemeral_containers(server, ns):
    server.do("POST", pods(ns), pod("a"))
    path = pods(ns, "a", "ephemeralcontainers") + "?fieldManager=m"
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}},
              "spec": {"containers": [{"name": "c", "image": "other"}], **debugger()["spec"]}}
    got = server.do("PATCH", path, config, APPLY)
    assert got["spec"]["containers"][0]["image"] == "busybox:1" and "labels" not in got["metadata"]
    (entry,) = [m for m in got["metadata"]["managedFields"] if m["operation"] == "Apply"]
    assert entry["subresource"] == "ephemeralcontainers" and list(entry["fieldsV1"]) == ["f:spec"]
    assert list(entry["fieldsV1"]["f:spec"]) == ["f:ephemeralContainers"]
    config["spec"]["ephemeralContainers"] = []
    code, status = server.ask("PATCH", path, config, APPLY)
    assert code == 422 and 'existing ephemeral containers "d" may not be removed' in status["message"]


def test_kubectl_debugs_a_pod(server, ns):
    if not old_kubectl.is_current():
        pytest.skip("kubectl 1.20 debugs with an alpha version of the path")
    server.do("POST", pods(ns), pod("a"))
    server.a.kubectl("debug", "a", "-n", ns, "--image=busybox", "--target=c", "-c", "shell", "--attach=false")
    got = server.do("GET", pods(ns, "a"))["spec"]["ephemeralContainers"]
    assert [(c["name"], c["targetContainerName"]) for c in got] == [("shell", "c")]


def test_a_part_needs_a_right_of_its_own(server, ns):
    server.do("POST", pods(ns), pod("a"))
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}, {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/"
    server.do("POST", rbac + "roles", {"metadata": {"name": "r"}, "rules": rules})
    server.do("POST", rbac + "rolebindings", {"metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                                              "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}]})

    def ask(part):
        code, text = server.a.request("PATCH", pods(ns, "a", part), {}, headers={"Content-Type": MERGE, "Impersonate-User": "u"})
        return code, json.loads(text)

    wait_until("the role", lambda: ask("resize")[0] == 200)
    code, status = ask("ephemeralcontainers")
    assert code == 403 and 'cannot patch resource "pods/ephemeralcontainers" in API group "" in the namespace' in status["message"]


# ---- resize ----

def burstable(name="a"):
    return pod(name, containers=[{"name": "c", "image": "b:1", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1000m", "memory": "1Gi"}}},
                                 {"name": "d", "image": "b:1"}])


def test_a_resize_changes_cpu_and_memory_only(server, ns):
    made = server.do("POST", pods(ns), burstable())
    path = pods(ns, "a", "resize")
    patch = resources(requests={"cpu": "200m"})
    patch["spec"]["containers"][0]["image"] = "other"
    got = server.do("PATCH", path + "?fieldManager=m", patch, STRATEGIC)
    assert got["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    assert got["spec"]["containers"][0]["image"] == "b:1" and got["metadata"]["generation"] == 2
    assert got["status"] == made["status"]
    (entry,) = [m for m in got["metadata"]["managedFields"] if m["manager"] == "m"]
    assert entry["subresource"] == "resize"
    assert entry["fieldsV1"]["f:spec"]["f:containers"] == {'k:{"name":"c"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}


@pytest.mark.parametrize("patch, content_type, field, why", [
    (resources(requests={"cpu": None}, limits={"cpu": None}), STRATEGIC, "spec.containers[0].resources.requests",
     "Forbidden: resource requests cannot be removed"),
    (resources(limits={"ephemeral-storage": "1Gi"}), STRATEGIC, "spec", "Forbidden: only cpu and memory resources are mutable"),
    (resources("z"), STRATEGIC, "spec.containers[0].image", "Required value"),
    ({"spec": {"containers": [{"name": "d", "image": "b:1"}, {"name": "c", "image": "b:1"}]}}, MERGE, "spec.containers[0].name",
     "Forbidden: containers may not be renamed or reordered on resize"),
    ({"spec": {"containers": [{"name": "c", "image": "b:1"}]}}, MERGE, "spec.containers", "Forbidden: containers may not be added or removed on resize"),
    ({"spec": {"containers": [{"name": "c", "resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]}]}}, STRATEGIC,
     "spec.containers[0].resizePolicy", 'Unsupported value: "gpu": supported values: "cpu", "memory"')])
def test_a_resize_is_refused(server, patch, content_type, field, why):
    server.ask("POST", pods("default"), burstable("bound"))
    assert (field, why) in server.causes(pods("default", "bound", "resize"), patch, content_type)


def test_an_apply_resizes_the_pod_itself(server, ns):
    made = server.do("POST", pods(ns), pod("a", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"resources": {"limits": {"cpu": "3"}}}}
    path = pods(ns, "a", "resize") + "?fieldManager=m&force=true"
    assert server.do("PATCH", path, config, APPLY)["spec"]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    assert server.do("GET", pods(ns, "a"))["metadata"]["generation"] == made["metadata"]["generation"] + 1


def test_a_resize_keeps_the_class_of_the_pod(server, ns):
    server.do("POST", pods(ns), pod("a"))
    assert server.causes(pods(ns, "a", "resize"), resources(requests={"cpu": "1"})) == [
        ("spec", 'Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing')]


def using(name, *ports):
    return {"name": name, "image": "b", "ports": list(ports)}


def test_two_containers_cannot_use_the_same_port_of_the_node(server, ns):
    web, dns = {"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "hostPort": 8080, "protocol": "UDP"}
    local = {"containerPort": 81, "hostPort": 8080, "hostIP": "127.0.0.1"}
    refused = ("spec.containers[1].ports[1].hostPort", 'Duplicate value: "TCP//8080"')
    assert server.causes(pods(ns), pod("a", containers=[using("c", web), using("d", dns, web)]), "application/json", "POST") == [refused]
    assert server.causes(pods(ns), pod("a", hostNetwork=True, containers=[using("c", {"containerPort": 80}), using("d", {"containerPort": 80})]),
                         "application/json", "POST") == [("spec.containers[1].ports[0].hostPort", 'Duplicate value: "TCP//80"')]
    init = {"initContainers": [using("i", web), using("j", local, local)]}
    assert server.causes(pods(ns), pod("a", **init), "application/json", "POST") == [
        ("spec.initContainers[0].ports[1].hostPort", 'Duplicate value: "TCP/127.0.0.1/8080"')]
    server.do("POST", pods(ns), pod("a", containers=[using("c", web), using("d", dns, local, {"containerPort": 80}, {"containerPort": 81})],
                                    initContainers=[using("i", web), using("j", web)]))


def test_a_node_that_cannot_resize_is_seen(server, ns):
    made = server.do("POST", pods(ns), burstable())
    made["status"]["containerStatuses"] = [{"name": "c", "image": "b:1", "imageID": "", "ready": True, "restartCount": 0,
                                            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    server.do("PUT", pods(ns, "a", "status"), made)
    assert server.causes(pods(ns, "a", "resize"), resources(requests={"cpu": "200m"})) == [
        ("spec", "Forbidden: Pod running on node without support for resize")]


def test_quotas_and_limits_hold_for_a_resize(server, ns):
    made = burstable()
    made["spec"]["containers"].pop()
    server.do("POST", pods(ns), made)
    server.do("POST", f"/api/v1/namespaces/{ns}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "max": {"cpu": "2"}}]}})
    server.do("POST", f"/api/v1/namespaces/{ns}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}})
    quota = f"/api/v1/namespaces/{ns}/resourcequotas/q"
    path = pods(ns, "a", "resize")

    def used():
        return server.do("GET", quota).get("status", {}).get("used", {}).get("requests.cpu")

    wait_until("the quota", lambda: used() == "100m")
    code, status = server.ask("PATCH", path, resources(requests={"cpu": "2500m"}, limits={"cpu": "3"}), STRATEGIC)
    assert code == 403 and "maximum cpu usage per Container is 2, but limit is 3" in status["message"]
    code, status = server.ask("PATCH", path, resources(requests={"cpu": "1500m"}, limits={"cpu": "2"}), STRATEGIC)
    assert code == 403 and "exceeded quota: q, requested: requests.cpu=1400m, used: requests.cpu=100m, limited: requests.cpu=1" in status["message"]
    server.do("PATCH", path, resources(requests={"cpu": "500m"}), STRATEGIC)
    wait_until("the quota", lambda: used() == "500m")


# ---- updates and bindings ----

@pytest.mark.parametrize("patch, field, why", [
    ({"tolerations": []}, "spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds"),
    ({"activeDeadlineSeconds": 6}, "spec.activeDeadlineSeconds", "Invalid value: 6: must be less than or equal to previous value"),
    ({"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds", "Invalid value: null: must not update from a positive integer to nil value"),
    ({"schedulingGates": [{"name": "a/b"}]}, "spec.schedulingGates[0].name",
     "Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"),
    ({"containers": []}, "spec.containers", "Forbidden: pod updates may not add or remove containers"),
    # The rules of a spec hold for the whole of a spec that changes.
    ({"containers": [{"name": "c", "image": " x"}]}, "spec.containers[0].image", 'Invalid value: " x": must not have leading or trailing whitespace'),
    ({"nodeName": "n"}, "spec", None), ({"nodeSelector": {"a": "b"}}, "spec", None), ({"terminationGracePeriodSeconds": 1}, "spec", None)])
def test_an_update_may_change_little(server, patch, field, why):
    server.ask("POST", pods("default"), pod("fixed", activeDeadlineSeconds=5, tolerations=[{"key": "k", "operator": "Exists"}]))
    causes = server.causes(pods("default", "fixed"), {"spec": patch}, MERGE)
    assert (field, why) in causes or (why is None and causes[0][0] == "spec" and "pod updates may not change fields" in causes[0][1]), causes


def test_gates_hold_a_pod_back(server, ns):
    made = server.do("POST", pods(ns), pod("a", schedulingGates=[{"name": "a/b"}], nodeSelector={"a": "b"}))
    assert [(c["type"], c["status"], c["reason"]) for c in made["status"]["conditions"]] == [("PodScheduled", "False", "SchedulingGated")]
    assert server.causes(pods(ns, "a"), {"spec": {"nodeSelector": {"a": "c"}}}, MERGE) == [
        ("spec.nodeSelector", 'Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)')]
    assert server.do("PATCH", pods(ns, "a"), {"spec": {"nodeSelector": {"x": "y"}}}, MERGE)["spec"]["nodeSelector"] == {"a": "b", "x": "y"}
    bind = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    code, status = server.ask("POST", pods(ns, "a", "binding"), bind)
    assert code == 409 and status["message"] == 'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates'
    before = server.do("PATCH", pods(ns, "a"), {"spec": {"schedulingGates": []}}, MERGE)
    code, status = server.ask("POST", pods(ns, "a", "binding"), {**bind, "metadata": {"name": "a", "uid": "other"}})
    assert code == 409 and "Precondition failed: UID in precondition: other" in status["message"]
    server.do("POST", pods(ns, "a", "binding"), {**bind, "metadata": {"name": "a", "labels": {"l": "m"}, "annotations": {"x": "y"}}})
    got = server.do("GET", pods(ns, "a"))
    assert got["spec"]["nodeName"] == "n1" and got["metadata"]["labels"] == {"l": "m"} and got["metadata"]["annotations"] == {"x": "y"}
    assert [(c["type"], c["status"]) for c in got["status"]["conditions"]] == [("PodScheduled", "True")]
    assert got["metadata"]["generation"] == before["metadata"]["generation"]
    assert got["metadata"]["managedFields"] == before["metadata"]["managedFields"]


def test_the_class_counts_all_containers(server, ns):
    same = {"limits": {"cpu": "1", "memory": "1Gi"}}
    guaranteed = [{"name": "c", "image": "b", "resources": same}]
    for spec, expected in (({"containers": guaranteed}, "Guaranteed"),
                           ({"containers": guaranteed, "initContainers": [{"name": "i", "image": "b"}]}, "Burstable"),
                           ({"containers": [{"name": "c", "image": "b", "resources": {"limits": {"ephemeral-storage": "1Gi"}}}]}, "BestEffort")):
        made = server.do("POST", pods(ns), {"metadata": {"generateName": "a"}, "spec": spec})
        assert made["status"]["qosClass"] == expected, spec


def test_ports_of_the_host(server, ns):
    made = server.do("POST", pods(ns), pod("a", hostNetwork=True, containers=[{"name": "c", "image": "b", "ports": [{"containerPort": 80}]}]))
    assert made["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
