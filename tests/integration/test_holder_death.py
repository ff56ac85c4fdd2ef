# SPDX-License-Identifier: Apache-2.0
"""The take-over after a crash on one host, by --leader-elect-lock-dir. Where the death is proven the Lease lasts ten minutes, far longer than
the tests wait: whoever takes it has not waited for its expiry. Where nothing may be proven it lasts four seconds, and is taken then."""
import signal

from holdfastd import HOLDFASTD, LEASE

LONG = ["--leader-elect-lease-duration=600s", "--leader-elect-renew-deadline=400s", "--leader-elect-retry-period=500ms"]


def two(cluster, directory_of_a, directory_of_b, *flags, **kwargs):
    a = cluster.instance("a", f"--leader-elect-lock-dir={directory_of_a}", *flags, **kwargs).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b = cluster.instance("b", f"--leader-elect-lock-dir={directory_of_b}", *flags, **kwargs).wait_ready()
    return a, b


def wait_for_renewals(cluster, n):
    """Waits until the Lease was written n more times, each time with a as the holder."""
    for _ in range(n):
        mark = cluster.witness.mark()
        event = cluster.witness.wait_for("a renewal", lambda e: e["key"] == LEASE, mark)
        assert "_a_" in event["object"]["spec"]["holderIdentity"]


def expect_take_over_at_expiry(cluster, a, b):
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE and e["rev"] < taken["rev"]][-1]
    assert taken["t"] - last["t"] > 3.9e9
    assert "is dead" not in b.log_text()


def test_a_killed_leader_is_followed_at_once(cluster, tmp_path):
    a, b = two(cluster, tmp_path / "locks", tmp_path / "locks", *LONG, fast=False)
    mark = cluster.witness.mark()
    a.send(signal.SIGKILL)
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    assert "proves that its process is dead" in b.log_text()
    history = taken["object"]["metadata"]["annotations"]["holdfast.dev/transitions"]
    assert "died" in history
    # and back: the new process uses the lock file of the dead one
    a = cluster.instance("a", f"--leader-elect-lock-dir={tmp_path / 'locks'}", *LONG, fast=False).wait_ready()
    mark = cluster.witness.mark()
    b.send(signal.SIGKILL)
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead again", mark)


def test_a_stopped_leader_is_not_dead(cluster, tmp_path):
    a, b = two(cluster, tmp_path / "locks", tmp_path / "locks")
    a.pause()
    mark = cluster.witness.mark()
    taken = cluster.witness.wait_holder(lambda h: "_b_" in h, "b to lead", mark)
    last = [e for e in cluster.witness.seen() if e["key"] == LEASE and e["rev"] < taken["rev"]][-1]
    assert taken["t"] - last["t"] > 3.9e9
    assert "is dead" not in b.log_text()
    a.send(signal.SIGCONT)


def test_a_leader_elsewhere_is_waited_for(cluster, tmp_path):
    """The instances have different directories, like instances on two hosts."""
    a, b = two(cluster, tmp_path / "locks-of-a", tmp_path / "locks-of-b")
    expect_take_over_at_expiry(cluster, a, b)


def test_a_replaced_lock_file_proves_nothing(cluster, tmp_path):
    a, b = two(cluster, tmp_path / "locks", tmp_path / "locks")
    file = tmp_path / "locks" / "a.holder"
    file.unlink()
    file.touch(mode=0o600)
    wait_for_renewals(cluster, 8)
    assert b.leader()["state"] == "following"
    expect_take_over_at_expiry(cluster, a, b)


def test_a_deleted_lock_file_proves_nothing(cluster, tmp_path):
    a, b = two(cluster, tmp_path / "locks", tmp_path / "locks")
    (tmp_path / "locks" / "a.holder").unlink()
    wait_for_renewals(cluster, 8)
    assert b.leader()["state"] == "following"
    expect_take_over_at_expiry(cluster, a, b)


def test_a_process_of_another_pid_namespace_is_waited_for(cluster, tmp_path):
    """b has the same directory and the same root, but another pid namespace."""
    wrapper = tmp_path / "in-a-pid-namespace"
    wrapper.write_text(f'#!/bin/sh\nexec unshare --pid --fork --kill-child {HOLDFASTD} "$@"\n')
    wrapper.chmod(0o755)
    flag = f"--leader-elect-lock-dir={tmp_path / 'locks'}"
    a = cluster.instance("a", flag).wait_ready()
    cluster.witness.wait_holder(lambda h: "_a_" in h, "a to lead")
    b = cluster.instance("b", flag, binary=wrapper).wait_ready()
    expect_take_over_at_expiry(cluster, a, b)
