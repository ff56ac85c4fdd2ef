# SPDX-License-Identifier: Apache-2.0
"""Carries out a schedule of faults."""
import http.client
import signal
import threading
import time


class Faults:
    """The faults of a schedule, and when each ends. tick() is called again and again, by the thread that
    started all processes."""

    def __init__(self, world, faults, begin, record):
        self.world, self.begin, self.record = world, begin, record
        self.todo = [(f.at, i, lambda f=f: self.inject(f)) for i, f in enumerate(faults)]
        self.todo.sort(key=lambda t: t[:2])
        self.counts = {}
        self.serial = len(self.todo)

    def tick(self):
        """Does what is due; returns whether anything is left."""
        now = time.monotonic() - self.begin
        while self.todo and self.todo[0][0] <= now:
            self.todo.pop(0)[2]()
        self.world.keep()
        return bool(self.todo)

    def later(self, fault, action):
        self.serial += 1
        self.todo.append((fault.at + fault.lasts, self.serial, action))
        self.todo.sort(key=lambda t: t[:2])

    def inject(self, fault):
        did = getattr(self, fault.kind.replace("-", "_"))(fault)
        self.counts[fault.kind] = self.counts.get(fault.kind, 0) + (did is not False)
        self.record({"t": time.monotonic_ns(), "kind": fault.kind, "target": fault.target,
                     "other": fault.other, "lasts": fault.lasts, "did": did is not False})

    # ---- members ----

    def stop_member(self, i, fault):
        member = self.world.members[i]
        if not member.alive():
            return False
        member.send(signal.SIGSTOP)
        pid = member.pid
        self.later(fault, lambda: member.alive() and member.pid == pid and member.send(signal.SIGCONT))
        return True

    def kill_member(self, i, fault):
        member = self.world.members[i]
        if not member.alive():
            return False
        member.send(signal.SIGKILL)
        member.child.wait()
        self.later(fault, lambda: member.alive() or member.restart())
        return True

    def member_stop(self, fault):
        return self.stop_member(fault.target, fault)

    def watched_stop(self, fault):
        return self.stop_member(self.world.watched(fault.target), fault)

    def leader_stop(self, fault):
        i = self.world.leader()
        return self.stop_member(fault.other if i is None else i, fault)

    def two_stop(self, fault):
        return self.stop_member(fault.target, fault) | self.stop_member((fault.target + 1) % 3, fault)

    def member_kill(self, fault):
        return self.kill_member(fault.target, fault)

    def leader_kill(self, fault):
        i = self.world.leader()
        return self.kill_member(fault.other if i is None else i, fault)

    def compact(self, _fault):
        return self.maintain("/v3/kv/compaction", {"revision": str(self.world.witness.progress())})

    def defrag(self, fault):
        return self.maintain("/v3/maintenance/defragment", {}, fault.target)

    def maintain(self, path, body, first=0):
        """Asks one member after the other, in a thread of its own, until one accepts the
        request."""
        members = [self.world.members[(first + i) % 3] for i in range(3)]

        def run():
            for member in members:
                try:
                    member.post(path, body)
                    return
                except (OSError, http.client.HTTPException, ValueError):
                    continue
        threading.Thread(target=run, daemon=True).start()

    # ---- links ----

    def hang(self, links, fault):
        for link in links:
            self.world.links.ask(link=link, hang=fault.directions)

        def end():
            for link in links:
                if fault.cut:
                    self.world.links.ask(link=link, cut=True)
                self.world.links.ask(link=link, hang=[])
        self.later(fault, end)

    def link_hang(self, fault):
        self.hang([self.world.link(fault.target, fault.other)], fault)

    def links_hang(self, fault):
        self.hang([self.world.link(fault.target, m) for m in range(3)], fault)

    def watched_hang(self, fault):
        self.hang([self.world.link(fault.target, self.world.watched(fault.target))], fault)

    def peer_hang(self, fault):
        self.hang([self.world.peer_link(fault.target)], fault)

    def link_cut(self, fault):
        for m in range(3):
            self.world.links.ask(link=self.world.link(fault.target, m), cut=True)

    def peer_cut(self, fault):
        self.world.links.ask(link=self.world.peer_link(fault.target), cut=True)

    # ---- instances ----

    def instance_pause(self, fault):
        instance = self.world.instances[fault.target]
        if fault.target in self.world.down or not instance.alive():
            return False
        instance.send(signal.SIGSTOP)
        self.later(fault, lambda: instance.alive() and instance.send(signal.SIGCONT))
        return True

    def end_instance(self, fault, number):
        i, world = fault.target, self.world
        instance = world.instances[i]
        if i in world.down or not instance.alive():
            return False
        world.down.add(i)
        world.urls[i] = None
        instance.send(number)
        if number != signal.SIGTERM:
            instance.send(signal.SIGCONT)
        self.later(fault, lambda: self.begin_instance(fault, instance))
        return True

    def begin_instance(self, fault, instance):
        """An orderly stop may take some time: then it looks again later."""
        if instance.alive() and instance.child.poll() is None:
            self.serial += 1
            self.todo.append((time.monotonic() - self.begin + 0.2, self.serial,
                              lambda: self.begin_instance(fault, instance)))
            self.todo.sort(key=lambda t: t[:2])
            return
        if fault.target in self.world.down:
            self.world.start(fault.target)

    def instance_kill(self, fault):
        return self.end_instance(fault, signal.SIGKILL)

    def instance_term(self, fault):
        return self.end_instance(fault, signal.SIGTERM)
