/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the configuration that the flags have begun, responds to questions about it, and frees
 * it.
 *
 * Invariants. What a flag has set is never derived. Only the environment and the host's name are
 * read here: nothing opens a file.
 */
#include "server/config/config.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/redact.h"

static bool is_set(const char *text) { return text && text[0]; }

/* Replaces *text, which the configuration owns, by a copy. 0 or -ENOMEM. */
static int set_text(char **text, const char *value) {
        char *copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

/* Sets *text to <dir>/<name>. */
static int set_joined(char **text, const char *dir, const char *name) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", dir, name);
        return n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG : set_text(text, path);
}

/* Sets *text to a directory from the environment. systemd's *_DIRECTORY variables contain a list,
 * separated by colons. Our unit has one directory, so only the first item is used. */
static int set_from_environment(char **text, const char *variable, const char *fallback) {
        const char *value = getenv(variable);
        if (!is_set(value))
                return set_text(text, fallback);
        char first[PATH_MAX];
        size_t n = strcspn(value, ":");
        if (n == 0)
                return -EINVAL;
        if (n >= sizeof first)
                return -ENAMETOOLONG;
        memcpy(first, value, n);
        first[n] = '\0';
        return set_text(text, first);
}

/* The default for the instance's name is the host's name. It becomes part of file names and
 * identities, so characters that these must not contain become '-'. */
static int set_default_instance(char **text) {
        char name[64] = "";
        if (gethostname(name, sizeof name - 1) != 0 || !name[0])
                return set_text(text, "holdfast");
        for (char *c = name; *c; c++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
                            *c))
                        *c = '-';
        if (strchr("._-", name[0])) /* hfd_config_check refuses '.' and '-' at the beginning */
                name[0] = 'h';
        return set_text(text, name);
}

/* Splits text, which may be NULL, at commas and copies the items. On failure the items copied so
 * far stay in the array, and hfd_config_done frees them. 0, -ENOMEM, HF_E_TOO_LARGE: there are more
 * than max items, or HF_E_INVALID: an item is empty. */
static int split_list(const char *text, char **items, size_t max, size_t *ret_n) {
        size_t n = 0;
        while (text && *text) {
                size_t length = strcspn(text, ",");
                if (length == 0 || (text[length] == ',' && text[length + 1] == '\0'))
                        return HF_E_INVALID;
                if (n == max)
                        return HF_E_TOO_LARGE;
                items[n] = strndup(text, length);
                if (!items[n])
                        return -ENOMEM;
                *ret_n = ++n;
                text += length + (text[length] == ',');
        }
        return 0;
}

/* Splits the value of a list flag. what: what the items are, in the plural, for the message. */
static int complete_list(const char *flag, const char *text, const char *what, char **items,
                         size_t max, size_t *ret_n, struct hf_status *reterr_status) {
        int r = split_list(text, items, max, ret_n);

        if (r <= 0)
                return r;
        char shown[201];
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --%s: \"%s\" is not a comma separated list of 1 to %zu %s", flag,
                       hf__redact(text, shown, sizeof shown), max, what);
}

/* Parses the value of --runtime-config. Only one name is known; its last value counts. The sizes
 * below are those of the name, less its NUL, with "true" or "false". */
static int complete_runtime_config(struct hfd_config *config, struct hf_status *reterr_status) {
        static const char name[] = "api/workloads=";
        char shown[201];

        for (const char *at = config->runtime_config; at && *at;) {
                size_t n = strcspn(at, ",");
                bool yes = n == sizeof name + 3 && strncmp(at + sizeof name - 1, "true", 4) == 0,
                     no = n == sizeof name + 4 && strncmp(at + sizeof name - 1, "false", 5) == 0;
                if (strncmp(at, name, sizeof name - 1) != 0 || (!yes && !no))
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "flag --runtime-config: \"%s\" is neither "
                                       "api/workloads=true nor api/workloads=false",
                                       hf__redact(config->runtime_config, shown, sizeof shown));
                config->serves_workloads = yes;
                at += n + (at[n] == ',');
        }
        return 0;
}

