# SPDX-License-Identifier: Apache-2.0
"""Each indented block of the README and of docs/ is run, compiled or read by the real programs as it stands, or BLOCKS_OF says why not.

Commands run in a copy of this machine (copied_machine.py). What a document leaves to its reader (`...`, `<identity>`) is filled in, and a
comment that tells the reader to do something is replaced by commands that do it: `substituted` lists these, and nothing else is changed.
"""
import os
import re
import subprocess

import pytest
from copied_machine import run
from doc_blocks import BLOCKS, block, substituted
from holdfastd import ROOT

OPERATING, EMBEDDING, TESTING, MONITORING, PROOF = (f"docs/{name}.md" for name in ("operating", "embedding", "testing", "monitoring", "proof"))
README_TEST = "test_readme.py"
BY_HAND = "is run by `meson test` and tools/test with other numbers; these take minutes to hours"
PICTURE = "is a picture, not a command"
# Where each block is run (a test of this file, or another file of tests), or why it is not.
BLOCKS_OF = {
    ("README.md", "Try it", 0): "test_quickstart.py; the other line runs all tests, and so this one",
    ("README.md", "Try it", 1): "test_quickstart.py",
    ("README.md", "By hand", 0): README_TEST,
    ("README.md", "By hand", 1): README_TEST,
    ("README.md", "Install", 0): README_TEST,
    ("README.md", "Install", 1): README_TEST,
    ("README.md", "Source tree", 0): "names directories; tests/lib/check-docs checks them",
    (EMBEDDING, "The example", 0): README_TEST,
    (EMBEDDING, "The example", 1): README_TEST,
    (EMBEDDING, "A controller", 0): "test_code_compiles",
    (EMBEDDING, "A controller", 1): "test_code_compiles",
    (EMBEDDING, "A kind of your own", 0): "test_code_compiles",
    (EMBEDDING, "Sharded work", 0): "test_code_compiles",
    (EMBEDDING, "Sharded work", 1): "test_code_compiles",
    (EMBEDDING, "Which server", 0): "is a part of a kubeconfig; tests/unit/test-client-kubeconfig.c reads such ones",
    (MONITORING, "Status as JSON", 0): "test_a_pair_is_used",
    (MONITORING, "Prometheus", 0): "test_prometheus_accepts_its_configuration",
    (OPERATING, "Moving to the other kind", 0): "test_a_file_moves_to_etcd_which_is_restored",
    (OPERATING, "Start", 0): "test_a_file_moves_to_etcd_which_is_restored",
    (OPERATING, "Two hosts", 0): "needs two machines; test_pki.py: test_two_hosts_get_one_ca runs these commands with two directories",
    (OPERATING, "Two hosts with the shipped units", 0): "test_systemd.py runs it between two systemds",
    (OPERATING, "Who may do what", 0): "test_a_pair_is_used",
    (OPERATING, "Tokens of OpenID Connect", 0): "test_flags_and_files_are_accepted",
    (OPERATING, "Certificates for users", 0): "test_a_pair_is_used",
    (OPERATING, "Priority levels", 0): "test_a_pair_is_used",
    (OPERATING, "Priority levels", 1): "test_a_pair_is_used",
    (OPERATING, "Audit log", 0): "test_flags_and_files_are_accepted",
    (OPERATING, "Audit log", 1): "test_flags_and_files_are_accepted",
    (OPERATING, "Webhooks", 0): "test_flags_and_files_are_accepted",
    (OPERATING, "Files and memory", 0): "test_flags_and_files_are_accepted",
    (OPERATING, "Encryption of stored objects", 0): "test_secrets_are_encrypted",
    (OPERATING, "Encryption of stored objects", 1): "test_secrets_are_encrypted",
    (OPERATING, "Bootstrap", 0): PICTURE,
    (OPERATING, "Who leads", 0): "test_a_pair_is_used runs the command; the output has times and names of its day",
    (OPERATING, "Who leads", 1): "test_a_pair_is_used",
    (OPERATING, "systemd", 0): "needs systemd as the first process; test_systemd.py writes such files and starts the units",
    (OPERATING, "The journal", 0): "needs journald; test_systemd.py reads the fields of the entries",
    (OPERATING, "Backups of a file", 0): "test_a_file_is_backed_up_and_restored",
    (OPERATING, "Restoring a backup of etcd", 0): "test_a_file_moves_to_etcd_which_is_restored",
    (PROOF, "The simulator", 0): BY_HAND,
    (PROOF, "A failure", 0): "is the output of a simulator with a planted mistake, which main does not have",
    (PROOF, "Does the simulator find mistakes?", 0): "run.py check is a test of the suite `sim`; refresh changes the patches",
    (PROOF, "Does the simulator find mistakes?", 1): "test_the_simulator_finds_its_defects",
    (PROOF, "Do the tests find mistakes?", 0): "takes hours; the test `systematic mutants` checks the program",
    (PROOF, "Interleavings of threads", 0): BY_HAND,
    (PROOF, "Interleavings of threads", 1): "is the output of a planted mistake; tests/threads/meson.build runs that, too",
    (PROOF, "The model", 0): BY_HAND,
    (PROOF, "The simulator's schedules in the model", 0): BY_HAND,
    (PROOF, "The simulator's schedules in the model", 1): BY_HAND,
    (PROOF, "Runs under faults", 0): BY_HAND,
    (PROOF, "Crashes of the store's file", 0): "is the meson test itself",
    ("docs/semantics.md", "Bootstrap", 0): "test_code_compiles",
    ("docs/semantics.md", "Workspaces", 0): PICTURE,
    (TESTING, "Any program", 0): "test_a_control_plane_for_tests",
    (TESTING, "In place of kube-apiserver", 0): "test_a_control_plane_for_tests",
    ("docs/upgrading.md", "A pair", 0): "test_a_file_moves_to_etcd_which_is_restored",
    ("docs/upgrading.md", "etcd", 0): "needs an etcd that Debian does not have",
}
in_a_copy = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the copy of the machine")

