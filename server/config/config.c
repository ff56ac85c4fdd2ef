/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes and checks the configuration.
 *
 * Invariants. A message about a mistake is one line with the flag, the rule that it breaks and, if
 * it has one, the value, because the user sees nothing else. Nothing here opens a file or binds an
 * address: the code which does so later reports its errors itself.
 */
#include "server/config/config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/redact.h"
#include "server/resources/validation/names.h"

#define TOKEN_TEXT_MAX 512 /* bytes of an issuer */

#define DNS_LABEL_RULE                                                                             \
        "is not a DNS label: at most 63 lower case letters, digits and '-', with a letter or "     \
        "digit at both ends"
#define DNS_SUBDOMAIN_RULE                                                                         \
        "is not a DNS subdomain: lower case letters, digits, '-' and '.', with a letter or "       \
        "digit at both ends of each part"

static bool is_set(const char *text) { return text && text[0]; }

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
        if (n == 0 || n >= sizeof first)
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
        if (strchr("._-", name[0]))
                name[0] = 'h';
        return set_text(text, name);
}

/* Splits text, which may be NULL, at commas and copies the items. On failure the items copied so
 * far stay in the array, and hfd_config_done frees them. HF_E_TOO_LARGE: there are more than max
 * items. HF_E_INVALID: an item is empty. */
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
        return r;
}

bool hfd_config_is_in_memory(const struct hfd_config *config) {
        return is_set(config->storage) && strcmp(config->storage, "memory") == 0;
}

/* The directories and files whose flags were not given. A process that keeps nothing has none. */
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
        r = complete_lists(config, reterr_status);
        return r < 0 ? hf_fail(reterr_status, r, "%s", hf_strerror(r)) : r;
}

static int refuse_value(struct hf_status *reterr_status, const char *flag, const char *value,
                        const char *rule) {
        char shown[161];

        return hf_fail(reterr_status, HF_E_INVALID, "flag --%s: \"%s\" %s", flag,
                       hf__redact(value, shown, sizeof shown), rule);
}

/* Whether the name is safe as a file name, in an identity and in the name of a Lease. */
static bool is_instance_name(const char *text) {
        size_t n = strlen(text);
        return n > 0 && n <= 63 && text[0] != '.' && text[0] != '-' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                       n;
}

/* Whether text begins with http:// or https:// and continues. The store parses the rest, but its
 * message could not name the flag. */
static bool is_http_url(const char *text) {
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
                size_t n = strlen(schemes[i]);
                if (strncmp(text, schemes[i], n) == 0)
                        return text[n] && !strpbrk(text, " \t\"'");
        }
        return false;
}

/* What is kept nowhere needs no place, and a flag that has no effect is a mistake. */
static int check_storage(const struct hfd_config *config, struct hf_status *reterr_status) {
        const struct {
                const char *flag, *value;
        } places[] = {{"store", config->store_file},
                      {"etcd-servers", config->etcd_servers_text},
                      {"data-dir", config->data_dir},
                      {"shared-dir", config->shared_dir},
                      {"runtime-dir", config->runtime_dir},
                      {"cert-dir", config->cert_dir}};

        if (!is_set(config->storage))
                return 0;
        if (!hfd_config_is_in_memory(config))
                return refuse_value(reterr_status, "storage", config->storage,
                                    "is unknown: only memory can be chosen; --etcd-servers or "
                                    "--store select another storage");
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
                if (is_set(places[i].value))
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "flags --storage=memory and --%s exclude each other: "
                                       "nothing is kept outside the process",
                                       places[i].flag);
        if (!is_set(config->admin_kubeconfig))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --storage=memory needs --write-kubeconfig FILE: there is no "
                               "other way to reach the server");
        return 0;
}

