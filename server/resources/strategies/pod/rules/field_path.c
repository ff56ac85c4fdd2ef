/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of fields, and rules that many fields have. pod_validation.h declares the functions.
 *
 * Invariants: a path that does not fit is cut, and the rule is checked all the same. A client
 * chooses the names in a path, so a long path must not spare its object a rule. The texts of the
 * causes are those of kube-apiserver, because clients show them and tests compare them.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

#define PORT_NAME_MAX 15 /* bytes: the limit of an IANA service name (RFC 6335) */
#define PORT_MAX      65535

const char *hfd_text_of(const struct hf__json *object, const char *key) {
        return hf__json_text_or_empty(hf__json_get(object, key));
}

bool hfd_is_repeated(const struct hf__json_index *index, const char *text, size_t position) {
        const struct hf__json_index_entry *entry = hf__json_index_find(index, text);

        return entry && entry->position < position;
}

void hfd_keep_last_items(struct hf__json_index *index) {
        for (size_t k = index->n; k-- > 1;)
                if (strcmp(index->entries[k - 1].text, index->entries[k].text) == 0)
                        index->entries[k - 1].item = index->entries[k].item;
}

/* The white space of Unicode, as in Go. */
bool hfd_is_padded(const char *text) {
        static const char *const spaces[] = {" ",
                                             "\t",
                                             "\n",
                                             "\v",
                                             "\f",
                                             "\r",
                                             "\xc2\x85",
                                             "\xc2\xa0",
                                             "\xe1\x9a\x80",
                                             "\xe2\x80\x80",
                                             "\xe2\x80\x81",
                                             "\xe2\x80\x82",
                                             "\xe2\x80\x83",
                                             "\xe2\x80\x84",
                                             "\xe2\x80\x85",
                                             "\xe2\x80\x86",
                                             "\xe2\x80\x87",
                                             "\xe2\x80\x88",
                                             "\xe2\x80\x89",
                                             "\xe2\x80\x8a",
                                             "\xe2\x80\xa8",
                                             "\xe2\x80\xa9",
                                             "\xe2\x80\xaf",
                                             "\xe2\x81\x9f",
                                             "\xe3\x80\x80"};
        size_t n = strlen(text);

        for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
                size_t k = strlen(spaces[i]);
                if (n >= k &&
                    (memcmp(text, spaces[i], k) == 0 || memcmp(text + n - k, spaces[i], k) == 0))
                        return true;
        }
        return false;
}

const char *hfd_field_path(char out[HFD_FIELD_PATH_MAX], const char *field, const char *member) {
        (void)snprintf(out, HFD_FIELD_PATH_MAX, "%s.%s", field, member);
        return out;
}

const char *hfd_field_index(char out[HFD_FIELD_PATH_MAX], const char *field, size_t i) {
        (void)snprintf(out, HFD_FIELD_PATH_MAX, "%s[%zu]", field, i);
        return out;
}

bool hfd_require_text(const struct hf__json *object, const char *field, const char *member,
                      struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (*hfd_text_of(object, member))
                return true;
        hfd_cause_required(causes, hfd_field_path(path, field, member), "");
        return false;
}

static bool is_one_of(const char *text, const char *const *values) {
        while (*values && strcmp(text, *values) != 0)
                values++;
        return *values;
}

void hfd_refuse_others(const char *text, const char *field, const char *const *values,
                       struct hfd_causes *causes) {
        struct hf__strbuf supported = {0};

        if (is_one_of(text, values))
                return;
        for (const char *const *value = values; *value; value++)
                hf__strbuf_printf(&supported, "%s\"%s\"", value == values ? "" : ", ", *value);
        hfd_cause_unsupported_text(causes, field, text,
                                   hfd_causes_check(causes, supported.error) ? supported.data : "");
        hf__strbuf_done(&supported);
}

void hfd_require_one_of(const struct hf__json *object, const char *field, const char *member,
                        const char *const *values, struct hfd_causes *causes) {
        const char *text = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, member);
        if (*text || is_one_of(text, values))
                hfd_refuse_others(text, path, values, causes);
        else
                hfd_cause_required(causes, path, "");
}

void hfd_require_range(const struct hf__json *object, const char *field, const char *member,
                       int64_t min, int64_t max, const char *detail, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], text[32];
        int64_t value;

        if (!hf__json_integer(hf__json_get(object, member), &value) ||
            (value >= min && value <= max))
                return;
        (void)snprintf(text, sizeof text, "%" PRId64, value);
        hfd_cause_invalid(causes, hfd_field_path(path, field, member), text, detail);
}

/* ---- names and ports ---- */

