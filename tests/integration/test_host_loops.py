# SPDX-License-Identifier: Apache-2.0
"""Hosts with an event loop of their own, in C, Python and Rust: each leads, writes, and hands over."""
import shutil
import signal
import subprocess

import pytest
from holdfastd import ROOT, Process, wait_until
from test_embedding import CONFIGMAP, LEASE, Installed, sanitizers

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def c_example(name, package):
    def make(installed, directory):
        if subprocess.run(["pkg-config", "--exists", package], check=False).returncode != 0:
            pytest.skip(f"no {package}")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], check=True, capture_output=True, text=True).stdout.split()
        return [installed.build(EXAMPLES / f"{name}.c", directory / name, flags=["-Wl,--no-as-needed", *flags])]
    return make


def static_example(installed, directory):
    """Builds the example of docs/embedding.md with the static library. The program must not load the shared library."""
    archive = next(installed.directory.rglob("libholdfast.a"))
    program = directory / "static"
    done = subprocess.run(["gcc", "-std=gnu11", *sanitizers(), EXAMPLES / "loop_sd_event.c", *installed.pkg_config("--cflags", "libholdfast"), archive,
                           "-lsystemd", "-lcurl", "-lcjson", "-pthread", "-lm", "-o", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    needed = subprocess.run(["objdump", "-p", program], check=True, capture_output=True, text=True).stdout
    assert "libholdfast" not in needed
    return [program]


def python_example(installed, directory):
    if sanitizers():
        pytest.skip("the sanitizer's runtime must be loaded before Python")
    return ["/usr/bin/python3", EXAMPLES / "counter.py"]


def rust_example(installed, directory):
    if shutil.which("rustc") is None or sanitizers():
        pytest.skip("no rustc, or a sanitizer that it does not link")
    done = subprocess.run(["rustc", "--edition", "2021", "-D", "warnings", EXAMPLES / "counter.rs", "-L", installed.shared_object.parent, "-l", "holdfast",
                           "-l", "curl", "-o", directory / "counter"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [directory / "counter"]


@pytest.mark.parametrize("make", [c_example("loop_sd_event", "libsystemd"), c_example("loop_uv", "libuv"), static_example, python_example, rust_example],
                         ids=["sd-event", "libuv", "static", "python", "rust"])
def test_a_host_loop_leads_and_hands_over(cluster, installed, tmp_path, make):
    program = make(installed, tmp_path)
    server = cluster.instance("server").wait_ready()

    def start(identity):
        with open(cluster.directory / f"{identity}.out", "wb") as out:
            return cluster.add(Process([*program, "counter", identity, server.kubeconfig], cluster.directory / f"{identity}.log", env=installed.run_env,
                                       stdout=out))

    def holder(event):
        return event["object"]["spec"].get("holderIdentity") if event["key"] == LEASE.format("counter") and event["type"] == "PUT" else None

    first = start("a")
    cluster.witness.wait_for("a to hold the Lease", lambda e: holder(e) == "a")
    count = [cluster.witness.wait_for(f"count {n}", lambda e, n=n: e["key"] == CONFIGMAP.format("counter") and int(e["object"]["data"]["count"]) >= n)
             for n in (1, 3)]
    assert count
    second = start("b")
    wait_until("b to follow", lambda: (cluster.directory / "b.out").read_text().strip())
    mark = cluster.witness.mark()
    first.send(signal.SIGTERM)
    assert first.wait() == 0, first.log_text()
    cluster.witness.wait_for("a to release the Lease", lambda e: e["key"] == LEASE.format("counter") and holder(e) is None or holder(e) == "", mark)
    cluster.witness.wait_for("b to hold the Lease", lambda e: holder(e) == "b", mark)
    cluster.witness.wait_for("b's count", lambda e: e["key"] == CONFIGMAP.format("counter"), cluster.witness.mark())
    assert "leading" in (cluster.directory / "a.out").read_text()
    second.send(signal.SIGTERM)
    assert second.wait() == 0, second.log_text()
