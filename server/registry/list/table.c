/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders Tables for kubectl, and PartialObjectMetadata. The columns of a kind are in its
 * struct hfd_resource (resource.h).
 *
 * Invariant: of the formats in JSON, only Tables and PartialObjectMetadata parse objects. All other
 * reads copy or send the bytes of an object in the stored version, so that a plain get or list
 * costs no parsing. (Selectors, another version or an older definition of the kind
 * (forms/conversion.c), indenting and protobuf may cost it.)
 */
#include "server/registry/list/table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/registry/list/cells/component_cells.h"
#include "server/registry/list/cells/custom_cells.h"
#include "server/registry/list/cells/event_cells.h"
#include "server/registry/list/cells/policy_cells.h"
#include "server/registry/list/cells/workload_cells.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"

#define TABLE_MAX_BYTES (512u << 20) /* of a Table that is made at once; a larger one fails */
/* In place of the columns in an event of a watch; hfd_table_with_columns searches for it. */
#define NO_COLUMNS "\"columnDefinitions\":null"

/* ---- cells ---- */

static void put_text(struct hf__strbuf *s, const char *text) {
        hf__strbuf_json(s, text, strlen(text));
}

/* Appends the time since the creation; "<unknown>" if the object has no time. */
static void put_age(struct hf__strbuf *s, const struct hf__json *object, int64_t now_s) {
        const char *text = hf__json_string(object, "metadata.creationTimestamp");
        char age[HF__AGE_MAX] = "<unknown>";
        int64_t then;

        if (text && hf__time_parse(text, &then) == 0)
                hf__age_format(now_s - then, age);
        put_text(s, age);
}

static void put_duration(struct hf__strbuf *s, const struct hf__json *object, const char *path) {
        char text[HF__AGE_MAX] = "<none>";
        int64_t seconds;

        if (hf__json_i64(object, path, &seconds))
                hf__age_format(seconds, text);
        put_text(s, text);
}

static void put_certificate_state(struct hf__strbuf *s, const struct hf__json *object) {
        const struct hf__json *status = hf__json_get(object, "status");
        const char *certificate = hf__json_string(status, "certificate");
        bool approved = false, denied = false, failed = false;
        char text[64];

        for (const struct hf__json *m = hf__json_first(hf__json_get(status, "conditions")); m;
             m = hf__json_next(m)) {
                approved = approved || hf__json_has_text(m, "type", "Approved");
                denied = denied || hf__json_has_text(m, "type", "Denied");
                failed = failed || hf__json_has_text(m, "type", "Failed");
        }
        if (!denied)
                (void)hf__join(text, sizeof text, approved ? "Approved" : "Pending",
                               failed ? ",Failed" : "",
                               certificate && *certificate ? ",Issued" : "", NULL);
        else
                (void)hf__join(text, sizeof text, "Denied", failed ? ",Failed" : "",
                               certificate && *certificate ? ",Issued" : "", NULL);
        put_text(s, text);
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

/* The template of pods that an object contains. NULL = none. */
static const struct hf__json *find_template(const struct hf__json *object) {
        static const char *const paths[] = {"template", "spec.template",
                                            "spec.jobTemplate.spec.template"};
        const struct hf__json *template = NULL;

        for (size_t i = 0; i < sizeof paths / sizeof paths[0] && !template; i++)
                template = hf__json_path(object, paths[i]);
        return template;
}

/* Appends a member of each container of a template: "a,b". */
static void put_containers(struct hf__strbuf *s, const struct hf__json *object, const char *key) {
        struct hf__strbuf names = {0};

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(find_template(object), "spec.containers"));
             m; m = hf__json_next(m)) {
                const char *name = hf__json_string(m, key);
                hf__strbuf_printf(&names, "%s%s", names.n ? "," : "", name ? name : "");
        }
        put_text(s, names.data ? names.data : "");
        if (names.error)
                s->error = names.error;
        hf__strbuf_done(&names);
}

/* Appends labels, sorted by key: "a=b,c=d". */
static void put_labels(struct hf__strbuf *s, const struct hf__json *object, const char *path) {
        struct hf__json_index labels;
        struct hf__strbuf text = {0};
        int r = hf__json_index_init(&labels, hf__json_path(object, path), NULL);

        for (size_t i = 0; r == 0 && i < labels.n; i++) {
                const char *value = hf__json_text(labels.entries[i].item);
                hf__strbuf_printf(&text, "%s%s=%s", i > 0 ? "," : "", labels.entries[i].text,
                                  value ? value : "");
        }
        put_text(s, text.data ? text.data : "<none>");
        if (r != 0 || text.error != 0)
                s->error = -ENOMEM;
        hf__strbuf_done(&text);
        hf__json_index_done(&labels);
}

