/* SPDX-License-Identifier: Apache-2.0 */
/* The flags are one table; defaults go through the same parser as what a user says, so they cannot
 * drift from --help. */
#include "server/config/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"

#define SERVE   (1u << HFD_COMMAND_SERVE)
#define RELEASE (1u << HFD_COMMAND_RELEASE)
#define STATUS  (1u << HFD_COMMAND_STATUS)
#define STORE   (SERVE | RELEASE) /* commands that open the store */
#define ALL     (SERVE | RELEASE | STATUS)
#define HOUR    (3600 * HF_NSEC_PER_SEC)

enum kind { TEXT, BOOL, NUMBER, DURATION };

struct flag {
        const char *name;
        enum kind kind;
        unsigned commands; /* which know it */
        size_t offset;     /* of its field in struct hfd_config */
        const char *value; /* the default, parsed like a given one; "" = derived, as shown says */
        const char *shown; /* what --help says the default is; NULL = value */
        int64_t min, max;  /* of NUMBER, and of DURATION in nanoseconds */
        const char *help;
};

#define AT(field) offsetof(struct hfd_config, field)

static const struct flag flags[] = {
        {"etcd-servers", TEXT, STORE, AT(etcd_servers_text), "", "required", 0, 0,
         "URLs of etcd, comma separated"},
        {"etcd-prefix", TEXT, STORE, AT(etcd_prefix), "/registry", NULL, 0, 0,
         "the prefix of all keys in etcd"},
        {"etcd-cafile", TEXT, STORE, AT(etcd_ca_file), "", "the system's CAs", 0, 0,
         "PEM file of the CA that made etcd's certificate"},
        {"etcd-certfile", TEXT, STORE, AT(etcd_cert_file), "", "none", 0, 0,
         "PEM file of the client certificate for etcd"},
        {"etcd-keyfile", TEXT, STORE, AT(etcd_key_file), "", "none", 0, 0, "PEM file of its key"},
        {"data-dir", TEXT, ALL, AT(data_dir), "", "$STATE_DIRECTORY, else holdfast-data", 0, 0,
         "what this instance keeps"},
        {"runtime-dir", TEXT, ALL, AT(runtime_dir), "", "$RUNTIME_DIRECTORY, else <data-dir>/run",
         0, 0, "the lock file of this instance"},
        {"instance", TEXT, ALL, AT(instance), "", "the host's name", 0, 0,
         "the name of this instance; unique where directories are shared"},
        {"bind-address", TEXT, SERVE, AT(bind_address), "127.0.0.1", NULL, 0, 0,
         "the IP address to serve on; 0.0.0.0 and :: mean all"},
        {"secure-port", NUMBER, SERVE, AT(secure_port), "6443", NULL, 0, 65535,
         "the https port; 0 means any free one"},
        {"cert-dir", TEXT, SERVE, AT(cert_dir), "", "<data-dir>/pki", 0, 0,
         "the self-made CA and certificates; instances may share it"},
        {"tls-cert-file", TEXT, SERVE, AT(tls_cert_file), "", "self-made", 0, 0,
         "PEM file of the serving certificate and its chain"},
        {"tls-private-key-file", TEXT, SERVE, AT(tls_key_file), "", "self-made", 0, 0,
         "PEM file of its key"},
        {"client-ca-file", TEXT, SERVE, AT(client_ca_file), "", "the self-made CA", 0, 0,
         "PEM file of the CA of client certificates"},
        {"token-auth-file", TEXT, SERVE, AT(token_auth_file), "", "none", 0, 0,
         "bearer tokens: token,user,uid,\"group1,group2\" per line"},
        {"authorization-mode", TEXT, SERVE, AT(authorization_mode), "", "only group system:masters",
         0, 0, "no other mode is available yet"},
        {"leader-elect", BOOL, SERVE, AT(leader_elect), "true", NULL, 0, 0,
         "contend for the lease and run controllers while leading"},
        {"leader-elect-lease-duration", DURATION, SERVE, AT(timing.lease_duration), "15s", NULL,
         HF_NSEC_PER_SEC, HOUR, "how long standbys wait after the last sign of a leader"},
        {"leader-elect-renew-deadline", DURATION, SERVE, AT(timing.renew_deadline), "10s", NULL, 1,
         HOUR, "how long a leader acts after its last successful renewal"},
        {"leader-elect-retry-period", DURATION, SERVE, AT(timing.retry_period), "2s", NULL, 1, HOUR,
         "between renewals"},
        {"leader-elect-stop-grace", DURATION, SERVE, AT(timing.stop_grace), "",
         "min(3s, (lease-duration - renew-deadline) / 2)", 1, HOUR,
         "how long controllers may take to stop after a loss"},
        {"leader-elect-resource-lock", TEXT, SERVE, AT(lock_type), "leases", NULL, 0, 0,
         "what the lock is made of; there is only this"},
        {"leader-elect-resource-namespace", TEXT, STORE, AT(lease_ns), "kube-system", NULL, 0, 0,
         "the namespace of the lease"},
        {"leader-elect-resource-name", TEXT, STORE, AT(lease_name), "holdfast-controllers", NULL, 0,
         0, "the name of the lease"},
        {"bootstrap-manifests", TEXT, SERVE, AT(bootstrap_manifests_text), "", "none", 0, 0,
         "directories of YAML or JSON that the leader applies once, comma separated"},
        {"leader-elect-migrate-from", TEXT, SERVE, AT(migrate_from), "", "none", 0, 0,
         "the name of the lease from which a running fleet moves to this one: hold both to lead"},
        {"leader-elect-migrate-from-namespace", TEXT, SERVE, AT(migrate_from_ns), "",
         "that of the lease", 0, 0, "its namespace"},
        {"controllers", TEXT, SERVE, AT(controllers_text), "*", NULL, 0, 0,
         "which to run: * all, name this one, -name not this one"},
        {"event-ttl", DURATION, SERVE, AT(event_ttl), "1h", NULL, HF_NSEC_PER_SEC, 8760 * HOUR,
         "how long an event is kept after it was last written"},
        {"shutdown-delay-duration", DURATION, SERVE, AT(shutdown_delay), "0s", NULL, 0, HOUR,
         "serve on for so long after SIGTERM, not ready"},
        {"shutdown-send-retry-after", BOOL, SERVE, AT(shutdown_send_retry_after), "false", NULL, 0,
         0, "while draining answer new requests with 429 instead of closing the port"},
        {"max-requests-inflight", NUMBER, SERVE, AT(max_requests_inflight), "400", NULL, 1, 100000,
         "reading requests at a time"},
        {"max-mutating-requests-inflight", NUMBER, SERVE, AT(max_mutating_requests_inflight), "200",
         NULL, 1, 100000, "writing ones"},
        {"v", NUMBER, ALL, AT(v), "1", NULL, 0, 10,
         "how much to log: less than 2 notices, 2 information, 4 debug"},
        {"kubeconfig", TEXT, STATUS, AT(kubeconfig), "", "<data-dir>/admin.kubeconfig", 0, 0,
         "how to reach a server"},
        {"watch", BOOL, STATUS, AT(watch), "false", NULL, 0, 0, "keep the picture live"},
};
#define N_FLAGS (sizeof flags / sizeof flags[0])

