# SPDX-License-Identifier: Apache-2.0
"""The address that an instance publishes when it serves on all addresses of the machine."""
import json
import urllib.parse

import pytest
from holdfastd import Cluster, wait_until

WILDCARDS = ("0.0.0.0", "::")


def published(instance):
    """Returns the address in the kubeconfig and that in the identity Lease."""
    leases = json.loads(instance.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")[1])["items"]
    endpoints = [lease["metadata"].get("annotations", {}).get("holdfast.dev/endpoint") for lease in leases]
    return [urllib.parse.urlsplit(url).hostname for url in (instance.url, *filter(None, endpoints))]


@pytest.mark.parametrize("flags,expected", [
    (["--bind-address=0.0.0.0"], None), (["--bind-address=::"], None), (["--bind-address=0.0.0.0", "--advertise-address=127.0.0.7"], "127.0.0.7"),
], ids=["v4", "v6", "given"])
def test_what_is_published_can_be_reached(flags, expected):
    with Cluster(with_witness=False) as cluster:
        a = cluster.instance("a", *flags).wait_ready()  # connects to the address in its kubeconfig, which the certificate must contain
        addresses = wait_until("its identity Lease", lambda: len(published(a)) > 1 and published(a))
        assert len(set(addresses)) == 1 and addresses[0] not in WILDCARDS
        assert expected is None or addresses[0] == expected
