# SPDX-License-Identifier: Apache-2.0
"""What the kernel shows of the process to others, and the limits that it starts with."""
import os
import resource
import shutil
import subprocess
import tempfile

import pytest
from holdfastd import HOLDFASTD, Cluster, wait_until

SOMEBODY = 54321


@pytest.fixture(name="directory")
def _directory():
    # The directory is not below that of the test run, which other users may not enter.
    path = tempfile.mkdtemp(prefix="holdfast-process-", dir="/tmp")
    os.chown(path, SOMEBODY, SOMEBODY)
    yield path
    shutil.rmtree(path)


def peek(pid):
    """Tries, as another process of the same user, to read the first bytes of the server's memory map."""
    return subprocess.run(["head", "-c", "10", f"/proc/{pid}/maps"], capture_output=True, text=True, check=False,
                          user=SOMEBODY, group=SOMEBODY, extra_groups=[]).returncode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as another user")
@pytest.mark.parametrize("env,seen", [({}, 1), ({"HOLDFASTD_ALLOW_DEBUG": "1"}, 0)], ids=["hidden", "debug"])
def test_memory_is_hidden_from_the_same_user(directory, env, seen):
    program = shutil.copy(HOLDFASTD, directory)  # where this user may run it
    with open(os.path.join(directory, "log"), "wb") as log, subprocess.Popen(
            [program, "--etcd-servers=http://127.0.0.1:1", "--secure-port=0", f"--data-dir={directory}/data"], stderr=log,
            cwd=directory, env={**os.environ, **env}, user=SOMEBODY, group=SOMEBODY, extra_groups=[]) as process:
        try:
            wait_until("it to serve", lambda: os.path.exists(f"{directory}/data/admin.kubeconfig"))
            assert peek(process.pid) == seen
        finally:
            process.terminate()
            process.wait(60)


def test_the_limit_of_open_files_is_raised():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with Cluster(with_witness=False) as cluster:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard - 1), hard))
        try:
            a = cluster.instance("a")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        a.wait_ready()
        metrics = dict(line.split(" ") for line in a.get("/metrics")[1].splitlines() if line.startswith("process_max_fds"))
        assert int(float(metrics["process_max_fds"])) == hard