static const char *const command_words[] = {[HFD_COMMAND_SERVE] = "",
                                            [HFD_COMMAND_RELEASE] = "release",
                                            [HFD_COMMAND_STATUS] = "status",
                                            [HFD_COMMAND_VERSION] = "version"};

static int out_of_range(const struct flag *flag, const char *value,
                        struct hf_status *reterr_status) {
        if (flag->kind == NUMBER)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s: \"%.100s\" is not a whole number from %lld to %lld",
                               flag->name, value, (long long)flag->min, (long long)flag->max);
        char min[32], max[32];
        hf__duration_format(flag->min, min);
        hf__duration_format(flag->max, max);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --%s: \"%.100s\" is not a duration such as 15s or 1m30s from %s to %s",
                       flag->name, value, min, max);
}

static int store_number(const struct flag *flag, const char *value, void *field,
                        struct hf_status *reterr_status) {
        char *end = NULL;
        int64_t number = 0;
        errno = 0;
        if (flag->kind == NUMBER)
                number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : -1;
        else if (hf__duration_parse(value, &number) != 0)
                return out_of_range(flag, value, reterr_status);
        if (errno != 0 || (end && *end) || number < flag->min || number > flag->max)
                return out_of_range(flag, value, reterr_status);
        memcpy(field, &number, sizeof number);
        return 0;
}

static int store(const struct flag *flag, const char *value, struct hfd_config *config,
                 struct hf_status *reterr_status) {
        void *field = (char *)config + flag->offset;
        bool yes = strcmp(value, "true") == 0;
        char *copy;
        switch (flag->kind) {
        case TEXT:
                copy = strdup(value);
                if (!copy)
                        return hf_fail(reterr_status, -ENOMEM, "out of memory");
                free(*(char **)field);
                *(char **)field = copy;
                return 0;
        case BOOL:
                if (!yes && strcmp(value, "false") != 0)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "flag --%s: \"%.100s\" is neither true nor false",
                                       flag->name, value);
                *(bool *)field = yes;
                return 0;
        case NUMBER:
        case DURATION: return store_number(flag, value, field, reterr_status);
        }
        return -EINVAL;
}

static int store_defaults(struct hfd_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < N_FLAGS; i++) {
                if (!flags[i].value[0] && flags[i].kind != TEXT)
                        continue; /* zero: derived later */
                int r = store(&flags[i], flags[i].value, config, reterr_status);
                if (r != 0)
                        return r;
        }
        return 0;
}

static const struct flag *find(const char *name, size_t n) {
        for (size_t i = 0; i < N_FLAGS; i++)
                if (strlen(flags[i].name) == n && memcmp(flags[i].name, name, n) == 0)
                        return &flags[i];
        return NULL;
}

/* release takes what serves too, so that a service manager can give both one line of flags; it
 * checks and ignores the rest. */
