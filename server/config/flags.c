/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all flags, which parsing (flags_parse.c), --help and the manual use. To add a flag,
 * add a row to the table and a member to struct hfd_config. If the member is a string, also add it
 * to the list in hfd_config_done, which frees the strings.
 *
 * Invariant: a default in the table is parsed like a value from the command line, so that --help
 * shows what takes effect. A default is described in words only if the table has no value for it.
 */
#include "server/config/flags.h"

#include <assert.h>
#include <string.h>

#include "server/config/commands.h"
#include "server/config/flag_table.h"
#include "server/config/hint.h"

/* Sets of commands; each command is one bit. */
#define SERVE   (1u << HFD_COMMAND_SERVE)
#define RELEASE (1u << HFD_COMMAND_RELEASE)
#define STATUS  (1u << HFD_COMMAND_STATUS)
/* The commands about certificates. They use only the certificates in --cert-dir, and accept the
 * flags from which its default is derived. */
#define PKI                                                                                        \
        (1u << HFD_COMMAND_PKI_INIT | 1u << HFD_COMMAND_PKI_SHOW | 1u << HFD_COMMAND_PKI_EXPORT |  \
         1u << HFD_COMMAND_PKI_JOIN)
#define COPY    (1u << HFD_COMMAND_STORE_COPY)
#define RESTORE (1u << HFD_COMMAND_STORE_RESTORE)
#define COMPACT (1u << HFD_COMMAND_STORE_COMPACT)
#define STORE   (SERVE | RELEASE) /* the commands that open the instance's own store */
#define ETCD    (STORE | COPY | COMPACT)
#define ALL     (SERVE | RELEASE | STATUS) /* the commands about an instance */
#define HOUR    (3600 * HF_NSEC_PER_SEC)

/* Short names, which keep a row of the table short. */
#define TEXT     HFD_FLAG_TEXT
#define PATH     HFD_FLAG_FILE
#define DIR      HFD_FLAG_DIRECTORY
#define CHOICE   HFD_FLAG_CHOICE
#define BOOL     HFD_FLAG_BOOL
#define NUMBER   HFD_FLAG_NUMBER
#define DURATION HFD_FLAG_DURATION

/* The offset of a member. Its type follows from the flag's kind: a string for TEXT, PATH and DIR,
 * bool for BOOL, int64_t for NUMBER, DURATION and CHOICE (the index of the word). */
#define MEMBER(member) offsetof(struct hfd_config, member)

/*
 * Flags that kube-apiserver or kube-controller-manager also has keep their names, so that users
 * need not learn others. Some defaults are safer: unless flags say otherwise, kube-apiserver serves
 * on all addresses and allows every request.
 */
