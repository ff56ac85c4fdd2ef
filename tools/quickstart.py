# SPDX-License-Identifier: Apache-2.0
"""The main job, to watch: run by tools/quickstart, which has built it.

Every gap is measured by the witness, a process of its own that watches etcd, never by a log or metric of Holdfast.
"""
import pathlib
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
import harness  # noqa: E402
from harness import LEASE, phase, workspace  # noqa: E402

LEASE_SECONDS = 15  # the product's default


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
        code, body = self.instances[through].request("POST", "/apis/tenancy.holdfast.dev/v1alpha1/workspaces", workspace(name))
        if code != 201:
            raise SystemExit(f"quickstart: workspace {name}: {body}")
        ready = self.witness.wait_for(f"workspace {name} to be Ready",
                                      lambda e: e["key"].endswith(f"/workspaces/{name}") and phase(e) == "Ready", mark)
        seen = [e for e in self.witness.seen()[mark:] if e["key"].endswith(f"/workspaces/{name}")]
        say(f"   workspace {name}, created through {through}: " + " -> ".join(phase(e) or "created" for e in seen)
            + f", namespace ws-{name}, in {(ready['t'] - seen[0]['t']) / 1e6:.1f} ms (leader: {self.leader()})")

    def other(self, name):
        return next(n for n in self.instances if n != name)

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
        # A standby counts from its own observation: one that has just come back has yet to see a renewal.
        self.witness.wait_holder(lambda h: f"_{old}_" in h, "a renewal that both see", mark)
        last = [e for e in self.witness.seen() if e["key"] == LEASE][-1]
        say(f"   kill -KILL {self.instances[old].pid}   (instance {old}); nobody can release now: the Lease runs {LEASE_SECONDS} s from its last renewal")
        self.instances[old].send(signal.SIGKILL)
        self.instances.pop(old).wait()
        begin = time.monotonic()
        while True:
            try:
                taken = self.witness.wait_holder(lambda h: f"_{new}_" in h, f"{new} to lead", mark, limit=1)
                break
            except AssertionError:
                if time.monotonic() - begin > harness.LIMIT:
                    raise
                if sys.stdout.isatty():
                    print(f"\r   waiting for the expiry: {time.monotonic() - begin:.0f} s ", end="", flush=True)
        if sys.stdout.isatty():
            print("\r", end="")
        expiry = last["t"] + LEASE_SECONDS * 1e9
        say(f"   {new} leads at revision {taken['rev']}: {(taken['t'] - last['t']) / 1e9:.3f} s after the last renewal, "
            f"{(taken['t'] - expiry) / 1e6:.1f} ms after expiry")
        say("   (under systemd the unit's ExecStopPost frees a dead instance's Lease at once)")
        return old, new


def stay(demo):
    directory = demo.cluster.directory
    config = next(iter(demo.instances.values())).kubeconfig
    step("it stays up until Ctrl-C; in another terminal")
    holdfastd = harness.HOLDFASTD
    say(f"   export KUBECONFIG={config}")
    if not shutil.which("kubectl"):
        say("   apt-get install kubernetes-client     # brings kubectl")
    say("   kubectl get namespaces; kubectl get leases -A; kubectl get workspaces -w")
    say("   kubectl create namespace hello; kubectl -n hello create configmap greeting --from-literal=text=hi; kubectl get -n hello configmaps -o yaml")
    for name, instance in sorted(demo.instances.items()):
        say(f"   kill -TERM {instance.pid}    # instance {name}; or -STOP, -CONT, -KILL, and watch: kubectl get leases -n kube-system -w")
    say(f"   {holdfastd} status --data-dir={demo.instances[demo.leader()].data} --watch")
    say(f"   ls {directory}    # logs and data, gone afterwards")
    try:
        while any(i.alive() for i in demo.instances.values()):
            time.sleep(0.5)
        say("\nall instances have ended")
    except KeyboardInterrupt:
        say("\nstopping")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with harness.Cluster() as cluster:
        demo = Demo(cluster)
        step("a private etcd-server and two instances")
        say(f"   etcd: {cluster.etcd.url}")
        demo.start("a")
        demo.witness.wait_holder(lambda h: h != "")
        demo.start("b")
        demo.show_leader()
        step("the leader's controllers at work")
        demo.make_workspace("first", through=demo.other(demo.leader()))
        step("hand-over: the leader is told to stop")
        old, new = demo.hand_over()
        demo.make_workspace("second", through=new)
        step(f"{old} comes back, as a follower")
        demo.start(old)
        demo.show_leader()
        step("take-over: the leader is killed")
        old, new = demo.take_over()
        demo.make_workspace("third", through=new)
        demo.start(old)
        demo.show_leader()
        if sys.stdout.isatty() and sys.stdin.isatty():
            stay(demo)
        for instance in demo.instances.values():
            if instance.alive():
                instance.send(signal.SIGTERM)
        for instance in demo.instances.values():
            instance.wait()
    step("done; nothing is left behind")


if __name__ == "__main__":
    main()
