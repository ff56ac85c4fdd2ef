/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the names of a custom resource.
 *
 * Invariants: all names are DNS labels (kinds in lower case), also because the plural becomes a
 * segment of paths and of keys in the store. The texts and their order are those of kube-apiserver.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/definition/definition_rules.h"
#include "server/resources/validation/names.h"

const char *hfd_definition_text(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return text ? text : "";
}

/* Appends a text to the one in `out`. A text that does not fit is cut. */
static void append_text(char *out, size_t max_out, const char *text) {
        size_t n = strlen(out);

        (void)snprintf(out + n, max_out - n, "%s", text);
}

void hfd_definition_check_label(const char *name, const char *path, const char *shown,
                                const char *prefix, struct hfd_causes *causes) {
        char detail[400] = "";
        size_t n = strlen(name);

        if (hfd_is_dns1035_label(name))
                return;
        append_text(detail, sizeof detail, prefix);
        if (n > HFD_DNS_LABEL_MAX)
                append_text(detail, sizeof detail, hfd_dns_label_length_rule);
        /* A name that is too long may have the right syntax. Then the cause has only the rule for
         * the length. */
        bool good = n > HFD_DNS_LABEL_MAX && *name >= 'a' && *name <= 'z' && name[n - 1] != '-' &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
        if (!good) {
                append_text(detail, sizeof detail, n > HFD_DNS_LABEL_MAX ? "," : "");
                append_text(detail, sizeof detail, hfd_dns1035_label_rule);
        }
        hfd_cause_invalid_text(causes, path, shown, detail);
}

/* A kind may have capitals. In lower case it must be a label. One that does not fit in `lower` is
 * cut: it is still too long for a label. */
static void check_kind(const char *kind, const char *path, struct hfd_causes *causes) {
        char lower[300];
        size_t n = 0;

        for (; kind[n] && n < sizeof lower - 1; n++)
                lower[n] = (char)(kind[n] >= 'A' && kind[n] <= 'Z' ? kind[n] + 32 : kind[n]);
        lower[n] = '\0';
        if (n > 0)
                hfd_definition_check_label(lower, path, kind,
                                           "may have mixed case, but should otherwise match: ",
                                           causes);
}

/* Checks the names in the list `key`. */
static void check_list(const struct hf__json *list, const char *path, const char *key,
                       struct hfd_causes *causes) {
        char field[HFD_DEFINITION_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *name = hf__json_is_string(m) ? hf__json_text(m) : "";
                (void)snprintf(field, sizeof field, "%s.%s[%zu]", path, key, i);
                hfd_definition_check_label(name, field, name, "", causes);
        }
}

void hfd_definition_check_names(const struct hf__json *names, const char *path,
                                struct hfd_causes *causes) {
        static const char *const labels[] = {"plural", "singular"};
        const char *kind = hfd_definition_text(names, "kind"),
                   *list_kind = hfd_definition_text(names, "listKind");
        char field[HFD_DEFINITION_PATH_MAX];

        for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
                const char *name = hfd_definition_text(names, labels[i]);
                (void)snprintf(field, sizeof field, "%s.%s", path, labels[i]);
                if (*name)
                        hfd_definition_check_label(name, field, name, "", causes);
        }
        (void)snprintf(field, sizeof field, "%s.kind", path);
        check_kind(kind, field, causes);
        (void)snprintf(field, sizeof field, "%s.listKind", path);
        check_kind(list_kind, field, causes);
        check_list(hf__json_get(names, "shortNames"), path, "shortNames", causes);
        if (*kind && strcmp(kind, list_kind) == 0)
                hfd_cause_invalid_text(causes, field, list_kind,
                                       "kind and listKind may not be the same");
        check_list(hf__json_get(names, "categories"), path, "categories", causes);
}
