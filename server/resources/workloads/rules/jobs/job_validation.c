/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Jobs and CronJobs. job_failure_policy.c and job_success_policy.c have those of their
 * policies, cron_schedule.c those of schedules, and job_update.c has what an update may change.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

/* The controller of CronJobs appends 11 characters to the name for each Job, whose name may have 63
 * characters because it becomes a label of its pods. */
#define CRON_JOB_NAME_MAX 52
#define INDEXES_MAX       100000 /* indexes that a Job may run at once; or that may fail in total */
#define MANAGED_BY_MAX    63     /* bytes */

static const char not_negative[] = "must be greater than or equal to 0";

/* ---- indexes ---- */

/* The status lists the indexes that have succeeded and those that have failed. With a limit of
 * failures for each index a Job goes on after failures, so a large Job has lower limits of
 * parallelism and maxFailedIndexes, which bound these lists. */
static void validate_many_indexes(const struct hf__json *spec, const char *field,
                                  struct hfd_causes *causes) {
        static const char less[] = "must be less than or equal to 10000 when completions are above "
                                   "100000 and used with backoff limit per index";
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_get(spec, "maxFailedIndexes"))
                hfd_cause_required(causes, hfd_field_path(path, field, "maxFailedIndexes"),
                                   "must be specified when completions is above 100000");
        hfd_require_range(spec, field, "parallelism", INT64_MIN, 10000, less, causes);
        hfd_require_range(spec, field, "maxFailedIndexes", INT64_MIN, 10000, less, causes);
}

static void validate_indexed(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        int64_t completions;
        bool is_counted = hf__json_i64(spec, "completions", &completions);

        if (!is_counted)
                hfd_cause_required(causes, hfd_field_path(path, field, "completions"),
                                   "when completion mode is Indexed");
        hfd_require_range(spec, field, "parallelism", INT64_MIN, INDEXES_MAX,
                          "must be less than or equal to 100000 when completion mode is Indexed",
                          causes);
        if (is_counted)
                hfd_require_range(spec, field, "maxFailedIndexes", INT64_MIN, completions,
                                  "must be less than or equal to completions", causes);
        hfd_require_range(spec, field, "maxFailedIndexes", INT64_MIN, INDEXES_MAX,
                          "must be less than or equal to 100000", causes);
        if (is_counted && completions > INDEXES_MAX && hf__json_get(spec, "backoffLimitPerIndex"))
                validate_many_indexes(spec, field, causes);
}

static void validate_mode(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes) {
        static const char *const of_indexes[] = {"backoffLimitPerIndex", "maxFailedIndexes"};
        const char *mode = hf__json_string(spec, "completionMode");
        char path[HFD_FIELD_PATH_MAX];

        if (mode && strcmp(mode, "Indexed") == 0) {
                validate_indexed(spec, field, causes);
                return;
        }
        if (mode && strcmp(mode, "NonIndexed") != 0) {
                hfd_cause_unsupported_text(causes, hfd_field_path(path, field, "completionMode"),
                                           mode, "\"NonIndexed\", \"Indexed\"");
                return;
        }
        for (size_t i = 0; i < 2; i++) /* no number is in the range */
                hfd_require_range(spec, field, of_indexes[i], INT64_MAX, INT64_MIN,
                                  "requires indexed completion mode", causes);
}

/* ---- templates ---- */

/* The pods of a Job end, so their restartPolicy cannot be Always. A policy of failures sees only
 * pods that fail, and a pod whose containers are restarted does not. */
static void validate_restart(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        const char *policy = hf__json_string(spec, "template.spec.restartPolicy");
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "template.spec.restartPolicy");
        if (!policy || !*policy || strcmp(policy, "Always") == 0)
                hfd_cause_required(causes, path, "valid values: \"OnFailure\", \"Never\"");
        else if (strcmp(policy, "OnFailure") != 0 && strcmp(policy, "Never") != 0)
                hfd_cause_unsupported_text(causes, path, policy, "\"OnFailure\", \"Never\"");
        else if (hf__json_get(spec, "podFailurePolicy") && strcmp(policy, "Never") != 0)
                hfd_cause_invalid_text(causes, path, policy,
                                       "only \"Never\" is supported when podFailurePolicy is "
                                       "specified");
}