static const struct hfd_flag flags[] = {
        {"store", PATH, STORE, MEMBER(store_file), "", "<shared-dir>/store.db", 0, 0,
         "file of the objects, if they are not in etcd; instances of one host may share it"},
        {"storage", TEXT, SERVE, MEMBER(storage), "", "etcd with --etcd-servers, else file", 0, 0,
         "memory: keep the objects, and the certificates, in this process only, for tests; all is "
         "lost when it ends"},
        {"etcd-servers", TEXT, STORE, MEMBER(etcd_servers_text), "", "none", 0, 0,
         "URLs of etcd, comma separated; the objects are then in etcd"},
        {"etcd-prefix", TEXT, STORE | COPY | RESTORE, MEMBER(etcd_prefix), "/registry", NULL, 0, 0,
         "the prefix of all keys in etcd"},
        {"etcd-cafile", PATH, ETCD, MEMBER(etcd_ca_file), "", "the system's CAs", 0, 0,
         "PEM file of the CA that issued etcd's certificate"},
        {"etcd-certfile", PATH, ETCD, MEMBER(etcd_cert_file), "", "none", 0, 0,
         "PEM file of the client certificate for etcd"},
        {"etcd-keyfile", PATH, ETCD, MEMBER(etcd_key_file), "", "none", 0, 0,
         "PEM file of the key of --etcd-certfile"},
        {"encryption-provider-config", PATH, SERVE, MEMBER(encryption_config), "", "none", 0, 0,
         "file (EncryptionConfiguration) that says which objects are encrypted in the store, and "
         "with which keys"},
        {"etcd-compaction-interval", DURATION, SERVE, MEMBER(compaction_interval), "5m", NULL, 0,
         8760 * HOUR, "how long old versions are kept at least; 0 disables compaction"},
        {"data-dir", DIR, ALL | PKI, MEMBER(data_dir), "", "$STATE_DIRECTORY, else holdfast-data",
         0, 0, "directory of the files that this instance keeps"},
        {"shared-dir", DIR, STORE | PKI, MEMBER(shared_dir), "", "<data-dir>", 0, 0,
         "directory of the files that the instances of this host share: the store, unless it is "
         "etcd, and the certificates"},
        {"runtime-dir", DIR, ALL, MEMBER(runtime_dir), "",
         "$RUNTIME_DIRECTORY, else <data-dir>/run", 0, 0,
         "directory of the run file of this instance"},
        {"instance", TEXT, ALL, MEMBER(instance), "", "the host's name", 0, 0,
         "the name of this instance; must be unique among instances that share directories"},
        {"bind-address", TEXT, SERVE, MEMBER(bind_address), "127.0.0.1", NULL, 0, 0,
         "the IP address to serve on; 0.0.0.0 and :: mean all"},
        {"advertise-address", TEXT, SERVE, MEMBER(advertise_address), "",
         "--bind-address, or that of the default interface", 0, 0,
         "the IP address at which clients and other instances reach this one"},
        /* With port 0 several servers can run on one machine, in tests for example. */
        {"secure-port", NUMBER, SERVE, MEMBER(secure_port), "6443", NULL, 0, 65535,
         "the https port; 0 means any free port"},
        {"cert-dir", DIR, SERVE | PKI, MEMBER(cert_dir), "", "<shared-dir>/pki", 0, 0,
         "directory of the generated CA and certificates; instances may share it"},
        {"write-kubeconfig", PATH, SERVE, MEMBER(admin_kubeconfig), "",
         "<data-dir>/admin.kubeconfig", 0, 0, "kubeconfig file to write, for the administrator"},
        {"tls-cert-file", PATH, SERVE, MEMBER(tls_cert_file), "", "generated", 0, 0,
         "PEM file of the serving certificate and its chain"},
        {"tls-private-key-file", PATH, SERVE, MEMBER(tls_key_file), "", "generated", 0, 0,
         "PEM file of the key of --tls-cert-file"},
        {"client-ca-file", PATH, SERVE, MEMBER(client_ca_file), "", "the generated CA", 0, 0,
         "PEM file of the CA that issues client certificates"},
        {"token-auth-file", PATH, SERVE, MEMBER(token_auth_file), "", "none", 0, 0,
         "file of bearer tokens, one per line: token,user,uid,\"group1,group2\""},
        {"service-account-signing-key-file", PATH, SERVE, MEMBER(signing_key_file), "", "generated",
         0, 0, "PEM file of the private key that signs tokens of service accounts"},
        {"service-account-key-file", PATH, SERVE, MEMBER(account_keys_text), "", "none", 0, 0,
         "PEM files of further keys whose tokens are accepted; may be repeated", .repeats = true},
        {"service-account-issuer", TEXT, SERVE, MEMBER(issuers_text),
         "https://kubernetes.default.svc", NULL, 0, 0,
         "the issuer of tokens of service accounts; may be repeated: the others are accepted too",
         .repeats = true},
        {"api-audiences", TEXT, SERVE, MEMBER(audiences_text), "", "the issuers", 0, 0,
         "the audiences of this server in tokens, comma separated", .repeats = true},
        {"oidc-issuer-url", TEXT, SERVE, MEMBER(oidc_issuer), "", "none", 0, 0,
         "https URL of the issuer (OpenID Connect) whose ID tokens are accepted"},
        {"oidc-client-id", TEXT, SERVE, MEMBER(oidc_client_id), "", "none", 0, 0,
         "the client that tokens of --oidc-issuer-url must be for"},
        {"oidc-username-claim", TEXT, SERVE, MEMBER(oidc_username_claim), "sub", NULL, 0, 0,
         "the claim of these tokens that is the name of the user"},
        {"oidc-username-prefix", TEXT, SERVE, MEMBER(oidc_username_prefix), "",
         "the issuer and #; none for email", 0, 0,
         "what is put in front of the name; - means nothing"},
        {"oidc-groups-claim", TEXT, SERVE, MEMBER(oidc_groups_claim), "", "none", 0, 0,
         "the claim that has the groups: a text or a list"},
        {"oidc-groups-prefix", TEXT, SERVE, MEMBER(oidc_groups_prefix), "", "none", 0, 0,
         "what is put in front of each group"},
        {"oidc-required-claim", TEXT, SERVE, MEMBER(oidc_required_text), "", "none", 0, 0,
         "claim=value, which each token must have; may be repeated", .repeats = true},
        {"oidc-ca-file", PATH, SERVE, MEMBER(oidc_ca_file), "", "the system's CAs", 0, 0,
         "PEM file of the CA that issued the issuer's certificate"},
        {"oidc-signing-algs", TEXT, SERVE, MEMBER(oidc_algorithms), "RS256", NULL, 0, 0,
         "algorithms of signatures that are accepted, comma separated: RS256, ES256"},
        {"authorization-mode", TEXT, SERVE, MEMBER(authorization_mode), "RBAC", NULL, 0, 0,
         "who decides about requests, comma separated: RBAC, AlwaysAllow"},
        {"audit-policy-file", PATH, SERVE, MEMBER(audit_policy_file), "", "none", 0, 0,
         "file (YAML or JSON) that says which requests the audit log has; needs --audit-log-path"},
        {"audit-log-path", PATH, SERVE, MEMBER(audit_log_path), "", "none", 0, 0,
         "file of the audit log, one event per line; - is the standard output"},
        {"audit-log-maxage", NUMBER, SERVE, MEMBER(audit_log_max_age), "366", NULL, 0, 36500,
         "for how many days old files of the audit log are kept; 0 means for ever"},
        {"audit-log-maxbackup", NUMBER, SERVE, MEMBER(audit_log_max_backups), "100", NULL, 0, 10000,
         "how many old files of the audit log are kept; 0 means all"},
        {"audit-log-maxsize", NUMBER, SERVE, MEMBER(audit_log_max_size), "100", NULL, 0, 1000000,
         "after how many megabytes a new file of the audit log begins; 0 means never"},
        {"leader-elect", BOOL, SERVE, MEMBER(leader_elect), "true", NULL, 0, 0,
         "contend for the lease and run controllers while leading"},
        /* A Lease has its duration in whole seconds, at least one. */
        {"leader-elect-lease-duration", DURATION, SERVE, MEMBER(timing.lease_duration), "15s", NULL,
         HF_NSEC_PER_SEC, HOUR, "how long standbys wait after the leader's last renewal"},
        {"leader-elect-renew-deadline", DURATION, SERVE, MEMBER(timing.renew_deadline), "10s", NULL,
         1, HOUR, "how long a leader acts after its last successful renewal"},
        {"leader-elect-retry-period", DURATION, SERVE, MEMBER(timing.retry_period), "2s", NULL, 1,
         HOUR, "time between two renewals"},
        /* hf_leader_timing_defaults computes the default from the two flags in it. */
        {"leader-elect-stop-grace", DURATION, SERVE, MEMBER(timing.stop_grace), "",
         "min(3s, (lease-duration - renew-deadline) / 2)", 1, HOUR,
         "how long controllers may take to stop after the lease is lost"},
        {"leader-elect-resource-lock", TEXT, SERVE, MEMBER(lock_type), "leases", NULL, 0, 0,
         "the kind of object that is the lock; only leases is supported"},
        {"leader-elect-resource-namespace", TEXT, STORE, MEMBER(lease_ns), "kube-system", NULL, 0,
         0, "the namespace of the lease"},
        {"leader-elect-resource-name", TEXT, STORE, MEMBER(lease_name), "holdfast-controllers",
         NULL, 0, 0, "the name of the lease"},
        {"bootstrap-manifests", DIR, SERVE, MEMBER(bootstrap_manifests_text), "", "none", 0, 0,
         "directories of manifests (YAML or JSON) that the leader applies once, comma separated"},
        {"leader-elect-lock-dir", DIR, SERVE, MEMBER(leader_lock_dir), "", "none", 0, 0,
         "a directory that the instances of this host share: one takes the lease of another at "
         "once when its lock file proves that it died"},
        {"leader-elect-migrate-from", TEXT, SERVE, MEMBER(migrate_from), "", "none", 0, 0,
         "the name of the old lease while a fleet migrates to a new one: lead only while holding "
         "both"},
        {"leader-elect-migrate-from-namespace", TEXT, SERVE, MEMBER(migrate_from_ns), "",
         "the namespace of the lease", 0, 0, "the namespace of the old lease"},
        {"controllers", TEXT, SERVE, MEMBER(controllers_text), "*", NULL, 0, 0,
         "which controllers to run, comma separated: * all, name this one, -name not this one"},
        {"event-ttl", DURATION, SERVE, MEMBER(event_ttl), "1h", NULL, HF_NSEC_PER_SEC, 8760 * HOUR,
         "how long an Event is kept after its last update"},
        {"runtime-config", TEXT, SERVE, MEMBER(runtime_config), "", "api/workloads=false", 0, 0,
         "api/workloads=true: also serve pods, services, Deployments and so on, as data",
         .repeats = true},
        {"webhook-service-resolver", TEXT, SERVE, MEMBER(service_resolver), "",
         "the name NAME.NAMESPACE.svc", 0, 0,
         "where services with webhooks are, comma separated: NAMESPACE/NAME[:PORT]=HOST[:PORT], "
         "*=HOST[:PORT] for all others",
         .repeats = true},
        {"admission-plugin", TEXT, SERVE, MEMBER(admission_plugins), "", "none", 0, 0,
         "files of admission plug-ins in C, comma separated, which may change or refuse what is "
         "written",
         .repeats = true},
        {"shutdown-delay-duration", DURATION, SERVE, MEMBER(shutdown_delay), "0s", NULL, 0, HOUR,
         "how long to continue serving after SIGTERM, while /readyz fails"},
        {"shutdown-send-retry-after", BOOL, SERVE, MEMBER(shutdown_send_retry_after), "false", NULL,
         0, 0, "during the shutdown, respond to new requests with 429 instead of closing the port"},
        /* As in kube-apiserver, priority and fairness uses only the sum of the two limits. */
        {"max-requests-inflight", NUMBER, SERVE, MEMBER(max_requests_inflight), "400", NULL, 1,
         100000, "with --max-mutating-requests-inflight: how many requests run at a time"},
        {"max-mutating-requests-inflight", NUMBER, SERVE, MEMBER(max_mutating_requests_inflight),
         "200", NULL, 1, 100000, "see --max-requests-inflight; the priority levels share the sum"},
        {"check", BOOL, SERVE, MEMBER(check), "false", NULL, 0, 0,
         "check the flags and the files that they name, print ok or the faults, and exit"},
        {"v", NUMBER, ALL | COPY | COMPACT, MEMBER(v), "1", NULL, 0, 10,
         "how much to log: 0 and 1 notices, 2 and 3 information, 4 and more debug messages"},
        {"kubeconfig", PATH, STATUS, MEMBER(kubeconfig), "", "<data-dir>/admin.kubeconfig", 0, 0,
         "kubeconfig file of the server to query"},
        {"output", CHOICE, STATUS, MEMBER(output), "text", NULL, 0, 0,
         "how to print: text for people, json for programs", "text|json", 'o'},
        {"watch", BOOL, STATUS, MEMBER(watch), "false", NULL, 0, 0,
         "keep running and show changes until a signal"},
        {"from", TEXT, COPY, MEMBER(copy_from), "", "none", 0, 0,
         "where the objects are: sqlite:FILE or etcd:URL[,URL]"},
        {"to", TEXT, COPY, MEMBER(copy_to), "", "none", 0, 0,
         "where to copy them, which must be empty: sqlite:FILE or etcd:URL[,URL]"},
        {"etcd", BOOL, RESTORE, MEMBER(etcd_snapshot), "false", NULL, 0, 0,
         "BACKUP is a snapshot of etcd, and TARGET the one to restore etcd from"},
};
#define N_FLAGS (sizeof flags / sizeof flags[0])
_Static_assert(N_FLAGS <= HFD_FLAGS_MAX, "arrays of flags have HFD_FLAGS_MAX elements");

