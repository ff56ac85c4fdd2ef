/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What holdfastd is told to do, complete and checked. Filled by the flags (flags.h); plain data
 * afterwards. No I/O here: files are opened and addresses bound by whoever uses them.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/leader.h>

#define HFD_MAX_ETCD_SERVERS 16
#define HFD_MAX_CONTROLLERS  64
#define HFD_MAX_MANIFESTS    16

enum hfd_command {
        HFD_COMMAND_SERVE, /* holdfastd [flags] */
        HFD_COMMAND_RELEASE,
        HFD_COMMAND_STATUS,
        HFD_COMMAND_VERSION, /* holdfastd version, --version */
        HFD_COMMAND_HELP,    /* --help, anywhere */
};

/* All strings are owned; never NULL after hfd_config_complete, "" where nothing was said. */
struct hfd_config {
        enum hfd_command command;
        enum hfd_command help_about; /* HFD_COMMAND_HELP: of what */

        /* the store */
        char *etcd_servers_text; /* as given: comma separated */
        char *etcd_servers[HFD_MAX_ETCD_SERVERS];
        size_t n_etcd_servers;
        char *etcd_prefix;
        char *etcd_ca_file, *etcd_cert_file, *etcd_key_file;

        /* this instance */
        char *data_dir;    /* $STATE_DIRECTORY, else holdfast-data in the working directory */
        char *runtime_dir; /* $RUNTIME_DIRECTORY, else <data-dir>/run */
        char *instance;    /* the host's name */

        /* serving */
        char *bind_address;
        int64_t secure_port; /* 0 = any free one */
        char *cert_dir;      /* <data-dir>/pki */
        char *tls_cert_file, *tls_key_file;
        char *client_ca_file;
        char *token_auth_file;
        char *authorization_mode;
        int64_t max_requests_inflight, max_mutating_requests_inflight;

        /* leading */
        bool leader_elect;
        struct hf_leader_timing timing; /* complete: no zero fields but where zero is meant */
        char *lock_type;                /* leases */
        char *lease_ns, *lease_name;
        char *migrate_from_ns, *migrate_from; /* the old Lease of a migration; "" = none */
        char *controllers_text;               /* as given: "*,-name" */
        char *controllers[HFD_MAX_CONTROLLERS];
        size_t n_controllers;
        hf_nsec event_ttl;
        char *bootstrap_manifests_text; /* as given: directories, comma separated */
        char *bootstrap_manifests[HFD_MAX_MANIFESTS + 1]; /* NULL-terminated */
        size_t n_bootstrap_manifests;

        /* ending */
        hf_nsec shutdown_delay;
        bool shutdown_send_retry_after;

        int64_t v; /* 0 = notices; 1 .. 3 = information; 4 and more = debug */

        /* holdfastd status */
        char *kubeconfig; /* <data-dir>/admin.kubeconfig */
        bool watch;
};

/* Derives what was left open (from the environment, the host's name and other fields) and splits
 * the lists. HF_E_INVALID, -ENOMEM. */
int hfd_config_complete(struct hfd_config *config, struct hf_status *reterr_status);
/* Every rule that needs no I/O. HF_E_INVALID: the message names the flag, the value, the rule. */
int hfd_config_check(const struct hfd_config *config, struct hf_status *reterr_status);
void hfd_config_done(struct hfd_config *config); /* frees; accepts a zeroed or half-filled one */

/* What --controllers says about one: "*" = all, "name" = this one, "-name" = not this one; a name
 * outweighs "*". Pure. */
bool hfd_config_runs_controller(const struct hfd_config *config, const char *name);
/* known is NULL-terminated. HF_E_INVALID: --controllers names one that does not exist. */
int hfd_config_check_controllers(const struct hfd_config *config, const char *const *known,
                                 struct hf_status *reterr_status);
