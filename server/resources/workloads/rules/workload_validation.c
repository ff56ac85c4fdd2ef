/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the workload kinds: those on templates of pods, and that a selector selects the
 * labels of the template beside it. kube-apiserver has more rules, but breaking them shows only
 * where pods run.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* ---- selectors ---- */

/* Adds the cause, whose value is the labels as JSON, as Kubernetes prints them. */
static void refuse_template_labels(const struct hf__json *labels, struct hfd_causes *causes) {
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

/* "Invalid value" with the value as JSON. */
static void refuse_change(const struct hf__json *value, const char *field,
                          struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(value, &shown);
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          "field is immutable");
        hf__strbuf_done(&shown);
}

static void validate_selector(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels");

        if (!selector)
                hfd_cause_required(causes, "spec.selector", "");
        else
                hfd_match_selector_validate(selector, "spec.selector", causes);
        if (selector && hfd_label_selector_is_empty(selector))
                hfd_cause_invalid(causes, "spec.selector", "{}", "empty selector is invalid");
        if (selector && !hfd_label_selector_is_empty(selector) &&
            !hfd_label_selector_matches(selector, labels))
                refuse_template_labels(labels, causes);
        if (old && selector &&
            !hfd_causes_equal(causes, selector, hf__json_path(old, "spec.selector")))
                refuse_change(selector, "spec.selector", causes);
}

/* ---- kinds ---- */

static void validate_replicas(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        hfd_require_range(spec, "spec", "replicas", 0, INT32_MAX,
                          "must be greater than or equal to 0", causes);
}

/* Kinds that keep their pods running need pods whose restartPolicy is Always. */
static void validate_always_restarted(const struct hf__json *object, struct hfd_causes *causes) {
        const char *policy = hf__json_string(object, "spec.template.spec.restartPolicy");

        if (policy && strcmp(policy, "Always") != 0)
                hfd_cause_unsupported_text(causes, "spec.template.spec.restartPolicy", policy,
                                           "\"Always\"");
}

bool hfd_spec_is_kept(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        return old &&
               hfd_causes_equal(causes, hf__json_get(object, "spec"), hf__json_get(old, "spec"));
}

void hfd_workload_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        if (hfd_spec_is_kept(object, old, causes))
                return;
        validate_replicas(object, causes);
        validate_selector(object, old, causes);
        hfd_pod_template_spec_validate(hf__json_path(object, "spec.template"), "spec.template",
                                       causes);
        validate_always_restarted(object, causes);
}

void hfd_replication_controller_validate(const struct hf__json *object, const struct hf__json *old,
                                         struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels");

        if (hfd_spec_is_kept(object, old, causes))
                return;
        validate_replicas(object, causes);
        if (!hf__json_first(selector))
                hfd_cause_required(causes, "spec.selector", "");
        else if (!hfd_labels_contain(labels, selector))
                refuse_template_labels(labels, causes);
        hfd_pod_template_spec_validate(hf__json_path(object, "spec.template"), "spec.template",
                                       causes);
        validate_always_restarted(object, causes);
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

void hfd_job_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        static const char *const counts[] = {"parallelism", "completions", "backoffLimit",
                                             "activeDeadlineSeconds", "ttlSecondsAfterFinished"};

        if (hfd_spec_is_kept(object, old, causes))
                return;
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
                hfd_require_range(spec, "spec", counts[i], 0, INT32_MAX,
                                  "must be greater than or equal to 0", causes);
        validate_job_template(hf__json_get(spec, "template"), "spec.template", causes);
        if (old && !hfd_causes_equal(causes, hf__json_get(spec, "template"),
                                     hf__json_path(old, "spec.template")))
                hfd_cause_invalid(causes, "spec.template", "{}", "field is immutable");
}

void hfd_cron_job_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};

        if (hfd_spec_is_kept(object, old, causes))
                return;
        (void)hfd_require_text(spec, "spec", "schedule", causes);
        hfd_require_one_of(spec, "spec", "concurrencyPolicy", policies, causes);
        validate_job_template(hf__json_path(spec, "jobTemplate.spec.template"),
                              "spec.jobTemplate.spec.template", causes);
}
