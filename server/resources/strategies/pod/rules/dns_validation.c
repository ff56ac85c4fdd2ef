/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the containers of a pod resolve names, and the names that the pod itself has: dnsConfig,
 * hostnameOverride and hostAliases.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"

/* Kubernetes' limits: of servers, as in the resolvers of Linux; of domains to search; and of the
 * bytes of these domains with the spaces between them. */
#define SERVERS_MAX      3
#define SEARCHES_MAX     32
#define SEARCH_BYTES_MAX 2048
#define HOSTNAME_MAX     64 /* bytes; the limit of the kernel */

/* ---- dnsConfig ---- */

/* The cause shows the whole list as JSON. */
static void refuse_list(const struct hf__json *list, const char *field, const char *detail,
                        struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(list, &shown);
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "",
                          detail);
        hf__strbuf_done(&shown);
}

static void validate_servers(const struct hf__json *list, const char *field,
                             struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hf__json_count(list) > SERVERS_MAX)
                refuse_list(list, field, "must not have more than 3 nameservers", causes);
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                hfd_address_validate(hf__json_text_or_empty(m), hfd_field_index(path, field, i++),
                                     causes);
}

/* Whether the text consists of parts with a dot between them, of which each one is a DNS label that
 * may be of any length and may have '_' at its beginning and inside. Such names are common for
 * services, although they are no host names. */
static bool is_search_domain(const char *text, size_t n_text) {
        static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789",
                          inner[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

        for (const char *at = text;; at++) {
                at += *at == '_';
                size_t n = strspn(at, inner);
                if (n == 0 || !strchr(lower, at[0]) || !strchr(lower, at[n - 1]))
                        return false;
                at += n;
                if (at == text + n_text || *at != '.')
                        return at == text + n_text;
        }
}

/* One dot at the end makes a domain absolute. "." alone is the root, so that no domain is searched.
 */
static void validate_search(const char *domain, const char *field, struct hfd_causes *causes) {
        char text[HFD_DNS_SUBDOMAIN_MAX + 2]; /* the cause shows a longer one cut */
        size_t n = strlen(domain);

        if (strcmp(domain, ".") == 0)
                return;
        n -= n > 0 && domain[n - 1] == '.';
        (void)snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text), domain);
        if (n > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, text, hfd_dns_subdomain_length_rule);
        if (!is_search_domain(domain, n))
                hfd_cause_invalid_text(causes, field, text,
                                       "a lowercase RFC 1123 subdomain must consist of lower case "
                                       "alphanumeric characters, '_', '-' or '.', and must start "
                                       "and end with an alphanumeric character (e.g. "
                                       "'example.com', regex used for validation is "
                                       "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*"
                                       "[a-z0-9])?)*')");
}

static void validate_searches(const struct hf__json *list, const char *field,
                              struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t n_bytes = 0, i = 0;

        if (hf__json_count(list) > SEARCHES_MAX)
                refuse_list(list, field, "must not have more than 32 search paths", causes);
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                n_bytes += strlen(hf__json_text_or_empty(m)) + (hf__json_next(m) ? 1 : 0);
        if (n_bytes > SEARCH_BYTES_MAX)
                refuse_list(list, field,
                            "must not have more than 2048 characters (including spaces) in the "
                            "search list",
                            causes);
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                validate_search(hf__json_text_or_empty(m), hfd_field_index(path, field, i++),
                                causes);
}

/* As in kube-apiserver, the cause has the path of the option, not of its name. */
static void validate_options(const struct hf__json *list, const char *field,
                             struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                if (!*hfd_text_of(m, "name"))
                        hfd_cause_required(causes, hfd_field_index(path, field, i),
                                           "must not be empty");
}

void hfd_dns_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes) {
        const struct hf__json *config = hf__json_get(spec, "dnsConfig"),
                              *servers = hf__json_get(config, "nameservers");
        bool is_none = hf__json_has_text(spec, "dnsPolicy", "None");
        char of_config[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_config, field, "dnsConfig");
        hfd_field_path(path, of_config, "nameservers");
        if (is_none && !config) {
                hfd_cause_required(causes, of_config,
                                   "must provide `dnsConfig` when `dnsPolicy` is None");
        } else if (is_none && !hf__json_first(servers)) {
                hfd_cause_required(causes, path,
                                   "must provide at least one DNS nameserver when `dnsPolicy` is "
                                   "None");
        } else {
                validate_servers(servers, path, causes);
                validate_searches(hf__json_get(config, "searches"),
                                  hfd_field_path(path, of_config, "searches"), causes);
                validate_options(hf__json_get(config, "options"),
                                 hfd_field_path(path, of_config, "options"), causes);
        }
}

/* ---- names of the pod ---- */

void hfd_hostname_override_validate(const struct hf__json *spec, const char *field,
                                    struct hfd_causes *causes) {
        const char *name = hfd_text_of(spec, "hostnameOverride");
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_get(spec, "hostnameOverride"))
                return;
        hfd_field_path(path, field, "hostnameOverride");
        if (hf__json_bool(spec, "setHostnameAsFQDN", false))
                hfd_cause_forbidden(causes, path,
                                    "may not be specified when setHostnameAsFQDN is true");
        if (hf__json_bool(spec, "hostNetwork", false))
                hfd_cause_forbidden(causes, path, "may not be specified when hostNetwork is true");
        if (strlen(name) > HOSTNAME_MAX)
                hfd_cause_too_long(causes, path, "may not be more than 64 bytes");
        hfd_subdomain_validate(name, path, causes);
}

void hfd_host_aliases_validate(const struct hf__json *list, const char *field,
                               struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], names[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                size_t k = 0;
                hfd_field_index(item, field, i++);
                hfd_address_validate(hfd_text_of(m, "ip"), hfd_field_path(path, item, "ip"),
                                     causes);
                hfd_field_path(names, item, "hostnames");
                for (const struct hf__json *name = hf__json_first(hf__json_get(m, "hostnames"));
                     name; name = hf__json_next(name))
                        hfd_subdomain_validate(hf__json_text_or_empty(name),
                                               hfd_field_index(path, names, k++), causes);
        }
}
