/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a configuration against the rules of the flags.
 *
 * Invariants. A message about a mistake is one line with the flag, the rule that it breaks and, if
 * it has one, the value, because the user sees nothing else. Nothing here opens a file or binds an
 * address: the code which does so later reports its errors itself.
 */
#include "server/config/config_check.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/redact.h"
#include "server/outbound/https_url.h"
#include "server/outbound/service_resolver.h"
#include "server/resources/validation/names.h"

#define TOKEN_TEXT_MAX 512 /* bytes of an issuer; an audience has at most a quarter of it */

#define DNS_LABEL_RULE                                                                             \
        "is not a DNS label: at most 63 lower case letters, digits and '-', with a letter or "     \
        "digit at both ends"
#define DNS_SUBDOMAIN_RULE                                                                         \
        "is not a DNS subdomain: lower case letters, digits, '-' and '.', with a letter or "       \
        "digit at both ends of each part"

static bool is_set(const char *text) { return text && text[0]; }

/* The value may be a URL with a password, so the message shows it without one. */
static int refuse_value(struct hf_status *reterr_status, const char *flag, const char *value,
                        const char *rule) {
        char shown[161];

        return hf_fail(reterr_status, HF_E_INVALID, "flag --%s: \"%s\" %s", flag,
                       hf__redact(value, shown, sizeof shown), rule);
}

/* Whether the name is safe as a file name. (Identities and names of Leases have it in the form that
 * hfd_identity_make gives it.) */
static bool is_instance_name(const char *text) {
        size_t n = strlen(text);
        return n > 0 && n <= 63 && text[0] != '.' && text[0] != '-' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                       n;
}

/* Whether text begins with http:// or https:// and continues, without white space and quotes. The
 * store parses the rest, but its message could not name the flag. */
static bool is_http_url(const char *text) {
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
                size_t n = strlen(schemes[i]);
                if (strncmp(text, schemes[i], n) == 0)
                        return text[n] && !strpbrk(text, " \t\"'");
        }
        return false;
}

/* Checks --storage. With --storage=memory nothing is kept, so a flag that names a place for the
 * objects or files would have no effect. That is a mistake. */
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

/* A prefix that ends with '/' would give keys with "//", which no instance with the usual prefix
 * would find. Of the PEM files only the pair is checked here: nothing is opened. */
static int check_store(const struct hfd_config *config, struct hf_status *reterr_status) {
        const char *prefix = config->etcd_prefix;
        bool cert = is_set(config->etcd_cert_file), key = is_set(config->etcd_key_file);
        if (config->n_etcd_servers > 0 && is_set(config->store_file))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --store and --etcd-servers exclude each other: the objects "
                               "are either in a file or in etcd");
        /* Before the items, and as a whole: a password may have a comma, and then an item is a part
         * of it that does not look like one. */
        if (config->n_etcd_servers > 0 && strchr(config->etcd_servers_text, '@'))
                return refuse_value(reterr_status, "etcd-servers", config->etcd_servers_text,
                                    "must have no user name and no password: etcd gets a client "
                                    "certificate (--etcd-certfile)");
        for (size_t i = 0; i < config->n_etcd_servers; i++)
                if (!is_http_url(config->etcd_servers[i]))
                        return refuse_value(reterr_status, "etcd-servers", config->etcd_servers[i],
                                            "is not a URL that begins with http:// or https://");
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

/* Whether text is an IP address, and neither a wildcard nor a multicast or broadcast address. */
static bool is_unicast(const char *text) {
        struct in_addr v4;
        struct in6_addr v6;

        if (inet_pton(AF_INET, text, &v4) == 1)
                return v4.s_addr != INADDR_ANY && !IN_MULTICAST(ntohl(v4.s_addr)) &&
                       v4.s_addr != INADDR_BROADCAST;
        return inet_pton(AF_INET6, text, &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
               !IN6_IS_ADDR_MULTICAST(&v6);
}

/* Checks the flags of the server, and --instance for each command: the default of --instance is
 * derived even for commands that do not accept the flag. */
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
                            "must list RBAC, AlwaysAllow or both, each once");
}

/* Issuers and audiences are in each token, whose length is limited. As in kube-apiserver, an issuer
 * with a colon must be a URL. */
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

static bool is_algorithm_list(const char *text) {
        while (*text) {
                size_t n = strcspn(text, ",");
                if (n != 5 || (memcmp(text, "RS256", 5) != 0 && memcmp(text, "ES256", 5) != 0))
                        return false;
                if (text[n] == ',' && text[n + 1] == '\0')
                        return false; /* as in Go, an empty item follows */
                text += n + (text[n] == ',');
        }
        return true;
}

/* The rules of kube-apiserver: --oidc-issuer-url and --oidc-client-id belong together. */
static int check_oidc(const struct hfd_config *config, struct hf_status *reterr_status) {
        const char *issuer = config->oidc_issuer;
        struct hfd_https_url url;
        bool is_any = is_set(issuer) || is_set(config->oidc_client_id) ||
                      is_set(config->oidc_username_prefix) || is_set(config->oidc_groups_claim) ||
                      is_set(config->oidc_groups_prefix) || is_set(config->oidc_ca_file) ||
                      config->n_oidc_required > 0;

        if (is_any && (!is_set(issuer) || !is_set(config->oidc_client_id)))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flags --oidc-issuer-url and --oidc-client-id must be given "
                               "together "
                               "when any --oidc-* flag is");
        if (!is_any)
                return 0;
        if (!hfd_https_url_parse(issuer, &url) || strpbrk(issuer, "?# "))
                return refuse_value(reterr_status, "oidc-issuer-url", issuer,
                                    "is not an https URL without user, query and fragment");
        for (size_t i = 0; i < config->n_issuers; i++)
                if (strcmp(issuer, config->issuers[i]) == 0)
                        return refuse_value(reterr_status, "oidc-issuer-url", issuer,
                                            "is also a --service-account-issuer");
        for (size_t i = 0; i < config->n_oidc_required; i++) {
                const char *equals = strchr(config->oidc_required[i], '=');
                if (!equals || equals == config->oidc_required[i])
                        return refuse_value(reterr_status, "oidc-required-claim",
                                            config->oidc_required[i], "is not NAME=VALUE");
        }
        if (!is_algorithm_list(config->oidc_algorithms))
                return refuse_value(reterr_status, "oidc-signing-algs", config->oidc_algorithms,
                                    "has another item than RS256 and ES256");
        return 0;
}

/* hf_electors_add checks names and timing again, but only this check can name the flag. The names
 * must be valid for the API, which would refuse every request for a Lease with another name. */
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

/* Makes the resolver, and drops it again, because that parses the flag. main/assembly.c makes the
 * one that is used. */
static int check_webhooks(const struct hfd_config *config, struct hf_status *reterr_status) {
        struct hfd_service_resolver *resolver = NULL;
        struct hf_status status;
        int r = hfd_service_resolver_new(config->service_resolver ? config->service_resolver : "",
                                         &resolver, &status);

        if (r != 0)
                return hf_fail(reterr_status, r, "flag --webhook-service-resolver: %s",
                               status.message);
        hfd_service_resolver_free(resolver);
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
        if (r == 0)
                r = check_oidc(config, reterr_status);
        if (r == 0)
                r = check_webhooks(config, reterr_status);
        return r == 0 ? check_leading(config, reterr_status) : r;
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
