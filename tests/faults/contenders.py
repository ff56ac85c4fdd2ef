# SPDX-License-Identifier: Apache-2.0
"""Clients that contend for a Lease, and write under its fence."""
import time

from clients import (CONFIGMAPS, FENCED, LEASE, LEASES, PATCHES, Client, cause_of, outcome_of)


class Contender(Client):
    """Takes a Lease whenever it likes, and writes under its fence, also long after another one took
    the Lease. It neither renews nor waits: whether writes of an old term are refused is up to the
    server alone."""

    def __init__(self, run, name, index, seed):
        super().__init__(run, name, index, seed)
        self.term, self.holder, self.turn, self.refused = 0, "", 0, 0
        self.fence = (0, "")  # of the latest term that it had, for its sweeper
        self.exists = False

    def step(self):
        if not self.term or self.refused > 5 or self.dice.random() < 0.03:
            self.take()
            self.run_of.stop.wait(self.dice.uniform(0.2, 1.0))
        else:
            self.fenced_write()
            self.run_of.stop.wait(self.dice.uniform(0.02, 0.15))

    def headers(self):
        return {"Holdfast-Fence": f"{LEASE};{self.term};{self.holder}"}

    def lease(self, found):
        meta = {"name": "faults", "namespace": "default"}
        if found:
            meta["resourceVersion"] = found["metadata"]["resourceVersion"]
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta,
                "spec": {"holderIdentity": self.holder, "leaseDurationSeconds": 10,
                         "acquireTime": f"2026-01-01T00:00:00.{self.turn:06d}Z"}}

    def take(self):
        self.term, self.refused, self.turn = 0, 0, self.turn + 1
        code, found = self.api.ask("GET", f"{LEASES}/faults")
        if code not in (200, 404):
            return
        self.holder = f"{self.name}-{self.turn}"
        t0 = time.monotonic_ns()
        if code == 200:
            code, reply = self.api.ask("PUT", f"{LEASES}/faults", self.lease(found))
        else:
            code, reply = self.api.ask("POST", LEASES, self.lease(None))
        outcome = outcome_of(code)
        rv = int(reply["metadata"]["resourceVersion"]) if outcome == "ok" else 0
        self.run_of.recorder.add("take", {
            "client": self.name, "instance": self.index, "lease": LEASE, "holder": self.holder,
            "t0": t0, "t1": time.monotonic_ns(), "outcome": outcome, "rv": rv, "code": code})
        if outcome == "unknown":
            rv = self.recover()
        self.term = rv
        if rv:
            self.fence = (rv, self.holder)

    def recover(self):
        """After an unknown outcome: did it take the Lease? Then its version is the term."""
        code, found = self.api.ask("GET", f"{LEASES}/faults")
        if code == 200 and found["spec"].get("holderIdentity") == self.holder:
            return int(found["metadata"]["resourceVersion"])
        return 0

    def fenced_body(self, value):
        body = self.body(FENCED, value)
        body["data"].update(term=str(self.term), lease=LEASE)
        return body

    def fenced_write(self):
        value, t0 = self.new_value(), time.monotonic_ns()
        op, method, path, body, kind = "create", "POST", CONFIGMAPS, self.fenced_body(value), None
        if self.exists:
            op, method, path = "update", "PUT", f"{CONFIGMAPS}/{FENCED}"
            if self.dice.random() < 0.4:
                op, method, kind = "patch", "PATCH", PATCHES["merge"]
                body = {"data": body["data"]}
            elif self.dice.random() < 0.1:
                op, method, body, value = "delete", "DELETE", None, None
        code, reply = self.api.ask(method, path, body, kind or "application/json", self.headers())
        self.record(op, FENCED, t0, code, reply, value, term=self.term)
        self.look(op, code, reply)

    def look(self, op, code, reply):
        if cause_of(reply) == "StaleLeaderTerm":
            self.refused += 1
        elif code in (200, 201):
            self.exists = op != "delete"
        elif code in (404, 409):
            self.exists = code == 409


class Sweeper(Client):
    """Deletes, under the fence of a term of its contender, all that has a label which nothing has. It
    keeps the term for seconds after the contender has given it up. Such a request writes nothing, so
    the server has nothing but the fence to find out that the term is over."""

    def __init__(self, run, name, index, seed, contender):
        super().__init__(run, name, index, seed)
        self.contender, self.fence, self.until = contender, (0, ""), 0

    def step(self):
        if time.monotonic() > self.until:
            self.fence = self.contender.fence
            self.until = time.monotonic() + self.dice.uniform(1, 8)
        if self.fence[0]:
            self.sweep(*self.fence)
        self.run_of.stop.wait(self.dice.uniform(0.05, 0.2))

    def sweep(self, term, holder):
        t0 = time.monotonic_ns()
        code, _ = self.api.ask("DELETE", f"{CONFIGMAPS}?labelSelector=none%3Dsuch",
                               headers={"Holdfast-Fence": f"{LEASE};{term};{holder}"})
        self.run_of.recorder.add("sweep", {
            "op": "deletecollection", "key": "nothing", "client": self.name, "instance": self.index,
            "t0": t0, "t1": time.monotonic_ns(), "outcome": outcome_of(code), "code": code,
            "term": term, "lease": LEASE})
