/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of ReplicationControllers, and what they share with other kinds, most of all with those
 * of apps/v1 (apps_validation.c) and Jobs (job_validation.c).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* ---- what several kinds share ---- */

int hfd_labels_show(const struct hf__json *labels, struct hf__strbuf *ret_shown) {
        struct hf__json_index by_key;
        int r = hf__json_index_init(&by_key, labels, NULL);

        hf__strbuf_puts(ret_shown, labels ? "{" : "null");
        for (size_t i = 0; r == 0 && i < by_key.n && ret_shown->n < 300; i++) {
                hf__strbuf_puts(ret_shown, i > 0 ? "," : "");
                hf__strbuf_json(ret_shown, by_key.entries[i].text,
                                strnlen(by_key.entries[i].text, 300));
                hf__strbuf_puts(ret_shown, ":");
                hf__json_print(by_key.entries[i].item, ret_shown);
        }
        hf__strbuf_puts(ret_shown, labels ? "}" : "");
        hf__json_index_done(&by_key);
        return r == 0 ? ret_shown->error : r;
}

void hfd_template_labels_refuse(const struct hf__json *labels, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};
        bool is_shown = hfd_causes_check(causes, hfd_labels_show(labels, &shown));

        hfd_cause_invalid(causes, "spec.template.metadata.labels", is_shown ? shown.data : "{}",
                          "`selector` does not match template `labels`");
        hf__strbuf_done(&shown);
}

/* An absent policy is not refused here: the defaults have set it, and the rules of the template
 * require one. */
void hfd_always_restarted_validate(const struct hf__json *template, struct hfd_causes *causes) {
        const char *policy = hf__json_string(template, "spec.restartPolicy");

        if (policy && strcmp(policy, "Always") != 0)
                hfd_cause_unsupported_text(causes, "spec.template.spec.restartPolicy", policy,
                                           "\"Always\"");
}

bool hfd_spec_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                      const struct hf__json *old, struct hfd_causes *causes) {
        return old && hfd_causes_equal_member(causes, schema, object, old, "spec");
}

bool hfd_template_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                          const struct hf__json *old, struct hfd_causes *causes) {
        return old && hfd_causes_equal_member(causes, hfd_schema_of_member(schema, "spec"),
                                              hf__json_get(object, "spec"),
                                              hf__json_get(old, "spec"), "template");
}

/* ---- ReplicationControllers ---- */

void hfd_replication_controller_validate(const struct hf__json *object, const struct hf__json *old,
                                         struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.selector"),
                              *labels = hf__json_path(object, "spec.template.metadata.labels"),
                              *template = hf__json_path(object, "spec.template");

        if (hfd_spec_is_kept(&hfd_replication_controller_schema, object, old, causes))
                return;
        hfd_require_range(hf__json_get(object, "spec"), "spec", "replicas", 0, INT32_MAX,
                          "must be greater than or equal to 0", causes);
        if (!hf__json_first(selector))
                hfd_cause_required(causes, "spec.selector", "");
        else if (!hfd_labels_contain(labels, selector))
                hfd_template_labels_refuse(labels, causes);
        if (hfd_template_is_kept(&hfd_replication_controller_schema, object, old, causes))
                return;
        hfd_template_change_validate(template, hf__json_path(old, "spec.template"), "spec.template",
                                     causes);
        hfd_always_restarted_validate(template, causes);
}
