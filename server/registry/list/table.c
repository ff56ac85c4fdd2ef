/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders Tables for kubectl, and PartialObjectMetadata. The columns of a kind are in its row of
 * the resource table.
 *
 * Invariant: only these formats parse objects in order to render them. All other reads send the
 * bytes of the object as they are, so that a plain get or list costs no parsing (only indenting
 * does, in handlers/rest/).
 */
#include "server/registry/list/table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define TABLE_MAX_BYTES (512u << 20)

/* ---- cells ---- */

static void put_text(struct hf__strbuf *s, const char *text) {
        hf__strbuf_json(s, text, strlen(text));
}

/*
 * Appends the time since the timestamp at path, or since the creation if there is no such
 * timestamp; "<unknown>" if there is neither.
 */
static void put_age(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                    int64_t now_s) {
        const char *text = hf__json_string(object, path);
        char age[HF__AGE_MAX] = "<unknown>";
        int64_t then;

        if (!text || hf__time_parse(text, &then) != 0)
                text = hf__json_string(object, "metadata.creationTimestamp");
        if (text && hf__time_parse(text, &then) == 0)
                hf__age_format(now_s - then, age);
        put_text(s, age);
}

/* Appends a binding's subjects of one kind: "a, b", or for service accounts "ns/a, ns/b". */
static void put_subjects(struct hf__strbuf *s, const struct hf__json *object, const char *kind) {
        bool with_namespace = strcmp(kind, "ServiceAccount") == 0;
        struct hf__strbuf names = {0};

        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name");
                const char *ns = hf__json_string(m, "namespace");
                const char *subject_kind = hf__json_string(m, "kind");
                if (!subject_kind || strcmp(subject_kind, kind) != 0 || !name)
                        continue;
                hf__strbuf_puts(&names, names.n ? ", " : "");
                if (with_namespace)
                        hf__strbuf_printf(&names, "%s/", ns ? ns : "");
                hf__strbuf_puts(&names, name);
        }
        put_text(s, names.data ? names.data : "");
        if (names.error)
                s->error = names.error;
        hf__strbuf_done(&names);
}

/* Appends "kind/name" of the reference under key. lower: converts the kind to lower case. */
static void put_reference(struct hf__strbuf *s, const struct hf__json *object, const char *key,
                          bool lower) {
        const struct hf__json *reference = hf__json_get(object, key);
        const char *kind = hf__json_string(reference, "kind");
        const char *name = hf__json_string(reference, "name");
        char text[600];

        (void)snprintf(text, sizeof text, "%s/%s", kind ? kind : "", name ? name : "");
        for (char *c = text; lower && *c && *c != '/'; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c - 'A' + 'a');
        put_text(s, text);
}

/*
 * Appends one cell. path is the path of a string in the object, or one of these:
 *
 *      @age, @age:<path>   the time since the creation, or since the time at a path
 *      @count:<path>       the number of members
 *      @object             the object that an Event involves
 *      @role               the role of a binding
 *      @subjects:<kind>    the subjects of a binding
 */
static void put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                     int64_t now_s) {
        const char *text;

        if (strcmp(path, "@age") == 0) {
                put_age(s, object, "metadata.creationTimestamp", now_s);
        } else if (strncmp(path, "@age:", 5) == 0) {
                put_age(s, object, path + 5, now_s);
        } else if (strncmp(path, "@count:", 7) == 0) {
                hf__strbuf_u64(s, hf__json_count(hf__json_path(object, path + 7)));
        } else if (strncmp(path, "@subjects:", 10) == 0) {
                put_subjects(s, object, path + 10);
        } else if (strcmp(path, "@role") == 0) {
                put_reference(s, object, "roleRef", false);
        } else if (strcmp(path, "@object") == 0) {
                put_reference(s, object, "involvedObject", true);
        } else {
                assert(*path != '@');
                text = hf__json_string(object, path);
                put_text(s, text ? text : "");
        }
}

/* ---- PartialObjectMetadata ---- */

static void put_partial(struct hf__strbuf *s, const struct hf__json *object) {
        hf__strbuf_puts(s, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/"
                           "v1\",\"metadata\":");
        hf__json_print(hf__json_get(object, "metadata"), s);
        hf__strbuf_putc(s, '}');
}

