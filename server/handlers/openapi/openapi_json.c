/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAPI as JSON. v2 has one document with everything, v3 one for each group and version. The two
 * differ in how a schema refers to another one, and in the form of a parameter.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/documents/discovery.h"
#include "server/handlers/openapi/custom_v2.h"
#include "server/handlers/openapi/definitions.h"
#include "server/handlers/openapi/embedded.h"
#include "server/handlers/openapi/openapi.h"
#include "server/handlers/openapi/paths.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/strategies/strategies.h"

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

/* Each member ends with a comma: the last one must go. */
static void end_object(struct hf__strbuf *s) {
        if (s->error == 0 && s->n > 0 && s->data[s->n - 1] == ',')
                s->data[--s->n] = '\0';
        hf__strbuf_putc(s, '}');
}

static void put_kind(struct hf__strbuf *s, const struct hfd_resource *resource) {
        hf__strbuf_printf(s, "{\"group\":\"%s\",\"kind\":\"%s\",\"version\":\"%s\"}",
                          resource->group, resource->kind, resource->version);
}

/* ---- schemas ---- */

static void put_schema(const struct writer *w, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field);

/* In v3 nothing may stand beside a $ref, so a reference with a description is in an allOf. */
static void put_reference(const struct writer *w, const struct hfd_schema *schema) {
        if (w->v2)
                hf__strbuf_printf(w->s, "\"$ref\":\"#/definitions/%s\",", schema->definition);
        else
                hf__strbuf_printf(w->s, "\"allOf\":[{\"$ref\":\"#/components/schemas/%s\"}],",
                                  schema->definition);
}

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

