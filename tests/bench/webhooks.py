# SPDX-License-Identifier: Apache-2.0
"""webhooks.py [SECONDS]: what a hung, a lying and a slow webhook do to others. A good client writes Secrets, which no webhook is asked about,
at rest and while 64 victims write ConfigMaps that one of the three webhooks is asked about. An honest webhook is the bound: it costs the
machine the same processor time. Printed: the good client's times, how often the webhook was called, and how long each kind of answer took
the victims, with the reason that it names."""
import collections
import http.client
import json
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from holdfastd import wait_until  # noqa: E402
from memory_server import MemoryServer  # noqa: E402
from webhook_server import WebhookServer  # noqa: E402

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
TIMEOUT = 3  # of each webhook, seconds
SLOW = 1  # how long the slow one takes, seconds
VICTIMS = 64  # more than the places that one webhook has (50)
MODES = {"honest": "a webhook allows all", "hang": "a webhook hangs", "lie": "a webhook lies", "slow": f"a webhook takes {SLOW} s"}


def lie(_):
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "another", "allowed": True}}).encode()


def serve(pipe):
    """The webhooks, in a process of their own. Sends their client configurations; ends with the pipe."""
    with tempfile.TemporaryDirectory() as directory, WebhookServer(pathlib.Path(directory)) as hooks:
        hooks.answers.update({"/honest": lambda _: {}, "/hang": lambda _: {}, "/lie": lie, "/slow": lambda _: time.sleep(SLOW) or {}})
        pipe.send({mode: hooks.client(f"/{mode}") for mode in MODES})
        while True:
            try:
                mode = pipe.recv()
            except EOFError:
                return
            pipe.send(len(hooks.calls(f"/{mode}")))


class Client:
    """One connection that is kept."""

    def __init__(self, address, context):
        self.connection = http.client.HTTPSConnection(address, timeout=60, context=context)

    def ask(self, method, path, body):
        self.connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read()), response.getheader("retry-after")


def suffer(server, mode, pipe):
    """The victims, in a process of their own: each writes one after the other until the pipe says stop."""
    stop, lock, seen = threading.Event(), threading.Lock(), collections.defaultdict(list)
    reasons = {}

    def write(i):
        client, n = Client(server.address, server.context), 0
        while not stop.is_set():
            n += 1
            began = time.monotonic()
            code, reply, after = client.ask("POST", MAPS + "?dryRun=All", {"metadata": {"name": f"victim-{i}-{n}", "labels": {"on": mode}}})
            with lock:
                seen[code].append(time.monotonic() - began)
                reasons[code] = reply.get("message", "")
            if after:
                stop.wait(int(after))

    threads = [threading.Thread(target=write, args=(i,), daemon=True) for i in range(VICTIMS)]
    for thread in threads:
        thread.start()
    pipe.send("started")
    pipe.recv()
    stop.set()
    for thread in threads:
        thread.join()
    pipe.send((dict(seen), reasons))


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000


def write_secrets(server, seconds):
    """The good client: creates and deletes one Secret after the other. Returns the times of its creates."""
    client, times, end, n = Client(server.address, server.context), [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        n += 1
        began = time.monotonic()
        code, reply, _ = client.ask("POST", SECRETS, {"metadata": {"name": f"good-{n}"}})
        times.append(time.monotonic() - began)
        assert code == 201, reply
        assert client.ask("DELETE", f"{SECRETS}/good-{n}", {})[0] == 200
    return times


def show(what, times, at_rest):
    p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
    ratio = "" if times is at_rest else f"   {p50 / percentile(at_rest, 0.5):.2f} and {p99 / percentile(at_rest, 0.99):.2f} of at rest"
    print(f"good client, {what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {max(times) * 1000:.1f} ms, of {len(times)}{ratio}")


def measure(context, server, mode, seconds, at_rest):
    ours, theirs = context.Pipe()
    process = context.Process(target=suffer, args=(server, mode, theirs), daemon=True)
    process.start()
    ours.recv()
    times = write_secrets(server, seconds)
    ours.send("stop")
    seen, reasons = ours.recv()
    process.join()
    show(f"while {MODES[mode]}", times, at_rest)
    for code, taken in sorted(seen.items()):
        print(f"    victims, {code}: {len(taken)}, median {statistics.median(taken) * 1000:.1f} ms, p99 {percentile(taken, 0.99):.1f} ms, "
              f"max {max(taken) * 1000:.1f} ms: {reasons[code] or 'allowed'}")


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    clients = ours.recv()
    with MemoryServer() as server:
        for mode, client in clients.items():
            body = {"metadata": {"name": mode}, "webhooks": [
                {"name": f"{mode}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": client, "rules": [RULE],
                 "objectSelector": {"matchLabels": {"on": mode}}, "timeoutSeconds": TIMEOUT}]}
            reply = server.ask("POST", CONFIGURATIONS, body)
            assert reply.code == 201, reply.text
        lied = {"metadata": {"name": "a", "labels": {"on": "lie"}}}
        wait_until("the webhooks to be in force", lambda: server.ask("POST", MAPS + "?dryRun=All", lied).code == 500)
        at_rest = write_secrets(server, seconds)
        show("at rest", at_rest, at_rest)
        for mode in clients:
            measure(context, server, mode, seconds, at_rest)
            ours.send(mode)
            print(f"    calls of the webhook: {ours.recv()}")
        show("at rest again", write_secrets(server, seconds), at_rest)
    ours.close()
    process.join(10)


if __name__ == "__main__":
    main()
