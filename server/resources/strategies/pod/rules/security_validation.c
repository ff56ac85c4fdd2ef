/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users, groups and sysctls of security contexts. The other members are not checked, except
 * profiles of AppArmor, which have a file of their own.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Repeated names are found in an index, because a client chooses
 * how many sysctls there are.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define SYSCTL_MAX 253 /* bytes of a name */

static const char id_range[] = "must be between 0 and 2147483647, inclusive";

static bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* Whether the name has the form of a kernel parameter: segments with a dot or a slash between them,
 * each of which begins and ends with a letter or a digit. */
static bool is_sysctl(const char *name) {
        bool inside = false; /* the last byte may end a segment */
        size_t n = 0;

        for (; name[n] != '\0' && n <= SYSCTL_MAX; n++) {
                bool ends = name[n] == '.' || name[n] == '/';
                bool joins = name[n] == '-' || name[n] == '_';
                if (!ends && !joins && !is_lower_or_digit(name[n]))
                        return false;
                if (ends && !inside)
                        return false;
                if (joins && (n == 0 || name[n - 1] == '.' || name[n - 1] == '/'))
                        return false;
                inside = !ends && !joins;
        }
        return inside && n <= SYSCTL_MAX;
}

static void validate_sysctls(const struct hf__json *list, const char *field,
                             struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        struct hf__json_index names;
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&names, list, "name")))
                for (const struct hf__json *m = hf__json_first(list); m;
                     m = hf__json_next(m), i++) {
                        const char *name = hfd_text_of(m, "name");
                        if (!hfd_require_text(m, hfd_field_index(item, field, i), "name", causes))
                                continue;
                        hfd_field_path(path, item, "name");
                        if (!is_sysctl(name))
                                hfd_cause_invalid_text(causes, path, name,
                                                       "must have at most 253 characters and match "
                                                       "regex "
                                                       "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*"
                                                       "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
                        else if (hf__json_index_find(&names, name)->position < i)
                                hfd_cause_duplicate_text(causes, path, name);
                }
        hf__json_index_done(&names);
}

static void validate_groups(const struct hf__json *list, const char *field,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], shown[24];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                int64_t group = 0;
                (void)hf__json_integer(m, &group);
                if (group >= 0 && group <= INT32_MAX)
                        continue;
                (void)snprintf(shown, sizeof shown, "%lld", (long long)group);
                hfd_cause_invalid(causes, hfd_field_index(path, field, i), shown, id_range);
        }
}

void hfd_security_ids_validate(const struct hf__json *context, const char *field,
                               struct hfd_causes *causes) {
        hfd_require_range(context, field, "runAsUser", 0, INT32_MAX, id_range, causes);
        hfd_require_range(context, field, "runAsGroup", 0, INT32_MAX, id_range, causes);
}

void hfd_pod_security_validate(const struct hf__json *context, const char *field,
                               struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        hfd_require_range(context, field, "fsGroup", 0, INT32_MAX, id_range, causes);
        hfd_security_ids_validate(context, field, causes);
        validate_groups(hf__json_get(context, "supplementalGroups"),
                        hfd_field_path(path, field, "supplementalGroups"), causes);
        validate_sysctls(hf__json_get(context, "sysctls"), hfd_field_path(path, field, "sysctls"),
                         causes);
}
