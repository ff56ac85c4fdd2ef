/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Syntax of names (apimachinery's util/validation). The predicates compare bytes, independently of
 * the locale.
 *
 * Invariant: an accepted text contains no quote and no control character, and no slash except the
 * one in a qualified name. So callers use accepted texts in storage keys, paths and messages
 * without escaping.
 */
#include "server/resources/validation/names.h"

#include <stddef.h>
#include <string.h>

#define NAME_PART_MAX 63

const char hfd_dns_label_length_rule[] = "must be no more than 63 characters";
const char hfd_dns_subdomain_length_rule[] = "must be no more than 253 characters";
const char hfd_dns_label_rule[] =
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const char hfd_dns1035_label_rule[] =
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
        "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const char hfd_dns_subdomain_rule[] =
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        "regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const char hfd_qualified_name_rule[] =
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
        "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const char hfd_label_value_rule[] =
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const char hfd_config_key_rule[] =
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
        "'[-._a-zA-Z0-9]+')";

static bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

static bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

/* The characters that are allowed in name parts and data keys. */
static bool is_name_char(char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; }

bool hfd_has_subdomain_form(const char *text, size_t n) {
        bool start = true; /* at the first character of a part */

        for (size_t i = 0; i < n; i++) {
                bool last = i + 1 == n || text[i + 1] == '.';
                if (text[i] == '.' && !start) {
                        start = true;
                        continue;
                }
                if (!is_lower_alnum(text[i]) && (text[i] != '-' || start || last))
                        return false;
                start = false;
        }
        return !start;
}

const char *hfd_dns_label_fault(const char *text) {
        if (!hfd_has_subdomain_form(text, strlen(text)))
                return hfd_dns_label_rule;
        return strchr(text, '.') ? "must not contain dots" : NULL;
}

bool hfd_is_dns_label(const char *text) {
        return strlen(text) <= HFD_DNS_LABEL_MAX && !hfd_dns_label_fault(text);
}

bool hfd_is_dns1035_label(const char *text) {
        return hfd_is_dns_label(text) && *text >= 'a' && *text <= 'z';
}

bool hfd_is_dns_subdomain(const char *text) {
        size_t n = strlen(text);

        return n <= HFD_DNS_SUBDOMAIN_MAX && hfd_has_subdomain_form(text, n);
}

/* Whether text matches ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] as a whole. */
bool hfd_is_name_text(const char *text) {
        size_t n = strlen(text);

        if (n == 0 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_name_char(text[i]))
                        return false;
        return true;
}

static bool is_name_part(const char *text) {
        return strlen(text) <= NAME_PART_MAX && hfd_is_name_text(text);
}

bool hfd_is_qualified_name(const char *text) {
        char prefix[HFD_DNS_SUBDOMAIN_MAX + 1];
        const char *slash = strchr(text, '/');

        if (!slash)
                return is_name_part(text);
        size_t n = (size_t)(slash - text);
        if (n == 0 || n >= sizeof prefix)
                return false;
        memcpy(prefix, text, n);
        prefix[n] = '\0';
        return hfd_is_dns_subdomain(prefix) && is_name_part(slash + 1);
}

size_t hfd_dns1035_label_faults(const char *text, const char **ret_faults) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
        size_t n = strlen(text), n_faults = 0;

        if (n > HFD_DNS_LABEL_MAX)
                ret_faults[n_faults++] = "must be no more than 63 characters";
        if (*text < 'a' || *text > 'z' || text[n - 1] == '-' || text[strspn(text, allowed)] != '\0')
                ret_faults[n_faults++] = hfd_dns1035_label_rule;
        return n_faults;
}

bool hfd_is_label_value(const char *text) { return !*text || is_name_part(text); }

bool hfd_has_config_key_form(const char *key) {
        for (const char *c = key; *c; c++)
                if (!is_name_char(*c))
                        return false;
        return *key;
}

bool hfd_is_config_key(const char *key) {
        /* A kubelet uses the key as a file name. "." is the directory itself, and the kubelet's
         * own files have names that begin with "..". */
        return strlen(key) <= HFD_DNS_SUBDOMAIN_MAX && hfd_has_config_key_form(key) &&
               strcmp(key, ".") != 0 && strncmp(key, "..", 2) != 0;
}
