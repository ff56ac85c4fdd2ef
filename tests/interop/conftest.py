# SPDX-License-Identifier: Apache-2.0
import itertools
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import holdfastd  # noqa: E402
import old_kubectl  # noqa: E402

NUMBERS = itertools.count(1)


class Pair:
    """A cluster of two instances for a whole module: a leads at first, b follows. The users are
    alice (admin) and bob (without rights)."""

    def __init__(self, cluster):
        self.cluster = cluster
        tokens = cluster.directory / "tokens.csv"
        tokens.write_text('alice-token,alice,1,"system:masters"\nbob-token,bob,2\n')
        self.a = cluster.instance("a", f"--token-auth-file={tokens}").wait_ready()
        self.b = cluster.instance("b", f"--token-auth-file={tokens}").wait_ready()


@pytest.fixture(scope="module")
def pair():
    with holdfastd.Cluster() as cluster:
        yield Pair(cluster)


@pytest.fixture
def cluster():
    with holdfastd.Cluster() as it:
        yield it


def kubectl_of(kind):
    on_path = old_kubectl.version("kubectl")
    if kind == "path":
        if on_path is None:
            pytest.skip("no kubectl on PATH")
        return "kubectl"
    if on_path == (1, 20):
        pytest.skip("the kubectl on PATH is 1.20 already")
    binary, why = old_kubectl.fetch()
    if binary is None:
        pytest.skip(why)
    return binary


@pytest.fixture(scope="module", params=["path", "debian"])
def kubectl(request, pair):
    """kubectl(*args, at=instance). Each test runs with the kubectl on PATH and with Debian's
    1.20."""
    binary = kubectl_of(request.param)

    def run(*args, at=None, **kwargs):
        return (at or pair.a).kubectl(*args, binary=binary, **kwargs)
    run.binary = binary
    run.version = old_kubectl.version(binary)
    return run


@pytest.fixture
def ns(pair):
    """A namespace for one test, with what controllers add to every namespace."""
    name = f"test-{next(NUMBERS)}"
    code, body = pair.a.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    assert code == 201, body
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        holdfastd.wait_until(path, lambda path=path: pair.a.get(f"/api/v1/namespaces/{name}/{path}")[0] == 200)
    yield name
    pair.a.request("DELETE", f"/api/v1/namespaces/{name}")
