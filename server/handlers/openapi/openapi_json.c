/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAPI as JSON. v2 has one document with everything, v3 one for each group and version. The two
 * differ in how a schema refers to another one, in the types of quantities and int-or-strings, in
 * the form of an operation (paths.c), and in what they say of fields that are unknown, and of
 * custom resources (custom_v2.h).
 *
 * Invariant: a document has no spaces between its values; message.h reads it so.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/openapi/custom_v2.h"
#include "server/handlers/openapi/definitions.h"
#include "server/handlers/openapi/embedded.h"
#include "server/handlers/openapi/openapi.h"
#include "server/handlers/openapi/paths.h"
#include "server/resources/custom/served_rows.h"
#include "server/schema/bodies.h"
#include "server/schema/common.h"

struct writer {
        struct hf__strbuf *s;
        bool v2;
};

/* Appends `"key":"text",`; nothing for NULL. */
static void put_text(struct hf__strbuf *s, const char *key, const char *text) {
        if (!text)
                return;
        hf__strbuf_printf(s, "\"%s\":", key);
        hf__strbuf_json(s, text, strlen(text));
        hf__strbuf_putc(s, ',');
}

/* Each member ends with a comma, and the last comma must go. So no function has to know whether
 * another one has written a member before. */
static void end_object(struct hf__strbuf *s) {
        if (s->error == 0 && s->n > 0 && s->data[s->n - 1] == ',')
                s->data[--s->n] = '\0';
        hf__strbuf_putc(s, '}');
}

/* ---- schemas ---- */

static void put_schema(const struct writer *w, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field);

/* In v3 nothing may stand beside a $ref, not even a description, so a schema's $ref is in an allOf.
 */
static void put_reference(const struct writer *w, const struct hfd_schema *schema) {
        if (w->v2)
                hf__strbuf_printf(w->s, "\"$ref\":\"#/definitions/%s\",", schema->definition);
        else
                hf__strbuf_printf(w->s, "\"allOf\":[{\"$ref\":\"#/components/schemas/%s\"}],",
                                  schema->definition);
}

/* The list type is for server-side apply. The patch strategy belongs to the field, not to the type
 * of the list: `kubectl apply` without --server-side computes strategic merge patches by it. */
static void put_list_rules(const struct writer *w, const struct hfd_schema *list,
                           const struct hfd_schema_field *field) {
        struct hf__strbuf *s = w->s;

        put_text(s, "x-kubernetes-list-type", hfd_openapi_list_type(list));
        if (list->list_type == HFD_LIST_MAP) {
                hf__strbuf_puts(s, "\"x-kubernetes-list-map-keys\":[");
                for (const char *const *key = list->list_keys; *key; key++)
                        hf__strbuf_printf(s, "%s\"%s\"", key == list->list_keys ? "" : ",", *key);
                hf__strbuf_puts(s, "],");
        }
        if (!field || (field->flags & HFD_FIELD_MERGE) == 0)
                return;
        put_text(s, "x-kubernetes-patch-strategy",
                 (field->flags & HFD_FIELD_RETAIN_KEYS) != 0 ? "merge,retainKeys" : "merge");
        put_text(s, "x-kubernetes-patch-merge-key", field->merge_key);
}

static void put_property(const struct writer *w, const struct hfd_schema_field *field) {
        hf__strbuf_printf(w->s, "\"%s\":{", field->name);
        put_schema(w, field->schema, field);
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
}

static void put_properties(const struct writer *w, const struct hfd_schema *schema) {
        const char *separator = "\"required\":[";

        if (schema->n_fields == 0)
                return;
        hf__strbuf_puts(w->s, "\"properties\":{");
        for (size_t i = 0; i < schema->n_fields; i++)
                put_property(w, &schema->fields[i]);
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
        for (size_t i = 0; i < schema->n_fields; i++) {
                if ((schema->fields[i].flags & HFD_FIELD_REQUIRED) == 0)
                        continue;
                hf__strbuf_printf(w->s, "%s\"%s\"", separator, schema->fields[i].name);
                separator = ",";
        }
        if (*separator == ',')
                hf__strbuf_puts(w->s, "],");
}

/* In v3 a quantity or an int-or-string has one of two types. */
static void put_type(const struct writer *w, const struct hfd_schema *schema) {
        if (!w->v2 && schema->type == HFD_SCHEMA_QUANTITY)
                hf__strbuf_puts(w->s, "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"}],");
        else if (!w->v2 && schema->type == HFD_SCHEMA_INT_OR_STRING)
                hf__strbuf_puts(w->s, "\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}],");
        else
                put_text(w->s, "type", hfd_openapi_type(schema));
}

/* Appends the members of a schema in full: of a definition, or where no reference is possible.
 * field: as for put_schema. */
