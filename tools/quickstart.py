# SPDX-License-Identifier: Apache-2.0
"""Shows Holdfast at work; run by tools/quickstart, which builds it first.

It shows Holdfast first on a file of SQLite, with nothing else running, then on etcd, which is installed only then. The witness, a separate
process that watches the store, measures every gap. No log or metric of Holdfast is used for that.
"""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
import holdfastd  # noqa: E402
from holdfastd import LEASE, phase, workspace  # noqa: E402

LEASE_SECONDS = 15  # the product's default
# What is compared after the move. Leases are left out, because instances come and go with them.
WORKSPACES = "/apis/tenancy.holdfast.dev/v1alpha1/workspaces"
LISTS = [WORKSPACES, "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"]


def say(text=""):
    print(text, flush=True)


def step(text):
    say(f"\n== {text}")


class Demo:
    def __init__(self, cluster):
        self.cluster = cluster
        self.witness = cluster.witness
        self.instances = {}

    def start(self, name):
        before = time.monotonic()
        self.instances[name] = self.cluster.instance(name, fast=False).wait_ready()
        say(f"   instance {name}: {self.instances[name].url}, ready after {1000 * (time.monotonic() - before):.0f} ms")

    def leader(self):
        return self.witness.holder().split("_")[1]

    def show_leader(self):
        name = self.leader()
        info = self.instances[name].leader()
        say(f"   leader: {name}, term {info['term']}; " + ", ".join(
            f"{n}: {i.leader()['state']}" for n, i in sorted(self.instances.items())))

    def make_workspace(self, name, through):
        mark = self.witness.mark()
        code, body = self.instances[through].request("POST", WORKSPACES, workspace(name))
        if code != 201:
            raise AssertionError(f"workspace {name}: {code} {body}")
        ready = self.witness.wait_for(f"workspace {name} to be Ready",
                                      lambda e: e["key"].endswith(f"/workspaces/{name}") and phase(e) == "Ready", mark)
        seen = [e for e in self.witness.seen()[mark:] if e["key"].endswith(f"/workspaces/{name}")]
        say(f"   workspace {name}, created through {through} while {self.leader()} leads: " + " -> ".join(phase(e) or "created" for e in seen))
        say(f"   it has its namespace ws-{name}; that took {(ready['t'] - seen[0]['t']) / 1e6:.1f} ms")

    def other(self, name):
        return next(n for n in self.instances if n != name)

    def other_name(self):
        """The name of the instance that does not run."""
        return next(n for n in "ab" if n not in self.instances)

    def hand_over(self):
        old = self.leader()
        new = self.other(old)
        mark = self.witness.mark()
        say(f"   kill -TERM {self.instances[old].pid}   (instance {old})")
        self.instances[old].send(signal.SIGTERM)
        released = self.witness.wait_holder(lambda h: h == "", "the release", mark)
        taken = self.witness.wait_holder(lambda h: f"_{new}_" in h, f"{new} to lead", mark)
        status = self.instances.pop(old).wait()
        say(f"   {old} released the Lease at revision {released['rev']} and ended with status {status}")
        say(f"   {new} leads at revision {taken['rev']}: {(taken['t'] - released['t']) / 1e6:.1f} ms without a leader")
        return old, new

    def take_over(self):
        old = self.leader()
        new = self.other(old)
        mark = self.witness.mark()
        # A standby counts from the renewals that it has seen itself, so one that has just started must see one first.
        self.witness.wait_holder(lambda h: f"_{old}_" in h, "a renewal that both see", mark)
        last = [e for e in self.witness.seen() if e["key"] == LEASE][-1]
        say(f"   kill -KILL {self.instances[old].pid}   (instance {old})")
        say(f"   nobody can release the Lease now: it expires {LEASE_SECONDS} s after its last renewal")
        self.instances[old].send(signal.SIGKILL)
        self.instances.pop(old).wait()
        begin = time.monotonic()
        while True:
            try:
                taken = self.witness.wait_holder(lambda h: f"_{new}_" in h, f"{new} to lead", mark, limit=1)
                break
            except AssertionError:
                if time.monotonic() - begin > holdfastd.LIMIT:
                    raise
                if sys.stdout.isatty():
                    print(f"\r   waiting for the expiry: {time.monotonic() - begin:.0f} s ", end="", flush=True)
        if sys.stdout.isatty():
            print("\r\033[K", end="")
        expiry = last["t"] + LEASE_SECONDS * 1e9
        say(f"   {new} leads at revision {taken['rev']}: {(taken['t'] - last['t']) / 1e9:.3f} s after the last renewal, "
            f"{max(0, taken['t'] - expiry) / 1e6:.1f} ms after its expiry")
        say("   (under systemd the ExecStopPost of the unit frees the Lease of a dead instance at once)")
        return old, new


