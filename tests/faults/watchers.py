# SPDX-License-Identifier: Apache-2.0
"""Clients that watch: after a list, or with initial events."""
import time

from clients import CONFIGMAPS, Client, seen


class Watcher(Client):
    """Lists, watches, and watches on from where it was, as an informer does. It stays with one
    instance, or it roams: each request may go to another one."""
    writes = False
    lasts = (1, 4, 15, 60)  # seconds; what it asks for

    def __init__(self, run, name, index, seed, roams=False, key=None):
        super().__init__(run, name, index, seed)
        self.roams, self.key, self.revision = roams, key, None
        self.steps = []
        self.newest = 0  # the newest revision that it knows of
        run.recorder.add("watch", {"client": name, "name": key, "steps": self.steps})

    def selector(self):
        return f"&fieldSelector=metadata.name%3D{self.key}" if self.key else ""

    def step(self):
        if self.roams:
            self.api.close()
            self.api.index = self.dice.randrange(len(self.run_of.urls))
        good = self.follow() if self.revision is not None else self.start_over()
        if not good:
            self.run_of.stop.wait(0.1)

    def start_over(self):
        code, reply = self.api.ask("GET", f"{CONFIGMAPS}?limit=0{self.selector()}")
        if code != 200:
            return False
        self.revision = self.newest = int(reply["metadata"]["resourceVersion"])
        items = {i["metadata"]["name"]: seen(i) for i in reply["items"]}
        self.steps.append(["list", self.revision, items])
        return True

    def follow(self):
        seconds = self.dice.choice(self.lasts)
        path = (f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={self.revision}"
                f"&timeoutSeconds={seconds}{self.selector()}")
        self.steps.append(["open", self.api.index, self.revision])
        code = -1
        for code, event in self.api.watch(path):
            if event is None:
                if code == 410:
                    self.revision = None
                    return False
                continue
            self.take(event)
            if self.revision is None or self.run_of.stop.is_set():
                break
        return code == 0

    def take(self, event):
        if event["type"] == "ERROR":
            if event["object"].get("code") == 410:
                self.revision = None
            return
        meta = event["object"]["metadata"]
        self.revision = int(meta["resourceVersion"])
        self.newest = max(self.newest, self.revision)
        if event["type"] == "BOOKMARK":
            self.steps.append(["bookmark", self.revision])
        else:
            self.steps.append(["event", event["type"], meta["name"], *seen(event["object"]),
                               time.monotonic_ns()])


class ListWatcher(Watcher):
    """Begins with the initial events of a watch instead of a list, as newer informers do, and often
    begins again."""
    lasts = (1, 1, 1, 4)

    def step(self):
        if self.revision is not None and self.dice.random() < 0.7:
            self.revision = None
        super().step()

    def start_over(self):
        least = self.dice.choice(("", "0", str(self.newest)))
        seconds = self.dice.choice(self.lasts)
        path = (f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                f"&resourceVersionMatch=NotOlderThan&resourceVersion={least}&timeoutSeconds={seconds}")
        t0, initial = time.monotonic_ns(), []
        for _, event in self.api.watch(path):
            if event is None:
                continue
            if self.revision is not None:
                self.take(event)
                if self.revision is None:
                    break
            elif event["type"] == "ERROR":
                break
            else:
                self.take_initial(event, initial, least, t0)
            if self.run_of.stop.is_set():
                break
        return self.revision is not None

    def take_initial(self, event, initial, least, t0):
        meta = event["object"]["metadata"]
        if event["type"] != "BOOKMARK":
            initial.append([event["type"], meta["name"], *seen(event["object"])])
        elif meta.get("annotations", {}).get("k8s.io/initial-events-end") == "true":
            self.revision = int(meta["resourceVersion"])
            self.newest = max(self.newest, self.revision)
            self.steps.append(["initial", self.revision, initial, least, t0])
        else:  # none may come before the end of the initial events: the checker finds it wrong
            initial.append(["BOOKMARK", "", int(meta["resourceVersion"]), None])
