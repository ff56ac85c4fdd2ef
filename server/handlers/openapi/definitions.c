/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the definitions of the schemas that a document refers to. The recursion ends, because a
 * part that was added is not walked again, and a schema that contains itself is such a part.
 */
#include "server/handlers/openapi/definitions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

bool hfd_openapi_has_reference(const struct hfd_schema *schema) {
        return schema->definition &&
               (schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_ANY ||
                schema->type == HFD_SCHEMA_EITHER);
}

static bool contains(const struct hfd_definitions *definitions, const struct hfd_schema *schema) {
        for (size_t i = 0; i < definitions->n; i++)
                if (definitions->list[i].schema == schema)
                        return true;
        return false;
}

/* False: out of memory. */
static bool has_room(struct hfd_definitions *definitions) {
        size_t space = definitions->space ? 2 * definitions->space : 64;

        if (definitions->n < definitions->space)
                return true;
        struct hfd_definition *list = realloc(definitions->list, space * sizeof *list);
        if (!list) {
                definitions->error = -ENOMEM;
                return false;
        }
        definitions->list = list;
        definitions->space = space;
        return true;
}

void hfd_definitions_done(struct hfd_definitions *definitions) {
        free(definitions->list);
        *definitions = (struct hfd_definitions){0};
}

static void add(struct hfd_definitions *definitions, const struct hfd_schema *schema,
                const struct hfd_resource *resource) {
        if (hfd_openapi_has_reference(schema)) {
                /* The schema of a custom resource is its own, so it is not searched for. */
                bool own = resource && resource->custom;
                if ((!own && contains(definitions, schema)) || !has_room(definitions))
                        return;
                definitions->list[definitions->n++] = (struct hfd_definition){schema, resource};
        }
        if (schema->items)
                add(definitions, schema->items, NULL);
        if (schema->other)
                add(definitions, schema->other, NULL);
        for (size_t i = 0; i < schema->n_fields; i++)
                add(definitions, schema->fields[i].schema, NULL);
}

void hfd_definitions_add(struct hfd_definitions *definitions, const struct hfd_resource *resource) {
        assert(hfd_openapi_has_reference(resource->schema));
        add(definitions, resource->schema, resource);
}

const char *hfd_openapi_type(const struct hfd_schema *schema) {
        switch (schema->type) {
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP: return "object";
        case HFD_SCHEMA_LIST: return "array";
        case HFD_SCHEMA_TEXT:
        case HFD_SCHEMA_BYTES:
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME:
        case HFD_SCHEMA_INT_OR_STRING:
        case HFD_SCHEMA_QUANTITY: return "string";
        case HFD_SCHEMA_BOOLEAN: return "boolean";
        case HFD_SCHEMA_INT32:
        case HFD_SCHEMA_INT64: return "integer";
        case HFD_SCHEMA_NUMBER: return "number";
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_EITHER: break;
        }
        return schema->only_objects ? "object" : NULL;
}

const char *hfd_openapi_format(const struct hfd_schema *schema) {
        switch (schema->type) {
        case HFD_SCHEMA_BYTES: return "byte";
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME: return "date-time";
        case HFD_SCHEMA_INT_OR_STRING: return "int-or-string";
        case HFD_SCHEMA_INT32: return "int32";
        case HFD_SCHEMA_INT64: return "int64";
        case HFD_SCHEMA_NUMBER: return "double";
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST:
        case HFD_SCHEMA_TEXT:
        case HFD_SCHEMA_BOOLEAN:
        case HFD_SCHEMA_QUANTITY:
        case HFD_SCHEMA_EITHER: break;
        }
        return NULL;
}

const char *hfd_openapi_list_type(const struct hfd_schema *list) {
        static const char *const names[] =
                {[HFD_LIST_ATOMIC] = "atomic", [HFD_LIST_SET] = "set", [HFD_LIST_MAP] = "map"};

        assert(list->type == HFD_SCHEMA_LIST);
        return names[list->list_type];
}
