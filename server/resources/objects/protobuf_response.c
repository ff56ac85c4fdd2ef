/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encloses protobuf messages, and converts responses.
 *
 * Invariant: in protobuf, every list type of Kubernetes is {1: metadata, 2: items}, so one function
 * serves them all.
 */
#include "server/resources/objects/protobuf_response.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/schema/bodies.h"
#include "server/schema/common.h"
#include "server/schema/protobuf_encode.h"

#define META_VERSION "meta.k8s.io/v1"
#define PARTIAL      "PartialObjectMetadata"
/* Bytes of the kind of a list, with the NUL. This is enough for every built-in kind. Only the
 * metadata of other kinds have a protobuf form, as PARTIAL. */
#define KIND_MAX 80

/* Field numbers of runtime.Unknown and its TypeMeta, of WatchEvent and its RawExtension, and of
 * lists. */
enum {
        TYPE_META = 1,
        RAW = 2,
        TYPE_API_VERSION = 1,
        TYPE_KIND = 2,
        EVENT_TYPE = 1,
        EVENT_OBJECT = 2,
        EXTENSION_RAW = 1,
        LIST_META = 1,
        LIST_ITEMS = 2
};

/* ---- schemas ---- */

static const struct hfd_schema_field partial_fields[] = {HFD_FIELD_METADATA};
static const struct hfd_schema partial_schema = {HFD_STRUCT(HFD_META PARTIAL, partial_fields)};

/* ---- the envelope ---- */

static void put_head(struct hf__strbuf *s, const char *api_version, const char *kind) {
        hf__strbuf_add(s, "k8s\0", 4);
        size_t start = s->n;
        hfd_protobuf_put_text(s, TYPE_API_VERSION, api_version);
        hfd_protobuf_put_text(s, TYPE_KIND, kind);
        hfd_protobuf_wrap(s, TYPE_META, start);
}

/* The last fields of a runtime.Unknown, both empty: content encoding and content type. */
static void put_end(struct hf__strbuf *s) { hf__strbuf_add(s, "\x1a\0\x22\0", 4); }

static void put_object(struct hf__strbuf *s, const struct hfd_schema *schema,
                       const char *api_version, const char *kind, const struct hf__json *json) {
        put_head(s, api_version, kind);
        size_t start = s->n;
        hfd_protobuf_encode(s, schema, json);
        hfd_protobuf_wrap(s, RAW, start);
        put_end(s);
}

static void put_type_of_list(struct hf__strbuf *s, const struct hfd_resource *resource,
                             bool partial) {
        char version[HFD_API_VERSION_MAX], kind[KIND_MAX];

        hfd_resource_api_version(resource, version);
        (void)snprintf(kind, sizeof kind, "%sList", partial ? PARTIAL : resource->kind);
        put_head(s, partial ? META_VERSION : version, kind);
}

static const struct hfd_schema *item_schema(const struct hfd_resource *resource, bool partial) {
        return partial ? &partial_schema : resource->schema;
}

void hfd_protobuf_put_list_head(struct hf__strbuf *s, const struct hfd_resource *resource,
                                bool partial, const struct hf__json *meta, size_t n_items) {
        /* The metadata is encoded first, because the length of the whole list precedes it. */
        struct hf__strbuf m = {0};

        hfd_protobuf_encode(&m, &hfd_schema_list_meta, meta);
        hfd_protobuf_wrap(&m, LIST_META, 0);
        put_type_of_list(s, resource, partial);
        hfd_protobuf_put_varint(s, RAW << 3 | 2); /* 2: a field with a length */
        hfd_protobuf_put_varint(s, m.n + n_items);
        hf__strbuf_add(s, m.data ? m.data : "", m.n);
        if (m.error != 0)
                s->error = m.error;
        hf__strbuf_done(&m);
}

void hfd_protobuf_put_item(struct hf__strbuf *s, const struct hfd_resource *resource, bool partial,
                           const struct hf__json *object) {
        size_t start = s->n;

        hfd_protobuf_encode(s, item_schema(resource, partial), object);
        hfd_protobuf_wrap(s, LIST_ITEMS, start);
}

void hfd_protobuf_put_list_end(struct hf__strbuf *s) { put_end(s); }

/* ---- events ---- */

/* Appends four bytes for the length of the frame, and the type. Returns where the object begins. */
static size_t begin_frame(struct hf__strbuf *s, const char *type) {
        hf__strbuf_add(s, "\0\0\0", 4);
        hfd_protobuf_put_text(s, EVENT_TYPE, type);
        return s->n;
}