def stay(demo):
    """Says what to try and reports what happens, until Ctrl-C or until all instances have ended."""
    directory = demo.cluster.directory
    leader = demo.leader()
    step("this stays up until Ctrl-C; to try in another terminal")
    if not shutil.which("kubectl"):
        say("   apt-get install kubernetes-client    # contains kubectl")
    say(f"   export KUBECONFIG={demo.instances[leader].kubeconfig}")
    say("   kubectl get namespaces")
    say("   kubectl get leases -A")
    say("   kubectl get workspaces -w")
    say("   kubectl create namespace hello")
    say("   kubectl -n hello create configmap greeting --from-literal=text=hi")
    for name, instance in sorted(demo.instances.items()):
        say(f"   kill -TERM {instance.pid}    # {name}, {'which leads' if name == leader else 'which follows'}; or -STOP and -CONT, or -KILL")
    say(f"   {holdfastd.HOLDFASTD} status \\\n     --data-dir={demo.instances[leader].data} --watch")
    say(f"   ls {directory}    # logs and data, removed at the end")
    say()
    mark = demo.witness.mark()
    alive = dict(demo.instances)
    while alive:
        time.sleep(0.2)
        for event in demo.witness.seen()[mark:]:
            mark += 1
            if event["key"] == LEASE and event["type"] == "PUT" and (holder := event["object"]["spec"].get("holderIdentity")) is not None:
                name = holder.split("_")[1] if holder else "nobody"
                if name != leader:
                    say(f"   revision {event['rev']}: {name} leads")
                leader = name
        for name in [n for n, i in alive.items() if not i.alive()]:
            say(f"   instance {name} has ended with status {alive.pop(name).wait()}")
    say("   all instances have ended")


def stop_all(demo):
    """Stops all instances at the same time; SIGCONT lets a paused one end too."""
    for instance in demo.instances.values():
        if instance.alive():
            instance.send(signal.SIGTERM)
            instance.send(signal.SIGCONT)
    for name, instance in demo.instances.items():
        try:
            instance.wait(limit=30)
        except subprocess.TimeoutExpired:
            say(f"   instance {name} does not end and will be killed")


def uids(instance):
    """Returns the uid of each object, by its list, namespace and name."""
    found = {}
    for path in LISTS:
        code, text = instance.get(path)
        if code != 200:
            raise AssertionError(f"{path}: {code} {text}")
        for meta in (item["metadata"] for item in json.loads(text)["items"]):
            found[path, meta.get("namespace", ""), meta["name"]] = meta["uid"]
    return found


def on_a_file(cluster):
    """One instance, then two, on a file of SQLite: nothing else runs. Returns the uids of the objects."""
    demo = Demo(cluster)
    step("holdfastd alone: its objects are in a file")
    say(f"   store: {cluster.etcd.path}")
    demo.start("a")
    demo.witness.wait_holder(lambda h: h != "")
    demo.make_workspace("first", through="a")
    step("a second instance on the same file")
    demo.start("b")
    demo.show_leader()
    step("hand-over: the leader is told to stop")
    old, new = demo.hand_over()
    demo.make_workspace("second", through=new)
    step(f"{old} comes back, as a follower")
    demo.start(old)
    demo.show_leader()
    step("take-over: the leader is killed")
    old, new = demo.take_over()
    demo.make_workspace("third", through=new)
    before = uids(demo.instances[new])
    stop_all(demo)
    cluster.witness.end()  # the copy refuses a file that is in use
    return before


def install_etcd():
    step("the same objects in etcd, for instances on several machines")
    deps = subprocess.Popen([holdfastd.ROOT / "tools" / "deps", "etcd"])
    try:
        if deps.wait() != 0:
            raise AssertionError("etcd cannot be installed")
    finally:
        deps.wait()  # a Ctrl-C reaches it too; it ends when apt-get has finished


def move(cluster, etcd):
    command = ["store", "copy", f"--from={cluster.etcd.url}", f"--to=etcd:{etcd.url}"]
    say(f"   holdfastd {' '.join(command)}")
    done = subprocess.run([holdfastd.HOLDFASTD, *command], capture_output=True, text=True, check=False, timeout=holdfastd.LIMIT)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    say("   " + done.stderr.strip().splitlines()[-1])


def compare(before, instance):
    """Says whether the objects are those of the file."""
    after = uids(instance)
    changed = [key for key, uid in before.items() if after.get(key) != uid]
    if changed:
        raise AssertionError(f"{len(changed)} objects are missing in etcd or have other uids: {changed[:5]}")
    say(f"   all {len(before)} objects are there, with the uids that they had; workspaces: {', '.join(name for path, _, name in after if path == WORKSPACES)}")


def on_etcd(cluster, before):
    demo = Demo(cluster)
    say(f"   etcd: {cluster.etcd.url}")
    demo.start("a")
    demo.witness.wait_holder(lambda h: h != "")
    demo.start("b")
    demo.show_leader()
    compare(before, demo.instances["b"])
    demo.hand_over()
    demo.make_workspace("fourth", through=demo.leader())
    demo.start(demo.other_name())
    if sys.stdout.isatty() and sys.stdin.isatty():
        try:
            stay(demo)
        except KeyboardInterrupt:
            say("\nstopping")
    stop_all(demo)
    step("done; nothing is left behind")


def show():
    with holdfastd.Cluster(prefix="holdfast-", etcd=holdfastd.SqliteFile) as one:
        before = on_a_file(one)
        install_etcd()
        # The witness of the new cluster must not see the copy: etcd is filled first.
        with holdfastd.Cluster(prefix="holdfast-", etcd=lambda directory: filled_etcd(one, directory)) as two:
            on_etcd(two, before)


def filled_etcd(cluster, directory):
    etcd = holdfastd.Etcd(directory)
    try:
        move(cluster, etcd)
    except BaseException:
        etcd.end()
        raise
    return etcd


def interrupted(number, _):
    """The first signal unwinds through all `with` blocks, which clean up; later signals must not disturb that."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        show()
    except KeyboardInterrupt:
        say("\ninterrupted; nothing is left behind")
        return 130
    except (AssertionError, holdfastd.EtcdEnded, OSError) as error:
        say(f"quickstart: failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
