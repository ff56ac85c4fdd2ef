/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The configuration: the result of parsing the command line. hfd_flags_parse fills, completes and
 * checks it, and hfd_kube_apiserver_parse sets two members more. Afterwards it does not change, and
 * any thread may read it.
 *
 * The functions here open no file and bind no address. hfd_config_complete reads the environment
 * and the host's name, so it is called at the start of the process, before there are threads.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/leader.h>

#define HFD_MAX_ETCD_SERVERS         16
#define HFD_MAX_CONTROLLERS          64
#define HFD_MAX_MANIFEST_DIRECTORIES 16
#define HFD_MAX_ARGUMENTS            2
#define HFD_MAX_KEY_FILES            16
#define HFD_MAX_ISSUERS              8
#define HFD_MAX_AUDIENCES            16
#define HFD_MAX_REQUIRED_CLAIMS      16

enum hfd_command {
        HFD_COMMAND_SERVE, /* holdfastd [flags] */
        HFD_COMMAND_RELEASE,
        HFD_COMMAND_STATUS,
        HFD_COMMAND_PKI, /* only "holdfastd pki", without a sub-command */
        HFD_COMMAND_PKI_INIT,
        HFD_COMMAND_PKI_SHOW,
        HFD_COMMAND_PKI_EXPORT,
        HFD_COMMAND_PKI_JOIN,
        HFD_COMMAND_STORE, /* only "holdfastd store", without a sub-command */
        HFD_COMMAND_STORE_COPY,
        HFD_COMMAND_STORE_BACKUP,
        HFD_COMMAND_STORE_RESTORE,
        HFD_COMMAND_STORE_CHECK,
        HFD_COMMAND_STORE_COMPACT,
        HFD_COMMAND_VERSION, /* holdfastd version, --version */
        HFD_COMMAND_HELP,    /* --help or help, with any command */
};

enum hfd_output { HFD_OUTPUT_TEXT, HFD_OUTPUT_JSON }; /* in the order of --output */

/*
 * All strings are owned. After hfd_flags_parse no string of a flag is NULL; "" = the flag was not
 * given and has no default. (The commands version and help parse no flags, so all strings are
 * NULL.) The comments below give the defaults that are derived at run time; the others are in the
 * table of flags.
 */
struct hfd_config {
        enum hfd_command command;
        enum hfd_command help_command; /* only for HFD_COMMAND_HELP: the command to explain */

        /* the store */
        char *storage;                                /* "memory"; "" = in etcd or in a file */
        char *etcd_servers_text;                      /* as given: comma separated */
        char *etcd_servers[HFD_MAX_ETCD_SERVERS + 1]; /* NULL-terminated */
        size_t n_etcd_servers;
        char *store_file; /* the file of SQLite: <shared-dir>/store.db; "" with etcd or in memory */
        char *etcd_prefix;
        char *etcd_ca_file, *etcd_cert_file, *etcd_key_file;
        char *encryption_config;

        /* this instance */
        /* $STATE_DIRECTORY, else holdfast-data in the working directory; with --storage=memory this
         * and the next two are "". */
        char *data_dir;
        char *shared_dir;  /* <data-dir> */
        char *runtime_dir; /* $RUNTIME_DIRECTORY, else <data-dir>/run */
        char *instance;    /* the host's name */

        /* serving */
        char *bind_address;
        char *advertise_address; /* "" = the bind address, or chosen if that is a wildcard */
        int64_t secure_port;     /* 0 = any free port */
        char *cert_dir;          /* <shared-dir>/pki; with --storage=memory "": none */
        char *admin_kubeconfig;  /* <data-dir>/admin.kubeconfig */
        char *tls_cert_file, *tls_key_file;
        char *client_ca_file;
        char *token_auth_file;
        char *authorization_mode; /* "RBAC", "AlwaysAllow", or both */
        /* the tokens of service accounts */
        char *signing_key_file;                         /* "" = the generated key */
        char *account_keys_text;                        /* as given: files, comma separated */
        char *account_key_files[HFD_MAX_KEY_FILES + 1]; /* NULL-terminated, as the next two */
        size_t n_account_key_files;
        char *issuers_text;
        char *issuers[HFD_MAX_ISSUERS + 1];
        size_t n_issuers; /* at least 1 */
        char *audiences_text;
        char *audiences[HFD_MAX_AUDIENCES + 1]; /* none = the issuers */
        size_t n_audiences;
        /* tokens of an issuer of OpenID Connect; both or none of the first two */
        char *oidc_issuer, *oidc_client_id;
        char *oidc_username_claim, *oidc_username_prefix;
        char *oidc_groups_claim, *oidc_groups_prefix;
        char *oidc_required_text;                         /* as given: claim=value, ... */
        char *oidc_required[HFD_MAX_REQUIRED_CLAIMS + 1]; /* NULL-terminated */
        size_t n_oidc_required;
        char *oidc_ca_file;
        char *oidc_algorithms;   /* comma separated: RS256, ES256 */
        char *runtime_config;    /* as given: name=value, comma separated */
        bool serves_workloads;   /* pods, services, Deployments and so on (resources/workloads) */
        bool pods_lack_accounts; /* new pods get no service account (kube_apiserver.h) */
        /* Addresses of services with webhooks, see outbound/service_resolver.h. */
        char *service_resolver;
        char *admission_plugins; /* paths of shared objects, comma separated */
        int64_t max_requests_inflight, max_mutating_requests_inflight;

