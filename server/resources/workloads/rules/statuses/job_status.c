/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the status of a Job. Clients wait for its conditions, so a finished Job stays
 * finished, and its numbers agree with its conditions, whichever controller writes them
 * (spec.managedBy).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Most rules hold only if a write changes one of the members that
 * they are about. A change of the spec may make the rest of the status wrong for a while, and the
 * controller must still be able to write the other members.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/rules/jobs/job_indexes.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* The conditions that rules are about: whether each has the status True. resumed: whether the
 * condition Suspended has the status False. */
struct conditions {
        bool complete, failed, failure_target, criteria_met, suspended, resumed;
};

/* One write of a status. */
struct change {
        const struct hf__json *spec, *status, *was; /* was: the old status */
        struct conditions now, then;
        struct hfd_causes *causes;
};

/* ---- conditions ---- */

/* A type that occurs several times counts if one of its conditions has the status. */
static struct conditions read_conditions(const struct hf__json *status) {
        struct conditions c = {0};

        for (const struct hf__json *m = hf__json_first(hf__json_get(status, "conditions")); m;
             m = hf__json_next(m)) {
                const char *type = hfd_text_of(m, "type");
                bool is_true = strcmp(hfd_text_of(m, "status"), "True") == 0;

                c.complete |= is_true && strcmp(type, "Complete") == 0;
                c.failed |= is_true && strcmp(type, "Failed") == 0;
                c.failure_target |= is_true && strcmp(type, "FailureTarget") == 0;
                c.criteria_met |= is_true && strcmp(type, "SuccessCriteriaMet") == 0;
                c.suspended |= is_true && strcmp(type, "Suspended") == 0;
                c.resumed |= strcmp(hfd_text_of(m, "status"), "False") == 0 &&
                             strcmp(type, "Suspended") == 0;
        }
        return c;
}

static bool is_finished(const struct conditions *c) { return c->complete || c->failed; }

/* ---- members ---- */

/* Members are compared by their schema, so that an absent number equals 0 unless it is a pointer in
 * Go. */
static bool has_changed(const struct change *change, const char *member) {
        return !hfd_causes_equal_member(change->causes,
                                        hfd_schema_of_member(&hfd_job_schema, "status"),
                                        change->status, change->was, member);
}

static int64_t number_of(const struct hf__json *status, const char *member) {
        return hfd_status_number(status, member);
}

static void refuse_number(const struct change *change, const char *member, const char *detail) {
        hfd_status_refuse_number(change->status, member, detail, change->causes);
}

/* A time or indexes. An absent member is shown as null. */
static void refuse_text(const struct change *change, const char *member, const char *detail) {
        const struct hf__json *value = hf__json_get(change->status, member);
        char field[HFD_FIELD_PATH_MAX];

        hfd_field_path(field, "status", member);
        if (hf__json_is_string(value))
                hfd_cause_invalid_text(change->causes, field, hf__json_text(value), detail);
        else
                hfd_cause_invalid(change->causes, field, "null", detail);
}

/* Causes about conditions show no value. */
static void refuse_conditions(const struct change *change, const char *detail) {
        char text[200];

        (void)snprintf(text, sizeof text, "Invalid value: %s", detail);
        hfd_cause_add(change->causes, "FieldValueInvalid", "status.conditions", text);
}

/* ---- numbers ---- */

/* Checks that no uid of the list is empty, or occurs a second time: a pod is in one of the two
 * lists, and once. own: an index of this list; others: an index of the list that was checked
 * before, or NULL. */
static void validate_uids(const struct hf__json *list, const char *field,
                          const struct hf__json_index *own, const struct hf__json_index *others,
                          struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *uid = hf__json_is_string(m) ? hf__json_text(m) : "";
                const struct hf__json_index_entry *first = hf__json_index_find(own, uid);

                hfd_field_index(path, field, i);
                if (!*uid)
                        hfd_cause_invalid_text(causes, path, uid, "must not be empty");
                else if ((first && first->position < i) ||
                         (others && hf__json_index_find(others, uid)))
                        hfd_cause_duplicate_text(causes, path, uid);
        }
}

