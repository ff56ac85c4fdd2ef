/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAPI v2 as protobuf: gnostic's openapi_v2.Document. Clients that ask for it are old: kubectl
 * 1.20 needs it for every create, to validate the object, and for `kubectl explain`. `kubectl
 * apply` computes patches with the patch strategy and merge key of a list.
 *
 * Invariant: the schemas are those of definitions.h, which the JSON documents show, too. So the
 * formats cannot contradict each other.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/openapi/definitions.h"
#include "server/handlers/openapi/openapi.h"
#include "server/handlers/openapi/paths.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/strategies/strategies.h"

/* Field numbers of gnostic's OpenAPIv2.proto, as MESSAGE_FIELD. */
enum {
        DOCUMENT_SWAGGER = 1,
        DOCUMENT_INFO = 2,
        DOCUMENT_PATHS = 8,
        DOCUMENT_DEFINITIONS = 9,
        INFO_TITLE = 1,
        INFO_VERSION = 2,
        DEFINITIONS_SCHEMA = 1,
        NAMED_NAME = 1,
        NAMED_VALUE = 2,
        SCHEMA_REFERENCE = 1,
        SCHEMA_FORMAT = 2,
        SCHEMA_DESCRIPTION = 4,
        SCHEMA_REQUIRED = 19,
        SCHEMA_ADDITIONAL_PROPERTIES = 21,
        SCHEMA_TYPE = 22,
        SCHEMA_ITEMS = 23,
        SCHEMA_PROPERTIES = 25,
        SCHEMA_EXTENSION = 31,
        ADDITIONAL_PROPERTIES_SCHEMA = 1,
        TYPE_VALUE = 1,
        ITEMS_SCHEMA = 1,
        PROPERTIES_PROPERTY = 1,
        ANY_YAML = 2,
        PATHS_PATH = 2,
        PATH_PATCH = 8,
        OPERATION_PARAMETERS = 8,
        OPERATION_RESPONSES = 9,
        OPERATION_EXTENSION = 13,
        PARAMETERS_PARAMETER = 1,
        PARAMETER_OTHER_THAN_BODY = 2,
        OTHER_THAN_BODY_QUERY = 3,
        QUERY_IN = 2,
        QUERY_NAME = 4,
        QUERY_TYPE = 6,
};

/* ---- messages ---- */

static void put_varint(struct hf__strbuf *s, uint64_t value) {
        for (; value > 127; value >>= 7)
                hf__strbuf_putc(s, (char)(value | 128));
        hf__strbuf_putc(s, (char)value);
}

static void put_field(struct hf__strbuf *s, unsigned field, const void *data, size_t n) {
        put_varint(s, field << 3 | 2); /* wire type 2: length-delimited */
        put_varint(s, n);
        hf__strbuf_add(s, data, n);
}

/* Appends a text; NULL = the field is absent. */
static void put_string(struct hf__strbuf *s, unsigned field, const char *text) {
        if (text)
                put_field(s, field, text, strlen(text));
}

/* Appends inner as a message and empties it. An error in inner becomes an error in s. */
static void put_message(struct hf__strbuf *s, unsigned field, struct hf__strbuf *inner) {
        put_field(s, field, inner->data ? inner->data : "", inner->n);
        if (inner->error != 0)
                s->error = inner->error;
        hf__strbuf_done(inner);
}

/* Appends a message {name, value} as a field, and empties value. */
static void put_named(struct hf__strbuf *s, unsigned field, const char *name,
                      struct hf__strbuf *value) {
        struct hf__strbuf named = {0};

        put_string(&named, NAMED_NAME, name);
        put_message(&named, NAMED_VALUE, value);
        put_message(s, field, &named);
}

/* Appends a vendor extension. Its value is the YAML in yaml, which is emptied. */
static void put_extension(struct hf__strbuf *message, unsigned field, const char *name,
                          struct hf__strbuf *yaml) {
        struct hf__strbuf any = {0};

        put_message(&any, ANY_YAML, yaml);
        put_named(message, field, name, &any);
}

/*
 * Appends the extension that names a kind. list: its value is a list with one element, which
 * definitions require; operations require the element itself.
 */
static void put_kind(struct hf__strbuf *message, unsigned field, const struct hfd_resource *row,
                     bool list) {
        struct hf__strbuf yaml = {0};

        hf__strbuf_printf(&yaml,
                          list ? "- group: \"%s\"\n  kind: %s\n  version: %s\n"
                               : "group: \"%s\"\nkind: %s\nversion: %s\n",
                          row->group, row->kind, row->version);
        put_extension(message, field, "x-kubernetes-group-version-kind", &yaml);
}

