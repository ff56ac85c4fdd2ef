/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of affinities: on which nodes a pod may run or should run, and next to which other
 * pods.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. As in kube-apiserver, a preferred term for nodes may have
 * values that no label can have; a required one must not.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"

static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution",
                  preferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

static void validate_weight(const struct hf__json *term, const char *field,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], shown[24];
        int64_t weight = 0;

        (void)hf__json_integer(hf__json_get(term, "weight"), &weight);
        if (weight >= 1 && weight <= 100)
                return;
        (void)snprintf(shown, sizeof shown, "%lld", (long long)weight);
        hfd_cause_invalid(causes, hfd_field_path(path, field, "weight"), shown,
                          "must be in the range 1-100");
}

/* ---- nodes ---- */

static void validate_node_affinity(const struct hf__json *affinity, const char *field,
                                   struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(affinity, required);
        char list[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (selector)
                hfd_node_selector_validate(selector, hfd_field_path(path, field, required), false,
                                           causes);
        hfd_field_path(list, field, preferred);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, preferred)); m;
             m = hf__json_next(m)) {
                validate_weight(m, hfd_field_index(item, list, i++), causes);
                hfd_node_selector_term_validate(hf__json_get(m, "preference"),
                                                hfd_field_path(path, item, "preference"), true,
                                                causes);
        }
}

/* ---- pods ---- */

/* As in kube-apiserver, the path of the namespaces is "namespace", without an index. */
static void validate_pod_term(const struct hf__json *term, const char *field,
                              struct hfd_causes *causes) {
        const char *key = hfd_text_of(term, "topologyKey");
        char path[HFD_FIELD_PATH_MAX];

        hfd_match_selector_validate(hf__json_get(term, "labelSelector"),
                                    hfd_field_path(path, field, "labelSelector"), causes);
        hfd_match_selector_validate(hf__json_get(term, "namespaceSelector"),
                                    hfd_field_path(path, field, "namespaceSelector"), causes);
        hfd_field_path(path, field, "namespace");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "namespaces")); m;
             m = hf__json_next(m))
                hfd_dns_label_validate(hf__json_text_or_empty(m), path, causes);
        hfd_label_keys_validate(term, field, causes);
        hfd_field_path(path, field, "topologyKey");
        if (!*key)
                hfd_cause_required(causes, path, "can not be empty");
        hfd_qualified_name_validate(key, path, causes);
}

/* Of podAffinity or podAntiAffinity. */
static void validate_pod_affinity(const struct hf__json *affinity, const char *field,
                                  struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, required);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, required)); m;
             m = hf__json_next(m))
                validate_pod_term(m, hfd_field_index(item, list, i++), causes);
        i = 0;
        hfd_field_path(list, field, preferred);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, preferred)); m;
             m = hf__json_next(m)) {
                validate_weight(m, hfd_field_index(item, list, i++), causes);
                validate_pod_term(hf__json_get(m, "podAffinityTerm"),
                                  hfd_field_path(path, item, "podAffinityTerm"), causes);
        }
}

void hfd_affinity_validate(const struct hf__json *affinity, const char *field,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        validate_node_affinity(hf__json_get(affinity, "nodeAffinity"),
                               hfd_field_path(path, field, "nodeAffinity"), causes);
        validate_pod_affinity(hf__json_get(affinity, "podAffinity"),
                              hfd_field_path(path, field, "podAffinity"), causes);
        validate_pod_affinity(hf__json_get(affinity, "podAntiAffinity"),
                              hfd_field_path(path, field, "podAntiAffinity"), causes);
}
