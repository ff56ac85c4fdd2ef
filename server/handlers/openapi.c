/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenAPI documents.
 *
 * Invariant: fields and merged lists come from the tables that the server itself uses
 * (unknown_fields.c, merged_list.c), so that a client and the server never disagree on them.
 *
 * v2 is for old clients, which request it as protobuf (gnostic's openapi_v2.Document). kubectl 1.20
 * needs it for every create. Each kind has a definition with
 *
 *  - the extension x-kubernetes-group-version-kind, by which kubectl finds it;
 *  - the names of its known fields, each of any type, for kubectl's own validation;
 *  - the patch strategy and merge key of each list that a strategic merge patch merges, by which
 *    `kubectl apply` computes patches.
 *
 * It also has a path whose PATCH has the parameter `dryRun`, which shows kubectl that dry runs are
 * supported.
 *
 * v3 has an index, and a document for each group version, whose schemas have no fields. The
 * parameter `fieldValidation` shows kubectl that it may leave validation to the server.
 */
#include "server/handlers/openapi.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/patch/merged_list.h"
#include "server/resources/schema/unknown_fields.h"

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
        SCHEMA_TYPE = 22,
        SCHEMA_ITEMS = 23,
        SCHEMA_PROPERTIES = 25,
        SCHEMA_EXTENSION = 31,
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

/* ---- protobuf ---- */

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

static void put_string(struct hf__strbuf *s, unsigned field, const char *text) {
        put_field(s, field, text, strlen(text));
}

/* Appends inner as a message and empties it. An error in inner becomes an error in s. */
static void put_message(struct hf__strbuf *s, unsigned field, struct hf__strbuf *inner) {
        put_field(s, field, inner->data ? inner->data : "", inner->n);
        if (inner->error != 0)
                s->error = inner->error;
        hf__strbuf_done(inner);
}

/* ---- v2 ---- */

/* Appends a vendor extension. Its value is the YAML in yaml, which is emptied. */
static void put_extension(struct hf__strbuf *message, unsigned field, const char *name,
                          struct hf__strbuf *yaml) {
        struct hf__strbuf any = {0}, extension = {0};

        put_message(&any, ANY_YAML, yaml);
        put_string(&extension, NAMED_NAME, name);
        put_message(&extension, NAMED_VALUE, &any);
        put_message(message, field, &extension);
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

/* The path of an object, with the PATCH that kubectl looks for. */
static void put_path(struct hf__strbuf *paths, const struct hfd_resource *row) {
        struct hf__strbuf query = {0}, other = {0}, parameter = {0}, item = {0}, operation = {0},
                          responses = {0}, path = {0}, named = {0}, name = {0};

        hf__strbuf_printf(&name, "%s%s/%s%s/%s/{name}", *row->group ? "/apis/" : "/api", row->group,
                          row->version, row->namespaced ? "/namespaces/{namespace}" : "",
                          row->plural);
        put_string(&query, QUERY_IN, "query");
        put_string(&query, QUERY_NAME, "dryRun");
        put_string(&query, QUERY_TYPE, "string");
        put_message(&other, OTHER_THAN_BODY_QUERY, &query);
        put_message(&parameter, PARAMETER_OTHER_THAN_BODY, &other);
        put_message(&item, PARAMETERS_PARAMETER, &parameter);
        put_message(&operation, OPERATION_PARAMETERS, &item);
        put_message(&operation, OPERATION_RESPONSES, &responses);
        put_kind(&operation, OPERATION_EXTENSION, row, false);
        put_message(&path, PATH_PATCH, &operation);
        put_message(&named, NAMED_NAME, &name);
        put_message(&named, NAMED_VALUE, &path);
        put_message(paths, PATHS_PATH, &named);
}

/* Appends the schema of a list that is merged by key; key NULL = by value. Elements: any type. */
static void put_merged_list(struct hf__strbuf *schema, const char *key) {
        struct hf__strbuf type = {0}, items = {0}, any_schema = {0}, yaml = {0};

        put_string(&type, TYPE_VALUE, "array");
        put_message(schema, SCHEMA_TYPE, &type);
        put_message(&items, ITEMS_SCHEMA, &any_schema);
        put_message(schema, SCHEMA_ITEMS, &items);
        hf__strbuf_puts(&yaml, "merge\n");
        put_extension(schema, SCHEMA_EXTENSION, "x-kubernetes-patch-strategy", &yaml);
        if (!key)
                return;
        hf__strbuf_printf(&yaml, "%s\n", key);
        put_extension(schema, SCHEMA_EXTENSION, "x-kubernetes-patch-merge-key", &yaml);
}

/*
 * Appends the fields of a part ("" = the object) and, down to the second level, of the parts in it.
 * A part whose fields are not in the table gets no properties, so kubectl accepts any field in it.
 */
static void put_fields(struct hf__strbuf *schema, const char *kind, const char *part) {
        const char *fields = hfd_unknown_fields_list_known(kind, part);
        struct hf__strbuf properties = {0};
        char path[128];

        if (!fields)
                return;
        for (const char *word = fields; *word;) {
                struct hf__strbuf property = {0}, named = {0};
                size_t n = strcspn(word, " ");
                (void)snprintf(path, sizeof path, "%s%s%.*s", part, *part ? "." : "", (int)n, word);
                const struct hfd_merged_list *list = hfd_merged_list_find(kind, path);
                if (list)
                        put_merged_list(&property, list->key);
                else if (!strchr(part, '.'))
                        put_fields(&property, kind, path);
                put_field(&named, NAMED_NAME, word, n);
                put_message(&named, NAMED_VALUE, &property);
                put_message(&properties, PROPERTIES_PROPERTY, &named);
                word += n;
                word += strspn(word, " ");
        }
        put_message(schema, SCHEMA_PROPERTIES, &properties);
}

static void put_definition(struct hf__strbuf *definitions, const struct hfd_resource *row) {
        struct hf__strbuf schema = {0}, named = {0};

        put_fields(&schema, row->kind, "");
        put_kind(&schema, SCHEMA_EXTENSION, row, true);
        put_string(&named, NAMED_NAME, row->kind);
        put_message(&named, NAMED_VALUE, &schema);
        put_message(definitions, DEFINITIONS_SCHEMA, &named);
}

struct hf__buf *hfd_openapi_v2(void) {
        struct hf__strbuf document = {0}, info = {0}, paths = {0}, definitions = {0};
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        put_string(&document, DOCUMENT_SWAGGER, "2.0");
        put_string(&info, INFO_TITLE, "Holdfast");
        put_string(&info, INFO_VERSION, "v1");
        put_message(&document, DOCUMENT_INFO, &info);
        for (size_t i = 0; i < n; i++) {
                put_path(&paths, &rows[i]);
                put_definition(&definitions, &rows[i]);
        }
        put_message(&document, DOCUMENT_PATHS, &paths);
        put_message(&document, DOCUMENT_DEFINITIONS, &definitions);
        struct hf__buf *buf = hf__strbuf_to_buf(&document);
        hf__strbuf_done(&document);
        return buf;
}

/* ---- v3 ---- */

/* "api/v1" or "apis/GROUP/VERSION" */
static void put_path_prefix(struct hf__strbuf *s, const struct hfd_resource *row) {
        hf__strbuf_printf(s, *row->group ? "apis/%s/%s" : "api%s/%s", row->group, row->version);
}

void hfd_openapi_v3_put_index(struct hf__strbuf *s) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        hf__strbuf_puts(s, "{\"paths\":{");
        for (size_t i = 0; i < n; i++) {
                if (!hfd_resource_starts_version(&rows[i]))
                        continue;
                hf__strbuf_puts(s, i > 0 ? ",\"" : "\"");
                put_path_prefix(s, &rows[i]);
                hf__strbuf_puts(s, "\":{\"serverRelativeURL\":\"/openapi/v3/");
                put_path_prefix(s, &rows[i]);
                hf__strbuf_puts(s, "\"}");
        }
        hf__strbuf_puts(s, "}}");
}

/* kubectl finds the kind by the extension. Then it looks for the two parameters of its PATCH. */
static void put_v3_path(struct hf__strbuf *s, const struct hfd_resource *row) {
        put_path_prefix(s, row);
        hf__strbuf_printf(s,
                          "%s/%s/"
                          "{name}\":{\"patch\":{\"parameters\":[{\"name\":"
                          "\"fieldValidation\",\"in\":\"query\",\"schema\":"
                          "{\"type\":\"string\"}},{\"name\":\"dryRun\",\"in\":\"query\","
                          "\"schema\":{\"type\":\"string\"}}],"
                          "\"responses\":{\"200\":{\"description\":\"OK\"}},\"x-kubernetes-"
                          "group-version-kind\":{\"group\":\"%s\","
                          "\"version\":\"%s\",\"kind\":\"%s\"}}}",
                          row->namespaced ? "/namespaces/{namespace}" : "", row->plural, row->group,
                          row->version, row->kind);
}

static void put_v3_schema(struct hf__strbuf *s, const struct hfd_resource *row) {
        hf__strbuf_printf(s,
                          "\"%s\":{\"type\":\"object\",\"x-kubernetes-group-version-"
                          "kind\":[{\"group\":\"%s\",\"version\":\"%s\","
                          "\"kind\":\"%s\"}]}",
                          row->kind, row->group, row->version, row->kind);
}

static bool has_group_version(const struct hfd_resource *row, const char *group,
                              const char *version) {
        return strcmp(row->group, group) == 0 && strcmp(row->version, version) == 0;
}

bool hfd_openapi_v3_put(struct hf__strbuf *s, const char *group, const char *version) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);
        const char *separator = "\"/", *comma = "";
        bool found = false;

        hf__strbuf_puts(s, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Holdfast\",\"version\":"
                           "\"v1\"},\"paths\":{");
        for (size_t i = 0; i < n; i++) {
                if (!has_group_version(&rows[i], group, version))
                        continue;
                hf__strbuf_puts(s, separator);
                put_v3_path(s, &rows[i]);
                separator = ",\"/";
                found = true;
        }
        hf__strbuf_puts(s, "},\"components\":{\"schemas\":{");
        for (size_t i = 0; i < n; i++) {
                if (!has_group_version(&rows[i], group, version))
                        continue;
                hf__strbuf_puts(s, comma);
                put_v3_schema(s, &rows[i]);
                comma = ",";
        }
        hf__strbuf_puts(s, "}}}");
        return found;
}
