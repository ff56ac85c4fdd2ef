# SPDX-License-Identifier: Apache-2.0
"""Commands of kubectl that the other files do not show: diff, apply that prunes, auth, wait, events, proxy, cluster-info. A row of the table is the first
version that has the command, its arguments, what it reads, the status it ends with, and what it prints (a regular expression)."""
import json
import os
import re
import subprocess
import urllib.request

import pytest

from holdfastd import wait_until

PATH = "/api/v1/namespaces/{ns}/configmaps"
APPLY = ("apply", "-n", "{ns}", "-f", "-")


def config_map(name, value, **labels):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": value}})


def several(*documents):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [json.loads(d) for d in documents]})


ROLE = json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "NS"},
                   "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
MORE = ROLE.replace('"get"', '"list"')
ANY = (1, 0)
# Without a list of kinds it wants to prune pods and other kinds, which a server without workloads does not have.
LABELED = ("--prune", "-l", "app=x", "{allowlist}=core/v1/ConfigMap")
# {ns} is the namespace of the test.
COMMANDS = [
    # ---- diff: the status is 1 if something differs, and nothing is written ----
    (ANY, APPLY, config_map("one", "v"), 0, r"configmap/one created\n"),
    (ANY, ("diff", "-n", "{ns}", "-f", "-"), config_map("one", "v"), 0, r""),
    (ANY, ("diff", "-n", "{ns}", "-f", "-"), config_map("one", "w"), 1, r"(?s).*-  k: v\n\+  k: w\n.*"),
    (ANY, ("diff", "-n", "{ns}", "-f", "-"), config_map("new", "w"), 1, r"(?s).*\+kind: ConfigMap\n.*\+  name: new\n.*"),
    ((1, 21), ("diff", "--server-side", "--force-conflicts", "-n", "{ns}", "-f", "-"), config_map("one", "w"), 1, r"(?s).*-  k: v\n\+  k: w\n.*"),
    (ANY, ("get", "cm", "-n", "{ns}", "-o", "jsonpath={.items[*].data.k}", "-l", "!x"), None, 0, r".*v"),
    # ---- apply that deletes what is applied no more ----
    (ANY, (*APPLY, *LABELED), several(config_map("p1", "v", app="x"), config_map("p2", "v", app="x")), 0, r"(?s).*configmap/p1 created\nconfigmap/p2 created\n"),
    (ANY, (*APPLY, *LABELED), config_map("p2", "w", app="x"), 0,
     r"(?s)configmap/p2 configured\nconfigmap/p1 pruned\n"),
    (ANY, ("get", "cm", "-n", "{ns}", "-l", "app=x", "-o", "name"), None, 0, r"configmap/p2\n"),
    ((1, 27), (*APPLY, "--prune", "--applyset=parent"), several(config_map("s1", "v"), config_map("s2", "v")), 0, r"configmap/s1 created\nconfigmap/s2 created\n"),
    ((1, 27), ("get", "secret", "parent", "-n", "{ns}", "-o", "jsonpath={.metadata.annotations}"), None, 0, r'.*"applyset.kubernetes.io/tooling":"kubectl/v.*'),
    ((1, 27), (*APPLY, "--prune", "--applyset=parent"), config_map("s2", "v"), 0, r"configmap/s2 unchanged\nconfigmap/s1 pruned\n"),
    # ---- rights ----
    (ANY, ("auth", "reconcile", "-n", "{ns}", "-f", "-"), ROLE, 0, r"(?s)role.rbac.authorization.k8s.io/r reconciled\n.*"),
    (ANY, ("auth", "reconcile", "-n", "{ns}", "-f", "-"), MORE, 0, r"(?s)role.rbac.authorization.k8s.io/r reconciled\n.*"),
    (ANY, ("get", "role", "r", "-n", "{ns}", "-o", "jsonpath={.rules[*].verbs[*]}"), None, 0, r"get list"),
    (ANY, ("auth", "reconcile", "--remove-extra-permissions", "-n", "{ns}", "-f", "-"), MORE, 0, r"(?s)role.rbac.authorization.k8s.io/r reconciled\n.*"),
    (ANY, ("get", "role", "r", "-n", "{ns}", "-o", "jsonpath={.rules[*].verbs[*]}"), None, 0, r"list"),
    ((1, 28), ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}"), None, 0, r'holdfast-admin \["system:masters",.*'),
    ((1, 28), ("auth", "whoami", "--as=bob", "--as-group=g", "--as-uid=7"), None, 0, r"(?s).*Username +bob\nUID +7\nGroups +\[g system:authenticated\]\n"),
    (ANY, ("auth", "can-i", "create", "cm", "-n", "{ns}", "--as=bob"), None, 1, r"no\n"),
    (ANY, ("auth", "can-i", "--list", "-n", "{ns}"), None, 0, r"(?s).*\*\.\* +\[\] +\[\] +\[\*\]\n.*"),
    # ---- waiting ----
    ((1, 23), ("wait", "--for=jsonpath={.data.k}=v", "cm/one", "-n", "{ns}"), None, 0, r"configmap/one condition met\n"),
    ((1, 25), ("wait", "--for=delete", "cm/p1", "-n", "{ns}"), None, 0, r""),
    (ANY, ("wait", "--for=condition=Ready", "--timeout=10ms", "cm/one", "-n", "{ns}"), None, 1, r""),
    # ---- the server ----
    (ANY, ("version", "-o", "json"), None, 0, r'(?s).*"gitVersion": "v1.36.*'),
    (ANY, ("get", "--raw", "/readyz"), None, 0, r"ok"),
    (ANY, ("api-versions",), None, 0, r"(?s).*rbac.authorization.k8s.io/v1\n.*v1\n"),
]


