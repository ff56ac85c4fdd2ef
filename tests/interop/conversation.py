# SPDX-License-Identifier: Apache-2.0
"""A recorded conversation of a Go client with an API server: its form, and what must be true of the responses.

A conversation is a JSON array of requests in the order in which they were sent:

    ask        method and path, with the query
    accept, type, body, protobuf, agent   what was sent; protobuf is base64
    uses       values from earlier responses that the request contains: {value: [request, path]}; [request, path, n] means the n-th event about our objects
    code, content                  the status and the content type of the answer
    holds      what must be true of the response: holds_of() of the recorded one
    frames     only for a watch: the events that must arrive, in this order: seen_frames() of the recorded ones

A record keeps only values that do not depend on the server's state and clock: names, kinds, labels, data, specs, field managers, reasons."""
import gzip
import json
import re
from urllib.parse import quote

from kube_protobuf import decode_answer, decode_frames

PROTOBUF = b"k8s\0"
UID_LENGTH = 36
OURS = "rec"  # the prefix of the names of the objects that the recorded programs created


def is_watch(entry):
    return entry["ask"][0] == "GET" and "watch=" in entry["ask"][1]


def decode_body(data):
    """Parses a body: JSON, or protobuf into the same form. Other content (OpenAPI in protobuf) gives {}."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == PROTOBUF:
        return decode_answer(data)
    try:
        return json.loads(data)
    except ValueError:
        return {}


def frames_of(data, content):
    """Returns the complete events of a stream, as (type, object)."""
    if "protobuf" not in content:
        events = [json.loads(line) for line in data.split(b"\n")[:-1] if line]
        return [(event["type"], event["object"]) for event in events]
    whole = b""
    while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
        n = 4 + int.from_bytes(data[:4], "big")
        whole, data = whole + data[:n], data[n:]
    return list(decode_frames(whole))


def ends_initial_events(kind, item):
    return kind == "BOOKMARK" and (item["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end") == "true"


def our_objects(frames):
    return [item for _, item in frames if item.get("metadata", {}).get("name", "").startswith(OURS)]


def seen_frames(frames):
    """Returns [type, kind, name] of the events about our objects. The bookmark that ends the initial events is ["SYNCED", ...]."""
    seen = []
    for kind, item in frames:
        if ends_initial_events(kind, item):
            seen.append(["SYNCED", item["kind"]])
        elif kind != "BOOKMARK" and item.get("metadata", {}).get("name", "").startswith(OURS):
            seen.append([kind, item["kind"], item["metadata"]["name"]])
    return seen


def values_of(document):
    """Yields (path, value) of the values in a response that a client may send back later."""
    meta = document.get("metadata") or {}
    found = [(f"metadata.{name}", meta[name]) for name in ("resourceVersion", "uid", "continue") if meta.get(name)]
    for i, item in enumerate(document.get("items") or []):
        meta = item.get("metadata") or {} if isinstance(item, dict) else {}
        found += [(f"items.{i}.metadata.{name}", meta[name]) for name in ("resourceVersion", "uid")
                  if meta.get(name) and meta.get("name", "").startswith(OURS)]
    return found


def value_at(document, path):
    for key in path.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def managers_of(meta):
    return sorted([entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")] for entry in meta.get("managedFields") or [])


def holds_of(document):
    held = {name: document[name] for name in ("kind", "apiVersion", "reason", "code") if document.get(name)}
    meta = document.get("metadata") or {}
    if document.get("kind") == "Status":
        details = document.get("details") or {}
        held["causes"] = [[cause.get("reason"), cause.get("field"), cause.get("message")] for cause in details.get("causes") or []]
        held["about"] = [details.get("kind"), details.get("name")]
    elif meta.get("name", "").startswith(OURS) or "." in meta.get("name", ""):
        held["name"] = meta["name"]
        held["generation"] = meta.get("generation")
        held["labels"] = meta.get("labels") or {}
        held["annotations"] = meta.get("annotations") or {}
        held["managers"] = managers_of(meta)
        for name in ("data", "spec"):
            if len(json.dumps(document.get(name, ""), default=str)) < 300 and name in document:
                held[name] = document[name]
    elif isinstance(document.get("items"), list):
        names = [(item.get("metadata") or {}).get("name", "") for item in document["items"] if isinstance(item, dict)]
        held["names"] = [name for name in names if name.startswith(OURS)]
        held["continues"] = bool(meta.get("continue"))
    return json.loads(json.dumps(held, default=str))


# ---- requests ----

def put_varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at


def replaced(message, old, new):
    """Returns a protobuf message in which `new` replaces each text equal to `old`. Raises if the bytes are not a message."""
    out, at = b"", 0
    while at < len(message):
        begin = at
        key, at = varint(message, at)
        if key & 7 == 0:
            _, at = varint(message, at)
            out += message[begin:at]
            continue
        if key & 7 != 2 or key >> 3 == 0:
            raise ValueError("not a message of this kind")
        n, at = varint(message, at)
        if at + n > len(message):
            raise ValueError("cut")
        value, at = message[at:at + n], at + n
        if value == old:
            value = new
        elif old in value:
            try:
                value = replaced(value, old, new)
            except (ValueError, IndexError):
                if len(old) == UID_LENGTH:  # a uid may also be part of a text, in a set of fields
                    value = value.replace(old, new)
        out += put_varint(key) + put_varint(len(value)) + value
    return out


def with_values(entry, body, values):
    """Returns the path and the body of a request, with this server's values in place of the recorded ones. values: {old: new}."""
    path = entry["ask"][1]
    for old, new in values.items():
        for name in ("resourceVersion", "continue"):
            path = re.sub(rf"\b{name}={re.escape(quote(old, safe=''))}(?=&|$)", f"{name}={quote(new, safe='')}", path)
        if body and body[:4] == PROTOBUF:
            body = PROTOBUF + replaced(body[4:], old.encode(), new.encode())
        elif body:
            body = body.replace(b'"%s"' % old.encode(), b'"%s"' % new.encode())
    return path, body
