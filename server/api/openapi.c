/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAPI v2 for old clients, as the protobuf document they ask for (gnostic's openapi_v2.Document): kubectl 1.20 does not
 * create anything before it has seen one. Each kind is a definition without properties, which means "anything", with the
 * extension x-kubernetes-group-version-kind by which kubectl finds it; the server validates.
 */
#include <string.h>

#include "server/api/core.h"

/* Field numbers of gnostic's OpenAPIv2.proto. */
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
        SCHEMA_EXTENSION = 31,
        ANY_YAML = 2,
};

static void put_varint(struct hf__strbuf *s, uint64_t value) {
        for (; value > 127; value >>= 7)
                hf__strbuf_putc(s, (char)(value | 128));
        hf__strbuf_putc(s, (char)value);
}

static void put_field(struct hf__strbuf *s, unsigned field, const void *data, size_t n) {
        put_varint(s, field << 3 | 2); /* length-delimited */
        put_varint(s, n);
        hf__strbuf_add(s, data, n);
}

static void put_string(struct hf__strbuf *s, unsigned field, const char *text) { put_field(s, field, text, strlen(text)); }

/* Puts inner as a message, and empties it. */
static void put_message(struct hf__strbuf *s, unsigned field, struct hf__strbuf *inner) {
        put_field(s, field, inner->data ? inner->data : "", inner->n);
        if (inner->error)
                s->error = inner->error;
        hf__strbuf_done(inner);
}

static void put_definition(struct hf__strbuf *definitions, const struct hfd_resource *row) {
        struct hf__strbuf yaml = {0}, any = {0}, extension = {0}, schema = {0}, named = {0};

        hf__strbuf_printf(&yaml, "- group: \"%s\"\n  kind: %s\n  version: %s\n", row->group, row->kind, row->version);
        put_message(&any, ANY_YAML, &yaml);
        put_string(&extension, NAMED_NAME, "x-kubernetes-group-version-kind");
        put_message(&extension, NAMED_VALUE, &any);
        put_message(&schema, SCHEMA_EXTENSION, &extension);
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
        put_message(&document, DOCUMENT_PATHS, &paths);
        for (size_t i = 0; i < n; i++)
                put_definition(&definitions, &rows[i]);
        put_message(&document, DOCUMENT_DEFINITIONS, &definitions);
        struct hf__buf *buf = hf__strbuf_to_buf(&document);
        hf__strbuf_done(&document);
        return buf;
}