/* ---- Jobs and CronJobs ---- */

/* The name of the controller that manages the Job, if it is another than that of Kubernetes. */
static void validate_manager(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        const char *manager = hf__json_string(spec, "managedBy");
        char path[HFD_FIELD_PATH_MAX];

        if (!manager)
                return;
        hfd_field_path(path, field, "managedBy");
        hfd_domain_path_validate(manager, path, causes);
        if (strlen(manager) > MANAGED_BY_MAX)
                hfd_cause_too_long(causes, path, "may not be more than 63 bytes");
}

/* field: the path of the spec, which is inside a template in a CronJob. was: the old spec; NULL: a
 * create. Of a template that an update keeps, only the restartPolicy is checked. */
static void validate_job_spec(const struct hf__json *spec, const struct hf__json *was,
                              const char *field, struct hfd_causes *causes) {
        /* Of the template of a suspended Job, only the place and the resources of its pods may
         * change, so a mistake elsewhere could not be mended. Therefore mistakes that the old
         * template has do not count (hfd_change_validate). */
        static const struct hfd_change_rules of_template = {&hfd_pod_template_spec_schema,
                                                            hfd_pod_template_spec_validate};
        static const char *const counts[] = {"parallelism",
                                             "completions",
                                             "activeDeadlineSeconds",
                                             "backoffLimit",
                                             "ttlSecondsAfterFinished",
                                             "backoffLimitPerIndex",
                                             "maxFailedIndexes"};
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
                hfd_require_range(spec, field, counts[i], 0, INT64_MAX, not_negative, causes);
        if (hf__json_get(spec, "maxFailedIndexes") && !hf__json_get(spec, "backoffLimitPerIndex"))
                hfd_cause_required(causes, hfd_field_path(path, field, "backoffLimitPerIndex"),
                                   "when maxFailedIndexes is specified");
        validate_manager(spec, field, causes);
        validate_mode(spec, field, causes);
        if (hf__json_get(spec, "podFailurePolicy"))
                hfd_job_failure_policy_validate(spec, field, causes);
        if (hf__json_get(spec, "successPolicy"))
                hfd_job_success_policy_validate(spec, field, causes);
        hfd_job_replacement_policy_validate(spec, field, causes);
        if (!was || !hfd_causes_equal_member(causes, hfd_schema_of_member(&hfd_job_schema, "spec"),
                                             spec, was, "template"))
                hfd_change_validate(&of_template, hf__json_get(spec, "template"),
                                    hf__json_get(was, "template"),
                                    hfd_field_path(path, field, "template"), causes);
        validate_restart(spec, field, causes);
}

/* A Job that chooses its selector (spec.manualSelector) must have one, and its pods must have the
 * labels. Other Jobs get both when they are created (hfd_job_prepare). */
static void validate_selector(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(spec, "selector"),
                              *labels = hf__json_path(spec, "template.metadata.labels");
        size_t n = causes->n;

        if (selector)
                hfd_match_selector_validate(selector, "spec.selector", causes);
        else
                hfd_cause_required(causes, "spec.selector", "");
        if (!selector || (causes->n == n && !hfd_label_selector_matches(selector, labels)))
                hfd_template_labels_refuse(labels, causes);
}

/* The value of the cause is the map of all labels. */
static void refuse_label(const struct hf__json *labels, const char *key, const char *wanted,
                         struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};
        char field[HFD_FIELD_PATH_MAX], why[320];
        bool is_shown = hfd_causes_check(causes, hfd_labels_show(labels, &shown));

        (void)snprintf(field, sizeof field, "spec.template.metadata.labels[%s]", key);
        (void)snprintf(why, sizeof why, "must be '%.253s'", wanted);
        hfd_cause_invalid(causes, field, is_shown ? shown.data : "{}", why);
        hf__strbuf_done(&shown);
}

static void refuse_generated(const struct hf__json *selector, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(selector, &shown);
        hfd_cause_invalid(causes, "spec.selector",
                          hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          "`selector` not auto-generated");
        hf__strbuf_done(&shown);
}

