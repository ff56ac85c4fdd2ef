# SPDX-License-Identifier: Apache-2.0
"""One small valid object of each kind that can be created, for tests that send all kinds."""

RBAC = "rbac.authorization.k8s.io"
POD = {"containers": [{"name": "c", "image": "i"}]}
LABELS = {"app": "sample"}
SELECTOR = {"matchLabels": LABELS}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
HOOK = {"name": "hook.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"]}]}
CONSTRAINTS = {"resourceRules": HOOK["rules"]}
MUTATION = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}}
# A request by openssl for the name "sample", with a key of P-256.
REQUEST = ("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R2MyRnRjR3hsTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJem"
           "owRApBUWNEUWdBRW83WGFlc1lHb3MzVWI2Y3NQV3RYRWI2OUdrRWRCcC9rSnl5bFd0cVREZk1kOFgrMXRyMnQ2eE14CnR2UEdFVk05bUkwcU9oRFBTNGtBQWhpdk1IZ1BF"
           "NkFBTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSUIwWVdCWmMKQzJPR0N5YmVWWjk5eEFVM2x6UXF3T2tPQ240Nkp2M1BNbzhJQWlFQTdYQldmQVFNamtOVDhGeXJST0JyTm"
           "xPbApUMGY2dWdwa2xyVTU1d1dmZVBFPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K")