static int complete_lists(struct hfd_config *config, struct hf_status *reterr_status) {
        int r = complete_list("etcd-servers", config->etcd_servers_text, "URLs",
                              config->etcd_servers, HFD_MAX_ETCD_SERVERS, &config->n_etcd_servers,
                              reterr_status);
        if (r == 0)
                r = complete_list("controllers", config->controllers_text, "names",
                                  config->controllers, HFD_MAX_CONTROLLERS, &config->n_controllers,
                                  reterr_status);
        if (r == 0)
                r = complete_list("bootstrap-manifests", config->bootstrap_manifests_text,
                                  "directories", config->bootstrap_manifests,
                                  HFD_MAX_MANIFEST_DIRECTORIES, &config->n_bootstrap_manifests,
                                  reterr_status);
        if (r == 0)
                r = complete_list("service-account-key-file", config->account_keys_text, "files",
                                  config->account_key_files, HFD_MAX_KEY_FILES,
                                  &config->n_account_key_files, reterr_status);
        if (r == 0)
                r = complete_list("service-account-issuer", config->issuers_text, "issuers",
                                  config->issuers, HFD_MAX_ISSUERS, &config->n_issuers,
                                  reterr_status);
        if (r == 0)
                r = complete_list("api-audiences", config->audiences_text, "audiences",
                                  config->audiences, HFD_MAX_AUDIENCES, &config->n_audiences,
                                  reterr_status);
        if (r == 0)
                r = complete_list("oidc-required-claim", config->oidc_required_text,
                                  "claims, each NAME=VALUE", config->oidc_required,
                                  HFD_MAX_REQUIRED_CLAIMS, &config->n_oidc_required, reterr_status);
        return r;
}

bool hfd_config_is_in_memory(const struct hfd_config *config) {
        return is_set(config->storage) && strcmp(config->storage, "memory") == 0;
}

/* Derives the directories and files whose flags were not given. With --storage=memory there are
 * none, so the caller does not call this. The order matters: most of them are in a directory that
 * an earlier step has derived. */
static int derive_paths(struct hfd_config *config) {
        int r = 0;

        if (!is_set(config->data_dir))
                r = set_from_environment(&config->data_dir, "STATE_DIRECTORY", "holdfast-data");
        if (r == 0 && !is_set(config->runtime_dir)) {
                const char *given = getenv("RUNTIME_DIRECTORY");
                r = is_set(given)
                            ? set_from_environment(&config->runtime_dir, "RUNTIME_DIRECTORY", "")
                            : set_joined(&config->runtime_dir, config->data_dir, "run");
        }
        if (r == 0 && !is_set(config->shared_dir))
                r = set_text(&config->shared_dir, config->data_dir);
        if (r == 0 && !is_set(config->cert_dir))
                r = set_joined(&config->cert_dir, config->shared_dir, "pki");
        if (r == 0 && !is_set(config->store_file) && !is_set(config->etcd_servers_text))
                r = set_joined(&config->store_file, config->shared_dir, "store.db");
        if (r == 0 && !is_set(config->kubeconfig))
                r = set_joined(&config->kubeconfig, config->data_dir, "admin.kubeconfig");
        if (r == 0 && !is_set(config->admin_kubeconfig))
                r = set_joined(&config->admin_kubeconfig, config->data_dir, "admin.kubeconfig");
        return r;
}

int hfd_config_complete(struct hfd_config *config, struct hf_status *reterr_status) {
        assert(config->n_etcd_servers == 0 && config->n_controllers == 0);
        int r = hfd_config_is_in_memory(config) ? 0 : derive_paths(config);

        if (r == 0 && !is_set(config->instance))
                r = set_default_instance(&config->instance);
        if (r != 0)
                return hf_fail(reterr_status, r,
                               "cannot derive the directories from --data-dir and the "
                               "environment: %s",
                               hf_strerror(r));
        /* This replaces only members that are still zero: those without a flag, and
         * --leader-elect-stop-grace, whose default depends on other flags. */
        hf_leader_timing_defaults(&config->timing);
        r = complete_runtime_config(config, reterr_status);
        if (r == 0)
                r = complete_lists(config, reterr_status);
        return r < 0 ? hf_fail(reterr_status, r, "%s", hf_strerror(r)) : r;
}

