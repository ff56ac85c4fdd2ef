/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Jobs and CronJobs. job_update.c has what an update may change.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 *
 * spec.podFailurePolicy and spec.successPolicy of a Job are not checked: only a controller that
 * runs pods reads them, and Holdfast has none.
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* The controller of CronJobs appends 11 characters to the name for each Job, whose name may have 63
 * characters because it becomes a label of its pods. */
#define CRON_JOB_NAME_MAX 52

static const char not_negative[] = "must be greater than or equal to 0";

/* ---- templates ---- */

/* The pods of a Job end, so their restartPolicy cannot be Always. */
static void validate_job_template(const struct hf__json *template, const char *field,
                                  struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], of_spec[HFD_FIELD_PATH_MAX];
        const char *policy = hf__json_string(template, "spec.restartPolicy");

        hfd_pod_template_spec_validate(template, field, causes);
        if (policy && strcmp(policy, "Always") == 0)
                hfd_cause_unsupported_text(causes,
                                           hfd_field_path(path,
                                                          hfd_field_path(of_spec, field, "spec"),
                                                          "restartPolicy"),
                                           policy, "\"OnFailure\", \"Never\"");
}

/* ---- Jobs and CronJobs ---- */

/* field: the path of the spec, which is inside a template in a CronJob. */
static void validate_job_spec(const struct hf__json *spec, const char *field,
                              struct hfd_causes *causes) {
        static const char *const counts[] = {"parallelism",          "completions",
                                             "backoffLimit",         "ttlSecondsAfterFinished",
                                             "backoffLimitPerIndex", "maxFailedIndexes"};
        const char *mode = hf__json_string(spec, "completionMode");
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
                hfd_require_range(spec, field, counts[i], 0, INT32_MAX, not_negative, causes);
        hfd_require_range(spec, field, "activeDeadlineSeconds", 0, INT64_MAX, not_negative, causes);
        if (mode && strcmp(mode, "NonIndexed") != 0 && strcmp(mode, "Indexed") != 0)
                hfd_cause_unsupported_text(causes, hfd_field_path(path, field, "completionMode"),
                                           mode, "\"Indexed\", \"NonIndexed\"");
        if (mode && strcmp(mode, "Indexed") == 0 && !hf__json_get(spec, "completions"))
                hfd_cause_required(causes, hfd_field_path(path, field, "completions"),
                                   "when completion mode is Indexed");
        validate_job_template(hf__json_get(spec, "template"),
                              hfd_field_path(path, field, "template"), causes);
}

void hfd_job_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(object, old, causes))
                return;
        validate_job_spec(spec, "spec", causes);
        if (old)
                hfd_job_update_validate(spec, old, causes);
}

void hfd_cron_job_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");
        const char *name = hf__json_string(object, "metadata.name");

        if (hfd_spec_is_kept(object, old, causes))
                return;
        if (hfd_require_text(spec, "spec", "schedule", causes))
                hfd_cron_schedule_validate(spec, was, causes);
        hfd_require_range(spec, "spec", "startingDeadlineSeconds", 0, INT64_MAX, not_negative,
                          causes);
        /* A zone that was stored before the rule for zones existed may stay. */
        if (!old || !hfd_causes_equal(causes, hf__json_get(spec, "timeZone"),
                                      hf__json_get(was, "timeZone")))
                hfd_cron_zone_validate(hf__json_get(spec, "timeZone"), causes);
        hfd_require_one_of(spec, "spec", "concurrencyPolicy", policies, causes);
        validate_job_spec(hf__json_path(spec, "jobTemplate.spec"), "spec.jobTemplate.spec", causes);
        hfd_require_range(spec, "spec", "successfulJobsHistoryLimit", 0, INT32_MAX, not_negative,
                          causes);
        hfd_require_range(spec, "spec", "failedJobsHistoryLimit", 0, INT32_MAX, not_negative,
                          causes);
        if (!old && name && strlen(name) > CRON_JOB_NAME_MAX)
                hfd_cause_invalid_text(causes, "metadata.name", name,
                                       "must be no more than 52 characters");
}