bool hfd_table_put_partial(struct hf__strbuf *s, const struct hfd_object *object) {
        struct hf__json *json = hfd_object_parse(object);

        if (json)
                put_partial(s, json);
        hf__json_free(json);
        return json && s->error == 0;
}

struct hf__buf *hfd_table_render_partial(const struct hfd_object *object) {
        struct hf__strbuf s = {0};
        struct hf__buf *buf = hfd_table_put_partial(&s, object) ? hf__strbuf_to_buf(&s) : NULL;

        hf__strbuf_done(&s);
        return buf;
}

/* ---- Table ---- */

static void put_columns(struct hf__strbuf *s, const struct hfd_resource *resource) {
        hf__strbuf_puts(s, "\"columnDefinitions\":[");
        for (size_t i = 0; i < HFD_COLUMNS_MAX && resource->columns[i].name; i++) {
                const struct hfd_column *c = &resource->columns[i];
                hf__strbuf_printf(s,
                                  "%s{\"name\":\"%s\",\"type\":\"%s\",\"format\":\"%s\","
                                  "\"description\":\"%s\",\"priority\":%d}",
                                  i ? "," : "", c->name, c->type, c->format, c->name, c->wide);
        }
        hf__strbuf_putc(s, ']');
}

/* json is the parsed form of object. */
static void put_row(struct hf__strbuf *s, const struct hfd_request *request,
                    const struct hfd_object *object, const struct hf__json *json, int64_t now_s) {
        hf__strbuf_puts(s, "{\"cells\":[");
        for (size_t i = 0; i < HFD_COLUMNS_MAX && request->resource->columns[i].name; i++) {
                if (i)
                        hf__strbuf_putc(s, ',');
                put_cell(s, json, request->resource->columns[i].path, now_s);
        }
        hf__strbuf_puts(s, "],\"object\":");
        if (request->options.include == HFD_INCLUDE_OBJECT)
                hf__strbuf_add(s, object->bytes->data, object->bytes->n);
        else if (request->options.include == HFD_INCLUDE_NONE)
                hf__strbuf_puts(s, "null");
        else
                put_partial(s, json);
        hf__strbuf_putc(s, '}');
}

void hfd_table_put_head(struct hf__strbuf *s, const struct hfd_request *request,
                        const char *list_meta) {
        hf__strbuf_printf(s,
                          "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
                          "%s\",\"metadata\":{%s},",
                          *request->table_version ? request->table_version : "v1", list_meta);
        put_columns(s, request->resource);
        hf__strbuf_puts(s, ",\"rows\":[");
}

bool hfd_table_put_row(struct hf__strbuf *s, const struct hfd_request *request,
                       const struct hfd_object *object, int64_t now_s) {
        struct hf__json *json = hfd_object_parse(object);

        if (json)
                put_row(s, request, object, json, now_s);
        hf__json_free(json);
        return json && s->error == 0;
}

bool hfd_table_put_event(struct hf__strbuf *s, const struct hfd_request *request,
                         const struct hfd_object *object, int64_t now_s) {
        char meta[64];

        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", object->revision);
        hfd_table_put_head(s, request, meta);
        bool good = hfd_table_put_row(s, request, object, now_s);
        hf__strbuf_puts(s, "]}");
        return good;
}

struct hf__buf *hfd_table_render(struct hfd_registry *registry, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta) {
        const struct hf_clock *clock = hf_host_clock(registry->host);
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC; /* the same for all rows */
        struct hf__strbuf s = {.max = TABLE_MAX_BYTES};
        bool good = true;

        hfd_table_put_head(&s, request, list_meta);
        for (size_t i = 0; i < n && good; i++) {
                if (i > 0)
                        hf__strbuf_putc(&s, ',');
                good = hfd_table_put_row(&s, request, objects[i], now_s);
        }
        hf__strbuf_puts(&s, "]}");
        struct hf__buf *buf = good ? hf__strbuf_to_buf(&s) : NULL;
        hf__strbuf_done(&s);
        return buf;
}
