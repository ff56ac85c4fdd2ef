/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups in schemas, and the schemas of scalars, of ANY, and of simple maps and lists.
 *
 * Invariant: the fields of a STRUCT are sorted by name, or bisection would not find some of them
 * and the decoder would drop them as unknown. A unit test checks the tables of all resources.
 */
#include "server/schema/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const struct hfd_schema hfd_schema_any = {.type = HFD_SCHEMA_ANY};
const struct hfd_schema hfd_schema_text = {.type = HFD_SCHEMA_TEXT};
const struct hfd_schema hfd_schema_boolean = {.type = HFD_SCHEMA_BOOLEAN};
const struct hfd_schema hfd_schema_int32 = {.type = HFD_SCHEMA_INT32};
const struct hfd_schema hfd_schema_int64 = {.type = HFD_SCHEMA_INT64};
const struct hfd_schema hfd_schema_number = {.type = HFD_SCHEMA_NUMBER};
const struct hfd_schema hfd_schema_bytes = {.type = HFD_SCHEMA_BYTES};
const struct hfd_schema hfd_schema_time = {.type = HFD_SCHEMA_TIME};
const struct hfd_schema hfd_schema_micro_time = {.type = HFD_SCHEMA_MICRO_TIME};
const struct hfd_schema hfd_schema_int_or_string =
        {.type = HFD_SCHEMA_INT_OR_STRING,
         .definition = "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
         .description = "IntOrString is a type that can hold an int32 or a string. In JSON and "
                        "YAML it is a number or a string, so a field can accept a name or a "
                        "number."};
const struct hfd_schema hfd_schema_quantity =
        {.type = HFD_SCHEMA_QUANTITY,
         .definition = "io.k8s.apimachinery.pkg.api.resource.Quantity",
         .description = "Quantity is a fixed-point representation of a number, such as \"100m\" "
                        "or \"1.5Gi\". It is a number or a string, and is stored as a string."};
const struct hfd_schema hfd_schema_atomic_map_of_texts = {.type = HFD_SCHEMA_MAP,
                                                          .items = &hfd_schema_text,
                                                          .atomic = true};
const struct hfd_schema hfd_schema_map_of_texts = {.type = HFD_SCHEMA_MAP,
                                                   .items = &hfd_schema_text};
const struct hfd_schema hfd_schema_map_of_bytes = {.type = HFD_SCHEMA_MAP,
                                                   .items = &hfd_schema_bytes};
const struct hfd_schema hfd_schema_resource_list = {.type = HFD_SCHEMA_MAP,
                                                    .items = &hfd_schema_quantity,
                                                    .definition =
                                                            "io.k8s.api.core.v1.ResourceList"};
const struct hfd_schema hfd_schema_list_of_texts = {.type = HFD_SCHEMA_LIST,
                                                    .items = &hfd_schema_text};
const struct hfd_schema hfd_schema_set_of_texts = {.type = HFD_SCHEMA_LIST,
                                                   .items = &hfd_schema_text,
                                                   .list_type = HFD_LIST_SET};

