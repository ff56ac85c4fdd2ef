/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a pod back: scheduling gates, until each is removed, and readiness gates, which are
 * conditions that must be true before the pod counts as ready.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Repeated names are found in an index, because a client chooses
 * how many gates there are.
 */
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"

static void validate_readiness(const struct hf__json *list, const char *field,
                               struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                hfd_field_path(path, hfd_field_index(item, field, i++), "conditionType");
                hfd_qualified_name_validate(hfd_text_of(m, "conditionType"), path, causes);
        }
}

/* As in kube-apiserver, the causes have the path of the gate, not of its name. */
static void validate_scheduling(const struct hf__json *list, const char *field,
                                struct hfd_causes *causes) {
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init_texts(&names, list, "name")))
                for (const struct hf__json *m = hf__json_first(list); m;
                     m = hf__json_next(m), i++) {
                        const char *name = hfd_text_of(m, "name");
                        hfd_field_index(path, field, i);
                        hfd_qualified_name_validate(name, path, causes);
                        if (hfd_is_repeated(&names, name, i))
                                hfd_cause_duplicate_text(causes, path, name);
                }
        hf__json_index_done(&names);
}

void hfd_gates_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        validate_readiness(hf__json_get(spec, "readinessGates"),
                           hfd_field_path(path, field, "readinessGates"), causes);
        validate_scheduling(hf__json_get(spec, "schedulingGates"),
                            hfd_field_path(path, field, "schedulingGates"), causes);
}