/* ---- schemas ---- */

static void put_schema(struct hf__strbuf *s, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field, const struct hf__json *props);

static void put_text_extension(struct hf__strbuf *s, const char *name, const char *text) {
        struct hf__strbuf yaml = {0};

        hf__strbuf_printf(&yaml, "%s\n", text);
        put_extension(s, SCHEMA_EXTENSION, name, &yaml);
}

static void put_items(struct hf__strbuf *s, const struct hfd_schema *schema,
                      const struct hf__json *props) {
        bool is_list = schema->type == HFD_SCHEMA_LIST;
        struct hf__strbuf inner = {0}, items = {0};

        put_schema(&inner, schema->items, NULL,
                   hf__json_get(props, is_list ? "items" : "additionalProperties"));
        put_message(&items, is_list ? ITEMS_SCHEMA : ADDITIONAL_PROPERTIES_SCHEMA, &inner);
        put_message(s, is_list ? SCHEMA_ITEMS : SCHEMA_ADDITIONAL_PROPERTIES, &items);
}

static void put_property(struct hf__strbuf *properties, const struct hfd_schema_field *field,
                         const struct hf__json *props) {
        struct hf__strbuf property = {0};

        put_schema(&property, field->schema, field, props);
        put_named(properties, PROPERTIES_PROPERTY, field->name, &property);
}

/* Each field is found by bisection, and each of the props is visited once, so that a wide schema
 * takes no quadratic time. */
static void put_properties(struct hf__strbuf *s, const struct hfd_schema *schema,
                           const struct hf__json *props) {
        struct hf__strbuf properties = {0};

        for (size_t i = 0; i < schema->n_fields; i++) {
                const struct hfd_schema_field *field = &schema->fields[i];
                if ((field->flags & HFD_FIELD_REQUIRED) != 0)
                        put_string(s, SCHEMA_REQUIRED, field->name);
                if (!props || field->description)
                        put_property(&properties, field, NULL);
        }
        for (const struct hf__json *m = hf__json_first(hf__json_get(props, "properties")); m;
             m = hf__json_next(m)) {
                const struct hfd_schema_field *field = hfd_schema_field(schema, hf__json_key(m));
                if (field && !field->description)
                        put_property(&properties, field, m);
        }
        put_message(s, SCHEMA_PROPERTIES, &properties);
}

static void put_list_rules(struct hf__strbuf *s, const struct hfd_schema *list,
                           const struct hfd_schema_field *field) {
        put_text_extension(s, "x-kubernetes-list-type", hfd_openapi_list_type(list));
        if (list->list_type == HFD_LIST_MAP) {
                struct hf__strbuf yaml = {0};
                for (const char *const *key = list->list_keys; *key; key++)
                        hf__strbuf_printf(&yaml, "- %s\n", *key);
                put_extension(s, SCHEMA_EXTENSION, "x-kubernetes-list-map-keys", &yaml);
        }
        if (!field || (field->flags & HFD_FIELD_MERGE) == 0)
                return;
        put_text_extension(s, "x-kubernetes-patch-strategy",
                           (field->flags & HFD_FIELD_RETAIN_KEYS) != 0 ? "merge,retainKeys"
                                                                       : "merge");
        if (field->merge_key)
                put_text_extension(s, "x-kubernetes-patch-merge-key", field->merge_key);
}

/* Appends the members of a schema that is not a reference. */
static void put_members(struct hf__strbuf *s, const struct hfd_schema *schema,
                        const struct hfd_schema_field *field, const struct hf__json *props) {
        struct hf__strbuf type = {0};

        put_string(s, SCHEMA_FORMAT, hfd_openapi_format(schema));
        put_string(&type, TYPE_VALUE, hfd_openapi_type(schema));
        if (type.n > 0)
                put_message(s, SCHEMA_TYPE, &type);
        /* In this old format, properties would make kubectl refuse the fields that are unknown. */
        if (schema->type == HFD_SCHEMA_STRUCT && !schema->preserve_unknown)
                put_properties(s, schema, props);
        if (schema->type == HFD_SCHEMA_LIST || schema->type == HFD_SCHEMA_MAP)
                put_items(s, schema, props);
        if (schema->atomic)
                put_text_extension(s, "x-kubernetes-map-type", "atomic");
        if (schema->preserve_unknown || (schema->type == HFD_SCHEMA_ANY && !schema->definition))
                put_text_extension(s, "x-kubernetes-preserve-unknown-fields", "true");
        if (schema->type == HFD_SCHEMA_LIST)
                put_list_rules(s, schema, field);
}