/* Most names differ in the first letter, so it is compared before strcmp is called. */
const struct hfd_schema_field *hfd_schema_field(const struct hfd_schema *schema, const char *name) {
        size_t low = 0, high = schema->n_fields;

        assert(schema->type == HFD_SCHEMA_STRUCT);
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const char *other = schema->fields[middle].name;
                int order = (unsigned char)name[0] - (unsigned char)other[0];
                if (order == 0)
                        order = strcmp(name, other);
                if (order == 0)
                        return &schema->fields[middle];
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

/* The decoder of protobuf calls this once for each field on the wire; other calls are rarer. A
 * struct has a few dozen fields at most, so an index by number would cost each table more than it
 * saves. */
const struct hfd_schema_field *hfd_schema_field_by_tag(const struct hfd_schema *schema,
                                                       unsigned embedded_tag, unsigned tag) {
        assert(schema->type == HFD_SCHEMA_STRUCT);
        for (size_t i = 0; tag != 0 && i < schema->n_fields; i++)
                if (schema->fields[i].protobuf_tag == tag &&
                    schema->fields[i].embedded_tag == embedded_tag)
                        return &schema->fields[i];
        return NULL;
}

bool hfd_schema_embeds(const struct hfd_schema *schema, unsigned outer, unsigned tag) {
        assert(schema->type == HFD_SCHEMA_STRUCT);
        if (tag == 0 || tag >= HFD_EMBEDDED_MAX || outer >= HFD_EMBEDDED_MAX)
                return false;
        for (size_t i = 0; i < schema->n_fields; i++) {
                unsigned embedded = schema->fields[i].embedded_tag;

                /* The low hex digit is the outermost message (HFD_EMBEDDED_IN), so it alone counts
                 * for outer 0: the message may have no fields but those of its inner messages. */
                if (outer == 0 ? embedded % HFD_EMBEDDED_MAX == tag
                               : embedded == HFD_EMBEDDED_IN(outer, tag))
                        return true;
        }
        return false;
}

const struct hfd_schema *hfd_schema_of_member(const struct hfd_schema *schema, const char *key) {
        if (schema && schema->type == HFD_SCHEMA_MAP)
                return schema->items;
        if (!schema || schema->type != HFD_SCHEMA_STRUCT)
                return NULL;
        const struct hfd_schema_field *field = hfd_schema_field(schema, key);
        return field ? field->schema : NULL;
}

/* The last n parts of a definition's name, which dots separate; the whole name if it has fewer. */
static const char *last_parts(const char *definition, int n) {
        const char *at = definition + strlen(definition);

        while (at > definition && (at[-1] != '.' || --n > 0))
                at--;
        return at;
}

const char *hfd_schema_struct_name(const struct hfd_schema *schema) {
        return schema->definition ? last_parts(schema->definition, 1) : "";
}

/* The Go type of values without a definition of their own, as Kubernetes' messages show it. */
static const char *scalar_go_type(enum hfd_schema_type type) {
        switch (type) {
        case HFD_SCHEMA_TEXT: return "string";
        case HFD_SCHEMA_BOOLEAN: return "bool";
        case HFD_SCHEMA_INT32: return "int32";
        case HFD_SCHEMA_INT64: return "int64";
        case HFD_SCHEMA_NUMBER: return "float64";
        case HFD_SCHEMA_BYTES: return "[]uint8";
        case HFD_SCHEMA_TIME: return "v1.Time";
        case HFD_SCHEMA_MICRO_TIME: return "v1.MicroTime";
        case HFD_SCHEMA_INT_OR_STRING: return "intstr.IntOrString"; /* of a custom kind */
        case HFD_SCHEMA_QUANTITY:                                   /* has a definition */
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST:
        case HFD_SCHEMA_EITHER: break;
        }
        return "interface {}";
}

void hfd_schema_go_type(const struct hfd_schema *schema, char text[HFD_GO_TYPE_MAX]) {
        size_t n = 0;

        /* Lists and maps nested deeper than in any Kubernetes type are cut off: the text then ends
         * with "interface {}". */
        for (; (schema->type == HFD_SCHEMA_LIST || schema->type == HFD_SCHEMA_MAP) &&
               !schema->definition && n < HFD_GO_TYPE_MAX / 2;
             schema = schema->items)
                n += (size_t)snprintf(text + n, HFD_GO_TYPE_MAX - n, "%s",
                                      schema->type == HFD_SCHEMA_LIST ? "[]" : "map[string]");
        const char *name = schema->definition;
        if (!name)
                name = scalar_go_type(schema->type);
        else if (strncmp(name, "map[", strlen("map[")) != 0)
                name = last_parts(name, 2);
        (void)snprintf(text + n, HFD_GO_TYPE_MAX - n, "%s", name);
}