/* Appends "kind/name" of the role of a binding. */
static void put_role(struct hf__strbuf *s, const struct hf__json *object) {
        const char *kind = hf__json_string(object, "roleRef.kind"),
                   *name = hf__json_string(object, "roleRef.name");
        char text[600];

        (void)snprintf(text, sizeof text, "%s/%s", kind ? kind : "", name ? name : "");
        put_text(s, text);
}

/* Appends the service that an APIService names. */
static void put_service(struct hf__strbuf *s, const struct hf__json *object) {
        const struct hf__json *service = hf__json_path(object, "spec.service");
        const char *ns = hf__json_string(service, "namespace"),
                   *name = hf__json_string(service, "name");
        char text[600];

        (void)snprintf(text, sizeof text, "%s/%s", ns ? ns : "", name ? name : "");
        put_text(s, service ? text : "Local");
}

/* Appends whether an APIService is available, and why not. */
static void put_available(struct hf__strbuf *s, const struct hf__json *object) {
        const struct hf__json *m = hf__json_first(hf__json_path(object, "status.conditions"));
        const char *status, *reason;
        char text[200];

        while (m && !hf__json_has_text(m, "type", "Available"))
                m = hf__json_next(m);
        status = hf__json_string(m, "status");
        reason = hf__json_string(m, "reason");
        (void)snprintf(text, sizeof text, "%.60s (%.120s)", status ? status : "",
                       reason ? reason : "");
        if (!status)
                put_text(s, "Unknown");
        else
                put_text(s, strcmp(status, "True") == 0 || !reason || !*reason ? status : text);
}

/* Appends the status of Dangling: whether the priority level of a FlowSchema is missing. */
static void put_dangling(struct hf__strbuf *s, const struct hf__json *object) {
        const struct hf__json *m = hf__json_first(hf__json_path(object, "status.conditions"));
        const char *status;

        while (m && !hf__json_has_text(m, "type", "Dangling"))
                m = hf__json_next(m);
        status = hf__json_string(m, "status");
        put_text(s, status ? status : "?");
}

/*
 * Appends the usage and the limits of a quota: "configmaps: 3/5, pods: 0/10", sorted by name.
 * of_limits: only the names that begin with "limits."; false: only the others.
 */
static void put_quota(struct hf__strbuf *s, const struct hf__json *object, bool of_limits) {
        struct hf__json_index hard, used;
        struct hf__strbuf text = {0};
        int r = hf__json_index_init(&hard, hf__json_path(object, "status.hard"), NULL),
            used_r = hf__json_index_init(&used, hf__json_path(object, "status.used"), NULL);

        for (size_t i = 0; r == 0 && used_r == 0 && i < hard.n; i++) {
                const char *name = hard.entries[i].text,
                           *limit = hf__json_text(hard.entries[i].item);
                const struct hf__json_index_entry *entry = hf__json_index_find(&used, name);
                const char *now = entry ? hf__json_text(entry->item) : NULL;
                if ((strncmp(name, "limits.", 7) == 0) == of_limits)
                        hf__strbuf_printf(&text, "%s%s: %s/%s", text.n ? ", " : "", name,
                                          now ? now : "0", limit ? limit : "0");
        }
        put_text(s, text.data ? text.data : "");
        if (r != 0 || used_r != 0 || text.error != 0)
                s->error = -ENOMEM;
        hf__strbuf_done(&text);
        hf__json_index_done(&hard);
        hf__json_index_done(&used);
}

/*
 * Appends one cell. path is the path of a string in the object, or one of these:
 *
 *      @age                the time since the creation
 *      @available          whether an APIService is available
 *      @boolean:<path>     false if it is absent
 *      @component:<what>   see component_cells.h
 *      @containers:<key>   a member of each container of a template
 *      @count:<path>       the number of members
 *      @event:<what>       see event_cells.h
 *      @integer:<path>     0 if it is absent
 *      @integer-or-none:<path>     "<none>" if it is absent
 *      @dangling           whether the priority level of a FlowSchema is missing
 *      @labels:<path>      labels
 *      @quota:<part>       the usage of a quota: of "limits", or of all others ("requests")
 *      @certificate        the state of a certificate request: "Approved,Issued"
 *      @duration:<path>    a number of seconds as a duration; "<none>" if there is none
 *      @params:<what>      "kind": the kind of params of a policy; "ref": the params of a binding
 *      @role               the role of a binding
 *      @service            the service of an APIService
 *      @subjects:<kind>    the subjects of a binding
 *
 * or one of workload_cells.h.
 */