/* The finished pods that the controller has not counted yet. */
static void validate_uncounted(const struct change *change) {
        const struct hf__json *uncounted = hf__json_get(change->status, "uncountedTerminatedPods"),
                              *succeeded = hf__json_get(uncounted, "succeeded"),
                              *failed = hf__json_get(uncounted, "failed");
        struct hf__json_index of_succeeded, of_failed;
        bool is_indexed = hfd_causes_check(change->causes,
                                           hf__json_index_init(&of_succeeded, succeeded, NULL));

        is_indexed =
                hfd_causes_check(change->causes, hf__json_index_init(&of_failed, failed, NULL)) &&
                is_indexed;
        if (is_indexed) {
                validate_uids(succeeded, "status.uncountedTerminatedPods.succeeded", &of_succeeded,
                              NULL, change->causes);
                validate_uids(failed, "status.uncountedTerminatedPods.failed", &of_failed,
                              &of_succeeded, change->causes);
        }
        hf__json_index_done(&of_failed);
        hf__json_index_done(&of_succeeded);
}

/* The value of the cause has the names "Succeeded" and "Failed", as kube-apiserver prints its
 * internal Go type. A long value is cut. */
static void refuse_uncounted(const struct change *change) {
        const struct hf__json *uncounted = hf__json_get(change->status, "uncountedTerminatedPods"),
                              *lists[] = {hf__json_get(uncounted, "succeeded"),
                                          hf__json_get(uncounted, "failed")};
        static const char *const names[] = {"{\"Succeeded\":", ",\"Failed\":"};
        struct hf__strbuf shown = {0};

        for (size_t i = 0; i < 2; i++) {
                hf__strbuf_puts(&shown, names[i]);
                if (lists[i])
                        hf__json_print(lists[i], &shown);
                else
                        hf__strbuf_puts(&shown, "null");
        }
        hf__strbuf_puts(&shown, "}");
        hfd_cause_invalid(change->causes, "status.uncountedTerminatedPods",
                          hfd_causes_check(change->causes, shown.error) ? shown.data : "{}",
                          "must be empty for finished job");
        hf__strbuf_done(&shown);
}

static bool has_uncounted(const struct change *change) {
        const struct hf__json *uncounted = hf__json_get(change->status, "uncountedTerminatedPods");

        return hf__json_first(hf__json_get(uncounted, "succeeded")) ||
               hf__json_first(hf__json_get(uncounted, "failed"));
}

static void validate_numbers(const struct change *change) {
        static const char *const names[] = {"active", "succeeded", "failed", "ready",
                                            "terminating"};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                hfd_require_range(change->status, "status", names[i], 0, INT64_MAX,
                                  "must be greater than or equal to 0", change->causes);
        validate_uncounted(change);
}

/* ---- what agrees with the conditions ---- */

/* A finished Job is complete or failed, not both, and has the condition that announces this end. */
static void validate_end(const struct change *change) {
        const struct conditions *now = &change->now, *then = &change->then;
        bool complete_changed = now->complete != then->complete,
             failed_changed = now->failed != then->failed,
             time_changed = has_changed(change, "completionTime");
        const char *started = hfd_text_of(change->status, "startTime"),
                   *completed = hfd_text_of(change->status, "completionTime");

        if ((complete_changed || failed_changed) && now->complete && now->failed)
                refuse_conditions(change, "cannot set Complete=True and Failed=true conditions");
        if ((complete_changed || now->failure_target != then->failure_target) && now->complete &&
            now->failure_target)
                refuse_conditions(change,
                                  "cannot set Complete=True and FailureTarget=true conditions");
        if ((complete_changed || time_changed) && *completed && !now->complete)
                refuse_text(change, "completionTime",
                            "cannot set completionTime when there is no Complete=True condition");
        if ((complete_changed || time_changed) && !*completed && now->complete)
                hfd_cause_required(change->causes, "status.completionTime",
                                   "completionTime is required for Complete jobs");
        /* Stored times are in UTC and have one length, so their texts are in the order of time. */
        if ((time_changed || has_changed(change, "startTime")) && *started && *completed &&
            strcmp(completed, started) < 0)
                refuse_text(change, "completionTime", "must be equal to or after `startTime`");
        if ((failed_changed || has_changed(change, "failedIndexes")) && now->failed &&
            !now->failure_target)
                refuse_conditions(change, "cannot set Failed=True condition without the "
                                          "FailureTarget=true condition");
        if ((complete_changed || now->criteria_met != then->criteria_met) && now->complete &&
            !now->criteria_met)
                refuse_conditions(change, "cannot set Complete=True condition without the "
                                          "SuccessCriteriaMet=true condition");
}

