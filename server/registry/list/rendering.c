/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders lists, and the initial events of watches, in chunks that several requests share. Where a
 * chunk ends depends only on where it begins. So all readers, which begin at the start, have the
 * same chunks, and find those that another reader has made and that are still kept.
 *
 * A snapshot holds the root of a tree (object_tree.h). While it does, a change of the tree makes a
 * new root and leaves this one as it is. Each rendering holds a snapshot, so equal roots mean equal
 * objects. So two requests can share a rendering if no object of their resource has changed between
 * them, even if the store's revision has. The revision itself is in the head of the list, which is
 * not shared.
 *
 * Invariants: a rendering is in its bucket as long as it has references, unless it is of an array.
 * A chunk never changes. The kept chunks of all renderings together have KEPT_BYTES at most.
 */
#include "server/registry/list/rendering.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/thread.h"
#include "server/cacher/history/object_tree.h"
#include "server/registry/list/table.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/protobuf_response.h"

/* Of one rendering: 64 chunks of the usual size are 2 MB. A reader that is further behind renders
 * its chunks again. */
#define KEPT_CHUNKS 64
#define KEPT_BYTES  ((size_t)32 << 20) /* of all renderings together */
#define N_BUCKETS   256                /* bucket_of takes 8 bits of a hash */

/* The bytes of some consecutive objects, or none if the selectors have selected none of them. */
struct chunk {
        struct hfd_rendering_cursor start, end;
        struct hf__buf *bytes; /* owned */
};

struct hfd_rendering {
        atomic_int refs;
        struct hfd_renderings *all; /* borrowed */

        /* immutable */
        /* The members of the spec's request that rendering needs, and the spec's name. */
        struct hfd_request form;
        struct hfd_selector labels, fields; /* owned */
        bool frames;
        struct hfd_snapshot snapshot; /* owned */
        struct hfd_scope scope;       /* the paths of the snapshot that are walked */
        struct hfd_object **objects;  /* owned, with their references; NULL = use the snapshot */
        size_t n_objects;
        int64_t now_s; /* for ages in a Table: when the rendering was created */

        /* guarded by all->mu */
        struct hfd_rendering *next, *prev;
        struct chunk kept[KEPT_CHUNKS]; /* a ring; the oldest one is replaced first */
        size_t n_kept, first_kept;
};

struct hfd_renderings {
        struct hfd_registry *registry; /* borrowed */
        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_rendering *buckets[N_BUCKETS]; /* hashed by the snapshot's root */
        size_t n, kept_bytes;
};

int hfd_renderings_new(struct hfd_registry *registry, struct hfd_renderings **ret_renderings) {
        struct hfd_renderings *all = calloc(1, sizeof *all);

        if (!all)
                return -ENOMEM;
        all->registry = registry;
        int r = hf__mutex_init(&all->mu);
        if (r != 0) {
                free(all);
                return r;
        }
        *ret_renderings = all;
        return 0;
}

struct hfd_renderings *hfd_renderings_free(struct hfd_renderings *all) {
        if (!all)
                return NULL;
        assert(all->n == 0 && all->kept_bytes == 0);
        pthread_mutex_destroy(&all->mu);
        free(all);
        return NULL;
}

/* ---- bytes ---- */