# Functions of the scripts.
TOOLS = r"""
await() { # COMMAND...: until it succeeds
  local i
  for ((i = 0; i < 600; i++)); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  echo "waited in vain for: $*"; return 1
}
serves() { curl -sf --cacert "/var/lib/holdfast/${2:-$1}/pki/ca.crt" "https://127.0.0.1:${3:-6443}/readyz"; }
stop() { kill "$1"; wait "$1"; }
start_etcd() {
  etcd --data-dir=/var/lib/etcd --listen-client-urls=http://127.0.0.1:2379,http://10.0.0.1:2379,http://10.0.0.2:2379 \
    --advertise-client-urls=http://127.0.0.1:2379 >>/tmp/etcd.log 2>&1 & etcd=$!
  await etcdctl endpoint health
}
stop_etcd() { kill "$etcd"; wait "$etcd" || true; } # its status is that of the signal
uid() { kubectl get configmap "$1" -o 'jsonpath={.metadata.uid}'; }
"""


def script(*parts):
    return "\n".join([TOOLS, *parts, "echo the script has ended"])


def test_each_block_is_run_or_says_why_not():
    """A new block needs a row of the table above; the name of a block that is gone must go, too."""
    assert set(BLOCKS_OF) - set(BLOCKS) == set(), "rows of blocks that are in no page"
    assert set(BLOCKS) - set(BLOCKS_OF) == set(), "blocks that have no row"
    for name in {why for why in BLOCKS_OF.values() if why.startswith("test_") and " " not in why}:
        assert name in globals() or (ROOT / "tests" / "integration" / name).is_file(), name


@in_a_copy
def test_a_file_moves_to_etcd_which_is_restored(tmp_path):
    serve = block(OPERATING, "Start").strip()
    move = substituted(block(OPERATING, "Moving to the other kind"), ("# stop all instances", "stop $a"), ("# start them with --etcd-servers=... in place of --store", f"{serve} & a=$!"))
    restore = substituted(
        block(OPERATING, "Restoring a backup of etcd"),
        ("\nholdfastd store restore", "\nkubectl create configmap lost --from-literal=k=v\nholdfastd store restore"),
        ("# stop etcd and move /var/lib/etcd away, then on each member, with the flags that etcd's documentation asks for:", "stop_etcd\nmv /var/lib/etcd /tmp/away"),
        ("--name=... --initial-cluster=... --initial-advertise-peer-urls=...",
         "--name=default --initial-cluster=default=http://localhost:2380 --initial-advertise-peer-urls=http://localhost:2380"),
        ("# start etcd", "start_etcd"))
    run(script("""
export KUBECONFIG=/var/lib/holdfast/a/admin.kubeconfig
holdfastd --store=/var/lib/holdfast/store.db --data-dir=/var/lib/holdfast/a --instance=a & a=$!
await serves a
kubectl create configmap kept --from-literal=k=v
before=$(uid kept)
start_etcd""", move, """
await serves a
test "$(uid kept)" = "$before"
kubectl create configmap later --from-literal=k=v
later=$(uid later)""", restore, """
gone() { kubectl get configmap kept && ! kubectl get configmap lost; }
await gone                                                  # the instance was not restarted
test "$(uid kept)" = "$before" && test "$(uid later)" = "$later"
await kubectl create configmap after --from-literal=k=v
stop $a""", "test \"$(%s)\" = ok" % block("docs/upgrading.md", "A pair").strip(), "stop_etcd"), tmp_path)


