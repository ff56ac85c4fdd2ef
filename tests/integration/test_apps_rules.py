# SPDX-License-Identifier: Apache-2.0
"""For what the kinds of apps, batch, networking, storage and discovery are refused. The words are those of kube-apiserver 1.36's source."""
import itertools
import json

import pytest
from memory_server import MemoryServer

NUMBERS = itertools.count(1)
MERGE = "application/merge-patch+json"
APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
STORAGE = "/apis/storage.k8s.io/v1"
VOLUMES, ENDPOINTS = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
LABELS = {"app": "a"}
CONTAINER = {"name": "c", "image": "i"}
NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"
NOT_PERCENT = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"


@pytest.fixture(scope="module")
def server():
    with MemoryServer("--runtime-config=api/workloads=true") as it:
        yield it


def template(**spec):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **spec}}


def workload(**spec):
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": template(), **spec}}


def make(server, path, body):
    return server.ask("POST", path, {"metadata": {"name": f"n{next(NUMBERS)}"}, **body})


def made(server, path, body):
    reply = make(server, path, body)
    assert reply.code == 201, reply.text
    return f"{path}/{reply.json['metadata']['name']}", reply.json


def causes(reply):
    assert reply.code == 422, reply.text
    return [(cause["field"], cause["message"]) for cause in reply.json["details"]["causes"]]


def patch(server, path, body):
    return server.ask("PATCH", path, body, content_type=MERGE)


REFUSED = [
    # ---- Deployments, ReplicaSets ----
    (APPS + "/deployments", workload(selector={}), "spec.selector", "Invalid value: {}: empty selector is invalid for deployment"),
    (APPS + "/replicasets", workload(selector={}), "spec.selector", "Invalid value: {}: empty selector is invalid for deployment"),
    (APPS + "/deployments", workload(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}), "spec.strategy.rollingUpdate",
     "Forbidden: may not be specified when strategy `type` is 'Recreate'"),
    (APPS + "/deployments", workload(strategy={"type": "X"}), "spec.strategy",
     'Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"'),
    (APPS + "/deployments", workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}), "spec.strategy.rollingUpdate.maxUnavailable",
     'Invalid value: "0%": may not be 0 when `maxSurge` is 0'),
    (APPS + "/deployments", workload(strategy={"rollingUpdate": {"maxUnavailable": "200%"}}), "spec.strategy.rollingUpdate.maxUnavailable",
     'Invalid value: "200%": must not be greater than 100%'),
    (APPS + "/deployments", workload(strategy={"rollingUpdate": {"maxSurge": "x"}}), "spec.strategy.rollingUpdate.maxSurge", f'Invalid value: "x": {NOT_PERCENT}'),
    (APPS + "/deployments", workload(minReadySeconds=-1), "spec.minReadySeconds", NEGATIVE),
    (APPS + "/deployments", workload(revisionHistoryLimit=-1), "spec.revisionHistoryLimit", NEGATIVE),
    (APPS + "/deployments", workload(minReadySeconds=600), "spec.progressDeadlineSeconds", "Invalid value: 600: must be greater than minReadySeconds"),
    (APPS + "/deployments", workload(template=template(activeDeadlineSeconds=5)), "spec.template.spec.activeDeadlineSeconds",
     "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"),
    # ---- DaemonSets ----
    (APPS + "/daemonsets", workload(selector={}), "spec.selector", "Invalid value: {}: empty selector is invalid for daemonset"),
    (APPS + "/daemonsets", workload(updateStrategy={"type": "X"}), "spec.updateStrategy",
     'Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"'),
    (APPS + "/daemonsets", workload(updateStrategy={"rollingUpdate": {"maxSurge": 1}}), "spec.updateStrategy.rollingUpdate.maxSurge",
     "Invalid value: 1: may not be set when maxUnavailable is non-zero"),
    (APPS + "/daemonsets", workload(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}), "spec.updateStrategy.rollingUpdate.maxUnavailable",
     "Required value: cannot be 0 when maxSurge is 0"),
    # ---- StatefulSets ----
    (APPS + "/statefulsets", workload(selector={}), "spec.selector", "Invalid value: {}: empty selector is invalid for statefulset"),
    (APPS + "/statefulsets", workload(podManagementPolicy="X"), "spec.podManagementPolicy", "Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'"),
    (APPS + "/statefulsets", workload(updateStrategy={"type": "X"}), "spec.updateStrategy",
     "Invalid value: {\"Type\":\"X\",\"RollingUpdate\":null}: must be 'RollingUpdate' or 'OnDelete'"),
    (APPS + "/statefulsets", workload(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}), "spec.updateStrategy.rollingUpdate",
     "Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed for updateStrategy 'RollingUpdate'"),
    (APPS + "/statefulsets", workload(updateStrategy={"rollingUpdate": {"partition": -1}}), "spec.updateStrategy.rollingUpdate.partition", NEGATIVE),
    (APPS + "/statefulsets", workload(ordinals={"start": -1}), "spec.ordinals.start", NEGATIVE),
    (APPS + "/statefulsets", workload(persistentVolumeClaimRetentionPolicy={"whenScaled": "X"}), "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
     'Unsupported value: "X": supported values: "Retain", "Delete"'),
    (APPS + "/statefulsets", workload(volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]),
     "spec.volumeClaimTemplates[0].spec.accessModes", "Required value: at least 1 access mode is required"),
    (APPS + "/statefulsets", {"metadata": {"name": "a.b"}, **workload()}, "metadata.name",
     'Invalid value: "a.b": must not contain dots'),
    (APPS + "/controllerrevisions", {"revision": -1, "data": {"a": 1}}, "revision", NEGATIVE),
    (APPS + "/controllerrevisions", {"revision": 1}, "data", "Required value: data is mandatory"),
]


