/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users that the containers of a pod have, as the status reports them.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

static const char id_range[] = "must be between 0 and 2147483647, inclusive";

/* user: a status's member user.linux. field: its path. system: spec.os.name, or "linux" for a pod
 * without spec.os. */
static void validate_user(const struct hf__json *user, const char *field, const char *system,
                          struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (strcmp(system, "windows") == 0) {
                hfd_cause_forbidden(causes, field, "cannot be set for a windows pod");
        } else if (strcmp(system, "linux") == 0) {
                hfd_require_range(user, field, "uid", 0, INT32_MAX, id_range, causes);
                hfd_require_range(user, field, "gid", 0, INT32_MAX, id_range, causes);
                hfd_groups_validate(hf__json_get(user, "supplementalGroups"),
                                    hfd_field_path(path, field, "supplementalGroups"), causes);
        }
}

void hfd_container_users_validate(const struct hf__json *pod, struct hfd_causes *causes) {
        static const char *const lists[] = {"status.containerStatuses",
                                            "status.initContainerStatuses",
                                            "status.ephemeralContainerStatuses"};
        const char *system = hf__json_path(pod, "spec.os")
                                     ? hf__json_string_or_empty(pod, "spec.os.name")
                                     : "linux";
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
                size_t at = 0;
                for (const struct hf__json *m = hf__json_first(hf__json_path(pod, lists[i])); m;
                     m = hf__json_next(m), at++) {
                        const struct hf__json *user = hf__json_path(m, "user.linux");
                        hfd_field_path(path, hfd_field_index(item, lists[i], at), "user.linux");
                        if (user)
                                validate_user(user, path, system, causes);
                }
        }
}
