/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line. One table describes all flags; parsing and --help use it. To add a flag,
 * add a row to the table and a member to struct hfd_config; hfd_config_done frees the strings.
 *
 * Invariants. A default in the table is parsed like a value from the command line, so that --help
 * shows what takes effect; only derived defaults are described in words. Unless --help or --version
 * is given, a mistake is never ignored: an unknown flag, a second value or a flag of another
 * command is an error, because a misspelt flag would otherwise have no effect.
 */
#include "server/config/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"

/* Sets of commands; each command is one bit. */
#define SERVE   (1u << HFD_COMMAND_SERVE)
#define RELEASE (1u << HFD_COMMAND_RELEASE)
#define STATUS  (1u << HFD_COMMAND_STATUS)
#define STORE   (SERVE | RELEASE) /* the commands that open the store */
#define ALL     (SERVE | RELEASE | STATUS)
#define HOUR    (3600 * HF_NSEC_PER_SEC)

enum flag_kind { TEXT, BOOL, NUMBER, DURATION };

struct flag {
        const char *name;
        enum flag_kind kind;
        unsigned commands;         /* the commands whose --help shows the flag */
        size_t offset;             /* of its member in struct hfd_config */
        const char *default_value; /* "" = hfd_config_complete derives it, or there is none */
        const char *shown_default; /* the default as --help shows it; NULL = default_value */
        int64_t min, max;          /* limits of a NUMBER, or of a DURATION in nanoseconds */
        const char *help;
};

/* The offset of a member. Its type follows from the flag's kind: a string for TEXT, bool for BOOL,
 * int64_t for NUMBER and DURATION. */
#define MEMBER(member) offsetof(struct hfd_config, member)

