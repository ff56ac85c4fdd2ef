/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes types of schemas.
 *
 * Invariants: the types are a tree whose depth and number of fields are limited, and which ends
 * where a schema contains itself. An uncertain type becomes dyn, so that a type check warns only of
 * real mistakes: a warning about a correct policy would make users ignore all of them.
 */
#include "server/admission/policy/types/schema_types.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cel/values/type.h"
#include "server/resources/custom/rules/values/rule_name.h"
#include "server/schema/schema.h"

#define DEPTH_MAX 24    /* a CronJob, which has a pod in it, has some 16 levels */
#define PARTS_MAX 20000 /* fields of all types; a pod has some thousand */

struct maker {
        struct hf__arena *arena;
        const struct hfd_schema *open[DEPTH_MAX]; /* the schemas that are being made */
        unsigned depth;
        size_t n_parts;
        unsigned n_types;
        const char *kind;
};

static const struct hf__cel_type *dyn(void) { return hf__cel_type_of(HF__CEL_DYN); }

static const struct hf__cel_type *make_type(struct maker *maker, const struct hfd_schema *schema);

/* Adds a field under the name that expressions use for it. After a dot most reserved words may also
 * stand as they are (rule_name.h). So a field with such a name is added under both names, and
 * `fields` has room for two of each. A field whose name cannot be written in an expression is left
 * out. */
static void add_field(struct maker *maker, struct hf__cel_type *type, struct hf__cel_field *fields,
                      const struct hfd_schema_field *field) {
        const char *name = hfd_rule_name(maker->arena, field->name);
        const struct hf__cel_type *of = make_type(maker, field->schema);

        if (!name)
                return;
        fields[type->n_fields++] = (struct hf__cel_field){name, of};
        if (hfd_rule_name_is_reserved(field->name))
                fields[type->n_fields++] = (struct hf__cel_field){field->name, of};
}

static const struct hf__cel_type *make_struct(struct maker *maker,
                                              const struct hfd_schema *schema) {
        struct hf__cel_type *type = hf__arena_alloc(maker->arena, sizeof *type);
        struct hf__cel_field *fields =
                hf__arena_alloc(maker->arena, 2 * schema->n_fields * sizeof *fields);
        char name[200];

        if (!type || !fields)
                return dyn();
        /* The number makes the name unique: to the checker, types with one name are one type. */
        snprintf(name, sizeof name, "%.100s%u", maker->kind, maker->n_types++);
        *type = (struct hf__cel_type){.kind = HF__CEL_OBJECT, .weight = 1, .fields = fields};
        type->name = hf__arena_text(maker->arena, name, strlen(name));
        if (!type->name)
                return dyn();
        maker->n_parts += schema->n_fields;
        for (size_t i = 0; i < schema->n_fields; i++)
                add_field(maker, type, fields, &schema->fields[i]);
        return type;
}

/* A map or a list. In JSON every key is a string. */
static const struct hf__cel_type *make_container(struct maker *maker,
                                                 const struct hfd_schema *schema) {
        const struct hf__cel_type *items = make_type(maker, schema->items);
        const struct hf__cel_type *type;

        if (schema->type == HFD_SCHEMA_LIST)
                type = hf__cel_type_new(maker->arena, HF__CEL_LIST, items, NULL);
        else
                type = hf__cel_type_new(maker->arena, HF__CEL_MAP, hf__cel_type_of(HF__CEL_STRING),
                                        items);
        return type ? type : dyn();
}

/* Quantities and IntOrStrings stay dyn: as Kubernetes declares them, they may be a number or a
 * string, and CEL has no type that allows both. */
static const struct hf__cel_type *make_scalar(const struct hfd_schema *schema) {
        switch (schema->type) {
        case HFD_SCHEMA_TEXT: return hf__cel_type_of(HF__CEL_STRING);
        case HFD_SCHEMA_BOOLEAN: return hf__cel_type_of(HF__CEL_BOOL);
        case HFD_SCHEMA_INT32:
        case HFD_SCHEMA_INT64: return hf__cel_type_of(HF__CEL_INT);
        case HFD_SCHEMA_NUMBER: return hf__cel_type_of(HF__CEL_DOUBLE);
        case HFD_SCHEMA_BYTES: return hf__cel_type_of(HF__CEL_BYTES);
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME: return hf__cel_type_of(HF__CEL_TIMESTAMP);
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST:
        case HFD_SCHEMA_INT_OR_STRING:
        case HFD_SCHEMA_QUANTITY:
        case HFD_SCHEMA_EITHER: break;
        }
        return dyn();
}

static const struct hf__cel_type *make_type(struct maker *maker, const struct hfd_schema *schema) {
        const struct hf__cel_type *type;

        if (!schema || maker->depth == DEPTH_MAX || maker->n_parts > PARTS_MAX)
                return dyn();
        for (unsigned i = 0; i < maker->depth; i++)
                if (maker->open[i] == schema && schema->type == HFD_SCHEMA_STRUCT)
                        return dyn();
        assert(maker->depth < DEPTH_MAX);
        maker->open[maker->depth++] = schema;
        if (schema->type == HFD_SCHEMA_STRUCT && !schema->preserve_unknown && schema->n_fields > 0)
                type = make_struct(maker, schema);
        else if (schema->type == HFD_SCHEMA_LIST || schema->type == HFD_SCHEMA_MAP)
                type = make_container(maker, schema);
        else
                type = make_scalar(schema);
        assert(maker->depth > 0 && maker->open[maker->depth - 1] == schema);
        maker->depth--;
        return type;
}

const struct hf__cel_type *hfd_schema_type(struct hf__arena *arena, const struct hfd_schema *schema,
                                           const char *kind) {
        struct maker maker = {.arena = arena, .kind = kind};
        const struct hf__cel_type *type = make_type(&maker, schema);

        return arena->failed ? NULL : type;
}
