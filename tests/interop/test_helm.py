# SPDX-License-Identifier: Apache-2.0
"""Helm 3 installs, upgrades, rolls back, tests and removes a typical chart: with a definition, objects of its kind, hooks and workloads."""
import json
import os
import shutil
import subprocess

import pytest
from memory_server import MemoryServer

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.demo.example"},
    "spec": {"group": "demo.example", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}
NAME = "{{ .Release.Name }}-"
LABELS = {"app": "demo"}


def hook(name, kinds):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME + name, "annotations": {
        "helm.sh/hook": kinds, "helm.sh/hook-delete-policy": "before-hook-creation"}}, "data": {"revision": "{{ .Release.Revision }}"}}


TEMPLATES = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME + "cm"}, "data": {"text": "{{ .Values.text }}"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME + "secret"}, "stringData": {"text": "{{ .Values.text }}"}},
    {"apiVersion": "demo.example/v1", "kind": "Gadget", "metadata": {"name": NAME + "gadget"}, "spec": {"size": 1}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME + "service"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME + "deployment"}, "spec": {
        "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}},
    hook("hook", "pre-install,pre-upgrade"), hook("test", "test")]


class Helm:
    def __init__(self, server, directory):
        self.server = server
        self.chart = directory / "demo"
        (self.chart / "templates").mkdir(parents=True)
        (self.chart / "crds").mkdir()
        (self.chart / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "demo", "version": "0.1.0"}))
        (self.chart / "values.yaml").write_text(json.dumps({"text": "one"}))
        (self.chart / "crds" / "gadgets.yaml").write_text(json.dumps(DEFINITION))
        (self.chart / "templates" / "all.yaml").write_text("\n---\n".join(json.dumps(t) for t in TEMPLATES))
        self.environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), **{
            f"HELM_{name}_HOME": str(directory / name) for name in ("CACHE", "CONFIG", "DATA")}}

    def __call__(self, *args, check=True):
        done = subprocess.run(["helm", "-n", "apps", *args], env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 or not check, done.stderr
        return done

    def text(self):
        return self.server.ask("GET", "/api/v1/namespaces/apps/configmaps/r-cm").json["data"]["text"]


@pytest.fixture(scope="module", name="helm")
def _helm(tmp_path_factory):
    with MemoryServer("--runtime-config=api/workloads=true") as server:
        yield Helm(server, tmp_path_factory.mktemp("helm"))


def test_releases_are_kept_as_secrets():
    """Helm's own record of a release: a Secret for each revision, found by its labels. This test runs without helm."""
    secrets = "/api/v1/namespaces/default/secrets"

    def revision(n, status):
        labels = {"owner": "helm", "name": "demo", "status": status, "version": str(n)}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"sh.helm.release.v1.demo.v{n}", "labels": labels},
                "type": "helm.sh/release.v1", "data": {"release": "SDRzSUFBQUFBQUFBLw=="}}

    def deployed(server):
        found = server.ask("GET", f"{secrets}?labelSelector=name%3Ddemo%2Cowner%3Dhelm%2Cstatus%3Ddeployed").json
        return [item["metadata"]["labels"]["version"] for item in found["items"]]
    with MemoryServer() as server:
        assert server.ask("POST", secrets, revision(1, "deployed")).code == 201
        assert server.ask("POST", secrets, revision(1, "deployed")).code == 409
        assert server.ask("POST", secrets, revision(2, "pending-upgrade")).code == 201
        assert deployed(server) == ["1"]
        assert server.ask("PUT", f"{secrets}/sh.helm.release.v1.demo.v1", revision(1, "superseded")).code == 200
        assert server.ask("PUT", f"{secrets}/sh.helm.release.v1.demo.v2", revision(2, "deployed")).code == 200
        assert deployed(server) == ["2"]
        assert server.ask("PUT", f"{secrets}/sh.helm.release.v1.demo.v2", {**revision(2, "deployed"), "type": "Opaque"}).code == 422


@pytest.mark.skipif(not shutil.which("helm"), reason="no helm on PATH")
def test_the_life_of_a_release(helm):
    helm("install", "r", str(helm.chart), "--create-namespace")
    assert helm.text() == "one"
    assert helm.server.ask("GET", "/apis/demo.example/v1/namespaces/apps/gadgets/r-gadget").json["spec"] == {"size": 1}
    helm("upgrade", "r", str(helm.chart), "--set", "text=two")
    assert helm.text() == "two"
    assert helm.server.ask("GET", "/api/v1/namespaces/apps/configmaps/r-hook").json["data"] == {"revision": "2"}
    helm("rollback", "r", "1")
    assert helm.text() == "one"
    listed = json.loads(helm("list", "-o", "json").stdout)
    assert [(r["name"], r["revision"], r["status"]) for r in listed] == [("r", "3", "deployed")]
    assert "Phase:          Succeeded" in helm("test", "r").stdout
    # No controller creates pods here, so a wait for them times out, and the release has failed.
    waited = helm("upgrade", "r", str(helm.chart), "--set", "text=four", "--wait", "--timeout", "1s", check=False)
    assert waited.returncode != 0 and "UPGRADE FAILED" in waited.stderr
    assert [r["status"] for r in json.loads(helm("list", "-a", "-o", "json").stdout)] == ["failed"]
    helm("upgrade", "r", str(helm.chart), "--set", "text=five")
    assert helm.text() == "five"
    helm("uninstall", "r", "--wait", "--timeout", "20s")
    for path in ("/api/v1/namespaces/apps/secrets", "/apis/apps/v1/namespaces/apps/deployments", "/apis/demo.example/v1/namespaces/apps/gadgets"):
        assert helm.server.ask("GET", path).json["items"] == []
    assert helm.server.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.demo.example").code == 200
