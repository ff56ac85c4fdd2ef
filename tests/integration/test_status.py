# SPDX-License-Identifier: Apache-2.0
"""`holdfastd status` prints what the witness saw on the Lease."""
import html
import http.server
import json
import os
import pty
import re
import signal
import ssl
import subprocess
import threading

import pytest
from holdfastd import HOLDFASTD, LEASE, LIMIT, ROOT, Process, wait_until
from memory_server import MemoryServer

HISTORY = "holdfast.dev/transitions"


def status(instance, *flags):
    return subprocess.run([HOLDFASTD, "status", f"--data-dir={instance.data}", *flags], capture_output=True, text=True, timeout=LIMIT,
                          check=False)


def picture(instance):
    done = status(instance)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def two(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    return a, cluster.instance("b").wait_ready()


def short(identity):
    _, instance, _, random = identity.split("_")
    return f"{instance}/{random[:4]}"


def acquisitions(cluster):
    """The writes that gave the Lease a new holder, as the witness saw them."""
    seen, last = [], None
    for event in cluster.witness.seen():
        if event["key"] != LEASE or event["type"] != "PUT":
            continue
        spec = event["object"]["spec"]
        if spec["holderIdentity"] and (spec["holderIdentity"], spec["acquireTime"]) != last:
            seen.append(event)
        last = (spec["holderIdentity"], spec["acquireTime"])
    return seen


def history(event):
    return json.loads(event["object"]["metadata"]["annotations"][HISTORY])


def hand_overs(text):
    """Returns [(from, to, cause, gap)], the newest first."""
    table = text[text.index("HAND-OVER"):].splitlines()[1:]
    return [re.fullmatch(r"\S+ ago +(\S+) -> (\S+) +(\S+) +(\S+)", line).groups() for line in table]


def seconds(gap):
    return float(gap[:-2]) / 1000 if gap.endswith("ms") else float(gap[:-1])


def row(text, start):
    return next(line.split() for line in text.splitlines() if line.startswith(start))


def headings(lines):
    return [re.split("  +", line) for line in lines if re.match("(INSTANCE|LEASE|HAND-OVER) ", line)]


def test_the_picture_in_the_documentation_has_the_tables_of_the_output(cluster):
    a, _ = two(cluster)
    drawn = re.findall(r"<text [^>]*>(.*)</text>", (ROOT / "docs" / "status.svg").read_text())
    drawn = [html.unescape(re.sub("<[^>]*>", "", line)) for line in drawn]
    assert len(headings(drawn)) == 3 and headings(drawn) == headings(picture(a).splitlines()), drawn


def is_released(model):
    """Whether the latest hand-over of the controllers' Lease followed a release."""
    return any(x["lease"] == "kube-system/holdfast-controllers" and x["handOvers"][0]["cause"] == "released" for x in model["leases"])


def test_json_has_the_same_model_as_the_text(cluster):
    a, b = two(cluster)
    wait_until("both to be listed", lambda: short(a.identity()) in picture(b) and short(b.identity()) in picture(b))
    done = status(b, "-o", "json")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1, done
    model = json.loads(done.stdout)
    assert model["server"] == b.url and model["readError"] is None and model["omittedInstances"] == model["omittedLeases"] == 0
    assert [(i["identity"], i["instance"], i["endpoint"], i["state"], i["term"]) for i in model["instances"]] == \
        [(a.identity(), "a", a.url, "leading", a.leader()["term"]), (b.identity(), "b", b.url, "following", None)]
    [lease] = [x for x in model["leases"] if x["lease"] == "kube-system/holdfast-controllers"]
    assert (lease["holder"], lease["silent"], lease["term"], lease["durationSeconds"]) == (a.identity(), False, a.leader()["term"], 4)
    assert [(h["from"], h["to"], h["cause"], h["gapMilliseconds"]) for h in lease["handOvers"]] == [(None, a.identity(), "created", None)]
    # A watch prints a line for each new state.
    with Process([HOLDFASTD, "status", f"--data-dir={b.data}", "--watch", "--output=json"], cluster.directory / "watch.log",
                 stdout=subprocess.PIPE) as watch:
        assert [i["state"] for i in json.loads(watch.child.stdout.readline())["instances"]] == ["leading", "following"]
        a.send(signal.SIGTERM)
        assert a.wait() == 0
        # A line may show that b leads with a history that does not contain it yet. Then another line follows.
        while not is_released(last := json.loads(watch.child.stdout.readline())) or last["instances"][-1]["state"] != "leading":
            pass
        watch.send(signal.SIGTERM)
        assert watch.wait() == 0 and watch.log_text() == ""
    # The exit statuses are the same as with the text output.
    assert status(b, "-o", "json", "--kubeconfig=/nonexistent").returncode == 1
    assert status(b, "-o", "yaml").returncode == 2


def test_hand_overs_and_take_overs_are_shown(cluster):
    a, b = two(cluster)
    id_a, id_b = short(a.identity()), short(b.identity())
    wait_until("both to be listed", lambda: id_a in picture(b) and id_b in picture(b))
    text = picture(b)
    assert row(text, id_a)[2:4] == [a.url, "leading"] and row(text, id_b)[2:4] == [b.url, "following"]
    lease = row(text, "kube-system/holdfast-controllers")
    assert lease[1] == id_a and lease[3] == str(a.leader()["term"])
    assert hand_overs(text) == [("nobody", id_a, "created", "-")]

    mark = cluster.witness.mark()
    a.send(signal.SIGTERM)
    released = cluster.witness.wait_holder(lambda h: h == "", "the release", mark)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert a.wait() == 0
    text = picture(b)
    shown = hand_overs(text)
    assert [t[:3] for t in shown] == [(id_a, id_b, "released"), ("nobody", id_a, "created")]
    # The gap is the difference of the clocks of two processes on one machine. The witness measured
    # with its own clock.
    assert abs(seconds(shown[0][3]) - (taken["t"] - released["t"]) / 1e9) < 1
    assert id_a not in text[:text.index("HAND-OVER")]  # a clean stop deletes the identity Lease

    c = cluster.instance("c").wait_ready()
    id_c = short(c.identity())
    mark = cluster.witness.mark()
    b.send(signal.SIGKILL)
    b.child.wait()
    cluster.witness.wait_holder(lambda h: "_c_" in h, "c to lead", mark)
    wait_until("c to know its term", lambda: c.leader()["state"] == "leading")
    text = picture(c)
    shown = hand_overs(text)
    assert [t[:3] for t in shown] == [(id_b, id_c, "expired"), (id_a, id_b, "released"), ("nobody", id_a, "created")]
    assert seconds(shown[0][3]) >= 3.9  # at least the recorded duration
    assert row(text, id_b)[3] == "unreachable" and row(text, id_c)[3] == "leading"

    # The output matches the history on the Lease: one entry for each acquisition, and none for
    # other writes.
    events = acquisitions(cluster)
    assert [(short(e["holder"]), e["cause"]) for e in history(events[-1])] == [(t[1], t[2]) for t in reversed(shown)]
    for n, event in enumerate(events, 1):
        newest = history(event)[-1]
        assert len(history(event)) == n
        assert newest["at"] == event["object"]["spec"]["acquireTime"] and newest["holder"] == event["object"]["spec"]["holderIdentity"]
    code, metrics = c.get("/metrics")
    gap = re.search(r'holdfast_leader_handover_gap_seconds\{lease="kube-system/holdfast-controllers"\} (\S+)', metrics)
    assert code == 200 and abs(float(gap[1]) - history(events[-1])[-1]["gapMs"] / 1000) < 0.01


def test_a_deleted_lease_and_a_broken_history_are_shown(cluster):
    a, b = two(cluster)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/holdfast-controllers"
    mark = cluster.witness.mark()
    assert a.request("DELETE", path)[0] == 200
    cluster.witness.wait_holder(lambda h: h != "", "somebody to lead again", mark)
    assert [h[2] for h in hand_overs(picture(b))] == ["deleted", "created"]

    leader, other = (a, b) if "_a_" in acquisitions(cluster)[-1]["object"]["spec"]["holderIdentity"] else (b, a)
    def annotate():
        lease = json.loads(leader.get(path)[1])
        lease["metadata"]["annotations"].update({HISTORY: "[x", "else": "kept"})
        return leader.request("PUT", path, lease)[0] == 200
    wait_until("the Lease to be edited between two renewals", annotate)
    mark = cluster.witness.mark()
    leader.send(signal.SIGTERM)
    taken = cluster.witness.wait_holder(lambda h: f"_{other.name}_" in h, "the other to lead", mark)
    assert [e["cause"] for e in history(taken)] == ["released"]
    assert taken["object"]["metadata"]["annotations"]["else"] == "kept"


def test_watch_without_a_terminal_prints_changes_only(cluster):
    a, b = two(cluster)
    id_a, id_b = short(a.identity()), short(b.identity())
    wait_until("both to be listed", lambda: id_a in picture(a) and id_b in picture(a))
    out = cluster.directory / "watch.out"
    # The command reads from a, which is about to stop, and continues with b.
    with open(out, "wb") as file:
        watch = cluster.add(Process([HOLDFASTD, "status", "--watch", f"--kubeconfig={a.kubeconfig}"], cluster.directory / "watch.log", stdout=file))
    wait_until("the first picture", lambda: "TERM" in out.read_text())
    mark = cluster.witness.mark()
    # Renewals are no changes: after several renewals the picture was printed only once.
    cluster.witness.wait_for("renewals", lambda e: e["key"] == LEASE and len([1 for x in cluster.witness.events[mark:] if x["key"] == LEASE]) > 6, mark)
    assert out.read_text().count("INSTANCE ") == 1
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    wait_until("the hand-over to be printed", lambda: f"{id_a} -> {id_b}" in out.read_text())
    wait_until("b's picture", lambda: re.search(rf"^{b.url}  \d{{4}}-", out.read_text(), re.MULTILINE))
    watch.send(signal.SIGTERM)
    assert watch.wait() == 0 and watch.log_text() == ""


def test_watch_redraws_in_place_on_a_terminal(cluster):
    a = cluster.instance("a").wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    terminal, inner = pty.openpty()
    watch = cluster.add(Process([HOLDFASTD, "status", "--watch", f"--data-dir={a.data}"], cluster.directory / "watch.log", stdout=inner))
    os.close(inner)
    read = bytearray()

    def drain():
        try:
            while data := os.read(terminal, 65536):
                read.extend(data)
        except OSError:
            pass  # the terminal was closed

    reader = threading.Thread(target=drain)
    reader.start()
    wait_until("to be drawn over twice", lambda: len(re.findall(rb"\x1b\[\d+F", bytes(read))) >= 2)
    watch.send(signal.SIGINT)
    assert watch.wait() == 0
    reader.join(LIMIT)
    os.close(terminal)
    assert b"a/" in read and b"\x1b[K" in read


def test_mistakes_are_one_clear_line(cluster):
    done = subprocess.run([HOLDFASTD, "status", f"--data-dir={cluster.directory}/none"], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"{cluster.directory}/none/admin.kubeconfig" in done.stderr and "--kubeconfig" in done.stderr

    a = cluster.instance("a").wait_ready()
    url = a.url
    a.send(signal.SIGTERM)
    assert a.wait() == 0
    done = status(a)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert url in done.stderr and str(a.kubeconfig) in done.stderr

    broken = cluster.directory / "broken"
    broken.write_text("{")
    done = status(a, f"--kubeconfig={broken}")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and str(broken) in done.stderr


def test_output_that_cannot_be_written_is_one_clear_line():
    with MemoryServer() as server, open("/dev/full", "w") as full:
        done = subprocess.run([HOLDFASTD, "status", f"--kubeconfig={server.kubeconfig}"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                              check=False)
    assert (done.returncode, done.stderr) == (1, "holdfastd status: cannot write to the standard output\n")


class TokenThief:
    """An https server that records the Authorization header of each request. Its certificate is valid for the client."""

    def __init__(self, pki):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "server.crt", pki / "server.key")
        self.got = got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                got.append((self.path, self.headers.get("Authorization")))
                self.send_error(404)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def can_mount():
    """Whether this process may create a mount namespace. In a chroot it may not, because the root is not a mount point."""
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("has_ca", [True, False], ids=["own-ca", "system-cas"])
def test_a_token_goes_to_servers_of_the_kubeconfigs_ca_only(cluster, has_ca):
    """Anyone who may write Leases can publish an endpoint. If only the system's CAs verify it, its certificate proves nothing about the cluster."""
    tokens = cluster.directory / "tokens.csv"
    tokens.write_text("secret-token,someone,1,\"system:masters\"\n")
    a = cluster.instance("a", f"--token-auth-file={tokens}").wait_ready()
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    own = wait_until("the identity Lease", lambda: next(
        (x for x in json.loads(a.get(leases)[1])["items"] if "holdfast.dev/endpoint" in x["metadata"].get("annotations", {})), None))
    pki = cluster.directory / "pki"
    with TokenThief(pki) as thief:
        own["metadata"] = {"name": "holdfastd-thief", "labels": own["metadata"]["labels"], "annotations": {
            **own["metadata"]["annotations"], "holdfast.dev/endpoint": f"https://127.0.0.1:{thief.server.server_port}"}}
        own["spec"]["holderIdentity"] = "host_thief_00000000_00000000"
        assert a.request("POST", leases, own)[0] == 201
        config = a.config()
        config["users"][0]["user"] = {"token": "secret-token"}
        if not has_ca:
            del config["clusters"][0]["cluster"]["certificate-authority-data"]
        kubeconfig = cluster.directory / "token.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        command = [HOLDFASTD, "status", f"--kubeconfig={kubeconfig}"]
        if not has_ca:  # in a mount namespace the CA is one of the system's
            if not can_mount():
                pytest.skip("a mount namespace cannot be made here")
            command = ["unshare", "--mount", "sh", "-c", f"mount --bind {pki}/ca.crt /etc/ssl/certs/ca-certificates.crt && exec {' '.join(map(str, command))}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 0 and "thief" in done.stdout, done
        assert thief.got == ([("/debug/leader", "Bearer secret-token")] if has_ca else [])
