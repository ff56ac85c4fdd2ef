# SPDX-License-Identifier: Apache-2.0
"""Instances on two hosts over one store: with a common CA, and with a CA for each host."""
import os
import signal
import subprocess

from holdfastd import HOLDFASTD, LIMIT, Instance, wait_until


def on_host(cluster, host, name, *flags):
    """Starts an instance with the certificates of `host`. Each host has its own directory for them."""
    directory = cluster.directory / host
    directory.mkdir(exist_ok=True)
    return cluster.add(Instance(cluster.etcd, directory, name, flags))


def run(*args, **kwargs):
    return subprocess.run([HOLDFASTD, *map(str, args)], capture_output=True, text=True, timeout=LIMIT, check=False, **kwargs)


def state_of(instance, name):
    """Returns what `holdfastd status`, with the kubeconfig of `instance`, prints about the instance `name`."""
    done = run("status", f"--kubeconfig={instance.kubeconfig}")
    assert done.returncode == 0 and done.stderr == "", done
    line = next((line for line in done.stdout.splitlines() if line.startswith(f"{name}/")), "")
    return line[line.index("https://"):].split(maxsplit=1)[1] if line else ""


def test_status_says_that_a_peer_has_a_certificate_of_another_ca(cluster):
    a = on_host(cluster, "x", "a").wait_ready()
    b = on_host(cluster, "y", "b").wait_ready()
    c = on_host(cluster, "x", "c").wait_ready()
    for asked, name, state in ((a, "a", "leading"), (a, "c", "following"), (a, "b", "certificate of another CA"),
                               (b, "b", "following"), (b, "a", "certificate of another CA")):
        wait_until(f"{name} to be {state}", lambda asked=asked, name=name, state=state: state_of(asked, name).startswith(state))
    b.send(signal.SIGKILL)
    b.wait()
    assert state_of(a, "b").startswith("unreachable")


def pki(action, directory, *more, **kwargs):
    return run("pki", action, f"--cert-dir={directory}", *more, **kwargs)


def refused(done, status, *words):
    assert done.returncode == status and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert all(str(word) in done.stderr for word in words), done


def openssl(*args):
    return subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, timeout=LIMIT, check=True).stdout


def fingerprint(path):
    return "sha256:" + openssl("x509", "-in", path, "-noout", "-fingerprint", "-sha256").strip().split("=")[1].replace(":", "").lower()


def test_two_hosts_get_one_ca(cluster):
    x, y, bundle = cluster.directory / "x" / "pki", cluster.directory / "y" / "pki", cluster.directory / "ca.pem"
    made = pki("init", x)
    assert made.returncode == 0 and made.stderr == "" and fingerprint(x / "ca.crt") in made.stdout, made
    refused(pki("init", x), 1, x / "ca.crt", "not replaced")
    exported = pki("export", x, bundle)
    assert exported.returncode == 0 and str(bundle) in exported.stdout and bundle.stat().st_mode & 0o777 == 0o600
    refused(pki("export", x, bundle), 1, bundle, "exists")
    # A dangling symbolic link is refused too: another program may be about to write its target.
    link = cluster.directory / "link"
    link.symlink_to("nowhere")
    refused(pki("export", x, link), 1, link, "exists")
    assert os.readlink(link) == "nowhere"
    joined = pki("join", y, bundle)
    assert joined.returncode == 0 and fingerprint(x / "ca.crt") in joined.stdout
    assert (y / "ca.key").stat().st_mode & 0o777 == 0o600
    assert "already" in pki("join", y, "-", input=pki("export", x, "-").stdout).stdout

    a, b = on_host(cluster, "x", "a").wait_ready(), on_host(cluster, "y", "b").wait_ready()
    for asked, name, state in ((a, "a", "leading"), (a, "b", "following"), (b, "a", "leading")):
        wait_until(f"{name} to be {state}", lambda asked=asked, name=name, state=state: state_of(asked, name).startswith(state))
    openssl("verify", "-CAfile", x / "ca.crt", y / "server.crt", y / "admin.crt")
    shown = pki("show", y)
    assert shown.returncode == 0 and shown.stderr == "" and shown.stdout.count("the CA above") == 2
    for text in (fingerprint(y / "ca.crt"), "CN=holdfastd", "127.0.0.1, ::1", "CN=holdfast-admin,O=system:masters"):
        assert text in shown.stdout, shown.stdout


def test_a_host_with_a_ca_of_its_own_changes_over(cluster):
    x, y, bundle = cluster.directory / "x" / "pki", cluster.directory / "y" / "pki", cluster.directory / "ca.pem"
    a, b = on_host(cluster, "x", "a").wait_ready(), on_host(cluster, "y", "b").wait_ready()
    assert pki("export", x, bundle).returncode == 0
    refused(pki("join", y, bundle), 1, "another CA", y / "ca.crt", y / "ca.key")
    b.send(signal.SIGTERM)
    assert b.wait() == 0
    os.remove(y / "ca.crt")
    os.remove(y / "ca.key")
    assert pki("join", y, bundle).returncode == 0
    shown = pki("show", y).stdout
    assert shown.count("another CA: CN=holdfast-ca, key id ") == 2
    on_host(cluster, "y", "b").wait_ready()
    wait_until("b to be seen", lambda: state_of(a, "b").startswith("following"))
    assert pki("show", y).stdout.count("the CA above") == 2