static void put_properties(const struct writer *w, const struct hfd_schema *schema) {
        const char *separator = "\"required\":[";

        hf__strbuf_puts(w->s, "\"properties\":{");
        for (size_t i = 0; i < schema->n_fields; i++) {
                hf__strbuf_printf(w->s, "\"%s\":{", schema->fields[i].name);
                put_schema(w, schema->fields[i].schema, &schema->fields[i]);
                end_object(w->s);
                hf__strbuf_putc(w->s, ',');
        }
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

/* The members of a schema that is not a reference. */
static void put_members(const struct writer *w, const struct hfd_schema *schema,
                        const struct hfd_schema_field *field) {
        put_text(w->s, "type", hfd_openapi_type(schema));
        put_text(w->s, "format", hfd_openapi_format(schema));
        if (schema->type == HFD_SCHEMA_STRUCT)
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

/* Appends the members of a schema, each with a comma. field: the field that has it; NULL = none. */
static void put_schema(const struct writer *w, const struct hfd_schema *schema,
                       const struct hfd_schema_field *field) {
        put_text(w->s, "description", field ? field->description : NULL);
        if (hfd_openapi_has_reference(schema))
                put_reference(w, schema);
        else
                put_members(w, schema, field);
}

/* The members of a property as they are in a schema of the table. */
static void put_own_property(const struct writer *w, const struct hfd_schema *schema,
                             const char *name, const char *separator) {
        const struct hfd_schema_field *field = hfd_schema_field(schema, name);

        if (!field)
                return;
        hf__strbuf_printf(w->s, "%s\"%s\":{", separator, name);
        put_schema(w, field->schema, field);
        end_object(w->s);
}

/*
 * The members of a custom resource's schema, with the three properties that the definition need not
 * name.
 */
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
        int r = 0;
        if (props && (!w->v2 || hfd_openapi_custom_v2(props))) {
                r = hfd_openapi_publish_embedded(props, w->v2);
                put_custom_members(w, version, props);
        } else {
                put_text(w->s, "type", "object"); /* with any fields */
        }
        hf__json_free(props);
        return r;
}

static void put_definition(const struct writer *w, const struct hfd_definition *definition) {
        const struct hfd_custom_version *custom =
                definition->resource ? definition->resource->custom : NULL;

        hf__strbuf_printf(w->s, "\"%s\":{", definition->schema->definition);
        if (custom && put_custom(w, custom) != 0)
                w->s->error = -ENOMEM;
        if (!custom) {
                put_text(w->s, "description", definition->schema->description);
                put_members(w, definition->schema, NULL);
        }
        if (definition->resource) {
                hf__strbuf_puts(w->s, "\"x-kubernetes-group-version-kind\":[");
                put_kind(w->s, definition->resource);
                hf__strbuf_puts(w->s, "],");
        }
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
}

/* ---- paths ---- */

static void put_parameter(const struct writer *w, const char *name, const char *in) {
        hf__strbuf_printf(w->s, "{\"name\":\"%s\",\"in\":\"%s\",%s", name, in,
                          strcmp(in, "path") == 0 ? "\"required\":true," : "");
        hf__strbuf_puts(w->s, w->v2 ? "\"type\":\"string\"}" : "\"schema\":{\"type\":\"string\"}}");
}

/* part: of a subresource; NULL = of the resource itself. */
static void put_operation(const struct writer *w, const struct hfd_resource *resource,
                          const struct hfd_discovery_subresource *part,
                          const struct hfd_openapi_operation *operation) {
        const char *comma = "";

        hf__strbuf_printf(w->s, "\"%s\":{\"operationId\":\"%s_%s_%s_%s%s%s\",", operation->method,
                          operation->action, *resource->group ? resource->group : "core",
                          resource->version, resource->plural, part ? "_" : "",
                          part ? part->name : "");
        if (operation->writes) {
                hf__strbuf_puts(w->s, "\"parameters\":[");
                for (const char *const *name = hfd_openapi_write_parameters; *name;
                     name++, comma = ",") {
                        hf__strbuf_puts(w->s, comma);
                        put_parameter(w, *name, "query");
                }
                hf__strbuf_puts(w->s, "],");
        }
        hf__strbuf_printf(w->s,
                          "\"responses\":{\"200\":{\"description\":\"OK\"}},"
                          "\"x-kubernetes-action\":\"%s\",\"x-kubernetes-group-version-kind\":",
                          operation->action);
        put_kind(w->s, part && part->other ? part->other : resource);
        hf__strbuf_puts(w->s, "},");
}

/* The parameters in a path. An empty list is left out: clients that compare a document with what
 * they write of it do not keep one. */
static void put_path_parameters(const struct writer *w, bool namespaced, bool of_collection) {
        if (!namespaced && of_collection)
                return;
        hf__strbuf_puts(w->s, "\"parameters\":[");
        if (namespaced)
                put_parameter(w, "namespace", "path");
        if (namespaced && !of_collection)
                hf__strbuf_putc(w->s, ',');
        if (!of_collection)
                put_parameter(w, "name", "path");
        hf__strbuf_puts(w->s, "],");
}

static void put_path(const struct writer *w, const struct hfd_resource *resource,
                     bool of_collection) {
        size_t n;
        const struct hfd_openapi_operation *operations = hfd_openapi_operations(&n);

        hf__strbuf_putc(w->s, '"');
        hfd_openapi_put_path(w->s, resource, of_collection);
        hf__strbuf_puts(w->s, "\":{");
        put_path_parameters(w, resource->namespaced, of_collection);
        for (size_t i = 0; i < n; i++)
                if (operations[i].of_collection == of_collection &&
                    hfd_openapi_has_operation(resource, &operations[i]))
                        put_operation(w, resource, NULL, &operations[i]);
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
}

/* The path of a subresource, whose kind may be another one than that of the resource. */
static void put_part_path(const struct writer *w, const struct hfd_resource *resource,
                          const struct hfd_discovery_subresource *part) {
        static const struct {
                const char *verb;
                struct hfd_openapi_operation operation;
        } all[] = {{"\"get\"", {"get", "get", false, false}},
                   {"\"update\"", {"put", "put", true, false}},
                   {"\"create\"", {"post", "post", true, false}},
                   {"\"patch\"", {"patch", "patch", true, false}}};

        hf__strbuf_putc(w->s, '"');
        hfd_openapi_put_path(w->s, resource, false);
        hf__strbuf_printf(w->s, "/%s\":{", part->name);
        put_path_parameters(w, resource->namespaced, false);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strstr(part->verbs, all[i].verb))
                        put_operation(w, resource, part, &all[i].operation);
        end_object(w->s);
        hf__strbuf_putc(w->s, ',');
}

/* ---- documents ---- */

/* Appends the paths and definitions of the rows from `first` to before `end`. */
static void put_contents(const struct writer *w, const struct hfd_served_rows *rows, size_t first,
                         size_t end) {
        struct hfd_definitions definitions = {0};
        struct hfd_discovery_subresource part;

        hf__strbuf_puts(w->s, "\"paths\":{");
        for (size_t i = first; i < end; i++) {
                const struct hfd_resource *row = rows->of[i];
                hfd_definitions_add(&definitions, row);
                put_path(w, row, true);
                put_path(w, row, false);
                if (row->subresources & HFD_SUB_TOKEN)
                        hfd_definitions_add(&definitions, hfd_resource_token_request());
                for (size_t k = 0; hfd_discovery_subresource(row, k, &part); k++)
                        put_part_path(w, row, &part);
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
