# SPDX-License-Identifier: Apache-2.0
"""The table in docs/compatibility.md of resources, their verbs, and the clients that use them. Here kubectl and python3-kubernetes send all they can of every
resource that discovery lists, and the server's audit log says what was granted; the recorded conversations of Go clients are read. The table must say
exactly that. HOLDFAST_WRITE_TABLE=1 writes it anew."""
import json
import os
import re
import threading
import urllib.parse

import old_kubectl
import pytest
from clients_of_resources import DEFINITION, Kubectl, Resources, use_python
from holdfastd import ROOT, wait_until
from memory_server import MemoryServer

PAGE = ROOT / "docs" / "compatibility.md"
HEADING = "## Resources, verbs and clients"
VERBS = ["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"]
# The columns: the title, and how the User-Agent begins.
CLIENTS = {"kubectl 1.20": "kubectl/v1.20.", "kubectl 1.32": "kubectl/v1.32.", "Python, typed": "python-typed", "Python, dynamic": "python-dynamic"}
GO = "Go, recorded"
CUSTOM = "example.com/v1"
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "None", "nonResourceURLs": ["*"]}, {"level": "Metadata"}]}


class AuditLog:
    """The audit log of the run, read as it grows."""

    def __init__(self, path):
        self.path, self.offset, self.rest = path, 0, b""
        self.found = {title: {} for title in CLIENTS}  # {title: {(group version, resource): verbs}}
        self.ended, self.lock = False, threading.Lock()

    def read(self):
        with self.lock, open(self.path, "rb") as log:
            log.seek(self.offset)
            data = self.rest + log.read()
            self.offset = log.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                self.take(json.loads(line))

    def take(self, event):
        agent, about = event.get("userAgent", ""), event.get("objectRef", {})
        self.ended |= agent == "the end"
        title = next((t for t, begin in CLIENTS.items() if agent.startswith(begin)), None)
        if title and event.get("responseStatus", {}).get("code", 0) // 100 == 2 and "resource" in about:
            version = "/".join(filter(None, (about.get("apiGroup"), about["apiVersion"])))
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            self.found[title].setdefault((version, resource), set()).add(event["verb"])

    def granted(self, title):
        self.read()
        return self.found[title]


def verb_of(method, path, query):
    if method == "GET":
        return "watch" if "watch" in query else "get" if path.named else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, "delete" if path.named else "deletecollection")


class Path:
    """/api/v1/..., /apis/GROUP/VERSION/...; resource is None for what is no resource."""

    def __init__(self, path):
        steps = path.strip("/").split("/")
        n = 2 if steps[0] == "api" else 3
        self.version, rest = "/".join(steps[1:n]), steps[n:]
        if len(rest) > 2 and rest[0] == "namespaces" and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
            rest = rest[2:]
        self.named = len(rest) > 1
        self.resource = "/".join(rest[:1] + rest[2:3]) if steps[0] in ("api", "apis") and rest else None


def recorded_by_go():
    """What the recorded conversations have: {(group version, resource): verbs}."""
    found = {}
    for record in sorted((ROOT / "tests" / "interop" / "conversations").glob("*.json")):
        for entry in json.loads(record.read_text()):
            method, url = entry["ask"]
            split = urllib.parse.urlsplit(url)
            path = Path(split.path)
            if path.resource and entry["code"] // 100 == 2:
                key = (path.version, path.resource) if path.version != "rec.example.com/v1" else (CUSTOM, path.resource.replace("widgets", "gadgets"))
                found.setdefault(key, set()).add(verb_of(method, path, urllib.parse.parse_qs(split.query)))
    return found


# ---- the table ----

def words(verbs, of):
    """The verbs in a cell: "all", "all but X", or their names."""
    missing = [verb for verb in VERBS if verb in of and verb not in verbs]
    if not verbs & of or not missing:
        return "" if missing else "all"
    return "all but " + ", ".join(missing) if len(missing) <= 2 <= len(of) - len(missing) else ", ".join(verb for verb in VERBS if verb in verbs)


def rows(verbs, granted, resources):
    """The lines for these resources. Those whose cells are the same share a line."""
    groups = {}
    for version, resource in resources:
        served = verbs[version, resource]
        cells = tuple(words(granted[title].get((version, resource), set()), served) for title in (*CLIENTS, GO))
        what = "all eight" if len(served) == len(VERBS) else ", ".join(verb for verb in VERBS if verb in served)
        groups.setdefault((what, cells), {}).setdefault(version, []).append(resource)
    for (what, cells), of in sorted(groups.items(), key=lambda item: (item[0][0] != "all eight", item[0])):
        names = "; ".join(f"`{'GROUP/VERSION' if version == CUSTOM else version}`: " + ", ".join(
            n.replace("gadgets", "custom resources") for n in sorted(names)) for version, names in sorted(of.items()))
        yield "| " + " | ".join((names, what, *cells)) + " |"


def table(verbs, granted, always):
    head = "| " + " | ".join(("resources", "verbs", *CLIENTS, GO)) + " |"
    line = "|---" * (head.count("|") - 1) + "|"
    parts = [("Always served:", always), ("With `--runtime-config=api/workloads=true`:", set(verbs) - always)]
    return "\n".join(part for title, resources in parts for part in (title, "", head, line, *rows(verbs, granted, sorted(resources)), ""))