int64_t hfd_rendering_now(const struct hfd_registry *registry) {
        const struct hf_clock *clock = hf_host_clock(registry->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

void hfd_rendering_put_head(struct hf__strbuf *s, const struct hfd_request *request,
                            const char *meta) {
        char version[HFD_API_VERSION_MAX];

        switch (request->format) {
        case HFD_AS_TABLE: hfd_table_put_head(s, request, meta, true); return;
        case HFD_AS_PARTIAL:
                hf__strbuf_printf(s,
                                  "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta."
                                  "k8s.io/v1\",\"metadata\":{%s},\"items\":[",
                                  meta);
                return;
        case HFD_AS_JSON: break;
        }
        hfd_resource_api_version(request->resource, version);
        const char *list_kind = request->resource->list_kind;
        hf__strbuf_printf(s,
                          "{\"kind\":\"%s%s\",\"apiVersion\":\"%s\",\"metadata\":{%s},"
                          "\"items\":[",
                          list_kind ? list_kind : request->resource->kind, list_kind ? "" : "List",
                          version, meta);
}

/* Appends the bytes of the object. untyped: without kind and apiVersion. */
static bool put_bytes(struct hf__strbuf *s, const struct hfd_resource *row,
                      struct hfd_object *object, bool untyped) {
        struct hfd_object *shown = hfd_conversion_object(row, object);
        size_t skipped = 0;

        if (!shown)
                return false;
        if (untyped) {
                hf__strbuf_putc(s, '{');
                skipped = hfd_object_typed_bytes(shown);
        }
        hf__strbuf_add(s, shown->bytes->data + skipped, shown->bytes->n - skipped);
        hfd_object_unref(shown);
        return s->error == 0;
}

/* In JSON, the items of a list of a built-in kind have no kind and apiVersion, as in Kubernetes:
 * the list has them. Clients fill them in. */
bool hfd_rendering_put_item(struct hf__strbuf *s, const struct hfd_request *request,
                            struct hfd_object *object, int64_t now_s) {
        switch (request->format) {
        case HFD_AS_TABLE: return hfd_table_put_row(s, request, object, now_s);
        case HFD_AS_PARTIAL: return hfd_table_put_partial(s, object);
        case HFD_AS_JSON: break;
        }
        return put_bytes(s, request->resource, object, !request->resource->custom);
}

/* Appends the object of an event. */
static bool put_event_object(struct hf__strbuf *s, const struct hfd_request *request,
                             struct hfd_object *object, int64_t now_s) {
        switch (request->format) {
        case HFD_AS_TABLE: return hfd_table_put_event(s, request, object, now_s);
        case HFD_AS_PARTIAL: return hfd_table_put_partial(s, object);
        case HFD_AS_JSON: break;
        }
        return put_bytes(s, request->resource, object, false);
}

/* Protobuf is made from JSON, so the object is parsed. */
static bool put_protobuf(const struct hfd_rendering *rendering, struct hf__strbuf *s,
                         struct hfd_object *object) {
        const struct hfd_request *form = &rendering->form;
        bool partial = form->format == HFD_AS_PARTIAL;
        struct hfd_object *converted = hfd_conversion_object(form->resource, object);
        struct hf__json *json = converted ? hfd_object_parse(converted) : NULL;

        if (json && rendering->frames)
                hfd_protobuf_put_frame(s, "ADDED", form->resource, partial, json);
        else if (json)
                hfd_protobuf_put_item(s, form->resource, partial, json);
        hf__json_free(json);
        hfd_object_unref(converted);
        return json && s->error == 0;
}

/* Appends one object as an item or as an event. False: out of memory, or its bytes are malformed.
 */
static bool put_object(const struct hfd_rendering *rendering, struct hf__strbuf *s,
                       struct hfd_object *object) {
        const struct hfd_request *form = &rendering->form;

        if (form->protobuf)
                return put_protobuf(rendering, s, object);
        if (!rendering->frames) {
                hf__strbuf_putc(s, ',');
                return hfd_rendering_put_item(s, form, object, rendering->now_s);
        }
        hf__strbuf_puts(s, "{\"type\":\"ADDED\",\"object\":");
        bool good = put_event_object(s, form, object, rendering->now_s);
        hf__strbuf_puts(s, "}\n");
        return good && s->error == 0;
}

/* Whether the object is rendered. 0 or -ENOMEM. */
static int select_object(const struct hfd_rendering *rendering, struct hfd_object *object,
                         bool *ret_selected) {
        const char *name = rendering->form.name;
        int r = 0;

        *ret_selected = true;
        if (rendering->objects) /* an array holds selected objects only */
                return 0;
        *ret_selected = *name == '\0' || strcmp(name, hfd_object_name(object)) == 0;
        if (*ret_selected)
                r = hfd_selector_matches(&rendering->labels, object, ret_selected);
        if (*ret_selected)
                r = hfd_selector_matches(&rendering->fields, object, ret_selected);
        return r;
}

/* Makes the chunk at the cursor. chunk->bytes is NULL if nothing was selected. 0, or -ENOMEM, also
 * if the bytes of an object are malformed. */
static int make_chunk(const struct hfd_rendering *rendering,
                      const struct hfd_rendering_cursor *cursor, struct chunk *chunk) {
        struct hfd_object_iter iter;
        struct hf__strbuf s = {0};
        struct hfd_object *object = NULL;
        bool good = true;

        *chunk = (struct chunk){.start = *cursor, .end = *cursor};
        if (!rendering->objects)
                hfd_object_iter_init(&iter, &rendering->snapshot.objects, &rendering->scope,
                                     cursor->after ? cursor->after->path : "");
        for (size_t i = 0; good && i < HFD_CHUNK_OBJECTS && s.n < HFD_CHUNK_BYTES; i++) {
                if (!rendering->objects)
                        object = hfd_object_iter_next(&iter);
                else if (chunk->end.index < rendering->n_objects)
                        object = rendering->objects[chunk->end.index++];
                else
                        object = NULL;
                if (!object) {
                        chunk->end.ended = true;
                        break;
                }
                chunk->end.after = object;
                bool selected;
                good = select_object(rendering, object, &selected) == 0;
                if (selected)
                        good = put_object(rendering, &s, object);
        }
        if (good && s.n > 0) {
                chunk->bytes = hf__strbuf_to_buf(&s);
                good = chunk->bytes != NULL;
        }
        hf__strbuf_done(&s);
        return good ? 0 : -ENOMEM;
}

/* ---- kept chunks ---- */

static const struct chunk *find_kept_locked(const struct hfd_rendering *rendering,
                                            const struct hfd_rendering_cursor *start) {
        hf__mutex_assert_held(&rendering->all->mu);
        for (size_t i = 0; i < rendering->n_kept; i++) {
                const struct chunk *chunk =
                        &rendering->kept[(rendering->first_kept + i) % KEPT_CHUNKS];
                if (chunk->start.after == start->after)
                        return chunk;
        }
        return NULL;
}

/* Removes the oldest kept chunk. The caller drops the returned reference without the lock. */
static struct hf__buf *drop_kept_locked(struct hfd_rendering *rendering) {
        struct hf__buf *bytes = rendering->kept[rendering->first_kept].bytes;

        hf__mutex_assert_held(&rendering->all->mu);
        assert(rendering->n_kept > 0);
        rendering->first_kept = (rendering->first_kept + 1) % KEPT_CHUNKS;
        rendering->n_kept--;
        rendering->all->kept_bytes -= bytes ? bytes->n : 0;
        return bytes;
}

/* Keeps the chunk for other readers. If the memory for kept chunks is used up, or the ring is full,
 * the rendering's own oldest chunk is dropped; if that does not make enough room, the new chunk is
 * not kept. */
static void keep_chunk(struct hfd_rendering *rendering, const struct chunk *chunk) {
        struct hfd_renderings *all = rendering->all;
        struct hf__buf *dropped = NULL;
        size_t n = chunk->bytes ? chunk->bytes->n : 0;

        pthread_mutex_lock(&all->mu);
        bool full = all->kept_bytes + n > KEPT_BYTES;
        if (rendering->n_kept == KEPT_CHUNKS || (full && rendering->n_kept > 0))
                dropped = drop_kept_locked(rendering);
        if (all->kept_bytes + n <= KEPT_BYTES && !find_kept_locked(rendering, &chunk->start)) {
                size_t at = (rendering->first_kept + rendering->n_kept) % KEPT_CHUNKS;
                rendering->kept[at] = *chunk;
                hf__buf_ref(chunk->bytes);
                rendering->n_kept++;
                all->kept_bytes += n;
        }
        pthread_mutex_unlock(&all->mu);
        hf__buf_unref(dropped);
}

int hfd_rendering_next(struct hfd_rendering *rendering, struct hfd_rendering_cursor *cursor,
                       struct hf__buf **ret_chunk) {
        struct chunk made;

        *ret_chunk = NULL;
        if (cursor->ended)
                return 0;
        if (!rendering->objects) {
                pthread_mutex_lock(&rendering->all->mu);
                const struct chunk *kept = find_kept_locked(rendering, cursor);
                if (kept) {
                        *ret_chunk = hf__buf_ref(kept->bytes);
                        *cursor = kept->end;
                }
                pthread_mutex_unlock(&rendering->all->mu);
                if (kept)
                        return 0;
        }
        int r = make_chunk(rendering, cursor, &made);
        if (r != 0)
                return r;
        if (!rendering->objects)
                keep_chunk(rendering, &made);
        *ret_chunk = made.bytes;
        *cursor = made.end;
        return 0;
}

/* ---- renderings ---- */

static void rendering_free(struct hfd_rendering *rendering) {
        for (size_t i = 0; i < rendering->n_kept; i++)
                hf__buf_unref(rendering->kept[(rendering->first_kept + i) % KEPT_CHUNKS].bytes);
        for (size_t i = 0; i < rendering->n_objects; i++)
                hfd_object_unref(rendering->objects[i]);
        free(rendering->objects);
        hfd_resource_unref(rendering->form.resource);
        hfd_snapshot_done(&rendering->snapshot);
        hfd_selector_done(&rendering->labels);
        hfd_selector_done(&rendering->fields);
        free(rendering);
}

struct hfd_rendering *hfd_rendering_ref(struct hfd_rendering *rendering) {
        assert(atomic_load_explicit(&rendering->refs, memory_order_relaxed) > 0);
        atomic_fetch_add_explicit(&rendering->refs, 1, memory_order_relaxed);
        return rendering;
}

static struct hfd_rendering **bucket_of(struct hfd_renderings *all,
                                        const struct hfd_rendering *rendering) {
        uint64_t root = (uint64_t)(uintptr_t)rendering->snapshot.objects.root;

        return &all->buckets[(root * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
}

/* References are dropped under the lock. So a rendering that hfd_rendering_get finds in a bucket,
 * under the same lock, still has a reference, and another one may be taken. */
struct hfd_rendering *hfd_rendering_unref(struct hfd_rendering *rendering) {
        if (!rendering)
                return NULL;
        struct hfd_renderings *all = rendering->all;
        pthread_mutex_lock(&all->mu);
        assert(atomic_load_explicit(&rendering->refs, memory_order_relaxed) > 0);
        bool last = atomic_fetch_sub_explicit(&rendering->refs, 1, memory_order_acq_rel) == 1;
        if (last) {
                for (size_t i = 0; i < rendering->n_kept; i++) {
                        const struct hf__buf *bytes =
                                rendering->kept[(rendering->first_kept + i) % KEPT_CHUNKS].bytes;
                        all->kept_bytes -= bytes ? bytes->n : 0;
                }
                if (rendering->prev)
                        rendering->prev->next = rendering->next;
                else if (!rendering->objects)
                        *bucket_of(all, rendering) = rendering->next;
                if (rendering->next)
                        rendering->next->prev = rendering->prev;
                assert(all->n > 0);
                all->n--;
        }
        pthread_mutex_unlock(&all->mu);
        if (last)
                rendering_free(rendering);
        return NULL;
}

HF__CLEANUP_DEFINE(rendering_cleanup, struct hfd_rendering *, rendering_free)

/* Makes a rendering that is in no bucket and has no objects yet. It copies what it needs of the
 * spec, because it may outlive the request. 0 or -ENOMEM. */
static int rendering_new(struct hfd_renderings *all, const struct hfd_rendering_spec *spec,
                         struct hfd_rendering **ret_rendering) {
        const struct hfd_request *request = spec->request;
        HF__CLEANUP(rendering_cleanup)
        struct hfd_rendering *rendering = calloc(1, sizeof *rendering);
        int r = 0;

        if (!rendering)
                return -ENOMEM;
        atomic_init(&rendering->refs, 1);
        rendering->all = all;
        rendering->frames = spec->frames;
        rendering->now_s = hfd_rendering_now(all->registry);
        rendering->form.resource = hfd_resource_ref(request->resource);
        rendering->form.format = request->format;
        rendering->form.protobuf = request->protobuf;
        rendering->form.options.include = request->options.include;
        (void)snprintf(rendering->form.ns, sizeof rendering->form.ns, "%s", request->ns);
        const char *name = spec->name, *ns = request->ns;
        if (!name && spec->fields)
                name = hfd_selector_name(spec->fields);
        if (spec->fields)
                ns = hfd_selector_namespace(spec->fields, ns);
        (void)snprintf(rendering->form.name, sizeof rendering->form.name, "%s",
                       spec->name ? spec->name : "");
        (void)snprintf(rendering->form.table_version, sizeof rendering->form.table_version, "%s",
                       request->table_version);
        hfd_object_scope(request->resource, ns, name, &rendering->scope);
        if (spec->labels)
                r = hfd_selector_copy(&rendering->labels, spec->labels);
        if (r == 0 && spec->fields)
                r = hfd_selector_copy(&rendering->fields, spec->fields);
        if (r != 0)
                return r;
        *ret_rendering = HF__TAKE(rendering);
        return 0;
}

/* Whether both have the same bytes: they differ neither in their objects nor in anything that
 * rendering depends on. Only the ages in a Table may lag, by the time for which the older one has
 * existed. */
static bool is_same(const struct hfd_rendering *a, const struct hfd_rendering *b) {
        return a->snapshot.objects.root == b->snapshot.objects.root &&
               a->form.resource == b->form.resource && a->frames == b->frames &&
               a->form.format == b->form.format && a->form.protobuf == b->form.protobuf &&
               a->form.options.include == b->form.options.include &&
               strcmp(a->form.table_version, b->form.table_version) == 0 &&
               strcmp(a->form.ns, b->form.ns) == 0 && strcmp(a->form.name, b->form.name) == 0 &&
               hfd_selector_equal(&a->labels, &b->labels) &&
               hfd_selector_equal(&a->fields, &b->fields);
}

int hfd_rendering_get(struct hfd_renderings *all, const struct hfd_rendering_spec *spec,
                      struct hfd_snapshot *snapshot, struct hfd_rendering **ret_rendering) {
        struct hfd_rendering *made = NULL;
        int r = rendering_new(all, spec, &made);

        if (r != 0) {
                hfd_snapshot_done(snapshot);
                return r;
        }
        made->snapshot = *snapshot;
        *snapshot = (struct hfd_snapshot){0};
        pthread_mutex_lock(&all->mu);
        struct hfd_rendering **bucket = bucket_of(all, made);
        struct hfd_rendering *found = *bucket;
        while (found && !is_same(found, made))
                found = found->next;
        if (found) {
                hfd_rendering_ref(found);
        } else {
                made->next = *bucket;
                if (*bucket)
                        (*bucket)->prev = made;
                *bucket = made;
                all->n++;
        }
        pthread_mutex_unlock(&all->mu);
        if (found)
                rendering_free(made);
        *ret_rendering = found ? found : made;
        return 0;
}

int hfd_rendering_of_array(struct hfd_renderings *all, const struct hfd_rendering_spec *spec,
                           struct hfd_object **objects, size_t n,
                           struct hfd_rendering **ret_rendering) {
        struct hfd_rendering *made = NULL;
        int r = objects ? rendering_new(all, spec, &made) : -ENOMEM;

        if (r != 0) {
                for (size_t i = 0; objects && i < n; i++)
                        hfd_object_unref(objects[i]);
                free(objects);
                return r;
        }
        made->objects = objects;
        made->n_objects = n;
        pthread_mutex_lock(&all->mu);
        all->n++;
        pthread_mutex_unlock(&all->mu);
        *ret_rendering = made;
        return 0;
}
