# SPDX-License-Identifier: Apache-2.0
"""Custom resources: every instance serves the kind of a CustomResourceDefinition as long as it exists, and follows its changes."""
import copy
import json
import signal
import time

import old_kubectl
import pytest

from holdfastd import Process, wait_until

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
    """If no controller of definitions runs, sets the status as the controller would."""
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


def delete_definition(server, name):
    """If no controller of definitions runs, removes the finalizer as the controller would when no objects are left."""
    ask(server, "DELETE", f"{DEFINITIONS}/{name}", expect=200)

    def gone():
        code, text = server.get(f"{DEFINITIONS}/{name}")
        if code == 200 and (found := json.loads(text))["metadata"].pop("finalizers", None):
            server.request("PUT", f"{DEFINITIONS}/{name}", found)
        return code == 404
    wait_until(f"{name} to be gone", gone)


class Watch(Process):
    """A watch, whose events a separate curl process receives until the watch ends."""

    def __init__(self, server, path):
        self.path = server.directory / f"watch-{len(list(server.directory.glob('watch-*')))}.json"
        with self.path.open("wb") as out:
            super().__init__(["curl", "-sSN", "--cacert", server.pki / "ca.crt", "--cert", server.pki / "admin.crt", "--key", server.pki / "admin.key",
                              server.url + path], self.path.with_suffix(".log"), stdout=out)

    def events(self):
        return [json.loads(line) for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]


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


COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
           {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
           {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
           {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def test_kubectl_finds_shows_and_explains_a_kind(servers):
    a, b = servers
    define(servers, definition(versions=[version(additionalPrinterColumns=COLUMNS)], singular="gadget", shortNames=["gd", "gdt"], categories=["all"], listKind="GadgetList"))
    a.kubectl("apply", "-f", "-", stdin=json.dumps(gadget("one", 3, tags=["x"])))
    assert b.kubectl("get", "gd", "-o", "name").stdout == "gadget.example.com/one\n"
    head, row = b.kubectl("get", "gdt").stdout.splitlines()
    assert head.split() == ["NAME", "SIZE", "READY", "MADE"] and row.split()[:2] == ["one", "3"]
    head, row = b.kubectl("get", "gadgets", "-o", "wide").stdout.splitlines()
    assert head.split() == ["NAME", "SIZE", "READY", "COLOR", "MADE"] and "red" in row.split()
    assert "one" in b.kubectl("get", "all").stdout
    explained = b.kubectl("explain", "gadget.spec.size").stdout
    assert "The size in inches." in explained and "integer" in explained
    explained = b.kubectl("explain", "gadget", "--recursive").stdout
    assert "A gadget is a small machine." in explained and "color" in explained and "ownerReferences" in explained
    assert "ENUM" in b.kubectl("explain", "gadget.spec.color").stdout or not old_kubectl.is_current()
    listed = b.kubectl("api-resources", "--api-group=example.com").stdout.splitlines()
    assert listed[1].split() == ["gadgets", "gd,gdt", "example.com/v1", "true", "Gadget"]
    a.kubectl("patch", "gadget", "one", "--type=merge", "-p", '{"spec":{"size":5}}')
    refused = a.kubectl("patch", "gadget", "one", "--type=strategic", "-p", '{"spec":{"size":5}}', check=False)
    assert "415" in refused.stderr or "UnsupportedMediaType" in refused.stderr or "not supported" in refused.stderr, refused.stderr
    a.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(gadget("one", 6)))
    assert ask(b, "GET", f"{GADGETS}/one")["spec"]["size"] == 6
    a.kubectl("delete", "gadget", "one")
    assert b.kubectl("get", "gadgets").stderr.startswith("No resources found")


def causes(status):
    return [(c["reason"], c["field"], c["message"]) for c in status["details"]["causes"]]


def test_objects_are_validated_and_pruned_by_the_schema_of_their_version(servers):
    a, _ = servers
    define(servers, definition())
    wrong = gadget("one", "big", color="pink")
    refused = ask(a, "POST", GADGETS, wrong, expect=422)
    assert refused["reason"] == "Invalid" and {c[1] for c in causes(refused)} == {"spec.size", "spec.color"}, refused
    no_size = gadget("one")
    del no_size["spec"]["size"]
    assert causes(ask(a, "POST", GADGETS, no_size, expect=422)) == [("FieldValueRequired", "spec.size", "Required value")]
    strict = ask(a, "POST", f"{GADGETS}?fieldValidation=Strict", gadget("one", 1, shape="round"), expect=400)
    assert strict["message"] == 'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: unknown field "spec.shape"'
    for missing, word in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        body = gadget("one")
        del body[missing]
        assert f"Object '{word}' is missing in" in ask(a, "POST", GADGETS, body, expect=400)["message"]
    ask(a, "POST", GADGETS, gadget("one"), expect=201)
    refused = ask(a, "PATCH", f"{GADGETS}/one", {"spec": {"size": 0}}, expect=422, Content_Type="application/merge-patch+json")
    assert causes(refused) == [("FieldValueInvalid", "spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1")]
    # An update must name the version that it replaces.
    assert ask(a, "PUT", f"{GADGETS}/one", gadget("one", 2), expect=422)["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    ask(a, "PATCH", f"{GADGETS}/one", {"spec": {"size": 2}}, expect=415, Content_Type="application/strategic-merge-patch+json")
    assert ask(a, "PATCH", f"{GADGETS}/one", [{"op": "add", "path": "/spec/tags", "value": ["x"]}], expect=200,
               Content_Type="application/json-patch+json")["spec"]["tags"] == ["x"]


def test_lists_select_page_and_delete(servers):
    a, b = servers
    define(servers, definition(versions=[version(selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}])]))
    for i, color in enumerate(("red", "green", "red", "blue", "red")):
        ask(a, "POST", GADGETS, gadget(f"g{i}", i + 1, color=color), expect=201)

    def names(query):
        return [o["metadata"]["name"] for o in ask(b, "GET", f"{GADGETS}?{query}", expect=200)["items"]]
    assert names("fieldSelector=spec.color%3Dred") == ["g0", "g2", "g4"]
    assert names("fieldSelector=spec.size%3D4,metadata.namespace%3Ddefault") == ["g3"]
    assert names("fieldSelector=metadata.name%3Dg1") == ["g1"]
    assert ask(b, "GET", f"{GADGETS}?fieldSelector=spec.tags%3Dx", expect=400)["message"].endswith("field label not supported: spec.tags")
    first = ask(b, "GET", f"{GADGETS}?limit=2", expect=200)
    assert len(first["items"]) == 2 and first["metadata"]["remainingItemCount"] == 3
    rest = ask(b, "GET", f"{GADGETS}?limit=9&continue={first['metadata']['continue']}", expect=200)
    assert [o["metadata"]["name"] for o in rest["items"]] == ["g2", "g3", "g4"]
    partial = ask(b, "GET", GADGETS, expect=200, Accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    assert partial["kind"] == "PartialObjectMetadataList" and "spec" not in partial["items"][0]
    everywhere = ask(b, "GET", "/apis/example.com/v1/gadgets", expect=200)
    assert len(everywhere["items"]) == 5
    ask(a, "DELETE", f"{GADGETS}?fieldSelector=spec.color%3Dred", expect=200)
    assert names("") == ["g1", "g3"]


def test_a_field_may_have_the_name_of_an_event_s(servers):
    """Selectors of Events know the field `source`, whose value is another field's. It is a field like others in a custom kind."""
    a, b = servers
    schema = {"type": "object", "properties": {"source": {"type": "string"}}}
    define(servers, definition(versions=[version(schema={"openAPIV3Schema": schema}, selectableFields=[{"jsonPath": ".source"}])]))
    for name in ("here", "there"):
        ask(a, "POST", GADGETS, {**gadget(name), "source": name}, expect=201)
    found = ask(b, "GET", f"{GADGETS}?fieldSelector=source%3Dthere", expect=200)
    assert [o["metadata"]["name"] for o in found["items"]] == ["there"]


def test_a_new_instance_serves_what_is_stored_before_it_is_ready(cluster, servers):
    a, _ = servers
    define(servers, definition())
    made = ask(a, "POST", GADGETS, gadget("one"), expect=201)
    c = cluster.instance("c").wait_ready()
    assert ask(c, "GET", f"{GADGETS}/one", expect=200) == made


def test_ready_means_that_all_stored_kinds_are_served(cluster, servers):
    a, _ = servers
    names = [f"kind{i}s" for i in range(40)]
    for i, plural in enumerate(names):
        ask(a, "POST", DEFINITIONS, definition(plural, f"Kind{i}"), expect=201)
    for plural in names:
        establish(a, f"{plural}.example.com")
    c = cluster.instance("c")
    wait_until("the report of readiness, which is also READY=1", lambda: "ready: " in c.log_text(), every=0.001)
    assert [n for n in names if c.get(f"/apis/example.com/v1/{n}")[0] != 200] == []


def update_definition(server, name, change):
    while True:
        found = ask(server, "GET", f"{DEFINITIONS}/{name}", expect=200)
        change(found["spec"])
        code, text = server.request("PUT", f"{DEFINITIONS}/{name}", found)
        if code == 200:
            return
        assert code == 409, text


def test_versions_share_their_objects(servers):
    a, b = servers
    old = version("v1alpha1", storage=False, deprecated=True)
    define(servers, definition(versions=[old, version("v1"), version("v2", storage=False, deprecated=True, deprecationWarning="use v1 instead", served=True)]))
    alpha, two = GADGETS.replace("/v1/", "/v1alpha1/"), GADGETS.replace("/v1/", "/v2/")
    wait_until("all versions", lambda: all(b.get(p)[0] == 200 for p in (alpha, two)))
    made = ask(a, "POST", alpha, gadget("one", 1, "example.com/v1alpha1"), expect=201)
    assert made["apiVersion"] == "example.com/v1alpha1"
    for path, wanted in ((GADGETS, "example.com/v1"), (alpha, "example.com/v1alpha1"), (two, "example.com/v2")):
        found = ask(b, "GET", path, expect=200)
        assert found["apiVersion"] == wanted and [o["apiVersion"] for o in found["items"]] == [wanted]
        assert ask(b, "GET", f"{path}/one", expect=200) == {**made, "apiVersion": wanted}
    group = ask(b, "GET", "/apis/example.com", expect=200)
    assert [v["version"] for v in group["versions"]] == ["v2", "v1", "v1alpha1"]
    warned = a.kubectl("get", "gadgets.v1alpha1.example.com").stderr
    assert "example.com/v1alpha1 Gadget is deprecated" in warned
    assert "use v1 instead" in a.kubectl("get", "gadgets.v2.example.com", "one").stderr

    def change(spec):
        for v in spec["versions"]:
            v["storage"] = v["name"] == "v2"
            v["served"] = v["name"] != "v1alpha1"
    update_definition(a, "gadgets.example.com", change)
    wait_until("v1alpha1 to go", lambda: all(s.get(alpha)[0] == 404 for s in servers))
    assert ask(b, "GET", f"{GADGETS}/one", expect=200) == {**made, "apiVersion": "example.com/v1"}
    assert ask(b, "GET", f"{two}/one", expect=200) == {**made, "apiVersion": "example.com/v2"}


def test_a_changed_definition_changes_its_objects(servers):
    a, b = servers
    define(servers, definition())
    ask(a, "POST", GADGETS, gadget("one", 1, tags=["x"]), expect=201)
    document = "/openapi/v3/apis/example.com/v1"
    assert all('"tags"' in server.get(document)[1] for server in servers)

    def change(spec):
        props = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del props["tags"]
        props["weight"] = {"type": "integer", "default": 7}
    update_definition(a, "gadgets.example.com", change)
    for server in servers:
        wait_until("the new form", lambda s=server: "weight" in s.get(f"{GADGETS}/one")[1])
        wait_until("the new document", lambda s=server: '"weight"' in s.get(document)[1])
        assert '"tags"' not in server.get(document)[1]
        assert ask(server, "GET", f"{GADGETS}/one")["spec"] == {"size": 1, "color": "red", "weight": 7}
    assert ask(b, "GET", GADGETS)["items"][0]["spec"]["weight"] == 7


def test_a_kind_that_goes_leaves_discovery_and_ends_its_watches(cluster, servers):
    a, b = servers
    define(servers, definition())
    watch = cluster.add(Watch(b, f"{GADGETS}?watch=1"))
    ask(a, "POST", GADGETS, gadget("one"), expect=201)
    wait_until("the event", lambda: any(e["object"]["metadata"]["name"] == "one" for e in watch.events()))
    ask(a, "DELETE", f"{GADGETS}/one", expect=200)
    delete_definition(a, "gadgets.example.com")
    for server in servers:
        wait_until("the kind to go", lambda s=server: s.get(GADGETS)[0] == 404)
        assert server.get("/apis/example.com")[0] == 404
        assert "example.com" not in server.get("/openapi/v3")[1]
        assert "gadgets" not in server.get("/openapi/v2")[1]
    watch.wait()
    assert [e["type"] for e in watch.events()] == ["ADDED", "DELETED"]
    # A definition of the same name may be created again, with another schema.
    define(servers, definition(kind="Gadget", versions=[version("v1")]))
    assert ask(b, "GET", GADGETS, expect=200)["items"] == []


def test_watches_end_when_their_definition_changes_and_go_on_from_where_they_were(cluster, servers):
    a, b = servers
    define(servers, definition())
    ask(a, "POST", GADGETS, gadget("one"), expect=201)
    watch = cluster.add(Watch(b, f"{GADGETS}?watch=1"))
    wait_until("the first event", watch.events)
    for i in range(5):
        def change(spec, i=i):
            spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][f"extra{i}"] = {"type": "string"}
        update_definition(a, "gadgets.example.com", change)
        watch.wait()
        last = watch.events()[-1]["object"]["metadata"]["resourceVersion"]
        name = f"new{i}"
        wait_until("the new form", lambda i=i, name=name: f"extra{i}" in a.request("POST", GADGETS, gadget(name, **{f"extra{i}": "x"}))[1]
                   or a.request("DELETE", f"{GADGETS}/{name}")[0] == 0)
        watch = cluster.add(Watch(b, f"{GADGETS}?watch=1&resourceVersion={last}"))
        wait_until("the event of the new object", lambda w=watch, i=i, name=name: any(
            e["object"]["metadata"]["name"] == name and e["object"]["spec"].get(f"extra{i}") == "x" for e in w.events()))


def test_creates_are_refused_while_the_definition_is_being_deleted(servers):
    a, b = servers
    define(servers, definition())
    held = gadget("one")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    ask(a, "POST", GADGETS, held, expect=201)
    ask(a, "DELETE", f"{DEFINITIONS}/gadgets.example.com", expect=200)
    wait_until("creates to be refused", lambda: b.request("POST", GADGETS, gadget("two"))[0] == 405)
    refused = ask(b, "POST", GADGETS, gadget("two"), expect=405)
    assert refused["reason"] == "MethodNotAllowed" and refused["message"] == "create not allowed while custom resource definition is terminating"
    assert ask(b, "GET", f"{GADGETS}/one", expect=200)["metadata"]["name"] == "one"


def test_an_instance_that_is_killed_serves_the_same_again(cluster, servers):
    """One instance is killed while definitions and objects change, and starts again."""
    a, b = servers
    define(servers, definition())
    ask(b, "POST", GADGETS, gadget("one", 1, tags=["x"]), expect=201)
    a.send(signal.SIGKILL)
    a.wait()

    def change(spec):
        props = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del props["tags"]
        props["weight"] = {"type": "integer", "default": 7}
    update_definition(b, "gadgets.example.com", change)
    wait_until("the new form", lambda: "weight" in b.get(f"{GADGETS}/one")[1])
    ask(b, "POST", GADGETS, gadget("two", 2), expect=201)
    again = cluster.instance("a").wait_ready()
    for path in (GADGETS, f"{GADGETS}/one", "/apis/example.com/v1", "/openapi/v3/apis/example.com/v1"):
        one, other = ask(again, "GET", path, expect=200), ask(b, "GET", path, expect=200)
        if path == GADGETS:
            del one["metadata"], other["metadata"]
        assert one == other


def test_appliers_own_fields_by_the_schema(servers):
    a, b = servers
    schema = copy.deepcopy(SCHEMA)
    schema["properties"]["spec"]["properties"]["parts"] = {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}}
    define(servers, definition(versions=[version(schema={"openAPIV3Schema": schema})]))

    def apply(manager, body, expect, force=""):
        return ask(a, "PATCH", f"{GADGETS}/one?fieldManager={manager}{force}", body, expect=expect, Content_Type="application/apply-patch+yaml")
    made = apply("x", gadget("one", 1, parts=[{"name": "a", "n": 1}]), 201)
    assert made["spec"]["color"] == "red"
    assert "f:color" not in made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    other = gadget("one", 1, parts=[{"name": "b", "n": 2}])
    assert apply("y", other, 200)["spec"]["parts"] == [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
    other["spec"]["parts"].append({"name": "a", "n": 3})
    conflict = apply("y", other, 409)
    assert conflict["details"]["causes"][0]["field"] == '.spec.parts[name="a"].n'
    assert {"name": "a", "n": 3} in apply("y", other, 200, "&force=true")["spec"]["parts"]
    # A field that an applier no longer sends is removed if nobody else owns it.
    del other["spec"]["parts"]
    assert [p["name"] for p in apply("y", other, 200)["spec"]["parts"]] == ["a"]
    assert ask(b, "GET", f"{GADGETS}/one")["spec"]["size"] == 1


def test_a_repeated_patch_changes_nothing_below_defaults(servers):
    """A patch replaces an atomic list or map as a whole, and its defaults are filled in again. This is no change: generation and resourceVersion stay."""
    schema, item = copy.deepcopy(SCHEMA), {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "B"}}}
    schema["properties"]["spec"]["properties"] |= {"list": {"type": "array", "items": item}, "map": {**item, "x-kubernetes-map-type": "atomic"}}
    define(servers, definition(versions=[version(schema={"openAPIV3Schema": schema})]))
    body = gadget("one", list=[{"a": "x"}, {}], map={"a": "y"})
    made = ask(servers[0], "PATCH", f"{GADGETS}/one?fieldManager=x", body, expect=201, Content_Type="application/apply-patch+yaml")
    assert made["spec"]["list"] == [{"a": "x", "b": "B"}, {"b": "B"}] and made["spec"]["map"] == {"a": "y", "b": "B"}
    written = time.time()  # an apply in a later second must not change the times in managedFields
    wait_until("the next second", lambda: int(time.time()) > int(written))
    for content_type in ("apply-patch+yaml", "merge-patch+json"):
        again = ask(servers[1], "PATCH", f"{GADGETS}/one?fieldManager=x", body, expect=200, Content_Type=f"application/{content_type}")
        assert (again["spec"], again["metadata"]["generation"]) == (made["spec"], 1), content_type
        if content_type.startswith("apply"):  # a merge patch adds another owner to managedFields
            assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_scale_reads_and_writes_the_replicas(servers):
    a, b = servers
    schema = copy.deepcopy(SCHEMA)
    schema["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
    schema["properties"]["status"]["properties"] |= {"replicas": {"type": "integer"}, "selector": {"type": "string"}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    define(servers, definition(versions=[version(schema={"openAPIV3Schema": schema}, subresources={"status": {}, "scale": paths})]))
    made = ask(a, "POST", GADGETS, gadget("one", 1), expect=201)
    assert ask(a, "GET", f"{GADGETS}/one/scale", expect=500)["message"] == \
        'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    for content_type, body in (("merge-patch+json", {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}),
                               ("apply-patch+yaml", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}})):
        refused = ask(a, "PATCH", f"{GADGETS}/one/scale?fieldManager=x", body, expect=400, Content_Type=f"application/{content_type}")
        assert refused["message"] == 'the spec replicas field ".spec.replicas" cannot be empty'
    assert ask(a, "GET", f"{GADGETS}/one", expect=200)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    ask(a, "PATCH", f"{GADGETS}/one", {"spec": {"replicas": 2}}, expect=200, Content_Type="application/merge-patch+json")
    ask(a, "PATCH", f"{GADGETS}/one/status", {"status": {"replicas": 1, "selector": "a=b"}}, expect=200, Content_Type="application/merge-patch+json")
    scale = ask(b, "GET", f"{GADGETS}/one/scale", expect=200)
    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == \
        ("Scale", "autoscaling/v1", {"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    assert scale["metadata"]["uid"] == made["metadata"]["uid"] and scale["metadata"]["namespace"] == "default"
    b.kubectl("scale", "gadget", "one", "--replicas=5")
    found = ask(a, "GET", f"{GADGETS}/one", expect=200)
    assert found["spec"]["replicas"] == 5 and found["status"]["replicas"] == 1 and found["metadata"]["generation"] == 3
    assert [m["subresource"] for m in found["metadata"]["managedFields"] if "subresource" in m] == ["status", "scale"] or \
        [m["subresource"] for m in found["metadata"]["managedFields"] if "subresource" in m] == ["scale", "status"]
    ask(a, "PUT", f"{GADGETS}/one/scale", scale, expect=409)
    refused = ask(a, "PATCH", f"{GADGETS}/one/scale", {"spec": {"replicas": -1}}, expect=422, Content_Type="application/merge-patch+json")
    assert refused["message"] == 'Scale.autoscaling "one" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    refused = ask(a, "PATCH", f"{GADGETS}/one", {"spec": {"replicas": -1}}, expect=422, Content_Type="application/merge-patch+json")
    assert causes(refused) == [("FieldValueInvalid", ".spec.replicas", "Invalid value: -1: should be a non-negative integer")]
    listed = ask(a, "GET", "/apis/example.com/v1", expect=200)["resources"]
    assert [(r["name"], r["kind"]) for r in listed] == [("gadgets", "Gadget"), ("gadgets/scale", "Scale"), ("gadgets/status", "Gadget")]
