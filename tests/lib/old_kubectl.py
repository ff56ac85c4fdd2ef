# SPDX-License-Identifier: Apache-2.0
"""Debian's kubectl (1.20), beside whatever is on PATH: downloaded as a package and unpacked, never installed."""
import json
import pathlib
import subprocess

from harness import BUILD


def version(binary):
    """(1, 32) of a kubectl; None when there is none."""
    try:
        done = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    v = json.loads(done.stdout)["clientVersion"]
    return int(v["major"]), int(v["minor"].rstrip("+"))


def fetch():
    """(path, None), or (None, why there is none). Kept in the build directory, so that it is downloaded once."""
    directory = pathlib.Path(BUILD) / "kubectl-1.20"
    binary = directory / "usr" / "bin" / "kubectl"
    if binary.exists():
        return str(binary), None
    directory.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "kubernetes-client"], cwd=directory, capture_output=True, text=True, timeout=120, check=True)
        package = next(directory.glob("kubernetes-client_*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, directory], capture_output=True, text=True, timeout=120, check=True)
        package.unlink()
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        return None, f"Debian's kubernetes-client cannot be downloaded: {getattr(error, 'stderr', None) or error}"
    return str(binary), None
