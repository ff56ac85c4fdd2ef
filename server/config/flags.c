/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table describes all flags; parsing and --help use it.
 *
 * Invariant: a default is parsed like a given value, so --help shows the default that takes effect.
 * To add a flag, add a row here and a member to struct hfd_config.
 */
#include "server/config/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"

/* Sets of commands, as bits. */
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
        unsigned commands; /* commands that have the flag */
        size_t offset;     /* offset of its member in struct hfd_config */
        const char *value; /* the default; "" = it is derived later */
        const char *shown; /* the default as --help describes it; NULL = value */
        int64_t min, max;  /* limits of a NUMBER, or of a DURATION in nanoseconds */
        const char *help;
};

#define AT(field) offsetof(struct hfd_config, field)

static const struct flag flags[] = {
        {"etcd-servers", TEXT, STORE, AT(etcd_servers_text), "", "required", 0, 0,
         "URLs of etcd, comma separated"},
        {"etcd-prefix", TEXT, STORE, AT(etcd_prefix), "/registry", NULL, 0, 0,
         "the prefix of all keys in etcd"},
        {"etcd-cafile", TEXT, STORE, AT(etcd_ca_file), "", "the system's CAs", 0, 0,
         "PEM file of the CA that issued etcd's certificate"},
        {"etcd-certfile", TEXT, STORE, AT(etcd_cert_file), "", "none", 0, 0,
         "PEM file of the client certificate for etcd"},
        {"etcd-keyfile", TEXT, STORE, AT(etcd_key_file), "", "none", 0, 0,
         "PEM file of the key of --etcd-certfile"},
        {"data-dir", TEXT, ALL, AT(data_dir), "", "$STATE_DIRECTORY, else holdfast-data", 0, 0,
         "directory of the files that this instance keeps"},
        {"runtime-dir", TEXT, ALL, AT(runtime_dir), "", "$RUNTIME_DIRECTORY, else <data-dir>/run",
         0, 0, "directory of the run file of this instance"},
        {"instance", TEXT, ALL, AT(instance), "", "the host's name", 0, 0,
         "the name of this instance; unique among instances that share directories"},
        {"bind-address", TEXT, SERVE, AT(bind_address), "127.0.0.1", NULL, 0, 0,
         "the IP address to serve on; 0.0.0.0 and :: mean all"},
        {"secure-port", NUMBER, SERVE, AT(secure_port), "6443", NULL, 0, 65535,
         "the https port; 0 means any free port"},
        {"cert-dir", TEXT, SERVE, AT(cert_dir), "", "<data-dir>/pki", 0, 0,
         "directory of the self-made CA and certificates; instances may share it"},
        {"tls-cert-file", TEXT, SERVE, AT(tls_cert_file), "", "self-made", 0, 0,
         "PEM file of the serving certificate and its chain"},
        {"tls-private-key-file", TEXT, SERVE, AT(tls_key_file), "", "self-made", 0, 0,
         "PEM file of the key of --tls-cert-file"},
        {"client-ca-file", TEXT, SERVE, AT(client_ca_file), "", "the self-made CA", 0, 0,
         "PEM file of the CA that issues client certificates"},
        {"token-auth-file", TEXT, SERVE, AT(token_auth_file), "", "none", 0, 0,
         "file of bearer tokens, one per line: token,user,uid,\"group1,group2\""},
        {"authorization-mode", TEXT, SERVE, AT(authorization_mode), "", "only group system:masters",
         0, 0, "not available in this version; leave it out"},
        {"leader-elect", BOOL, SERVE, AT(leader_elect), "true", NULL, 0, 0,
         "contend for the lease and run controllers while leading"},
        {"leader-elect-lease-duration", DURATION, SERVE, AT(timing.lease_duration), "15s", NULL,
         HF_NSEC_PER_SEC, HOUR, "how long standbys wait after the leader's last renewal"},
        {"leader-elect-renew-deadline", DURATION, SERVE, AT(timing.renew_deadline), "10s", NULL, 1,
         HOUR, "how long a leader acts after its last successful renewal"},
        {"leader-elect-retry-period", DURATION, SERVE, AT(timing.retry_period), "2s", NULL, 1, HOUR,
         "time between two renewals"},
        {"leader-elect-stop-grace", DURATION, SERVE, AT(timing.stop_grace), "",
         "min(3s, (lease-duration - renew-deadline) / 2)", 1, HOUR,
         "how long controllers may take to stop after the lease is lost"},
        {"leader-elect-resource-lock", TEXT, SERVE, AT(lock_type), "leases", NULL, 0, 0,
         "the kind of object that is the lock; only leases is supported"},
        {"leader-elect-resource-namespace", TEXT, STORE, AT(lease_ns), "kube-system", NULL, 0, 0,
         "the namespace of the lease"},
        {"leader-elect-resource-name", TEXT, STORE, AT(lease_name), "holdfast-controllers", NULL, 0,
         0, "the name of the lease"},
        {"bootstrap-manifests", TEXT, SERVE, AT(bootstrap_manifests_text), "", "none", 0, 0,
         "directories of manifests (YAML or JSON) that the leader applies once, comma separated"},
        {"leader-elect-migrate-from", TEXT, SERVE, AT(migrate_from), "", "none", 0, 0,
         "the name of the old lease while a fleet migrates to a new one: lead only while holding "
         "both"},
        {"leader-elect-migrate-from-namespace", TEXT, SERVE, AT(migrate_from_ns), "",
         "the namespace of the lease", 0, 0, "the namespace of the old lease"},
        {"controllers", TEXT, SERVE, AT(controllers_text), "*", NULL, 0, 0,
         "which controllers to run, comma separated: * all, name this one, -name not this one"},
        {"event-ttl", DURATION, SERVE, AT(event_ttl), "1h", NULL, HF_NSEC_PER_SEC, 8760 * HOUR,
         "how long an Event is kept after its last update"},
        {"shutdown-delay-duration", DURATION, SERVE, AT(shutdown_delay), "0s", NULL, 0, HOUR,
         "how long to continue serving after SIGTERM, while /readyz fails"},
        {"shutdown-send-retry-after", BOOL, SERVE, AT(shutdown_send_retry_after), "false", NULL, 0,
         0, "while shutting down respond to new requests with 429 instead of closing the port"},
        {"max-requests-inflight", NUMBER, SERVE, AT(max_requests_inflight), "400", NULL, 1, 100000,
         "how many read requests are served at a time"},
        {"max-mutating-requests-inflight", NUMBER, SERVE, AT(max_mutating_requests_inflight), "200",
         NULL, 1, 100000, "how many write requests are served at a time"},
        {"v", NUMBER, ALL, AT(v), "1", NULL, 0, 10,
         "how much to log: 0 and 1 notices, 2 and 3 information, 4 and more debug messages"},
        {"kubeconfig", TEXT, STATUS, AT(kubeconfig), "", "<data-dir>/admin.kubeconfig", 0, 0,
         "kubeconfig file of the server to ask"},
        {"watch", BOOL, STATUS, AT(watch), "false", NULL, 0, 0, "keep running and show changes"},
};
#define N_FLAGS (sizeof flags / sizeof flags[0])