static unsigned known_by(const struct flag *flag) {
        return flag->commands & SERVE ? flag->commands | RELEASE : flag->commands;
}

/* Where parsing stands. */
struct scan {
        int argc, at;
        char *const *argv;
        bool seen[N_FLAGS];
};

/* One argument, and its value if that is the next one. */
static int take_flag(struct scan *scan, struct hfd_config *config,
                     struct hf_status *reterr_status) {
        const char *argument = scan->argv[scan->at++];
        if (strncmp(argument, "--", 2) != 0 || !argument[2])
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unexpected argument \"%.200s\": flags begin with --; see holdfastd "
                               "--help",
                               argument);
        const char *name = argument + 2;
        size_t n = strcspn(name, "=");
        const struct flag *flag = find(name, n);
        if (!flag)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unknown flag --%.*s; see holdfastd --help", n < 200 ? (int)n : 200,
                               name);
        if (!(known_by(flag) & 1u << config->command))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s does not belong to holdfastd%s%s", flag->name,
                               config->command == HFD_COMMAND_SERVE ? "" : " ",
                               command_words[config->command]);
        if (scan->seen[flag - flags])
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s is given twice", flag->name);
        scan->seen[flag - flags] = true;
        const char *value = name[n] == '=' ? name + n + 1 : flag->kind == BOOL ? "true" : NULL;
        if (!value && scan->at < scan->argc)
                value = scan->argv[scan->at++];
        if (!value || !value[0])
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s needs a value", flag->name);
        return store(flag, value, config, reterr_status);
}

static bool is_help(const char *argument) {
        return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* The sub-command, if the first argument is one; and a request for help or the version, wherever it
 * stands as an argument of its own. */
static void scan_command(struct scan *scan, struct hfd_config *config) {
        for (int i = HFD_COMMAND_RELEASE; i <= HFD_COMMAND_VERSION && scan->at < scan->argc; i++)
                if (strcmp(scan->argv[scan->at], command_words[i]) == 0) {
                        config->command = (enum hfd_command)i;
                        scan->at++;
                        break;
                }
        if (scan->at < scan->argc && strcmp(scan->argv[scan->at], "help") == 0)
                config->command = HFD_COMMAND_HELP;
        for (int i = scan->at; i < scan->argc; i++) {
                if (strcmp(scan->argv[i], "--version") == 0)
                        config->command = HFD_COMMAND_VERSION;
                if (is_help(scan->argv[i])) {
                        config->help_about = config->command;
                        config->command = HFD_COMMAND_HELP;
                        return;
                }
        }
}

int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status) {
        struct scan scan = {.argc = argc, .at = 1, .argv = argv};
        struct hfd_config config = {0};
        scan_command(&scan, &config);
        if (config.command == HFD_COMMAND_HELP || config.command == HFD_COMMAND_VERSION) {
                *ret_config = config;
                return 0;
        }
        int r = store_defaults(&config, reterr_status);
        while (r == 0 && scan.at < scan.argc)
                r = take_flag(&scan, &config, reterr_status);
        if (r == 0)
                r = hfd_config_complete(&config, reterr_status);
        if (r == 0)
                r = hfd_config_check(&config, reterr_status);
        if (r != 0) {
                hfd_config_done(&config);
                return r;
        }
        *ret_config = config;
        return 0;
}

void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out) {
        static const char *const kinds[] =
                {[TEXT] = "TEXT", [BOOL] = "", [NUMBER] = "N", [DURATION] = "DURATION"};
        unsigned mask = command == HFD_COMMAND_RELEASE || command == HFD_COMMAND_STATUS
                                ? 1u << command
                                : SERVE;
        if (mask == RELEASE)
                hf__strbuf_puts(out, "holdfastd release [flags]: frees the lease of this instance, "
                                     "known to be dead\n"
                                     "The other flags of holdfastd are taken too, and ignored.\n");
        else if (mask == STATUS)
                hf__strbuf_puts(out, "holdfastd status [flags]: the instances, who leads what "
                                     "since when, the last hand-overs\n");
        else
                hf__strbuf_puts(out, "holdfastd [flags]          the API server with its "
                                     "leader-elected controllers\n"
                                     "holdfastd release [flags]  frees the lease of an instance "
                                     "known to be dead\n"
                                     "holdfastd status [flags]   the instances, who leads what "
                                     "since when, the last hand-overs\n"
                                     "holdfastd version\n");
        hf__strbuf_puts(out, "\nFlags (--flag VALUE or --flag=VALUE):\n");
        for (size_t i = 0; i < N_FLAGS; i++) {
                const struct flag *flag = &flags[i];
                if (!(flag->commands & mask))
                        continue;
                hf__strbuf_printf(out, "  --%s%s%s\n        %s (default: %s)\n", flag->name,
                                  kinds[flag->kind][0] ? " " : "", kinds[flag->kind], flag->help,
                                  flag->shown ? flag->shown : flag->value);
        }
        hf__strbuf_puts(out, "  --help, -h\n");
}