/* Encloses the object, and sets the length. frame: where the frame begins in s; object: what
 * begin_frame has returned. */
static void end_frame(struct hf__strbuf *s, size_t frame, size_t object) {
        hfd_protobuf_wrap(s, EXTENSION_RAW, object);
        hfd_protobuf_wrap(s, EVENT_OBJECT, object);
        if (s->error != 0)
                return;
        size_t n = s->n - frame - 4;
        for (size_t i = 0; i < 4; i++)
                s->data[frame + i] = (char)(n >> (24 - 8 * i));
}

void hfd_protobuf_put_frame(struct hf__strbuf *s, const char *type,
                            const struct hfd_resource *resource, bool partial,
                            const struct hf__json *object) {
        char version[HFD_API_VERSION_MAX];
        size_t frame = s->n, start = begin_frame(s, type);

        hfd_resource_api_version(resource, version);
        put_object(s, item_schema(resource, partial), partial ? META_VERSION : version,
                   partial ? PARTIAL : resource->kind, object);
        end_frame(s, frame, start);
}

/* ---- responses in JSON ---- */

static void put_list(struct hf__strbuf *s, const struct hfd_resource *resource, bool partial,
                     const struct hf__json *json) {
        struct hf__strbuf items = {0};

        for (const struct hf__json *m = hf__json_first(hf__json_get(json, "items")); m;
             m = hf__json_next(m))
                hfd_protobuf_put_item(&items, resource, partial, m);
        hfd_protobuf_put_list_head(s, resource, partial, hf__json_get(json, "metadata"), items.n);
        hf__strbuf_add(s, items.data ? items.data : "", items.n);
        if (items.error != 0)
                s->error = items.error;
        hf__strbuf_done(&items);
        put_end(s);
}

/* False: json has no protobuf form; nothing was appended. */
static bool put_response(struct hf__strbuf *s, const struct hfd_resource *resource,
                         const struct hf__json *json) {
        const char *kind = hf__json_string(json, "kind"),
                   *version = hf__json_string(json, "apiVersion");

        if (!kind || !version)
                return false;
        bool is_status = strcmp(kind, "Status") == 0;
        if (is_status)
                put_object(s, &hfd_schema_status, version, kind, json);
        if (is_status || !resource)
                return is_status;
        size_t n = strlen(resource->kind);
        if (strcmp(kind, PARTIAL) == 0)
                put_object(s, &partial_schema, version, kind, json);
        else if (strcmp(kind, PARTIAL "List") == 0)
                put_list(s, resource, true, json);
        else if (strcmp(kind, resource->kind) == 0)
                put_object(s, resource->schema, version, kind, json);
        else if (strncmp(kind, resource->kind, n) == 0 && strcmp(kind + n, "List") == 0)
                put_list(s, resource, false, json);
        else
                return false;
        return true;
}

/* Ends a conversion. Consumes s and json. */
static int finish_message(struct hf__strbuf *s, struct hf__json *json, bool known,
                          struct hf__buf **ret) {
        int r = known ? 0 : HF_E_INVALID;

        if (r == 0) {
                *ret = hf__strbuf_to_buf(s);
                r = *ret ? 0 : -ENOMEM;
        }
        hf__strbuf_done(s);
        hf__json_free(json);
        return r;
}

static int parse_text(const struct hf__buf *text, struct hf__json **ret_json) {
        int r = hf__json_parse(text->data, text->n, ret_json, NULL);

        return r == 0 || r == -ENOMEM ? r : HF_E_INVALID;
}

int hfd_protobuf_convert(const struct hfd_resource *resource, const struct hf__buf *text,
                         struct hf__buf **ret_response) {
        struct hf__strbuf s = {0};
        struct hf__json *json;
        int r = parse_text(text, &json);

        if (r != 0)
                return r;
        bool known = put_response(&s, resource, json);
        return finish_message(&s, json, known, ret_response);
}

int hfd_protobuf_convert_frame(const struct hfd_resource *resource, const struct hf__buf *text,
                               struct hf__buf **ret_frame) {
        struct hf__strbuf s = {0};
        struct hf__json *json;
        int r = parse_text(text, &json);

        if (r != 0)
                return r;
        const char *type = hf__json_string(json, "type");
        size_t start = begin_frame(&s, type ? type : "");
        bool known = put_response(&s, resource, hf__json_get(json, "object"));
        end_frame(&s, 0, start);
        return finish_message(&s, json, known, ret_frame);
}
