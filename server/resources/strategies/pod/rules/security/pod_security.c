/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the security context of a pod, and of users and groups, which containers have too.
 * Other files of this folder have the rules of the members that are structs.
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
 * each of which begins and ends with a lower-case letter or a digit. */
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

/* Whether the parameter belongs to the IPC namespace (ipc true) or the network namespace. As in
 * kube-apiserver, a name is read with dots as separators if the first separator is a dot, and with
 * slashes otherwise, and it ends at a '*'. */
static bool is_namespaced(const char *name, bool ipc) {
        static const char *const of_ipc[] = {"kernel.sem",    "kernel.shmall",
                                             "kernel.shmmax", "kernel.shmmni",
                                             "kernel.shm",    "kernel.shm_rmid_forced",
                                             "kernel.msgmax", "kernel.msgmnb",
                                             "kernel.msgmni", "kernel.msg"};
        char text[SYSCTL_MAX + 1]; /* longer than all names that are compared, so it may be cut */
        bool slashes = name[strcspn(name, "./")] == '/';
        size_t n = strcspn(name, "*");

        (void)snprintf(text, sizeof text, "%.*s", (int)(n < SYSCTL_MAX ? n : SYSCTL_MAX), name);
        for (char *c = text; *c && slashes; c++)
                if (*c == '/' || *c == '.')
                        *c = *c == '/' ? '.' : '/';
        if (!ipc)
                return strncmp(text, "net.", 4) == 0;
        for (size_t i = 0; i < sizeof of_ipc / sizeof of_ipc[0]; i++)
                if (strcmp(text, of_ipc[i]) == 0)
                        return true;
        return strncmp(text, "fs.mqueue.", 10) == 0;
}

/* A parameter of a namespace that the pod shares with the host would change the host. */
static void refuse_of_host(const struct hf__json *spec, const char *name, const char *field,
                           struct hfd_causes *causes) {
        if (hf__json_bool(spec, "hostNetwork", false) && is_namespaced(name, false))
                hfd_cause_invalid_text(causes, field, name,
                                       "may not be specified when 'hostNetwork' is true");
        else if (hf__json_bool(spec, "hostIPC", false) && is_namespaced(name, true))
                hfd_cause_invalid_text(causes, field, name,
                                       "may not be specified when 'hostIPC' is true");
}

static void validate_sysctls(const struct hf__json *spec, const struct hf__json *list,
                             const char *field, struct hfd_causes *causes) {
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
                        refuse_of_host(spec, name, path, causes);
                }
        hf__json_index_done(&names);
}

void hfd_groups_validate(const struct hf__json *list, const char *field,
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

/* "Unsupported value" unless the member is absent or one of the values, which end with NULL. */
static void validate_policy(const struct hf__json *context, const char *field, const char *member,
                            const char *const *values, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_get(context, member))
                hfd_refuse_others(hfd_text_of(context, member), hfd_field_path(path, field, member),
                                  values, causes);
}

void hfd_pod_security_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes) {
        static const char *const of_fs_group[] = {"Always", "OnRootMismatch", NULL},
                                 *const of_groups[] = {"Merge", "Strict", NULL},
                                 *const of_se_linux[] = {"MountOption", "Recursive", NULL};
        const struct hf__json *context = hf__json_get(spec, "securityContext");
        char of_context[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_context, field, "securityContext");
        hfd_require_range(context, of_context, "fsGroup", 0, INT32_MAX, id_range, causes);
        hfd_security_ids_validate(context, of_context, causes);
        hfd_groups_validate(hf__json_get(context, "supplementalGroups"),
                            hfd_field_path(path, of_context, "supplementalGroups"), causes);
        /* In kube-apiserver this member belongs to the context. */
        if (hf__json_bool(spec, "shareProcessNamespace", false) &&
            hf__json_bool(spec, "hostPID", false))
                hfd_cause_invalid(causes, hfd_field_path(path, of_context, "shareProcessNamespace"),
                                  "true",
                                  "ShareProcessNamespace and HostPID cannot both be enabled");
        validate_sysctls(spec, hf__json_get(context, "sysctls"),
                         hfd_field_path(path, of_context, "sysctls"), causes);
        validate_policy(context, of_context, "fsGroupChangePolicy", of_fs_group, causes);
        hfd_seccomp_validate(context, of_context, causes);
        hfd_windows_options_validate(context, of_context, causes);
        hfd_app_armor_validate(context, of_context, causes);
        validate_policy(context, of_context, "supplementalGroupsPolicy", of_groups, causes);
        validate_policy(context, of_context, "seLinuxChangePolicy", of_se_linux, causes);
}
