# SPDX-License-Identifier: Apache-2.0
"""Clients that send all they can of every resource: kubectl, and python3-kubernetes with its typed and its dynamic classes.

None of them checks anything: what the server has granted is in its audit log, under the name that each client sends as its User-Agent. A request that
fails is missing there, and so in the table that is made of it."""
import contextlib
import json
import re
import subprocess
import threading

from samples import reviews, samples

COMPONENT = {"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": "etcd-0"}}  # can only be read
GADGET = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"namespace": "default", "name": "x"}, "spec": {"replicas": 1}}
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [{
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]}}
PATCH = {"metadata": {"annotations": {"a": "b"}}}


def objects_of(name, number):
    return samples(name, number) + [{**GADGET, "metadata": {"namespace": "default", "name": name}}]


def list_of(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


class Resources:
    """What discovery lists: of each kind of a group version, its resource and its subresources."""

    def __init__(self, api):
        versions = ["/api/v1", *(f"/apis/{v['groupVersion']}" for g in api.ask("GET", "/apis").json["groups"] for v in g["versions"])]
        self.verbs = {}  # {(group version, resource): verbs}
        self.kinds = {}  # {(group version, kind): resource}
        self.namespaced = set()
        for base in versions:
            version = base.partition("/")[2].partition("/")[2]
            for resource in api.ask("GET", base).json["resources"]:
                self.verbs[version, resource["name"]] = frozenset(resource["verbs"])
                if "/" not in resource["name"]:
                    self.kinds[version, resource["kind"]] = resource["name"]
                if resource["namespaced"]:
                    self.namespaced.add((version, resource["name"]))

    def of(self, object):
        return self.kinds[object["apiVersion"], object["kind"]]

    def path(self, object):
        version, meta = object["apiVersion"], object["metadata"]
        namespace = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
        return f"/{'apis' if '/' in version else 'api'}/{version}{namespace}/{self.of(object)}/{meta['name']}"

    def parts(self, object):
        """The subresources of the object's resource."""
        return [name.partition("/")[2] for version, name in self.verbs if version == object["apiVersion"] and name.startswith(self.of(object) + "/")]


# ---- kubectl ----

class Kubectl:
    def __init__(self, api, resources, binary, version, log):
        """log.granted(title) says what the audit log has of this kubectl so far: {(group version, resource): verbs}."""
        self.api, self.resources, self.binary, self.version, self.log = api, resources, binary, version, log
        self.title = f"kubectl {version[0]}.{version[1]}"
        self.cache = f"{api.temporary.name}/cache-{version[1]}"

    def start(self, *args, stdin=None):
        return subprocess.run([self.binary, f"--kubeconfig={self.api.kubeconfig}", f"--cache-dir={self.cache}", *args],
                              input=stdin, capture_output=True, text=True, timeout=300, check=False)

    def run(self, *args, stdin=None):
        return self.start(*args, stdin=stdin).stdout

    def replace(self, read, *flags):
        """Sends back what read() returns. A controller may have written in between, so a conflict is tried again."""
        for _ in range(5):
            if self.start("replace", *flags, "-f", "-", stdin=read()).returncode == 0:
                return

    def full_name(self, object):
        """The name of an object's resource that is the only one."""
        version, plural = object["apiVersion"], self.resources.of(object)
        return ".".join([plural, *reversed(version.split("/"))]) + ("" if "/" in version else ".")

    def is_watched(self, object):
        return "watch" in self.log.granted(self.title).get((object["apiVersion"], self.resources.of(object)), ())

    def wait(self, objects):
        """`kubectl wait` watches one object after another. A new one waits as long as each takes to be as it should be, so that is seen to here."""
        waiting = threading.Thread(target=self.run, args=("wait", "--for=jsonpath={.metadata.annotations.done}=yes", "--timeout=200s", "-f", "-"),
                                   kwargs={"stdin": list_of(objects)})
        waiting.start()
        for object in objects:
            while waiting.is_alive() and not self.is_watched(object):
                waiting.join(0.005)
            self.api.ask("PATCH", self.resources.path(object), {"metadata": {"annotations": {"done": "yes"}}}, content_type="application/merge-patch+json")
        waiting.join()

    def wait_in_vain(self, objects):
        """An old one gives up each object after the same time. What was over before the watch is tried again with more time."""
        for i in range(5):
            objects = [o for o in objects if not self.is_watched(o)]
            waiting = [threading.Thread(target=self.run, args=("wait", "--for=condition=Never", f"--timeout={20 << 2 * i}ms", "-f", "-"),
                                        kwargs={"stdin": list_of(objects[k::4])}) for k in range(4) if objects[k::4]]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()

    def use(self, name, number):
        objects = objects_of(name, number)
        everything, run = list_of(objects), self.run
        run("create", "-f", "-", stdin=everything)
        run("create", "-o", "name", "-f", "-", stdin=list_of(reviews()))
        run("get", ",".join(self.full_name(o) for o in [*objects, COMPONENT]), "-A", "-o", "name")
        run("get", "componentstatus", "etcd-0")
        run("label", "-f", "-", "a=b", stdin=everything)
        self.replace(lambda: run("get", "-f", "-", "-o", "json", stdin=everything))
        run("create", "token", name)
        run("certificate", "approve", name)
        run("scale", "--replicas=2", *(f"{kind}/{name}" for kind in ("deployment", "replicaset", "statefulset", "replicationcontroller", "gadget")))
        run("replace", "--raw", f"/api/v1/namespaces/{name}/finalize", "-f", "-", stdin=run("get", "namespace", name, "-o", "json"))
        run("debug", name, "--image=i", "-c", "d", "--attach=false")
        (self.wait if self.version >= (1, 23) else self.wait_in_vain)(objects)
        if self.version >= (1, 24):
            self.use_status([o for o in objects if "status" in self.resources.parts(o)])
            run("patch", "pod", name, "--subresource=resize", "-p", json.dumps(PATCH))
        run("delete", "--wait=false", "-f", "-", stdin=everything)

    def use_status(self, objects):
        names = [f"{self.full_name(o)}/{o['metadata']['name']}" for o in objects]
        self.replace(lambda: self.run("get", "--subresource=status", "-o", "json", *names), "--subresource=status")
        self.run("patch", "--subresource=status", "--type=merge", "-p", json.dumps(PATCH), "-f", "-", stdin=list_of(objects))


# ---- python3-kubernetes ----

def body_for(part, object, now):
    """What is sent to a subresource that is created or replaced, when the object is `now`."""
    name = object["metadata"]["name"]
    return {"token": {"spec": {}}, "eviction": {"metadata": {"name": name}, "deleteOptions": {"dryRun": ["All"]}}, "binding": {"metadata": {"name": name}, "target": {
        "kind": "Node", "name": "x"}}}.get(part, now)


class Dynamic:
    """One resource, by the dynamic client."""

    def __init__(self, client, resources, object):
        self.resources, self.object = resources, object
        self.resource = client.resources.get(api_version=object["apiVersion"], kind=object["kind"])
        self.at = {k: v for k, v in object["metadata"].items() if k in ("name", "namespace")}
        self.where = {"namespace": object["metadata"].get("namespace")}

    def use(self):
        steps = [lambda: self.resource.create(body=self.object, **self.where), lambda: self.resource.get(**self.where),
                 lambda: self.resource.patch(body=PATCH, content_type="application/merge-patch+json", **self.at),
                 lambda: self.resource.replace(body=self.read(self.resource), **self.where), lambda: next(self.resource.watch(timeout=5, **self.where))]
        steps += [lambda part=part, verb=verb: self.use_part(part, verb) for part in self.resources.parts(self.object)
                  for verb in ("get", "patch", "update", "create")]
        steps += [lambda: self.resource.delete(body={}, **self.at)]
        return steps

    def read(self, of):
        return of.get(**self.at).to_dict()

    def use_part(self, part, verb):
        if verb not in self.resources.verbs[self.object["apiVersion"], f"{self.resources.of(self.object)}/{part}"]:
            return
        sub = self.resource.subresources[part]
        if verb == "get":
            sub.get(**self.at)
        elif verb == "patch":
            sub.patch(body=PATCH, content_type="application/merge-patch+json", **self.at)
        elif verb == "update":
            sub.replace(body=self.read(self.resource if part == "finalize" else sub), **self.at)
        else:
            sub.create(body=body_for(part, self.object, None), **self.at)


class Typed:
    """One resource, by the methods that python3-kubernetes has for it: none for what is newer than the client."""

    def __init__(self, client, api_client, resources, object):
        group, _, version = object["apiVersion"].rpartition("/")
        names = "".join(word.capitalize() for word in group.removesuffix(".k8s.io").split(".")) or "Core"
        self.resources, self.object = resources, object
        self.custom = client.CustomObjectsApi(api_client) if group == "example.com" else None
        self.api = getattr(client, names + version.capitalize() + "Api", lambda _: None)(api_client)
        words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", object["kind"])).lower()
        namespace = object["metadata"].get("namespace")
        self.kind = f"namespaced_{words}" if namespace else words
        self.where = [namespace] if namespace else []
        self.at = [object["metadata"].get("name"), *self.where]

    def call(self, verb, *args, part="", **kwargs):
        if self.custom:
            verb = verb.replace("read", "get")
            method = getattr(self.custom, f"{verb}_namespaced_custom_object{part and '_'}{part}")
            group, version = self.object["apiVersion"].split("/")
            namespace, name, body = self.where[0], [self.at[0]] if verb in ("get", "patch", "replace", "delete") else [], [a for a in args if isinstance(a, dict)]
            return method(group, version, namespace, "gadgets", *name, *body, **kwargs)
        return getattr(self.api, f"{verb}_{self.kind}{part and '_'}{part}")(*args, **kwargs)

    def use(self):
        from kubernetes import watch  # pylint: disable=import-outside-toplevel

        def first_event():
            listed = self.custom.list_namespaced_custom_object if self.custom else getattr(self.api, f"list_{self.kind}")
            args = ["example.com", "v1", "default", "gadgets"] if self.custom else self.where
            stream = watch.Watch().stream(listed, *args, timeout_seconds=5)
            next(stream)
            stream.close()
        steps = [lambda: self.call("create", *self.where, self.object), lambda: self.call("list", *self.where),
                 lambda: self.call("patch", *self.at, PATCH), lambda: self.call("replace", *self.at, self.call("read", *self.at)), first_event]
        for part in self.resources.parts(self.object):
            steps += [lambda part=part: self.call("read", *self.at, part=part), lambda part=part: self.call("patch", *self.at, PATCH, part=part),
                      lambda part=part: self.call("replace", *self.at, self.call("read", *self.at, part="" if part == "finalize" else part), part=part),
                      lambda part=part: self.call("create", *self.at, body_for(part, self.object, None), part=part)]
        return steps + [lambda: self.call("delete", *self.at), lambda: self.call("delete_collection", *self.where, label_selector="a=none")]


def attempt(step):
    """A controller may have written between a read and a replace, so a conflict is tried again."""
    for _ in range(5):
        try:
            step()
            return
        except Exception as error:  # pylint: disable=broad-except
            if getattr(error, "status", 0) != 409:
                return


def use_python(api, resources, name, number):
    """name: "typed" or "dynamic"."""
    from kubernetes import client, config, dynamic  # pylint: disable=import-outside-toplevel

    api_client = config.new_client_from_config(str(api.kubeconfig))
    api_client.user_agent = f"python-{name}"
    make = (lambda o: Typed(client, api_client, resources, o)) if name == "typed" else lambda o, d=dynamic.DynamicClient(api_client): Dynamic(d, resources, o)
    for object in [*objects_of(name, number), *reviews(), COMPONENT]:
        for step in make(object).use():
            attempt(step)
    # The dynamic client deletes a collection when it is given no name.
    if name == "dynamic":
        for object in objects_of(name, number):
            with contextlib.suppress(Exception):
                found = make(object)
                found.resource.delete(label_selector="a=none", body={}, **found.where)
