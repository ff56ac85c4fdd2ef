# SPDX-License-Identifier: Apache-2.0
"""The invariant of fencing, read from the store itself.

Each Lease has exactly one term record, with the holder and the acquireTime of the Lease.
"""
import base64
import contextlib
import json
import sqlite3
import urllib.request

TERMS = "/registry.holdfast/terms/"
LEASES = "/registry/leases/"


def _range_of_file(path, prefix, revision):
    """The same from a file of SQLite: server/storage/sqlite/database.h has the schema."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        newest = (db.execute("SELECT max(id) FROM versions").fetchone()[0] or 16) // 16
        rows = db.execute("SELECT key, max(id), value FROM versions WHERE key >= ? AND key < ? AND id < ? GROUP BY key",
                          (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), ((revision or newest) + 1) * 16))
        return newest, {key[len(prefix):]: (at // 16, value) for key, at, value in rows if value is not None}


def _range(etcd, prefix, revision=0):
    if etcd.url.startswith("sqlite:"):
        return _range_of_file(etcd.path, prefix, revision)
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    body = {"key": base64.b64encode(prefix.encode()).decode(),
            "range_end": base64.b64encode(end.encode()).decode(), "revision": revision}
    request = urllib.request.Request(etcd.url + "/v3/kv/range", data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        reply = json.loads(response.read())
    found = {}
    for kv in reply.get("kvs", []):
        name = base64.b64decode(kv["key"]).decode()[len(prefix):]
        found[name] = (int(kv["mod_revision"]), base64.b64decode(kv["value"]))
    return int(reply["header"]["revision"]), found


def expected(lease):
    """The term record that a Lease must have, as bytes."""
    spec = lease.get("spec") or {}
    holder = (spec.get("holderIdentity") or "").replace("\n", " ")
    acquired = (spec.get("acquireTime") or "-").replace("\n", " ")
    return f"{holder}\n{acquired}".encode()


def stored_lease(etcd, key):
    """The Lease with this key, as it is stored. None: there is none."""
    found = _range(etcd, LEASES)[1].get(key[len(LEASES):])
    return json.loads(found[1]) if found else None


def check_term_records(etcd):
    """Compares Leases and term records at one revision. Returns {namespace/name: term}.

    Fails with the Lease or the record that is wrong.
    """
    revision, leases = _range(etcd, LEASES)
    _, records = _range(etcd, TERMS, revision)
    assert set(leases) == set(records), (f"Leases without a record: {set(leases) - set(records)}, "
                                         f"records without a Lease: {set(records) - set(leases)}")
    for name, (lease_revision, text) in leases.items():
        term, record = records[name]
        assert record == expected(json.loads(text)), f"{name}: {record}, but the Lease is {text}"
        assert term <= lease_revision, f"{name}: term {term} is newer than {lease_revision}"
    return {name: term for name, (term, _) in records.items()}


def check_terms_in_history(events, terms):
    """Compares terms with the events of a witness.

    The term of a Lease is the revision that last changed its holder or its acquireTime.
    """
    said, term = {}, {}
    for event in events:
        if not event["key"].startswith(LEASES):
            continue
        name = event["key"][len(LEASES):]
        if event["type"] == "DELETE":
            said.pop(name, None)
            term.pop(name, None)
            continue
        spec = event["object"].get("spec") or {}
        now = (spec.get("holderIdentity") or "", spec.get("acquireTime") or "")
        if said.get(name) != now:
            said[name], term[name] = now, event["rev"]
    assert term == {name: terms[name] for name in term}, (term, terms)
