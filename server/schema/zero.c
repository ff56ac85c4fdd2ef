/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the object that Go writes for a kind if nothing was set. Go's encoder leaves out the zero
 * of a field with omitempty. Required fields have no omitempty, and on structs it has no effect.
 *
 * Invariant: Go's structs without a pointer cannot contain themselves. A table in which one does
 * would be a mistake, so the walk ends at DEPTH_MAX instead of never.
 */
#include "server/schema/zero.h"

#include <errno.h>

#include "base/json.h"
#include "server/schema/schema.h"

#define DEPTH_MAX 16

static int add_zeros(struct hf__json *object, const struct hfd_schema *schema, unsigned depth);

/* Makes the value that is written although it is zero. *ret_value: NULL = the type is no list, map
 * or struct. */
static int make_zero(const struct hfd_schema *schema, unsigned depth, struct hf__json **ret_value) {
        int r = 0;

        *ret_value = NULL;
        if (schema->type == HFD_SCHEMA_LIST)
                *ret_value = hf__json_array();
        else if (schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_MAP)
                *ret_value = hf__json_object();
        else
                return 0;
        if (!*ret_value)
                return -ENOMEM;
        if (schema->type == HFD_SCHEMA_STRUCT)
                r = add_zeros(*ret_value, schema, depth + 1);
        if (r != 0)
                *ret_value = hf__json_free(*ret_value);
        return r;
}

/* Adds the zero of a scalar. BYTES and times have null as their zero in Go, and null counts as
 * absent. Fields of the other types are not required, apart from a probe's port, which is behind a
 * pointer. */
static int add_scalar(struct hf__json *object, const struct hfd_schema_field *field) {
        switch (field->schema->type) {
        case HFD_SCHEMA_TEXT: return hf__json_add_string(object, field->name, "");
        case HFD_SCHEMA_INT32:
        case HFD_SCHEMA_INT64: return hf__json_set_i64(object, field->name, 0);
        case HFD_SCHEMA_BOOLEAN: return hf__json_set_bool(object, field->name, false);
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST:
        case HFD_SCHEMA_NUMBER:
        case HFD_SCHEMA_BYTES:
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME:
        case HFD_SCHEMA_INT_OR_STRING:
        case HFD_SCHEMA_QUANTITY:
        case HFD_SCHEMA_EITHER: break;
        }
        return 0;
}

static int add_zeros(struct hf__json *object, const struct hfd_schema *schema, unsigned depth) {
        int r = 0;

        for (size_t i = 0; i < schema->n_fields && r == 0 && depth < DEPTH_MAX; i++) {
                const struct hfd_schema_field *field = &schema->fields[i];
                bool required = field->flags & (HFD_FIELD_REQUIRED | HFD_FIELD_KEEPS_EMPTY);
                bool is_struct = field->schema->type == HFD_SCHEMA_STRUCT;
                struct hf__json *value = NULL;
                if (field->flags & HFD_FIELD_POINTER || (!required && !is_struct))
                        continue;
                r = make_zero(field->schema, depth, &value);
                if (r == 0)
                        r = value ? hf__json_add(object, field->name, value)
                                  : add_scalar(object, field);
        }
        return r;
}

struct hf__json *hfd_schema_zero(const struct hfd_schema *schema) {
        struct hf__json *object = hf__json_object();

        if (object && add_zeros(object, schema, 0) != 0)
                object = hf__json_free(object);
        return object;
}