static int check_store(const struct hfd_config *config, struct hf_status *reterr_status) {
        const char *prefix = config->etcd_prefix;
        bool cert = is_set(config->etcd_cert_file), key = is_set(config->etcd_key_file);
        if (config->n_etcd_servers > 0 && is_set(config->store_file))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --store and --etcd-servers exclude each other: the objects "
                               "are either in a file or in etcd");
        for (size_t i = 0; i < config->n_etcd_servers; i++) {
                const char *url = config->etcd_servers[i];
                if (!is_http_url(url))
                        return refuse_value(reterr_status, "etcd-servers", url,
                                            "is not a URL that begins with http:// or https://");
                if (strchr(url, '@'))
                        return refuse_value(reterr_status, "etcd-servers", url,
                                            "must have no user name and no password: etcd gets a "
                                            "client certificate (--etcd-certfile)");
        }
        if (strstr(config->store_file, "://"))
                return refuse_value(reterr_status, "store", config->store_file,
                                    "is a URL, and the store is a file; the URLs of etcd are for "
                                    "--etcd-servers");
        if (prefix[0] != '/' || prefix[1] == '\0' || prefix[strlen(prefix) - 1] == '/')
                return refuse_value(reterr_status, "etcd-prefix", prefix,
                                    "must begin with '/', must not end with '/', and needs a name "
                                    "between, for example /registry");
        if (cert != key)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --etcd-certfile and --etcd-keyfile go together: --etcd-%s "
                               "is missing",
                               cert ? "keyfile" : "certfile");
        return 0;
}

/* Whether text is an IP address, and neither a wildcard nor of a group. */
static bool is_unicast(const char *text) {
        struct in_addr v4;
        struct in6_addr v6;

        if (inet_pton(AF_INET, text, &v4) == 1)
                return v4.s_addr != INADDR_ANY && !IN_MULTICAST(ntohl(v4.s_addr)) &&
                       v4.s_addr != INADDR_BROADCAST;
        return inet_pton(AF_INET6, text, &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
               !IN6_IS_ADDR_MULTICAST(&v6);
}

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

/* Also checks --instance, which all commands have. */
static int check_serving(const struct hfd_config *config, struct hf_status *reterr_status) {
        unsigned char address[sizeof(struct in6_addr)];
        bool cert = is_set(config->tls_cert_file), key = is_set(config->tls_key_file);
        if (!is_instance_name(config->instance))
                return refuse_value(reterr_status, "instance", config->instance,
                                    "must be 1 to 63 letters, digits, '.', '_' or '-', and must "
                                    "not begin with '.' or '-'");
        if (inet_pton(AF_INET, config->bind_address, address) != 1 &&
            inet_pton(AF_INET6, config->bind_address, address) != 1)
                return refuse_value(reterr_status, "bind-address", config->bind_address,
                                    "is not an IP address; host names are not accepted");
        if (is_set(config->advertise_address) && !is_unicast(config->advertise_address))
                return refuse_value(reterr_status, "advertise-address", config->advertise_address,
                                    "is not an IP address that others can connect to");
        if (cert != key)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --tls-cert-file and --tls-private-key-file go together: "
                               "--tls-%s is missing",
                               cert ? "private-key-file" : "cert-file");
        if (is_set(config->audit_policy_file) != is_set(config->audit_log_path))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --audit-policy-file and --audit-log-path go together: "
                               "--audit-%s is missing",
                               is_set(config->audit_log_path) ? "policy-file" : "log-path");
        if (hfd_config_authorizes_by(config, NULL))
                return 0;
        return refuse_value(reterr_status, "authorization-mode", config->authorization_mode,
                            "must be a list of different modes, of RBAC and AlwaysAllow");
}

/* Issuers and audiences are in each token, whose length is limited. And kube-apiserver refuses an
 * issuer with a colon that is no URL. */
static int check_tokens(const struct hfd_config *config, struct hf_status *reterr_status) {
        for (size_t i = 0; i < config->n_issuers; i++) {
                const char *issuer = config->issuers[i];
                if (strlen(issuer) > TOKEN_TEXT_MAX)
                        return refuse_value(reterr_status, "service-account-issuer", issuer,
                                            "must have at most 512 bytes");
                if (strchr(issuer, ':') && !strstr(issuer, "://"))
                        return refuse_value(reterr_status, "service-account-issuer", issuer,
                                            "has a colon, but is not a URL");
        }
        for (size_t i = 0; i < config->n_audiences; i++)
                if (strlen(config->audiences[i]) > TOKEN_TEXT_MAX / 4)
                        return refuse_value(reterr_status, "api-audiences", config->audiences[i],
                                            "must have at most 128 bytes");
        return 0;
}