def test_commands_say_what_they_say_of_kubernetes(pair, kubectl, ns, monkeypatch):
    monkeypatch.setitem(os.environ, "KUBECTL_APPLYSET", "true")
    allowlist = "--prune-allowlist" if kubectl.version >= (1, 26) else "--prune-whitelist"
    tried = 0
    for since, args, stdin, status, pattern in COMMANDS:
        if kubectl.version >= since:
            at = (pair.a, pair.b)[tried % 2]
            done = kubectl(*(arg.replace("{ns}", ns).replace("{allowlist}", allowlist) for arg in args), stdin=stdin and stdin.replace('"NS"', f'"{ns}"'), check=False, at=at)
            assert (done.returncode, bool(re.fullmatch(pattern, done.stdout))) == (status, True), (args, done.returncode, done.stdout, done.stderr)
            tried += 1
    assert tried > 15


def test_events_are_shown_with_what_they_are_about(pair, kubectl, ns):
    about = {"kind": "ConfigMap", "namespace": ns, "name": "one", "apiVersion": "v1"}
    for name, reason in (("e1", "Made"), ("e2", "Used")):
        body = {"metadata": {"name": name}, "involvedObject": {**about, "name": name}, "reason": reason, "message": "m", "type": "Normal",
                "lastTimestamp": "2026-01-02T03:04:05Z"}
        assert pair.a.request("POST", f"/api/v1/namespaces/{ns}/events", body)[0] == 201
    rows = [line.split()[1:] for line in kubectl("get", "events", "-n", ns, at=pair.b).stdout.splitlines()]
    assert [row[:3] for row in rows[1:]] == [["Normal", "Made", "configmap/e1"], ["Normal", "Used", "configmap/e2"]]
    if kubectl.version < (1, 26):
        return
    rows = [line.split() for line in kubectl("events", "-n", ns, "--for=cm/e2", at=pair.b).stdout.splitlines()]
    assert [row[1:] for row in rows[1:]] == [["Normal", "Used", "ConfigMap/e2", "m"]]


def test_a_proxy_passes_requests_and_watches_on(pair, kubectl, ns):
    command = [kubectl.binary, f"--kubeconfig={pair.a.kubeconfig}", "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as proxy:
        try:
            port = int(re.search(r":(\d+)", proxy.stdout.readline())[1])
            url = f"http://127.0.0.1:{port}{PATH.format(ns=ns)}"
            request = urllib.request.Request(url, data=config_map("by-proxy", "v").encode(), headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as made:
                version = json.load(made)["metadata"]["resourceVersion"]
            wait_until("b to have it", lambda: pair.b.get(f"{PATH.format(ns=ns)}/by-proxy")[0] == 200)
            with urllib.request.urlopen(f"{url}?watch=1&resourceVersion={version}", timeout=60) as watch:
                assert pair.b.request("DELETE", f"{PATH.format(ns=ns)}/by-proxy")[0] == 200
                event = json.loads(watch.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "by-proxy")
        finally:
            proxy.terminate()


@pytest.mark.parametrize("part", ["status", "scale"])
def test_subresources_are_read_and_written(pair, kubectl, part):
    """Of a custom kind that has both."""
    if kubectl.version < (1, 27):
        pytest.skip("this kubectl has no --subresource")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = f"{part}.example.com"
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"parts.{group}"}, "spec": {
        "group": group, "scope": "Cluster", "names": {"plural": "parts", "kind": "Part"}, "versions": [{
            "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]}}
    kubectl("create", "-f", "-", stdin=json.dumps(kind))
    kubectl("wait", "--for=condition=Established", f"crd/parts.{group}")
    name = f"parts.{group}/one"
    wait_until("the kind", lambda: pair.a.get(f"/apis/{group}/v1/parts")[0] == 200)
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": f"{group}/v1", "kind": "Part", "metadata": {"name": "one"}, "spec": {"replicas": 1}}))
    if part == "status":
        kubectl("patch", name, "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":3},"spec":{"replicas":9}}')
        assert kubectl("get", name, "--subresource=status", "-o", "jsonpath={.spec.replicas} {.status.replicas}").stdout == "1 3"
    else:
        kubectl("scale", name, "--replicas=2")
        kubectl("patch", name, "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":4}}')
        assert kubectl("get", name, "--subresource=scale", "-o", "jsonpath={.kind} {.spec.replicas}").stdout == "Scale 4"
    kubectl("delete", f"crd/parts.{group}", "--wait=false")