@in_a_copy
def test_a_file_is_backed_up_and_restored(tmp_path):
    serve = "holdfastd --store=/var/lib/holdfast/store.db --data-dir=/var/lib/holdfast/a --instance=a & a=$!"
    backup = substituted(
        block(OPERATING, "Backups of a file"),
        ("# stop all instances, and move store.db and the files beside it (store.db-wal, ...) away, then:",
         "kubectl create configmap lost --from-literal=k=v\nstop $a\nmkdir /tmp/away\nmv /var/lib/holdfast/store.db* /tmp/away"),
        ("# start the instances", serve))
    run(script("export KUBECONFIG=/var/lib/holdfast/a/admin.kubeconfig", serve, """
await serves a
kubectl create configmap kept --from-literal=k=v
before=$(uid kept)""", backup, """
await serves a
test "$(uid kept)" = "$before"
! kubectl get configmap lost
stop $a
holdfastd store check /var/lib/holdfast/store.db"""), tmp_path)


@in_a_copy
def test_a_pair_is_used(tmp_path):
    """Roles, certificates, priority levels, the status, a hand-over by name."""
    certificates, at, last = block(OPERATING, "Certificates for users").rpartition("kubectl get csr ada ")
    assert at
    _, prompt, status = block(OPERATING, "Who leads").splitlines()[0].partition("$ ")
    assert prompt
    output = run(script("""
export KUBECONFIG=/var/lib/holdfast/c/admin.kubeconfig
holdfastd --store=/var/lib/holdfast/store.db --data-dir=/var/lib/holdfast/c --instance=c & c=$!
await serves c
holdfastd --store=/var/lib/holdfast/store.db --data-dir=/var/lib/holdfast/b --instance=b --secure-port=6444 --cert-dir=/var/lib/holdfast/c/pki & b=$!
await serves b c 6444""", block(OPERATING, "Who may do what"), certificates, """
signed() { test -n "$(kubectl get csr ada -o 'jsonpath={.status.certificate}')"; }
await signed""", at + last, """
openssl verify -CAfile /var/lib/holdfast/c/pki/ca.crt ada.crt
curl -sf --cacert /var/lib/holdfast/c/pki/ca.crt --cert ada.crt --key ada.key https://127.0.0.1:6443/api/v1/namespaces/shop/secrets | grep SecretList
cat >level.yaml <<'END'
""" + block(OPERATING, "Priority levels") + """END
kubectl apply -f level.yaml
kubectl get flowschema my-leases""", block(OPERATING, "Priority levels", 1), """
leads() { test "$(kubectl get lease -n kube-system holdfast-controllers -o 'jsonpath={.spec.holderIdentity}')" = "$1"; }
identity=$(kubectl get lease -A -o jsonpath='{.items[*].spec.holderIdentity}' | tr ' ' '\\n' | grep _b_ | sort -u)
leads "$identity" && exit 1                                 # c leads: it was there first""",
                        substituted(block(OPERATING, "Who leads", 1), ("<identity>", "$identity")), """
await leads "$identity"
echo the status:""", status, """
echo the end of the status
test -z "$( """, substituted(block(MONITORING, "Status as JSON"), ("holdfastd status -o json", "holdfastd status -o json --kubeconfig=$KUBECONFIG")), """ )"
stop $b
stop $c"""), tmp_path)
    assert "\nyes\n" in output, "kubectl auth can-i"
    assert "PriorityLevelName" in output or "priority" in output.lower()
    shown = output.partition("\nthe status:\n")[2].partition("\nthe end of the status\n")[0]
    headings = [line.split() for line in block(OPERATING, "Who leads").splitlines() if re.match("[A-Z][A-Z-]+ ", line)]
    assert len(headings) == 3 and [line.split() for line in shown.splitlines() if re.match("[A-Z][A-Z-]+ ", line)] == headings, shown
    assert " handed-over " in shown, shown