/* hf_electors_add checks names and timing again, but only this check can name the flag. */
static int check_leading(const struct hfd_config *config, struct hf_status *reterr_status) {
        struct hf_status why = {0};
        /* As in Kubernetes, the flags of the election are not checked if there is none. */
        if (!config->leader_elect)
                return 0;
        if (hf_leader_lock_type_check(config->lock_type, &why) != 0)
                return hf_fail(reterr_status, HF_E_INVALID, "flag --leader-elect-resource-lock: %s",
                               why.message);
        if (!hfd_is_dns_label(config->lease_ns))
                return refuse_value(reterr_status, "leader-elect-resource-namespace",
                                    config->lease_ns, DNS_LABEL_RULE);
        if (!hfd_is_dns_subdomain(config->lease_name))
                return refuse_value(reterr_status, "leader-elect-resource-name", config->lease_name,
                                    DNS_SUBDOMAIN_RULE);
        if (is_set(config->migrate_from_ns) && !is_set(config->migrate_from))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --leader-elect-migrate-from-namespace needs "
                               "--leader-elect-migrate-from too");
        if (is_set(config->migrate_from) && !hfd_is_dns_subdomain(config->migrate_from))
                return refuse_value(reterr_status, "leader-elect-migrate-from",
                                    config->migrate_from, DNS_SUBDOMAIN_RULE);
        if (is_set(config->migrate_from_ns) && !hfd_is_dns_label(config->migrate_from_ns))
                return refuse_value(reterr_status, "leader-elect-migrate-from-namespace",
                                    config->migrate_from_ns, DNS_LABEL_RULE);
        /* By default the old Lease is in the namespace of the new one. */
        if (strcmp(config->migrate_from, config->lease_name) == 0 &&
            (!is_set(config->migrate_from_ns) ||
             strcmp(config->migrate_from_ns, config->lease_ns) == 0))
                return refuse_value(reterr_status, "leader-elect-migrate-from",
                                    config->migrate_from,
                                    "is the lease itself; it must name the old lease");
        if (is_set(config->migrate_from) && is_set(config->leader_lock_dir))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --leader-elect-lock-dir cannot be set during a migration "
                               "(--leader-elect-migrate-from)");
        if (hf_leader_timing_check(&config->timing, &why) != 0)
                return hf_fail(reterr_status, HF_E_INVALID, "flags --leader-elect-*: %s",
                               why.message);
        return 0;
}

int hfd_config_check(const struct hfd_config *config, struct hf_status *reterr_status) {
        assert(config->instance); /* hfd_config_complete was called */
        int r = check_storage(config, reterr_status);
        if (r == 0)
                r = check_store(config, reterr_status);
        if (r == 0)
                r = check_serving(config, reterr_status);
        if (r == 0)
                r = check_tokens(config, reterr_status);
        return r == 0 ? check_leading(config, reterr_status) : r;
}

void hfd_config_store_name(const struct hfd_config *config, char name[HFD_STORE_NAME_MAX]) {
        if (config->n_etcd_servers > 0)
                (void)snprintf(name, HFD_STORE_NAME_MAX, "etcd at %.200s", config->etcd_servers[0]);
        else if (hfd_config_is_in_memory(config))
                (void)snprintf(name, HFD_STORE_NAME_MAX, "the store in memory");
        else
                (void)snprintf(name, HFD_STORE_NAME_MAX, "the store %.200s", config->store_file);
}

static void free_texts(char **texts, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(texts[i]);
}

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
                          &config->lease_ns,
                          &config->lease_name,
                          &config->controllers_text,
                          &config->kubeconfig,
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
        free_texts(config->arguments, HFD_MAX_ARGUMENTS);
        *config = (struct hfd_config){0};
}

/* The first item that names the controller decides; "*" applies if no item names it. */
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

/* The message lists all known names, so that the user finds the right one. It may be truncated. */
static int refuse_controller(const char *item, const char *const *known,
                             struct hf_status *reterr_status) {
        char names[sizeof reterr_status->message] = "";

        for (size_t j = 0, n = 0; known[j] && n < sizeof names; j++)
                n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", j ? ", " : "", known[j]);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --controllers: \"%.64s\" is not a controller of holdfastd; the "
                       "controllers are %s",
                       item, names);
}

int hfd_config_check_controllers(const struct hfd_config *config, const char *const *known,
                                 struct hf_status *reterr_status) {
        for (size_t i = 0; i < config->n_controllers; i++) {
                /* The name in "-name" begins after the '-'. */
                const char *item = config->controllers[i] + (config->controllers[i][0] == '-');
                bool found = strcmp(config->controllers[i], "*") == 0;
                for (size_t j = 0; !found && known[j]; j++)
                        found = strcmp(item, known[j]) == 0;
                if (!found)
                        return refuse_controller(item, known, reterr_status);
        }
        return 0;
}