static void put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *path,
                     int64_t now_s) {
        const char *text;
        int64_t number = 0;

        if (strcmp(path, "@age") == 0) {
                put_age(s, object, now_s);
        } else if (strncmp(path, "@event:", 7) == 0) {
                hfd_event_put_cell(s, object, path + 7, now_s);
        } else if (strncmp(path, "@component:", 11) == 0) {
                hfd_component_put_cell(s, object, path + 11);
        } else if (strncmp(path, "@count:", 7) == 0) {
                hf__strbuf_u64(s, hf__json_count(hf__json_path(object, path + 7)));
        } else if (strncmp(path, "@containers:", 12) == 0) {
                put_containers(s, object, path + 12);
        } else if (strncmp(path, "@labels:", 8) == 0) {
                put_labels(s, object, path + 8);
        } else if (strncmp(path, "@integer:", 9) == 0) {
                (void)hf__json_i64(object, path + 9, &number);
                hf__strbuf_printf(s, "%" PRId64, number);
        } else if (strncmp(path, "@integer-or-none:", 17) == 0) {
                if (hf__json_i64(object, path + 17, &number))
                        hf__strbuf_printf(s, "%" PRId64, number);
                else
                        put_text(s, "<none>");
        } else if (strncmp(path, "@boolean:", 9) == 0) {
                hf__strbuf_puts(s, hf__json_bool(object, path + 9, false) ? "true" : "false");
        } else if (strncmp(path, "@subjects:", 10) == 0) {
                put_subjects(s, object, path + 10);
        } else if (strncmp(path, "@quota:", 7) == 0) {
                put_quota(s, object, strcmp(path + 7, "limits") == 0);
        } else if (strcmp(path, "@params:kind") == 0) {
                hfd_policy_put_param_kind(s, object);
        } else if (strcmp(path, "@params:ref") == 0) {
                hfd_policy_put_param_ref(s, object);
        } else if (strcmp(path, "@role") == 0) {
                put_role(s, object);
        } else if (strcmp(path, "@service") == 0) {
                put_service(s, object);
        } else if (strcmp(path, "@available") == 0) {
                put_available(s, object);
        } else if (strncmp(path, "@duration:", 10) == 0) {
                put_duration(s, object, path + 10);
        } else if (strcmp(path, "@dangling") == 0) {
                put_dangling(s, object);
        } else if (strcmp(path, "@certificate") == 0) {
                put_certificate_state(s, object);
        } else if (!hfd_workload_put_cell(s, object, path, now_s)) {
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

static void put_description(struct hf__strbuf *s, const struct hfd_resource *resource,
                            const struct hfd_column *column) {
        struct hf__strbuf text = {0};

        if (column->description || !resource->custom) {
                put_text(s, column->description ? column->description : column->name);
                return;
        }
        hf__strbuf_printf(&text, "Custom resource definition column (in JSONPath format): %s",
                          column->path);
        put_text(s, text.data ? text.data : "");
        hf__strbuf_done(&text);
}

static void put_columns(struct hf__strbuf *s, const struct hfd_resource *resource) {
        hf__strbuf_puts(s, "\"columnDefinitions\":[");
        size_t n;
        const struct hfd_column *columns = hfd_resource_columns(resource, &n);

        for (size_t i = 0; i < n; i++) {
                const struct hfd_column *c = &columns[i];
                hf__strbuf_puts(s, i ? ",{\"name\":" : "{\"name\":");
                put_text(s, c->name);
                hf__strbuf_puts(s, ",\"type\":");
                put_text(s, c->type);
                hf__strbuf_puts(s, ",\"format\":");
                put_text(s, c->format);
                hf__strbuf_puts(s, ",\"description\":");
                put_description(s, resource, c);
                hf__strbuf_printf(s, ",\"priority\":%d}", c->priority != 0 ? c->priority : c->wide);
        }
        hf__strbuf_putc(s, ']');
}

/*
 * Appends a row. object: in the version of the request; NULL = json is not stored, like a Scale.
 * json: the parsed object. The columns of a built-in kind have the paths of the stored version, so
 * then json has that version.
 */
static void put_row(struct hf__strbuf *s, const struct hfd_request *request,
                    const struct hfd_object *object, const struct hf__json *json, int64_t now_s) {
        size_t n;
        const struct hfd_column *columns = hfd_resource_columns(request->resource, &n);

        hf__strbuf_puts(s, "{\"cells\":[");
        for (size_t i = 0; i < n; i++) {
                if (i)
                        hf__strbuf_putc(s, ',');
                if (request->resource->custom)
                        hfd_custom_put_cell(s, &columns[i], json, now_s);
                else
                        put_cell(s, json, columns[i].path, now_s);
        }
        hf__strbuf_puts(s, "],\"object\":");
        if (request->options.include == HFD_INCLUDE_OBJECT && object)
                hf__strbuf_add(s, object->bytes->data, object->bytes->n);
        else if (request->options.include == HFD_INCLUDE_OBJECT)
                hf__json_print(json, s);
        else if (request->options.include == HFD_INCLUDE_NONE)
                hf__strbuf_puts(s, "null");
        else
                put_partial(s, json);
        hf__strbuf_putc(s, '}');
}

void hfd_table_put_head(struct hf__strbuf *s, const struct hfd_request *request,
                        const char *list_meta, bool with_columns) {
        hf__strbuf_printf(s,
                          "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
                          "%s\",\"metadata\":{%s},",
                          *request->table_version ? request->table_version : "v1", list_meta);
        if (with_columns)
                put_columns(s, request->resource);
        else
                hf__strbuf_puts(s, NO_COLUMNS);
        hf__strbuf_puts(s, ",\"rows\":[");
}

/* The request's version is shown. The cells of a custom resource are made from that version, too,
 * those of a built-in kind from the stored one (put_row). */
bool hfd_table_put_row(struct hf__strbuf *s, const struct hfd_request *request,
                       struct hfd_object *object, int64_t now_s) {
        struct hfd_object *converted = hfd_conversion_object(request->resource, object);
        const struct hfd_object *shown = request->resource->custom ? converted : object;
        struct hf__json *json = shown ? hfd_object_parse(shown) : NULL;
        bool good = json && converted;

        if (good)
                put_row(s, request, converted, json, now_s);
        hfd_object_unref(converted);
        hf__json_free(json);
        return good && s->error == 0;
}

struct hf__buf *hfd_table_render_json(struct hfd_registry *registry,
                                      const struct hfd_request *request,
                                      const struct hf__json *json) {
        const struct hf_clock *clock = hf_host_clock(registry->host);
        const char *version = hf__json_string(json, "metadata.resourceVersion");
        struct hf__strbuf s = {0};
        char meta[64];

        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%.20s\"", version ? version : "");
        hfd_table_put_head(&s, request, meta, true);
        put_row(&s, request, NULL, json, clock->real(clock->ctx) / HF_NSEC_PER_SEC);
        hf__strbuf_puts(&s, "]}");
        struct hf__buf *buf = s.error == 0 ? hf__strbuf_to_buf(&s) : NULL;
        hf__strbuf_done(&s);
        return buf;
}

bool hfd_table_put_event(struct hf__strbuf *s, const struct hfd_request *request,
                         struct hfd_object *object, int64_t now_s) {
        char meta[64];

        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", object->revision);
        hfd_table_put_head(s, request, meta, false);
        bool good = hfd_table_put_row(s, request, object, now_s);
        hf__strbuf_puts(s, "]}");
        return good;
}

/* Appends an object that has only a resourceVersion, and, if initial_end, the annotation that ends
 * the initial events. */
static void put_bookmark_object(struct hf__strbuf *s, const struct hfd_resource *resource,
                                uint64_t revision, bool initial_end) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        hf__strbuf_printf(s,
                          "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                          "\"resourceVersion\":\"%" PRIu64 "\"%s}}",
                          resource->kind, version, revision,
                          initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                                      : "");
}

