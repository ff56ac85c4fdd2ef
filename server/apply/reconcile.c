/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings a set of fields into agreement with the schema. The schema of a custom resource may have
 * changed since a manager's set was stored: a list that was divided may be atomic now.
 *
 * Invariant: fields below a value that the schema does not know stay as they are, because nothing
 * says that they are wrong.
 */
#include "server/apply/reconcile.h"

#include <assert.h>

#include "server/schema/schema.h"

bool hfd_reconcile_is_whole(const struct hfd_schema *schema) {
        if (!schema)
                return false;
        if (schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_MAP)
                return schema->atomic;
        return schema->type == HFD_SCHEMA_LIST && schema->list_type == HFD_LIST_ATOMIC;
}

static const struct hfd_schema *schema_below(const struct hfd_schema *schema,
                                             const struct hfd_step *step) {
        if (step->kind == HFD_STEP_FIELD)
                return hfd_schema_of_member(schema, step->name);
        return schema && schema->type == HFD_SCHEMA_LIST ? schema->items : NULL;
}

const struct hfd_fields *hfd_reconcile(struct hf__arena *scratch, const struct hfd_schema *schema,
                                       const struct hfd_fields *fields) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        bool changed = false;

        assert(scratch);
        for (size_t i = 0; schema && fields && i < fields->n; i++) {
                const struct hfd_field *field = &fields->at[i];
                const struct hfd_schema *of_field = schema_below(schema, &field->step);
                bool whole = hfd_reconcile_is_whole(of_field) && field->below;
                const struct hfd_fields *below =
                        whole ? NULL : hfd_reconcile(scratch, of_field, field->below);
                changed = changed || below != field->below;
                hfd_fields_add(&builder, &field->step, field->member || whole, below);
        }
        return changed ? hfd_fields_close(&builder, 0) : fields;
}
