#!/usr/bin/env python3
"""other_projects.py DIRECTORY... [-v]: holdfastd serves the kinds of other projects.

Each DIRECTORY has YAML files of one project, anywhere below it: its CustomResourceDefinitions, and examples of its objects. Examples
below a folder whose name begins with "invalid" must be refused. No such file is part of this repository.

For each project a holdfastd of its own, over SQLite, gets the definitions from kubectl. Then the script checks that each is
established, that discovery lists each served version, and that kubectl explains the kind and its deepest field. It creates the
examples with strict validation, and then variants of the good ones, each with one fault that a rule of its schema forbids: the answer
must have Kubernetes' message for it. Prints a Markdown table row per project, and with -v each refusal. The exit status is 1 if any
check fails.
"""
import argparse
import copy
import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import urllib.parse

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from holdfastd import Cluster, SqliteFile, wait_until  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FAULTS_PER_OBJECT = 12
PLACEHOLDER = re.compile(r'PLACEHOLDER_|"\$?\{[A-Z_]+\}"|\$\{?[A-Z_]{4,}')


class Loader(yaml.CSafeLoader):
    """Loads YAML as kubectl does: a date is a text, and so is "="."""


Loader.yaml_implicit_resolvers = {c: [(tag, r) for tag, r in rules if not tag.endswith((":timestamp", ":value"))]
                                  for c, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()}


def documents(directory):
    """Yields (file, object) of all documents that are objects. Templates that are not YAML are left out."""
    for path in sorted(pathlib.Path(directory).rglob("*.y*ml")):
        try:
            found = list(yaml.load_all(path.read_text(), Loader))
        except yaml.YAMLError:
            continue
        for document in found:
            if "CustomResourceDefinition" not in str(document)[:300] and PLACEHOLDER.search(json.dumps(document, default=str)):
                continue
            if isinstance(document, dict) and isinstance(document.get("kind"), str) and "apiVersion" in document:
                items = document["items"] if document["kind"] == "List" else [document]
                yield from ((path.relative_to(directory), item) for item in items or [])


