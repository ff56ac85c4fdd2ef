# SPDX-License-Identifier: Apache-2.0
"""For what services, claims, Ingresses, budgets and autoscalers are refused, and which defaults they get. Most causes and texts were
compared with those of kube-apiserver 1.36.3."""
import itertools
import json

import pytest
from holdfastd import Cluster

NUMBERS = itertools.count(1)
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
SERVICES = "/api/v1/namespaces/default/services"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
PORTS = [{"port": 80}]


class Server:
    def __init__(self, cluster):
        self.a = cluster.instance("a", "--runtime-config=api/workloads=true").wait_ready()

    def ask(self, method, path, body=None, content_type="application/json"):
        code, text = self.a.request(method, path, body, headers={"Content-Type": content_type})
        return code, json.loads(text)

    def make(self, path, **spec):
        return self.ask("POST", path, {"metadata": {"name": f"n{next(NUMBERS)}"}, "spec": spec})

    def made(self, path, **spec):
        code, answer = self.make(path, **spec)
        assert code == 201, answer
        return answer

    def patch(self, path, made, **spec):
        return self.ask("PATCH", f"{path}/{made['metadata']['name']}", {"spec": spec}, MERGE)

    def patched(self, path, made, **spec):
        code, answer = self.patch(path, made, **spec)
        assert code == 200, answer
        return answer["spec"]


@pytest.fixture(scope="module")
def server():
    with Cluster(with_witness=False) as cluster:
        yield Server(cluster)


def causes(answer):
    code, status = answer
    assert code == 422, status
    return [(cause["field"], cause["message"]) for cause in status["details"]["causes"]]


# ---- services ----

NOT_A_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric " \
              "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"


