# SPDX-License-Identifier: Apache-2.0
"""Clients that ask for much data and do not read it: lists, and watches with their initial events.

They take no place from other requests, the memory for them has limits, and nobody else notices them.
"""
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.parse

import pytest

import holdfastd

N_OBJECTS = 1500
OBJECT_BYTES = 4096
# More than --max-requests-inflight, which is 400.
N_READERS = 450
LIST = "/api/v1/configmaps"


class Unread:
    """A connection that sends a request and reads nothing."""

    def __init__(self, instance, path, token):
        url = urllib.parse.urlsplit(instance.url)
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((url.hostname, url.port))
        context = instance.context(False)
        context.set_alpn_protocols(["http/1.1"])
        self.tls = context.wrap_socket(raw, server_hostname=url.hostname)
        self.tls.sendall(f"GET {path} HTTP/1.1\r\nhost: {url.hostname}\r\n"
                         f"authorization: Bearer {token}\r\n\r\n".encode())

    def status(self):
        return int(self.tls.recv(12, ).split()[1])

    def close(self):
        self.tls.close()


def unread_watches(instance, n, query):
    """Opens n watches, one after the other: a watch needs a seat until it has begun, and a user has only some."""
    watches = []
    for _ in range(n):
        watches.append(Unread(instance, f"{LIST}?{query}", "slow"))
        assert watches[-1].status() == 200
    return watches


@pytest.fixture(name="filled")
def _filled(cluster):
    """An instance with objects, and the users slow and good. They have all rights, but not by system:masters: requests of that group
    need no seats."""
    tokens = cluster.directory / "tokens.csv"
    tokens.write_text('slow,slow,1,"readers"\ngood,good,2,"readers"\n')
    tokens.chmod(0o600)
    holdfastd.fill_configmaps(cluster.etcd, N_OBJECTS, OBJECT_BYTES)
    # Several lists are compared, so no controller may create a ConfigMap in between.
    instance = cluster.instance("a", f"--token-auth-file={tokens}", "--controllers=*,-root-ca-publisher").wait_ready()
    code, text = instance.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}]})[:2]
    assert code == 201, text
    holdfastd.wait_until("the binding to count", lambda: all(get(instance, "/api/v1/namespaces/default", user)[0] == 200 for user in ("slow", "good")))
    return instance


def get(instance, path, token, timeout=60):
    headers = {"authorization": f"Bearer {token}"}
    return instance.request("GET", path, headers=headers, client_certificate=False, timeout=timeout)


def metric(instance, name):
    text = instance.get("/metrics")[1]
    return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))


def n_items(text):
    return len(json.loads(text)["items"])


def test_unread_lists_occupy_no_place(filled):
    readers = [Unread(filled, LIST, "slow") for _ in range(N_READERS)]
    holdfastd.wait_until("the account to be full", lambda: metric(
        filled, "holdfast_unsent_bytes") > 60 << 20)
    for _ in range(20):
        code, text = get(filled, "/api/v1/namespaces/default", "good")
        assert code == 200, text
        code, text = get(filled, LIST, "good")
        assert code == 200, text
        assert n_items(text) >= N_OBJECTS
        # The user has reached the limit for lists, and still gets single objects and Leases.
        assert get(filled, "/api/v1/namespaces/default", "slow")[0] == 200
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/holdfast-controllers"
    assert get(filled, leases, "slow")[0] == 200
    assert metric(filled, "holdfast_unsent_bytes") <= 65 << 20
    # A user may have 256 unread lists; the others of these requests get a 429.
    for reader in readers:
        reader.close()
    holdfastd.wait_until("the accounts to be empty",
                         lambda: metric(filled, "holdfast_unsent_bytes") == 0)
    code, text = get(filled, LIST, "slow")
    assert code == 200 and n_items(text) >= N_OBJECTS


def test_a_stalled_reader_is_cut_for_another_list(filled):
    readers = [Unread(filled, LIST, "slow") for _ in range(300)]
    holdfastd.wait_until("the account to be full",
                         lambda: metric(filled, "holdfast_unsent_full_total") > 0)
    holdfastd.wait_until("room for another list", lambda: get(filled, LIST, "slow")[0] == 200,
                         every=0.5)
    assert metric(filled, "holdfast_unsent_cut_total") > 0
    for reader in readers:
        reader.close()


