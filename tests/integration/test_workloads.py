# SPDX-License-Identifier: Apache-2.0
"""Pods, services, Deployments and so on, which --runtime-config=api/workloads=true serves as data: kubectl's commands, defaults,
rules, and the subresources that schedulers and autoscalers use."""
import itertools
import json

import old_kubectl
import pytest
from holdfastd import Cluster, wait_until

NUMBERS = itertools.count(1)


class Server:
    def __init__(self, cluster):
        self.a = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()

    def ask(self, method, path, body=None, content_type="application/json"):
        code, text = self.a.request(method, path, body, headers={"Content-Type": content_type})
        return code, json.loads(text) if text.startswith("{") else text

    def do(self, method, path, body=None, content_type="application/json"):
        code, answer = self.ask(method, path, body, content_type)
        assert code < 300, (method, path, code, answer)
        return answer


@pytest.fixture(scope="module")
def server():
    with Cluster(with_witness=False) as cluster:
        yield Server(cluster)


@pytest.fixture
def ns(server):
    name = f"workloads-{next(NUMBERS)}"
    server.do("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def apps(ns, plural, name="", sub=""):
    return f"/apis/apps/v1/namespaces/{ns}/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


def pods(ns, name="", sub=""):
    return f"/api/v1/namespaces/{ns}/pods" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


def deployment(name, **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
        "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}, **spec}}


def pod(name, **container):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox:1", **container}]}}


def test_all_kinds_are_in_discovery_and_can_be_explained(server):
    listed = {line.split()[0] for line in server.a.kubectl("api-resources", "--no-headers").stdout.splitlines()}
    assert {"pods", "nodes", "services", "endpoints", "persistentvolumes", "persistentvolumeclaims", "replicationcontrollers", "deployments",
            "replicasets", "statefulsets", "daemonsets", "controllerrevisions", "jobs", "cronjobs", "poddisruptionbudgets",
            "horizontalpodautoscalers", "networkpolicies", "ingresses", "ingressclasses", "endpointslices", "storageclasses",
            "volumeattachments", "csidrivers", "csinodes"} <= listed
    for field in ("pod.status.containerStatuses", "deployment.spec.strategy", "sts.spec.volumeClaimTemplates", "hpa.spec.metrics",
                  "pv.spec.csi", "ingress.spec.rules.http", "job.spec.podFailurePolicy"):
        explained = server.a.kubectl("explain", field).stdout
        assert "FIELD:" in explained or ("RESOURCE:" in explained and not old_kubectl.is_current()), field


def test_kubectl_creates_and_shows_them(server, ns):
    def kubectl(*args, **kwargs):
        return server.a.kubectl(*args, "-n", ns, **kwargs).stdout

    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl("run", "one", "--image=busybox", "--labels=run=one")
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    kubectl("create", "job", "work", "--image=busybox")
    if old_kubectl.is_current():
        kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *")
    else:
        template = {"spec": {"template": {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "nightly", "image": "busybox"}]}}}}
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
                                                       "spec": {"schedule": "0 3 * * *", "jobTemplate": template}}))

    def row(kind, *args):
        head, line = kubectl("get", kind, *args).splitlines()
        return [name.strip() for name in head.split("   ") if name.strip()], line.split()

    assert row("deploy")[1][:4] == ["web", "0/2", "0", "0"]
    assert row("deploy", "-o", "wide")[1][5:] == ["web", "nginx", "app=web"] or "app=web" in row("deploy", "-o", "wide")[1]
    assert row("pod")[1][:4] == ["one", "0/1", "Pending", "0"]
    assert row("svc")[1][:5] == ["web", "ClusterIP", "<none>", "<none>", "80/TCP"]
    assert row("job")[1][:3] == ["work", "Running", "0/1"]
    assert row("cj")[1][:1] == ["nightly"] and "<none>" in row("cj")[1]
    assert {line.split()[0] for line in kubectl("get", "all", "-o", "name").splitlines()} == {
        "pod/one", "service/web", "deployment.apps/web", "job.batch/work", "cronjob.batch/nightly"}


def test_a_deployment_gets_its_defaults(server, ns):
    spec = server.do("POST", apps(ns, "deployments"), deployment("a"))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    template = spec["template"]["spec"]
    assert template["containers"][0]["imagePullPolicy"] == "Always" and template["restartPolicy"] == "Always"
    recreate = server.do("POST", apps(ns, "deployments"), deployment("b", strategy={"type": "Recreate"}))["spec"]
    assert recreate["strategy"] == {"type": "Recreate"}
    again = server.do("PUT", apps(ns, "deployments", "a"), server.do("GET", apps(ns, "deployments", "a")))
    assert again["metadata"]["generation"] == 1 and again["status"] == {}


