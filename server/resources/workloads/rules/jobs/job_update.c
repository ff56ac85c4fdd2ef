/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an update of a Job must not change, such as its selector and its template. While the Job is
 * idle (is_idle), an update may change where the template's pods run, and with which resources.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Members are compared by their schema, so that an absent member
 * equals the zero of its type, unless it is a pointer in Go.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

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

/* Whether the Job is suspended and has no active pods: those would have the old template. The
 * condition Suspended says that the controller has deleted the active pods of a Job that ran
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

/* Removes from a copy of a template the members that may decide where its pods run; schedulers also
 * read labels and annotations. */
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

/* Whether the template stays as it is, apart from what may change while the Job is idle: a queue
 * such as Kueue may choose other nodes and resources for it, and then start it. The old object says
 * whether it is idle, because the same update may start it. */
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

/* The cause for the template shows "{}" where Kubernetes prints the whole template. */
void hfd_job_update_validate(const struct hf__json *spec, const struct hf__json *old,
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
