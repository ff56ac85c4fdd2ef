/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and the strategy of PodTemplates: templates that are objects of their own. No built-in
 * controller creates pods from them.
 *
 * Invariant: defaults and rules are those of the templates in other kinds (strategies/pod/), so
 * this file adds none.
 */
#include "base/json.h"
#include "server/resources/strategies/pod/pod_defaults.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"template", &hfd_pod_template_spec_schema, "The pods that are made from the template.",
         .protobuf_tag = 2},
};
const struct hfd_schema hfd_pod_template_schema =
        {HFD_STRUCT(HFD_CORE "PodTemplate", fields),
         .description = "PodTemplate holds a template from which controllers create pods."};

int hfd_pod_template_prepare(struct hf__json *object, const struct hf__json *old) {
        return hfd_pod_template_default(object, "template");
}

void hfd_pod_template_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        /* A template that the update does not change is not checked: it may be older than a rule,
         * but its object must still be able to get labels and lose its finalizers. */
        if (old &&
            hfd_causes_equal_member(causes, &hfd_pod_template_schema, object, old, "template"))
                return;
        hfd_template_change_validate(hf__json_get(object, "template"),
                                     hf__json_get(old, "template"), "template", causes);
}