@pytest.mark.parametrize("spec, field, why", [
    ({}, "spec.ports", "Required value"),
    ({"ports": [{"port": 0}]}, "spec.ports[0].port", "Invalid value: 0: must be between 1 and 65535, inclusive"),
    ({"ports": [{"port": 80}, {"port": 81}]}, "spec.ports[1].name", "Required value"),
    ({"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}]}, "spec.ports[1].name", 'Duplicate value: "a"'),
    ({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}, "spec.ports[1]",
     'Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}'),
    ({"ports": [{"name": "A_", "port": 80}]}, "spec.ports[0].name", f'Invalid value: "A_": {NOT_A_LABEL}'),
    ({"ports": [{"port": 80, "protocol": "X"}]}, "spec.ports[0].protocol", 'Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'),
    ({"ports": [{"port": 80, "nodePort": 30000}]}, "spec.ports[0].nodePort", "Forbidden: may not be used when `type` is 'ClusterIP'"),
    ({"ports": PORTS, "type": "X"}, "spec.type",
     'Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
    ({"type": "ExternalName"}, "spec.externalName", "Required value"),
    ({"type": "ExternalName", "externalName": "a", "clusterIP": "None"}, "spec.clusterIPs", "Forbidden: may not be set for ExternalName services"),
    ({"ports": PORTS, "sessionAffinity": "X"}, "spec.sessionAffinity", 'Unsupported value: "X": supported values: "ClientIP", "None"'),
    ({"ports": PORTS, "type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]",
     "Invalid value: \"None\": may not be set to 'None' for NodePort services"),
    ({"ports": PORTS, "externalTrafficPolicy": "Local"}, "spec.externalTrafficPolicy",
     'Invalid value: "Local": may only be set for externally-accessible services'),
    ({"ports": PORTS, "clusterIPs": ["None"]}, "spec.clusterIPs", 'Invalid value: ["None"]: must be empty when `clusterIP` is not specified'),
    ({"ports": PORTS, "clusterIP": "10.0.0.01"}, "spec.clusterIPs[0]", 'Invalid value: "10.0.0.01": must not have leading 0s'),
    ({"ports": PORTS, "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "2001:db8::1"]}, "spec.ipFamilyPolicy",
     "Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"),
    ({"ports": PORTS, "externalIPs": ["127.0.0.1"]}, "spec.externalIPs[0]",
     'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'),
    ({"ports": PORTS, "loadBalancerSourceRanges": ["10.0.0.0/8"]}, "spec.LoadBalancerSourceRanges",
     "Forbidden: may only be used when `type` is 'LoadBalancer'"),
    ({"ports": PORTS, "trafficDistribution": "Near"}, "spec.trafficDistribution",
     'Unsupported value: "Near": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"')])
def test_a_service_is_refused(server, spec, field, why):
    assert (field, why) in causes(server.make(SERVICES, **spec))


def test_a_service_sets_what_depends_on_its_type(server):
    plain = server.made(SERVICES, ports=PORTS, selector={"a": "b"})
    assert (plain["spec"]["ipFamilies"], plain["spec"]["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    spec = server.patched(SERVICES, plain, type="LoadBalancer")
    assert spec["externalTrafficPolicy"] == "Cluster" and spec["allocateLoadBalancerNodePorts"] is True
    spec = server.patched(SERVICES, plain, type="ClusterIP")
    assert "externalTrafficPolicy" not in spec and "allocateLoadBalancerNodePorts" not in spec
    spec = server.patched(SERVICES, plain, type="ExternalName", externalName="x.y")
    assert not {"ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"} & set(spec)
    assert server.made(SERVICES, ports=PORTS, sessionAffinity="ClientIP")["spec"]["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


def test_the_address_of_a_service_stays(server):
    headless = server.made(SERVICES, clusterIP="None", selector={"a": "b"})
    assert headless["spec"]["clusterIPs"] == ["None"] and headless["spec"]["ipFamilies"] == ["IPv4"]
    assert server.made(SERVICES, clusterIP="None")["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert server.patched(SERVICES, headless, clusterIP=None)["clusterIPs"] == ["None"]
    assert causes(server.patch(SERVICES, headless, clusterIP="10.0.0.9"))[0] == (
        "spec.clusterIPs[0]", 'Invalid value: ["10.0.0.9"]: may not change once set')
    del headless["spec"]["clusterIPs"], headless["spec"]["clusterIP"]
    code, put = server.ask("PUT", f"{SERVICES}/{headless['metadata']['name']}", headless)
    assert code == 200 and put["spec"]["clusterIP"] == "None" and put["spec"]["clusterIPs"] == ["None"]


def test_what_a_client_leaves_out_stays(server):
    made = server.made(SERVICES, type="NodePort", ports=[{"port": 80, "nodePort": 30080}], clusterIP="10.0.0.1", clusterIPs=["10.0.0.1", "2001:db8::1"],
                       ipFamilyPolicy="RequireDualStack")
    assert made["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    body = {**made, "spec": {"type": "NodePort", "ports": [{"port": 81}]}}
    code, put = server.ask("PUT", f"{SERVICES}/{made['metadata']['name']}", body)
    assert code == 200 and put["spec"]["ports"][0] == {"port": 81, "nodePort": 30080, "protocol": "TCP", "targetPort": 81}
    assert put["spec"]["clusterIPs"] == ["10.0.0.1", "2001:db8::1"]
    single = server.patched(SERVICES, made, ipFamilyPolicy="SingleStack")
    assert (single["clusterIPs"], single["ipFamilies"]) == (["10.0.0.1"], ["IPv4"])


def test_a_port_without_a_protocol_is_the_one_of_tcp(server):
    """Of an apply, too: the port that is stored has the default."""
    body = {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": 8080}]}}
    for name, first in (("applied", "PATCH"), ("created", "POST")):
        item = {**body, "metadata": {"name": name}}
        path = f"{SERVICES}/{name}?fieldManager=m&force=true" if first == "PATCH" else SERVICES
        code, answer = server.ask(first, path, item, APPLY if first == "PATCH" else "application/json")
        assert code == 201, answer
        item["spec"] = {**body["spec"], "ports": [{"port": 80, "targetPort": 9090}, {"name": "dns", "port": 80, "protocol": "UDP"}]}
        item["spec"]["ports"][0]["name"] = "http"
        code, answer = server.ask("PATCH", f"{SERVICES}/{name}?fieldManager=m&force=true", item, APPLY)
        assert code == 200, answer
        assert [(p["name"], p["protocol"], p["targetPort"]) for p in answer["spec"]["ports"]] == [("http", "TCP", 9090), ("dns", "UDP", 80)]


# ---- claims ----

def claim(size="1Gi", **spec):
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}


@pytest.mark.parametrize("spec, field, why", [
    ({}, "spec.accessModes", "Required value: at least 1 access mode is required"),
    ({}, "spec.resources[storage]", "Required value"),
    (claim("0"), "spec.resources[storage]", 'Invalid value: "0": must be greater than zero'),
    (claim(accessModes=["X"]), "spec.accessModes",
     'Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'),
    (claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), "spec.accessModes", "Forbidden: may not use ReadWriteOncePod with other access modes"),
    (claim(volumeMode="X"), "spec.volumeMode", 'Unsupported value: "X": supported values: "Block", "Filesystem"')])
def test_a_claim_is_refused(server, spec, field, why):
    assert (field, why) in causes(server.make(CLAIMS, **spec))


def test_a_claim_grows_when_it_is_bound(server):
    made = server.made(CLAIMS, **claim())
    fixed = ("spec", "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")
    assert causes(server.patch(CLAIMS, made, **claim("2Gi"))) == [fixed]
    code, answer = server.ask("POST", CLASSES, {"metadata": {"name": "x"}, "provisioner": "p.example", "allowVolumeExpansion": True})
    assert code == 201, answer
    server.patched(CLAIMS, made, volumeName="v", storageClassName="x")
    assert causes(server.patch(CLAIMS, made, volumeName="w")) == [fixed]
    assert causes(server.patch(CLAIMS, made, storageClassName="y")) == [fixed]
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert server.ask("PATCH", f"{CLAIMS}/{made['metadata']['name']}/status", status, MERGE)[0] == 200
    server.patched(CLAIMS, made, **claim("2Gi"))
    server.patched(CLAIMS, made, **claim("1536Mi"))
    assert causes(server.patch(CLAIMS, made, **claim("1Gi"))) == [
        ("spec.resources.requests.storage", "Forbidden: field can not be less than status.capacity")]


@pytest.mark.parametrize("allowed", [True, False, None])
def test_a_claim_grows_only_if_its_class_allows_it(server, allowed):
    name = f"class-{next(NUMBERS)}"
    made = server.made(CLAIMS, **claim(storageClassName=name, volumeName="v"))
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert server.ask("PATCH", f"{CLAIMS}/{made['metadata']['name']}/status", status, MERGE)[0] == 200
    refused = (403, f'persistentvolumeclaims "{made["metadata"]["name"]}" is forbidden: only dynamically provisioned pvc can be resized and '
               "the storageclass that provisions the pvc must support resize")
    code, answer = server.patch(CLAIMS, made, **claim("2Gi"))
    assert (code, answer["message"]) == refused  # there is no such class
    server.patched(CLAIMS, made, **claim("1024Mi"))
    body = {"metadata": {"name": name}, "provisioner": "p.example", **({} if allowed is None else {"allowVolumeExpansion": allowed})}
    assert server.ask("POST", CLASSES, body)[0] == 201
    code, answer = server.patch(CLAIMS, made, **claim("2Gi"))
    if allowed:
        assert (code, answer["spec"]["resources"]["requests"]["storage"]) == (200, "2Gi")
    else:
        assert (code, answer["message"]) == refused


def test_amounts_are_rounded_up_to_thousandths(server):
    made = server.made(CLAIMS, **claim("0.0001", resources={"requests": {"storage": "1000.0001"}, "limits": {"storage": "2"}}))
    assert made["spec"]["resources"] == {"requests": {"storage": "1000001m"}, "limits": {"storage": "2"}}


# ---- Ingresses ----

SERVICE = {"service": {"name": "s", "port": {"number": 80}}}


def rules(host="a.b", **path):
    return [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": SERVICE, **path}]}}]


PATH = "spec.rules[0].http.paths[0]"


@pytest.mark.parametrize("spec, field, why", [
    ({}, "spec", "Invalid value: null: either `defaultBackend` or `rules` must be specified"),
    ({"rules": rules(path="x")}, PATH + ".path", 'Invalid value: "x": must be an absolute path'),
    ({"rules": rules(path="/a//b")}, PATH + ".path", "Invalid value: \"/a//b\": must not contain '//'"),
    ({"rules": rules(path="/a/..")}, PATH + ".path", "Invalid value: \"/a/..\": cannot end with '/..'"),
    ({"rules": rules(pathType=None)}, PATH + ".pathType", "Required value: pathType must be specified"),
    ({"rules": rules(pathType="X")}, PATH + ".pathType",
     'Unsupported value: "X": supported values: "Exact", "ImplementationSpecific", "Prefix"'),
    ({"rules": rules(backend={})}, PATH + ".backend", 'Invalid value: "": resource or service backend is required'),
    ({"rules": rules(backend={"service": {"name": "s"}})}, PATH + ".backend", "Required value: port name or number is required"),
    ({"rules": rules(host="1.2.3.4")}, "spec.rules[0].host", 'Invalid value: "1.2.3.4": must be a DNS name, not an IP address'),
    ({"rules": rules(host="::1")}, "spec.rules[0].host", 'Invalid value: "::1": must be a DNS name, not an IP address'),
    ({"rules": [{"http": {"paths": []}}]}, "spec.rules[0].http.paths", "Required value")])
def test_an_ingress_is_refused(server, spec, field, why):
    assert (field, why) in causes(server.make(INGRESSES, **spec))


def test_an_ingress_is_made(server):
    for spec in ({"defaultBackend": SERVICE}, {"rules": rules(host="*.foo.com")}, {"rules": [{"host": "a.b"}]}, {"rules": [{"host": "1.2"}]},
                 {"rules": rules(pathType="ImplementationSpecific", path="")}, {"rules": rules(), "tls": [{"hosts": ["a.b"], "secretName": "s"}]}):
        assert server.made(INGRESSES, **spec)["status"] == {"loadBalancer": {}}


def test_a_new_ingress_names_one_class(server):
    def make(annotation):
        metadata = {"name": f"n{next(NUMBERS)}", "annotations": {"kubernetes.io/ingress.class": annotation}}
        return server.ask("POST", INGRESSES, {"metadata": metadata, "spec": {"defaultBackend": SERVICE, "ingressClassName": "a"}})

    assert causes(make("b")) == [("annotations.kubernetes.io/ingress.class", 'Invalid value: "b": must match `ingressClassName` when both are specified')]
    code, made = make("a")
    assert code == 201, made
    code, answer = server.ask("PATCH", f"{INGRESSES}/{made['metadata']['name']}", {"metadata": {"annotations": {"kubernetes.io/ingress.class": "b"}}}, MERGE)
    assert code == 200, answer


# ---- budgets and autoscalers ----

@pytest.mark.parametrize("spec, field, why", [
    ({"minAvailable": 1, "maxUnavailable": 1}, "spec", 'Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
     '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'),
    ({"minAvailable": -1}, "spec.minAvailable", "Invalid value: -1: must be greater than or equal to 0"),
    ({"minAvailable": "150%"}, "spec.minAvailable", 'Invalid value: "150%": must not be greater than 100%'),
    ({"unhealthyPodEvictionPolicy": "X"}, "spec.unhealthyPodEvictionPolicy",
     'Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget"'),
    ({"unhealthyPodEvictionPolicy": ""}, "spec.unhealthyPodEvictionPolicy",
     'Unsupported value: "": supported values: "AlwaysAllow", "IfHealthyBudget"'),
    ({"selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}, "spec.selector.matchExpressions[0].operator",
     'Invalid value: "X": not a valid selector operator')])
def test_a_budget_is_refused(server, spec, field, why):
    assert (field, why) in causes(server.make(BUDGETS, **spec))


TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("spec, field, why", [
    ({"scaleTargetRef": TARGET}, "spec.maxReplicas", "Required value: must be set and greater than 0"),
    ({"scaleTargetRef": TARGET, "maxReplicas": 1, "minReplicas": 2}, "spec.maxReplicas",
     "Invalid value: 1: must be greater than or equal to `minReplicas`"),
    ({"scaleTargetRef": TARGET, "maxReplicas": 1, "minReplicas": 0}, "spec.minReplicas", "Invalid value: 0: must be greater than or equal to 1"),
    ({"maxReplicas": 1}, "spec.scaleTargetRef.kind", "Required value"),
    ({"maxReplicas": 1, "scaleTargetRef": {"kind": "X", "name": "x"}}, "spec.scaleTargetRef.apiVersion",
     'Invalid value: "": apiVersion must specify API group')])
def test_an_autoscaler_is_refused(server, version, spec, field, why):
    assert (field, why) in causes(server.make(AUTOSCALERS.format(version), **spec))


def cpu(**target):
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", **target}}}


def policies(*policies, **rules):
    return {"behavior": {"scaleUp": {"policies": list(policies), **rules}}}


POLICY = {"type": "Pods", "value": 1, "periodSeconds": 15}


@pytest.mark.parametrize("spec, field, why", [
    ({"metrics": [{"type": "X"}]}, "metrics[0].type",
     'Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'),
    ({"metrics": [{"type": "Pods"}]}, "metrics[0].pods", "Required value: must populate information for the given metric source"),
    ({"metrics": [{**cpu(averageUtilization=1), "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]},
     "metrics[0].pods", "Forbidden: must populate the given metric source only"),
    ({"metrics": [cpu()]}, "metrics[0].resource.target.averageUtilization",
     "Required value: must set either a target raw value or a target utilization"),
    ({"metrics": [cpu(averageUtilization=0)]}, "metrics[0].resource.target.averageUtilization", "Invalid value: 0: must be greater than 0"),
    ({"metrics": [cpu(averageUtilization=1, averageValue="1")]}, "metrics[0].resource.target.averageValue",
     "Forbidden: may not set both a target raw value and a target utilization"),
    ({"metrics": [cpu(averageUtilization=1, value="0")]}, "metrics[0].resource.target.value", 'Invalid value: "0": must be positive'),
    ({"metrics": [{"type": "Resource", "resource": {"target": {"averageUtilization": 1}}}]}, "metrics[0].resource.name",
     "Required value: must specify a resource name"),
    ({"metrics": [{"type": "Resource", "resource": {"target": {"type": "X", "averageUtilization": 1}}}]}, "metrics[0].resource.target.type",
     'Invalid value: "X": must be either Utilization, Value, or AverageValue'),
    ({"metrics": [{"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"averageUtilization": 1}}}]},
     "metrics[0].containerResource.container", "Required value: must specify a container"),
    ({"metrics": [{"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": {"averageValue": "1"}}}]}, "metrics[0].pods.metric.name",
     "Invalid value: \"a/b\": may not contain '/'"),
    ({"metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"averageValue": "0"}}}]}, "metrics[0].pods.target.averageValue",
     "Required value: must specify a positive target averageValue"),
    ({"metrics": [{"type": "Object", "object": {"metric": {"name": "m"}, "target": {"value": "1"}}}]}, "metrics[0].object.describedObject.kind",
     "Required value"),
    ({"metrics": [{"type": "External", "external": {"metric": {"name": "m"}, "target": {"value": "1", "averageValue": "1"}}}]},
     "metrics[0].external.target.value", "Forbidden: may not set both a target value for metric and a per-pod target"),
    (policies(), "behavior.scaleUp.policies", "Required value: must specify at least one Policy"),
    (policies({**POLICY, "type": "X"}), "behavior.scaleUp.policies[0].type", 'Unsupported value: "X": supported values: "Percent", "Pods"'),
    (policies({**POLICY, "value": 0}), "behavior.scaleUp.policies[0].value", "Invalid value: 0: must be greater than zero"),
    (policies({**POLICY, "periodSeconds": 1801}), "behavior.scaleUp.policies[0].periodSeconds", "Invalid value: 1801: must be less than or equal to 1800"),
    (policies(POLICY, stabilizationWindowSeconds=3601), "behavior.scaleUp.stabilizationWindowSeconds",
     "Invalid value: 3601: must be less than or equal to 3600"),
    (policies(POLICY, selectPolicy="X"), "behavior.scaleUp.selectPolicy", 'Unsupported value: "X": supported values: "Disabled", "Max", "Min"'),
    (policies(POLICY, selectPolicy=""), "behavior.scaleUp.selectPolicy", 'Unsupported value: "": supported values: "Disabled", "Max", "Min"')])
def test_what_an_autoscaler_compares_and_does_is_checked(server, spec, field, why):
    assert (f"spec.{field}", why) in causes(server.make(AUTOSCALERS.format("v2"), scaleTargetRef=TARGET, maxReplicas=2, **spec))
    good = {"metrics": [cpu(averageUtilization=50)], **policies(POLICY)}
    server.made(AUTOSCALERS.format("v2"), scaleTargetRef=TARGET, maxReplicas=2, **good)


def test_an_autoscaler_of_v1_is_checked_in_the_form_of_v2(server):
    field = "spec.metrics[0].resource.target.averageUtilization"
    made = server.make(AUTOSCALERS.format("v1"), scaleTargetRef=TARGET, maxReplicas=2, targetCPUUtilizationPercentage=0)
    assert causes(made) == [(field, "Invalid value: 0: must be greater than 0")]
    behavior = json.dumps({"ScaleUp": {"Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 9999}]}})
    body = {"metadata": {"name": f"n{next(NUMBERS)}", "annotations": {"autoscaling.alpha.kubernetes.io/behavior": behavior}},
            "spec": {"scaleTargetRef": TARGET, "maxReplicas": 2}}
    assert causes(server.ask("POST", AUTOSCALERS.format("v1"), body)) == [
        ("spec.behavior.scaleUp.policies[0].periodSeconds", "Invalid value: 9999: must be less than or equal to 1800")]
    server.made(AUTOSCALERS.format("v1"), scaleTargetRef=TARGET, maxReplicas=2, targetCPUUtilizationPercentage=50)


def test_a_selector_cannot_be_changed(server):
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    made = server.made(path, selector={"matchLabels": {"a": "b"}}, template=template)
    assert causes(server.patch(path, made, selector={"matchLabels": {"c": "d"}})) == [
        ("spec.selector", 'Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable')]
    assert ("spec.selector.matchExpressions[0].operator", 'Invalid value: "X": not a valid selector operator') in causes(
        server.make(path, selector={"matchExpressions": [{"key": "a", "operator": "X"}]}, template=template))


def test_an_autoscaler_of_v2_gets_no_annotations_of_v1(server):
    key, path = "autoscaling.alpha.kubernetes.io/behavior", AUTOSCALERS.format("v2")
    body = {"metadata": {"name": "annotated", "annotations": {key: "{}", "a": "b"}}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 2}}
    code, made = server.ask("POST", path, body)
    assert code == 201 and made["metadata"]["annotations"] == {"a": "b"}
    body |= {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    code, applied = server.ask("PATCH", f"{path}/annotated?fieldManager=m&force=true", body, APPLY)
    assert code == 200 and applied["metadata"]["annotations"] == {"a": "b"} and key not in json.dumps(applied["metadata"]["managedFields"])