def test_the_server_stops_with_unread_answers(filled):
    readers = [Unread(filled, LIST, "slow") for _ in range(20)]
    readers += [Unread(filled, LIST + "?watch=true", "slow") for _ in range(20)]
    holdfastd.wait_until("the lists to begin",
                         lambda: metric(filled, "holdfast_unsent_bytes") > 0)
    for reader in readers:
        reader.close()
    filled.send(15)
    assert filled.wait() == 0, filled.log_text()


def test_same_list_in_every_form(filled):
    """A list that is sent in pieces is one valid document in each format, also where two pieces meet."""
    whole = json.loads(get(filled, LIST, "good")[1])
    assert whole["kind"] == "ConfigMapList" and "continue" not in whole["metadata"]
    names = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in whole["items"]]
    assert names == sorted(names) and len(set(names)) == len(names) >= N_OBJECTS
    assert all(item["metadata"]["resourceVersion"] for item in whole["items"])
    paged, token = [], ""
    while token is not None:
        page = json.loads(get(filled, f"{LIST}?limit=400&continue={token}", "good")[1])
        paged += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        token = page["metadata"].get("continue")
    assert paged == names
    tenth = json.loads(get(filled, f"{LIST}?labelSelector=tenth%3D3", "good")[1])["items"]
    assert len(tenth) == N_OBJECTS // 10
    none = json.loads(get(filled, f"{LIST}?labelSelector=tenth%3Dnone", "good")[1])["items"]
    assert none == []
    for accept, kind, member in (
            ("application/json;as=Table;v=v1;g=meta.k8s.io", "Table", "rows"),
            ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
             "PartialObjectMetadataList", "items")):
        code, text = filled.request("GET", LIST, headers={"accept": accept}, timeout=60)
        assert code == 200
        got = json.loads(text)
        assert got["kind"] == kind and len(got[member]) == len(names)
    pretty = get(filled, f"{LIST}?limit=500&pretty=true", "good")[1]
    assert pretty.startswith("{\n") and n_items(pretty) == 500


class Watch(threading.Thread):
    """Reads a watch, and collects its events."""

    def __init__(self, instance, query, accept=None):
        super().__init__(daemon=True)
        url = urllib.parse.urlsplit(instance.url)
        self.connection = http.client.HTTPSConnection(url.hostname, url.port,
                                                      context=instance.context(), timeout=60)
        self.connection.request("GET", f"{LIST}?watch=true&{query}",
                                headers={"accept": accept} if accept else {})
        self.response = self.connection.getresponse()
        self.events = []

    def read_until(self, condition):
        while True:
            line = self.response.readline()
            assert line, "the watch has ended"
            self.events.append(json.loads(line))
            if condition(self.events[-1]):
                return self.events

    def close(self):
        self.connection.close()


INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def is_initial_end(event):
    return event["type"] == "BOOKMARK" and event["object"]["metadata"].get(
        "annotations", {}).get("k8s.io/initial-events-end") == "true"


@pytest.mark.parametrize("version", ["", "0", "1"])
def test_initial_events(filled, version):
    """The watch delivers every object as ADDED, in order, then the bookmark, then later changes."""
    watch = Watch(filled, f"{INITIAL}&resourceVersion={version}")
    assert watch.response.status == 200
    events = watch.read_until(is_initial_end)
    names = [event["object"]["metadata"]["name"] for event in events[:-1]]
    assert {event["type"] for event in events[:-1]} == {"ADDED"}
    listed = json.loads(get(filled, LIST, "good")[1])
    assert names == [item["metadata"]["name"] for item in listed["items"]]
    bookmark = events[-1]["object"]
    assert bookmark["kind"] == "ConfigMap"
    assert int(bookmark["metadata"]["resourceVersion"]) >= max(
        int(event["object"]["metadata"]["resourceVersion"]) for event in events[:-1])
    code, text = filled.request("POST", "/api/v1/namespaces/default/configmaps",
                                {"metadata": {"name": "later"}})
    assert code == 201, text
    event = watch.read_until(lambda event: event["type"] != "BOOKMARK")[-1]
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "later")
    watch.close()


