# SPDX-License-Identifier: Apache-2.0
"""Defaults of the workload kinds, as kube-apiserver 1.36 sets them: for members that are absent, and for texts that are empty."""
import itertools

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)
STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
CORE, APPS, BATCH = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
HPA = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
VOLUMES = "/api/v1/persistentvolumes"
LABELS = {"app": "a"}
POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
RULE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "Other", "status": "False"}]}


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        yield server


def workload(**spec):
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, **spec}}


def job(**spec):
    return {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}, **spec}}


def cron(**spec):
    return {"spec": {"schedule": "@daily", "jobTemplate": job(), **spec}}


def service(port=None, **spec):
    return {"spec": {"ports": [{"port": 80, **(port or {})}], **spec}}


def scaler(**spec):
    return {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, **spec}}


def volume(**spec):
    return {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}}


def policy_of(percent):
    return {"type": "Percent", "value": percent, "periodSeconds": 15}


UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, policy_of(100)]}
DOWN = {"selectPolicy": "Max", "policies": [policy_of(100)]}
RETAIN = {"whenDeleted": "Retain", "whenScaled": "Retain"}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}}
DAEMON = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
DEPLOYMENT = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}

# What is sent, the path of a member of the object, and what it is.
CASES = [
    # A rolling update that a StatefulSet names stays without a partition.
    (APPS + "/statefulsets", workload(), "spec.updateStrategy", ROLLING),
    (APPS + "/statefulsets", workload(updateStrategy={"type": ""}), "spec.updateStrategy", ROLLING),
    (APPS + "/statefulsets", workload(updateStrategy={"type": "RollingUpdate"}), "spec.updateStrategy", {"type": "RollingUpdate"}),
    (APPS + "/statefulsets", workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {}}), "spec.updateStrategy", ROLLING),
    (APPS + "/statefulsets", workload(updateStrategy={"type": "OnDelete"}), "spec.updateStrategy", {"type": "OnDelete"}),
    (APPS + "/statefulsets", workload(podManagementPolicy=""), "spec.podManagementPolicy", "OrderedReady"),
    (APPS + "/statefulsets", workload(persistentVolumeClaimRetentionPolicy={"whenDeleted": ""}), "spec.persistentVolumeClaimRetentionPolicy", RETAIN),
    (APPS + "/daemonsets", workload(updateStrategy={"type": ""}), "spec.updateStrategy", DAEMON),
    (APPS + "/daemonsets", workload(updateStrategy={"type": "RollingUpdate"}), "spec.updateStrategy", DAEMON),
    (APPS + "/deployments", workload(strategy={"type": ""}), "spec.strategy", DEPLOYMENT),
    # Jobs
    (BATCH + "/jobs", job(), "spec.backoffLimit", 6),
    (BATCH + "/jobs", job(), "spec.podReplacementPolicy", "TerminatingOrFailed"),
    (BATCH + "/jobs", job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1), "spec.backoffLimit", 2147483647),
    (BATCH + "/jobs", job(podFailurePolicy={"rules": [RULE]}), "spec.podReplacementPolicy", "Failed"),
    (BATCH + "/jobs", job(podFailurePolicy={"rules": [RULE]}), "spec.podFailurePolicy.rules.0.onPodConditions.0.status", "True"),
    (BATCH + "/jobs", job(podFailurePolicy={"rules": [RULE]}), "spec.podFailurePolicy.rules.0.onPodConditions.1.status", "False"),
    (BATCH + "/cronjobs", cron(concurrencyPolicy=""), "spec.concurrencyPolicy", "Allow"),
    (BATCH + "/cronjobs", cron(jobTemplate=job(podFailurePolicy={"rules": [RULE]})),
     "spec.jobTemplate.spec.podFailurePolicy.rules.0.onPodConditions.0.status", "True"),
    # The behavior of an autoscaler is complete or absent.
    (HPA, scaler(), "spec.behavior", None),
    (HPA, scaler(behavior={}), "spec.behavior", {"scaleUp": UP, "scaleDown": DOWN}),
    (HPA, scaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}), "spec.behavior",
     {"scaleUp": UP, "scaleDown": {"stabilizationWindowSeconds": 60, **DOWN}}),
    (HPA, scaler(behavior={"scaleUp": {"selectPolicy": "Disabled", "policies": [policy_of(10)]}}), "spec.behavior.scaleUp",
     {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled", "policies": [policy_of(10)]}),
    # Services
    (CORE + "/services", service(type=""), "spec.type", "ClusterIP"),
    (CORE + "/services", service(sessionAffinity=""), "spec.sessionAffinity", "None"),
    (CORE + "/services", service({"protocol": ""}), "spec.ports.0.protocol", "TCP"),
    (CORE + "/services", service({"targetPort": 0}), "spec.ports.0.targetPort", 80),
    (CORE + "/services", service({"targetPort": ""}), "spec.ports.0.targetPort", 80),
    (CORE + "/services", service({"targetPort": "web"}), "spec.ports.0.targetPort", "web"),
    (CORE + "/services", service(type="NodePort", externalTrafficPolicy=""), "spec.externalTrafficPolicy", "Cluster"),
    (CORE + "/services", service(externalIPs=["192.0.2.1"]), "spec.externalTrafficPolicy", "Cluster"),
    (CORE + "/services", service(), "spec.externalTrafficPolicy", None),
    # Volumes
    (VOLUMES, volume(hostPath={"path": "/d"}, persistentVolumeReclaimPolicy=""), "spec.persistentVolumeReclaimPolicy", "Retain"),
    (VOLUMES, volume(hostPath={"path": "/d"}), "spec.hostPath", {"path": "/d", "type": ""}),
    (VOLUMES, volume(iscsi={"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}), "spec.iscsi.iscsiInterface", "default"),
    (VOLUMES, volume(rbd={"image": "i", "monitors": ["m"]}), "spec.rbd", {"image": "i", "monitors": ["m"], "pool": "rbd", "user": "admin",
                                                                           "keyring": "/etc/ceph/keyring"}),
    (VOLUMES, volume(azureDisk={"diskName": "d", "diskURI": "https://u"}), "spec.azureDisk",
     {"diskName": "d", "diskURI": "https://u", "cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False}),
    # Nodes and pods
    ("/api/v1/nodes", {"status": {"capacity": {"cpu": "2"}}}, "status.allocatable", {"cpu": "2"}),
    ("/api/v1/nodes", {"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}}, "status.allocatable", {"cpu": "1"}),
    (CORE + "/podtemplates", {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}]}],
        "volumes": [{"name": "v", "emptyDir": {}}]}}}, "template.spec.containers.0.env.0.valueFrom.fileKeyRef.optional", False),
]


def member(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


@pytest.mark.parametrize("path, body, at, value", CASES, ids=[f"{row[0].rpartition('/')[2]}-{row[2]}-{i}" for i, row in enumerate(CASES)])
def test_a_member_has_its_default(api, path, body, at, value):
    name = f"n{next(NUMBERS)}"
    reply = api.ask("POST", path, {"metadata": {"name": name}, **body})
    assert reply.code == 201, reply.text
    assert member(reply.json, at) == value
    # The object stays as it is when it is sent as it was first, or as it is.
    again = api.ask("PATCH", f"{path}/{name}", body, content_type=MERGE)
    assert (again.code, again.json["metadata"]["resourceVersion"]) == (200, reply.json["metadata"]["resourceVersion"]), again.text
    again = api.ask("PUT", f"{path}/{name}", again.json)
    assert (again.code, again.json) == (200, reply.json), again.text


def test_a_patch_replaces_the_selector_of_a_budget(api):
    """kubectl sends all of a selector that it changes, and a label that is gone would stay if the patch merged it."""
    path, labels = BUDGETS + "/b", {"app": "a", "tier": "t"}
    assert api.ask("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}).code == 201
    reply = api.ask("PATCH", path, {"spec": {"selector": {"matchLabels": {"app": "a"}}}}, content_type=STRATEGIC)
    assert reply.json["spec"] == {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    reply = api.ask("PATCH", path, {"spec": {"selector": {"matchLabels": {"tier": "t"}}}}, content_type=MERGE)
    assert reply.json["spec"]["selector"]["matchLabels"] == labels
    reply = api.ask("PATCH", path, {"spec": {"selector": None}}, content_type=STRATEGIC)
    assert reply.json["spec"] == {"minAvailable": 1}
    applied = f"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: k}}\nspec: {{minAvailable: 1, selector: {{matchLabels: {{app: a%s}}}}}}\n"
    for more, expected in ((", tier: t", labels), ("", {"app": "a"})):
        done = api.kubectl("apply", "-f", "-", stdin=applied % more)
        assert done.returncode == 0, done.stderr
        assert api.ask("GET", BUDGETS + "/k").json["spec"]["selector"]["matchLabels"] == expected


# What templates of charts leave empty or null. kube-apiserver takes all of it.
EMPTY_POD = {
    "affinity": {}, "nodeSelector": None, "tolerations": [], "topologySpreadConstraints": None, "imagePullSecrets": None, "securityContext": None,
    "priorityClassName": "", "serviceAccountName": "", "schedulerName": "", "dnsPolicy": "", "hostname": "", "subdomain": "", "nodeName": "",
    "initContainers": None, "hostAliases": [], "dnsConfig": {}, "enableServiceLinks": None, "terminationGracePeriodSeconds": None,
    "volumes": [{"name": "a", "emptyDir": None}, {"name": "b", "emptyDir": {"medium": "", "sizeLimit": None}}, {"name": "c", "configMap": {"name": "x", "items": []}}],
    "containers": [{"name": "c", "image": "i", "imagePullPolicy": "", "terminationMessagePolicy": "", "command": None, "args": [], "env": None, "envFrom": [],
                    "resources": {"limits": None, "requests": {}}, "lifecycle": {}, "securityContext": {"capabilities": {"drop": None}},
                    "ports": [{"name": "", "containerPort": 80, "hostPort": None}],
                    "volumeMounts": [{"name": "a", "mountPath": "/a", "subPath": "", "readOnly": None, "mountPropagation": None}],
                    "livenessProbe": {"httpGet": {"path": "", "port": 80, "scheme": "", "httpHeaders": None}, "initialDelaySeconds": 0, "timeoutSeconds": 0,
                                      "failureThreshold": None}, "readinessProbe": None, "startupProbe": None}]}
EMPTY = {"metadata": {"labels": LABELS, "annotations": None}, "spec": {**EMPTY_POD, "restartPolicy": ""}}
ENDING = {"metadata": {"labels": None}, "spec": {**EMPTY_POD, "restartPolicy": "Never"}}
RENDERED = [
    (APPS + "/deployments", workload(template=EMPTY, replicas=None, strategy=None, minReadySeconds=None, revisionHistoryLimit=None, paused=None)),
    (APPS + "/deployments", workload(template=EMPTY, strategy={"type": "Recreate", "rollingUpdate": None})),
    (APPS + "/daemonsets", workload(template=EMPTY, updateStrategy={"type": "", "rollingUpdate": None})),
    (APPS + "/statefulsets", workload(template=EMPTY, serviceName="", podManagementPolicy="", updateStrategy={}, volumeClaimTemplates=None, ordinals=None)),
    (BATCH + "/jobs", {"spec": {"template": ENDING, "backoffLimit": None, "selector": None, "ttlSecondsAfterFinished": None, "podFailurePolicy": None}}),
    (BATCH + "/cronjobs", cron(concurrencyPolicy="", suspend=None, timeZone=None, jobTemplate={"metadata": None, "spec": {"template": ENDING}})),
    (CORE + "/services", service({"name": "", "targetPort": None, "nodePort": 0, "appProtocol": None}, type="", clusterIP="", clusterIPs=[], selector=None,
                                 externalIPs=None, externalName="", externalTrafficPolicy="", loadBalancerIP="", loadBalancerSourceRanges=[], sessionAffinity="",
                                 sessionAffinityConfig=None, ipFamilies=None, ipFamilyPolicy=None, internalTrafficPolicy=None, healthCheckNodePort=0)),
    (CORE + "/persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}, "limits": None},
                                                 "storageClassName": None, "volumeName": "", "selector": None, "dataSource": None, "volumeMode": None}}),
    (CORE + "/configmaps", {"data": {"a": None, "b": ""}, "binaryData": None, "immutable": None}),
    (CORE + "/secrets", {"type": "", "data": {"a": None}, "stringData": {"b": None}}),
    (CORE + "/serviceaccounts", {"imagePullSecrets": None, "secrets": [], "automountServiceAccountToken": None}),
    (HPA, scaler(minReplicas=None, metrics=[], behavior=None)),
    (BUDGETS, {"spec": {"minAvailable": None, "maxUnavailable": 1, "selector": {"matchLabels": None}, "unhealthyPodEvictionPolicy": None}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"spec": {"ingressClassName": None, "tls": None, "rules": [
        {"host": "", "http": {"paths": [{"path": "", "pathType": "ImplementationSpecific", "backend": {"resource": None, "service": {
            "name": "s", "port": {"name": "", "number": 80}}}}]}}]}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {"spec": {"podSelector": {}, "policyTypes": None, "egress": [], "ingress": [
        {"from": [], "ports": None}, {"from": [{"podSelector": {}, "namespaceSelector": None, "ipBlock": None}], "ports": [{"port": 80, "protocol": None}]}]}}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": None, "aggregationRule": None}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {"roleRef": {"apiGroup": "", "kind": "Role", "name": "r"}, "subjects": [
        {"kind": "ServiceAccount", "name": "a", "namespace": "b", "apiGroup": ""}, {"kind": "User", "name": "u", "apiGroup": None}]}),
    ("/apis/networking.k8s.io/v1/ipaddresses", {"metadata": {"name": "2001:db8::1"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}}),
    ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "p", "parameters": None, "reclaimPolicy": "", "volumeBindingMode": None, "mountOptions": [],
                                                "allowVolumeExpansion": None, "allowedTopologies": None}),
]