/* ---- for flags_parse.c ---- */

/* A linear search is enough: a command line has few flags, and is parsed once. */
const struct hfd_flag *hfd_flag_table_find(const char *name, size_t n) {
        for (size_t i = 0; i < N_FLAGS; i++)
                if (strlen(flags[i].name) == n && memcmp(flags[i].name, name, n) == 0)
                        return &flags[i];
        return NULL;
}

const struct hfd_flag *hfd_flag_table_find_letter(char letter) {
        for (size_t i = 0; i < N_FLAGS; i++)
                if (letter && flags[i].letter == letter)
                        return &flags[i];
        return NULL;
}

/* `holdfastd release` also accepts, checks and ignores the flags of the server, so that one list of
 * flags in a systemd unit is valid for both commands. It refuses --check: if it ignored this flag,
 * it would release a Lease for a user who only wants a check. */
bool hfd_flag_table_accepts(const struct hfd_flag *flag, enum hfd_command command) {
        unsigned commands = flag->commands;

        if (commands & SERVE && flag->offset != MEMBER(check))
                commands |= RELEASE;
        return commands & 1u << command;
}

const struct hfd_flag *hfd_flag_table_at(size_t position) {
        return position < N_FLAGS ? &flags[position] : NULL;
}

size_t hfd_flag_table_position(const struct hfd_flag *flag) {
        assert(flag >= flags && flag < flags + N_FLAGS);
        return (size_t)(flag - flags);
}