def read_cell(cell, served):
    if cell.startswith("all but "):
        return served - set(cell[8:].split(", "))
    return set(served) if cell == "all" else set(filter(None, cell.split(", ")))


def read_table(text):
    """({(group version, resource): verbs}, {title: {(group version, resource): verbs}}, those that are always served)"""
    verbs, granted, always, titles = {}, {}, set(), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| resources"):
            titles = cells[2:]
        elif line.startswith("With `"):
            always = set(verbs)
        elif line.startswith("| `"):
            served = frozenset(VERBS if cells[1] == "all eight" else cells[1].split(", "))
            for version, names in re.findall(r"`([^`]+)`: ([^;]+)", cells[0]):
                for name in names.split(", "):
                    key = (version.replace("GROUP/VERSION", CUSTOM), name.strip().replace("custom resources", "gadgets"))
                    assert key not in verbs, key
                    verbs[key] = served
                    for title, cell in zip(titles, cells[2:], strict=True):
                        granted.setdefault(title, {})[key] = read_cell(cell, served)
    return verbs, granted, always


# ---- the run ----

@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory):
    """(what discovery lists, what is listed without workloads, what each client was granted)"""
    directory = tmp_path_factory.mktemp("audit")
    (directory / "policy").write_text(json.dumps(POLICY))
    log = AuditLog(directory / "log")
    flags = (f"--audit-policy-file={directory / 'policy'}", f"--audit-log-path={directory / 'log'}")
    with MemoryServer() as plain, MemoryServer("--runtime-config=api/workloads=true", *flags) as api:
        always = set(Resources(plain).verbs)
        assert api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION).code == 201
        wait_until("the custom kind", lambda: api.ask("GET", f"/apis/{CUSTOM}/gadgets").code == 200)
        resources = Resources(api)
        always |= {key for key in resources.verbs if key[0] == CUSTOM}
        clients = list(start_clients(api, resources, log))
        for client in clients:
            client.join()
        api.ask("GET", "/api/v1/namespaces/default", user_agent="the end")
        wait_until("the whole audit log", lambda: log.read() or log.ended)
    return resources.verbs, always, {**{title: granted for title, granted in log.found.items() if granted}, GO: recorded_by_go()}


def start_clients(api, resources, log):
    binaries = {old_kubectl.version(binary): binary for binary in ("kubectl", old_kubectl.fetch()[0]) if binary}
    for number, (version, name) in enumerate((((1, 32), "new"), ((1, 20), "old"))):
        if version in binaries:
            yield start(Kubectl(api, resources, binaries[version], version, log).use, name, number)
    try:
        import kubernetes  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return
    for number, name in enumerate(("typed", "dynamic")):
        yield start(use_python, api, resources, name, 10 + number)


def start(*args):
    thread = threading.Thread(target=args[0], args=args[1:])
    thread.start()
    return thread


def section():
    before, _, rest = PAGE.read_text().partition(HEADING + "\n")
    text, _, after = rest.partition("\n## ")
    intro, _, _ = text.partition("Always served:")
    return before, intro, text[len(intro):] + "\n", after


def test_the_table_says_what_is_served_and_what_clients_did(run):
    verbs, always, granted = run
    if os.environ.get("HOLDFAST_WRITE_TABLE"):
        before, intro, _, after = section()
        PAGE.write_text(f"{before}{HEADING}\n{intro}{table(verbs, granted, always)}\n## {after}")
    said_verbs, said, said_always = read_table(section()[2])
    assert said_verbs == verbs
    assert said_always == always
    wrong = [f"{title}: {key}: the table says {sorted(said[title][key])}, granted was {sorted(of.get(key, set()) & verbs[key])}"
             for title, of in granted.items() for key in verbs if said[title][key] != of.get(key, set()) & verbs[key]]
    assert not wrong, "\n".join(wrong)


def test_no_client_was_granted_what_is_not_listed(run):
    verbs, _, granted = run
    more = {(title, key): sorted(of[key] - verbs.get(key, frozenset())) for title, of in granted.items() for key in of if of[key] - verbs.get(key, frozenset())}
    assert not more, more


def test_a_table_is_read_as_it_was_written():
    verbs = {("v1", "a"): frozenset(VERBS), ("v1", "a/status"): frozenset(("get", "patch", "update")), ("x.io/v1", "b"): frozenset(VERBS)}
    granted = {title: {("v1", "a"): set(VERBS) - {"watch"}, ("v1", "a/status"): {"get"}} for title in (*CLIENTS, GO)}
    granted[GO] = {("v1", "a"): set(VERBS), ("x.io/v1", "b"): {"get", "list", "watch"}}
    always = {("v1", "a"), ("v1", "a/status")}
    assert read_table(table(verbs, granted, always)) == (verbs, {t: {k: granted[t].get(k, set()) for k in verbs} for t in granted}, always)


def test_paths_are_those_of_resources():
    assert [(Path(p).version, Path(p).resource, Path(p).named) for p in (
        "/api/v1/namespaces", "/api/v1/namespaces/x", "/api/v1/namespaces/x/finalize", "/api/v1/namespaces/x/pods", "/apis/apps/v1/namespaces/x/deployments/y/scale",
        "/apis/apps/v1", "/version")] == [
        ("v1", "namespaces", False), ("v1", "namespaces", True), ("v1", "namespaces/finalize", True), ("v1", "pods", False),
        ("apps/v1", "deployments/scale", True), ("apps/v1", None, False), ("", None, False)]