/* A finished Job has no active and no uncounted pods. It was started, unless it is suspended and
 * has nothing to do. */
static void validate_finished(const struct change *change) {
        bool finished = is_finished(&change->now),
             finished_changed = finished != is_finished(&change->then);
        int64_t completions;
        bool has_no_work = hf__json_bool(change->spec, "suspend", false) &&
                           hf__json_i64(change->spec, "completions", &completions) &&
                           completions == 0;

        if (!finished)
                return;
        if ((finished_changed || has_changed(change, "active")) &&
            number_of(change->status, "active") > 0)
                refuse_number(change, "active", "active>0 is invalid for finished job");
        if ((finished_changed || has_changed(change, "startTime")) && !has_no_work &&
            !*hfd_text_of(change->status, "startTime"))
                hfd_cause_required(change->causes, "status.startTime",
                                   "startTime is required for finished job");
        if ((finished_changed || has_changed(change, "uncountedTerminatedPods")) &&
            has_uncounted(change))
                refuse_uncounted(change);
}

/* ---- indexes ---- */

/* The text of a member is a valid list of indexes, if the Job has a number of completions. */
static void validate_format(const struct change *change, const char *member) {
        char why[HFD_JOB_INDEXES_WHY_MAX], detail[HFD_JOB_INDEXES_WHY_MAX + 60];
        int64_t completions, n;

        if (!hf__json_i64(change->spec, "completions", &completions) ||
            hfd_job_indexes_count(hfd_text_of(change->status, member), completions, &n, why))
                return;
        (void)snprintf(detail, sizeof detail, "error parsing %s: %s", member, why);
        refuse_text(change, member, detail);
}

static void refuse_overlap(const struct change *change) {
        int64_t completions, index;
        char detail[100];

        if (!hf__json_i64(change->spec, "completions", &completions) ||
            !hfd_job_indexes_overlap(hfd_text_of(change->status, "completedIndexes"),
                                     hfd_text_of(change->status, "failedIndexes"), completions,
                                     &index))
                return;
        (void)snprintf(detail, sizeof detail,
                       "failedIndexes and completedIndexes overlap at index: %" PRId64, index);
        refuse_text(change, "failedIndexes", detail);
}