        /* the audit log; both or none of the first two */
        char *audit_policy_file, *audit_log_path; /* the path "-" = the standard output */
        int64_t audit_log_max_age;                /* days; 0 = for ever */
        int64_t audit_log_max_backups;            /* files; 0 = all */
        int64_t audit_log_max_size;               /* MiB; 0 = no limit */

        /* leading */
        bool leader_elect;
        struct hf_leader_timing timing; /* complete, see hf_leader_timing_defaults */
        char *lock_type;                /* "leases" */
        char *lease_ns, *lease_name;
        char *leader_lock_dir; /* lock files of the instances of this host; "" = none */
        char *migrate_from_ns, *migrate_from; /* the old Lease of a migration */
        char *controllers_text;               /* as given: "*,-name" */
        char *controllers[HFD_MAX_CONTROLLERS];
        size_t n_controllers;
        hf_nsec event_ttl;
        hf_nsec compaction_interval;    /* 0 = off */
        char *bootstrap_manifests_text; /* as given: directories, comma separated */
        char *bootstrap_manifests[HFD_MAX_MANIFEST_DIRECTORIES + 1]; /* NULL-terminated */
        size_t n_bootstrap_manifests;

        /* shutting down */
        hf_nsec shutdown_delay;
        bool shutdown_send_retry_after;

        char *ignored_flags; /* flags that kube_apiserver.c has left out: "--a, --b"; may be NULL */
        bool check;          /* check the flags and what they name, and exit */

        int64_t v; /* log verbosity. Up to 1: notices; 2 and 3: information; 4 and more: debug */

        /* holdfastd status */
        char *kubeconfig; /* <data-dir>/admin.kubeconfig */
        bool watch;
        int64_t output; /* enum hfd_output */

        /* holdfastd store ... */
        char *copy_from, *copy_to; /* sqlite:FILE or etcd:URL[,URL] */
        bool etcd_snapshot;        /* restore: the backup is a snapshot of etcd */
        /* the arguments that are not flags, in order; the other places are NULL */
        char *arguments[HFD_MAX_ARGUMENTS];
        size_t n_arguments;
};

/* Derives the members whose flags were not given. They come from the environment, the host's name
 * and other members. Also splits the lists. HF_E_INVALID: a list is malformed; the message names
 * the flag. Or -errno. After an error the caller still calls hfd_config_done. Call once. */
int hfd_config_complete(struct hfd_config *config, struct hf_status *reterr_status);
#define HFD_STORE_NAME_MAX 256 /* bytes, with the NUL */
/* Writes where the objects are, for messages: "etcd at <first URL>", "the store <file>" or "the
 * store in memory". */
void hfd_config_store_name(const struct hfd_config *config, char name[HFD_STORE_NAME_MAX]);
/* Whether nothing is to be kept outside this process (--storage=memory). */
bool hfd_config_is_in_memory(const struct hfd_config *config);
void hfd_config_done(struct hfd_config *config); /* accepts a zeroed or partly set config */

/* Whether --controllers selects the controller. In the list, "*" selects all controllers, "name"
 * selects one, and "-name" excludes one. A name takes precedence over "*". Pure. */
bool hfd_config_runs_controller(const struct hfd_config *config, const char *name);
/* Whether --authorization-mode is valid and contains mode; NULL = whether it is valid. Pure. */
bool hfd_config_authorizes_by(const struct hfd_config *config, const char *mode);
