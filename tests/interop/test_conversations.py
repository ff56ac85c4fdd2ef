# SPDX-License-Identifier: Apache-2.0
"""Recorded conversations of client-go 0.36 and controller-runtime 0.24, replayed without Go against a fresh server.

conversation.py says what a record contains. The programs put a recorder between the client and its transport; typed clients of RBAC, informers and the older
records use protobuf, the others JSON. Those whose names begin with workloads- need --runtime-config=api/workloads=true. A request is sent as the Go program sent it, with the versions and uids of this server in the place of the
recorded ones; a watch stays open until everything that the Go program saw has arrived."""
import base64
import contextlib
import http.client
import json
import pathlib
import threading

import pytest
from conversation import OURS, decode_body, ends_initial_events, frames_of, holds_of, is_watch, our_objects, seen_frames, value_at, with_values
from holdfastd import wait_until
from memory_server import MemoryServer

DIRECTORY = pathlib.Path(__file__).parent / "conversations"


class Watch:
    """An open watch, whose stream a thread reads."""

    def __init__(self, api, path, headers):
        self.connection = http.client.HTTPSConnection(api.address, timeout=60, context=api.context)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        self.code, self.content = self.response.status, self.response.getheader("content-type")
        self.data = b""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            while piece := self.response.read1(65536):
                self.data += piece
        except (OSError, ValueError, http.client.HTTPException):
            pass  # the test has closed it

    def frames(self):
        return frames_of(self.data, self.content)

    def close(self):
        self.connection.sock and self.connection.sock.shutdown(2)
        self.thread.join(30)
        self.connection.close()


class Replay:
    def __init__(self, api, entries):
        self.api, self.entries = api, entries
        self.answers = {}  # of each request: a document, or a Watch

    def value(self, reference):
        answer = self.answers[reference[0]]
        if not isinstance(answer, Watch):
            return value_at(answer, reference[1])
        wait_until("the event", lambda: len(our_objects(answer.frames())) > reference[2])
        return value_at(our_objects(answer.frames())[reference[2]], reference[1])

    def ask(self, entry, path, body):
        headers = {"user-agent": entry.get("agent", "recorder"), "accept": entry.get("accept"), "content_type": entry.get("type")}
        return self.api.ask(entry["ask"][0], path, body or None, **headers)

    def step(self, i, entry):
        sent = base64.b64decode(entry["protobuf"]) if "protobuf" in entry else entry.get("body", "").encode()
        path, body = with_values(entry, sent, {old: self.value(reference) for old, reference in entry.get("uses", {}).items()})
        what = f"request {i}: {entry['ask'][0]} {path}"
        if is_watch(entry):
            watch = self.answers[i] = Watch(self.api, path, {"User-Agent": "recorder", "Accept": entry["accept"]})
            assert (watch.code, watch.content) == (entry["code"], entry["content"]), what
            if any(frame[0] == "SYNCED" for frame in entry["frames"]):  # the Go program waited for this bookmark too
                wait_until(what, lambda: any(ends_initial_events(*frame) for frame in watch.frames()))
            return
        reply = self.ask(entry, path, body)
        # The effect of a controller takes a moment, also until a custom kind is served: a 404 changes nothing.
        if not self.is_as_recorded(reply, entry) and (entry["ask"][0] == "GET" or reply.code == 404):
            replies = []
            with contextlib.suppress(AssertionError):  # those below say what differs
                wait_until(what, lambda: replies.append(self.ask(entry, path, body)) or self.is_as_recorded(replies[-1], entry), limit=20)
            reply = replies[-1]
        assert reply.code == entry["code"], f"{what}: {reply.bytes[:500]}"
        assert reply.headers.get("content-type", "") == entry["content"], what
        self.answers[i] = decode_body(reply.bytes)
        assert holds_of(self.answers[i]) == entry.get("holds", {}), what

    @staticmethod
    def is_as_recorded(reply, entry):
        """Only a GET can have other contents at first: the status of a definition, for example, is written by a controller."""
        return reply.code == entry["code"] and (entry["ask"][0] != "GET" or holds_of(decode_body(reply.bytes)) == entry.get("holds", {}))

    def run(self):
        try:
            for i, entry in enumerate(self.entries):
                self.step(i, entry)
            for i, entry in enumerate(self.entries):
                if is_watch(entry):
                    expected, watch = entry["frames"], self.answers[i]
                    wait_until(f"{len(expected)} events of {entry['ask'][1]}", lambda n=len(expected), w=watch: len(seen_frames(w.frames())) >= n)
                    assert seen_frames(watch.frames())[:len(expected)] == expected, entry["ask"][1]
        finally:
            for answer in self.answers.values():
                if isinstance(answer, Watch):
                    answer.close()


@pytest.mark.parametrize("name", sorted(path.stem for path in DIRECTORY.glob("*.json")))
def test_a_conversation_goes_as_it_was_recorded(name):
    entries = json.loads((DIRECTORY / f"{name}.json").read_text())
    with MemoryServer(*(["--runtime-config=api/workloads=true"] if name.startswith("workloads-") else [])) as api:
        Replay(api, entries).run()


def test_the_records_are_checked():
    """Tests the comparison itself: it finds a wrong name, a missing event and a changed field."""
    item = {"kind": "ConfigMap", "metadata": {"name": OURS + "-x", "labels": {}}, "data": {"a": "1"}}
    assert holds_of(item) != holds_of({**item, "data": {"a": "2"}})
    assert holds_of(item) != holds_of({**item, "metadata": {"name": OURS + "-y", "labels": {}}})
    assert seen_frames([("ADDED", item)]) == [["ADDED", "ConfigMap", OURS + "-x"]] != seen_frames([("MODIFIED", item)])