/* The commands, as written after "holdfastd". */
static const char *const command_suffixes[] = {[HFD_COMMAND_SERVE] = "",
                                               [HFD_COMMAND_RELEASE] = " release",
                                               [HFD_COMMAND_STATUS] = " status",
                                               [HFD_COMMAND_VERSION] = " version"};

/* One message for a value that does not parse and one that is out of range: it names both rules. */
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

/* NUMBER and DURATION: an int64_t. */
static int set_number(const struct flag *flag, const char *value, void *field,
                      struct hf_status *reterr_status) {
        char *end = NULL;
        int64_t number = 0;
        errno = 0;
        if (flag->kind == NUMBER)
                number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : -1;
        else if (hf__duration_parse(value, &number) != 0)
                return out_of_range(flag, value, reterr_status);
        /* strtoll sets errno if the number does not fit in 64 bits. */
        if (errno != 0 || (end && *end) || number < flag->min || number > flag->max)
                return out_of_range(flag, value, reterr_status);
        memcpy(field, &number, sizeof number);
        return 0;
}

/* Parses value into the flag's member. */
static int set_member(const struct flag *flag, const char *value, struct hfd_config *config,
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
        case DURATION: return set_number(flag, value, field, reterr_status);
        }
        return -EINVAL;
}

/* A text flag without a default gets "", so that no string is NULL. */
static int set_defaults(struct hfd_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < N_FLAGS; i++) {
                if (!flags[i].value[0] && flags[i].kind != TEXT)
                        continue; /* stays zero: the default is derived later */
                int r = set_member(&flags[i], flags[i].value, config, reterr_status);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* name is not NUL-terminated; n bytes. NULL: there is no such flag. */
static const struct flag *find_flag(const char *name, size_t n) {
        for (size_t i = 0; i < N_FLAGS; i++)
                if (strlen(flags[i].name) == n && memcmp(flags[i].name, name, n) == 0)
                        return &flags[i];
        return NULL;
}

/* The commands that accept the flag. release accepts all flags of the server, checks and ignores
 * them, so that a service manager can give both the same flags. */
static unsigned accepted_by(const struct flag *flag) {
        return flag->commands & SERVE ? flag->commands | RELEASE : flag->commands;
}

/* The state of parsing. */
struct scan {
        int argc, at; /* at: the next argument */
        char *const *argv;
        bool seen[N_FLAGS]; /* flags that were given */
};

/* The value of a flag: the text after '=', or the next argument. A boolean never uses the next
 * argument. NULL: there is no value. */
static const char *take_value(struct scan *scan, const struct flag *flag, const char *rest) {
        if (rest[0] == '=')
                return rest + 1;
        if (flag->kind == BOOL)
                return "true";
        return scan->at < scan->argc ? scan->argv[scan->at++] : NULL;
}

/* Consumes one flag and its value. */
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
        const struct flag *flag = find_flag(name, n);
        if (!flag)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unknown flag --%.*s; see holdfastd --help", n < 200 ? (int)n : 200,
                               name);
        if (!(accepted_by(flag) & 1u << config->command))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s is not a flag of holdfastd%s; see holdfastd%s --help",
                               flag->name, command_suffixes[config->command],
                               command_suffixes[config->command]);
        if (scan->seen[flag - flags])
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s is given twice: give it once", flag->name);
        scan->seen[flag - flags] = true;
        const char *value = take_value(scan, flag, name + n);
        if (!value || !value[0])
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s needs a value", flag->name);
        return set_member(flag, value, config, reterr_status);
}