@pytest.mark.parametrize("path, body", RENDERED, ids=[f"{row[0].rpartition('/')[2]}-{i}" for i, row in enumerate(RENDERED)])
def test_what_charts_leave_empty_is_accepted(api, path, body):
    """It is created, replaced and applied, and none of that changes it."""
    name = body.get("metadata", {}).get("name") or f"n{next(NUMBERS)}"
    body = {**body, "metadata": {"name": name, "labels": None, "annotations": {}, "ownerReferences": None, "finalizers": [], "creationTimestamp": None}}
    reply = api.ask("POST", path + "?fieldValidation=Strict&fieldManager=m", body)
    assert reply.code == 201, reply.text
    sent = {**body, "metadata": {**body["metadata"], "resourceVersion": reply.json["metadata"]["resourceVersion"]}}
    if not path.endswith("/jobs"):  # a replacement has no generated selector, and it cannot be removed
        again = api.ask("PUT", f"{path}/{name}?fieldValidation=Strict&fieldManager=m", sent)
        assert again.code == 200 and {**again.json, "metadata": None} == {**reply.json, "metadata": None}, again.text
    kind = {"apiVersion": reply.json["apiVersion"], "kind": reply.json["kind"]}
    applied = api.ask("PATCH", f"{path}/{name}?fieldManager=a&force=true", {**kind, **body}, content_type="application/apply-patch+yaml")
    assert applied.code == 200, applied.text
    assert {**applied.json, "metadata": None} == {**reply.json, "metadata": None}