@pytest.mark.parametrize("path, body, field, why", REFUSED, ids=[f"{row[0].rpartition('/')[2]}-{row[2]}-{row[3][:40]}" for row in REFUSED])
def test_an_object_is_refused(server, path, body, field, why):
    assert (field, why) in causes(make(server, path, body))


# ---- what an update may change ----

def claim(name):
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def test_containers_of_a_stateful_set_mount_its_claims(server):
    mounts = [{"name": "data", "mountPath": "/d"}, {"name": "config", "mountPath": "/c"}]
    spec = {"containers": [{**CONTAINER, "volumeMounts": mounts}], "volumes": [{"name": "config", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]}
    body = workload(serviceName="s", template=template(**spec), volumeClaimTemplates=[claim("data")])
    path, item = made(server, APPS + "/statefulsets", body)
    assert item["spec"]["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"} and len(item["spec"]["template"]["spec"]["volumes"]) == 2
    mounts[1]["name"] = "none"
    assert causes(patch(server, path, {"spec": {"template": template(**spec)}})) == [
        ("spec.template.spec.containers[0].volumeMounts[1].name", 'Not found: "none"')]


def test_a_stateful_set_changes_in_a_few_fields(server):
    path, item = made(server, APPS + "/statefulsets", workload(serviceName="s", volumeClaimTemplates=[claim("data")]))
    for change in ({"serviceName": "t"}, {"podManagementPolicy": "Parallel"}, {"volumeClaimTemplates": [claim("other")]}, {"volumeClaimTemplates": None},
                   {"selector": {"matchLabels": {"app": "a", "b": "c"}}, "template": {"metadata": {"labels": {"app": "a", "b": "c"}}}}):
        assert causes(patch(server, path, {"spec": change})) == [
            ("spec", "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
             "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")]
    assert server.ask("PUT", path, item).code == 200
    changes = {"replicas": 3, "ordinals": {"start": 2}, "template": template(terminationGracePeriodSeconds=5), "updateStrategy": {"type": "OnDelete", "rollingUpdate": None},
               "revisionHistoryLimit": 3, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}, "minReadySeconds": 2}
    assert patch(server, path, {"spec": changes}).code == 200


@pytest.mark.parametrize("number, kind", [(1 << 31, "int64"), (-(1 << 31) - 1, "int64"), (1 << 32, "int64"), (1 << 63, "float64"), (1e300, "float64")])
def test_a_patch_cannot_make_a_number_larger_than_its_type(server, number, kind):
    """Kubernetes' converter would keep the low 32 bits after a strategic merge patch: 1 << 32 became 0, and the pods were gone."""
    path, _ = made(server, APPS + "/deployments", workload(replicas=3))
    change = {"spec": {"replicas": number}}
    reply = server.ask("PATCH", path, change, content_type="application/strategic-merge-patch+json")
    (field, why), = causes(reply)
    assert field == "patch" and why.endswith(f": cannot convert {kind} to int32"), why
    operations = [{"op": "replace", "path": "/spec/replicas", "value": number}]
    for reply in (patch(server, path, change), server.ask("PATCH", path, operations, content_type="application/json-patch+json")):
        assert causes(reply)[0][0] == "patch" and "of type int32" in reply.text
    assert server.ask("GET", path).json["spec"]["replicas"] == 3


def test_a_revision_keeps_its_data(server):
    path, _ = made(server, APPS + "/controllerrevisions", {"revision": 1, "data": {"a": 1}})
    assert patch(server, path, {"revision": 2}).code == 200
    assert causes(patch(server, path, {"data": {"a": 2}})) == [("data", 'Invalid value: {"a":2}: field is immutable')]


def test_a_job_keeps_its_completions(server):
    path, _ = made(server, BATCH + "/jobs", {"spec": {"template": template(restartPolicy="Never"), "activeDeadlineSeconds": 1 << 32}})
    assert patch(server, path, {"spec": {"parallelism": 3, "suspend": True}}).code == 200
    assert causes(patch(server, path, {"spec": {"completions": 2}})) == [("spec.completions", "Invalid value: 2: field is immutable")]
    path, _ = made(server, BATCH + "/jobs", {"spec": {"template": template(restartPolicy="Never"), "completionMode": "Indexed", "completions": 2, "parallelism": 2}})
    assert patch(server, path, {"spec": {"completions": 3, "parallelism": 3}}).code == 200
    assert causes(patch(server, path, {"spec": {"completions": 4}})) == [("spec.completions", "Invalid value: 4: can only be modified in tandem with spec.parallelism")]
    assert causes(patch(server, path, {"spec": {"completionMode": "NonIndexed", "completions": 3}})) == [
        ("spec.completionMode", 'Invalid value: "NonIndexed": field is immutable')]


def test_a_zero_that_a_typed_client_leaves_out_is_no_change(server):
    """Go's clients drop false, "" and 0 where the field is no pointer, and write quantities in their own form."""
    mounts = [{"name": "v", "mountPath": "/v", "readOnly": False}]
    container = {**CONTAINER, "env": [{"name": "A", "value": ""}], "volumeMounts": mounts, "resources": {"limits": {"memory": "1Gi"}}}
    volumes = [{"name": "v", "emptyDir": {}}]
    path, item = made(server, BATCH + "/jobs", {"spec": {"template": template(restartPolicy="Never", volumes=volumes, containers=[container])}})
    sent = item["spec"]["template"]["spec"]["containers"][0]
    del sent["volumeMounts"][0]["readOnly"], sent["env"][0]["value"]
    sent["resources"]["limits"]["memory"] = "1073741824"
    item["spec"]["suspend"] = True
    reply = server.ask("PUT", path, item)
    assert reply.code == 200, reply.text
    path, item = made(server, APPS + "/statefulsets", workload())
    assert patch(server, path, {"spec": {"serviceName": "", "replicas": 2}}).code == 200
    path, item = made(server, VOLUMES, {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nfs": {
        "server": "s", "path": "/p", "readOnly": False}}})
    assert patch(server, path, {"spec": {"nfs": {"readOnly": None}, "mountOptions": ["ro"]}}).code == 200


