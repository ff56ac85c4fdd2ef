/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of ReplicationControllers, Jobs and CronJobs, and what they share with the kinds of
 * apps/v1 (apps_validation.c).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 *
 * spec.podFailurePolicy and spec.successPolicy of a Job are not checked: only a controller that
 * runs pods reads them, and Holdfast has none.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* The controller of CronJobs appends 11 characters to the name for each Job, whose name may have 63
 * characters because it becomes a label of its pods. */
#define CRON_JOB_NAME_MAX 52

static const char not_negative[] = "must be greater than or equal to 0";

/* ---- what several kinds share ---- */

/* The value of the cause is the labels as JSON, as Kubernetes prints them. It is cut after 250
 * bytes: a client chooses the labels, and a cause should not repeat all of them. */
void hfd_template_labels_refuse(const struct hf__json *labels, struct hfd_causes *causes) {
        char value[250];
        size_t n = 0;

        value[0] = '\0';
        for (const struct hf__json *m = hf__json_first(labels); m && n < sizeof value;
             m = hf__json_next(m)) {
                int printed =
                        snprintf(value + n, sizeof value - n, "%s\"%s\":\"%s\"", n > 0 ? "," : "",
                                 hf__json_key(m), hf__json_is_string(m) ? hf__json_text(m) : "");
                n += printed > 0 ? (size_t)printed : 0;
        }
        char shown[sizeof value + 2];
        (void)snprintf(shown, sizeof shown, "{%s}", value);
        hfd_cause_invalid(causes, "spec.template.metadata.labels", shown,
                          "`selector` does not match template `labels`");
}

/* An absent policy is not refused here: the defaults have set it, and the rules of the template
 * refuse an empty one. */
void hfd_always_restarted_validate(const struct hf__json *template, struct hfd_causes *causes) {
        const char *policy = hf__json_string(template, "spec.restartPolicy");

        if (policy && strcmp(policy, "Always") != 0)
                hfd_cause_unsupported_text(causes, "spec.template.spec.restartPolicy", policy,
                                           "\"Always\"");
}

bool hfd_spec_is_kept(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        return old &&
               hfd_causes_equal(causes, hf__json_get(object, "spec"), hf__json_get(old, "spec"));
}

/* ---- ReplicationControllers, Jobs, CronJobs ---- */

void hfd_replication_controller_validate(const struct hf__json *object, const struct hf__json *old,
                                         struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels"),
                              *template = hf__json_path(object, "spec.template");

        if (hfd_spec_is_kept(object, old, causes))
                return;
        hfd_require_range(hf__json_get(object, "spec"), "spec", "replicas", 0, INT32_MAX,
                          not_negative, causes);
        if (!hf__json_first(selector))
                hfd_cause_required(causes, "spec.selector", "");
        else if (!hfd_labels_contain(labels, selector))
                hfd_template_labels_refuse(labels, causes);
        hfd_pod_template_spec_validate(template, "spec.template", causes);
        hfd_always_restarted_validate(template, causes);
}

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

/* ---- updates of Jobs ---- */

/* The schema of the spec of a Job. Members are compared by it, so that an absent member equals the
 * zero of its type, as in Go. */
static const struct hfd_schema *job_spec(void) {
        return hfd_schema_of_member(&hfd_job_schema, "spec");
}

/* "Invalid value: VALUE: field is immutable" if the member of the spec has changed. was: the old
 * spec. */
static void refuse_change(const struct hf__json *spec, const struct hf__json *was,
                          const char *member, struct hfd_causes *causes) {
        const struct hf__json *value = hf__json_get(spec, member);
        char path[HFD_FIELD_PATH_MAX];
        struct hf__strbuf shown = {0};

        if (hfd_causes_equal_member(causes, job_spec(), spec, was, member))
                return;
        hf__json_print(value, &shown);
        bool is_shown = hfd_causes_check(causes, shown.error) && shown.data;
        hfd_cause_invalid(causes, hfd_field_path(path, "spec", member),
                          is_shown ? shown.data : "null", "field is immutable");
        hf__strbuf_done(&shown);
}

/* The completions of a Job cannot change, with one exception: an indexed Job is scaled by setting
 * completions and parallelism to the same number. */