NAMESPACED = {
    "v1": {
        "ConfigMap": {"data": {"a": "b"}},
        "Endpoints": {},
        "Event": {"involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "x"}, "reason": "Tested", "type": "Normal"},
        "LimitRange": {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]}},
        "PersistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        "Pod": {"spec": POD},
        "PodTemplate": {"template": TEMPLATE},
        "ReplicationController": {"spec": {"selector": LABELS, "template": TEMPLATE}},
        "ResourceQuota": {"spec": {"hard": {"count/nothings.example.com": "1"}}},
        "Secret": {"stringData": {"a": "b"}},
        "Service": {"spec": {"ports": [{"port": 80}]}},
        "ServiceAccount": {},
    },
    "apps/v1": {
        "ControllerRevision": {"revision": 1, "data": {"a": 1}},
        "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        "Deployment": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        "ReplicaSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        "StatefulSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "sample"}},
    },
    "autoscaling/v1": {"HorizontalPodAutoscaler": {"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}},
    "autoscaling/v2": {"HorizontalPodAutoscaler": {"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}},
    "batch/v1": {"CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}}, "Job": {"spec": JOB}},
    "coordination.k8s.io/v1": {"Lease": {"spec": {"holderIdentity": "x"}}},
    "coordination.k8s.io/v1beta1": {"LeaseCandidate": {"spec": {"leaseName": "x", "binaryVersion": "1.36.0", "emulationVersion": "1.36.0",
                                                                "strategy": "OldestEmulationVersion"}}},
    "discovery.k8s.io/v1": {"EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}},
    "events.k8s.io/v1": {"Event": {"regarding": {"kind": "ConfigMap", "namespace": "default", "name": "x"}, "eventTime": "2026-01-02T03:04:05.000001Z",
                                   "reportingController": "example.com/x", "reportingInstance": "x", "action": "Test", "reason": "Tested", "type": "Normal"}},
    "networking.k8s.io/v1": {"Ingress": {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
                             "NetworkPolicy": {"spec": {"podSelector": {}}}},
    "policy/v1": {"PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}}},
    f"{RBAC}/v1": {"Role": {"rules": RULES}, "RoleBinding": {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}}},
    "storage.k8s.io/v1": {"CSIStorageCapacity": {"storageClassName": "x"}},
}
CLUSTER = {
    "v1": {
        "Namespace": {},
        "Node": {},
        "PersistentVolume": {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
    },
    "admissionregistration.k8s.io/v1": {
        "MutatingAdmissionPolicy": {"spec": {"matchConstraints": CONSTRAINTS, "reinvocationPolicy": "Never", "mutations": [MUTATION]}},
        "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "x"}},
        "MutatingWebhookConfiguration": {"webhooks": [HOOK]},
        "ValidatingAdmissionPolicy": {"spec": {"matchConstraints": CONSTRAINTS, "validations": [{"expression": "true"}]}},
        "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "x", "validationActions": ["Deny"]}},
        "ValidatingWebhookConfiguration": {"webhooks": [HOOK]},
    },
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": {"spec": {
        "scope": "Cluster", "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}},
    "apiregistration.k8s.io/v1": {"APIService": {"spec": {"version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                                                          "insecureSkipTLSVerify": True, "service": {"name": "x", "namespace": "default"}}}},
    "certificates.k8s.io/v1": {"CertificateSigningRequest": {"spec": {"signerName": "example.com/none", "usages": ["client auth"], "request": REQUEST}}},
    "flowcontrol.apiserver.k8s.io/v1": {
        "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 9000}},
        "PriorityLevelConfiguration": {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}},
    },
    "networking.k8s.io/v1": {"IngressClass": {"spec": {"controller": "example.com/x"}},
                             "IPAddress": {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "x"}}},
                             "ServiceCIDR": {"spec": {"cidrs": ["10.9.0.0/24"]}}},
    "node.k8s.io/v1": {"RuntimeClass": {"handler": "x"}},
    f"{RBAC}/v1": {"ClusterRole": {"rules": RULES}, "ClusterRoleBinding": {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}}},
    "scheduling.k8s.io/v1": {"PriorityClass": {"value": 7}},
    "storage.k8s.io/v1": {"CSIDriver": {"spec": {}}, "CSINode": {"spec": {"drivers": []}}, "StorageClass": {"provisioner": "example.com/x"},
                          "VolumeAttachment": {"spec": {"attacher": "csi.example.com", "nodeName": "x", "source": {"persistentVolumeName": "x"}}},
                          "VolumeAttributesClass": {"driverName": "example.com/x", "parameters": {"a": "b"}}},
    "tenancy.holdfast.dev/v1alpha1": {"Workspace": {}},
}
# What is only asked, and not stored.
REVIEWS = {
    "authentication.k8s.io/v1": {"SelfSubjectReview": {}, "TokenReview": {"spec": {"token": "x"}}},
    "authorization.k8s.io/v1": {
        "LocalSubjectAccessReview": {"spec": {"user": "x", "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}},
        "SelfSubjectAccessReview": {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        "SelfSubjectRulesReview": {"spec": {"namespace": "default"}},
        "SubjectAccessReview": {"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    },
}
# Names that have to look otherwise.
NAMES = {"APIService": "v1.{name}.example.com", "CustomResourceDefinition": "{name}s.example.com", "IPAddress": "10.9.0.{number}"}


def samples(name, number, namespace="default"):
    """An object of each kind that is stored, named after `name`, of which no two numbers may be the same."""
    objects = []
    for scope, versions in (({"namespace": namespace}, NAMESPACED), ({}, CLUSTER)):
        for version, kinds in versions.items():
            for kind, more in kinds.items():
                as_named = NAMES.get(kind, "{name}").format(name=name, number=number)
                suffix = f"-{version.split('/')[1]}" if version == "autoscaling/v1" else "-new" if version == "events.k8s.io/v1" else ""
                objects.append({"apiVersion": version, "kind": kind, "metadata": {**scope, "name": as_named + suffix}, **more})
    for object in objects:
        if object["kind"] == "APIService":
            object["spec"] = {**object["spec"], "group": f"{name}.example.com"}
        if object["kind"] == "CustomResourceDefinition":
            object["spec"] = {**object["spec"], "group": "example.com", "names": {"plural": f"{name}s", "kind": name.capitalize()}}
        if object["kind"] == "ServiceCIDR":
            object["spec"] = {"cidrs": [f"10.{number}.0.0/24"]}
    return objects


def reviews(namespace="default"):
    """One object of each kind that is not stored."""
    return [{"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace} if kind.startswith("Local") else {}, **more}
            for version, kinds in REVIEWS.items() for kind, more in kinds.items()]
