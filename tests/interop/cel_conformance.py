#!/usr/bin/env python3
"""cel_conformance.py CALCULATOR DIRECTORY [-v]: prints which tests of the CEL specification pass.

CALCULATOR is build/tests/cel-calculator; DIRECTORY is tests/simple/testdata of a checkout of github.com/google/cel-spec. The tests
are read from there each time; none is part of this repository. Tests that need protocol buffer messages or a container cannot be
expressed for an API server and are counted apart. Prints a table: section, passed, failed, not applicable.
"""
import pathlib
import re
import subprocess
import sys

TOKEN = re.compile(r"""\s*(?:\#[^\n]*\n|([{}<>\[\]:,;])|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|([^\s{}<>\[\]:,;"'#]+))""", re.S)
ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}


def tokens(text):
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            if text[at:].strip():
                raise SystemExit(f"cannot read {text[at:at + 40]!r}")
            return
        at = match.end()
        if match[1] or match[2] or match[3]:
            yield match[1] or match[2] or match[3]


def unquote(token):
    body, out, i = token[1:-1].encode(), bytearray(), 0
    while i < len(body):
        c = body[i]
        if c != 92:
            out.append(c)
            i += 1
            continue
        rest = body[i + 1:].decode("utf-8", "replace")
        if m := re.match(r"[0-7]{1,3}", rest):
            out.append(int(m[0], 8) & 255)
        elif m := re.match(r"[xX]([0-9a-fA-F]{1,2})", rest):
            out.append(int(m[1], 16))
        elif m := re.match(r"u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})", rest):
            out += chr(int(m[1] or m[2], 16)).encode("utf-8", "surrogatepass")
        else:
            m = re.match(r".", rest, re.S)
            out.append(ESCAPES[m[0]])
        i += 1 + len(m[0])
    return bytes(out)


def message(stream, end):
    """Parses a message in protobuf's text format. Returns pairs of name and value; a value is again such a list, or bytes, or a word."""
    pairs = []
    for name in stream:
        if name == end:
            break
        if name in ",;":
            continue
        if name == "[":  # the name in brackets is that of an extension, or of a message in an Any
            while next(stream) != "]":
                pass
            name = "[any]"
        token = next(stream)
        if token == ":":
            token = next(stream)
        if token in "{<":
            pairs.append((name, message(stream, "}" if token == "{" else ">")))
        elif token[0] in "\"'":
            pairs.append((name, Text(unquote(token))))
        else:
            pairs.append((name, token))
    return pairs


class Text(bytes):
    pass


class NotApplicable(Exception):
    pass


def fields(pairs):
    """Returns the fields of a message by name. A repeated field keeps only its last value; no test needs more."""
    return dict(pairs)


def quote(text):
    return "".join(f"\\x{c:02x}" if c < 32 or c in b"'\\" or c > 126 else chr(c) for c in text)


def literal(value):
    """Returns a value of the specification's data as a CEL expression."""
    if len(value) != 1:
        raise NotApplicable("no value")
    kind, data = value[0]
    if kind == "null_value":
        return "null"
    if kind == "bool_value":
        return data
    if kind == "int64_value":
        return data
    if kind == "uint64_value":
        return data + "u"
    if kind == "double_value":
        word = data.lower()
        if word in ("inf", "-inf", "nan", "infinity", "-infinity"):
            return f"double('{word}')"
        return f"double('{data}')"
    if kind == "string_value":
        text = data.decode("utf-8", "surrogatepass")
        return "'" + "".join(c if c.isalnum() or c in " -_" else f"\\U{ord(c):08x}" for c in text) + "'"
    if kind == "bytes_value":
        return f"b'{quote(data)}'"
    if kind == "list_value":
        return "[" + ", ".join(literal(v) for n, v in data if n == "values") + "]"
    if kind == "map_value":
        entries = [fields(v) for n, v in data if n == "entries"]
        return "{" + ", ".join(f"{literal(e['key'])}: {literal(e['value'])}" for e in entries) + "}"
    if kind == "type_value":
        return data.decode()
    raise NotApplicable(kind)


