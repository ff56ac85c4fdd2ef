# SPDX-License-Identifier: Apache-2.0
"""Debian's kubectl (1.20), next to the one on PATH: a package that is unpacked, not installed."""
import json
import pathlib
import subprocess

from holdfastd import BUILD


def version(binary):
    """(1, 32) of a kubectl. None when it does not run."""
    try:
        done = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True,
                              text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    v = json.loads(done.stdout)["clientVersion"]
    return int(v["major"]), int(v["minor"].rstrip("+"))


def is_current():
    """Whether the kubectl on PATH knows OpenAPI v3, cron jobs of batch/v1 and --subresource.
    Debian's is too old for that."""
    return (version("kubectl") or (0, 0)) >= (1, 30)


def fetch():
    """(path, None), or (None, why there is none).

    It stays in the build directory, so it is downloaded once.
    """
    directory = pathlib.Path(BUILD) / "kubectl-1.20"
    binary = directory / "usr" / "bin" / "kubectl"
    if binary.exists():
        return str(binary), None
    directory.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "kubernetes-client"], cwd=directory,
                       capture_output=True, text=True, timeout=120, check=True)
        package = next(directory.glob("kubernetes-client_*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, directory],
                       capture_output=True, text=True, timeout=120, check=True)
        package.unlink()
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        why = getattr(error, "stderr", None) or error
        return None, f"Debian's kubernetes-client cannot be downloaded: {why}"
    return str(binary), None