@in_a_copy
def test_secrets_are_encrypted(tmp_path):
    keys = substituted(block(OPERATING, "Encryption of stored objects"), ("secret: ...  ", "secret: $(head -c 32 /dev/urandom | base64)  "))
    run(script("""
export KUBECONFIG=/var/lib/holdfast/a/admin.kubeconfig
serve="holdfastd --store=/var/lib/holdfast/store.db --data-dir=/var/lib/holdfast/a --instance=a"
values() { python3 -c '
import sqlite3
print(*[row[0][:20] for row in sqlite3.connect("/var/lib/holdfast/store.db").execute(
    "SELECT value FROM versions v WHERE key = \\"/registry/secrets/default/s\\" AND id = (SELECT max(id) FROM versions WHERE key = v.key)")])'; }
$serve & a=$!
await serves a
kubectl create secret generic s --from-literal=k=v
! values | grep k8s:enc
stop $a
umask 077
cat >/etc/holdfast/keys.yaml <<END
""" + keys + """END
umask 022
$serve --encryption-provider-config=/etc/holdfast/keys.yaml & a=$!
await serves a""", block(OPERATING, "Encryption of stored objects", 1), """
values | grep k8s:enc:aesgcm:v1
test "$(kubectl get secret s -o 'jsonpath={.data.k}' | base64 -d)" = v
stop $a"""), tmp_path)


@in_a_copy
def test_flags_and_files_are_accepted(tmp_path):
    message = block(OPERATING, "Files and memory").strip()
    oidc = substituted(block(OPERATING, "Tokens of OpenID Connect").strip(), ("oidc: ...", "oidc: --check"))
    run(script(oidc, f"holdfastd --check {block(OPERATING, 'Webhooks').strip()}", """
mkdir /srv/holdfast
chmod 777 /srv/holdfast
holdfastd --data-dir=/srv/holdfast 2>message && exit 1
cat >expected <<'END'
""" + message + """
END
diff expected message
cat >/etc/holdfast/audit.yaml <<'END'
""" + block(OPERATING, "Audit log", 1) + "END", block(OPERATING, "Audit log").strip() + " & a=$!", """
ready() { curl -sf --cacert holdfast-data/pki/ca.crt https://127.0.0.1:6443/readyz; }
await ready
export KUBECONFIG=$PWD/holdfast-data/admin.kubeconfig
kubectl create configmap audited --from-literal=k=v
test "$(stat -c %a holdfast-data/store.db)" = 600           # where the objects are without a flag
stop $a
grep '"name":"audited"' /var/log/holdfast/audit.log
! grep -E '"stage":"RequestReceived"|"resource":"leases"' /var/log/holdfast/audit.log"""), tmp_path)


@in_a_copy
def test_a_control_plane_for_tests(tmp_path):
    """Go and its tests are not here: in their place a program starts the control plane by the names and with flags that envtest uses."""
    run(script(block(TESTING, "Any program").strip() + " & a=$!", """
await test -e kubeconfig
export KUBECONFIG=$PWD/kubeconfig
await kubectl get --raw /readyz
kubectl create configmap here --from-literal=k=v
stop $a
unset KUBECONFIG
cat >/usr/local/bin/go <<'END'
#!/bin/bash
set -euxo pipefail
test "$*" = "test ./..."
PATH=/bin:/usr/bin
"$KUBEBUILDER_ASSETS/etcd" --data-dir=/tmp/etcd --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 >/tmp/log 2>&1 & etcd=$!
"$KUBEBUILDER_ASSETS/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --cert-dir=/root/certificates --secure-port=6443 --bind-address=127.0.0.1 \\
  --allow-privileged=true --service-cluster-ip-range=10.0.0.0/24 --disable-admission-plugins=ServiceAccount --authorization-mode=RBAC & server=$!
for ((i = 0; i < 300; i++)); do
  if "$KUBEBUILDER_ASSETS/kubectl" --kubeconfig=/root/certificates/admin.kubeconfig get --raw /readyz; then break; fi
  sleep 0.1
done
"$KUBEBUILDER_ASSETS/kubectl" --kubeconfig=/root/certificates/admin.kubeconfig get pods
kill $server && wait $server
kill $etcd
echo the suite has passed
END
chmod +x /usr/local/bin/go
cat >Makefile <<'END'
""" + re.sub(r"^ +", "\t", block(TESTING, "In place of kube-apiserver"), flags=re.M) + """END
make test | tee made
grep 'the suite has passed$' made"""), tmp_path)


@in_a_copy
def test_prometheus_accepts_its_configuration(tmp_path):
    run(script("""
mkdir -p /usr/local/share/holdfast/prometheus /etc/prometheus
cp /src/share/prometheus/holdfast.rules.yaml /usr/local/share/holdfast/prometheus/
touch /etc/prometheus/holdfast-ca.crt /etc/prometheus/holdfast-token
cat >prometheus.yml <<'END'
""" + block(MONITORING, "Prometheus") + """END
$(command -v promtool || echo /src/.cache/promtool/promtool) check config prometheus.yml"""), tmp_path)