def test_a_suspended_job_gets_nodes_and_resources_while_it_starts(server):
    path, _ = made(server, BATCH + "/jobs", {"spec": {"suspend": True, "template": template(restartPolicy="Never")}})
    key = "kubernetes.io/arch"
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["arm64"]}]}]
    chosen = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "pool", "operator": "Exists"}], "schedulingGates": [{"name": "example.com/wait"}],
              "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
              "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}]}
    assert causes(patch(server, path, {"spec": {"template": {"spec": {"containers": [{**CONTAINER, "image": "other"}]}}}})) == [
        ("spec.template", "Invalid value: {}: field is immutable")]
    change = {"spec": {"suspend": False, "template": {"metadata": {"annotations": {"a": "b"}}, "spec": chosen}}}
    reply = patch(server, path, change)
    assert reply.code == 200, reply.text
    assert causes(patch(server, path, {"spec": {"template": {"spec": {"nodeSelector": {"pool": "b"}}}}})) == [
        ("spec.template", "Invalid value: {}: field is immutable")]


# ---- Jobs ----

def job(**spec):
    return {"spec": {"template": template(restartPolicy="Never"), **spec}}


def indexed(**spec):
    return job(completionMode="Indexed", **{"completions": 10, "parallelism": 1, **spec})


def fails(*rules, **spec):
    return job(podFailurePolicy={"rules": list(rules)}, **spec)


def rule(**members):
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}, **members}


def codes(**members):
    return fails(rule(onExitCodes={"operator": "In", "values": [1], **members}))


def conditions(*patterns):
    return fails({"action": "Ignore", "onPodConditions": list(patterns)})


def succeeds(*rules, **spec):
    return indexed(successPolicy={"rules": list(rules)}, **spec)


RULES, RULE = "podFailurePolicy.rules", "podFailurePolicy.rules[0]"
CODES, CONDITIONS = RULE + ".onExitCodes", RULE + ".onPodConditions"
SUCCESS = "successPolicy.rules[0]"
UNREAD = "error parsing succeededIndexes: "
NOT_QUALIFIED = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or " \
                "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
