# SPDX-License-Identifier: Apache-2.0
"""The witness watches etcd itself, without holdfastd, through each member at the same time."""
import base64
import http.client
import json
import threading
import time

from history import WRITER_LEASE, value_of
from holdfastd import wait_until

TERMS, PREFIX = "/registry.holdfast/terms/", "/registry/configmaps/default/"


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Witness:
    """Every event of ConfigMaps in default and of term records, from each member by a watch of its
    own, so a member that stands still hides nothing."""

    def __init__(self, members):
        self.members = members
        self.mutex = threading.Lock()
        self.events = {}  # (revision, key): the event
        self.start = self.revision()
        self.reached = [self.start] * len(members)
        self.errors = []
        self.stop = threading.Event()
        self.streams = [None] * len(members)
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(len(members))]
        for thread in self.threads:
            thread.start()

    def revision(self):
        """etcd's newest revision, by a consistent read."""
        for member in self.members:
            try:
                reply = member.post("/v3/kv/range", {"key": b64("x")})
                return int(reply["header"]["revision"])
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                continue
        return 0

    def progress(self):
        with self.mutex:
            return max(self.reached)

    def run(self, i):
        while not self.stop.is_set():
            try:
                self.follow(i)
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                pass
            self.stop.wait(0.2)

    def follow(self, i):
        connection = http.client.HTTPConnection("127.0.0.1", self.members[i].client_port, timeout=6)
        self.streams[i] = connection
        create = {"key": b64("/registry"), "range_end": b64("/registry0"),
                  "start_revision": self.reached[i] + 1}
        try:
            connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
            response = connection.getresponse()
            while not self.stop.is_set() and (line := response.readline()):
                self.take(i, json.loads(line)["result"])
        finally:
            connection.close()

    def take(self, i, result):
        if int(result.get("compact_revision", 0)):
            with self.mutex:  # the others have it, or the check of the versions says so
                self.reached[i] = max(self.reached[i], int(result["compact_revision"]) - 1)
            raise OSError("compacted")
        events = [self.event(e) for e in result.get("events", [])]
        with self.mutex:
            for event in events:
                if event["key"].startswith((PREFIX, TERMS)):
                    self.events.setdefault((event["rev"], event["key"]), event)
                self.reached[i] = max(self.reached[i], event["rev"])

    @staticmethod
    def event(raw):
        kv = raw["kv"]
        key = base64.b64decode(kv["key"]).decode()
        event = {"t": time.monotonic_ns(), "rev": int(kv["mod_revision"]), "key": key, "type": raw.get("type", "PUT"),
                 "version": int(kv.get("version", 0)), "value": None, "term": 0, "lease": None}
        if key.startswith(PREFIX) and event["type"] == "PUT":
            data = json.loads(base64.b64decode(kv["value"])).get("data") or {}
            event["value"] = value_of(key[len(PREFIX):], event["rev"], data)
            event["term"] = int(data.get("term", 0))
            event["lease"] = data.get("lease", WRITER_LEASE)
        return event

    def finish(self, revision):
        """Waits until it has everything up to that revision."""
        wait_until("the witness", lambda: self.progress() >= revision, limit=60)
        self.stop.set()
        for thread in self.threads:
            thread.join(10)
        with self.mutex:
            return [self.events[k] for k in sorted(self.events)]