void hfd_table_put_bookmark(struct hf__strbuf *s, const struct hfd_request *request,
                            uint64_t revision, bool initial_end, int64_t now_s) {
        struct hfd_request form = {.resource = request->resource};
        struct hf__strbuf text = {0};
        struct hf__json *json = NULL;
        char meta[64];

        put_bookmark_object(&text, request->resource, revision, initial_end);
        if (text.error != 0 || hf__json_parse(text.data, text.n, &json, NULL) != 0) {
                s->error = -ENOMEM;
                hf__strbuf_done(&text);
                return;
        }
        /* As in Kubernetes, a client that wants no objects gets the annotation all the same. */
        form.options.include = request->options.include;
        if (initial_end && form.options.include == HFD_INCLUDE_NONE)
                form.options.include = HFD_INCLUDE_METADATA;
        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", revision);
        hfd_table_put_head(s, request, meta, false);
        put_row(s, &form, NULL, json, now_s);
        hf__strbuf_puts(s, "]}");
        hf__json_free(json);
        hf__strbuf_done(&text);
}

struct hf__buf *hfd_table_with_columns(const struct hfd_request *request,
                                       const struct hf__buf *frames) {
        const size_t n = sizeof NO_COLUMNS - 1;
        /* The first match is in the first event: no text of a client precedes it. */
        const char *at = memmem(frames->data, frames->n, NO_COLUMNS, n);
        struct hf__strbuf s = {0};

        assert(at);
        size_t before = (size_t)(at - frames->data);
        hf__strbuf_add(&s, frames->data, before);
        put_columns(&s, request->resource);
        hf__strbuf_add(&s, at + n, frames->n - before - n);
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

struct hf__buf *hfd_table_render(struct hfd_registry *registry, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta) {
        const struct hf_clock *clock = hf_host_clock(registry->host);
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC; /* the same for all rows */
        struct hf__strbuf s = {.max = TABLE_MAX_BYTES};
        bool good = true;

        hfd_table_put_head(&s, request, list_meta, true);
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