/* A name can break several of these rules, and has a cause for each, as in kube-apiserver. */
void hfd_port_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        static const char lower[] = "abcdefghijklmnopqrstuvwxyz",
                          allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
        size_t n = strlen(name);

        if (n > PORT_NAME_MAX)
                hfd_cause_invalid_text(causes, field, name, "must be no more than 15 characters");
        if (n == 0 || name[strspn(name, allowed)] != '\0')
                hfd_cause_invalid_text(causes, field, name,
                                       "must contain only alpha-numeric characters (a-z, 0-9), "
                                       "and hyphens (-)");
        if (!strpbrk(name, lower))
                hfd_cause_invalid_text(causes, field, name,
                                       "must contain at least one letter (a-z)");
        if (strstr(name, "--"))
                hfd_cause_invalid_text(causes, field, name, "must not contain consecutive hyphens");
        if (n > 0 && (name[0] == '-' || name[n - 1] == '-'))
                hfd_cause_invalid_text(causes, field, name, "must not begin or end with a hyphen");
}

void hfd_port_validate(const struct hf__json *port, const char *field, struct hfd_causes *causes) {
        int64_t number = 0;
        char text[32];

        if (hf__json_is_string(port)) {
                hfd_port_name_validate(hf__json_text(port), field, causes);
                return;
        }
        /* A port that is absent, or a number with a fraction, stays 0 and is refused below. */
        (void)hf__json_integer(port, &number);
        if (number >= 1 && number <= PORT_MAX)
                return;
        (void)snprintf(text, sizeof text, "%" PRId64, number);
        hfd_cause_invalid(causes, field, text, "must be between 1 and 65535, inclusive");
}

void hfd_dns_label_validate(const char *name, const char *field, struct hfd_causes *causes) {
        hfd_label_text_validate(name, field, name, causes);
}

void hfd_label_name_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes) {
        const char *name = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, member);
        if (!*name)
                hfd_cause_required(causes, path, "");
        else
                hfd_dns_label_validate(name, path, causes);
}

void hfd_subdomain_validate(const char *name, const char *field, struct hfd_causes *causes) {
        hfd_subdomain_text_validate(name, strlen(name), field, name, causes);
}

void hfd_domain_path_validate(const char *name, const char *field, struct hfd_causes *causes) {
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789/-._~%!$&'()*+,;=:";
        char domain[HFD_DNS_SUBDOMAIN_MAX + 2]; /* the cause shows a longer one cut */
        const char *slash = strchr(name, '/');

        if (!*name) {
                hfd_cause_required(causes, field, "");
                return;
        }
        if (!slash || slash == name || slash[1] == '\0') {
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a domain-prefixed path (such as \"acme.io/foo\")");
                return;
        }
        size_t n = (size_t)(slash - name);
        (void)snprintf(domain, sizeof domain, "%.*s", (int)(n < sizeof domain ? n : sizeof domain),
                       name);
        hfd_subdomain_text_validate(name, n, field, domain, causes);
        if (slash[1 + strspn(slash + 1, allowed)] != '\0')
                hfd_cause_invalid_text(causes, field, slash + 1,
                                       "Invalid path (regex used for validation is "
                                       "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
}

/* ---- addresses ---- */

/* Programs disagree about two forms of addresses, so Kubernetes refuses both in new objects: 010 is
 * 10 or 8, and ::ffff:10.0.0.1 is an IPv4 address or an IPv6 one. */
void hfd_address_validate(const char *text, const char *field, struct hfd_causes *causes) {
        struct in6_addr address;

        if (!hfd_is_ipv4(text) && !hfd_is_ipv6(text))
                hfd_cause_invalid_text(causes, field, text,
                                       "must be a valid IP address, (e.g. 10.9.8.7 or "
                                       "2001:db8::ffff)");
        else if (!strchr(text, ':') && inet_pton(AF_INET, text, &address) != 1)
                hfd_cause_invalid_text(causes, field, text, "must not have leading 0s");
        else if (inet_pton(AF_INET6, text, &address) == 1 && IN6_IS_ADDR_V4MAPPED(&address))
                hfd_cause_invalid_text(causes, field, text,
                                       "must not be an IPv4-mapped IPv6 address");
}

/* ---- containers ---- */

void hfd_containers_visit(const struct hf__json *spec, const char *field,
                          void (*visit)(const struct hf__json *container, const char *field,
                                        void *userdata),
                          void *userdata) {
        static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
                size_t at = 0;
                hfd_field_path(list, field, lists[i]);
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m;
                     m = hf__json_next(m))
                        visit(m, hfd_field_index(path, list, at++), userdata);
        }
}