def test_initial_events_in_other_forms(filled):
    watch = Watch(filled, f"{INITIAL}&labelSelector=tenth%3D7",
                  "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json")
    events = watch.read_until(is_initial_end)
    assert len(events) == N_OBJECTS // 10 + 1
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    watch.close()
    # Without initial events the watch delivers only changes from now on.
    watch = Watch(filled, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
                  "&allowWatchBookmarks=true")
    code, text = filled.request("POST", "/api/v1/namespaces/default/configmaps",
                                {"metadata": {"name": "later"}})
    assert code == 201, text
    assert watch.read_until(lambda event: True)[0]["object"]["metadata"]["name"] == "later"
    watch.close()
    # A revision that the store has not reached.
    watch = Watch(filled, f"{INITIAL}&resourceVersion=999999999")
    assert watch.response.status == 504
    watch.close()


def test_unread_watches_share_their_initial_events(filled):
    """Each unread watch costs the server a cursor, not a copy of all objects."""
    def resident():
        status = open(f"/proc/{filled.pid}/status", encoding="ascii").read()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) << 10
    before = resident()
    n = 100
    watches = unread_watches(filled, n, "watch=true")
    # All watches together take less memory than copies of all objects for a quarter of them.
    assert resident() - before < n // 4 * N_OBJECTS * OBJECT_BYTES
    code, text = get(filled, LIST, "good")
    assert code == 200 and n_items(text) >= N_OBJECTS
    for watch in watches:
        watch.close()


class Late(threading.Thread):
    """Reads a response that was left unread. `text` is all of it, once it has ended."""

    def __init__(self, unread):
        super().__init__(daemon=True)
        self.unread, self.text = unread, None
        self.start()

    def run(self):
        text = b""
        try:
            while not text.endswith(b"\r\n0\r\n\r\n"):
                part = self.unread.tls.recv(1 << 16)
                if not part:
                    return
                text += part
        except (OSError, ValueError):
            return
        self.text = text

    def close(self):
        if self.is_alive():
            self.unread.tls.shutdown(socket.SHUT_RDWR)
        self.join(60)
        self.unread.close()


def test_unread_watches_are_ended_when_the_account_is_full(filled):
    """Unread events of a user's watches count against a limit. Above it, the slow watch with the most of them is ended. Other watches lose nothing."""
    objects = "/api/v1/namespaces/default/configmaps"
    revision = json.loads(get(filled, LIST + "?limit=1", "good")[1])["metadata"]["resourceVersion"]
    good = Watch(filled, f"resourceVersion={revision}")
    watches = unread_watches(filled, 60, f"watch=true&resourceVersion={revision}")
    count = 0

    def write():
        nonlocal count
        count += 1
        method, path = ("POST", objects) if count == 1 else ("PUT", f"{objects}/large")
        code, text = filled.request(method, path, {
            "metadata": {"name": "large"}, "data": {"v": f"{count} " + "x" * (600 << 10)}})
        assert code in (200, 201), text
        assert good.read_until(lambda event: True)[-1]["object"]["data"]["v"].startswith(f"{count} ")
        return metric(filled, "holdfast_unsent_bytes")
    holdfastd.wait_until("the account to be full", lambda: write() > 64 << 20)
    # A watch is ended only after it has been behind for some seconds.
    holdfastd.wait_until("watches to be ended", lambda: write() <= 64 << 20, every=0.5)
    ended = metric(filled, "holdfast_unsent_watches_ended_total")
    assert 0 < ended <= len(watches)
    assert metric(filled, "holdfast_unsent_cut_total") == 0
    # No request is refused because of watches, and other users notice nothing.
    for user in ("slow", "good"):
        code, text = get(filled, LIST, user)
        assert code == 200 and n_items(text) >= N_OBJECTS
    # An ended watch still delivers whole events, and its response ends properly.
    readers = [Late(watch) for watch in watches]
    text = holdfastd.wait_until("the end of a response", lambda: next(
        (reader.text for reader in readers if reader.text), None))
    assert b'"large"' in text
    for reader in readers:
        reader.close()
    holdfastd.wait_until("the accounts to be empty",
                         lambda: metric(filled, "holdfast_unsent_bytes") == 0)
    write()
    good.close()
