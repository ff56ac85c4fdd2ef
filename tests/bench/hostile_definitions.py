# SPDX-License-Identifier: Apache-2.0
"""hostile_definitions.py: the server's CPU for definitions that are made to be expensive, beside that of an honest one of the same size in
the same run. All are dry runs. A ratio far above 1 would be an attack: little to send, much to do."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import holdfastd  # noqa: E402
from definitions import DEFINITIONS, Connection  # noqa: E402
from idle import precise_cpu_ms  # noqa: E402


def definition(schema, **version):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}]}}


def spec(field, **more):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}, **more}}}


def nested(n, inner=None):
    schema = inner or {"type": "string"}
    for _ in range(n):
        schema = {"type": "object", "properties": {"a": schema}}
    return spec(schema)


def nested_list(n, rule):
    schema = {"type": "string"}
    for _ in range(n):
        schema = {"type": "array", "items": schema}
    schema["x-kubernetes-validations"] = [{"rule": rule}]
    return spec(schema)


def rules(*texts, field=None):
    return spec({**(field or {"type": "array", "items": {"type": "string"}}), "x-kubernetes-validations": [{"rule": t} for t in texts]})


def doubling(n, unit, join):
    text = unit
    for _ in range(n):
        text = join(text)
    return text


def macros(n):
    text = "true"
    for i in range(n):
        text = f"self.all(x{i}, {text})"
    return text


TEXT = {"type": "string"}
HOSTILE = {
    "nested 2,000 levels": definition(nested(2000)),
    "nested 200 levels": definition(nested(200)),
    "enum of 50,000": definition(spec({"type": "string", "enum": [f"value{i}" for i in range(50000)]})),
    "enum of 20,000 equal values": definition(spec({"type": "string", "enum": ["value"] * 20000})),
    "enum of 5,000 objects": definition(spec({"type": "object", "enum": [{"a": i} for i in range(5000)]})),
    "20,000 properties": definition(spec({"type": "object", "properties": {f"p{i}": TEXT for i in range(20000)}})),
    "required 50,000 times": definition(spec({"type": "object", "required": [f"p{i}" for i in range(50000)]})),
    "pattern that repeats repeats": definition(spec({"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"})),
    "pattern of 500 KB": definition(spec({"type": "string", "pattern": "a?" * 250000})),
    "1,000 patterns of 100 states": definition(spec({"type": "object", "properties": {
        f"p{i}": {"type": "string", "pattern": "^[a-z]{1,100}$"} for i in range(1000)}})),
    "pattern of nested groups": definition(spec({"type": "string", "pattern": "(" * 5000 + "a" + ")" * 5000})),
    "anyOf of 10,000": definition(spec({"type": "string", "anyOf": [{"minLength": i} for i in range(10000)]})),
    "allOf in allOf": definition(spec({"type": "string", **doubling(12, {"minLength": 1}, lambda s: {"allOf": [s, s]})})),
    "not of not": definition(spec({"type": "string", **doubling(1000, {"minLength": 1}, lambda s: {"not": s})})),
    "default of 20,000 members": definition(spec({"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                                                  "default": {f"p{i}": i for i in range(20000)}})),
    "2,000 list keys": definition(spec({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [f"p{i}" for i in range(2000)],
                                        "items": {"type": "object", "required": [f"p{i}" for i in range(2000)],
                                                  "properties": {f"p{i}": TEXT for i in range(2000)}}})),
    "2,000 versions": {**definition(spec(TEXT)), "spec": {**definition(spec(TEXT))["spec"], "versions": [
        {"name": f"v{i}", "served": True, "storage": i == 1, "schema": {"openAPIV3Schema": spec(TEXT)}} for i in range(1, 2001)]}},
    "10,000 short names": {**definition(spec(TEXT)), "spec": {**definition(spec(TEXT))["spec"], "names": {
        "plural": "things", "kind": "Thing", "shortNames": [f"s{i}" for i in range(10000)]}}},
    "5,000 columns": definition(spec(TEXT), additionalPrinterColumns=[
        {"name": f"c{i}", "type": "string", "jsonPath": ".spec" + ".a" * 20} for i in range(5000)]),
    "rule: 12 macros in each other": definition(rules(macros(12))),
    "rule: 100 macros in each other": definition(rules(macros(100))),
    "rule: a list that doubles its type": definition(rules(doubling(14, "self", lambda t: f"[{t},{t}]") + ".size() > 0")),
    "rule: text that doubles": definition(rules(doubling(12, "'x'", lambda t: f"({t}+{t})") + " == ''")),
    "rule: 5,000 parentheses": definition(rules("(" * 5000 + "true" + ")" * 5000)),
    "rule: 90 KB of comparisons": definition(rules(" || ".join(f"self == ['{i}']" for i in range(4500)))),
    "rule: 90 KB without an end": definition(rules("'" + "a" * 90000)),
    "rule: a chain of 2,000 calls": definition(rules("self" + ".map(x, x)" * 2000 + ".size() > 0")),
    "rule: pattern that repeats repeats": definition(rules("self.all(x, x.matches('((a{1,1000}){1,1000}){1,1000}'))")),
    "rule: 200 patterns": definition(rules(" && ".join(f"'x'.matches('a{{1,{i}}}')" for i in range(200)))),
    "rule: nested list": definition(nested_list(6, "self.all(a, a.all(b, b.all(c, c.all(d, d.all(e, e.all(f, f == 'x'))))))")),
    "1,000 rules": definition(rules(*(f"self.all(x, x != '{i}')" for i in range(1000)))),
    "1,000 rules with mistakes": definition(rules(*(f"self.missing{i} == 1" for i in range(1000)))),
    "5,000 fields with a rule": definition(spec({"type": "object", "properties": {
        f"p{i}": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]} for i in range(5000)}})),
}


def honest(n_bytes):
    """A definition of about that size, with plain properties."""
    field = {"type": "string", "description": "What this field is for, in a sentence."}
    n = max(1, n_bytes // len(json.dumps({"p12345": field})))
    return definition(spec({"type": "object", "properties": {f"p{i}": field for i in range(n)}}))


def cost(instance, connection, body, rounds=3):
    """(status, bytes, the least CPU in ms, bytes of the answer)"""
    text, times, status = json.dumps(body), [], None
    for _ in range(rounds):
        before = precise_cpu_ms(instance.pid)
        connection.connection.request("POST", DEFINITIONS + "?dryRun=All", text, {"Content-Type": "application/json"})
        response = connection.connection.getresponse()
        answer = response.read()
        times.append(precise_cpu_ms(instance.pid) - before)
        status = response.status
    return status, len(text), min(times), len(answer)


def main():
    sys.setrecursionlimit(100000)
    with holdfastd.Cluster(with_witness=False, etcd=holdfastd.SqliteFile) as cluster:
        instance = cluster.instance("one", fast=False).wait_ready()
        connection = Connection(instance)
        cost(instance, connection, honest(1000))
        for name, body in HOSTILE.items():
            status, size, cpu, n_answer = cost(instance, connection, body)
            _, fair_size, fair, _ = cost(instance, connection, honest(size))
            print(f"{name}: {status}, {size / 1000:.1f} KB, {cpu:.2f} ms; answer {n_answer / 1000:.1f} KB; "
                  f"an honest one of {fair_size / 1000:.1f} KB {fair:.2f} ms: ratio {cpu / fair:.1f}", flush=True)
        assert instance.alive()


if __name__ == "__main__":
    main()