def test_a_pod_gets_its_status_and_class(server, ns):
    made = server.do("POST", pods(ns), {**pod("a", resources={"limits": {"cpu": "1", "memory": "1Gi"}}), "status": {"phase": "Running"}})
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["spec"]["enableServiceLinks"] is True
    assert server.do("POST", pods(ns), pod("b"))["status"]["qosClass"] == "BestEffort"
    made["status"]["phase"] = "Running"
    server.do("PUT", pods(ns, "a", "status"), made)
    assert server.do("GET", pods(ns, "a"))["status"]["phase"] == "Running"


def test_a_pod_has_the_overhead_of_its_runtime_class(server, ns):
    for name, overhead in (("heavy", {"overhead": {"podFixed": {"cpu": "1", "memory": "1Gi"}}}), ("light", {})):
        server.do("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": f"{ns}-{name}"}, "handler": "h", **overhead})

    def made(name, **spec):
        body = pod(name)
        body["spec"].update(spec)
        return server.ask("POST", pods(ns), body)

    code, answer = made("a", runtimeClassName=f"{ns}-heavy")
    assert code == 201 and answer["spec"]["overhead"] == {"cpu": "1", "memory": "1Gi"}, answer
    assert made("b", runtimeClassName=f"{ns}-heavy", overhead={"memory": "1024Mi", "cpu": "1000m"})[0] == 201
    code, answer = made("c", runtimeClassName=f"{ns}-light")
    assert code == 201 and "overhead" not in answer["spec"], answer
    for spec, why in (({"runtimeClassName": f"{ns}-none"}, f'RuntimeClass "{ns}-none" not found'),
                      ({"runtimeClassName": f"{ns}-heavy", "overhead": {"cpu": "2"}}, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
                      ({"runtimeClassName": f"{ns}-light", "overhead": {"cpu": "2"}},
                       "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
                      ({"overhead": {"cpu": "2"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead")):
        code, status = made("d", **spec)
        assert code == 403 and status["message"] == f'pods "d" is forbidden: pod rejected: {why}', status


def causes(answer):
    code, status = answer
    assert code == 422, answer
    return [(cause["field"], cause["message"]) for cause in status["details"]["causes"]]


def test_rules_of_selectors_and_pods(server, ns):
    body = deployment("a")
    body["spec"]["selector"]["matchLabels"]["app"] = "other"
    assert causes(server.ask("POST", apps(ns, "deployments"), body)) == [
        ("spec.template.metadata.labels", 'Invalid value: {"app":"a"}: `selector` does not match template `labels`')]
    del body["spec"]["selector"]
    assert causes(server.ask("POST", apps(ns, "deployments"), body))[0] == ("spec.selector", "Required value")
    code, status = server.ask("POST", pods(ns), {"metadata": {"name": "x"}, "spec": {"containers": []}})
    assert code == 422 and "spec.containers: Required value" in status["message"]
    server.do("POST", pods(ns), pod("p"))
    current = server.do("GET", pods(ns, "p"))
    current["spec"]["containers"][0]["command"] = ["sh"]
    assert "pod updates may not change fields other than" in causes(server.ask("PUT", pods(ns, "p"), current))[0][1]
    del current["spec"]["containers"][0]["command"]
    current["spec"]["containers"][0]["image"] = "busybox:2"
    server.do("PUT", pods(ns, "p"), current)


def test_scale_reads_and_writes_the_replicas(server, ns):
    server.do("POST", apps(ns, "deployments"), deployment("a"))
    scale = server.do("GET", apps(ns, "deployments", "a", "scale"))
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 1} and scale["status"] == {"replicas": 0, "selector": "app=a"}
    scale["spec"]["replicas"] = 3
    assert server.do("PUT", apps(ns, "deployments", "a", "scale"), scale)["spec"]["replicas"] == 3
    code, status = server.ask("PUT", apps(ns, "deployments", "a", "scale"), scale)
    assert code == 409 and 'deployments.apps "a"' in status["message"], "an older version"
    server.do("PATCH", apps(ns, "deployments", "a", "scale"), {"spec": {"replicas": 5}}, "application/merge-patch+json")
    assert server.do("GET", apps(ns, "deployments", "a"))["spec"]["replicas"] == 5
    assert "scaled" in server.a.kubectl("scale", "deployment", "a", "--replicas=7", "-n", ns).stdout
    assert server.do("GET", apps(ns, "deployments", "a"))["spec"]["replicas"] == 7
    if old_kubectl.is_current():
        table = [line.split() for line in server.a.kubectl("get", "deployment", "a", "--subresource=scale", "-n", ns).stdout.splitlines()]
        assert table[0] == ["NAME", "DESIRED", "AVAILABLE", "AGE"] and table[1][:3] == ["a", "7", "0"], table
    code, status = server.ask("PATCH", apps(ns, "deployments", "a", "scale"), {"spec": {"replicas": -1}}, "application/merge-patch+json")
    assert code == 422 and "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in status["message"]
    assert server.ask("GET", apps(ns, "deployments", "none", "scale"))[0] == 404
    applied = server.do("PATCH", apps(ns, "deployments", "a", "scale") + "?fieldManager=hpa&force=true",
                        {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}, "application/apply-patch+yaml")
    assert applied["spec"]["replicas"] == 2
    owners = server.do("GET", apps(ns, "deployments", "a"))["metadata"]["managedFields"]
    assert [(o["manager"], o["subresource"]) for o in owners if o["operation"] == "Apply"] == [("hpa", "scale")]


def test_a_binding_assigns_a_pod_once(server, ns):
    server.do("POST", pods(ns), pod("a"))
    bind = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert server.do("POST", pods(ns, "a", "binding"), bind)["status"] == "Success"
    assert server.do("GET", pods(ns, "a"))["spec"]["nodeName"] == "n1"
    code, status = server.ask("POST", pods(ns, "a", "binding"), bind)
    assert code == 409 and 'pod a is already assigned to node "n1"' in status["message"]
    code, status = server.ask("POST", pods(ns, "a", "binding"), {**bind, "target": {}})
    assert code == 422 and "target.name: Required value" in status["message"]


def test_an_eviction_deletes_a_pod(server, ns):
    uid = server.do("POST", pods(ns), pod("a"))["metadata"]["uid"]
    evict = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    wrong = server.ask("POST", pods(ns, "a", "eviction"), {**evict, "deleteOptions": {"preconditions": {"uid": "other"}}})
    assert wrong[0] == 409
    right = server.ask("POST", pods(ns, "a", "eviction"), {**evict, "deleteOptions": {"preconditions": {"uid": uid}}})
    assert right[0] == 201 and right[1]["status"] == "Success"
    assert server.ask("GET", pods(ns, "a"))[0] == 404
    assert server.ask("POST", pods(ns, "a", "eviction"), evict)[0] == 404


def test_an_apply_with_an_unknown_field_is_refused(server, ns):
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("a")}
    body["spec"]["colour"] = "red"
    code, status = server.ask("PATCH", apps(ns, "deployments", "a") + "?fieldManager=m&fieldValidation=Ignore", body, "application/apply-patch+yaml")
    assert code == 500 and status["message"] == (
        f"failed to create typed patch object ({ns}/a; apps/v1, Kind=Deployment): .spec.colour: field not declared in schema")
    body["status"] = {"x": 1}
    message = server.ask("PATCH", apps(ns, "deployments", "a") + "?fieldManager=m", body, "application/apply-patch+yaml")[1]["message"]
    assert ".spec.colour: field not declared in schema" in message and ".status.x: field not declared in schema" in message


def test_a_dry_run_of_a_create_may_name_a_version(server, ns):
    made = server.do("POST", apps(ns, "deployments"), deployment("a"))
    made["metadata"]["name"] = "b"
    code, status = server.ask("POST", apps(ns, "deployments"), made)
    assert (code, status["message"]) == (400, "resourceVersion should not be set on objects to be created")
    server.do("POST", apps(ns, "deployments") + "?dryRun=All", made)
    assert server.ask("GET", apps(ns, "deployments", "b"))[0] == 404


def test_owned_pods_go_with_their_owner(server, ns):
    owner = server.do("POST", apps(ns, "replicasets"), deployment("rs"))
    body = pod("child")
    body["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": owner["metadata"]["uid"]}]
    server.do("POST", pods(ns), body)
    server.do("DELETE", apps(ns, "replicasets", "rs") + "?propagationPolicy=Foreground")
    wait_until("the pod is gone", lambda: server.ask("GET", pods(ns, "child"))[0] == 404)


def test_the_service_of_the_server_is_there(server):
    wait_until("the service", lambda: server.ask("GET", "/api/v1/namespaces/default/services/kubernetes")[0] == 200)


def test_they_are_not_served_by_default(server):
    with Cluster(with_witness=False) as cluster:
        plain = cluster.instance("plain").wait_ready()
        assert plain.request("GET", "/api/v1/pods")[0] == 404
        assert plain.request("GET", "/apis/apps/v1")[0] == 404


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def tolerated(key, seconds=300):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def test_a_pod_stays_for_minutes_on_a_lost_node(server, ns):
    def tolerations(name, *own):
        made = server.do("POST", pods(ns), {"metadata": {"name": name}, "spec": {**pod("x")["spec"], "tolerations": list(own)}})
        return made["spec"]["tolerations"]

    made = server.do("POST", pods(ns), pod("a"))
    assert made["spec"]["tolerations"] == [tolerated(NOT_READY), tolerated(UNREACHABLE)]
    assert all("f:tolerations" not in m["fieldsV1"]["f:spec"] for m in made["metadata"]["managedFields"])
    own = {"key": NOT_READY, "operator": "Exists"}
    assert tolerations("b", own) == [own, tolerated(UNREACHABLE)]
    everything = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert tolerations("c", everything) == [everything]
    other = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoSchedule"}
    assert tolerations("d", other) == [other, tolerated(NOT_READY), tolerated(UNREACHABLE)]
    changed = server.do("PATCH", pods(ns, "a"), {"spec": {"tolerations": [tolerated(NOT_READY, 7), tolerated(UNREACHABLE)]}},
                        "application/merge-patch+json")
    assert changed["spec"]["tolerations"][0]["tolerationSeconds"] == 7
    # A pod template gets no tolerations; only pods do.
    assert "tolerations" not in server.do("POST", apps(ns, "deployments"), deployment("a"))["spec"]["template"]["spec"]


def test_a_runtime_class_says_where_its_pods_run(server, ns):
    own = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute", "tolerationSeconds": 5}]
    server.do("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": ns}, "handler": "h", "scheduling": {
        "nodeSelector": {"k": "v"}, "tolerations": own}})

    def make(name, **spec):
        return server.ask("POST", pods(ns), {"metadata": {"name": name}, "spec": {**pod("x")["spec"], "runtimeClassName": ns, **spec}})

    code, made = make("a")
    assert code == 201 and made["spec"]["nodeSelector"] == {"k": "v"}
    assert made["spec"]["tolerations"] == [tolerated(NOT_READY), tolerated(UNREACHABLE), *own]
    code, made = make("b", nodeSelector={"k": "v", "x": "y"}, tolerations=[
        {"key": "a", "operator": "Equal", "value": "q"}, {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute"}])
    assert made["spec"]["nodeSelector"] == {"k": "v", "x": "y"}
    # The class tolerates all values of `a`, and the pod `b` for ever.
    assert made["spec"]["tolerations"] == [{"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute"}, tolerated(NOT_READY),
                                           tolerated(UNREACHABLE), own[0]]
    assert make("c", tolerations=[{"operator": "Exists"}])[1]["spec"]["tolerations"] == [{"operator": "Exists"}]
    code, status = make("d", nodeSelector={"k": "w"})
    assert code == 403 and status["message"] == (
        'pods "d" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[k] = v; pod.spec.nodeSelector[k] = w')
    assert make("e", tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(1001)])[0] == 403


def test_typed_clients_can_read_what_was_made(server, ns):
    """The models of the Python client have required fields, so zeros in the status must be sent."""
    kubernetes = pytest.importorskip("kubernetes")
    template = deployment("x")["spec"]
    apps_kinds = ("statefulsets", "daemonsets", "replicasets", "deployments")
    for plural in apps_kinds:
        spec = {**template, **({"serviceName": "x"} if plural == "statefulsets" else {})}
        server.do("POST", apps(ns, plural), {"metadata": {"name": "x"}, "spec": spec})
    server.do("POST", f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", {"metadata": {"name": "x"}, "spec": {"minAvailable": 1}})
    server.do("POST", f"/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers", {"metadata": {"name": "x"}, "spec": {
        "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}})
    server.do("POST", f"/api/v1/namespaces/{ns}/replicationcontrollers", {"metadata": {"name": "x"}, "spec": {
        "selector": {"app": "x"}, "template": template["template"]}})
    api = kubernetes.config.new_client_from_config(str(server.a.kubeconfig))
    of_apps = kubernetes.client.AppsV1Api(api)
    assert of_apps.read_namespaced_stateful_set("x", ns).status.replicas == 0
    assert of_apps.read_namespaced_daemon_set("x", ns).status.number_misscheduled == 0
    assert of_apps.read_namespaced_replica_set("x", ns).status.replicas == 0
    assert kubernetes.client.CoreV1Api(api).read_namespaced_replication_controller("x", ns).status.replicas == 0
    assert kubernetes.client.PolicyV1Api(api).read_namespaced_pod_disruption_budget("x", ns).status.expected_pods == 0
    scaler = kubernetes.client.AutoscalingV1Api(api).read_namespaced_horizontal_pod_autoscaler("x", ns)
    assert (scaler.status.current_replicas, scaler.status.desired_replicas) == (0, 0)
    api.close()
    path = f"/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers/x"
    before = server.do("GET", path)
    assert server.do("PUT", path, before)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert server.do("GET", path.replace("/v1/", "/v2/", 1))["status"] == {"desiredReplicas": 0}


def test_creators_own_what_they_set(server, ns):
    """managedFields after a create, as in kube-apiserver: no status, and no structs that Go's types have anyway."""
    made = server.do("POST", apps(ns, "deployments") + "?fieldManager=m", deployment("a"))
    (entry,) = made["metadata"]["managedFields"]
    none = {}
    container = {".": none, **{f"f:{k}": none for k in (
        "image", "imagePullPolicy", "name", "resources", "terminationMessagePath", "terminationMessagePolicy")}}
    pod_spec = {"f:containers": {'k:{"name":"c"}': container}, "f:dnsPolicy": none, "f:restartPolicy": none, "f:schedulerName": none,
                "f:securityContext": none, "f:terminationGracePeriodSeconds": none}
    assert entry["fieldsV1"] == {"f:spec": {
        "f:progressDeadlineSeconds": none, "f:replicas": none, "f:revisionHistoryLimit": none, "f:selector": none,
        "f:strategy": {"f:rollingUpdate": {".": none, "f:maxSurge": none, "f:maxUnavailable": none}, "f:type": none},
        "f:template": {"f:metadata": {"f:labels": {".": none, "f:app": none}}, "f:spec": pod_spec}}}
    made = server.do("POST", pods(ns), pod("a"))
    assert list(made["metadata"]["managedFields"][0]["fieldsV1"]) == ["f:spec"]
    assert "managedFields" not in server.do("POST", "/api/v1/nodes", {"metadata": {"name": ns}})["metadata"]


def test_a_new_node_is_not_ready(server, ns):
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert server.do("POST", "/api/v1/nodes", {"metadata": {"name": ns}})["spec"]["taints"] == [taint]
    own = {"key": "a", "effect": "NoExecute"}
    made = server.do("POST", "/api/v1/nodes", {"metadata": {"name": f"{ns}-b"}, "spec": {"taints": [own]}})
    assert made["spec"]["taints"] == [own, taint]
    made["spec"]["taints"] = []
    assert "taints" not in server.do("PUT", f"/api/v1/nodes/{ns}-b", made)["spec"]


def test_a_daemon_set_counts_its_templates(server, ns):
    key = "deprecated.daemonset.template.generation"
    made = server.do("POST", apps(ns, "daemonsets"), deployment("a"))
    assert made["metadata"]["annotations"] == {key: "1"}
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    made["metadata"]["annotations"] = {key: "7"}
    made = server.do("PUT", apps(ns, "daemonsets", "a"), made)
    assert made["metadata"]["annotations"] == {key: "2"}
    again = server.do("PUT", apps(ns, "daemonsets", "a"), made)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_job_has_the_labels_of_its_pods(server, ns):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    made = server.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] and made["metadata"]["labels"]["job-name"] == "j"
    assert made["spec"]["manualSelector"] is False
    del template["metadata"]
    made = server.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", {"metadata": {"name": "k"}, "spec": {"template": template}})
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] and made["metadata"]["labels"]["job-name"] == "k"


def test_endpoints_are_deprecated(server, ns):
    done = server.a.kubectl("get", "endpoints", "-n", ns)
    assert "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice" in done.stderr