static bool is_help(const char *argument) {
        return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Finds the sub-command, which may be the first argument only, and --help or --version, which may
 * be any argument. */
static void scan_command(struct scan *scan, struct hfd_config *config) {
        for (int i = HFD_COMMAND_RELEASE; i <= HFD_COMMAND_VERSION && scan->at < scan->argc; i++)
                if (strcmp(scan->argv[scan->at], command_suffixes[i] + 1) == 0) {
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
        int r = set_defaults(&config, reterr_status);
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

static const char *help_intro(enum hfd_command command) {
        if (command == HFD_COMMAND_RELEASE)
                return "holdfastd release [flags]: releases the lease of this instance after it "
                       "has "
                       "died\n"
                       "The other flags of holdfastd are accepted too, and ignored.\n";
        if (command == HFD_COMMAND_STATUS)
                return "holdfastd status [flags]: shows the instances, the leaders and the last "
                       "hand-overs\n";
        return "holdfastd [flags]          the API server with its leader-elected controllers\n"
               "holdfastd release [flags]  releases the lease of an instance that has died\n"
               "holdfastd status [flags]   shows the instances, the leaders and the last "
               "hand-overs\n"
               "holdfastd version          shows the version\n";
}

void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out) {
        static const char *const kinds[] =
                {[TEXT] = " TEXT", [BOOL] = "", [NUMBER] = " N", [DURATION] = " DURATION"};
        bool has_flags = command == HFD_COMMAND_RELEASE || command == HFD_COMMAND_STATUS;
        unsigned mask = has_flags ? 1u << command : SERVE;

        hf__strbuf_puts(out, help_intro(command));
        hf__strbuf_puts(out, "\nFlags (--flag VALUE or --flag=VALUE):\n");
        for (size_t i = 0; i < N_FLAGS; i++) {
                const struct flag *flag = &flags[i];
                if (!(flag->commands & mask))
                        continue;
                hf__strbuf_printf(out, "  --%s%s\n        %s (default: %s)\n", flag->name,
                                  kinds[flag->kind], flag->help,
                                  flag->shown ? flag->shown : flag->value);
        }
        hf__strbuf_puts(out, "  --help, -h\n");
}