/* mode NULL: whether the list is valid, with known modes that occur once. */
bool hfd_config_authorizes_by(const struct hfd_config *config, const char *mode) {
        static const char *const known[] = {"RBAC", "AlwaysAllow"};
        bool seen[2] = {false, false}, found = false;

        for (const char *at = config->authorization_mode;; at++) {
                size_t n = strcspn(at, ","), i = 0;
                while (i < 2 && (strlen(known[i]) != n || strncmp(known[i], at, n) != 0))
                        i++;
                if (i == 2 || seen[i])
                        return false;
                seen[i] = true;
                found |= mode && strcmp(known[i], mode) == 0;
                at += n;
                if (*at == '\0')
                        return found || !mode;
        }
}

void hfd_config_store_name(const struct hfd_config *config, char name[HFD_STORE_NAME_MAX]) {
        if (config->n_etcd_servers > 0)
                (void)snprintf(name, HFD_STORE_NAME_MAX, "etcd at %.200s", config->etcd_servers[0]);
        else if (hfd_config_is_in_memory(config))
                (void)snprintf(name, HFD_STORE_NAME_MAX, "the store in memory");
        else
                (void)snprintf(name, HFD_STORE_NAME_MAX, "the store %.200s", config->store_file);
}

/* Frees all places of an array, also those after the items: they are NULL. */
static void free_texts(char **texts, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(texts[i]);
}

/* `texts` must have each string of the struct: those of the table of flags, and ignored_flags. */
void hfd_config_done(struct hfd_config *config) {
        char **texts[] = {&config->storage,
                          &config->shared_dir,
                          &config->admin_kubeconfig,
                          &config->leader_lock_dir,
                          &config->migrate_from_ns,
                          &config->migrate_from,
                          &config->etcd_servers_text,
                          &config->store_file,
                          &config->etcd_prefix,
                          &config->etcd_ca_file,
                          &config->etcd_cert_file,
                          &config->etcd_key_file,
                          &config->encryption_config,
                          &config->data_dir,
                          &config->runtime_dir,
                          &config->instance,
                          &config->bind_address,
                          &config->advertise_address,
                          &config->cert_dir,
                          &config->tls_cert_file,
                          &config->tls_key_file,
                          &config->client_ca_file,
                          &config->token_auth_file,
                          &config->authorization_mode,
                          &config->audit_policy_file,
                          &config->audit_log_path,
                          &config->signing_key_file,
                          &config->account_keys_text,
                          &config->issuers_text,
                          &config->audiences_text,
                          &config->oidc_issuer,
                          &config->oidc_client_id,
                          &config->oidc_username_claim,
                          &config->oidc_username_prefix,
                          &config->oidc_groups_claim,
                          &config->oidc_groups_prefix,
                          &config->oidc_required_text,
                          &config->oidc_ca_file,
                          &config->oidc_algorithms,
                          &config->lease_ns,
                          &config->lease_name,
                          &config->controllers_text,
                          &config->kubeconfig,
                          &config->runtime_config,
                          &config->service_resolver,
                          &config->admission_plugins,
                          &config->lock_type,
                          &config->bootstrap_manifests_text,
                          &config->ignored_flags,
                          &config->copy_from,
                          &config->copy_to};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                free(*texts[i]);
        free_texts(config->etcd_servers, HFD_MAX_ETCD_SERVERS);
        free_texts(config->controllers, HFD_MAX_CONTROLLERS);
        free_texts(config->bootstrap_manifests, HFD_MAX_MANIFEST_DIRECTORIES);
        free_texts(config->account_key_files, HFD_MAX_KEY_FILES);
        free_texts(config->issuers, HFD_MAX_ISSUERS);
        free_texts(config->audiences, HFD_MAX_AUDIENCES);
        free_texts(config->oidc_required, HFD_MAX_REQUIRED_CLAIMS);
        free_texts(config->arguments, HFD_MAX_ARGUMENTS);
        *config = (struct hfd_config){0};
}

/* The first item that names the controller decides, as in kube-controller-manager; "*" applies if
 * no item names it. */
bool hfd_config_runs_controller(const struct hfd_config *config, const char *name) {
        bool all = false;
        for (size_t i = 0; i < config->n_controllers; i++) {
                const char *item = config->controllers[i];
                if (strcmp(item, name) == 0)
                        return true;
                if (item[0] == '-' && strcmp(item + 1, name) == 0)
                        return false;
                all = all || strcmp(item, "*") == 0;
        }
        return all;
}