static void put_members(const struct writer *w, const struct hfd_schema *schema,
                        const struct hfd_schema_field *field) {
        put_type(w, schema);
        put_text(w->s, "format", hfd_openapi_format(schema));
        /* In v2, properties would make kubectl refuse the fields that are unknown. */
        if (schema->type == HFD_SCHEMA_STRUCT && !(w->v2 && schema->preserve_unknown))
                put_properties(w, schema);
        if (schema->atomic)
                put_text(w->s, "x-kubernetes-map-type", "atomic");
        if (schema->preserve_unknown || (schema->type == HFD_SCHEMA_ANY && !schema->definition))
                hf__strbuf_puts(w->s, "\"x-kubernetes-preserve-unknown-fields\":true,");
        if (schema->type == HFD_SCHEMA_LIST)
                put_list_rules(w, schema, field);
        if (schema->type == HFD_SCHEMA_LIST || schema->type == HFD_SCHEMA_MAP) {
                hf__strbuf_printf(w->s, "\"%s\":{",
                                  schema->type == HFD_SCHEMA_LIST ? "items"
                                                                  : "additionalProperties");
                put_schema(w, schema->items, NULL);
                end_object(w->s);
                hf__strbuf_putc(w->s, ',');
        }
}

/* How a strategic merge patch changes the object in a field; NULL = by merging. */
static const char *object_strategy(const struct hfd_schema_field *field) {
        if ((field->flags & HFD_FIELD_REPLACE) != 0)
                return "replace";
        return (field->flags & HFD_FIELD_RETAIN_KEYS) != 0 ? "retainKeys" : NULL;
}

/* Appends the members of a schema, each with a comma. field: the field that has it; NULL = none. */
static void put_schema(const struct writer *w, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field) {
        put_text(w->s, "description", field ? field->description : NULL);
        if (field && schema->type != HFD_SCHEMA_LIST)
                put_text(w->s, "x-kubernetes-patch-strategy", object_strategy(field));
        if (hfd_openapi_has_reference(schema))
                put_reference(w, schema);
        else
                put_members(w, schema, field);
}

/* Appends a property of the server's own schema; nothing if the schema has no such property. */
static void put_own_property(const struct writer *w, const struct hfd_schema *schema,
                             const char *name, const char *separator) {
        const struct hfd_schema_field *field = hfd_schema_field(schema, name);

        if (!field)
                return;
        hf__strbuf_printf(w->s, "%s\"%s\":{", separator, name);
        put_schema(w, field->schema, field);
        end_object(w->s);
}

/* The members of a custom resource's schema, with apiVersion, kind and metadata, which its
 * CustomResourceDefinition need not name. If the CustomResourceDefinition names them, the server's
 * own take their place, as in Kubernetes: a CustomResourceDefinition can restrict metadata, but not
 * describe it in another way. */
static void put_custom_members(const struct writer *w, const struct hfd_custom_version *version,
                               const struct hf__json *props) {
        for (const struct hf__json *m = hf__json_first(props); m; m = hf__json_next(m))
                if (strcmp(hf__json_key(m), "properties") != 0) {
                        hf__strbuf_json(w->s, hf__json_key(m), strlen(hf__json_key(m)));
                        hf__strbuf_putc(w->s, ':');
                        hf__json_print(m, w->s);
                        hf__strbuf_putc(w->s, ',');
                }
        hf__strbuf_puts(w->s, "\"properties\":{");
        put_own_property(w, version->row.schema, "apiVersion", "");
        put_own_property(w, version->row.schema, "kind", ",");
        put_own_property(w, version->row.schema, "metadata", ",");
        for (const struct hf__json *m = hf__json_first(hf__json_get(props, "properties")); m;
             m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "apiVersion") == 0 || strcmp(key, "kind") == 0 ||
                    strcmp(key, "metadata") == 0)
                        continue;
                hf__strbuf_putc(w->s, ',');
                hf__strbuf_json(w->s, key, strlen(key));
                hf__strbuf_putc(w->s, ':');
                hf__json_print(m, w->s);
        }
        hf__strbuf_puts(w->s, "},");
}

/* 0 or -ENOMEM. */
static int put_custom(const struct writer *w, const struct hfd_custom_version *version) {
        struct hf__json *props = NULL;

        if (hfd_custom_version_props(version, &props) != 0)
                return -ENOMEM;
        bool has_fields = props != NULL;
        int r = props && w->v2 ? hfd_openapi_custom_v2(props, &has_fields) : 0;
        if (r == 0 && has_fields) {
                r = hfd_openapi_publish_embedded(props, w->v2);
                put_custom_members(w, version, props);
        } else {
                /* The version has no schema, or in v2 its schema preserves unknown fields. The
                 * server prunes no field of such an object, and kubectl must not refuse one. So it
                 * is published without properties. */
                put_text(w->s, "type", "object");
        }
        hf__json_free(props);
        return r;
}