MANY = "when completions are above 100000 and used with backoff limit per index"
JOBS = [
    ("mode", job(completionMode="X"), [("completionMode", 'Unsupported value: "X": supported values: "NonIndexed", "Indexed"')]),
    ("no mode, but limits", job(backoffLimitPerIndex=1, maxFailedIndexes=2), [
        ("backoffLimitPerIndex", "Invalid value: 1: requires indexed completion mode"), ("maxFailedIndexes", "Invalid value: 2: requires indexed completion mode")]),
    ("no completions", job(completionMode="Indexed", parallelism=1), [("completions", "Required value: when completion mode is Indexed")]),
    ("many at a time", indexed(parallelism=100001), [
        ("parallelism", "Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed")]),
    ("more failures than indexes", indexed(backoffLimitPerIndex=1, maxFailedIndexes=11), [
        ("maxFailedIndexes", "Invalid value: 11: must be less than or equal to completions")]),
    ("failures without a limit", indexed(maxFailedIndexes=1), [("backoffLimitPerIndex", "Required value: when maxFailedIndexes is specified")]),
    ("negative limits", indexed(backoffLimitPerIndex=-1, maxFailedIndexes=-1), [("backoffLimitPerIndex", NEGATIVE), ("maxFailedIndexes", NEGATIVE)]),
    ("many indexes", indexed(completions=100001, parallelism=10001, backoffLimitPerIndex=1), [
        ("maxFailedIndexes", "Required value: must be specified when completions is above 100000"),
        ("parallelism", f"Invalid value: 10001: must be less than or equal to 10000 {MANY}")]),
    ("many failures", indexed(completions=100002, backoffLimitPerIndex=1, maxFailedIndexes=100001), [
        ("maxFailedIndexes", "Invalid value: 100001: must be less than or equal to 100000"),
        ("maxFailedIndexes", f"Invalid value: 100001: must be less than or equal to 10000 {MANY}")]),
    ("no manager", job(managedBy=""), [("managedBy", "Required value")]),
    ("manager", job(managedBy="x"), [("managedBy", 'Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")')]),
    ("path of a manager", job(managedBy="a.b/c d"), [
        ("managedBy", "Invalid value: \"c d\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')")]),
    ("long manager", job(managedBy="a.b/" + "c" * 60), [("managedBy", "Too long: may not be more than 63 bytes")]),
    ("replacement", job(podReplacementPolicy="X"), [
        ("podReplacementPolicy", 'Unsupported value: "X": supported values: "Failed", "TerminatingOrFailed"')]),
    ("replacement with failures", fails(rule(), podReplacementPolicy="TerminatingOrFailed"), [
        ("podReplacementPolicy", 'Unsupported value: "TerminatingOrFailed": supported values: "Failed"')]),
    ("restart", job(template=template()), [("template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')]),
    ("restart with failures", fails(rule(), template=template(restartPolicy="OnFailure")), [
        ("template.spec.restartPolicy", 'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified')]),
    # ---- policies of failures ----
    ("many rules", fails(*[rule()] * 21), [(RULES, "Too many: 21: must have at most 20 items")]),
    ("no action", fails(rule(action="")), [(RULE + ".action", 'Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')]),
    ("action", fails(rule(action="X")), [
        (RULE + ".action", 'Unsupported value: "X": supported values: "Count", "FailIndex", "FailJob", "Ignore"')]),
    ("action without indexes", fails(rule(action="FailIndex")), [
        (RULE + ".action", 'Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set')]),
    ("nothing", fails({"action": "Count"}), [(RULE, "Invalid value: specifying one of OnExitCodes and OnPodConditions is required")]),
    ("both", fails(rule(onPodConditions=[{"type": "A"}])), [
        (RULE, "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported")]),
    ("no operator", codes(operator=""), [(CODES + ".operator", 'Required value: valid values: ["In" "NotIn"]')]),
    ("operator", codes(operator="X"), [(CODES + ".operator", 'Unsupported value: "X": supported values: "In", "NotIn"')]),
    ("container", codes(containerName="x"), [
        (CODES + ".containerName", 'Invalid value: "x": must be one of the container or initContainer names in the pod template')]),
    ("no codes", codes(values=[]), [(CODES + ".values", "Invalid value: []: at least one value is required")]),
    ("many codes", codes(values=list(range(1, 257))), [(CODES + ".values", "Too many: 256: must have at most 255 items")]),
    ("zero", codes(values=[0, 1]), [(CODES + ".values[0]", "Invalid value: 0: must not be 0 for the In operator")]),
    ("codes", codes(values=[2, 1, 2]), [
        (CODES + ".values[2]", "Duplicate value: 2"), (CODES + ".values", "Invalid value: [2,1,2]: must be ordered")]),
    ("repeated codes", codes(operator="NotIn", values=[3, -1, 3, 0, 3, -1, 7, 0]), [
        (CODES + ".values[2]", "Duplicate value: 3"), (CODES + ".values[4]", "Duplicate value: 3"), (CODES + ".values[5]", "Duplicate value: -1"),
        (CODES + ".values[7]", "Duplicate value: 0"), (CODES + ".values", "Invalid value: [3,-1,3,0,3,-1,7,0]: must be ordered")]),
    ("a code that is repeated in order", codes(values=[1, 1, 2]), [(CODES + ".values[1]", "Duplicate value: 1")]),
    ("many conditions", conditions(*[{"type": "A"}] * 21), [(CONDITIONS, "Too many: 21: must have at most 20 items")]),
    ("condition", conditions({"type": "A B", "status": "X"}), [
        (CONDITIONS + "[0].type", f'Invalid value: "A B": {NOT_QUALIFIED}'),
        (CONDITIONS + "[0].status", 'Unsupported value: "X": supported values: "False", "True", "Unknown"')]),
    # ---- policies of success ----
    ("no indexes", job(successPolicy={"rules": [{"succeededIndexes": "0"}]}), [
        ("successPolicy", 'Invalid value: {"Rules":[{"SucceededIndexes":"0","SucceededCount":null}]}: requires indexed completion mode')]),
    ("no success", succeeds(), [("successPolicy.rules", "Required value: at least one rules must be specified when the successPolicy is specified")]),
    ("many successes", succeeds(*[{"succeededCount": 1}] * 21), [("successPolicy.rules", "Too many: 21: must have at most 20 items")]),
    ("empty success", succeeds({}), [(SUCCESS, "Required value: at least one of succeededCount or succeededIndexes must be specified")]),
    ("negative success", succeeds({"succeededCount": -1}), [(SUCCESS + ".succeededCount", NEGATIVE)]),
    ("more than all", succeeds({"succeededCount": 11}), [
        (SUCCESS + ".succeededCount", "Invalid value: 11: must be less than or equal to 10 (the number of specified completions)")]),
    ("more than these", succeeds({"succeededCount": 4, "succeededIndexes": "0,2-3"}), [
        (SUCCESS + ".succeededCount", "Invalid value: 4: must be less than or equal to 3 (the number of indexes in the specified succeededIndexes field)")]),
    ("text", succeeds({"succeededIndexes": "0,x"}), [
        (SUCCESS + ".succeededIndexes", f'Invalid value: "0,x": {UNREAD}cannot convert string to integer for index: "x"')]),
    ("too far", succeeds({"succeededIndexes": "3-10"}), [
        (SUCCESS + ".succeededIndexes", f'Invalid value: "3-10": {UNREAD}too large index: "10"')]),
    ("three parts", succeeds({"succeededIndexes": "1-2-3"}), [
        (SUCCESS + ".succeededIndexes", f'Invalid value: "1-2-3": {UNREAD}the fragment "1-2-3" violates the requirement that an index interval can have at most two '
         "parts separated by '-'")]),
    ("order of indexes", succeeds({"succeededIndexes": "1-4,4"}), [
        (SUCCESS + ".succeededIndexes", f'Invalid value: "1-4,4": {UNREAD}non-increasing order, previous: 4, current: 4')]),
    # ---- selectors ----
    ("no selector", job(manualSelector=True), [
        ("selector", "Required value"), ("template.metadata.labels", 'Invalid value: {"app":"a"}: `selector` does not match template `labels`')]),
    ("selector", job(manualSelector=True, selector={"matchLabels": {"b": "c"}}), [
        ("template.metadata.labels", 'Invalid value: {"app":"a"}: `selector` does not match template `labels`')]),
]


@pytest.mark.parametrize("body, wanted", [row[1:] for row in JOBS], ids=[row[0] for row in JOBS])
def test_a_job_is_refused(server, body, wanted):
    assert causes(make(server, BATCH + "/jobs", body)) == [(f"spec.{field}", why) for field, why in wanted]


@pytest.mark.parametrize("body", [
    fails(rule(), rule(action="Count", onExitCodes={"operator": "NotIn", "values": [0, 5, 200], "containerName": "c"}),
          {"action": "Ignore", "onPodConditions": [{"type": "example.com/Lost"}, {"type": "DisruptionTarget", "status": "Unknown"}]}),
    fails(), fails(rule(onExitCodes={"operator": "In", "values": [-1], "containerName": "i"}),
                   template=template(restartPolicy="Never", initContainers=[{"name": "i", "image": "i"}])),
    {"spec": {**indexed(backoffLimitPerIndex=0, maxFailedIndexes=10)["spec"], **fails(rule(action="FailIndex"))["spec"]}},
    succeeds({"succeededIndexes": "0,2-4,9", "succeededCount": 5}, {"succeededCount": 10}, {"succeededIndexes": ""}),
    indexed(completions=1000000, parallelism=10000, backoffLimitPerIndex=1, maxFailedIndexes=10000),
    job(managedBy="example.com/queue"), job(podReplacementPolicy="TerminatingOrFailed"),
    job(manualSelector=True, selector={"matchLabels": LABELS})])
def test_a_job_with_policies_is_made(server, body):
    made(server, BATCH + "/jobs", body)


def test_the_host_names_of_the_pods_of_an_indexed_job_are_labels(server):
    def create(name, completions):
        return server.ask("POST", BATCH + "/jobs", {"metadata": {"name": name}, **indexed(completions=completions)})

    assert create("n" * 61, 10).code == 201
    assert causes(create("m" * 61, 11)) == [
        ("metadata.name", f'Invalid value: "{"m" * 61}": will not able to create pod with invalid DNS label: {"m" * 61}-10')]
    # Scaling makes the last index longer.
    assert causes(patch(server, f"{BATCH}/jobs/{'n' * 61}", {"spec": {"completions": 11, "parallelism": 11}})) == [
        ("metadata.name", f'Invalid value: "{"n" * 61}": will not able to create pod with invalid DNS label: {"n" * 61}-10')]


def test_the_selector_of_a_job_stays(server):
    path, _ = made(server, BATCH + "/jobs", job(manualSelector=True, selector={"matchLabels": LABELS}))
    mismatch = ("spec.template.metadata.labels", 'Invalid value: {"app":"a"}: `selector` does not match template `labels`')
    assert causes(patch(server, path, {"spec": {"selector": None}})) == [
        ("spec.selector", "Required value"), mismatch, ("spec.selector", "Invalid value: null: field is immutable")]
    assert causes(patch(server, path, {"spec": {"selector": {"matchLabels": {"app": "b"}}}})) == [
        mismatch, ("spec.selector", 'Invalid value: {"matchLabels":{"app":"b"}}: field is immutable')]


def test_the_policies_of_a_job_stay(server):
    policy = {"rules": [rule()]}
    path, _ = made(server, BATCH + "/jobs", indexed(podFailurePolicy=policy, managedBy="a.b/c", backoffLimitPerIndex=1, maxFailedIndexes=1,
                                                    successPolicy={"rules": [{"succeededCount": 2}]}))
    for member, value in (("podFailurePolicy", None), ("podFailurePolicy", {"rules": [rule(action="Count")]}), ("backoffLimitPerIndex", 2),
                          ("managedBy", "a.b/d"), ("managedBy", None), ("successPolicy", {"rules": [{"succeededCount": 1}]})):
        (field, why), = causes(patch(server, path, {"spec": {member: value}}))
        assert field == f"spec.{member}" and why.endswith(": field is immutable")
    assert patch(server, path, {"spec": {"maxFailedIndexes": 2, "backoffLimit": 3, "ttlSecondsAfterFinished": 4}}).code == 200
    path, _ = made(server, BATCH + "/jobs", job())
    assert patch(server, path, {"spec": {"podReplacementPolicy": "Failed"}}).code == 200
    # What a scaled Job counts is checked again.
    path, _ = made(server, BATCH + "/jobs", succeeds({"succeededIndexes": "9"}))
    assert causes(patch(server, path, {"spec": {"completions": 9, "parallelism": 9}})) == [
        ("spec.successPolicy.rules[0].succeededIndexes", f'Invalid value: "9": {UNREAD}too large index: "9"')]


# ---- CronJobs ----

def cron_job(schedule, **spec):
    return {"spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}, **spec}}


@pytest.mark.parametrize("schedule", ["* * * * *", "*/5 0-6/2 1,15 jan-DEC Mon", "@hourly", "@every 1h30m", "  0 0 ? * 6 ", "5/10 * * * *"])
def test_schedules_of_cron_are_taken(server, schedule):
    made(server, BATCH + "/cronjobs", cron_job(schedule))


@pytest.mark.parametrize("schedule, why", [
    ("error", "expected exactly 5 fields, found 1: [error]"),
    ("* * * *  * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
    ("60 * * * *", "end of range (60) above maximum (59): 60"),
    ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
    ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
    ("1/2/3 * * * *", "too many slashes: 1/2/3"),
    ("*/0 * * * *", "step of range should be a positive number: */0"),
    ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
    ("* * * * x", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
    ("@often", "unrecognized descriptor: @often"),
    ("TZ=UTC 0 * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")])
def test_other_schedules_are_refused(server, schedule, why):
    assert causes(make(server, BATCH + "/cronjobs", cron_job(schedule))) == [("spec.schedule", f'Invalid value: "{schedule}": {why}')]


@pytest.mark.parametrize("spec, field, why", [
    ({"timeZone": ""}, "spec.timeZone", 'Invalid value: "": timeZone must be nil or non-empty string'),
    ({"timeZone": "Local"}, "spec.timeZone", 'Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'),
    ({"timeZone": "a/../b"}, "spec.timeZone", 'Invalid value: "a/../b": unknown time zone a/../b'),
    ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds", NEGATIVE),
    ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit", NEGATIVE),
    ({"concurrencyPolicy": "X"}, "spec.concurrencyPolicy", 'Unsupported value: "X": supported values: "Allow", "Forbid", "Replace"'),
    ({"jobTemplate": job(backoffLimit=-1)}, "spec.jobTemplate.spec.backoffLimit", NEGATIVE),
    ({"jobTemplate": codes(values=[0])}, f"spec.jobTemplate.spec.{CODES}.values[0]", "Invalid value: 0: must not be 0 for the In operator"),
    ({"jobTemplate": job(selector={"matchLabels": LABELS})}, "spec.jobTemplate.spec.selector",
     'Invalid value: {"matchLabels":{"app":"a"}}: `selector` will be auto-generated'),
    ({"jobTemplate": job(manualSelector=True)}, "spec.jobTemplate.spec.manualSelector", 'Unsupported value: true: supported values: "nil", "false"')])
def test_a_cron_job_is_refused(server, spec, field, why):
    assert causes(make(server, BATCH + "/cronjobs", cron_job("* * * * *", **spec))) == [(field, why)]


def test_the_jobs_of_a_cron_job_may_change(server):
    path, _ = made(server, BATCH + "/cronjobs", cron_job("* * * * *", jobTemplate=fails(rule(), managedBy="a.b/c")))
    assert patch(server, path, {"spec": {"jobTemplate": fails(rule(action="Count"), managedBy="a.b/d")}}).code == 200
    assert causes(patch(server, path, {"spec": {"jobTemplate": fails(rule(action="X"))}}))[0][0] == f"spec.jobTemplate.spec.{RULE}.action"


def test_the_name_of_a_cron_job_leaves_room_for_its_jobs(server):
    name = "n" * 53
    assert causes(server.ask("POST", BATCH + "/cronjobs", {"metadata": {"name": name}, **cron_job("* * * * *")})) == [
        ("metadata.name", f'Invalid value: "{name}": must be no more than 52 characters')]
    assert patch(server, made(server, BATCH + "/cronjobs", cron_job("* * * * *", timeZone="Europe/Berlin"))[0], {"spec": {"suspend": True}}).code == 200


# ---- NetworkPolicies ----

def policy(ports=None, peers=None, **spec):
    rule = {**({"ports": ports} if ports is not None else {}), **({"from": peers} if peers is not None else {})}
    return {"spec": {"podSelector": {}, "ingress": [rule], **spec}}


NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
PORT, PEER = "spec.ingress[0].ports[0]", "spec.ingress[0].from[0]"


@pytest.mark.parametrize("body, field, why", [
    (policy([{"protocol": "X"}]), PORT + ".protocol", 'Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"'),
    (policy([{"port": 0}]), PORT + ".port", "Invalid value: 0: must be between 1 and 65535, inclusive"),
    (policy([{"port": "a_"}]), PORT + ".port", 'Invalid value: "a_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)'),
    (policy([{"endPort": 80}]), PORT + ".endPort", "Invalid value: 80: may not be specified when `port` is not specified"),
    (policy([{"port": "http", "endPort": 80}]), PORT + ".endPort", "Invalid value: 80: may not be specified when `port` is non-numeric"),
    (policy([{"port": 90, "endPort": 80}]), PORT + ".endPort", "Invalid value: 80: must be greater than or equal to `port`"),
    (policy(peers=[{}]), PEER, "Required value: must specify a peer"),
    (policy(peers=[{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]), PEER, "Forbidden: may not specify both ipBlock and another peer"),
    (policy(peers=[{"ipBlock": {}}]), PEER + ".ipBlock.cidr", "Required value"),
    (policy(peers=[{"ipBlock": {"cidr": "10.0.0.0"}}]), PEER + ".ipBlock.cidr", f'Invalid value: "10.0.0.0": {NO_CIDR}'),
    (policy(peers=[{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x"]}}]), PEER + ".ipBlock.except[0]", f'Invalid value: "x": {NO_CIDR}'),
    (policy(peers=[{"ipBlock": {"cidr": "10.0.0.0/15", "except": ["10.1.0.0/16", "10.2.0.0/16"]}}]), PEER + ".ipBlock.except[1]",
     'Invalid value: "10.2.0.0/16": must be a strict subset of `cidr`'),
    (policy(peers=[{"ipBlock": {"cidr": "2001:db8::/33", "except": ["2001:db8::/33"]}}]), PEER + ".ipBlock.except[0]",
     'Invalid value: "2001:db8::/33": must be a strict subset of `cidr`'),
    (policy(peers=[{"ipBlock": {"cidr": "010.0.0.0/8"}}]), PEER + ".ipBlock.cidr",
     'Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length'),
    (policy(peers=[{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.3.0.0/15"]}}]), PEER + ".ipBlock.except[0]",
     'Invalid value: "10.3.0.0/15": must not have bits set beyond the prefix length'),
    (policy(podSelector={"matchLabels": {"a": "-"}}), "spec.podSelector.matchLabels", None),
    (policy(policyTypes=["X"]), "spec.policyTypes[0]", 'Unsupported value: "X": supported values: "Ingress", "Egress"'),
    (policy(policyTypes=["Ingress", "Egress", "Ingress"]), "spec.policyTypes",
     'Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes')])
def test_a_network_policy_is_refused(server, body, field, why):
    found = causes(make(server, POLICIES, body))
    assert [each[0] for each in found] == [field] and (why is None or found[0][1] == why), found


def test_a_network_policy_is_made_and_changed(server):
    body = policy([{"port": 80, "endPort": 90}, {"port": "http", "protocol": "UDP"}, {}],
                  [{"podSelector": {}, "namespaceSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.2.0/24", "10.2.0.0/15"]}},
                   {"ipBlock": {"cidr": "::/0", "except": ["2001:db8::/33"]}}])
    path, item = made(server, POLICIES, body)
    assert item["spec"]["policyTypes"] == ["Ingress"] and item["spec"]["ingress"][0]["ports"][2] == {"protocol": "TCP"}
    assert causes(patch(server, path, {"spec": {"egress": [{"to": [{}]}]}})) == [("spec.egress[0].to[0]", "Required value: must specify a peer")]
    assert patch(server, path, {"metadata": {"labels": {"a": "b"}}}).code == 200


# ---- classes ----

def test_a_storage_class_stays_as_it_is(server):
    path, item = made(server, STORAGE + "/storageclasses", {"provisioner": "Example.com/x", "parameters": {"a": "b"}})
    assert (item["reclaimPolicy"], item["volumeBindingMode"]) == ("Delete", "Immediate")
    for change in ({"parameters": {"a": "c"}}, {"provisioner": "other"}, {"reclaimPolicy": "Retain"}, {"volumeBindingMode": "WaitForFirstConsumer"}):
        ((name, value),) = change.items()
        shown = json.dumps(value, separators=(",", ":"))
        assert causes(patch(server, path, change)) == [(name, f"Invalid value: {shown}: field is immutable")]
    assert patch(server, path, {"allowVolumeExpansion": True, "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}).code == 200


@pytest.mark.parametrize("path, body, field, why", [
    ("/storageclasses", {"provisioner": ""}, "provisioner", "Required value"),
    ("/storageclasses", {"provisioner": "x", "reclaimPolicy": "Recycle"}, "reclaimPolicy", 'Unsupported value: "Recycle": supported values: "Delete", "Retain"'),
    ("/storageclasses", {"provisioner": "x", "volumeBindingMode": "X"}, "volumeBindingMode",
     'Unsupported value: "X": supported values: "Immediate", "WaitForFirstConsumer"'),
    ("/volumeattributesclasses", {"driverName": "x"}, "parameters", "Required value: must contain at least one key/value pair"),
    ("/csidrivers", {"spec": {"fsGroupPolicy": "X"}}, "spec.fsGroupPolicy",
     'Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType"'),
    ("/csidrivers", {"spec": {"volumeLifecycleModes": ["X"]}}, "spec.volumeLifecycleModes", 'Unsupported value: "X": supported values: "Persistent", "Ephemeral"'),
    ("/csidrivers", {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}}, "spec.tokenRequests[1].audience", 'Duplicate value: "a"'),
    ("/csidrivers", {"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 5}]}}, "spec.tokenRequests[0].expirationSeconds",
     "Invalid value: 5: may not specify a duration less than 10 minutes"),
    ("/storageclasses", {"provisioner": "A_"}, "provisioner", f'Invalid value: "a_": {NOT_QUALIFIED}'),
    ("/volumeattachments", {"spec": {"attacher": "A_", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}, "spec.attacher", None),
    ("/volumeattachments", {"spec": {"attacher": "a" * 64, "nodeName": "n", "source": {"persistentVolumeName": "v"}}}, "spec.attacher",
     "Too long: may not be more than 63 bytes"),
    ("/volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {}}}, "spec.source",
     "Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName")])
def test_an_object_of_storage_is_refused(server, path, body, field, why):
    found = causes(make(server, STORAGE + path, body))
    assert [each[0] for each in found] == [field] and (found[0][1] == why if why else found[0][1].startswith('Invalid value: "A_": ')), found


def test_other_objects_of_storage_keep_what_they_are(server):
    path, _ = made(server, STORAGE + "/volumeattributesclasses", {"driverName": "x", "parameters": {"a": "b"}})
    assert causes(patch(server, path, {"parameters": {"a": "c"}})) == [("parameters", "Forbidden: updates to parameters are forbidden.")]
    path, _ = made(server, STORAGE + "/csidrivers", {"spec": {}})
    assert causes(patch(server, path, {"spec": {"attachRequired": False}})) == [("spec.attachedRequired", "Invalid value: false: field is immutable")]
    path, _ = made(server, STORAGE + "/volumeattachments", {"spec": {"attacher": "Disk.CSI.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}})
    assert causes(patch(server, path, {"spec": {"nodeName": "m"}}))[0][0] == "spec"


def volume(**spec):
    return {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}}


@pytest.mark.parametrize("spec, field, why", [
    ({"accessModes": []}, "spec.accessModes", "Required value"),
    ({"capacity": {"cpu": "1"}}, "spec.capacity", 'Unsupported value: {"cpu":"1"}: supported values: "storage"'),
    ({"capacity": {"storage": "0"}}, "spec.capacity[storage]", 'Invalid value: "0": must be greater than zero'),
    ({"persistentVolumeReclaimPolicy": "X"}, "spec.persistentVolumeReclaimPolicy", 'Unsupported value: "X": supported values: "Delete", "Recycle", "Retain"'),
    ({"hostPath": None}, "spec", "Required value: must specify a volume type"),
    ({"nfs": {"server": "s", "path": "/"}}, "spec.nfs", "Forbidden: may not specify more than 1 volume type"),
    ({"volumeMode": "X"}, "spec.volumeMode", 'Unsupported value: "X": supported values: "Block", "Filesystem"')])
def test_a_volume_is_refused(server, spec, field, why):
    assert causes(make(server, VOLUMES, volume(**spec))) == [(field, why)]


def test_a_volume_has_a_capacity(server):
    assert causes(make(server, VOLUMES, volume(capacity=None))) == [
        ("spec.capacity", "Required value"), ("spec.capacity", 'Unsupported value: null: supported values: "storage"')]


def test_a_volume_keeps_its_source(server):
    path, _ = made(server, VOLUMES, volume())
    for change in ({"hostPath": {"path": "/y"}}, {"hostPath": None, "nfs": {"server": "s", "path": "/"}}):
        assert causes(patch(server, path, {"spec": change})) == [
            ("spec.persistentvolumesource", "Forbidden: spec.persistentvolumesource is immutable after creation")]
    assert patch(server, path, {"spec": {"capacity": {"storage": "2Gi"}, "claimRef": {"namespace": "default", "name": "c"}}}).code == 200


def test_an_ingress_class_keeps_its_controller(server):
    path, item = made(server, CLASSES, {"spec": {"controller": "acme.io/foo", "parameters": {"kind": "K", "name": "n"}}})
    assert item["spec"]["parameters"]["scope"] == "Cluster"
    assert causes(patch(server, path, {"spec": {"controller": "acme.io/bar"}})) == [("spec.controller", 'Invalid value: "acme.io/bar": field is immutable')]
    for parameters, cause in (({"scope": "Namespace"}, ("namespace", "Required value: `parameters.scope` is set to 'Namespace'")),
                              ({"namespace": "x"}, ("namespace", "Forbidden: `parameters.scope` is set to 'Cluster'")),
                              ({"scope": "X"}, ("scope", 'Unsupported value: "X": supported values: "Cluster", "Namespace"'))):
        assert causes(patch(server, path, {"spec": {"parameters": parameters}})) == [(f"spec.parameters.{cause[0]}", cause[1])]
    for controller, why in (("", "Required value"), ("x", 'Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")')):
        assert causes(make(server, CLASSES, {"spec": {"controller": controller}})) == [("spec.controller", why)]


# ---- Endpoints, EndpointSlices ----

@pytest.mark.parametrize("subset, field, why", [
    ({}, "subsets[0]", "Required value: must specify `addresses` or `notReadyAddresses`"),
    ({"addresses": [{"ip": "010.0.0.1"}]}, "subsets[0].addresses[0].ip", 'Invalid value: "010.0.0.1": must not have leading 0s'),
    ({"addresses": [{"ip": "127.0.0.1"}]}, "subsets[0].addresses[0].ip", 'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'),
    ({"addresses": [{"ip": "::"}]}, "subsets[0].addresses[0].ip", 'Invalid value: "::": may not be unspecified (::)'),
    ({"notReadyAddresses": [{"ip": "fe80::1"}]}, "subsets[0].notReadyAddresses[0].ip",
     'Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)'),
    ({"addresses": [{"ip": "224.0.0.5"}]}, "subsets[0].addresses[0].ip",
     'Invalid value: "224.0.0.5": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'),
    ({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "a", "port": 1}, {"port": 2}]}, "subsets[0].ports[1].name", "Required value"),
    ({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 0}]}, "subsets[0].ports[0].port", "Invalid value: 0: must be between 1 and 65535, inclusive")])
def test_endpoints_are_refused(server, subset, field, why):
    assert causes(make(server, ENDPOINTS, {"subsets": [subset]})) == [(field, why)]


def test_an_address_of_endpoints_has_a_cause_for_each_rule(server):
    for ip, whys in {"x": ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", "must be a valid IP address"),
                     "127.0.0.01": ("must not have leading 0s", "may not be in the loopback range (127.0.0.0/8, ::1/128)")}.items():
        assert causes(make(server, ENDPOINTS, {"subsets": [{"addresses": [{"ip": ip}]}]})) == [
            ("subsets[0].addresses[0].ip", f'Invalid value: "{ip}": {why}') for why in whys]


def test_endpoints_are_made(server):
    made(server, ENDPOINTS, {"subsets": [{"addresses": [{"ip": "10.0.0.1", "nodeName": "n"}, {"ip": "2001:db8::1"}], "ports": [{"port": 80}]}]})


@pytest.mark.parametrize("body, field, why", [
    ({"endpoints": []}, "addressType", "Required value"),
    ({"addressType": "X"}, "addressType", 'Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"'),
    ({"addressType": "IPv4", "endpoints": [{"addresses": []}]}, "endpoints[0].addresses", "Required value: must contain at least 1 address"),
    ({"addressType": "IPv4", "endpoints": [{"addresses": ["2001:db8::1"]}]}, "endpoints[0].addresses",
     'Invalid value: "2001:db8::1": must be an IPv4 address'),
    ({"addressType": "IPv6", "endpoints": [{"addresses": ["2001:DB8::1"]}]}, "endpoints[0].addresses[0]",
     'Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")'),
    ({"addressType": "FQDN", "endpoints": [{"addresses": ["example"]}]}, "endpoints[0].addresses[0]",
     'Invalid value: "example": should be a domain with at least two segments separated by dots'),
    ({"addressType": "X", "endpoints": [{"addresses": ["127.0.0.1"]}]}, "addressType",
     'Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"'),
    ({"addressType": "IPv6", "endpoints": [{"addresses": ["::1"]}]}, "endpoints[0].addresses[0]",
     'Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)'),
    ({"addressType": "IPv4", "ports": [{"name": "a"}, {"name": "a"}]}, "ports[1].name", 'Duplicate value: "a"'),
    ({"addressType": "IPv4", "ports": [{"protocol": "X"}]}, "ports[0].protocol", 'Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'),
    ({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}] * 1001}, "endpoints", "Too many: 1001: must have at most 1000 items")])
def test_an_endpoint_slice_is_refused(server, body, field, why):
    found = causes(make(server, SLICES, body))
    assert found == [(field, why)], found


def test_an_endpoint_slice_keeps_the_type_of_its_addresses(server):
    path, _ = made(server, SLICES, {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"name": "http", "port": 80}]})
    assert causes(patch(server, path, {"addressType": "FQDN"})) == [("addressType", 'Invalid value: "FQDN": field is immutable')]
