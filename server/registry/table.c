/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and PartialObjectMetadata: the only reads that parse. */
#include "server/registry/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

/* The field's short durations: 45s, 12m, 5h30m, 3d, 2y. */
static void human_duration(int64_t s, char text[32]) {
        if (s < 0)
                s = 0;
        if (s < 120)
                (void)snprintf(text, 32, "%" PRId64 "s", s);
        else if (s < 600)
                (void)snprintf(text, 32, s % 60 ? "%" PRId64 "m%" PRId64 "s" : "%" PRId64 "m",
                               s / 60, s % 60);
        else if (s < 3 * 3600)
                (void)snprintf(text, 32, "%" PRId64 "m", s / 60);
        else if (s < 8 * 3600 && s % 3600 >= 60)
                (void)snprintf(text, 32, "%" PRId64 "h%" PRId64 "m", s / 3600, s % 3600 / 60);
        else if (s < 48 * 3600)
                (void)snprintf(text, 32, "%" PRId64 "h", s / 3600);
        else if (s < 8 * 86400 && s % 86400 >= 3600)
                (void)snprintf(text, 32, "%" PRId64 "d%" PRId64 "h", s / 86400, s % 86400 / 3600);
        else if (s < 2 * 365 * 86400)
                (void)snprintf(text, 32, "%" PRId64 "d", s / 86400);
        else
                (void)snprintf(text, 32, "%" PRId64 "y", s / (365 * 86400));
}

static void put_text(struct hf__strbuf *s, const char *text) {
        hf__strbuf_json(s, text, strlen(text));
}

static void put_age(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                    int64_t now_s) {
        const char *text = hf__json_string(object, path);
        char age[32] = "<unknown>";
        int64_t then;

        if (!text || hf__time_parse(text, &then))
                text = hf__json_string(object, "metadata.creationTimestamp");
        if (text && !hf__time_parse(text, &then))
                human_duration(now_s - then, age);
        put_text(s, age);
}

/* Who is bound, of one kind: `a, b`; service accounts as `ns/name`. */
static void put_subjects(struct hf__strbuf *s, const struct hf__json *object, const char *kind) {
        struct hf__strbuf names = {0};

        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name"),
                           *ns = hf__json_string(m, "namespace"), *of = hf__json_string(m, "kind");
                if (!of || strcmp(of, kind) != 0 || !name)
                        continue;
                hf__strbuf_printf(&names, "%s%s%s%s", names.n ? ", " : "",
                                  ns && strcmp(kind, "ServiceAccount") == 0 ? ns : "",
                                  strcmp(kind, "ServiceAccount") == 0 ? "/" : "", name);
        }
        put_text(s, names.data ? names.data : "");
        if (names.error)
                s->error = names.error;
        hf__strbuf_done(&names);
}

/*
 * A cell: the text at a path, or "@age" (since creation, or "@age:<path>"), "@count:<path>",
 * "@object" (of an Event),
 * "@role" (of a binding), "@subjects:<kind>".
 */
static void put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                     int64_t now_s) {
        char text[600];

        if (strncmp(path, "@age", 4) == 0) {
                put_age(s, object, path[4] ? path + 5 : "metadata.creationTimestamp", now_s);
        } else if (strncmp(path, "@count:", 7) == 0) {
                hf__strbuf_u64(s, hf__json_count(hf__json_path(object, path + 7)));
        } else if (strncmp(path, "@subjects:", 10) == 0) {
                put_subjects(s, object, path + 10);
        } else if (strcmp(path, "@role") == 0) {
                const char *kind = hf__json_string(object, "roleRef.kind"),
                           *name = hf__json_string(object, "roleRef.name");
                (void)snprintf(text, sizeof text, "%s/%s", kind ? kind : "", name ? name : "");
                put_text(s, text);
        } else if (strcmp(path, "@object") == 0) {
                const char *kind = hf__json_string(object, "involvedObject.kind"),
                           *name = hf__json_string(object, "involvedObject.name");
                (void)snprintf(text, sizeof text, "%s/%s", kind ? kind : "", name ? name : "");
                for (char *c = text; *c && *c != '/'; c++)
                        if (*c >= 'A' && *c <= 'Z')
                                *c = (char)(*c - 'A' + 'a');
                put_text(s, text);
        } else {
                const char *value = hf__json_string(object, path);
                put_text(s, value ? value : "");
        }
}

static void put_partial(struct hf__strbuf *s, const struct hf__json *object) {
        hf__strbuf_puts(s, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/"
                           "v1\",\"metadata\":");
        hf__json_print(hf__json_get(object, "metadata"), s);
        hf__strbuf_putc(s, '}');
}

struct hf__buf *hfd_table_render_partial(const struct hfd_object *object) {
        struct hf__json *json = hfd_object_parse(object);
        struct hf__strbuf s = {0};

        if (!json)
                return NULL;
        put_partial(&s, json);
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        hf__json_free(json);
        return buf;
}

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

struct hf__buf *hfd_table_render(struct hfd_registry *registry, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta) {
        const struct hf_clock *clock = hf_host_clock(registry->host);
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC;
        struct hf__strbuf s = {.max = 512u << 20};
        bool good = true;

        hf__strbuf_printf(&s,
                          "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
                          "%s\",\"metadata\":{%s},",
                          *request->table_version ? request->table_version : "v1", list_meta);
        put_columns(&s, request->resource);
        hf__strbuf_puts(&s, ",\"rows\":[");
        for (size_t i = 0; i < n && good; i++) {
                struct hf__json *json = hfd_object_parse(objects[i]);
                good = json != NULL;
                if (i)
                        hf__strbuf_putc(&s, ',');
                if (good)
                        put_row(&s, request, objects[i], json, now_s);
                hf__json_free(json);
        }
        hf__strbuf_puts(&s, "]}");
        struct hf__buf *buf = good ? hf__strbuf_to_buf(&s) : NULL;
        hf__strbuf_done(&s);
        return buf;
}
