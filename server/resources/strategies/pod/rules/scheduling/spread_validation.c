/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of topologySpreadConstraints, which say how evenly pods are spread over the domains of
 * a cluster, such as zones.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Two constraints with the same topologyKey and whenUnsatisfiable
 * ("of one kind") are found with an index, because a client chooses how many constraints there are.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

static const char *const actions[] = {"DoNotSchedule", "ScheduleAnyway", NULL},
                         *const policies[] = {"Honor", "Ignore", NULL};

/* ---- constraints of one kind ---- */

/* Prints the kind of a constraint as the cause shows it. The caller frees ret_kind, also after a
 * failure. 0 or -ENOMEM. */
static int print_kind(const struct hf__json *constraint, struct hf__strbuf *ret_kind) {
        hf__strbuf_printf(ret_kind, "{%s, %s}", hfd_text_of(constraint, "topologyKey"),
                          hfd_text_of(constraint, "whenUnsatisfiable"));
        return ret_kind->error;
}

/* Appends the kind of each constraint as a text. kinds NULL counts as out of memory. */
static int list_kinds(const struct hf__json *constraints, struct hf__json *kinds) {
        int r = kinds ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(constraints); m && r == 0;
             m = hf__json_next(m)) {
                struct hf__strbuf kind = {0};
                r = print_kind(m, &kind);
                if (r == 0)
                        r = hf__json_append_string(kinds, kind.data);
                hf__strbuf_done(&kind);
        }
        return r;
}

/* For each constraint, whether a later one has the same kind. The caller frees the array. NULL:
 * memory ran out. */
static bool *find_repeated(const struct hf__json *constraints) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *kinds = hf__json_array();
        bool *repeated = calloc(hf__json_count(constraints) + 1, sizeof(bool));
        struct hf__json_index index = {0};
        int r = repeated ? list_kinds(constraints, kinds) : -ENOMEM;

        if (r == 0)
                r = hf__json_index_init(&index, kinds, NULL);
        for (size_t i = 0; i + 1 < index.n && r == 0; i++)
                repeated[index.entries[i].position] =
                        strcmp(index.entries[i].text, index.entries[i + 1].text) == 0;
        hf__json_index_done(&index);
        if (r == 0)
                return repeated;
        free(repeated);
        return NULL;
}

static void refuse_repeated(const struct hf__json *constraint, const char *field,
                            struct hfd_causes *causes) {
        struct hf__strbuf kind = {0};
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_causes_check(causes, print_kind(constraint, &kind)))
                hfd_cause_duplicate_text(causes,
                                         hfd_field_path(path, field,
                                                        "{topologyKey, whenUnsatisfiable}"),
                                         kind.data);
        hf__strbuf_done(&kind);
}

/* ---- members ---- */

static void validate_skew(const struct hf__json *constraint, const char *field,
                          struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], shown[24];
        int64_t skew = 0;

        (void)hf__json_integer(hf__json_get(constraint, "maxSkew"), &skew);
        if (skew > 0)
                return;
        (void)snprintf(shown, sizeof shown, "%lld", (long long)skew);
        hfd_cause_invalid(causes, hfd_field_path(path, field, "maxSkew"), shown,
                          "must be greater than zero");
}

static void validate_domains(const struct hf__json *constraint, const char *field,
                             struct hfd_causes *causes) {
        const char *action = hfd_text_of(constraint, "whenUnsatisfiable");
        char path[HFD_FIELD_PATH_MAX], shown[24], why[300];
        int64_t domains;

        if (!hf__json_integer(hf__json_get(constraint, "minDomains"), &domains))
                return;
        hfd_require_range(constraint, field, "minDomains", 1, INT32_MAX,
                          "must be greater than zero", causes);
        if (strcmp(action, "DoNotSchedule") == 0)
                return;
        (void)snprintf(shown, sizeof shown, "%lld", (long long)domains);
        (void)snprintf(why, sizeof why,
                       "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %.200s",
                       action);
        hfd_cause_invalid(causes, hfd_field_path(path, field, "minDomains"), shown, why);
}

static void validate_policy(const struct hf__json *constraint, const char *field,
                            const char *member, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_get(constraint, member))
                hfd_refuse_others(hfd_text_of(constraint, member),
                                  hfd_field_path(path, field, member), policies, causes);
}

static void validate_constraint(const struct hf__json *constraint, const char *field,
                                bool is_repeated, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        validate_skew(constraint, field, causes);
        if (!*hfd_text_of(constraint, "topologyKey"))
                hfd_cause_required(causes, hfd_field_path(path, field, "topologyKey"),
                                   "can not be empty");
        hfd_refuse_others(hfd_text_of(constraint, "whenUnsatisfiable"),
                          hfd_field_path(path, field, "whenUnsatisfiable"), actions, causes);
        if (is_repeated)
                refuse_repeated(constraint, field, causes);
        validate_domains(constraint, field, causes);
        validate_policy(constraint, field, "nodeAffinityPolicy", causes);
        validate_policy(constraint, field, "nodeTaintsPolicy", causes);
        hfd_label_keys_validate(constraint, field, causes);
        hfd_match_selector_validate(hf__json_get(constraint, "labelSelector"),
                                    hfd_field_path(path, field, "labelSelector"), causes);
}

void hfd_spread_validate(const struct hf__json *list, const char *field,
                         struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        bool *repeated;
        size_t i = 0;

        if (!hf__json_first(list))
                return;
        repeated = find_repeated(list);
        if (!repeated) {
                hfd_causes_no_memory(causes);
                return;
        }
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                validate_constraint(m, hfd_field_index(path, field, i), repeated[i], causes);
        free(repeated);
}
