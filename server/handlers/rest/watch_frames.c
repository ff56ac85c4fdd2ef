/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the frames of a watch. While a change is delivered, all watches of plain objects that get
 * it share one frame for each kind of event, in JSON and in protobuf (hfd_object_frame), if they
 * want the object in the version in which it is cached. All other frames are made for one watch.
 *
 * Invariant: in JSON a frame is exactly one line.
 */
#include "server/handlers/rest/watch_frames.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "server/registry/list/rendering.h"
#include "server/registry/list/table.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/protobuf_response.h"

void hfd_watch_form_of(const struct hfd_request *request, struct hfd_watch_form *ret_form) {
        const struct hfd_options *options = &request->options;

        *ret_form = (struct hfd_watch_form){.resource = request->resource,
                                            .format = request->format,
                                            .include = options->include,
                                            .protobuf = request->protobuf,
                                            .marks_initial_end = options->has_send_initial &&
                                                                 options->bookmarks};
        (void)snprintf(ret_form->table_version, sizeof ret_form->table_version, "%s",
                       request->table_version);
}

/* ---- bookmarks ---- */

/*
 * Appends an object that has only a resourceVersion. initial_end: its annotation says that it
 * follows the last initial event.
 */
static void put_bookmark_object(struct hf__strbuf *s, const char *kind, const char *version,
                                uint64_t revision, bool initial_end) {
        hf__strbuf_printf(s,
                          "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                          "\"resourceVersion\":\"%" PRIu64 "\"%s}}",
                          kind, version, revision,
                          initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                                      : "");
}

/* The request as far as its Tables depend on it. */
static void make_table_request(const struct hfd_watch_form *form, struct hfd_request *ret_request) {
        *ret_request = (struct hfd_request){.resource = form->resource,
                                            .format = form->format,
                                            .options.include = form->include};
        (void)snprintf(ret_request->table_version, sizeof ret_request->table_version, "%s",
                       form->table_version);
}

/* A bookmark in the format of the watch. */
static struct hf__buf *make_bookmark(struct hfd_registry *registry,
                                     const struct hfd_watch_form *form, uint64_t revision,
                                     bool initial_end) {
        struct hf__strbuf s = {0};
        struct hfd_request request;
        char version[HFD_API_VERSION_MAX];

        hf__strbuf_puts(&s, "{\"type\":\"BOOKMARK\",\"object\":");
        hfd_resource_api_version(form->resource, version);
        if (form->format == HFD_AS_TABLE) {
                make_table_request(form, &request);
                hfd_table_put_bookmark(&s, &request, revision, initial_end,
                                       hfd_rendering_now(registry));
        } else if (form->format == HFD_AS_PARTIAL) {
                put_bookmark_object(&s, "PartialObjectMetadata", "meta.k8s.io/v1", revision,
                                    initial_end);
        } else {
                put_bookmark_object(&s, form->resource->kind, version, revision, initial_end);
        }
        hf__strbuf_puts(&s, "}\n");
        struct hf__buf *frame = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return frame;
}

/* Converts a frame to the form that the client gets. Takes ownership of json, which may be NULL.
 * NULL = out of memory, or json has no form in protobuf. */
static struct hf__buf *convert_frame(const struct hfd_watch_form *form, struct hf__buf *json) {
        struct hf__buf *frame = NULL;

        if (!json || !form->protobuf)
                return json;
        (void)hfd_protobuf_convert_frame(form->resource, json, &frame);
        hf__buf_unref(json);
        return frame;
}

struct hf__buf *hfd_watch_frame_initial_end(struct hfd_registry *registry,
                                            const struct hfd_watch_form *form, uint64_t revision) {
        return convert_frame(form, make_bookmark(registry, form, revision, true));
}

/* ---- events ---- */

/*
 * Makes a frame for a Table or a PartialObjectMetadata, which was made for this watch only. Takes
 * ownership of object, which may be NULL. NULL = out of memory.
 */
static struct hf__buf *make_frame(enum hf_event_type type, struct hf__buf *object) {
        struct hf__strbuf s = {0};

        if (!object)
                return NULL;
        hf__strbuf_printf(&s, "{\"type\":\"%s\",\"object\":", hfd_event_type_name(type));
        hf__strbuf_add(&s, object->data, object->n);
        hf__strbuf_puts(&s, "}\n");
        struct hf__buf *frame = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        hf__buf_unref(object);
        return frame;
}

/* The Table of an event. NULL = out of memory. */
static struct hf__buf *make_table(struct hfd_registry *registry, const struct hfd_watch_form *form,
                                  const struct hfd_watch_item *item) {
        struct hf__strbuf s = {0};
        struct hf__buf *table = NULL;
        struct hfd_request request;

        make_table_request(form, &request);
        if (hfd_table_put_event(&s, &request, item->object, hfd_rendering_now(registry)))
                table = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return table;
}

/* The frame of one event, unless watches share it. */
static struct hf__buf *make_own_frame(struct hfd_registry *registry,
                                      const struct hfd_watch_form *form,
                                      const struct hfd_watch_item *item) {
        if (!item->object)
                return make_bookmark(registry, form, item->revision, false);
        if (form->format == HFD_AS_PARTIAL)
                return make_frame(item->type, hfd_table_render_partial(item->object));
        assert(form->format == HFD_AS_TABLE);
        return make_frame(item->type, make_table(registry, form, item));
}

struct hf__buf *hfd_watch_frame(struct hfd_registry *registry, const struct hfd_watch_form *form,
                                const struct hfd_watch_item *item) {
        if (!item->object || form->format != HFD_AS_JSON)
                return convert_frame(form, make_own_frame(registry, form, item));
        struct hfd_object *object = hfd_conversion_object(form->resource, item->object);
        struct hf__buf *frame = NULL;
        if (object && form->protobuf)
                frame = hfd_object_protobuf_frame(object, item->type);
        else if (object)
                frame = hfd_object_frame(object, item->type);
        hfd_object_unref(object);
        return frame;
}

struct hf__buf *hfd_watch_frame_with_columns(const struct hfd_watch_form *form,
                                             const struct hf__buf *frames) {
        struct hfd_request request;

        make_table_request(form, &request);
        return hfd_table_with_columns(&request, frames);
}

/* The newline of status moves to the end. */
struct hf__buf *hfd_watch_frame_error(const struct hfd_watch_form *form,
                                      const struct hf__buf *status) {
        struct hf__strbuf s = {0};
        size_t n = status->n;

        if (n > 0 && status->data[n - 1] == '\n')
                n--;
        hf__strbuf_puts(&s, "{\"type\":\"ERROR\",\"object\":");
        hf__strbuf_add(&s, status->data, n);
        hf__strbuf_puts(&s, "}\n");
        struct hf__buf *frame = convert_frame(form, hf__strbuf_to_buf(&s));
        hf__strbuf_done(&s);
        return frame;
}