def type_text(pairs):
    if not pairs:
        return "dyn"
    kind, data = pairs[0]
    if kind == "primitive":
        return {"INT64": "int", "UINT64": "uint"}.get(data, data.lower())
    if kind == "dyn":
        return "dyn"
    if kind == "null":
        return "null"
    if kind == "list_type":
        return f"list({type_text(fields(data).get('elem_type', []))})"
    if kind == "map_type":
        return f"map({type_text(fields(data).get('key_type', []))}, {type_text(fields(data).get('value_type', []))})"
    if kind == "well_known" and data in ("TIMESTAMP", "DURATION"):
        return data.lower()
    if kind == "abstract_type" and fields(data).get("name") == b"optional_type":
        return f"optional_type({type_text(fields(data).get('parameter_types', []))})"
    if kind == "type":
        return f"type({type_text(data)})" if data else "type"
    raise NotApplicable(kind)


def hexed(text):
    return (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).hex()


def lines(test):
    """Returns the calculator's input for a test, and the expected result."""
    get = fields(test)
    if b"TestAllTypes" in get["expr"] or "container" in get or b"proto2" in get["expr"] or b"NestedEnum" in get["expr"]:
        raise NotApplicable("messages")
    if re.search(rb"google\.protobuf\.(?!Timestamp\b|Duration\b)|google\.protobuf\.\w+\s*\{", get["expr"]) or "disable_check" in get:
        raise NotApplicable("messages")
    for word in (rb"math\.", rb"base64\.", rb"cel\.bind", rb"cel\.block", rb"proto\.", rb"cel\.\w+\("):
        if re.search(word, get["expr"]):
            raise NotApplicable("extension")
    out = []
    types = {}
    for name, env in test:
        if name == "type_env":
            env = fields(env)
            if "function" in env:
                raise NotApplicable("functions")
            types[env["name"].decode()] = type_text(fields(env["ident"]).get("type", []))
    bound = set()
    for name, binding in test:
        if name == "bindings":
            binding = fields(binding)
            key = binding["key"].decode()
            bound.add(key)
            out.append(f"V {key} {hexed(types.get(key, 'dyn'))} {hexed(literal(fields(binding['value'])['value']))}")
    for name in types:
        if name not in bound:
            out.append(f"V {name} {hexed(types[name])} {hexed('null')}")
    out.append(f"E {hexed(get['expr'])}")
    if "eval_error" in get or "any_eval_errors" in get:
        return out, None, None
    deduced = None
    if "typed_result" in get:
        result = fields(get["typed_result"])
        deduced = type_text(result["deduced_type"]) if "deduced_type" in result else None
        value = result.get("result")
    else:
        value = get.get("value", [("bool_value", "true")])
    if value is None and deduced:
        return out, "", deduced
    return out, literal(value), deduced


def main():
    calculator, directory = sys.argv[1:3]
    verbose = "-v" in sys.argv
    process = subprocess.Popen([calculator], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(questions):
        process.stdin.write("\n".join(questions) + "\n")
        process.stdin.flush()
        return process.stdout.readline().rstrip("\n")

    total = [0, 0, 0]
    for path in sorted(pathlib.Path(directory).glob("*.textproto")):
        file = message(tokens(path.read_text()), None)
        counts = [0, 0, 0]
        for section in (v for n, v in file if n == "section"):
            for test in (v for n, v in section if n == "test"):
                try:
                    questions, expected, deduced = lines(test)
                except NotApplicable:
                    counts[2] += 1
                    continue
                got = ask(questions)
                if expected is None:
                    good = got[0] in "!?"
                else:
                    want = ask([f"E {hexed(expected)}"]) if expected else got
                    good = got[0] == "=" and got.split("\t")[0] == want.split("\t")[0]
                    if deduced and good:
                        good = got.split("\t")[1] == deduced
                        want += f" of type {deduced}"
                counts[0 if good else 1] += 1
                if not good and verbose:
                    get = fields(test)
                    print(f"  {path.stem}/{fields(section)['name'].decode()}/{get['name'].decode()}: {get['expr'].decode()[:150]!r}\n"
                          f"      got {got[:200]}, want {want if expected is not None else 'an error'}")
        print(f"{path.stem:20} {counts[0]:5} {counts[1]:5} {counts[2]:5}")
        total = [a + b for a, b in zip(total, counts)]
    print(f"{'all':20} {total[0]:5} {total[1]:5} {total[2]:5}")


main()