static void validate_completions(const struct hf__json *spec, const struct hf__json *was,
                                 struct hfd_causes *causes) {
        const struct hf__json *completions = hf__json_get(spec, "completions");
        int64_t n = 0, parallel = 0;
        char shown[24];

        if (!hf__json_has_text(spec, "completionMode", "Indexed")) {
                refuse_change(spec, was, "completions", causes);
                return;
        }
        (void)hf__json_integer(completions, &n);
        (void)hf__json_i64(spec, "parallelism", &parallel);
        if (!completions || n == parallel ||
            hfd_causes_equal(causes, completions, hf__json_get(was, "completions")))
                return;
        (void)snprintf(shown, sizeof shown, "%" PRId64, n);
        hfd_cause_invalid(causes, "spec.completions", shown,
                          "can only be modified in tandem with spec.parallelism");
}

/* Whether the Job is suspended and has no pods, so that no pod was made from a template that
 * changes. The condition Suspended says that the controller has deleted the pods of a Job that ran
 * before. */
static bool is_idle(const struct hf__json *job) {
        const struct hf__json *conditions = hf__json_path(job, "status.conditions"),
                              *suspended = hf__json_element_with(conditions, "type", "Suspended");
        int64_t active = 0;

        (void)hf__json_i64(job, "status.active", &active);
        return hf__json_bool(job, "spec.suspend", false) && active == 0 &&
               (!hf__json_path(job, "status.startTime") ||
                hf__json_has_text(suspended, "status", "True"));
}

/* Removes from a copy of a template the members that decide where its pods may run. */
static void drop_scheduling(struct hf__json *template) {
        static const char *const members[] = {"metadata.annotations", "metadata.labels",
                                              "spec.nodeSelector",    "spec.schedulingGates",
                                              "spec.tolerations",     "spec.affinity.nodeAffinity"};

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                hf__json_remove(template, members[i]);
        if (!hf__json_first(hf__json_path(template, "spec.affinity")))
                hf__json_remove(template, "spec.affinity");
}

/* Removes the resources of the containers that two templates have at the same index and under the
 * same name. Other containers are left alone: they make the templates differ. path: the list of
 * containers. */
static void drop_resources(struct hf__json *template, struct hf__json *other, const char *path) {
        struct hf__json *x = hf__json_first(hf__json_path(template, path)),
                        *y = hf__json_first(hf__json_path(other, path));

        for (; x && y; x = hf__json_next(x), y = hf__json_next(y))
                if (strcmp(hfd_text_of(x, "name"), hfd_text_of(y, "name")) == 0) {
                        hf__json_drop(x, "resources");
                        hf__json_drop(y, "resources");
                }
}

/* Whether the template stays as it is. While a Job is idle, a queue such as Kueue may choose other
 * nodes and resources for it, and then start it. The old object says whether it is idle, because
 * the same update may start it. */
static bool is_template_kept(const struct hf__json *spec, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *was = hf__json_get(old, "spec"),
                              *template = hf__json_get(spec, "template"),
                              *old_template = hf__json_get(was, "template");

        if (hfd_causes_equal_member(causes, job_spec(), spec, was, "template"))
                return true;
        if (!is_idle(old) || !template || !old_template)
                return false;
        HF__CLEANUP(hf__json_cleanup) struct hf__json *rest = hf__json_dup(template);
        HF__CLEANUP(hf__json_cleanup) struct hf__json *old_rest = hf__json_dup(old_template);
        if (!rest || !old_rest) {
                hfd_causes_no_memory(causes);
                return false;
        }
        drop_scheduling(rest);
        drop_scheduling(old_rest);
        drop_resources(rest, old_rest, "spec.containers");
        drop_resources(rest, old_rest, "spec.initContainers");
        return hfd_causes_equal_by(causes, &hfd_pod_template_spec_schema, rest, old_rest);
}

/* old: the old Job, not only its spec, because is_idle reads the status. The cause for the template
 * shows "{}" where Kubernetes prints the whole template. */
static void validate_job_update(const struct hf__json *spec, const struct hf__json *old,
                                struct hfd_causes *causes) {
        static const char *const fixed[] = {"completionMode", "podFailurePolicy",
                                            "backoffLimitPerIndex", "managedBy", "successPolicy"};
        const struct hf__json *was = hf__json_get(old, "spec");

        validate_completions(spec, was, causes);
        refuse_change(spec, was, "selector", causes);
        if (!is_template_kept(spec, old, causes))
                hfd_cause_invalid(causes, "spec.template", "{}", "field is immutable");
        for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
                refuse_change(spec, was, fixed[i], causes);
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
                validate_job_update(spec, old, causes);
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
