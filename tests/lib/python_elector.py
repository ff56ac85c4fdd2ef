# SPDX-License-Identifier: Apache-2.0
"""The leader election of the Python client (kubernetes.leaderelection) over a Lease, as a program.

By itself it locks an annotation of a ConfigMap. Only the lock here is ours: it keeps the same
record in a Lease.

    python_elector.py KUBECONFIG NAMESPACE NAME IDENTITY LEASE-SECONDS RENEW-SECONDS RETRY-SECONDS

stdout: `started` and `stopped`, when the callbacks are called.
"""
import datetime
import logging
import sys

from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord


def micro(text):
    """A Lease's form of a time: UTC, six digits. The election has local times without a zone."""
    at = datetime.datetime.fromisoformat(text).astimezone(datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def local(at):
    return None if at is None else str(at.astimezone().replace(tzinfo=None))


class LeaseLock:
    def __init__(self, api, name, namespace, identity):
        self.api, self.name, self.namespace, self.identity = api, name, namespace, identity
        self.last = None

    def get(self, name, namespace):
        try:
            self.last = self.api.read_namespaced_lease(name, namespace)
        except client.ApiException as error:
            return False, error
        spec = self.last.spec
        return True, LeaderElectionRecord(spec.holder_identity or None, spec.lease_duration_seconds,
                                          local(spec.acquire_time), local(spec.renew_time))

    def spec(self, record):
        return {"holderIdentity": record.holder_identity,
                "leaseDurationSeconds": int(record.lease_duration),
                "acquireTime": micro(record.acquire_time), "renewTime": micro(record.renew_time)}

    def create(self, name, namespace, election_record):
        try:
            self.api.create_namespaced_lease(
                namespace, {"metadata": {"name": name}, "spec": self.spec(election_record)})
            return True
        except client.ApiException:
            return False

    def update(self, name, namespace, updated_record):
        metadata = {"name": name, "resourceVersion": self.last.metadata.resource_version}
        body = {"metadata": metadata, "spec": self.spec(updated_record)}
        try:
            self.api.replace_namespaced_lease(name, namespace, body)
            return True
        except client.ApiException:
            return False


def main():
    kubeconfig, namespace, name, identity, lease, renew, retry = sys.argv[1:]
    logging.disable()
    api = client.CoordinationV1Api(config.new_client_from_config(kubeconfig))
    lock = LeaseLock(api, name, namespace, identity)
    leaderelection.LeaderElection(electionconfig.Config(
        lock, lease_duration=int(lease), renew_deadline=int(renew), retry_period=int(retry),
        onstarted_leading=lambda: print("started", flush=True),
        onstopped_leading=lambda: print("stopped", flush=True))).run()


if __name__ == "__main__":
    main()