static const struct flag flags[] = {
        {"store", TEXT, STORE, MEMBER(store_file), "", "<data-dir>/store.db", 0, 0,
         "file of the objects, if they are not in etcd; instances of one host may share it"},
        {"etcd-servers", TEXT, STORE, MEMBER(etcd_servers_text), "", "none", 0, 0,
         "URLs of etcd, comma separated; the objects are then in etcd"},
        {"etcd-prefix", TEXT, STORE, MEMBER(etcd_prefix), "/registry", NULL, 0, 0,
         "the prefix of all keys in etcd"},
        {"etcd-cafile", TEXT, STORE, MEMBER(etcd_ca_file), "", "the system's CAs", 0, 0,
         "PEM file of the CA that issued etcd's certificate"},
        {"etcd-certfile", TEXT, STORE, MEMBER(etcd_cert_file), "", "none", 0, 0,
         "PEM file of the client certificate for etcd"},
        {"etcd-keyfile", TEXT, STORE, MEMBER(etcd_key_file), "", "none", 0, 0,
         "PEM file of the key of --etcd-certfile"},
        {"data-dir", TEXT, ALL, MEMBER(data_dir), "", "$STATE_DIRECTORY, else holdfast-data", 0, 0,
         "directory of the files that this instance keeps"},
        {"runtime-dir", TEXT, ALL, MEMBER(runtime_dir), "",
         "$RUNTIME_DIRECTORY, else <data-dir>/run", 0, 0,
         "directory of the run file of this instance"},
        {"instance", TEXT, ALL, MEMBER(instance), "", "the host's name", 0, 0,
         "the name of this instance; must be unique among instances that share directories"},
        {"bind-address", TEXT, SERVE, MEMBER(bind_address), "127.0.0.1", NULL, 0, 0,
         "the IP address to serve on; 0.0.0.0 and :: mean all"},
        {"advertise-address", TEXT, SERVE, MEMBER(advertise_address), "",
         "--bind-address, or that of the default interface", 0, 0,
         "the IP address at which clients and other instances reach this one"},
        {"secure-port", NUMBER, SERVE, MEMBER(secure_port), "6443", NULL, 0, 65535,
         "the https port; 0 means any free port"},
        {"cert-dir", TEXT, SERVE, MEMBER(cert_dir), "", "<data-dir>/pki", 0, 0,
         "directory of the generated CA and certificates; instances may share it"},
        {"tls-cert-file", TEXT, SERVE, MEMBER(tls_cert_file), "", "generated", 0, 0,
         "PEM file of the serving certificate and its chain"},
        {"tls-private-key-file", TEXT, SERVE, MEMBER(tls_key_file), "", "generated", 0, 0,
         "PEM file of the key of --tls-cert-file"},
        {"client-ca-file", TEXT, SERVE, MEMBER(client_ca_file), "", "the generated CA", 0, 0,
         "PEM file of the CA that issues client certificates"},
        {"token-auth-file", TEXT, SERVE, MEMBER(token_auth_file), "", "none", 0, 0,
         "file of bearer tokens, one per line: token,user,uid,\"group1,group2\""},
        {"authorization-mode", TEXT, SERVE, MEMBER(authorization_mode), "",
         "only group system:masters", 0, 0, "not available in this version; leave it out"},
        {"leader-elect", BOOL, SERVE, MEMBER(leader_elect), "true", NULL, 0, 0,
         "contend for the lease and run controllers while leading"},
        {"leader-elect-lease-duration", DURATION, SERVE, MEMBER(timing.lease_duration), "15s", NULL,
         HF_NSEC_PER_SEC, HOUR, "how long standbys wait after the leader's last renewal"},
        {"leader-elect-renew-deadline", DURATION, SERVE, MEMBER(timing.renew_deadline), "10s", NULL,
         1, HOUR, "how long a leader acts after its last successful renewal"},
        {"leader-elect-retry-period", DURATION, SERVE, MEMBER(timing.retry_period), "2s", NULL, 1,
         HOUR, "time between two renewals"},
        {"leader-elect-stop-grace", DURATION, SERVE, MEMBER(timing.stop_grace), "",
         "min(3s, (lease-duration - renew-deadline) / 2)", 1, HOUR,
         "how long controllers may take to stop after the lease is lost"},
        {"leader-elect-resource-lock", TEXT, SERVE, MEMBER(lock_type), "leases", NULL, 0, 0,
         "the kind of object that is the lock; only leases is supported"},
        {"leader-elect-resource-namespace", TEXT, STORE, MEMBER(lease_ns), "kube-system", NULL, 0,
         0, "the namespace of the lease"},
        {"leader-elect-resource-name", TEXT, STORE, MEMBER(lease_name), "holdfast-controllers",
         NULL, 0, 0, "the name of the lease"},
        {"bootstrap-manifests", TEXT, SERVE, MEMBER(bootstrap_manifests_text), "", "none", 0, 0,
         "directories of manifests (YAML or JSON) that the leader applies once, comma separated"},
        {"leader-elect-lock-dir", TEXT, SERVE, MEMBER(leader_lock_dir), "", "none", 0, 0,
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
        {"shutdown-delay-duration", DURATION, SERVE, MEMBER(shutdown_delay), "0s", NULL, 0, HOUR,
         "how long to continue serving after SIGTERM, while /readyz fails"},
        {"shutdown-send-retry-after", BOOL, SERVE, MEMBER(shutdown_send_retry_after), "false", NULL,
         0, 0, "during the shutdown, respond to new requests with 429 instead of closing the port"},
        {"max-requests-inflight", NUMBER, SERVE, MEMBER(max_requests_inflight), "400", NULL, 1,
         100000, "how many read requests are served at a time"},
        {"max-mutating-requests-inflight", NUMBER, SERVE, MEMBER(max_mutating_requests_inflight),
         "200", NULL, 1, 100000, "how many write requests are served at a time"},
        {"v", NUMBER, ALL, MEMBER(v), "1", NULL, 0, 10,
         "how much to log: 0 and 1 notices, 2 and 3 information, 4 and more debug messages"},
        {"kubeconfig", TEXT, STATUS, MEMBER(kubeconfig), "", "<data-dir>/admin.kubeconfig", 0, 0,
         "kubeconfig file of the server to query"},
        {"watch", BOOL, STATUS, MEMBER(watch), "false", NULL, 0, 0,
         "keep running and show changes until a signal"},
};
#define N_FLAGS (sizeof flags / sizeof flags[0])

/* The commands, as written after "holdfastd". */
static const char *const command_suffixes[] = {[HFD_COMMAND_SERVE] = "",
                                               [HFD_COMMAND_RELEASE] = " release",
                                               [HFD_COMMAND_STATUS] = " status",
                                               [HFD_COMMAND_VERSION] = " version"};

/* Reports a value that cannot be parsed or is out of range. The message is the same for both,
 * because it contains both rules. */
static int refuse_value(const struct flag *flag, const char *value,
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

/* Parses a NUMBER or DURATION into *member, an int64_t. */
static int set_number(const struct flag *flag, const char *value, void *member,
                      struct hf_status *reterr_status) {
        char *end = NULL;
        int64_t number = 0;
        errno = 0;
        if (flag->kind == NUMBER)
                number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : -1;
        else if (hf__duration_parse(value, &number) != 0)
                return refuse_value(flag, value, reterr_status);
        /* strtoll sets errno if the number does not fit in 64 bits. */
        if (errno != 0 || (end && *end) || number < flag->min || number > flag->max)
                return refuse_value(flag, value, reterr_status);
        memcpy(member, &number, sizeof number);
        return 0;
}

/* Parses value into the flag's member. */
static int set_member(const struct flag *flag, const char *value, struct hfd_config *config,
                      struct hf_status *reterr_status) {
        void *member = (char *)config + flag->offset;
        bool yes = strcmp(value, "true") == 0;
        char *copy;
        switch (flag->kind) {
        case TEXT:
                copy = strdup(value);
                if (!copy)
                        return hf_fail(reterr_status, -ENOMEM, "out of memory");
                free(*(char **)member);
                *(char **)member = copy;
                return 0;
        case BOOL:
                if (!yes && strcmp(value, "false") != 0)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "flag --%s: \"%.100s\" is neither true nor false",
                                       flag->name, value);
                *(bool *)member = yes;
                return 0;
        case NUMBER:
        case DURATION: return set_number(flag, value, member, reterr_status);
        }
        return -EINVAL;
}

/* Sets all defaults. A text flag without a default gets "", so that no string is NULL. */
static int set_defaults(struct hfd_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < N_FLAGS; i++) {
                if (!flags[i].default_value[0] && flags[i].kind != TEXT)
                        continue; /* stays zero: the default is derived later */
                int r = set_member(&flags[i], flags[i].default_value, config, reterr_status);
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

/* The commands that accept the flag. `holdfastd release` also accepts, checks and ignores the flags
 * of the server, so that one list of flags in a systemd unit is valid for both. */
static unsigned accepted_by(const struct flag *flag) {
        return flag->commands & SERVE ? flag->commands | RELEASE : flag->commands;
}

/* The command line while it is parsed. */
struct arguments {
        int argc, next; /* next: the index of the first argument that is not parsed yet */
        char *const *argv;
        bool seen[N_FLAGS]; /* the flags that were given, to find duplicates */
};

/* Returns the value of a flag: the text after '=' (rest begins with it), or the next argument. A
 * boolean flag never uses the next argument, because it needs no value. NULL: there is no value. */
static const char *read_value(struct arguments *arguments, const struct flag *flag,
                              const char *rest) {
        if (rest[0] == '=')
                return rest + 1;
        if (flag->kind == BOOL)
                return "true";
        return arguments->next < arguments->argc ? arguments->argv[arguments->next++] : NULL;
}

/* Parses the next flag with its value. */
static int parse_flag(struct arguments *arguments, struct hfd_config *config,
                      struct hf_status *reterr_status) {
        const char *argument = arguments->argv[arguments->next++];
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
        if (arguments->seen[flag - flags])
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s is given twice: give it once", flag->name);
        arguments->seen[flag - flags] = true;
        const char *value = read_value(arguments, flag, name + n);
        if (!value || !value[0])
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s needs a value", flag->name);
        return set_member(flag, value, config, reterr_status);
}

static bool is_help(const char *argument) {
        return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Finds the sub-command, which must be the first argument. --help and --version may be any argument
 * and take precedence, so that they work on a command line with mistakes too. */
static void find_command(struct arguments *arguments, struct hfd_config *config) {
        for (int i = HFD_COMMAND_RELEASE;
             i <= HFD_COMMAND_VERSION && arguments->next < arguments->argc; i++)
                if (strcmp(arguments->argv[arguments->next], command_suffixes[i] + 1) == 0) {
                        config->command = (enum hfd_command)i;
                        arguments->next++;
                        break;
                }
        if (arguments->next < arguments->argc &&
            strcmp(arguments->argv[arguments->next], "help") == 0)
                config->command = HFD_COMMAND_HELP;
        for (int i = arguments->next; i < arguments->argc; i++) {
                if (strcmp(arguments->argv[i], "--version") == 0)
                        config->command = HFD_COMMAND_VERSION;
                if (is_help(arguments->argv[i])) {
                        config->help_command = config->command;
                        config->command = HFD_COMMAND_HELP;
                        return;
                }
        }
}

int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status) {
        struct arguments arguments = {.argc = argc, .next = 1, .argv = argv};
        struct hfd_config config = {0};

        find_command(&arguments, &config);
        if (config.command == HFD_COMMAND_HELP || config.command == HFD_COMMAND_VERSION) {
                *ret_config = config;
                return 0;
        }
        int r = set_defaults(&config, reterr_status);
        while (r == 0 && arguments.next < arguments.argc)
                r = parse_flag(&arguments, &config, reterr_status);
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
                       "has died\n"
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
                                  flag->shown_default ? flag->shown_default : flag->default_value);
        }
        hf__strbuf_puts(out, "  --help, -h\n");
}
