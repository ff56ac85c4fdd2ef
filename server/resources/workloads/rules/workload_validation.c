/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of ReplicationControllers, and what they share with the kinds of apps/v1
 * (apps_validation.c) and Jobs (job_validation.c).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* ---- what several kinds share ---- */

/* The value of the cause is the labels as JSON, as Kubernetes prints them. They are cut after 249
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

/* ---- ReplicationControllers ---- */

void hfd_replication_controller_validate(const struct hf__json *object, const struct hf__json *old,
                                         struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels"),
                              *template = hf__json_path(object, "spec.template");

        if (hfd_spec_is_kept(object, old, causes))
                return;
        hfd_require_range(hf__json_get(object, "spec"), "spec", "replicas", 0, INT32_MAX,
                          "must be greater than or equal to 0", causes);
        if (!hf__json_first(selector))
                hfd_cause_required(causes, "spec.selector", "");
        else if (!hfd_labels_contain(labels, selector))
                hfd_template_labels_refuse(labels, causes);
        hfd_pod_template_spec_validate(template, "spec.template", causes);
        hfd_always_restarted_validate(template, causes);
}