def type_of(value):
    """Returns the name that messages use for the type of a JSON value."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    raise TypeError(value)


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def faults(schema, value, path):
    """Yields a fault for each rule of the schema on this value and below: (path as keys, new value or None = remove, the cause's field, its message)."""
    field = path[0] + "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path[1:]) if path else ""
    kind = schema.get("type")
    if path and kind and not schema.get("x-kubernetes-int-or-string"):
        wrong = 7 if kind in ("string", "object", "array", "boolean") else "word"
        message = f'Invalid value: "{type_of(wrong)}": {field} in body must be of type {kind}: "{type_of(wrong)}"'
        yield path, wrong, field, message
    if kind == "string" and "enum" in schema:
        yield path, "no-such-word", field, 'Unsupported value: "no-such-word": supported values: ' + ", ".join(quoted(e) for e in schema["enum"])
    elif kind == "string" and schema.get("maxLength", 1 << 20) < 5000:
        n = schema["maxLength"]
        yield path, "a" * (n + 1), field, f"Too long: may not be more than {n} byte" + "s" * (n != 1)
    if kind == "string" and schema.get("minLength") and "enum" not in schema and not schema.get("format"):
        yield path, "", field, f'Invalid value: "": {field} in body should be at least {schema["minLength"]} chars long'
    if kind == "string" and "pattern" in schema and not re.search(schema["pattern"].replace("[[:alnum:]]", "[a-z]"), "\u00a7 \u00a7"):
        yield path, "\u00a7 \u00a7", field, f'Invalid value: "\u00a7 \u00a7": {field} in body should match \'{schema["pattern"]}\''
    if kind == "integer" and "minimum" in schema:
        low = int(schema["minimum"]) - 1
        yield path, low, field, f"Invalid value: {low}: {field} in body should be greater than or equal to {schema['minimum']}"
    if kind == "integer" and "maximum" in schema and schema["maximum"] < 1 << 20:
        high = int(schema["maximum"]) + 1
        yield path, high, field, f"Invalid value: {high}: {field} in body should be less than or equal to {schema['maximum']}"
    if kind == "array" and isinstance(value, list):
        if schema.get("minItems"):
            yield path, [], field, f"Invalid value: 0: {field} in body should have at least {schema['minItems']} items"
        for i, item in enumerate(value[:3]):
            yield from faults(schema.get("items", {}), item, [*path, i])
    if kind == "object" and isinstance(value, dict):
        for key in schema.get("required", []):
            if path + [key] != ["metadata"] and key in value and "default" not in schema.get("properties", {}).get(key, {}):
                yield [*path, key], None, f"{field}.{key}" if field else key, "Required value"
        if path and "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield [*path, "noSuchField"], 1, None, f'strict decoding error: unknown field "{field}.noSuchField"'
        for key, item in value.items():
            below = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            if isinstance(below, dict) and key not in ("apiVersion", "kind", "metadata") and re.fullmatch(r"[A-Za-z0-9]+", key):
                yield from faults(below, item, [*path, key])


def changed(obj, path, value):
    obj = copy.deepcopy(obj)
    at = obj
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return obj


def deepest(schema, path=()):
    """Returns the longest path of names to a field that kubectl can explain."""
    best = path
    while schema.get("type") == "array" or isinstance(schema.get("additionalProperties"), dict):
        schema = schema["items"] if schema.get("type") == "array" else schema["additionalProperties"]
    for key, below in schema.get("properties", {}).items():
        candidate = deepest(below, (*path, key))
        if len(candidate) > len(best):
            best = candidate
    return best


class Trial:
    def __init__(self, directory, server, verbose):
        self.name = pathlib.Path(directory).name
        self.server = server
        self.connection = http.client.HTTPSConnection(urllib.parse.urlsplit(server.url).netloc, context=server.context(), timeout=60)
        self.verbose = verbose
        self.wrong = []
        self.count = dict.fromkeys(("definitions", "kinds", "explained", "accepted", "invalid", "faults"), 0)
        found = list(documents(directory))
        self.definitions = {d["metadata"]["name"]: d for _, d in found
                            if d["kind"] == "CustomResourceDefinition" and d["apiVersion"] == "apiextensions.k8s.io/v1" and "versions" in d["spec"]}
        self.kinds = {(d["spec"]["group"], v["name"], d["spec"]["names"]["kind"]): (d, v)
                      for d in self.definitions.values() for v in d["spec"]["versions"] if v["served"]}
        self.objects = [(f, o) for f, o in found if self.kind_of(o) in self.kinds]

    @staticmethod
    def kind_of(obj):
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        return group, version, obj["kind"]

    def say(self, text):
        if self.verbose:
            print(f"  {text}")

    def fail(self, text):
        self.wrong.append(text)
        print(f"  WRONG {self.name}: {text}")

    def define(self):
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(self.definitions.values())})
        done = self.server.kubectl("apply", "--server-side", "-f", "-", stdin=body, check=False, limit=300)
        for line in done.stderr.splitlines():
            if not line.startswith("Warning"):
                self.fail(line)

        def waiting():
            items = json.loads(self.server.get(DEFINITIONS)[1])["items"]
            up = {i["metadata"]["name"] for i in items for c in i.get("status", {}).get("conditions") or []
                  if c["type"] == "Established" and c["status"] == "True"}
            return set(self.definitions) - up
        try:
            wait_until("the definitions to be established", lambda: not waiting(), limit=60)
        except AssertionError:
            self.fail(f"not established: {waiting()}")
        self.count["definitions"] = len(self.definitions) - len(waiting())

    def path(self, kind, namespace=None):
        definition, version = self.kinds[kind]
        where = f"namespaces/{namespace}/" if namespace and definition["spec"]["scope"] == "Namespaced" else ""
        return f"/apis/{kind[0]}/{version['name']}/{where}{definition['spec']['names']['plural']}"

    def list(self):
        for kind in self.kinds:
            try:
                wait_until(f"{kind} to be served", lambda k=kind: self.server.get(self.path(k))[0] == 200, limit=20)
                self.count["kinds"] += 1
            except AssertionError:
                self.fail(f"{kind} is not listed: {self.server.get(self.path(kind))}")
        shown = self.server.kubectl("api-resources", "--no-headers").stdout
        for definition in self.definitions.values():
            if not re.search(rf"^{definition['spec']['names']['plural']} .*{definition['spec']['group']}/", shown, re.M):
                self.fail(f"not among the resources: {definition['metadata']['name']}")

    def explain(self):
        for (group, version, kind), (definition, served) in self.kinds.items():
            schema = served["schema"]["openAPIV3Schema"]
            resource = definition["spec"]["names"]["plural"] + "." + group
            for path in {(), deepest(schema)}:
                done = self.server.kubectl("explain", ".".join((definition["spec"]["names"]["plural"], *path)), f"--api-version={group}/{version}",
                                           check=False)
                expected = [f"KIND:       {kind}", f"VERSION:    {version}", *(f"FIELD: {p}" for p in path[-1:])]
                expected += [] if path else [f"  {p}\t<" for p in schema.get("properties", {})]
                missing = [e for e in expected if e not in done.stdout]
                if done.returncode != 0 or missing:
                    self.fail(f"explain {resource} {'.'.join(path)}: {done.stderr.strip()} lacks {missing[:3]}: {done.stdout[:200]!r}")
                else:
                    self.count["explained"] += 1

    def send(self, obj, n):
        """Creates the object under a new name. Returns (code, Status or object)."""
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        for key in ("namespace", "generateName", "resourceVersion", "uid"):
            meta.pop(key, None)
        meta["name"] = f"o{n}"
        self.connection.request("POST", self.path(self.kind_of(obj), "default") + "?fieldValidation=Strict", json.dumps(obj),
                                {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def faults_of(self, obj):
        """Returns the faults that a create can have. With a status subresource, a create ignores the status."""
        version = self.kinds[self.kind_of(obj)][1]
        found = faults(version["schema"]["openAPIV3Schema"], obj, [])
        return [f for f in found if f[0][0] != "status" or "status" not in version.get("subresources", {})]

    def create(self, rng):
        n = 0
        for file, obj in self.objects:
            n += 1
            code, answer = self.send(obj, n)
            if any(p.startswith("invalid") for p in file.parts):
                self.count["invalid"] += code in (400, 422)
                self.say(f"{file}: {code} {answer.get('message', '')[:600]}")
                if code not in (400, 422):
                    self.fail(f"{file}: {obj['kind']} was accepted: {code}")
                continue
            if code != 201:
                self.fail(f"{file}: {code} {answer.get('message', '')[:600]}")
                continue
            self.count["accepted"] += 1
            found = self.faults_of(obj)
            for path, value, field, message in rng.sample(found, min(FAULTS_PER_OBJECT, len(found))):
                n += 1
                self.refuse(changed(obj, path, value), n, field, message, f"{file}: {'.'.join(map(str, path))} = {value!r:.60}")

    def refuse(self, obj, n, field, message, what):
        code, answer = self.send(obj, n)
        causes = [(c.get("field"), c.get("message")) for c in answer.get("details", {}).get("causes", [])]
        good = code == 400 and message in answer["message"] if field is None else code == 422 and (field, message) in causes
        if good:
            self.count["faults"] += 1
        else:
            self.fail(f"{what}: {code} {answer.get('message', '')[:500]}\n      want {field}: {message}")

    def run(self, seed):
        self.define()
        self.list()
        self.explain()
        self.create(random.Random(seed))
        return self


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+")
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rows, wrong = [], 0
    for directory in args.directories:
        with Cluster(with_witness=False, prefix="holdfast-trial-", etcd=SqliteFile) as cluster:
            server = cluster.instance("one").wait_ready()
            trial = Trial(directory, server, args.v).run(args.seed)
            resident = subprocess.run(["ps", "-o", "rss=", "-p", str(server.pid)], capture_output=True, text=True, check=True).stdout
            wrong += len(trial.wrong)
            rows.append(f"| {trial.name} | " + " | ".join(str(v) for v in trial.count.values()) + f" | {len(trial.wrong)} | {int(resident) / 1024:.1f} MiB |")
    print("| project | definitions | kinds and versions | fields explained | objects accepted | invalid examples refused | faults refused |"
          " wrong | resident |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    print("\n".join(rows))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