/* field: the field that has the schema; NULL = none. props: the same schema in the definition of a
 * custom resource, which has the descriptions; NULL = it has none. */
static void put_schema(struct hf__strbuf *s, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field, const struct hf__json *props) {
        char reference[200];

        put_string(s, SCHEMA_DESCRIPTION,
                   field && field->description ? field->description
                                               : hf__json_string(props, "description"));
        if (!hfd_openapi_has_reference(schema)) {
                put_members(s, schema, field, props);
                return;
        }
        (void)snprintf(reference, sizeof reference, "#/definitions/%s", schema->definition);
        put_string(s, SCHEMA_REFERENCE, reference);
}

static void put_definition(struct hf__strbuf *definitions,
                           const struct hfd_definition *definition) {
        const struct hfd_custom_version *custom =
                definition->resource ? definition->resource->custom : NULL;
        struct hf__strbuf schema = {0};
        struct hf__json *props = NULL;

        if (custom && hfd_custom_version_props(custom, &props) != 0)
                schema.error = -ENOMEM;
        const char *description =
                custom ? hf__json_string(props, "description") : definition->schema->description;
        put_string(&schema, SCHEMA_DESCRIPTION, description);
        put_members(&schema, definition->schema, NULL, props);
        hf__json_free(props);
        if (definition->resource)
                put_kind(&schema, SCHEMA_EXTENSION, definition->resource, true);
        put_named(definitions, DEFINITIONS_SCHEMA, definition->schema->definition, &schema);
}

/* ---- paths ---- */

/* Appends the path of an object, with only a PATCH: kubectl looks for dryRun in its parameters. */
static void put_path(struct hf__strbuf *paths, const struct hfd_resource *row) {
        struct hf__strbuf operation = {0}, responses = {0}, path = {0}, name = {0};

        for (const char *const *parameter_name = hfd_openapi_write_parameters; *parameter_name;
             parameter_name++) {
                struct hf__strbuf query = {0}, other = {0}, parameter = {0}, item = {0};
                put_string(&query, QUERY_IN, "query");
                put_string(&query, QUERY_NAME, *parameter_name);
                put_string(&query, QUERY_TYPE, "string");
                put_message(&other, OTHER_THAN_BODY_QUERY, &query);
                put_message(&parameter, PARAMETER_OTHER_THAN_BODY, &other);
                put_message(&item, PARAMETERS_PARAMETER, &parameter);
                put_message(&operation, OPERATION_PARAMETERS, &item);
        }
        put_message(&operation, OPERATION_RESPONSES, &responses);
        put_kind(&operation, OPERATION_EXTENSION, row, false);
        put_message(&path, PATH_PATCH, &operation);
        hfd_openapi_put_path(&name, row, false);
        put_named(paths, PATHS_PATH, name.data ? name.data : "", &path);
        hf__strbuf_done(&name);
}

struct hf__buf *hfd_openapi_v2(const struct hfd_served_rows *rows) {
        struct hf__strbuf document = {0}, info = {0}, paths = {0}, definitions = {0};
        struct hfd_definitions all = {0};

        put_string(&document, DOCUMENT_SWAGGER, "2.0");
        put_string(&info, INFO_TITLE, "Holdfast");
        put_string(&info, INFO_VERSION, "v1");
        put_message(&document, DOCUMENT_INFO, &info);
        for (size_t i = 0; i < rows->n; i++) {
                if (!rows->of[i]->is_review) /* a review is not stored: no path names one */
                        put_path(&paths, rows->of[i]);
                hfd_definitions_add(&all, rows->of[i]);
                if (rows->of[i]->subresources & HFD_SUB_TOKEN)
                        hfd_definitions_add(&all, hfd_resource_token_request());
        }
        for (size_t i = 0; i < all.n; i++)
                put_definition(&definitions, &all.list[i]);
        put_message(&document, DOCUMENT_PATHS, &paths);
        put_message(&document, DOCUMENT_DEFINITIONS, &definitions);
        if (all.error != 0)
                document.error = all.error;
        hfd_definitions_done(&all);
        struct hf__buf *buf = hf__strbuf_to_buf(&document);
        hf__strbuf_done(&document);
        return buf;
}