const char *hfd_flag_table_near(const char *name, size_t n, enum hfd_command command) {
        const char *best = NULL;

        /* A flag of another command is no help: the parser would refuse it, too. */
        for (size_t i = 0; i < N_FLAGS; i++)
                if (hfd_flag_table_accepts(&flags[i], command))
                        hfd_hint_offer(name, n, flags[i].name, &best);
        return best;
}

/* ---- for --help and the manual ---- */

const char *hfd_flags_intro(enum hfd_command command) { return hfd_commands[command].intro; }

const char *hfd_flags_command(enum hfd_command command) { return hfd_commands[command].suffix; }

bool hfd_flags_next(enum hfd_command command, size_t *at, struct hfd_flag_info *ret_flag) {
        static const char *const values[] =
                {[TEXT] = "TEXT", [PATH] = "FILE", [DIR] = "DIR",
                 [BOOL] = NULL,   [NUMBER] = "N",  [DURATION] = "DURATION"};

        for (; *at < N_FLAGS; (*at)++) {
                const struct hfd_flag *flag = &flags[*at];
                const char *shown = flag->shown_default;
                if (!(flag->commands & 1u << command))
                        continue;
                *ret_flag = (struct hfd_flag_info){.name = flag->name,
                                                   .kind = flag->kind,
                                                   .letter = flag->letter,
                                                   .value = flag->choices ? flag->choices
                                                                          : values[flag->kind],
                                                   .help = flag->help,
                                                   .default_value =
                                                           shown ? shown : flag->default_value};
                (*at)++;
                return true;
        }
        return false;
}
