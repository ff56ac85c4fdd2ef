# SPDX-License-Identifier: Apache-2.0
"""The invariant of fencing, read from etcd itself: each Lease has exactly one term record, and it says what the Lease says."""
import base64
import json
import urllib.request

TERMS = "/registry.holdfast/terms/"
LEASES = "/registry/leases/"


def _range(etcd, prefix, revision=0):
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    body = {"key": base64.b64encode(prefix.encode()).decode(), "range_end": base64.b64encode(end.encode()).decode(), "revision": revision}
    with urllib.request.urlopen(urllib.request.Request(etcd.url + "/v3/kv/range", data=json.dumps(body).encode()), timeout=30) as answer:
        reply = json.loads(answer.read())
    found = {base64.b64decode(kv["key"]).decode()[len(prefix):]: (int(kv["mod_revision"]), base64.b64decode(kv["value"]))
             for kv in reply.get("kvs", [])}
    return int(reply["header"]["revision"]), found


def expected(lease):
    """What the term record of a Lease says, as bytes."""
    spec = lease.get("spec") or {}
    one_line = lambda text: text.replace("\n", " ")
    return f"{one_line(spec.get('holderIdentity') or '')}\n{one_line(spec.get('acquireTime') or '-')}".encode()


def check_term_records(etcd):
    """Both at one revision. Returns {namespace/name: term}; fails naming the Lease or the record that is wrong."""
    revision, leases = _range(etcd, LEASES)
    _, records = _range(etcd, TERMS, revision)
    assert set(leases) == set(records), (f"Leases without a record: {set(leases) - set(records)}, "
                                         f"records without a Lease: {set(records) - set(leases)}")
    for name, (lease_revision, text) in leases.items():
        term, record = records[name]
        assert record == expected(json.loads(text)), f"{name}: the record says {record}, the Lease {text}"
        assert term <= lease_revision, f"{name}: term {term} is newer than the Lease, {lease_revision}"
    return {name: term for name, (term, _) in records.items()}


def check_terms_in_history(events, terms):
    """A witness's events: a Lease's term is the revision that last changed holder or acquireTime, and no other."""
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