static void validate_indexes(const struct change *change) {
        bool completed_changed = has_changed(change, "completedIndexes"),
             failed_changed = has_changed(change, "failedIndexes"),
             has_limit = hf__json_get(change->spec, "backoffLimitPerIndex"),
             has_failed = hf__json_get(change->status, "failedIndexes");

        if (completed_changed)
                validate_format(change, "completedIndexes");
        if (failed_changed && has_limit && has_failed)
                validate_format(change, "failedIndexes");
        if (completed_changed && *hfd_text_of(change->status, "completedIndexes") &&
            !hf__json_has_text(change->spec, "completionMode", "Indexed"))
                refuse_text(change, "completedIndexes",
                            "cannot set non-empty completedIndexes when non-indexed completion "
                            "mode");
        if (failed_changed && !has_limit && has_failed)
                refuse_text(change, "failedIndexes",
                            "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
        if (completed_changed || failed_changed)
                refuse_overlap(change);
}

/* ---- the rest ---- */

static void validate_pods(const struct change *change) {
        if ((is_finished(&change->now) != is_finished(&change->then) ||
             has_changed(change, "terminating")) &&
            is_finished(&change->now) && number_of(change->status, "terminating") > 0)
                refuse_number(change, "terminating", "terminating>0 is invalid for finished job");
        if ((has_changed(change, "ready") || has_changed(change, "active")) &&
            hf__json_get(change->status, "ready") &&
            number_of(change->status, "ready") > number_of(change->status, "active"))
                refuse_number(change, "ready", "cannot set more ready pods than active");
}

/* These rules hold for each write that changes the status, whichever members it changes. */
static void validate_criteria(const struct change *change) {
        const struct conditions *now = &change->now;

        if (now->criteria_met && now->failed)
                refuse_conditions(change,
                                  "cannot set SuccessCriteriaMet=True and Failed=true conditions");
        if (now->criteria_met && now->failure_target)
                refuse_conditions(change, "cannot set SuccessCriteriaMet=True and "
                                          "FailureTarget=true conditions");
        if (hf__json_get(change->spec, "successPolicy") && !now->criteria_met && now->complete)
                refuse_conditions(change, "cannot set Complete=True for Job with SuccessPolicy "
                                          "unless SuccessCriteriaMet=True");
}

/* The conditions that end a Job stay, and the numbers of its failed and succeeded pods do not fall,
 * with one exception: an indexed Job with as many completions as parallel pods can be made smaller,
 * and then fewer have succeeded. */
static void validate_progress(const struct change *change) {
        const struct conditions *now = &change->now, *then = &change->then;
        const struct {
                bool was, is;
                const char *name;
        } terminal[] = {{then->failed, now->failed, "Failed"},
                        {then->complete, now->complete, "Complete"},
                        {then->failure_target, now->failure_target, "FailureTarget"}};
        bool is_elastic =
                hf__json_has_text(change->spec, "completionMode", "Indexed") &&
                hfd_causes_equal(change->causes, hf__json_get(change->spec, "completions"),
                                 hf__json_get(change->spec, "parallelism"));
        char detail[80];

        for (size_t i = 0; i < sizeof terminal / sizeof terminal[0]; i++) {
                (void)snprintf(detail, sizeof detail,
                               "cannot disable the terminal %s=True condition", terminal[i].name);
                if (terminal[i].was && !terminal[i].is)
                        refuse_conditions(change, detail);
        }
        if (number_of(change->status, "failed") < number_of(change->was, "failed"))
                refuse_number(change, "failed", "cannot decrease the failed counter");
        if (!is_elastic &&
            number_of(change->status, "succeeded") < number_of(change->was, "succeeded"))
                refuse_number(change, "succeeded", "cannot decrease the succeeded counter");
}

/* Once set, the start changes only while the spec says that the Job is suspended, or with the write
 * that reports that it was resumed: the controller may make that write later than the spec changes.
 */
static void validate_times(const struct change *change) {
        const struct conditions *now = &change->now, *then = &change->then;
        bool resumes = then->suspended && now->resumed;

        if (*hfd_text_of(change->status, "completionTime") &&
            *hfd_text_of(change->was, "completionTime") && has_changed(change, "completionTime"))
                refuse_text(change, "completionTime", "field is immutable");
        if (*hfd_text_of(change->was, "startTime") && has_changed(change, "startTime") &&
            !resumes && !hf__json_bool(change->spec, "suspend", false))
                refuse_text(change, "startTime", "field is immutable for unsuspended job once set");
        if (then->criteria_met && !now->criteria_met)
                refuse_conditions(change, "cannot disable the SuccessCriteriaMet=True condition");
        if (then->complete && !then->criteria_met && now->criteria_met)
                refuse_conditions(change, "cannot set SuccessCriteriaMet=True for Job already has "
                                          "Complete=true conditions");
}

void hfd_job_validate_status(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *status = hf__json_get(object, "status"),
                              *was = hf__json_get(old, "status");
        const struct change change = {hf__json_get(object, "spec"),
                                      status,
                                      was,
                                      read_conditions(status),
                                      read_conditions(was),
                                      causes};

        if (hfd_status_is_kept(&hfd_job_schema, object, old, causes))
                return;
        validate_numbers(&change);
        validate_end(&change);
        validate_finished(&change);
        validate_indexes(&change);
        validate_pods(&change);
        validate_criteria(&change);
        validate_progress(&change);
        validate_times(&change);
}