SOURCE = {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"}


def claim(**spec):
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}}


@pytest.mark.parametrize("sent, source, reference", [
    ({}, None, None), ({"dataSource": SOURCE}, SOURCE, SOURCE), ({"dataSourceRef": SOURCE}, SOURCE, SOURCE),
    ({"dataSourceRef": {**SOURCE, "namespace": ""}}, SOURCE, {**SOURCE, "namespace": ""}),
    ({"dataSourceRef": {**SOURCE, "namespace": "other"}}, None, None), ({"dataSource": {"kind": "Disk", "name": "d", "apiGroup": "example.com"}}, None, None),
    ({"dataSourceRef": {"kind": "Disk", "name": "d", "apiGroup": "example.com"}},) + ({"kind": "Disk", "name": "d", "apiGroup": "example.com"},) * 2])
def test_a_claim_has_both_forms_of_its_source(api, sent, source, reference):
    path, name = CORE + "/persistentvolumeclaims", f"n{next(NUMBERS)}"
    reply = api.ask("POST", path, {"metadata": {"name": name}, **claim(**sent)})
    assert reply.code == 201, reply.text
    assert (reply.json["spec"].get("dataSource"), reply.json["spec"].get("dataSourceRef")) == (source, reference)
    # A client that knows only one of them sends it again, and changes nothing.
    again = api.ask("PUT", f"{path}/{name}", {"metadata": {"name": name}, **claim(**sent)})
    assert (again.code, again.json) == (200, reply.json), again.text


