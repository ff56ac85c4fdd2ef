# SPDX-License-Identifier: Apache-2.0
"""Pod templates, as kubectl and the Python client see them: defaults, tables, patches that merge containers, refusals."""
import json

import pytest

client = pytest.importorskip("kubernetes.client", reason="python3-kubernetes is not installed")
config = pytest.importorskip("kubernetes.config")

TEMPLATE = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}, "template": {
    "metadata": {"labels": {"app": "web", "a": "1"}},
    "spec": {"containers": [{"name": "main", "image": "shop:1", "ports": [{"containerPort": 80}]}, {"name": "side", "image": "log"}],
             "volumes": [{"name": "v", "emptyDir": {}}]}}}


def read(instance, ns, name="web"):
    return json.loads(instance.get(f"/api/v1/namespaces/{ns}/podtemplates/{name}")[1])


@pytest.fixture
def core(pair):
    return client.CoreV1Api(config.new_client_from_config(str(pair.a.kubeconfig)))


def test_kubectl_creates_lists_and_applies_templates(pair, kubectl, ns):
    kubectl("apply", "-n", ns, "-f", "-", stdin=json.dumps(TEMPLATE))
    table = kubectl("get", "podtemplates", "-n", ns).stdout.splitlines()
    assert table[0].split() == ["NAME", "CONTAINERS", "IMAGES", "POD", "LABELS"]
    assert table[1].split() == ["web", "main,side", "shop:1,log", "a=1,app=web"]
    changed = json.loads(json.dumps(TEMPLATE))
    changed["template"]["spec"]["containers"] = [{"name": "main", "image": "shop:2", "ports": [{"containerPort": 80}]}]
    kubectl("apply", "-n", ns, "-f", "-", stdin=json.dumps(changed))
    now = read(pair.a, ns)
    assert [(c["name"], c["image"]) for c in now["template"]["spec"]["containers"]] == [("main", "shop:2")] and now["metadata"]["generation"] == 2
    assert "unchanged" in kubectl("apply", "-n", ns, "-f", "-", stdin=json.dumps(changed)).stdout
    bad = {**TEMPLATE, "metadata": {"name": "bad"}, "template": {"spec": {"containers": [{"name": "main"}]}}}
    said = kubectl("create", "-n", ns, "--validate=false", "-f", "-", stdin=json.dumps(bad), check=False).stderr
    assert 'The PodTemplate "bad" is invalid: template.spec.containers[0].image: Required value' in said
    assert "initContainers" in kubectl("explain", "podtemplate.template.spec").stdout
    kubectl("delete", "podtemplate", "web", "-n", ns)


def test_the_python_client_reads_what_it_wrote(core, ns):
    body = client.V1PodTemplate(metadata=client.V1ObjectMeta(name="typed"), template=client.V1PodTemplateSpec(spec=client.V1PodSpec(
        containers=[client.V1Container(name="c", image="i", liveness_probe=client.V1Probe(http_get=client.V1HTTPGetAction(port="web")),
                                       resources=client.V1ResourceRequirements(limits={"cpu": "500m"}))],
        affinity=client.V1Affinity(node_affinity=client.V1NodeAffinity(preferred_during_scheduling_ignored_during_execution=[
            client.V1PreferredSchedulingTerm(weight=1, preference=client.V1NodeSelectorTerm(match_expressions=[
                client.V1NodeSelectorRequirement(key="k", operator="In", values=["v"])]))])))))
    made = core.create_namespaced_pod_template(ns, body)
    spec = made.template.spec
    assert spec.restart_policy == "Always" and spec.containers[0].image_pull_policy == "Always"
    assert spec.containers[0].liveness_probe.http_get.port == "web" and spec.containers[0].liveness_probe.period_seconds == 10
    patch = {"template": {"spec": {"containers": [{"name": "d", "image": "j"}, {"name": "c", "image": "k"}]}}}
    merged = core.patch_namespaced_pod_template("typed", ns, patch)
    images = {c.name: c.image for c in merged.template.spec.containers}
    assert images == {"c": "k", "d": "j"} and merged.metadata.generation == 2
    assert merged.template.spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution[0].weight == 1
    assert [t.metadata.name for t in core.list_namespaced_pod_template(ns).items] == ["typed"]
    core.delete_namespaced_pod_template("typed", ns)


def test_appliers_own_containers_and_ports_by_their_keys(pair, ns):
    def apply(manager, containers, force=""):
        body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}, "template": {"spec": {"containers": containers}}}
        path = f"/api/v1/namespaces/{ns}/podtemplates/web?fieldManager={manager}{force}"
        return pair.a.request("PATCH", path, body, {"Content-Type": "application/apply-patch+yaml"})

    assert apply("one", [{"name": "main", "image": "a", "ports": [{"containerPort": 80}]}])[0] == 201
    assert apply("two", [{"name": "main", "ports": [{"containerPort": 81, "protocol": "TCP"}]}])[0] == 200
    code, text = apply("two", [{"name": "main", "image": "b"}])
    assert code == 409 and json.loads(text)["message"].endswith('conflict with "one": .template.spec.containers[name="main"].image'), text
    assert apply("two", [{"name": "main", "image": "b"}], "&force=true")[0] == 200
    main = read(pair.b, ns)["template"]["spec"]["containers"][0]
    assert main["image"] == "b" and main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