/* *ret_selects: whether the selector selects pods that have the generated labels. 0 or -ENOMEM. */
static int select_generated(const struct hf__json *selector, const char *const *keys,
                            const char *const *wanted, bool *ret_selects) {
        struct hf__json *labels = hf__json_object();
        int r = labels ? 0 : -ENOMEM;

        for (size_t i = 0; i < 4 && r == 0; i++)
                r = hf__json_put_string(labels, keys[i], wanted[i]);
        *ret_selects = r == 0 && hfd_label_selector_matches(selector, labels);
        hf__json_free(labels);
        return r;
}

/* A new Job whose selector is generated (hfd_job_prepare): labels of the client may not contradict
 * the generated ones, and its selector may not ask for others. */
static void validate_generated(const struct hf__json *object, struct hfd_causes *causes) {
        const char *uid = hf__json_string(object, "metadata.uid"),
                   *name = hf__json_string(object, "metadata.name");
        static const char *const keys[] = {"controller-uid", "job-name",
                                           "batch.kubernetes.io/controller-uid",
                                           "batch.kubernetes.io/job-name"};
        const char *const wanted[] = {uid, name, uid, name};
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels");
        bool selects;

        if (hf__json_bool(object, "spec.manualSelector", false) || !selector || !uid || !name)
                return;
        for (size_t i = 0; i < 4; i++)
                if (strcmp(hfd_text_of(labels, keys[i]), wanted[i]) != 0)
                        refuse_label(labels, keys[i], wanted[i], causes);
        if (hfd_causes_check(causes, select_generated(selector, keys, wanted, &selects)) &&
            !selects)
                refuse_generated(selector, causes);
}

/* The host name of a pod of an indexed Job is the name of the Job, "-" and the pod's index. */
static void validate_pod_names(const struct hf__json *object, struct hfd_causes *causes) {
        const char *name = hf__json_string(object, "metadata.name");
        char pod[300], why[400];
        int64_t completions;

        if (!name || !hf__json_has_text(object, "spec.completionMode", "Indexed") ||
            !hf__json_i64(object, "spec.completions", &completions) || completions <= 0)
                return;
        (void)snprintf(pod, sizeof pod, "%.260s-%" PRId64, name, completions - 1);
        (void)snprintf(why, sizeof why, "will not able to create pod with invalid DNS label: %s",
                       pod);
        if (!hfd_is_dns_label(pod))
                hfd_cause_invalid_text(causes, "metadata.name", name, why);
}

void hfd_job_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_job_schema, object, old, causes))
                return;
        if (!old)
                validate_generated(object, causes);
        validate_job_spec(spec, hf__json_get(old, "spec"), "spec", causes);
        validate_selector(spec, causes);
        validate_pod_names(object, causes);
        if (old)
                hfd_job_update_validate(spec, old, causes);
}

/* The controller of CronJobs makes the Jobs, which get their selectors when they are created. */
static void refuse_selector(const struct hf__json *job_spec, struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(job_spec, "selector");
        struct hf__strbuf shown = {0};

        if (selector) {
                hf__json_print(selector, &shown);
                hfd_cause_invalid(causes, "spec.jobTemplate.spec.selector",
                                  hfd_causes_check(causes, shown.error) ? shown.data : "",
                                  "`selector` will be auto-generated");
                hf__strbuf_done(&shown);
        }
        if (hf__json_bool(job_spec, "manualSelector", false))
                hfd_cause_unsupported(causes, "spec.jobTemplate.spec.manualSelector", "true",
                                      "\"nil\", \"false\"");
}

void hfd_cron_job_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec"),
                              *job_spec = hf__json_path(spec, "jobTemplate.spec");
        const char *name = hf__json_string(object, "metadata.name");

        if (hfd_spec_is_kept(&hfd_cron_job_schema, object, old, causes))
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
        validate_job_spec(job_spec, hf__json_path(was, "jobTemplate.spec"), "spec.jobTemplate.spec",
                          causes);
        refuse_selector(job_spec, causes);
        hfd_require_range(spec, "spec", "successfulJobsHistoryLimit", 0, INT32_MAX, not_negative,
                          causes);
        hfd_require_range(spec, "spec", "failedJobsHistoryLimit", 0, INT32_MAX, not_negative,
                          causes);
        if (!old && name && strlen(name) > CRON_JOB_NAME_MAX)
                hfd_cause_invalid_text(causes, "metadata.name", name,
                                       "must be no more than 52 characters");
}
