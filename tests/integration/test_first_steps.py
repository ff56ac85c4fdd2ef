# SPDX-License-Identifier: Apache-2.0
"""What a new user does: starts by hand, from scripts and from other programs, with mistakes."""
import os
import re
import signal
import subprocess

import pytest
from holdfastd import HOLDFASTD, Process, wait_until


def start(directory, *flags, command=(HOLDFASTD,), ready="ready:", **kwargs):
    """Starts an instance over a file, and returns when its log contains `ready`."""
    process = Process([*command, f"--data-dir={directory / 'data'}", "--secure-port=0", "--instance=a", *flags], directory / "log", **kwargs)
    if ready:
        wait_until(f"{ready} in the log", lambda: process.log_text().find(ready) >= 0 or not process.alive())
        assert process.alive(), process.log_text()
    return process


def release(directory, *flags):
    """Runs `holdfastd release` after the end of the instance. It finds a Lease only if the run file still names a held one."""
    return subprocess.run([HOLDFASTD, "release", f"--data-dir={directory / 'data'}", "--instance=a", *flags], capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_are_not_used_for_files(tmp_path, closed):
    """A lock file or a socket that became descriptor 2 would receive log lines."""
    data = tmp_path / "data"
    with Process(["sh", "-c", f'exec "$@" {closed}', "sh", HOLDFASTD, f"--data-dir={data}", "--secure-port=0", "--instance=a", "--v=4"],
                 tmp_path / "log") as process:
        wait_until("it to serve", lambda: (data / "admin.kubeconfig").exists() or not process.alive())
        assert process.alive(), process.log_text()
        for number in re.findall(r"\d", closed.replace("&-", "")):
            assert os.readlink(f"/proc/{process.pid}/fd/{number}") == "/dev/null"
        process.send(signal.SIGTERM)
        assert process.wait() == 0
    for file in (data / "holdfastd.lock", data / "run" / "a.lock"):
        assert re.fullmatch(r'\{"format":1,"pid":\d+\}\n', file.read_text()), file


def test_output_to_a_closed_descriptor_fails():
    done = subprocess.run(["sh", "-c", f"{HOLDFASTD} version >&-"], capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_the_two_signals_of_timeout_are_one_stop(tmp_path):
    """timeout(1) sends SIGTERM to the process and then to its group. The controllers need time to
    stop, so a second stop would end the process before it releases the Lease."""
    with start(tmp_path, "--shutdown-delay-duration=2s") as process:
        process.send(signal.SIGTERM)
        wait_until("the first signal to be handled", lambda: "SIGTERM: stopping" in process.log_text())
        process.send(signal.SIGTERM)
        assert process.wait() == 0, process.log_text()
        assert "second stop signal" not in process.log_text()
    done = release(tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done  # nothing to release


def test_a_clean_stop_logs_no_warning(tmp_path):
    with start(tmp_path, "--v=4") as process:
        process.send(signal.SIGTERM)
        assert process.wait() == 0
        lines = process.log_text().splitlines()
    assert not [line for line in lines if re.match(r"\S+Z [WE] ", line)]
    assert [line for line in lines if "SIGTERM: stopping" in line]
