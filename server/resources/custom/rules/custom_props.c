/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the schema of a version, with its rules.
 *
 * Invariant: the rules (CEL) refer to the structure of the schema. So the rules of a new or changed
 * schema are compiled only if its structure is valid.
 */
#include "server/resources/custom/rules/custom_props.h"

#include <errno.h>

#include <holdfast/error.h>

#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/custom/schema/structural.h"

void hfd_custom_props_check(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes) {
        struct hfd_custom_rules *rules = NULL;
        size_t n_before = causes->n;

        hfd_structural_validate(props, path, effort, causes);
        if (causes->n > n_before || causes->n == HFD_CAUSES_MAX)
                return;
        /* A definition with wrong rules must not be stored: a wrong rule refuses every object that
         * has the part for which the rule is written. */
        if (hfd_custom_rules_new(props, path, effort, causes, &rules) != 0)
                hfd_causes_no_memory(causes);
        hfd_custom_rules_free(rules);
}

void hfd_custom_props_count(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes) {
        struct hfd_custom_schema *schema = NULL;
        struct hfd_custom_rules *rules = NULL;
        int r = hfd_custom_schema_new_limited(props, effort, &schema);

        hfd_custom_schema_free(schema);
        if (r == 0)
                r = hfd_custom_rules_new(props, path, effort, NULL, &rules);
        hfd_custom_rules_free(rules);
        if (r == -ENOMEM)
                hfd_causes_no_memory(causes);
        else if (hfd_schema_effort_problem(effort))
                hfd_cause_forbidden(causes, path, hfd_schema_effort_problem(effort));
}
