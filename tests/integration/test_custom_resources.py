# SPDX-License-Identifier: Apache-2.0
"""Custom resources: what a CustomResourceDefinition defines is served by every instance, while it exists and as it changes."""
import copy
import json

import pytest

from holdfastd import wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"

SCHEMA = {"type": "object",
          "description": "A gadget is a small machine.",
          "properties": {
              "spec": {"type": "object", "description": "What the gadget is to be.", "required": ["size"],
                       "properties": {"size": {"type": "integer", "minimum": 1, "description": "The size in inches."},
                                      "color": {"type": "string", "default": "red", "enum": ["red", "green", "blue"]},
                                      "tags": {"type": "array", "items": {"type": "string"}}}},
              "status": {"type": "object", "properties": {"ready": {"type": "boolean"}, "size": {"type": "integer"}}}}}


def version(name="v1", **more):
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": copy.deepcopy(SCHEMA)}, "subresources": {"status": {}}, **more}


def definition(plural="gadgets", kind="Gadget", group="example.com", versions=None, scope="Namespaced", **names):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind, **names}, "versions": versions or [version()]}}


def gadget(name, size=1, api_version="example.com/v1", **spec):
    return {"apiVersion": api_version, "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size, **spec}}


def ask(server, method, path, body=None, expect=None, **headers):
    code, text = server.request(method, path, body, headers={k.replace("_", "-"): v for k, v in headers.items()} or None)
    if expect is not None:
        assert code == expect, text
    return json.loads(text) if text.startswith("{") else text


def establish(server, name):
    """Sets the status that the controller of definitions sets, if it is not there."""
    def established():
        found = ask(server, "GET", f"{DEFINITIONS}/{name}", expect=200)
        conditions = found.get("status", {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return True
        names = found["spec"]["names"]
        found["status"] = {**found.get("status", {}), "acceptedNames": names,
                           "conditions": [{"type": t, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                                          for t in ("NamesAccepted", "Established")]}
        server.request("PUT", f"{DEFINITIONS}/{name}/status", found)
        return False
    wait_until(f"{name} to be established", established)


def define(servers, body):
    ask(servers[0], "POST", DEFINITIONS, body, expect=201)
    name, spec = body["metadata"]["name"], body["spec"]
    establish(servers[0], name)
    served = next(v["name"] for v in spec["versions"] if v["served"])
    for server in servers:
        wait_until(f"{name} to be served", lambda s=server: s.get(f"/apis/{spec['group']}/{served}/{spec['names']['plural']}")[0] == 200)


@pytest.fixture
def servers(cluster):
    """Two instances on one store."""
    return [cluster.instance(n).wait_ready() for n in ("a", "b")]


def test_objects_are_created_read_changed_and_deleted_on_both_instances(servers):
    a, b = servers
    assert a.get(GADGETS)[0] == 404
    define(servers, definition())
    made = ask(a, "POST", GADGETS, gadget("one", 3, unknown="x"), expect=201)
    assert made["spec"] == {"size": 3, "color": "red"} and made["metadata"]["generation"] == 1
    seen = ask(b, "GET", f"{GADGETS}/one", expect=200)
    assert seen == made
    seen["spec"]["size"] = 4
    seen["status"] = {"ready": True}
    changed = ask(b, "PUT", f"{GADGETS}/one", seen, expect=200)
    assert changed["metadata"]["generation"] == 2 and "status" not in changed
    changed["status"] = {"ready": True}
    changed["spec"]["size"] = 9
    with_status = ask(b, "PUT", f"{GADGETS}/one/status", changed, expect=200)
    assert with_status["status"] == {"ready": True} and with_status["spec"]["size"] == 4 and with_status["metadata"]["generation"] == 2
    found = ask(a, "GET", GADGETS, expect=200)
    assert found["kind"] == "GadgetList" and found["apiVersion"] == "example.com/v1" and found["items"] == [with_status]
    ask(a, "DELETE", f"{GADGETS}/one", expect=200)
    assert b.get(f"{GADGETS}/one")[0] == 404
