/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of spec.successPolicy of a Job.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/rules/jobs/job_indexes.h"
#include "server/resources/workloads/workloads.h"

#define RULES_MAX   20
#define INDEXES_MAX (64 * 1024) /* bytes of succeededIndexes */

/* ---- spec.successPolicy ---- */

/* n: the number of the indexes; 0 if they are not valid, and -1 if the rule has no
 * succeededIndexes. */
static void validate_count(const struct hf__json *rule, const char *field, int64_t completions,
                           int64_t n, struct hfd_causes *causes) {
        static const char member[] = "succeededCount", least[] = "must be less than or equal to";
        char why[160];

        hfd_require_range(rule, field, member, 0, INT64_MAX, "must be greater than or equal to 0",
                          causes);
        (void)snprintf(why, sizeof why, "%s %" PRId64 " (the number of specified completions)",
                       least, completions);
        hfd_require_range(rule, field, member, INT64_MIN, completions, why, causes);
        if (n < 0)
                return;
        (void)snprintf(why, sizeof why,
                       "%s %" PRId64
                       " (the number of indexes in the specified succeededIndexes field)",
                       least, n);
        hfd_require_range(rule, field, member, INT64_MIN, n, why, causes);
}

static void validate_success_rule(const struct hf__json *rule, const char *field,
                                  int64_t completions, struct hfd_causes *causes) {
        const char *indexes = hf__json_string(rule, "succeededIndexes");
        char path[HFD_FIELD_PATH_MAX], why[HFD_JOB_INDEXES_WHY_MAX], detail[340];
        int64_t n = -1;

        if (!indexes && !hf__json_get(rule, "succeededCount"))
                hfd_cause_required(causes, field,
                                   "at least one of succeededCount or succeededIndexes must be "
                                   "specified");
        hfd_field_path(path, field, "succeededIndexes");
        if (indexes && strlen(indexes) > INDEXES_MAX)
                hfd_cause_too_long(causes, path, "may not be more than 65536 bytes");
        if (indexes && !hfd_job_indexes_count(indexes, completions, &n, why)) {
                (void)snprintf(detail, sizeof detail, "error parsing succeededIndexes: %s", why);
                hfd_cause_invalid_text(causes, path, indexes, detail);
        }
        validate_count(rule, field, completions, n, causes);
}

/* The value of the cause is the policy as Go prints it: with the names of the fields in Go. It is
 * cut, as all values are. */
static void refuse_success_policy(const struct hf__json *rules, const char *field,
                                  struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};
        int64_t n;

        hf__strbuf_puts(&shown, rules ? "{\"Rules\":[" : "{\"Rules\":null");
        for (const struct hf__json *m = hf__json_first(rules); m && shown.n < 300;
             m = hf__json_next(m)) {
                const char *indexes = hf__json_string(m, "succeededIndexes");
                hf__strbuf_puts(&shown, m == hf__json_first(rules) ? "{\"SucceededIndexes\":"
                                                                   : ",{\"SucceededIndexes\":");
                if (indexes)
                        hf__strbuf_json(&shown, indexes, strnlen(indexes, 300));
                else
                        hf__strbuf_puts(&shown, "null");
                if (hf__json_i64(m, "succeededCount", &n))
                        hf__strbuf_printf(&shown, ",\"SucceededCount\":%" PRId64 "}", n);
                else
                        hf__strbuf_puts(&shown, ",\"SucceededCount\":null}");
        }
        hf__strbuf_puts(&shown, rules ? "]}" : "}");
        bool is_shown = hfd_causes_check(causes, shown.error);
        hfd_cause_invalid(causes, field, is_shown ? shown.data : "",
                          "requires indexed completion mode");
        hf__strbuf_done(&shown);
}

void hfd_job_success_policy_validate(const struct hf__json *spec, const char *field,
                                     struct hfd_causes *causes) {
        const struct hf__json *rules = hf__json_path(spec, "successPolicy.rules");
        char policy[HFD_FIELD_PATH_MAX], list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        int64_t completions = INT32_MAX; /* without a number there is a cause for that already */
        size_t i = 0;

        hfd_field_path(policy, field, "successPolicy");
        if (!hf__json_has_text(spec, "completionMode", "Indexed")) {
                refuse_success_policy(rules, policy, causes);
                return;
        }
        (void)hf__json_i64(spec, "completions", &completions);
        hfd_field_path(list, policy, "rules");
        if (!hf__json_first(rules))
                hfd_cause_required(causes, list,
                                   "at least one rules must be specified when the successPolicy is "
                                   "specified");
        size_t n = hf__json_count(rules);
        if (n > RULES_MAX)
                hfd_cause_too_many(causes, list, n, RULES_MAX);
        for (const struct hf__json *m = hf__json_first(rules); m && i < RULES_MAX;
             m = hf__json_next(m))
                validate_success_rule(m, hfd_field_index(path, list, i++), completions, causes);
}
