/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the sources nfs, gitRepo, glusterfs, cephfs, rbd, quobyte, iscsi and fc: file
 * systems, repositories and disks in a network.
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. Each check takes time in proportion to the
 * source.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/volumes/volume_sources.h"

#define LUN_RULE   "must be between 0 and 255, inclusive"
#define TENANT_MAX 64 /* bytes */

/* ---- file systems ---- */

void hfd_nfs_validate(const struct hf__json *source, const char *field, bool persistent,
                      struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (*hfd_text_of(source, "path") != '/')
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "path"),
                                       hfd_text_of(source, "path"), "must be an absolute path");
}

void hfd_git_repo_validate(const struct hf__json *source, const char *field, bool persistent,
                           struct hfd_causes *causes) {
        hfd_descending_path_validate(source, field, "directory", causes);
}

/* The Endpoints are in the namespace of the pod, unless a PersistentVolume names another one. */
void hfd_glusterfs_validate(const struct hf__json *source, const char *field, bool persistent,
                            struct hfd_causes *causes) {
        const struct hf__json *namespace = hf__json_get(source, "endpointsNamespace");
        char path[HFD_FIELD_PATH_MAX];

        if (!persistent || !namespace)
                return;
        hfd_field_path(path, field, "endpointsNamespace");
        if (*hf__json_text_or_empty(namespace))
                hfd_dns_label_validate(hf__json_text_or_empty(namespace), path, causes);
        else
                hfd_cause_invalid_text(causes, path, "",
                                       "if the endpointnamespace is set, it must be a valid "
                                       "namespace name");
}

static void require_monitors(const struct hf__json *source, const char *field,
                             struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_first(hf__json_get(source, "monitors")))
                hfd_cause_required(causes, hfd_field_path(path, field, "monitors"), "");
}

void hfd_cephfs_validate(const struct hf__json *source, const char *field, bool persistent,
                         struct hfd_causes *causes) {
        require_monitors(source, field, causes);
}

void hfd_rbd_validate(const struct hf__json *source, const char *field, bool persistent,
                      struct hfd_causes *causes) {
        require_monitors(source, field, causes);
        (void)hfd_require_text(source, field, "image", causes);
}

/* Whether n bytes are HOST:PORT for Go, which looks only at the colons and at the brackets around
 * an IPv6 address: both parts may be empty. */
static bool is_host_port(const char *text, size_t n) {
        const char *close = memchr(text, ']', n);
        size_t colon = n, after = 0; /* after: the first byte after "[HOST]" */

        while (colon > 0 && text[colon - 1] != ':')
                colon--;
        if (colon-- == 0)
                return false;
        bool has_brackets = *text == '[';
        if (has_brackets && (!close || close + 1 != text + colon))
                return false;
        if (has_brackets)
                after = colon;
        else if (memchr(text, ':', colon))
                return false;
        return !memchr(text + has_brackets, '[', n - has_brackets) &&
               !memchr(text + after, ']', n - after);
}

void hfd_quobyte_validate(const struct hf__json *source, const char *field, bool persistent,
                          struct hfd_causes *causes) {
        static const char pairs[] =
                "must be a host:port pair or multiple pairs separated by commas";
        const char *registry = hfd_text_of(source, "registry");
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "registry");
        if (!*registry) {
                hfd_cause_required(causes, path, pairs);
        } else if (strlen(hfd_text_of(source, "tenant")) > TENANT_MAX) {
                hfd_cause_required(causes, hfd_field_path(path, field, "tenant"),
                                   "must be a UUID and may not exceed a length of 64 characters");
        } else {
                for (const char *pair = registry; pair;) {
                        const char *comma = strchr(pair, ',');
                        if (!is_host_port(pair, comma ? (size_t)(comma - pair) : strlen(pair)))
                                hfd_cause_invalid_text(causes, path, registry, pairs);
                        pair = comma ? comma + 1 : NULL;
                }
        }
        (void)hfd_require_text(source, field, "volume", causes);
}

/* ---- disks ---- */

/* text begins with "eui" or "naa". Whether one more character, which is not a newline, and exactly
 * n letters or digits follow, and nothing else. */
static bool is_coded_name(const char *text, size_t n) {
        size_t at = 3, count = 0;

        if (text[at] == '\0' || text[at] == '\n')
                return false;
        for (at++; ((unsigned char)text[at] & 0xc0) == 0x80;) /* the rest of the character */
                at++;
        while (isalnum((unsigned char)text[at + count]))
                count++;
        return count == n && text[at + count] == '\0';
}