def test_mistakes_of_pki_are_one_clear_line(cluster):
    x, none = cluster.directory / "x", cluster.directory / "none"
    refused(pki("show", none), 1, "no CA in", none)
    refused(pki("export", none, "-"), 1, "no CA in", none)
    assert not none.exists()
    refused(pki("join", x, none), 1, none)
    refused(pki("join", x, "-", input="hello"), 1, "standard input", "no certificate")
    refused(pki("join", x, "-", input="hello\0"), 1, "standard input", "NUL")
    refused(pki("join", x, "-", input="x" * (1 << 20) + "y"), 1, "standard input", "more than 1048576 bytes")
    refused(run("pki"), 2, "init, show, export or join")
    refused(pki("join", x), 2, "needs FILE")
    assert pki("init", x).returncode == 0
    os.remove(x / "ca.key")
    refused(pki("export", x, "-"), 1, x / "ca.key", "missing")
    assert "key          missing" in pki("show", x).stdout
    assert "holdfastd pki join FILE" in run("pki", "--help").stdout


def others(instance):
    """The servers of libholdfast's extension, and the contexts of kubectl, in the kubeconfig of `instance`."""
    config = instance.config()
    cluster = config["clusters"][0]["cluster"]
    servers = [s for e in cluster.get("extensions", []) if e["name"] == "holdfast.dev/servers" for s in e["extension"]["servers"]]
    assert config["current-context"] == config["contexts"][0]["name"] == "holdfast"
    clusters = {c["name"]: c["cluster"]["server"] for c in config["clusters"][1:]}
    assert sorted(clusters.values()) == sorted(servers) and list(clusters) == [c["context"]["cluster"] for c in config["contexts"][1:]]
    return clusters


def test_a_kubeconfig_names_the_instances_of_its_ca(cluster):
    a = on_host(cluster, "x", "a").wait_ready()
    assert others(a) == {}
    b, c = on_host(cluster, "x", "b").wait_ready(), on_host(cluster, "y", "c").wait_ready()
    wait_until("a and b to name each other", lambda: others(a) == {"holdfast-b": b.url} and others(b) == {"holdfast-a": a.url})
    assert others(c) == {}  # its CA is another one
    assert a.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert a.kubectl("--context=holdfast-b", "get", "namespaces", "-o", "name").stdout.count("namespace/") >= 4
    assert a.kubectl("get", "namespaces", "-o", "name").stdout.count("namespace/") >= 4

    # When its own server stops, a client goes on with the other one.
    url = b.url
    a.send(signal.SIGKILL)
    a.wait()
    done = run("status", f"--kubeconfig={a.kubeconfig}")
    assert done.returncode == 0 and done.stdout.startswith(url), done
    d = on_host(cluster, "x", "d").wait_ready()
    wait_until("b to name d", lambda: others(b).get("holdfast-d") == d.url)
    d.send(signal.SIGTERM)
    assert d.wait() == 0
    wait_until("b to forget d", lambda: "holdfast-d" not in others(b))


def test_a_kubeconfig_that_could_not_be_written_is_tried_again(cluster):
    """The server tries again by itself: no instance needs to start or stop."""
    there = cluster.directory / "there"
    there.mkdir(mode=0o755)
    a = on_host(cluster, "x", "a", f"--write-kubeconfig={there / 'kubeconfig'}")
    a.kubeconfig = there / "kubeconfig"
    a.wait_ready()
    there.chmod(0o777)
    b = on_host(cluster, "x", "b").wait_ready()
    wait_until("a to fail twice", lambda: a.log_text().count("other instances are not in the kubeconfig") >= 2)
    assert others(a) == {}
    there.chmod(0o755)
    wait_until("a to name b", lambda: others(a) == {"holdfast-b": b.url})
    # It also tries again after a reload that failed to write the file.
    there.chmod(0o777)
    written = a.kubeconfig.stat().st_mtime_ns
    a.send(signal.SIGHUP)
    wait_until("the reload to fail", lambda: "keeping the previous kubeconfig" in a.log_text())
    there.chmod(0o755)
    wait_until("it to be written", lambda: a.kubeconfig.stat().st_mtime_ns != written)
    assert others(a) == {"holdfast-b": b.url}


def test_a_host_with_other_certificates_is_not_named(cluster):
    """An instance whose certificate does not come from the common CA is not in the kubeconfig, because the CA there cannot verify it."""
    a = on_host(cluster, "x", "a").wait_ready()
    pair = cluster.directory / "pair"
    pair.mkdir()
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=b", "-addext",
            "subjectAltName=IP:127.0.0.1", "-keyout", pair / "key", "-out", pair / "cert")
    b = on_host(cluster, "x", "b", f"--tls-cert-file={pair}/cert", f"--tls-private-key-file={pair}/key")
    wait_until("b to name a", lambda: b.kubeconfig.exists() and others(b) == {"holdfast-a": a.url})
    c = on_host(cluster, "x", "c").wait_ready()
    wait_until("a to name c", lambda: "holdfast-c" in others(a))
    assert others(a) == {"holdfast-c": c.url}
