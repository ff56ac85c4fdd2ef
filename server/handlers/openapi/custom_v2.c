/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces the schema of a custom kind to OpenAPI v2. OpenAPI v2 has no nullable and no anyOf, and
 * kubectl refuses unknown fields of an object whose schema has properties. So the published schema
 * says less than that of the definition.
 *
 * Invariants: the reduced schema accepts every object that the original accepts. A schema is
 * reduced before the schemas in it, because drop_required reads their `nullable`.
 */
#include "server/handlers/openapi/custom_v2.h"

#include <stddef.h>

#include "base/json.h"
#include "base/json_index.h"

static const char preserve[] = "x-kubernetes-preserve-unknown-fields";

static bool is_nullable(const struct hf__json *schema) {
        return hf__json_is_true(hf__json_get(schema, "nullable"));
}

/* Makes nullable properties optional. Without `nullable`, clients would refuse null for a required
 * property. If the additional properties are nullable, every property is optional, as in
 * Kubernetes: a required name may be one of them. */
static int drop_required(struct hf__json *schema) {
        struct hf__json *required = hf__json_get(schema, "required"), *next;
        struct hf__json_index properties;

        int r = hf__json_index_init(&properties, hf__json_get(schema, "properties"), NULL);
        if (r != 0)
                return r;
        for (struct hf__json *m = hf__json_first(required); m; m = next) {
                const char *name = hf__json_text(m);
                const struct hf__json_index_entry *property =
                        name ? hf__json_index_find(&properties, name) : NULL;
                next = hf__json_next(m);
                if (property && is_nullable(property->item))
                        hf__json_free(hf__json_detach(required, m));
        }
        hf__json_index_done(&properties);
        if (required && (!hf__json_first(required) ||
                         is_nullable(hf__json_get(schema, "additionalProperties"))))
                hf__json_remove(schema, "required");
        return 0;
}

static void drop_members(struct hf__json *schema) {
        static const char *const junctors[] = {"allOf", "anyOf", "oneOf", "not"};
        bool nullable = is_nullable(schema),
             preserves = hf__json_is_true(hf__json_get(schema, preserve));

        for (size_t i = 0; i < sizeof junctors / sizeof junctors[0]; i++)
                hf__json_remove(schema, junctors[i]);
        if (nullable || preserves) {
                hf__json_remove(schema, "items");
                hf__json_remove(schema, "properties");
        }
        hf__json_remove(schema, "nullable");
        if (nullable || (preserves && hf__json_has_text(schema, "type", "object")) ||
            (hf__json_has_text(schema, "type", "array") && !hf__json_get(schema, "items")))
                hf__json_remove(schema, "type");
}

/* The recursion is as deep as the schema is nested, which the JSON parser limits. */
static int reduce_schema(struct hf__json *schema) {
        if (!hf__json_is_object(schema))
                return 0;
        drop_members(schema);
        int r = drop_required(schema);
        for (struct hf__json *m = hf__json_first(hf__json_get(schema, "properties")); m && r == 0;
             m = hf__json_next(m))
                r = reduce_schema(m);
        if (r == 0)
                r = reduce_schema(hf__json_get(schema, "items"));
        if (r == 0)
                r = reduce_schema(hf__json_get(schema, "additionalProperties"));
        return r;
}

int hfd_openapi_custom_v2(struct hf__json *props, bool *ret_has_fields) {
        *ret_has_fields = !hf__json_is_true(hf__json_get(props, preserve));
        return *ret_has_fields ? reduce_schema(props) : 0;
}