/* Whether the text begins with the form "iqn.2001-04.com.example:disk". *ret_end: where the part
 * before the colon ends; the second byte of the text if it does not even begin like
 * "iqn.2001-04.". */
static bool begins_qualified_name(const char *text, const char **ret_end) {
        static const char form[] = "iqn.0000-00."; /* 0: any digit */
        const char *c = text;

        for (size_t i = 0; form[i]; i++, c++)
                if (form[i] == '0' ? !isdigit((unsigned char)*c) : *c != form[i]) {
                        *ret_end = text + 1;
                        return false;
                }
        size_t n = strspn(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.");
        *ret_end = c + n;
        return n > 0 && c[n] == ':' && c[n + 1];
}

/* Whether the text ends with a name like "iqn.2001-04.com.example:disk". As in Kubernetes, more may
 * come before. What follows the colon has none of the characters that separate names. After a
 * failed attempt the next one begins where the last one ended, so that the time is linear. */
static bool is_qualified_name(const char *text) {
        const char *tail = text, *end;

        for (const char *c = text; (c = strpbrk(c, ",;*&$|\t\n\f\r ")) != NULL;)
                tail = ++c;
        for (const char *c = text; (c = strstr(c, "iqn.")) != NULL; c = end)
                if (begins_qualified_name(c, &end) && end + 1 >= tail)
                        return true;
        return false;
}

/* The name of a target or an initiator has one of three forms. unknown: the cause for a text that
 * begins like none of them. */
static void validate_iscsi_name(const char *text, const char *field, const char *unknown,
                                struct hfd_causes *causes) {
        static const char invalid[] = "must be valid format";
        const char *why = NULL;

        if (strncmp(text, "iqn", 3) == 0)
                why = is_qualified_name(text) ? NULL : invalid;
        else if (strncmp(text, "eui", 3) == 0)
                why = is_coded_name(text, 16) ? NULL : invalid;
        else if (strncmp(text, "naa", 3) == 0)
                why = is_coded_name(text, 32) ? NULL : invalid;
        else
                why = unknown;
        if (why)
                hfd_cause_invalid_text(causes, field, text, why);
}

void hfd_iscsi_validate(const struct hf__json *source, const char *field, bool persistent,
                        struct hfd_causes *causes) {
        const struct hf__json *initiator = hf__json_get(source, "initiatorName");
        const char *unknown = persistent ? "must be valid format"
                                         : "must be valid format starting with iqn, eui, or naa";
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_require_text(source, field, "iqn", causes))
                validate_iscsi_name(hfd_text_of(source, "iqn"), hfd_field_path(path, field, "iqn"),
                                    unknown, causes);
        hfd_require_range(source, field, "lun", 0, 255, LUN_RULE, causes);
        if ((hf__json_is_true(hf__json_get(source, "chapAuthDiscovery")) ||
             hf__json_is_true(hf__json_get(source, "chapAuthSession"))) &&
            !hf__json_get(source, "secretRef"))
                hfd_cause_required(causes, hfd_field_path(path, field, "secretRef"), "");
        /* As in Kubernetes, only the secretRef of a PersistentVolume is checked further, and the
         * path of initiatorName is misspelled ("initiatorname"). */
        if (persistent)
                hfd_secret_reference_validate(source, field, false, causes);
        if (initiator)
                validate_iscsi_name(hf__json_text_or_empty(initiator),
                                    hfd_field_path(path, field, "initiatorname"), unknown, causes);
}

/* Either targetWWNs and a lun name the disk, or wwids do. */
void hfd_fc_validate(const struct hf__json *source, const char *field, bool persistent,
                     struct hfd_causes *causes) {
        const struct hf__json *targets = hf__json_get(source, "targetWWNs");
        bool has_targets = hf__json_first(targets),
             has_ids = hf__json_first(hf__json_get(source, "wwids"));
        char path[HFD_FIELD_PATH_MAX], shown[300];

        hfd_field_path(path, field, "targetWWNs");
        if (!has_targets && !has_ids)
                hfd_cause_required(causes, path,
                                   "must specify either targetWWNs or wwids, but not both");
        if (has_targets && has_ids) {
                hfd_quote_list(targets, shown, sizeof shown);
                hfd_cause_invalid(causes, path, shown,
                                  "targetWWNs and wwids can not be specified simultaneously");
        }
        if (has_targets && !hf__json_get(source, "lun"))
                hfd_cause_required(causes, hfd_field_path(path, field, "lun"),
                                   "lun is required if targetWWNs is specified");
        else if (has_targets)
                hfd_require_range(source, field, "lun", 0, 255, LUN_RULE, causes);
}