def test_an_account_keeps_the_names_of_its_secrets(api):
    path, secret = CORE + "/serviceaccounts", {"kind": "Secret", "name": "s", "namespace": "other"}
    reply = api.ask("POST", path, {"metadata": {"name": "a"}, "secrets": [secret, {"name": "t"}]})
    assert (reply.code, reply.json["secrets"]) == (201, [{"name": "s"}, {"name": "t"}])
    reply = api.ask("PATCH", path + "/a", {"secrets": [{**secret, "name": "u", "uid": "v"}]}, content_type=MERGE)
    assert (reply.code, reply.json["secrets"]) == (200, [{"name": "u"}])


@pytest.mark.parametrize("path, body, code", [
    (CORE + "/limitranges", {"spec": {"limits": []}}, 201), (CORE + "/services", service(), 201), (CORE + "/endpoints", {}, 201),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"rules": []}, 201),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": []}, 201), ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}, 201),
    (CORE + "/configmaps", {}, 404), (APPS + "/deployments", workload(), 404)])
def test_a_put_creates_what_kubernetes_creates(api, path, body, code):
    name = f"put-{next(NUMBERS)}"
    assert api.ask("PUT", f"{path}/{name}", {"metadata": {"name": name}, **body}).code == code
    assert api.ask("GET", f"{path}/{name}").code == (200 if code == 201 else 404)
    # A client that names a version has read the object, so it is gone.
    late = api.ask("PUT", f"{path}/{name}-late", {"metadata": {"name": f"{name}-late", "resourceVersion": "1"}, **body})
    assert late.code == (409 if code == 201 else 404), late.text


def test_openapi_says_how_patches_change_objects(api):
    definitions = api.ask("GET", "/openapi/v2").json["definitions"]
    for kind, field, strategy in (("policy.v1.PodDisruptionBudgetSpec", "selector", "replace"), ("apps.v1.DeploymentSpec", "strategy", "retainKeys"),
                                  ("core.v1.PodSpec", "volumes", "merge,retainKeys"), ("apps.v1.DeploymentSpec", "selector", None)):
        assert definitions["io.k8s.api." + kind]["properties"][field].get("x-kubernetes-patch-strategy") == strategy, (kind, field)
