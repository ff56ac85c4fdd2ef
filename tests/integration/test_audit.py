# SPDX-License-Identifier: Apache-2.0
"""The audit log of a real server: what its events say, what the policy leaves out, and what happens when the file cannot be written."""
import base64
import gzip
import http.client
import json
import pathlib
import re
import signal
import ssl
import subprocess

import pytest
from holdfastd import HOLDFASTD, LIMIT, wait_until
from memory_server import MemoryServer

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ['/readyz*', /metrics]}
- {level: None, resources: [{group: coordination.k8s.io}]}
- {level: None, userGroups: ['system:masters'], verbs: [get], resources: [{resources: [configmaps], resourceNames: [unseen]}]}
- {level: RequestResponse, resources: [{resources: [secrets]}, {group: authentication.k8s.io}, {resources: ['serviceaccounts/token']}]}
- {level: Request, resources: [{resources: [configmaps]}], namespaces: [default], omitManagedFields: true}
- {level: RequestResponse, resources: [{resources: [configmaps]}], omitStages: [ResponseStarted]}
- {level: Metadata, verbs: [list, watch, post]}
- {level: Metadata, resources: [{resources: ['*']}], omitStages: []}
- {level: Metadata, users: ['system:anonymous'], nonResourceURLs: ['*']}
"""
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Audited:
    """A server and the events that it logs."""

    def __init__(self, directory, *flags):
        self.policy = directory / "policy.yaml"
        self.policy.write_text(POLICY)
        self.tokens = directory / "tokens"
        self.tokens.write_text('root-token,root,7,"system:masters"\nann-token,ann,8,"people"\n')
        self.log = directory / "log" / "audit.log"
        self.server = MemoryServer(f"--audit-policy-file={self.policy}", f"--audit-log-path={self.log}", f"--token-auth-file={self.tokens}", *flags)
        self.ask = self.server.ask

    def events(self):
        lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def of(self, audit_id, n=1):
        """Waits until a request has n events. Returns them."""
        def found():
            events = [event for event in self.events() if event["auditID"] == audit_id]
            return events if len(events) >= n else None
        events = wait_until(f"{n} events of {audit_id}", found)
        assert len(events) == n, events
        return events

    def event(self, method, path, body=None, **headers):
        """Sends a request. Returns (reply, its only event)."""
        reply = self.ask(method, path, body, **headers)
        return reply, self.of(reply.headers["audit-id"])[0]

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\d+)$", self.ask("GET", "/metrics").text, re.M)
        return int(found[1]) if found else 0


@pytest.fixture(scope="module", name="audited")
def _audited(tmp_path_factory):
    audited = Audited(tmp_path_factory.mktemp("audit"))
    with audited.server:
        yield audited


def configmap(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_write_is_an_event(audited):
    reply, event = audited.event("POST", CONFIGMAPS + "?fieldManager=me", configmap("a", key="ä\n"), user_agent="tester/1")
    assert reply.code == 201 and re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", event["auditID"])
    assert list(event) == ["kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs", "userAgent", "objectRef",
                           "responseStatus", "requestObject", "requestReceivedTimestamp", "stageTimestamp", "annotations"]
    assert (event["kind"], event["apiVersion"], event["level"], event["stage"]) == ("Event", "audit.k8s.io/v1", "Request", "ResponseComplete")
    assert (event["verb"], event["requestURI"]) == ("create", CONFIGMAPS + "?fieldManager=me")
    assert event["user"]["username"] == "holdfast-admin" and "system:masters" in event["user"]["groups"]
    assert event["sourceIPs"] == ["127.0.0.1"] and event["userAgent"] == "tester/1"
    assert event["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert event["responseStatus"] == {"metadata": {}, "code": 201}
    assert event["requestObject"] == configmap("a", key="ä\n")
    assert event["requestReceivedTimestamp"] <= event["stageTimestamp"]
    assert event["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
    got = audited.ask("GET", CONFIGMAPS + "/a").json
    _, event = audited.event("PUT", CONFIGMAPS + "/a", got)
    assert event["objectRef"]["uid"] == got["metadata"]["uid"] and event["objectRef"]["resourceVersion"] == got["metadata"]["resourceVersion"]
    assert "managedFields" in got["metadata"] and "managedFields" not in event["requestObject"]["metadata"]
    _, event = audited.event("PATCH", CONFIGMAPS + "/a", [{"op": "add", "path": "/data/x", "value": "y"}], content_type="application/json-patch+json")
    assert (event["verb"], event["requestObject"]) == ("patch", [{"op": "add", "path": "/data/x", "value": "y"}])
    _, event = audited.event("POST", CONFIGMAPS, "kind: ConfigMap\napiVersion: v1\nmetadata: {name: yaml}\n", content_type="application/yaml")
    assert event["requestObject"] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "yaml"}}


def test_the_policy_says_what_is_recorded(audited):
    unseen = audited.ask("GET", CONFIGMAPS + "/unseen")
    assert unseen.code == 404 and "audit-id" in unseen.headers
    probe = audited.ask("GET", "/readyz")
    assert audited.ask("POST", "/api/v1/namespaces/kube-system/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}).code == 201
    reply, event = audited.event("GET", "/api/v1/namespaces/kube-system/secrets/s")
    assert event["level"] == "RequestResponse" and event["responseObject"] == reply.json and "requestObject" not in event
    _, event = audited.event("GET", "/api/v1/namespaces/kube-system/secrets?pretty=true")
    assert [item["metadata"]["name"] for item in event["responseObject"]["items"]] == ["s"]
    _, event = audited.event("GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault")
    assert event["level"] == "Metadata" and event["objectRef"] == {"resource": "namespaces", "name": "default", "apiVersion": "v1"}
    reply, event = audited.event("DELETE", CONFIGMAPS + "/none")
    assert event["responseStatus"] == {"metadata": {}, **{key: reply.json[key] for key in ("status", "message", "reason", "details", "code")}}
    assert not [e for e in audited.events() if e["auditID"] in (unseen.headers["audit-id"], probe.headers["audit-id"])]


def reply_items(reply):
    packed = reply.headers.get("content-encoding") == "gzip"
    return json.loads(gzip.decompress(reply.bytes) if packed else reply.bytes)["items"]


def test_a_large_list_is_recorded_as_a_whole(audited):
    for i in range(4):
        assert audited.ask("POST", "/api/v1/namespaces/kube-system/configmaps", configmap(f"large-{i}", x=str(i) * 90000)).code == 201
    for encoding in ("gzip", "identity"):
        reply, event = audited.event("GET", "/api/v1/namespaces/kube-system/configmaps", accept_encoding=encoding)
        assert reply.headers.get("content-encoding", "identity") == encoding
        assert len(event["responseObject"]["items"]) == len(reply_items(reply)) and "audit.k8s.io/truncated" not in event["annotations"]
    for i in range(4, 50):
        assert audited.ask("POST", "/api/v1/namespaces/kube-system/configmaps", configmap(f"large-{i}", x="x" * 90000)).code == 201
    reply, event = audited.event("GET", "/api/v1/namespaces/kube-system/configmaps")
    assert len(reply.json["items"]) >= 50 and "responseObject" not in event
    assert event["annotations"]["audit.k8s.io/truncated"] == "true"


def test_the_id_of_a_client_is_kept_if_it_is_sane(audited):
    reply = audited.ask("GET", CONFIGMAPS, audit_id="trace-7")
    assert reply.headers["audit-id"] == "trace-7" and audited.of("trace-7")[0]["verb"] == "list"
    for bad in ("a b", "x" * 65):
        reply = audited.ask("GET", CONFIGMAPS, audit_id=bad)
        assert len(reply.headers["audit-id"]) == 36
    assert len({audited.ask("GET", "/readyz").headers["audit-id"] for _ in range(5)}) == 5


def test_who_asked_and_who_decided(audited):
    forwarded = {"x_forwarded_for": "10.1.1.1, 10.1.1.2", "x_real_ip": "10.1.1.3"}
    reply, event = audited.event("GET", CONFIGMAPS, impersonate_user="bob", impersonate_group="crew", **forwarded)
    assert reply.code == 403 and event["user"]["username"] == "holdfast-admin"
    assert event["impersonatedUser"] == {"username": "bob", "groups": ["crew", "system:authenticated"]}
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert event["sourceIPs"] == ["10.1.1.1", "10.1.1.2", "10.1.1.3", "127.0.0.1"]
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert event["responseStatus"]["reason"] == "Forbidden" and event["responseStatus"]["code"] == 403
    rule = {"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]}
    api = "/apis/rbac.authorization.k8s.io/v1/"
    assert audited.ask("POST", api + "clusterroles", {"metadata": {"name": "lister"}, **rule}).code == 201
    assert audited.ask("POST", api + "clusterrolebindings", {
        "metadata": {"name": "listers"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"},
        "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]}).code == 201
    wait_until("bob's right", lambda: audited.ask("GET", CONFIGMAPS, impersonate_user="bob").code == 200)
    _, event = audited.event("GET", CONFIGMAPS, impersonate_user="bob")
    assert event["annotations"] == {"authorization.k8s.io/decision": "allow",
                                    "authorization.k8s.io/reason": 'RBAC: allowed by ClusterRoleBinding "listers" of ClusterRole "lister" to User "bob"'}


def test_what_kubectl_does_is_recorded(audited):
    done = audited.server.kubectl("create", "configmap", "by-kubectl", "--from-literal=a=b")
    assert done.returncode == 0, done.stderr
    event = wait_until("the event", lambda: [e for e in audited.events() if e.get("objectRef", {}).get("name") == "by-kubectl"])[0]
    assert (event["verb"], event["userAgent"].split("/")[0], event["requestObject"]["data"]) == ("create", "kubectl", {"a": "b"})


def test_a_request_that_is_not_authenticated_is_one_event(audited):
    config = json.loads(audited.server.kubeconfig.read_text())
    context = ssl.create_default_context(cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
    connection = http.client.HTTPSConnection(audited.server.address, timeout=30, context=context)
    connection.request("GET", CONFIGMAPS, headers={"Authorization": "Bearer wrong-token"})
    reply = connection.getresponse()
    assert reply.status == 401 and reply.read()
    event = audited.of(reply.getheader("audit-id"))[0]
    connection.close()
    assert (event["stage"], event["user"], event["verb"]) == ("ResponseStarted", {}, "list")
    assert event["responseStatus"] == {"metadata": {}, "message": "Authentication failed, attempted: bearer", "code": 401}
    assert "wrong-token" not in audited.log.read_text()


def test_tokens_are_not_logged_at_any_level(audited):
    reply, event = audited.event("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "ann-token"}})
    assert reply.code == 201 and event["level"] == "RequestResponse"
    assert event["responseObject"]["status"]["user"]["username"] == "ann" and "token" not in event["requestObject"]["spec"]
    assert "ann-token" not in audited.log.read_text()


def test_a_watch_has_two_events(audited):
    connection = http.client.HTTPSConnection(audited.server.address, timeout=30, context=audited.server.context)
    connection.request("GET", CONFIGMAPS + "?watch=true")
    reply = connection.getresponse()
    audit_id = reply.getheader("audit-id")
    started = audited.of(audit_id)[0]
    assert (started["stage"], started["verb"], started["responseStatus"]) == ("ResponseStarted", "watch", {"metadata": {}, "code": 200})
    connection.sock.close()
    reply.close()
    connection.close()
    assert [event["stage"] for event in audited.of(audit_id, 2)] == ["ResponseStarted", "ResponseComplete"]


def test_a_reload_replaces_the_policy_and_opens_the_log_again(audited):
    def reload(text):
        n = audited.server.log_text().count("audit policy")
        audited.policy.write_text(text)
        audited.server.send(signal.SIGHUP)
        wait_until("the reload", lambda: audited.server.log_text().count("audit policy") > n)

    reload(POLICY.replace("level: Metadata", "level: Metadate"))
    assert 'rules[6].level: "Metadate" is not one of None, Metadata, Request, RequestResponse; keeping the previous audit policy' in audited.server.log_text()
    assert audited.event("GET", CONFIGMAPS)[1]["level"] == "Request"
    moved = audited.log.with_suffix(".moved")
    audited.log.rename(moved)
    reload("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, resources: [{resources: [configmaps]}]}]}")
    reply = audited.ask("GET", CONFIGMAPS)
    assert [event["stage"] for event in audited.of(reply.headers["audit-id"], 2)] == ["RequestReceived", "ResponseComplete"]
    assert moved.stat().st_size > 0
    assert audited.metric("apiserver_audit_event_total") > 20 and audited.metric('apiserver_audit_error_total{plugin="log"}') == 0
    reload(POLICY)


def test_a_log_that_cannot_be_written_loses_events_and_no_request(tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "audit.log").symlink_to("/dev/full")
    audited = Audited(tmp_path)
    with audited.server:
        for _ in range(50):
            assert audited.ask("GET", CONFIGMAPS).code == 200
        wait_until("the loss to be counted", lambda: audited.metric('apiserver_audit_error_total{plugin="log"}') >= 50)
        assert audited.metric("apiserver_audit_event_total") == 0
        assert audited.server.log_text().count("audit events were lost: No space left on device") == 1


def test_all_events_are_written_before_the_end(tmp_path):
    audited = Audited(tmp_path, "--audit-log-maxsize=1", "--audit-log-maxbackup=2")
    with audited.server:
        for i in range(6):
            assert audited.ask("POST", CONFIGMAPS, configmap(f"c{i}", x="x" * 500000)).code == 201
        last = audited.ask("GET", CONFIGMAPS, audit_id="the-last").headers["audit-id"]
        audited.server.send(signal.SIGTERM)
        assert audited.server.wait() == 0
        assert last in [event["auditID"] for event in audited.events()]
        old = sorted(path.name for path in audited.log.parent.iterdir())
        assert len(old) == 3 and all(re.fullmatch(r"audit(-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})?\.log", name) for name in old), old


def test_without_a_policy_there_is_no_audit_id(tmp_path):
    def run(*flags, check=True):
        done = subprocess.run([HOLDFASTD, *(["--check"] if check else []), "--storage=memory", f"--write-kubeconfig={tmp_path / 'kubeconfig'}", *flags],
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        return done.returncode, done.stdout, done.stderr.removeprefix("holdfastd: ").rstrip("\n")

    policy = pathlib.Path(tmp_path / "policy.yaml")
    policy.write_text(POLICY)
    log = tmp_path / "new" / "audit.log"
    assert run(f"--audit-policy-file={policy}", f"--audit-log-path={log}") == (0, "ok\n", "")
    assert not log.parent.exists()
    assert run(f"--audit-policy-file={policy}", "--audit-log-path=-") == (0, "ok\n", "")
    assert run(f"--audit-policy-file={policy}") == (
        2, "", "flags --audit-policy-file and --audit-log-path go together: --audit-log-path is missing")
    policy.write_text(POLICY + "- {level: None, user: [x]}\n")
    fault = f"flag --audit-policy-file: {policy}: rules[9].user: unknown field"
    for check in (True, False):
        assert run(f"--audit-policy-file={policy}", "--audit-log-path=-", check=check) == (2, "", fault)
    with MemoryServer() as server:
        assert "audit-id" not in server.ask("GET", CONFIGMAPS, audit_id="mine").headers