@in_a_copy
def test_the_simulator_finds_its_defects(tmp_path):
    output = run(script("cd /", block(PROOF, "Does the simulator find mistakes?", 1)), tmp_path)
    assert "fence_off" in output


# What surrounds the code of a document: the declarations before it, and the function that it is in.
INCLUDES = ["<errno.h>", "<stdio.h>", "<string.h>", "<holdfast/bootstrap.h>", "<holdfast/hooks.h>", "<holdfast/leader.h>", "<holdfast/operator.h>", "<holdfast/owned.h>",
            "<holdfast/reconciler.h>", "<holdfast/recorder.h>", "<holdfast/shards.h>"]
CODE = {
    (EMBEDDING, "A controller", 0): ("""
extern const struct hf_reconciler_source sources[1];
extern struct copies { int n; } copies;
int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
int run(struct hf_term *term);
int run(struct hf_term *term) {""", "}"),
    (EMBEDDING, "A controller", 1): ("""
struct copies { struct hf_recorder *recorder; };
struct hf_request request_for(const char *ns, const char *name, const char *body);
int upsert(struct hf_term *term, struct copies *copies, const char *ns, const char *copy_name, const char *body, const char *original, size_t n);
int upsert(struct hf_term *term, struct copies *copies, const char *ns, const char *copy_name, const char *body, const char *original, size_t n) {
        enum hf_upsert_result result;
        struct hf_status status = {0};
        int r;
""", "        return r;\n}"),
    (EMBEDDING, "A kind of your own", 0): ("""
int reconcile(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again);
int finalize(void *ctx, struct hf_operator_work *work);
extern const struct hf_operator_owned copies;
int start(struct hf_host host, struct hf_client *client, const char *identity, struct hf_resource notices, const char *definition, struct hf_operator *op);
int start(struct hf_host host, struct hf_client *client, const char *identity, struct hf_resource notices, const char *definition, struct hf_operator *op) {
        struct hf_status status = {0};
        int r;
""", "        return r;\n}"),
    (EMBEDDING, "Sharded work", 0): ("""
#define N_SHARDS 8
extern struct job { int n; } job;
int count(struct hf_term *term, unsigned shard, void *ctx);
int start(struct hf_host host, struct hf_elector_config elector, struct hf_electors *electors);
int start(struct hf_host host, struct hf_elector_config elector, struct hf_electors *electors) {
        struct hf_status status = {0};
        int r;
""", "        return r;\n}"),
    (EMBEDDING, "Sharded work", 1): ("", """        return 0;
}
int (*const run)(struct hf_term *term, unsigned shard, void *ctx) = count;"""),
    ("docs/semantics.md", "Bootstrap", 0): ("""
static const char text[] = "{}";
void begin(const struct hf_host *host, struct hf_hooks *hooks, struct hf_electors *electors, struct hf_elector_config elector_config);
void begin(const struct hf_host *host, struct hf_hooks *hooks, struct hf_electors *electors, struct hf_elector_config elector_config) {
        struct hf_bootstrap *bootstrap;
        struct hf_controller controllers[2] = {{0}};
        struct hf_elector *elector;
        struct hf_status status = {0};
""", "}"),
}


@pytest.mark.parametrize("name", [name for name, where in BLOCKS_OF.items() if where == "test_code_compiles"], ids=lambda name: f"{name[1]} {name[2]}")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_code_compiles(tmp_path, name, compiler):
    """The results of functions are not looked at everywhere, to keep the documents short."""
    before, after = CODE[name]
    source = tmp_path / "code.c"
    source.write_text("".join(f"#include {header}\n" for header in INCLUDES) + before + block(*name) + after + "\n")
    folders = [f"-I{path}" for path in sorted(ROOT.glob("*/include"))]
    done = subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result", "-Wno-unused", "-Wno-unused-parameter",
                           "-Wno-misleading-indentation", *folders, source],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_code_of_documents_is_that_of_the_examples():
    """The blocks that docs/embedding.md takes from examples/shards.c: each line is there."""
    example = re.sub(r"\s+", "", (ROOT / "examples" / "shards.c").read_text())
    for number in range(2):
        for line in block(EMBEDDING, "Sharded work", number).splitlines():
            assert re.sub(r"\s+", "", line) in example, line