/* kubectl finds the definition of a kind by this extension, not by the definition's name. */
static void put_kind(struct hf__strbuf *s, const char *group, const char *version,
                     const char *kind) {
        hf__strbuf_printf(s,
                          "\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\",\"kind\":\"%s\","
                          "\"version\":\"%s\"}],",
                          group, kind, version);
}

/* Appends the definition of a kind's list. All lists have the same members, so they have no schemas
 * of their own. */
static void put_list(const struct writer *w, const struct hfd_resource *resource) {
        static const struct hfd_schema_field fields[] = {
                HFD_FIELD_API_VERSION,
                HFD_FIELD_KIND,
                {"metadata", &hfd_schema_list_meta,
                 "Standard list metadata. More info: " HFD_CONVENTIONS "#types-kinds"},
        };
        struct hf__strbuf name = {0}, *s = w->s;

        hfd_openapi_put_definition_name(&name, resource, true);
        const char *kind = name.data ? strrchr(name.data, '.') + 1 : "";
        hf__strbuf_printf(s, "\"%s\":{\"description\":\"%s is a list of %s.\",",
                          name.data ? name.data : "", kind, resource->kind);
        hf__strbuf_printf(s,
                          "\"type\":\"object\",\"required\":[\"items\"],\"properties\":{"
                          "\"items\":{\"description\":\"List of %s.\",\"type\":\"array\","
                          "\"items\":{",
                          resource->plural);
        put_reference(w, resource->schema);
        end_object(s);
        hf__strbuf_puts(s, "},");
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
                put_property(w, &fields[i]);
        end_object(s);
        hf__strbuf_putc(s, ',');
        put_kind(s, resource->group, resource->version, kind);
        if (name.error != 0)
                s->error = name.error;
        hf__strbuf_done(&name);
}

static void put_schema_definition(const struct writer *w, const struct hfd_definition *definition) {
        const struct hfd_resource *resource = definition->resource;
        const struct hfd_custom_version *custom = resource ? resource->custom : NULL;

        hf__strbuf_printf(w->s, "\"%s\":{", definition->schema->definition);
        if (custom && put_custom(w, custom) != 0)
                w->s->error = -ENOMEM;
        if (!custom) {
                put_text(w->s, "description", definition->schema->description);
                put_members(w, definition->schema, NULL);
        }
        if (resource)
                put_kind(w->s, resource->group, resource->version, resource->kind);
        else if (definition->is_in_core)
                put_kind(w->s, "", "v1", hfd_schema_struct_name(definition->schema));
}

static void put_definition(const struct writer *w, const struct hfd_definition *definition) {
        if (definition->is_list)
                put_list(w, definition->resource);
        else
                put_schema_definition(w, definition);
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
}

/* ---- documents ---- */

/* Appends the paths and definitions of the rows from `first` to before `end`. */
static void put_contents(const struct writer *w, const struct hfd_served_rows *rows, size_t first,
                         size_t end) {
        struct hfd_definitions definitions = {0};

        hf__strbuf_puts(w->s, "\"paths\":{");
        for (size_t i = first; i < end; i++) {
                hfd_definitions_add(&definitions, rows->of[i]);
                hfd_openapi_put_paths(w->s, w->v2, rows->of[i]);
        }
        end_object(w->s);
        hf__strbuf_puts(w->s, w->v2 ? ",\"definitions\":{" : ",\"components\":{\"schemas\":{");
        for (size_t i = 0; i < definitions.n; i++)
                put_definition(w, &definitions.list[i]);
        end_object(w->s);
        if (definitions.error != 0)
                w->s->error = definitions.error;
        hfd_definitions_done(&definitions);
}

/* The version in `info` is not that of the release, so the hash of a document stays the same when
 * an upgrade changes nothing else in it, and clients keep what they have cached. */
static void put_v2(struct hf__strbuf *s, const struct hfd_served_rows *rows) {
        const struct writer w = {s, true};

        hf__strbuf_puts(s, "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Holdfast\","
                           "\"version\":\"v1\"},");
        put_contents(&w, rows, 0, rows->n);
        hf__strbuf_putc(s, '}');
}

static void put_v3(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t first,
                   size_t end) {
        const struct writer w = {s, false};

        hf__strbuf_puts(s, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Holdfast\","
                           "\"version\":\"v1\"},");
        put_contents(&w, rows, first, end);
        hf__strbuf_puts(s, "}}");
}

void hfd_openapi_put(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                     const struct hfd_openapi_document *document) {
        assert(document->kind != HFD_OPENAPI_INDEX);
        if (document->kind == HFD_OPENAPI_V2)
                put_v2(s, rows);
        else
                put_v3(s, rows, document->first, document->end);
}
