/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects of a list, or the initial events of a watch, as bytes: in chunks of immutable bytes,
 * which are made while they are read. Only the latest chunks are in memory.
 *
 * Lists of the same state of the same tree (object_tree.h: the objects of one resource), with the
 * same API version, namespace, name, selectors and format, share one rendering, as long as one of
 * them is reading it. Watches share in the same way, but not with lists. Each reader has a cursor.
 * The latest chunks are kept for readers that are close behind; slower ones render them again. In a
 * Table the ages are those at the time when the rendering was created.
 *
 * Lock: hfd_renderings has one mutex, which guards the list of renderings and their kept chunks.
 * Nothing is rendered under it. Thread: any, but a cursor belongs to one thread at a time. Making a
 * chunk may take a millisecond, so it belongs on the pool of threads (work_pool.h).
 */
#include "base/strbuf.h"
#include "server/cacher/watch/snapshot.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

struct hfd_rendering;
struct hfd_renderings;

/* A chunk ends with the object that reaches this many bytes, or after so many examined objects. */
#define HFD_CHUNK_BYTES   ((size_t)32 << 10)
#define HFD_CHUNK_OBJECTS 256

struct hfd_rendering_spec {
        /* Borrowed during the call, which uses resource, ns, format, protobuf, table_version and
         * options.include. */
        const struct hfd_request *request;
        const struct hfd_selector *labels, *fields; /* copied; NULL = everything */
        const char *name;                           /* only this object; NULL = any */
        bool frames; /* false: items of a list; true: ADDED events of a watch */
};

struct hfd_rendering_cursor {
        const struct hfd_object *after; /* borrowed from the rendering; NULL = the start */
        size_t index;                   /* of the next object, for a rendering of an array */
        bool ended;
};

/* registry is borrowed. 0 or -errno. */
int hfd_renderings_new(struct hfd_registry *registry, struct hfd_renderings **ret_renderings);
/* All renderings must be gone. Accepts NULL; returns NULL. */
struct hfd_renderings *hfd_renderings_free(struct hfd_renderings *renderings);

/*
 * Returns a reference to the rendering of the snapshot's objects. Consumes the snapshot, also on an
 * error. 0 or -ENOMEM.
 */
int hfd_rendering_get(struct hfd_renderings *renderings, const struct hfd_rendering_spec *spec,
                      struct hfd_snapshot *snapshot, struct hfd_rendering **ret_rendering);
/*
 * The same for an array of objects, which are all rendered. It is not shared. Takes ownership of
 * the array and of the references in it, also on an error. objects NULL: the caller had no memory
 * for the array, and the result is -ENOMEM.
 */
int hfd_rendering_of_array(struct hfd_renderings *renderings, const struct hfd_rendering_spec *spec,
                           struct hfd_object **objects, size_t n,
                           struct hfd_rendering **ret_rendering);
struct hfd_rendering *hfd_rendering_ref(struct hfd_rendering *rendering);
/* May free many objects. Accepts NULL; returns NULL. */
struct hfd_rendering *hfd_rendering_unref(struct hfd_rendering *rendering);

/*
 * Sets *ret_chunk to a reference to the next chunk, and moves the cursor past it. In JSON each
 * item of a list begins with a comma, also the first one, and an event is a line. NULL: nothing was
 * selected among the objects that this call has examined, or cursor->ended was already set. The
 * list is complete when cursor->ended is set. 0, or -ENOMEM, also if the bytes of an object are
 * malformed; after an error the cursor is where it was.
 */
int hfd_rendering_next(struct hfd_rendering *rendering, struct hfd_rendering_cursor *cursor,
                       struct hf__buf **ret_chunk);

/* Appends `{"kind":...,"items":[`, or the same for a Table. meta: the members of the metadata. */
void hfd_rendering_put_head(struct hf__strbuf *s, const struct hfd_request *request,
                            const char *meta);
/* Appends one item of a list. now_s: the time for ages in a Table. False: out of memory, s is full
 * or the stored bytes are malformed; s->error may be 0. */
bool hfd_rendering_put_item(struct hf__strbuf *s, const struct hfd_request *request,
                            struct hfd_object *object, int64_t now_s);
/* The time for hfd_rendering_put_item, in seconds since 1970. */
int64_t hfd_rendering_now(const struct hfd_registry *registry);
